//! `--arg` and `--grid` as edits of the text: a variable of a scenario gets another value, and a
//! kernel without a scenario gets one.
//!
//! Everything downstream (what is specialized, what is launched, where an error points) then
//! follows without knowing of flags. Edits keep the lines of the text.

use tile_compiler::hir::{ArgKind, Body, Expr, ExprId, Module, Scenario, Stmt};
use tile_compiler::source::TextRange;
use tile_worker::protocol::{Failure, RunRequest};

use super::{chosen, launches, usage};
use crate::analysis::Opened;

/// The text of the file with the request's arguments in it.
pub(super) fn with_arguments(request: &RunRequest, opened: &Opened) -> Result<String, Failure> {
    let text = opened.text();
    if request.args.is_empty() && request.grid.is_none() {
        return Ok(text.to_string());
    }
    for (name, expression) in &request.args {
        if expression.contains('\n') || tile_compiler::hir::lower_expression(expression).is_none() {
            return Err(usage(format!("--arg {name}: `{expression}` is not an expression")));
        }
    }
    let module = opened.module();
    let has_own = |kernel: &str| module.scenarios.iter().any(|s| launches(&module, s, kernel));
    match request.kernel.as_deref() {
        Some(kernel) if !has_own(kernel) => Ok(with_scenario(request, &text, kernel)),
        _ => with_variables(request, opened, &module, &text),
    }
}

/// The text with a scenario at its end that launches the kernel with the arguments by name.
fn with_scenario(request: &RunRequest, text: &str, kernel: &str) -> String {
    let mut lines = String::from("\n\n");
    let mut arguments = Vec::new();
    for (name, expression) in &request.args {
        lines.push_str(&format!("# tile: {name} = {expression}\n"));
        arguments.push(format!("{name}={name}"));
    }
    let grid = request.grid.as_deref().unwrap_or("(1,)");
    lines.push_str(&format!("# tile: {kernel}[{grid}]({})\n", arguments.join(", ")));
    format!("{text}{lines}")
}

/// The text with other values for the variables of the chosen scenarios.
fn with_variables(
    request: &RunRequest,
    opened: &Opened,
    module: &Module,
    text: &str,
) -> Result<String, Failure> {
    let mut edits: Vec<(TextRange, &str)> = Vec::new();
    let scenarios = chosen(request, opened, module)?;
    for (name, expression) in &request.args {
        let places: Vec<TextRange> = scenarios
            .iter()
            .filter_map(|scenario| {
                assigned(scenario, name).or_else(|| passed(opened, module, scenario, name))
            })
            .collect();
        if places.is_empty() {
            return Err(usage(format!(
                "--arg {name}: the scenario has no variable of this name, nor the kernel an argument"
            )));
        }
        edits.extend(places.into_iter().map(|range| (range, expression.as_str())));
    }
    if let Some(grid) = &request.grid {
        let inside = |launch: &&tile_compiler::hir::Launch| {
            scenarios.iter().any(|scenario| scenario.range.contains_range(launch.range))
        };
        for launch in module.launches.iter().filter(inside) {
            edits.push((launch.map.exprs[launch.grid], grid));
        }
    }
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, replacement) in edits {
        text.replace_range(range.as_usize(), replacement);
    }
    Ok(text)
}

/// Where a scenario gives `name` its first value.
pub(crate) fn assigned(scenario: &Scenario, name: &str) -> Option<TextRange> {
    let body = &scenario.body;
    scenario
        .body
        .root
        .iter()
        .find_map(|&statement| {
            let Stmt::Assign { targets, value } = &body.stmts[statement] else { return None };
            targets.iter().find_map(|&target| part(body, target, *value, name))
        })
        .map(|value| scenario.map.exprs[value])
}

/// Where a scenario's first launch passes the argument `name`.
fn passed(opened: &Opened, module: &Module, scenario: &Scenario, name: &str) -> Option<TextRange> {
    let mut inside = module.launches.iter();
    let launch = inside.find(|launch| scenario.range.contains_range(launch.range))?;
    let Expr::Name(kernel) = &launch.body.exprs[launch.kernel] else { return None };
    let (_, at) = opened.jit_function(kernel)?;
    let function = tile_compiler::project::function(&opened.workspace, at)?;
    let index = function.params.iter().position(|param| &*param.name == name)?;
    let arg = launch.args.iter().enumerate().find(|(at, arg)| match &arg.kind {
        ArgKind::Keyword(keyword) => &**keyword == name,
        ArgKind::Positional => *at == index,
        ArgKind::Star | ArgKind::DoubleStar => false,
    });
    arg.map(|(_, arg)| launch.map.exprs[arg.value])
}

/// The part of `value` that assigning it to `target` gives to `name`.
fn part(body: &Body, target: ExprId, value: ExprId, name: &str) -> Option<ExprId> {
    match (&body.exprs[target], &body.exprs[value]) {
        (Expr::Name(found), _) => (**found == *name).then_some(value),
        (Expr::Tuple(targets), Expr::Tuple(values)) if targets.len() == values.len() => {
            targets.iter().zip(values).find_map(|(&target, &value)| part(body, target, value, name))
        }
        _ => None,
    }
}
