//! Operators on tensors.

use super::builtins::text::format_percent;
use super::display::const_text;
use super::dtype::{DType, Elem};
use super::promote::{Operand, PromotionError, promote, promote_integers};
use super::report::a;
use super::value::{Const, Held, Origin, Shape, Tensor, Tuple, Value};
use super::{Eval, Evaluator, Mode, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, CompareOp, UnaryOp};
use crate::ir::{self, Attrs, FloatPredicate, IntPredicate, Opcode};
use crate::source::FileRange;

type Places = (FileRange, FileRange);

/// An operand before promotion: a tensor, and the compile-time number it comes from.
struct Side {
    tensor: Tensor,
    literal: Option<Const>,
}

impl Evaluator<'_> {
    /// `left op right` on any values.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: Places,
    ) -> Value {
        match (left, right) {
            (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
            (Value::Tensor(_), _) | (_, Value::Tensor(_)) => {
                self.computed |= self.frame().mode == Mode::Python;
                let open = may_be_const(left) && may_be_const(right);
                match self.tensor_binary(op, left, right, at, places) {
                    Ok(tensor) => Value::Tensor(Tensor { open, ..tensor }),
                    Err(_) => Value::Unknown,
                }
            }
            (Value::Const(Const::Str(text)), Value::Const(value)) if op == BinaryOp::Mod => {
                let known = Some(value).filter(|value| !value.is_symbol());
                let formatted = known.and_then(|value| format_percent(text, &const_text(value)));
                formatted.map_or_else(|| self.fresh_const(), Value::str)
            }
            (Value::Const(a), Value::Const(b)) => self.const_operands(op, a, b, at, places),
            (Value::Tuple(tuple), other) | (other, Value::Tuple(tuple)) => {
                self.tuple_binary(op, tuple, left, right, other, at)
            }
            _ => match self.object_binary(op, left, right, at) {
                Some(result) => result,
                None => {
                    self.bad_operands(op, left, right, at);
                    Value::Unknown
                }
            },
        }
    }

    /// An operator that an aggregate defines; before Triton 3.9 not with a compile-time operand.
    fn object_binary(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        at: FileRange,
    ) -> Option<Value> {
        let name = method_name(op)?;
        let constant = |value: &Value| matches!(value, Value::Const(_));
        if !self.is_3_9() && (constant(left) || constant(right)) {
            return None;
        }
        let left_to_right = format!("__{name}__");
        if let Some(result) =
            self.call_operator(left, &left_to_right, std::slice::from_ref(right), at)
        {
            return Some(result);
        }
        self.call_operator(right, &format!("__r{name}__"), std::slice::from_ref(left), at)
    }

    fn const_operands(
        &mut self,
        op: BinaryOp,
        a: &Const,
        b: &Const,
        at: FileRange,
        places: Places,
    ) -> Value {
        if let Some(result) = self.const_binary(op, a, b) {
            return Value::Const(result);
        }
        let zero = matches!(b, Const::Int(0) | Const::Bool(false))
            || matches!(b, Const::Float(value) if *value == 0.0);
        if zero && matches!(op, BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod) {
            self.error(Code::BadOperand, places.1, "division by zero at compile time");
            return Value::Unknown;
        }
        if self.frame().mode == Mode::Jit {
            let message = format!("`{}` is not defined for {a} and {b}", op.symbol());
            self.error(Code::BadOperand, at, message);
        }
        Value::Unknown
    }

    fn tuple_binary(
        &mut self,
        op: BinaryOp,
        tuple: &Tuple,
        left: &Value,
        right: &Value,
        other: &Value,
        at: FileRange,
    ) -> Value {
        match (op, left, right) {
            (BinaryOp::Add, Value::Tuple(a), Value::Tuple(b))
                if a.held.is_python() != b.held.is_python() && self.frame().mode == Mode::Jit =>
            {
                let message = "a tuple that one constexpr holds cannot be joined to another";
                self.error(Code::BadOperand, at, message);
                Value::Unknown
            }
            (BinaryOp::Add, Value::Tuple(a), Value::Tuple(b)) => {
                let items = a.items.iter().chain(&b.items).cloned().collect();
                Value::held_tuple(items, a.held)
            }
            (BinaryOp::Mul, Value::Const(_), _) if self.frame().mode == Mode::Jit => {
                self.bad_operands(op, left, right, at);
                Value::Unknown
            }
            (BinaryOp::Mul, ..) => match other {
                Value::Const(Const::Int(count)) => {
                    let count = usize::try_from((*count).max(0)).unwrap_or(0).min(1 << 12);
                    let len = tuple.items.len() * count;
                    let items = tuple.items.iter().cycle().take(len).cloned().collect();
                    let held = if tuple.held.is_python() { tuple.held } else { Held::Elements };
                    Value::held_tuple(items, held)
                }
                _ => Value::Unknown,
            },
            _ => {
                self.bad_operands(op, left, right, at);
                Value::Unknown
            }
        }
    }

    /// Before Triton 3.9 a tuple with a constexpr `None` or text in it cannot be taken out of its
    /// constexprs, as what runs at compile time needs it.
    pub(super) fn refuse_untyped_elements(&mut self, value: &Value, at: FileRange) -> bool {
        let Value::Tuple(tuple) = value else { return false };
        let untyped = |item: &Value| matches!(item, Value::Const(Const::None | Const::Str(_)));
        if self.is_3_9()
            || self.frame().mode == Mode::Python
            || tuple.held != Held::Elements
            || !tuple.items.iter().any(untyped)
        {
            return false;
        }
        let message =
            "before Triton 3.9 a tuple that holds `None` or text is not looked at as a whole";
        let diagnostic = Diagnostic::new(Code::NotATensor, at, message)
            .with_note("name the element: `t[0]`, or a field of a named tuple");
        self.emit_diagnostic(diagnostic);
        true
    }

    fn bad_operands(&mut self, op: BinaryOp, left: &Value, right: &Value, at: FileRange) -> Stop {
        let overloads = |value: &Value| match value {
            Value::Object(object) => !object.class.class.bases.is_empty(),
            _ => false,
        };
        if overloads(left)
            || overloads(right)
            || matches!(left, Value::Class(_) | Value::Module(_) | Value::Bound(_))
            || matches!(right, Value::Class(_) | Value::Module(_))
            || self.frame().mode == Mode::Python
        {
            return Stop::Unknown;
        }
        let message = format!("`{}` is not defined for {} and {}", op.symbol(), a(left), a(right));
        self.error(Code::BadOperand, at, message)
    }

    /// An operand of an operator as a tensor that remembers its literal.
    fn side(&mut self, value: &Value, at: FileRange) -> Eval<Side> {
        match value {
            Value::Tensor(tensor) => Ok(Side { tensor: tensor.clone(), literal: None }),
            Value::Const(constant) => {
                // The literal is emitted once its type is known.
                let emitter = self.emitter.take();
                let tensor = self.materialize(value, at);
                if !self.failed {
                    self.emitter = emitter;
                }
                Ok(Side { tensor: tensor?, literal: Some(constant.clone()) })
            }
            Value::Unknown => Err(Stop::Unknown),
            other => {
                let message = format!("expected a number or tensor, but this is {}", a(other));
                Err(self.error(Code::BadOperand, at, message))
            }
        }
    }

    /// `left op right` where one is a tensor.
    pub(super) fn tensor_binary(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: Places,
    ) -> Eval<Tensor> {
        match op {
            BinaryOp::MatMul => {
                let note = "use `tl.dot(a, b)`";
                self.unsupported("`@`", note, at);
                return Err(Stop::Reported);
            }
            BinaryOp::Pow => {
                let diagnostic =
                    Diagnostic::new(Code::BadOperand, at, "`**` is not defined for tensors")
                        .with_note("multiply, or use `libdevice.pow`");
                return Err(self.emit_diagnostic(diagnostic));
            }
            _ => {}
        }
        let lhs = self.side(left, places.0)?;
        let rhs = self.side(right, places.1)?;
        if lhs.tensor.elem == Elem::Void || rhs.tensor.elem == Elem::Void {
            let message = "the operand has no value";
            return Err(self.error(Code::BadOperand, at, message));
        }
        if lhs.tensor.elem.is_ptr() || rhs.tensor.elem.is_ptr() {
            return self.pointer_arithmetic(op, lhs, rhs, at, places);
        }
        let divides = matches!(op, BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod);
        let float = float_operand(op, (&lhs, &rhs), at, places);
        let (x, y) = self.promote_sides(lhs, rhs, divides, at, places)?;
        let (x, y) = self.broadcast(&x, &y, at, places)?;
        let result = self.arithmetic(op, x, y, left, at)?;
        Ok(match result.elem.is_unknown() {
            true => Tensor { float, ..result },
            false => result,
        })
    }

    /// The operator on operands of one type and shape.
    fn arithmetic(
        &mut self,
        op: BinaryOp,
        x: Tensor,
        y: Tensor,
        left: &Value,
        at: FileRange,
    ) -> Eval<Tensor> {
        let Elem::Num(dtype) = x.elem else {
            let elem = if op == BinaryOp::Div { Elem::Unknown } else { x.elem };
            return Ok(Tensor {
                elem,
                ir: None,
                ..self.op(Opcode::Add, &[&x, &y], Attrs::None, elem, x.shape.clone())
            });
        };
        let float = dtype.is_float();
        let opcode = match op {
            BinaryOp::Add if float => Opcode::FAdd,
            BinaryOp::Add => Opcode::Add,
            BinaryOp::Sub if float => Opcode::FSub,
            BinaryOp::Sub => Opcode::Sub,
            BinaryOp::Mul if float => Opcode::FMul,
            BinaryOp::Mul => Opcode::Mul,
            BinaryOp::Div => return self.true_division(x, y, dtype, at),
            BinaryOp::FloorDiv | BinaryOp::Mod => {
                if float && op == BinaryOp::FloorDiv {
                    let diagnostic = Diagnostic::new(
                        Code::BadOperand,
                        at,
                        format!("`//` is not defined for `{dtype}`"),
                    )
                    .with_note("use `tl.floor(a / b)`");
                    return Err(self.emit_diagnostic(diagnostic));
                }
                match (op, float, dtype.is_signed()) {
                    (_, true, _) => Opcode::FRem,
                    (BinaryOp::FloorDiv, _, true) => Opcode::DivS,
                    (BinaryOp::FloorDiv, _, false) => Opcode::DivU,
                    (_, _, true) => Opcode::RemS,
                    (_, _, false) => Opcode::RemU,
                }
            }
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
                return self.bitwise(op, x, y, dtype, left, at);
            }
            BinaryOp::Pow | BinaryOp::MatMul => return Err(Stop::Unknown),
        };
        Ok(self.op(opcode, &[&x, &y], Attrs::None, x.elem, x.shape.clone()))
    }

    fn true_division(&mut self, x: Tensor, y: Tensor, dtype: DType, at: FileRange) -> Eval<Tensor> {
        let (x, y) = if dtype.is_int() {
            let float = Elem::Num(DType::Float32);
            (self.cast(&x, float, at)?, self.cast(&y, float, at)?)
        } else {
            (x, y)
        };
        Ok(self.op(Opcode::FDiv, &[&x, &y], Attrs::None, x.elem, x.shape.clone()))
    }

    fn bitwise(
        &mut self,
        op: BinaryOp,
        x: Tensor,
        y: Tensor,
        dtype: DType,
        left: &Value,
        at: FileRange,
    ) -> Eval<Tensor> {
        if dtype.is_float() {
            let message = format!("`{}` needs integers, not `{dtype}`", op.symbol());
            return Err(self.error(Code::BadOperand, at, message));
        }
        // The sign of the left operand before promotion decides how `>>` fills.
        let signed = match left {
            Value::Tensor(tensor) => tensor.elem.num().is_some_and(DType::is_signed),
            _ => dtype.is_signed(),
        };
        let opcode = match op {
            BinaryOp::And => Opcode::And,
            BinaryOp::Or => Opcode::Or,
            BinaryOp::Xor => Opcode::Xor,
            BinaryOp::Shl => Opcode::Shl,
            _ if signed => Opcode::ShrS,
            _ => Opcode::ShrU,
        };
        Ok(self.op(opcode, &[&x, &y], Attrs::None, x.elem, x.shape.clone()))
    }

    /// Converts two operands to the type they are computed in.
    fn promote_sides(
        &mut self,
        lhs: Side,
        rhs: Side,
        divides: bool,
        at: FileRange,
        places: Places,
    ) -> Eval<(Tensor, Tensor)> {
        let (Elem::Num(x), Elem::Num(y)) = (lhs.tensor.elem, rhs.tensor.elem) else {
            let elem = self.promote_unknown(&lhs, &rhs, divides);
            let retype = |side: Side| Tensor { elem, ir: None, ..side.tensor };
            return Ok((retype(lhs), retype(rhs)));
        };
        let left = Operand { dtype: x, weak: lhs.literal.is_some() };
        let right = Operand { dtype: y, weak: rhs.literal.is_some() };
        let dtype = match promote(left, right, divides, self.version) {
            Ok(dtype) => dtype,
            Err(error) => return Err(self.promotion_error(error, (x, y), at, places)),
        };
        self.check_literal(&lhs, dtype, places.0)?;
        self.check_literal(&rhs, dtype, places.1)?;
        Ok((self.convert_side(lhs, dtype, places.0)?, self.convert_side(rhs, dtype, places.1)?))
    }

    /// The common type when one of them is not known, as far as it is certain.
    fn promote_unknown(&self, lhs: &Side, rhs: &Side, divides: bool) -> Elem {
        let weak_into = |weak: &Side, strong: &Side| {
            let (Some(literal), Elem::Num(dtype)) = (&weak.literal, strong.tensor.elem) else {
                return None;
            };
            if strong.literal.is_some() || !literal.is_symbol() {
                return None;
            }
            // Whatever number it is, it yields to a float; `/` on halves widens.
            dtype.is_float().then(|| {
                let narrow = divides && dtype.bits() < 32 && !dtype.is_fp8();
                Elem::Num(if narrow { DType::Float32 } else { dtype })
            })
        };
        if lhs.tensor.elem == Elem::Num(DType::Float64)
            || rhs.tensor.elem == Elem::Num(DType::Float64)
        {
            return Elem::Unknown;
        }
        weak_into(lhs, rhs).or_else(|| weak_into(rhs, lhs)).unwrap_or(Elem::Unknown)
    }

    fn promotion_error(
        &mut self,
        error: PromotionError,
        types: (DType, DType),
        at: FileRange,
        places: Places,
    ) -> Stop {
        let (x, y) = types;
        let message = match error {
            PromotionError::Incompatible => format!("`{x}` and `{y}` have no common type"),
            PromotionError::Signedness => {
                format!("cannot divide `{x}` and `{y}`: one is signed, the other is not")
            }
        };
        let diagnostic = Diagnostic::new(Code::BadOperand, at, message)
            .with_related(places.0, format!("this is `{x}`"))
            .with_related(places.1, format!("this is `{y}`"))
            .with_note("convert one of them with `.to(...)`");
        self.emit_diagnostic(diagnostic)
    }

    fn check_literal(&mut self, side: &Side, dtype: DType, at: FileRange) -> Eval<()> {
        let value = match &side.literal {
            Some(Const::Int(value)) => *value,
            Some(Const::Bool(value)) => i128::from(*value),
            _ => return Ok(()),
        };
        let Some((min, max)) = dtype.int_range() else { return Ok(()) };
        if (min..=max).contains(&value) {
            return Ok(());
        }
        let message = if value < 0 && dtype.is_unsigned() {
            format!(
                "the negative number {value} cannot be combined with the unsigned type `{dtype}`"
            )
        } else {
            format!("{value} is out of the range of `{dtype}`")
        };
        Err(self.error(Code::IntegerRange, at, message))
    }

    fn convert_side(&mut self, side: Side, dtype: DType, at: FileRange) -> Eval<Tensor> {
        match &side.literal {
            Some(literal) if !literal.is_symbol() => {
                self.check_small_constant(literal, dtype, at)?;
                Ok(self.scalar_constant(literal, dtype))
            }
            _ => self.cast(&side.tensor, Elem::Num(dtype), at),
        }
    }

    /// Triton 3.6 makes no constants of 8-bit floats but zero.
    pub(super) fn check_small_constant(
        &mut self,
        literal: &Const,
        dtype: DType,
        at: FileRange,
    ) -> Eval<()> {
        if self.is_3_9() || !dtype.is_fp8() || literal.truth() == Some(false) {
            return Ok(());
        }
        let message = format!("Triton 3.6 has no constants of type `{dtype}` but zero");
        let diagnostic = Diagnostic::new(Code::BadOperand, at, message)
            .with_note("cast the other operand with `.to(tl.float32)` first");
        Err(self.emit_diagnostic(diagnostic))
    }

    fn pointer_arithmetic(
        &mut self,
        op: BinaryOp,
        lhs: Side,
        rhs: Side,
        at: FileRange,
        places: Places,
    ) -> Eval<Tensor> {
        let (left_elem, right_elem) = (lhs.tensor.elem, rhs.tensor.elem);
        if left_elem.is_ptr() && right_elem.is_ptr() {
            let verb = if op == BinaryOp::Add { "added" } else { "combined" };
            let message = format!("pointers cannot be {verb}");
            return Err(self.error(Code::PointerArithmetic, at, message));
        }
        let forward = left_elem.is_ptr();
        let allowed = op == BinaryOp::Add || (op == BinaryOp::Sub && forward);
        let (pointer, offset) = if forward { (lhs, rhs) } else { (rhs, lhs) };
        let offset_at = if forward { places.1 } else { places.0 };
        if !allowed {
            let message = format!(
                "`{}` is not defined for pointers; only integers can be added or subtracted",
                op.symbol()
            );
            return Err(self.error(Code::PointerArithmetic, at, message));
        }
        if let Elem::Num(dtype) = offset.tensor.elem
            && dtype.is_float()
        {
            let diagnostic = Diagnostic::new(
                Code::PointerArithmetic,
                at,
                format!("a pointer moves by integers, not by `{dtype}`"),
            )
            .with_related(offset_at, format!("this offset is `{dtype}`"));
            return Err(self.emit_diagnostic(diagnostic));
        }
        let count = match (&offset.literal, offset.tensor.elem) {
            (Some(literal), Elem::Num(dtype)) if !literal.is_symbol() => {
                self.scalar_constant(literal, dtype)
            }
            _ => offset.tensor,
        };
        let count = self.offset_for_pointer(count, op == BinaryOp::Sub, offset_at)?;
        let (ptr, count) = self.broadcast(&pointer.tensor, &count, at, places)?;
        let origin = ptr.origin;
        let result =
            self.op(Opcode::PtrAdd, &[&ptr, &count], Attrs::None, ptr.elem, ptr.shape.clone());
        Ok(Tensor { origin, ..result })
    }

    /// Unsigned offsets are zero-extended; `ptr - n` moves by the negation.
    fn offset_for_pointer(&mut self, count: Tensor, negate: bool, at: FileRange) -> Eval<Tensor> {
        let mut count = count;
        if negate {
            count = self.negate(&count);
        }
        match count.elem {
            Elem::Num(dtype) if dtype.is_unsigned() && dtype.bits() < 64 => {
                self.cast(&count, Elem::Num(DType::Int64), at)
            }
            _ => Ok(count),
        }
    }

    /// `0 - value`.
    fn negate(&mut self, value: &Tensor) -> Tensor {
        let Elem::Num(dtype) = value.elem else { return Tensor { ir: None, ..value.clone() } };
        let zero = self.int_constant(0, dtype);
        let zero = self.expand_to(&zero, &value.shape);
        let opcode = if dtype.is_float() { Opcode::FSub } else { Opcode::Sub };
        self.op(opcode, &[&zero, value], Attrs::None, value.elem, value.shape.clone())
    }

    /// `-x`, `~x`, `not x`, `+x` on a tensor.
    pub(super) fn tensor_unary(
        &mut self,
        op: UnaryOp,
        tensor: &Tensor,
        at: FileRange,
    ) -> Eval<Tensor> {
        match op {
            UnaryOp::Plus => {
                let message = "unary `+` is not defined for tensors";
                Err(self.error(Code::BadOperand, at, message))
            }
            UnaryOp::Minus if tensor.elem.is_ptr() => {
                Err(self.error(Code::PointerArithmetic, at, "a pointer cannot be negated"))
            }
            UnaryOp::Minus if self.is_3_9() && tensor.elem.num().is_some_and(DType::is_float) => {
                Ok(self.op(Opcode::FNeg, &[tensor], Attrs::None, tensor.elem, tensor.shape.clone()))
            }
            UnaryOp::Minus => Ok(self.negate(tensor)),
            UnaryOp::Invert => self.invert(tensor, at),
            UnaryOp::Not => {
                let bits = self.single_bits(tensor, "not", at)?;
                self.invert(&bits, at)
            }
        }
    }

    fn invert(&mut self, tensor: &Tensor, at: FileRange) -> Eval<Tensor> {
        match tensor.elem {
            Elem::Num(dtype) if dtype.is_int() => {
                let ones = self.int_constant(-1, dtype);
                let ones = self.expand_to(&ones, &tensor.shape);
                Ok(self.op(
                    Opcode::Xor,
                    &[tensor, &ones],
                    Attrs::None,
                    tensor.elem,
                    tensor.shape.clone(),
                ))
            }
            Elem::Unknown => Ok(Tensor { ir: None, ..tensor.clone() }),
            elem => {
                let message = format!("`~` needs integers, not `{elem}`");
                Err(self.error(Code::BadOperand, at, message))
            }
        }
    }

    /// Operands of `and`, `or` and `not` are reinterpreted as single bits, so only `int1` fits.
    fn single_bits(&mut self, tensor: &Tensor, what: &str, at: FileRange) -> Eval<Tensor> {
        match tensor.elem {
            Elem::Num(DType::Int1) => Ok(tensor.clone()),
            Elem::Unknown => Ok(Tensor { elem: Elem::BOOL, ir: None, ..tensor.clone() }),
            Elem::Ptr(_) => self.cast(tensor, Elem::BOOL, at),
            elem => {
                let diagnostic = Diagnostic::new(
                    Code::BadOperand,
                    at,
                    format!("`{what}` needs `int1`, not `{elem}`"),
                )
                .with_note("compare with zero: `x != 0`");
                Err(self.emit_diagnostic(diagnostic))
            }
        }
    }

    /// `left and right` or `left or right` on tensors.
    pub(super) fn logical(
        &mut self,
        and: bool,
        left: &Tensor,
        right: &Tensor,
        at: FileRange,
    ) -> Eval<Tensor> {
        let what = if and { "and" } else { "or" };
        let x = self.single_bits(left, what, at)?;
        let y = self.single_bits(right, what, at)?;
        let (x, y) = self.broadcast(&x, &y, at, (at, at))?;
        let opcode = if and { Opcode::And } else { Opcode::Or };
        Ok(self.op(opcode, &[&x, &y], Attrs::None, Elem::BOOL, x.shape.clone()))
    }

    /// A comparison of which at least one side is a tensor.
    pub(super) fn compare_tensors(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: Places,
    ) -> Value {
        // What may be a number known at launch is compared then, or at run time.
        if may_be_const(left) && may_be_const(right) {
            return Value::Tensor(Tensor::anything(Shape::unknown(), Origin::NONE));
        }
        self.try_compare(op, left, right, at, places).map_or(Value::Unknown, Value::Tensor)
    }

    fn try_compare(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: Places,
    ) -> Eval<Tensor> {
        let mut lhs = self.side(left, places.0)?;
        let mut rhs = self.side(right, places.1)?;
        if !self.is_3_9() {
            // Literals do not yield in comparisons of Triton 3.6.
            lhs = self.strengthen(lhs);
            rhs = self.strengthen(rhs);
        }
        if lhs.tensor.elem.is_ptr() || rhs.tensor.elem.is_ptr() {
            let diagnostic =
                Diagnostic::new(Code::PointerArithmetic, at, "pointers cannot be compared")
                    .with_note(
                        "convert with `.to(tl.int64)`, or test an optional argument with `is None`",
                    );
            return Err(self.emit_diagnostic(diagnostic));
        }
        let (x, y) = self.promote_sides(lhs, rhs, false, at, places)?;
        let (x, y) = self.broadcast(&x, &y, at, places)?;
        match x.elem {
            Elem::Num(dtype) => Ok(self.compare_numbers(op, &x, &y, dtype)),
            _ => Ok(Tensor { elem: Elem::BOOL, ir: None, ..x }),
        }
    }

    /// A comparison of numbers of one type and shape.
    pub(super) fn compare_numbers(
        &mut self,
        op: CompareOp,
        x: &Tensor,
        y: &Tensor,
        dtype: DType,
    ) -> Tensor {
        let shape = x.shape.clone();
        if dtype.is_float() {
            let predicate = match op {
                CompareOp::Eq => FloatPredicate::Oeq,
                CompareOp::Ne => FloatPredicate::Une,
                CompareOp::Lt => FloatPredicate::Olt,
                CompareOp::Le => FloatPredicate::Ole,
                CompareOp::Gt => FloatPredicate::Ogt,
                _ => FloatPredicate::Oge,
            };
            let attrs = ir::FloatCompare { predicate };
            return self.op(Opcode::FCmp, &[x, y], attrs, Elem::BOOL, shape);
        }
        let predicate = match (op, dtype.is_signed()) {
            (CompareOp::Eq, _) => IntPredicate::Eq,
            (CompareOp::Ne, _) => IntPredicate::Ne,
            (CompareOp::Lt, true) => IntPredicate::Slt,
            (CompareOp::Le, true) => IntPredicate::Sle,
            (CompareOp::Gt, true) => IntPredicate::Sgt,
            (_, true) => IntPredicate::Sge,
            (CompareOp::Lt, false) => IntPredicate::Ult,
            (CompareOp::Le, false) => IntPredicate::Ule,
            (CompareOp::Gt, false) => IntPredicate::Ugt,
            (_, false) => IntPredicate::Uge,
        };
        let attrs = ir::IntCompare { predicate };
        self.op(Opcode::Cmp, &[x, y], attrs, Elem::BOOL, shape)
    }

    /// Promotes and broadcasts two operands of a builtin. In Triton 3.6 literals are strong
    /// there; with `weak` they yield to tensors as in operators.
    pub(super) fn promote_pair(
        &mut self,
        left: &Value,
        right: &Value,
        weak: bool,
        at: FileRange,
        places: Places,
    ) -> Eval<(Tensor, Tensor)> {
        let (mut lhs, mut rhs) = (self.side(left, places.0)?, self.side(right, places.1)?);
        if lhs.tensor.elem.is_ptr() || rhs.tensor.elem.is_ptr() {
            return self.pointer_pair(lhs, rhs, at, places);
        }
        if !weak {
            lhs = self.strengthen(lhs);
            rhs = self.strengthen(rhs);
        }
        let (x, y) = self.promote_sides(lhs, rhs, false, at, places)?;
        self.broadcast(&x, &y, at, places)
    }

    /// Promotes and broadcasts two operands as `/` does; literals yield.
    pub(super) fn promote_quotient(
        &mut self,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: Places,
    ) -> Eval<(Tensor, Tensor)> {
        let (lhs, rhs) = (self.side(left, places.0)?, self.side(right, places.1)?);
        if lhs.tensor.elem.is_ptr() || rhs.tensor.elem.is_ptr() {
            return self.pointer_pair(lhs, rhs, at, places);
        }
        let (x, y) = self.promote_sides(lhs, rhs, true, at, places)?;
        self.broadcast(&x, &y, at, places)
    }

    /// Makes the literal of an operand a tensor of its own type.
    fn strengthen(&mut self, side: Side) -> Side {
        match (&side.literal, side.tensor.elem) {
            (Some(literal), Elem::Num(dtype)) if !literal.is_symbol() => {
                let tensor = self.scalar_constant(literal, dtype);
                Side { tensor, literal: None }
            }
            _ => side,
        }
    }

    fn pointer_pair(
        &mut self,
        lhs: Side,
        rhs: Side,
        at: FileRange,
        places: Places,
    ) -> Eval<(Tensor, Tensor)> {
        let (x, y) = (lhs.tensor, rhs.tensor);
        if x.elem != y.elem && !x.elem.is_unknown() && !y.elem.is_unknown() {
            let message = format!("`{}` and `{}` have no common type", x.elem, y.elem);
            return Err(self.error(Code::PointerArithmetic, at, message));
        }
        self.broadcast(&x, &y, at, places)
    }

    /// The common type of integers, for loop bounds.
    pub(super) fn common_integer(&self, types: [DType; 3]) -> DType {
        promote_integers(promote_integers(types[0], types[1]), types[2])
    }

    /// A tensor of known type and shape of which no IR exists.
    pub(super) fn plain(&self, elem: Elem, shape: Shape) -> Tensor {
        Tensor::new(elem, shape)
    }
}

