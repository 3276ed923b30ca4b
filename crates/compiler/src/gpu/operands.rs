//! Operands of matrix products: how each thread gets the elements that it multiplies.
//!
//! In: a product of the tile-level function whose operands have been written. Out: `mma`,
//! `multiply_add` or `warp_group_mma` with a wait, and for each operand the cheapest of
//!
//! - a conversion, when the elements are in the right warp already (the result of one product as
//!   the operand of the next);
//! - a shared buffer, from which the product reads as it proceeds; a transposed operand is a
//!   transposed view of it;
//! - a tile read from a shared buffer, when element-wise work stands between the load and the
//!   product: the work is then done on what each thread multiplies, so that what is stored is what
//!   was loaded and can be copied asynchronously. Work of many instructions is, where no two threads
//!   multiply the same element. Also when the operand is small and comes from outside a loop. What is
//!   loaded outside loops is not copied asynchronously: work on it is done so where no two threads
//!   multiply the same element and few registers hold all.
//!
//! An operand of which each thread multiplies more than it has registers is read from a buffer in
//! any case.
//!
//! Products of warp groups read their right operand from a buffer in any case, and the left one
//! unless it is in the right warps or worked on; such buffers are stored as the instruction reads
//! them. Where that is along the other axis than what was loaded, a second buffer holds what was
//! loaded: it can be copied asynchronously, and each thread turns small blocks of it. Not where each
//! copy moves one element: that lands in any place.
//!
//! Barriers are not written here; see [`barrier`](super::barrier). Cost: linear.

use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

use super::product::{self, ProductKind, ProductLayouts};
use super::rebuild::{Rebuilder, Written, is_cheap};
use super::{LANES, LowerError, propagate};
use crate::ir::{
    Attrs, BufferType, Builder, Elem, Inst, InstData, LayoutId, Opcode, Order, Region, Type, Value,
    ValueDef, Wait,
};
use crate::layout::{
    BlockedLayout, Conversion, Dim, LayoutError, LinearLayout, MatrixAccess, NvmmaSharedLayout,
    SwizzledSharedLayout, plan_conversion,
};

/// The 32-bit registers of each thread that an operand may occupy throughout a loop.
const HELD_WORDS: u32 = 32;

/// The 32-bit registers of each thread that an operand may occupy at once: as many as a thread has.
const FRAGMENT_WORDS: u32 = 255;

/// The fewest bytes that an asynchronous copy moves.
const LEAST_COPY_BYTES: usize = 4;

/// What is done anew on the elements that a thread multiplies, rather than once for all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// None.
    Nothing,
    /// An instruction or two per element.
    Cheap,
    /// Any, for elements that no other thread multiplies too.
    Any,
}

