//! Which parameters pointers come from.
//!
//! Programs are written as if tensors that are passed under two names did not overlap from one
//! iteration to the next, and Triton issues loads early on the same assumption. So a load may move
//! over a store if the two can be traced to parameters, and those differ. And what is written at an
//! address that is not known is still in the memory of the parameter that it comes from. Cost: linear.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Function, Inst, Opcode, Region, Value, ValueDef};

/// The first operand of a loop that is carried.
const FIRST_INIT: usize = 3;

/// The parameters that values of a function come from.
pub(crate) struct Roots<'f> {
    func: &'f Function,
    /// What the arguments of loop bodies and the results of loops and branches are set to.
    sources: FxHashMap<Value, Vec<Value>>,
    used: FxHashSet<Value>,
}

impl<'f> Roots<'f> {
    /// Looks at all of `func`.
    pub(crate) fn of(func: &'f Function) -> Roots<'f> {
        let mut sources: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        let mut used = FxHashSet::default();
        for inst in func.walk() {
            let data = &func.insts[inst];
            used.extend(data.uses());
            let is_loop = data.opcode == Opcode::For;
            if !is_loop && data.opcode != Opcode::If {
                continue;
            }
            let ends = data.regions.iter().filter_map(|&region| func.terminator(region));
            let mut ways: Vec<Vec<Value>> = ends.map(|end| end.uses().collect()).collect();
            let mut set = data.results.iter().map(|&result| vec![result]).collect::<Vec<_>>();
            if is_loop {
                ways.push(data.uses().skip(FIRST_INIT).collect());
                let args = &func.regions[data.regions[0]].args;
                set.iter_mut().zip(&args[1..]).for_each(|(set, &arg)| set.push(arg));
            }
            for way in ways {
                for (set, value) in set.iter().zip(way) {
                    set.iter().for_each(|&to| sources.entry(to).or_default().push(value));
                }
            }
        }
        Roots { func, sources, used }
    }

    /// The positions of the parameters that the pointers `ptr` are offsets from; `None` if they are not
    /// all known.
    pub(crate) fn params(&self, ptr: Value) -> Option<Vec<usize>> {
        let args = &self.func.regions[self.func.body].args;
        let position = |value| args.iter().position(|arg| *arg == value);
        self.of_pointer(ptr)?.into_iter().map(position).collect()
    }

    /// The parameters that the pointers `ptr` are offsets from; `None` if they are not all known.
    fn of_pointer(&self, ptr: Value) -> Option<FxHashSet<Value>> {
        let (mut found, mut seen) = (FxHashSet::default(), FxHashSet::default());
        let mut waiting = vec![ptr];
        while let Some(value) = waiting.pop() {
            if !seen.insert(value) {
                continue;
            }
            if let Some(sources) = self.sources.get(&value) {
                waiting.extend(sources);
                continue;
            }
            match self.func.values[value].def {
                ValueDef::Argument(region, _) if region == self.func.body => {
                    found.insert(value);
                }
                ValueDef::Argument(..) => return None,
                ValueDef::Result(inst, _) => waiting.extend(self.through(inst)?),
            }
        }
        Some(found)
    }

    /// The pointers that the result of `inst` is made of.
    fn through(&self, inst: Inst) -> Option<Vec<Value>> {
        use Opcode::*;
        let data = &self.func.insts[inst];
        match data.opcode {
            PtrAdd | Splat | Broadcast | ExpandDims | Reshape | Permute | ConvertLayout
            | Bitcast | AssertFacts => Some(vec![data.operand(0)]),
            Select => Some(vec![data.operand(1), data.operand(2)]),
            _ => None,
        }
    }

    /// What may be written in `region`; `None` if that is not known.
    pub(crate) fn written_in(&self, region: Region) -> Option<FxHashSet<Value>> {
        let mut written = FxHashSet::default();
        for inst in self.func.walk_from(region) {
            let data = &self.func.insts[inst];
            if self.is_plain_write(inst) {
                written.extend(self.of_pointer(data.operand(0))?);
            } else if data.opcode.may_write_global() && !data.is_pure() {
                return None;
            }
        }
        Some(written)
    }

    /// Whether the loads among `insts` read nothing that is `written`.
    pub(crate) fn read_others(
        &self,
        insts: impl IntoIterator<Item = Inst>,
        written: &FxHashSet<Value>,
    ) -> bool {
        written.is_empty()
            || insts.into_iter().all(|inst| {
                let data = &self.func.insts[inst];
                data.opcode != Opcode::Load
                    || self.of_pointer(data.operand(0)).is_some_and(|of| of.is_disjoint(written))
            })
    }

    /// Whether nothing but what is written tells that `inst` was done: loads may be done before it.
    /// Atomic operations order others only for those who look at their results.
    fn is_plain_write(&self, inst: Inst) -> bool {
        let data = &self.func.insts[inst];
        match data.opcode {
            Opcode::Store => true,
            Opcode::AtomicRmw => !data.results.iter().any(|result| self.used.contains(result)),
            _ => false,
        }
    }
}
