//! Tests that do not run: what marks of pytest and decorators of unittest skip.

use std::sync::Arc;

use crate::hir::{ArgKind, Expr, ExprId, Function, Name};
use crate::host::Host;
use crate::host::code::operators::truth;
use crate::host::value::Value;
use crate::project::Resolution;
use crate::source::FileId;

/// Which tests a decorator skips.
enum Skips {
    /// All, or those that are expected to fail.
    Always,
    /// Those of which its first argument is this.
    Where(bool),
}

/// Which tests the decorator at a dotted path skips; `None` where it skips none.
fn skips(path: &[Name]) -> Option<Skips> {
    let path: Vec<&str> = path.iter().map(|part| &**part).collect();
    let (["pytest", "mark", mark] | ["unittest", mark]) = path.as_slice() else { return None };
    match *mark {
        "skip" | "xfail" | "expectedFailure" => Some(Skips::Always),
        "skipif" | "skipIf" => Some(Skips::Where(true)),
        "skipUnless" => Some(Skips::Where(false)),
        _ => None,
    }
}

/// Whether a mark that a parameter is given skips none.
pub(crate) fn keeps(mark: &Value) -> bool {
    match mark {
        Value::Named(Resolution::External(path)) => {
            path.first().is_some_and(|first| &**first == "pytest") && skips(path).is_none()
        }
        Value::List(marks) | Value::Tuple(marks) => marks.iter().all(keeps),
        _ => false,
    }
}

impl Host<'_> {
    /// Whether a function is a test that does not run on a machine like the one that kernels are compiled
    /// for: where that is not known its author says that it may.
    pub(crate) fn is_skipped(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
    ) -> bool {
        let decorators = self.decorators(file, scope, function);
        let marks = function.decorators.iter().zip(decorators);
        let marks: Vec<(ExprId, Skips)> = marks
            .filter_map(|(mark, found)| match found {
                Resolution::External(path) => Some((*mark, skips(&path)?)),
                _ => None,
            })
            .collect();
        marks.into_iter().any(|(mark, skips)| match skips {
            Skips::Always => true,
            Skips::Where(holds) => {
                let condition = condition(function, mark);
                condition.is_none_or(|condition| {
                    match self.head_expr(file, scope, function, condition) {
                        // pytest evaluates a text.
                        Value::Str(_) => false,
                        condition => truth(&condition) == Some(holds),
                    }
                })
            }
        })
    }
}

/// The condition that a mark is given where it stands in the decorator itself.
fn condition(function: &Function, mark: ExprId) -> Option<ExprId> {
    let Expr::Call { args, .. } = &function.body.exprs[mark] else { return None };
    let is_condition = |kind: &ArgKind| match kind {
        ArgKind::Positional => true,
        ArgKind::Keyword(name) => &**name == "condition",
        _ => false,
    };
    args.iter().find(|arg| is_condition(&arg.kind)).map(|arg| arg.value)
}
