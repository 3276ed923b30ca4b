//! Tiles that are read from stages behind the products that they are not needed for.
//!
//! In: a GPU-level function with pipelined loops. Out: the same function, where a tile that a loop reads from a
//! stage is read right before its first use, if a wait for products of warp groups comes before that: such a wait
//! is a fence for the assembler, so what was read before it takes registers beside the sum, all of it at once. A mask
//! that is added to the scores of attention is such a tile. Behind the wait the assembler reads it piece by piece.
//! On an H200, attention with a matrix for a mask (128 x 128 scores, four warps), which spilled 352 bytes, spills 88
//! and takes 0.92 times as long so. The stage stays as it is: what the iteration copies goes into others. Cost: linear
//! for each read.

use rustc_hash::FxHashMap;

use crate::ir::{Function, Inst, Opcode, Region, ValueDef};

/// Moves the reads of `func`.
pub(super) fn read_late(func: &mut Function) {
    for region in func.regions.keys().collect::<Vec<_>>() {
        read_late_in(func, region);
    }
}

fn read_late_in(func: &mut Function, region: Region) {
    let insts = &func.regions[region].insts;
    let is_wait = |inst: &Inst| func.insts[*inst].opcode == Opcode::WarpGroupWait;
    let Some(first_wait) = insts.iter().position(is_wait) else { return };
    let mut moved: FxHashMap<usize, Vec<Inst>> = FxHashMap::default();
    for &read in insts[..first_wait].iter().filter(|&&inst| reads_stage(func, inst)) {
        let tile = func.insts[read].result();
        let uses = |&inst: &Inst| {
            let within = func.walk_inst(inst);
            within.into_iter().any(|inst| func.insts[inst].operands.contains(&Some(tile)))
        };
        if let Some(first_use) = insts.iter().position(uses).filter(|&at| at > first_wait) {
            moved.entry(first_use).or_default().push(read);
        }
    }
    let insts = std::mem::take(&mut func.regions[region].insts);
    let is_moved = |inst: &Inst| moved.values().any(|reads| reads.contains(inst));
    let placed = insts.iter().enumerate().flat_map(|(at, inst)| {
        let before = moved.get(&at).into_iter().flatten().copied();
        before.chain((!is_moved(inst)).then_some(*inst))
    });
    func.regions[region].insts = placed.collect();
}

/// Whether an instruction reads a stage of a buffer of several.
fn reads_stage(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    data.opcode == Opcode::LocalLoad
        && matches!(func.values[data.operand(0)].def,
            ValueDef::Result(of, _) if func.insts[of].opcode == Opcode::LocalStage)
}
