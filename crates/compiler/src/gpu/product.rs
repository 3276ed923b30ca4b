//! Matrix products: which instruction computes them, and the layouts that it asks for.

use smallvec::{SmallVec, smallvec};

use super::{GpuTarget, LANES, LowerError, propagate};
use crate::ir::{Attrs, DotPrecision, Function, InstData, Opcode, Scalar};
use crate::layout::{
    BlockedLayout, Dim, DotOperandLayout, LayoutError, LinearLayout, MmaLayout, MmaVersion,
};

/// What computes a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProductKind {
    /// `mma.sync`, 16×8 results from `8 * k_width` products each.
    Mma {
        /// Neighbors along K in one 32-bit register.
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
    let lhs = func.ty(data.operand(0));
    let rhs = func.ty(data.operand(1));
    let shape = func.ty(data.result()).shape();
    let rank = shape.len();
    let (m, n) = (shape[rank - 2], shape[rank - 1]);
    let k = lhs.shape()[rank - 1];
    let precision = match &data.attrs {
        Attrs::Dot(dot) => dot.precision,
        _ => DotPrecision::Tf32,
    };
    let k_width = match (lhs.number(), rhs.number()) {
        (Some(Scalar::F16), Some(Scalar::F16)) | (Some(Scalar::BF16), Some(Scalar::BF16)) => 2,
        (Some(Scalar::F32), Some(Scalar::F32)) if precision == DotPrecision::Tf32 => 1,
        (Some(Scalar::I8), Some(Scalar::I8)) => 4,
        (Some(Scalar::F8E5 | Scalar::F8E4NV), Some(Scalar::F8E5 | Scalar::F8E4NV))
            if target.capability >= 89 =>
        {
            4
        }
        _ => return ProductKind::MultiplyAdd,
    };
    let fits = m >= 16 && n >= 8 && k as usize >= 8 * k_width;
    if target.capability >= 80 && fits {
        ProductKind::Mma { k_width }
    } else {
        ProductKind::MultiplyAdd
    }
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
    let lhs_shape = propagate::extents(func.ty(data.operand(0)).shape());
    let rhs_shape = propagate::extents(func.ty(data.operand(1)).shape());
    match kind(func, data, target) {
        ProductKind::Mma { k_width } => {
            let parent = mma(func, &shape)?;
            let operand = |operand: usize, shape: &[usize]| {
                DotOperandLayout { operand, parent: parent.clone(), k_width }.to_linear(shape)
            };
            Ok(ProductLayouts {
                lhs: operand(0, &lhs_shape)?,
                rhs: operand(1, &rhs_shape)?,
                acc: parent.to_linear(&shape)?,
            })
        }
        ProductKind::MultiplyAdd => {
            let acc = square(func, &shape)?;
            let rank = shape.len();
            Ok(ProductLayouts {
                lhs: whole_axis(&acc, rank - 1, lhs_shape[rank - 1])?,
                rhs: whole_axis(&acc, rank - 2, rhs_shape[rank - 2])?,
                acc,
            })
        }
    }
}

/// The accumulator of `mma.sync`. Products that feed each other keep rows within a warp, so that
/// the result of one is an operand of the next without leaving its threads.
fn mma(func: &Function, shape: &[usize]) -> Result<MmaLayout, LayoutError> {
    let rank = shape.len();
    let products = func.insts.values().filter(|data| data.opcode == Opcode::Dot).count();
    let num_warps = func.options.num_warps as usize;
    let matrix = MmaLayout::v2_for([shape[rank - 2], shape[rank - 1]], num_warps, products > 1)?;
    let mut warps_per_cta: SmallVec<[usize; 4]> = smallvec![1; rank - 2];
    warps_per_cta.extend(matrix.warps_per_cta);
    Ok(MmaLayout { version: MmaVersion::V2, warps_per_cta })
}

/// Threads that hold small squares of the result: each operand element that a thread reads serves
/// several of its results.
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
    let mut threads_per_warp: SmallVec<[usize; 4]> = smallvec![1; rank];
    threads_per_warp[rank - 1] = column_lanes;
    threads_per_warp[rank - 2] = LANES / column_lanes;
    let column_warps = (shape[rank - 1] / (columns * column_lanes)).clamp(1, num_warps);
    let mut warps_per_cta: SmallVec<[usize; 4]> = smallvec![1; rank];
    warps_per_cta[rank - 1] = column_warps;
    warps_per_cta[rank - 2] = num_warps / column_warps;
    let order = (0..rank).rev().collect();
    BlockedLayout { size_per_thread, threads_per_warp, warps_per_cta, order }.to_linear(shape)
}

/// The layout of an operand all of whose `axis`, of `extent`, each thread holds.
fn whole_axis(acc: &LinearLayout, axis: usize, extent: usize) -> Result<LinearLayout, LayoutError> {
    let shared = acc.remove_axis(axis)?.without_free_registers().expand_dims(axis)?;
    shared.product(&LinearLayout::identity1d(extent, Dim::Register, Dim::Axis(axis as u8))?)
}
