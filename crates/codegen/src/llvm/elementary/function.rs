//! The algorithms of elementary functions in single precision, over any [`Machine`].
//!
//! Each function is written once: code generation runs it on a machine that writes instructions,
//! tests on one that computes, against the same function in double precision. Polynomials are
//! near-minimax, fitted to the functions named beside them. Schemes:
//!
//! - trigonometric arguments are reduced by multiples of π/2 in three parts (Cody and Waite,
//!   "Software Manual for the Elementary Functions", 1980), large ones by as many bits of 2/π as
//!   matter (Payne and Hanek, "Radian Reduction for Trigonometric Functions", SIGNUM 1983);
//! - natural logarithms take the fraction of the argument to `[⅔, 4/3)`, where a polynomial in what it
//!   exceeds 1 by needs the fewest terms; others to `[√½, √2)`, so that nothing of a logarithm is lost
//!   when the exponent is added; powers need it to more than single precision, so that it is a sum of
//!   two numbers, the products of which are exact
//!   (Dekker, "A Floating-Point Technique for Extending the Available Precision", 1971).

use std::f32::consts;

/// A function that is compiled without a math library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Elementary {
    Cos,
    Erf,
    Exp,
    Expm1,
    Fmod,
    Log,
    Log10,
    Log1p,
    Log2,
    Pow,
    Sin,
    Tan,
    Tanh,
}

impl Elementary {
    /// Every function.
    pub(crate) const ALL: &'static [Elementary] = &[
        Elementary::Cos,
        Elementary::Erf,
        Elementary::Exp,
        Elementary::Expm1,
        Elementary::Fmod,
        Elementary::Log,
        Elementary::Log10,
        Elementary::Log1p,
        Elementary::Log2,
        Elementary::Pow,
        Elementary::Sin,
        Elementary::Tan,
        Elementary::Tanh,
    ];

    /// Its name, without the `f` that C appends in single precision.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Elementary::Cos => "cos",
            Elementary::Erf => "erf",
            Elementary::Exp => "exp",
            Elementary::Expm1 => "expm1",
            Elementary::Fmod => "fmod",
            Elementary::Log => "log",
            Elementary::Log10 => "log10",
            Elementary::Log1p => "log1p",
            Elementary::Log2 => "log2",
            Elementary::Pow => "pow",
            Elementary::Sin => "sin",
            Elementary::Tan => "tan",
            Elementary::Tanh => "tanh",
        }
    }

    /// Number of arguments.
    pub(crate) fn arity(self) -> usize {
        match self {
            Elementary::Fmod | Elementary::Pow => 2,
            _ => 1,
        }
    }

    /// Computes the function of `args` on `m`.
    pub(crate) fn run<M: Machine>(self, m: &mut M, args: &[M::F]) -> M::F {
        let x = args[0];
        match self {
            Elementary::Cos => wave(m, x, 1),
            Elementary::Erf => erf(m, x),
            Elementary::Exp => exp(m, x),
            Elementary::Expm1 => expm1(m, x),
            Elementary::Fmod => fmod(m, x, args[1]),
            Elementary::Log => log(m, x),
            Elementary::Log10 => log_to_base(m, x, LOG10_E, LOG10_2),
            Elementary::Log1p => log1p(m, x),
            Elementary::Log2 => log_to_base(m, x, LOG2_E, [1.0, 0.0]),
            Elementary::Pow => pow(m, x, args[1]),
            Elementary::Sin => wave(m, x, 0),
            Elementary::Tan => tan(m, x),
            Elementary::Tanh => tanh(m, x),
        }
    }
}

/// What functions are computed on: single precision that rounds to nearest and keeps numbers below
/// the normal ones, and integers of 32 and 64 bits that wrap.
pub(crate) trait Machine {
    /// A float.
    type F: Copy;
    /// A 32-bit integer.
    type I: Copy;
    /// A 64-bit integer.
    type L: Copy;
    /// A truth value.
    type B: Copy;

