//! Loads, stores and atomics.

use rustc_hash::FxHashMap;
use tile_compiler::ir::{AtomicOp, Elem, Scalar};

use super::frame::{Frame, Slot, elements};
use super::lanes::{with_float, with_int};
use super::machine::{Flow, Machine, Site, Write};
use super::memory::{Window, Word};
use super::simd::{Loop, widest};
use crate::number::{Bit, Float, Int};

/// A load, compiled.
#[derive(Debug)]
pub(super) struct Load {
    pub site: Site,
    pub ptr: Slot,
    pub mask: Option<Slot>,
    pub other: Option<Slot>,
    pub out: Slot,
    pub numel: usize,
    /// Bits of booleans become 0 or 1.
    pub boolean: bool,
}

impl Load {
    pub fn run(&self, frame: &mut Frame, machine: &Machine) -> Flow {
        match self.site.size {
            1 => self.run_words::<u8>(frame, machine),
            2 => self.run_words::<u16>(frame, machine),
            4 => self.run_words::<u32>(frame, machine),
            _ => self.run_words::<u64>(frame, machine),
        }
        Ok(())
    }

    fn run_words<T: Word + Default>(&self, frame: &mut Frame, machine: &Machine) {
        let count = self.numel * frame.lanes;
        let mut words = frame.take(self.out);
        let out = elements::<T>(&mut words, count);
        let other = self.other.map(|other| frame.get::<T>(other, count));
        let ptrs = frame.get::<u64>(self.ptr, count);
        let mask = self.mask.map(|mask| frame.get::<Bit>(mask, count));
        let fill = |out: &mut [T], lane: usize| match other {
            Some(other) => out.copy_from_slice(&other[lane..lane + out.len()]),
            None => out.fill(T::default()),
        };
        for (row, ptrs) in rows(ptrs, &self.site) {
            let mask = mask.map(|mask| &mask[row..row + ptrs.len()]);
            let out = &mut out[row..row + ptrs.len()];
            match run_of::<T>(machine, ptrs, mask) {
                Some(source) if !machine.records() => {
                    let (active, rest) = out.split_at_mut(source.len());
                    T::load_run(source, active);
                    fill(rest, row + active.len());
                }
                _ => {
                    fill(out, row);
                    self.run_lanes(frame, machine, row, (ptrs, mask), out);
                }
            }
        }
        if self.boolean {
            for byte in elements::<u8>(&mut words, count) {
                *byte = u8::from(*byte != 0);
            }
        }
        frame.put(self.out, words);
    }

    fn run_lanes<T: Word>(
        &self,
        frame: &Frame,
        machine: &Machine,
        row: usize,
        (ptrs, mask): (&[u64], Option<&[Bit]>),
        out: &mut [T],
    ) {
        let mut window = None;
        for (lane, &ptr) in ptrs.iter().enumerate() {
            if mask.is_some_and(|mask| mask[lane].0 == 0) {
                continue;
            }
            match word_at::<T>(&mut window, machine, ptr) {
                Some(source) => {
                    out[lane] = T::load(source);
                    if machine.records() {
                        machine.note_read(frame, &self.site, row + lane, ptr);
                    }
                }
                None => machine.miss(frame, &self.site, row + lane, ptr, false),
            }
        }
    }
}

/// The word at an address; `window` is the buffer that the last one was in.
#[inline(always)]
fn word_at<'b, T: Word>(
    window: &mut Option<Window<'b, T>>,
    machine: &Machine<'b>,
    ptr: u64,
) -> Option<&'b T::Atomic> {
    let known = window.as_ref().and_then(|window| window.word(ptr));
    known.or_else(|| {
        *window = machine.buffers.window(ptr);
        window.as_ref()?.word(ptr)
    })
}

/// A store, compiled.
#[derive(Debug)]
pub(super) struct Store {
    pub site: Site,
    pub ptr: Slot,
    pub value: Slot,
    pub mask: Option<Slot>,
    pub numel: usize,
    /// The element type, to know NaN by.
    pub elem: Elem,
}

impl Store {
    pub fn run(&self, frame: &mut Frame, machine: &Machine) -> Flow {
        if machine.options.sanitize {
            self.find_nan(frame, machine);
        }
        match self.site.size {
            1 => self.run_words::<u8>(frame, machine),
            2 => self.run_words::<u16>(frame, machine),
            4 => self.run_words::<u32>(frame, machine),
            _ => self.run_words::<u64>(frame, machine),
        }
        Ok(())
    }

