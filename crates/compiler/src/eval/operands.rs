//! Operands of operators on tensors: literals that have no type yet, and the type in which two
//! operands are computed.

use super::dtype::{DType, Elem};
use super::promote::{Operand, PromotionError, promote, promote_integers};
use super::report::a;
use super::value::{Const, Tensor, Value};
use super::{Eval, Evaluator, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::FileRange;

/// An operand before promotion: a tensor, and the compile-time number it comes from.
pub(super) struct Side {
    pub(super) tensor: Tensor,
    pub(super) literal: Option<Const>,
}

/// Where the operands of an operator stand.
pub(super) type Places = (FileRange, FileRange);

impl Evaluator<'_> {
    /// An operand of an operator as a tensor that remembers its literal.
    pub(super) fn side(&mut self, value: &Value, at: FileRange) -> Eval<Side> {
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

    /// Converts two operands to the type they are computed in.
    pub(super) fn promote_sides(
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

    /// Makes the literal of an operand a tensor of its own type.
    pub(super) fn strengthen(&mut self, side: Side) -> Side {
        match (&side.literal, side.tensor.elem) {
            (Some(literal), Elem::Num(dtype)) if !literal.is_symbol() => {
                let tensor = self.scalar_constant(literal, dtype);
                Side { tensor, literal: None }
            }
            _ => side,
        }
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
}

/// Whether an operand is a compile-time number that is not known.
pub(super) fn is_symbol(side: &Side) -> bool {
    side.literal.as_ref().is_some_and(Const::is_symbol)
}
