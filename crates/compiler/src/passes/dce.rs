//! Removes instructions whose results nobody uses.
//!
//! In: a verified function. Out: the same effects, without pure instructions, reads and regions
//! that are unused. Loads are removed unless volatile. Cost: linear per round; rounds end when
//! nothing is removed, and one backward sweep removes whole chains, so there are seldom two.

use rustc_hash::FxHashSet;

use crate::ir::{Attrs, Effects, Function, Inst, Opcode, Region, Value};

/// Removes dead code.
pub fn eliminate_dead_code(func: &mut Function) {
    let mut used = FxHashSet::default();
    mark_region(func, func.body, &mut used);
    sweep_region(func, func.body, &used);
}

/// Marks everything that effects depend on, transitively. Regions are visited backward, so that
/// users come before definitions.
fn mark_region(func: &Function, region: Region, used: &mut FxHashSet<Value>) {
    for &inst in func.regions[region].insts.iter().rev() {
        let data = &func.insts[inst];
        if !is_live(func, inst, used) {
            continue;
        }
        used.extend(data.uses());
        for &inner in data.regions.iter().rev() {
            mark_region(func, inner, used);
        }
    }
}

fn sweep_region(func: &mut Function, region: Region, used: &FxHashSet<Value>) {
    let mut insts = std::mem::take(&mut func.regions[region].insts);
    insts.retain(|&inst| is_live(func, inst, used));
    for &inst in &insts {
        for inner in func.insts[inst].regions.clone() {
            sweep_region(func, inner, used);
        }
    }
    func.regions[region].insts = insts;
}

fn is_live(func: &Function, inst: Inst, used: &FxHashSet<Value>) -> bool {
    has_effect(func, inst) || func.insts[inst].results.iter().any(|result| used.contains(result))
}

/// True when an instruction must stay even if its results are unused.
pub(super) fn has_effect(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    match data.opcode.info().effects {
        Effects::Pure => false,
        Effects::Read => matches!(&data.attrs, Attrs::LoadHints(hints) if hints.volatile),
        Effects::Terminator => true,
        // A loop that may not end is an effect.
        Effects::Regions => {
            data.opcode == Opcode::While
                || data.regions.iter().any(|&region| region_has_effect(func, region))
        }
        Effects::Write => match &data.attrs {
            Attrs::InlineAsm(asm) => !asm.pure,
            _ => true,
        },
    }
}

fn region_has_effect(func: &Function, region: Region) -> bool {
    func.regions[region]
        .insts
        .iter()
        .any(|&inst| !func.insts[inst].opcode.is_terminator() && has_effect(func, inst))
}
