//! Layout conversions, as the layout algebra plans them.

use tile_compiler::gpu::shared;
use tile_compiler::ir::{Elem, Inst, InstData, Value};
use tile_compiler::layout::{
    Conversion, Dim, SharedConversion, ShufflePlan, ThreadIndex, VectorAccess,
};

use super::text::{Ty, Val};
use super::words::steps_of_words;
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
        if matches!(ty.bits(), 8 | 16) {
            return self.shuffle_words(plan, ty, source);
        }
        let offered: Vec<Val> =
            plan.steps.iter().map(|step| self.choose(ty, &step.source_register, source)).collect();
        let mut received = vec![Val::Poison; plan.steps.len()];
        for step in steps_of_words(plan, 1).into_iter().flatten() {
            received[step] = self.brought(plan, step, ty, offered[step]);
        }
        plan.results.iter().map(|result| self.choose(ty, result, &received)).collect()
    }

    /// What a step brings of what is offered in it. What threads take from themselves stays.
    pub(super) fn brought(&mut self, plan: &ShufflePlan, step: usize, ty: Ty, offered: Val) -> Val {
        let lane = &plan.steps[step].source_lane;
        if !plan.moves_lanes || lane.is_own_lane() {
            return offered;
        }
        let lane = self.thread_number(lane);
        self.shuffle("idx", ty, offered, lane)
    }

    /// A number that depends on the thread.
    pub(super) fn thread_number(&mut self, index: &ThreadIndex) -> Val {
        let mut bases: Vec<u32> = index.lane_bases.to_vec();
        bases.resize(5, 0);
        bases.extend(&index.warp_bases);
        let part = self.thread_index(&bases);
        self.offset_index(part, &bases, index.constant)
    }

    /// The one of `values` that `index` names in each thread.
    fn choose(&mut self, ty: Ty, index: &ThreadIndex, values: &[Val]) -> Val {
        let conditions = self.conditions(index);
        let named: Vec<Val> = index.numbers().iter().map(|&at| values[at as usize]).collect();
        self.select_by(&conditions, ty, &named)
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
