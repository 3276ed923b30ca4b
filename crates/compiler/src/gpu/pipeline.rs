//! Software pipelining: operands of matrix products are copied to shared memory while earlier ones
//! are multiplied.
//!
//! In: a GPU-level function in which products read loaded operands from shared buffers, or from
//! registers to which loads contribute. Out: in each innermost loop that asks for more than one
//! stage, the loads that can be issued early have buffers with as many stages, and
//!
//! ```text
//! for k in 0..stages-1:           # the prologue, spelled out
//!   async_copy iteration k into stage k; async_commit
//! for each iteration i:
//!   async_wait until the copies of iteration i are done
//!   async_copy iteration i+stages-1 into the stage that iteration i-1 read; async_commit
//!   the body, which reads stage i
//! async_wait for all
//! ```
//!
//! Tiles of tensors that [`bulk`](super::bulk) finds are copied by one instruction each of one thread:
//!
//! ```text
//! mbarrier_init, for each stage
//! for k in 0..stages-1:
//!   mbarrier_expect; bulk_copy iteration k into stage k
//! for each iteration i:
//!   mbarrier_wait for stage i: its phase has the parity of how often the ring went round
//!   mbarrier_expect; bulk_copy iteration i+stages-1 into the stage that iteration i-1 read
//!   the body, which reads stage i
//! mbarrier_invalidate
//! ```
//!
//! Where copies are started behind a product, what the body writes before it reads a copied tile is written
//! before the wait. On an H200, states of linear attention, which are written as they are carried, take 0.94
//! times as long so.
//!
//! Where warp groups multiply, copies are started after the first product of the body and before
//! the wait for it, so that the matrix units work meanwhile. Where products stay in flight, see
//! [`in_flight`](super::in_flight), they are started after the wait for those of the iteration
//! before. Where single warps multiply what threads make of copied tiles, copies are started after
//! the first product too, if there are three stages.
//!
//! Where another loop repeats the loop, as in persistent products, the prologue stays where it is. On an H100, when
//! copies of the next tile are started before results are stored, products of f16 take 1.003 to 1.023 times as long,
//! of fp8 0.992 to 1.000 times.
//!
//! Copies of iterations that do not exist are masked off, so that nothing is read beyond what the
//! loop reads. A load can be issued early when its address and mask follow from the loop's index
//! and from carried values by pure operations and other loads, as of a table of pages, and when
//! the loop writes to tensors of other parameters alone, see [`origin`](super::origin);
//! [`early`](super::early) finds those that matter. Where the stages would not fit shared memory,
//! loads that products use from registers are not issued early, then what is turned for warp groups
//! after it was loaded. Loads of scalars that stand between are issued with the copies, and what they
//! bring is carried from iteration to iteration: nothing else hides how long they take. So are tiles of few
//! bytes, in loops without products whose stages the program states: on an H100, numbers that are quantized in groups
//! take 0.92 times as long so. They are copied where they can be: a register that is handed on is waited for when it
//! moves, an iteration before it is used. On an H200, those numbers take 0.96 times as long so. With one
//! stage more than copies in flight, one barrier per iteration is enough: it stands after the wait and before
//! the copy, see [`barrier`](super::barrier). Cost: linear per loop.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;

use super::bulk::BulkCopy;
use super::early::{EarlyLoad, loads_of_operands};
use super::in_flight::Carried;
use super::shared::stage_bytes;
use crate::analysis::axis::AxisInfos;
use crate::analysis::roots::Roots;
use crate::ir::{
    Attrs, BufferType, Builder, Bytes, Elem, Function, Inst, InstData, IntCompare, IntPredicate,
    Loc, Loop, Opcode, Region, Scalar, Type, Value, ValueData, ValueDef, Wait,
};
use crate::layout::{Dim, LinearLayout};

/// Shared memory of one CTA where warp groups multiply, in bytes: that of sm_90.
const SHARED_BYTES: u32 = 227 * 1024;

/// Which loads are issued early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyLoads {
    /// Those whose tile goes into a buffer that products read.
    OfBuffers,
    /// Those, and all from which operands of products follow.
    OfOperands,
}

/// Asks for `spared` stages less in each loop that asks for several, but for no fewer than `more` beyond
/// the buffers that loads have there under Triton; false where `spared - 1` are as few.
pub(crate) fn spare_stages(func: &mut Function, spared: u32, more: u32) -> bool {
    let num_stages = func.options.num_stages;
    let mut any = false;
    for inst in func.walk() {
        let depth = func.insts[inst].regions.first().map_or(0, |&body| depth_of_loads(func, body));
        if let Attrs::Loop(Loop { stages, .. }) = &mut func.insts[inst].attrs {
            let asked = if *stages == 0 { num_stages } else { *stages };
            if asked > 1 {
                let least = buffers_under_triton(asked, depth) + more;
                let with = |spared: u32| asked.saturating_sub(spared).max(least).min(asked);
                any |= with(spared) < with(spared - 1);
                *stages = with(spared);
            }
        }
    }
    any
}

