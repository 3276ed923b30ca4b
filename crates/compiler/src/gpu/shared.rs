//! Shared memory: who uses which part of it, and where threads must wait for each other.
//!
//! In: a verified GPU-level function. Out: a range of shared memory for each buffer and for each
//! instruction that exchanges elements between warps, and before which instructions a barrier must
//! stand. Every exchange writes its range, waits, and reads it; so the next one to write an
//! overlapping range must wait for these reads, unless a barrier lies between. Buffers are
//! synchronized by the function itself, as if each were memory of its own; only where one takes the
//! place of something else is there more to wait for. Small ranges are kept apart, so that
//! reductions in a row need one barrier each, and with them mbarriers; large ones overlap when they are not needed at the
//! same time. Cost: two sweeps per loop, and quadratic in the number of large ranges.

use std::ops::Range;

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};

use super::LowerError;
use super::exchange::{Places, scan_bytes, sort_bytes};
use super::flip;
use super::in_flight::{Reading, left_pending};
use crate::ir::{Attrs, Elem, Function, Inst, InstData, Opcode, Region, Scalar, Type, Value};
use crate::layout::{Conversion, LayoutError, plan_conversion};

/// Ranges up to this size overlap no others.
const SMALL_BYTES: u32 = 2048;
/// What such ranges take together at most; those of further instructions overlap like large ones. Sorts that
/// are written out exchange hundreds of times.
const APART_BYTES: u32 = 32 * 1024;
/// Ranges start at multiples of this.
const ALIGN: u32 = 128;
/// Large ranges start at multiples of this where warp groups or bulk copies access them: their swizzles
/// repeat.
const SWIZZLE_ALIGN: u32 = 1024;

/// One instruction's part of shared memory.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// First byte.
    pub offset: u32,
    /// Size.
    pub bytes: u32,
    /// Whether all threads must have arrived before it is written.
    pub barrier_before: bool,
}

/// The plan for one function.
#[derive(Debug, Default)]
pub struct SharedPlan {
    scratch: SecondaryMap<Inst, Option<Box<Scratch>>>,
    /// The range of each allocation.
    buffers: FxHashMap<Value, Range<u32>>,
    /// Accesses to buffers that must wait because their memory was used for something else.
    waiting: FxHashSet<Inst>,
    bytes: u32,
    has_warp_groups: bool,
    has_bulk_copies: bool,
    users: Vec<SharedUse>,
}

/// What one instruction keeps in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedUse {
    /// The allocation, or the instruction that exchanges elements.
    pub inst: Inst,
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub bytes: u32,
}

/// A range of shared memory, and the buffer that it is, if it is one.
type Part = (Range<u32>, Option<Value>);

/// Shared memory in use.
#[derive(Debug, Clone, Default)]
struct Pending {
    /// Since the last barrier.
    parts: Vec<Part>,
    /// What products in flight read, whatever barriers there are.
    in_flight: Reading<Part>,
}

impl Pending {
    fn add(&mut self, parts: impl IntoIterator<Item = Part>) {
        for part in parts {
            if !self.parts.contains(&part) {
                self.parts.push(part);
            }
        }
    }

    fn merge(&mut self, other: Pending) {
        self.add(other.parts);
        self.in_flight.merge(other.in_flight);
    }
}

impl SharedPlan {
    /// Plans `func`.
    pub fn new(func: &Function) -> Result<SharedPlan, LowerError> {
        let insts = func.walk();
        let has = |opcode: Opcode| insts.iter().any(|&inst| func.insts[inst].opcode == opcode);
        let has_warp_groups = has(Opcode::WarpGroupMma);
        let has_bulk_copies = has(Opcode::BulkCopy);
        let mut plan = SharedPlan { has_warp_groups, has_bulk_copies, ..SharedPlan::default() };
        let mut large = Vec::new();
        for (at, &inst) in insts.iter().enumerate() {
            let data = &func.insts[inst];
            if data.opcode == Opcode::LocalAlloc {
                let buffer = data.result();
                let bytes = buffer_bytes(func.ty(buffer));
                if is_mbarrier(func.ty(buffer)) {
                    plan.buffers.insert(buffer, plan.bytes..plan.bytes + bytes);
                    plan.bytes += bytes.next_multiple_of(ALIGN);
                    continue;
                }
                large.push(Placement { user: User::Buffer(buffer), bytes, life: at..at + 1 });
                continue;
            }
            let bytes = scratch_bytes(func, data)?;
            if bytes == 0 {
                continue;
            }
            let scratch = Scratch { offset: plan.bytes, bytes, barrier_before: false };
            if bytes <= SMALL_BYTES && plan.bytes < APART_BYTES {
                plan.bytes += bytes.next_multiple_of(ALIGN);
            } else {
                large.push(Placement { user: User::Scratch(inst), bytes, life: at..at + 1 });
            }
            plan.scratch[inst] = Some(Box::new(scratch));
        }
        extend_lives(func, &insts, &mut large);
        plan.place(large);
        plan.list_users(func, &insts);
        plan.region(func, func.body, Pending::default());
        Ok(plan)
    }

