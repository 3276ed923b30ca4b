//! Exponentials between the computation of masks and the accesses that need them.
//!
//! A thread has seven predicate registers. Masks that wait for a later access take one for each
//! element or run of equal ones; the assembler packs what does not fit into bits, and then keeps
//! back whatever else needs a predicate, and loads behind it, until these are unpacked.

use rustc_hash::FxHashSet;
use tile_compiler::ir::{Elem, InstData, Opcode, Region, Scalar, Value};

use super::Emitter;

/// Predicates that waiting masks may take before others are short of them.
const MAX_WAITING: usize = 4;

impl Emitter<'_> {
    /// The results of exponentials that more masks wait across than leave predicates to spare.
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
        for &inst in self.func.regions[region].insts.iter().rev() {
            let data = &self.func.insts[inst];
            for result in &data.results {
                waiting.remove(result);
            }
            if data.opcode == Opcode::Exp {
                let taken: usize = waiting.iter().map(|&mask| self.predicates_of(mask)).sum();
                crowded.extend((taken > MAX_WAITING).then(|| data.result()));
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

    /// The predicate registers that a mask takes: one for each run of elements known to be equal.
    fn predicates_of(&self, mask: Value) -> usize {
        let firsts = self.first_of_alike(mask);
        match firsts.is_empty() {
            true => self.register_count(mask),
            false => firsts.iter().enumerate().filter(|&(at, &first)| at == first).count(),
        }
    }
}
