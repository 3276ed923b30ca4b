//! Whether a kernel has loads that leave lanes without a value, as far as its text tells.

use super::expressions::{argument, called_name};
use crate::hir::{Body, Expr};
use crate::project::{ItemRef, Sources, function, with_callees};

/// True when the jit function `at`, or one that it calls, has a load with a mask and without `other`.
pub fn leaves_lanes(sources: &dyn Sources, at: ItemRef) -> bool {
    let is_unfilled = |at: ItemRef| {
        let function = function(sources, at);
        function.is_some_and(|function| {
            let body = &function.body;
            body.exprs.values().any(|expr| is_unfilled(body, expr))
        })
    };
    with_callees(sources, at).into_iter().any(is_unfilled)
}

fn is_unfilled(body: &Body, expr: &Expr) -> bool {
    let Expr::Call { callee, args } = expr else { return false };
    let has = |at: usize, name: &str| argument(args, at, name).is_some();
    called_name(body, *callee) == Some("load") && has(1, "mask") && !has(2, "other")
}
