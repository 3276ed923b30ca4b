//! Powers.
//!
//! They need the logarithm to more than single precision, so that it is a sum of two numbers, the
//! products of which are exact (Dekker, "A Floating-Point Technique for Extending the Available
//! Precision", 1971).

use super::logarithm::{LN2, LOG2_E, SQRT_HALF_BITS, split};
use super::machine::{EXPONENT_MASK, Machine, keep_number, polynomial};

/// `(atanh s - s - s³/3) / s⁵` in `s²`, for `|s| <= 0.1716`.
const ATANH: &[f32] = &[0.115_242_11, 0.142_811_16, 0.200_000_08];

pub(super) fn pow<M: Machine>(m: &mut M, x: M::F, y: M::F) -> M::F {
    let magnitude = m.abs(x);
    let (log, log_low) = log2_in_two(m, magnitude);
    let log = log_beyond(m, magnitude, log);
    let value = exp2_of_product(m, log, log_low, y);
    let value = with_sign(m, x, y, value);
    // Any number to the 0 and 1 to any power are 1, and so is -1 to an infinite one.
    let [zero, one, minus_one, infinity] = [0.0, 1.0, -1.0, f32::INFINITY].map(|value| m.f(value));
    let power = m.abs(y);
    let to_infinity = m.equal(power, infinity);
    let turned = m.pick(to_infinity, one, value);
    let is_minus_one = m.equal(x, minus_one);
    let value = m.pick(is_minus_one, turned, value);
    let is_one = m.equal(x, one);
    let value = m.pick(is_one, one, value);
    let to_zero = m.equal(y, zero);
    m.pick(to_zero, one, value)
}

/// `log` for `0 < x < ∞`; what the logarithm of any other `x` without a sign is.
fn log_beyond<M: Machine>(m: &mut M, x: M::F, log: M::F) -> M::F {
    let bits = m.bits(x);
    let [least, end] = [1, EXPONENT_MASK - 1].map(|value| m.i(value));
    let distance = m.isub(bits, least);
    let inside = m.below(distance, end);
    let [zero, pole] = [0.0, f32::NEG_INFINITY].map(|value| m.f(value));
    let is_zero = m.equal(x, zero);
    let outside = m.pick(is_zero, pole, x);
    m.pick(inside, log, outside)
}

/// `2^((log + log_low) y)`.
fn exp2_of_product<M: Machine>(m: &mut M, log: M::F, log_low: M::F, y: M::F) -> M::F {
    let product = m.mul(log, y);
    let negative = m.neg(product);
    let low = m.fma(log, y, negative);
    let low = m.fma(log_low, y, low);
    // Results below the normal numbers are computed among these.
    let [limit, up, down, one] = [-100.0, 64.0, (-64.0f32).exp2(), 1.0].map(|value| m.f(value));
    let is_small = m.less(product, limit);
    let raised = m.add(product, up);
    let exponent = m.pick(is_small, raised, product);
    let factor = m.pick(is_small, down, one);
    let value = m.exp2(exponent);
    // 2^low = 1 + low ln 2. Where the product is no finite number, low is none either.
    let ln2 = m.f(LN2[0]);
    let correction = m.mul(low, ln2);
    let corrected = m.fma(value, correction, value);
    let value = keep_number(m, corrected, value);
    m.mul(value, factor)
}

/// The sign of an odd integer's power; negative numbers have no other powers than integer ones.
fn with_sign<M: Machine>(m: &mut M, x: M::F, y: M::F, value: M::F) -> M::F {
    let [half, minus_two, zero, one, minus_infinity, nan] =
        [0.5, -2.0, 0.0, 1.0, f32::NEG_INFINITY, f32::NAN].map(|value| m.f(value));
    let halved = m.mul(y, half);
    let halved = m.trunc(halved);
    // 0 for even numbers, ±1 for odd ones, and none for infinite ones.
    let rest = m.fma(halved, minus_two, y);
    let rest = m.abs(rest);
    let is_odd = m.equal(rest, one);
    let signed = m.copysign(value, x);
    let whole = m.pick(is_odd, signed, value);
    let from_odd = m.sub(rest, one);
    let from_whole = m.mul(rest, from_odd);
    let is_fraction = m.differ(from_whole, zero);
    let fraction = m.pick(is_fraction, nan, whole);
    let is_negative = m.less(x, zero);
    let value = m.pick(is_negative, fraction, whole);
    let is_minus_infinity = m.equal(x, minus_infinity);
    m.pick(is_minus_infinity, whole, value)
}

/// `log2 x` as a sum of two numbers, for `x > 0`.
fn log2_in_two<M: Machine>(m: &mut M, x: M::F) -> (M::F, M::F) {
    let (exponent, f) = split(m, x, SQRT_HALF_BITS);
    // s = f / (2 + f), so that log(1 + f) = 2 atanh(s).
    let two = m.f(2.0);
    let divisor = m.add(f, two);
    let reciprocal = m.reciprocal(divisor);
    let s = m.mul(f, reciprocal);
    let negative = m.neg(s);
    let missing = m.sub(divisor, two);
    let missing = m.sub(f, missing);
    let rest = m.fma(negative, divisor, f);
    let rest = m.fma(negative, missing, rest);
    let s_low = m.mul(rest, reciprocal);
    let square = m.mul(s, s);
    let negative = m.neg(square);
    let square_low = m.fma(s, s, negative);
    let twice = m.add(s, s);
    let square_low = m.fma(twice, s_low, square_low);
    // 2/3 s³ and beyond, as a factor of 2 s.
    let third = [1.0 / 3.0, -9.934_108e-9].map(|part| m.f(part));
    let tail = polynomial(m, square, ATANH);
    let fourth = m.mul(square, square);
    let factor = m.mul(square, third[0]);
    let negative = m.neg(factor);
    let factor_low = m.fma(square, third[0], negative);
    let factor_low = m.fma(square_low, third[0], factor_low);
    let factor_low = m.fma(square, third[1], factor_low);
    let factor_low = m.fma(fourth, tail, factor_low);
    // 2 s (1 + factor).
    let product = m.mul(twice, factor);
    let negative = m.neg(product);
    let product_low = m.fma(twice, factor, negative);
    let product_low = m.fma(twice, factor_low, product_low);
    let twice_low = m.add(s_low, s_low);
    let product_low = m.fma(twice_low, factor, product_low);
    let (high, low) = add_in_two(m, twice, product);
    let low = m.add(low, product_low);
    let low = m.add(low, twice_low);
    // Times log2 e, plus the exponent.
    let [scale, scale_low] = LOG2_E.map(|part| m.f(part));
    let scaled = m.mul(high, scale);
    let negative = m.neg(scaled);
    let scaled_low = m.fma(high, scale, negative);
    let scaled_low = m.fma(high, scale_low, scaled_low);
    let scaled_low = m.fma(low, scale, scaled_low);
    let (sum, sum_low) = add_in_two(m, exponent, scaled);
    let sum_low = m.add(sum_low, scaled_low);
    add_in_two(m, sum, sum_low)
}

/// The sum and what rounding took from it, for `|a| >= |b|` or `a = 0`.
fn add_in_two<M: Machine>(m: &mut M, a: M::F, b: M::F) -> (M::F, M::F) {
    let sum = m.add(a, b);
    let added = m.sub(sum, a);
    (sum, m.sub(b, added))
}
