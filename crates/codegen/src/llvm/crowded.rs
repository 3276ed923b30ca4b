//! Exponentials between the computation of masks and the accesses that need them.
//!
//! A thread has seven predicate registers. Masks that wait for a later access take one for each
//! element or run of equal ones; the assembler packs what does not fit into bits, and then keeps
//! back whatever else needs a predicate, and loads around it, until these are unpacked. It moves no
//! load behind a barrier, so what follows one, a reduction or a product is not concerned.

use rustc_hash::FxHashSet;
use tile_compiler::ir::{Elem, Inst, InstData, Opcode, Region, Scalar, Value};

use super::Emitter;

/// Predicates that waiting masks may take before others are short of them.
const MAX_WAITING: usize = 4;

impl Emitter<'_> {
    /// The results of exponentials beside loads that more masks wait across than leave predicates to
    /// spare.
    pub(super) fn crowded_exponentials(&self) -> FxHashSet<Value> {
        let mut crowded = FxHashSet::default();
        self.visit_waiting(self.func.body, FxHashSet::default(), &mut crowded);
        crowded
    }

    /// Goes backwards through `region`, behind which accesses need the masks `waiting`; gives those
    /// that wait in front of it.
    fn visit_waiting(
        &self,
        region: Region,
        mut waiting: FxHashSet<Value>,
        crowded: &mut FxHashSet<Value>,
    ) -> FxHashSet<Value> {
        // Those that no load is known to stand in front of.
        let mut alone: Vec<Value> = Vec::new();
        for &inst in self.func.regions[region].insts.iter().rev() {
            let data = &self.func.insts[inst];
            for result in &data.results {
                waiting.remove(result);
            }
            match data.opcode {
                Opcode::Exp => {
                    let taken: usize = waiting.iter().map(|&mask| self.predicates_of(mask)).sum();
                    alone.extend((taken > MAX_WAITING).then(|| data.result()));
                }
                Opcode::Load => crowded.extend(alone.drain(..)),
                opcode if waits(opcode) => alone.clear(),
                _ => {}
            }
            for &inner in &data.regions {
                waiting = self.visit_waiting(inner, waiting, crowded);
                if matches!(data.opcode, Opcode::For | Opcode::While) {
                    // What an iteration needs from before the loop, the next one needs too.
                    waiting = self.visit_waiting(inner, waiting, crowded);
                }
            }
            waiting.extend(self.masks(data));
        }
        for argument in &self.func.regions[region].args {
            waiting.remove(argument);
        }
        waiting
    }

    /// The masks of an access to memory that are not known.
    fn masks(&self, data: &InstData) -> Vec<Value> {
        if !matches!(data.opcode, Opcode::Load | Opcode::Store | Opcode::AtomicRmw) {
            return Vec::new();
        }
        let truth = Some(Elem::Scalar(Scalar::I1));
        let is_mask = |&value: &Value| {
            self.ty(value).elem() == truth && self.func.constant_bits(value).is_none()
        };
        data.uses().filter(is_mask).collect()
    }

    /// Whether one of some instructions compares more indices than a thread has predicates for.
    pub(super) fn compare_many(&self, insts: &[Inst]) -> bool {
        const PREDICATES: usize = 7;
        insts.iter().map(|&inst| &self.func.insts[inst]).any(|data| {
            data.opcode == Opcode::Cmp && self.predicates_of(data.result()) > PREDICATES
        })
    }

    /// The predicate registers that a mask takes: one for each run of elements known to be equal.
    fn predicates_of(&self, mask: Value) -> usize {
        let firsts = self.first_of_alike(mask);
        match firsts.is_empty() {
            true => self.register_count(mask),
            false => firsts.iter().enumerate().filter(|&(at, &first)| at == first).count(),
        }
    }
}

/// Whether loads stay in front of an instruction.
fn waits(opcode: Opcode) -> bool {
    let is_exchange = matches!(opcode, Opcode::Barrier | Opcode::Reduce | Opcode::Scan);
    let is_nested = matches!(opcode, Opcode::For | Opcode::While | Opcode::If);
    is_exchange || is_nested || opcode.is_gpu_product()
}
