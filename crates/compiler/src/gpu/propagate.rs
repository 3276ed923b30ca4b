//! How layouts pass through operations: from a result to an operand and back.
//!
//! Pure functions without state; `None` means that the operation does not tie the two together.

use smallvec::SmallVec;

use super::{exchange, flip};
use crate::ir::{Attrs, Function, InstData, Opcode};
use crate::layout::{Dim, LayoutError, LinearLayout};

type Passed = Result<Option<LinearLayout>, LayoutError>;

/// Operations that act on each element by itself: operands and results share one layout.
pub(super) fn is_elementwise(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::PtrAdd | Opcode::AssertFacts | Opcode::MapElements | Opcode::InlineAsm)
        || (Opcode::Add..=Opcode::PtrToInt).contains(&opcode)
}

/// The layout that operand `slot` must have for the result to be in `layout`.
pub(super) fn to_operand(
    func: &Function,
    data: &InstData,
    slot: usize,
    layout: &LinearLayout,
) -> Passed {
    let Some(operand) = data.operand_opt(slot) else { return Ok(None) };
    let ty = func.ty(operand);
    if !ty.is_tile() {
        return Ok(None);
    }
    match (data.opcode, &data.attrs) {
        (opcode, _) if is_elementwise(opcode) => Ok(Some(layout.clone())),
        (Opcode::Broadcast, _) => crop(layout, ty.shape()).map(Some),
        (Opcode::ExpandDims, Attrs::Axis(axis)) => {
            let dropped = layout.remove_axis(axis.axis as usize)?;
            Ok(Some(dropped.without_free_registers()))
        }
        (Opcode::Reshape, _) => layout.reshape(&extents(ty.shape())).map(Some),
        (Opcode::Permute, Attrs::Order(order)) => {
            let mut inverse: SmallVec<[usize; 4]> = SmallVec::from_elem(0, order.order.len());
            for (to, &from) in order.order.iter().enumerate() {
                inverse[from as usize] = to;
            }
            layout.transpose(&inverse).map(Some)
        }
        (Opcode::Join, _) => Ok(layout.split_axis().map(|(_, halves)| halves)),
        (Opcode::Split, _) => layout.join_axis().map(Some),
        (Opcode::Cat, _) => Ok(halve_registers(layout)),
        (Opcode::Gather, _) if slot == 1 || flip::axis_of(func, data).is_some() => {
            Ok(Some(layout.clone()))
        }
        (Opcode::Scan, _) => Ok(Some(layout.clone())),
        _ => Ok(None),
    }
}

/// The layout of the results when operand `slot` is in `layout` and nothing is moved.
pub(super) fn to_result(
    func: &Function,
    data: &InstData,
    slot: usize,
    layout: &LinearLayout,
) -> Passed {
    match (data.opcode, &data.attrs) {
        (opcode, _) if is_elementwise(opcode) => Ok(Some(layout.clone())),
        (Opcode::Reshape, _) => layout.reshape(&extents(func.ty(data.result()).shape())).map(Some),
        (Opcode::Permute, Attrs::Order(order)) => {
            let order: SmallVec<[usize; 4]> =
                order.order.iter().map(|&axis| axis as usize).collect();
            layout.transpose(&order).map(Some)
        }
        (Opcode::Join, _) => layout.join_axis().map(Some),
        (Opcode::Split, _) => Ok(layout.split_axis().map(|(_, halves)| halves)),
        (Opcode::Cat, _) => double_registers(layout).map(Some),
        (Opcode::Gather, _) if slot == 1 || flip::axis_of(func, data).is_some() => {
            Ok(Some(layout.clone()))
        }
        (Opcode::Reduce, Attrs::Axis(axis)) => reduced(layout, axis.axis as usize).map(Some),
        (Opcode::Scan, _) => Ok(Some(layout.clone())),
        (Opcode::Sort, _) => {
            let places = exchange::sort_layout(func, data, layout);
            crop(&places, func.ty(data.result()).shape()).map(Some)
        }
        _ => Ok(None),
    }
}

/// The layout that a reduction along `axis` leaves.
pub(super) fn reduced(layout: &LinearLayout, axis: usize) -> Result<LinearLayout, LayoutError> {
    Ok(layout.remove_axis(axis)?.without_free_registers())
}

/// Extents as the layout algebra takes them.
pub(super) fn extents(shape: &[u32]) -> SmallVec<[usize; 4]> {
    shape.iter().map(|&extent| extent as usize).collect()
}

/// The layout with each axis cut to `shape`, without registers that this makes alike.
fn crop(layout: &LinearLayout, shape: &[u32]) -> Result<LinearLayout, LayoutError> {
    let outputs: SmallVec<[(Dim, u32); 4]> = shape
        .iter()
        .enumerate()
        .map(|(axis, extent)| (Dim::Axis(axis as u8), extent.trailing_zeros()))
        .rev()
        .collect();
    Ok(layout.crop_outputs(&outputs)?.without_free_registers())
}

/// The layout of a tile twice as long along axis 0: the second half in a further register bit.
fn double_registers(layout: &LinearLayout) -> Result<LinearLayout, LayoutError> {
    layout.product(&LinearLayout::identity1d(2, Dim::Register, Dim::Axis(0))?)
}

/// Undoes [`double_registers`].
fn halve_registers(layout: &LinearLayout) -> Option<LinearLayout> {
    let pair = LinearLayout::identity1d(2, Dim::Register, Dim::Axis(0)).ok()?;
    layout.divide_right(&pair)
}
