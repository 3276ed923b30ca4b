//! Sorts: bitonic networks over exchanges between registers, lanes and warps.
//!
//! The network is that of Triton's library, because what it leaves of NaN and of zeros of both
//! signs shows which elements met. Of rows of which only the first elements are kept, runs of that
//! length are sorted; then of each two runs, one sorted upward and one downward, the better half is
//! kept, until one run is left (Shanbhag, Pirk and Madden, "Efficient Top-K Query Processing on
//! GPUs", SIGMOD 2018).

use tile_compiler::gpu::exchange::{Carrier, axis_steps, carrier, exchanged_bits, sort_layout};
use tile_compiler::ir::{Attrs, Elem, FloatPredicate, Inst, InstData, Scalar};

use super::exchange::Exchange;
use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

type Element = Result<Val, CodegenError>;

impl Emitter<'_> {
    /// A sort along the last axis.
    pub(super) fn sort(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let Attrs::Sort(sort) = &data.attrs else { return Err(self.unsupported(data)) };
        let (tile, result) = (data.operand(0), data.result());
        let layout = self.layout(tile).ok_or_else(|| self.unsupported(data))?;
        let layout = sort_layout(self.func, data, layout);
        let mut exchange = self.exchange_in(inst, &[tile], layout)?;
        let elem = self.elem_of(tile)?;
        let order = Order::of(elem, exchange.types[0], sort.descending);
        exchange.types[0] = order.exchanged;
        let mut values = Vec::with_capacity(exchange.registers.len());
        for value in self.registers(tile) {
            values.push(self.exchanged(&order, value));
        }
        exchange.leave_out_repeated(&mut values);
        let steps = axis_steps(&exchange.layout, exchange.layout.rank() - 1);
        let (runs, kept) = (sort.runs.ilog2() as usize, sort.keep.ilog2() as usize);
        for stage in runs + 1..=kept {
            let above = steps.get(stage).copied();
            values = self.merge(&exchange, &steps[..stage], above, &order, values)?;
        }
        for (at, &step) in steps.iter().enumerate().skip(kept) {
            values = self.better_half(&mut exchange, step, &order, values)?;
            let above = steps.get(at + 1).copied();
            values = self.merge(&exchange, &steps[..kept], above, &order, values)?;
        }
        let (wide, narrow) = (order.exchanged, order.element);
        let mut sorted = Vec::with_capacity(self.register_count(result));
        let places = self.layout(result).ok_or_else(|| self.unsupported(data))?;
        for register in 0..places.elements_per_thread() {
            let index = places.offset_for_register(register);
            let holds = |&other: &usize| exchange.layout.offset_for_register(other) == index;
            let at = exchange.registers.iter().position(holds);
            let value = values[at.ok_or_else(|| self.unsupported(data))?];
            sorted.push(self.text.cast("trunc", wide, value, narrow));
        }
        self.set(result, sorted);
        Ok(())
    }

    /// What takes part in the exchange for an element.
    fn exchanged(&mut self, order: &Order, value: Val) -> Val {
        if order.float.is_some() {
            return value;
        }
        self.text.cast("sext", order.element, value, order.exchanged)
    }

    /// Sorts runs that rise and then fall (or the other way round), of the length that `steps`
    /// count through: downward where the index has the bit `above`, elsewhere upward; where there is
    /// no such bit, in the order that is asked for.
    fn merge(
        &mut self,
        exchange: &Exchange,
        steps: &[u64],
        above: Option<u64>,
        order: &Order,
        values: Vec<Val>,
    ) -> Result<Vec<Val>, CodegenError> {
        let mut values = vec![values];
        for &step in steps.iter().rev() {
            let partners = self.partners(exchange, step, &values);
            for at in 0..exchange.registers.len() {
                let (own, other) = (values[0][at], partners[0][at]);
                let high = self.has_bit(exchange, at, step);
                let down = match above {
                    Some(above) => self.has_bit(exchange, at, above),
                    None => Val::bool(order.descending),
                };
                let wants_larger = self.differ(high, down);
                values[0][at] = self.choose_of_pair(order, wants_larger, own, other)?;
            }
        }
        Ok(values.swap_remove(0))
    }

    /// Of each two elements whose index differs in `step` the one that comes first in order.
    fn better_half(
        &mut self,
        exchange: &mut Exchange,
        step: u64,
        order: &Order,
        values: Vec<Val>,
    ) -> Result<Vec<Val>, CodegenError> {
        let mut values = vec![values];
        let mut partners = self.partners(exchange, step, &values).swap_remove(0);
        let mut values = values.swap_remove(0);
        if let Carrier::Register(bit) = carrier(&exchange.layout, step) {
            let mut alike = exchange.clone();
            alike.retain(&mut partners, |register| register >> bit & 1 == 0);
            exchange.retain(&mut values, |register| register >> bit & 1 == 0);
        }
        let pairs = values.into_iter().zip(partners);
        pairs.map(|(own, other)| self.extreme(order, order.descending, own, other)).collect()
    }

    /// The larger of two where `larger` holds, else the smaller. Of floats of which none is larger
    /// than the other, the one with the higher index where `larger` does not hold there: both
    /// places then get the same.
    fn choose_of_pair(&mut self, order: &Order, larger: Val, own: Val, other: Val) -> Element {
        if let (Val::Int(larger), None) = (larger, order.float) {
            return self.extreme(order, larger != 0, own, other);
        }
        let own_is_larger = self.is_larger(order, own, other)?;
        let takes = self.differ(own_is_larger, larger);
        Ok(self.text.select(takes, order.exchanged, other, own))
    }

    fn is_larger(&mut self, order: &Order, a: Val, b: Val) -> Element {
        let ty = order.exchanged;
        match order.float {
            None => Ok(self.text.op(format_args!("icmp sgt {ty} {a}, {b}"))),
            Some(scalar) => self.compare_floats(scalar, FloatPredicate::Ogt, [a, b]),
        }
    }

    /// The larger or the smaller of two, a number rather than NaN.
    fn extreme(&mut self, order: &Order, larger: bool, own: Val, other: Val) -> Element {
        let better = if larger { "max" } else { "min" };
        let Some(scalar) = order.float else {
            let ty = order.exchanged;
            let name = format!("llvm.s{better}.{}", ty.suffix());
            return Ok(self.text.call(&name, ty, &[(ty, own), (ty, other)]));
        };
        let wide = if scalar == Scalar::F64 { Scalar::F64 } else { Scalar::F32 };
        let ty = Ty::of_scalar(wide);
        let own = self.widen_float(scalar, own, wide)?;
        let other = self.widen_float(scalar, other, wide)?;
        let name = format!("llvm.{better}num.{}", ty.suffix());
        let extreme = self.text.call(&name, ty, &[(ty, own), (ty, other)]);
        self.narrow_float(wide, extreme, scalar, false)
    }
}

/// What is sorted, and how.
struct Order {
    element: Ty,
    /// What takes part in exchanges: a float, or an integer as wide as a register.
    exchanged: Ty,
    float: Option<Scalar>,
    descending: bool,
}

impl Order {
    fn of(elem: Elem, element: Ty, descending: bool) -> Order {
        let float = elem.scalar().filter(|scalar| scalar.is_float());
        let exchanged = if float.is_some() { element } else { Ty::Int(exchanged_bits(elem)) };
        Order { element, exchanged, float, descending }
    }
}
