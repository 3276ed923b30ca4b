//! Operations that move elements within and between tiles.

use bytemuck::Pod;
use smallvec::SmallVec;
use tile_compiler::ir::Scalar;

use super::frame::{Frame, Slot, elements};
use super::lanes::with_int;
use super::machine::{Flow, Machine};
use crate::number::Int;

/// An operation of any kind, compiled.
pub(super) type Act = Box<dyn Fn(&mut Frame, &Machine) -> Flow + Send + Sync>;

/// An operation from the start of registers to the start of another, written with `$T` as the
/// element.
pub(super) fn writes(out: Slot, f: impl Fn(&Frame, &mut [u64]) + Send + Sync + 'static) -> Act {
    Box::new(move |frame, _| {
        let mut words = frame.take(out);
        f(frame, &mut words);
        frame.put(out, words);
        Ok(())
    })
}

/// A view of row-major elements: axis `i` of the result steps by `strides[i]` in the source.
#[derive(Debug, Clone)]
pub(super) struct Strided {
    shape: SmallVec<[usize; 4]>,
    strides: SmallVec<[usize; 4]>,
}

impl Strided {
    /// Merges axes that can be walked as one.
    pub fn new(shape: &[u32], strides: &[usize]) -> Strided {
        let mut view = Strided { shape: SmallVec::new(), strides: SmallVec::new() };
        for (&extent, &stride) in shape.iter().zip(strides) {
            let extent = extent as usize;
            if extent == 1 {
                continue;
            }
            match (view.shape.last_mut(), view.strides.last_mut()) {
                (Some(last), Some(outer)) if *outer == stride * extent => {
                    *last *= extent;
                    *outer = stride;
                }
                _ => {
                    view.shape.push(extent);
                    view.strides.push(stride);
                }
            }
        }
        view
    }

    /// The view that broadcasts a tile of extents `from` to `to`, of the same rank.
    pub fn broadcast(from: &[u32], to: &[u32]) -> Strided {
        let mut strides = row_major(from);
        for (stride, &extent) in strides.iter_mut().zip(from) {
            if extent == 1 {
                *stride = 0;
            }
        }
        Strided::new(to, &strides)
    }

    /// The view whose axis `i` is axis `order[i]` of a tile of extents `from`.
    pub fn permute(from: &[u32], order: &[u32]) -> Strided {
        let strides = row_major(from);
        let shape: Vec<u32> = order.iter().map(|&axis| from[axis as usize]).collect();
        let strides: Vec<usize> = order.iter().map(|&axis| strides[axis as usize]).collect();
        Strided::new(&shape, &strides)
    }

    /// Copies the view's elements of `source` to `out`.
    pub fn copy<T: Pod>(&self, source: &[T], out: &mut [T]) {
        let Some((&extent, outer)) = self.shape.split_last() else {
            out[0] = source[0];
            return;
        };
        let stride = self.strides[outer.len()];
        let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
        let mut start = 0;
        for row in out.chunks_exact_mut(extent) {
            match stride {
                0 => row.fill(source[start]),
                1 => row.copy_from_slice(&source[start..start + extent]),
                _ => {
                    let column = source[start..].iter().step_by(stride);
                    row.iter_mut().zip(column).for_each(|(out, &value)| *out = value);
                }
            }
            for axis in (0..outer.len()).rev() {
                index[axis] += 1;
                start += self.strides[axis];
                if index[axis] < outer[axis] {
                    break;
                }
                start -= self.strides[axis] * index[axis];
                index[axis] = 0;
            }
        }
    }
}

/// Row-major strides in elements.
pub(super) fn row_major(shape: &[u32]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as usize;
    }
    strides
}

pub(super) fn strided<T: Pod>(from: Slot, out: Slot, sizes: [usize; 2], view: Strided) -> Act {
    writes(out, move |frame, words| {
        view.copy::<T>(frame.get(from, sizes[0]), elements(words, sizes[1]));
    })
}

pub(super) fn copy<T: Pod>(from: Slot, out: Slot, count: usize) -> Act {
    writes(out, move |frame, words| {
        elements::<T>(words, count).copy_from_slice(frame.get(from, count));
    })
}

pub(super) fn splat<T: Pod>(from: Slot, out: Slot, count: usize) -> Act {
    writes(out, move |frame, words| elements::<T>(words, count).fill(frame.scalar(from)))
}

/// Two tiles of `count` elements alternating: a new last axis of extent 2.
pub(super) fn join<T: Pod>(lhs: Slot, rhs: Slot, out: Slot, count: usize) -> Act {
    writes(out, move |frame, words| {
        let pairs = frame.get::<T>(lhs, count).iter().zip(frame.get::<T>(rhs, count));
        for (out, (&lhs, &rhs)) in elements::<T>(words, 2 * count).chunks_exact_mut(2).zip(pairs) {
            out[0] = lhs;
            out[1] = rhs;
        }
    })
}

/// Every second element of a tile of `2 * count` elements, from element `half`.
pub(super) fn split<T: Pod>(from: Slot, half: usize, out: Slot, count: usize) -> Act {
    writes(out, move |frame, words| {
        let source = frame.get::<T>(from, 2 * count)[half..].iter().step_by(2);
        elements::<T>(words, count).iter_mut().zip(source).for_each(|(out, &value)| *out = value);
    })
}

/// One tile of `count` elements after another.
pub(super) fn cat<T: Pod>(lhs: Slot, rhs: Slot, out: Slot, count: usize) -> Act {
    writes(out, move |frame, words| {
        let (first, second) = elements::<T>(words, 2 * count).split_at_mut(count);
        first.copy_from_slice(frame.get(lhs, count));
        second.copy_from_slice(frame.get(rhs, count));
    })
}

/// A tile seen along one axis: `outer * axis * inner` elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Along {
    pub outer: usize,
    pub axis: usize,
    pub inner: usize,
}

impl Along {
    pub fn new(shape: &[u32], axis: u32) -> Along {
        let axis = (axis as usize).min(shape.len().saturating_sub(1));
        let product = |extents: &[u32]| extents.iter().map(|&extent| extent as usize).product();
        Along {
            outer: product(&shape[..axis]),
            axis: shape.get(axis).map_or(1, |&extent| extent as usize),
            inner: product(shape.get(axis + 1..).unwrap_or_default()),
        }
    }

    pub fn numel(self) -> usize {
        self.outer * self.axis * self.inner
    }

    /// Elements of a result without the axis.
    pub fn reduced(self) -> usize {
        self.outer * self.inner
    }
}

/// `out[i, j] = value[index[i, j], j]`; an index outside the axis, which is undefined, wraps.
pub(super) fn gather<T: Pod>(
    [value, index, out]: [Slot; 3],
    index_scalar: Scalar,
    source: Along,
    target: Along,
) -> Act {
    let index_at: fn(&Frame, Slot, usize) -> u64 = with_int!(index_scalar, I => {
        |frame, slot, at| frame.get::<I>(slot, at + 1)[at].unsigned()
    });
    writes(out, move |frame, words| {
        let values = frame.get::<T>(value, source.numel());
        let out = elements::<T>(words, target.numel());
        for (at, out) in out.iter_mut().enumerate() {
            let outer = at / (target.axis * target.inner);
            let inner = at % target.inner;
            let row = index_at(frame, index, at) as usize % source.axis;
            let from = (outer * source.axis + row) * source.inner + inner;
            *out = values[from.min(values.len() - 1)];
        }
    })
}
