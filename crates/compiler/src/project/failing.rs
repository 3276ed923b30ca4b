//! Launches that are meant to fail: under `with pytest.raises(...)`, and in a `try` whose handler
//! takes the exception.

use super::Sources;
use crate::hir::{Body, Expr, ExprId, ItemKind, SourceMap, Stmt};
use crate::source::{FileId, TextRange};

/// Context managers that take an exception of what is under them, by the last part of their names.
const TAKES_EXCEPTIONS: &[&str] = &["raises", "assertRaises", "assertRaisesRegex", "suppress"];

/// Whether `manager` makes a context manager that takes exceptions.
pub fn takes_exceptions(body: &Body, manager: ExprId) -> bool {
    let Expr::Call { callee, .. } = &body.exprs[manager] else { return false };
    match &body.exprs[*callee] {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => {
            TAKES_EXCEPTIONS.contains(&&**name)
        }
        _ => false,
    }
}

/// Whether an exception at `range` of `file` is taken by the code around it.
pub fn is_expected_to_fail(sources: &dyn Sources, file: FileId, range: TextRange) -> bool {
    let Some(module) = sources.module(file) else { return false };
    let text = sources.text(file);
    let text = text.as_deref().unwrap_or_default();
    let functions = module.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Function(function) if item.range.contains_range(range) => {
            Some((&*function.body, &function.map))
        }
        _ => None,
    });
    let mains = module.mains.iter().map(|main| (&*main.body, &*main.map));
    functions.chain(mains).any(|code| takes(code, range, text))
}

fn takes((body, map): (&Body, &SourceMap), range: TextRange, text: &str) -> bool {
    body.stmts.iter().any(|(id, stmt)| {
        let around = map.stmts[id];
        around.contains_range(range)
            && match stmt {
                Stmt::With { items, .. } => {
                    items.iter().any(|(manager, _)| takes_exceptions(body, *manager))
                }
                Stmt::Unsupported("Try") => {
                    let text = text.get(around.start as usize..around.end as usize);
                    text.is_some_and(handles)
                }
                _ => false,
            }
    })
}

/// Whether a `try` statement has a handler that does not raise again.
fn handles(text: &str) -> bool {
    let mut handlers = text.split("\n").skip_while(|line| !line.trim_start().starts_with("except"));
    let first = handlers.next();
    first.is_some() && !handlers.any(|line| line.trim_start().starts_with("raise"))
}