impl Rebuilder<'_> {
    /// Writes a product.
    pub(super) fn product(&mut self, inst: Inst, data: &InstData) -> Result<(), LowerError> {
        let layouts = product::layouts(self.old, data, self.target)?;
        let opcode = match product::kind(self.old, data, self.target) {
            ProductKind::Mma { .. } => Opcode::Mma,
            ProductKind::WarpGroup { .. } => return self.warp_group_product(inst, data, &layouts),
            ProductKind::MultiplyAdd => Opcode::MultiplyAdd,
        };
        let lhs = self.product_operand(inst, data.operand(0), &layouts.lhs)?;
        let rhs = self.product_operand(inst, data.operand(1), &layouts.rhs)?;
        let acc = self.get(data.operand(2), &layouts.acc)?;
        let ty = self.new.ty(acc).clone();
        let attrs = data.attrs.clone();
        let result = self.builder_at(data.result()).emit_typed(opcode, &[lhs, rhs, acc], attrs, ty);
        self.record(data.result(), result);
        Ok(())
    }

    fn warp_group_product(
        &mut self,
        inst: Inst,
        data: &InstData,
        layouts: &ProductLayouts,
    ) -> Result<(), LowerError> {
        let (lhs, rhs) = (data.operand(0), data.operand(1));
        // They read a buffer as fast as registers, which are left for others.
        let work = match self.is_loaded_outside_loops(lhs) {
            true => Work::Nothing,
            false => self.work_on(inst, lhs, &layouts.lhs),
        };
        let in_registers = self.layouts.home[lhs].is_none()
            || self.is_worked_on(lhs, work)
            || self.stays_in_warp(lhs, &layouts.lhs)?;
        let lhs = match in_registers {
            true if self.is_worked_on(lhs, work) => self.fragment(lhs, &layouts.lhs, work)?,
            true => self.get(lhs, &layouts.lhs)?,
            false => self.matrix_buffer(lhs, 1, &layouts.lhs)?,
        };
        let rhs = self.matrix_buffer(rhs, 0, &layouts.rhs)?;
        let acc = self.get(data.operand(2), &layouts.acc)?;
        let ty = self.new.ty(acc).clone();
        let attrs = data.attrs.clone();
        let mut builder = self.builder_at(data.result());
        let started = builder.emit_typed(Opcode::WarpGroupMma, &[lhs, rhs, acc], attrs, ty.clone());
        let wait = Wait { pending: 0 };
        let result = builder.emit_typed(Opcode::WarpGroupWait, &[started], wait, ty);
        self.record(data.result(), result);
        Ok(())
    }

    /// A shared buffer that holds the value as matrix instructions of warp groups read it. They
    /// take 16-bit elements that are contiguous along either axis, others along K alone.
    fn matrix_buffer(&mut self, value: Value, k_axis: usize, reader: &LinearLayout) -> Written {
        const EITHER_BITS: u32 = 16;
        let is_free = self.old.ty(value).elem().is_some_and(|elem| elem.bits() == EITHER_BITS);
        let contiguous = (!is_free).then_some(k_axis);
        let key = (value, contiguous);
        if let Some(&buffer) = self.matrix_buffers.get(&key) {
            return Ok(buffer);
        }
        let buffer = match self.old.def(value) {
            Some(data) if data.opcode == Opcode::Permute => {
                let Some(asked) = propagate::to_operand(self.old, data, 0, reader)? else {
                    return self.stored_as_matrix(value, contiguous, reader);
                };
                let source = self.matrix_buffer(data.operand(0), 1 - k_axis, &asked)?;
                self.permuted_view(value, data, source)?
            }
            _ => self.stored_as_matrix(value, contiguous, reader)?,
        };
        self.matrix_buffers.insert(key, buffer);
        Ok(buffer)
    }

    fn stored_as_matrix(
        &mut self,
        value: Value,
        contiguous: Option<usize>,
        reader: &LinearLayout,
    ) -> Written {
        let mut tile = match self.layouts.home[value] {
            Some(_) => self.anywhere(value)?,
            None => self.get(value, reader)?,
        };
        let (elem, id) = self.elem_and_layout(tile)?;
        let source = &self.new.layouts[id];
        let rank = source.rank();
        let found = storage_order(source)[0];
        let contiguous = contiguous.unwrap_or(found);
        let transposed = contiguous + 1 != rank;
        let shape = source.shape();
        let is_loaded = self.old.def(value).is_some_and(|data| data.opcode == Opcode::Load);
        let bytes = elem.bits().div_ceil(8) as usize;
        let is_copied_singly = is_loaded
            && bytes >= LEAST_COPY_BYTES
            && source.contiguous_per_thread(found) * bytes < 2 * LEAST_COPY_BYTES;
        let is_turned = is_loaded || self.is_worked_on(value, Work::Cheap);
        if contiguous != found && is_turned && !is_copied_singly {
            let num_warps = self.old.options.num_warps as usize;
            let turned = turning(&shape, [contiguous, found], bytes, num_warps)?;
            tile = self.fragment(value, &turned, Work::Cheap)?;
        }
        let storage = NvmmaSharedLayout::widest_for(&shape, transposed, elem.bits() as usize);
        let layout = storage.to_linear(&shape)?;
        self.store_in(value, tile, elem, layout)
    }

    fn product_operand(&mut self, inst: Inst, value: Value, layout: &LinearLayout) -> Written {
        if self.layouts.home[value].is_none() {
            return self.get(value, layout);
        }
        let words = self.words(value, layout);
        if words > FRAGMENT_WORDS {
            return self.buffer(value, layout);
        }
        if self.stays_in_warp(value, layout)? {
            return self.get(value, layout);
        }
        let work = self.work_on(inst, value, layout);
        let is_held = self.is_outside(inst, value) && words <= HELD_WORDS;
        if self.is_worked_on(value, work) || is_held {
            return self.fragment(value, layout, work);
        }
        self.buffer(value, layout)
    }

    /// Whether bringing `value` into `layout` takes no shared memory.
    fn stays_in_warp(&self, value: Value, layout: &LinearLayout) -> Result<bool, LowerError> {
        let Some(home) = &self.layouts.home[value] else { return Ok(true) };
        let bits = self.old.ty(value).elem().map_or(32, Elem::bits).max(8) as usize;
        let conversion = plan_conversion(home, layout, bits)?;
        Ok(!matches!(conversion, Conversion::SharedMemory(_)))
    }

    /// The 32-bit registers of each thread that `value` takes in `layout`.
    fn words(&self, value: Value, layout: &LinearLayout) -> u32 {
        let bits = self.old.ty(value).elem().map_or(32, Elem::bits);
        layout.elements_per_thread() as u32 * bits / 32
    }

    /// Whether `value` is from before the loop or branch that `inst` is in.
    fn is_outside(&self, inst: Inst, value: Value) -> bool {
        self.region_of(value) != self.owners[inst]
    }

    /// The work that may be done on what each thread multiplies of `value` for `inst`, which then is
    /// in `layout`. Elements of 16 bits are read faster by matrices, from a buffer of what comes out.
    fn work_on(&self, inst: Inst, value: Value, layout: &LinearLayout) -> Work {
        const WORD_BITS: u32 = 32;
        let is_word = self.old.ty(value).elem().is_some_and(|elem| elem.bits() == WORD_BITS);
        let home = self.layouts.home[value].as_ref();
        let once =
            home.is_some_and(|home| layout.elements_per_thread() <= home.elements_per_thread());
        let is_held = self.is_outside(inst, value) && self.words(value, layout) > HELD_WORDS;
        if self.is_loaded_outside_loops(value) && (!once || is_held) {
            Work::Nothing
        } else if is_word && once {
            Work::Any
        } else {
            Work::Cheap
        }
    }

    /// Whether all loads that `value` is computed from are outside loops and branches.
    fn is_loaded_outside_loops(&self, value: Value) -> bool {
        let mut seen = FxHashSet::from_iter([value]);
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            let Some(data) = self.old.def(value) else { continue };
            match data.opcode {
                Opcode::Load if self.region_of(value) != self.old.body => return false,
                Opcode::Load => {}
                _ => left.extend(data.uses().filter(|&source| seen.insert(source))),
            }
        }
        true
    }

    /// Whether element-wise work on loads gives the value.
    fn is_worked_on(&self, value: Value, work: Work) -> bool {
        let Some(data) = self.old.def(value) else { return false };
        match data.opcode {
            Opcode::Permute => self.is_worked_on(data.operand(0), work),
            _ => {
                let mut seen = FxHashSet::default();
                self.is_repeatable_on_fragments(data, work, &mut seen)
            }
        }
    }

    fn is_repeatable_on_fragments(
        &self,
        data: &InstData,
        work: Work,
        seen: &mut FxHashSet<Value>,
    ) -> bool {
        let simple = propagate::is_elementwise(data.opcode) && data.opcode.is_pure();
        let is_asked = match work {
            Work::Nothing => false,
            Work::Cheap => is_cheap(data),
            Work::Any => true,
        };
        if !simple || !is_asked {
            return false;
        }
        let sources: SmallVec<[Value; 4]> =
            data.uses().filter(|&value| self.layouts.home[value].is_some()).collect();
        let are_loads = |source| self.is_from_loads(source, work, seen);
        !sources.is_empty() && sources.into_iter().all(are_loads)
    }

    /// Whether the value is loaded, or such work on loads; `seen` are values of which that is known
    /// or being found out.
    fn is_from_loads(&self, value: Value, work: Work, seen: &mut FxHashSet<Value>) -> bool {
        if !seen.insert(value) {
            return true;
        }
        let Some(source) = self.old.def(value) else { return false };
        match source.opcode {
            Opcode::Load => true,
            Opcode::Permute => self.is_from_loads(source.operand(0), work, seen),
            Opcode::Broadcast | Opcode::ExpandDims if work == Work::Any => {
                self.is_from_loads(source.operand(0), work, seen)
            }
            _ => self.is_repeatable_on_fragments(source, work, seen),
        }
    }

    /// The value in `layout`, read from shared memory as it was loaded.
    fn fragment(&mut self, value: Value, layout: &LinearLayout, work: Work) -> Written {
        if self.layouts.home[value].is_none() || !self.old.ty(value).is_tile() {
            return self.get(value, layout);
        }
        let id = self.new.intern_layout(layout.clone());
        if let Some(form) = self.form_in(value, id) {
            return Ok(form);
        }
        if let (ValueDef::Result(inst, _), true) = (
            self.old.values[value].def,
            self.is_worked_on(value, work) || self.is_spread(value, work),
        ) {
            self.write_from(inst, layout, |this, operand, asked| {
                this.fragment(operand, asked, work)
            })?;
            return self.get(value, layout);
        }
        let buffer = self.buffer(value, layout)?;
        let ty = self.old.ty(value).with_layout(id);
        let loaded =
            self.builder_at(value).emit_typed(Opcode::LocalLoad, &[buffer], Attrs::None, ty);
        self.record(value, loaded);
        Ok(loaded)
    }

    /// Whether the value is a smaller one along further axes, which work may be done on.
    fn is_spread(&self, value: Value, work: Work) -> bool {
        let is_shape =
            |data: &InstData| matches!(data.opcode, Opcode::Broadcast | Opcode::ExpandDims);
        work == Work::Any
            && self.old.def(value).is_some_and(is_shape)
            && self.is_from_loads(value, work, &mut FxHashSet::default())
    }

    /// A shared buffer that holds the value, laid out for readers in `reader`.
    fn buffer(&mut self, value: Value, reader: &LinearLayout) -> Written {
        if let Some(&buffer) = self.buffers.get(&value) {
            return Ok(buffer);
        }
        let buffer = match self.old.def(value) {
            Some(data) if data.opcode == Opcode::Permute => {
                self.permuted_buffer(value, data, reader)?
            }
            _ => self.stored(value, reader)?,
        };
        self.buffers.insert(value, buffer);
        Ok(buffer)
    }

    fn permuted_buffer(&mut self, value: Value, data: &InstData, reader: &LinearLayout) -> Written {
        let Some(asked) = propagate::to_operand(self.old, data, 0, reader)? else {
            return self.stored(value, reader);
        };
        let source = self.buffer(data.operand(0), &asked)?;
        self.permuted_view(value, data, source)
    }

    /// `source`, a buffer that holds what `data` permutes, with its axes permuted.
    fn permuted_view(&mut self, value: Value, data: &InstData, source: Value) -> Written {
        let (Attrs::Order(order), Type::Buffer(from)) = (&data.attrs, self.new.ty(source).clone())
        else {
            return Err(LowerError::Unsupported {
                opcode: data.opcode,
                reason: "its operand is in no buffer".to_owned(),
            });
        };
        let axes: SmallVec<[usize; 4]> = order.order.iter().map(|&axis| axis as usize).collect();
        let layout = self.new.layouts[from.layout].transpose(&axes)?;
        let shape = self.old.ty(value).shape().into();
        let ty = BufferType { shape, layout: self.new.intern_layout(layout), ..from };
        let order = Order { order: order.order.clone() };
        let mut builder = self.builder_at(value);
        Ok(builder.emit_typed(Opcode::LocalPermute, &[source], order, Type::Buffer(ty)))
    }

    fn stored(&mut self, value: Value, reader: &LinearLayout) -> Written {
        let tile = self.anywhere(value)?;
        let (elem, id) = self.elem_and_layout(tile)?;
        let bytes = elem.bits().div_ceil(8) as usize;
        let layout = storage(&self.new.layouts[id], reader, bytes)?;
        self.store_in(value, tile, elem, layout)
    }

    fn elem_and_layout(&self, tile: Value) -> Result<(Elem, LayoutId), LowerError> {
        let ty = self.new.ty(tile);
        match (ty.elem(), ty.layout()) {
            (Some(elem), Some(id)) => Ok((elem, id)),
            _ => Err(LowerError::Unsupported {
                opcode: Opcode::LocalStore,
                reason: format!("{ty} has no layout"),
            }),
        }
    }

    /// Stores `tile`, a form of `value`, in a buffer with `layout`.
    fn store_in(&mut self, value: Value, tile: Value, elem: Elem, layout: LinearLayout) -> Written {
        let ty = self.new.ty(tile).clone();
        let layout = self.new.intern_layout(layout);
        let buffer = Type::Buffer(BufferType { elem, shape: ty.shape().into(), stages: 1, layout });
        let mut builder = self.builder_at(value);
        let buffer = builder.emit_typed(Opcode::LocalAlloc, &[], Attrs::None, buffer);
        builder.emit_effect(Opcode::LocalStore, [Some(buffer), Some(tile)], Attrs::None);
        Ok(buffer)
    }

    /// The old region in which a value is defined.
    fn region_of(&self, value: Value) -> Region {
        match self.old.values[value].def {
            ValueDef::Result(inst, _) => self.owners[inst],
            ValueDef::Argument(region, _) => region,
        }
    }

    /// A builder at the present end of the region in which `value` is defined.
    fn builder_at(&mut self, value: Value) -> Builder<'_> {
        let region = self.regions[self.region_of(value)];
        let loc = self.old.def(value).map(|data| data.loc);
        let mut builder = Builder::new(&mut self.new, region);
        if let Some(loc) = loc {
            builder.set_loc(loc);
        }
        builder
    }
}

