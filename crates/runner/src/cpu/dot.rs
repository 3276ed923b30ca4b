//! Matrix products.
//!
//! Operands are widened to the type of the sum, `f32` for every narrow float. Sums are kept in
//! that type and rounded once at the end. `f32` products are exact `f32` products whatever input
//! precision the kernel asks for: matrix units that round inputs to TF32 differ by about 1e-3.

use std::ops::{Add, Mul};

use bytemuck::Pod;
use tile_compiler::ir::{Scalar, ScaledFormat};

use super::frame::{Frame, Slot, elements};
use super::lanes::with_float;
use crate::number::{BF16, E4M3, E5M2, F16, Float};

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
    /// Power-of-two scales (`2^(byte - 127)`), or their own float format.
    pub scale: Option<(Slot, Scalar, usize)>,
    /// Rows and columns of the values as stored; two 4-bit values share a byte along K if
    /// `k_pack`, along the other axis if not.
    pub k_pack: bool,
}

impl Dot {
    pub fn run(&self, frame: &mut Frame) {
        let mut words = frame.take(self.out);
        match self.out_scalar {
            Scalar::F64 => self.run_in::<f64>(frame, &mut words, widen_f64, |sum| sum),
            Scalar::F32 => self.run_in::<f32>(frame, &mut words, widen_f32, |sum| sum),
            Scalar::F16 => self.run_narrow::<F16>(frame, &mut words),
            Scalar::BF16 => self.run_narrow::<BF16>(frame, &mut words),
            _ => self.run_in::<i32>(frame, &mut words, widen_i32, |sum| sum),
        }
        frame.put(self.out, words);
        frame.flops += 2 * (self.batch * self.m * self.n * self.k) as u64;
    }

    fn run_in<T: Pod + Add<Output = T> + Mul<Output = T>>(
        &self,
        frame: &Frame,
        words: &mut [u64],
        widen: impl Fn(&Frame, &Operand, Matrix) -> Vec<T>,
        finish: impl Fn(T) -> T,
    ) {
        let count = self.batch * self.m * self.n;
        let out = elements::<T>(words, count);
        out.copy_from_slice(frame.get(self.acc, count));
        self.multiply(frame, out, widen);
        out.iter_mut().for_each(|value| *value = finish(*value));
    }

    fn run_narrow<T: Float<Wide = f32>>(&self, frame: &Frame, words: &mut [u64]) {
        let count = self.batch * self.m * self.n;
        let mut sums: Vec<f32> =
            frame.get::<T>(self.acc, count).iter().map(|acc| acc.widen()).collect();
        self.multiply(frame, &mut sums, widen_f32);
        let out = elements::<T>(words, count);
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::narrow(sum));
    }

    fn multiply<T: Pod + Add<Output = T> + Mul<Output = T>>(
        &self,
        frame: &Frame,
        sums: &mut [T],
        widen: impl Fn(&Frame, &Operand, Matrix) -> Vec<T>,
    ) {
        let (m, n, k) = (self.m, self.n, self.k);
        let lhs =
            widen(frame, &self.lhs, Matrix { batch: self.batch, rows: m, cols: k, k_last: true });
        let rhs =
            widen(frame, &self.rhs, Matrix { batch: self.batch, rows: k, cols: n, k_last: false });
        for batch in 0..self.batch {
            let lhs = &lhs[batch * m * k..][..m * k];
            let rhs = &rhs[batch * k * n..][..k * n];
            multiply_add(lhs, rhs, &mut sums[batch * m * n..][..m * n], [m, n, k]);
        }
    }
}

/// Extents of a factor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    batch: usize,
    rows: usize,
    cols: usize,
    /// True when the columns are summed over.
    k_last: bool,
}

impl Matrix {
    fn numel(self) -> usize {
        self.batch * self.rows * self.cols
    }
}

