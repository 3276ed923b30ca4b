//! The algorithms of elementary functions in single precision, over any [`Machine`].
//!
//! Each function is written once: code generation runs it on a machine that writes instructions,
//! tests on one that computes, against the same function in double precision. Polynomials are
//! near-minimax, fitted to the functions named beside them.

use super::exponential::{erf, exp, expm1, tanh};
use super::logarithm::{LOG2_E, LOG10_2, LOG10_E, log, log_to_base, log1p};
use super::machine::Machine;
use super::power::pow;
use super::trigonometry::{tan, wave};

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
