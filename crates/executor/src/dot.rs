//! Matrix products.
//!
//! Operands are widened to the type of the sum, `f32` for every narrow float. Each sum starts from
//! the accumulator, takes its products in order of K by fused multiply-adds, and is rounded to the
//! result's type once at the end. So results are the same on every machine; matrix units sum in
//! another order and round partial sums, which tolerances must allow.
//!
//! What the input precision makes of `f32` operands is as on a GPU: TF32 drops the low 13 bits of
//! the fraction, and `tf32x3`, `bf16x3` and `bf16x6` add up products of parts in the order in
//! which the GPU stage spells them out. `ieee` takes operands as they are.

mod kernel;
mod pack;

use tile_compiler::ir::{DotPrecision, Scalar, ScaledFormat};

use super::frame::{Frame, Scratch, Slot, elements};
use super::lanes::with_float;
use super::simd::widest;
use crate::number::{BF16, E4M3, E5M2, F16, Float};
use kernel::{Multiply, Sum};
use pack::{COLS, Matrix, ROWS, Target};

/// A matrix product, compiled: `batch` products of `m * k` by `k * n`.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    pub lhs: Operand,
    pub rhs: Operand,
    pub acc: Slot,
    pub out: Slot,
    pub out_scalar: Scalar,
    pub batch: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// What is made of `f32` operands.
    pub precision: DotPrecision,
}

/// One factor.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub slot: Slot,
    pub scalar: Scalar,
    /// For block-scaled products: how the values are to be read.
    pub scaled: Option<Scaled>,
}

/// How a factor of a block-scaled product is encoded.
#[derive(Debug, Clone)]
pub(super) struct Scaled {
    pub format: ScaledFormat,
    /// Scaled values are rounded to f16, as they are when one of the factors is f16; else to bf16.
    pub half: bool,
    /// Power-of-two scales (`2^(byte - 127)`), or their own float format.
    pub scale: Option<(Slot, Scalar, usize)>,
    /// Rows and columns of the values as stored; two 4-bit values share a byte along K if
    /// `k_pack`, along the other axis if not.
    pub k_pack: bool,
}

/// The first `count` elements of scratch memory, as they were left.
fn borrow<T: bytemuck::Pod>(words: &mut Vec<u64>, count: usize) -> &mut [T] {
    let needed = (count * size_of::<T>()).div_ceil(8);
    if words.len() < needed {
        words.resize(needed, 0);
    }
    elements(words, count)
}

/// What part of an `f32` a pass of a product takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Tf32,
    /// What TF32 leaves, as TF32.
    Tf32Rest,
    /// The nearest bf16 (0), that of the rest (1), and that of its rest (2).
    Bf16(u8),
}

/// The operands' parts in each pass of a product, in order.
fn passes(precision: DotPrecision) -> &'static [[Part; 2]] {
    use Part::{Bf16, Tf32, Tf32Rest, Whole};
    match precision {
        DotPrecision::Ieee => &[[Whole, Whole]],
        DotPrecision::Tf32 => &[[Tf32, Tf32]],
        DotPrecision::Tf32x3 => &[[Tf32Rest, Tf32], [Tf32, Tf32Rest], [Tf32, Tf32]],
        DotPrecision::Bf16x3 => &[[Bf16(1), Bf16(0)], [Bf16(0), Bf16(1)], [Bf16(0), Bf16(0)]],
        DotPrecision::Bf16x6 => &[
            [Bf16(2), Bf16(0)],
            [Bf16(1), Bf16(1)],
            [Bf16(0), Bf16(2)],
            [Bf16(1), Bf16(0)],
            [Bf16(0), Bf16(1)],
            [Bf16(0), Bf16(0)],
        ],
    }
}

/// What matrix units read of an `f32` as TF32; a NaN stays one.
#[inline(always)]
fn tf32(value: f32) -> f32 {
    const KEPT: u32 = 0xffff_e000;
    let quiet = u32::from(value.is_nan()) << 22;
    f32::from_bits((value.to_bits() | quiet) & KEPT)
}

#[inline(always)]
fn tf32_rest(value: f32) -> f32 {
    tf32(value - tf32(value))
}

fn bf16_part(value: f32, part: u8) -> f32 {
    let rounded = |value: f32| BF16::narrow(value).widen();
    let rest = (0..part).fold(value, |rest, _| rest - rounded(rest));
    rounded(rest)
}

