//! Inclusive scans: within each thread's neighbors, then of their totals between lanes, warps and
//! the thread's other registers, from the inside out.
//!
//! Between lanes totals move by `shfl.sync.up` (or down); between warps through shared memory, where
//! one barrier is enough: every thread reads the totals of all warps of its rows, and goes through
//! them and its own registers in order.

use tile_compiler::gpu::exchange::{Level, Places, levels, total_bytes};
use tile_compiler::ir::{Attrs, Inst, InstData, Region};
use tile_compiler::layout::LinearLayout;

use super::index::LANE_BITS;
use super::text::{Ty, Val};
use super::totals::{Totals, combinations, put};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// One element per tile of a scan.
type Tuple = Vec<Val>;

/// What stands before a block of elements, and whether anything does.
type Before = Option<(Val, Tuple)>;

/// What carries the index beyond a thread's neighbors, from the inside out.
enum Step {
    /// Lane bits: the lowest, and how many.
    Lanes(u32, u32),
    /// Warps, if any, then registers, by the bits of their numbers.
    Outer { warps: Vec<u32>, registers: Vec<usize> },
}

impl Step {
    fn of(levels: &[Level]) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for level in levels {
            match (level, steps.last_mut()) {
                (Level::Lanes { lowest, count }, _) => steps.push(Step::Lanes(*lowest, *count)),
                (Level::Registers(bit), Some(Step::Outer { registers, .. })) => {
                    registers.push(*bit)
                }
                (Level::Registers(bit), _) => {
                    steps.push(Step::Outer { warps: Vec::new(), registers: vec![*bit] });
                }
                (Level::Warps(bits), _) => {
                    steps.push(Step::Outer { warps: bits.clone(), registers: Vec::new() });
                }
            }
        }
        steps
    }

    fn is_between_warps(&self) -> bool {
        matches!(self, Step::Outer { warps, .. } if !warps.is_empty())
    }
}

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

