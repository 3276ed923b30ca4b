//! Which outermost statements of a module have to do with a variable, by their text alone.

use rustc_hash::FxHashSet;

use super::collections::{self, root};
use super::{Body, Expr, Item, ItemKind, MainBlock, Module, Name, Stmt, StmtId};

/// The statements that have to do with a variable, in order: those that bind it or change what it
/// holds, and the same for all that they name.
pub fn concerned<'m>(module: &'m Module, name: &Name) -> Vec<&'m MainBlock> {
    let statements: Vec<_> = module.mains.iter().filter(|main| !main.is_program).collect();
    let mut needed = FxHashSet::from_iter([name]);
    let mut taken = vec![false; statements.len()];
    loop {
        let before = needed.len();
        for (main, taken) in statements.iter().zip(&mut taken) {
            let concerns = |name: &&Name| binds(&main.body, name) || changes(&main.body, name);
            let calls = |item: &Item| {
                changed_by(item).any(|name| needed.contains(name))
                    && main.body.exprs.values().any(|expr| expr.is_name(&item.name))
            };
            if !*taken && (needed.iter().any(concerns) || module.items.iter().any(calls)) {
                *taken = true;
                needed.extend(main.body.exprs.values().filter_map(Expr::as_name));
            }
        }
        if needed.len() == before {
            break;
        }
    }
    statements.into_iter().zip(taken).filter_map(|(main, taken)| taken.then_some(main)).collect()
}

/// True where no expression alone says what a variable of a module holds: a loop or an augmented
/// assignment binds it, or what it holds is changed in place.
pub(crate) fn is_recomputed(module: &Module, name: &Name) -> bool {
    let recomputes = |main: &MainBlock| {
        rebinds(&main.body, &main.body.root, name, false) || changes(&main.body, name)
    };
    let changes = |item: &Item| changed_by(item).any(|changed| changed == name);
    module.mains.iter().any(recomputes) || module.items.iter().any(changes)
}

/// The names that a statement of a module binds, outside of comprehensions and lambdas.
pub fn bound(body: &Body) -> impl Iterator<Item = &Name> {
    let walrus = body.exprs.values().filter_map(|expr| match expr {
        Expr::Walrus { target, .. } => Some(target),
        _ => None,
    });
    body.bound_in(&body.root).into_iter().chain(walrus)
}

/// Whether a statement of a module binds a name.
pub fn binds(body: &Body, name: &Name) -> bool {
    bound(body).any(|bound| bound == name)
}

/// Whether statements bind a name more than once, or to what depends on what it held.
fn rebinds(body: &Body, stmts: &[StmtId], name: &Name, repeated: bool) -> bool {
    stmts.iter().any(|id| {
        let stmt = &body.stmts[*id];
        let repeated = repeated
            || matches!(stmt, Stmt::AugAssign { .. } | Stmt::For { .. } | Stmt::While { .. });
        let targets = stmt.targets().into_iter().flat_map(|target| body.names_in(target));
        (repeated && targets.into_iter().any(|target| target == name))
            || stmt.blocks().into_iter().any(|block| rebinds(body, block, name, repeated))
    })
}

/// Whether code changes what a variable holds in place.
fn changes(body: &Body, name: &Name) -> bool {
    let calls = body.exprs.keys().filter(|call| collections::changes(body, *call));
    let targets = body.stmts.values().flat_map(Stmt::targets);
    let places = targets.filter(|target| {
        matches!(body.exprs[*target], Expr::Subscript { .. } | Expr::Attribute { .. })
    });
    calls.chain(places).any(|place| root(body, place) == Some(name))
}

/// The variables around it that a function changes in place.
pub(crate) fn changed_by(item: &Item) -> impl Iterator<Item = &Name> {
    let function = match &item.kind {
        ItemKind::Function(function) => Some(function),
        _ => None,
    };
    function.into_iter().flat_map(|function| &function.changes)
}
