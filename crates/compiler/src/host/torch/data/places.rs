//! Where in its memory the elements of a tensor are.

use super::derived::extents;
use super::known;
use crate::host::torch::views;
use crate::host::value::Tensor;

/// Where in its memory the elements of a tensor are, counted from where the memory begins.
pub(super) struct Places {
    before: usize,
    /// The sizes and strides, the last axis first.
    axes: Vec<(usize, usize)>,
}

impl Places {
    pub(super) fn of(tensor: &Tensor) -> Option<Places> {
        let strides = views::strides(tensor)?;
        let strides = strides.iter().map(|stride| usize::try_from(known(stride)?).ok());
        let strides = strides.collect::<Option<Vec<usize>>>()?;
        let sizes = extents(tensor).filter(|sizes| sizes.len() == strides.len())?;
        let before = usize::try_from(tensor.storage.as_ref()?.before).ok()?;
        Some(Places { before, axes: sizes.into_iter().zip(strides).rev().collect() })
    }

    /// The place of the element at a position in the order of the elements.
    pub(super) fn of_element(&self, position: usize) -> usize {
        let mut rest = position;
        let steps = self.axes.iter().map(|(size, stride)| {
            let at = rest % size;
            rest /= size;
            at * stride
        });
        self.before + steps.sum::<usize>()
    }
}

/// Elements of memory that a tensor shows, in order; `None` where they are not known, or beyond its memory.
pub(crate) fn places(tensor: &Tensor) -> Option<Vec<usize>> {
    let (places, storage) = (Places::of(tensor)?, tensor.storage.as_deref()?);
    let end = usize::try_from(storage.before.checked_add(storage.elements)?).ok()?;
    let count: usize = extents(tensor)?.iter().product();
    let within = |at: usize| Some(places.of_element(at)).filter(|place| *place < end);
    (0..count).map(within).collect()
}
