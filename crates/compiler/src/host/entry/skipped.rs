//! Tests that do not run: what marks of pytest and decorators of unittest skip.

use std::sync::Arc;

use crate::hir::{Expr, ExprId, Function, Name};
use crate::host::Host;
use crate::host::code::operators::truth;
use crate::host::entry::given::argument;
use crate::host::value::Value;
use crate::project::{Resolution, Scope, callee, constant, resolve_expr};
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
                match self.mark_argument((file, scope), function, mark, (0, "condition")) {
                    None => true,
                    // pytest evaluates a text.
                    Some(Value::Str(_)) => false,
                    Some(condition) => truth(&condition) == Some(holds),
                }
            }
        })
    }

    /// An argument, by its position and name, of the call that makes a mark: that stands in the decorator, or where a
    /// variable of a module gets the mark.
    pub(crate) fn mark_argument(
        &mut self,
        (file, path): (FileId, &[Name]),
        function: &Arc<Function>,
        mark: ExprId,
        (at, name): (usize, &str),
    ) -> Option<Value> {
        let body = &function.body;
        if let Expr::Call { args, .. } = &body.exprs[mark] {
            let value = argument(args, at, name)?;
            return Some(self.head_expr(file, path, function, value));
        }
        let scope = Scope { file, path };
        let Resolution::Constant(held) = resolve_expr(self.sources, scope, body, mark) else {
            return None;
        };
        let held_mark = constant(self.sources, held)?;
        let Expr::Call { args, .. } = &held_mark.body.exprs[held_mark.value] else { return None };
        let value = argument(args, at, name)?;
        Some(self.module_expr(held.file, &[], (&held_mark.body, &held_mark.map), value))
    }

    /// The mark of pytest that a variable of a module holds.
    pub(crate) fn mark_held(&self, found: &Resolution) -> Option<Resolution> {
        let Resolution::Constant(at) = found else { return None };
        let held = constant(self.sources, *at)?;
        let scope = Scope { file: at.file, path: &[] };
        let made_by = callee(&held.body, held.value);
        let mark = resolve_expr(self.sources, scope, &held.body, made_by);
        let is_mark = |path: &[Name]| matches!(path, [package, marks, _] if &**package == "pytest" && &**marks == "mark");
        matches!(&mark, Resolution::External(path) if is_mark(path)).then_some(mark)
    }
}
