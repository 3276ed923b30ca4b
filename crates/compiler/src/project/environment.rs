//! Variables of the environment that programs set for the modules that they import.

use rustc_hash::FxHashSet;

use super::Sources;
use crate::hir::{Body, Expr, ExprId, Literal, MainBlock, Stmt};
use crate::source::FileId;

/// How many files are looked at that import a module, perhaps by way of others.
const MAX_IMPORTERS: usize = 64;

/// Methods of `os.environ`, and functions of `os`, that set the variable that they name.
const SETTERS: &[&str] = &["putenv", "setdefault"];

/// Whether what imports a module, perhaps by way of others, sets a variable of the environment in its outermost
/// statements.
pub(crate) fn is_variable_set(sources: &dyn Sources, file: FileId, name: &str) -> bool {
    let mut seen = FxHashSet::default();
    let mut next = sources.importers(file);
    while let Some(file) = next.pop() {
        if !seen.insert(file) {
            continue;
        }
        let module = sources.module(file).unwrap_or_default();
        if seen.len() > MAX_IMPORTERS || module.mains.iter().any(|main| sets(main, name)) {
            return true;
        }
        next.extend(sources.importers(file));
    }
    false
}

fn sets(main: &MainBlock, name: &str) -> bool {
    let body = &*main.body;
    let is_name = |id: ExprId| matches!(&body.exprs[id], Expr::Literal(Literal::Str(text)) if **text == *name);
    let is_assigned = |stmt: &Stmt| match stmt {
        Stmt::Assign { targets, .. } => targets.iter().any(|target| match &body.exprs[*target] {
            Expr::Subscript { value, index } => is_environment(body, *value) && is_name(*index),
            _ => false,
        }),
        _ => false,
    };
    let is_called = |expr: &Expr| match expr {
        Expr::Call { callee, args } => match &body.exprs[*callee] {
            Expr::Attribute { attr, .. } if SETTERS.contains(&&**attr) => {
                args.iter().any(|arg| is_name(arg.value))
            }
            Expr::Attribute { attr, value } => &**attr == "update" && is_environment(body, *value),
            _ => false,
        },
        _ => false,
    };
    body.stmts.values().any(is_assigned) || body.exprs.values().any(is_called)
}

fn is_environment(body: &Body, id: ExprId) -> bool {
    match &body.exprs[id] {
        Expr::Attribute { attr: name, .. } | Expr::Name(name) => &**name == "environ",
        _ => false,
    }
}
