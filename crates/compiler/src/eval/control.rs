//! Branches: `if` and the conditional expression.

use super::display::type_text;
use super::join::{Relation, leaves, names_differ, rebuild, relate};
use super::stmt::{Flow, Outcome, Rest, contains_return};
use super::value::{Const, Tensor, Value};
use super::{Evaluator, Local, Locals, Mode, Remainder, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, ExprId, Name, Stmt, StmtId};
use crate::ir::{self, Attrs, Opcode};
use crate::source::{FileRange, TextRange};

/// What is known of a condition.
pub(super) enum Test {
    /// Decided at compile time.
    Known(bool),
    /// Decided at run time by a scalar bit.
    Runtime(Tensor),
    /// Decided at compile time or at run time, it is not known how.
    Open,
}

impl Evaluator<'_> {
    pub(super) fn test(&mut self, value: &Value, at: FileRange) -> Test {
        match value {
            Value::Tensor(tensor) if tensor.is_open() => Test::Open,
            Value::Tensor(tensor) => self.runtime_test(&tensor.clone(), at),
            Value::Const(constant) => self.constant_test(constant, at),
            Value::Unknown => Test::Open,
            Value::Module(_) | Value::Function(_) | Value::Builtin(_)
                if self.frame().mode == Mode::Python =>
            {
                Test::Known(true)
            }
            Value::Tuple(_) if self.frame().mode == Mode::Jit => {
                self.bad_condition("a tuple", at);
                Test::Open
            }
            Value::Function(_) | Value::Builtin(_) | Value::Class(_) | Value::Module(_)
                if self.frame().mode == Mode::Jit =>
            {
                self.bad_condition("something to call or a module", at);
                Test::Open
            }
            Value::Object(object) if self.frame().mode == Mode::Jit => {
                let what = format!("an instance of `{}`", object.class.class.name);
                self.bad_condition(&what, at);
                Test::Open
            }
            _ => Test::Open,
        }
    }

    fn constant_test(&mut self, constant: &Const, at: FileRange) -> Test {
        let jit = self.frame().mode == Mode::Jit;
        match constant {
            Const::None | Const::Bool(_) | Const::Int(_) => {}
            Const::Symbol(_) => return Test::Open,
            Const::Float(_) if jit => self.bad_condition("a float", at),
            Const::Str(_) if jit => self.bad_condition("a string", at),
            _ if jit => self.bad_condition("not a number", at),
            _ => {}
        }
        constant.truth().map_or(Test::Open, Test::Known)
    }

    fn bad_condition(&mut self, what: &str, at: FileRange) {
        let message = format!(
            "a compile-time condition must be a bool, an integer or `None`, but this is {what}"
        );
        self.error(Code::BadCondition, at, message);
    }

    fn runtime_test(&mut self, tensor: &Tensor, at: FileRange) -> Test {
        let numel = tensor.shape.numel().and_then(|numel| numel.int());
        if tensor.is_block() && numel.is_some_and(|numel| numel > 1) {
            let text = super::report::extents(&tensor.shape);
            let diagnostic = Diagnostic::new(
                Code::BadCondition,
                at,
                format!("a condition needs one value, but this tile has shape {text}"),
            )
            .with_note(
                "choose elementwise with `tl.where`, or reduce with `tl.max` or `tl.min` first",
            );
            self.emit_diagnostic(diagnostic);
            return Test::Open;
        }
        let scalar = if tensor.is_block() && numel == Some(1) {
            self.reshape_to(tensor, super::value::Shape::scalar(), false)
        } else {
            tensor.clone()
        };
        match self.truth_bit(&scalar, at) {
            Ok(bit) => Test::Runtime(bit),
            Err(_) => Test::Open,
        }
    }

    /// An `if` statement.
    pub(super) fn if_stmt(
        &mut self,
        source: Source<'_>,
        test: ExprId,
        body: &[StmtId],
        orelse: &[StmtId],
        rest: &Rest<'_>,
    ) -> Outcome {
        let value = self.kept_expr(source, test);
        let returns = contains_return(source, body) || contains_return(source, orelse);
        match self.test(&value, source.at(test)) {
            Test::Known(taken) => {
                let live = if taken { body } else { orelse };
                if self.frame().mode == Mode::Jit && returns_itself(source, live) {
                    self.run(source, live, None);
                    self.run_unreachable(source, rest);
                    return Outcome::Returned;
                }
                if contains_return(source, live) {
                    return Outcome::RanRest(self.run(source, live, Some(rest)));
                }
                self.run(source, live, None);
                Outcome::Next
            }
            Test::Runtime(bit) => {
                if returns && self.emitting() && self.frame().loops == 0 {
                    return Outcome::RanRest(
                        self.branch_with_return(source, &bit, body, orelse, rest),
                    );
                }
                self.branch(source, Some(&bit), body, orelse, source.at(test))
            }
            Test::Open => self.speculating(source, test, |this| {
                this.branch(source, None, body, orelse, source.at(test))
            }),
        }
    }

    /// Evaluates what depends on a condition that is not decided yet.
    pub(super) fn speculating<T>(
        &mut self,
        source: Source<'_>,
        test: ExprId,
        evaluate: impl FnOnce(&mut Self) -> T,
    ) -> T {
        // A kernel that is compiled takes one branch, of which nothing is known here, and what is
        // wrong in the other one never shows.
        let undecided = self.emitting() && self.frame().mode == Mode::Jit;
        if undecided {
            let message = "what this condition is at compile time is not known";
            self.error(Code::NotUnderstood, source.at(test), message);
            self.emitter = None;
            self.quiet += 1;
        }
        let refined = u32::from(asks_about_types(source, test));
        let hidden = self.hide_none();
        self.speculative += 1;
        self.refined += refined;
        let result = evaluate(self);
        self.speculative -= 1;
        self.refined -= refined;
        self.restore_none(&hidden);
        self.quiet -= u32::from(undecided);
        result
    }

    /// Makes every variable that is `None` unknown: where a condition is open, one like it usually
    /// gave the variable a value before. Returns what [`Self::restore_none`] needs.
    fn hide_none(&mut self) -> Vec<(Name, TextRange)> {
        let mut hidden = Vec::new();
        for (name, local) in &mut self.frame_mut().locals {
            if matches!(local.value, Value::Const(Const::None)) {
                local.value = Value::Unknown;
                hidden.push((name.clone(), local.at));
            }
        }
        hidden
    }

    /// Makes variables `None` again that nothing was assigned to.
    fn restore_none(&mut self, hidden: &[(Name, TextRange)]) {
        for (name, at) in hidden {
            if let Some(local) = self.frame_mut().locals.get_mut(name)
                && local.at == *at
                && local.value.is_unknown()
            {
                local.value = Value::NONE;
            }
        }
    }

    /// What follows an `if` that returned at compile time is never run, but its rules hold: Triton
    /// visits it, and what it returns must be of the type that is returned.
    fn run_unreachable(&mut self, source: Source<'_>, rest: &Rest<'_>) {
        let depth = self.frame().returns.len();
        let emitter = self.emitter.take();
        let failed = std::mem::take(&mut self.failed);
        self.run_rest(source, rest);
        if !self.failed {
            self.emitter = emitter;
        }
        self.failed |= failed;
        if self.emitting() && self.exact && self.speculative == 0 {
            let unreached = self.frame_mut().returns.split_off(depth);
            self.settle_unreached(unreached);
        }
    }

    /// Compares what is returned where nothing runs with what was returned last.
    fn settle_unreached(&mut self, unreached: Vec<(Value, FileRange)>) {
        let Some(mut reached) = self.frame_mut().returns.pop() else { return };
        let at = self.frame().call;
        for mut other in unreached {
            let settled = self.settle(&reached.0, &other.0, at);
            other.0 = self.settle(&other.0, &reached.0, at);
            reached.0 = settled;
            if relate(&reached.0, &other.0) == Relation::Different {
                self.return_mismatch(&reached, &other, at);
            }
        }
        self.frame_mut().returns.push(reached);
    }

    /// Both branches, whose assignments merge. Without a bit it is not known when the condition
    /// is decided, and nothing is certain of what the branches assign.
    fn branch(
        &mut self,
        source: Source<'_>,
        bit: Option<&Tensor>,
        body: &[StmtId],
        orelse: &[StmtId],
        at: FileRange,
    ) -> Outcome {
        let before = self.frame().locals.clone();
        let bare = self.frame().bare.clone();
        let then_open = self.begin_region([]);
        let then_flow = self.run(source, body, None);
        self.end_region(&then_open);
        let then_locals = std::mem::replace(&mut self.frame_mut().locals, before.clone());
        let else_open = self.begin_region([]);
        let else_flow = self.run(source, orelse, None);
        self.end_region(&else_open);
        let else_locals = std::mem::replace(&mut self.frame_mut().locals, before.clone());
        match (then_flow, else_flow) {
            (Flow::Returned, Flow::Returned) => return Outcome::Returned,
            (Flow::Returned, Flow::Falls) => self.fall_through(else_locals, bit.is_none()),
            (Flow::Falls, Flow::Returned) => self.fall_through(then_locals, bit.is_none()),
            (Flow::Falls, Flow::Falls) => match bit {
                Some(bit) => {
                    self.frame_mut().bare = bare;
                    let merged = self.merge_locals(&before, &then_locals, &else_locals, at);
                    self.emit_if(bit, then_open, else_open, merged);
                }
                None => self.frame_mut().locals = self.join_locals(then_locals, else_locals),
            },
        }
        Outcome::Next
    }

    /// Goes on after an `if` of which the other branch returned.
    fn fall_through(&mut self, locals: Locals, undecided: bool) {
        let refined = self.refined > 0;
        let frame = self.frame_mut();
        frame.locals = locals;
        if undecided {
            let remainder = if refined { Remainder::Refined } else { Remainder::MayBeDead };
            frame.remainder = frame.remainder.max(remainder);
        }
    }

    /// Closes both regions and binds the merged variables to the results.
    fn emit_if(
        &mut self,
        bit: &Tensor,
        then_open: Option<super::emit::OpenRegion>,
        else_open: Option<super::emit::OpenRegion>,
        merged: Vec<(Name, Local, Local)>,
    ) {
        let then_leaves: Vec<Tensor> =
            merged.iter().flat_map(|(_, then, _)| leaves(&then.value)).collect();
        let else_leaves: Vec<Tensor> =
            merged.iter().flat_map(|(_, _, other)| leaves(&other.value)).collect();
        let results = self.close_branches(bit, then_open, else_open, &then_leaves, &else_leaves);
        let mut results = results.into_iter();
        for (name, then, other) in merged {
            let joined = if self.emitting() {
                rebuild(&then.value, &mut results)
            } else {
                self.join_typed(&then.value, &other.value)
            };
            if let Value::Tensor(tensor) = &joined {
                self.name_value(tensor.ir, &name);
            }
            let frame = self.frame_mut();
            frame.lost.remove(&name);
            frame.bare.remove(&name);
            frame.locals.insert(name, Local { value: joined, at: then.at });
        }
    }

    /// Ends two regions with values of equal types and emits the `if`; gives its results.
    pub(super) fn close_branches(
        &mut self,
        bit: &Tensor,
        then_open: Option<super::emit::OpenRegion>,
        else_open: Option<super::emit::OpenRegion>,
        then_leaves: &[Tensor],
        else_leaves: &[Tensor],
    ) -> Vec<Tensor> {
        let (Some(then_open), Some(else_open), Some(condition)) = (then_open, else_open, bit.ir)
        else {
            return then_leaves.iter().map(|t| Tensor { ir: None, ..t.clone() }).collect();
        };
        let handles = |tensors: &[Tensor]| -> Option<Vec<ir::Value>> {
            tensors.iter().map(|tensor| tensor.ir).collect()
        };
        let (Some(then_values), Some(else_values)) = (handles(then_leaves), handles(else_leaves))
        else {
            return then_leaves.to_vec();
        };
        self.terminate(then_open.region, Opcode::Yield, then_values.iter().copied());
        self.terminate(else_open.region, Opcode::Yield, else_values);
        let Some(emitter) = self.emitter.as_mut() else { return then_leaves.to_vec() };
        let types: Vec<ir::Type> =
            then_values.iter().map(|&value| emitter.func.ty(value).clone()).collect();
        let regions = [then_open.region, else_open.region];
        let results = emitter.inst(Opcode::If, [Some(condition)], Attrs::None, types, regions);
        Self::with_handles(then_leaves, &results)
    }

    /// An `if` one of whose branches returns: each branch runs the rest of the function, and the
    /// `if` gives what the function returns.
    fn branch_with_return(
        &mut self,
        source: Source<'_>,
        bit: &Tensor,
        body: &[StmtId],
        orelse: &[StmtId],
        rest: &Rest<'_>,
    ) -> Flow {
        let before = self.frame().locals.clone();
        let then_open = self.begin_region([]);
        let mut then_value = self.run_to_return(source, body, rest);
        self.end_region(&then_open);
        let then_locals = std::mem::replace(&mut self.frame_mut().locals, before);
        let else_open = self.begin_region([]);
        let mut else_value = self.run_to_return(source, orelse, rest);
        self.give_anything(&mut else_value, &then_value);
        let at = FileRange { file: source.file, range: self.frame().call.range };
        let settled = self.settle(&else_value.0, &then_value.0, else_value.1);
        self.end_region(&else_open);
        self.reenter_region(&then_open);
        self.give_anything(&mut then_value, &else_value);
        then_value.0 = self.settle(&then_value.0, &else_value.0, then_value.1);
        self.end_region(&then_open);
        else_value.0 = settled;
        if relate(&then_value.0, &else_value.0) == Relation::Different
            || names_differ(&then_value.0, &else_value.0)
        {
            self.return_mismatch(&then_value, &else_value, at);
        }
        let (then_leaves, else_leaves) = (leaves(&then_value.0), leaves(&else_value.0));
        let results = self.close_branches(bit, then_open, else_open, &then_leaves, &else_leaves);
        let value = rebuild(&then_value.0, &mut results.into_iter());
        self.frame_mut().returns.push((value, then_value.1));
        if returns_itself(source, body) && returns_itself(source, orelse) {
            let else_locals = std::mem::take(&mut self.frame_mut().locals);
            self.frame_mut().locals = self.join_locals(then_locals, else_locals);
            self.run_unreachable(source, rest);
        }
        Flow::Returned
    }

    /// Runs a branch and the rest of the function; gives what it returned.
    fn run_to_return(
        &mut self,
        source: Source<'_>,
        stmts: &[StmtId],
        rest: &Rest<'_>,
    ) -> (Value, FileRange) {
        let depth = self.frame().returns.len();
        self.run(source, stmts, Some(rest));
        let returns = &mut self.frame_mut().returns;
        let value = if returns.len() > depth { returns.pop() } else { None };
        returns.truncate(depth);
        value.unwrap_or((Value::NONE, FileRange::default()))
    }

    /// Where a function ends without `return` on one way, it gives anything of the type that it
    /// returns on the other.
    fn give_anything(&mut self, value: &mut (Value, FileRange), other: &(Value, FileRange)) {
        let ends = |value: &(Value, FileRange)| value.1 == FileRange::default();
        if !ends(value) || ends(other) {
            return;
        }
        let parts: Vec<Tensor> = leaves(&other.0)
            .iter()
            .map(|leaf| self.op(Opcode::Poison, &[], Attrs::None, leaf.elem, leaf.shape.clone()))
            .collect();
        value.0 = rebuild(&other.0, &mut parts.into_iter());
    }

    /// The error that two `return`s give different types.
    pub(super) fn return_mismatch(
        &mut self,
        first: &(Value, FileRange),
        second: &(Value, FileRange),
        at: FileRange,
    ) {
        let primary = if second.1 == FileRange::default() { first.1 } else { second.1 };
        let primary = if primary == FileRange::default() { at } else { primary };
        let message = format!(
            "this function returns different types: `{}` and `{}`",
            type_text(&first.0),
            type_text(&second.0)
        );
        let mut diagnostic = Diagnostic::new(Code::ReturnMismatch, primary, message);
        for (value, place) in [first, second] {
            if *place != FileRange::default() {
                diagnostic =
                    diagnostic.with_related(*place, format!("`{}` here", type_text(value)));
            }
        }
        self.emit_diagnostic(diagnostic);
    }
}

/// True when one of the statements themselves is a `return`.
fn returns_itself(source: Source<'_>, stmts: &[StmtId]) -> bool {
    stmts.iter().any(|&id| matches!(source.body.stmts[id], Stmt::Return(_)))
}

/// True for a condition on more than plain values: it reads an attribute such as `x.dtype`, or
/// calls something.
fn asks_about_types(source: Source<'_>, test: ExprId) -> bool {
    let asks = |id: &ExprId| asks_about_types(source, *id);
    match &source.body.exprs[test] {
        Expr::Attribute { .. } => true,
        Expr::Call { callee, args } => match &source.body.exprs[*callee] {
            Expr::Attribute { attr: name, .. } | Expr::Name(name) if &**name == "constexpr" => {
                args.iter().any(|arg| asks(&arg.value))
            }
            _ => true,
        },
        Expr::Unary { operand, .. } => asks(operand),
        Expr::Binary { lhs, rhs, .. } => asks(lhs) || asks(rhs),
        Expr::Bool { values, .. } => values.iter().any(asks),
        Expr::Compare { first, rest } => {
            asks(first) || rest.iter().any(|(_, operand)| asks(operand))
        }
        Expr::Subscript { value, .. } => asks(value),
        _ => false,
    }
}