    fn f(&mut self, value: f32) -> Self::F;
    fn i(&mut self, value: i32) -> Self::I;
    fn add(&mut self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(&mut self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(&mut self, a: Self::F, b: Self::F) -> Self::F;
    fn div(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    fn fma(&mut self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    fn neg(&mut self, a: Self::F) -> Self::F;
    fn abs(&mut self, a: Self::F) -> Self::F;
    /// The magnitude of `a` with the sign of `b`.
    fn copysign(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// To the nearest integer, ties to even.
    fn rint(&mut self, a: Self::F) -> Self::F;
    fn trunc(&mut self, a: Self::F) -> Self::F;
    /// `2^a` to about two units in the last place; numbers below the normal ones become 0.
    fn exp2(&mut self, a: Self::F) -> Self::F;
    fn less(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// False when either is no number.
    fn equal(&mut self, a: Self::F, b: Self::F) -> Self::B;
    fn pick(&mut self, condition: Self::B, yes: Self::F, no: Self::F) -> Self::F;

    fn bits(&mut self, a: Self::F) -> Self::I;
    fn float_of_bits(&mut self, a: Self::I) -> Self::F;
    /// Of an integer value within range.
    fn to_int(&mut self, a: Self::F) -> Self::I;
    fn to_float(&mut self, a: Self::I) -> Self::F;
    fn iadd(&mut self, a: Self::I, b: Self::I) -> Self::I;
    fn isub(&mut self, a: Self::I, b: Self::I) -> Self::I;
    fn and(&mut self, a: Self::I, b: Self::I) -> Self::I;
    fn or(&mut self, a: Self::I, b: Self::I) -> Self::I;
    fn shl(&mut self, a: Self::I, by: Self::I) -> Self::I;
    /// Arithmetic.
    fn shr(&mut self, a: Self::I, by: Self::I) -> Self::I;
    /// As numbers without a sign.
    fn below(&mut self, a: Self::I, b: Self::I) -> Self::B;
    fn iequal(&mut self, a: Self::I, b: Self::I) -> Self::B;
    fn ipick(&mut self, condition: Self::B, yes: Self::I, no: Self::I) -> Self::I;

    /// Zero-extended.
    fn long(&mut self, a: Self::I) -> Self::L;
    /// The low half.
    fn low(&mut self, a: Self::L) -> Self::I;
    fn ladd(&mut self, a: Self::L, b: Self::L) -> Self::L;
    fn lmul(&mut self, a: Self::L, b: Self::L) -> Self::L;
    fn lor(&mut self, a: Self::L, b: Self::L) -> Self::L;
    fn lshl(&mut self, a: Self::L, by: Self::L) -> Self::L;
    /// Logical.
    fn lshr(&mut self, a: Self::L, by: Self::L) -> Self::L;
    /// As a signed number.
    fn long_to_float(&mut self, a: Self::L) -> Self::F;

    /// What `rare` computes where the condition holds, which is seldom, else `usual`.
    fn rarely(
        &mut self,
        condition: Self::B,
        usual: (Self::F, Self::I),
        rare: impl FnOnce(&mut Self) -> (Self::F, Self::I),
    ) -> (Self::F, Self::I);
}

const LN2: [f32; 2] = [consts::LN_2, -1.904_654_2e-9];
const LOG2_E: [f32; 2] = [consts::LOG2_E, 1.925_963e-8];
const LOG10_E: [f32; 2] = [consts::LOG10_E, -1.010_305e-8];
const LOG10_2: [f32; 2] = [consts::LOG10_2, -1.432_098_9e-8];
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
/// The bits of ⅔.
const TWO_THIRDS_BITS: i32 = 0x3f2a_aaab;
/// The bits of √½.
const SQRT_HALF_BITS: i32 = 0x3f35_04f3;
const EXPONENT_MASK: i32 = 0x7f80_0000;
const FRACTION_MASK: i32 = 0x007f_ffff;
const FRACTION_BITS: i32 = 23;
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
/// The same on `[√½ - 1, √2 - 1]`.
const LOG_FROM_SQRT_HALF: &[f32] = &[
    0.069_716_12,
    -0.114_797_34,
    0.116_854_2,
    -0.124_256_87,
    0.142_490_58,
    -0.166_678_02,
    0.200_007_16,
    -0.249_999_97,
    0.333_333_3,
];
/// `(sin r - r) / r³` in `r²`, for `|r| <= π/4`.
const SIN: &[f32] = &[2.724_962e-6, -1.984_008_4e-4, 8.333_332e-3, -0.166_666_67];
/// `(cos r - 1 + r²/2) / r⁴` in `r²`, for `|r| <= π/4`.
const COS: &[f32] = &[2.454_769e-5, -1.388_830_1e-3, 4.166_666_4e-2];
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
/// `(2 atanh s - 2 s - 2/3 s³) / s⁵` in `s²`, for `|s| <= 0.1716`.
const ATANH: &[f32] = &[0.230_484_22, 0.285_622_33, 0.400_000_15];

/// A polynomial with the highest coefficient first.
fn polynomial<M: Machine>(m: &mut M, x: M::F, coefficients: &[f32]) -> M::F {
    let mut sum = m.f(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        let next = m.f(coefficient);
        sum = m.fma(sum, x, next);
    }
    sum
}

/// `x = 2^exponent * (1 + fraction)`, for `x > 0`: `1 + fraction` is between the number whose bits are
/// `least` and twice that.
fn split<M: Machine>(m: &mut M, x: M::F, least: i32) -> (M::F, M::F) {
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

/// `log(1 + f) - f`, with the coefficients for the range of `f`.
fn log_tail<M: Machine>(m: &mut M, f: M::F, coefficients: &[f32]) -> M::F {
    let square = m.mul(f, f);
    let high = polynomial(m, f, coefficients);
    let cube = m.mul(square, f);
    let half = m.f(-0.5);
    let low = m.mul(square, half);
    m.fma(cube, high, low)
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

fn log<M: Machine>(m: &mut M, x: M::F) -> M::F {
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

/// `log(2^exponent * (1 + f))` for `|f| <= 1/3`.
fn log_of_parts<M: Machine>(m: &mut M, exponent: M::F, f: M::F) -> M::F {
    let tail = log_tail(m, f, LOG);
    let [high, low] = LN2.map(|part| m.f(part));
    let tail = m.fma(exponent, low, tail);
    let fraction = m.add(f, tail);
    m.fma(exponent, high, fraction)
}

/// The logarithm of which that of e is `scale` and that of 2 is `two`, each in two parts.
fn log_to_base<M: Machine>(m: &mut M, x: M::F, scale: [f32; 2], two: [f32; 2]) -> M::F {
    let (exponent, f) = split(m, x, SQRT_HALF_BITS);
    let tail = log_tail(m, f, LOG_FROM_SQRT_HALF);
    let [scale_high, scale_low] = scale.map(|part| m.f(part));
    let [two_high, two_low] = two.map(|part| m.f(part));
    let product = m.mul(f, scale_high);
    let negative = m.neg(product);
    let rest = m.fma(f, scale_high, negative);
    let rest = m.fma(f, scale_low, rest);
    let rest = m.fma(tail, scale_high, rest);
    let rest = m.fma(exponent, two_low, rest);
    let fraction = m.add(product, rest);
    let value = m.fma(exponent, two_high, fraction);
    log_domain(m, x, value)
}

fn log1p<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let one = m.f(1.0);
    let sum = m.add(x, one);
    // What rounding took from the sum.
    let back = m.sub(sum, one);
    let small = m.sub(x, back);
    let kept = m.sub(sum, x);
    let large = m.sub(one, kept);
    let is_large = m.less(one, x);
    let lost = m.pick(is_large, large, small);
    let correction = m.div(lost, sum);
    let (exponent, f) = split(m, sum, TWO_THIRDS_BITS);
    let value = log_of_parts(m, exponent, f);
    let value = m.add(value, correction);
    let value = log_domain(m, sum, value);
    let unchanged = m.equal(sum, one);
    m.pick(unchanged, x, value)
}

/// `r` and `n` with `x = n ln 2 + r`, for `x` within what [`power_of_two`] takes.
fn reduce_exp<M: Machine>(m: &mut M, x: M::F) -> (M::F, M::I) {
    let scale = m.f(LOG2_E[0]);
    let n = m.mul(x, scale);
    let n = m.rint(n);
    let [high, low] = LN2.map(|part| m.f(-part));
    let r = m.fma(n, high, x);
    (m.fma(n, low, r), m.to_int(n))
}

/// `exp r - 1`.
fn exp_fraction<M: Machine>(m: &mut M, r: M::F) -> M::F {
    let square = m.mul(r, r);
    let tail = polynomial(m, r, EXP);
    m.fma(square, tail, r)
}

/// `x * 2^n` for `|n| <= 252`, in two steps so that the result may be below the normal numbers.
fn scale<M: Machine>(m: &mut M, x: M::F, n: M::I) -> M::F {
    let one = m.i(1);
    let half = m.shr(n, one);
    let rest = m.isub(n, half);
    let [half, rest] = [half, rest].map(|n| power_of_two(m, n));
    let x = m.mul(x, half);
    m.mul(x, rest)
}

/// `2^n` for `-127 < n < 128`.
fn power_of_two<M: Machine>(m: &mut M, n: M::I) -> M::F {
    let [bias, shift] = [127, FRACTION_BITS].map(|value| m.i(value));
    let biased = m.iadd(n, bias);
    let bits = m.shl(biased, shift);
    m.float_of_bits(bits)
}

/// `x` brought into a range, what is no number to its end.
fn clamp<M: Machine>(m: &mut M, x: M::F, low: f32, high: f32) -> M::F {
    let [low, high] = [low, high].map(|value| m.f(value));
    let above = m.less(low, x);
    let x = m.pick(above, x, low);
    let below = m.less(x, high);
    m.pick(below, x, high)
}

/// `value`, or `x` where that is no number.
fn keep_nan<M: Machine>(m: &mut M, x: M::F, value: M::F) -> M::F {
    let is_number = m.equal(x, x);
    m.pick(is_number, value, x)
}

fn exp<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let within = clamp(m, x, -105.0, 90.0);
    let (r, n) = reduce_exp(m, within);
    let fraction = exp_fraction(m, r);
    let one = m.f(1.0);
    let value = m.add(fraction, one);
    let value = scale(m, value, n);
    keep_nan(m, x, value)
}

fn expm1<M: Machine>(m: &mut M, x: M::F) -> M::F {
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

fn tanh<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let square = m.mul(x, x);
    let tail = polynomial(m, square, TANH);
    let cube = m.mul(square, x);
    let small = m.fma(cube, tail, x);
    let magnitude = m.abs(x);
    let twice = m.f(2.0 * LOG2_E[0]);
    let power = m.mul(magnitude, twice);
    let power = m.exp2(power);
    let [one, two] = [1.0, 2.0].map(|value| m.f(value));
    let divisor = m.add(power, one);
    let rest = m.div(two, divisor);
    let large = m.sub(one, rest);
    let large = m.copysign(large, x);
    let limit = m.f(TANH_SPLIT);
    let is_large = m.less(limit, magnitude);
    m.pick(is_large, large, small)
}

fn erf<M: Machine>(m: &mut M, x: M::F) -> M::F {
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

/// The remainder of a division toward zero: exact while the quotient is below `2^23`.
fn fmod<M: Machine>(m: &mut M, x: M::F, y: M::F) -> M::F {
    let [a, b] = [x, y].map(|value| m.abs(value));
    let quotient = m.div(a, b);
    let quotient = m.trunc(quotient);
    let negative = m.neg(quotient);
    let rest = m.fma(negative, b, a);
    // The quotient may have been rounded up to the next integer.
    let [zero, infinity] = [0.0, f32::INFINITY].map(|value| m.f(value));
    let below = m.less(rest, zero);
    let raised = m.add(rest, b);
    let rest = m.pick(below, raised, rest);
    let fits = m.less(a, b);
    let rest = m.pick(fits, a, rest);
    let is_finite = m.less(a, infinity);
    let nan = m.f(f32::NAN);
    let rest = m.pick(is_finite, rest, nan);
    m.copysign(rest, x)
}

/// `r` and `n` with `x = n π/2 + r` and `|r| <= π/4`; `n` modulo 4.
fn reduce_angle<M: Machine>(m: &mut M, x: M::F) -> (M::F, M::I) {
    let scale = m.f(TWO_OVER_PI);
    let n = m.mul(x, scale);
    let n = m.rint(n);
    let mut r = x;
    for part in HALF_PI {
        let part = m.f(-part);
        r = m.fma(n, part, r);
    }
    let magnitude = m.abs(x);
    let limit = m.f(LARGE_ANGLE);
    let is_large = m.less(limit, magnitude);
    let zero = m.f(0.0);
    let within = m.pick(is_large, zero, n);
    let quadrant = m.to_int(within);
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

/// The sine, `ahead` quadrants on.
fn wave<M: Machine>(m: &mut M, x: M::F, ahead: i32) -> M::F {
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

fn tan<M: Machine>(m: &mut M, x: M::F) -> M::F {
    let (r, quadrant) = reduce_angle(m, x);
    let [sin, cos] = [sin_of(m, r), cos_of(m, r)];
    let [one, none] = [1, 0].map(|value| m.i(value));
    let odd = m.and(quadrant, one);
    let is_even = m.iequal(odd, none);
    let reversed = m.neg(cos);
    let above = m.pick(is_even, sin, reversed);
    let below = m.pick(is_even, cos, sin);
    m.div(above, below)
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

fn pow<M: Machine>(m: &mut M, x: M::F, y: M::F) -> M::F {
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
