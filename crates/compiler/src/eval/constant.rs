//! Arithmetic on compile-time values, as Python does it.

use super::Evaluator;
use super::dtype::Elem;
use super::symbolic::{Sym, floor_div};
use super::value::{Const, Value};
use crate::hir::{BinaryOp, CompareOp, Literal, UnaryOp};

/// What stands for a literal of bytes.
const BYTES: &str = "bytes";

/// What stands for an imaginary literal.
const IMAGINARY: &str = "a complex number";

/// The value of a literal.
pub(super) fn literal(literal: &Literal) -> Value {
    match literal {
        Literal::Int(value) => Value::int(value.get()),
        Literal::BigInt(_) => Value::Unknown,
        Literal::Bytes => Value::Const(Const::Opaque(BYTES.into())),
        Literal::Imaginary => Value::Const(Const::Opaque(IMAGINARY.into())),
        Literal::Float(bits) => Value::Const(Const::Float(f64::from_bits(*bits))),
        Literal::Bool(value) => Value::bool(*value),
        Literal::None => Value::NONE,
        Literal::Str(text) => Value::str(text.clone()),
        Literal::Ellipsis => Value::Const(Const::Ellipsis),
    }
}

/// A number of Python: integers (and bools) are exact.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    fn of(value: &Const) -> Option<Number> {
        match value {
            Const::Int(value) => Some(Number::Int(*value)),
            Const::Bool(value) => Some(Number::Int(i128::from(*value))),
            Const::Float(value) => Some(Number::Float(*value)),
            Const::Member(member) => Number::of(member.plain()?),
            _ => None,
        }
    }

    fn float(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

/// Copies of a string at most that `*` makes.
const MAX_REPEATS: usize = 4096;

impl Evaluator<'_> {
    /// `a op b` on compile-time values; `None` when Python has no such operation.
    pub(super) fn const_binary(&mut self, op: BinaryOp, a: &Const, b: &Const) -> Option<Const> {
        if let (Const::Str(left), Const::Str(right), BinaryOp::Add) = (a, b, op) {
            return Some(Const::Str(format!("{left}{right}").into()));
        }
        if let (Const::Str(text), Const::Int(count), BinaryOp::Mul)
        | (Const::Int(count), Const::Str(text), BinaryOp::Mul) = (a, b, op)
        {
            let count = usize::try_from(*count).unwrap_or(0).min(MAX_REPEATS);
            return Some(Const::Str(text.repeat(count).into()));
        }
        if let (Some(left), Some(right)) = (Number::of(a), Number::of(b)) {
            let bools = matches!((a, b), (Const::Bool(_), Const::Bool(_)));
            let result = number_binary(op, left, right, bools);
            let is_large = result.is_none() && may_be_large(op, left, right);
            return result.or_else(|| is_large.then(|| Const::Symbol(self.fresh_symbol())));
        }
        if let (Const::Member(left), Const::Member(right)) = (a, b) {
            return self.combine_flags(op, left, right);
        }
        if !(a.is_symbol() || b.is_symbol()) {
            return None;
        }
        let symbolic = match (a.to_sym(), b.to_sym()) {
            (Some(left), Some(right)) => sym_binary(op, &left, &right),
            _ => None,
        };
        Some(match symbolic {
            Some(result) => Const::from_sym(result),
            None => Const::Symbol(self.fresh_symbol()),
        })
    }

    /// A unary operator on a compile-time value; `None` when Python has no such operation.
    pub(super) fn const_unary(&mut self, op: UnaryOp, value: &Const) -> Option<Const> {
        Some(match (op, value) {
            (UnaryOp::Not, value) => match value.truth() {
                Some(truth) => Const::Bool(!truth),
                None => Const::Symbol(self.fresh_symbol()),
            },
            (UnaryOp::Plus, Const::Bool(value)) => Const::Int(i128::from(*value)),
            (UnaryOp::Plus, Const::Int(_) | Const::Float(_) | Const::Symbol(_)) => value.clone(),
            (UnaryOp::Minus, Const::Int(value)) => Const::Int(value.checked_neg()?),
            (UnaryOp::Minus, Const::Bool(value)) => Const::Int(-i128::from(*value)),
            (UnaryOp::Minus, Const::Float(value)) => Const::Float(-value),
            (UnaryOp::Minus, Const::Symbol(sym)) => Const::from_sym(Sym::Int(0).sub(sym)),
            (UnaryOp::Invert, Const::Int(value)) => Const::Int(!value),
            (UnaryOp::Invert, Const::Bool(value)) => Const::Int(!i128::from(*value)),
            (UnaryOp::Invert, Const::Member(member)) => return self.invert_flags(member),
            (UnaryOp::Invert, Const::Symbol(_)) => Const::Symbol(self.fresh_symbol()),
            _ => return None,
        })
    }
}

fn sym_binary(op: BinaryOp, a: &Sym, b: &Sym) -> Option<Sym> {
    Some(match op {
        BinaryOp::Add => a.add(b),
        BinaryOp::Sub => a.sub(b),
        BinaryOp::Mul => a.mul(b),
        BinaryOp::FloorDiv => a.floor_div(b)?,
        BinaryOp::Mod => a.opaque("%", b),
        BinaryOp::Shl => a.opaque("<<", b),
        BinaryOp::Shr => a.opaque(">>", b),
        BinaryOp::Pow => match b {
            Sym::Int(2) => a.mul(a),
            _ => a.opaque("**", b),
        },
        BinaryOp::And => a.opaque("&", b),
        BinaryOp::Or => a.opaque("|", b),
        BinaryOp::Xor => a.opaque("^", b),
        BinaryOp::Div => a.opaque("/", b),
        BinaryOp::MatMul => return None,
    })
}

