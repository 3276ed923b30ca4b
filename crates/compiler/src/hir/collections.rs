//! Which lists and dicts code changes in place, by its text alone.

use super::{Body, Expr, ExprId, Name, Param, Stmt};

/// Methods that change the collection they are called on.
pub(crate) const CHANGING: &[&str] = &[
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "extendleft",
    "insert",
    "move_to_end",
    "pop",
    "popitem",
    "popleft",
    "remove",
    "reverse",
    "rotate",
    "setdefault",
    "sort",
    "update",
];

/// Whether an expression calls a method that changes a collection.
pub fn changes(body: &Body, id: ExprId) -> bool {
    let Expr::Call { callee, .. } = &body.exprs[id] else { return false };
    matches!(&body.exprs[*callee], Expr::Attribute { attr, .. } if CHANGING.contains(&&**attr))
}

/// The variable that a place belongs to: `d` of `d["a"].items[0]`.
pub fn root(body: &Body, place: ExprId) -> Option<&Name> {
    match &body.exprs[place] {
        Expr::Name(name) => Some(name),
        Expr::Subscript { value, .. } | Expr::Attribute { value, .. } => root(body, *value),
        Expr::Call { callee, .. } => root(body, *callee),
        Expr::Starred(value) => root(body, *value),
        _ => None,
    }
}

/// Names of lists and dicts that a function changes and that are not its own, sorted.
pub(super) fn changed_by(body: &Body, params: &[Param]) -> Vec<Name> {
    let mut names = changed_in(body);
    if !names.is_empty() {
        let params = params.iter().map(|param| &param.name);
        let own: Vec<&Name> = body.bound_names().chain(params).collect();
        names.retain(|name| !own.contains(name));
    }
    names.into_iter().cloned().collect()
}

/// Names of lists and dicts that a function changes in place, sorted.
pub(crate) fn changed_in(body: &Body) -> Vec<&Name> {
    let calls = body.exprs.keys().filter(|call| changes(body, *call));
    let items = body.stmts.values().flat_map(|stmt| match stmt {
        Stmt::Assign { targets, .. } => targets.as_slice(),
        Stmt::AugAssign { target, .. } => std::slice::from_ref(target),
        _ => &[],
    });
    let items = items.filter(|target| matches!(body.exprs[**target], Expr::Subscript { .. }));
    let places = calls.chain(items.copied());
    let mut names: Vec<&Name> = places.filter_map(|place| root(body, place)).collect();
    names.sort();
    names.dedup();
    names
}
