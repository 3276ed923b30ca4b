//! Atomics.

use super::super::call::Call;
use super::super::dtype::{DType, Elem};
use super::super::value::{Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::Rule;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, AtomicOp, Attrs, MemoryOrder, MemoryScope, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    fn ordering(&mut self, call: &Call) -> Eval<(MemoryOrder, MemoryScope)> {
        let order = self.option(
            call,
            "sem",
            &[
                ("acq_rel", MemoryOrder::AcqRel),
                ("acquire", MemoryOrder::Acquire),
                ("release", MemoryOrder::Release),
                ("relaxed", MemoryOrder::Relaxed),
            ],
        )?;
        let scope = self.option(
            call,
            "scope",
            &[("gpu", MemoryScope::Gpu), ("cta", MemoryScope::Cta), ("sys", MemoryScope::Sys)],
        )?;
        Ok((order.unwrap_or(MemoryOrder::AcqRel), scope.unwrap_or(MemoryScope::Gpu)))
    }

    /// Which element types an atomic takes.
    fn check_atomic(&mut self, op: AtomicOp, dtype: DType, call: &Call) -> Eval<()> {
        let half = matches!(dtype, DType::Float16 | DType::BFloat16);
        let small = dtype.bits() < 16 || matches!(dtype, DType::Int16 | DType::UInt16);
        let float_bits =
            dtype.is_float() && matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
        if small || (half && op != AtomicOp::Add) || float_bits {
            let message =
                format!("`{}` is not available for `{dtype}`", call.builtin.display_name());
            return Err(self.error(Code::AtomicType, call.at, message));
        }
        Ok(())
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
        let mask = self.mask_arg(call)?;
        let shape = ptr.shape.clone();
        let places = (call.place_nth(0), call.place_nth(1));
        if ptr.is_block() {
            self.broadcast_shapes(&shape, &value.shape, call.at, places)?;
            if let Some(mask) = &mask {
                self.mask_shape(&shape, mask, call.at, (places.0, call.place("mask")))?;
            }
        }
        let value = self.cast(&value, elem, call.place_nth(1))?;
        let value = self.expand_to(&value, &shape);
        let mask = mask.map(|mask| self.expand_to(&mask, &shape));
        let atomic = ir::Atomic { op, order, scope };
        let result = self.atomic_op(&ptr, &value, mask.as_ref(), atomic)?;
        Ok(Value::Tensor(result))
    }

    /// The operation for the element type: floats have their own addition, and take extrema
    /// through the order of their bits.
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
            AtomicOp::SMax if unsigned => AtomicOp::UMax,
            AtomicOp::SMin if unsigned => AtomicOp::UMin,
            op => op,
        };
        let operands = [Some(ptr), Some(value), mask];
        let attrs = ir::Atomic { op, ..atomic };
        Ok(self.op_optional(Opcode::AtomicRmw, &operands, attrs, elem, shape))
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
        let negative = self.compare_numbers(crate::hir::CompareOp::Lt, &bits, &zero, signed);
        let positive = self.tensor_unary(crate::hir::UnaryOp::Invert, &negative, at)?;
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

    /// A value that is compared or stored as it is: nothing converts it, so only the sign of an
    /// integer may differ from the type in memory.
    fn exchanged(&mut self, value: Tensor, elem: Elem, at: FileRange) -> Eval<Tensor> {
        let differs = match (value.elem, elem) {
            (Elem::Num(from), Elem::Num(to)) if from.is_int() && to.is_int() => {
                from.bits() != to.bits()
            }
            (Elem::Num(from), Elem::Num(to)) => from != to,
            _ => false,
        };
        if differs {
            let message =
                format!("`tl.atomic_cas` needs a value of type `{elem}`, not `{}`", value.elem);
            let diagnostic = Diagnostic::new(Code::AtomicType, at, message)
                .with_note("convert it with `.to(...)`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        self.cast(&value, elem, at)
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
        let mut operands = Vec::new();
        let mut given = elem;
        for index in [1, 2] {
            let value = self.materialize(&call.nth(index), call.place_nth(index))?;
            given = value.elem;
            let value = self.exchanged(value, elem, call.place_nth(index))?;
            operands.push(self.expand_to(&value, &shape));
        }
        let attrs = ir::AtomicCas { order, scope };
        let inputs = [&ptr, &operands[0], &operands[1]];
        let old = self.op(Opcode::AtomicCas, &inputs, attrs, elem, shape);
        // What was there has the type of the value, which may differ in sign.
        let result = if given.is_unknown() { old } else { self.cast(&old, given, call.at)? };
        Ok(Value::Tensor(result))
    }

    /// Atomic loads and stores of Triton 3.9, as read-modify-writes with the same effect.
    pub(super) fn atomic_other(&mut self, call: &Call) -> Eval<Value> {
        let (order, scope) = self.ordering(call)?;
        let ptr = self.pointer_arg(call)?;
        let elem = ptr.elem.pointee();
        let shape = ptr.shape.clone();
        match call.builtin.rule {
            Rule::AtomicStore => {
                let value = self.materialize(&call.nth(1), call.place_nth(1))?;
                let value = self.cast(&value, elem, call.place_nth(1))?;
                let value = self.expand_to(&value, &shape);
                let mask = self.mask_arg(call)?;
                let mask = mask.map(|mask| self.expand_to(&mask, &shape));
                let attrs = ir::Atomic { op: AtomicOp::Exchange, order, scope };
                let operands = [Some(&ptr), Some(&value), mask.as_ref()];
                self.op_optional(Opcode::AtomicRmw, &operands, attrs, elem, shape);
                Ok(Value::NONE)
            }
            Rule::AtomicLoad => {
                let Elem::Num(dtype) = elem else {
                    return Ok(Value::Tensor(Tensor { elem, ir: None, ..ptr }));
                };
                let Some(bits) = DType::int_of(dtype.bits(), true).filter(|d| d.bits() >= 32)
                else {
                    return Err(self.unlowered("atomic loads of fewer than 32 bits", call.at));
                };
                let pointer = self.reinterpret_pointer(&ptr, bits);
                let zero = self.int_constant(0, bits);
                let zero = self.expand_to(&zero, &shape);
                let mask = self.mask_arg(call)?;
                let mask = mask.map(|mask| self.expand_to(&mask, &shape));
                let attrs = ir::Atomic { op: AtomicOp::Add, order, scope };
                let operands = [Some(&pointer), Some(&zero), mask.as_ref()];
                let old =
                    self.op_optional(Opcode::AtomicRmw, &operands, attrs, Elem::Num(bits), shape);
                Ok(Value::Tensor(self.bitcast(&old, elem, call.at)?))
            }
            _ => Err(self.unlowered("`tl.atomic_poll`", call.at)),
        }
    }
}
