//! What elementary functions are computed on, and what several of them compute.

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
    /// `1 / a` to about one unit in the last place, where both are normal numbers; 0 where that is
    /// below them.
    fn reciprocal(&mut self, a: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    fn fma(&mut self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    fn neg(&mut self, a: Self::F) -> Self::F;
    fn abs(&mut self, a: Self::F) -> Self::F;
    /// The magnitude of `a` with the sign of `b`.
    fn copysign(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// The lesser, or the number where the other is none.
    fn min(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// The greater, or the number where the other is none.
    fn max(&mut self, a: Self::F, b: Self::F) -> Self::F;
    /// To the nearest integer, ties to even.
    fn trunc(&mut self, a: Self::F) -> Self::F;
    /// `2^a` to about two units in the last place; numbers below the normal ones become 0.
    fn exp2(&mut self, a: Self::F) -> Self::F;
    fn less(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// False when either is no number.
    fn equal(&mut self, a: Self::F, b: Self::F) -> Self::B;
    /// False when either is no number.
    fn differ(&mut self, a: Self::F, b: Self::F) -> Self::B;
    fn pick(&mut self, condition: Self::B, yes: Self::F, no: Self::F) -> Self::F;

    fn bits(&mut self, a: Self::F) -> Self::I;
    fn float_of_bits(&mut self, a: Self::I) -> Self::F;
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

pub(super) const FRACTION_BITS: i32 = 23;

pub(super) const EXPONENT_MASK: i32 = 0x7f80_0000;

/// A polynomial with the highest coefficient first.
pub(super) fn polynomial<M: Machine>(m: &mut M, x: M::F, coefficients: &[f32]) -> M::F {
    let mut sum = m.f(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        let next = m.f(coefficient);
        sum = m.fma(sum, x, next);
    }
    sum
}

/// The integer `n` that is nearest to `x * scale`, for `|n| < 2^22`: as a float, and as an integer that
/// is `n` modulo `2^22`. Adding a number whose last place counts ones rounds, which saves both conversions;
/// the hardware does few of them at a time.
pub(super) fn nearest<M: Machine>(m: &mut M, x: M::F, scale: f32) -> (M::F, M::I) {
    /// `1.5 * 2^23`.
    const ONES: f32 = 12_582_912.0;
    let [scale, ones] = [scale, ONES].map(|value| m.f(value));
    let shifted = m.fma(x, scale, ones);
    (m.sub(shifted, ones), m.bits(shifted))
}

/// `a / b` to about one unit in the last place, where `1 / b` is a normal number. A division that rounds
/// to nearest would look at its operands first, and call a function for those near the ends of the range.
pub(super) fn quotient<M: Machine>(m: &mut M, a: M::F, b: M::F) -> M::F {
    let reciprocal = m.reciprocal(b);
    let first = m.mul(a, reciprocal);
    let negative = m.neg(first);
    let rest = m.fma(negative, b, a);
    m.fma(rest, reciprocal, first)
}

/// `x` brought into a range, what is no number to its end.
pub(super) fn clamp<M: Machine>(m: &mut M, x: M::F, low: f32, high: f32) -> M::F {
    let [low, high] = [low, high].map(|value| m.f(value));
    let x = m.max(x, low);
    m.min(x, high)
}

/// `value`, or `x` where that is no number.
pub(super) fn keep_nan<M: Machine>(m: &mut M, x: M::F, value: M::F) -> M::F {
    let is_number = m.equal(x, x);
    m.pick(is_number, value, x)
}

/// `value`, or `otherwise` where that is no number.
pub(super) fn keep_number<M: Machine>(m: &mut M, value: M::F, otherwise: M::F) -> M::F {
    let is_number = m.equal(value, value);
    m.pick(is_number, value, otherwise)
}
