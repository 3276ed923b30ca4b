//! Trigonometric functions.
//!
//! Arguments are reduced by multiples of π/2 in three parts (Cody and Waite, "Software Manual for the
//! Elementary Functions", 1980), large ones by as many bits of 2/π as matter (Payne and Hanek, "Radian
//! Reduction for Trigonometric Functions", SIGNUM 1983).

use super::machine::{FRACTION_BITS, Machine, nearest, polynomial, quotient};

/// π/2 in three parts.
const HALF_PI: [f32; 3] = [1.570_796_4, -4.371_139e-8, -1.715_124_5e-15];

/// `2^-64 π/2` in two parts.
const HALF_PI_LOW: [f32; 2] = [8.515_304e-20, -2.369_599_1e-27];

const TWO_OVER_PI: f32 = 0.636_619_75;

/// The bits of 2/π, after a word of zeros.
const TWO_OVER_PI_BITS: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// Below this the reduction in three parts is exact enough.
const LARGE_ANGLE: f32 = 65_536.0;

const FRACTION_MASK: i32 = 0x007f_ffff;

/// `(sin r - r) / r³` in `r²`, for `|r| <= π/4`.
const SIN: &[f32] = &[2.724_962e-6, -1.984_008_4e-4, 8.333_332e-3, -0.166_666_67];

/// `(cos r - 1 + r²/2) / r⁴` in `r²`, for `|r| <= π/4`.
const COS: &[f32] = &[2.454_769e-5, -1.388_830_1e-3, 4.166_666_4e-2];

/// The sine, `ahead` quadrants on.
pub(super) fn wave<M: Machine>(m: &mut M, x: M::F, ahead: i32) -> M::F {
    let (r, quadrant) = reduce_angle(m, x);
    let ahead = m.i(ahead);
    let quadrant = m.iadd(quadrant, ahead);
    let [sin, cos] = [sin_of(m, r), cos_of(m, r)];
    let [one, two, none] = [1, 2, 0].map(|value| m.i(value));
    let odd = m.and(quadrant, one);
    let is_even = m.iequal(odd, none);
    let value = m.pick(is_even, sin, cos);
    let back = m.and(quadrant, two);
    let is_forward = m.iequal(back, none);
    let reversed = m.neg(value);
    m.pick(is_forward, value, reversed)
}

pub(super) fn tan<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let (r, quadrant) = reduce_angle(m, x);
    let [sin, cos] = [sin_of(m, r), cos_of(m, r)];
    let [one, none] = [1, 0].map(|value| m.i(value));
    let odd = m.and(quadrant, one);
    let is_even = m.iequal(odd, none);
    let reversed = m.neg(cos);
    let above = m.pick(is_even, sin, reversed);
    let below = m.pick(is_even, cos, sin);
    quotient(m, above, below)
}

fn sin_of<M: Machine>(m: &mut M, r: M::F) -> M::F {
    let square = m.mul(r, r);
    let tail = polynomial(m, square, SIN);
    let cube = m.mul(square, r);
    m.fma(cube, tail, r)
}

fn cos_of<M: Machine>(m: &mut M, r: M::F) -> M::F {
    let square = m.mul(r, r);
    let tail = polynomial(m, square, COS);
    let [half, one] = [-0.5, 1.0].map(|value| m.f(value));
    let factor = m.fma(square, tail, half);
    m.fma(square, factor, one)
}

/// `r` and `n` with `x = n π/2 + r` and `|r| <= π/4`; `n` modulo 4.
fn reduce_angle<M: Machine>(m: &mut M, x: M::F) -> (M::F, M::I) {
    let (n, quadrant) = nearest(m, x, TWO_OVER_PI);
    let mut r = x;
    for part in HALF_PI {
        let part = m.f(-part);
        r = m.fma(n, part, r);
    }
    let magnitude = m.abs(x);
    let limit = m.f(LARGE_ANGLE);
    let is_large = m.less(limit, magnitude);
    m.rarely(is_large, (r, quadrant), |m| reduce_large_angle(m, x))
}

