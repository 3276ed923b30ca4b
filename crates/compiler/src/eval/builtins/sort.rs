//! Sorting.

use super::super::call::Call;
use super::super::dtype::{DType, Elem};
use super::super::symbolic::Sym;
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Attrs, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// Only the last axis can be sorted.
    fn check_last_axis(&mut self, input: &Tensor, call: &Call) -> Eval<()> {
        let rank = input.shape.rank();
        if rank == Some(0) && !input.elem.is_unknown() {
            return Err(self.error(Code::AxisRange, call.at, "a scalar cannot be sorted"));
        }
        if input.elem.is_ptr() {
            return Err(self.error(
                Code::BadOperand,
                call.place_nth(0),
                "pointers cannot be sorted",
            ));
        }
        let dim = match call.given("dim") {
            None | Some(Value::Unknown | Value::Const(Const::None | Const::Symbol(_))) => {
                return Ok(());
            }
            Some(Value::Tensor(tensor)) if tensor.is_open() => return Ok(()),
            Some(Value::Const(Const::Int(dim))) => *dim,
            Some(Value::Const(Const::Bool(dim))) => i128::from(*dim),
            Some(other) => {
                let other = other.clone();
                let at = call.place("dim");
                return Err(self.not_constexpr(Code::NotConstexpr, "`dim`", &other, at));
            }
        };
        // Triton compares with the last axis literally, so `-1` is refused too.
        match rank {
            Some(rank) if dim != rank as i128 - 1 => {
                let message = format!("only the last axis, {}, can be sorted, not {dim}", rank - 1);
                Err(self.error(Code::AxisRange, call.place("dim"), message))
            }
            _ => Ok(()),
        }
    }

    /// The first elements of each row in order, as many as `shape` has; `None` of them is known
    /// where that is not.
    fn sorted(
        &mut self,
        input: &Tensor,
        shape: &Shape,
        descending: bool,
        at: FileRange,
    ) -> Eval<Tensor> {
        let sort = ir::Sort { runs: 1, descending, keep: row_length(shape) };
        self.in_order(input, shape, &sort, at)
    }

    /// The operation compares integers as signed ones; unsigned ones are in order once their
    /// highest bit is flipped, and bits once they are numbers.
    fn in_order(
        &mut self,
        input: &Tensor,
        shape: &Shape,
        attrs: &ir::Sort,
        at: FileRange,
    ) -> Eval<Tensor> {
        let sort = |this: &mut Self, input: &Tensor| {
            this.op(Opcode::Sort, &[input], attrs.clone(), input.elem, shape.clone())
        };
        match input.elem.num() {
            Some(DType::Int1) => {
                let numbers = self.cast(input, Elem::Num(DType::Int8), at)?;
                let sorted = sort(self, &numbers);
                self.cast(&sorted, input.elem, at)
            }
            Some(dtype) if dtype.is_unsigned() => {
                let flipped = self.flip_highest_bit(input, dtype);
                let sorted = sort(self, &flipped);
                Ok(self.flip_highest_bit(&sorted, dtype))
            }
            _ => Ok(sort(self, input)),
        }
    }

    fn flip_highest_bit(&mut self, input: &Tensor, dtype: DType) -> Tensor {
        let bit = self.int_constant(1 << (dtype.bits() - 1), dtype);
        let bits = self.expand_to(&bit, &input.shape);
        self.op(Opcode::Xor, &[input, &bits], Attrs::None, input.elem, input.shape.clone())
    }

    /// The order, with which sorting computes: it is a bool, or 0 or 1.
    fn descending(&mut self, call: &Call, default: bool) -> Eval<bool> {
        self.flag_among(call, "descending", default, |value| {
            matches!(value, Const::Bool(_) | Const::Int(0 | 1))
        })
    }

    pub(super) fn sort(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        self.check_last_axis(&input, call)?;
        let descending = self.descending(call, false)?;
        let shape = input.shape.clone();
        Ok(Value::Tensor(self.sorted(&input, &shape, descending, call.at)?))
    }

    /// The last stage of the network alone.
    pub(super) fn bitonic_merge(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        self.check_last_axis(&input, call)?;
        let descending = self.descending(call, false)?;
        let shape = input.shape.clone();
        let keep = row_length(&shape);
        let sort = ir::Sort { runs: (keep / 2).max(1), descending, keep };
        Ok(Value::Tensor(self.in_order(&input, &shape, &sort, call.at)?))
    }

    /// Triton 3.6 does not notice that a row that is alone has fewer than `k` elements. The merges
    /// of its network go on: first the elements at even places of the sorted row come twice each,
    /// then those at odd places, and all of this again until there are `k`.
    fn more_than_all(&mut self, input: &Tensor, k: i128, at: FileRange) -> Eval<Tensor> {
        let sorted = self.sorted(input, &input.shape, true, at)?;
        let mut dims = input.shape.dims().unwrap_or_default().to_vec();
        let last = dims.len().saturating_sub(1);
        let extent = dims[last].int().unwrap_or(1);
        dims[last] = Sym::Int(k);
        let shape = Shape::of(dims);
        let place = self.axis_indices(&shape, last);
        let with = |this: &mut Self, op, value: &Tensor, number: i128| {
            let number = this.int_constant(number, DType::Int32);
            let number = this.expand_to(&number, &shape);
            this.op(op, &[value, &number], Attrs::None, Elem::I32, shape.clone())
        };
        let even = with(self, Opcode::And, &place, (extent - 1) & !1);
        let second = with(self, Opcode::ShrS, &place, i128::from(extent.ilog2()));
        let odd = with(self, Opcode::And, &second, 1);
        let index = self.op(Opcode::Or, &[&even, &odd], Attrs::None, Elem::I32, shape.clone());
        Ok(self.gather_along(&sorted, &index, last))
    }

    pub(super) fn topk(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        self.check_last_axis(&input, call)?;
        let k = match call.value("k") {
            Value::Const(Const::None) => {
                let shape = input.shape.clone();
                return Ok(Value::Tensor(self.sorted(&input, &shape, true, call.at)?));
            }
            Value::Const(constant) => constant.to_sym().ok_or(Stop::Unknown)?,
            Value::Unknown => return Err(Stop::Unknown),
            other => {
                return Err(self.not_constexpr(Code::NotConstexpr, "`k`", &other, call.place("k")));
            }
        };
        let k = match k.int() {
            // Triton 3.6 halves until it has at most `k`.
            Some(count) if !self.is_3_9() && count > 0 => Sym::Int(1 << count.ilog2()),
            _ => k,
        };
        self.check_extents(&Shape::of([k.clone()]), call.place("k"))?;
        let descending = self.descending(call, true)?;
        let Some(dims) = input.shape.dims() else {
            return Ok(Value::Tensor(Tensor { shape: Shape::unknown(), ir: None, ..input }));
        };
        let last = dims.len().saturating_sub(1);
        if let (Some(k), Some(extent)) = (k.int(), dims.last().and_then(Sym::int))
            && k > extent
        {
            let alone = dims[..last].iter().all(|extent| extent.int() == Some(1));
            if !self.is_3_9() && alone && extent > 1 {
                return Ok(Value::Tensor(self.more_than_all(&input, k, call.at)?));
            }
            let message =
                format!("the last axis has {extent} elements, so there are no {k} largest");
            return Err(self.error(Code::AxisRange, call.place("k"), message));
        }
        if !self.is_3_9() && dims.len() == 1 && k.int() == Some(1) && dims[0].int() != Some(1) {
            let diagnostic = Diagnostic::new(
                Code::AxisRange,
                call.place("k"),
                "in Triton 3.6 `tl.topk` keeps more than one element of a row that is alone",
            )
            .with_note("use `tl.max`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        let mut shape = dims.to_vec();
        shape[last] = k;
        let shape = Shape::of(shape);
        let wide = input.elem.num().filter(|_| shape != input.shape);
        let input = match wide.and_then(widened) {
            Some(dtype) => self.cast(&input, Elem::Num(dtype), call.at)?,
            None => input,
        };
        Ok(Value::Tensor(self.sorted(&input, &shape, descending, call.at)?))
    }
}

/// Elements of the rows of a shape; none where that is not known.
fn row_length(shape: &Shape) -> u32 {
    let last = shape.dims().and_then(|dims| dims.last()).and_then(Sym::int);
    last.and_then(|last| u32::try_from(last).ok()).unwrap_or(0)
}

/// The type in which maxima of a small one are taken, as Triton's `topk` does.
fn widened(dtype: DType) -> Option<DType> {
    match dtype {
        _ if dtype.bits() >= 32 => None,
        _ if dtype.is_float() => Some(DType::Float32),
        _ => Some(DType::Int32),
    }
}
