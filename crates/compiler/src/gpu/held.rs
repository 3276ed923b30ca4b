//! Operands of products that loops hold in registers, where these run short.
//!
//! A small operand from outside a loop is read from its buffer once, and held. Where the tiles of the
//! loop take all registers, held ones go to local memory, and come back in every iteration one
//! register at a time; from a buffer, an instruction reads four.
//!
//! In: a GPU-level function without stages and barriers. Out: the same function; if its tiles take
//! more registers than a thread has, products in loops read from their buffers what was read before
//! the loop. Buffers live longer. Cost: linear.

use rustc_hash::{FxHashMap, FxHashSet};

use super::pressure;
use crate::ir::{Function, Inst, Opcode, Type, Value, ValueDef};

/// Has products of `func` read from buffers what would be held, where that is too much.
pub(crate) fn release(func: &mut Function) {
    if !pressure::exceeds_registers(func) {
        return;
    }
    let uses = Uses::of(func);
    for region in func.regions.keys().collect::<Vec<_>>() {
        let insts = func.regions[region].insts.clone();
        let here = insts.iter().copied().collect();
        for load in insts {
            if !is(func, load, Opcode::LocalLoad) {
                continue;
            }
            let (tile, buffer) = (func.insts[load].result(), func.insts[load].operand(0));
            if uses.is_filled_once(func, buffer, &here) && uses.is_for_loops(func, tile, &here) {
                for &(inst, slot) in &uses.users[&tile] {
                    func.insts[inst].operands[slot] = Some(buffer);
                }
            }
        }
    }
}

fn is(func: &Function, inst: Inst, opcode: Opcode) -> bool {
    func.insts[inst].opcode == opcode
}

/// What is done with values.
#[derive(Default)]
struct Uses {
    /// The instructions that use each value, and as which operand.
    users: FxHashMap<Value, Vec<(Inst, usize)>>,
    /// The instructions that write each buffer.
    writers: FxHashMap<Value, Vec<Inst>>,
}

impl Uses {
    fn of(func: &Function) -> Uses {
        let mut uses = Uses::default();
        for inst in func.walk() {
            let data = &func.insts[inst];
            for (slot, value) in data.operands.iter().enumerate() {
                let Some(value) = *value else { continue };
                uses.users.entry(value).or_default().push((inst, slot));
                if matches!(func.ty(value), Type::Buffer(_)) && data.opcode.writes() {
                    uses.writers.entry(func.allocation(value)).or_default().push(inst);
                }
            }
        }
        uses
    }

    /// Whether `buffer` is allocated and written among the instructions `here`, and never again.
    fn is_filled_once(&self, func: &Function, buffer: Value, here: &FxHashSet<Inst>) -> bool {
        let allocation = func.allocation(buffer);
        let ValueDef::Result(alloc, _) = func.values[allocation].def else { return false };
        let writers = self.writers.get(&allocation).map(Vec::as_slice);
        let Some(&[writer]) = writers else { return false };
        here.contains(&alloc)
            && here.contains(&writer)
            && is(func, alloc, Opcode::LocalAlloc)
            && is(func, writer, Opcode::LocalStore)
    }

    /// Whether `tile` is an operand of products alone, none of them among the instructions `here`.
    fn is_for_loops(&self, func: &Function, tile: Value, here: &FxHashSet<Inst>) -> bool {
        let is_inner = |&(inst, slot): &(Inst, usize)| {
            is(func, inst, Opcode::Mma) && slot < 2 && !here.contains(&inst)
        };
        self.users.get(&tile).is_some_and(|users| users.iter().all(is_inner))
    }
}
