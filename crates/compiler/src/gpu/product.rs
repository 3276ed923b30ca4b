//! Matrix products: which instruction computes them, and the layouts that it asks for.
//!
//! In: a product of a verified tile-level function. Out: `mma.sync` where the target's matrix units
//! take the element types and the shape fills an instruction, `wgmma` where the target has it and
//! four warps have 64 rows, else multiply-adds; and the layouts
//! of the accumulator and of what each thread needs of the operands. The accumulator keeps its
//! layout through loops and element-wise work. Cost: linear in the function per product, to see
//! which products feed each other.

use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

use super::{GpuTarget, LANES, LowerError, propagate};
use crate::ir::{Attrs, DotPrecision, Effects, Function, InstData, Opcode, Scalar, Value};
use crate::layout::{BlockedLayout, Dim, LayoutError, LinearLayout, MmaLayout, MmaVersion};

/// What computes a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProductKind {
    /// `mma.sync`, 16×8 results from `8 * k_width` products each.
    Mma {
        /// Neighbors along K in one 32-bit register.
        k_width: usize,
    },
    /// `wgmma`, 64 rows of the result per group of four warps.
    WarpGroup {
        /// Neighbors along K in one 32-bit register of the left operand, where that is in registers.
        k_width: usize,
    },
    /// One multiply-add per result element and step along K.
    MultiplyAdd,
}

/// The layouts of one product.
#[derive(Debug, Clone)]
pub struct ProductLayouts {
    /// Of the accumulator and the result.
    pub acc: LinearLayout,
    /// Of the left operand.
    pub lhs: LinearLayout,
    /// Of the right operand.
    pub rhs: LinearLayout,
}

/// What computes the product `data` on `target`.
pub fn kind(func: &Function, data: &InstData, target: GpuTarget) -> ProductKind {
    let number = |slot: usize| func.ty(data.operand(slot)).number();
    let (Some(left), Some(right)) = (number(0), number(1)) else {
        return ProductKind::MultiplyAdd;
    };
    let precision = match &data.attrs {
        Attrs::Dot(dot) => dot.precision,
        _ => DotPrecision::Tf32,
    };
    let is_fp8 = |scalar| matches!(scalar, Scalar::F8E5 | Scalar::F8E4NV);
    let has_units = match (left, right) {
        (Scalar::F16, Scalar::F16) | (Scalar::BF16, Scalar::BF16) | (Scalar::I8, Scalar::I8) => {
            true
        }
        (Scalar::F32, Scalar::F32) => precision == DotPrecision::Tf32,
        (left, right) => is_fp8(left) && is_fp8(right) && target.capability >= 89,
    };
    if has_units && fits_warp_groups(func, data, target) {
        ProductKind::WarpGroup { k_width: k_width(left) }
    } else if has_units && fits_units(func, data, target) {
        ProductKind::Mma { k_width: k_width(left) }
    } else {
        ProductKind::MultiplyAdd
    }
}

/// Whether the target has matrix units and the product's shape fills one instruction.
pub(super) fn fits_units(func: &Function, data: &InstData, target: GpuTarget) -> bool {
    let Some([m, n, steps]) = extents_in_instructions(func, data) else { return false };
    target.capability >= OLDEST_UNITS && m >= LEAST_ROWS && n >= 8 && steps >= 1
}

/// The first compute capability whose matrix units are used.
const OLDEST_UNITS: u32 = 80;
/// Rows of one instruction.
const LEAST_ROWS: u32 = 16;

/// Rows and columns of a product, and how many instructions follow each other along K.
fn extents_in_instructions(func: &Function, data: &InstData) -> Option<[u32; 3]> {
    let lhs = func.ty(data.operand(0));
    let (Some(scalar), [.., m, k]) = (lhs.number(), lhs.shape()) else { return None };
    let n = func.ty(data.result()).shape().last().copied().unwrap_or(1);
    Some([*m, n, *k / (8 * k_width(scalar) as u32)])
}

/// Why matrix units do not compute a product although one change in the source would let them, and
/// that pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// It asks for IEEE precision of f32.
    Precision,
    /// It has fewer rows than one instruction.
    Rows {
        /// Its rows.
        rows: u32,
        /// Those of one instruction.
        least: u32,
    },
}

