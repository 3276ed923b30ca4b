//! Moves pure, loop-invariant instructions in front of their loop.
//!
//! In: a verified function. Out: the same function; an instruction of a `for` or `while` body
//! moves out when it is pure, has no regions and uses nothing defined in the loop. Divisions stay,
//! because a loop that runs no iteration must not divide by zero. Cost: linear per nesting level.

use rustc_hash::FxHashSet;

use crate::ir::{Function, Inst, Opcode, Region, Value};

/// Hoists loop-invariant instructions, inner loops first.
pub(crate) fn hoist_loop_invariants(func: &mut Function) {
    visit(func, func.body);
}

fn visit(func: &mut Function, region: Region) {
    let insts = std::mem::take(&mut func.regions[region].insts);
    let mut result = Vec::with_capacity(insts.len());
    for inst in insts {
        let regions = func.insts[inst].regions.clone();
        for &inner in &regions {
            visit(func, inner);
        }
        if matches!(func.insts[inst].opcode, Opcode::For | Opcode::While) {
            for inner in regions {
                result.extend(hoist_from(func, inner, inst));
            }
        }
        result.push(inst);
    }
    func.regions[region].insts = result;
}

/// Takes the invariant instructions out of one region of `owner`.
fn hoist_from(func: &mut Function, region: Region, owner: Inst) -> Vec<Inst> {
    let mut defined: FxHashSet<Value> = FxHashSet::default();
    for &inner in &func.insts[owner].regions {
        defined.extend(func.defined_in(inner));
    }
    let insts = std::mem::take(&mut func.regions[region].insts);
    let mut hoisted = Vec::new();
    let mut kept = Vec::with_capacity(insts.len());
    for inst in insts {
        let data = &func.insts[inst];
        let invariant = data.opcode.is_pure()
            && data.regions.is_empty()
            && !divides(data.opcode)
            && data.uses().all(|value| !defined.contains(&value));
        if invariant {
            for result in &data.results {
                defined.remove(result);
            }
            hoisted.push(inst);
        } else {
            kept.push(inst);
        }
    }
    func.regions[region].insts = kept;
    hoisted
}

fn divides(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::DivS | Opcode::DivU | Opcode::RemS | Opcode::RemU)
}
