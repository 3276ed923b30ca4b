//! `--arg` and `--grid` as edits of the text: a variable of a scenario gets another value, and a
//! kernel without a scenario gets one.
//!
//! Everything downstream (what is specialized, what is launched, where an error points) then
//! follows without knowing of flags. Edits keep the lines of the text.

use tile_compiler::hir::{ArgKind, Expr, Module, Scenario};
use tile_compiler::source::TextRange;
use tile_worker::protocol::{Failure, RunRequest};

use super::{chosen, launches};
use crate::analysis::Opened;
use crate::failure::usage;

/// A text with what flags put into it.
#[derive(Debug, Default)]
pub(super) struct Edited {
    /// The text.
    pub(super) text: String,
    /// Stretches of the text that come from the command line, with the flags they come from.
    flags: Vec<(TextRange, String)>,
    /// Where the scenario stands that consists of flags alone.
    own: Option<TextRange>,
}

impl Edited {
    /// The flag that wrote what stands at `at`, if one did.
    pub(super) fn flag_at(&self, at: TextRange) -> Option<&str> {
        let around = self.flags.iter().filter(|(range, _)| range.contains_range(at));
        // What a flag gives lies in the launch that all flags describe.
        let smallest = around.min_by_key(|(range, _)| range.len());
        smallest.map(|(_, flag)| flag.as_str())
    }

    /// The scenario that consists of flags alone, if there is one.
    pub(super) fn own<'m>(&self, module: &'m Module) -> Option<&'m Scenario> {
        let own = self.own?;
        module.scenarios.iter().find(|scenario| own.contains_range(scenario.range))
    }

    fn push(&mut self, text: &str) -> TextRange {
        let start = self.text.len();
        self.text.push_str(text);
        TextRange::new(start, self.text.len())
    }

    fn push_flag(&mut self, text: &str, flag: String) {
        let range = self.push(text);
        self.flags.push((range, flag));
    }
}

/// The text of the file with the request's arguments in it.
pub(super) fn with_arguments(request: &RunRequest, opened: &Opened) -> Result<Edited, Failure> {
    let text = opened.text();
    if request.args.is_empty() && request.grid.is_none() {
        return Ok(Edited { text: text.to_string(), ..Edited::default() });
    }
    let args = request.args.iter().map(|(name, text)| (format!("--arg {name}"), text));
    let grid = request.grid.iter().map(|text| ("--grid".to_owned(), text));
    for (flag, text) in args.chain(grid) {
        if text.contains('\n') || tile_compiler::hir::lower_expression(text).is_none() {
            return Err(usage(format!("{flag}: `{text}` is not an expression")));
        }
    }
    let module = opened.module();
    let has_own = |kernel: &str| module.scenarios.iter().any(|s| launches(&module, s, kernel));
    match request.kernel.as_deref() {
        Some(kernel) if !has_own(kernel) || describes_launch(request, opened, &module, kernel) => {
            Ok(with_scenario(request, &text, kernel))
        }
        _ => with_variables(request, opened, &module, &text),
    }
}

/// Whether the flags describe a launch of their own, though the kernel has scenarios: they give all
/// of its arguments, not all of them as variables of the scenarios.
fn describes_launch(request: &RunRequest, opened: &Opened, module: &Module, kernel: &str) -> bool {
    if request.scenario.is_some() {
        return false;
    }
    let Some(at) = opened.jit_function(kernel) else { return false };
    let Some(function) = tile_compiler::project::function(&opened.workspace, at) else {
        return false;
    };
    let given = |name: &str| request.args.iter().any(|(known, _)| known == name);
    let set = |name: &str| request.spec.values.iter().any(|(known, _)| known == name);
    let variable = |name: &str| module.scenarios.iter().any(|s| s.assigned(name).is_some());
    let mut required = function.params.iter().filter(|param| param.default.is_none());
    required.all(|param| given(&param.name) || set(&param.name))
        && request.args.iter().all(|(name, _)| function.params.iter().any(|p| *p.name == **name))
        && !request.args.iter().all(|(name, _)| variable(name))
}

