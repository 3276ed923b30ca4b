//! Operations across elements: reductions, scans, histograms.

use bytemuck::Pod;
use tile_compiler::ir::Scalar;

use super::frame::{Frame, Slot, elements};
use super::lanes::{with_int, with_word};
use super::machine::{Flow, Machine};
use super::program::Block;
use super::shape::{Act, Along, writes};
use crate::number::{Bit, Int, Real};

/// A region that combines two elements of each of its inputs.
#[derive(Debug)]
pub(super) struct Combiner {
    pub body: Block,
    /// Values from outside that the region uses: copied to every lane first.
    pub captures: Vec<Capture>,
    /// Registers of the left elements, one per input.
    pub left: Vec<Slot>,
    /// Registers of the right elements.
    pub right: Vec<Slot>,
    /// Registers of what the region yields.
    pub yields: Vec<Slot>,
    /// Sizes of the inputs' elements in bytes.
    pub sizes: Vec<usize>,
    /// False when the region has control flow: then it is run once for each element.
    pub vector: bool,
}

/// A value from outside that a region applied to many elements uses.
#[derive(Debug)]
pub(super) struct Capture {
    pub from: Slot,
    pub to: Slot,
    /// Bytes of the element.
    pub size: usize,
}

/// Copies captured scalars to `lanes` elements each.
pub(super) fn spread(captures: &[Capture], frame: &mut Frame, lanes: usize) {
    for capture in captures {
        let mut words = frame.take(capture.to);
        match capture.size {
            1 => elements::<u8>(&mut words, lanes).fill(frame.scalar(capture.from)),
            2 => elements::<u16>(&mut words, lanes).fill(frame.scalar(capture.from)),
            4 => elements::<u32>(&mut words, lanes).fill(frame.scalar(capture.from)),
            _ => elements::<u64>(&mut words, lanes).fill(frame.scalar(capture.from)),
        }
        frame.put(capture.to, words);
    }
}

/// Copies `count` elements of `size` bytes each; element `i` goes from `from(i)` to `to(i)`.
pub(super) fn scatter(
    source: &[u64],
    target: &mut [u64],
    size: usize,
    count: usize,
    from: impl Fn(usize) -> usize,
    to: impl Fn(usize) -> usize,
) {
    fn typed<T: Pod>(
        source: &[u64],
        target: &mut [u64],
        moves: impl Iterator<Item = (usize, usize)>,
    ) {
        let source = bytemuck::cast_slice::<u64, T>(source);
        let target = bytemuck::cast_slice_mut::<u64, T>(target);
        for (from, to) in moves {
            target[to] = source[from];
        }
    }
    let moves = (0..count).map(|at| (from(at), to(at)));
    match size {
        1 => typed::<u8>(source, target, moves),
        2 => typed::<u16>(source, target, moves),
        4 => typed::<u32>(source, target, moves),
        _ => typed::<u64>(source, target, moves),
    }
}

impl Combiner {
    /// Combines `lanes` pairs of elements: the registers of left and right are filled, those of
    /// the yields are full afterwards.
    fn apply(&self, frame: &mut Frame, machine: &Machine, lanes: usize) -> Flow {
        if self.vector {
            let outer = std::mem::replace(&mut frame.lanes, lanes);
            let flow = self.body.run(frame, machine);
            frame.lanes = outer;
            return flow;
        }
        self.apply_each(frame, machine, lanes)
    }

    /// Runs the region once for each pair.
    fn apply_each(&self, frame: &mut Frame, machine: &Machine, lanes: usize) -> Flow {
        let inputs =
            || self.left.iter().chain(&self.right).zip(self.sizes.iter().chain(&self.sizes));
        let pairs: Vec<Vec<u64>> = inputs().map(|(&slot, _)| frame.snapshot(slot)).collect();
        let mut results: Vec<Vec<u64>> =
            self.sizes.iter().map(|size| vec![0; (lanes * size).div_ceil(8)]).collect();
        for lane in 0..lanes {
            for ((&slot, &size), pair) in inputs().zip(&pairs) {
                let mut words = frame.take(slot);
                scatter(pair, &mut words, size, 1, |_| lane, |_| 0);
                frame.put(slot, words);
            }
            self.body.run(frame, machine)?;
            for ((&slot, &size), result) in self.yields.iter().zip(&self.sizes).zip(&mut results) {
                scatter(&frame.snapshot(slot), result, size, 1, |_| 0, |_| lane);
            }
        }
        for (&slot, result) in self.yields.iter().zip(results) {
            let mut words = frame.take(slot);
            words[..result.len()].copy_from_slice(&result);
            frame.put(slot, words);
        }
        Ok(())
    }

