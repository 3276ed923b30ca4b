//! Names in scenarios that nothing defines: kernels that are launched, and what they are given.

use crate::builtins::scenario_function;
use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::hir::{Expr, ExprId, Module, Name, Scenario, statements};
use crate::host::named_dtype;
use crate::project::{Sources, item, jit_functions};
use crate::source::{FileId, FileRange};

/// What is imported as a whole file may define any name.
const WILDCARD: &str = "*";

/// Names in the launches of the scenarios of `file` that nothing defines.
pub(super) fn check(sources: &dyn Sources, file: FileId, module: &Module) -> Vec<Diagnostic> {
    if module.scenarios.is_empty() || module.items_named(WILDCARD).next().is_some() {
        return Vec::new();
    }
    let kernels = jit_functions(sources, file).into_iter();
    let kernels: Vec<Name> =
        kernels.filter_map(|at| item(sources, at).map(|item| item.name.clone())).collect();
    let scenarios = module.scenarios.iter();
    scenarios.flat_map(|scenario| in_scenario(file, module, &kernels, scenario)).collect()
}

fn in_scenario(
    file: FileId,
    module: &Module,
    kernels: &[Name],
    scenario: &Scenario,
) -> Vec<Diagnostic> {
    let body = &*scenario.body;
    let local: Vec<&Name> = statements::bound(body).collect();
    let unbound = |id: ExprId| {
        body.exprs[id].as_name().filter(|name| {
            !local.contains(name)
                && module.items_named(name).next().is_none()
                && scenario_function(name).is_none()
                && named_dtype(name).is_none()
        })
    };
    let finding = |id: ExprId, message: String, best: Option<&str>| {
        let at = FileRange { file, range: scenario.map.exprs[id] };
        let found = Diagnostic::new(Code::UndefinedName, at, message);
        match best {
            Some(best) => found.with_suggestion(best),
            None => found,
        }
    };
    let launches = body.exprs.values().filter_map(|expr| match expr {
        Expr::Call { callee, args } => match body.exprs[*callee] {
            Expr::Subscript { value, .. } => Some((value, args)),
            _ => None,
        },
        _ => None,
    });
    let mut found = Vec::new();
    for (kernel, args) in launches {
        if let Some(name) = unbound(kernel) {
            let best = suggest(name, kernels.iter().map(|name| &**name));
            found.push(finding(kernel, format!("there is no kernel `{name}`"), best));
        }
        for arg in args {
            if let Some(name) = unbound(arg.value) {
                let best = suggest(name, local.iter().map(|name| &***name));
                found.push(finding(arg.value, format!("`{name}` is not defined"), best));
            }
        }
    }
    found
}
