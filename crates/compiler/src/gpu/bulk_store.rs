//! Tiles that the bulk copy engine writes: which stores, see [`Opcode::BulkStore`].
//!
//! In: a GPU-level function. Out: the same function, in which a run of memory that a kernel writes goes through
//! shared memory. What threads write one by one reaches the memory between what others write; what the engine
//! copies arrives at once. One thread waits until the engine has read the tile, and nobody until it is
//! written: the kernel does not read it again. Cost: linear.
//!
//! Threads wait for each other before the copy, and the last copies of a launch take longer than writes of
//! threads do: where the L2 holds all that is written, launches take 1.01 to 1.15 times as long. So the kernel has
//! both, and launches that write less than that leave it to threads. On an H100, these take up to 0.06 us longer than
//! without bulk copies, 1.05 times as long for one CTA with a tile of 8 KiB, mostly 1.00 to 1.02 for tiles of 4 KiB.
//!
//! Beyond, it is worth it where a kernel writes as much as it reads and does little else. On an H100, bytes looked up
//! and numbers of 4 and 8 bits widened to f32 take 0.967 to 0.993 times as long, numbers of 4 bits widened to bf16 0.995,
//! rows in another order 0.991 to 0.999, activations and other kernels that write what they read 0.995 to 1.001. Others
//! mostly take longer: sums of more values than are written up to 1.045 times, those that compute random numbers 1.02 to
//! 1.06 times, those with several results 0.993 to 1.03 times, and reductions of rows, in which threads meet anyway, up
//! to 1.01 times. So do those that write where they read: on an H200, gradients of a cross entropy in f32 take 1.006 times
//! as long, those in bf16 as long. Copies by warps, which need not wait for each other, gain no more.

use super::LANES;
use crate::analysis::axis::AxisInfos;
use crate::ir::{
    Attrs, CacheModifier, Eviction, Function, Inst, InstData, Opcode, StoreHints, Type,
};
use crate::layout::PlaceMasks;

/// The first byte of what the engine copies, and how many there are, are multiples of this.
const UNIT: i64 = 16;
/// The fewest bytes that each thread writes, two accesses of the widest kind: with one, what threads read does not
/// keep the memory busy while others wait for their copy. On an H200, activations that write 16 bytes in each
/// thread took 1.06 to 1.11 times as long so.
const FEWEST_BYTES_OF_THREAD: i64 = 32;
/// The most steps of arithmetic on tiles: kernels with up to 15 gain, one with 76 loses.
const MOST_STEPS: usize = 24;

/// What threads write as it is.
const PLAIN: StoreHints = StoreHints { cache: CacheModifier::Default, evict: Eviction::Normal };

/// Has the engine write what it can and had better; tells whether there is anything.
pub(super) fn store_in_bulk(func: &mut Function) -> bool {
    let chosen = chosen(func);
    if let Some(inst) = chosen {
        let data = &mut func.insts[inst];
        (data.opcode, data.attrs) = (Opcode::BulkStore, Attrs::None);
    }
    chosen.is_some()
}

/// The only write of a kernel that runs straight through and computes little, if it is the last access, writes
/// a run of memory, not the one that is read, and at least as much as is read.
fn chosen(func: &Function) -> Option<Inst> {
    let insts = func.walk();
    let opcode = |inst: &Inst| func.insts[*inst].opcode;
    let writes = |inst: &Inst| opcode(inst).writes() && opcode(inst) != Opcode::Assume;
    let first = insts.iter().position(writes)?;
    let (inst, behind) = insts[first..].split_first()?;
    let is_last = !behind.iter().any(|it| writes(it) || opcode(it) == Opcode::Load);
    let bytes = |inst: &Inst| {
        let results = func.insts[*inst].results.iter();
        results.map(|&result| tile_bytes(func.ty(result))).sum::<i64>()
    };
    let steps = insts.iter().filter(|inst| computes(opcode(inst)) && bytes(inst) > 0).count();
    let read: i64 = insts.iter().filter(|inst| opcode(inst) == Opcode::Load).map(bytes).sum();
    let streams = func.options.num_warps > 1
        && steps <= MOST_STEPS
        && !insts.iter().map(opcode).any(meets_or_repeats);
    let ptr = |inst: &Inst| func.insts[*inst].operand_opt(0);
    let in_place = || {
        let mut loads = insts.iter().filter(|inst| opcode(inst) == Opcode::Load);
        loads.any(|load| ptr(load) == ptr(inst))
    };
    let fits = streams && is_last && opcode(inst) == Opcode::Store && !in_place();
    (fits && is_run(func, &func.insts[*inst], read)).then_some(*inst)
}

/// Whether threads meet in it, or it repeats others.
fn meets_or_repeats(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, Reduce | Scan | Sort | Histogram | MapElements | For | While)
}

/// Whether a thread computes something of each element of its own.
fn computes(opcode: Opcode) -> bool {
    use Opcode::*;
    let moves = matches!(
        opcode,
        Constant
            | Poison
            | Arange
            | Splat
            | Broadcast
            | ExpandDims
            | Reshape
            | Permute
            | Join
            | Split
            | Cat
    );
    !moves && !matches!(opcode, Gather | ConvertLayout | PtrAdd | AssertFacts | Load)
}

/// Bytes of a tile; a scalar counts as none.
fn tile_bytes(ty: &Type) -> i64 {
    let elem = ty.elem().filter(|_| ty.is_tile());
    elem.map_or(0, |elem| ty.numel() as i64 * i64::from(elem.bytes()))
}

/// Whether a store writes one run of memory, which each thread holds another part of, and at least `read`
/// bytes, which are some.
fn is_run(func: &Function, data: &InstData, read: i64) -> bool {
    let (ptr, ty) = (data.operand(0), func.ty(data.operand(1)));
    let (Some(layout), &[extent]) = (ty.layout(), ty.shape()) else { return false };
    let info = AxisInfos::of(func).get(func, ptr);
    let threads = LANES as i64 * i64::from(func.options.num_warps);
    data.attrs == Attrs::StoreHints(PLAIN)
        && func.layouts[layout].duplicates() == PlaceMasks::default()
        && tile_bytes(ty) >= FEWEST_BYTES_OF_THREAD * threads
        && read > 0
        && tile_bytes(ty) >= read
        && info.contiguity[0] >= i64::from(extent)
        && info.divisibility[0] >= UNIT
}
