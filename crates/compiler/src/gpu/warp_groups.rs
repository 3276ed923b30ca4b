//! Loops that ask for warp specialization get a second warp group.
//!
//! Triton divides the products of such a loop between two warp groups on Hopper, and gives its loads to
//! the warps of a third (`hopper-warpspec`); other kernels, and those of other than four warps, stay as
//! they are. Here the two groups load for themselves: bulk copies take one thread. What counts is that
//! each thread holds half of the accumulator, as the author of such a configuration has chosen it.

use super::GpuTarget;
use super::product::fits_warp_groups;
use crate::ir::{Attrs, Function, Inst, Opcode};

/// Warps of a warp group.
const GROUP: u32 = 4;
/// The fewest rows of a product that two groups share by rows: an instruction of each has 64.
const ROWS: u32 = 128;
/// The fewest columns of one with fewer rows that they share by columns.
const COLUMNS: u32 = 256;

/// Gives `func`, with tiles, the warps of two groups where it asks for those of one, and some loop of it
/// asks for warp specialization and multiplies what two groups can share.
pub(super) fn add_second(func: &mut Function, target: GpuTarget) {
    let asks = |inst: Inst| match &func.insts[inst].attrs {
        Attrs::Loop(attrs) => attrs.warp_specialize,
        _ => false,
    };
    let is_shared = |inst: Inst| {
        let data = &func.insts[inst];
        let &[rows, columns] = func.ty(data.result()).shape() else { return false };
        fits_warp_groups(func, data, target) && (rows >= ROWS || columns >= COLUMNS)
    };
    let is_product = |inst: Inst| func.insts[inst].opcode == Opcode::Dot;
    let shares = |inst: Inst| {
        func.walk_inst(inst).into_iter().filter(|&inst| is_product(inst)).any(is_shared)
    };
    if func.options.num_warps == GROUP
        && func.walk().into_iter().any(|inst| asks(inst) && shares(inst))
    {
        func.options.num_warps = 2 * GROUP;
    }
}
