//! Whether a kernel has loads that leave lanes without a value, as far as its text tells.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Callees;
use super::expressions::{argument, called_name};
use crate::hir::{Body, Expr};
use crate::project::{ItemRef, Resolution, Scope, Sources, function, item};

/// True when the jit function `at`, or one that it calls, has a load with a mask and without `other`.
pub fn leaves_lanes(sources: &dyn Sources, at: ItemRef) -> bool {
    let (mut pending, mut seen) = (vec![at], FxHashSet::default());
    while let Some(at) = pending.pop() {
        let (Some(item), Some(function)) = (item(sources, at), function(sources, at)) else {
            continue;
        };
        let body = &function.body;
        if body.exprs.values().any(|expr| is_unfilled(body, expr)) {
            return true;
        }
        let path = item.body_scope();
        let scope = Scope { file: at.file, path: &path };
        let mut callees = Callees { sources, scope, body, names: FxHashMap::default() };
        for expr in body.exprs.values() {
            if let Expr::Call { callee, .. } = expr
                && let Resolution::Jit(called) = callees.jit_function(*callee)
                && seen.insert(called)
            {
                pending.push(called);
            }
        }
    }
    false
}

fn is_unfilled(body: &Body, expr: &Expr) -> bool {
    let Expr::Call { callee, args } = expr else { return false };
    let has = |at: usize, name: &str| argument(args, at, name).is_some();
    called_name(body, *callee) == Some("load") && has(1, "mask") && !has(2, "other")
}
