//! Which pointer parameters a kernel reads and writes through.

use cranelift_entity::SecondaryMap;
use tile_compiler::ir::{Function, InstData, Opcode, Region, Value};

/// How a kernel uses the memory that a parameter points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ParamUse {
    /// Some load may read it.
    pub(crate) read: bool,
    /// Some store may write it.
    pub(crate) written: bool,
}

/// The uses of each parameter, in order. A pointer is followed through every operation that may
/// pass it on; one that comes out of memory is taken for any parameter's.
pub(crate) fn param_uses(func: &Function) -> Vec<ParamUse> {
    let mut flow = Flow { func, sources: SecondaryMap::new(), changed: true };
    for (index, &arg) in func.regions[func.body].args.iter().enumerate() {
        flow.sources[arg] = 1 << index.min(127);
    }
    while flow.changed {
        flow.changed = false;
        flow.region(func.body);
    }
    let mut uses = vec![ParamUse::default(); func.params.len()];
    for inst in func.walk() {
        let data = &func.insts[inst];
        let (read, written) = match data.opcode {
            Opcode::Load => (true, false),
            Opcode::Store => (false, true),
            Opcode::AtomicRmw | Opcode::AtomicCas => (true, true),
            _ => continue,
        };
        let sources = flow.sources[data.operand(0)];
        for (index, found) in uses.iter_mut().enumerate() {
            if sources & (1 << index.min(127)) != 0 {
                found.read |= read;
                found.written |= written;
            }
        }
    }
    uses
}

struct Flow<'f> {
    func: &'f Function,
    /// For each value a bit for each parameter that its pointers may come from.
    sources: SecondaryMap<Value, u128>,
    changed: bool,
}

impl Flow<'_> {
    fn region(&mut self, region: Region) {
        for &inst in &self.func.regions[region].insts {
            let data = &self.func.insts[inst];
            self.inst(data);
            data.regions.iter().for_each(|&inner| self.region(inner));
        }
    }

    /// Whatever goes into an instruction may come out of it: results, arguments of its regions,
    /// and what the regions pass on.
    fn inst(&mut self, data: &InstData) {
        let passed = data.regions.iter().filter_map(|&region| self.func.terminator(region));
        let values = data.uses().chain(passed.flat_map(InstData::uses));
        let sources = match data.opcode {
            Opcode::Load
                if self.func.ty(data.result()).elem().is_some_and(|elem| elem.is_ptr()) =>
            {
                u128::MAX
            }
            Opcode::Load | Opcode::AtomicRmw | Opcode::AtomicCas => 0,
            _ => values.fold(0, |all, value| all | self.sources[value]),
        };
        let args = data.regions.iter().flat_map(|&region| &self.func.regions[region].args);
        let targets: Vec<Value> = data.results.iter().chain(args).copied().collect();
        for target in targets {
            self.changed |= self.sources[target] | sources != self.sources[target];
            self.sources[target] |= sources;
        }
    }
}