/// The layout in which threads hold small blocks of a matrix that is read along one of its two
/// `axes`, the second, and written along the first: both by vectors, the latter of 16 bytes.
fn turning(
    shape: &[usize],
    axes: [usize; 2],
    bytes: usize,
    num_warps: usize,
) -> Result<LinearLayout, LayoutError> {
    /// Neighbors that are read together.
    const READ: usize = 4;
    /// Lanes side by side in the direction of writing: with the two next rows, which the storage
    /// permutes differently, their vectors lie in different banks.
    const WRITERS: usize = 4;
    let [to, from] = axes;
    let share = (shape[to] * shape[from] / (num_warps * LANES)).max(1);
    let mut size_per_thread: SmallVec<[usize; 4]> = smallvec![1; shape.len()];
    size_per_thread[from] = READ.min(share).min(shape[from]);
    let vector = (VECTOR_BYTES / bytes).max(1);
    size_per_thread[to] = vector.min(share / size_per_thread[from]).clamp(1, shape[to]);
    let boxes = |axis: usize| shape[axis] / size_per_thread[axis];
    let mut threads_per_warp: SmallVec<[usize; 4]> = smallvec![1; shape.len()];
    threads_per_warp[from] = (LANES / WRITERS.min(boxes(to))).min(boxes(from));
    threads_per_warp[to] = LANES / threads_per_warp[from];
    let mut warps_per_cta: SmallVec<[usize; 4]> = smallvec![1; shape.len()];
    warps_per_cta[from] = (boxes(from) / threads_per_warp[from]).clamp(1, num_warps);
    warps_per_cta[to] = num_warps / warps_per_cta[from];
    let order = smallvec![to, from];
    BlockedLayout { size_per_thread, threads_per_warp, warps_per_cta, order }.to_linear(shape)
}

