//! Operands of matrix products that are transposed on their way to the tensor cores.
//!
//! Instructions for elements of 16 bits read either order from shared memory; for those of 8 bits
//! they read along K alone, so that a right operand whose neighbors in memory run along N passes
//! through registers in every trip.

use rustc_hash::FxHashSet;

use crate::analysis::axis::AxisInfos;
use crate::analysis::report::{finding, place};
use crate::diagnostic::{Code, Diagnostic};
use crate::gpu::GpuTarget;
use crate::gpu::coalesce::access_bytes;
use crate::gpu::product::{ProductKind, kind};
use crate::ir::{Function, Inst, InstData, Opcode};

/// The compute capability on which the order was measured to matter.
const HOPPER: u32 = 90;

/// Rows and columns of a product from which on the order was measured to matter.
const LEAST_EXTENT: u32 = 128;

/// A hint for each product in a loop whose right operand is read in the wrong order.
pub(super) fn check(func: &Function, capability: u32) -> Vec<Diagnostic> {
    if capability != HOPPER {
        return Vec::new();
    }
    let order = func.walk();
    let loops = order.iter().filter(|inst| func.insts[**inst].opcode == Opcode::For);
    let inside: FxHashSet<Inst> =
        loops.flat_map(|inst| func.walk_from(func.insts[*inst].regions[0])).collect();
    let products = order.iter().filter(|inst| inside.contains(inst)).map(|inst| &func.insts[*inst]);
    let products: Vec<&InstData> =
        products.filter(|data| data.opcode == Opcode::Dot && is_large(func, data)).collect();
    if products.is_empty() {
        return Vec::new();
    }
    let infos = AxisInfos::of(func);
    products.into_iter().filter_map(|data| describe(func, &infos, data)).collect()
}

/// Whether tensor cores multiply matrices of 8 bits that are as large as those measured.
fn is_large(func: &Function, data: &InstData) -> bool {
    let result = func.ty(data.result());
    let right = func.ty(data.operand(1)).number();
    let target = GpuTarget { capability: HOPPER, has_warp_groups: true };
    result.shape().len() == 2
        && result.shape().iter().all(|extent| *extent >= LEAST_EXTENT)
        && right.is_some_and(|number| number.bits() == 8)
        && kind(func, data, target) != ProductKind::MultiplyAdd
}

fn describe(func: &Function, infos: &AxisInfos, product: &InstData) -> Option<Diagnostic> {
    let load = func.def(product.operand(1)).filter(|data| data.opcode == Opcode::Load)?;
    let (axis, bytes) = access_bytes(func, infos, load.operand(0))?;
    if axis != 1 || bytes == 1 {
        return None;
    }
    let message = "the right operand runs along N in memory, and tensor cores read elements of 8 \
                   bits along K: each tile is transposed on its way";
    let found = finding(func, product.loc, Code::OperandOrder, message);
    let found = found.with_related(place(func, load.loc), "it is read here");
    Some(found.with_note("allocate it with K as the last axis and swap its strides"))
}
