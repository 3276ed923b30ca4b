//! Scans, sorts, gathers and histograms: elements that meet across threads.
//!
//! Scans and sorts are butterflies: in each step every element meets the one whose index differs in
//! one bit along the axis. Depending on what carries that bit in the layout, the partner is in
//! another register, in another lane (`shfl.sync.bfly`), or in another warp (through shared
//! memory).

use tile_compiler::ir::{Attrs, Inst, InstData, Value};
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
    /// The element index of each register, where shared memory or conditions need it.
    indices: Vec<Val>,
}

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
        Ok(Exchange { layout, types, bases, indices })
    }

    /// The elements whose index differs in `step`, for each tile and register.
    fn partners(
        &mut self,
        exchange: &Exchange<'_>,
        step: u64,
        tiles: &[Vec<Val>],
    ) -> Vec<Vec<Val>> {
        match carrier(exchange.layout, step) {
            Carrier::Register(bit) => tiles
                .iter()
                .map(|tile| (0..tile.len()).map(|at| tile[at ^ (1 << bit)]).collect())
                .collect(),
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

    /// Whether the index of `register` has the bit `step`.
    fn has_bit(&mut self, exchange: &Exchange<'_>, register: usize, step: u64) -> Val {
        let layout = exchange.layout;
        let by_thread = layout
            .bases(Dim::Lane)
            .iter()
            .chain(layout.bases(Dim::Warp))
            .any(|&basis| basis & step != 0);
        let constant = layout.apply_packed(layout.pack_input(&[(Dim::Register, register)]));
        if !by_thread {
            return Val::bool(constant & step != 0);
        }
        let index = exchange.indices[register];
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

    /// An inclusive scan: in each step an element learns its neighbor block's total, which the
    /// later block of the two puts in front of its own results.
    pub(super) fn scan(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Scan(scan) = &data.attrs else { return Err(self.unsupported(data)) };
        let tiles: Vec<Value> = data.uses().collect();
        let exchange = self.exchange_of(inst, data, &tiles)?;
        let mut prefix: Vec<Vec<Val>> = tiles.iter().map(|&tile| self.registers(tile)).collect();
        let mut total = prefix.clone();
        let region = data.regions[0];
        for step in axis_steps(exchange.layout, scan.axis as usize) {
            let others = self.partners(&exchange, step, &total);
            for register in 0..exchange.indices.len() {
                let of =
                    |all: &[Vec<Val>]| all.iter().map(|tile| tile[register]).collect::<Vec<_>>();
                let (own, other, sum) = (of(&prefix), of(&others), of(&total));
                let high = self.has_bit(&exchange, register, step);
                // The block that comes later in scan order.
                let later = match (high, scan.reverse) {
                    (high, false) => high,
                    (Val::Int(high), true) => Val::Int(1 - high),
                    (high, true) => self.text.binary("xor", Ty::Int(1), high, Val::Int(1)),
                };
                let extended = self.combine(region, &other, &own)?;
                let other_first = self.combine(region, &other, &sum)?;
                let own_first = self.combine(region, &sum, &other)?;
                for (at, &ty) in exchange.types.iter().enumerate() {
                    prefix[at][register] = self.choose_value(later, ty, extended[at], own[at]);
                    total[at][register] =
                        self.choose_value(later, ty, other_first[at], own_first[at]);
                }
            }
        }
        for (&result, registers) in data.results.iter().zip(prefix) {
            self.set(result, registers);
        }
        Ok(())
    }

    /// A bitonic sort along the last axis, NaN after all numbers.
    pub(super) fn sort(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Sort(sort) = &data.attrs else { return Err(self.unsupported(data)) };
        let tile = data.operand(0);
        let exchange = self.exchange_of(inst, data, &[tile])?;
        let mut values = vec![self.registers(tile)];
        let ty = exchange.types[0];
        let is_float = self.ty(tile).elem().is_some_and(|elem| elem.is_float());
        let steps = axis_steps(exchange.layout, exchange.layout.rank() - 1);
        for stage in 0..steps.len() {
            for &step in steps[..=stage].iter().rev() {
                let partners = self.partners(&exchange, step, &values);
                for register in 0..exchange.indices.len() {
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
                    let smaller = self.sorts_before(ty, is_float, other, own);
                    let larger = self.sorts_before(ty, is_float, own, other);
                    let takes = self.choose_value(wants_larger, Ty::Int(1), larger, smaller);
                    values[0][register] = self.text.select(takes, ty, other, own);
                }
            }
        }
        self.set(data.result(), values.swap_remove(0));
        Ok(())
    }

    fn differ(&mut self, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => Val::Int(a ^ b),
            _ => self.text.binary("xor", Ty::Int(1), a, b),
        }
    }

    /// Whether `a` belongs before `b` in ascending order.
    fn sorts_before(&mut self, ty: Ty, is_float: bool, a: Val, b: Val) -> Val {
        if !is_float || matches!(ty, Ty::Int(_)) {
            return self.text.op(format_args!("icmp slt {ty} {a}, {b}"));
        }
        let less = self.text.op(format_args!("fcmp olt {ty} {a}, {b}"));
        let a_is_number = self.text.op(format_args!("fcmp ord {ty} {a}, {a}"));
        let b_is_nan = self.text.op(format_args!("fcmp uno {ty} {b}, {b}"));
        let before_nan = self.text.binary("and", Ty::Int(1), a_is_number, b_is_nan);
        self.text.binary("or", Ty::Int(1), less, before_nan)
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