/// The layout of a buffer that is written from `source` and read by `reader`: rows along the axis
/// in which `source` is contiguous, their vectors of 16 bytes or more permuted by the row or by
/// groups of rows, with the permutation that takes the fewest passes over the banks.
fn storage(
    source: &LinearLayout,
    reader: &LinearLayout,
    bytes: usize,
) -> Result<LinearLayout, LayoutError> {
    let shape = source.shape();
    let order = storage_order(source);
    let row = shape[order[0]];
    let rows = order.get(1).map_or(1, |&axis| shape[axis]);
    let plain = SwizzledSharedLayout::plain(&order).to_linear(&shape)?;
    let mut best = (cost(source, reader, &plain, bytes), plain);
    let least = (LINE_BYTES / (row * bytes)).clamp(1, rows);
    for alike in [1, 4, 16] {
        for vector_bytes in [VECTOR_BYTES, 2 * VECTOR_BYTES, 4 * VECTOR_BYTES] {
            let vec = (vector_bytes / bytes).max(1);
            let per_phase = least.max(alike);
            let phases = [row / vec, LINE_BYTES / vector_bytes, rows / per_phase];
            let max_phase = phases.into_iter().min().unwrap_or(1);
            if max_phase < 2 {
                continue;
            }
            let layout = SwizzledSharedLayout { vec, per_phase, max_phase, order: order.clone() };
            let layout = layout.to_linear(&shape)?;
            let cost = cost(source, reader, &layout, bytes);
            if cost < best.0 {
                best = (cost, layout);
            }
        }
    }
    Ok(best.1)
}

