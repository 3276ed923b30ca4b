//! Launches that are meant to fail: under `with pytest.raises(...)`, and in a `try` whose handler
//! takes the exception.

use super::Sources;
use crate::hir::{Body, Expr, ExprId, Handler, ItemKind, SourceMap, Stmt};
use crate::source::{FileId, TextRange};

/// Context managers that take an exception of what is under them, by the last part of their names.
const TAKES_EXCEPTIONS: &[&str] = &["raises", "assertRaises", "assertRaisesRegex", "suppress"];

/// Exceptions that no mistake in a kernel or its launch raises, by the last part of their names: the environment does.
const OF_ENVIRONMENT: &[&str] = &[
    "CalledProcessError",
    "FileNotFoundError",
    "IOError",
    "ImportError",
    "KeyboardInterrupt",
    "ModuleNotFoundError",
    "OSError",
    "OutOfMemoryError",
    "OutOfResources",
    "PTXASError",
    "PermissionError",
    "SystemExit",
    "TimeoutError",
    "TimeoutExpired",
];

/// Whether `manager` makes a context manager that takes exceptions.
pub(crate) fn takes_exceptions(body: &Body, manager: ExprId) -> bool {
    let Expr::Call { callee, .. } = &body.exprs[manager] else { return false };
    match &body.exprs[*callee] {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => {
            TAKES_EXCEPTIONS.contains(&&**name)
        }
        _ => false,
    }
}

/// Whether an exception at `range` of `file` is taken by the code around it.
pub(crate) fn is_expected_to_fail(sources: &dyn Sources, file: FileId, range: TextRange) -> bool {
    let Some(module) = sources.module(file) else { return false };
    let functions = module.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Function(function) if item.range.contains_range(range) => {
            Some((&*function.body, &function.map))
        }
        _ => None,
    });
    let mains = module.mains.iter().map(|main| (&*main.body, &*main.map));
    functions.chain(mains).any(|code| takes(code, range))
}

fn takes((body, map): (&Body, &SourceMap), range: TextRange) -> bool {
    body.stmts.iter().any(|(id, stmt)| {
        map.stmts[id].contains_range(range)
            && match stmt {
                Stmt::With { items, .. } => {
                    items.iter().any(|(manager, _)| takes_exceptions(body, *manager))
                }
                // A handler that raises again takes none.
                Stmt::Try { handlers, .. } => {
                    let raise = |handler: &Handler| {
                        let blocks = handler.body.iter().map(|stmt| map.stmts[*stmt]);
                        let raises = body.stmts.iter().filter(|(_, stmt)| is_raise(stmt));
                        let places: Vec<TextRange> = raises.map(|(id, _)| map.stmts[id]).collect();
                        let mut blocks = blocks.flat_map(|block| {
                            places.iter().map(move |place| block.contains_range(*place))
                        });
                        blocks.any(|inside| inside)
                    };
                    let mut taking =
                        handlers.iter().filter(|handler| takes_mistakes(body, handler));
                    taking.next().is_some() && !handlers.iter().any(raise)
                }
                _ => false,
            }
    })
}

/// Whether a handler takes exceptions that mistakes in kernels and launches raise.
fn takes_mistakes(body: &Body, handler: &Handler) -> bool {
    let is_other = |kind: &ExprId| match &body.exprs[*kind] {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => !OF_ENVIRONMENT.contains(&&**name),
        _ => true,
    };
    match handler.kinds.map(|kinds| (kinds, &body.exprs[kinds])) {
        None => true,
        Some((_, Expr::Tuple(kinds))) => kinds.iter().any(is_other),
        Some((kinds, _)) => is_other(&kinds),
    }
}

fn is_raise(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Unsupported("Raise"))
}
