//! Layouts of memory accesses: which thread touches which address.
//!
//! In: a verified tile-level function. Out: one layout per memory access, the
//! *anchors* that other layouts follow. Neighboring threads get neighboring addresses, and
//! each thread as many as one instruction moves: the smallest of 16 bytes, the run of contiguous
//! and aligned addresses, and what leaves work for every thread. Accesses to tiles of one shape
//! that run along the same axis share the widest choice, so that values pass between them without
//! conversions; where one of them strides, the choice is as narrow as it needs. Cost: linear, after axis information.

use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::LANES;
use crate::analysis::axis::AxisInfos;
use crate::ir::{Function, Inst, Opcode, Shape, Value};
use crate::layout::{BlockedLayout, LayoutError, LinearLayout};

/// The widest access of one thread, in bytes.
const MAX_VECTOR_BYTES: i64 = 16;

/// Layouts that memory accesses ask for.
#[derive(Debug, Default)]
pub struct Anchors {
    /// By instruction; `None` for those that ask for nothing.
    pub layouts: SecondaryMap<Inst, Option<LinearLayout>>,
}

type Group = (Shape, SmallVec<[usize; 4]>);

/// Chooses the layouts of all accesses of `func`.
///
/// # Errors
/// When a shape or the number of warps is not a power of two.
pub fn choose(func: &Function) -> Result<Anchors, LayoutError> {
    let infos = AxisInfos::of(func);
    let mut widths: FxHashMap<Group, (usize, usize)> = FxHashMap::default();
    let mut accesses = Vec::new();
    for inst in func.walk() {
        let data = &func.insts[inst];
        let is_access = matches!(
            data.opcode,
            Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas
        );
        if !is_access || !func.ty(data.operand(0)).is_tile() {
            continue;
        }
        let ptr = data.operand(0);
        let order = fastest_first(func, &infos, ptr);
        let width = vector_elements(func, &infos, ptr, order[0]);
        let limit = stride_limit(func, &infos, ptr, order[0]);
        let shape: Shape = func.ty(ptr).shape().into();
        let group = (shape, order);
        let (widest, narrowest) = widths.entry(group.clone()).or_insert((1, usize::MAX));
        *widest = (*widest).max(width);
        *narrowest = (*narrowest).min(limit);
        accesses.push((inst, group));
    }
    let mut anchors = Anchors::default();
    for (inst, group) in accesses {
        let (widest, narrowest) = widths[&group];
        let width = widest.min(narrowest);
        let (shape, order) = group;
        anchors.layouts[inst] = Some(blocked(func, &shape, &order, width)?);
    }
    Ok(anchors)
}

/// The layout for element-wise work without any anchor.
///
/// # Errors
/// When a shape or the number of warps is not a power of two.
pub fn default_layout(func: &Function, shape: &[u32]) -> Result<LinearLayout, LayoutError> {
    let order: SmallVec<[usize; 4]> = (0..shape.len()).rev().collect();
    blocked(func, shape, &order, 1)
}

fn blocked(
    func: &Function,
    shape: &[u32],
    order: &[usize],
    contiguous: usize,
) -> Result<LinearLayout, LayoutError> {
    let shape: SmallVec<[usize; 4]> = shape.iter().map(|&extent| extent as usize).collect();
    let warps = func.options.num_warps as usize;
    BlockedLayout::default_for(&shape, warps, LANES, order, contiguous)?.to_linear(&shape)
}

/// Axes by falling contiguity; among equals the later axis is faster.
fn fastest_first(func: &Function, infos: &AxisInfos, ptr: Value) -> SmallVec<[usize; 4]> {
    let info = infos.get(func, ptr);
    let mut order: SmallVec<[usize; 4]> = (0..func.ty(ptr).shape().len()).rev().collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(info.contiguity[axis]));
    order
}

/// The neighbors along `axis` that one thread may hold so that neighboring threads still touch
/// neighboring addresses: one where elements lie apart at a fixed distance, such as one field of
/// each record. That they do shows in addresses that are aligned to more than an element.
fn stride_limit(func: &Function, infos: &AxisInfos, ptr: Value, axis: usize) -> usize {
    let info = infos.get(func, ptr);
    let pointee = func.ty(ptr).elem().and_then(|elem| elem.pointee());
    let bytes = pointee.map_or(1, |elem| i64::from(elem.bits().div_ceil(8)));
    let alone = info.contiguity[axis] == 1 && info.constancy[axis] == 1;
    if alone && info.alignment(bytes) > bytes { 1 } else { usize::MAX }
}

/// The elements that one instruction of one thread can move along `axis`.
fn vector_elements(func: &Function, infos: &AxisInfos, ptr: Value, axis: usize) -> usize {
    let info = infos.get(func, ptr);
    let pointee = func.ty(ptr).elem().and_then(|elem| elem.pointee());
    let bytes = pointee.map_or(1, |elem| i64::from(elem.bits().div_ceil(8)));
    let aligned = (info.divisibility[axis] / bytes).max(1);
    let widest = (MAX_VECTOR_BYTES / bytes).max(1);
    let threads = func.options.num_warps as usize * LANES;
    let share = (func.ty(ptr).numel() / threads).max(1);
    (info.contiguity[axis].min(aligned).min(widest) as usize).min(share)
}
