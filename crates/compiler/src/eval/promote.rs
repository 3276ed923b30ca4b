//! Result types of binary operators: the language's promotion rules.

use super::dtype::{DType, Kind};
use crate::builtins::TritonVersion;

/// An operand of a binary operator.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// Its type; for a literal, the type it would have as a tensor.
    pub dtype: DType,
    /// True for a compile-time number, which yields to the tensor's type within its kind.
    pub weak: bool,
}

/// Why two types do not combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromotionError {
    /// One of them is an 8-bit float and the other an integer.
    Incompatible,
    /// `/`, `//` or `%` of a signed and an unsigned integer.
    Signedness,
}

/// The type in which `a` and `b` are computed; `divides` for `/`, `//` and `%`.
///
/// # Errors
/// When the language has no such type.
pub fn promote(
    a: Operand,
    b: Operand,
    divides: bool,
    version: TritonVersion,
) -> Result<DType, PromotionError> {
    if a.weak != b.weak {
        let (weak, strong) = if a.weak { (a.dtype, b.dtype) } else { (b.dtype, a.dtype) };
        if rank(weak) <= rank(strong) {
            return Ok(if divides { division_type(strong, version) } else { strong });
        }
    }
    promote_equals(a.dtype, b.dtype, divides, version)
}

/// Kinds in the order in which a literal yields: bool, integer, float.
fn rank(dtype: DType) -> u8 {
    match dtype.kind() {
        Kind::Bool => 0,
        Kind::Signed | Kind::Unsigned => 1,
        Kind::Float => 2,
    }
}

/// The type in which a float type divides.
fn division_type(dtype: DType, version: TritonVersion) -> DType {
    let narrow = match version {
        TritonVersion::V3_6 => matches!(dtype, DType::Float16 | DType::BFloat16),
        TritonVersion::V3_9 => dtype.is_float() && dtype.bits() < 32,
    };
    if narrow { DType::Float32 } else { dtype }
}

fn promote_equals(
    a: DType,
    b: DType,
    divides: bool,
    version: TritonVersion,
) -> Result<DType, PromotionError> {
    use DType::{BFloat16, Float16, Float32, Float64};
    let either = |dtype| a == dtype || b == dtype;
    if either(Float64) {
        return Ok(Float64);
    }
    if either(Float32) {
        return Ok(Float32);
    }
    if either(Float16) {
        return Ok(if divides { Float32 } else { Float16 });
    }
    if a == BFloat16 && b == BFloat16 {
        return Ok(if divides { Float32 } else { BFloat16 });
    }
    if either(BFloat16) {
        return Ok(Float32);
    }
    if a.is_fp8() && b.is_fp8() {
        let common = if a == b { a } else { Float16 };
        let divided = divides && version == TritonVersion::V3_9;
        return Ok(if divided { Float32 } else { common });
    }
    if a.is_float() || b.is_float() {
        let divided = divides && version == TritonVersion::V3_9;
        return if divided { Ok(Float32) } else { Err(PromotionError::Incompatible) };
    }
    if divides && a.is_signed() != b.is_signed() {
        return Err(PromotionError::Signedness);
    }
    Ok(promote_integers(a, b))
}

/// C's usual arithmetic conversions, without the promotion to `int`.
pub(crate) fn promote_integers(a: DType, b: DType) -> DType {
    match (a.is_signed(), b.is_signed()) {
        (left, right) if left == right => {
            if a.bits() > b.bits() {
                a
            } else {
                b
            }
        }
        (false, _) => {
            if a.bits() >= b.bits() {
                a
            } else {
                b
            }
        }
        (true, _) => {
            if b.bits() >= a.bits() {
                b
            } else {
                a
            }
        }
    }
}

/// The type of an integer literal that becomes a tensor; `None` when it does not fit 64 bits.
pub(crate) fn literal_int(value: i128) -> Option<DType> {
    if (-(1i128 << 31)..1i128 << 31).contains(&value) {
        Some(DType::Int32)
    } else if (1i128 << 31..1i128 << 32).contains(&value) {
        Some(DType::UInt32)
    } else if (-(1i128 << 63)..1i128 << 63).contains(&value) {
        Some(DType::Int64)
    } else if (1i128 << 63..1i128 << 64).contains(&value) {
        Some(DType::UInt64)
    } else {
        None
    }
}

/// The type of a float literal that becomes a tensor.
pub(crate) fn literal_float(value: f64) -> DType {
    let magnitude = value.abs();
    let fits = value.is_nan()
        || magnitude.is_infinite()
        || magnitude == 0.0
        || (2f64.powi(-126)..=f64::from(f32::MAX)).contains(&magnitude);
    if fits { DType::Float32 } else { DType::Float64 }
}
