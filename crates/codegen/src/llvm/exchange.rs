//! Scans, sorts, gathers and histograms: elements that meet across threads.
//!
//! Scans and sorts are butterflies: in each step every element meets the one whose index differs in
//! one bit along the axis. Depending on what carries that bit in the layout, the partner is in
//! another register, in another lane (`shfl.sync.bfly`), or in another warp (through shared
//! memory). A scan first goes through the neighbors that one thread holds; only their totals meet
//! those of other threads.

use tile_compiler::ir::{Attrs, Inst, InstData, Region, Scalar, Value};
use tile_compiler::layout::{Dim, LinearLayout};

use super::shared::element_bytes;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// The bit of a hardware place that carries a bit of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Register(usize),
    Lane(u32),
    Warp,
}

/// Tiles that take part in a butterfly together, all in one layout.
struct Exchange<'l> {
    layout: &'l LinearLayout,
    types: Vec<Ty>,
    /// First byte of each tile's array in shared memory.
    bases: Vec<u32>,
    /// The registers that take part.
    registers: Vec<usize>,
    /// The element index of each of them, where shared memory or conditions need it.
    indices: Vec<Val>,
}

/// One element per tile of a scan.
type Tuple = Vec<Val>;

/// What stands before a block in scan order, and whether anything does.
type Before = Option<(Val, Tuple)>;

