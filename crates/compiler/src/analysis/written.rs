//! What values are made of by way of registers, and which parameters' memory a kernel may write to.

use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Function, Inst, InstData, Opcode, Region, Value, ValueDef};

/// The parameters whose memory `func` may write to; `None` when it may be any memory.
pub(super) fn written_params(func: &Function) -> Option<FxHashSet<usize>> {
    let owner = owners(func);
    let mut pending = Vec::new();
    for inst in func.walk() {
        let data = &func.insts[inst];
        match data.opcode {
            opcode if opcode.is_global_write() => pending.push(data.operand(0)),
            Opcode::InlineAsm => {
                pending.extend(data.uses().filter(|value| is_pointer(func, *value)))
            }
            _ => {}
        }
    }
    let mut params = FxHashSet::default();
    let mut seen = FxHashSet::default();
    while let Some(value) = pending.pop() {
        if !seen.insert(value) {
            continue;
        }
        match func.values[value].def {
            ValueDef::Argument(region, at) if region == func.body => {
                params.insert(at as usize);
            }
            ValueDef::Argument(region, at) => {
                pending.extend(handed_on(func, *owner.get(&region)?, region, at as usize)?);
            }
            ValueDef::Result(inst, at) => pending.extend(made_of(func, inst, at as usize)?),
        }
    }
    Some(params)
}

fn is_pointer(func: &Function, value: Value) -> bool {
    func.ty(value).elem().is_some_and(|elem| elem.is_ptr())
}

/// The instructions that regions belong to.
fn owners(func: &Function) -> FxHashMap<Region, Inst> {
    let of = |inst: Inst| func.insts[inst].regions.iter().map(move |region| (*region, inst));
    func.walk().into_iter().flat_map(of).collect()
}

/// The values from which some others are made, by way of registers, and these.
pub(super) fn leading_to(func: &Function, ends: EntitySet<Value>) -> EntitySet<Value> {
    let owner = owners(func);
    let mut found = EntitySet::with_capacity(func.values.len());
    let mut pending: Vec<Value> = ends.iter().collect();
    while let Some(value) = pending.pop() {
        if !found.insert(value) {
            continue;
        }
        let (inst, set) = match func.values[value].def {
            ValueDef::Argument(region, at) => {
                let Some(&inst) = owner.get(&region) else { continue };
                (inst, handed_on(func, inst, region, at as usize))
            }
            ValueDef::Result(inst, at) => (inst, passed_out(func, inst, at as usize)),
        };
        let data = &func.insts[inst];
        let all = || {
            let ends = data.regions.iter().filter_map(|region| func.terminator(*region));
            data.uses().chain(ends.flat_map(InstData::uses)).collect()
        };
        pending.extend(set.unwrap_or_else(all));
    }
    found
}

/// What an argument of a loop's region may be, or is counted from.
fn handed_on(func: &Function, inst: Inst, region: Region, at: usize) -> Option<Vec<Value>> {
    let data = &func.insts[inst];
    let ends = |region: Region, at| func.terminator(region)?.operand_opt(at);
    match data.opcode {
        Opcode::For => match at.checked_sub(1) {
            Some(carried) => Some(vec![data.operand_opt(3 + carried)?, ends(region, carried)?]),
            None => Some(data.uses().take(3).collect()),
        },
        Opcode::While if data.regions[0] == region => {
            Some(vec![data.operand_opt(at)?, ends(data.regions[1], at)?])
        }
        Opcode::While => Some(vec![ends(data.regions[0], at + 1)?]),
        _ => None,
    }
}

/// What a result of a branch or loop may be; `None` of other instructions.
fn passed_out(func: &Function, inst: Inst, at: usize) -> Option<Vec<Value>> {
    let data = &func.insts[inst];
    let ends = |region: &Region, at| func.terminator(*region)?.operand_opt(at);
    match data.opcode {
        Opcode::If => data.regions.iter().map(|region| ends(region, at)).collect(),
        Opcode::For => Some(vec![data.operand_opt(3 + at)?, ends(&data.regions[0], at)?]),
        Opcode::While => Some(vec![ends(&data.regions[0], at + 1)?]),
        _ => None,
    }
}

/// The addresses that a result is one of, or is counted from.
fn made_of(func: &Function, inst: Inst, at: usize) -> Option<Vec<Value>> {
    let data = &func.insts[inst];
    match data.opcode {
        Opcode::If | Opcode::For | Opcode::While => passed_out(func, inst, at),
        _ => {
            let pointers: Vec<Value> = data.uses().filter(|used| is_pointer(func, *used)).collect();
            // An address that is read from memory, or made of an integer, may be any.
            (!pointers.is_empty() && data.opcode != Opcode::Load).then_some(pointers)
        }
    }
}
