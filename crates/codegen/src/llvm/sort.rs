//! Sorts: bitonic networks over exchanges between registers, lanes and warps.
//!
//! What is sorted may be dealt out among the places in any way, so that most of the network's steps
//! stay within a thread: index bits are given to registers first, then to lanes, then to warps. Of
//! rows of which only the first elements are kept, runs of that length are sorted; then of each two
//! runs, one sorted upward and one downward, the better half is kept, until one run is left (Shanbhag,
//! Pirk and Madden, "Efficient Top-K Query Processing on GPUs", SIGMOD 2018).

use tile_compiler::gpu::exchange::{Carrier, axis_steps, carrier, key_bits};
use tile_compiler::ir::{Attrs, Elem, Inst, InstData, Scalar};

use super::exchange::Exchange;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};

impl Emitter<'_> {
    /// A sort along the last axis, NaN after all numbers. What is sorted are integers in the order
    /// of the elements.
    pub(super) fn sort(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Sort(sort) = &data.attrs else { return Err(self.unsupported(data)) };
        let (tile, result) = (data.operand(0), data.result());
        let layout = self.layout(tile).ok_or_else(|| self.unsupported(data))?;
        let mut exchange = self.exchange_in(inst, &[tile], layout.with_last_axis_inward())?;
        let elem = self.elem_of(tile)?;
        let key = key_type(elem);
        let element = std::mem::replace(&mut exchange.types[0], key);
        let mut values = Vec::with_capacity(exchange.registers.len());
        for value in self.registers(tile) {
            values.push(self.sort_key(elem.scalar(), element, value, key));
        }
        exchange.leave_out_repeated(&mut values);
        let steps = axis_steps(&exchange.layout, exchange.layout.rank() - 1);
        let kept = sort.keep.trailing_zeros() as usize;
        for stage in 1..=kept {
            let above = steps.get(stage).copied();
            values = self.merge(&exchange, &steps[..stage], above, sort.descending, values);
        }
        for (at, &step) in steps.iter().enumerate().skip(kept) {
            values = self.better_half(&mut exchange, step, sort.descending, values);
            let above = steps.get(at + 1).copied();
            values = self.merge(&exchange, &steps[..kept], above, sort.descending, values);
        }
        let mut sorted = Vec::with_capacity(self.register_count(result));
        let places = self.layout(result).ok_or_else(|| self.unsupported(data))?;
        for register in 0..places.elements_per_thread() {
            let index = places.offset_for_register(register);
            let holds = |&other: &usize| exchange.layout.offset_for_register(other) == index;
            let at = exchange.registers.iter().position(holds);
            let value = values[at.ok_or_else(|| self.unsupported(data))?];
            sorted.push(self.sorted_element(elem.scalar(), element, value, key));
        }
        self.set(result, sorted);
        Ok(())
    }

    /// Sorts runs that rise and then fall (or the other way round), of the length that `steps`
    /// count through: downward where the index has the bit `above`, elsewhere upward, and all that
    /// reversed if `descending`.
    fn merge(
        &mut self,
        exchange: &Exchange,
        steps: &[u64],
        above: Option<u64>,
        descending: bool,
        values: Vec<Val>,
    ) -> Vec<Val> {
        let key = exchange.types[0];
        let mut values = vec![values];
        for &step in steps.iter().rev() {
            let partners = self.partners(exchange, step, &values);
            for at in 0..exchange.registers.len() {
                let (own, other) = (values[0][at], partners[0][at]);
                let high = self.has_bit(exchange, at, step);
                let down = match above {
                    Some(above) => self.has_bit(exchange, at, above),
                    None => Val::bool(false),
                };
                let down = self.differ(down, Val::bool(descending));
                let wants_larger = self.differ(high, down);
                values[0][at] = self.choose_key(key, wants_larger, own, other);
            }
        }
        values.swap_remove(0)
    }

    /// Of each two elements whose index differs in `step` the one that comes first in order.
    fn better_half(
        &mut self,
        exchange: &mut Exchange,
        step: u64,
        descending: bool,
        values: Vec<Val>,
    ) -> Vec<Val> {
        let mut values = vec![values];
        let mut partners = self.partners(exchange, step, &values).swap_remove(0);
        let mut values = values.swap_remove(0);
        if let Carrier::Register(bit) = carrier(&exchange.layout, step) {
            let mut alike = exchange.clone();
            alike.retain(&mut partners, |register| register >> bit & 1 == 0);
            exchange.retain(&mut values, |register| register >> bit & 1 == 0);
        }
        let key = exchange.types[0];
        let pairs = values.into_iter().zip(partners);
        pairs.map(|(own, other)| self.choose_key(key, Val::bool(descending), own, other)).collect()
    }

    /// The larger of two keys where `larger` holds, else the smaller.
    fn choose_key(&mut self, key: Ty, larger: Val, own: Val, other: Val) -> Val {
        if let Val::Int(larger) = larger {
            let name = if larger == 0 { "smin" } else { "smax" };
            let name = format!("llvm.{name}.{}", key.suffix());
            return self.text.call(&name, key, &[(key, own), (key, other)]);
        }
        let smaller = self.text.op(format_args!("icmp slt {key} {other}, {own}"));
        // Between equal ones nothing is lost either way.
        let takes = self.differ(smaller, larger);
        self.text.select(takes, key, other, own)
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
}

/// Integers that are sorted in place of elements.
fn key_type(elem: Elem) -> Ty {
    Ty::Int(key_bits(elem))
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
