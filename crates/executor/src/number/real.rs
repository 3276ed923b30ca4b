//! Functions of the two native floating types.
//!
//! `f32` functions are computed in `f64` and rounded, so that they are within half an ulp and a
//! hair, and equal on every machine: nothing here calls the system's mathematics library.

use bytemuck::Pod;

/// `f32` or `f64`.
#[allow(missing_docs, reason = "the names are those of the operations")]
pub trait Real: Pod + Send + Sync + PartialOrd {
    fn add(self, rhs: Self) -> Self;
    fn sub(self, rhs: Self) -> Self;
    fn mul(self, rhs: Self) -> Self;
    fn div(self, rhs: Self) -> Self;
    fn rem(self, rhs: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn log(self) -> Self;
    fn log2(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn sqrt(self) -> Self;
    fn rsqrt(self) -> Self;
    fn erf(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn is_nan(self) -> bool;

    /// The smaller; the one that is a number if the other is NaN. Negative zero is below zero.
    #[inline(always)]
    fn min_number(self, rhs: Self) -> Self {
        if rhs.below(self) || Real::is_nan(self) { rhs } else { self }
    }
    /// The larger; the one that is a number if the other is NaN.
    #[inline(always)]
    fn max_number(self, rhs: Self) -> Self {
        if self.below(rhs) || Real::is_nan(self) { rhs } else { self }
    }
    /// The smaller; NaN if either is.
    #[inline(always)]
    fn min_propagate(self, rhs: Self) -> Self {
        if rhs.below(self) || Real::is_nan(rhs) { rhs } else { self }
    }
    /// The larger; NaN if either is.
    #[inline(always)]
    fn max_propagate(self, rhs: Self) -> Self {
        if self.below(rhs) || Real::is_nan(rhs) { rhs } else { self }
    }
    /// Less, where negative zero is less than zero.
    fn below(self, rhs: Self) -> bool;
}

macro_rules! native_real {
    ($ty:ident { $($name:ident = $value:expr),* $(,)? }) => {
        impl Real for $ty {
            #[inline(always)]
            fn add(self, rhs: $ty) -> $ty { self + rhs }
            #[inline(always)]
            fn sub(self, rhs: $ty) -> $ty { self - rhs }
            #[inline(always)]
            fn mul(self, rhs: $ty) -> $ty { self * rhs }
            #[inline(always)]
            fn div(self, rhs: $ty) -> $ty { self / rhs }
            #[inline(always)]
            fn rem(self, rhs: $ty) -> $ty { self % rhs }
            #[inline(always)]
            fn neg(self) -> $ty { -self }
            #[inline(always)]
            fn abs(self) -> $ty { $ty::abs(self) }
            #[inline(always)]
            fn sqrt(self) -> $ty { $ty::sqrt(self) }
            #[inline(always)]
            fn is_nan(self) -> bool { $ty::is_nan(self) }
            #[inline(always)]
            fn below(self, rhs: $ty) -> bool {
                self < rhs || (self == rhs && self.is_sign_negative() && !rhs.is_sign_negative())
            }
            $( #[inline(always)]
            fn $name(self) -> $ty { $value(self) } )*
        }
    };
}

native_real!(f32 {
    exp = |x: f32| exp_f64(f64::from(x)) as f32,
    exp2 = |x: f32| exp2_f64(f64::from(x)) as f32,
    log = |x: f32| libm::log(f64::from(x)) as f32,
    log2 = |x: f32| libm::log2(f64::from(x)) as f32,
    sin = |x: f32| libm::sin(f64::from(x)) as f32,
    cos = |x: f32| libm::cos(f64::from(x)) as f32,
    rsqrt = |x: f32| (1.0 / f64::from(x).sqrt()) as f32,
    erf = |x: f32| libm::erf(f64::from(x)) as f32,
    floor = libm::floorf,
    ceil = libm::ceilf,
});

native_real!(f64 {
    exp = libm::exp,
    exp2 = libm::exp2,
    log = libm::log,
    log2 = libm::log2,
    sin = libm::sin,
    cos = libm::cos,
    rsqrt = |x: f64| 1.0 / x.sqrt(),
    erf = libm::erf,
    floor = libm::floor,
    ceil = libm::ceil,
});

/// `e^x` to about 1e-12, which is far more than `f32` needs, in straight-line code that the
/// compiler vectorizes.
#[inline(always)]
fn exp_f64(x: f64) -> f64 {
    exp2_f64(x * std::f64::consts::LOG2_E)
}

/// `2^x` to about 1e-12 for results in `f32`'s range: `2^n` from the exponent field times the
/// Taylor polynomial of `2^r` for `|r| <= 1/2`.
#[inline(always)]
fn exp2_f64(x: f64) -> f64 {
    // Beyond these bounds every result is 0 or infinite as an f32.
    let bounded = if x > 200.0 { 200.0 } else { x };
    let bounded = if bounded < -200.0 { -200.0 } else { bounded };
    // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let shifted = bounded + ROUND;
    let r = (bounded - (shifted - ROUND)) * std::f64::consts::LN_2;
    let mut sum = 1.0 / 3_628_800.0;
    for factorial in [362_880.0, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
        sum = sum * r + 1.0 / factorial;
    }
    let power = f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52);
    sum * power
}
