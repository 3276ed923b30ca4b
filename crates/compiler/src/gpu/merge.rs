//! One shared buffer for each tile that several would hold.
//!
//! In: a GPU-level function without stages. Out: where a tile was put into one buffer for matrix
//! products of warp groups, which fix how it is stored, and into another from which threads read it,
//! they read it from the first. That saves the room, the second write, and, where the loop is
//! pipelined, a second copy from global memory. Cost: linear, but for what tiles are stored twice.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Function, Inst, Opcode, Region, Value, ValueDef};

/// A buffer and what fills it.
struct Filled {
    buffer: Value,
    alloc: Inst,
    store: Inst,
}

/// Merges the buffers of `func`.
pub fn merge(func: &mut Function) {
    let readers = Readers::of(func);
    merge_region(func, &readers, func.body);
}

fn merge_region(func: &mut Function, readers: &Readers, region: Region) {
    for copies in copies(func, readers, region) {
        let Some(kept) = copies.iter().find(|copy| readers.by_units.contains(&copy.buffer)) else {
            continue;
        };
        let others: Vec<&Filled> =
            copies.iter().filter(|copy| readers.by_threads.contains(&copy.buffer)).collect();
        for other in &others {
            for &reader in &readers.direct[&other.buffer] {
                func.insts[reader].operands[0] = Some(kept.buffer);
            }
        }
        if let Some(first) = others.first() {
            move_before(func, region, &[kept.alloc, kept.store], first.alloc);
        }
        let gone = |inst: &Inst| others.iter().any(|copy| [copy.alloc, copy.store].contains(inst));
        func.regions[region].insts.retain(|inst| !gone(inst));
    }
    for inst in func.regions[region].insts.clone() {
        for inner in func.insts[inst].regions.clone() {
            merge_region(func, readers, inner);
        }
    }
}

/// The buffers that `region` allocates and fills once, by what they hold, where those are several.
fn copies(func: &Function, readers: &Readers, region: Region) -> Vec<Vec<Filled>> {
    let insts = &func.regions[region].insts;
    let mut groups: Vec<Vec<Filled>> = Vec::new();
    let mut group_of: FxHashMap<Value, usize> = FxHashMap::default();
    let allocs: FxHashSet<Inst> =
        insts.iter().copied().filter(|&inst| is(func, inst, Opcode::LocalAlloc)).collect();
    for &store in insts.iter().filter(|&&inst| is(func, inst, Opcode::LocalStore)) {
        let [buffer, tile] = [0, 1].map(|slot| func.insts[store].operand(slot));
        let ValueDef::Result(alloc, _) = func.values[buffer].def else { continue };
        if allocs.contains(&alloc) && readers.writes.get(&buffer) == Some(&1) {
            let group = *group_of.entry(tile).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(Filled { buffer, alloc, store });
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn is(func: &Function, inst: Inst, opcode: Opcode) -> bool {
    func.insts[inst].opcode == opcode
}

/// Moves `insts` of `region` to before `place`, if they are behind it.
fn move_before(func: &mut Function, region: Region, insts: &[Inst], place: Inst) {
    let all = &mut func.regions[region].insts;
    let at = |all: &[Inst], inst: Inst| all.iter().position(|&other| other == inst);
    if at(all, place) < at(all, insts[0]) {
        all.retain(|inst| !insts.contains(inst));
        let to = at(all, place).unwrap_or(0);
        all.splice(to..to, insts.iter().copied());
    }
}

/// Who reads buffers.
#[derive(Default)]
struct Readers {
    /// Those that products of warp groups read.
    by_units: FxHashSet<Value>,
    /// Those that nothing reads but loads of whole buffers.
    by_threads: FxHashSet<Value>,
    /// The loads of whole buffers.
    direct: FxHashMap<Value, Vec<Inst>>,
    /// How often each is written.
    writes: FxHashMap<Value, u32>,
}

impl Readers {
    fn of(func: &Function) -> Readers {
        let mut readers = Readers::default();
        let mut others = FxHashSet::default();
        for inst in func.walk() {
            let data = &func.insts[inst];
            for (slot, value) in data.operands.iter().enumerate() {
                let Some(buffer) = value.map(|value| func.allocation(value)) else { continue };
                match data.opcode {
                    Opcode::LocalStore if slot == 0 => {
                        *readers.writes.entry(buffer).or_default() += 1;
                    }
                    Opcode::LocalLoad if *value == Some(buffer) => {
                        readers.direct.entry(buffer).or_default().push(inst);
                    }
                    Opcode::WarpGroupMma => {
                        readers.by_units.insert(buffer);
                        others.insert(buffer);
                    }
                    _ => {
                        others.insert(buffer);
                    }
                }
            }
        }
        let direct = readers.direct.keys().copied();
        readers.by_threads = direct.filter(|buffer| !others.contains(buffer)).collect();
        readers
    }
}
