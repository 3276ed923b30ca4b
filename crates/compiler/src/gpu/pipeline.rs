//! Software pipelining: operands of matrix products are copied to shared memory some iterations
//! before they are used.
//!
//! In: a GPU-level function. Out: in each counted loop whose products read loads of the same
//! iteration, these loads become asynchronous copies (`cp.async`) into a ring of `S` buffers, `S`
//! being the loop's number of stages:
//!
//! ```text
//! copy 0 .. S-2                                  each behind a check that the iteration exists
//! for i:
//!   wait until copy i is complete; barrier
//!   copy i+S-1                                   into the buffer that iteration i-1 has read
//!   product of the buffers of iteration i
//! wait for all copies; barrier
//! ```
//!
//! The one barrier per iteration both publishes copy `i` and frees the buffer of iteration `i-1`.
//! Addresses and masks of a copy are computed by a second instance of the instructions that
//! computed them in the loop, which runs `S-1` iterations ahead; loops in which they depend on
//! more than pure instructions stay as they are. Cost: linear in the loop bodies.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{GpuTarget, LowerError, propagate};
use crate::analysis::axis::AxisInfos;
use crate::ir::{
    Attrs, BufferType, Builder, Function, Inst, IntCompare, IntPredicate, Opcode, Region, Scalar,
    Type, Value, ValueData, ValueDef, Wait,
};
use crate::layout::{LinearLayout, SwizzledSharedLayout};

/// The first architecture with asynchronous copies.
const ASYNC_COPIES: u32 = 80;
/// The fewest bytes that one asynchronous copy of one thread moves.
const MIN_COPY_BYTES: i64 = 4;
/// The unit in which shared memory is read by the matrix units' loads.
const CHUNK_BYTES: usize = 16;
/// The bytes that all banks hold side by side.
const LINE_BYTES: usize = 128;

/// Pipelines the loops of `func`.
///
/// # Errors
/// When a buffer has no layout.
pub fn pipeline(func: &mut Function, target: GpuTarget) -> Result<(), LowerError> {
    if target.capability < ASYNC_COPIES {
        return Ok(());
    }
    let infos = AxisInfos::of(func);
    let regions: Vec<Region> = func.regions.keys().collect();
    for region in regions {
        for inst in func.regions[region].insts.clone() {
            if func.insts[inst].opcode == Opcode::For
                && let Some(plan) = Plan::of(func, &infos, inst)
            {
                Rewriter { func, region, inst, plan }.rewrite()?;
            }
        }
    }
    Ok(())
}

/// One load to be made asynchronous.
struct Copy {
    load: Inst,
    /// Conversions to operand layouts that read it, with the permutation that lies between.
    uses: Vec<(Inst, Option<SmallVec<[usize; 4]>>)>,
    /// Permutations that have no user afterwards.
    permutes: Vec<Inst>,
}

/// What pipelining one loop takes.
struct Plan {
    stages: u32,
    copies: Vec<Copy>,
    /// Instructions of the body that compute addresses and masks, in order.
    ahead: Vec<Inst>,
    /// Loop-carried values that they depend on, by number.
    carried: Vec<usize>,
}

impl Plan {
    fn of(func: &Function, infos: &AxisInfos, inst: Inst) -> Option<Plan> {
        let data = &func.insts[inst];
        let Attrs::Loop(attrs) = &data.attrs else { return None };
        let stages = if attrs.stages > 0 { attrs.stages } else { func.options.num_stages };
        let step = func.constant_bits(data.operand(2))?;
        let upward = step != 0 && step < 1 << 31;
        if stages < 2 || !upward {
            return None;
        }
        let body = data.regions[0];
        let copies = find_copies(func, infos, body);
        if copies.is_empty() {
            return None;
        }
        let mut slice = Slice { func, body, insts: FxHashSet::default(), carried: Vec::new() };
        for copy in &copies {
            let load = &func.insts[copy.load];
            for value in load.uses().take(2) {
                slice.add(value)?;
            }
        }
        let Slice { insts, carried, .. } = slice;
        let order = func.regions[body].insts.iter().copied();
        let ahead = order.filter(|inst| insts.contains(inst)).collect();
        Some(Plan { stages, copies, ahead, carried })
    }
}

/// The instructions of a loop body from which some values follow.
struct Slice<'f> {
    func: &'f Function,
    body: Region,
    insts: FxHashSet<Inst>,
    carried: Vec<usize>,
}

