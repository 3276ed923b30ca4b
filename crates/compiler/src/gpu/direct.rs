//! Tiles read from buffers in the layouts in which they are used.
//!
//! In: a GPU-level function without barriers. Out: the same function; where a tile that was read from a
//! shared buffer would go through shared memory once more into another layout, it is read in that layout
//! too, in the same place. What is no longer used is left to the pass for dead code. Cost: linear.

use rustc_hash::FxHashMap;

use super::{LowerError, shared};
use crate::ir::{Function, Inst, Opcode, ValueDef};
use crate::layout::Conversion;

/// Reads tiles of `func` as they are used.
pub(crate) fn read_directly(func: &mut Function) -> Result<(), LowerError> {
    // By the conversion, and by what reads the tile that it converts.
    let mut reads: FxHashMap<Inst, Inst> = FxHashMap::default();
    let mut conversions: FxHashMap<Inst, Vec<Inst>> = FxHashMap::default();
    for inst in func.walk() {
        if let Some(read) = converted_read(func, inst)? {
            reads.insert(inst, read);
            conversions.entry(read).or_default().push(inst);
        }
    }
    if reads.is_empty() {
        return Ok(());
    }
    for (&conversion, &read) in &reads {
        let (buffer, loc) = (func.insts[read].operands.clone(), func.insts[read].loc);
        let data = &mut func.insts[conversion];
        (data.opcode, data.operands, data.loc) = (Opcode::LocalLoad, buffer, loc);
    }
    for region in func.regions.values_mut() {
        for inst in std::mem::take(&mut region.insts) {
            if !reads.contains_key(&inst) {
                region.insts.push(inst);
                region.insts.extend(conversions.get(&inst).into_iter().flatten());
            }
        }
    }
    Ok(())
}

/// What reads the tile that `inst` would move through shared memory, if it was read from there.
fn converted_read(func: &Function, inst: Inst) -> Result<Option<Inst>, LowerError> {
    let data = &func.insts[inst];
    if data.opcode != Opcode::ConvertLayout {
        return Ok(None);
    }
    let ValueDef::Result(read, _) = func.values[data.operand(0)].def else { return Ok(None) };
    let moves = func.insts[read].opcode == Opcode::LocalLoad
        && matches!(shared::conversion(func, data)?, Conversion::SharedMemory(_));
    Ok(moves.then_some(read))
}
