//! How many registers of a thread hold tiles at once.
//!
//! Backwards over a GPU-level function, with the values that are still needed: floating-point tiles
//! alone, since indices, addresses and masks are mostly computed where they are used. It is what a
//! kernel needs before any instruction is scheduled, to compare versions of one kernel by; the
//! assembler tells what it takes in the end. Cost: linear, but for values that loops keep.

use rustc_hash::FxHashSet;

use crate::ir::{Function, Inst, Opcode, Region, Type, Value};

/// 32-bit registers beside those that hold tiles: addresses, indices, what is on its way.
const OTHER_REGISTERS: u32 = 32;

/// The most that a thread has.
const MAX_REGISTERS: u32 = 255;

/// The 32-bit registers that a thread of `func` needs at once, about.
pub fn registers(func: &Function) -> u32 {
    needed(func).min(MAX_REGISTERS)
}

/// Whether `func` needs more registers at once than a thread has.
pub fn exceeds_registers(func: &Function) -> bool {
    needed(func) > MAX_REGISTERS
}

fn needed(func: &Function) -> u32 {
    let mut live = Live { func, values: FxHashSet::default(), words: 0, most: 0 };
    live.region(func.body);
    live.most + OTHER_REGISTERS
}

struct Live<'f> {
    func: &'f Function,
    values: FxHashSet<Value>,
    words: u32,
    most: u32,
}

impl Live<'_> {
    fn region(&mut self, region: Region) {
        for &inst in self.func.regions[region].insts.iter().rev() {
            self.inst(inst);
        }
        for &argument in &self.func.regions[region].args {
            self.end(argument);
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.func.insts[inst];
        for &result in &data.results {
            self.end(result);
        }
        if data.opcode != Opcode::If {
            // What a loop takes from before it, it takes in every iteration.
            for &inner in &data.regions {
                self.start_all_from_outside(inner);
            }
        }
        for &inner in &data.regions {
            self.region(inner);
        }
        for value in data.uses() {
            self.start(value);
        }
        self.most = self.most.max(self.words);
    }

    fn start_all_from_outside(&mut self, region: Region) {
        let inside = self.func.defined_in(region);
        for inst in self.func.walk_from(region) {
            for value in self.func.insts[inst].uses().filter(|value| !inside.contains(value)) {
                self.start(value);
            }
        }
    }

    fn start(&mut self, value: Value) {
        if self.values.insert(value) {
            self.words += self.words_of(value);
        }
    }

    fn end(&mut self, value: Value) {
        if self.values.remove(&value) {
            self.words -= self.words_of(value);
        }
    }

    fn words_of(&self, value: Value) -> u32 {
        let ty @ Type::Tile(tile) = self.func.ty(value) else { return 0 };
        let is_constant = self.func.constant_bits(value).is_some();
        let (Some(scalar), Some(layout)) = (ty.number().filter(|s| s.is_float()), tile.layout)
        else {
            return 0;
        };
        let bits = self.func.layouts[layout].elements_per_thread() as u32 * scalar.bits();
        if is_constant { 0 } else { bits.div_ceil(32) }
    }
}