    /// Combines all elements along the axis: neighbors first, then neighboring pairs, and so on,
    /// which keeps their order and rounds like a tree.
    pub fn reduce(
        &self,
        frame: &mut Frame,
        machine: &Machine,
        inputs: &[Slot],
        outs: &[Slot],
        along: Along,
    ) -> Flow {
        spread(&self.captures, frame, along.numel().max(2) / 2);
        let mut current: Vec<Vec<u64>> = inputs.iter().map(|&slot| frame.snapshot(slot)).collect();
        let mut axis = along.axis;
        while axis > 1 {
            let half = axis / 2;
            let lanes = along.outer * half * along.inner;
            let place = move |lane: usize, side: usize| {
                let (row, inner) = (lane / along.inner, lane % along.inner);
                let (outer, pair) = (row / half, row % half);
                (outer * axis + 2 * pair + side) * along.inner + inner
            };
            for (side, slots) in [&self.left, &self.right].into_iter().enumerate() {
                for ((&slot, &size), source) in slots.iter().zip(&self.sizes).zip(&current) {
                    let mut words = frame.take(slot);
                    scatter(source, &mut words, size, lanes, |lane| place(lane, side), |lane| lane);
                    frame.put(slot, words);
                }
            }
            self.apply(frame, machine, lanes)?;
            for (&slot, current) in self.yields.iter().zip(&mut current) {
                *current = frame.snapshot(slot);
            }
            axis = half;
        }
        for ((&out, &size), source) in outs.iter().zip(&self.sizes).zip(&current) {
            let mut words = frame.take(out);
            scatter(source, &mut words, size, along.reduced(), |at| at, |at| at);
            frame.put(out, words);
        }
        Ok(())
    }

    /// Combines each element with all before it along the axis, or all after it.
    pub fn scan(
        &self,
        frame: &mut Frame,
        machine: &Machine,
        (inputs, outs): (&[Slot], &[Slot]),
        along: Along,
        reverse: bool,
    ) -> Flow {
        let lanes = along.reduced();
        spread(&self.captures, frame, lanes);
        let place = |lane: usize, step: usize| {
            let step = if reverse { along.axis - 1 - step } else { step };
            let (outer, inner) = (lane / along.inner, lane % along.inner);
            (outer * along.axis + step) * along.inner + inner
        };
        for step in 0..along.axis {
            for (at, &input) in inputs.iter().enumerate() {
                let size = self.sizes[at];
                if step > 0 {
                    frame.copy(self.yields[at], self.left[at]);
                }
                let slot = if step == 0 { self.yields[at] } else { self.right[at] };
                let mut words = frame.take(slot);
                let source = frame.words(input);
                scatter(source, &mut words, size, lanes, |lane| place(lane, step), |lane| lane);
                frame.put(slot, words);
            }
            if step > 0 {
                self.apply(frame, machine, lanes)?;
            }
            for (at, &out) in outs.iter().enumerate() {
                let mut words = frame.take(out);
                let source = frame.words(self.yields[at]);
                let size = self.sizes[at];
                scatter(source, &mut words, size, lanes, |lane| lane, |lane| place(lane, step));
                frame.put(out, words);
            }
        }
        Ok(())
    }
}

