//! Inclusive scans: within each thread's neighbors, then of their totals between lanes, warps and
//! the thread's other registers, from the inside out.
//!
//! Between lanes totals move by `shfl.sync.up` (or down); between warps through shared memory, where
//! one barrier is enough: every thread reads the totals of all warps of its row.

use tile_compiler::gpu::exchange::{Level, Places, levels, total_bytes};
use tile_compiler::ir::{Attrs, Inst, InstData, Region};
use tile_compiler::layout::{Dim, LinearLayout};

use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// One element per tile of a scan.
type Tuple = Vec<Val>;

/// What stands before a block of elements, and whether anything does.
type Before = Option<(Val, Tuple)>;

/// How a scan proceeds in a layout.
struct Scan<'l> {
    layout: &'l LinearLayout,
    reverse: bool,
    region: Region,
    types: Vec<Ty>,
    /// First byte of each tile's totals in shared memory.
    bases: Vec<u32>,
    /// The first register of each block of neighbors.
    blocks: Vec<usize>,
}

impl Emitter<'_> {
    pub(super) fn scan(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Scan(attrs) = &data.attrs else { return Err(self.unsupported(data)) };
        let layout = self.layout(data.operand(0)).ok_or_else(|| self.unsupported(data))?;
        let (within, levels) =
            levels(layout, attrs.axis as usize).ok_or_else(|| self.unsupported(data))?;
        let types = data.uses().map(|tile| self.register_ty(tile)).collect::<Result<_, _>>()?;
        let mut prefix = self.tuples(data);
        let region = data.regions[0];
        let mut total = prefix.clone();
        self.scan_neighbors(&within, attrs.reverse, region, &mut prefix, &mut total)?;
        let members = within.iter().fold(0, |mask, bit| mask | 1usize << bit);
        let blocks: Vec<usize> = (0..prefix.len()).filter(|at| at & members == 0).collect();
        let total = blocks.iter().map(|&block| total[block].clone()).collect();
        let mut scan =
            Scan { layout, reverse: attrs.reverse, region, types, bases: Vec::new(), blocks };
        scan.bases = self.totals_in_memory(inst, data);
        let before = self.scan_blocks(&scan, &levels, total)?;
        for (&block, before) in scan.blocks.iter().zip(&before) {
            let Some((any, before)) = before else { continue };
            for register in (0..=members).filter(|at| at & !members == 0).map(|at| block | at) {
                let joined = self.combine(region, before, &prefix[register])?;
                prefix[register] = self.choose_tuple(*any, &scan.types, &joined, &prefix[register]);
            }
        }
        for (at, &result) in data.results.iter().enumerate() {
            let registers = prefix.iter().map(|tuple| tuple[at]).collect();
            self.set(result, registers);
        }
        Ok(())
    }

    /// The operands' elements, register by register.
    fn tuples(&self, data: &InstData) -> Vec<Tuple> {
        let inputs: Vec<Vec<Val>> = data.uses().map(|tile| self.registers(tile)).collect();
        let count = inputs.first().map_or(0, Vec::len);
        (0..count).map(|at| inputs.iter().map(|input| input[at]).collect()).collect()
    }

    /// Scans the neighbors that one thread holds: those that the register bits `within` count
    /// through. The first register of each block gets the block's total.
    fn scan_neighbors(
        &mut self,
        within: &[usize],
        reverse: bool,
        region: Region,
        prefix: &mut [Tuple],
        total: &mut [Tuple],
    ) -> Result<(), CodegenError> {
        let mut inner = 0;
        for bit in within {
            let pair = 1 << bit;
            for low in (0..prefix.len()).filter(|register| register & (inner | pair) == 0) {
                let (early, late) = if reverse { (low | pair, low) } else { (low, low | pair) };
                let sum = self.combine(region, &total[early], &total[late])?;
                for member in (0..=inner).filter(|member| member & !inner == 0) {
                    prefix[late | member] =
                        self.combine(region, &total[early], &prefix[late | member])?;
                }
                total[low] = sum;
            }
            inner |= pair;
        }
        Ok(())
    }

    /// Where each tile's totals begin in shared memory, once it may be written.
    fn totals_in_memory(&mut self, inst: Inst, data: &InstData) -> Vec<u32> {
        let Some(scratch) = self.plan.scratch(inst) else { return Vec::new() };
        if scratch.barrier_before {
            self.barrier();
        }
        let mut base = scratch.offset;
        data.uses()
            .map(|tile| {
                base += total_bytes(self.func, data, tile);
                base - total_bytes(self.func, data, tile)
            })
            .collect()
    }

    /// What stands before each block of elements, from the blocks' totals.
    fn scan_blocks(
        &mut self,
        scan: &Scan<'_>,
        levels: &[Level],
        mut total: Vec<Tuple>,
    ) -> Result<Vec<Before>, CodegenError> {
        let mut before: Vec<Before> = vec![None; total.len()];
        for (at, level) in levels.iter().enumerate() {
            let is_last = at + 1 == levels.len();
            match level {
                Level::Lanes { lowest, count } => {
                    let group = (*lowest, *count);
                    let next_is_warps = matches!(levels.get(at + 1), Some(Level::Warps(_)));
                    for (total, before) in total.iter_mut().zip(&mut before) {
                        let outer = self.scan_lanes(scan, group, total)?;
                        *before = self.put_before(scan, outer, before.take())?;
                        // Of what goes to memory the last lane's is written.
                        if !is_last && !next_is_warps {
                            *total = self.last_lane(scan, group, total);
                        }
                    }
                }
                Level::Warps(bits) => {
                    let last_lanes = match at.checked_sub(1).map(|inner| &levels[inner]) {
                        Some(&Level::Lanes { lowest, count }) => ((1 << count) - 1) << lowest,
                        _ => 0,
                    };
                    if levels[..at].iter().any(|inner| matches!(inner, Level::Warps(_))) {
                        self.barrier();
                    }
                    let outer = self.scan_warps(scan, bits, last_lanes, &mut total)?;
                    for (outer, before) in outer.into_iter().zip(&mut before) {
                        *before = self.put_before(scan, outer, before.take())?;
                    }
                }
                Level::Registers(bit) => {
                    self.scan_registers(scan, *bit, &mut total, &mut before)?;
                }
            }
        }
        Ok(before)
    }

    /// `outer` in front of what stands before a block within its group.
    fn put_before(
        &mut self,
        scan: &Scan<'_>,
        outer: (Val, Tuple),
        inner: Before,
    ) -> Result<Before, CodegenError> {
        let Some((inner_any, inner)) = inner else { return Ok(Some(outer)) };
        let (any, outer) = outer;
        let joined = self.combine(scan.region, &outer, &inner)?;
        let joined = self.choose_tuple(inner_any, &scan.types, &joined, &outer);
        let joined = self.choose_tuple(any, &scan.types, &joined, &inner);
        Ok(Some((self.either(any, inner_any), joined)))
    }

    /// Scans `total` between the lanes of a group; returns what stands before each lane's.
    fn scan_lanes(
        &mut self,
        scan: &Scan<'_>,
        (lowest, count): (u32, u32),
        total: &mut Tuple,
    ) -> Result<(Val, Tuple), CodegenError> {
        let bases: Vec<u32> =
            (0..lowest).map(|_| 0).chain((0..count).map(|bit| 1 << bit)).collect();
        let part = self.thread_index(&bases);
        let last = (1 << count) - 1;
        let position = self.offset_index(part, &bases, if scan.reverse { last } else { 0 });
        let mode = if scan.reverse { "down" } else { "up" };
        let from = |this: &mut Self, distance: u32, tuple: &[Val]| -> Tuple {
            let lanes = Val::Int(i64::from(distance << lowest));
            let values = scan.types.iter().zip(tuple);
            values.map(|(&ty, &value)| this.shuffle(mode, ty, value, lanes)).collect()
        };
        let has = |this: &mut Self, distance: u32| {
            this.text.op(format_args!("icmp uge i32 {position}, {distance}"))
        };
        for bit in 0..count {
            let distance = 1 << bit;
            let other = from(self, distance, total);
            let joined = self.combine(scan.region, &other, total)?;
            let any = has(self, distance);
            *total = self.choose_tuple(any, &scan.types, &joined, total);
        }
        let before = from(self, 1, total);
        Ok((has(self, 1), before))
    }

    /// The total of a group of lanes, which its last lane has.
    fn last_lane(&mut self, scan: &Scan<'_>, (lowest, count): (u32, u32), total: &[Val]) -> Tuple {
        let group = ((1 << count) - 1) << lowest;
        let own: Vec<u32> =
            (0..5).map(|bit| if group >> bit & 1 == 0 { 1 << bit } else { 0 }).collect();
        let part = self.thread_index(&own);
        let lane = self.offset_index(part, &own, if scan.reverse { 0 } else { group });
        let values = scan.types.iter().zip(total);
        values.map(|(&ty, &value)| self.shuffle("idx", ty, value, lane)).collect()
    }

    /// Scans the totals of warps through shared memory, all blocks at once. Of the lanes, those
    /// whose number has all bits of `last_lanes` (none of them, in reverse) know their warp's total.
    fn scan_warps(
        &mut self,
        scan: &Scan<'_>,
        bits: &[u32],
        last_lanes: u32,
        total: &mut [Tuple],
    ) -> Result<Vec<(Val, Tuple)>, CodegenError> {
        let places = Places::new(scan.layout, bits);
        let warps = 1u32 << bits.len();
        let turned = if scan.reverse { warps - 1 } else { 0 };
        let own = Self::thread_bases(scan.layout, |basis| places.row(basis));
        let row = self.thread_index(&own);
        let mut warp_bases = vec![0; 5];
        for warp in 0..bits.iter().max().map_or(0, |bit| bit + 1) {
            let place = bits.iter().position(|&bit| bit == warp);
            warp_bases.push(place.map_or(0, |place| 1 << place));
        }
        let part = self.thread_index(&warp_bases);
        let warp = self.offset_index(part, &warp_bases, turned);
        let register = |block: usize| {
            let index = scan.layout.pack_input(&[(Dim::Register, block)]);
            places.row(scan.layout.apply_packed(index))
        };
        let knows = self.lanes_that_know(last_lanes, scan.reverse);
        let [write, wait] = [(); 2].map(|()| self.text.add_block());
        match knows {
            Some(knows) => self.text.branch(knows, write, wait),
            None => self.text.jump(write),
        }
        self.text.switch_to(write);
        for (&block, total) in scan.blocks.iter().zip(total.iter()) {
            let row = self.offset_index(row, &own, register(block));
            let place = self.text.binary("or", Ty::Int(32), row, warp);
            for ((&ty, &base), &value) in scan.types.iter().zip(&scan.bases).zip(total) {
                self.store_shared(ty, base, place, value);
            }
        }
        self.text.jump(wait);
        self.text.switch_to(wait);
        self.barrier();
        let mut before = Vec::with_capacity(total.len());
        for (&block, total) in scan.blocks.iter().zip(total) {
            let row = self.offset_index(row, &own, register(block));
            let columns: Vec<Vec<Val>> = scan
                .types
                .iter()
                .zip(&scan.bases)
                .map(|(&ty, &base)| self.load_shared_run(ty, base, row, warps as usize))
                .collect();
            let of = |at: u32| -> Tuple { columns.iter().map(|all| all[at as usize]).collect() };
            let mut sum = of(0);
            let mut own = sum.clone();
            for at in 1..warps {
                sum = self.combine(scan.region, &sum, &of(at))?;
                if at + 1 < warps {
                    let reached = self.text.op(format_args!("icmp ugt i32 {warp}, {at}"));
                    own = self.choose_tuple(reached, &scan.types, &sum, &own);
                }
            }
            *total = sum;
            before.push((self.text.op(format_args!("icmp ne i32 {warp}, 0")), own));
        }
        Ok(before)
    }

    fn lanes_that_know(&mut self, last_lanes: u32, reverse: bool) -> Option<Val> {
        if reverse || last_lanes == 0 {
            return self.thread_without(last_lanes, 0);
        }
        let thread = self.thread();
        Some(self.in_prelude(|this| {
            let lanes = Val::Int(last_lanes.into());
            let bits = this.text.binary("and", Ty::Int(32), thread, lanes);
            this.text.op(format_args!("icmp eq i32 {bits}, {lanes}"))
        }))
    }

    /// Scans between registers of one thread, from the totals of pairs of blocks.
    fn scan_registers(
        &mut self,
        scan: &Scan<'_>,
        bit: usize,
        total: &mut [Tuple],
        before: &mut [Before],
    ) -> Result<(), CodegenError> {
        for low in 0..total.len() {
            let pair = scan.blocks[low] | 1 << bit;
            let Some(high) = scan.blocks.iter().position(|&block| block == pair) else { continue };
            if low == high {
                continue;
            }
            let (early, late) = if scan.reverse { (high, low) } else { (low, high) };
            // Blocks that were joined before follow their first ones.
            let outer = (Val::bool(true), total[early].clone());
            before[late] = self.put_before(scan, outer, before[late].take())?;
            let sum = self.combine(scan.region, &total[early], &total[late])?;
            (total[early], total[late]) = (sum.clone(), sum);
        }
        Ok(())
    }

    fn choose_tuple(&mut self, condition: Val, types: &[Ty], yes: &[Val], no: &[Val]) -> Tuple {
        let values = types.iter().zip(yes.iter().zip(no));
        let choose = |(&ty, (&yes, &no)): (&Ty, (&Val, &Val))| match condition {
            Val::Int(0) => no,
            Val::Int(_) => yes,
            _ => self.text.select(condition, ty, yes, no),
        };
        values.map(choose).collect()
    }

    fn either(&mut self, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Int(0), other) | (other, Val::Int(0)) => other,
            (Val::Int(_), _) | (_, Val::Int(_)) => Val::bool(true),
            _ => self.text.binary("or", Ty::Int(1), a, b),
        }
    }
}
