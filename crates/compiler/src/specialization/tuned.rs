//! Values of parameters and launch options in a scenario: where they are, and how to change them.

use crate::hir::{ArgKind, Expr, Launch, Module, Scenario, Stmt};
use crate::source::TextRange;

/// The scenario of a kernel of this module, with its launch. `number` counts the kernel's
/// scenarios from 0.
fn scenario<'m>(
    module: &'m Module,
    kernel: &str,
    number: usize,
) -> Option<(&'m Scenario, &'m Launch)> {
    let mut found = module.scenarios.iter().filter_map(|scenario| {
        let launch = module.launches.iter().find(|launch| {
            let names_kernel = matches!(
                &launch.body.exprs[launch.kernel], Expr::Name(name) if &**name == kernel
            );
            names_kernel && scenario.range.contains_range(launch.range)
        })?;
        Some((scenario, launch))
    });
    found.nth(number)
}

/// Names that a scenario of a kernel assigns; empty when there is no such scenario. A value for
/// one of them goes where it is assigned, so that a grid written with it follows.
pub fn scenario_variables(module: &Module, kernel: &str, number: usize) -> Vec<String> {
    let Some((scenario, _)) = scenario(module, kernel, number) else { return Vec::new() };
    let targets = scenario.body.stmts.values().filter_map(|stmt| match stmt {
        Stmt::Assign { targets, .. } => Some(targets),
        _ => None,
    });
    let names = targets.flatten().filter_map(|&target| match &scenario.body.exprs[target] {
        Expr::Name(name) => Some(name.to_string()),
        _ => None,
    });
    names.collect()
}

/// The replacements that write `NAME=VALUE` pairs into a scenario: where a variable is assigned,
/// where the launch passes a literal, or as a further argument of the launch. `None` when the
/// kernel has no such scenario.
pub fn scenario_edits(
    module: &Module,
    kernel: &str,
    number: usize,
    values: &[(String, String)],
) -> Option<Vec<(TextRange, String)>> {
    let (scenario, launch) = scenario(module, kernel, number)?;
    let edit = |(name, value): &(String, String)| match assigned_literal(scenario, name)
        .or_else(|| passed(launch, name))
    {
        Some(range) => (range, value.clone()),
        None => {
            let end = launch.range.end.saturating_sub(1) as usize;
            (TextRange::empty(end), format!(", {name}={value}"))
        }
    };
    Some(values.iter().map(edit).collect())
}

/// Where the scenario assigns a literal to `name`.
fn assigned_literal(scenario: &Scenario, name: &str) -> Option<TextRange> {
    let value = scenario.assigned(name)?;
    let is_literal = matches!(scenario.body.exprs[value], Expr::Literal(_));
    is_literal.then(|| scenario.map.exprs[value])
}

/// Where the launch passes a literal for `name`.
fn passed(launch: &Launch, name: &str) -> Option<TextRange> {
    let mut args = launch.args.iter();
    let arg = args.find(|arg| matches!(&arg.kind, ArgKind::Keyword(n) if &**n == name))?;
    let is_literal = matches!(launch.body.exprs[arg.value], Expr::Literal(_));
    is_literal.then(|| launch.map.exprs[arg.value])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hir::lower;
    use crate::syntax::Parse;

    #[test]
    fn values_go_where_they_are_written() {
        let text = "# tile: B = 64\n# tile: k[(4,)](x, BLOCK=B, num_warps=4)\n";
        let module = lower(&Parse::new(text));
        assert_eq!(scenario_variables(&module, "k", 0), ["B"]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let values = [pair("B", "128"), pair("num_warps", "8"), pair("num_stages", "2")];
        let mut edits = scenario_edits(&module, "k", 0, &values).expect("there is a scenario");
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        let mut out = text.to_owned();
        for (range, value) in edits {
            out.replace_range(range.as_usize(), &value);
        }
        let want = "# tile: B = 128\n# tile: k[(4,)](x, BLOCK=B, num_warps=8, num_stages=2)\n";
        assert_eq!(out, want);
        assert_eq!(scenario_edits(&module, "other", 0, &values), None);
    }
}
