//! Scans, gathers and histograms: elements that meet across threads.
//!
//! Scans, and [sorts](super::sort), are butterflies: in each step every element meets the one whose index differs in
//! one bit along the axis. Depending on what carries that bit in the layout, the partner is in
//! another register, in another lane (`shfl.sync.bfly`), or in another warp (through shared
//! memory). A scan first goes through the neighbors that one thread holds; only their totals meet
//! those of other threads.

use smallvec::SmallVec;
use tile_compiler::gpu::exchange::{Carrier, carrier};
use tile_compiler::gpu::flip;
use tile_compiler::ir::{Attrs, Elem, Inst, InstData, Value};
use tile_compiler::layout::{Dim, LinearLayout};

use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

/// Tiles that take part in a butterfly together, all in one layout.
#[derive(Clone)]
pub(super) struct Exchange {
    pub(super) layout: LinearLayout,
    pub(super) types: Vec<Ty>,
    /// First byte of each tile's array in shared memory.
    bases: Vec<u32>,
    /// The registers that take part.
    pub(super) registers: Vec<usize>,
    /// The element index of each of them, where shared memory or conditions need it.
    indices: Vec<Val>,
}

impl Exchange {
    /// Leaves out registers that hold the same element as others.
    pub(super) fn leave_out_repeated(&mut self, values: &mut Vec<Val>) {
        let repeated = self.layout.duplicates().register as usize;
        self.retain(values, |register| register & repeated == 0);
    }

    /// The array of elements of type `ty`.
    fn array(&self, ty: Ty) -> Array {
        const VECTOR_BITS: u32 = 128;
        let together = |bit: &usize| {
            self.registers.iter().all(|register| self.registers.contains(&(register ^ 1 << bit)))
        };
        let neighbors: Vec<usize> = (0..u64::BITS)
            .map_while(|at| match carrier(&self.layout, 1 << at) {
                Carrier::Register(bit) => Some(bit),
                _ => None,
            })
            .take_while(together)
            .collect();
        let widest = (VECTOR_BITS / ty.bits().max(8)).ilog2() as usize;
        let vector = &neighbors[..widest.min(neighbors.len())];
        let within = vector.iter().fold(0, |mask, bit| mask | 1usize << bit);
        let firsts = self.registers.iter().filter(|&register| register & within == 0);
        let place = |register| self.registers.iter().position(|&other| other == register);
        let groups = firsts.map(|&first| {
            let members = (0..1usize << vector.len()).map(|member| {
                let chosen = vector.iter().enumerate();
                chosen.fold(first, |at, (bit, to)| at | (member >> bit & 1) << to)
            });
            members.filter_map(place).collect()
        });
        let further = neighbors.len() - vector.len();
        let full = vector.len() == widest;
        Array {
            groups: groups.collect(),
            vector_bits: vector.len() as u32,
            spread: if full { (1 << further.min(Array::PHASE_BITS as usize)) - 1 } else { 0 },
        }
    }

    /// Leaves out the registers at places that `stays` does not hold for, and their `values`.
    pub(super) fn retain(&mut self, values: &mut Vec<Val>, stays: impl Fn(usize) -> bool) {
        let places: Vec<usize> =
            (0..self.registers.len()).filter(|&at| stays(self.registers[at])).collect();
        *values = places.iter().map(|&at| values[at]).collect();
        self.indices = places.iter().map(|&at| self.indices[at]).collect();
        self.registers = places.iter().map(|&at| self.registers[at]).collect();
    }
}

/// How the elements of an exchange lie in shared memory: as their indices count, except that the
/// vectors of each thread are spread over the banks.
struct Array {
    /// Places in the exchange whose elements are neighbors and move together.
    groups: Vec<SmallVec<[usize; 16]>>,
    /// Bits of the index that count through a vector.
    vector_bits: u32,
    /// Which of the bits that count vectors are changed so that the vectors of neighboring threads
    /// meet no bank twice.
    spread: u32,
}

impl Array {
    /// Vectors that one instruction moves before it uses a bank again, as a power of two.
    const PHASE_BITS: u32 = 3;

    /// The place of the element with this index; XOR of indices is XOR of places.
    fn place(&self, index: u32) -> u32 {
        let vector = index >> self.vector_bits;
        index ^ (vector >> Self::PHASE_BITS & self.spread) << self.vector_bits
    }
}

