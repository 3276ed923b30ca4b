//! Shared memory: who uses which part of it, and where threads must wait for each other.
//!
//! In: a verified GPU-level function. Out: for each buffer, and each instruction that exchanges
//! elements between warps, a range of shared memory; and which accesses need a barrier before
//! them. An exchange writes its range, waits, and reads it; so the next one to write an overlapping
//! range must wait for these reads, unless a barrier lies between. Small ranges are kept apart, so
//! that reductions in a row need one barrier each; others overlap where lifetimes do not. Cost: two
//! sweeps per loop, and the square of the number of ranges.

use std::ops::Range;

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::ir::{
    Attrs, BufferType, Elem, Function, Inst, InstData, Opcode, Region, Type, Value, ValueDef,
};
use tile_compiler::layout::{Conversion, LayoutError, plan_conversion};

use super::exchange;
use crate::CodegenError;

/// The symbol of dynamic shared memory.
pub(super) const SYMBOL: &str = "shared_memory";

/// Ranges up to this size never overlap others.
const SMALL_BYTES: u32 = 2048;
/// Small ranges start at multiples of this.
const ALIGN: u32 = 128;
/// Large ranges start at multiples of this.
const LARGE_ALIGN: u32 = 1024;

/// One instruction's part of shared memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// First byte.
    pub(super) offset: u32,
    /// Size.
    pub(super) bytes: u32,
    /// Whether all threads must have arrived before it is written.
    pub(super) barrier_before: bool,
}

/// The plan for one function.
#[derive(Debug, Default)]
pub(super) struct SharedPlan {
    scratch: SecondaryMap<Inst, Option<Box<Scratch>>>,
    /// Accesses of buffers that need a barrier before them.
    barriers: FxHashSet<Inst>,
    bytes: u32,
}

/// A range of shared memory that was accessed since the last barrier.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pending {
    range: Range<u32>,
    /// Whether it was written.
    written: bool,
}

/// When each instruction stands in program order, and what holds it.
struct Lifetimes {
    order: Vec<Inst>,
    position: FxHashMap<Inst, usize>,
    owner: FxHashMap<Inst, Inst>,
}

impl Lifetimes {
    fn of(func: &Function) -> Lifetimes {
        let order = func.walk();
        let position = order.iter().enumerate().map(|(at, &inst)| (inst, at)).collect();
        let mut owner = FxHashMap::default();
        for &inst in &order {
            for &region in &func.insts[inst].regions {
                owner.extend(func.regions[region].insts.iter().map(|&inner| (inner, inst)));
            }
        }
        Lifetimes { order, position, owner }
    }

    fn owners(&self, inst: Inst) -> Vec<Inst> {
        std::iter::successors(Some(inst), |inst| self.owner.get(inst).copied()).collect()
    }

    /// One past the last instruction inside `inst`.
    fn end(&self, func: &Function, inst: Inst) -> usize {
        let mut end = self.position[&inst] + 1;
        for &region in &func.insts[inst].regions {
            for &inner in &func.regions[region].insts {
                end = end.max(self.end(func, inner));
            }
        }
        end
    }

    /// From the allocation to the last use; a use in a loop that the buffer outlives lasts as long
    /// as the loop.
    fn of_buffer(&self, func: &Function, alloc: &InstData) -> Range<usize> {
        let mut aliases = vec![alloc.result()];
        let mut first = usize::MAX;
        let mut last = 0;
        for (at, &inst) in self.order.iter().enumerate() {
            let data = &func.insts[inst];
            if data.results.contains(&aliases[0]) {
                first = at;
            }
            if !data.uses().any(|value| aliases.contains(&value)) {
                continue;
            }
            if data.opcode == Opcode::LocalStage {
                aliases.push(data.result());
            }
            let around = self.owners(inst);
            let outermost = around
                .iter()
                .rev()
                .find(|&&owner| self.position[&owner] > first)
                .copied()
                .unwrap_or(inst);
            last = last.max(self.end(func, outermost));
        }
        first..last.max(first + 1)
    }
}

