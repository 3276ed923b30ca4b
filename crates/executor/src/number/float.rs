//! Floating formats and the conversions between them.

use bytemuck::{Pod, Zeroable};

use super::Real;

/// IEEE half precision, by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct F16(pub u16);

/// Brain float, by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct BF16(pub u16);

/// 8-bit float with 5 exponent and 2 mantissa bits, by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct E5M2(pub u8);

/// 8-bit float with 4 exponent and 3 mantissa bits and no infinities, by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct E4M3(pub u8);

/// 8-bit float with 4 exponent bits of bias 15, 3 mantissa bits, neither infinities nor NaN, by
/// its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct E4B15(pub u8);

/// A floating format that tiles can hold.
pub trait Float: Pod + Send + Sync {
    /// The native type that arithmetic is done in.
    type Wide: Real;

    /// The value, exactly.
    fn widen(self) -> Self::Wide;

    /// The nearest value, ties to even. The 8-bit formats saturate, as conversions of sm_89 and
    /// later do.
    fn narrow(wide: Self::Wide) -> Self;

    /// The value as `f32`: exact for every type but `f64`.
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.to_f64() as f32
    }

    /// The nearest value of an `f32`.
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Self::from_f64(f64::from(value))
    }

    /// The nearest value of an `f64`, rounded once.
    fn from_f64(value: f64) -> Self;

    /// The nearest value of an integer of at most 64 bits, rounded once.
    fn from_int(value: i128) -> Self;

    /// The next value toward zero.
    fn toward_zero(value: f64) -> Self;

    /// The value, exactly.
    fn to_f64(self) -> f64;

    /// `a * b + c`, rounded once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
}

impl Float for f32 {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f32) -> f32 {
        wide
    }
    #[inline(always)]
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
    #[inline(always)]
    fn from_int(value: i128) -> f32 {
        match i32::try_from(value) {
            Ok(value) => value as f32,
            Err(_) => value as f32,
        }
    }
    #[inline(always)]
    fn toward_zero(value: f64) -> f32 {
        f32_toward_zero(value)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        fma_odd(a, b, c) as f32
    }
}