/// How many buffers a load of a loop of so many stages has under Triton, if the loop has loads behind
/// `depth` others: iterations between the copy and its use, as Triton's schedule of loads spreads them.
fn buffers_under_triton(stages: u32, depth: u32) -> u32 {
    let between_loads = (stages - 1).div_ceil(depth + 1);
    (stages - 1).saturating_sub(depth * between_loads).max(1)
}

/// The most loads of `body` in a row of which each needs the one before for its address or mask.
fn depth_of_loads(func: &Function, body: Region) -> u32 {
    let mut chains: FxHashMap<Inst, u32> = FxHashMap::default();
    let mut deepest = 0;
    for &inst in &func.regions[body].insts {
        let before = func.insts[inst].uses().filter_map(|value| match func.values[value].def {
            ValueDef::Result(from, _) => chains.get(&from).copied(),
            _ => None,
        });
        let mut loads = before.max().unwrap_or(0);
        if func.insts[inst].opcode == Opcode::Load {
            deepest = deepest.max(loads);
            loads += 1;
        }
        chains.insert(inst, loads);
    }
    deepest
}

/// Pipelines the loops of `func`; true if loads whose tile is used from registers are issued early.
pub fn pipeline(func: &mut Function, which: EarlyLoads) -> bool {
    let written = Roots::of(func).written_in(func.body);
    let known = Known { infos: AxisInfos::of(func), written };
    pipeline_region(func, &known, func.body, which)
}

/// What is known of a function before its loops are written anew.
struct Known {
    infos: AxisInfos,
    /// The parameters whose tensors it writes, if they are known.
    written: Option<FxHashSet<Value>>,
}

fn pipeline_region(func: &mut Function, known: &Known, region: Region, which: EarlyLoads) -> bool {
    let mut from_registers = false;
    let mut at = 0;
    // Plans look at all of the function, so that nothing may be missing from it meanwhile.
    while let Some(&inst) = func.regions[region].insts.get(at) {
        match Plan::new(func, known, inst, which) {
            Some(plan) => {
                from_registers |= plan.loads.iter().any(|load| load.buffered.is_none());
                let behind = func.regions[region].insts.split_off(at + 1);
                func.regions[region].insts.truncate(at);
                plan.write(func, region);
                at = func.regions[region].insts.len();
                func.regions[region].insts.extend(behind);
            }
            None => {
                for inner in func.insts[inst].regions.clone() {
                    from_registers |= pipeline_region(func, known, inner, which);
                }
                at += 1;
            }
        }
    }
    from_registers
}

/// What is to be done with one loop.
struct Plan {
    inst: Inst,
    body: Region,
    stages: u32,
    loads: Vec<EarlyLoad>,
    /// Loads that are issued with the copies, and carried until they are used: of scalars, and
    /// [of little](reads_little).
    in_registers: Vec<Inst>,
    /// The instructions of the body that addresses and masks follow from, in order, and `in_registers`.
    slice: Vec<Inst>,
    /// The positions of carried values that they follow from.
    carried: Vec<usize>,
    /// What the body yields.
    yields: Vec<Value>,
    /// The products of the body, if they stay in flight.
    in_flight: Option<Carried>,
}