/// Whether an operation on numbers has a result, which may have more bits than are followed here.
fn may_be_large(op: BinaryOp, a: Number, b: Number) -> bool {
    match (op, a, b) {
        (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, Number::Int(_), Number::Int(_)) => true,
        (BinaryOp::Shl | BinaryOp::Pow, Number::Int(_), Number::Int(exponent)) => exponent >= 0,
        _ => false,
    }
}

fn number_binary(op: BinaryOp, a: Number, b: Number, bools: bool) -> Option<Const> {
    if let (Number::Int(x), Number::Int(y)) = (a, b) {
        return int_binary(op, x, y, bools);
    }
    let (x, y) = (a.float(), b.float());
    Some(Const::Float(match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div if y != 0.0 => x / y,
        BinaryOp::FloorDiv if y != 0.0 => (x / y).floor(),
        BinaryOp::Mod if y != 0.0 => x - (x / y).floor() * y,
        BinaryOp::Pow => x.powf(y),
        _ => return None,
    }))
}

fn int_binary(op: BinaryOp, x: i128, y: i128, bools: bool) -> Option<Const> {
    let shift = || u32::try_from(y).ok().filter(|&amount| amount < 127);
    let logical = |value: i128| if bools { Const::Bool(value != 0) } else { Const::Int(value) };
    Some(match op {
        BinaryOp::Add => Const::Int(x.checked_add(y)?),
        BinaryOp::Sub => Const::Int(x.checked_sub(y)?),
        BinaryOp::Mul => Const::Int(x.checked_mul(y)?),
        BinaryOp::Div if y != 0 => Const::Float(x as f64 / y as f64),
        BinaryOp::FloorDiv if y != 0 => Const::Int(floor_div(x, y)),
        BinaryOp::Mod if y != 0 => Const::Int(x - floor_div(x, y) * y),
        BinaryOp::Pow if y >= 0 => Const::Int(x.checked_pow(u32::try_from(y).ok()?)?),
        BinaryOp::Pow => Const::Float((x as f64).powf(y as f64)),
        BinaryOp::Shl => Const::Int(x.checked_mul(1i128.checked_shl(shift()?)?)?),
        BinaryOp::Shr => Const::Int(x >> shift().unwrap_or(127)),
        BinaryOp::And => logical(x & y),
        BinaryOp::Or => logical(x | y),
        BinaryOp::Xor => logical(x ^ y),
        _ => return None,
    })
}

/// A comparison of two compile-time values; `None` when it is not known or not defined.
pub(super) fn compare_consts(op: CompareOp, a: &Const, b: &Const) -> Option<bool> {
    use std::cmp::Ordering;
    let equality = |same: bool| match op {
        CompareOp::Eq | CompareOp::Is => Some(same),
        CompareOp::Ne | CompareOp::IsNot => Some(!same),
        _ => None,
    };
    if let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) {
        let ordering = match (x, y) {
            (Number::Int(x), Number::Int(y)) => Some(x.cmp(&y)),
            _ => x.float().partial_cmp(&y.float()),
        };
        return Some(match op {
            CompareOp::Eq | CompareOp::Is => ordering == Some(Ordering::Equal),
            CompareOp::Ne | CompareOp::IsNot => ordering != Some(Ordering::Equal),
            CompareOp::Lt => ordering == Some(Ordering::Less),
            CompareOp::Le => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
            CompareOp::Gt => ordering == Some(Ordering::Greater),
            CompareOp::Ge => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
            _ => return None,
        });
    }
    match (a, b) {
        (Const::Symbol(x), Const::Symbol(y)) if x == y && !x.is_opaque() => match op {
            CompareOp::Eq | CompareOp::Le | CompareOp::Ge => Some(true),
            CompareOp::Ne | CompareOp::Lt | CompareOp::Gt => Some(false),
            _ => None,
        },
        (Const::Symbol(_), _) | (_, Const::Symbol(_)) => None,
        (Const::Str(x), Const::Str(y)) => equality(x == y).or(match op {
            CompareOp::Lt => Some(x < y),
            CompareOp::Le => Some(x <= y),
            CompareOp::Gt => Some(x > y),
            CompareOp::Ge => Some(x >= y),
            _ => None,
        }),
        (Const::DType(x), Const::DType(y)) => match (x, y) {
            (Elem::Unknown, _) | (_, Elem::Unknown) => None,
            _ => equality(x == y),
        },
        (Const::TorchDType(x), Const::TorchDType(y)) => equality(x == y),
        (Const::BlockType(x, m), Const::BlockType(y, n)) => equality(x == y && m == n),
        (Const::DescriptorType(x, m), Const::DescriptorType(y, n)) => equality(x == y && m == n),
        (Const::Enum(x), Const::Enum(y)) => equality(x == y),
        (Const::Member(x), Const::Member(y)) => equality(x.is_same(y)),
        (Const::None, Const::None) => equality(true),
        // Literals of Python's other types are not told apart.
        (Const::Opaque(x), Const::Opaque(y)) if [BYTES, IMAGINARY].contains(&&**x) && x == y => {
            None
        }
        (Const::Opaque(x), Const::Opaque(y)) => equality(x == y),
        _ => equality(false),
    }
}
