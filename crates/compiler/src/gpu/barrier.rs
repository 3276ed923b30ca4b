//! Barriers between threads that meet in shared buffers.
//!
//! In: a GPU-level function. Out: the same function with a `barrier` wherever one thread may read
//! what another wrote to a buffer, or overwrite what another still reads, and none lies between.
//! Buffers are told apart, and within one iteration the stage before or after another one in a ring
//! is told from that. An asynchronous copy writes when it is waited for: what `async_wait` finished
//! is written by the waiting thread; what each thread reads where it copied itself needs no barrier:
//! on an H200, a product of block-scaled operands takes 0.96 times as long so.
//! What a bulk copy writes is there for every thread that waits for its
//! mbarrier, which one thread makes. Products of warp groups read until they are waited for; what
//! they read is written again after that only, which [`pipeline`](super::pipeline) sees to.
//! Instructions that use scratch
//! memory of their own (conversions, reductions) see to themselves. What goes through shared memory there passes a
//! barrier, which in innermost loops serves the buffers as well: on an H100, a product of 4-bit numbers by blocks of 64
//! rows takes 0.90 times as long so. Around other loops a barrier of their own keeps apart what stands before and behind:
//! a grouped product took 209 registers instead of 183 without. Cost: two sweeps per loop.

use rustc_hash::{FxHashMap, FxHashSet};

use super::in_flight::{Reading, left_pending};
use super::shared::exchanges;
use crate::ir::{
    Attrs, Builder, Function, Inst, InstData, IntCompare, IntPredicate, LayoutId, Opcode, Region,
    Type, Value,
};

/// How many barriers `func` needs besides those within conversions and reductions. These may stand behind what is
/// written and in front of the product that reads it, which then waits for what they exchange: on an H100, a product
/// that is scaled by blocks took 1.07 times as long where they counted.
pub fn count(func: &Function) -> usize {
    Analysis::of(func, Exchanges::Apart).before.len()
}

/// Inserts the barriers that `func` needs.
pub fn insert(func: &mut Function) {
    let analysis = Analysis::of(func, Exchanges::ServeLoops);
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

/// A buffer, or one stage of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    /// The allocation.
    root: Value,
    /// The stage's number in this iteration; `None` for any.
    stage: Option<Value>,
}

impl Place {
    fn of(func: &Function, buffer: Value) -> Place {
        let stage = match func.def(buffer) {
            Some(data) if data.opcode == Opcode::LocalStage => Some(data.operand(1)),
            Some(data) if data.opcode == Opcode::LocalPermute => {
                Place::of(func, data.operand(0)).stage
            }
            _ => None,
        };
        Place { root: func.allocation(buffer), stage }
    }

    /// Whether the two may share memory.
    fn meets(self, func: &Function, other: Place) -> bool {
        let apart = match (self.stage, other.stage) {
            (Some(a), Some(b)) => is_neighbor(func, a, b) || is_neighbor(func, b, a),
            _ => false,
        };
        self.root == other.root && !apart
    }
}

/// Whether `stage` is the one before or after `other` in a ring of several: `other` moved by a
/// constant that is not 0, or the constant at the ring's other end where that leaves the ring.
fn is_neighbor(func: &Function, stage: Value, other: Value) -> bool {
    let Some(chosen) = func.def(stage).filter(|data| data.opcode == Opcode::Select) else {
        return false;
    };
    let Some(moved) = func.def(chosen.operand(2)).filter(|data| data.opcode == Opcode::Add) else {
        return false;
    };
    let Some(at_end) = func.def(chosen.operand(0)).filter(|data| data.opcode == Opcode::Cmp) else {
        return false;
    };
    let equal = IntCompare { predicate: IntPredicate::Eq };
    let constant = |value: Value| func.constant_bits(value);
    let wraps_elsewhere = constant(chosen.operand(1)) != constant(at_end.operand(1));
    moved.operand(0) == other
        && constant(moved.operand(1)).is_some_and(|step| step != 0)
        && at_end.attrs == equal.into()
        && at_end.operand(0) == other
        && constant(at_end.operand(1)).is_some()
        && constant(chosen.operand(1)).is_some()
        && wraps_elsewhere
}

