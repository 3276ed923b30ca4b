//! Atomics.

use super::super::call::Call;
use super::super::display::shape_text;
use super::super::dtype::{DType, Elem};
use super::super::emit::{OpenRegion, ir_type};
use super::super::join::{Relation, relate_shapes};
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::options;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{CompareOp, UnaryOp};
use crate::ir::{self, AtomicOp, Attrs, MemoryOrder, MemoryScope, Opcode};
use crate::source::FileRange;

/// What `tl.atomic_poll` waits for.
struct Poll {
    attrs: ir::Atomic,
    ptr: Tensor,
    expected: Tensor,
    /// When it began, and how long it may take, in nanoseconds.
    deadline: Option<(Tensor, Tensor)>,
    at: FileRange,
}

/// Whether an operand of this shape may repeat up to the shape of an atomic's pointers, where both
/// broadcast to `wider`. Triton adds no axes there.
fn may_expand(operand: &Shape, pointers: &Shape, wider: &Shape) -> bool {
    let axes_differ = match (operand.rank(), pointers.rank()) {
        (Some(0), _) | (_, Some(0)) | (None, _) | (_, None) => false,
        (operand, pointers) => operand != pointers,
    };
    !axes_differ && relate_shapes(pointers, wider) != Relation::Different
}

impl Evaluator<'_> {
    /// The order and scope of an atomic; one that only reads or only writes takes some orders.
    fn ordering(&mut self, call: &Call) -> Eval<(MemoryOrder, MemoryScope)> {
        let default = options::default_order(call.builtin.rule);
        let order = self.option(call, "sem", options::ORDERS)?.unwrap_or(default);
        if !options::takes_order(default, order) {
            let name = call.builtin.display_name();
            let other = if default == MemoryOrder::Acquire { "acquire" } else { "release" };
            let message = format!("`sem` of `{name}` is '{other}' or 'relaxed'");
            return Err(self.error(Code::BadOption, call.place("sem"), message));
        }
        let scope = self.option(call, "scope", options::SCOPES)?;
        Ok((order, scope.unwrap_or(MemoryScope::Gpu)))
    }

    /// Which element types an atomic takes.
    fn check_atomic(&mut self, op: AtomicOp, dtype: DType, call: &Call) -> Eval<()> {
        let half = matches!(dtype, DType::Float16 | DType::BFloat16);
        let small = dtype.bits() < 16 || matches!(dtype, DType::Int16 | DType::UInt16);
        if small || (half && op != AtomicOp::Add) {
            let message =
                format!("`{}` is not available for `{dtype}`", call.builtin.display_name());
            return Err(self.error(Code::AtomicType, call.at, message));
        }
        Ok(())
    }

    /// Masks of atomic operations are tensors, unless Triton 3.9 broadcasts them, or 3.6 combines
    /// them with the signs of floats.
    fn refuse_literal_mask(&mut self, call: &Call, ptr: &Tensor, op: AtomicOp) -> Eval<()> {
        let Some(Value::Const(Const::Bool(_))) = call.given("mask") else { return Ok(()) };
        let float = ptr.elem.pointee().num().is_some_and(DType::is_float);
        let by_sign = float && matches!(op, AtomicOp::SMax | AtomicOp::SMin);
        let taken = if self.is_3_9() { !ptr.is_scalar() } else { by_sign && ptr.is_scalar() };
        if taken || ptr.elem.is_unknown() {
            return Ok(());
        }
        let message = "the mask of an atomic operation has to be a tensor";
        let diagnostic = Diagnostic::new(Code::MaskType, call.place("mask"), message)
            .with_note("leave it out, or compare at run time");
        Err(self.emit_diagnostic(diagnostic))
    }

    pub(super) fn atomic_rmw(&mut self, call: &Call, op: AtomicOp) -> Eval<Value> {
        let (order, scope) = self.ordering(call)?;
        let ptr = self.pointer_arg(call)?;
        self.refuse_constant(&ptr, call)?;
        let elem = ptr.elem.pointee();
        if let Elem::Num(dtype) = elem {
            self.check_atomic(op, dtype, call)?;
        }
        let value = match call.nth(1) {
            Value::Unknown if !self.emitting() => Tensor::new(Elem::Unknown, Shape::unknown()),
            value => self.materialize(&value, call.place_nth(1))?,
        };
        self.refuse_literal_mask(call, &ptr, op)?;
        let mask = self.mask_arg(call)?;
        let shape = ptr.shape.clone();
        let places = (call.place_nth(0), call.place_nth(1));
        let wider = self.broadcast_shapes(&shape, &value.shape, call.at, places)?;
        if !may_expand(&value.shape, &shape, &wider) && !ptr.is_open() {
            let message = format!(
                "the value has shape {}, which does not fit the pointers' shape {}",
                shape_text(&value.shape),
                shape_text(&shape)
            );
            let diagnostic = Diagnostic::new(Code::StoreShape, places.1, message)
                .with_related(places.0, format!("the pointers have shape {}", shape_text(&shape)));
            return Err(self.emit_diagnostic(diagnostic));
        }
        if let Some(mask) = mask.as_ref().filter(|_| ptr.is_block()) {
            let places = (places.0, call.place("mask"));
            let wider = self.mask_shape(&shape, mask, call.at, places)?;
            if !may_expand(&mask.shape, &shape, &wider) {
                return Err(self.unfit_mask(&shape, mask, places));
            }
        }
        let value = self.cast(&value, elem, call.place_nth(1))?;
        let value = self.expand_to(&value, &shape);
        let mask = mask.map(|mask| self.expand_to(&mask, &shape));
        let atomic = ir::Atomic { op, order, scope };
        let result = self.atomic_op(&ptr, &value, mask.as_ref(), atomic)?;
        Ok(Value::Tensor(result))
    }

    /// The operation for the element type: floats have their own addition, take extrema through
    /// the order of their bits, and combine as the integers that their bits are.
    pub(super) fn atomic_op(
        &mut self,
        ptr: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        atomic: ir::Atomic,
    ) -> Eval<Tensor> {
        let elem = ptr.elem.pointee();
        let shape = ptr.shape.clone();
        let dtype = elem.num();
        let float = dtype.is_some_and(DType::is_float);
        let unsigned = dtype.is_some_and(DType::is_unsigned);
        let op = match atomic.op {
            AtomicOp::Add if float => AtomicOp::FAdd,
            AtomicOp::SMax | AtomicOp::SMin if float => {
                return self.float_extremum(ptr, value, mask, atomic);
            }
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor if float => {
                return self.float_bits(ptr, value, mask, atomic);
            }
            AtomicOp::SMax if unsigned => AtomicOp::UMax,
            AtomicOp::SMin if unsigned => AtomicOp::UMin,
            op => op,
        };
        let operands = [Some(ptr), Some(value), mask];
        let attrs = ir::Atomic { op, ..atomic };
        Ok(self.op_optional(Opcode::AtomicRmw, &operands, attrs, elem, shape))
    }

    /// A bitwise operation on the bits of floats.
    fn float_bits(
        &mut self,
        ptr: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        atomic: ir::Atomic,
    ) -> Eval<Tensor> {
        let at = FileRange::default();
        let elem = ptr.elem.pointee();
        let bits = elem.num().and_then(|dtype| DType::int_of(dtype.bits(), true));
        let Some(bits) = bits else { return Err(Stop::Unknown) };
        let value = self.bitcast(value, Elem::Num(bits), at)?;
        let pointer = self.reinterpret_pointer(ptr, bits);
        let old = self.atomic_op(&pointer, &value, mask, atomic)?;
        self.bitcast(&old, elem, at)
    }

    /// For non-negative floats the order of the bits as signed integers is the floats' order, for
    /// negative ones the reverse order as unsigned integers.
    fn float_extremum(
        &mut self,
        ptr: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
        atomic: ir::Atomic,
    ) -> Eval<Tensor> {
        let at = FileRange::default();
        let elem = ptr.elem.pointee();
        let (signed, unsigned) = match elem {
            Elem::Num(DType::Float32) => (DType::Int32, DType::UInt32),
            Elem::Num(DType::Float64) => (DType::Int64, DType::UInt64),
            _ => return Err(Stop::Unknown),
        };
        let shape = ptr.shape.clone();
        let bits = self.bitcast(value, Elem::Num(signed), at)?;
        let zero = self.int_constant(0, signed);
        let zero = self.expand_to(&zero, &shape);
        let negative = self.compare_numbers(CompareOp::Lt, &bits, &zero, signed);
        let positive = self.tensor_unary(UnaryOp::Invert, &negative, at)?;
        let both = |this: &mut Self, lanes: &Tensor| match mask {
            Some(mask) => this.logical(true, mask, lanes, at),
            None => Ok(lanes.clone()),
        };
        let positive_mask = both(self, &positive)?;
        let negative_mask = both(self, &negative)?;
        let (up, down) = match atomic.op {
            AtomicOp::SMax => (AtomicOp::SMax, AtomicOp::UMin),
            _ => (AtomicOp::SMin, AtomicOp::UMax),
        };
        let signed_ptr = self.reinterpret_pointer(ptr, signed);
        let unsigned_ptr = self.reinterpret_pointer(ptr, unsigned);
        let mut rmw = |ptr: &Tensor, mask: &Tensor, op: AtomicOp| {
            let attrs = ir::Atomic { op, ..atomic.clone() };
            let operands = [Some(ptr), Some(&bits), Some(mask)];
            self.op_optional(Opcode::AtomicRmw, &operands, attrs, Elem::Num(signed), shape.clone())
        };
        let first = rmw(&signed_ptr, &positive_mask, up);
        let second = rmw(&unsigned_ptr, &negative_mask, down);
        let old = self.op(
            Opcode::Select,
            &[&positive, &first, &second],
            Attrs::None,
            Elem::Num(signed),
            shape,
        );
        self.bitcast(&old, elem, at)
    }

    pub(super) fn atomic_cas(&mut self, call: &Call) -> Eval<Value> {
        let (order, scope) = self.ordering(call)?;
        let ptr = self.pointer_arg(call)?;
        let elem = ptr.elem.pointee();
        if let Elem::Num(dtype) = elem
            && !matches!(dtype.bits(), 16 | 32 | 64)
        {
            let message = format!("`tl.atomic_cas` needs 16, 32 or 64 bits, not `{dtype}`");
            return Err(self.error(Code::AtomicType, call.at, message));
        }
        let shape = ptr.shape.clone();
        let expected = self.materialize(&call.nth(1), call.place_nth(1))?;
        let value = self.materialize(&call.nth(2), call.place_nth(2))?;
        for (operand, index) in [(&expected, 1), (&value, 2)] {
            self.check_swapped(operand, elem, &shape, call, call.place_nth(index))?;
        }
        // The result has the type of the new value.
        let result = value.elem.or(elem);
        let cast = |this: &mut Self, operand: &Tensor| this.cast(operand, elem, call.at);
        let (expected, value) = (cast(self, &expected)?, cast(self, &value)?);
        let attrs = ir::AtomicCas { order, scope };
        let inputs = [&ptr, &expected, &value];
        Ok(Value::Tensor(self.op(Opcode::AtomicCas, &inputs, attrs, result, shape)))
    }

    /// Compare-and-swap converts and broadcasts nothing; only the sign of integers may differ.
    fn check_swapped(
        &mut self,
        operand: &Tensor,
        elem: Elem,
        shape: &Shape,
        call: &Call,
        at: FileRange,
    ) -> Eval<()> {
        let name = call.builtin.display_name();
        if let (Elem::Num(have), Elem::Num(need)) = (operand.elem, elem) {
            let both_integers = have.is_int() && need.is_int();
            if have != need && !(both_integers && have.bits() == need.bits()) {
                let diagnostic = Diagnostic::new(
                    Code::AtomicType,
                    at,
                    format!("`{name}` on `{need}` needs `{need}`, but this is `{have}`"),
                )
                .with_note(format!(
                    "nothing is converted: write `tl.full((), value, tl.{})` or `value.to(tl.{})`",
                    need.member(),
                    need.member()
                ));
                return Err(self.emit_diagnostic(diagnostic));
            }
        }
        if !operand.is_open() && relate_shapes(&operand.shape, shape) == Relation::Different {
            let message = format!(
                "`{name}` broadcasts nothing: the pointers have shape {}, but this has {}",
                shape_text(shape),
                shape_text(&operand.shape)
            );
            return Err(self.error(Code::BroadcastMismatch, at, message));
        }
        Ok(())
    }

    /// `tl.atomic_load`.
    pub(super) fn atomic_load(&mut self, call: &Call) -> Eval<Value> {
        let (order, scope) = self.ordering(call)?;
        let (ptr, elem) = self.atomic_memory(call)?;
        let mask = self.mask_arg(call)?;
        let mask = mask.map(|mask| self.expand_to(&mask, &ptr.shape));
        let attrs = ir::Atomic { op: AtomicOp::Load, order, scope };
        let loaded = self.loaded(&ptr, mask.as_ref(), attrs);
        Ok(Value::Tensor(self.cast(&loaded, elem, call.at)?))
    }

    /// What an atomic load of `ptr` gives.
    fn loaded(&mut self, ptr: &Tensor, mask: Option<&Tensor>, attrs: ir::Atomic) -> Tensor {
        let (elem, shape) = (ptr.elem.pointee(), ptr.shape.clone());
        let unread = match elem {
            Elem::Num(dtype) => self.scalar_constant(&Const::Int(0), dtype),
            _ => Tensor::new(elem, Shape::scalar()),
        };
        let unread = self.expand_to(&unread, &shape);
        self.op_optional(Opcode::AtomicRmw, &[Some(ptr), Some(&unread), mask], attrs, elem, shape)
    }

    /// `tl.atomic_store`.
    pub(super) fn atomic_store(&mut self, call: &Call) -> Eval<Value> {
        let (order, scope) = self.ordering(call)?;
        let (ptr, _) = self.atomic_memory(call)?;
        self.refuse_constant(&ptr, call)?;
        let (elem, shape) = (ptr.elem.pointee(), ptr.shape.clone());
        let value = self.materialize(&call.nth(1), call.place_nth(1))?;
        let places = (call.place_nth(0), call.place_nth(1));
        if ptr.is_block() {
            self.broadcast_shapes(&shape, &value.shape, call.at, places)?;
        }
        let value = self.cast(&value, elem, call.place_nth(1))?;
        let value = self.expand_to(&value, &shape);
        let mask = self.mask_arg(call)?;
        let mask = mask.map(|mask| self.expand_to(&mask, &shape));
        let attrs = ir::Atomic { op: AtomicOp::Store, order, scope };
        let operands = [Some(&ptr), Some(&value), mask.as_ref()];
        self.op_optional(Opcode::AtomicRmw, &operands, attrs, elem, shape);
        Ok(Value::NONE)
    }

    /// The memory that an atomic load or store accesses, bools as bytes, and its element type.
    fn atomic_memory(&mut self, call: &Call) -> Eval<(Tensor, Elem)> {
        let ptr = self.pointer_arg(call)?;
        let elem = ptr.elem.pointee();
        if elem == Elem::BOOL {
            return Ok((self.reinterpret_pointer(&ptr, DType::Int8), elem));
        }
        Ok((ptr, elem))
    }

    /// `tl.atomic_poll`: loads until each element has been seen to equal what is expected.
    pub(super) fn atomic_poll(&mut self, call: &Call) -> Eval<Value> {
        let (order, scope) = self.ordering(call)?;
        let ptr = self.pointer_arg(call)?;
        let elem = ptr.elem.pointee();
        if let Elem::Num(dtype) = elem
            && (!dtype.is_int() || !matches!(dtype.bits(), 16 | 32 | 64))
        {
            let message =
                format!("`tl.atomic_poll` needs integers of 16 bits or more, not `{dtype}`");
            return Err(self.error(Code::AtomicType, call.at, message));
        }
        let shape = ptr.shape.clone();
        let expected = self.materialize(&call.nth(1), call.place_nth(1))?;
        let places = (call.place_nth(0), call.place_nth(1));
        if ptr.is_block() {
            self.broadcast_shapes(&shape, &expected.shape, call.at, places)?;
        }
        let expected = self.cast(&expected, elem, call.place_nth(1))?;
        let expected = self.expand_to(&expected, &shape);
        let poll = Poll {
            attrs: ir::Atomic { op: AtomicOp::Load, order, scope },
            deadline: self.deadline(call)?,
            at: call.at,
            ptr,
            expected,
        };
        Ok(Value::Tensor(self.poll(&poll)?))
    }

    /// The time at which an `atomic_poll` began and the nanoseconds that it may take, if limited.
    fn deadline(&mut self, call: &Call) -> Eval<Option<(Tensor, Tensor)>> {
        if !call.has("timeout_ns") {
            return Ok(None);
        }
        let at = call.place("timeout_ns");
        let limit = call.value("timeout_ns");
        let negative = matches!(limit, Value::Const(Const::Int(limit)) if limit < 0);
        let limit = self.materialize(&limit, at)?;
        if negative || limit.is_block() || limit.elem.num().is_some_and(|dtype| !dtype.is_int()) {
            let message = "`timeout_ns` is a scalar integer that is not negative";
            return Err(self.error(Code::BadOption, at, message));
        }
        let limit = self.cast(&limit, Elem::Num(DType::UInt64), at)?;
        Ok(Some((self.global_timer(DType::UInt64), limit)))
    }

    /// Loads once, and again `while any(not seen) and elapsed < limit`; the bits seen at the end.
    fn poll(&mut self, poll: &Poll) -> Eval<Tensor> {
        if !matches!(poll.ptr.elem.pointee(), Elem::Num(_)) {
            return Ok(Tensor::new(Elem::BOOL, poll.ptr.shape.clone()));
        }
        let first = self.poll_once(poll, None)?;
        let types: Vec<ir::Type> = ir_type(Elem::BOOL, &poll.ptr.shape).into_iter().collect();
        let carried = |open: &Option<OpenRegion>| {
            let value = open.as_ref().and_then(|open| open.args.first().copied());
            Tensor { ir: value, ..first.clone() }
        };
        let condition = self.begin_region(types.clone());
        let unseen = self.tensor_unary(UnaryOp::Invert, &carried(&condition), poll.at)?;
        let mut waits = self.any(&unseen, poll.at)?;
        if let Some((start, limit)) = &poll.deadline {
            let now = self.global_timer(DType::UInt64);
            let scalar = Shape::scalar();
            let elapsed = self.op(Opcode::Sub, &[&now, start], Attrs::None, limit.elem, scalar);
            let early = self.compare_numbers(CompareOp::Lt, &elapsed, limit, DType::UInt64);
            waits = self.logical(true, &waits, &early, poll.at)?;
        }
        self.end_region(&condition);
        let body = self.begin_region(types.clone());
        let seen = self.poll_once(poll, Some(&carried(&body)))?;
        self.end_region(&body);
        let result = self.emit_poll(condition, body, &waits, &seen, &first, types);
        Ok(Tensor { ir: result, ..first })
    }

    /// Loads what was not seen yet; the bits seen so far.
    fn poll_once(&mut self, poll: &Poll, seen: Option<&Tensor>) -> Eval<Tensor> {
        let dtype = poll.expected.elem.num().unwrap_or(DType::Int32);
        let Some(seen) = seen else {
            let loaded = self.loaded(&poll.ptr, None, poll.attrs.clone());
            return Ok(self.compare_numbers(CompareOp::Eq, &loaded, &poll.expected, dtype));
        };
        let unseen = self.tensor_unary(UnaryOp::Invert, seen, poll.at)?;
        let loaded = self.loaded(&poll.ptr, Some(&unseen), poll.attrs.clone());
        let equal = self.compare_numbers(CompareOp::Eq, &loaded, &poll.expected, dtype);
        // What was seen before is not loaded again: nothing is known of its lanes.
        let equal = self.logical(true, &equal, &unseen, poll.at)?;
        self.logical(false, seen, &equal, poll.at)
    }

    fn emit_poll(
        &mut self,
        condition: Option<OpenRegion>,
        body: Option<OpenRegion>,
        waits: &Tensor,
        seen: &Tensor,
        first: &Tensor,
        types: Vec<ir::Type>,
    ) -> Option<ir::Value> {
        let (condition, body) = (condition?, body?);
        let passed = std::iter::once(waits.ir?).chain(condition.args.iter().copied());
        self.terminate(condition.region, Opcode::Condition, passed);
        self.terminate(body.region, Opcode::Yield, seen.ir);
        let regions = [condition.region, body.region];
        let emitter = self.emitter.as_mut()?;
        let results = emitter.inst(Opcode::While, [first.ir], Attrs::None, types, regions);
        results.first().copied()
    }
}
