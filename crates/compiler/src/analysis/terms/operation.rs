//! Operations that are not linear: where they are, what they come to, and where their values lie.

use super::{Interval, Linear};

/// Operations that are not linear in general. Quotients and remainders round toward zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// Remainder with the sign of the dividend.
    Rem,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

/// The signed integer of `bits` bits that is congruent to `value`.
pub(in crate::analysis) fn wrapped(bits: u32, value: i128) -> i128 {
    let modulus = 1i128 << bits;
    let low = value.rem_euclid(modulus);
    if low >= modulus / 2 { low - modulus } else { low }
}

/// `a op b` as a linear term, where the ranges allow it.
pub(super) fn simplify(
    op: Operation,
    a: &Linear,
    b: &Linear,
    (of_a, of_b): (Interval, Interval),
    range: impl Fn(&Linear) -> Interval,
) -> Option<Linear> {
    if let (Some(a), Some(b)) = (of_a.constant(), of_b.constant()) {
        return apply(op, a, b).map(Linear::constant);
    }
    match op {
        Operation::Mul => match (of_a.constant(), of_b.constant()) {
            (_, Some(factor)) => a.scaled(factor),
            (Some(factor), _) => b.scaled(factor),
            _ => None,
        },
        Operation::Div | Operation::Rem if of_a.lo >= 0 && of_a.hi < of_b.lo => {
            Some(if op == Operation::Div { Linear::default() } else { a.clone() })
        }
        Operation::Div | Operation::Rem => {
            let divisor = of_b.constant().filter(|divisor| *divisor > 0)?;
            let quotient = quotient(a, divisor, of_a, &range)?;
            match op {
                Operation::Div => Some(quotient),
                _ => a.minus(&quotient.scaled(divisor)?),
            }
        }
        Operation::Min | Operation::Max => {
            let difference = range(&a.minus(b)?);
            let a_is_less = difference.hi <= 0;
            if !a_is_less && difference.lo < 0 {
                return None;
            }
            Some(if a_is_less == (op == Operation::Min) { a.clone() } else { b.clone() })
        }
        Operation::And | Operation::Or | Operation::Xor => None,
    }
}

/// `a / divisor` as a linear term: what is not a multiple of the divisor is within one quotient.
fn quotient(
    a: &Linear,
    divisor: i128,
    of_a: Interval,
    range: &impl Fn(&Linear) -> Interval,
) -> Option<Linear> {
    if of_a.lo / divisor == of_a.hi / divisor && (of_a.lo >= 0 || of_a.hi <= 0) {
        return Some(Linear::constant(of_a.lo / divisor));
    }
    let mut multiple = Linear::constant(a.constant.div_euclid(divisor));
    let mut rest = Linear::constant(a.constant.rem_euclid(divisor));
    for &(atom, factor) in &a.terms {
        if factor % divisor == 0 {
            multiple.terms.push((atom, factor / divisor));
        } else {
            rest.terms.push((atom, factor));
        }
    }
    if multiple.terms.is_empty() {
        return None;
    }
    let rest = range(&rest);
    let step = rest.lo.div_euclid(divisor);
    // Rounding toward zero and rounding down agree on what is not negative.
    let exact = rest == Interval::point(0);
    let one = step == rest.hi.div_euclid(divisor) && of_a.lo >= 0;
    (exact || one).then(|| multiple.offset(step))
}

/// `a op b`; `None` where it is not defined.
pub(super) fn apply(op: Operation, a: i128, b: i128) -> Option<i128> {
    match op {
        Operation::Mul => a.checked_mul(b),
        Operation::Div => a.checked_div(b),
        Operation::Rem => a.checked_rem(b),
        Operation::Min => Some(a.min(b)),
        Operation::Max => Some(a.max(b)),
        Operation::And => Some(a & b),
        Operation::Or => Some(a | b),
        Operation::Xor => Some(a ^ b),
    }
}

/// Where `a op b` lies. Quotients and remainders by 0 have no value.
pub(super) fn operation_range(op: Operation, a: Interval, b: Interval) -> Interval {
    let all = Interval::signed(64);
    match op {
        Operation::Mul => {
            let corners = [a.lo, a.hi].map(|x| [b.lo, b.hi].map(|y| x.saturating_mul(y)));
            let corners = corners.as_flattened();
            let lo = corners.iter().min().copied().unwrap_or(all.lo);
            let hi = corners.iter().max().copied().unwrap_or(all.hi);
            Interval { lo, hi }
        }
        Operation::Div => {
            if b.lo > 0 {
                let corners = [a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi];
                let lo = corners.iter().min().copied().unwrap_or(all.lo);
                let hi = corners.iter().max().copied().unwrap_or(all.hi);
                Interval { lo, hi }
            } else {
                let most = a.lo.saturating_abs().max(a.hi.saturating_abs());
                Interval { lo: -most, hi: most }
            }
        }
        Operation::Rem => {
            let most = b.lo.saturating_abs().max(b.hi.saturating_abs()).saturating_sub(1).max(0);
            Interval {
                lo: if a.lo >= 0 { 0 } else { a.lo.max(-most) },
                hi: if a.hi <= 0 { 0 } else { a.hi.min(most) },
            }
        }
        Operation::Min => Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
        Operation::Max => Interval { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
        Operation::And if a.lo >= 0 && b.lo >= 0 => Interval { lo: 0, hi: a.hi.min(b.hi) },
        Operation::And if a.lo >= 0 => Interval { lo: 0, hi: a.hi },
        Operation::And if b.lo >= 0 => Interval { lo: 0, hi: b.hi },
        Operation::Or | Operation::Xor if a.lo >= 0 && b.lo >= 0 => {
            let bits = 128 - (a.hi | b.hi).leading_zeros();
            Interval { lo: 0, hi: (1i128 << bits.min(126)) - 1 }
        }
        Operation::And | Operation::Or | Operation::Xor => all,
    }
}