impl<'f> Emitter<'f> {
    fn exchange_of(
        &mut self,
        inst: Inst,
        data: &InstData,
        tiles: &[Value],
    ) -> Result<Exchange<'f>, CodegenError> {
        let layout = self.layout(tiles[0]).ok_or_else(|| self.unsupported(data))?;
        let types = tiles.iter().map(|&tile| self.register_ty(tile)).collect::<Result<_, _>>()?;
        let mut base = self.plan.scratch(inst).map_or(0, |scratch| scratch.offset);
        let mut bases = Vec::new();
        for &tile in tiles {
            bases.push(base);
            let bytes = self.ty(tile).elem().map_or(0, element_bytes);
            base += (self.ty(tile).numel() as u32 * bytes).next_multiple_of(16);
        }
        if self.plan.scratch(inst).is_some_and(|scratch| scratch.barrier_before) {
            self.barrier();
        }
        let indices = self.element_indices(layout);
        let registers = (0..indices.len()).collect();
        Ok(Exchange { layout, types, bases, registers, indices })
    }

    /// The elements whose index differs in `step`, for each tile and register.
    fn partners(
        &mut self,
        exchange: &Exchange<'_>,
        step: u64,
        tiles: &[Vec<Val>],
    ) -> Vec<Vec<Val>> {
        match carrier(exchange.layout, step) {
            Carrier::Register(bit) => {
                let place = |register: &usize| {
                    let partner = register ^ (1 << bit);
                    exchange.registers.iter().position(|&other| other == partner)
                };
                let places: Vec<Option<usize>> = exchange.registers.iter().map(place).collect();
                let partner = |tile: &Vec<Val>| {
                    places.iter().map(|place| place.map_or(Val::Poison, |at| tile[at])).collect()
                };
                tiles.iter().map(partner).collect()
            }
            Carrier::Lane(bit) => {
                let lane = Val::Int(1 << bit);
                let pairs = tiles.iter().zip(&exchange.types);
                pairs
                    .map(|(tile, &ty)| {
                        tile.iter().map(|&value| self.shuffle("bfly", ty, value, lane)).collect()
                    })
                    .collect()
            }
            Carrier::Warp => self.partners_in_memory(exchange, step, tiles),
        }
    }

    fn partners_in_memory(
        &mut self,
        exchange: &Exchange<'_>,
        step: u64,
        tiles: &[Vec<Val>],
    ) -> Vec<Vec<Val>> {
        for ((tile, &ty), &base) in tiles.iter().zip(&exchange.types).zip(&exchange.bases) {
            for (&value, &index) in tile.iter().zip(&exchange.indices) {
                self.store_shared(ty, base, index, value);
            }
        }
        self.barrier();
        let mut partners = Vec::with_capacity(tiles.len());
        for (&ty, &base) in exchange.types.iter().zip(&exchange.bases) {
            let mut registers = Vec::with_capacity(exchange.indices.len());
            for &index in &exchange.indices {
                let other = self.text.binary("xor", Ty::Int(32), index, Val::Int(step as i64));
                registers.push(self.load_shared_run(ty, base, other, 1)[0]);
            }
            partners.push(registers);
        }
        self.barrier();
        partners
    }

    /// Whether the index of the element at place `at` has the bit `step`.
    fn has_bit(&mut self, exchange: &Exchange<'_>, at: usize, step: u64) -> Val {
        let layout = exchange.layout;
        let register = exchange.registers[at];
        let by_thread = layout
            .bases(Dim::Lane)
            .iter()
            .chain(layout.bases(Dim::Warp))
            .any(|&basis| basis & step != 0);
        let constant = layout.apply_packed(layout.pack_input(&[(Dim::Register, register)]));
        if !by_thread {
            return Val::bool(constant & step != 0);
        }
        let index = exchange.indices[at];
        let masked = self.text.binary("and", Ty::Int(32), index, Val::Int(step as i64));
        self.text.op(format_args!("icmp ne i32 {masked}, 0"))
    }

    fn choose_value(&mut self, condition: Val, ty: Ty, yes: Val, no: Val) -> Val {
        match condition {
            Val::Int(0) => no,
            Val::Int(_) => yes,
            _ => self.text.select(condition, ty, yes, no),
        }
    }

    /// As [`Emitter::choose_value`], for tuples.
    fn choose_tuple(&mut self, condition: Val, types: &[Ty], yes: &[Val], no: &[Val]) -> Tuple {
        let values = types.iter().zip(yes.iter().zip(no));
        values.map(|(&ty, (&yes, &no))| self.choose_value(condition, ty, yes, no)).collect()
    }

    /// An inclusive scan: within each thread's neighbors, then of their totals between threads,
    /// whose results are put in front of the elements at the end.
    pub(super) fn scan(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Scan(scan) = &data.attrs else { return Err(self.unsupported(data)) };
        let tiles: Vec<Value> = data.uses().collect();
        let mut exchange = self.exchange_of(inst, data, &tiles)?;
        let inputs: Vec<Vec<Val>> = tiles.iter().map(|&tile| self.registers(tile)).collect();
        let mut prefix: Vec<Tuple> = (0..exchange.registers.len())
            .map(|register| inputs.iter().map(|input| input[register]).collect())
            .collect();
        let mut total = prefix.clone();
        let region = data.regions[0];
        let steps = axis_steps(exchange.layout, scan.axis as usize);
        // The register bits that count through a thread's neighbors, and their steps.
        let (mut within, mut inner) = (0, 0);
        for &step in &steps {
            let Carrier::Register(bit) = carrier(exchange.layout, step) else { break };
            let pair = 1 << bit;
            for low in (0..prefix.len()).filter(|register| register & (within | pair) == 0) {
                let (early, late) =
                    if scan.reverse { (low | pair, low) } else { (low, low | pair) };
                let sum = self.combine(region, &total[early], &total[late])?;
                for member in members(within) {
                    prefix[late | member] =
                        self.combine(region, &total[early], &prefix[late | member])?;
                }
                total[low] = sum;
            }
            within |= pair;
            inner |= step;
        }
        exchange.registers.retain(|register| register & within == 0);
        // A block is known by the index of its first element.
        exchange.indices = exchange
            .registers
            .iter()
            .map(|&block| {
                let index = exchange.indices[block];
                self.text.binary("and", Ty::Int(32), index, Val::Int(!(inner as i64) & 0xffff_ffff))
            })
            .collect();
        let total = exchange.registers.iter().map(|&block| total[block].clone()).collect();
        let outer = &steps[inner.count_ones() as usize..];
        let before = self.scan_blocks(&exchange, region, outer, scan.reverse, total)?;
        for (&block, before) in exchange.registers.iter().zip(&before) {
            let Some((any, before)) = before else { continue };
            for register in members(within).map(|member| block | member) {
                let joined = self.combine(region, before, &prefix[register])?;
                prefix[register] =
                    self.choose_tuple(*any, &exchange.types, &joined, &prefix[register]);
            }
        }
        for (at, &result) in data.results.iter().enumerate() {
            let registers = prefix.iter().map(|tuple| tuple[at]).collect();
            self.set(result, registers);
        }
        Ok(())
    }

    /// What stands before each block of elements, from the blocks' totals: in each step a block
    /// learns the total of its neighbor, which the later of the two puts in front.
    fn scan_blocks(
        &mut self,
        exchange: &Exchange<'_>,
        region: Region,
        steps: &[u64],
        reverse: bool,
        mut total: Vec<Tuple>,
    ) -> Result<Vec<Before>, CodegenError> {
        let types = &exchange.types;
        let mut before: Vec<Before> = vec![None; total.len()];
        for &step in steps {
            let by_tile: Vec<Vec<Val>> =
                (0..types.len()).map(|at| total.iter().map(|tuple| tuple[at]).collect()).collect();
            let others = self.partners(exchange, step, &by_tile);
            for block in 0..total.len() {
                let other: Tuple = others.iter().map(|tile| tile[block]).collect();
                let high = self.has_bit(exchange, block, step);
                let later = if reverse { self.differ(high, Val::bool(true)) } else { high };
                let own = &total[block];
                let other_first = self.combine(region, &other, own)?;
                let own_first = self.combine(region, own, &other)?;
                total[block] = self.choose_tuple(later, types, &other_first, &own_first);
                before[block] = match (before[block].take(), later) {
                    (before, Val::Int(0)) => before,
                    (None, later) => Some((later, other)),
                    (Some((any, known)), later) => {
                        let joined = self.combine(region, &other, &known)?;
                        let joined = self.choose_tuple(any, types, &joined, &other);
                        let known = self.choose_tuple(later, types, &joined, &known);
                        Some((self.either(any, later), known))
                    }
                };
            }
        }
        Ok(before)
    }

    fn either(&mut self, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Int(0), other) | (other, Val::Int(0)) => other,
            (Val::Int(_), _) | (_, Val::Int(_)) => Val::bool(true),
            _ => self.text.binary("or", Ty::Int(1), a, b),
        }
    }

    /// A bitonic sort along the last axis, NaN after all numbers. What is sorted are integers in
    /// the order of the elements.
    pub(super) fn sort(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Sort(sort) = &data.attrs else { return Err(self.unsupported(data)) };
        let tile = data.operand(0);
        let mut exchange = self.exchange_of(inst, data, &[tile])?;
        let elem = self.elem_of(tile)?;
        let key = Ty::Int(elem.bits().max(32));
        let element = std::mem::replace(&mut exchange.types[0], key);
        let mut values = Vec::with_capacity(exchange.registers.len());
        for value in self.registers(tile) {
            values.push(self.sort_key(elem.scalar(), element, value, key));
        }
        let mut values = vec![values];
        let steps = axis_steps(exchange.layout, exchange.layout.rank() - 1);
        for stage in 0..steps.len() {
            for &step in steps[..=stage].iter().rev() {
                let partners = self.partners(&exchange, step, &values);
                for register in 0..exchange.registers.len() {
                    let (own, other) = (values[0][register], partners[0][register]);
                    let high = self.has_bit(&exchange, register, step);
                    let down = match steps.get(stage + 1) {
                        Some(&above) => self.has_bit(&exchange, register, above),
                        None => Val::bool(false),
                    };
                    let mut wants_larger = self.differ(high, down);
                    if sort.descending {
                        wants_larger = self.differ(wants_larger, Val::bool(true));
                    }
                    let smaller = self.text.op(format_args!("icmp slt {key} {other}, {own}"));
                    // Between equal ones nothing is lost either way.
                    let takes = self.differ(smaller, wants_larger);
                    values[0][register] = self.text.select(takes, key, other, own);
                }
            }
        }
        let mut sorted = Vec::with_capacity(exchange.registers.len());
        for value in values.swap_remove(0) {
            sorted.push(self.sorted_element(elem.scalar(), element, value, key));
        }
        self.set(data.result(), sorted);
        Ok(())
    }

    /// A signed integer whose order is that of the elements: negative floats have the bits of
    /// their magnitude flipped, every NaN is the largest.
    fn sort_key(&mut self, scalar: Option<Scalar>, ty: Ty, value: Val, key: Ty) -> Val {
        let raw_ty = Ty::Int(ty.bits());
        let raw = self.text.bitcast(ty, value, raw_ty);
        let Some(infinity) = scalar.and_then(largest_number) else {
            return self.text.cast("sext", raw_ty, raw, key);
        };
        let flipped = self.flip_magnitude(raw_ty, raw);
        let magnitude = Val::constant(raw_ty, (1 << (raw_ty.bits() - 1)) - 1);
        let positive = self.text.binary("and", raw_ty, raw, magnitude);
        let infinity = Val::constant(raw_ty, infinity);
        let is_nan = self.text.op(format_args!("icmp ugt {raw_ty} {positive}, {infinity}"));
        let ordered = self.text.select(is_nan, raw_ty, magnitude, flipped);
        self.text.cast("sext", raw_ty, ordered, key)
    }

    fn sorted_element(&mut self, scalar: Option<Scalar>, ty: Ty, value: Val, key: Ty) -> Val {
        let raw_ty = Ty::Int(ty.bits());
        let mut raw = self.text.cast("trunc", key, value, raw_ty);
        if scalar.and_then(largest_number).is_some() {
            raw = self.flip_magnitude(raw_ty, raw);
        }
        self.text.bitcast(raw_ty, raw, ty)
    }

    fn flip_magnitude(&mut self, ty: Ty, raw: Val) -> Val {
        let bits = i64::from(ty.bits());
        let sign = self.text.binary("ashr", ty, raw, Val::Int(bits - 1));
        let magnitude = Val::constant(ty, (1 << (bits - 1)) - 1);
        let mask = self.text.binary("and", ty, sign, magnitude);
        self.text.binary("xor", ty, raw, mask)
    }

    fn differ(&mut self, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => Val::Int(a ^ b),
            _ => self.text.binary("xor", Ty::Int(1), a, b),
        }
    }

    /// Every thread writes its part of the source, and reads what the indices name.
    pub(super) fn gather(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Axis(axis) = &data.attrs else { return Err(self.unsupported(data)) };
        let axis = axis.axis as usize;
        let (source, index) = (data.operand(0), data.operand(1));
        let exchange = self.exchange_of(inst, data, &[source])?;
        let (ty, base) = (exchange.types[0], exchange.bases[0]);
        let values = self.registers(source);
        for (&value, &at) in values.iter().zip(&exchange.indices) {
            self.store_shared(ty, base, at, value);
        }
        self.barrier();
        let index_layout = self.layout(index).ok_or_else(|| self.unsupported(data))?;
        let index_ty = self.register_ty(index)?;
        let places = self.element_indices(index_layout);
        let bits = |extent: u32| i64::from(extent.trailing_zeros());
        let inner: i64 = self.ty(index).shape()[axis + 1..].iter().map(|&e| bits(e)).sum();
        let along = bits(self.ty(index).shape()[axis]);
        let source_along = bits(self.ty(source).shape()[axis]);
        let i32 = Ty::Int(32);
        let mut results = Vec::with_capacity(places.len());
        for (place, chosen) in places.into_iter().zip(self.registers(index)) {
            let chosen = match index_ty.bits() {
                64 => self.text.cast("trunc", index_ty, chosen, i32),
                _ => self.text.cast("zext", index_ty, chosen, i32),
            };
            let low = self.text.binary("and", i32, place, Val::Int((1 << inner) - 1));
            let outer = self.text.binary("lshr", i32, place, Val::Int(inner + along));
            let outer = self.text.binary("shl", i32, outer, Val::Int(inner + source_along));
            let middle = self.text.binary("shl", i32, chosen, Val::Int(inner));
            let sum = self.text.binary("or", i32, outer, low);
            let at = self.text.binary("add", i32, sum, middle);
            results.push(self.load_shared_run(ty, base, at, 1)[0]);
        }
        self.set(data.result(), results);
        Ok(())
    }

    /// Counts in shared memory.
    pub(super) fn histogram(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let scratch = self.plan.scratch(inst).ok_or_else(|| self.unsupported(data))?;
        let (value, result) = (data.operand(0), data.result());
        let layout = self.layout(value).ok_or_else(|| self.unsupported(data))?;
        let bins = self.ty(result).numel();
        if scratch.barrier_before {
            self.barrier();
        }
        let i32 = Ty::Int(32);
        let result_layout = self.layout(result).ok_or_else(|| self.unsupported(data))?;
        let places = self.element_indices(result_layout);
        for &place in &places {
            self.store_shared(i32, scratch.offset, place, Val::Int(0));
        }
        self.barrier();
        let mask = data.operand_opt(1).map(|mask| self.registers(mask));
        let ty = self.register_ty(value)?;
        let owner = self.owner(value);
        let repeated = layout.duplicates().register as usize;
        for (register, bin) in self.registers(value).into_iter().enumerate() {
            if register & repeated != 0 {
                continue;
            }
            let in_range = self.text.op(format_args!("icmp ult {ty} {bin}, {bins}"));
            let mut predicate = Some(in_range);
            predicate = self.both(predicate, owner);
            predicate = self.both(predicate, mask.as_ref().map(|mask| mask[register]));
            let predicate = predicate.unwrap_or(in_range);
            let bin = match ty.bits() {
                64 => self.text.cast("trunc", ty, bin, i32),
                _ => self.text.cast("zext", ty, bin, i32),
            };
            let address = self.shared_address(i32, scratch.offset, bin);
            self.text.line(format_args!(
                "call void asm sideeffect \"@$1 red.shared.add.u32 [$0], 1;\", \"r,b\"(\
                 ptr addrspace(3) {address}, i1 {predicate})"
            ));
        }
        self.barrier();
        let counts = places
            .into_iter()
            .map(|place| self.load_shared_run(i32, scratch.offset, place, 1)[0])
            .collect();
        self.set(result, counts);
        Ok(())
    }
}