impl Float for f64 {
    type Wide = f64;

    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f64) -> f64 {
        wide
    }
    #[inline(always)]
    fn from_f64(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn from_int(value: i128) -> f64 {
        value as f64
    }
    #[inline(always)]
    fn toward_zero(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn fma(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

macro_rules! narrow_float {
    ($ty:ident, $decode:path, $nearest:path, $zero:path) => {
        impl Float for $ty {
            type Wide = f32;

            #[inline(always)]
            fn widen(self) -> f32 {
                $decode(self.0)
            }
            #[inline(always)]
            fn narrow(wide: f32) -> $ty {
                $ty($nearest(wide))
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $decode(self.0)
            }
            #[inline(always)]
            fn from_f32(value: f32) -> $ty {
                $ty($nearest(value))
            }
            #[inline(always)]
            fn from_f64(value: f64) -> $ty {
                $ty($nearest(f32_to_odd(value)))
            }
            #[inline(always)]
            fn from_int(value: i128) -> $ty {
                $ty::from_f64(int_to_odd(value))
            }
            #[inline(always)]
            fn toward_zero(value: f64) -> $ty {
                $ty($zero(f32_toward_zero(value)))
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self.widen())
            }
            #[inline(always)]
            fn fma(a: $ty, b: $ty, c: $ty) -> $ty {
                $ty::from_f64(fma_odd(a.widen(), b.widen(), c.widen()))
            }
        }
    };
}

narrow_float!(F16, f16_to_f32, f32_to_f16, f32_to_f16_toward_zero);
narrow_float!(BF16, bf16_to_f32, f32_to_bf16, f32_to_bf16_toward_zero);
narrow_float!(E5M2, e5m2_to_f32, f32_to_e5m2, f32_to_e5m2_toward_zero);
narrow_float!(E4M3, e4m3_to_f32, f32_to_e4m3, f32_to_e4m3_toward_zero);
narrow_float!(E4B15, e4b15_to_f32, f32_to_e4b15, f32_to_e4b15_toward_zero);

/// The next `f32` toward zero. A finite value never becomes infinite.
fn f32_toward_zero(value: f64) -> f32 {
    let nearest = value as f32;
    let grew = f64::from(nearest).abs() > value.abs();
    f32::from_bits(nearest.to_bits() - u32::from(grew))
}

/// Rounds to odd: toward zero, then sets the last bit if that was inexact. Rounding the result to
/// nearest in a format with at least two digits less is then rounding `value` once
/// (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
/// rounding to odd", 2008).
fn f32_to_odd(value: f64) -> f32 {
    let down = f32_toward_zero(value);
    let inexact = f64::from(down) != value && !value.is_nan();
    f32::from_bits(down.to_bits() | u32::from(inexact))
}

/// As [`f32_to_odd`], from an integer of at most 64 bits to `f64`.
fn int_to_odd(value: i128) -> f64 {
    let nearest = value as f64;
    let grew = (nearest as i128).abs() > value.abs();
    let down = nearest.to_bits() - u64::from(grew);
    f64::from_bits(down | u64::from(f64::from_bits(down) as i128 != value))
}

/// `a * b + c` in `f64`, rounded to odd, so that any later rounding to `f32` or less is the only
/// one.
#[inline(always)]
fn fma_odd(a: f32, b: f32, c: f32) -> f64 {
    // 24 + 24 digits fit in 53: the product is exact.
    let product = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    let sum = product + c;
    // The error of a sum is itself an f64 (Knuth's TwoSum).
    let virtual_c = sum - product;
    let error = (product - (sum - virtual_c)) + (c - virtual_c);
    let even = sum.to_bits() & 1 == 0;
    if error != 0.0 && even && sum.is_finite() {
        let outward = (error > 0.0) == (sum > 0.0);
        f64::from_bits(if outward { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
    } else {
        sum
    }
}

#[inline(always)]
fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let shifted = u32::from(bits & 0x7fff) << 13;
    // Rebiasing by a multiplication also normalizes subnormals.
    let rebias = f32::from_bits((127 + 112) << 23);
    let finite = (f32::from_bits(shifted) * rebias).to_bits();
    let special = bits & 0x7c00 == 0x7c00;
    f32::from_bits(sign | if special { shifted | 0x7f80_0000 } else { finite })
}

#[inline(always)]
fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let abs = bits & 0x7fff_ffff;
    let rebiased = abs.wrapping_sub(112 << 23);
    let normal = rebiased.wrapping_add(0xfff + ((rebiased >> 13) & 1)) >> 13;
    // The spacing of f32 just above one half is that of the subnormals: the addition rounds.
    let subnormal = (f32::from_bits(abs) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if abs < 0x3880_0000 { subnormal } else { normal };
    let magnitude = if abs > 0x7f80_0000 {
        return 0x7fff;
    } else if abs >= 0x4780_0000 {
        0x7c00
    } else {
        finite as u16
    };
    sign | magnitude
}

fn f32_to_f16_toward_zero(value: f32) -> u16 {
    let nearest = f32_to_f16(value);
    step_back(nearest, f16_to_f32(nearest).abs() > value.abs())
}

#[inline(always)]
fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline(always)]
fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if value.is_nan() { 0x7fff } else { rounded as u16 }
}

fn f32_to_bf16_toward_zero(value: f32) -> u16 {
    let nearest = f32_to_bf16(value);
    step_back(nearest, bf16_to_f32(nearest).abs() > value.abs())
}

/// One value nearer to zero if `grew`: magnitudes are ordered as their bits.
fn step_back(bits: u16, grew: bool) -> u16 {
    bits - u16::from(grew)
}

#[inline(always)]
fn e5m2_to_f32(bits: u8) -> f32 {
    f16_to_f32(u16::from(bits) << 8)
}

fn f32_to_e5m2(value: f32) -> u8 {
    const LARGEST: u8 = 0x7b;
    nearest_small(value, 2, 15, LARGEST)
}

fn f32_to_e5m2_toward_zero(value: f32) -> u8 {
    let nearest = f32_to_e5m2(value);
    nearest - u8::from(e5m2_to_f32(nearest).abs() > value.abs())
}

#[inline(always)]
fn e4m3_to_f32(bits: u8) -> f32 {
    static VALUES: [f32; 256] = e4m3_values();
    VALUES[usize::from(bits)]
}

const fn e4m3_values() -> [f32; 256] {
    let mut values = [0.0; 256];
    let mut bits = 0;
    while bits < 256 {
        let exponent = (bits >> 3 & 15) as u32;
        let mantissa = (bits & 7) as f32;
        let magnitude = if bits & 0x7f == 0x7f {
            f32::NAN
        } else if exponent == 0 {
            mantissa / 512.0
        } else {
            f32::from_bits((exponent + 120) << 23) * (1.0 + mantissa / 8.0)
        };
        values[bits] = if bits & 0x80 == 0 { magnitude } else { -magnitude };
        bits += 1;
    }
    values
}

fn f32_to_e4m3(value: f32) -> u8 {
    const LARGEST: u8 = 0x7e;
    nearest_small(value, 3, 7, LARGEST)
}

fn f32_to_e4m3_toward_zero(value: f32) -> u8 {
    let nearest = f32_to_e4m3(value);
    nearest - u8::from(e4m3_to_f32(nearest).abs() > value.abs())
}

/// Rounds to an 8-bit format of `mantissa` mantissa bits and exponent `bias`, ties to even;
/// magnitudes beyond `largest`, infinity included, become `largest`, and NaN becomes 0x7f.
fn nearest_small(value: f32, mantissa: u32, bias: u32, largest: u8) -> u8 {
    if value.is_nan() {
        return 0x7f;
    }
    let sign = (value.to_bits() >> 24) as u8 & 0x80;
    let abs = value.abs();
    let smallest_normal = f32::from_bits((127 - bias + 1) << 23);
    let magnitude = if abs < smallest_normal {
        let steps_per_one = f32::from_bits((127 + bias - 1 + mantissa) << 23);
        (abs * steps_per_one).round_ties_even() as u32
    } else {
        let shift = 23 - mantissa;
        let rebiased = abs.to_bits() - ((127 - bias) << 23);
        (rebiased + ((1 << (shift - 1)) - 1) + (rebiased >> shift & 1)) >> shift
    };
    sign | magnitude.min(u32::from(largest)) as u8
}

#[inline(always)]
fn e4b15_to_f32(bits: u8) -> f32 {
    let sign = u16::from(bits & 0x80) << 8;
    f16_to_f32(sign | u16::from(bits & 0x7f) << 7)
}

/// As Triton converts: through half precision, clamped to 1.875, then ties away from zero.
fn f32_to_e4b15(value: f32) -> u8 {
    const LARGEST: u16 = 0x3f80;
    let half = f32_to_f16(value);
    let magnitude = (half & 0x7fff).min(LARGEST);
    (half >> 8) as u8 & 0x80 | ((magnitude * 2 + 0x80) >> 8) as u8
}

fn f32_to_e4b15_toward_zero(value: f32) -> u8 {
    let nearest = f32_to_e4b15(value);
    nearest - u8::from(e4b15_to_f32(nearest).abs() > value.abs())
}

#[cfg(test)]
mod tests;