fn widen_f32(frame: &Frame, operand: &Operand, matrix: Matrix) -> Vec<f32> {
    if let Some(scaled) = &operand.scaled {
        return widen_scaled(frame, operand, scaled, matrix);
    }
    let count = matrix.numel();
    match operand.scalar {
        Scalar::F32 => frame.get::<f32>(operand.slot, count).to_vec(),
        scalar if scalar.is_float() => with_float!(scalar, T => {
            frame.get::<T>(operand.slot, count).iter().map(|value| value.to_f64() as f32).collect()
        }),
        _ => frame.get::<i8>(operand.slot, count).iter().map(|&value| f32::from(value)).collect(),
    }
}

fn widen_f64(frame: &Frame, operand: &Operand, matrix: Matrix) -> Vec<f64> {
    with_float!(operand.scalar, T => {
        let values = frame.get::<T>(operand.slot, matrix.numel());
        values.iter().map(|value| value.to_f64()).collect()
    })
}

fn widen_i32(frame: &Frame, operand: &Operand, matrix: Matrix) -> Vec<i32> {
    frame.get::<i8>(operand.slot, matrix.numel()).iter().map(|&value| i32::from(value)).collect()
}

/// The values of a block-scaled factor, each multiplied by its group's scale.
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
    let Some((slot, scalar, scales)) = scaled.scale else { return values };
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
    values
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

/// Columns of a block of sums that is kept in registers.
const BLOCK: usize = 16;
/// Rows of such a block.
const ROWS: usize = 4;

/// `sums += lhs @ rhs`, row-major, each sum in order of `k`.
fn multiply_add<T: Pod + Add<Output = T> + Mul<Output = T>>(
    lhs: &[T],
    rhs: &[T],
    sums: &mut [T],
    [m, n, k]: [usize; 3],
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature that the function is compiled for.
        unsafe { multiply_add_avx2(lhs, rhs, sums, [m, n, k]) };
        return;
    }
    multiply_add_body(lhs, rhs, sums, [m, n, k]);
}

/// The same code with wider registers. Products and sums stay apart (no `fma`), so that results
/// are equal on every machine.
///
/// # Safety
/// The processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn multiply_add_avx2<T: Pod + Add<Output = T> + Mul<Output = T>>(
    lhs: &[T],
    rhs: &[T],
    sums: &mut [T],
    extents: [usize; 3],
) {
    multiply_add_body(lhs, rhs, sums, extents);
}

#[inline(always)]
fn multiply_add_body<T: Pod + Add<Output = T> + Mul<Output = T>>(
    lhs: &[T],
    rhs: &[T],
    sums: &mut [T],
    [m, n, k]: [usize; 3],
) {
    if n.is_multiple_of(BLOCK) && m.is_multiple_of(ROWS) {
        for row in (0..m).step_by(ROWS) {
            for col in (0..n).step_by(BLOCK) {
                block(lhs, rhs, sums, [row, col], [n, k]);
            }
        }
        return;
    }
    for (lhs, sums) in lhs.chunks_exact(k).zip(sums.chunks_exact_mut(n)) {
        for (&factor, rhs) in lhs.iter().zip(rhs.chunks_exact(n)) {
            for (sum, &value) in sums.iter_mut().zip(rhs) {
                *sum = *sum + factor * value;
            }
        }
    }
}

#[inline(always)]
fn block<T: Pod + Add<Output = T> + Mul<Output = T>>(
    lhs: &[T],
    rhs: &[T],
    sums: &mut [T],
    [row, col]: [usize; 2],
    [n, k]: [usize; 2],
) {
    let mut kept = [[T::zeroed(); BLOCK]; ROWS];
    for (at, kept) in kept.iter_mut().enumerate() {
        kept.copy_from_slice(&sums[(row + at) * n + col..][..BLOCK]);
    }
    let rows: [&[T]; ROWS] = std::array::from_fn(|at| &lhs[(row + at) * k..][..k]);
    for step in 0..k {
        let values = &rhs[step * n + col..][..BLOCK];
        for (kept, lhs) in kept.iter_mut().zip(rows) {
            let factor = lhs[step];
            for (sum, &value) in kept.iter_mut().zip(values) {
                *sum = *sum + factor * value;
            }
        }
    }
    for (at, kept) in kept.iter().enumerate() {
        sums[(row + at) * n + col..][..BLOCK].copy_from_slice(kept);
    }
}