impl Plan {
    /// The plan for `inst`; `None` when it is no loop with loads to issue early.
    fn new(func: &Function, known: &Known, inst: Inst, which: EarlyLoads) -> Option<Plan> {
        let data = &func.insts[inst];
        let (Opcode::For, Attrs::Loop(Loop { stages, .. })) = (data.opcode, &data.attrs) else {
            return None;
        };
        let body = data.regions[0];
        let little = if *stages == 0 { Vec::new() } else { reads_little(func, body) };
        let stages = if *stages == 0 { func.options.num_stages } else { *stages };
        let insts = &func.regions[body].insts;
        let is_innermost = insts.iter().all(|&inner| func.insts[inner].opcode != Opcode::For);
        let mut candidates = candidates(func, body, which);
        if which == EarlyLoads::OfOperands {
            let little = little.iter().filter_map(|&load| EarlyLoad::from_registers(func, load));
            candidates.extend(little);
        }
        if stages < 2 || !is_innermost || (candidates.is_empty() && little.is_empty()) {
            return None;
        }
        let roots = Roots::of(func);
        let written = roots.written_in(body)?;
        let yields = func.terminator(body)?.uses().collect();
        let (loads, in_registers) = (Vec::new(), Vec::new());
        let (slice, carried, in_flight) = (Vec::new(), Vec::new(), None);
        let mut plan =
            Plan { inst, body, stages, loads, in_registers, slice, carried, yields, in_flight };
        let early_slice = |plan: &Plan, load: Inst, sources: Vec<Value>| {
            let reached = plan.backward_slice(func, sources)?;
            let loads = reached.insts.iter().copied().chain([load]);
            roots.read_others(loads, &written).then_some(reached)
        };
        let mut early = Vec::new();
        for mut load in candidates {
            let written = known.written.as_ref();
            load.bulk = written.and_then(|written| BulkCopy::of(func, written, body, &load));
            if (load.bulk.is_some() || load.is_copy(func, &known.infos))
                && let Some(reached) = early_slice(&plan, load.load, load.sources(func))
            {
                early.push((load, reached));
            }
        }
        let feeds = |(load, _): &(EarlyLoad, Slice)| load.feeds_warp_groups(func, body);
        if early.iter().any(feeds) && !fits(func, body, stages, &early) {
            early.retain(|(load, _)| load.buffered.is_some());
        }
        if early.iter().any(feeds) && !fits(func, body, stages, &early) {
            early.retain(feeds);
        }
        let mut slice = FxHashSet::default();
        let mut carried = FxHashSet::default();
        for (load, reached) in early {
            slice.extend(reached.insts);
            carried.extend(reached.carried);
            plan.loads.push(load);
        }
        let beside = plan.scalars_beside(func, &slice);
        let copied: FxHashSet<Inst> = plan.loads.iter().map(|early| early.load).collect();
        let little = little.into_iter().filter(|load| !copied.contains(load));
        for load in little.chain(beside) {
            let sources = func.insts[load].uses().collect();
            if let Some(reached) = early_slice(&plan, load, sources) {
                slice.extend(reached.insts.into_iter().chain([load]));
                carried.extend(reached.carried);
                plan.in_registers.push(load);
            }
        }
        plan.slice = insts.iter().copied().filter(|inner| slice.contains(inner)).collect();
        plan.carried = carried.into_iter().collect();
        plan.carried.sort_unstable();
        let buffered = plan.loads.iter().filter_map(|load| load.buffered.as_ref());
        let staged = buffered.map(|buffered| func.insts[buffered.alloc].result()).collect();
        plan.in_flight = Carried::of(func, body, &staged);
        let is_tile = |&load: &Inst| func.ty(func.insts[load].result()).is_tile();
        let has_early = !plan.loads.is_empty() || plan.in_registers.iter().any(is_tile);
        has_early.then_some(plan)
    }

    /// The loads of scalars in the body that more is computed from than what early loads need, the
    /// instructions `slice`.
    fn scalars_beside(&self, func: &Function, slice: &FxHashSet<Inst>) -> Vec<Inst> {
        let gone = self.instructions_gone();
        let insts = &func.regions[self.body].insts;
        let others = insts.iter().filter(|inst| !slice.contains(inst) && !gone.contains(inst));
        let used = used_values(func, &others.copied().collect::<Vec<_>>());
        let is_wanted = |inst: &Inst| {
            let data = &func.insts[*inst];
            is_plain_load(data)
                && !matches!(func.ty(data.result()), Type::Tile(_))
                && used.contains(&data.result())
        };
        insts.iter().copied().filter(is_wanted).collect()
    }

    /// The instructions that early loads take the place of.
    fn instructions_gone(&self) -> FxHashSet<Inst> {
        let copied = self.loads.iter().flat_map(EarlyLoad::instructions);
        copied.chain(self.in_registers.iter().copied()).collect()
    }

