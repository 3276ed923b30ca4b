//! Which arguments a kernel may write to, as far as its text tells.

use rustc_hash::FxHashSet;

use super::expressions::called_name;
use crate::hir::{Body, Expr, ExprId, Function, Name, Stmt};
use crate::project::{ItemRef, Sources, function};

/// Functions that only read what they are given an address of.
const READERS: &[&str] = &["load", "load_tensor_descriptor"];

/// Functions that make values of numbers and addresses.
const MAKERS: &[&str] = &[
    "advance",
    "broadcast_to",
    "cast",
    "cdiv",
    "expand_dims",
    "make_block_ptr",
    "make_tensor_descriptor",
    "max_contiguous",
    "maximum",
    "minimum",
    "multiple_of",
    "to",
    "where",
];

/// Whether each parameter of a jit function may be written to: an address that comes from it gets
/// somewhere else than to what reads.
pub(in crate::specialization) fn may_write(sources: &dyn Sources, at: ItemRef) -> Vec<bool> {
    let Some(function) = function(sources, at) else { return Vec::new() };
    function.params.iter().map(|param| is_written(&function, &param.name)).collect()
}

fn is_written(function: &Function, param: &Name) -> bool {
    let body = &function.body;
    let mut names = FxHashSet::from_iter([param.clone()]);
    loop {
        let before = names.len();
        for stmt in body.stmts.values() {
            if values_of(stmt).into_iter().any(|value| carries(body, value, &names)) {
                let targets = stmt.targets().into_iter().flat_map(|target| body.names_in(target));
                names.extend(targets.cloned());
            }
        }
        for (id, expr) in body.exprs.iter() {
            let mut carried = false;
            if !body.bound_by(id).is_empty() {
                expr.for_each_child(|child| carried |= carries(body, child, &names));
            }
            if carried {
                names.extend(body.bound_by(id).into_iter().cloned());
            }
        }
        if names.len() == before {
            break;
        }
    }
    body.exprs.values().any(|expr| {
        let Expr::Call { callee, args } = expr else { return false };
        let harmless = called_name(body, *callee)
            .is_some_and(|name| READERS.contains(&name) || MAKERS.contains(&name));
        let receives = carries(body, *callee, &names)
            || args.iter().any(|arg| carries(body, arg.value, &names));
        receives && !harmless
    })
}

/// The expressions whose values a statement gives to its targets.
fn values_of(stmt: &Stmt) -> Vec<ExprId> {
    match stmt {
        Stmt::Assign { value, .. } | Stmt::AugAssign { value, .. } => vec![*value],
        Stmt::AnnAssign { value, .. } => value.iter().copied().collect(),
        Stmt::For { iter, .. } => vec![*iter],
        Stmt::With { items, .. } => items.iter().map(|(value, _)| *value).collect(),
        _ => Vec::new(),
    }
}

/// Whether an address may be part of the value of an expression: what is loaded is none.
fn carries(body: &Body, id: ExprId, names: &FxHashSet<Name>) -> bool {
    match &body.exprs[id] {
        Expr::Name(name) => names.contains(name),
        Expr::Call { callee, .. }
            if called_name(body, *callee).is_some_and(|name| READERS.contains(&name)) =>
        {
            false
        }
        expr => {
            let mut found = false;
            expr.for_each_child(|child| found |= carries(body, child, names));
            found
        }
    }
}