/// What keeps `data`, a product of tile level, from the matrix units of a GPU of this compute
/// capability. `None` when they compute it, when nothing in the source can change that (the units
/// of old architectures are not used, nor those for f64), or when the change does not pay: padding
/// columns moves more than it saves.
pub(crate) fn obstacle(func: &Function, data: &InstData, capability: u32) -> Option<Obstacle> {
    let scalar = func.ty(data.operand(0)).number()?;
    let other = func.ty(data.operand(1)).number()?;
    let has_units = matches!(scalar, Scalar::F16 | Scalar::BF16 | Scalar::I8 | Scalar::F32);
    let (true, Attrs::Dot(attrs)) = (has_units && scalar == other, &data.attrs) else {
        return None;
    };
    let [rows, columns, steps] = extents_in_instructions(func, data)?;
    if capability < OLDEST_UNITS || columns < 8 || steps < 1 {
        return None;
    }
    let is_ieee = scalar == Scalar::F32 && attrs.precision == DotPrecision::Ieee;
    match (rows < LEAST_ROWS, is_ieee) {
        (true, false) => Some(Obstacle::Rows { rows, least: LEAST_ROWS }),
        (false, true) => Some(Obstacle::Precision),
        _ => None,
    }
}

/// Whether the target has matrix instructions of warp groups for the element types, and the
/// product's shape gives each group an instruction whose operands fill the rows of a swizzle.
pub(super) fn fits_warp_groups(func: &Function, data: &InstData, target: GpuTarget) -> bool {
    const ROWS: u32 = 64;
    const LEAST_COLUMNS: u32 = 16;
    const LEAST_BYTES: u32 = 32;
    let (lhs, result) = (func.ty(data.operand(0)), func.ty(data.result()));
    let ([_, k], [m, n]) = (lhs.shape(), result.shape()) else { return false };
    let (Some(factor), Some(sum)) = (lhs.number(), result.number()) else { return false };
    let groups = func.options.num_warps.is_multiple_of(4);
    let k_bytes = *k * factor.bits() / 8;
    let fits = *m >= ROWS && *n >= LEAST_COLUMNS && k_bytes >= LEAST_BYTES;
    let imprecise = match &data.attrs {
        Attrs::Dot(dot) => dot.max_imprecise,
        _ => 0,
    };
    let has_types = match (factor, sum) {
        (Scalar::F16 | Scalar::BF16 | Scalar::F32, Scalar::F32) | (Scalar::I8, Scalar::I32) => true,
        // The units sum these in less than single precision.
        (factor, Scalar::F32) => factor.is_fp8() && imprecise >= *k,
        _ => false,
    };
    target.has_warp_groups && groups && fits && has_types
}

/// The layouts of the product `data`.
///
/// # Errors
/// When a shape or the number of warps is not a power of two.
pub fn layouts(
    func: &Function,
    data: &InstData,
    target: GpuTarget,
) -> Result<ProductLayouts, LowerError> {
    let shape = propagate::extents(func.ty(data.result()).shape());
    let depth = func.ty(data.operand(0)).shape().last().copied().unwrap_or(1) as usize;
    let (acc, operand): (_, [LinearLayout; 2]) = match kind(func, data, target) {
        ProductKind::Mma { k_width } => {
            let acc = mma(func, data, &shape)?.to_linear(&shape)?;
            let [lhs, rhs] = [0, 1].map(|operand| acc.mma_operand(operand, k_width, depth));
            (acc, [lhs?, rhs?])
        }
        ProductKind::WarpGroup { k_width } => {
            let acc = MmaLayout::v3_for([shape[0], shape[1]], func.options.num_warps as usize)?;
            let acc = acc.to_linear(&shape)?;
            let [lhs, rhs] = [0, 1].map(|operand| acc.mma_operand(operand, k_width, depth));
            (acc, [lhs?, rhs?])
        }
        ProductKind::MultiplyAdd => {
            let acc = square(func, &shape)?;
            let [lhs, rhs] = [0, 1].map(|operand| acc.multiply_add_operand(operand, depth));
            (acc, [lhs?, rhs?])
        }
    };
    let [lhs, rhs] = operand;
    Ok(ProductLayouts { acc, lhs, rhs })
}

/// The neighbors along K that one 32-bit register of a fragment holds.
pub fn k_width(scalar: Scalar) -> usize {
    32 / scalar.bits().clamp(8, 32) as usize
}

/// The accumulator of `mma.sync`. Products that feed each other keep rows within a warp, so that
/// the result of one is an operand of the next without leaving its threads. Warps take products
/// of a batch each as long as there are some.
fn mma(func: &Function, data: &InstData, shape: &[usize]) -> Result<MmaLayout, LayoutError> {
    let rank = shape.len();
    let batch = &shape[..rank - 2];
    let (mut warps_per_cta, num_warps) = over_batch(batch, func.options.num_warps as usize);
    let keep_rows = feeds_product(func, data.result()) || follows_product(func, data);
    let matrix = MmaLayout::v2_for([shape[rank - 2], shape[rank - 1]], num_warps, keep_rows)?;
    warps_per_cta.extend(matrix.warps_per_cta);
    Ok(MmaLayout { version: MmaVersion::V2, warps_per_cta })
}

