//! Numbers of host code.

use std::cmp::Ordering;

use crate::hir::BinaryOp;
use crate::host::torch::data;
use crate::host::value::Value;

/// `left op right` of numbers, as Python computes it; unknown for anything else.
pub(crate) fn arithmetic(op: BinaryOp, left: &Value, right: &Value) -> Value {
    match (as_number(left), as_number(right)) {
        (Some(Number::Int(a)), Some(Number::Int(b))) => integers(op, a, b),
        (Some(a), Some(b)) => {
            Value::Float(a.float().zip(b.float()).and_then(|(a, b)| floats(op, a, b)))
        }
        _ => Value::Unknown,
    }
}

/// A number, perhaps known.
pub(crate) enum Number {
    Int(Option<i128>),
    Float(Option<f64>),
}

impl Number {
    /// The number as a float, if it is known.
    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            Number::Int(value) => value.map(|value| value as f64),
            Number::Float(value) => *value,
        }
    }

    /// How two numbers that are known compare, as Python compares them: whole ones exactly. `Some(None)` where one of
    /// them is no number.
    pub(crate) fn order(&self, other: &Number) -> Option<Option<Ordering>> {
        Some(match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some((*a)?.cmp(&(*b)?)),
            (Number::Int(a), Number::Float(b)) if b.is_none_or(|b| b.abs() < LARGEST_INT) => {
                let (a, b) = ((*a)?, (*b)?);
                let with_fraction = if b.fract() == 0.0 { Ordering::Equal } else { Ordering::Less };
                Some(a.cmp(&(b.floor() as i128)).then(with_fraction))
            }
            (Number::Float(_), Number::Int(_)) => other.order(self)?.map(Ordering::reverse),
            _ => self.float()?.partial_cmp(&other.float()?),
        })
    }
}

/// Floats below this are exactly integers here, but for their fraction.
const LARGEST_INT: f64 = 1.0e38;

/// A value as a number, if it is one.
pub(crate) fn as_number(value: &Value) -> Option<Number> {
    Some(match value.plain() {
        Value::Int(value) => Number::Int(*value),
        Value::Bool(value) => Number::Int(value.map(i128::from)),
        Value::Float(value) => Number::Float(*value),
        Value::Address { .. } => Number::Int(None),
        Value::Tensor(tensor) => as_number(&data::item(tensor)?)?,
        _ => return None,
    })
}

/// A number as a float, if it is known.
pub(crate) fn as_float(value: &Value) -> Option<f64> {
    as_number(value)?.float()
}

fn integers(op: BinaryOp, a: Option<i128>, b: Option<i128>) -> Value {
    let (Some(a), Some(b)) = (a, b) else {
        return if op == BinaryOp::Div { Value::Float(None) } else { Value::Int(None) };
    };
    let shift = |b: i128| u32::try_from(b).ok().filter(|bits| *bits < 127);
    Value::Int(match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div => {
            return Value::Float((b != 0).then(|| a as f64 / b as f64));
        }
        BinaryOp::FloorDiv => floor_div(a, b),
        BinaryOp::Mod => {
            floor_div(a, b).and_then(|quotient| a.checked_sub(quotient.checked_mul(b)?))
        }
        BinaryOp::Pow => match u32::try_from(b) {
            Ok(exponent) => a.checked_pow(exponent),
            Err(_) => return Value::Float(Some((a as f64).powf(b as f64))),
        },
        BinaryOp::Shl => shift(b).and_then(|bits| a.checked_mul(1 << bits)),
        BinaryOp::Shr => shift(b).map(|bits| a >> bits),
        BinaryOp::And => Some(a & b),
        BinaryOp::Or => Some(a | b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::MatMul => None,
    })
}

/// Quotient rounded down, as Python's `//` of integers.
fn floor_div(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    let exact = a.checked_rem(b)? == 0;
    Some(if !exact && ((a < 0) != (b < 0)) { quotient - 1 } else { quotient })
}

fn floats(op: BinaryOp, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::FloorDiv => (a / b).floor(),
        BinaryOp::Mod => a - (a / b).floor() * b,
        BinaryOp::Pow => a.powf(b),
        _ => return None,
    })
}