/// The same for angles of at least `2^16`: the product of the fraction with those 96 bits of 2/π
/// whose products are below 4 quadrants and matter.
fn reduce_large_angle<M: Machine>(m: &mut M, x: M::F) -> (M::F, M::I) {
    let bits = m.bits(x);
    let [fraction_mask, hidden, exponent_shift, byte, bias] =
        [FRACTION_MASK, FRACTION_MASK + 1, FRACTION_BITS, 0xff, 127 - 7].map(|value| m.i(value));
    let fraction = m.and(bits, fraction_mask);
    let fraction = m.or(fraction, hidden);
    let exponent = m.shr(bits, exponent_shift);
    let exponent = m.and(exponent, byte);
    let first = m.isub(exponent, bias);
    let window = two_over_pi_window(m, first);
    let fraction = m.long(fraction);
    let products = window.map(|word| {
        let word = m.long(word);
        m.lmul(fraction, word)
    });
    let word_bits = m.i(32);
    let word_bits = m.long(word_bits);
    // The 96-bit product modulo 2^96, as its upper 64 bits and the rest.
    let carry = m.lshr(products[2], word_bits);
    let middle = m.ladd(products[1], carry);
    let high = m.lshl(products[0], word_bits);
    let high = m.ladd(high, middle);
    let low = m.low(products[2]);
    let low = m.long(low);
    // Two bits of quadrant, then the fraction of a quadrant, of which 64 bits are kept.
    let two = m.i(2);
    let two = m.long(two);
    let thirty = m.i(30);
    let thirty = m.long(thirty);
    let sixty_two = m.ladd(word_bits, thirty);
    let quadrant = m.lshr(high, sixty_two);
    let quadrant = m.low(quadrant);
    let upper = m.lshl(high, two);
    let lower = m.lshr(low, thirty);
    let rest = m.lor(upper, lower);
    // As a signed number it is the distance to the nearest multiple.
    let one = m.i(1);
    let long_one = m.long(one);
    let sixty_three = m.ladd(sixty_two, long_one);
    let sign = m.lshr(rest, sixty_three);
    let sign = m.low(sign);
    let quadrant = m.iadd(quadrant, sign);
    let rest = m.long_to_float(rest);
    let [unit, unit_low] = HALF_PI_LOW.map(|part| m.f(part));
    let r = m.mul(rest, unit_low);
    let r = m.fma(rest, unit, r);
    let zero = m.f(0.0);
    let is_negative = m.less(x, zero);
    let reversed = m.neg(r);
    let r = m.pick(is_negative, reversed, r);
    let none = m.i(0);
    let opposite = m.isub(none, quadrant);
    let quadrant = m.ipick(is_negative, opposite, quadrant);
    let infinity = m.f(f32::INFINITY);
    let magnitude = m.abs(x);
    let is_finite = m.less(magnitude, infinity);
    let nan = m.f(f32::NAN);
    (m.pick(is_finite, r, nan), quadrant)
}

/// 96 bits of 2/π from the bit `first` of [`TWO_OVER_PI_BITS`] on.
fn two_over_pi_window<M: Machine>(m: &mut M, first: M::I) -> [M::I; 3] {
    let [word_shift, bit_mask] = [5, 31].map(|value| m.i(value));
    let word = m.shr(first, word_shift);
    let bit = m.and(first, bit_mask);
    let words: [M::I; 4] = std::array::from_fn(|at| {
        let mut chosen = m.i(TWO_OVER_PI_BITS[at] as i32);
        for start in 1..TWO_OVER_PI_BITS.len() - 3 {
            let index = m.i(start as i32);
            let here = m.iequal(word, index);
            let value = m.i(TWO_OVER_PI_BITS[start + at] as i32);
            chosen = m.ipick(here, value, chosen);
        }
        chosen
    });
    let word_bits = m.i(32);
    let word_bits = m.long(word_bits);
    let bit = m.long(bit);
    std::array::from_fn(|at| {
        let [upper, lower] = [words[at], words[at + 1]].map(|word| m.long(word));
        let upper = m.lshl(upper, word_bits);
        let pair = m.lor(upper, lower);
        let shifted = m.lshl(pair, bit);
        let kept = m.lshr(shifted, word_bits);
        m.low(kept)
    })
}