/// The text with a scenario at its end that launches the kernel with the arguments by name.
fn with_scenario(request: &RunRequest, text: &str, kernel: &str) -> Edited {
    let mut edited = Edited { text: format!("{text}\n\n"), ..Edited::default() };
    let start = edited.text.len();
    let mut arguments = Vec::new();
    for (name, expression) in &request.args {
        edited.push_flag(&format!("# tile: {name} = {expression}\n"), flag(name, expression));
        arguments.push(format!("{name}={name}"));
    }
    edited.push(&format!("# tile: {kernel}["));
    match &request.grid {
        Some(grid) => edited.push_flag(grid, format!("--grid {grid}")),
        None => edited.push_flag("(1,)", "without --grid, the grid is (1,)".to_owned()),
    }
    edited.push(&format!("]({})\n", arguments.join(", ")));
    let all = TextRange::new(start, edited.text.len());
    edited.own = Some(all);
    edited.flags.push((all, format!("the launch of {kernel} that --arg describes")));
    edited
}

/// A flag as the user writes it.
fn flag(name: &str, expression: &str) -> String {
    format!("--arg {name}={expression}")
}

/// The text with other values for the variables of the chosen scenarios.
fn with_variables(
    request: &RunRequest,
    opened: &Opened,
    module: &Module,
    text: &str,
) -> Result<Edited, Failure> {
    let mut edits: Vec<(TextRange, &str, String)> = Vec::new();
    let scenarios = chosen(request, opened, module)?;
    for (name, expression) in &request.args {
        let places: Vec<TextRange> = scenarios
            .iter()
            .filter_map(|scenario| {
                let assigned = scenario.assigned(name).map(|value| scenario.map.exprs[value]);
                assigned.or_else(|| passed(opened, module, scenario, name))
            })
            .collect();
        if places.is_empty() {
            return Err(usage(format!(
                "--arg {name}: the scenario has no variable of this name, nor the kernel an argument"
            )));
        }
        let flag = flag(name, expression);
        let edit = |range| (range, expression.as_str(), flag.clone());
        edits.extend(places.into_iter().map(edit));
    }
    if let Some(grid) = &request.grid {
        let inside = |launch: &&tile_compiler::hir::Launch| {
            scenarios.iter().any(|scenario| scenario.range.contains_range(launch.range))
        };
        for launch in module.launches.iter().filter(inside) {
            edits.push((launch.map.exprs[launch.grid], grid, format!("--grid {grid}")));
        }
    }
    edits.sort_by_key(|(range, ..)| range.start);
    let mut edited = Edited::default();
    let mut done = 0;
    for (range, replacement, flag) in edits {
        let range = range.as_usize();
        // Of two values for one place the first holds.
        if range.start < done {
            continue;
        }
        edited.push(&text[done..range.start]);
        edited.push_flag(replacement, flag);
        done = range.end;
    }
    edited.push(&text[done..]);
    Ok(edited)
}

/// Where a scenario's first launch passes the argument `name`.
fn passed(opened: &Opened, module: &Module, scenario: &Scenario, name: &str) -> Option<TextRange> {
    let mut inside = module.launches.iter();
    let launch = inside.find(|launch| scenario.range.contains_range(launch.range))?;
    let Expr::Name(kernel) = &launch.body.exprs[launch.kernel] else { return None };
    let at = opened.jit_function(kernel)?;
    let function = tile_compiler::project::function(&opened.workspace, at)?;
    let index = function.params.iter().position(|param| &*param.name == name)?;
    let arg = launch.args.iter().enumerate().find(|(at, arg)| match &arg.kind {
        ArgKind::Keyword(keyword) => &**keyword == name,
        ArgKind::Positional => *at == index,
        ArgKind::Star | ArgKind::DoubleStar => false,
    });
    arg.map(|(_, arg)| launch.map.exprs[arg.value])
}
