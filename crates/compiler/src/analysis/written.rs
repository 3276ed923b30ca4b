//! Which parameters' memory a kernel may write to.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Function, Inst, Opcode, Region, Value, ValueDef};

/// The parameters whose memory `func` may write to; `None` when it may be any memory.
pub(super) fn written_params(func: &Function) -> Option<FxHashSet<usize>> {
    let insts = func.walk();
    let mut owner = FxHashMap::default();
    for &inst in &insts {
        owner.extend(func.insts[inst].regions.iter().map(|region| (*region, inst)));
    }
    let mut pending = Vec::new();
    for &inst in &insts {
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

/// What an argument of a loop's region may be.
fn handed_on(func: &Function, inst: Inst, region: Region, at: usize) -> Option<Vec<Value>> {
    let data = &func.insts[inst];
    let ends = |region: Region, at| func.terminator(region)?.operand_opt(at);
    match data.opcode {
        Opcode::For => {
            let carried = at.checked_sub(1)?;
            Some(vec![data.operand_opt(3 + carried)?, ends(region, carried)?])
        }
        Opcode::While if data.regions[0] == region => {
            Some(vec![data.operand_opt(at)?, ends(data.regions[1], at)?])
        }
        Opcode::While => Some(vec![ends(data.regions[0], at + 1)?]),
        _ => None,
    }
}

/// The addresses that a result is one of, or is counted from.
fn made_of(func: &Function, inst: Inst, at: usize) -> Option<Vec<Value>> {
    let data = &func.insts[inst];
    let ends = |region: &Region, at| func.terminator(*region)?.operand_opt(at);
    match data.opcode {
        Opcode::If => data.regions.iter().map(|region| ends(region, at)).collect(),
        Opcode::For => Some(vec![data.operand_opt(3 + at)?, ends(&data.regions[0], at)?]),
        Opcode::While => Some(vec![ends(&data.regions[0], at + 1)?]),
        _ => {
            let pointers: Vec<Value> = data.uses().filter(|used| is_pointer(func, *used)).collect();
            // An address that is read from memory, or made of an integer, may be any.
            (!pointers.is_empty() && data.opcode != Opcode::Load).then_some(pointers)
        }
    }
}