    fn run_words<T: Word>(&self, frame: &Frame, machine: &Machine) {
        let count = self.numel * frame.lanes;
        let ptrs = frame.get::<u64>(self.ptr, count);
        let values = frame.get::<T>(self.value, count);
        let mask = self.mask.map(|mask| frame.get::<Bit>(mask, count));
        if machine.options.sanitize && frame.lanes == 1 {
            self.find_overlap(frame, machine, (ptrs, mask), values);
        }
        for (row, ptrs) in rows(ptrs, &self.site) {
            let mask = mask.map(|mask| &mask[row..row + ptrs.len()]);
            let values = &values[row..row + ptrs.len()];
            match run_of::<T>(machine, ptrs, mask) {
                Some(target) if !machine.records() => {
                    T::store_run(target, &values[..target.len()]);
                }
                _ => self.run_lanes(frame, machine, row, (ptrs, mask), values),
            }
        }
    }

    fn run_lanes<T: Word>(
        &self,
        frame: &Frame,
        machine: &Machine,
        row: usize,
        (ptrs, mask): (&[u64], Option<&[Bit]>),
        values: &[T],
    ) {
        let mut window = None;
        for (lane, (&ptr, &value)) in ptrs.iter().zip(values).enumerate() {
            if mask.is_some_and(|mask| mask[lane].0 == 0) {
                continue;
            }
            match word_at::<T>(&mut window, machine, ptr) {
                Some(target) => {
                    let turn = machine.turn(ptr);
                    let same = turn.is_some()
                        && bytemuck::bytes_of(&T::load(target)) == bytemuck::bytes_of(&value);
                    T::store(target, value);
                    if machine.records() {
                        let write = if same { Write::Same } else { Write::Plain };
                        machine.note_write(frame, &self.site, row + lane, ptr, write);
                    }
                }
                None => machine.miss(frame, &self.site, row + lane, ptr, true),
            }
        }
    }

    /// Reports two active lanes that store different values to one address: which of them stays is
    /// not defined.
    fn find_overlap<T: Word>(
        &self,
        frame: &Frame,
        machine: &Machine,
        (ptrs, mask): (&[u64], Option<&[Bit]>),
        values: &[T],
    ) {
        let active = || (0..ptrs.len()).filter(|&lane| mask.is_none_or(|mask| mask[lane].0 != 0));
        if active().map(|lane| ptrs[lane]).is_sorted_by(|a, b| a < b) {
            return;
        }
        let mut stored: FxHashMap<u64, usize> = FxHashMap::default();
        for lane in active() {
            let first = *stored.entry(ptrs[lane]).or_insert(lane);
            if bytemuck::bytes_of(&values[first]) != bytemuck::bytes_of(&values[lane]) {
                machine.report_overlap(frame, &self.site, [first, lane], ptrs[lane]);
                return;
            }
        }
    }

    /// Reports the birth of a NaN that an active lane stores.
    fn find_nan(&self, frame: &Frame, machine: &Machine) {
        let (Some(birth), Some(scalar)) = (frame.nan_birth, self.elem.scalar()) else { return };
        let count = self.numel * frame.lanes;
        let mask = self.mask.map(|mask| frame.get::<Bit>(mask, count));
        let active = |lane: usize| mask.is_none_or(|mask| mask[lane].0 != 0);
        let nan = is_nan(frame, self.value, scalar, count);
        let Some(lane) = (0..count).find(|&lane| nan[lane] && active(lane)) else { return };
        let site = Site { loc: birth, ..self.site.clone() };
        let message = "numbers became NaN here, which was then stored".to_owned();
        machine.report(frame, &site, super::FindingKind::NanBirth, lane, None, message);
    }
}

/// Which elements of a register are NaN; none are for integers.
pub(super) fn is_nan(frame: &Frame, slot: Slot, scalar: Scalar, count: usize) -> Vec<bool> {
    if !scalar.is_float() {
        return vec![false; count];
    }
    with_float!(scalar, T => {
        frame.get::<T>(slot, count).iter().map(|value| value.to_f64().is_nan()).collect()
    })
}

/// The pointers of each row along the last axis, with the row's first lane.
fn rows<'p>(ptrs: &'p [u64], site: &Site) -> impl Iterator<Item = (usize, &'p [u64])> {
    let extent = site.shape.last().map_or(ptrs.len(), |&extent| extent as usize).max(1);
    ptrs.chunks(extent).enumerate().map(move |(row, ptrs)| (row * extent, ptrs))
}

/// The memory of a row's active lanes, if these are its first ones and lie side by side.
#[inline]
fn run_of<'b, T: Word>(
    machine: &Machine<'b>,
    ptrs: &[u64],
    mask: Option<&[Bit]>,
) -> Option<&'b [T::Atomic]> {
    let active = match mask {
        Some(mask) => widest(Prefix { mask })?,
        None => ptrs.len(),
    };
    let ptrs = &ptrs[..active];
    let Some(&first) = ptrs.first() else { return Some(&[]) };
    let aligned = widest(Contiguous { ptrs, first, size: size_of::<T>() as u64 });
    if aligned { machine.buffers.words::<T>(first, active) } else { None }
}

