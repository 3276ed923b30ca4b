//! Statements, and where control goes after each.

use std::cell::Cell;

use super::unsupported::alternative;
use super::value::{Const, Role, Value};
use super::{Evaluator, Mode, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, ExprId, Stmt, StmtId};
use crate::source::FileRange;

/// Where control goes after statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next statement.
    Falls,
    /// Out of the function; what it returned is in the frame.
    Returned,
}

/// What runs after a block: an early `return` puts it into the other branch of the `if`.
#[derive(Clone, Copy)]
pub(super) struct Rest<'r> {
    pub work: Work<'r>,
    pub next: Option<&'r Rest<'r>>,
    /// Whether it ran already: in another branch, where Triton has code that both lead to.
    pub ran: &'r Cell<bool>,
}

/// One piece of what runs after a block.
#[derive(Clone, Copy)]
pub(super) enum Work<'r> {
    /// Statements.
    Stmts(&'r [StmtId]),
    /// The remaining copies of an unrolled loop.
    Unrolled { target: ExprId, indices: &'r [i128], body: &'r [StmtId] },
}

impl Evaluator<'_> {
    /// Runs statements, then `rest`.
    pub(super) fn run(
        &mut self,
        source: Source<'_>,
        stmts: &[StmtId],
        rest: Option<&Rest<'_>>,
    ) -> Flow {
        if let Some(flow) = self.nested(|this| this.run_block(source, stmts, rest)) {
            return flow;
        }
        if let Some(&first) = stmts.first() {
            self.out_of_steps(source.stmt_at(first));
        }
        Flow::Returned
    }

    fn run_block(&mut self, source: Source<'_>, stmts: &[StmtId], rest: Option<&Rest<'_>>) -> Flow {
        for (at, &id) in stmts.iter().enumerate() {
            if !self.step() {
                return Flow::Returned;
            }
            let ran = Cell::new(false);
            let after = Rest { work: Work::Stmts(&stmts[at + 1..]), next: rest, ran: &ran };
            let outer = self.set_location(source.stmt_at(id));
            let outcome = if source.body.is_broken(id) {
                self.broken_stmt(source, id, &after)
            } else {
                self.stmt(source, id, &after)
            };
            self.restore_location(outer);
            match outcome {
                Outcome::Next => {}
                Outcome::Returned => return Flow::Returned,
                Outcome::RanRest(flow) => return flow,
            }
        }
        match rest {
            Some(rest) => self.run_rest(source, rest),
            None => Flow::Falls,
        }
    }

    /// Runs what comes after a block.
    pub(super) fn run_rest(&mut self, source: Source<'_>, rest: &Rest<'_>) -> Flow {
        let again = u32::from(rest.ran.replace(true));
        self.again += again;
        let flow = match rest.work {
            Work::Stmts(stmts) => self.run(source, stmts, rest.next),
            Work::Unrolled { target, indices, body } => {
                self.run_unrolled(source, target, indices, body, rest.next)
            }
        };
        self.again -= again;
        flow
    }

    /// Runs a statement with a syntax error: nothing is reported of it, nothing is known of what it
    /// binds, and there is nothing to lower it to.
    fn broken_stmt(&mut self, source: Source<'_>, id: StmtId, rest: &Rest<'_>) -> Outcome {
        self.emitter = None;
        self.muted += 1;
        let outcome = self.stmt(source, id, rest);
        for target in source.body.stmts[id].targets() {
            self.assign(source, target, Value::Unknown);
        }
        self.muted -= 1;
        outcome
    }

    fn stmt(&mut self, source: Source<'_>, id: StmtId, rest: &Rest<'_>) -> Outcome {
        let at = source.stmt_at(id);
        match &source.body.stmts[id] {
            Stmt::Expr(expr) => {
                self.expression_statement(source, *expr);
                Outcome::Next
            }
            Stmt::Assign { targets, value } => {
                if targets.len() > 1 && self.frame().mode == Mode::Jit {
                    self.unsupported("several targets in one assignment", "assign one by one", at);
                }
                let result = self.expr(source, *value);
                for &target in targets {
                    self.assign(source, target, result.clone());
                }
                Outcome::Next
            }
            Stmt::AugAssign { target, op, value } => {
                self.augmented(source, *target, *op, *value, at);
                Outcome::Next
            }
            Stmt::AnnAssign { target, annotation, value } => {
                self.annotated(source, *target, *annotation, *value);
                Outcome::Next
            }
            Stmt::If { test, body, orelse } => self.if_stmt(source, *test, body, orelse, rest),
            Stmt::For { target, iter, body, orelse } => {
                if !orelse.is_empty() {
                    self.unsupported("`else` after a loop", "set a flag in the loop", at);
                }
                self.for_stmt(source, *target, *iter, body, rest)
            }
            Stmt::While { test, body, orelse } => {
                if !orelse.is_empty() {
                    self.unsupported("`else` after a loop", "set a flag in the loop", at);
                }
                self.while_stmt(source, *test, body);
                Outcome::Next
            }
            Stmt::With { items, body } => self.with_stmt(source, items, body, at),
            Stmt::Return(value) => {
                self.return_stmt(source, *value, at);
                Outcome::Returned
            }
            Stmt::Assert { test, message } => {
                let condition = self.expr(source, *test);
                let fails = condition.as_const().and_then(Const::truth) == Some(false);
                if self.frame().mode == Mode::Python && fails {
                    return self.raise();
                }
                if let Some(message) = message {
                    self.expr(source, *message);
                }
                self.python_assert(&condition, at);
                Outcome::Next
            }
            Stmt::Pass | Stmt::Error => Outcome::Next,
            Stmt::Unsupported("Raise") if self.frame().mode == Mode::Python => self.raise(),
            // The usual end of a chain of `if` on compile-time values, which no kernel reaches.
            Stmt::Unsupported("Raise") if self.may_be_dead() && !self.exact => Outcome::Returned,
            // What such statements do is for Python alone to say.
            Stmt::Try { .. } | Stmt::Match { .. } | Stmt::Unsupported("Break" | "Continue")
                if self.runs_at_compile_time() =>
            {
                self.frame_mut().returns.push((Value::Unknown, at));
                Outcome::Returned
            }
            Stmt::Unsupported(node) => self.unsupported_stmt(node, at),
            Stmt::Try { .. } => self.unsupported_stmt("Try", at),
            Stmt::Match { .. } => self.unsupported_stmt("Match", at),
        }
    }

    /// Reports a statement that kernels cannot use.
    fn unsupported_stmt(&mut self, node: &str, at: FileRange) -> Outcome {
        self.unsupported(node, alternative(node), at);
        Outcome::Next
    }

    /// `with item as target, ...:`.
    fn with_stmt(
        &mut self,
        source: Source<'_>,
        items: &[(ExprId, Option<ExprId>)],
        body: &[StmtId],
        at: FileRange,
    ) -> Outcome {
        for (item, target) in items {
            let context = self.expr(source, *item);
            let called = matches!(source.body.exprs[*item], Expr::Call { .. });
            let computed = matches!(
                context,
                Value::Tensor(_) | Value::Tuple(_) | Value::Range(_) | Value::Descriptor(_)
            );
            if computed || self.is_jit_call(source, *item) || !called && !context.is_unknown() {
                let note = "`with` takes calls that make contexts";
                self.unsupported("`with` of anything that is no context", note, at);
            }
            if let Some(target) = target {
                self.bind_target(source, *target, Value::Unknown);
            }
        }
        match self.run(source, body, None) {
            Flow::Falls => Outcome::Next,
            Flow::Returned => Outcome::Returned,
        }
    }

    /// True for a call of a jit function.
    fn is_jit_call(&mut self, source: Source<'_>, expr: ExprId) -> bool {
        let Expr::Call { callee, .. } = source.body.exprs[expr] else { return false };
        let callee = self.quietly(|this| this.expr(source, callee));
        matches!(callee, Value::Function(function) if function.kind.role == Role::Jit)
    }

    /// True in a `@triton.constexpr_function`.
    fn runs_at_compile_time(&self) -> bool {
        let function = self.frame().function.as_ref();
        function.is_some_and(|function| function.kind.role == Role::Constexpr)
    }

    /// Leaves a function that runs at compile time by an exception.
    fn raise(&mut self) -> Outcome {
        self.raised |= self.speculative == 0;
        Outcome::Returned
    }

    fn expression_statement(&mut self, source: Source<'_>, expr: ExprId) {
        let value = self.expr(source, expr);
        if let (Expr::Call { callee, .. }, Mode::Jit) =
            (&source.body.exprs[expr], self.frame().mode)
            && !value.is_unknown()
        {
            let (must_use, because) = match self.quietly(|this| this.expr(source, *callee)) {
                Value::Function(function) => (function.kind.must_use, None),
                Value::Builtin(builtin) => (builtin.must_use.is_some(), builtin.must_use),
                _ => (false, None),
            };
            if must_use {
                let message = "the result of this call is not used";
                let found = Diagnostic::new(Code::UnusedResult, source.at(expr), message);
                self.emit_diagnostic(because.into_iter().fold(found, Diagnostic::with_note));
            }
        }
    }

    /// Evaluates without reports, types or IR.
    pub(super) fn quietly<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> T) -> T {
        let emitter = self.emitter.take();
        let failed = self.failed;
        self.quiet += 1;
        let result = evaluate(self);
        self.quiet -= 1;
        self.failed = failed;
        self.emitter = emitter;
        result
    }

    fn python_assert(&mut self, condition: &Value, at: FileRange) {
        if self.frame().mode == Mode::Python || condition.is_unknown() {
            return;
        }
        // Compiled only in debug mode; the condition is still checked to be a scalar or tile.
        let text = match condition {
            Value::Tuple(_) => "a tuple",
            Value::Const(Const::Str(_)) => "a string",
            Value::Const(Const::None) => "`None`",
            _ => return,
        };
        self.error(Code::BadOperand, at, format!("the condition of `assert` is {text}"));
    }
}

/// What a statement did.
pub(super) enum Outcome {
    /// Control goes to the next statement.
    Next,
    /// The function returned.
    Returned,
    /// It ran the rest of the function inside its branches.
    RanRest(Flow),
}

/// True when a `return` stands anywhere in the statements.
pub(super) fn contains_return(source: Source<'_>, stmts: &[StmtId]) -> bool {
    stmts.iter().any(|&id| match &source.body.stmts[id] {
        Stmt::Return(_) => true,
        // Kernels have neither.
        Stmt::Try { .. } | Stmt::Match { .. } => false,
        stmt => stmt.blocks().into_iter().any(|block| contains_return(source, block)),
    })
}
