//! Operations that treat each element alone.

use std::ops::Range;

use bytemuck::Pod;
use tile_compiler::ir::{Attrs, FloatPredicate, IntPredicate, Opcode, Rounding, Scalar};

use super::frame::{Frame, Slot, elements};
use super::simd::{Loop, widest};
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

/// `out[i] = f(a[i])`.
struct Map1<'a, A, R, F> {
    a: &'a [A],
    out: &'a mut [R],
    f: &'a F,
}

impl<A: Pod, R: Pod, F: Fn(A) -> R> Loop for Map1<'_, A, R, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Map1 { a, out, f } = self;
        assert!(a.len() == out.len());
        let mut at = 0;
        while at < out.len() {
            out[at] = f(a[at]);
            at += 1;
        }
    }
}

/// `out[i] = f(a[i], b[i])`.
struct Map2<'a, A, B, R, F> {
    a: &'a [A],
    b: &'a [B],
    out: &'a mut [R],
    f: &'a F,
}

impl<A: Pod, B: Pod, R: Pod, F: Fn(A, B) -> R> Loop for Map2<'_, A, B, R, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Map2 { a, b, out, f } = self;
        assert!(a.len() == out.len() && b.len() == out.len());
        let mut at = 0;
        while at < out.len() {
            out[at] = f(a[at], b[at]);
            at += 1;
        }
    }
}

/// `out[i] = f(a[i], b[i], c[i])`.
struct Map3<'a, A, B, C, R, F> {
    operands: (&'a [A], &'a [B], &'a [C]),
    out: &'a mut [R],
    f: &'a F,
}

impl<A: Pod, B: Pod, C: Pod, R: Pod, F: Fn(A, B, C) -> R> Loop for Map3<'_, A, B, C, R, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Map3 { operands: (a, b, c), out, f } = self;
        assert!(a.len() == out.len() && b.len() == out.len() && c.len() == out.len());
        let mut at = 0;
        while at < out.len() {
            out[at] = f(a[at], b[at], c[at]);
            at += 1;
        }
    }
}

pub(super) fn map1<A: Pod, R: Pod>(a: Slot, f: impl Fn(A) -> R + Send + Sync + 'static) -> LaneFn {
    Box::new(move |frame, out, count| {
        widest(Map1 { a: frame.get(a, count), out: elements(out, count), f: &f });
    })
}

pub(super) fn map2<A: Pod, B: Pod, R: Pod>(
    a: Slot,
    b: Slot,
    f: impl Fn(A, B) -> R + Send + Sync + 'static,
) -> LaneFn {
    Box::new(move |frame, out, count| {
        let (a, b) = (frame.get(a, count), frame.get(b, count));
        widest(Map2 { a, b, out: elements(out, count), f: &f });
    })
}

