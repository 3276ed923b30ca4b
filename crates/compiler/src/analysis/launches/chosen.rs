//! Launches of a variable that is one of several kernels: `kernel = a if fast else b`.

use std::sync::Arc;

use crate::hir::{Body, Expr, ExprId, Function, ItemKind, Launch, Module, Name, Stmt};
use crate::project::launching_item;

/// The launch as one of each kernel that it may be of; none where it is of something else, or may be.
pub(super) fn of_each(module: &Module, launch: &Launch) -> Vec<Launch> {
    let Expr::Name(variable) = &launch.body.exprs[launch.kernel] else { return Vec::new() };
    let Some(ItemKind::Function(function)) =
        launching_item(module, launch).map(|index| &module.items[index as usize].kind)
    else {
        return Vec::new();
    };
    let names = values_of(function, variable).unwrap_or_default();
    names.into_iter().map(|name| launch_of(launch, name)).collect()
}

/// The names that a local variable may stand for; `None` where it may be anything else.
fn values_of(function: &Function, variable: &Name) -> Option<Vec<Name>> {
    let body = &function.body;
    let binds = |target: &ExprId| body.names_in(*target).contains(&variable);
    let is_it = |target: &ExprId| body.exprs[*target] == Expr::Name(variable.clone());
    let is_bound_otherwise = function.params.iter().any(|param| param.name == *variable)
        || body
            .exprs
            .values()
            .any(|expr| matches!(expr, Expr::Walrus { target, .. } if target == variable));
    let mut names = Vec::new();
    for stmt in body.stmts.values().filter(|stmt| stmt.targets().iter().any(binds)) {
        match stmt {
            Stmt::Assign { targets, value } if targets.iter().all(is_it) => {
                names_in(body, *value, &mut names)?;
            }
            _ => return None,
        }
    }
    (!is_bound_otherwise && names.len() > 1 && !names.contains(variable)).then_some(names)
}

fn names_in(body: &Body, value: ExprId, names: &mut Vec<Name>) -> Option<()> {
    match &body.exprs[value] {
        Expr::Name(name) => {
            names.push(name.clone());
            Some(())
        }
        Expr::IfElse { on_true, on_false, .. } => {
            names_in(body, *on_true, names)?;
            names_in(body, *on_false, names)
        }
        _ => None,
    }
}

/// The same launch of what `name` stands for.
fn launch_of(launch: &Launch, name: Name) -> Launch {
    let mut body = Body::clone(&launch.body);
    body.exprs[launch.kernel] = Expr::Name(name);
    Launch { body: Arc::new(body), ..launch.clone() }
}