/// What has been done to buffers since the last barrier.
#[derive(Debug, Clone, Default)]
struct Pending {
    read: FxHashSet<Place>,
    written: FxHashSet<Place>,
    /// What products in flight read, whatever barriers there are.
    in_flight: Reading<Place>,
}

impl Pending {
    fn merge(&mut self, other: Pending) {
        self.in_flight.merge(other.in_flight);
        self.read.extend(other.read);
        self.written.extend(other.written);
    }

    /// Whether nothing waits for a barrier.
    fn is_clear(&self) -> bool {
        self.read.is_empty() && self.written.is_empty()
    }

    fn clear(&mut self) {
        self.read.clear();
        self.written.clear();
    }

    /// The same, seen from the next iteration, in which stages have other numbers.
    fn into_next_iteration(self) -> Pending {
        let any_stage = |place: Place| Place { stage: None, ..place };
        Pending {
            read: self.read.into_iter().map(any_stage).collect(),
            written: self.written.into_iter().map(any_stage).collect(),
            in_flight: self.in_flight.renamed(any_stage),
        }
    }
}

fn any_meets(func: &Function, places: &FxHashSet<Place>, place: Place) -> bool {
    places.iter().any(|other| place.meets(func, *other))
}

/// What the barriers within conversions and reductions are taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exchanges {
    Apart,
    /// In innermost loops as barriers of buffers.
    ServeLoops,
}

/// The buffers that each thread reads where it copied itself: both in one layout, in which no two threads have the
/// same element.
fn read_by_who_copied(func: &Function) -> FxHashSet<Value> {
    let mut layouts: FxHashMap<Value, Option<LayoutId>> = FxHashMap::default();
    for inst in func.walk() {
        let data = &func.insts[inst];
        if matches!(data.opcode, Opcode::LocalAlloc | Opcode::LocalStage) {
            continue;
        }
        for buffer in data.uses().filter(|&value| matches!(func.ty(value), Type::Buffer(_))) {
            let layout = match data.opcode {
                Opcode::AsyncCopy => func.ty(data.operand(0)).layout(),
                Opcode::LocalLoad => func.ty(data.result()).layout(),
                _ => None,
            };
            let layout = layout.filter(|&layout| func.layouts[layout].is_injective());
            let known = layouts.entry(func.allocation(buffer)).or_insert(layout);
            if *known != layout {
                *known = None;
            }
        }
    }
    layouts.into_iter().filter_map(|(buffer, layout)| layout.map(|_| buffer)).collect()
}

struct Analysis {
    taken_for: Exchanges,
    /// Whether what is followed is in an innermost loop.
    in_innermost: bool,
    /// Instructions that need a barrier before them.
    before: FxHashSet<Inst>,
    /// Buffers that asynchronous copies write.
    copied: FxHashSet<Place>,
    /// Buffers of which each thread reads what it copied.
    own: FxHashSet<Value>,
    /// Whether instructions that were asked about pass a barrier of their own.
    exchanges: FxHashMap<Inst, bool>,
}

impl Analysis {
    fn of(func: &Function, taken_for: Exchanges) -> Analysis {
        let mut analysis = Analysis {
            taken_for,
            in_innermost: false,
            before: FxHashSet::default(),
            copied: FxHashSet::default(),
            own: read_by_who_copied(func),
            exchanges: FxHashMap::default(),
        };
        analysis.region(func, func.body, Pending::default());
        analysis
    }

