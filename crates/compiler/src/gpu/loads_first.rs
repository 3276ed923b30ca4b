//! Loads issued before work that waits for other loads.
//!
//! In: a GPU-level function without barriers. Out: the same function; between two instructions that
//! write, branch, scan or multiply matrices, loads, with what their addresses and masks follow from, come
//! before the first instruction that waits for a load which they do not wait for. So memory has all
//! of them at once, rather than each when what the one before brought was worked on; the assembler
//! never moves a load across the barrier of a reduction. Tiles live longer; see
//! [`lower`](super::lower) for when that is worth it. Cost: linear in the instructions and the depth
//! of loads whose addresses are loaded.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::ir::{Function, Inst, Opcode, ValueDef};

/// Moves the loads of `func`; tells whether there were any to move.
pub(crate) fn load_first(func: &mut Function) -> bool {
    let mut moved = false;
    for region in func.regions.keys().collect::<Vec<_>>() {
        let mut insts = std::mem::take(&mut func.regions[region].insts);
        for run in
            insts.chunk_by_mut(|&before, &inst| !is_stop(func, before) && !is_stop(func, inst))
        {
            moved |= sort(func, run);
        }
        func.regions[region].insts = insts;
    }
    moved
}

/// Whether the instruction keeps its place among loads: what writes may write what they read, and
/// products and scans need their registers. On an H200, what is read behind a scan and weighted by its results takes 77
/// registers in place of 96 and 0.995 times as long in f32 so, 64 in place of 88 and 1.01 times as long in bf16.
fn is_stop(func: &Function, inst: Inst) -> bool {
    match func.insts[inst].opcode {
        Opcode::LocalAlloc => false,
        Opcode::For | Opcode::While | Opcode::If | Opcode::Scan => true,
        opcode if opcode.is_gpu_product() || opcode.is_terminator() => true,
        _ => func.any_within(inst, Opcode::writes),
    }
}

/// Moves the loads of `run`, which has no stop; tells whether any was moved.
fn sort(func: &Function, run: &mut [Inst]) -> bool {
    // The loads in a row that each instruction waits for.
    let mut chains: FxHashMap<Inst, usize> = FxHashMap::default();
    for &inst in run.iter() {
        let is_load = |from: Inst| usize::from(func.insts[from].opcode == Opcode::Load);
        let before = operands_in(func, &chains, inst).map(|from| chains[&from] + is_load(from));
        let longest = before.max().unwrap_or(0);
        chains.insert(inst, longest);
    }
    // The fewest that one of the loads waits for which need it.
    let mut needed: FxHashMap<Inst, usize> = FxHashMap::default();
    for &inst in run.iter().rev() {
        if func.insts[inst].opcode == Opcode::Load {
            needed.insert(inst, chains[&inst]);
        }
        let Some(&by) = needed.get(&inst) else { continue };
        for from in operands_in(func, &chains, inst) {
            let fewest = needed.entry(from).or_insert(by);
            *fewest = by.min(*fewest);
        }
    }
    let mut sorted: IndexSet<Inst, FxBuildHasher> = IndexSet::default();
    let mut waited = 0;
    for (at, &inst) in run.iter().enumerate() {
        let chain = chains[&inst];
        if chain > waited && !sorted.contains(&inst) {
            waited = chain;
            let is_early = |inst: &&Inst| needed.get(*inst).is_some_and(|&by| by < chain);
            sorted.extend(run[at..].iter().filter(is_early));
        }
        sorted.insert(inst);
    }
    let is_moved = !sorted.iter().eq(run.iter());
    run.iter_mut().zip(sorted).for_each(|(place, inst)| *place = inst);
    is_moved
}

/// The instructions among the keys of `run` that an instruction takes values from, those in its
/// regions too.
fn operands_in<'f>(
    func: &'f Function,
    run: &'f FxHashMap<Inst, usize>,
    inst: Inst,
) -> impl Iterator<Item = Inst> + 'f {
    let uses = func.walk_inst(inst).into_iter().flat_map(|inst| func.insts[inst].uses());
    uses.filter_map(|value| match func.values[value].def {
        ValueDef::Result(from, _) => run.contains_key(&from).then_some(from),
        ValueDef::Argument(..) => None,
    })
}