    /// Writes the pipelined loop at the end of `region`.
    fn write(self, func: &mut Function, region: Region) {
        let data = func.insts[self.inst].clone();
        let ring = self.ring(func, region, data.loc);
        let ahead = self.stages - 1;
        let args = func.regions[self.body].args.clone();
        let [lower, upper, step] = [0, 1, 2].map(|slot| data.operand(slot));
        let mut carried: Vec<Value> = self.carried.iter().map(|&at| data.operand(3 + at)).collect();
        let mut index = lower;
        // By iteration.
        let mut brought: Vec<Value> = Vec::new();
        for iteration in 0..ahead {
            let mut builder = Builder::new(func, region);
            builder.set_loc(data.loc);
            let stage = builder.int(Scalar::I32, iteration.into());
            let limit = earlier(&mut builder, upper, step, iteration);
            let exists = goes_on(&mut builder, lower, limit, step);
            let mut values = FxHashMap::from_iter([(args[0], index)]);
            values.extend(self.carried.iter().map(|&at| args[1 + at]).zip(carried));
            carried = self.copy_iteration(func, region, &mut values, &ring, stage, exists);
            brought
                .extend(self.in_registers.iter().map(|&load| values[&func.insts[load].result()]));
            let mut builder = Builder::new(func, region);
            builder.set_loc(data.loc);
            index = builder.emit(Opcode::Add, &[index, step], Attrs::None);
        }
        let mut builder = Builder::new(func, region);
        builder.set_loc(data.loc);
        let first_stage = builder.int(Scalar::I32, 0);
        let limit = earlier(&mut builder, upper, step, ahead);
        self.write_body(func, &data, &ring, limit);
        // The parity of the first phase is 0 as well.
        let parity = ring.mbarriers.map(|_| first_stage);
        let at = [index, first_stage].into_iter().chain(parity);
        let entering: Vec<Value> = carried.into_iter().chain(at).chain(brought).collect();
        let types: Vec<Type> = entering.iter().map(|&value| func.ty(value).clone()).collect();
        func.insts[self.inst].operands.extend(entering.into_iter().map(Some));
        for ty in types {
            let at = func.insts[self.inst].results.len() as u32;
            let def = ValueDef::Result(self.inst, at);
            let value = func.values.push(ValueData { ty, def, name: None });
            func.insts[self.inst].results.push(value);
        }
        func.regions[region].insts.push(self.inst);
        let mut builder = Builder::new(func, region);
        builder.set_loc(data.loc);
        if ring.has_groups() {
            builder.emit_inst(Opcode::AsyncWait, [], Wait { pending: 0 }, [Type::Token], []);
        }
        if let Some(in_flight) = &self.in_flight {
            in_flight.finish(func, region, self.inst);
        }
        if let Some(mbarriers) = ring.mbarriers {
            let mut builder = Builder::new(func, region);
            builder.set_loc(data.loc);
            builder.emit_effect(Opcode::MbarrierInvalidate, [Some(mbarriers)], Attrs::None);
        }
    }

    /// Writes what stands before the loop: buffers, tensor maps and mbarriers.
    fn ring(&self, func: &mut Function, region: Region, loc: Loc) -> Ring {
        let buffers = self.loads.iter().map(|load| self.hoist_buffer(func, region, load)).collect();
        let mut builder = Builder::new(func, region);
        let maps: Vec<Option<Value>> = self
            .loads
            .iter()
            .map(|load| {
                let loc = builder.func.insts[load.load].loc;
                builder.set_loc(loc);
                load.bulk.as_ref().map(|bulk| bulk.map(&mut builder))
            })
            .collect();
        builder.set_loc(loc);
        let in_bulk = maps.iter().any(Option::is_some);
        let mbarriers = in_bulk.then(|| make_mbarriers(&mut builder, self.stages));
        Ring { buffers, maps, mbarriers }
    }

    /// Allocates the stages of a load's buffer in front of the loop.
    fn hoist_buffer(&self, func: &mut Function, region: Region, load: &EarlyLoad) -> Value {
        let loc = func.insts[load.buffered.as_ref().map_or(load.load, |b| b.alloc)].loc;
        let layout = func.intern_layout(load.storage.clone());
        let (elem, shape, stages) = (load.elem, load.shape.clone(), self.stages);
        let ty = Type::Buffer(BufferType { elem, shape, stages, layout });
        let mut builder = Builder::new(func, region);
        builder.set_loc(loc);
        builder.emit_typed(Opcode::LocalAlloc, &[], Attrs::None, ty)
    }

    /// Writes the copies of one iteration into `stage`, if it `exists`: `values` maps the loop's
    /// arguments to what they are in that iteration. Returns the carried values of the next one.
    fn copy_iteration(
        &self,
        func: &mut Function,
        region: Region,
        values: &mut FxHashMap<Value, Value>,
        ring: &Ring,
        stage: Value,
        exists: Value,
    ) -> Vec<Value> {
        for &inst in &self.slice {
            let copy = copy_inst(func, region, inst, values);
            if func.insts[copy].opcode == Opcode::Load {
                self.only_if(func, region, copy, exists);
            }
        }
        let mapped = |values: &FxHashMap<Value, Value>, value: Value| {
            values.get(&value).copied().unwrap_or(value)
        };
        let loc = func.insts[self.inst].loc;
        let mut builder = Builder::new(func, region);
        builder.set_loc(loc);
        let mbarrier = ring.mbarriers.map(|mbarriers| stage_of(&mut builder, mbarriers, stage));
        if let Some(mbarrier) = mbarrier {
            let bytes = Bytes { bytes: self.bulk_bytes() };
            builder.emit_effect(Opcode::MbarrierExpect, [Some(mbarrier), Some(exists)], bytes);
        }
        let mut tokens = Vec::with_capacity(self.loads.len());
        for ((load, &buffer), map) in self.loads.iter().zip(&ring.buffers).zip(&ring.maps) {
            let data = func.insts[load.load].clone();
            let mut builder = Builder::new(func, region);
            builder.set_loc(data.loc);
            if let (Some(bulk), &Some(map), Some(mbarrier)) = (&load.bulk, map, mbarrier) {
                let place = stage_of(&mut builder, buffer, stage);
                let begins = bulk.begins.iter().map(|&at| mapped(values, at));
                let operands = [map, place, mbarrier, exists].into_iter().chain(begins);
                builder.emit_effect(Opcode::BulkCopy, operands.map(Some), Attrs::None);
                continue;
            }
            let ptr = mapped(values, data.operand(0));
            let own = data.operand_opt(1).map(|mask| mapped(values, mask));
            let mask_ty = builder.func.ty(ptr).with_elem(Scalar::I1);
            let mut mask = builder.emit_typed(Opcode::Splat, &[exists], Attrs::None, mask_ty);
            if let Some(own) = own {
                mask = builder.emit(Opcode::And, &[own, mask], Attrs::None);
            }
            let place = stage_of(&mut builder, buffer, stage);
            let operands = [ptr, place, mask];
            let copy = builder.emit_typed(Opcode::AsyncCopy, &operands, data.attrs, Type::Token);
            tokens.push(copy);
        }
        if !tokens.is_empty() {
            let mut builder = Builder::new(func, region);
            builder.set_loc(loc);
            builder.emit_typed(Opcode::AsyncCommit, &tokens, Attrs::None, Type::Token);
        }
        self.carried.iter().map(|&at| mapped(values, self.yields[at])).collect()
    }

