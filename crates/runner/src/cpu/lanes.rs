//! Operations that treat each element alone.

use bytemuck::Pod;
use tile_compiler::ir::{Attrs, FloatPredicate, IntPredicate, Opcode, Rounding, Scalar};

use super::frame::{Frame, Slot, elements};
use crate::number::{BF16, Bit, F16, Float, Int, Real};

/// Computes `count` elements of a result from the frame.
pub(super) type LaneFn = Box<dyn Fn(&Frame, &mut [u64], usize) + Send + Sync>;

/// Binds `$T` to the storage type of an integer scalar; pointers are `i64`.
macro_rules! with_int {
    ($scalar:expr, $T:ident => $body:expr) => {
        match $scalar {
            Scalar::I1 => {
                type $T = $crate::number::Bit;
                $body
            }
            Scalar::I8 => {
                type $T = u8;
                $body
            }
            Scalar::I16 => {
                type $T = u16;
                $body
            }
            Scalar::I32 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

/// Binds `$T` to the storage type of a floating scalar.
macro_rules! with_float {
    ($scalar:expr, $T:ident => $body:expr) => {
        match $scalar {
            Scalar::F8E5 => {
                type $T = $crate::number::E5M2;
                $body
            }
            Scalar::F8E4NV => {
                type $T = $crate::number::E4M3;
                $body
            }
            Scalar::F8E4B15 => {
                type $T = $crate::number::E4B15;
                $body
            }
            Scalar::F16 => {
                type $T = $crate::number::F16;
                $body
            }
            Scalar::BF16 => {
                type $T = $crate::number::BF16;
                $body
            }
            Scalar::F64 => {
                type $T = f64;
                $body
            }
            _ => {
                type $T = f32;
                $body
            }
        }
    };
}

/// Binds `$T` to the unsigned integer as wide as a scalar in memory.
macro_rules! with_word {
    ($scalar:expr, $T:ident => $body:expr) => {
        match $scalar.bytes() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

pub(super) use {with_float, with_int, with_word};

/// What an elementwise operation works on.
#[derive(Debug)]
pub(super) struct LaneOp<'a> {
    pub opcode: Opcode,
    pub attrs: &'a Attrs,
    /// Registers of the operands.
    pub operands: &'a [Slot],
    /// Element type of the first operand, or of the choices of `select`; pointers are `i64`.
    pub from: Scalar,
    /// Element type of the result.
    pub to: Scalar,
}

pub(super) fn map1<A: Pod, R: Pod>(a: Slot, f: impl Fn(A) -> R + Send + Sync + 'static) -> LaneFn {
    Box::new(move |frame, out, count| {
        let out = elements::<R>(out, count);
        for (out, &a) in out.iter_mut().zip(frame.get::<A>(a, count)) {
            *out = f(a);
        }
    })
}

pub(super) fn map2<A: Pod, B: Pod, R: Pod>(
    a: Slot,
    b: Slot,
    f: impl Fn(A, B) -> R + Send + Sync + 'static,
) -> LaneFn {
    Box::new(move |frame, out, count| {
        let out = elements::<R>(out, count);
        let operands = frame.get::<A>(a, count).iter().zip(frame.get::<B>(b, count));
        for (out, (&a, &b)) in out.iter_mut().zip(operands) {
            *out = f(a, b);
        }
    })
}

pub(super) fn map3<A: Pod, B: Pod, C: Pod, R: Pod>(
    [a, b, c]: [Slot; 3],
    f: impl Fn(A, B, C) -> R + Send + Sync + 'static,
) -> LaneFn {
    Box::new(move |frame, out, count| {
        let out = elements::<R>(out, count);
        let (a, b, c) = (frame.get::<A>(a, count), frame.get(b, count), frame.get(c, count));
        for (out, ((&a, &b), &c)) in out.iter_mut().zip(a.iter().zip(b).zip(c)) {
            *out = f(a, b, c);
        }
    })
}

/// The kernel of an elementwise operation; `None` if the opcode is not one.
pub(super) fn lane_fn(op: &LaneOp) -> Option<LaneFn> {
    integer(op).or_else(|| float(op)).or_else(|| choice(op)).or_else(|| conversion(op))
}

fn integer(op: &LaneOp) -> Option<LaneFn> {
    let binary = |index: usize| op.operands.get(index).copied().unwrap_or(op.operands[0]);
    let (a, b) = (*op.operands.first()?, binary(1));
    macro_rules! int2 {
        ($name:ident) => { with_int!(op.from, T => map2::<T, T, T>(a, b, T::$name)) };
    }
    Some(match op.opcode {
        Opcode::Add => int2!(add),
        Opcode::Sub => int2!(sub),
        Opcode::Mul => int2!(mul),
        Opcode::DivS => int2!(div_s),
        Opcode::DivU => int2!(div_u),
        Opcode::RemS => int2!(rem_s),
        Opcode::RemU => int2!(rem_u),
        Opcode::MulHighU => int2!(mul_high_u),
        Opcode::And => int2!(and),
        Opcode::Or => int2!(or),
        Opcode::Xor => int2!(xor),
        Opcode::Shl => int2!(shl),
        Opcode::ShrS => int2!(shr_s),
        Opcode::ShrU => int2!(shr_u),
        Opcode::MinS => int2!(min_s),
        Opcode::MaxS => int2!(max_s),
        Opcode::MinU => int2!(min_u),
        Opcode::MaxU => int2!(max_u),
        Opcode::AbsS => with_int!(op.from, T => map1::<T, T>(a, T::abs_s)),
        _ => return None,
    })
}

fn float(op: &LaneOp) -> Option<LaneFn> {
    let a = *op.operands.first()?;
    let b = op.operands.get(1).copied().unwrap_or(a);
    macro_rules! float1 {
        ($name:ident) => {
            with_float!(op.from, T => map1::<T, T>(a, |x| T::narrow(Real::$name(x.widen()))))
        };
    }
    macro_rules! float2 {
        ($name:ident) => {
            with_float!(op.from, T => {
                map2::<T, T, T>(a, b, |x, y| T::narrow(Real::$name(x.widen(), y.widen())))
            })
        };
    }
    let propagate = matches!(op.attrs, Attrs::NanRule(rule) if rule.propagate);
    Some(match op.opcode {
        Opcode::FAdd => float2!(add),
        Opcode::FSub => float2!(sub),
        Opcode::FMul => float2!(mul),
        Opcode::FDiv | Opcode::FDivRn => float2!(div),
        Opcode::FRem => float2!(rem),
        Opcode::FMin if propagate => float2!(min_propagate),
        Opcode::FMin => float2!(min_number),
        Opcode::FMax if propagate => float2!(max_propagate),
        Opcode::FMax => float2!(max_number),
        Opcode::FNeg => float1!(neg),
        Opcode::FAbs => float1!(abs),
        Opcode::Exp => float1!(exp),
        Opcode::Exp2 => float1!(exp2),
        Opcode::Log => float1!(log),
        Opcode::Log2 => float1!(log2),
        Opcode::Sin => float1!(sin),
        Opcode::Cos => float1!(cos),
        Opcode::Sqrt | Opcode::SqrtRn => float1!(sqrt),
        Opcode::Rsqrt => float1!(rsqrt),
        Opcode::Erf => float1!(erf),
        Opcode::Floor => float1!(floor),
        Opcode::Ceil => float1!(ceil),
        Opcode::Fma => {
            let c = *op.operands.get(2)?;
            with_float!(op.from, T => map3::<T, T, T, T>([a, b, c], T::fma))
        }
        _ => return None,
    })
}

fn choice(op: &LaneOp) -> Option<LaneFn> {
    let a = *op.operands.first()?;
    let b = op.operands.get(1).copied().unwrap_or(a);
    Some(match (op.opcode, op.attrs) {
        (Opcode::Cmp, Attrs::IntCompare(compare)) => {
            with_int!(op.from, T => compare_ints::<T>(compare.predicate, a, b))
        }
        (Opcode::FCmp, Attrs::FloatCompare(compare)) => {
            with_float!(op.from, T => compare_floats::<T>(compare.predicate, a, b))
        }
        (Opcode::Select, _) => {
            let c = *op.operands.get(2)?;
            with_word!(op.from, T => {
                map3::<Bit, T, T, T>([a, b, c], |c, x, y| if c.0 != 0 { x } else { y })
            })
        }
        _ => return None,
    })
}

fn compare_ints<T: Int + 'static>(predicate: IntPredicate, a: Slot, b: Slot) -> LaneFn {
    match predicate {
        IntPredicate::Eq => map2::<T, T, Bit>(a, b, |x, y| (x == y).into()),
        IntPredicate::Ne => map2::<T, T, Bit>(a, b, |x, y| (x != y).into()),
        IntPredicate::Slt => map2::<T, T, Bit>(a, b, |x, y| x.lt_s(y).into()),
        IntPredicate::Sle => map2::<T, T, Bit>(a, b, |x, y| (!y.lt_s(x)).into()),
        IntPredicate::Sgt => map2::<T, T, Bit>(a, b, |x, y| y.lt_s(x).into()),
        IntPredicate::Sge => map2::<T, T, Bit>(a, b, |x, y| (!x.lt_s(y)).into()),
        IntPredicate::Ult => map2::<T, T, Bit>(a, b, |x, y| x.lt_u(y).into()),
        IntPredicate::Ule => map2::<T, T, Bit>(a, b, |x, y| (!y.lt_u(x)).into()),
        IntPredicate::Ugt => map2::<T, T, Bit>(a, b, |x, y| y.lt_u(x).into()),
        IntPredicate::Uge => map2::<T, T, Bit>(a, b, |x, y| (!x.lt_u(y)).into()),
    }
}

fn compare_floats<T: Float + 'static>(predicate: FloatPredicate, a: Slot, b: Slot) -> LaneFn {
    match predicate {
        FloatPredicate::Oeq => map2::<T, T, Bit>(a, b, |x, y| (x.widen() == y.widen()).into()),
        FloatPredicate::Une => map2::<T, T, Bit>(a, b, |x, y| (x.widen() != y.widen()).into()),
        FloatPredicate::Olt => map2::<T, T, Bit>(a, b, |x, y| (x.widen() < y.widen()).into()),
        FloatPredicate::Ole => map2::<T, T, Bit>(a, b, |x, y| (x.widen() <= y.widen()).into()),
        FloatPredicate::Ogt => map2::<T, T, Bit>(a, b, |x, y| (x.widen() > y.widen()).into()),
        FloatPredicate::Oge => map2::<T, T, Bit>(a, b, |x, y| (x.widen() >= y.widen()).into()),
    }
}

fn conversion(op: &LaneOp) -> Option<LaneFn> {
    let a = *op.operands.first()?;
    let (from, to) = (op.from, op.to);
    Some(match op.opcode {
        Opcode::ExtS => with_int!(from, A => with_int!(to, B => {
            map1::<A, B>(a, |x| B::wrap(x.signed() as u64))
        })),
        Opcode::ExtU | Opcode::Trunc => with_int!(from, A => with_int!(to, B => {
            map1::<A, B>(a, |x| B::wrap(x.unsigned()))
        })),
        Opcode::FExt => with_float!(from, A => with_float!(to, B => {
            map1::<A, B>(a, |x| B::from_f64(x.to_f64()))
        })),
        Opcode::FTrunc => {
            let Attrs::Round(round) = op.attrs else { return None };
            narrowing(a, from, to, round.mode)
        }
        Opcode::SToF => with_int!(from, A => with_float!(to, B => {
            map1::<A, B>(a, |x| B::from_int(i128::from(x.signed())))
        })),
        Opcode::UToF => with_int!(from, A => with_float!(to, B => {
            map1::<A, B>(a, |x| B::from_int(i128::from(x.unsigned())))
        })),
        Opcode::FToS => with_float!(from, A => with_int!(to, B => {
            let highest = i64::MAX >> (64 - B::BITS);
            map1::<A, B>(a, move |x| {
                B::wrap((x.to_f64() as i64).clamp(-highest - 1, highest) as u64)
            })
        })),
        Opcode::FToU => with_float!(from, A => with_int!(to, B => {
            let highest = u64::MAX >> (64 - B::BITS);
            map1::<A, B>(a, move |x| B::wrap((x.to_f64() as u64).min(highest)))
        })),
        Opcode::Bitcast | Opcode::IntToPtr | Opcode::PtrToInt | Opcode::AssertFacts => {
            with_word!(from, T => map1::<T, T>(a, |x| x))
        }
        _ => return None,
    })
}

fn narrowing(a: Slot, from: Scalar, to: Scalar, mode: Rounding) -> LaneFn {
    match (mode, from, to) {
        (Rounding::Nearest, Scalar::F32, Scalar::F16) => map1::<f32, F16>(a, F16::narrow),
        (Rounding::Nearest, Scalar::F32, Scalar::BF16) => map1::<f32, BF16>(a, BF16::narrow),
        (Rounding::Nearest, ..) => with_float!(from, A => with_float!(to, B => {
            map1::<A, B>(a, |x| B::from_f64(x.to_f64()))
        })),
        (Rounding::TowardZero, ..) => with_float!(from, A => with_float!(to, B => {
            map1::<A, B>(a, |x| B::toward_zero(x.to_f64()))
        })),
    }
}