impl Slice<'_> {
    /// Adds what `value` follows from; `None` when that is more than pure instructions.
    fn add(&mut self, value: Value) -> Option<()> {
        match self.func.values[value].def {
            ValueDef::Argument(region, number) if region == self.body && number > 0 => {
                let number = number as usize - 1;
                if !self.carried.contains(&number) {
                    self.carried.push(number);
                    let end = self.func.terminator(self.body)?;
                    self.add(end.operand(number))?;
                }
            }
            ValueDef::Argument(..) => {}
            ValueDef::Result(inst, _) => {
                let inside = self.func.regions[self.body].insts.contains(&inst);
                if inside && self.insts.insert(inst) {
                    let data = &self.func.insts[inst];
                    if !data.opcode.is_pure() || !data.regions.is_empty() {
                        return None;
                    }
                    for operand in data.uses() {
                        self.add(operand)?;
                    }
                }
            }
        }
        Some(())
    }
}

/// Loads of `body` that only matrix products read.
fn find_copies(func: &Function, infos: &AxisInfos, body: Region) -> Vec<Copy> {
    let insts = &func.regions[body].insts;
    let mut users: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
    for inst in func.walk() {
        for value in func.insts[inst].uses() {
            users.entry(value).or_default().push(inst);
        }
    }
    let is_operand = |value: Value| {
        let all = users.get(&value).map_or(&[][..], Vec::as_slice);
        all.iter().all(|&user| {
            let data = &func.insts[user];
            data.opcode == Opcode::Dot
                && data.operand_opt(2) != Some(value)
                && insts.contains(&user)
        })
    };
    let mut copies = Vec::new();
    for &inst in insts {
        let data = &func.insts[inst];
        if data.opcode != Opcode::Load || !can_copy(func, infos, inst) {
            continue;
        }
        let (mut uses, mut permutes) = (Vec::new(), Vec::new());
        let mut fits = true;
        for &user in users.get(&data.result()).map_or(&[][..], Vec::as_slice) {
            let reader = &func.insts[user];
            match (reader.opcode, &reader.attrs) {
                (Opcode::ConvertLayout, _) => uses.push((user, None)),
                (Opcode::Permute, Attrs::Order(order)) => {
                    let order: SmallVec<[usize; 4]> =
                        order.order.iter().map(|&axis| axis as usize).collect();
                    for &next in users.get(&reader.result()).map_or(&[][..], Vec::as_slice) {
                        fits &= func.insts[next].opcode == Opcode::ConvertLayout;
                        uses.push((next, Some(order.clone())));
                    }
                    permutes.push(user);
                }
                _ => fits = false,
            }
        }
        let all_operands = uses.iter().all(|(user, _)| is_operand(func.insts[*user].result()));
        if fits && all_operands && !uses.is_empty() {
            copies.push(Copy { load: inst, uses, permutes });
        }
    }
    copies
}

/// Whether each thread's share of a load consists of runs that `cp.async` can move.
fn can_copy(func: &Function, infos: &AxisInfos, load: Inst) -> bool {
    let data = &func.insts[load];
    let Attrs::LoadHints(hints) = &data.attrs else { return false };
    let (Some(layout), Some(elem)) =
        (func.ty(data.result()).layout(), func.ty(data.result()).elem())
    else {
        return false;
    };
    let zero_fill = data.operand_opt(2).is_none_or(|other| func.constant_bits(other) == Some(0));
    if hints.volatile || !zero_fill || func.ty(data.result()).shape().len() < 2 {
        return false;
    }
    let layout = &func.layouts[layout];
    let bytes = i64::from(elem.bits().div_ceil(8));
    let info = infos.get(func, data.operand(0));
    let mask = data.operand_opt(1).map(|mask| infos.get(func, mask));
    (0..info.rank()).any(|axis| {
        let aligned = info.divisibility[axis] / bytes;
        let mut run = info.contiguity[axis].min(aligned);
        run = run.min(layout.contiguous_per_thread(axis) as i64);
        if let Some(mask) = &mask {
            run = run.min(mask.constancy[axis]);
        }
        run * bytes >= MIN_COPY_BYTES
    })
}