/// The registers that differ from register 0 in bits of `mask` only, in order.
fn members(mask: usize) -> impl Iterator<Item = usize> {
    (0..=mask).filter(move |register| register & !mask == 0)
}

/// The bits of the largest float that is a number, infinity if there is one; `None` for integers.
fn largest_number(scalar: Scalar) -> Option<u64> {
    Some(match scalar {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 => 0x7f80_0000,
        Scalar::F64 => 0x7ff0_0000_0000_0000,
        Scalar::F8E5 => 0x7c,
        Scalar::F8E4NV => 0x7e,
        Scalar::F8E4B15 => 0x7f,
        _ => return None,
    })
}

/// The packed index bits of an axis, lowest first.
fn axis_steps(layout: &LinearLayout, axis: usize) -> Vec<u64> {
    let mut shift = 0;
    for output in layout.outputs() {
        if output.dim.axis() == Some(axis) {
            return (shift..shift + output.bits).map(|bit| 1 << bit).collect();
        }
        shift += output.bits;
    }
    Vec::new()
}

/// What carries the index bit `step`: the nearest place whose bit moves by exactly that.
fn carrier(layout: &LinearLayout, step: u64) -> Carrier {
    let position = |dim: Dim| layout.bases(dim).iter().position(|&basis| basis == step);
    match (position(Dim::Register), position(Dim::Lane)) {
        (Some(bit), _) => Carrier::Register(bit),
        (None, Some(bit)) => Carrier::Lane(bit as u32),
        (None, None) => Carrier::Warp,
    }
}

/// Whether a butterfly along `axis` leaves the warp.
pub(super) fn leaves_warp(layout: &LinearLayout, axis: usize) -> bool {
    axis_steps(layout, axis).into_iter().any(|step| carrier(layout, step) == Carrier::Warp)
}
