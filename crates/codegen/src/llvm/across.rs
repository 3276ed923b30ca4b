//! Reductions: within the thread, then across the lanes of the warp, then through shared memory
//! between warps.
//!
//! The combination may be any region over any number of values. After its lanes, every lane
//! holds its warp's result; each warp writes it, and after one barrier every thread reads results
//! by whole accesses and combines them itself. What is left, lanes combine once more.

use tile_compiler::gpu::exchange::Places;
use tile_compiler::ir::{Attrs, Inst, InstData, Opcode, Region};
use tile_compiler::layout::{LinearLayout, PlaceMasks};

use super::text::{Ty, Val};
use super::totals::{Totals, combinations, put};
use super::{Emitted, Emitter, SHARED_SYMBOL};
use crate::CodegenError;

/// One element per operand of the reduction.
pub(super) type Tuple = Vec<Val>;

/// Chains of instructions that hide each other's latency.
const CHAINS: usize = 4;

/// Shuffles that do.
const SHUFFLES: usize = 8;

impl Emitter<'_> {
    pub(super) fn reduce(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Axis(axis) = &data.attrs else { return Err(self.unsupported(data)) };
        let axis = axis.axis as usize;
        let layout = self.layout(data.operand(0)).ok_or_else(|| self.unsupported(data))?;
        let bits = layout.reduction_bits(axis).ok_or_else(|| self.unsupported(data))?;
        let reduced = layout.remove_axis(axis)?.without_free_registers();
        let types: Vec<Ty> =
            data.uses().map(|value| self.register_ty(value)).collect::<Result<_, _>>()?;
        let inputs: Vec<Vec<Val>> = data.uses().map(|value| self.registers(value)).collect();
        let region = data.regions[0];

        let groups = groups(layout, &reduced, axis);
        // A product that is added to a chain becomes one fused instruction.
        let fuses = self.func.def(data.operand(0)).is_some_and(|def| def.opcode == Opcode::FMul);
        let chains = if fuses { CHAINS.div_ceil(groups.len()) } else { CHAINS };
        let mut results = Vec::with_capacity(groups.len());
        for beside in groups.chunks((SHUFFLES / types.len()).max(1)) {
            let mut totals = Vec::with_capacity(beside.len());
            for group in beside {
                let tuple = |&register: &usize| inputs.iter().map(|it| it[register]).collect();
                let mut tuples: Vec<Tuple> = group.iter().map(tuple).collect();
                totals.push(self.combine_all(region, &mut tuples, chains)?);
            }
            self.combine_lanes(region, &types, bits.lane, &mut totals)?;
            results.append(&mut totals);
        }
        if bits.warp != 0 {
            self.combine_warps(inst, data, (&reduced, &bits), &types, &mut results)?;
        }
        for (at, &result) in data.results.iter().enumerate() {
            let registers = results.iter().map(|tuple| tuple[at]).collect();
            self.set(result, registers);
        }
        Ok(())
    }

    /// Applies the region to two elements.
    pub(super) fn combine(
        &mut self,
        region: Region,
        a: &[Val],
        b: &[Val],
    ) -> Result<Tuple, CodegenError> {
        let args = self.func.regions[region].args.clone();
        for (&arg, &value) in args.iter().zip(a.iter().chain(b)) {
            self.set(arg, vec![value]);
        }
        self.region(region)?;
        let yielded = self.func.terminator(region).map(|end| end.uses().collect::<Vec<_>>());
        Ok(yielded.unwrap_or_default().into_iter().map(|value| self.registers(value)[0]).collect())
    }

    /// Combines neighbors in `chains` chains, then their results. Order is kept. What enters a chain
    /// may become part of a fused instruction.
    fn combine_all(
        &mut self,
        region: Region,
        tuples: &mut Vec<Tuple>,
        chains: usize,
    ) -> Result<Tuple, CodegenError> {
        if tuples.len() > chains {
            let mut ends = Vec::with_capacity(chains);
            for chain in tuples.chunks(tuples.len().div_ceil(chains)) {
                let mut sum = chain[0].clone();
                for tuple in &chain[1..] {
                    sum = self.combine(region, &sum, tuple)?;
                }
                ends.push(sum);
            }
            *tuples = ends;
        }
        while tuples.len() > 1 {
            let mut next = Vec::with_capacity(tuples.len().div_ceil(2));
            for pair in tuples.chunks(2) {
                next.push(match pair {
                    [a, b] => self.combine(region, a, b)?,
                    rest => rest[0].clone(),
                });
            }
            *tuples = next;
        }
        Ok(tuples.pop().unwrap_or_default())
    }

    /// Combines the results of warps that share rows, through shared memory.
    fn combine_warps(
        &mut self,
        inst: Inst,
        data: &InstData,
        (reduced, bits): (&LinearLayout, &PlaceMasks),
        types: &[Ty],
        results: &mut [Tuple],
    ) -> Emitted {
        let scratch = self.plan.scratch(inst).ok_or_else(|| self.unsupported(data))?;
        if scratch.barrier_before {
            self.barrier();
        }
        let totals = Totals::new(Places::of_reduction(reduced, bits.warp), types);
        let mut base = scratch.offset;
        let mut bases = Vec::new();
        for value in data.uses() {
            let elem = self.ty(value).elem().ok_or_else(|| self.unsupported(data))?;
            bases.push(base);
            base += (totals.places.count() * elem.bytes()).next_multiple_of(16);
        }
        let is_first =
            |register: &usize| totals.neighbors().iter().all(|bit| register >> bit & 1 == 0);
        let firsts: Vec<usize> = (0..results.len()).filter(is_first).collect();
        let own = totals.own_bases();
        let part = self.thread_index(&own);
        for &first in &firsts {
            let index = self.offset_index(part, &own, totals.register(first));
            let rows = combinations(first, totals.neighbors());
            for (at, (&ty, &base)) in types.iter().zip(&bases).enumerate() {
                let values: Vec<Val> = rows.iter().map(|&row| results[row][at]).collect();
                self.store_shared_run(ty, base, index, &values);
            }
        }
        self.barrier();
        let reading = Reading::new(&totals, types);
        for &first in &firsts {
            let parts = self.read_warps(&totals, &reading, first, types, &bases);
            let mut combined = Vec::with_capacity(parts.len());
            for mut parts in parts {
                combined.push(self.combine_all(data.regions[0], &mut parts, CHAINS)?);
            }
            self.combine_lanes(data.regions[0], types, reading.lanes, &mut combined)?;
            for (row, total) in combinations(first, totals.neighbors()).into_iter().zip(combined) {
                results[row] = total;
            }
        }
        Ok(())
    }

    /// The results of warps that this thread reads, for register `first` and each whose results lie
    /// next to it.
    fn read_warps(
        &mut self,
        totals: &Totals,
        reading: &Reading,
        first: usize,
        types: &[Ty],
        bases: &[u32],
    ) -> Vec<Vec<Tuple>> {
        let part = self.thread_index(&reading.bases);
        let rows = 1 << totals.near.0;
        let mut parts = vec![Vec::new(); rows];
        for &warp in &reading.warps {
            let place = totals.register(first) | totals.along(warp);
            let index = self.offset_index(part, &reading.bases, place);
            let columns: Vec<Vec<Val>> = types
                .iter()
                .zip(bases)
                .map(|(&ty, &base)| self.load_shared_run(ty, base, index, rows << totals.near.1))
                .collect();
            for number in 0..rows << totals.near.1 {
                let tuple = columns.iter().map(|column| column[number]).collect();
                parts[number % rows].push(tuple);
            }
        }
        parts
    }

    /// The address of element `index` of an array of `ty` at byte `base` of shared memory.
    pub(super) fn shared_address(&mut self, ty: Ty, base: impl Into<Val>, index: Val) -> Val {
        let element = Ty::Int(ty.bits().max(8));
        let start = match base.into() {
            Val::Int(base) => {
                format!("getelementptr (i8, ptr addrspace(3) @{SHARED_SYMBOL}, i32 {base})")
            }
            base => self
                .text
                .op(format_args!("getelementptr i8, ptr addrspace(3) @{SHARED_SYMBOL}, i32 {base}"))
                .to_string(),
        };
        self.text.op(format_args!("getelementptr {element}, ptr addrspace(3) {start}, i32 {index}"))
    }

    pub(super) fn store_shared(&mut self, ty: Ty, base: impl Into<Val>, index: Val, value: Val) {
        let address = self.shared_address(ty, base, index);
        let memory = Ty::Int(ty.bits().max(8));
        let raw = match ty {
            Ty::Int(1) => self.text.cast("zext", ty, value, memory),
            _ => self.text.bitcast(ty, value, memory),
        };
        self.text.line(format_args!("store {memory} {raw}, ptr addrspace(3) {address}"));
    }

    /// `count` neighbors from `index` on, a multiple of `count`, in as few loads as can be.
    pub(super) fn load_shared_run(
        &mut self,
        ty: Ty,
        base: impl Into<Val>,
        index: Val,
        count: usize,
    ) -> Vec<Val> {
        let memory = Ty::Int(ty.bits().max(8));
        let most = (128 / memory.bits() as usize).max(1);
        let address = self.shared_address(ty, base, index);
        let mut values = Vec::with_capacity(count);
        for first in (0..count).step_by(most) {
            let run = most.min(count - first);
            let place = match first {
                0 => address,
                _ => self.text.op(format_args!(
                    "getelementptr {memory}, ptr addrspace(3) {address}, i32 {first}"
                )),
            };
            let align = memory.bits() as usize / 8 * run;
            let raw: Vec<Val> = if run == 1 {
                vec![
                    self.text
                        .op(format_args!("load {memory}, ptr addrspace(3) {place}, align {align}")),
                ]
            } else {
                let vector = self.text.op(format_args!(
                    "load <{run} x {memory}>, ptr addrspace(3) {place}, align {align}"
                ));
                (0..run)
                    .map(|at| {
                        self.text.op(format_args!(
                            "extractelement <{run} x {memory}> {vector}, i32 {at}"
                        ))
                    })
                    .collect()
            };
            for value in raw {
                values.push(match ty {
                    Ty::Int(1) => self.text.cast("trunc", memory, value, ty),
                    _ => self.text.bitcast(memory, value, ty),
                });
            }
        }
        values
    }
}