/// Reduces one input with a known function: partial results for eight interleaved subsequences
/// first, which the processor computes side by side, then their combination.
pub(super) fn fold<T: Pod>(
    from: Slot,
    out: Slot,
    along: Along,
    f: impl Fn(T, T) -> T + Send + Sync + 'static,
) -> Act {
    const PARTS: usize = 8;
    writes(out, move |frame, words| {
        let source = frame.get::<T>(from, along.numel());
        let out = elements::<T>(words, along.reduced());
        if along.inner > 1 {
            let blocks = source.chunks_exact(along.axis * along.inner);
            for (out, block) in out.chunks_exact_mut(along.inner).zip(blocks) {
                let mut rows = block.chunks_exact(along.inner);
                rows.by_ref().take(1).for_each(|row| out.copy_from_slice(row));
                for row in rows {
                    out.iter_mut().zip(row).for_each(|(out, &value)| *out = f(*out, value));
                }
            }
            return;
        }
        for (out, row) in out.iter_mut().zip(source.chunks_exact(along.axis)) {
            if along.axis < PARTS {
                *out = row[1..].iter().fold(row[0], |all, &value| f(all, value));
                continue;
            }
            let (first, rest) = row.split_at(PARTS);
            let mut parts: [T; PARTS] = std::array::from_fn(|at| first[at]);
            for chunk in rest.chunks_exact(PARTS) {
                parts.iter_mut().zip(chunk).for_each(|(part, &value)| *part = f(*part, value));
            }
            let mut width = PARTS;
            while width > 1 {
                width /= 2;
                for at in 0..width {
                    parts[at] = f(parts[at], parts[at + width]);
                }
            }
            *out = parts[0];
        }
    })
}

/// Scans one input with a known function, in order.
pub(super) fn accumulate<T: Pod>(
    from: Slot,
    out: Slot,
    along: Along,
    reverse: bool,
    f: impl Fn(T, T) -> T + Send + Sync + 'static,
) -> Act {
    writes(out, move |frame, words| {
        let source = frame.get::<T>(from, along.numel());
        let out = elements::<T>(words, along.numel());
        for outer in 0..along.outer {
            for step in 0..along.axis {
                let row = |step: usize| {
                    let step = if reverse { along.axis - 1 - step } else { step };
                    (outer * along.axis + step) * along.inner
                };
                for inner in 0..along.inner {
                    let value = source[row(step) + inner];
                    out[row(step) + inner] =
                        if step == 0 { value } else { f(out[row(step - 1) + inner], value) };
                }
            }
        }
    })
}

/// Counts values; those outside the bins, which are undefined, are not counted.
pub(super) fn histogram(
    [from, out]: [Slot; 2],
    mask: Option<Slot>,
    scalar: Scalar,
    (count, bins): (usize, usize),
) -> Act {
    with_int!(scalar, T => writes(out, move |frame, words| {
        let out = elements::<u32>(words, bins);
        out.fill(0);
        let mask = mask.map(|mask| frame.get::<Bit>(mask, count));
        for (lane, &value) in frame.get::<T>(from, count).iter().enumerate() {
            let active = mask.is_none_or(|mask| mask[lane].0 != 0);
            if let Some(bin) = out.get_mut(value.unsigned() as usize).filter(|_| active) {
                *bin += 1;
            }
        }
    }))
}

/// A combination of two elements that is known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Add,
    Mul,
    And,
    Or,
    Xor,
    MinS,
    MaxS,
    MinU,
    MaxU,
    FAdd,
    FMul,
    /// Minimum; true propagates NaN.
    FMin(bool),
    /// Maximum; true propagates NaN.
    FMax(bool),
}

