//! What addresses and conditions of accesses are computed from.

use std::collections::BTreeSet;

use tile_compiler::ir::{Function, Inst, Opcode, Region, Value, ValueDef};
use tile_compiler::source::FileRange;

/// Whether the addresses of every access at a place, or what decides whether it happens, are
/// computed from what memory holds.
pub fn follows_from_memory(func: &Function, place: FileRange) -> bool {
    let is_access = |inst: &Inst| {
        let data = &func.insts[*inst];
        let accesses = matches!(
            data.opcode,
            Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas
        );
        accesses && func.locs[func.user_loc(data.loc)].at == place
    };
    func.walk().into_iter().filter(is_access).all(|inst| {
        let data = &func.insts[inst];
        let mask = match data.opcode {
            Opcode::Load => data.operand_opt(1),
            Opcode::Store | Opcode::AtomicRmw => data.operand_opt(2),
            _ => None,
        };
        let around = conditions(func, func.body, inst).unwrap_or_default();
        let deciding = [data.operand_opt(0), mask].into_iter().flatten().chain(around);
        reads_memory(func, deciding.collect())
    })
}

/// What the branches and loops around an instruction depend on.
fn conditions(func: &Function, region: Region, wanted: Inst) -> Option<Vec<Value>> {
    for &inst in &func.regions[region].insts {
        if inst == wanted {
            return Some(Vec::new());
        }
        let data = &func.insts[inst];
        for &inner in &data.regions {
            let Some(mut found) = conditions(func, inner, wanted) else { continue };
            match data.opcode {
                Opcode::If => found.push(data.operand(0)),
                Opcode::For => found.extend(data.uses().take(3)),
                // How often it runs depends on all that it carries.
                _ => found.extend(data.regions.iter().flat_map(|region| {
                    let end = func.terminator(*region);
                    end.into_iter().flat_map(|end| end.uses().collect::<Vec<_>>())
                })),
            }
            return Some(found);
        }
    }
    None
}

/// Whether any of `values` is computed from what a load gives.
fn reads_memory(func: &Function, mut pending: Vec<Value>) -> bool {
    let mut seen = BTreeSet::new();
    while let Some(value) = pending.pop() {
        if !seen.insert(value.as_u32()) {
            continue;
        }
        match func.values[value].def {
            ValueDef::Result(inst, at) => {
                let data = &func.insts[inst];
                match data.opcode {
                    Opcode::Load | Opcode::AtomicRmw | Opcode::AtomicCas => return true,
                    Opcode::If | Opcode::For | Opcode::While => {
                        let slot = usize::from(data.opcode == Opcode::For) * 3 + at as usize;
                        pending.extend(data.operand_opt(slot));
                        let ends =
                            data.regions.iter().filter_map(|region| func.terminator(*region));
                        pending.extend(ends.filter_map(|end| end.operand_opt(at as usize)));
                    }
                    _ => pending.extend(data.uses()),
                }
            }
            ValueDef::Argument(region, at) if region != func.body => {
                let owner = func.walk().into_iter();
                let mut owner = owner.filter(|inst| func.insts[*inst].regions.contains(&region));
                let Some(owner) = owner.next() else { continue };
                let data = &func.insts[owner];
                let carried = match data.opcode {
                    Opcode::For if at == 0 => {
                        pending.extend(data.uses().take(3));
                        continue;
                    }
                    Opcode::For => at as usize - 1,
                    _ => at as usize,
                };
                let slot = usize::from(data.opcode == Opcode::For) * 3 + carried;
                pending.extend(data.operand_opt(slot));
                pending.extend(func.terminator(region).and_then(|end| end.operand_opt(carried)));
            }
            ValueDef::Argument(..) => {}
        }
    }
    false
}

/// The places of all stores.
pub fn stores(func: &Function) -> Vec<FileRange> {
    let stores = func.walk().into_iter().filter(|inst| func.insts[*inst].opcode == Opcode::Store);
    stores.map(|inst| func.locs[func.user_loc(func.insts[inst].loc)].at).collect()
}