    /// Gives each user the lowest range that nothing alive at the same time has, the largest first.
    fn place(&mut self, mut users: Vec<Placement>) {
        users.sort_by_key(|user| std::cmp::Reverse(user.bytes));
        let align = if self.has_async_proxy() { SWIZZLE_ALIGN } else { ALIGN };
        let base = self.bytes.next_multiple_of(align);
        let mut placed: Vec<(Range<u32>, Range<usize>)> = Vec::new();
        for user in users {
            let bytes = user.bytes.next_multiple_of(align);
            let alive: Vec<&Range<u32>> = placed
                .iter()
                .filter(|(_, life)| life.start < user.life.end && user.life.start < life.end)
                .map(|(range, _)| range)
                .collect();
            let is_free = |start: u32| {
                alive.iter().all(|range| start + bytes <= range.start || range.end <= start)
            };
            let starts = alive.iter().map(|range| range.end).chain([base]);
            let start = starts.filter(|&start| is_free(start)).min().unwrap_or(base);
            self.bytes = self.bytes.max(start + bytes);
            match user.user {
                User::Buffer(buffer) => {
                    self.buffers.insert(buffer, start..start + user.bytes);
                }
                User::Scratch(inst) => {
                    if let Some(scratch) = &mut self.scratch[inst] {
                        scratch.offset = start;
                    }
                }
            }
            placed.push((start..start + bytes, user.life));
        }
    }

    /// Who uses shared memory, the largest first; their ranges may overlap.
    pub fn users(&self) -> &[SharedUse] {
        &self.users
    }

    /// Lists the users once they are placed.
    fn list_users(&mut self, func: &Function, insts: &[Inst]) {
        for &inst in insts {
            let buffer = func.insts[inst].results.first();
            let range = buffer.and_then(|buffer| self.buffers.get(buffer)).cloned();
            let scratch = self.scratch[inst].as_deref();
            let range = range.or(scratch.map(|part| part.offset..part.offset + part.bytes));
            let user = range.map(|range| SharedUse {
                inst,
                offset: range.start,
                bytes: range.end - range.start,
            });
            self.users.extend(user);
        }
        self.users.sort_by_key(|user| std::cmp::Reverse(user.bytes));
    }

    /// The first byte of an allocation.
    pub fn buffer(&self, allocation: Value) -> Option<u32> {
        self.buffers.get(&allocation).map(|range| range.start)
    }

    /// Whether all threads must arrive before `inst` accesses buffers.
    pub fn needs_barrier(&self, inst: Inst) -> bool {
        self.waiting.contains(&inst)
    }

    /// Whether matrix units or the bulk copy engine access shared memory by themselves.
    pub fn has_async_proxy(&self) -> bool {
        self.has_warp_groups || self.has_bulk_copies
    }

    /// Whether the bulk copy engine writes shared memory.
    pub fn has_bulk_copies(&self) -> bool {
        self.has_bulk_copies
    }

    /// Dynamic shared memory in all.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The part of `inst`.
    pub fn scratch(&self, inst: Inst) -> Option<Scratch> {
        self.scratch[inst].as_deref().cloned()
    }

    /// Whether the result of an atomic must be passed to threads that did not do it.
    pub fn is_shared_result(&self, inst: Inst) -> bool {
        self.scratch[inst].is_some()
    }

