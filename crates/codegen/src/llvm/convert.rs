//! Layout conversions, as the layout algebra plans them.

use tile_compiler::gpu::shared;
use tile_compiler::ir::{Elem, Inst, InstData, Value};
use tile_compiler::layout::{
    Conversion, Dim, SharedConversion, ShufflePlan, ShuffleStep, ThreadIndex, VectorAccess,
};

use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

impl Emitter<'_> {
    pub(super) fn convert(&mut self, inst: Inst, data: &InstData) -> Emitted {
        let source = self.operand(data, 0);
        let ty = self.register_ty(data.result())?;
        let registers = match shared::conversion(self.func, data)? {
            Conversion::Identity => source,
            Conversion::RegisterPermutation(from) => {
                from.into_iter().map(|at| source[at as usize]).collect()
            }
            Conversion::WarpShuffle(plan) => self.shuffle_conversion(&plan, ty, &source),
            Conversion::SharedMemory(plan) => {
                let scratch = self.plan.scratch(inst).ok_or_else(|| self.unsupported(data))?;
                if scratch.barrier_before {
                    self.barrier();
                }
                let count = self.register_count(data.result());
                self.shared_conversion(&plan, ty, scratch.offset, &source, count)
            }
        };
        self.set(data.result(), registers);
        Ok(())
    }

    fn shuffle_conversion(&mut self, plan: &ShufflePlan, ty: Ty, source: &[Val]) -> Vec<Val> {
        let offered: Vec<Val> =
            plan.steps.iter().map(|step| self.choose(ty, &step.source_register, source)).collect();
        let received =
            if plan.moves_lanes { self.exchange(&plan.steps, ty, &offered) } else { offered };
        plan.results.iter().map(|result| self.choose(ty, result, &received)).collect()
    }

    /// What each of `steps` brings, of what is offered in it. What threads take from themselves stays;
    /// elements of 8 and 16 bits that come from one other lane share a shuffle.
    fn exchange(&mut self, steps: &[ShuffleStep], ty: Ty, offered: &[Val]) -> Vec<Val> {
        let per_word = if matches!(ty.bits(), 8 | 16) { 32 / ty.bits() as usize } else { 1 };
        let mut received = vec![Val::Poison; steps.len()];
        let mut rest: Vec<usize> = (0..steps.len()).collect();
        while let Some(&first) = rest.first() {
            let lane = &steps[first].source_lane;
            let (from_lane, others): (Vec<usize>, Vec<usize>) =
                rest.into_iter().partition(|&step| steps[step].source_lane == *lane);
            rest = others;
            if lane.is_own_lane() {
                from_lane.into_iter().for_each(|step| received[step] = offered[step]);
                continue;
            }
            let lane = self.thread_number(lane);
            for word in from_lane.chunks(per_word) {
                let values: Vec<Val> = word.iter().map(|&step| offered[step]).collect();
                for (&step, value) in word.iter().zip(self.shuffle_packed(ty, &values, lane)) {
                    received[step] = value;
                }
            }
        }
        received
    }

    /// Shuffles values that fit 32 bits together.
    fn shuffle_packed(&mut self, ty: Ty, values: &[Val], lane: Val) -> Vec<Val> {
        if let [value] = values {
            return vec![self.shuffle("idx", ty, *value, lane)];
        }
        let (raw_ty, word_ty) = (Ty::Int(ty.bits()), Ty::Int(32));
        let packed_ty = format!("<{} x {raw_ty}>", word_ty.bits() / ty.bits());
        let mut packed = "zeroinitializer".to_owned();
        for (at, &value) in values.iter().enumerate() {
            let raw = self.text.bitcast(ty, value, raw_ty);
            packed = self
                .text
                .op(format_args!("insertelement {packed_ty} {packed}, {raw_ty} {raw}, i32 {at}"))
                .to_string();
        }
        let word = self.text.op(format_args!("bitcast {packed_ty} {packed} to {word_ty}"));
        let word = self.shuffle("idx", word_ty, word, lane);
        let moved = self.text.op(format_args!("bitcast {word_ty} {word} to {packed_ty}"));
        let elements = 0..values.len();
        elements
            .map(|at| {
                let raw =
                    self.text.op(format_args!("extractelement {packed_ty} {moved}, i32 {at}"));
                self.text.bitcast(raw_ty, raw, ty)
            })
            .collect()
    }

    /// A number that depends on the thread.
    fn thread_number(&mut self, index: &ThreadIndex) -> Val {
        let mut bases: Vec<u32> = index.lane_bases.to_vec();
        bases.resize(5, 0);
        bases.extend(&index.warp_bases);
        let part = self.thread_index(&bases);
        self.offset_index(part, &bases, index.constant)
    }

    /// The one of `values` that `index` names in each thread: a tree of selects over the bits that
    /// differ between threads.
    fn choose(&mut self, ty: Ty, index: &ThreadIndex, values: &[Val]) -> Val {
        let varying = index.varying_bits();
        if varying == 0 {
            return values[index.constant as usize];
        }
        let number = self.thread_number(index);
        let fixed = index.constant & !varying;
        self.choose_among(ty, number, varying, fixed, values)
    }

    fn choose_among(&mut self, ty: Ty, number: Val, varying: u32, at: u32, values: &[Val]) -> Val {
        if varying == 0 {
            return values[at as usize];
        }
        let bit = 1 << (31 - varying.leading_zeros());
        let rest = varying & !bit;
        let low = self.choose_among(ty, number, rest, at, values);
        let high = self.choose_among(ty, number, rest, at | bit, values);
        let masked = self.text.binary("and", Ty::Int(32), number, Val::Int(bit.into()));
        let set = self.text.op(format_args!("icmp ne i32 {masked}, 0"));
        self.text.select(set, ty, high, low)
    }

    fn shared_conversion(
        &mut self,
        plan: &SharedConversion,
        ty: Ty,
        base: u32,
        source: &[Val],
        count: usize,
    ) -> Vec<Val> {
        let mut result = vec![Val::Poison; count];
        for round in 0..plan.rounds() as u32 {
            if round > 0 {
                self.barrier();
            }
            self.store_round(plan, ty, base, source, round);
            self.barrier();
            for group in plan.load.instructions() {
                if is_in_round(plan, round, group[0], &|at| plan.round_bits[at].destination) {
                    let index = self.shared_index(&plan.load, group[0]);
                    let values = self.load_shared_run(ty, base, index, group.len());
                    for (&at, value) in group.iter().zip(values) {
                        result[at as usize] = value;
                    }
                }
            }
        }
        result
    }

    /// Stores the registers whose turn it is.
    fn store_round(
        &mut self,
        plan: &SharedConversion,
        ty: Ty,
        base: u32,
        source: &[Val],
        round: u32,
    ) {
        // One instruction may have registers of several turns.
        if plan.rounds() == 1
            && let Some(matrices) = self.matrix_stores(ty, &plan.store)
        {
            let place = (Val::Int(base.into()), ty);
            self.store_all_matrices(place, &plan.store.offsets, &matrices, source);
            return;
        }
        for group in plan.store.instructions() {
            if is_in_round(plan, round, group[0], &|at| plan.round_bits[at].source) {
                let index = self.shared_index(&plan.store, group[0]);
                let values: Vec<Val> = group.iter().map(|&at| source[at as usize]).collect();
                self.store_shared_run(ty, base, index, &values);
            }
        }
    }

    /// The element offset in the buffer of an access that starts with `register`.
    fn shared_index(&mut self, access: &VectorAccess, register: u32) -> Val {
        let offsets = &access.offsets;
        let bases = Self::thread_bases(offsets, |basis| basis as u32);
        let part = self.thread_index(&bases);
        let constant =
            offsets.apply_packed(offsets.pack_input(&[(Dim::Register, register as usize)]));
        self.offset_index(part, &bases, constant as u32)
    }

    pub(super) fn store_shared_run(
        &mut self,
        ty: Ty,
        base: impl Into<Val>,
        index: Val,
        values: &[Val],
    ) {
        if let [value] = values {
            return self.store_shared(ty, base, index, *value);
        }
        let memory = Ty::Int(ty.bits().max(8));
        let address = self.shared_address(ty, base, index);
        let count = values.len();
        let mut vector = Val::Poison;
        for (at, &value) in values.iter().enumerate() {
            let raw = match ty {
                Ty::Int(1) => self.text.cast("zext", ty, value, memory),
                _ => self.text.bitcast(ty, value, memory),
            };
            vector = self.text.op(format_args!(
                "insertelement <{count} x {memory}> {vector}, {memory} {raw}, i32 {at}"
            ));
        }
        let align = memory.bits() as usize / 8 * count;
        self.text.line(format_args!(
            "store <{count} x {memory}> {vector}, ptr addrspace(3) {address}, align {align}"
        ));
    }

    /// Gives every thread the elements that one thread owns, through shared memory by element
    /// index.
    pub(super) fn share_owned(
        &mut self,
        inst: Inst,
        place: Value,
        elem: Elem,
        registers: &mut [Val],
    ) -> Result<(), CodegenError> {
        let Some(scratch) = self.plan.scratch(inst) else { return Ok(()) };
        if scratch.barrier_before {
            self.barrier();
        }
        let ty = Ty::of(elem);
        let indices = match self.layout(place) {
            Some(layout) => self.element_indices(layout),
            None => vec![Val::Int(0)],
        };
        let owns = self.owner(place);
        let [write, wait] = [(); 2].map(|()| self.text.add_block());
        match owns {
            Some(owns) => self.text.branch(owns, write, wait),
            None => self.text.jump(write),
        }
        self.text.switch_to(write);
        for (&index, &value) in indices.iter().zip(registers.iter()) {
            self.store_shared(ty, scratch.offset, index, value);
        }
        self.text.jump(wait);
        self.text.switch_to(wait);
        self.barrier();
        for (register, &index) in registers.iter_mut().zip(&indices) {
            *register = self.load_shared_run(ty, scratch.offset, index, 1)[0];
        }
        Ok(())
    }
}

/// Whether it is the turn of `register`, by the bits of its number that `bit_of` names.
fn is_in_round(
    plan: &SharedConversion,
    round: u32,
    register: u32,
    bit_of: &dyn Fn(usize) -> u32,
) -> bool {
    (0..plan.round_bits.len()).all(|at| register >> bit_of(at) & 1 == round >> at & 1)
}