/// Where a float goes into the result of an operator on numbers, of which one is not known.
fn float_operand(
    op: BinaryOp,
    (lhs, rhs): (&Side, &Side),
    at: FileRange,
    places: Places,
) -> Option<FileRange> {
    let float = |side: &Side, place: FileRange| match side.tensor.elem {
        Elem::Num(dtype) => (dtype.is_float() && !is_symbol(side)).then_some(place),
        Elem::Unknown => side.tensor.float,
        _ => None,
    };
    // A quotient is a float, whatever is divided.
    let divided = (op == BinaryOp::Div).then_some(at);
    divided.or_else(|| float(lhs, places.0)).or_else(|| float(rhs, places.1))
}

/// Whether an operand is a compile-time number that is not known.
fn is_symbol(side: &Side) -> bool {
    side.literal.as_ref().is_some_and(Const::is_symbol)
}

/// True for compile-time values, and for arguments that may be one at launch.
fn may_be_const(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.is_open(),
        _ => true,
    }
}

/// The name between the underscores of the method that defines an operator.
fn method_name(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::Div => "truediv",
        BinaryOp::FloorDiv => "floordiv",
        BinaryOp::Mod => "mod",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
        BinaryOp::Shl => "lshift",
        BinaryOp::Shr => "rshift",
        _ => return None,
    })
}
