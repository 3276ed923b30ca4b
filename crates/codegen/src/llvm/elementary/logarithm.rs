//! Logarithms.
//!
//! The natural ones take the fraction of the argument to `[⅔, 4/3)`, where a polynomial in what it
//! exceeds 1 by needs the fewest terms; others to `[√½, √2)`, so that nothing of a logarithm is lost
//! when the exponent is added.

use std::f32::consts;

use super::machine::{EXPONENT_MASK, FRACTION_BITS, Machine, polynomial};

pub(super) const LN2: [f32; 2] = [consts::LN_2, -1.904_654_2e-9];
pub(super) const LOG2_E: [f32; 2] = [consts::LOG2_E, 1.925_963e-8];
pub(super) const LOG10_E: [f32; 2] = [consts::LOG10_E, -1.010_305e-8];
pub(super) const LOG10_2: [f32; 2] = [consts::LOG10_2, -1.432_098_9e-8];

/// The bits of ⅔.
const TWO_THIRDS_BITS: i32 = 0x3f2a_aaab;

/// The bits of √½.
pub(super) const SQRT_HALF_BITS: i32 = 0x3f35_04f3;

const SMALLEST_NORMAL: f32 = f32::MIN_POSITIVE;

/// `2^23` takes any number below the normal ones to a normal one.
const TO_NORMAL: f32 = 8_388_608.0;

/// `(log(1 + f) - f + f²/2) / f³` for `|f| <= 1/3`.
const LOG: &[f32] = &[
    -0.128_858_33,
    0.139_867_07,
    -0.121_856_81,
    0.140_053_4,
    -0.166_803_78,
    0.200_104_45,
    -0.249_998,
    0.333_332_15,
];

/// `(log(1 + f) - f) / f²` on `[√½ - 1, √2 - 1]`.
const LOG_FROM_SQRT_HALF: [f32; 10] = [
    0.069_716_12,
    -0.114_797_34,
    0.116_854_2,
    -0.124_256_87,
    0.142_490_58,
    -0.166_678_02,
    0.200_007_16,
    -0.249_999_97,
    0.333_333_3,
    -0.5,
];

pub(super) fn log<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let (exponent, f) = split(m, x, TWO_THIRDS_BITS);
    let high = polynomial(m, f, LOG);
    let half = m.f(-0.5);
    let factor = m.fma(high, f, half);
    let factor = m.mul(factor, f);
    let fraction = m.fma(factor, f, f);
    let scale = m.f(consts::LN_2);
    let value = m.fma(exponent, scale, fraction);
    log_domain(m, x, value)
}

/// The logarithm of which that of e is `scale` and that of 2 is `two`, each in two parts. The
/// polynomial is one of that logarithm, so that nothing is scaled but `f`, whose product with the second part
/// of `scale` takes the place of a term.
pub(super) fn log_to_base<M: Machine>(m: &mut M, x: M::F, scale: [f32; 2], two: [f32; 2]) -> M::F {
    let (exponent, f) = split(m, x, SQRT_HALF_BITS);
    let by = f64::from(scale[0]) + f64::from(scale[1]);
    let terms = LOG_FROM_SQRT_HALF.map(|term| (f64::from(term) * by) as f32);
    let [scale_high, scale_low] = scale.map(|part| m.f(part));
    let [two_high, two_low] = two.map(|part| m.f(part));
    let factor = polynomial(m, f, &terms);
    let factor = m.fma(factor, f, scale_low);
    let mut rest = m.mul(factor, f);
    if two[1] != 0.0 {
        rest = m.fma(exponent, two_low, rest);
    }
    let fraction = m.fma(f, scale_high, rest);
    let value = m.fma(exponent, two_high, fraction);
    log_domain(m, x, value)
}

pub(super) fn log1p<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let one = m.f(1.0);
    let sum = m.add(x, one);
    // What rounding took from the sum.
    let back = m.sub(sum, one);
    let small = m.sub(x, back);
    let kept = m.sub(sum, x);
    let large = m.sub(one, kept);
    let is_large = m.less(one, x);
    let lost = m.pick(is_large, large, small);
    let reciprocal = m.reciprocal(sum);
    let correction = m.mul(lost, reciprocal);
    let (exponent, f) = split(m, sum, TWO_THIRDS_BITS);
    let value = log_of_parts(m, exponent, f);
    let value = m.add(value, correction);
    let value = log_domain(m, sum, value);
    let unchanged = m.equal(sum, one);
    m.pick(unchanged, x, value)
}

/// `x = 2^exponent * (1 + fraction)`, for `x > 0`: `1 + fraction` is between the number whose bits are
/// `least` and twice that.
pub(super) fn split<M: Machine>(m: &mut M, x: M::F, least: i32) -> (M::F, M::F) {
    let [limit, up, zero] = [SMALLEST_NORMAL, TO_NORMAL, 0.0].map(|value| m.f(value));
    let small = m.less(x, limit);
    let raised = m.mul(x, up);
    let x = m.pick(small, raised, x);
    let below = m.f(-(FRACTION_BITS as f32));
    let bias = m.pick(small, below, zero);
    let bits = m.bits(x);
    let [least, mask] = [least, EXPONENT_MASK | i32::MIN].map(|value| m.i(value));
    let distance = m.isub(bits, least);
    let power = m.and(distance, mask);
    let fraction = m.isub(bits, power);
    let fraction = m.float_of_bits(fraction);
    // A multiple of 2^23, which single precision holds.
    let exponent = m.to_float(power);
    let [unit, one] = [(-FRACTION_BITS as f32).exp2(), 1.0].map(|value| m.f(value));
    (m.fma(exponent, unit, bias), m.sub(fraction, one))
}

/// `value` for `0 < x < ∞`; what logarithms are elsewhere.
fn log_domain<M: Machine>(m: &mut M, x: M::F, value: M::F) -> M::F {
    let [zero, infinity, pole] = [0.0, f32::INFINITY, f32::NEG_INFINITY].map(|value| m.f(value));
    let (bits, end) = (m.bits(x), m.i(EXPONENT_MASK));
    // As numbers without a sign, the bits of negative numbers are above all others.
    let inside = m.below(bits, end);
    // Infinity and what is no number stay themselves, and negative numbers have no logarithm.
    let outside = m.fma(x, infinity, infinity);
    let value = m.pick(inside, value, outside);
    let is_zero = m.equal(x, zero);
    m.pick(is_zero, pole, value)
}

/// `log(2^exponent * (1 + f))` for `|f| <= 1/3`.
fn log_of_parts<M: Machine>(m: &mut M, exponent: M::F, f: M::F) -> M::F {
    let tail = polynomial(m, f, LOG);
    let half = m.f(-0.5);
    let factor = m.fma(tail, f, half);
    let square = m.mul(f, f);
    let tail = m.mul(factor, square);
    let [high, low] = LN2.map(|part| m.f(part));
    let tail = m.fma(exponent, low, tail);
    let fraction = m.add(f, tail);
    m.fma(exponent, high, fraction)
}