/// How many of `takers` take products of a batch each, by axis of the batch, and how many share one.
fn over_batch(batch: &[usize], mut takers: usize) -> (SmallVec<[usize; 4]>, usize) {
    let mut taken: SmallVec<[usize; 4]> = smallvec![1; batch.len()];
    for (taken, &extent) in taken.iter_mut().zip(batch).rev() {
        *taken = extent.min(takers);
        takers /= *taken;
    }
    (taken, takers)
}

/// Whether what is computed from `result`, reductions apart, is an operand of a product.
fn feeds_product(func: &Function, result: Value) -> bool {
    let mut reached = FxHashSet::from_iter([result]);
    func.walk().into_iter().any(|inst| {
        let user = &func.insts[inst];
        if !user.uses().any(|value| reached.contains(&value)) {
            return false;
        }
        if user.opcode == Opcode::Dot {
            return user.uses().take(2).any(|operand| reached.contains(&operand));
        }
        if user.opcode.info().effects != Effects::Regions {
            reached.extend(&user.results);
        }
        false
    })
}

/// Whether an operand of the product is computed from the result of another one.
fn follows_product(func: &Function, data: &InstData) -> bool {
    let mut waiting: Vec<Value> = data.uses().take(2).collect();
    let mut seen = FxHashSet::default();
    while let Some(value) = waiting.pop() {
        let Some(source) = func.def(value).filter(|_| seen.insert(value)) else { continue };
        match source.opcode {
            Opcode::Dot => return true,
            opcode if opcode.is_pure() => waiting.extend(source.uses()),
            _ => {}
        }
    }
    false
}

/// Threads that hold small squares of the result: each operand element that a thread reads serves
/// several of its results. Those that a product of a batch has no elements for take others of
/// the batch: on an H200, 2 x 2 products of 8-bit blocks take 0.16 times as long so.
fn square(func: &Function, shape: &[usize]) -> Result<LinearLayout, LayoutError> {
    const SIDE: usize = 4;
    let rank = shape.len();
    let num_warps = func.options.num_warps as usize;
    let elements: usize = shape.iter().product();
    let share = (elements / (num_warps * LANES)).max(1);
    let columns = SIDE.min(share).min(shape[rank - 1]);
    let rows = SIDE.min(share / columns).max(1).min(shape[rank - 2]);
    let mut size_per_thread: SmallVec<[usize; 4]> = smallvec![1; rank];
    size_per_thread[rank - 2] = rows;
    size_per_thread[rank - 1] = columns;
    let column_lanes = (shape[rank - 1] / columns).clamp(1, 8);
    let row_lanes = (shape[rank - 2] / rows).clamp(1, LANES / column_lanes);
    let (batch, matrix) = shape.split_at(rank - 2);
    let (mut threads_per_warp, lanes) = over_batch(batch, LANES / (column_lanes * row_lanes));
    threads_per_warp.extend([row_lanes * lanes, column_lanes]);
    let left: Vec<usize> = batch.iter().zip(&threads_per_warp).map(|(&of, &by)| of / by).collect();
    let (mut warps_per_cta, num_warps) = over_batch(&left, num_warps);
    let column_warps = (matrix[1] / (columns * column_lanes)).clamp(1, num_warps);
    warps_per_cta.extend([num_warps / column_warps, column_warps]);
    let order = (0..rank).rev().collect();
    let boxes = BlockedLayout { size_per_thread, threads_per_warp, warps_per_cta, order };
    Ok(rows_first(&boxes.to_linear(shape)?, column_lanes))
}

/// `layout`, in which the lowest bits of the lane count `column_lanes` columns, with the next one, of
/// rows, in front of them. Shared memory serves vectors of 16 bytes to a quarter of a warp at a time,
/// and to half of it where neighboring lanes ask for the same one; so both operands are read in half
/// the passes. Measured on an H100, products of single precision take 0.62 to 1.02 times as long.
fn rows_first(layout: &LinearLayout, column_lanes: usize) -> LinearLayout {
    let first = layout.input_bits(Dim::Register) as usize;
    let column_bits = column_lanes.trailing_zeros() as usize;
    let places = (first..first + column_bits).rev();
    places.fold(layout.clone(), |layout, place| layout.exchange_bases(place, place + 1))
}
