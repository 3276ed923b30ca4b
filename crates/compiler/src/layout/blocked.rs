//! Blocked layouts: each thread owns a small box of elements, threads tile a warp's box, and warps
//! tile the program's box. The layout of loads, stores and element-wise work.

use smallvec::SmallVec;

use super::LayoutError;
use super::linear::{Dim, LinearLayout, log2};
use super::tensor::{axis_dim, check_permutation, fit_to_shape};

/// A distributed layout described by three nested boxes, in the tensor's axis order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockedLayout {
    /// The box of elements that one thread holds side by side.
    pub size_per_thread: SmallVec<[usize; 4]>,
    /// How the lanes of a warp are arranged over the thread boxes.
    pub threads_per_warp: SmallVec<[usize; 4]>,
    /// How the warps are arranged over the warp boxes.
    pub warps_per_cta: SmallVec<[usize; 4]>,
    /// The axes from the fastest varying to the slowest, within each box and among boxes.
    pub order: SmallVec<[usize; 4]>,
}

impl BlockedLayout {
    /// The layout to start from: lanes and warps fill the axes in `order`, and each thread holds
    /// `contiguous` neighbors along the first of them, fewer where the tensor would not keep all
    /// threads busy.
    ///
    /// # Errors
    /// When a size is not a power of two or `order` is not a permutation of the axes.
    pub(crate) fn default_for(
        shape: &[usize],
        num_warps: usize,
        lanes: usize,
        order: &[usize],
        contiguous: usize,
    ) -> Result<Self, LayoutError> {
        check_permutation(order, shape.len())?;
        for (axis, &size) in shape.iter().enumerate() {
            log2(size, || format!("the size of axis {axis}"))?;
        }
        log2(num_warps, || "num_warps".into())?;
        log2(lanes, || "the number of lanes".into())?;
        log2(contiguous, || "the number of contiguous elements".into())?;
        let elements = shape.iter().fold(1usize, |product, &size| product.saturating_mul(size));
        let per_thread = contiguous.min((elements / num_warps.saturating_mul(lanes)).max(1));

        let ones: SmallVec<[usize; 4]> = SmallVec::from_elem(1, shape.len());
        let mut layout = Self {
            size_per_thread: ones.clone(),
            threads_per_warp: ones.clone(),
            warps_per_cta: ones,
            order: order.into(),
        };
        if let Some(&fastest) = order.first() {
            layout.size_per_thread[fastest] = per_thread.min(shape[fastest]);
        }
        layout.spread_threads(shape, num_warps, lanes);
        Ok(layout)
    }

    /// Deals lanes, then warps, to the axes in order; the slowest axis takes what is left over.
    fn spread_threads(&mut self, shape: &[usize], num_warps: usize, lanes: usize) {
        let (mut lanes, mut warps) = (lanes, num_warps);
        for (rank, &axis) in self.order.iter().enumerate() {
            let is_last = rank + 1 == self.order.len();
            let thread_boxes = (shape[axis] / self.size_per_thread[axis]).max(1);
            let lanes_here = if is_last { lanes } else { lanes.min(thread_boxes) };
            let warp_boxes = (thread_boxes / lanes_here).max(1);
            let warps_here = if is_last { warps } else { warps.min(warp_boxes) };
            self.threads_per_warp[axis] = lanes_here;
            self.warps_per_cta[axis] = warps_here;
            lanes /= lanes_here;
            warps /= warps_here;
        }
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.order.len()
    }

    /// The layout of a tensor of `shape`.
    ///
    /// A tensor larger than the three boxes repeats them in further registers; along an axis where
    /// it is smaller, surplus lanes and warps repeat elements (see
    /// [`LinearLayout::free_bits`]) and surplus registers do not exist.
    ///
    /// # Errors
    /// When a size is not a power of two, a list does not have one entry per axis, or `order` is
    /// not a permutation.
    pub(crate) fn to_linear(&self, shape: &[usize]) -> Result<LinearLayout, LayoutError> {
        let rank = shape.len();
        check_permutation(&self.order, rank)?;
        let levels = [
            ("size_per_thread", Dim::Register, &self.size_per_thread),
            ("threads_per_warp", Dim::Lane, &self.threads_per_warp),
            ("warps_per_cta", Dim::Warp, &self.warps_per_cta),
        ];
        let mut tile = LinearLayout::empty();
        for (what, dim, sizes) in levels {
            if sizes.len() != rank {
                return Err(LayoutError::RankMismatch {
                    what,
                    expected: rank,
                    actual: sizes.len(),
                });
            }
            tile = tile.product(&box_layout(what, dim, sizes, &self.order)?)?;
        }
        fit_to_shape(&tile, shape, Dim::Register, &self.order)
    }
}

/// `input` counting through a box of `sizes` elements, the axes taken in `order`.
fn box_layout(
    what: &str,
    input: Dim,
    sizes: &[usize],
    order: &[usize],
) -> Result<LinearLayout, LayoutError> {
    let mut layout = LinearLayout::zeros1d(1, input, Dim::Axis(0))?.sublayout(&[input], &[])?;
    for &axis in order {
        log2(sizes[axis], || format!("{what}[{axis}]"))?;
        let along = LinearLayout::identity1d(sizes[axis], input, axis_dim(axis)?)?;
        layout = layout.product(&along)?;
    }
    Ok(layout)
}