/// How many lanes are active, if these are the first ones.
struct Prefix<'a> {
    mask: &'a [Bit],
}

impl Loop for Prefix<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run(self) -> Option<usize> {
        let (mut active, mut at) = (0u32, 0);
        while at < self.mask.len() {
            active += u32::from(self.mask[at].0);
            at += 1;
        }
        let active = active as usize;
        let (mut all, mut at) = (1, 0);
        while at < active && at < self.mask.len() {
            all &= self.mask[at].0;
            at += 1;
        }
        (all == 1).then_some(active)
    }
}

/// Whether addresses follow each other by `size` from `first`.
struct Contiguous<'a> {
    ptrs: &'a [u64],
    first: u64,
    size: u64,
}

impl Loop for Contiguous<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let (mut differ, mut at) = (0, 0);
        while at < self.ptrs.len() {
            differ |= self.ptrs[at] ^ self.first.wrapping_add(at as u64 * self.size);
            at += 1;
        }
        differ == 0
    }
}

/// An atomic operation, compiled.
#[derive(Debug)]
pub(super) struct Atomic {
    pub site: Site,
    pub ptr: Slot,
    pub value: Slot,
    pub mask: Option<Slot>,
    /// The expected value, for compare-and-swap.
    pub compare: Option<Slot>,
    pub out: Slot,
    pub numel: usize,
    pub scalar: Scalar,
    /// The operation; compare-and-swap when there is [`Atomic::compare`].
    pub op: AtomicOp,
}

impl Atomic {
    pub fn run(&self, frame: &mut Frame, machine: &Machine) -> Flow {
        frame.synchronized = true;
        match self.site.size {
            1 => self.run_words::<u8>(frame, machine),
            2 => self.run_words::<u16>(frame, machine),
            4 => self.run_words::<u32>(frame, machine),
            _ => self.run_words::<u64>(frame, machine),
        }
        Ok(())
    }

    fn run_words<T: Word + Int + Default>(&self, frame: &mut Frame, machine: &Machine) {
        let count = self.numel * frame.lanes;
        let mut words = frame.take(self.out);
        let out = elements::<T>(&mut words, count);
        out.fill(T::default());
        let values = frame.get::<T>(self.value, count);
        let compare = self.compare.map(|compare| frame.get::<T>(compare, count));
        let mask = self.mask.map(|mask| frame.get::<Bit>(mask, count));
        for (lane, &ptr) in frame.get::<u64>(self.ptr, count).iter().enumerate() {
            if mask.is_some_and(|mask| mask[lane].0 == 0) {
                continue;
            }
            let Some(target) = machine.buffers.words::<T>(ptr, 1) else {
                machine.miss(frame, &self.site, lane, ptr, true);
                continue;
            };
            let value = values[lane];
            out[lane] = T::update(&target[0], |old| match compare {
                Some(compare) if old == compare[lane] => value,
                Some(_) => old,
                None => T::wrap(combine(self.op, self.scalar, old.unsigned(), value.unsigned())),
            });
            if machine.records() {
                machine.note_read(frame, &self.site, lane, ptr);
                machine.note_write(frame, &self.site, lane, ptr, Write::Atomic);
            }
        }
        frame.put(self.out, words);
    }
}

/// What an atomic operation writes, in bits.
fn combine(op: AtomicOp, scalar: Scalar, old: u64, value: u64) -> u64 {
    if op == AtomicOp::FAdd {
        return crate::number::add_floats(scalar, old, value);
    }
    let bits = if scalar.is_float() { integer_of(scalar) } else { scalar };
    with_int!(bits, T => {
        let (old, value) = (T::wrap(old), T::wrap(value));
        let result = match op {
            AtomicOp::Add | AtomicOp::FAdd => old.add(value),
            AtomicOp::And => old.and(value),
            AtomicOp::Or => old.or(value),
            AtomicOp::Xor => old.xor(value),
            AtomicOp::SMax => old.max_s(value),
            AtomicOp::SMin => old.min_s(value),
            AtomicOp::UMax => old.max_u(value),
            AtomicOp::UMin => old.min_u(value),
            AtomicOp::Exchange | AtomicOp::Store => value,
            AtomicOp::Load => old,
        };
        result.unsigned()
    })
}

/// The integer type as wide as `scalar` in memory.
pub(super) fn integer_of(scalar: Scalar) -> Scalar {
    match scalar.bytes() {
        1 => Scalar::I8,
        2 => Scalar::I16,
        4 => Scalar::I32,
        _ => Scalar::I64,
    }
}