/// What one thread writes at a time.
const VECTOR_BYTES: usize = 16;
/// What all banks hold side by side.
const LINE_BYTES: usize = 128;

/// The axes of a matrix by falling contiguity in `source`, then leading axes.
fn storage_order(source: &LinearLayout) -> SmallVec<[usize; 4]> {
    let rank = source.rank();
    let mut order: SmallVec<[usize; 4]> = (0..rank).rev().collect();
    if rank >= 2 {
        let first_lane = |axis: usize| source.lane_bases(axis).first().copied().unwrap_or(0) == 1;
        let run = |axis: usize| (source.contiguous_per_thread(axis), first_lane(axis));
        if run(rank - 2) > run(rank - 1) {
            order.swap(0, 1);
        }
    }
    order
}

/// Passes over the banks of a warp that writes and reads the buffer once; more than any for a
/// buffer that does not hold the tensor.
fn cost(
    source: &LinearLayout,
    reader: &LinearLayout,
    buffer: &LinearLayout,
    bytes: usize,
) -> usize {
    let plain = |layout: &LinearLayout| {
        layout.shared_access(buffer, bytes).map(|(vector, access)| {
            access.wavefronts * (layout.elements_per_thread() >> vector.len())
        })
    };
    let by_matrices = |layout: &LinearLayout| {
        let offsets = layout.invert_and_compose(buffer).ok()?;
        let access = MatrixAccess::of(&offsets, bytes)?;
        let members = access.packed_bits.len() + access.matrix_bits.len();
        Some(access.cost.wavefronts << (offsets.input_bits(Dim::Register) as usize - members))
    };
    let read = by_matrices(reader).or_else(|| plain(reader));
    match (plain(source), read) {
        (Some(write), Some(read)) => write + read,
        _ => usize::MAX,
    }
}
