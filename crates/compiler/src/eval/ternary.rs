//! `on_true if condition else on_false`.

use super::control::Test;
use super::display::type_text;
use super::join::{Relation, leaves, rebuild, relate};
use super::value::{Tensor, Value};
use super::{Eval, Evaluator, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, ExprId};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// `on_true if condition else on_false`.
    pub(super) fn ternary(
        &mut self,
        source: Source<'_>,
        at: FileRange,
        condition: ExprId,
        on_true: ExprId,
        on_false: ExprId,
    ) -> Value {
        let value = self.kept_expr(source, condition);
        match self.test(&value, source.at(condition)) {
            Test::Known(true) => self.kept_expr(source, on_true),
            Test::Known(false) => self.kept_expr(source, on_false),
            Test::Open => self.speculating(source, condition, |this| {
                let then = this.expr(source, on_true);
                let other = this.expr(source, on_false);
                this.join(&then, &other)
            }),
            Test::Runtime(bit) => self.runtime_ternary(source, at, &bit, on_true, on_false),
        }
    }

    /// One arm of a conditional expression on a run-time condition, as a tensor. Operations that
    /// give nothing, such as a store, may stand in both.
    fn arm(&mut self, source: Source<'_>, arm: ExprId) -> Eval<Value> {
        let value = self.expr(source, arm);
        if value.is_none() && self.is_operation(source, arm) {
            return Ok(value);
        }
        self.materialize(&value, source.at(arm)).map(Value::Tensor)
    }

    /// Whether an expression calls a member of the language.
    fn is_operation(&mut self, source: Source<'_>, expr: ExprId) -> bool {
        let Expr::Call { callee, .. } = source.body.exprs[expr] else { return false };
        match self.quietly(|this| this.expr(source, callee)) {
            Value::Builtin(_) => true,
            Value::Bound(bound) => matches!(bound.1, Value::Builtin(_)),
            _ => false,
        }
    }

    fn runtime_ternary(
        &mut self,
        source: Source<'_>,
        at: FileRange,
        bit: &Tensor,
        on_true: ExprId,
        on_false: ExprId,
    ) -> Value {
        let then_open = self.begin_region([]);
        let then = self.arm(source, on_true);
        self.end_region(&then_open);
        let else_open = self.begin_region([]);
        let other = self.arm(source, on_false);
        self.end_region(&else_open);
        let (Ok(then), Ok(other)) = (then, other) else { return Value::Unknown };
        if relate(&then, &other) == Relation::Different {
            let message = format!(
                "both arms of a conditional expression on a run-time condition need one type, but they are `{}` and `{}`",
                type_text(&then),
                type_text(&other)
            );
            let diagnostic = Diagnostic::new(Code::BranchMismatch, at, message)
                .with_related(source.at(on_true), format!("this is `{}`", type_text(&then)))
                .with_related(source.at(on_false), format!("this is `{}`", type_text(&other)));
            self.emit_diagnostic(diagnostic);
            return Value::Unknown;
        }
        let results =
            self.close_branches(bit, then_open, else_open, &leaves(&then), &leaves(&other));
        if self.emitting() {
            rebuild(&then, &mut results.into_iter())
        } else {
            self.join_typed(&then, &other)
        }
    }
}
