//! Arithmetic on tensors and pointers, once its operands are tensors or numbers.

use super::dtype::{DType, Elem};
use super::operands::{Places, Side, is_symbol};
use super::value::{Number, Tensor, Value};
use super::{Eval, Evaluator, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, UnaryOp};
use crate::ir::{Attrs, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
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
        let number = number_of(op, (&lhs, &rhs), at, places);
        let (x, y) = self.promote_sides(lhs, rhs, divides, at, places)?;
        let (x, y) = self.broadcast(&x, &y, at, places)?;
        let result = self.arithmetic(op, x, y, left, at)?;
        Ok(match result.elem.is_unknown() {
            true => Tensor { number, ..result },
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
}

/// What the result of an operator is known for where the type of one of its operands is not.
fn number_of(
    op: BinaryOp,
    (lhs, rhs): (&Side, &Side),
    at: FileRange,
    places: Places,
) -> Option<Number> {
    let known = |side: &Side, place: FileRange| match side.tensor.elem {
        _ if is_symbol(side) => None,
        Elem::Num(dtype) if dtype.is_float() => Some(Number::Float(place)),
        Elem::Num(_) => Some(Number::Any),
        _ => side.tensor.number,
    };
    let sides = [known(lhs, places.0), known(rhs, places.1)];
    let is_float = |number: &Number| matches!(number, Number::Float(_));
    // A quotient is a float, whatever is divided.
    let divided = (op == BinaryOp::Div).then_some(Number::Float(at));
    let float = divided.or_else(|| sides.into_iter().flatten().find(is_float));
    // What is not known may be a pointer, to which integers are added.
    let may_be_address = matches!(op, BinaryOp::Add | BinaryOp::Sub) && sides.contains(&None);
    float.or_else(|| (!may_be_address).then_some(Number::Any))
}
