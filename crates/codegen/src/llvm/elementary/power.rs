//! Powers.
//!
//! They need the logarithm to more than single precision, so that it is a sum of two numbers, the
//! products of which are exact (Dekker, "A Floating-Point Technique for Extending the Available
//! Precision", 1971).

use super::exponential::{exp_fraction, scale};
use super::logarithm::{LN2, LOG2_E, SQRT_HALF_BITS, split};
use super::machine::{Machine, clamp, keep_nan, polynomial};

/// `(2 atanh s - 2 s - 2/3 s³) / s⁵` in `s²`, for `|s| <= 0.1716`.
const ATANH: &[f32] = &[0.230_484_22, 0.285_622_33, 0.400_000_15];

pub(super) fn pow<M: Machine>(m: &mut M, x: M::F, y: M::F) -> M::F {
    let magnitude = m.abs(x);
    let value = pow_of_magnitude(m, magnitude, y);
    // Of infinities and zeros, which have no logarithm here.
    let [zero, one, infinity] = [0.0, 1.0, f32::INFINITY].map(|value| m.f(value));
    let falls = m.less(y, zero);
    let of_zero = m.pick(falls, infinity, zero);
    let of_infinity = m.pick(falls, zero, infinity);
    let is_zero = m.equal(x, zero);
    let value = m.pick(is_zero, of_zero, value);
    let is_infinite = m.equal(magnitude, infinity);
    let value = m.pick(is_infinite, of_infinity, value);
    // The sign of an odd integer's power.
    let whole = m.trunc(y);
    let is_whole = m.equal(whole, y);
    let half = m.f(0.5);
    let halved = m.mul(y, half);
    let half_whole = m.trunc(halved);
    let is_even = m.equal(half_whole, halved);
    let signed = m.copysign(value, x);
    let odd = m.pick(is_even, value, signed);
    let [nan, zero_power] = [m.f(f32::NAN), one];
    let is_negative = m.less(x, zero);
    let fraction = m.pick(is_negative, nan, value);
    let fraction = m.pick(is_infinite, value, fraction);
    let value = m.pick(is_whole, odd, fraction);
    // What is no number passes on, except that any number to the 0 and 1 to any power are 1.
    let value = keep_nan(m, x, value);
    let value = keep_nan(m, y, value);
    let minus_one = m.f(-1.0);
    let is_minus_one = m.equal(x, minus_one);
    let power = m.abs(y);
    let to_infinity = m.equal(power, infinity);
    let turned = m.pick(to_infinity, one, value);
    let value = m.pick(is_minus_one, turned, value);
    let is_one = m.equal(x, one);
    let value = m.pick(is_one, one, value);
    let to_zero = m.equal(y, zero);
    m.pick(to_zero, zero_power, value)
}

/// `x^y` for `x > 0`.
fn pow_of_magnitude<M: Machine>(m: &mut M, x: M::F, y: M::F) -> M::F {
    let (log, log_low) = log2_in_two(m, x);
    let product = m.mul(log, y);
    let negative = m.neg(product);
    let product_low = m.fma(log, y, negative);
    let product_low = m.fma(log_low, y, product_low);
    let within = clamp(m, product, -160.0, 140.0);
    let n = m.rint(within);
    let fraction = m.sub(within, n);
    let is_within = m.equal(within, product);
    let zero = m.f(0.0);
    let low = m.pick(is_within, product_low, zero);
    let fraction = m.add(fraction, low);
    let ln2 = m.f(LN2[0]);
    let r = m.mul(fraction, ln2);
    let value = exp_fraction(m, r);
    let one = m.f(1.0);
    let value = m.add(value, one);
    let n = m.to_int(n);
    scale(m, value, n)
}

/// `log2 x` as a sum of two numbers, for `x > 0`.
fn log2_in_two<M: Machine>(m: &mut M, x: M::F) -> (M::F, M::F) {
    let (exponent, f) = split(m, x, SQRT_HALF_BITS);
    // s = f / (2 + f), so that log(1 + f) = 2 atanh(s).
    let [one, two] = [1.0, 2.0].map(|value| m.f(value));
    let divisor = m.add(f, two);
    let reciprocal = m.div(one, divisor);
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
    let half = m.f(0.5);
    let tail = m.mul(tail, half);
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