/// How the results of all warps are read: by each thread some, the others by other lanes.
struct Reading {
    /// What the bits of the thread number contribute to the first result that a thread reads.
    bases: Vec<u32>,
    /// The first warp of each access of a thread.
    warps: Vec<u32>,
    /// Bits of the lane that tell apart which ones.
    lanes: u32,
}

impl Reading {
    /// Lanes that hold the same share what one access cannot read.
    fn new(totals: &Totals, types: &[Ty]) -> Reading {
        let (along, near) = (totals.places.along.len(), totals.near.1);
        let free = (0..5).filter(|lane| !totals.places.lanes.contains(lane));
        let shared = along.saturating_sub(Totals::one_access(types));
        let lanes: Vec<u32> = free.take(shared).collect();
        let mut bases = totals.thread_bases();
        for (at, &lane) in lanes.iter().enumerate() {
            put(&mut bases, lane as usize, totals.along(1 << (near + at)));
        }
        let each = near + lanes.len();
        let warps = (0..1 << (along - each)).map(|access: u32| access << each).collect();
        let lanes = lanes.iter().map(|lane| 1 << lane).sum();
        Reading { bases, warps, lanes }
    }
}

/// For each register of the result, the registers of the input that it combines, by rising index
/// along the axis; registers that repeat others are left out.
fn groups(layout: &LinearLayout, reduced: &LinearLayout, axis: usize) -> Vec<Vec<usize>> {
    let repeated = layout.duplicates().register as usize;
    let mut sources: Vec<(Vec<u32>, u32, usize)> = (0..layout.elements_per_thread())
        .filter(|register| register & repeated == 0)
        .map(|register| {
            let mut index = layout.offset_for_register(register).to_vec();
            let along = index.remove(axis);
            (index, along, register)
        })
        .collect();
    sources.sort();
    (0..reduced.elements_per_thread())
        .map(|register| {
            let index = reduced.offset_for_register(register);
            let members = sources.iter().filter(|(of, ..)| of.as_slice() == index.as_slice());
            members.map(|&(_, _, register)| register).collect()
        })
        .collect()
}