    /// The bytes of one stage that are copied in bulk.
    fn bulk_bytes(&self) -> u32 {
        let in_bulk = self.loads.iter().filter(|load| load.bulk.is_some());
        in_bulk.map(|load| load.shape.iter().product::<u32>() * load.elem.bytes()).sum()
    }

    /// Has the load `copy`, the last instruction of `region`, read nothing unless its iteration
    /// `exists`.
    fn only_if(&self, func: &mut Function, region: Region, copy: Inst, exists: Value) {
        func.regions[region].insts.pop();
        let (loc, own) = (func.insts[copy].loc, func.insts[copy].operand_opt(1));
        let ty = func.ty(func.insts[copy].operand(0)).with_elem(Scalar::I1);
        let is_tile = matches!(ty, Type::Tile(_));
        let mut builder = Builder::new(func, region);
        builder.set_loc(loc);
        let mut mask = exists;
        if is_tile {
            mask = builder.emit_typed(Opcode::Splat, &[mask], Attrs::None, ty);
        }
        if let Some(own) = own {
            mask = builder.emit(Opcode::And, &[own, mask], Attrs::None);
        }
        let operands = &mut func.insts[copy].operands;
        operands.resize(operands.len().max(2), None);
        operands[1] = Some(mask);
        func.regions[region].insts.push(copy);
    }

    /// What `sources` follow from within the body, loads included: the body writes nothing
    /// that they read. `None` when something else there is not pure.
    fn backward_slice(&self, func: &Function, sources: Vec<Value>) -> Option<Slice> {
        let mut slice = Slice::default();
        let mut waiting = sources;
        let mut seen = FxHashSet::default();
        while let Some(value) = waiting.pop() {
            if !seen.insert(value) {
                continue;
            }
            match func.values[value].def {
                ValueDef::Argument(region, at) if region == self.body && at > 0 => {
                    slice.carried.insert(at as usize - 1);
                    waiting.push(self.yields[at as usize - 1]);
                }
                ValueDef::Argument(..) => {}
                ValueDef::Result(inst, _) if func.regions[self.body].insts.contains(&inst) => {
                    let data = &func.insts[inst];
                    if !data.is_pure() && !is_plain_load(data) {
                        return None;
                    }
                    slice.insts.insert(inst);
                    waiting.extend(data.uses());
                }
                ValueDef::Result(..) => {}
            }
        }
        Some(slice)
    }

    /// The position among `insts` behind the first product of single warps, for copies to start
    /// there: where threads make operands of what was copied, their reads come first, and with three
    /// stages there is time.
    fn behind_first_product(&self, func: &Function, insts: &[Inst]) -> Option<usize> {
        let from_registers = self.loads.iter().any(|load| load.buffered.is_none());
        let is_product = |inst: &Inst| func.insts[*inst].opcode == Opcode::Mma;
        let at = insts.iter().position(is_product)?;
        (from_registers && self.stages > 2).then_some(at + 1)
    }

