//! Tiles that go to shared memory before the first product behind them.
//!
//! In: a GPU-level function without barriers. Out: the same function; where a tile is put into a
//! buffer for a later product, that happens before the first product, read or loop behind the
//! tile, rather than right before its own. Products in a row then have their operands in shared
//! memory behind one barrier, and threads do not hold the operands of later ones in registers
//! while the accumulators of earlier ones take them. Buffers live longer; see
//! [`lower`](super::lower) for when that is worth it. Cost: linear.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Function, Inst, Opcode, Region, Value, ValueDef};

/// Moves the stores of `func`; tells whether there were any to move.
pub(crate) fn store_early(func: &mut Function) -> bool {
    let mut moved = false;
    for region in func.regions.keys().collect::<Vec<_>>() {
        moved |= store_early_in(func, region);
    }
    moved
}

fn store_early_in(func: &mut Function, region: Region) -> bool {
    let at = func.positions(region);
    let insts = std::mem::take(&mut func.regions[region].insts);
    let stops: Vec<usize> = (0..insts.len()).filter(|&at| is_stop(func, insts[at])).collect();
    let mut moved: FxHashMap<usize, Vec<Inst>> = FxHashMap::default();
    let mut gone = FxHashSet::default();
    for (behind, &inst) in insts.iter().enumerate() {
        let Some((alloc, tile)) = fills_own_buffer(func, &at, inst) else { continue };
        let defined = match func.values[tile].def {
            ValueDef::Result(def, _) => at.get(&def).map_or(0, |&def| def + 1),
            ValueDef::Argument(..) => 0,
        };
        let first = stops.partition_point(|&stop| stop < defined);
        if let Some(&stop) = stops.get(first).filter(|&&stop| stop < behind) {
            moved.entry(stop).or_default().extend([alloc, inst]);
            gone.extend([alloc, inst]);
        }
    }
    let mut result = Vec::with_capacity(insts.len());
    for (at, inst) in insts.into_iter().enumerate() {
        result.extend(moved.remove(&at).into_iter().flatten());
        if !gone.contains(&inst) {
            result.push(inst);
        }
    }
    func.regions[region].insts = result;
    !gone.is_empty()
}

/// Whether threads meet here, or work for which they need their registers.
pub(super) fn is_stop(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    let is_work = matches!(
        data.opcode,
        Opcode::Mma | Opcode::WarpGroupMma | Opcode::MultiplyAdd | Opcode::LocalLoad
    );
    is_work || !data.regions.is_empty()
}

/// The allocation in the same region that `inst` fills, and with what.
fn fills_own_buffer(
    func: &Function,
    at: &FxHashMap<Inst, usize>,
    inst: Inst,
) -> Option<(Inst, Value)> {
    let data = &func.insts[inst];
    if data.opcode != Opcode::LocalStore {
        return None;
    }
    match func.values[data.operand(0)].def {
        ValueDef::Result(alloc, _)
            if func.insts[alloc].opcode == Opcode::LocalAlloc && at.contains_key(&alloc) =>
        {
            Some((alloc, data.operand(1)))
        }
        _ => None,
    }
}