pub(super) fn map3<A: Pod, B: Pod, C: Pod, R: Pod>(
    [a, b, c]: [Slot; 3],
    f: impl Fn(A, B, C) -> R + Send + Sync + 'static,
) -> LaneFn {
    Box::new(move |frame, out, count| {
        let operands = (frame.get(a, count), frame.get(b, count), frame.get(c, count));
        widest(Map3 { operands, out: elements(out, count), f: &f });
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

/// Elements that narrow operations widen at a time, on the stack.
const CHUNK: usize = 256;

/// Applies an operation on `f32` to a narrower type: each chunk is widened, computed and rounded.
/// Only widening and rounding depend on the type, so that the operation is compiled once.
fn map_narrow1(scalar: Scalar, a: Slot, f: impl Fn(f32) -> f32 + Send + Sync + 'static) -> LaneFn {
    let (widen, narrow) = (widening(scalar), narrowing_to(scalar));
    Box::new(move |frame, out, count| {
        let (mut wide, mut results) = ([0f32; CHUNK], [0f32; CHUNK]);
        for start in (0..count).step_by(CHUNK) {
            let end = count.min(start + CHUNK);
            let (wide, results) = (&mut wide[..end - start], &mut results[..end - start]);
            widen(frame, a, start..end, wide);
            widest(Map1 { a: wide, out: results, f: &f });
            narrow(results, out, start);
        }
    })
}

/// As [`map_narrow1`], of two operands.
fn map_narrow2(
    scalar: Scalar,
    [a, b]: [Slot; 2],
    f: impl Fn(f32, f32) -> f32 + Send + Sync + 'static,
) -> LaneFn {
    let (widen, narrow) = (widening(scalar), narrowing_to(scalar));
    Box::new(move |frame, out, count| {
        let mut wide = [[0f32; CHUNK]; 2];
        let mut results = [0f32; CHUNK];
        for start in (0..count).step_by(CHUNK) {
            let end = count.min(start + CHUNK);
            let results = &mut results[..end - start];
            let [left, right] = wide.each_mut().map(|wide| &mut wide[..end - start]);
            widen(frame, a, start..end, left);
            widen(frame, b, start..end, right);
            widest(Map2 { a: left, b: right, out: results, f: &f });
            narrow(results, out, start);
        }
    })
}

type Read<M> = fn(&Frame, Slot, Range<usize>, &mut [M]);
type Write<M> = fn(&[M], &mut [u64], usize);

fn read<T: Pod, M: Pod>(
    frame: &Frame,
    slot: Slot,
    range: Range<usize>,
    out: &mut [M],
    f: impl Fn(T) -> M,
) {
    widest(Map1 { a: &frame.get::<T>(slot, range.end)[range], out, f: &f });
}

fn write<T: Pod, M: Pod>(values: &[M], out: &mut [u64], start: usize, f: impl Fn(M) -> T) {
    let out = &mut elements::<T>(out, start + values.len())[start..];
    widest(Map1 { a: values, out, f: &f });
}

fn widening(scalar: Scalar) -> Read<f32> {
    with_float!(scalar, T => |frame, slot, range, out| {
        read::<T, f32>(frame, slot, range, out, |value| value.to_f32());
    })
}

fn narrowing_to(scalar: Scalar) -> Write<f32> {
    with_float!(scalar, T => |values, out, start| {
        write::<T, f32>(values, out, start, T::from_f32);
    })
}

/// Converts through an intermediate type that holds every value of the source, so that reading
/// and writing are compiled once per type and not once per pair.
fn staged<M: Pod + Default + Send + Sync + 'static>(
    from: Slot,
    read: Read<M>,
    write: Write<M>,
) -> LaneFn {
    Box::new(move |frame, out, count| {
        let mut stage = [M::default(); CHUNK];
        for start in (0..count).step_by(CHUNK) {
            let end = count.min(start + CHUNK);
            read(frame, from, start..end, &mut stage[..end - start]);
            write(&stage[..end - start], out, start);
        }
    })
}

fn float(op: &LaneOp) -> Option<LaneFn> {
    let a = *op.operands.first()?;
    let b = op.operands.get(1).copied().unwrap_or(a);
    macro_rules! float1 {
        ($name:ident) => {
            match op.from {
                Scalar::F32 => map1::<f32, f32>(a, <f32 as Real>::$name),
                Scalar::F64 => map1::<f64, f64>(a, <f64 as Real>::$name),
                narrow => map_narrow1(narrow, a, <f32 as Real>::$name),
            }
        };
    }
    macro_rules! float2 {
        ($name:ident) => {
            match op.from {
                Scalar::F32 => map2::<f32, f32, f32>(a, b, <f32 as Real>::$name),
                Scalar::F64 => map2::<f64, f64, f64>(a, b, <f64 as Real>::$name),
                narrow => map_narrow2(narrow, [a, b], <f32 as Real>::$name),
            }
        };
    }
    if !op.from.is_float() {
        return None;
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
        Opcode::ExtS => staged(a, signed(from), wrapping(to)),
        Opcode::ExtU | Opcode::Trunc => staged(a, unsigned(from), wrapping(to)),
        Opcode::FExt if (from, to) == (Scalar::F16, Scalar::F32) => map1::<F16, f32>(a, F16::widen),
        Opcode::FExt if (from, to) == (Scalar::BF16, Scalar::F32) => {
            map1::<BF16, f32>(a, BF16::widen)
        }
        Opcode::FExt => staged(a, floats(from), rounding(to)),
        Opcode::FTrunc => {
            let Attrs::Round(round) = op.attrs else { return None };
            narrowing(a, from, to, round.mode)
        }
        Opcode::SToF if (from, to) == (Scalar::I32, Scalar::F32) => {
            map1::<i32, f32>(a, |x| x as f32)
        }
        Opcode::SToF => staged(
            a,
            signed(from),
            with_float!(to, T => |values, out, start| {
                write::<T, u64>(values, out, start, |x| T::from_int(i128::from(x as i64)));
            }),
        ),
        Opcode::UToF => staged(
            a,
            unsigned(from),
            with_float!(to, T => |values, out, start| {
                write::<T, u64>(values, out, start, |x| T::from_int(i128::from(x)));
            }),
        ),
        Opcode::FToS => staged(
            a,
            floats(from),
            with_int!(to, T => |values, out, start| {
                let highest = i64::MAX >> (64 - T::BITS);
                write::<T, f64>(values, out, start, |x| {
                    T::wrap((x as i64).clamp(-highest - 1, highest) as u64)
                });
            }),
        ),
        Opcode::FToU => staged(
            a,
            floats(from),
            with_int!(to, T => |values, out, start| {
                let highest = u64::MAX >> (64 - T::BITS);
                write::<T, f64>(values, out, start, |x| T::wrap((x as u64).min(highest)));
            }),
        ),
        Opcode::Bitcast | Opcode::IntToPtr | Opcode::PtrToInt | Opcode::AssertFacts => {
            with_word!(from, T => map1::<T, T>(a, |x| x))
        }
        _ => return None,
    })
}

fn signed(scalar: Scalar) -> Read<u64> {
    with_int!(scalar, T => |frame, slot, range, out| {
        read::<T, u64>(frame, slot, range, out, |value| value.signed() as u64);
    })
}

fn unsigned(scalar: Scalar) -> Read<u64> {
    with_int!(scalar, T => |frame, slot, range, out| {
        read::<T, u64>(frame, slot, range, out, |value| value.unsigned());
    })
}

fn floats(scalar: Scalar) -> Read<f64> {
    with_float!(scalar, T => |frame, slot, range, out| {
        read::<T, f64>(frame, slot, range, out, |value| value.to_f64());
    })
}

fn wrapping(scalar: Scalar) -> Write<u64> {
    with_int!(scalar, T => |values, out, start| write::<T, u64>(values, out, start, T::wrap))
}

fn rounding(scalar: Scalar) -> Write<f64> {
    with_float!(scalar, T => |values, out, start| write::<T, f64>(values, out, start, T::from_f64))
}

fn narrowing(a: Slot, from: Scalar, to: Scalar, mode: Rounding) -> LaneFn {
    match (mode, from, to) {
        (Rounding::Nearest, Scalar::F32, Scalar::F16) => map1::<f32, F16>(a, F16::narrow),
        (Rounding::Nearest, Scalar::F32, Scalar::BF16) => map1::<f32, BF16>(a, BF16::narrow),
        (Rounding::Nearest, ..) => staged(a, floats(from), rounding(to)),
        (Rounding::TowardZero, ..) => staged(
            a,
            floats(from),
            with_float!(to, T => {
                |values, out, start| write::<T, f64>(values, out, start, T::toward_zero)
            }),
        ),
    }
}