impl Dot {
    pub fn run(&self, frame: &mut Frame) {
        let mut words = frame.take(self.out);
        let mut scratch = std::mem::take(&mut frame.scratch);
        match self.out_scalar {
            Scalar::F64 => self.run_in::<f64>(frame, &mut scratch, &mut words, pack_f64),
            Scalar::F32 => self.run_f32(frame, &mut scratch, &mut words),
            Scalar::F16 => self.run_narrow::<F16>(frame, &mut scratch, &mut words),
            Scalar::BF16 => self.run_narrow::<BF16>(frame, &mut scratch, &mut words),
            _ => self.run_in::<i32>(frame, &mut scratch, &mut words, pack_i32),
        }
        frame.scratch = scratch;
        frame.put(self.out, words);
        frame.flops += 2 * (self.batch * self.m * self.n * self.k) as u64;
    }

    fn count(&self) -> usize {
        self.batch * self.m * self.n
    }

    fn run_in<T: Sum>(
        &self,
        frame: &Frame,
        scratch: &mut Scratch,
        words: &mut [u64],
        pack: impl Fn(&Frame, &Operand, Target<'_, T>),
    ) {
        let out = elements::<T>(words, self.count());
        out.copy_from_slice(frame.get(self.acc, self.count()));
        self.multiply(scratch, out, |operand, _, target| pack(frame, operand, target));
    }

    fn run_f32(&self, frame: &Frame, scratch: &mut Scratch, words: &mut [u64]) {
        let acc = frame.get::<f32>(self.acc, self.count());
        let out = elements::<f32>(words, self.count());
        let wide = self.lhs.scalar == Scalar::F32 && self.rhs.scalar == Scalar::F32;
        let passes = passes(if wide { self.precision } else { DotPrecision::Ieee });
        let [parts] = passes else { return self.run_split(frame, scratch, out, passes) };
        out.copy_from_slice(acc);
        self.multiply(scratch, out, |operand, side, target| {
            pack_f32(frame, operand, parts[side], target);
        });
    }

    /// Several products, the smallest parts first; what infinities make of those is dropped.
    fn run_split(
        &self,
        frame: &Frame,
        scratch: &mut Scratch,
        out: &mut [f32],
        passes: &[[Part; 2]],
    ) {
        out.fill(0.0);
        for (at, &parts) in passes.iter().enumerate() {
            if at + 1 == passes.len() {
                out.iter_mut().filter(|sum| sum.is_nan()).for_each(|sum| *sum = 0.0);
            }
            self.multiply(scratch, out, |operand, side, target| {
                pack_f32(frame, operand, parts[side], target);
            });
        }
        let acc = frame.get::<f32>(self.acc, self.count());
        out.iter_mut().zip(acc).for_each(|(sum, acc)| *sum += acc);
    }

    fn run_narrow<T: Float<Wide = f32>>(
        &self,
        frame: &Frame,
        scratch: &mut Scratch,
        words: &mut [u64],
    ) {
        let mut kept = std::mem::take(&mut scratch.sums);
        let sums = borrow::<f32>(&mut kept, self.count());
        let acc = frame.get::<T>(self.acc, self.count());
        sums.iter_mut().zip(acc).for_each(|(sum, acc)| *sum = acc.widen());
        self.multiply(scratch, sums, |operand, _, target| {
            pack_f32(frame, operand, Part::Whole, target);
        });
        let out = elements::<T>(words, self.count());
        out.iter_mut().zip(&*sums).for_each(|(out, &sum)| *out = T::narrow(sum));
        scratch.sums = kept;
    }

    /// `sums += lhs @ rhs`; `pack` fills in the packed form of an operand: the left one is of
    /// side 0, the right one of side 1.
    fn multiply<T: Sum>(
        &self,
        scratch: &mut Scratch,
        sums: &mut [T],
        pack: impl Fn(&Operand, usize, Target<'_, T>),
    ) {
        let (m, n, k) = (self.m, self.n, self.k);
        let (rows, cols) = (m.next_multiple_of(ROWS), n.next_multiple_of(COLS));
        let lhs = borrow::<T>(&mut scratch.lhs, self.batch * rows * k);
        let rhs = borrow::<T>(&mut scratch.rhs, self.batch * k * cols);
        let left = Matrix { batch: self.batch, rows: m, cols: k, k_last: true };
        let right = Matrix { batch: self.batch, rows: k, cols: n, k_last: false };
        pack(&self.lhs, 0, Target { matrix: left, out: lhs });
        pack(&self.rhs, 1, Target { matrix: right, out: rhs });
        let operands = lhs.chunks_exact(rows * k).zip(rhs.chunks_exact(k * cols));
        for ((lhs, rhs), sums) in operands.zip(sums.chunks_exact_mut(m * n)) {
            widest(Multiply { lhs, rhs, sums, extents: [m, n, k] });
        }
    }
}

fn pack_f32(frame: &Frame, operand: &Operand, part: Part, target: Target<'_, f32>) {
    let count = target.matrix.numel();
    if let Some(scaled) = &operand.scaled {
        let values = widen_scaled(frame, operand, scaled, target.matrix);
        return target.fill(&values, |value| value);
    }
    match operand.scalar {
        Scalar::F32 => {
            let values = frame.get::<f32>(operand.slot, count);
            match part {
                Part::Whole => target.fill(values, |value| value),
                Part::Tf32 => target.fill(values, tf32),
                Part::Tf32Rest => target.fill(values, tf32_rest),
                Part::Bf16(part) => target.fill(values, |value| bf16_part(value, part)),
            }
        }
        scalar if scalar.is_float() => with_float!(scalar, T => {
            target.fill(frame.get::<T>(operand.slot, count), T::to_f32);
        }),
        _ => target.fill(frame.get::<i8>(operand.slot, count), f32::from),
    }
}

fn pack_f64(frame: &Frame, operand: &Operand, target: Target<'_, f64>) {
    let count = target.matrix.numel();
    with_float!(operand.scalar, T => {
        target.fill(frame.get::<T>(operand.slot, count), T::to_f64);
    });
}

fn pack_i32(frame: &Frame, operand: &Operand, target: Target<'_, i32>) {
    let count = target.matrix.numel();
    target.fill(frame.get::<i8>(operand.slot, count), i32::from);
}

/// The values of a block-scaled factor, each multiplied by its group's scale and rounded to what the
/// GPU stage multiplies.
fn widen_scaled(frame: &Frame, operand: &Operand, scaled: &Scaled, matrix: Matrix) -> Vec<f32> {
    let count = matrix.numel();
    let mut values = match scaled.format {
        ScaledFormat::E2M1 => unpack_e2m1(frame, operand.slot, matrix, scaled.k_pack),
        ScaledFormat::E4M3 => {
            frame.get::<E4M3>(operand.slot, count).iter().map(|value| value.widen()).collect()
        }
        ScaledFormat::E5M2 => {
            frame.get::<E5M2>(operand.slot, count).iter().map(|value| value.widen()).collect()
        }
        ScaledFormat::Bf16 => {
            frame.get::<BF16>(operand.slot, count).iter().map(|value| value.widen()).collect()
        }
        ScaledFormat::Fp16 => {
            frame.get::<F16>(operand.slot, count).iter().map(|value| value.widen()).collect()
        }
    };
    scale_groups(frame, scaled, matrix, &mut values);
    for value in &mut values {
        *value = match scaled.half {
            true => F16::narrow(*value).widen(),
            false => BF16::narrow(*value).widen(),
        };
    }
    values
}

/// Multiplies each group of values along K by its scale.
fn scale_groups(frame: &Frame, scaled: &Scaled, matrix: Matrix, values: &mut [f32]) {
    let Some((slot, scalar, scales)) = scaled.scale else { return };
    // Scales are stored with the group along K last, for both factors.
    let (k, other) =
        if matrix.k_last { (matrix.cols, matrix.rows) } else { (matrix.rows, matrix.cols) };
    let groups = (scales / (matrix.batch * other)).max(1);
    let group = k.div_ceil(groups).max(1);
    for (at, value) in values.iter_mut().enumerate() {
        let (batch, within) = (at / (matrix.rows * matrix.cols), at % (matrix.rows * matrix.cols));
        let (row, col) = (within / matrix.cols, within % matrix.cols);
        let (along_k, across) = if matrix.k_last { (col, row) } else { (row, col) };
        let index = (batch * other + across) * groups + along_k / group;
        *value *= scale(frame, slot, scalar, scales, index);
    }
}

fn scale(frame: &Frame, slot: Slot, scalar: Scalar, count: usize, index: usize) -> f32 {
    match scalar {
        Scalar::F8E4NV => frame.get::<E4M3>(slot, count)[index].widen(),
        _ => match frame.get::<u8>(slot, count)[index] {
            255 => f32::NAN,
            0 => f32::from_bits(1 << 22),
            exponent => f32::from_bits(u32::from(exponent) << 23),
        },
    }
}

/// The eight magnitudes of the 4-bit float with 2 exponent bits and 1 mantissa bit.
const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

fn unpack_e2m1(frame: &Frame, slot: Slot, matrix: Matrix, k_pack: bool) -> Vec<f32> {
    let bytes = frame.get::<u8>(slot, matrix.numel() / 2);
    let last_is_packed = matrix.k_last == k_pack;
    let decode = |nibble: u8| {
        let magnitude = E2M1[usize::from(nibble & 7)];
        if nibble & 8 == 0 { magnitude } else { -magnitude }
    };
    let value = |at: usize| {
        let (byte, high) = if last_is_packed {
            (at / 2, at % 2 == 1)
        } else {
            let (row, col) = (at / matrix.cols, at % matrix.cols);
            ((row / 2) * matrix.cols + col, row % 2 == 1)
        };
        decode(if high { bytes[byte] >> 4 } else { bytes[byte] & 15 })
    };
    (0..matrix.numel()).map(value).collect()
}
