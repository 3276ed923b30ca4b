//! What a lane holds, as far as it matters to a reduction that counts it, and what operations make
//! of it.

use crate::ir::{Constant, Opcode, Scalar};

/// From this size on a number is taken for an infinity: its exponential is none of the others.
const FAR: f64 = 80.0;

/// A number smaller than this changes no sum that anybody would notice.
const TINY: f64 = 1e-6;

/// What a lane holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::analysis) enum Holds {
    /// This number.
    Number(f64),
    /// A number that depends on what is loaded or passed, and is 0 for hardly any of that.
    NonZero,
    /// As [`Holds::NonZero`], and as well below 0 as above.
    Signed,
    /// Some number, and no infinity.
    Finite,
    /// Some number, or minus infinity.
    Lowest,
    /// Anything.
    Any,
}

impl Holds {
    /// Whether a sum is another one without it, but for hardly any inputs.
    pub(super) fn counts(self) -> bool {
        match self {
            Holds::Number(number) => number.is_nan() || number.abs() > TINY,
            Holds::NonZero | Holds::Signed => true,
            Holds::Finite | Holds::Lowest | Holds::Any => false,
        }
    }

    /// Whether it is no number at all.
    pub(in crate::analysis) fn is_nan(self) -> bool {
        matches!(self, Holds::Number(number) if number.is_nan())
    }

    /// Whether it is an infinity.
    pub(super) fn is_infinite(self) -> bool {
        matches!(self, Holds::Number(number) if number.is_infinite())
    }

    /// Whether it is a number whose exponential is 0 or too large to be held.
    fn is_far(self) -> bool {
        matches!(self, Holds::Number(number) if number.abs() >= FAR)
    }

    /// The same without what only conversions leave true.
    fn computed(self) -> Holds {
        if self == Holds::Signed { Holds::NonZero } else { self }
    }

    /// The number that a float constant of this type is, unless it is of 8 bits.
    pub(in crate::analysis) fn constant(number: Scalar, bits: u64) -> Holds {
        Constant { bits }.number(number).map_or(Holds::Any, Holds::Number)
    }
}

/// What an operation makes of one operand.
pub(super) fn one(opcode: Opcode, of: Holds) -> Holds {
    use Holds::{Any, Finite, NonZero, Number};
    match (opcode, of.computed()) {
        (Opcode::FExt | Opcode::FTrunc, _) => of,
        (_, Holds::Lowest) => Any,
        (Opcode::FNeg, Number(a)) => Number(-a),
        (Opcode::FAbs, Number(a)) => Number(a.abs()),
        (Opcode::Exp, Number(a)) => Number(a.exp()),
        (Opcode::Exp2, Number(a)) => Number(a.exp2()),
        (Opcode::Sqrt | Opcode::SqrtRn, Number(a)) if a >= 0.0 => Number(a.sqrt()),
        (Opcode::Rsqrt, Number(a)) if a > 0.0 => Number(a.sqrt().recip()),
        (Opcode::Log, Number(a)) if a > 0.0 => Number(a.ln()),
        (Opcode::Log2, Number(a)) if a > 0.0 => Number(a.log2()),
        (Opcode::Sin | Opcode::Erf, Number(0.0)) => Number(0.0),
        (Opcode::Cos, Number(0.0)) => Number(1.0),
        (Opcode::FNeg | Opcode::FAbs, of) => of,
        (Opcode::Exp | Opcode::Exp2, NonZero | Finite) => NonZero,
        (Opcode::Sqrt | Opcode::SqrtRn | Opcode::Rsqrt, NonZero) => NonZero,
        (Opcode::SToF | Opcode::UToF, of @ Number(_)) => of,
        (Opcode::SToF | Opcode::UToF, _) => Finite,
        (Opcode::ExtS | Opcode::Trunc, of @ Number(_)) => of,
        _ => Any,
    }
}

