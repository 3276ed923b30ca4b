//! Tiles read backwards.
//!
//! `tl.flip` is a gather by the positions from the last to the first. Of a power of two many, each is the XOR of
//! its own position and the last one, so that a flip exchanges registers and lanes by one constant each: nothing
//! goes through shared memory where one warp holds whole rows. On an H200, rotary embeddings that turn halves of
//! rows around by two flips took 1.11 times as long as under Triton through shared memory.

use crate::ir::{Attrs, Function, InstData, Opcode, Value};
use crate::layout::PlaceMasks;

/// The axis along which a gather reads all of its source backwards.
pub(super) fn axis_of(func: &Function, data: &InstData) -> Option<usize> {
    let Attrs::Axis(axis) = &data.attrs else { return None };
    let axis = axis.axis as usize;
    let (source, index) = (data.operand(0), data.operand(1));
    let shape = func.ty(source).shape();
    let back = func.def(index).filter(|index| index.opcode == Opcode::Sub)?;
    let last = func.constant_bits(back.operand(0))?;
    let flips = data.opcode == Opcode::Gather
        && func.ty(index).shape() == shape
        && last == u64::from(shape[axis]) - 1
        && counts_along(func, back.operand(1), axis);
    flips.then_some(axis)
}

/// Whether each element of `value` is its position along `axis`.
fn counts_along(func: &Function, value: Value, axis: usize) -> bool {
    let Some(data) = func.def(value) else { return false };
    match (data.opcode, &data.attrs) {
        (Opcode::Arange, Attrs::Range(range)) => axis == 0 && range.start == 0,
        (Opcode::Broadcast, _) => {
            func.ty(data.operand(0)).shape()[axis] == func.ty(value).shape()[axis]
                && counts_along(func, data.operand(0), axis)
        }
        (Opcode::ExpandDims, Attrs::Axis(added)) => match added.axis as usize {
            added if added == axis => false,
            added => counts_along(func, data.operand(0), axis - usize::from(added < axis)),
        },
        _ => false,
    }
}

/// The bits of registers and lanes that a flip exchanges within warps: `None` for other gathers, and where
/// several warps hold a row or the result lies elsewhere.
pub fn within_warps(func: &Function, data: &InstData) -> Option<PlaceMasks> {
    let axis = axis_of(func, data)?;
    let layout = func.ty(data.operand(0)).layout()?;
    let bits = func.layouts[layout].mirror_bits(axis)?;
    (func.ty(data.result()).layout() == Some(layout) && bits.warp == 0 && bits.cta == 0)
        .then_some(bits)
}