/// Buffers whose rows of chunks are permuted so that eight rows of one column of chunks lie in
/// different banks.
fn buffer_layout(
    func: &Function,
    load: Inst,
) -> Result<Option<(LinearLayout, SmallVec<[u32; 4]>)>, LowerError> {
    let ty = func.ty(func.insts[load].result());
    let (Some(id), Some(elem)) = (ty.layout(), ty.elem()) else { return Ok(None) };
    let layout = &func.layouts[id];
    let shape = propagate::extents(ty.shape());
    let mut order: SmallVec<[usize; 4]> = (0..shape.len()).rev().collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(layout.contiguous_per_thread(axis)));
    let bytes = elem.bits().div_ceil(8) as usize;
    let row_bytes = shape[order[0]] * bytes;
    let chunks = (row_bytes / CHUNK_BYTES).max(1);
    let per_phase = (LINE_BYTES / row_bytes).max(1);
    let max_phase = (LINE_BYTES / CHUNK_BYTES / per_phase).clamp(1, chunks);
    let vec = (CHUNK_BYTES / bytes).max(1);
    let swizzled = SwizzledSharedLayout { vec, per_phase, max_phase, order };
    Ok(Some((swizzled.to_linear(&shape)?, ty.shape().into())))
}

/// Rewrites one loop.
struct Rewriter<'f> {
    func: &'f mut Function,
    /// The region that holds the loop.
    region: Region,
    inst: Inst,
    plan: Plan,
}

type Map = FxHashMap<Value, Value>;