/// What an operation makes of two operands.
pub(super) fn two(opcode: Opcode, a: Holds, b: Holds) -> Holds {
    use Holds::{Any, Finite, Lowest, NonZero, Number};
    let (a, b) = (a.computed(), b.computed());
    match (opcode, a, b) {
        (Opcode::FMax, Lowest, Number(_) | NonZero | Finite)
        | (Opcode::FMax, Number(_) | NonZero | Finite, Lowest)
            if !a.is_far() && !b.is_far() =>
        {
            Finite
        }
        (_, Lowest, _) | (_, _, Lowest) => Any,
        (Opcode::FAdd | Opcode::Add, Number(a), Number(b)) => Number(a + b),
        (Opcode::FSub | Opcode::Sub, Number(a), Number(b)) => Number(a - b),
        (Opcode::FMul | Opcode::Mul, Number(a), Number(b)) => Number(a * b),
        (Opcode::FDiv | Opcode::FDivRn, Number(a), Number(b)) if b != 0.0 => Number(a / b),
        // All bits of -1 are alike.
        (Opcode::ShrS, Number(0.0 | -1.0), _) => a,
        (Opcode::Shl | Opcode::ShrU | Opcode::And, Number(0.0), _)
        | (Opcode::And, _, Number(0.0)) => Number(0.0),
        (Opcode::And, Number(a), Number(b)) => Number(((a as i64) & (b as i64)) as f64),
        (Opcode::FMax | Opcode::MaxS, Number(a), Number(b)) => Number(a.max(b)),
        (Opcode::FMin | Opcode::MinS, Number(a), Number(b)) => Number(a.min(b)),
        (Opcode::FMul | Opcode::Mul, Number(0.0), _)
        | (Opcode::FMul | Opcode::Mul, _, Number(0.0))
        | (Opcode::FDiv | Opcode::FDivRn, Number(0.0), _) => Number(0.0),
        // What is far away stays there, whatever ordinary number is added.
        (Opcode::FAdd | Opcode::FSub, Number(number), NonZero | Finite) if a.is_far() => {
            Number(number)
        }
        (Opcode::FAdd, NonZero | Finite, Number(number)) if b.is_far() => Number(number),
        (Opcode::FSub, NonZero | Finite, Number(number)) if b.is_far() => Number(-number),
        (Opcode::FMax, far, other @ (NonZero | Finite))
        | (Opcode::FMax, other @ (NonZero | Finite), far)
            if far.is_far() =>
        {
            other
        }
        (Opcode::FMax, NonZero | Finite, _) | (Opcode::FMax, _, NonZero | Finite) => Finite,
        // Not below that number, and what is loaded is hardly ever infinite.
        (Opcode::FMax, Number(_), Any) if !a.is_far() => Finite,
        (Opcode::FMax, Any, Number(_)) if !b.is_far() => Finite,
        (Opcode::FDiv | Opcode::FDivRn, NonZero, Number(by)) if by.is_finite() => NonZero,
        (Opcode::FMul, NonZero, Number(by)) | (Opcode::FMul, Number(by), NonZero)
            if by.is_finite() =>
        {
            NonZero
        }
        _ if a.is_far() || b.is_far() || a == Any || b == Any => Any,
        (Opcode::FAdd | Opcode::FSub, NonZero, Number(_))
        | (Opcode::FAdd | Opcode::FSub, Number(_), NonZero)
        | (Opcode::FMul, NonZero | Number(_), NonZero | Number(_))
        | (Opcode::FDiv | Opcode::FDivRn, NonZero | Number(_), NonZero | Number(_) | Finite) => {
            NonZero
        }
        // A divisor is 0 for hardly any inputs.
        (Opcode::FDiv | Opcode::FDivRn, Finite, Number(by)) if by != 0.0 => Finite,
        (Opcode::FDiv | Opcode::FDivRn, Finite, NonZero | Finite) => Finite,
        (Opcode::FAdd | Opcode::FSub | Opcode::FMul, _, _) => Finite,
        _ => Any,
    }
}
