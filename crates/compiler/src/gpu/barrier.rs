//! Barriers between threads that meet in shared buffers.
//!
//! In: a GPU-level function. Out: the same function with a `barrier` wherever one thread may read
//! what another wrote to a buffer, or overwrite what another still reads, and none lies between.
//! Buffers are told apart, their stages are not. An asynchronous copy writes when it is waited for:
//! what `async_wait` finished is written by the waiting thread. Instructions that use scratch
//! memory of their own (conversions, reductions) see to themselves. Cost: two sweeps per loop.

use rustc_hash::FxHashSet;

use crate::ir::{Attrs, Builder, Function, Inst, InstData, Opcode, Region, Type, Value};

/// Inserts the barriers that `func` needs.
pub fn insert(func: &mut Function) {
    let mut analysis = Analysis::default();
    analysis.region(func, func.body, Pending::default());
    for region in func.regions.keys().collect::<Vec<_>>() {
        let insts = std::mem::take(&mut func.regions[region].insts);
        for inst in insts {
            if analysis.before.contains(&inst) {
                let loc = func.insts[inst].loc;
                let mut builder = Builder::new(func, region);
                builder.set_loc(loc);
                builder.emit_effect(Opcode::Barrier, [], Attrs::None);
            }
            func.regions[region].insts.push(inst);
        }
    }
}

/// The allocation that a buffer is (a part or view of).
pub fn root(func: &Function, buffer: Value) -> Value {
    match func.def(buffer) {
        Some(data) if matches!(data.opcode, Opcode::LocalStage | Opcode::LocalPermute) => {
            root(func, data.operand(0))
        }
        _ => buffer,
    }
}

/// What has been done to buffers since the last barrier.
#[derive(Debug, Clone, Default)]
struct Pending {
    read: FxHashSet<Value>,
    written: FxHashSet<Value>,
}

impl Pending {
    fn merge(&mut self, other: Pending) {
        self.read.extend(other.read);
        self.written.extend(other.written);
    }

    fn clear(&mut self) {
        self.read.clear();
        self.written.clear();
    }
}

#[derive(Default)]
struct Analysis {
    /// Instructions that need a barrier before them.
    before: FxHashSet<Inst>,
    /// Buffers that asynchronous copies write.
    copied: FxHashSet<Value>,
}

impl Analysis {
    /// Follows a region from what is pending at its start to what is at its end.
    fn region(&mut self, func: &Function, region: Region, mut pending: Pending) -> Pending {
        for &inst in &func.regions[region].insts {
            let data = &func.insts[inst];
            match data.opcode {
                Opcode::For | Opcode::While => {
                    for _ in 0..2 {
                        let end = data.regions.iter().fold(pending.clone(), |pending, &inner| {
                            self.region(func, inner, pending)
                        });
                        pending.merge(end);
                    }
                }
                Opcode::If => {
                    let mut joined = Pending::default();
                    for &inner in &data.regions {
                        joined.merge(self.region(func, inner, pending.clone()));
                    }
                    pending = joined;
                }
                _ => self.inst(func, inst, data, &mut pending),
            }
        }
        pending
    }

    fn inst(&mut self, func: &Function, inst: Inst, data: &InstData, pending: &mut Pending) {
        match data.opcode {
            Opcode::Barrier => pending.clear(),
            Opcode::AsyncWait => pending.written.extend(&self.copied),
            Opcode::LocalStore => {
                let buffer = root(func, data.operand(0));
                self.write(inst, buffer, pending);
                pending.written.insert(buffer);
            }
            Opcode::AsyncCopy => {
                let buffer = root(func, data.operand(1));
                self.write(inst, buffer, pending);
                self.copied.insert(buffer);
            }
            Opcode::LocalLoad | Opcode::Mma | Opcode::MultiplyAdd => {
                let is_buffer = |value: &Value| matches!(func.ty(*value), Type::Buffer(_));
                let buffers: Vec<Value> =
                    data.uses().filter(is_buffer).map(|buffer| root(func, buffer)).collect();
                if buffers.iter().any(|buffer| pending.written.contains(buffer)) {
                    self.wait(inst, pending);
                }
                pending.read.extend(buffers);
            }
            _ => {}
        }
    }

    fn write(&mut self, inst: Inst, buffer: Value, pending: &mut Pending) {
        if pending.written.contains(&buffer) || pending.read.contains(&buffer) {
            self.wait(inst, pending);
        }
    }

    fn wait(&mut self, inst: Inst, pending: &mut Pending) {
        self.before.insert(inst);
        pending.clear();
    }
}
