//! Elementwise mathematics.

use super::super::call::Call;
use super::super::dtype::{DType, Elem};
use super::super::value::{Const, Tensor, Value};
use super::super::{Eval, Evaluator, Mode, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, CompareOp};
use crate::ir::{self, Attrs, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// `exp`, `log`, `sqrt`, ...: single or double precision only.
    pub(super) fn unary_math(&mut self, call: &Call, opcode: Opcode) -> Eval<Value> {
        let value = self.tensor_arg(call, 0)?;
        self.need_float(&value, &[DType::Float32, DType::Float64], call)?;
        Ok(Value::Tensor(self.unary_op(opcode, &value)))
    }

    pub(super) fn unary_op(&mut self, opcode: Opcode, value: &Tensor) -> Tensor {
        self.op(opcode, &[value], Attrs::None, value.elem, value.shape.clone())
    }

    fn need_float(&mut self, value: &Tensor, allowed: &[DType], call: &Call) -> Eval<()> {
        let Some(dtype) = value.elem.num() else {
            if value.elem.is_ptr() {
                let message =
                    format!("`{}` needs numbers, not pointers", call.builtin.display_name());
                return Err(self.error(Code::FloatRequired, call.at, message));
            }
            return Ok(());
        };
        if allowed.contains(&dtype) {
            return Ok(());
        }
        let names: Vec<String> = allowed.iter().map(|d| format!("`{d}`")).collect();
        let message = format!(
            "`{}` needs {}, but this is `{dtype}`",
            call.builtin.display_name(),
            names.join(" or ")
        );
        let place = call.place_nth(0);
        let diagnostic = Diagnostic::new(Code::FloatRequired, call.at, message)
            .with_related(place, format!("this is `{dtype}`"))
            .with_note("convert first: `x.to(tl.float32)`");
        Err(self.emit_diagnostic(diagnostic))
    }

    pub(super) fn sqrt_rn(&mut self, call: &Call) -> Eval<Value> {
        let value = self.tensor_arg(call, 0)?;
        self.need_float(&value, &[DType::Float32], call)?;
        Ok(Value::Tensor(self.unary_op(Opcode::SqrtRn, &value)))
    }

    fn pair(&mut self, call: &Call) -> Eval<(Tensor, Tensor)> {
        let places = (call.place_nth(0), call.place_nth(1));
        let weak = self.is_3_9();
        self.promote_pair(&call.nth(0), &call.nth(1), weak, call.at, places)
    }

    pub(super) fn div_rn(&mut self, call: &Call) -> Eval<Value> {
        for index in 0..2 {
            let operand = self.tensor_arg(call, index)?;
            if !matches!(call.nth(index), Value::Const(_)) {
                self.need_float(&operand, &[DType::Float32], call)?;
            }
        }
        let (x, y) = self.pair(call)?;
        self.need_float(&x, &[DType::Float32], call)?;
        Ok(Value::Tensor(self.op(Opcode::FDivRn, &[&x, &y], Attrs::None, x.elem, x.shape.clone())))
    }

    pub(super) fn fdiv(&mut self, call: &Call) -> Eval<Value> {
        if !self.is_3_9() {
            self.check_fdiv_types(call)?;
        }
        let places = (call.place_nth(0), call.place_nth(1));
        let (x, y) = match self.is_3_9() {
            true => self.promote_quotient(&call.nth(0), &call.nth(1), call.at, places)?,
            false => self.pair(call)?,
        };
        if let Some(dtype) = x.elem.num().filter(|dtype| dtype.is_int()) {
            let diagnostic = Diagnostic::new(
                Code::FloatRequired,
                call.at,
                format!("`tl.fdiv` needs floats, but the operands are `{dtype}`"),
            )
            .with_note("`/` converts integers to `fp32`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        Ok(Value::Tensor(self.op(Opcode::FDiv, &[&x, &y], Attrs::None, x.elem, x.shape.clone())))
    }

    /// Triton 3.6 promotes nothing here, and literals are `fp32`.
    fn check_fdiv_types(&mut self, call: &Call) -> Eval<()> {
        let (x, y) = (self.tensor_arg(call, 0)?, self.tensor_arg(call, 1)?);
        let (Some(a), Some(b)) = (x.elem.num(), y.elem.num()) else { return Ok(()) };
        if a == b && a.is_float() {
            return Ok(());
        }
        let diagnostic = if a.is_int() || b.is_int() {
            let integer = if a.is_int() { a } else { b };
            let message = format!("`tl.fdiv` needs floats, but an operand is `{integer}`");
            Diagnostic::new(Code::FloatRequired, call.at, message)
                .with_note("`/` converts integers to `fp32`")
        } else {
            let message =
                format!("`tl.fdiv` needs operands of one type, but these are `{a}` and `{b}`");
            Diagnostic::new(Code::BadOperand, call.at, message)
                .with_note("cast one of them; literals are `fp32` before Triton 3.9")
        };
        Err(self.emit_diagnostic(diagnostic))
    }

    pub(super) fn abs(&mut self, call: &Call) -> Eval<Value> {
        let value = self.tensor_arg(call, 0)?;
        let opcode = match value.elem {
            Elem::Num(dtype) if dtype.is_float() => Opcode::FAbs,
            Elem::Num(dtype) if dtype.is_signed() => Opcode::AbsS,
            Elem::Num(_) => return Ok(Value::Tensor(value)),
            Elem::Unknown => return Ok(Value::Tensor(Tensor { ir: None, ..value })),
            _ => {
                let message = format!("`tl.abs` needs numbers, not `{}`", value.elem);
                return Err(self.error(Code::BadOperand, call.at, message));
            }
        };
        Ok(Value::Tensor(self.unary_op(opcode, &value)))
    }

    pub(super) fn umulhi(&mut self, call: &Call) -> Eval<Value> {
        let (x, y) = self.pair(call)?;
        for index in 0..2 {
            let operand = call.nth(index);
            if matches!(&operand, Value::Tensor(tensor) if tensor.elem == Elem::BOOL) {
                let message = "`tl.umulhi` needs integers of 32 or 64 bits, not `int1`";
                return Err(self.error(Code::BadOperand, call.place_nth(index), message));
            }
        }
        if let Some(dtype) = x.elem.num()
            && !matches!(dtype, DType::Int32 | DType::Int64 | DType::UInt32 | DType::UInt64)
        {
            let message = format!("`tl.umulhi` needs integers of 32 or 64 bits, not `{dtype}`");
            return Err(self.error(Code::BadOperand, call.at, message));
        }
        Ok(Value::Tensor(self.op(
            Opcode::MulHighU,
            &[&x, &y],
            Attrs::None,
            x.elem,
            x.shape.clone(),
        )))
    }

    pub(super) fn fma(&mut self, call: &Call) -> Eval<Value> {
        let weak = self.is_3_9();
        let place = |index| call.place_nth(index);
        let (x, y) =
            self.promote_pair(&call.nth(0), &call.nth(1), weak, call.at, (place(0), place(1)))?;
        let first = Value::Tensor(x);
        let (x, z) =
            self.promote_pair(&first, &call.nth(2), weak, call.at, (place(0), place(2)))?;
        let (z_value, y_value) = (Value::Tensor(z), Value::Tensor(y));
        let (z, y) = self.promote_pair(&z_value, &y_value, weak, call.at, (place(2), place(1)))?;
        let (x, y) = self.broadcast(&x, &y, call.at, (place(0), place(1)))?;
        let (x, z) = self.broadcast(&x, &z, call.at, (place(0), place(2)))?;
        if let Some(dtype) = x.elem.num().filter(|dtype| dtype.is_int()) {
            let message = format!("`tl.fma` needs floats, but the operands are `{dtype}`");
            let diagnostic = Diagnostic::new(Code::FloatRequired, call.at, message)
                .with_note("write `x * y + z`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        Ok(Value::Tensor(self.op(Opcode::Fma, &[&x, &y, &z], Attrs::None, x.elem, x.shape.clone())))
    }

    /// bf16 is computed in single precision by minimum, maximum and reductions of Triton 3.6.
    pub(super) fn widen_bf16(&mut self, tensor: &Tensor, at: FileRange) -> Eval<Tensor> {
        if tensor.elem == Elem::Num(DType::BFloat16) && !self.is_3_9() {
            return self.cast(tensor, Elem::Num(DType::Float32), at);
        }
        Ok(tensor.clone())
    }

    /// True for `propagate_nan=tl.PropagateNan.ALL`.
    fn propagates_nan(&mut self, call: &Call) -> Eval<bool> {
        match call.given("propagate_nan") {
            Some(Value::Const(Const::Enum(name))) => Ok(*name == "PropagateNan.ALL"),
            None | Some(Value::Const(Const::Symbol(_)) | Value::Unknown) => Ok(false),
            Some(_) => {
                let message = "`propagate_nan` is a member of `tl.PropagateNan`";
                Err(self.error(Code::BadOption, call.place("propagate_nan"), message))
            }
        }
    }

    pub(super) fn extremum(&mut self, call: &Call, max: bool) -> Eval<Value> {
        let (x, y) = (self.literal_or_wide(call, 0)?, self.literal_or_wide(call, 1)?);
        let places = (call.place_nth(0), call.place_nth(1));
        let weak = self.is_3_9();
        let (x, y) = self.promote_pair(&x, &y, weak, call.at, places)?;
        if x.elem.is_ptr() {
            let message = "pointers have no minimum or maximum";
            return Err(self.error(Code::PointerArithmetic, call.at, message));
        }
        let propagate = self.propagates_nan(call)?;
        Ok(Value::Tensor(self.extremum_op(&x, &y, max, propagate)))
    }

    fn literal_or_wide(&mut self, call: &Call, index: usize) -> Eval<Value> {
        match call.nth(index) {
            Value::Tensor(tensor) => {
                Ok(Value::Tensor(self.widen_bf16(&tensor, call.place_nth(index))?))
            }
            other => Ok(other),
        }
    }

    /// Minimum or maximum of operands of one type and shape.
    pub(super) fn extremum_op(
        &mut self,
        x: &Tensor,
        y: &Tensor,
        max: bool,
        propagate: bool,
    ) -> Tensor {
        let (elem, shape) = (x.elem, x.shape.clone());
        let Elem::Num(dtype) = elem else { return Tensor { ir: None, ..x.clone() } };
        if dtype.is_float() {
            let opcode = if max { Opcode::FMax } else { Opcode::FMin };
            return self.op(opcode, &[x, y], ir::NanRule { propagate }, elem, shape);
        }
        let opcode = match (max, dtype.is_signed()) {
            (true, true) => Opcode::MaxS,
            (false, true) => Opcode::MinS,
            (true, false) => Opcode::MaxU,
            (false, false) => Opcode::MinU,
        };
        self.op(opcode, &[x, y], Attrs::None, elem, shape)
    }

    pub(super) fn clamp(&mut self, call: &Call) -> Eval<Value> {
        let weak = self.is_3_9();
        let x = self.literal_or_wide(call, 0)?;
        let (min, max) = (self.literal_or_wide(call, 1)?, self.literal_or_wide(call, 2)?);
        let place = |index| call.place_nth(index);
        let (x1, low) = self.promote_pair(&x, &min, weak, call.at, (place(0), place(1)))?;
        let (x2, high) =
            self.promote_pair(&Value::Tensor(x1), &max, weak, call.at, (place(0), place(2)))?;
        let low = self.cast(&low, x2.elem, call.at)?;
        let low = self.expand_to(&low, &x2.shape);
        if let Some(dtype) = x2.elem.num()
            && dtype.is_int()
            && !self.is_3_9()
        {
            let diagnostic = Diagnostic::new(
                Code::FloatRequired,
                call.at,
                format!("`tl.clamp` needs floats in Triton 3.6, but this is `{dtype}`"),
            )
            .with_note("for integers use `tl.minimum(tl.maximum(x, low), high)`");
            return Err(self.emit_diagnostic(diagnostic));
        }
        let propagate = self.propagates_nan(call)?;
        let raised = self.extremum_op(&x2, &low, true, propagate);
        Ok(Value::Tensor(self.extremum_op(&raised, &high, false, propagate)))
    }

    /// Python's `min` and `max`.
    pub(super) fn python_extremum(&mut self, call: &Call, max: bool) -> Eval<Value> {
        let mut values: Vec<(Value, FileRange)> = call.rest.clone();
        if let ([(Value::Tuple(tuple), at)], Mode::Python) = (values.as_slice(), self.frame().mode)
        {
            let at = *at;
            values = tuple.items.iter().map(|item| (item.clone(), at)).collect();
        }
        if values.len() < 2 && self.frame().mode == Mode::Jit {
            let message = format!("`{}` needs at least two numbers", call.builtin.name);
            return Err(self.error(Code::MissingArgument, call.at, message));
        }
        let special = |value: &Value| match value {
            Value::Const(Const::Float(value)) => {
                value.is_nan() || (*value == 0.0 && value.is_sign_negative())
            }
            _ => false,
        };
        if self.frame().mode == Mode::Jit
            && values.iter().all(|(value, _)| matches!(value, Value::Const(_)))
            && let Some((_, at)) = values.iter().find(|(value, _)| special(value))
        {
            let message = format!("`{}` takes neither NaN nor -0.0", call.builtin.name);
            return Err(self.error(Code::BadOperand, *at, message));
        }
        let mut values = values.into_iter();
        let Some((mut best, best_at)) = values.next() else { return Err(Stop::Unknown) };
        for (next, at) in values {
            best = self.extremum_of(&best, &next, max, call.at, (best_at, at))?;
        }
        Ok(best)
    }

    fn extremum_of(
        &mut self,
        a: &Value,
        b: &Value,
        max: bool,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Eval<Value> {
        match (a, b) {
            (Value::Unknown, _) | (_, Value::Unknown) => Err(Stop::Unknown),
            (Value::Const(x), Value::Const(y)) => {
                let op = if max { CompareOp::Ge } else { CompareOp::Le };
                match super::super::constant::compare_consts(op, x, y) {
                    Some(true) => Ok(a.clone()),
                    Some(false) => Ok(b.clone()),
                    None => Ok(self.symbolic_extremum(x, y, max)),
                }
            }
            _ => {
                let weak = self.is_3_9();
                let (x, y) = self.promote_pair(a, b, weak, at, places)?;
                let x = self.widen_bf16(&x, at)?;
                let y = self.widen_bf16(&y, at)?;
                Ok(Value::Tensor(self.extremum_op(&x, &y, max, false)))
            }
        }
    }

    fn symbolic_extremum(&mut self, x: &Const, y: &Const, max: bool) -> Value {
        match (x.to_sym(), y.to_sym()) {
            (Some(a), Some(b)) => {
                Value::Const(Const::Symbol(a.opaque(if max { "max" } else { "min" }, &b)))
            }
            _ => self.fresh_const(),
        }
    }

    pub(super) fn cdiv(&mut self, call: &Call) -> Eval<Value> {
        let (x, div) = (call.nth(0), call.nth(1));
        let (at, places) = (call.at, (call.place_nth(0), call.place_nth(1)));
        if let (Value::Const(Const::Symbol(_)), _) | (_, Value::Const(Const::Symbol(_))) =
            (&x, &div)
            && matches!((&x, &div), (Value::Const(_), Value::Const(_)))
        {
            let result = self.ceil_division(&x, &div, at, places);
            return Ok(result);
        }
        let result = self.ceil_division(&x, &div, at, places);
        // Triton 3.6 returns a tensor even when both are constants.
        match result {
            Value::Const(_) if !self.is_3_9() && self.frame().mode == Mode::Jit => {
                Ok(Value::Tensor(self.materialize(&result, at)?))
            }
            other => Ok(other),
        }
    }

    fn ceil_division(
        &mut self,
        x: &Value,
        div: &Value,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Value {
        let one = Value::int(1);
        let less = self.binary(BinaryOp::Sub, div, &one, at, (places.1, at));
        let sum = self.binary(BinaryOp::Add, x, &less, at, (places.0, places.1));
        self.binary(BinaryOp::FloorDiv, &sum, div, at, (places.0, places.1))
    }

    pub(super) fn sigmoid(&mut self, call: &Call) -> Eval<Value> {
        let x = self.tensor_arg(call, 0)?;
        self.need_float(&x, &[DType::Float32, DType::Float64], call)?;
        let negated = self.tensor_unary(crate::hir::UnaryOp::Minus, &x, call.at)?;
        let exp = self.unary_op(Opcode::Exp, &negated);
        let one = Value::int(1);
        let at = call.at;
        let sum = self.tensor_binary(BinaryOp::Add, &one, &Value::Tensor(exp), at, (at, at))?;
        let result = self.tensor_binary(BinaryOp::Div, &one, &Value::Tensor(sum), at, (at, at))?;
        Ok(Value::Tensor(result))
    }

    pub(super) fn softmax(&mut self, call: &Call) -> Eval<Value> {
        let x = self.strict_tensor(call, 0)?;
        let axis = self.axis(call, "dim", x.shape.rank())?.unwrap_or(0);
        let keep = match call.given("keep_dims") {
            None | Some(Value::Const(Const::None)) => self.is_3_9(),
            Some(_) => self.flag(call, "keep_dims", false)?,
        };
        let at = call.at;
        let max = self.max_along(&x, Some(axis), keep, at)?;
        let x_value = Value::Tensor(x);
        let shifted =
            self.tensor_binary(BinaryOp::Sub, &x_value, &Value::Tensor(max), at, (at, at))?;
        self.need_float(&shifted, &[DType::Float32, DType::Float64], call)?;
        let exp = self.unary_op(Opcode::Exp, &shifted);
        let sum = self.sum_along(&exp, Some(axis), keep, at)?;
        let (num, den) = self.broadcast(&exp, &sum, at, (at, at))?;
        Ok(Value::Tensor(self.op(
            Opcode::FDiv,
            &[&num, &den],
            Attrs::None,
            num.elem,
            num.shape.clone(),
        )))
    }

    pub(super) fn swizzle2d(&mut self, call: &Call) -> Eval<Value> {
        let at = call.at;
        let mut args = Vec::new();
        for index in 0..5 {
            args.push(call.nth(index));
        }
        let op = |this: &mut Self, op, a: &Value, b: &Value| this.binary(op, a, b, at, (at, at));
        let scaled = op(self, BinaryOp::Mul, &args[0], &args[3]);
        let ij = op(self, BinaryOp::Add, &scaled, &args[1]);
        let group = op(self, BinaryOp::Mul, &args[4], &args[3]);
        // Triton's own code assigns it to a variable, which makes a tensor of a number.
        let group = match group {
            Value::Const(ref constant) if !constant.is_symbol() => {
                Value::Tensor(self.materialize(&group, at)?)
            }
            group => group,
        };
        let group_id = op(self, BinaryOp::FloorDiv, &ij, &group);
        let offset = op(self, BinaryOp::Mul, &group_id, &args[4]);
        let left = op(self, BinaryOp::Sub, &args[2], &offset);
        let weak = self.is_3_9();
        let (a, b) = self.promote_pair(&left, &args[4], weak, at, (at, at))?;
        let size = Value::Tensor(self.extremum_op(&a, &b, false, false));
        let within = op(self, BinaryOp::Mod, &ij, &group);
        let row = op(self, BinaryOp::Mod, &within, &size);
        let new_i = op(self, BinaryOp::Add, &offset, &row);
        let new_j = op(self, BinaryOp::FloorDiv, &within, &size);
        Ok(Value::tuple(vec![new_i, new_j]))
    }
}