    /// The position among `insts`, which come before copies are started, behind the last write to memory that
    /// follows from nothing copied: it need not wait.
    fn end_of_early_writes(&self, func: &Function, insts: &[Inst]) -> usize {
        let tiles = self.loads.iter().map(|load| func.insts[load.load].result());
        let buffers = self.loads.iter().filter_map(|load| load.buffered.as_ref());
        let buffers = buffers.map(|buffered| func.insts[buffered.alloc].result());
        let copied: FxHashSet<Value> = tiles.chain(buffers).collect();
        let reads =
            |inst: &Inst| used_values(func, &[*inst]).iter().any(|value| copied.contains(value));
        let end = insts.iter().position(reads).unwrap_or(insts.len());
        let is_write = |inst: &Inst| func.insts[*inst].opcode == Opcode::Store;
        let last = insts[..end].iter().rposition(is_write);
        last.filter(|_| self.in_flight.is_none()).map_or(0, |at| at + 1)
    }

    /// Rewrites the loop's body: the carried values of the iteration that is copied, its index and
    /// the stage that is read become arguments.
    fn write_body(&self, func: &mut Function, data: &InstData, ring: &Ring, limit: Value) {
        let step = data.operand(2);
        let args = func.regions[self.body].args.clone();
        let mut insts = std::mem::take(&mut func.regions[self.body].insts);
        let end = insts.pop().expect("invariant: a verified region has a terminator");
        let mut values = FxHashMap::default();
        for &at in &self.carried {
            let ty = func.ty(args[1 + at]).clone();
            values.insert(args[1 + at], func.add_argument(self.body, ty));
        }
        let index = func.add_argument(self.body, func.ty(args[0]).clone());
        values.insert(args[0], index);
        let stage = func.add_argument(self.body, Type::scalar(Scalar::I32));
        let parity = ring
            .mbarriers
            .map(|mbarriers| (mbarriers, func.add_argument(self.body, Type::scalar(Scalar::I32))));
        let ahead = self.stages - 1;
        let brought: Vec<Value> = (0..ahead)
            .flat_map(|_| &self.in_registers)
            .map(|&load| {
                let ty = func.ty(func.insts[load].result()).clone();
                func.add_argument(self.body, ty)
            })
            .collect();

        let gone = self.instructions_gone();
        insts.retain(|inst| !gone.contains(inst));
        insts.push(end);
        let used = used_values(func, &insts);
        insts.pop();
        let results = self.in_registers.iter().map(|&load| func.insts[load].result());
        let mut replaced: FxHashMap<Value, Value> = results.zip(brought.iter().copied()).collect();
        let mut read_stages = |func: &mut Function| {
            for (load, &buffer) in self.loads.iter().zip(&ring.buffers) {
                read_stage(func, self.body, load, buffer, stage, &used, &mut replaced);
            }
        };
        let is_wait = |inst: &Inst| func.insts[*inst].opcode == Opcode::WarpGroupWait;
        let behind_product = match &self.in_flight {
            Some(in_flight) => Some(in_flight.move_waits(func, &mut insts)),
            None => {
                insts.iter().position(is_wait).or_else(|| self.behind_first_product(func, &insts))
            }
        };
        let rest = insts.split_off(behind_product.unwrap_or(0));
        let read = insts.split_off(self.end_of_early_writes(func, &insts));
        func.regions[self.body].insts.extend(insts);
        let mut builder = Builder::new(func, self.body);
        builder.set_loc(data.loc);
        if ring.has_groups() {
            let wait = Wait { pending: self.stages - 2 };
            builder.emit_inst(Opcode::AsyncWait, [], wait, [Type::Token], []);
        }
        if let Some((mbarriers, parity)) = parity {
            let mbarrier = stage_of(&mut builder, mbarriers, stage);
            builder.emit_effect(Opcode::MbarrierWait, [mbarrier, parity].map(Some), Attrs::None);
        }
        if behind_product.is_some() {
            read_stages(func);
        }
        func.regions[self.body].insts.extend(read);
        let mut builder = Builder::new(func, self.body);
        builder.set_loc(data.loc);
        let exists = goes_on(&mut builder, args[0], limit, step);
        let free = neighbor_stage(&mut builder, stage, Direction::Back, self.stages);
        let mut next = self.copy_iteration(func, self.body, &mut values, ring, free, exists);
        let mut builder = Builder::new(func, self.body);
        builder.set_loc(data.loc);
        next.push(builder.emit(Opcode::Add, &[index, step], Attrs::None));
        if behind_product.is_none() {
            read_stages(func);
        }
        func.regions[self.body].insts.extend(rest);
        let mut builder = Builder::new(func, self.body);
        builder.set_loc(data.loc);
        next.push(neighbor_stage(&mut builder, stage, Direction::Forward, self.stages));
        next.extend(
            parity.map(|(_, parity)| next_parity(&mut builder, stage, parity, self.stages)),
        );
        next.extend(brought.iter().skip(self.in_registers.len()));
        next.extend(self.in_registers.iter().map(|&load| values[&func.insts[load].result()]));
        func.insts[end].operands.extend(next.into_iter().map(Some));
        func.regions[self.body].insts.push(end);
        for inst in func.walk_from(self.body) {
            for operand in func.insts[inst].operands.iter_mut().flatten() {
                *operand = *replaced.get(operand).unwrap_or(operand);
            }
        }
    }
}