impl Emitter<'_> {
    fn exchange_of(
        &mut self,
        inst: Inst,
        data: &InstData,
        tiles: &[Value],
    ) -> Result<Exchange, CodegenError> {
        let layout = self.layout(tiles[0]).ok_or_else(|| self.unsupported(data))?.clone();
        self.exchange_in(inst, tiles, layout)
    }

    /// An exchange between the elements of `tiles`, at the places where `layout` has them.
    pub(super) fn exchange_in(
        &mut self,
        inst: Inst,
        tiles: &[Value],
        layout: LinearLayout,
    ) -> Result<Exchange, CodegenError> {
        let types = tiles.iter().map(|&tile| self.register_ty(tile)).collect::<Result<_, _>>()?;
        let mut base = self.plan.scratch(inst).map_or(0, |scratch| scratch.offset);
        let mut bases = Vec::new();
        for &tile in tiles {
            bases.push(base);
            let bytes = self.ty(tile).elem().map_or(0, Elem::bytes);
            base += (self.ty(tile).numel() as u32 * bytes).next_multiple_of(16);
        }
        if self.plan.scratch(inst).is_some_and(|scratch| scratch.barrier_before) {
            self.barrier();
        }
        let indices = self.element_indices(&layout);
        let registers = (0..indices.len()).collect();
        Ok(Exchange { layout, types, bases, registers, indices })
    }

    /// The elements whose index differs in `step`, for each tile and register.
    pub(super) fn partners(
        &mut self,
        exchange: &Exchange,
        step: u64,
        tiles: &[Vec<Val>],
    ) -> Vec<Vec<Val>> {
        match carrier(&exchange.layout, step) {
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
        exchange: &Exchange,
        step: u64,
        tiles: &[Vec<Val>],
    ) -> Vec<Vec<Val>> {
        let in_memory = tiles.iter().zip(&exchange.types).zip(&exchange.bases);
        let arrays: Vec<Array> =
            in_memory.clone().map(|((_, &ty), _)| exchange.array(ty)).collect();
        for (((tile, &ty), &base), array) in in_memory.zip(&arrays) {
            for group in &array.groups {
                let index = self.array_index(exchange, array, group[0], 0);
                let values: Vec<Val> = group.iter().map(|&at| tile[at]).collect();
                self.store_shared_run(ty, base, index, &values);
            }
        }
        self.barrier();
        let mut partners = Vec::with_capacity(tiles.len());
        for ((&ty, &base), array) in exchange.types.iter().zip(&exchange.bases).zip(&arrays) {
            let mut registers = vec![Val::Poison; exchange.registers.len()];
            for group in &array.groups {
                let index = self.array_index(exchange, array, group[0], step);
                let values = self.load_shared_run(ty, base, index, group.len());
                for (&at, value) in group.iter().zip(values) {
                    registers[at] = value;
                }
            }
            partners.push(registers);
        }
        self.barrier();
        partners
    }

    /// Where in an array the element lies whose index differs in `step` from that at place `at`.
    fn array_index(&mut self, exchange: &Exchange, array: &Array, at: usize, step: u64) -> Val {
        let layout = &exchange.layout;
        let bases = Self::thread_bases(layout, |basis| array.place(basis as u32));
        let part = self.thread_index(&bases);
        let register = exchange.registers[at];
        let index = layout.apply_packed(layout.pack_input(&[(Dim::Register, register)]));
        let own = self.offset_index(part, &bases, array.place(index as u32));
        match (own, array.place(step as u32)) {
            (own, 0) => own,
            (Val::Int(own), other) => Val::Int(own ^ i64::from(other)),
            (own, other) => self.text.binary("xor", Ty::Int(32), own, Val::Int(other.into())),
        }
    }

    /// Whether the index of the element at place `at` has the bit `step`.
    pub(super) fn has_bit(&mut self, exchange: &Exchange, at: usize, step: u64) -> Val {
        let layout = &exchange.layout;
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

    pub(super) fn differ(&mut self, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => Val::Int(a ^ b),
            _ => self.text.binary("xor", Ty::Int(1), a, b),
        }
    }

    /// Every thread writes its part of the source, and reads what the indices name, but for tiles that are read
    /// backwards: their elements change lanes and registers.
    pub(super) fn gather(&mut self, inst: Inst, data: &InstData) -> Emitted {
        if let Some(bits) = flip::within_warps(self.func, data) {
            let (ty, values) =
                (self.register_ty(data.operand(0))?, self.registers(data.operand(0)));
            let mirrored =
                (0..values.len()).map(|at| values[at ^ bits.register as usize]).collect();
            let results = match bits.lane {
                0 => mirrored,
                lanes => self.shuffle_together(ty, mirrored, lanes.into()),
            };
            self.set(data.result(), results);
            return Ok(());
        }
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
