//! Common subexpressions: a pure instruction equal to an earlier visible one is replaced by it.
//!
//! In: a verified function. Out: the same function with fewer pure instructions; uses point at
//! the earliest equal value that dominates them. Loads are never merged. Cost: linear, with one
//! scoped hash table.

use rustc_hash::FxHashMap;

use crate::ir::{Attrs, Function, Opcode, Operands, Region, Type, Value};

type Key = (Opcode, Operands, Attrs, Type);

/// Merges equal pure instructions.
pub(crate) fn eliminate_common_subexpressions(func: &mut Function) {
    let mut known = FxHashMap::default();
    let mut replaced = FxHashMap::default();
    visit(func, func.body, &mut known, &mut replaced);
}

fn visit(
    func: &mut Function,
    region: Region,
    known: &mut FxHashMap<Key, Value>,
    replaced: &mut FxHashMap<Value, Value>,
) {
    let insts = std::mem::take(&mut func.regions[region].insts);
    let mut kept = Vec::with_capacity(insts.len());
    let mut scope = Vec::new();
    for inst in insts {
        for operand in func.insts[inst].operands.iter_mut().flatten() {
            *operand = *replaced.get(operand).unwrap_or(operand);
        }
        let data = &func.insts[inst];
        if let (true, &[result]) = (data.is_pure(), data.results.as_slice()) {
            let ty = func.ty(result).clone();
            let key = (data.opcode, data.operands.clone(), data.attrs.clone(), ty);
            if let Some(&earlier) = known.get(&key) {
                replaced.insert(result, earlier);
                continue;
            }
            known.insert(key.clone(), result);
            scope.push(key);
        }
        for inner in func.insts[inst].regions.clone() {
            visit(func, inner, known, replaced);
        }
        kept.push(inst);
    }
    func.regions[region].insts = kept;
    for key in scope {
        known.remove(&key);
    }
}