/// What the iterations of a loop copy into.
struct Ring {
    /// By load.
    buffers: Vec<Value>,
    /// By load, of those that are copied in bulk.
    maps: Vec<Option<Value>>,
    /// One per stage, if anything is copied in bulk.
    mbarriers: Option<Value>,
}

impl Ring {
    /// Whether threads copy elements by themselves, which they wait for in groups.
    fn has_groups(&self) -> bool {
        self.maps.iter().any(Option::is_none)
    }
}

/// What addresses and masks follow from.
#[derive(Default)]
struct Slice {
    insts: FxHashSet<Inst>,
    carried: FxHashSet<usize>,
}

/// Writes what takes the place of a load's buffer, and of its tile if that is `used` too.
fn read_stage(
    func: &mut Function,
    body: Region,
    load: &EarlyLoad,
    buffer: Value,
    stage: Value,
    used: &FxHashSet<Value>,
    replaced: &mut FxHashMap<Value, Value>,
) {
    let (loc, tile) = (func.insts[load.load].loc, func.insts[load.load].result());
    let tile_ty = func.ty(tile).clone();
    let mut builder = Builder::new(func, body);
    builder.set_loc(loc);
    let place = stage_of(&mut builder, buffer, stage);
    if let Some(buffered) = &load.buffered {
        replaced.insert(builder.func.insts[buffered.alloc].result(), place);
    }
    if used.contains(&tile) {
        let loaded = builder.emit_typed(Opcode::LocalLoad, &[place], Attrs::None, tile_ty);
        replaced.insert(tile, loaded);
    }
}

/// Whether this is a load that may be done twice.
fn is_plain_load(data: &InstData) -> bool {
    let is_volatile = matches!(&data.attrs, Attrs::LoadHints(hints) if hints.volatile);
    data.opcode == Opcode::Load && !is_volatile
}

/// The tiles that a loop without products reads, where those of an iteration are so few bytes of each thread that
/// even a multiprocessor full of threads waits for them.
fn reads_little(func: &Function, body: Region) -> Vec<Inst> {
    /// Bytes of a thread with which enough is on its way.
    const ENOUGH: u32 = 16;
    let insts = &func.regions[body].insts;
    let is_tile_load = |inst: &&Inst| {
        let data = &func.insts[**inst];
        is_plain_load(data) && func.ty(data.result()).is_tile()
    };
    let loads: Vec<Inst> = insts.iter().filter(is_tile_load).copied().collect();
    let bytes = |&load: &Inst| {
        let tile = func.ty(func.insts[load].result());
        let elements = tile.layout().map_or(0, |id| func.layouts[id].elements_per_thread());
        elements as u32 * tile.elem().map_or(0, Elem::bytes)
    };
    let multiplies = insts.iter().any(|&inst| func.any_within(inst, Opcode::is_gpu_product));
    let is_little = loads.iter().map(bytes).sum::<u32>() < ENOUGH;
    if is_little && !multiplies { loads } else { Vec::new() }
}

/// The loads of a loop's body that may be issued early, in order.
fn candidates(func: &Function, body: Region, which: EarlyLoads) -> Vec<EarlyLoad> {
    let insts = &func.regions[body].insts;
    let positions = func.positions(body);
    let stored = insts.iter().filter_map(|&store| EarlyLoad::stored(func, &positions, store));
    let mut found: Vec<EarlyLoad> = stored.collect();
    if which == EarlyLoads::OfOperands {
        let known: FxHashSet<Inst> = found.iter().map(|early| early.load).collect();
        let loads = loads_of_operands(func, body);
        let others = insts.iter().filter(|inst| loads.contains(inst) && !known.contains(inst));
        found.extend(others.filter_map(|&load| EarlyLoad::from_registers(func, load)));
    }
    found
}

/// Whether the buffers of a loop's body fit shared memory, those of `early` loads with `stages`.
fn fits(func: &Function, body: Region, stages: u32, early: &[(EarlyLoad, Slice)]) -> bool {
    let insts = func.regions[body].insts.iter().map(|&inst| &func.insts[inst]);
    let allocs = insts.filter(|data| data.opcode == Opcode::LocalAlloc);
    let once: u32 = allocs.map(|data| stage_bytes(func.ty(data.result()))).sum();
    let more: u32 = early.iter().map(|(load, _)| load.added_bytes(stages)).sum();
    once + more <= SHARED_BYTES
}

/// Every value that `insts` and what is inside them use.
fn used_values(func: &Function, insts: &[Inst]) -> FxHashSet<Value> {
    let mut used = FxHashSet::default();
    for inst in insts.iter().flat_map(|&inst| func.walk_inst(inst)) {
        used.extend(func.insts[inst].uses());
    }
    used
}

