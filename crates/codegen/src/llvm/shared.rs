//! Shared memory: who uses which part of it, and where threads must wait for each other.
//!
//! In: a verified GPU-level function. Out: for each instruction that exchanges elements between
//! warps a range of shared memory, and whether a barrier must stand before it. Every such
//! instruction writes its range, waits, and reads it; so the next one to write an overlapping
//! range must wait for these reads, unless a barrier lies between. Small ranges are kept apart, so
//! that reductions in a row need one barrier each; large ones overlap. Cost: two sweeps per loop.

use std::ops::Range;

use cranelift_entity::SecondaryMap;
use tile_compiler::ir::{Attrs, Elem, Function, Inst, InstData, Opcode, Region, Value};
use tile_compiler::layout::{Conversion, LayoutError, plan_conversion};

use super::exchange;
use crate::CodegenError;

/// The symbol of dynamic shared memory.
pub(super) const SYMBOL: &str = "shared_memory";

/// Ranges up to this size never overlap others.
const SMALL_BYTES: u32 = 2048;
/// Ranges start at multiples of this.
const ALIGN: u32 = 128;

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
    bytes: u32,
}

impl SharedPlan {
    /// Plans `func`.
    pub(super) fn new(func: &Function) -> Result<SharedPlan, CodegenError> {
        let mut plan = SharedPlan::default();
        let insts = func.walk();
        let mut large = Vec::new();
        for &inst in &insts {
            let bytes = scratch_bytes(func, &func.insts[inst])?;
            if bytes == 0 {
                continue;
            }
            let scratch = Scratch { offset: plan.bytes, bytes, barrier_before: false };
            if bytes <= SMALL_BYTES {
                plan.bytes += bytes.next_multiple_of(ALIGN);
            } else {
                large.push((inst, bytes));
            }
            plan.scratch[inst] = Some(Box::new(scratch));
        }
        let base = plan.bytes;
        for (inst, bytes) in large {
            if let Some(scratch) = &mut plan.scratch[inst] {
                scratch.offset = base;
            }
            plan.bytes = plan.bytes.max(base + bytes.next_multiple_of(ALIGN));
        }
        plan.region(func, func.body, Vec::new());
        Ok(plan)
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

    /// Follows a region from the ranges that may still be read at its start to those at its end.
    fn region(
        &mut self,
        func: &Function,
        region: Region,
        mut pending: Vec<Range<u32>>,
    ) -> Vec<Range<u32>> {
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
                _ => {
                    if let Some(scratch) = &mut self.scratch[inst] {
                        let range = scratch.offset..scratch.offset + scratch.bytes;
                        let clash = pending
                            .iter()
                            .any(|other| other.start < range.end && range.start < other.end);
                        scratch.barrier_before |= clash;
                        pending = vec![range];
                    }
                }
            }
        }
        pending
    }
}

fn merge(into: &mut Vec<Range<u32>>, more: Vec<Range<u32>>) {
    for range in more {
        if !into.contains(&range) {
            into.push(range);
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
