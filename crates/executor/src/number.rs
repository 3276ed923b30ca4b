//! Numbers as they stand in memory: storage types for every [`Scalar`], exact conversions.
//!
//! Narrow floats are newtypes over their bits. Arithmetic on them is done by widening, computing
//! and narrowing once, which is what hardware does: for sums, products, quotients and square roots
//! `f32` has more than twice the digits of each narrow format, so that rounding twice is rounding
//! once. Rust's own integers are the storage of integers; signedness is in the operation.
//!
//! [`Scalar`]: tile_compiler::ir::Scalar

mod float;
mod int;
mod real;

pub use float::{BF16, E4B15, E4M3, E5M2, F16, Float};
pub use int::{Bit, Int};
pub use real::Real;
use tile_compiler::ir::Scalar;

/// The value of a number of type `scalar` with the given bits; exact except that 64-bit integers
/// round to nearest. Integers are read as signed, `i1` as 0 or 1.
pub fn decode(scalar: Scalar, bits: u64) -> f64 {
    match scalar {
        Scalar::I1 => (bits & 1) as f64,
        Scalar::I8 => f64::from(bits as i8),
        Scalar::I16 => f64::from(bits as i16),
        Scalar::I32 => f64::from(bits as i32),
        Scalar::I64 => bits as i64 as f64,
        Scalar::F8E5 => E5M2(bits as u8).to_f64(),
        Scalar::F8E4NV => E4M3(bits as u8).to_f64(),
        Scalar::F8E4B15 => E4B15(bits as u8).to_f64(),
        Scalar::F16 => F16(bits as u16).to_f64(),
        Scalar::BF16 => BF16(bits as u16).to_f64(),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F64 => f64::from_bits(bits),
    }
}

/// The bits of `value` as a number of type `scalar`: floats round to nearest even, integers
/// truncate toward zero and saturate, signed ones below zero and unsigned ones above it, `i1` is whether the value is
/// not zero.
pub fn encode(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::I1 => u64::from(value != 0.0),
        Scalar::I8 => u64::from((value as i8 as u8).max(value as u8)),
        Scalar::I16 => u64::from((value as i16 as u16).max(value as u16)),
        Scalar::I32 => u64::from((value as i32 as u32).max(value as u32)),
        Scalar::I64 => (value as i64 as u64).max(value as u64),
        Scalar::F8E5 => u64::from(E5M2::from_f64(value).0),
        Scalar::F8E4NV => u64::from(E4M3::from_f64(value).0),
        Scalar::F8E4B15 => u64::from(E4B15::from_f64(value).0),
        Scalar::F16 => u64::from(F16::from_f64(value).0),
        Scalar::BF16 => u64::from(BF16::from_f64(value).0),
        Scalar::F32 => u64::from((value as f32).to_bits()),
        Scalar::F64 => value.to_bits(),
    }
}

/// The sum of two floats of type `scalar`, in bits; `old` if it is no float.
pub(crate) fn add_floats(scalar: Scalar, old: u64, value: u64) -> u64 {
    match scalar {
        Scalar::F64 => (f64::from_bits(old) + f64::from_bits(value)).to_bits(),
        // The sum of two narrower floats is rounded to f32 and then once more, harmlessly.
        _ if scalar.is_float() => {
            let sum = decode(scalar, old) as f32 + decode(scalar, value) as f32;
            encode(scalar, f64::from(sum))
        }
        _ => old,
    }
}