impl Scan<'_> {
    /// The places in `blocks` of block `first` with each combination of the register bits `bits`.
    fn places_of(&self, first: usize, bits: &[usize]) -> Vec<usize> {
        let members = combinations(self.blocks[first], bits).into_iter();
        members.filter_map(|at| self.blocks.binary_search(&at).ok()).collect()
    }

    /// The blocks of the row of block `first` that the register bits `bits` count through, in order.
    fn row(&self, first: usize, bits: &[usize]) -> Vec<usize> {
        let mut row = self.places_of(first, bits);
        if self.reverse {
            row.reverse();
        }
        row
    }

    /// Gives each block of a row what was seen in all of it.
    fn finish_row(&self, row: &[usize], seen: Option<&Tuple>, total: &mut [Tuple]) {
        for &block in row {
            if let Some(seen) = seen {
                total[block].clone_from(seen);
            }
        }
    }

    /// The blocks that have none of the register bits `bits`.
    fn without(&self, bits: &[usize]) -> Vec<usize> {
        let has_none = |&block: &usize| bits.iter().all(|bit| self.blocks[block] >> bit & 1 == 0);
        (0..self.blocks.len()).filter(has_none).collect()
    }
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
        let before = self.scan_blocks(&scan, &Step::of(&levels), total, &mut prefix)?;
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

    /// What stands before each block of elements, from the blocks' totals. Where blocks are single
    /// elements, a first step between lanes goes into `prefix` right away: its sums are all there
    /// is to keep.
    fn scan_blocks(
        &mut self,
        scan: &Scan<'_>,
        steps: &[Step],
        mut total: Vec<Tuple>,
        prefix: &mut [Tuple],
    ) -> Result<Vec<Before>, CodegenError> {
        let mut before: Vec<Before> = vec![None; total.len()];
        for (at, step) in steps.iter().enumerate() {
            match step {
                &Step::Lanes(lowest, count) => {
                    let single = at == 0 && prefix.len() == total.len();
                    for (block, total) in total.iter_mut().enumerate() {
                        self.scan_lanes(scan, (lowest, count), total)?;
                        if single {
                            prefix[block].clone_from(total);
                        } else {
                            let outer = self.before_lane(scan, (lowest, count), total);
                            before[block] = self.put_before(scan, outer, before[block].take())?;
                        }
                        // Of what goes to memory the last lane's is written.
                        if steps.get(at + 1).is_some_and(|next| !next.is_between_warps()) {
                            *total = self.last_lane(scan, (lowest, count), total);
                        }
                    }
                }
                Step::Outer { warps, registers } if warps.is_empty() => {
                    for first in scan.without(registers) {
                        let mut seen = None;
                        let row = scan.row(first, registers);
                        for &block in &row {
                            let part = total[block].clone();
                            let before = &mut before[block];
                            self.pass_block(scan, Val::Int(0), vec![part], &mut seen, before)?;
                        }
                        scan.finish_row(&row, seen.as_ref(), &mut total);
                    }
                }
                Step::Outer { warps, registers } => {
                    if steps[..at].iter().any(Step::is_between_warps) {
                        self.barrier();
                    }
                    let last_lanes = match at.checked_sub(1).map(|inner| &steps[inner]) {
                        Some(&Step::Lanes(lowest, count)) => ((1 << count) - 1) << lowest,
                        _ => 0,
                    };
                    let totals = Totals::new(Places::of_scan(scan.layout, warps), &scan.types);
                    self.write_totals(scan, &totals, last_lanes, &total);
                    self.scan_warps(scan, &totals, registers, &mut total, &mut before)?;
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

    /// Scans `total` between the lanes of a group.
    fn scan_lanes(
        &mut self,
        scan: &Scan<'_>,
        (lowest, count): (u32, u32),
        total: &mut Tuple,
    ) -> Emitted {
        let position = self.position_in_lanes(scan, (lowest, count));
        for bit in 0..count {
            let distance = 1 << bit;
            let other = self.of_lanes_before(scan, distance << lowest, total);
            let joined = self.combine(scan.region, &other, total)?;
            let any = self.text.op(format_args!("icmp uge i32 {position}, {distance}"));
            *total = self.choose_tuple(any, &scan.types, &joined, total);
        }
        Ok(())
    }

    /// What stands before each lane of a group, from their sums.
    fn before_lane(
        &mut self,
        scan: &Scan<'_>,
        (lowest, count): (u32, u32),
        sums: &[Val],
    ) -> (Val, Tuple) {
        let position = self.position_in_lanes(scan, (lowest, count));
        let before = self.of_lanes_before(scan, 1 << lowest, sums);
        (self.text.op(format_args!("icmp uge i32 {position}, 1")), before)
    }

    /// The lane's number in its group, counted in the scan's direction.
    fn position_in_lanes(&mut self, scan: &Scan<'_>, (lowest, count): (u32, u32)) -> Val {
        let bases: Vec<u32> =
            (0..lowest).map(|_| 0).chain((0..count).map(|bit| 1 << bit)).collect();
        let part = self.thread_index(&bases);
        let last = (1 << count) - 1;
        self.offset_index(part, &bases, if scan.reverse { last } else { 0 })
    }

    /// What lanes hold that come earlier by `distance`.
    fn of_lanes_before(&mut self, scan: &Scan<'_>, distance: u32, tuple: &[Val]) -> Tuple {
        let mode = if scan.reverse { "down" } else { "up" };
        let values = scan.types.iter().zip(tuple);
        values.map(|(&ty, &value)| self.shuffle(mode, ty, value, distance.into())).collect()
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

    /// Writes the totals of warps to shared memory and waits for those of others. Of the lanes, those
    /// whose number has all bits of `last_lanes` (none of them, in reverse) know their warp's total.
    fn write_totals(&mut self, scan: &Scan<'_>, totals: &Totals, last_lanes: u32, total: &[Tuple]) {
        let bases = totals.own_bases();
        let part = self.thread_index(&bases);
        let knows = self.lanes_that_know(last_lanes, scan.reverse);
        let turned =
            if scan.reverse { totals.along((1 << totals.places.along.len()) - 1) } else { 0 };
        for first in scan.without(totals.neighbors()) {
            let place = totals.register(scan.blocks[first]) ^ turned;
            let place = self.offset_index(part, &bases, place);
            let run = scan.places_of(first, totals.neighbors());
            for (at, (&ty, &base)) in scan.types.iter().zip(&scan.bases).enumerate() {
                let values: Vec<Val> = run.iter().map(|&block| total[block][at]).collect();
                self.store_shared_where(ty, (base, place), &values, knows);
            }
        }
        self.barrier();
    }

    /// Scans between warps, whose totals are in shared memory, and the registers `later` beyond
    /// them. Rows whose totals are read together go on together.
    fn scan_warps(
        &mut self,
        scan: &Scan<'_>,
        totals: &Totals,
        later: &[usize],
        total: &mut [Tuple],
        before: &mut [Before],
    ) -> Emitted {
        let warp = self.warp_along(scan, &totals.places.along);
        let fixed: Vec<usize> = later.iter().chain(totals.neighbors()).copied().collect();
        for first in scan.without(&fixed) {
            let firsts = scan.places_of(first, totals.neighbors());
            let rows: Vec<Vec<usize>> =
                firsts.into_iter().map(|first| scan.row(first, later)).collect();
            let mut seen: Vec<Option<Tuple>> = vec![None; rows.len()];
            for at in 0..rows[0].len() {
                let parts = self.read_totals(scan, totals, rows[0][at]);
                for ((row, seen), parts) in rows.iter().zip(&mut seen).zip(parts) {
                    self.pass_block(scan, warp, parts, seen, &mut before[row[at]])?;
                }
            }
            for (row, seen) in rows.iter().zip(&seen) {
                scan.finish_row(row, seen.as_ref(), total);
            }
        }
        Ok(())
    }

    /// The totals of the warps along the axis in order, for block `first` and each that lies next
    /// to it.
    fn read_totals(&mut self, scan: &Scan<'_>, totals: &Totals, first: usize) -> Vec<Vec<Tuple>> {
        let bases = totals.thread_bases();
        let part = self.thread_index(&bases);
        let (rows, near) = (1 << totals.near.0, 1 << totals.near.1);
        let warps = 1u32 << totals.places.along.len();
        let mut parts = vec![vec![Tuple::new(); warps as usize]; rows];
        for warp in (0..warps).step_by(near) {
            let place = totals.register(scan.blocks[first]) | totals.along(warp);
            let place = self.offset_index(part, &bases, place);
            for (&ty, &base) in scan.types.iter().zip(&scan.bases) {
                let read = self.load_shared_run(ty, base, place, rows * near);
                for (number, value) in read.into_iter().enumerate() {
                    parts[number % rows][warp as usize + number / rows].push(value);
                }
            }
        }
        parts
    }

    /// Goes through the `parts` of a block, those of `warp` and of the others along the axis: what
    /// was `seen` when it comes to the thread's own stands before that.
    fn pass_block(
        &mut self,
        scan: &Scan<'_>,
        warp: Val,
        parts: Vec<Tuple>,
        seen: &mut Option<Tuple>,
        before: &mut Before,
    ) -> Emitted {
        let mut own = seen.clone().map(|seen| (Val::bool(true), seen));
        for (number, part) in parts.into_iter().enumerate() {
            let Some(sum) = seen.take() else {
                *seen = Some(part);
                continue;
            };
            if number > 0 {
                let reached = self.text.op(format_args!("icmp uge i32 {warp}, {number}"));
                own = Some(match own {
                    None => (reached, sum.clone()),
                    Some((any, own)) => (any, self.choose_tuple(reached, &scan.types, &sum, &own)),
                });
            }
            *seen = Some(self.combine(scan.region, &sum, &part)?);
        }
        if let Some(outer) = own {
            *before = self.put_before(scan, outer, before.take())?;
        }
        Ok(())
    }

    /// The number of the thread's warp among those along the axis, in the scan's direction.
    fn warp_along(&mut self, scan: &Scan<'_>, warps: &[u32]) -> Val {
        let mut bases = Vec::new();
        for (at, &bit) in warps.iter().enumerate() {
            put(&mut bases, LANE_BITS + bit as usize, 1 << at);
        }
        let part = self.thread_index(&bases);
        let last = (1 << warps.len()) - 1;
        self.offset_index(part, &bases, if scan.reverse { last } else { 0 })
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
