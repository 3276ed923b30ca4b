//! The exponential, and functions that are computed by means of it.

use super::logarithm::{LN2, LOG2_E};
use super::machine::{FRACTION_BITS, Machine, clamp, keep_nan, nearest, polynomial};

/// `erf x / x - 1` in `x²`, for `|x| < 0.93`.
const ERF_SMALL: &[f32] = &[
    8.334_719e-5,
    -8.134_709e-4,
    5.200_369e-3,
    -2.685_915e-2,
    0.112_836_91,
    -0.376_126_35,
    0.128_379_17,
];

/// `-log2(erfc x)` on `[0.92, 4]`.
const ERF_LARGE: &[f32] = &[
    -2.371_169_8e-6,
    6.662_065e-5,
    -8.623_615e-4,
    6.872_386e-3,
    -3.813_19e-2,
    0.158_832_76,
    0.911_515_65,
    1.630_588_2,
    -4.622_994_2e-4,
];

/// Where one form of erf takes over from the other.
const ERF_SPLIT: f32 = 0.92;

/// Beyond this erf rounds to 1.
const ERF_ONE: f32 = 4.0;

/// `(tanh x - x) / x³` in `x²`, for `|x| < 0.6`.
const TANH: &[f32] = &[-6.269_12e-3, 2.111_096e-2, -5.387_395e-2, 0.133_329_15, -0.333_333_3];

const TANH_SPLIT: f32 = 0.6;

/// `(exp r - 1 - r) / r²`, for `|r| <= ln 2 / 2`.
const EXP: &[f32] = &[1.392_625e-3, 8.363_233e-3, 4.166_655e-2, 0.166_665_76, 0.5];

/// As libdevice does: the hardware's power of the fraction, times that of an integer.
pub(super) fn exp<M: Machine>(m: &mut M, x: M::F) -> M::F {
    // Beyond, the fraction is no longer one, and its power makes the result 0 or infinite.
    let within = clamp(m, x, -87.4, 87.4);
    let (n, bits) = nearest(m, within, LOG2_E[0]);
    let [high, low] = LOG2_E.map(|part| m.f(part));
    let negative = m.neg(n);
    let fraction = m.fma(x, high, negative);
    let fraction = m.fma(x, low, fraction);
    let value = m.exp2(fraction);
    let scale = power_of_two(m, bits);
    m.mul(value, scale)
}

pub(super) fn expm1<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let within = clamp(m, x, -20.0, 89.0);
    let (r, n) = reduce_exp(m, within);
    let fraction = exp_fraction(m, r);
    // One step below, so that 2^n has a normal number of its own, then twice the result.
    let below = m.i(1);
    let n = m.isub(n, below);
    let power = power_of_two(m, n);
    let half = m.f(0.5);
    let rest = m.sub(power, half);
    let value = m.fma(power, fraction, rest);
    let value = m.add(value, value);
    let zero = m.f(0.0);
    let is_zero = m.equal(x, zero);
    let value = m.pick(is_zero, x, value);
    keep_nan(m, x, value)
}

pub(super) fn tanh<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let square = m.mul(x, x);
    let tail = polynomial(m, square, TANH);
    let cube = m.mul(square, x);
    let small = m.fma(cube, tail, x);
    let magnitude = m.abs(x);
    let twice = m.f(2.0 * LOG2_E[0]);
    let power = m.mul(magnitude, twice);
    let power = m.exp2(power);
    let [one, minus_two] = [1.0, -2.0].map(|value| m.f(value));
    let divisor = m.add(power, one);
    let reciprocal = m.reciprocal(divisor);
    let large = m.fma(reciprocal, minus_two, one);
    let large = m.copysign(large, x);
    let limit = m.f(TANH_SPLIT);
    let is_large = m.less(limit, magnitude);
    m.pick(is_large, large, small)
}

pub(super) fn erf<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let square = m.mul(x, x);
    let factor = polynomial(m, square, ERF_SMALL);
    let small = m.fma(x, factor, x);
    let magnitude = m.abs(x);
    let within = clamp(m, magnitude, 0.0, ERF_ONE);
    let power = polynomial(m, within, ERF_LARGE);
    let power = m.neg(power);
    let rest = m.exp2(power);
    let one = m.f(1.0);
    let large = m.sub(one, rest);
    let large = m.copysign(large, x);
    let limit = m.f(ERF_SPLIT);
    let is_large = m.less(limit, magnitude);
    m.pick(is_large, large, small)
}

/// `r` and `n` with `x = n ln 2 + r`, for `x` within what [`power_of_two`] takes; `n` as [`nearest`]
/// gives it.
fn reduce_exp<M: Machine>(m: &mut M, x: M::F) -> (M::F, M::I) {
    let (n, bits) = nearest(m, x, LOG2_E[0]);
    let [high, low] = LN2.map(|part| m.f(-part));
    let r = m.fma(n, high, x);
    (m.fma(n, low, r), bits)
}

/// `exp r - 1`.
fn exp_fraction<M: Machine>(m: &mut M, r: M::F) -> M::F {
    let square = m.mul(r, r);
    let tail = polynomial(m, r, EXP);
    m.fma(square, tail, r)
}

/// `2^n` for `-127 < n < 128`; `n` modulo `2^9` is enough.
fn power_of_two<M: Machine>(m: &mut M, n: M::I) -> M::F {
    let [bias, shift] = [127, FRACTION_BITS].map(|value| m.i(value));
    let biased = m.iadd(n, bias);
    let bits = m.shl(biased, shift);
    m.float_of_bits(bits)
}
