//! Readings of single expressions: arguments by name, the summands of an address.

use crate::hir::{Arg, ArgKind, Body, Expr, ExprId};

pub(super) fn is_keyword(arg: &Arg, name: &str) -> bool {
    matches!(&arg.kind, ArgKind::Keyword(known) if &**known == name)
}

/// The argument at `index`, or the one called `name`.
pub(super) fn argument(args: &[Arg], index: usize, name: &str) -> Option<ExprId> {
    let positional = args.get(index).filter(|arg| arg.kind == ArgKind::Positional);
    positional.or_else(|| args.iter().find(|arg| is_keyword(arg, name))).map(|arg| arg.value)
}

/// The two values that `where(condition, x, y)` chooses from.
pub(super) fn choices(args: &[Arg]) -> Vec<ExprId> {
    [argument(args, 1, "x"), argument(args, 2, "y")].into_iter().flatten().collect()
}

/// The last part of the name of what is called.
pub(super) fn called_name(body: &Body, callee: ExprId) -> Option<&str> {
    match &body.exprs[callee] {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => Some(name),
        _ => None,
    }
}

/// Functions whose result is made of their arguments.
const LEAF_FUNCTIONS: &[&str] = &[
    "broadcast_to",
    "cast",
    "cdiv",
    "clamp",
    "expand_dims",
    "max",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "multiple_of",
    "where",
];

/// Operands of nested arithmetic, displays, indexing and calls of methods that keep their value.
pub(super) fn leaves(body: &Body, id: ExprId) -> Vec<ExprId> {
    let mut leaves = Vec::new();
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        match &body.exprs[id] {
            Expr::Binary { lhs, rhs, .. } => pending.extend([*lhs, *rhs]),
            Expr::Tuple(items) | Expr::List(items) => pending.extend(items),
            Expr::Unary { operand, .. } => pending.push(*operand),
            Expr::Subscript { value, .. } => pending.push(*value),
            Expr::Call { callee, args } => match (&body.exprs[*callee], called_name(body, *callee))
            {
                (Expr::Attribute { value, .. }, Some("to")) => pending.push(*value),
                (_, Some(name)) if LEAF_FUNCTIONS.contains(&name) => {
                    pending.extend(args.iter().map(|arg| arg.value));
                }
                _ => leaves.push(id),
            },
            _ => leaves.push(id),
        }
    }
    leaves
}
