//! Loops: counted, unrolled and conditional.

use std::cell::Cell;
use std::sync::Arc;

use super::assign::assigned_names;
use super::display::type_text;
use super::dtype::{DType, Elem};
use super::emit::ir_type;
use super::join::{Relation, leaves, rebuild, relate};
use super::range::{MAX_UNROLL, iterations, python_range};
use super::stmt::{Flow, Outcome, Rest, Work};
use super::value::{Const, Number, Origin, RangeValue, Shape, Tensor, Value};
use super::{Eval, Evaluator, Local, Locals, Mode, OriginKind, Source, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{CompareOp, Expr, ExprId, Name, Stmt, StmtId};
use crate::ir::{self, Attrs, Opcode};
use crate::source::FileRange;

/// Copies of an unrolled body that inference makes before it treats the index as unknown.
const INFERENCE_UNROLL: i128 = 32;

/// Copies of an unrolled body that contains `return` at most.
const MAX_UNROLL_WITH_RETURN: i128 = 128;

/// A variable that a loop carries from one iteration to the next.
struct Carried {
    name: Name,
    init: Local,
    leaves: Vec<Tensor>,
    /// Whether it holds no tensor and is no constexpr either, as after `name = None`.
    bare: bool,
}

impl Evaluator<'_> {
    /// A `for` statement.
    pub(super) fn for_stmt(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        iter: ExprId,
        body: &[StmtId],
        rest: &Rest<'_>,
    ) -> Outcome {
        let iterable = self.expr(source, iter);
        let called = matches!(source.body.exprs[iter], Expr::Call { .. });
        let python = self.frame().mode == Mode::Python && !jumps(source, body);
        match iterable {
            Value::Range(ref range) if python && python_range(range).is_some() => {
                for index in python_range(range).unwrap_or_default() {
                    self.bind_target(source, target, index);
                    if self.run(source, body, None) == Flow::Returned || !self.step() {
                        return Outcome::Returned;
                    }
                }
                Outcome::Next
            }
            Value::Range(_) if !called && self.frame().mode == Mode::Jit => {
                let note = "call it in the head of the loop";
                self.unsupported(
                    "a loop over a variable that holds a range",
                    note,
                    source.at(iter),
                );
                self.uncertain_loop(source, target, (Value::Unknown, Value::Unknown), body);
                Outcome::Next
            }
            Value::Range(range) if range.unrolled => {
                self.unrolled(source, target, &range, source.at(iter), body, rest)
            }
            Value::Range(range) if self.frame().mode == Mode::Jit => {
                if self.counted(source, target, &range, iter, body).is_err() {
                    self.uncertain_loop(source, target, (Value::Unknown, Value::Unknown), body);
                }
                Outcome::Next
            }
            Value::Unknown => {
                self.uncertain_loop(source, target, (Value::Unknown, Value::Unknown), body);
                Outcome::Next
            }
            Value::Tuple(tuple) if self.frame().mode == Mode::Python => {
                for item in &tuple.items {
                    self.bind_target(source, target, item.clone());
                    if self.run(source, body, None) == Flow::Returned {
                        return Outcome::Returned;
                    }
                }
                Outcome::Next
            }
            _ => {
                if self.frame().mode == Mode::Jit {
                    let diagnostic = Diagnostic::new(
                        Code::UnsupportedPython,
                        source.at(iter),
                        "kernels iterate only over `range`, `tl.range` and `tl.static_range`",
                    )
                    .with_note("for a tuple, index it in a `tl.static_range` loop");
                    self.emit_diagnostic(diagnostic);
                }
                self.uncertain_loop(source, target, (Value::Unknown, Value::Unknown), body);
                Outcome::Next
            }
        }
    }

    /// The variables that a trip of a loop leaves, of which nothing is told.
    fn after_trip(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        index: Value,
        body: &[StmtId],
    ) -> Locals {
        let before = self.frame().locals.clone();
        self.quiet += 1;
        self.bind_target(source, target, index);
        let emitter = self.emitter.take();
        let failed = self.failed;
        self.run(source, body, None);
        self.failed = failed;
        self.emitter = emitter;
        self.quiet -= 1;
        std::mem::replace(&mut self.frame_mut().locals, before)
    }

    /// Runs a body of which it is not known how often it runs, or with what index but the first one, perhaps.
    fn uncertain_loop(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        (first, index): (Value, Value),
        body: &[StmtId],
    ) {
        let before = self.frame().locals.clone();
        // What the first trip makes is there in later ones.
        if matches!(first, Value::Const(_)) {
            for (name, local) in self.after_trip(source, target, first, body) {
                if !before.contains_key(&name) && !matches!(local.value, Value::Unknown) {
                    self.bind(&name, local.value, local.at);
                }
            }
        }
        // What the body assigns may have any value that it had before or gets inside.
        let after = self.after_trip(source, target, index.clone(), body);
        for name in assigned_names(source, body) {
            let (Some(old), Some(new)) = (before.get(&name), after.get(&name)) else { continue };
            let value = match (&old.value, &new.value) {
                (Value::Const(_), Value::Const(_)) => self.fresh_const(),
                (a, b) => self.join(a, b),
            };
            self.bind(&name, value, old.at);
        }
        self.speculative += 1;
        let mut entry = self.frame().locals.clone();
        entry.retain(|name, _| before.contains_key(name));
        self.bind_target(source, target, index);
        self.run(source, body, None);
        self.speculative -= 1;
        let after = std::mem::take(&mut self.frame_mut().locals);
        self.frame_mut().locals = self.join_locals(entry, after);
    }

    /// `tl.static_range`.
    fn unrolled(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        range: &RangeValue,
        at: FileRange,
        body: &[StmtId],
        rest: &Rest<'_>,
    ) -> Outcome {
        let mut bounds = [0i128; 3];
        let mut known = true;
        let parts = [(&range.start, "start"), (&range.end, "end"), (&range.step, "step")];
        for (slot, (value, what)) in bounds.iter_mut().zip(parts) {
            match value {
                Value::Const(Const::Int(value)) => *slot = *value,
                Value::Const(Const::Bool(value)) => *slot = i128::from(*value),
                Value::Const(Const::Symbol(sym)) => {
                    self.integer_symbols.extend(sym.atoms());
                    known = false;
                }
                Value::Unknown => known = false,
                other => {
                    let what = format!("the {what} of `tl.static_range`");
                    self.not_constexpr(Code::NotConstexpr, &what, &other.clone(), at);
                    known = false;
                }
            }
        }
        let [start, end, step] = bounds;
        if known && step == 0 {
            self.error(Code::LoopBound, at, "the step of `tl.static_range` is zero");
        }
        let count = if known && step != 0 { iterations(start, end, step) } else { 0 };
        let returns = super::stmt::contains_return(source, body);
        let limit = match (self.exact, returns) {
            (false, _) => INFERENCE_UNROLL,
            (true, false) => MAX_UNROLL,
            // Each copy runs inside the branch that the one before did not return from.
            (true, true) => MAX_UNROLL_WITH_RETURN,
        };
        if !known || step == 0 || (count > limit && !self.exact) {
            let index = self.fresh_const();
            if let Value::Const(Const::Symbol(sym)) = &index {
                self.integer_symbols.extend(sym.atoms());
            }
            self.uncertain_loop(source, target, (range.start.clone(), index), body);
            return Outcome::Next;
        }
        if count > limit {
            let message = format!("unrolling {count} iterations is too much");
            let diagnostic = Diagnostic::new(Code::TooMuchCode, at, message)
                .with_note("use `range` or `tl.range`");
            self.emit_diagnostic(diagnostic);
            return Outcome::Next;
        }
        let indices: Vec<i128> = (0..count).map(|i| start + i * step).collect();
        if returns {
            let flow = self.run_unrolled(source, target, &indices, body, Some(rest));
            return Outcome::RanRest(flow);
        }
        for index in indices {
            self.bind_counter(source, target, index);
            self.run(source, body, None);
            if self.is_exhausted() {
                break;
            }
        }
        Outcome::Next
    }

    /// The copies of an unrolled body for `indices`, then `rest`.
    pub(super) fn run_unrolled(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        indices: &[i128],
        body: &[StmtId],
        rest: Option<&Rest<'_>>,
    ) -> Flow {
        match indices.split_first() {
            Some((&first, others)) => {
                self.bind_counter(source, target, first);
                let work = Work::Unrolled { target, indices: others, body };
                let ran = Cell::new(false);
                let after = Rest { work, next: rest, ran: &ran };
                self.run(source, body, Some(&after))
            }
            None => match rest {
                Some(rest) => self.run_rest(source, rest),
                None => Flow::Falls,
            },
        }
    }

    /// `range` and `tl.range`: a loop at run time.
    fn counted(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        range: &RangeValue,
        iter: ExprId,
        body: &[StmtId],
    ) -> Eval<()> {
        let iter_at = source.at(iter);
        let negative = matches!(&range.step, Value::Const(Const::Int(step)) if *step < 0);
        let (start, end, step) = if negative {
            let Value::Const(Const::Int(step)) = &range.step else { return Err(Stop::Unknown) };
            (&range.end, &range.start, Value::int(-step))
        } else {
            (&range.start, &range.end, range.step.clone())
        };
        let bounds = [
            self.loop_bound(start, "a bound", iter_at)?,
            self.loop_bound(end, "a bound", iter_at)?,
            self.loop_bound(&step, "the step", iter_at)?,
        ];
        let types = [bounds[0].elem, bounds[1].elem, bounds[2].elem].map(Elem::num);
        let elem = match types {
            [Some(a), Some(b), Some(c)] => Elem::Num(self.common_integer([a, b, c])),
            // An argument of unknown type is an integer here, of which width it is not known.
            _ => Elem::Unknown,
        };
        let mut cast = Vec::with_capacity(3);
        for bound in &bounds {
            cast.push(self.cast(bound, elem, iter_at)?);
        }
        let Expr::Name(index_name) = &source.body.exprs[target] else {
            self.unsupported("several loop targets", "use one index", source.at(target));
            return Err(Stop::Reported);
        };
        let before = self.frame().locals.clone();
        let carried = self.carried(source, body, Some(index_name), &before);
        let index_type = ir_type(elem, &Shape::scalar());
        let types = index_type.into_iter().chain(
            carried.iter().flat_map(|c| &c.leaves).filter_map(|t| ir_type(t.elem, &t.shape)),
        );
        let types: Vec<ir::Type> = types.collect();
        let open = self.begin_region(types);
        let args = open.as_ref().map(|open| open.args.to_vec()).unwrap_or_default();
        let origin = self.origin(source.at(target), OriginKind::LoopIndex, Origin::NONE);
        let mut index = Tensor {
            elem,
            shape: Shape::scalar(),
            ir: args.first().copied(),
            origin,
            open: false,
            number: None,
        };
        if negative {
            index = self.reverse_index(&index, &cast);
        }
        self.bind_carried(&carried, args.get(1..).unwrap_or_default());
        self.bind_target(source, target, Value::Tensor(index.clone()));
        self.name_value(index.ir, index_name);
        self.frame_mut().loops += 1;
        self.run(source, body, None);
        self.frame_mut().loops -= 1;
        let yielded = self.loop_values(&carried, source);
        self.end_region(&open);
        let results = self.emit_for(range, &cast, open, &carried, &yielded);
        self.after_loop(&before, &carried, results, "the loop");
        let poison = self.op(Opcode::Poison, &[], Attrs::None, elem, Shape::scalar());
        let origin =
            self.origin(source.at(target), OriginKind::AfterLoop(index_name.clone()), Origin::NONE);
        self.bind_target(source, target, Value::Tensor(Tensor { origin, ..poison }));
        Ok(())
    }

    fn emit_for(
        &mut self,
        range: &RangeValue,
        bounds: &[Tensor],
        open: Option<super::emit::OpenRegion>,
        carried: &[Carried],
        yielded: &[Tensor],
    ) -> Option<Vec<ir::Value>> {
        let open = open?;
        let values: Option<Vec<ir::Value>> = yielded.iter().map(|tensor| tensor.ir).collect();
        self.terminate(open.region, Opcode::Yield, values?);
        let inits: Vec<Tensor> = carried.iter().flat_map(|c| c.leaves.clone()).collect();
        let operands: Option<Vec<ir::Value>> =
            bounds.iter().chain(&inits).map(|tensor| tensor.ir).collect();
        let emitter = self.emitter.as_mut()?;
        let types: Vec<ir::Type> = inits
            .iter()
            .filter_map(|tensor| tensor.ir.map(|value| emitter.func.ty(value).clone()))
            .collect();
        let operands = operands?.into_iter().map(Some);
        let results =
            emitter.inst(Opcode::For, operands, range.options.clone(), types, [open.region]);
        Some(results.to_vec())
    }

    /// For a negative step the loop counts upward and the index is mirrored.
    fn reverse_index(&mut self, index: &Tensor, bounds: &[Tensor]) -> Tensor {
        let shape = Shape::scalar();
        let mirrored =
            self.op(Opcode::Sub, &[&bounds[1], index], Attrs::None, index.elem, shape.clone());
        let result = self.op(Opcode::Add, &[&mirrored, &bounds[0]], Attrs::None, index.elem, shape);
        Tensor { origin: index.origin, ..result }
    }

    fn loop_bound(&mut self, value: &Value, what: &str, at: FileRange) -> Eval<Tensor> {
        if let Value::Const(Const::Symbol(sym)) = value {
            self.integer_symbols.extend(sym.atoms());
            return Ok(Tensor::new(Elem::I32, Shape::scalar()));
        }
        let tensor = self.materialize(value, at)?;
        if let Elem::Num(dtype) = tensor.elem
            && dtype.is_float()
        {
            let message = format!("{what} of a `for` loop must be an integer, not `{dtype}`");
            return Err(self.error(Code::LoopBound, at, message));
        }
        if let Some(Number::Float(_)) = tensor.number {
            let message = format!("{what} of a `for` loop must be an integer, not a float");
            return Err(self.error(Code::LoopBound, at, message));
        }
        if tensor.elem.is_ptr() {
            let message = format!("{what} of a `for` loop must be an integer, not a pointer");
            return Err(self.error(Code::LoopBound, at, message));
        }
        if tensor.is_block() {
            let text = type_text(&Value::Tensor(tensor));
            let message = format!("{what} of a `for` loop must be a scalar, not `{text}`");
            return Err(self.error(Code::LoopBound, at, message));
        }
        Ok(tensor)
    }

    /// The variables that a loop carries: those its body assigns and that exist before it.
    fn carried(
        &mut self,
        source: Source<'_>,
        body: &[StmtId],
        index: Option<&Name>,
        before: &Locals,
    ) -> Vec<Carried> {
        assigned_names(source, body)
            .into_iter()
            .filter(|name| Some(name) != index)
            .filter_map(|name| {
                let init = before.get(&name)?.clone();
                let leaves = leaves(&init.value);
                let bare = leaves.is_empty() && self.frame().bare.contains(&name);
                Some(Carried { name, init, leaves, bare })
            })
            .collect()
    }

    /// Binds carried variables to the arguments of a loop's region.
    fn bind_carried(&mut self, carried: &[Carried], args: &[ir::Value]) {
        let mut at = 0;
        for variable in carried {
            let end = (at + variable.leaves.len()).min(args.len());
            let handles = args.get(at..end).unwrap_or_default();
            at += variable.leaves.len();
            let tensors = Self::with_handles(&variable.leaves, handles);
            self.rebind(variable, tensors);
        }
    }

    /// Binds a carried variable to its value with other tensors.
    fn rebind(&mut self, variable: &Carried, tensors: Vec<Tensor>) {
        for tensor in &tensors {
            self.name_value(tensor.ir, &variable.name);
        }
        let value = rebuild(&variable.init.value, &mut tensors.into_iter());
        self.bind(&variable.name, value, variable.init.at);
        if variable.bare {
            self.frame_mut().bare.insert(variable.name.clone());
        }
    }

    /// The values at the end of a loop's body, checked against those before the loop.
    fn loop_values(&mut self, carried: &[Carried], source: Source<'_>) -> Vec<Tensor> {
        let mut yielded = Vec::new();
        for variable in carried {
            let Some(now) = self.frame().locals.get(&variable.name).cloned() else { continue };
            let constant_kept =
                matches!((&variable.init.value, &now.value), (Value::Const(_), Value::Const(_)))
                    && now.at == variable.init.at;
            let relation = relate(&variable.init.value, &now.value);
            if relation == Relation::Different
                && !constant_kept
                && (self.exact || self.speculative == 0)
            {
                self.loop_mismatch(variable, &now, source);
            }
            let values = leaves(&now.value);
            if values.len() == variable.leaves.len() {
                yielded.extend(values);
            } else {
                yielded.extend(variable.leaves.iter().map(|t| Tensor { ir: None, ..t.clone() }));
            }
        }
        yielded
    }

    fn loop_mismatch(&mut self, variable: &Carried, now: &Local, source: Source<'_>) {
        let name = &variable.name;
        let (old, new) = (type_text(&variable.init.value), type_text(&now.value));
        let file = source.file;
        let mut diagnostic = Diagnostic::new(
            Code::LoopCarried,
            FileRange { file, range: now.at },
            format!("`{name}` is `{old}` before the loop, but the loop makes it `{new}`"),
        )
        .with_related(
            FileRange { file, range: variable.init.at },
            format!("`{name}` gets its type `{old}` here"),
        );
        diagnostic = diagnostic.with_note(
            "a variable that a loop changes keeps one type and shape; start with that type",
        );
        self.emit_diagnostic(diagnostic);
    }

    /// After a loop: carried variables have its results, names bound inside are gone.
    fn after_loop(
        &mut self,
        before: &Locals,
        carried: &[Carried],
        results: Option<Vec<ir::Value>>,
        place: &'static str,
    ) {
        self.forget_inner(before, place);
        let inside = self.frame().locals.clone();
        let results = results.unwrap_or_default();
        let mut at = 0;
        for variable in carried {
            let end = (at + variable.leaves.len()).min(results.len());
            let handles = results.get(at..end).unwrap_or_default();
            at += variable.leaves.len();
            let mut tensors = Self::with_handles(&variable.leaves, handles);
            let now = inside.get(&variable.name).map(|local| leaves(&local.value));
            if let Some(now) = now.filter(|now| now.len() == tensors.len()) {
                for (tensor, now) in tensors.iter_mut().zip(now) {
                    tensor.elem = tensor.elem.or(now.elem);
                    tensor.origin = now.origin;
                }
            }
            self.rebind(variable, tensors);
        }
    }

    /// A `while` statement.
    pub(super) fn while_stmt(&mut self, source: Source<'_>, test: ExprId, body: &[StmtId]) {
        if self.frame().mode == Mode::Python {
            self.python_while(source, test, body);
            return;
        }
        let before = self.frame().locals.clone();
        let carried = self.carried(source, body, None, &before);
        let types: Vec<ir::Type> = carried
            .iter()
            .flat_map(|c| &c.leaves)
            .filter_map(|tensor| ir_type(tensor.elem, &tensor.shape))
            .collect();
        let first = self.begin_region(types.clone());
        let args = first.as_ref().map(|open| open.args.to_vec()).unwrap_or_default();
        self.bind_carried(&carried, &args);
        let condition = self.expr(source, test);
        let condition = match condition {
            Value::Condition(inner) => (*inner).clone(),
            other => other,
        };
        let bit = self.while_condition(&condition, source.at(test));
        self.end_region(&first);
        let second = self.begin_region(types.clone());
        let body_args = second.as_ref().map(|open| open.args.to_vec()).unwrap_or_default();
        self.bind_carried(&carried, &body_args);
        self.frame_mut().loops += 1;
        self.run(source, body, None);
        self.frame_mut().loops -= 1;
        let yielded = self.loop_values(&carried, source);
        self.end_region(&second);
        let results = self.emit_while(bit.ok(), first, second, &carried, &yielded, types);
        self.after_loop(&before, &carried, results, "the loop");
    }

    fn emit_while(
        &mut self,
        bit: Option<Tensor>,
        first: Option<super::emit::OpenRegion>,
        second: Option<super::emit::OpenRegion>,
        carried: &[Carried],
        yielded: &[Tensor],
        types: Vec<ir::Type>,
    ) -> Option<Vec<ir::Value>> {
        let (first, second, bit) = (first?, second?, bit?.ir?);
        let values: Option<Vec<ir::Value>> = yielded.iter().map(|tensor| tensor.ir).collect();
        let passed = std::iter::once(bit).chain(first.args.iter().copied());
        self.terminate(first.region, Opcode::Condition, passed);
        self.terminate(second.region, Opcode::Yield, values?);
        let inits: Option<Vec<ir::Value>> =
            carried.iter().flat_map(|c| &c.leaves).map(|tensor| tensor.ir).collect();
        let emitter = self.emitter.as_mut()?;
        let operands = inits?.into_iter().map(Some);
        let regions = [first.region, second.region];
        let results = emitter.inst(Opcode::While, operands, Attrs::None, types, regions);
        Some(results.to_vec())
    }

    fn while_condition(&mut self, condition: &Value, at: FileRange) -> Eval<Tensor> {
        match condition {
            Value::Tensor(tensor) if tensor.elem.is_unknown() => Err(Stop::Unknown),
            Value::Tensor(tensor) => {
                let numel = tensor.shape.numel().and_then(|numel| numel.int());
                if tensor.is_block() && numel.is_some_and(|numel| numel > 1) {
                    let text = super::report::extents(&tensor.shape);
                    let message = format!(
                        "the condition of `while` needs one value, but this tile has shape {text}"
                    );
                    return Err(self.error(Code::BadCondition, at, message));
                }
                match tensor.elem {
                    Elem::Num(DType::Int1) => Ok(tensor.clone()),
                    _ if self.is_3_9() => {
                        let tensor = tensor.clone();
                        self.truth_bit(&tensor, at)
                    }
                    _ => {
                        let tensor = tensor.clone();
                        let diagnostic = Diagnostic::new(
                            Code::BadCondition,
                            at,
                            format!(
                                "the condition of `while` must be `int1`, not `{}`",
                                tensor.elem
                            ),
                        )
                        .with_note("compare with zero: `x != 0`");
                        Err(self.emit_diagnostic(diagnostic))
                    }
                }
            }
            Value::Unknown => Err(Stop::Unknown),
            Value::Const(constant) if constant.is_symbol() => Err(Stop::Unknown),
            _ => {
                let diagnostic = Diagnostic::new(
                    Code::BadCondition,
                    at,
                    "the condition of `while` must be computed at run time",
                )
                .with_note("`while True` is not supported; use a condition on a variable that the loop changes");
                Err(self.emit_diagnostic(diagnostic))
            }
        }
    }

    /// A loop at compile time, inside a `constexpr_function`.
    fn python_while(&mut self, source: Source<'_>, test: ExprId, body: &[StmtId]) {
        let trips = if jumps(source, body) { 0 } else { MAX_UNROLL };
        for _ in 0..trips {
            let value = self.expr(source, test);
            match value.as_const().and_then(Const::truth) {
                Some(true) => {}
                Some(false) => return,
                None => break,
            }
            if self.run(source, body, None) == Flow::Returned || !self.step() {
                return;
            }
        }
        for name in assigned_names(source, body) {
            let at = self.frame().locals.get(&name).map(|local| local.at).unwrap_or_default();
            self.bind(&name, Value::Unknown, at);
        }
    }

    /// A `range` object from its arguments.
    pub(super) fn range_value(
        &mut self,
        args: [Option<Value>; 3],
        (python, unrolled): (bool, bool),
        options: ir::Loop,
    ) -> Value {
        let [first, second, step] = args;
        let (start, end) = match (first, second) {
            (Some(first), Some(second)) => (first, second),
            (Some(first), None) => (Value::int(0), first),
            _ => return Value::Unknown,
        };
        let step = step.unwrap_or_else(|| Value::int(1));
        Value::Range(Arc::new(RangeValue { python, start, end, step, unrolled, options }))
    }

    /// `a < b` of two scalars of one integer type.
    pub(super) fn scalar_less(&mut self, a: &Tensor, b: &Tensor) -> Tensor {
        self.compare_numbers(CompareOp::Lt, a, b, a.elem.num().unwrap_or(DType::Int32))
    }
}

/// True when a loop over the statements may be left, or a trip ended, before the end.
fn jumps(source: Source<'_>, stmts: &[StmtId]) -> bool {
    stmts.iter().any(|&id| match &source.body.stmts[id] {
        Stmt::Unsupported(node) => *node != "Raise",
        Stmt::Try { .. } | Stmt::Match { .. } => true,
        stmt => stmt.blocks().into_iter().any(|block| jumps(source, block)),
    })
}
