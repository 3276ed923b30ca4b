//! Launches of a variable that is one of several kernels: `kernel = a if fast else b`, or what a function
//! returns.

use std::sync::Arc;

use crate::hir::{Body, Expr, ExprId, Function, ItemKind, Launch, Module, Name, Stmt};
use crate::project::launching_item;

/// The launch as one of each kernel that it may be of; none where it is of something else, or may be.
pub(super) fn of_each(module: &Module, launch: &Launch) -> Vec<Launch> {
    let Some(ItemKind::Function(function)) =
        launching_item(module, launch).map(|index| &module.items[index as usize].kind)
    else {
        return Vec::new();
    };
    let names = match &launch.body.exprs[launch.kernel] {
        Expr::Name(variable) => values_of(module, function, variable),
        Expr::Call { callee, .. } => returned(module, function, &launch.body, *callee),
        _ => None,
    };
    names.unwrap_or_default().into_iter().map(|name| launch_of(launch, name)).collect()
}

/// The names that a local variable may stand for; `None` where it may be anything else.
fn values_of(module: &Module, function: &Function, variable: &Name) -> Option<Vec<Name>> {
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
                match &body.exprs[*value] {
                    Expr::Call { callee, .. } => {
                        names.extend(returned(module, function, body, *callee)?);
                    }
                    _ => names_in(body, *value, &mut names)?,
                }
            }
            _ => return None,
        }
    }
    (!is_bound_otherwise && !names.contains(variable)).then_some(names)
}

/// The names of what a function of the module returns that is called in `function`; `None` where it may
/// return anything else.
fn returned(
    module: &Module,
    function: &Function,
    body: &Body,
    callee: ExprId,
) -> Option<Vec<Name>> {
    let mut items = module.items_named(body.exprs[callee].as_name()?);
    let (Some(index), None) = (items.next(), items.next()) else { return None };
    let item = &module.items[index as usize];
    let ItemKind::Function(called) = &item.kind else { return None };
    let is_plain = item.scope.is_empty() && called.decorators.is_empty();
    let mut names = Vec::new();
    for stmt in called.body.stmts.values() {
        if let Stmt::Return(value) = stmt {
            names_in(&called.body, (*value)?, &mut names)?;
        }
    }
    // What it calls them is what they are called where it is called.
    let is_own = |body: &Body, name: &Name| {
        let mut targets = body.stmts.values().flat_map(Stmt::targets);
        targets.any(|target| body.names_in(target).contains(&name))
    };
    let is_param = |name: &Name| {
        let params = function.params.iter().chain(&called.params);
        params.map(|param| &param.name).any(|param| param == name)
    };
    let is_global = |name: &Name| {
        !is_own(&function.body, name) && !is_own(&called.body, name) && !is_param(name)
    };
    (is_plain && names.iter().all(is_global)).then_some(names)
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