impl Rewriter<'_> {
    fn rewrite(mut self) -> Result<(), LowerError> {
        let tail = self.split_off_tail();
        let buffers = self.allocate()?;
        let data = self.func.insts[self.inst].clone();
        let body = data.regions[0];
        let [lower, upper, step] = [0, 1, 2].map(|slot| data.operand(slot));
        let index = self.func.regions[body].args[0];
        let index_ty = self.func.ty(index).number().unwrap_or(Scalar::I32);
        let depth = self.plan.stages - 1;
        let ends: Vec<Value> =
            self.func.terminator(body).map(|end| end.uses().collect()).unwrap_or_default();
        let carried = self.plan.carried.clone();
        let args: Vec<Value> =
            carried.iter().map(|&number| self.func.regions[body].args[number + 1]).collect();

        let mut current: Vec<Value> =
            carried.iter().map(|&number| data.operand(number + 3)).collect();
        for stage in 0..depth {
            let at = self.offset_index(self.region, (lower, step), index_ty, stage);
            let slot = self.constant(self.region, Scalar::I32, stage.into());
            let exists = self.compare(self.region, at, upper);
            let mut map: Map = args.iter().copied().zip(current.iter().copied()).collect();
            map.insert(index, at);
            self.copy_instance(self.region, &mut map, &buffers, slot, exists);
            current = carried.iter().map(|&number| mapped(&map, ends[number])).collect();
        }

        let first_read = self.constant(self.region, Scalar::I32, 0);
        let first_write = self.constant(self.region, Scalar::I32, depth.into());
        let mut inits = current;
        inits.extend([first_read, first_write]);
        let new_args = self.extend_loop(&inits);
        self.func.regions[self.region].insts.push(self.inst);
        self.rewrite_body(body, &args, &new_args, &ends, &buffers)?;
        self.drain(self.region, 0);
        self.func.regions[self.region].insts.extend(tail);
        Ok(())
    }

    /// Takes the loop and what follows it out of its region; returns what follows.
    fn split_off_tail(&mut self) -> Vec<Inst> {
        let insts = &mut self.func.regions[self.region].insts;
        let at = insts.iter().position(|&inst| inst == self.inst).unwrap_or(insts.len());
        let mut tail = insts.split_off(at);
        tail.remove(0);
        tail
    }

    fn builder(&mut self, region: Region) -> Builder<'_> {
        let loc = self.func.insts[self.inst].loc;
        let mut builder = Builder::new(self.func, region);
        builder.set_loc(loc);
        builder
    }

    fn constant(&mut self, region: Region, scalar: Scalar, value: i64) -> Value {
        self.builder(region).int(scalar, value.into())
    }

    fn allocate(&mut self) -> Result<Vec<Value>, LowerError> {
        let mut buffers = Vec::new();
        let loads: Vec<Inst> = self.plan.copies.iter().map(|copy| copy.load).collect();
        for load in loads {
            let Some((layout, shape)) = buffer_layout(self.func, load)? else { continue };
            let Some(elem) = self.func.ty(self.func.insts[load].result()).elem() else { continue };
            let layout = self.func.intern_layout(layout);
            let stages = self.plan.stages;
            let ty = Type::Buffer(BufferType { elem, shape, stages, layout });
            let buffer =
                self.builder(self.region).emit_typed(Opcode::LocalAlloc, &[], Attrs::None, ty);
            buffers.push(buffer);
        }
        Ok(buffers)
    }

    /// `start + step * count` in the type of the loop's index.
    fn offset_index(
        &mut self,
        region: Region,
        (start, step): (Value, Value),
        scalar: Scalar,
        count: u32,
    ) -> Value {
        if count == 0 {
            return start;
        }
        let mut builder = self.builder(region);
        let count = builder.int(scalar, count.into());
        let distance = builder.emit(Opcode::Mul, &[step, count], Attrs::None);
        builder.emit(Opcode::Add, &[start, distance], Attrs::None)
    }

    fn compare(&mut self, region: Region, index: Value, upper: Value) -> Value {
        let attrs = IntCompare { predicate: IntPredicate::Slt };
        self.builder(region).emit(Opcode::Cmp, &[index, upper], attrs)
    }

    /// One instance of the address computation under `map`, and the copies that use it.
    fn copy_instance(
        &mut self,
        region: Region,
        map: &mut Map,
        buffers: &[Value],
        slot: Value,
        exists: Value,
    ) {
        for inst in self.plan.ahead.clone() {
            self.clone_inst(region, inst, map);
        }
        let mut tokens = Vec::new();
        let loads: Vec<Inst> = self.plan.copies.iter().map(|copy| copy.load).collect();
        for (load, &buffer) in loads.into_iter().zip(buffers) {
            let data = self.func.insts[load].clone();
            let ptr = mapped(map, data.operand(0));
            let mask_ty = self.func.ty(ptr).with_elem(Scalar::I1);
            let view = self.view(region, buffer, slot, None);
            let mut builder = self.builder(region);
            builder.set_loc(data.loc);
            let mut mask = builder.emit_typed(Opcode::Splat, &[exists], Attrs::None, mask_ty);
            if let Some(own) = data.operand_opt(1) {
                mask = builder.emit(Opcode::And, &[mask, mapped(map, own)], Attrs::None);
            }
            let Attrs::LoadHints(hints) = data.attrs else { continue };
            let operands = [ptr, view, mask];
            tokens.push(builder.emit_typed(Opcode::AsyncCopy, &operands, hints, Type::Token));
        }
        self.builder(region).emit_typed(Opcode::AsyncCommit, &tokens, Attrs::None, Type::Token);
    }

    fn clone_inst(&mut self, region: Region, inst: Inst, map: &mut Map) {
        let data = self.func.insts[inst].clone();
        let operands: Vec<Option<Value>> =
            data.operands.iter().map(|operand| operand.map(|value| mapped(map, value))).collect();
        let types: Vec<Type> =
            data.results.iter().map(|&result| self.func.ty(result).clone()).collect();
        let mut builder = self.builder(region);
        builder.set_loc(data.loc);
        let new = builder.emit_inst(data.opcode, operands, data.attrs, types, []);
        let results = self.func.insts[new].results.clone();
        map.extend(data.results.iter().copied().zip(results));
    }

    /// One stage of a buffer, with its axes permuted.
    fn view(
        &mut self,
        region: Region,
        buffer: Value,
        slot: Value,
        order: Option<(&[usize], LinearLayout)>,
    ) -> Value {
        let Type::Buffer(mut ty) = self.func.ty(buffer).clone() else { return buffer };
        ty.stages = 1;
        if let Some((order, layout)) = order {
            ty.shape = order.iter().map(|&axis| ty.shape[axis]).collect();
            ty.layout = self.func.intern_layout(layout);
        }
        let operands = [buffer, slot];
        self.builder(region).emit_typed(
            Opcode::LocalStage,
            &operands,
            Attrs::None,
            Type::Buffer(ty),
        )
    }

    /// Adds carried values to the loop; returns the arguments of the body for them.
    fn extend_loop(&mut self, inits: &[Value]) -> Vec<Value> {
        let body = self.func.insts[self.inst].regions[0];
        let mut args = Vec::new();
        for &init in inits {
            let ty = self.func.ty(init).clone();
            args.push(self.func.add_argument(body, ty.clone()));
            let number = self.func.insts[self.inst].results.len() as u32;
            let def = ValueDef::Result(self.inst, number);
            let result = self.func.values.push(ValueData { ty, def, name: None });
            let data = &mut self.func.insts[self.inst];
            data.results.push(result);
            data.operands.push(Some(init));
        }
        args
    }

    fn rewrite_body(
        &mut self,
        body: Region,
        args: &[Value],
        new_args: &[Value],
        ends: &[Value],
        buffers: &[Value],
    ) -> Result<(), LowerError> {
        let old = std::mem::take(&mut self.func.regions[body].insts);
        let data = self.func.insts[self.inst].clone();
        let index = self.func.regions[body].args[0];
        let scalar = self.func.ty(index).number().unwrap_or(Scalar::I32);
        let depth = self.plan.stages - 1;
        let (ahead_args, slots) = new_args.split_at(args.len());
        let (read, write) = (slots[0], slots[1]);

        self.drain(body, depth - 1);
        let at = self.offset_index(body, (index, data.operand(2)), scalar, depth);
        let exists = self.compare(body, at, data.operand(1));
        let mut map: Map = args.iter().copied().zip(ahead_args.iter().copied()).collect();
        map.insert(index, at);
        self.copy_instance(body, &mut map, buffers, write, exists);
        self.read_buffers(body, buffers, read)?;

        let converted: FxHashSet<Inst> = self
            .plan
            .copies
            .iter()
            .flat_map(|copy| {
                let users = copy.uses.iter().map(|(user, _)| *user);
                users.chain(copy.permutes.iter().copied()).chain([copy.load])
            })
            .collect();
        let (&end, rest) = old.split_last().expect("invariant: a verified body has a terminator");
        let kept = rest.iter().copied().filter(|inst| !converted.contains(inst));
        self.func.regions[body].insts.extend(kept);
        let numbers = self.plan.carried.clone();
        let mut next: Vec<Value> =
            numbers.iter().map(|&number| mapped(&map, ends[number])).collect();
        next.extend([self.next_slot(body, read), self.next_slot(body, write)]);
        self.func.insts[end].operands.extend(next.into_iter().map(Some));
        self.func.regions[body].insts.push(end);
        Ok(())
    }

    /// Turns the conversions of the loads into reads of the buffers.
    fn read_buffers(
        &mut self,
        body: Region,
        buffers: &[Value],
        slot: Value,
    ) -> Result<(), LowerError> {
        for (at, &buffer) in buffers.iter().enumerate() {
            for (user, order) in self.plan.copies[at].uses.clone() {
                let layout = self.func.ty(buffer).layout().map(|id| self.func.layouts[id].clone());
                let permuted = match (&order, layout) {
                    (Some(order), Some(layout)) => Some((&order[..], layout.transpose(order)?)),
                    _ => None,
                };
                let view = self.view(body, buffer, slot, permuted);
                let data = &mut self.func.insts[user];
                data.opcode = Opcode::LocalLoad;
                data.operands = SmallVec::from_slice(&[Some(view)]);
                self.func.regions[body].insts.push(user);
            }
        }
        Ok(())
    }

    /// Waits until at most `pending` groups of copies are unfinished, for all threads.
    fn drain(&mut self, region: Region, pending: u32) {
        let mut builder = self.builder(region);
        builder.emit_typed(Opcode::AsyncWait, &[], Wait { pending }, Type::Token);
        builder.emit_effect(Opcode::Barrier, [], Attrs::None);
    }

    fn next_slot(&mut self, region: Region, slot: Value) -> Value {
        let stages = self.plan.stages;
        let mut builder = self.builder(region);
        let one = builder.int(Scalar::I32, 1);
        let count = builder.int(Scalar::I32, stages.into());
        let zero = builder.constant(Type::scalar(Scalar::I32), 0);
        let next = builder.emit(Opcode::Add, &[slot, one], Attrs::None);
        let equal = IntCompare { predicate: IntPredicate::Eq };
        let wraps = builder.emit(Opcode::Cmp, &[next, count], equal);
        builder.emit(Opcode::Select, &[wraps, zero, next], Attrs::None)
    }
}

fn mapped(map: &Map, value: Value) -> Value {
    *map.get(&value).unwrap_or(&value)
}