/// Calls `$go` with the function of a known combination on the storage type of `$scalar`, which
/// is one of the types that [`is_folded`] names.
macro_rules! known_function {
    ($known:expr, $scalar:expr, $T:ident, $f:ident => $go:expr) => {{
        macro_rules! int {
            ($name:ident) => {
                if $scalar == Scalar::I64 {
                    type $T = u64;
                    let $f = <u64 as Int>::$name;
                    $go
                } else {
                    type $T = u32;
                    let $f = <u32 as Int>::$name;
                    $go
                }
            };
        }
        macro_rules! float {
            ($name:ident) => {
                if $scalar == Scalar::F64 {
                    type $T = f64;
                    let $f = <f64 as Real>::$name;
                    $go
                } else {
                    type $T = f32;
                    let $f = <f32 as Real>::$name;
                    $go
                }
            };
        }
        match $known {
            Known::Add => int!(add),
            Known::Mul => int!(mul),
            Known::And => int!(and),
            Known::Or => int!(or),
            Known::Xor => int!(xor),
            Known::MinS => int!(min_s),
            Known::MaxS => int!(max_s),
            Known::MinU => int!(min_u),
            Known::MaxU => int!(max_u),
            Known::FAdd => float!(add),
            Known::FMul => float!(mul),
            Known::FMin(true) => float!(min_propagate),
            Known::FMin(false) => float!(min_number),
            Known::FMax(true) => float!(max_propagate),
            Known::FMax(false) => float!(max_number),
        }
    }};
}

/// Types whose known combinations have loops of their own. Narrow floats would lose digits with
/// each rounding: the tree of [`Combiner::reduce`] rounds least.
pub(super) fn is_folded(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::I32 | Scalar::I64 | Scalar::F32 | Scalar::F64)
}

/// Reduces one input with a known combination.
pub(super) fn fold_known(known: Known, scalar: Scalar, from: Slot, out: Slot, along: Along) -> Act {
    known_function!(known, scalar, T, f => fold::<T>(from, out, along, f))
}

/// Scans one input with a known combination.
pub(super) fn accumulate_known(
    known: Known,
    scalar: Scalar,
    (from, out): (Slot, Slot),
    along: Along,
    reverse: bool,
) -> Act {
    known_function!(known, scalar, T, f => accumulate::<T>(from, out, along, reverse, f))
}

/// A region applied to each element, or to `pack` consecutive ones.
#[derive(Debug)]
pub(super) struct MapElements {
    pub body: Block,
    pub captures: Vec<Capture>,
    /// Inputs with the registers of the region's arguments, `pack` each.
    pub inputs: Vec<(Slot, Vec<Slot>)>,
    /// Results with the registers of the yields, `pack` each.
    pub outputs: Vec<(Slot, Vec<Slot>)>,
    /// Bytes of each input's and each output's element.
    pub sizes: (Vec<usize>, Vec<usize>),
    pub numel: usize,
    pub pack: usize,
    /// False when the region has control flow: then it is run once for each group.
    pub vector: bool,
}

impl MapElements {
    pub fn run(&self, frame: &mut Frame, machine: &Machine) -> Flow {
        let groups = self.numel / self.pack;
        let step = if self.vector { groups } else { 1 };
        spread(&self.captures, frame, step);
        for start in (0..groups).step_by(step.max(1)) {
            self.run_groups(frame, machine, start, step)?;
        }
        Ok(())
    }

    fn run_groups(&self, frame: &mut Frame, machine: &Machine, start: usize, step: usize) -> Flow {
        let element = |group: usize, part: usize| (start + group) * self.pack + part;
        for ((input, args), &size) in self.inputs.iter().zip(&self.sizes.0) {
            for (part, &arg) in args.iter().enumerate() {
                let mut words = frame.take(arg);
                let source = frame.words(*input);
                scatter(source, &mut words, size, step, |group| element(group, part), |at| at);
                frame.put(arg, words);
            }
        }
        let outer = std::mem::replace(&mut frame.lanes, step);
        let flow = self.body.run(frame, machine);
        frame.lanes = outer;
        flow?;
        for ((out, yields), &size) in self.outputs.iter().zip(&self.sizes.1) {
            for (part, &value) in yields.iter().enumerate() {
                let mut words = frame.take(*out);
                let source = frame.words(value);
                scatter(source, &mut words, size, step, |at| at, |group| element(group, part));
                frame.put(*out, words);
            }
        }
        Ok(())
    }
}

/// The bits of element `at` of a register.
pub(super) fn element_bits(frame: &Frame, slot: Slot, scalar: Scalar, at: usize) -> u64 {
    with_word!(scalar, T => frame.get::<T>(slot, at + 1)[at].unsigned())
}