    /// Follows a region from what is pending at its start to what is at its end.
    fn region(&mut self, func: &Function, region: Region, mut pending: Pending) -> Pending {
        for &inst in &func.regions[region].insts {
            let data = &func.insts[inst];
            match data.opcode {
                Opcode::For | Opcode::While => {
                    let is_loop = |opcode| matches!(opcode, Opcode::For | Opcode::While);
                    let bodies = data.regions.iter().flat_map(|&body| func.walk_from(body));
                    self.in_innermost =
                        !bodies.into_iter().any(|inner| is_loop(func.insts[inner].opcode));
                    for _ in 0..2 {
                        let end = data.regions.iter().fold(pending.clone(), |pending, &inner| {
                            self.region(func, inner, pending)
                        });
                        pending.merge(end.into_next_iteration());
                    }
                    self.in_innermost = false;
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
            Opcode::AsyncCopy if self.own.contains(&func.allocation(data.operand(1))) => {}
            Opcode::LocalLoad if self.own.contains(&func.allocation(data.operand(0))) => {}
            Opcode::Barrier => pending.clear(),
            Opcode::AsyncWait => pending.written.extend(&self.copied),
            Opcode::LocalStore => {
                let place = Place::of(func, data.operand(0));
                self.write(func, inst, place, pending);
                pending.written.insert(place);
            }
            Opcode::AsyncCopy => {
                let place = Place::of(func, data.operand(1));
                self.write(func, inst, place, pending);
                self.copied.insert(Place { stage: None, ..place });
            }
            Opcode::BulkCopy => {
                self.write(func, inst, Place::of(func, data.operand(1)), pending);
            }
            Opcode::MbarrierInit => {
                let place = Place::of(func, data.operand(0));
                self.write(func, inst, place, pending);
                pending.written.insert(place);
            }
            Opcode::MbarrierWait => {
                let place = Place::of(func, data.operand(0));
                if any_meets(func, &pending.written, place) {
                    self.wait(inst, pending);
                }
                pending.read.insert(place);
            }
            // Others may still wait for the phase before. What one thread does to mbarriers, it does in order.
            Opcode::MbarrierExpect | Opcode::MbarrierInvalidate => {
                self.write(func, inst, Place::of(func, data.operand(0)), pending);
            }
            Opcode::LocalLoad | Opcode::Mma | Opcode::WarpGroupMma | Opcode::MultiplyAdd => {
                let is_buffer = |value: &Value| matches!(func.ty(*value), Type::Buffer(_));
                let places: Vec<Place> =
                    data.uses().filter(is_buffer).map(|buffer| Place::of(func, buffer)).collect();
                if places.iter().any(|&place| any_meets(func, &pending.written, place)) {
                    self.wait(inst, pending);
                }
                if data.opcode == Opcode::WarpGroupMma {
                    pending.in_flight.start(places);
                } else {
                    pending.read.extend(places);
                }
            }
            Opcode::WarpGroupWait => {
                if let Some(left) = left_pending(func, inst) {
                    let finished = pending.in_flight.finish(left);
                    pending.read.extend(finished);
                }
            }
            Opcode::ConvertLayout | Opcode::Reduce if self.serves(func, inst, data, pending) => {
                pending.clear();
            }
            _ => {}
        }
    }

    /// Whether a conversion or a reduction passes a barrier of which buffers have use.
    fn serves(&mut self, func: &Function, inst: Inst, data: &InstData, pending: &Pending) -> bool {
        self.taken_for == Exchanges::ServeLoops
            && self.in_innermost
            && !pending.is_clear()
            && *self.exchanges.entry(inst).or_insert_with(|| exchanges(func, data))
    }

    fn write(&mut self, func: &Function, inst: Inst, place: Place, pending: &mut Pending) {
        debug_assert!(
            !pending.in_flight.places().any(|other| other.meets(func, place)),
            "invariant: nothing is written that a product in flight reads"
        );
        let meets = |places| any_meets(func, places, place);
        if meets(&pending.written) || meets(&pending.read) {
            self.wait(inst, pending);
        }
    }

    fn wait(&mut self, inst: Inst, pending: &mut Pending) {
        self.before.insert(inst);
        pending.clear();
    }
}