/// Copies an instruction to the end of `region`, with its operands as `values` maps them.
fn copy_inst(
    func: &mut Function,
    region: Region,
    inst: Inst,
    values: &mut FxHashMap<Value, Value>,
) -> Inst {
    let data = func.insts[inst].clone();
    let operands: Vec<Option<Value>> = data
        .operands
        .iter()
        .map(|operand| operand.map(|value| values.get(&value).copied().unwrap_or(value)))
        .collect();
    let types: Vec<Type> = data.results.iter().map(|&value| func.ty(value).clone()).collect();
    let mut builder = Builder::new(func, region);
    builder.set_loc(data.loc);
    let copy = builder.emit_inst(data.opcode, operands, data.attrs, types, []);
    let results = func.insts[copy].results.clone();
    values.extend(data.results.into_iter().zip(results));
    copy
}

/// One stage of a buffer.
fn stage_of(builder: &mut Builder<'_>, buffer: Value, stage: Value) -> Value {
    let ty = match builder.func.ty(buffer) {
        Type::Buffer(buffer) => Type::Buffer(BufferType { stages: 1, ..buffer.clone() }),
        other => other.clone(),
    };
    builder.emit_typed(Opcode::LocalStage, &[buffer, stage], Attrs::None, ty)
}

/// Makes an mbarrier for each stage.
fn make_mbarriers(builder: &mut Builder<'_>, stages: u32) -> Value {
    let layout = LinearLayout::new(&[(Dim::Offset, 0)], &[(Dim::Axis(0), 0)], [])
        .expect("invariant: one element is where it is");
    let layout = builder.func.intern_layout(layout);
    let (elem, shape) = (Scalar::I64.into(), smallvec![1]);
    let ty = Type::Buffer(BufferType { elem, shape, stages, layout });
    let mbarriers = builder.emit_typed(Opcode::LocalAlloc, &[], Attrs::None, ty);
    builder.emit_effect(Opcode::MbarrierInit, [Some(mbarriers)], Attrs::None);
    mbarriers
}

/// `upper - iterations * step`: an index below it has `iterations` more iterations after it.
fn earlier(builder: &mut Builder<'_>, upper: Value, step: Value, iterations: u32) -> Value {
    if iterations == 0 {
        return upper;
    }
    let scalar = builder.func.ty(step).number().unwrap_or(Scalar::I32);
    let count = builder.int(scalar, iterations.into());
    let distance = builder.emit(Opcode::Mul, &[step, count], Attrs::None);
    builder.emit(Opcode::Sub, &[upper, distance], Attrs::None)
}

/// Whether an iteration with `index` exists in a loop to `limit`: the direction is that of the
/// step's sign, upward when it is not known.
fn goes_on(builder: &mut Builder<'_>, index: Value, limit: Value, step: Value) -> Value {
    let bits = builder.func.ty(step).number().map_or(32, Scalar::bits);
    let is_negative =
        builder.func.constant_bits(step).is_some_and(|value| value >> (bits - 1) & 1 == 1);
    let predicate = if is_negative { IntPredicate::Sgt } else { IntPredicate::Slt };
    builder.emit(Opcode::Cmp, &[index, limit], IntCompare { predicate })
}

/// The parity of the phase that is waited for in the iteration after one that waits for `parity` at
/// `stage`: behind the last stage, the next phase of the first one.
fn next_parity(builder: &mut Builder<'_>, stage: Value, parity: Value, stages: u32) -> Value {
    let [last, one] = [stages - 1, 1].map(|value| builder.int(Scalar::I32, value.into()));
    let predicate = IntPredicate::Eq;
    let at_end = builder.emit(Opcode::Cmp, &[stage, last], IntCompare { predicate });
    let other = builder.emit(Opcode::Xor, &[parity, one], Attrs::None);
    builder.emit(Opcode::Select, &[at_end, other, parity], Attrs::None)
}

enum Direction {
    Back,
    Forward,
}

/// The stage before or after `stage`, around the ring of `stages`.
fn neighbor_stage(
    builder: &mut Builder<'_>,
    stage: Value,
    direction: Direction,
    stages: u32,
) -> Value {
    let last = i128::from(stages - 1);
    let (end, wrapped, step) = match direction {
        Direction::Back => (0, last, -1),
        Direction::Forward => (last, 0, 1),
    };
    let [end, wrapped, step] = [end, wrapped, step].map(|value| builder.int(Scalar::I32, value));
    let predicate = IntPredicate::Eq;
    let at_end = builder.emit(Opcode::Cmp, &[stage, end], IntCompare { predicate });
    let moved = builder.emit(Opcode::Add, &[stage, step], Attrs::None);
    builder.emit(Opcode::Select, &[at_end, wrapped, moved], Attrs::None)
}