    /// Follows a region from the ranges that may still be read at its start to those at its end.
    fn region(&mut self, func: &Function, region: Region, mut pending: Pending) -> Pending {
        for &inst in &func.regions[region].insts {
            let data = &func.insts[inst];
            match data.opcode {
                Opcode::Barrier => pending.parts.clear(),
                Opcode::For | Opcode::While => {
                    for _ in 0..2 {
                        let mut end = pending.clone();
                        for &inner in &data.regions {
                            end = self.region(func, inner, end);
                        }
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
                _ => {
                    if let Some(scratch) = &mut self.scratch[inst] {
                        let range = scratch.offset..scratch.offset + scratch.bytes;
                        scratch.barrier_before |=
                            pending.parts.iter().any(|(other, _)| overlap(other, &range));
                        pending.parts = vec![(range, None)];
                    }
                    self.access_buffers(func, inst, data, &mut pending);
                }
            }
        }
        pending
    }

    /// Notes what `inst` accesses of buffers, and whether it must wait for other users of their
    /// memory.
    fn access_buffers(
        &mut self,
        func: &Function,
        inst: Inst,
        data: &InstData,
        pending: &mut Pending,
    ) {
        if matches!(data.opcode, Opcode::LocalStage | Opcode::LocalPermute) {
            return;
        }
        if let Some(left) = left_pending(func, inst) {
            let finished = pending.in_flight.finish(left);
            pending.add(finished);
        }
        let accessed: Vec<(Range<u32>, Value)> = data
            .uses()
            .filter(|&value| is_buffer(func, value))
            .map(|value| func.allocation(value))
            .filter_map(|buffer| Some((self.buffers.get(&buffer)?.clone(), buffer)))
            .collect();
        let clash = accessed.iter().any(|(range, buffer)| {
            pending.parts.iter().any(|(other, of)| *of != Some(*buffer) && overlap(other, range))
        });
        if clash {
            self.waiting.insert(inst);
            pending.parts.clear();
        }
        let parts = accessed.into_iter().map(|(range, buffer)| (range, Some(buffer)));
        if data.opcode == Opcode::WarpGroupMma {
            pending.in_flight.start(parts.collect());
        } else {
            pending.add(parts);
        }
    }
}

/// Who uses a range of shared memory.
enum User {
    Buffer(Value),
    Scratch(Inst),
}

/// A range to be placed.
struct Placement {
    user: User,
    bytes: u32,
    /// The positions in program order between which it is used.
    life: Range<usize>,
}

/// Extends the lives of buffers to their last uses; a use in a loop around which the buffer lives
/// is one until the loop's end.
fn extend_lives(func: &Function, insts: &[Inst], users: &mut [Placement]) {
    let mut ends: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
    let mut loops = Vec::new();
    for (at, &inst) in insts.iter().enumerate() {
        let data = &func.insts[inst];
        for value in data.uses().filter(|&value| is_buffer(func, value)) {
            ends.entry(func.allocation(value)).or_default().push(at);
        }
        if matches!(data.opcode, Opcode::For | Opcode::While) {
            loops.push(at..at + func.walk_inst(inst).len());
        }
    }
    for user in users {
        let User::Buffer(buffer) = &user.user else { continue };
        for &at in ends.get(buffer).into_iter().flatten() {
            user.life.end = user.life.end.max(at + 1);
            for around in &loops {
                if around.contains(&at) && !around.contains(&user.life.start) {
                    user.life.end = user.life.end.max(around.end);
                }
            }
        }
    }
}

fn is_buffer(func: &Function, value: Value) -> bool {
    matches!(func.ty(value), Type::Buffer(_))
}

/// Whether the stages of a buffer are mbarriers.
pub(crate) fn is_mbarrier(buffer: &Type) -> bool {
    matches!(buffer, Type::Buffer(_)) && buffer.numel() == 1 && buffer.number() == Some(Scalar::I64)
}

/// Bytes of one stage of a buffer.
pub fn stage_bytes(buffer: &Type) -> u32 {
    let bytes = buffer.numel() as u32 * buffer.elem().map_or(0, Elem::bytes);
    if is_mbarrier(buffer) { bytes } else { bytes.next_multiple_of(ALIGN) }
}

/// How many stages a buffer has.
pub fn stages(buffer: &Type) -> u32 {
    match buffer {
        Type::Buffer(ty) => ty.stages,
        _ => 0,
    }
}

/// Bytes of the buffers that hold a tile of another buffer again, in another order.
pub fn second_bytes(func: &Function) -> u32 {
    let of_tile = |store: &&InstData| {
        func.def(store.operand(1)).is_some_and(|tile| tile.opcode == Opcode::LocalLoad)
    };
    let insts = func.walk().into_iter().map(|inst| &func.insts[inst]);
    let stores = insts.filter(|data| data.opcode == Opcode::LocalStore).filter(of_tile);
    stores.map(|store| buffer_bytes(func.ty(store.operand(0)))).sum()
}

fn buffer_bytes(buffer: &Type) -> u32 {
    stage_bytes(buffer) * stages(buffer)
}

fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The conversion that a `convert_layout` asks for.
pub fn conversion(func: &Function, data: &InstData) -> Result<Conversion, LowerError> {
    let (from, to) = (func.ty(data.operand(0)), func.ty(data.result()));
    let (Some(from_id), Some(to_id), Some(elem)) = (from.layout(), to.layout(), from.elem()) else {
        return Err(LowerError::Unsupported {
            opcode: data.opcode,
            reason: "conversion of a scalar".to_owned(),
        });
    };
    let bits = elem.bits().max(8) as usize;
    Ok(plan_conversion(&func.layouts[from_id], &func.layouts[to_id], bits)?)
}

/// Whether a conversion or a reduction goes through scratch memory, so that threads meet at a barrier in it.
pub(super) fn exchanges(func: &Function, data: &InstData) -> bool {
    scratch_bytes(func, data).is_ok_and(|bytes| bytes > 0)
}

fn scratch_bytes(func: &Function, data: &InstData) -> Result<u32, LowerError> {
    match (data.opcode, &data.attrs) {
        (Opcode::ConvertLayout, _) => Ok(match conversion(func, data)? {
            Conversion::SharedMemory(plan) => plan.bytes as u32,
            _ => 0,
        }),
        (Opcode::Reduce, Attrs::Axis(axis)) => reduce_bytes(func, data, axis.axis as usize),
        (Opcode::Scan, _) => Ok(scan_bytes(func, data)),
        (Opcode::Sort, _) => Ok(sort_bytes(func, data)),
        (Opcode::Gather, _) => {
            let moves = flip::within_warps(func, data).is_none();
            Ok(if moves { tile_bytes(func, data.operand(0)) } else { 0 })
        }
        (Opcode::BulkStore, _) => Ok(tile_bytes(func, data.operand(1))),
        (Opcode::Histogram, _) => Ok(tile_bytes(func, data.result())),
        (Opcode::AtomicRmw | Opcode::AtomicCas, _) => {
            let result = data.result();
            let used = func.insts.values().any(|user| user.uses().any(|value| value == result));
            Ok(if used { shared_result_bytes(func, result) } else { 0 })
        }
        _ => Ok(0),
    }
}

/// Elements of each operand of a reduction that go through shared memory: one per result element
/// and group of warps that share a row.
pub(crate) fn reduce_partials(
    func: &Function,
    data: &InstData,
    axis: usize,
) -> Result<u32, LayoutError> {
    let input = data.operand(0);
    let Some(layout) = func.ty(input).layout().map(|id| &func.layouts[id]) else { return Ok(0) };
    let Some(bits) = layout.reduction_bits(axis) else { return Ok(0) };
    if bits.warp == 0 {
        return Ok(0);
    }
    let reduced = layout.remove_axis(axis)?.without_free_registers();
    Ok(Places::of_reduction(&reduced, bits.warp).count())
}

fn reduce_bytes(func: &Function, data: &InstData, axis: usize) -> Result<u32, LowerError> {
    let partials = reduce_partials(func, data, axis)?;
    let bytes = data.uses().filter_map(|value| func.ty(value).elem()).map(|elem| {
        // Operands lie one after another, each aligned to what a vector access needs.
        (partials * elem.bytes()).next_multiple_of(16)
    });
    Ok(bytes.sum())
}

fn tile_bytes(func: &Function, value: Value) -> u32 {
    let ty = func.ty(value);
    let bytes = ty.elem().map_or(0, Elem::bytes) * ty.numel() as u32;
    bytes.next_multiple_of(16)
}

fn shared_result_bytes(func: &Function, result: Value) -> u32 {
    let ty = func.ty(result);
    let Some(elem) = ty.elem() else { return 0 };
    let spread = match ty.layout() {
        None => true,
        Some(id) => {
            let masks = func.layouts[id].duplicates();
            masks.lane != 0 || masks.warp != 0
        }
    };
    if spread { ty.numel() as u32 * elem.bytes() } else { 0 }
}