fn overlap<T: Ord>(a: &Range<T>, b: &Range<T>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Bytes of one stage of a buffer.
pub(super) fn buffer_bytes(buffer: &BufferType) -> u32 {
    buffer.shape.iter().product::<u32>() * element_bytes(buffer.elem)
}

/// The buffer that an instruction allocates.
trait Allocates {
    fn results_buffer(&self, data: &InstData) -> Option<&BufferType>;
}

impl Allocates for Function {
    fn results_buffer(&self, data: &InstData) -> Option<&BufferType> {
        match (data.opcode, data.results.first().map(|&result| self.ty(result))) {
            (Opcode::LocalAlloc, Some(Type::Buffer(buffer))) => Some(buffer),
            _ => None,
        }
    }
}

impl SharedPlan {
    /// Plans `func`.
    pub(super) fn new(func: &Function) -> Result<SharedPlan, CodegenError> {
        let mut plan = SharedPlan::default();
        let lives = Lifetimes::of(func);
        let mut requests = Vec::new();
        for (at, &inst) in lives.order.iter().enumerate() {
            let data = &func.insts[inst];
            let (bytes, live) = match func.results_buffer(data) {
                Some(buffer) => (buffer_bytes(buffer) * buffer.stages, lives.of_buffer(func, data)),
                None => (scratch_bytes(func, data)?, at..at + 1),
            };
            if bytes == 0 {
                continue;
            }
            let small = bytes <= SMALL_BYTES && data.opcode != Opcode::LocalAlloc;
            requests.push((inst, bytes, if small { 0..lives.order.len() } else { live }));
        }
        plan.place(requests);
        plan.region(func, func.body, Vec::new());
        Ok(plan)
    }

    /// First fit, largest first: ranges overlap only where lifetimes do not.
    fn place(&mut self, mut requests: Vec<(Inst, u32, Range<usize>)>) {
        requests.sort_by_key(|(inst, bytes, _)| (std::cmp::Reverse(*bytes), *inst));
        let mut placed: Vec<(Range<u32>, Range<usize>)> = Vec::new();
        for (inst, bytes, live) in requests {
            let align = if bytes > SMALL_BYTES { LARGE_ALIGN } else { ALIGN };
            let mut offset = 0;
            while let Some((range, _)) = placed.iter().find(|(range, other)| {
                overlap(other, &live) && overlap(range, &(offset..offset + bytes))
            }) {
                offset = range.end.next_multiple_of(align);
            }
            placed.push((offset..offset + bytes, live));
            self.bytes = self.bytes.max((offset + bytes).next_multiple_of(ALIGN));
            let scratch = Scratch { offset, bytes, barrier_before: false };
            self.scratch[inst] = Some(Box::new(scratch));
        }
    }

    /// The range of the buffer that `value` is, or is a stage of.
    fn buffer_range(&self, func: &Function, value: Value) -> Option<Range<u32>> {
        let ValueDef::Result(inst, _) = func.values[value].def else { return None };
        let data = &func.insts[inst];
        match data.opcode {
            Opcode::LocalStage => self.buffer_range(func, data.operand(0)),
            _ => self.scratch[inst].as_ref().map(|s| s.offset..s.offset + s.bytes),
        }
    }

    /// Whether all threads must have arrived before `inst` writes or reads its buffer.
    pub(super) fn barrier_before(&self, inst: Inst) -> bool {
        self.barriers.contains(&inst)
    }

    /// Dynamic shared memory in all.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The part of `inst`.
    pub(super) fn scratch(&self, inst: Inst) -> Option<Scratch> {
        self.scratch[inst].as_deref().cloned()
    }

    /// Whether the result of an atomic must be passed to threads that did not do it.
    pub(super) fn is_shared_result(&self, inst: Inst) -> bool {
        self.scratch[inst].is_some()
    }

    /// Follows a region from the accesses that may be unfinished at its start to those at its
    /// end.
    fn region(
        &mut self,
        func: &Function,
        region: Region,
        mut pending: Vec<Pending>,
    ) -> Vec<Pending> {
        for &inst in &func.regions[region].insts {
            let data = &func.insts[inst];
            match data.opcode {
                Opcode::Barrier => pending.clear(),
                Opcode::For | Opcode::While => {
                    for _ in 0..2 {
                        let mut end = pending.clone();
                        for &inner in &data.regions {
                            end = self.region(func, inner, end);
                        }
                        merge(&mut pending, end);
                    }
                }
                Opcode::If => {
                    let mut joined = Vec::new();
                    for &inner in &data.regions {
                        let end = self.region(func, inner, pending.clone());
                        merge(&mut joined, end);
                    }
                    pending = joined;
                }
                Opcode::LocalLoad => self.access(func, inst, 0, false, &mut pending),
                Opcode::LocalStore => self.access(func, inst, 0, true, &mut pending),
                Opcode::AsyncCopy => self.access(func, inst, 1, true, &mut pending),
                Opcode::LocalAlloc => {}
                _ => {
                    if let Some(scratch) = &mut self.scratch[inst] {
                        let range = scratch.offset..scratch.offset + scratch.bytes;
                        scratch.barrier_before |=
                            pending.iter().any(|other| overlap(&other.range, &range));
                        pending = vec![Pending { range, written: false }];
                    }
                }
            }
        }
        pending
    }

    /// An access of a buffer. Who makes an asynchronous copy visible is the wait and the barrier
    /// after it, so that such a copy is finished for what follows in program order.
    fn access(
        &mut self,
        func: &Function,
        inst: Inst,
        slot: usize,
        writes: bool,
        pending: &mut Vec<Pending>,
    ) {
        let data = &func.insts[inst];
        let Some(range) = self.buffer_range(func, data.operand(slot)) else { return };
        let clash =
            pending.iter().any(|other| overlap(&other.range, &range) && (writes || other.written));
        if clash {
            self.barriers.insert(inst);
            pending.clear();
        }
        if data.opcode != Opcode::AsyncCopy {
            merge(pending, vec![Pending { range, written: writes }]);
        }
    }
}

fn merge(into: &mut Vec<Pending>, more: Vec<Pending>) {
    for access in more {
        if !into.contains(&access) {
            into.push(access);
        }
    }
}

/// Bytes of an element in shared memory.
pub(super) fn element_bytes(elem: Elem) -> u32 {
    elem.bits().div_ceil(8)
}

/// The conversion that a `convert_layout` asks for.
pub(super) fn conversion(func: &Function, data: &InstData) -> Result<Conversion, CodegenError> {
    let (from, to) = (func.ty(data.operand(0)), func.ty(data.result()));
    let (Some(from_id), Some(to_id), Some(elem)) = (from.layout(), to.layout(), from.elem()) else {
        return Err(CodegenError::Unsupported { what: "conversion of a scalar".to_owned() });
    };
    let bits = elem.bits().max(8) as usize;
    Ok(plan_conversion(&func.layouts[from_id], &func.layouts[to_id], bits)?)
}

fn scratch_bytes(func: &Function, data: &InstData) -> Result<u32, CodegenError> {
    match (data.opcode, &data.attrs) {
        (Opcode::ConvertLayout, _) => Ok(match conversion(func, data)? {
            Conversion::SharedMemory(plan) => plan.bytes as u32,
            _ => 0,
        }),
        (Opcode::Reduce, Attrs::Axis(axis)) => reduce_bytes(func, data, axis.axis as usize),
        (Opcode::Scan, Attrs::Scan(scan)) => Ok(exchange_bytes(func, data, scan.axis as usize)),
        (Opcode::Sort, _) => {
            let axis = func.ty(data.operand(0)).shape().len() - 1;
            Ok(exchange_bytes(func, data, axis))
        }
        (Opcode::Gather, _) => Ok(tile_bytes(func, data.operand(0))),
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
pub(super) fn reduce_partials(
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
    let elements = layout.remove_axis(axis)?.total_output_bits();
    Ok(1 << (elements + bits.warp.count_ones()))
}

fn reduce_bytes(func: &Function, data: &InstData, axis: usize) -> Result<u32, CodegenError> {
    let partials = reduce_partials(func, data, axis)?;
    let bytes = data.uses().filter_map(|value| func.ty(value).elem()).map(|elem| {
        // Operands lie one after another, each aligned to what a vector access needs.
        (partials * element_bytes(elem)).next_multiple_of(16)
    });
    Ok(bytes.sum())
}

/// The operands of a butterfly that leaves the warp.
fn exchange_bytes(func: &Function, data: &InstData, axis: usize) -> u32 {
    let layout = func.ty(data.operand(0)).layout().map(|id| &func.layouts[id]);
    if !layout.is_some_and(|layout| exchange::leaves_warp(layout, axis)) {
        return 0;
    }
    data.uses().map(|value| tile_bytes(func, value)).sum()
}

fn tile_bytes(func: &Function, value: Value) -> u32 {
    let ty = func.ty(value);
    let bytes = ty.elem().map_or(0, element_bytes) * ty.numel() as u32;
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
    if spread { ty.numel() as u32 * element_bytes(elem) } else { 0 }
}
