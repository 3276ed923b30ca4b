//! Linear layouts whose outputs are the axes of a tensor: what the code generator asks of them,
//! and how they follow the operations that reshape a tensor.
//!
//! A *tensor layout* lists its axes from the last to the first, so its packed output is the
//! element's row-major index. Every constructor of [`layout`](super) yields this form, and the
//! functions here keep it.

use smallvec::SmallVec;

use super::LayoutError;
use super::linear::{Coordinates, Dim, DimBits, HardwarePoint, LinearLayout, log2};

/// The tensor dimension of axis number `axis`.
///
/// # Errors
/// When the number does not fit a [`Dim::Axis`].
pub(crate) fn axis_dim(axis: usize) -> Result<Dim, LayoutError> {
    u8::try_from(axis).map(Dim::Axis).map_err(|_| LayoutError::Unsupported {
        what: "the axis",
        value: axis,
        allowed: "a tensor has at most 256 axes",
    })
}

/// The output list of a tensor layout for `shape`: the last axis first.
pub(crate) fn axis_bits(shape: &[usize]) -> Result<SmallVec<[(Dim, u32); 4]>, LayoutError> {
    let bits = |(axis, &size): (usize, &usize)| {
        Ok((axis_dim(axis)?, log2(size, || format!("the size of axis {axis}"))?))
    };
    shape.iter().enumerate().map(bits).rev().collect()
}

impl LinearLayout {
    /// The number of axes of the tensor.
    pub fn rank(&self) -> usize {
        self.outputs().len()
    }

    /// The tensor's shape, axis 0 first.
    pub fn shape(&self) -> SmallVec<[usize; 4]> {
        self.outputs().iter().rev().map(|axis| 1usize << axis.bits).collect()
    }

    /// The number of registers that each thread holds, repetitions included.
    pub fn elements_per_thread(&self) -> usize {
        1 << self.input_bits(Dim::Register)
    }

    /// The row-major index of the element at `point`.
    pub fn element(&self, point: HardwarePoint) -> u64 {
        self.apply_packed(self.pack_input(&[
            (Dim::Register, point.register as usize),
            (Dim::Lane, point.lane as usize),
            (Dim::Warp, point.warp as usize),
            (Dim::Cta, point.cta as usize),
        ]))
    }

    /// The coordinates of the element at `point`, axis 0 first.
    pub fn coordinates(&self, point: HardwarePoint) -> Coordinates {
        self.unpack(self.element(point))
    }

    /// Splits a row-major index into coordinates, axis 0 first.
    pub fn unpack(&self, element: u64) -> Coordinates {
        let mut rest = element;
        let mut coordinates: Coordinates = self
            .outputs()
            .iter()
            .map(|axis| {
                let index = rest & ((1 << axis.bits) - 1);
                rest >>= axis.bits;
                index as u32
            })
            .collect();
        coordinates.reverse();
        coordinates
    }

    /// What each bit of the lane number contributes, by XOR, to the index along `axis`.
    pub fn lane_bases(&self, axis: usize) -> SmallVec<[u32; 8]> {
        self.axis_bases(Dim::Lane, axis)
    }

    /// What each bit of the warp number contributes, by XOR, to the index along `axis`.
    pub fn warp_bases(&self, axis: usize) -> SmallVec<[u32; 8]> {
        self.axis_bases(Dim::Warp, axis)
    }

    fn axis_bases(&self, input: Dim, axis: usize) -> SmallVec<[u32; 8]> {
        axis_dim(axis).map_or_else(|_| SmallVec::new(), |dim| self.bases_along(input, dim))
    }

    /// The constant part of the coordinates of register `register`, axis 0 first. XOR with the
    /// contributions of lane and warp gives the coordinates; where the bits of the two parts are
    /// disjoint, as in every constructor but swizzled ones, addition does too.
    pub fn offset_for_register(&self, register: usize) -> Coordinates {
        self.coordinates(HardwarePoint { register: register as u32, ..HardwarePoint::default() })
    }

    /// The layout with the indices along the last axis dealt out anew among the places that tell
    /// them apart: the lowest bits to registers, the next ones to lanes, the highest to warps. As
    /// it is where some place moves along several bits or axes at once.
    pub fn with_last_axis_inward(&self) -> Self {
        let Some(last) = self.outputs().first() else { return self.clone() };
        let along = (1u64 << last.bits) - 1;
        let mut seen = 0;
        for basis in self.packed_bases().iter().filter(|basis| **basis & along != 0) {
            if !basis.is_power_of_two() || seen & basis != 0 {
                return self.clone();
            }
            seen |= basis;
        }
        let mut next = 1;
        let dealt = self.inputs().iter().flat_map(|input| self.bases(input.dim)).map(|&basis| {
            if basis & along == 0 {
                return basis;
            }
            next <<= 1;
            next >> 1
        });
        let dims = |dims: &[DimBits]| -> SmallVec<[(Dim, u32); 4]> {
            dims.iter().map(|dim| (dim.dim, dim.bits)).collect()
        };
        Self::new(&dims(self.inputs()), &dims(self.outputs()), dealt)
            .unwrap_or_else(|_| self.clone())
    }

    /// The shape with axis `perm[i]` of this tensor as axis `i`: `tl.trans` and `tl.permute`.
    ///
    /// # Errors
    /// When `perm` is not a permutation of the axes.
    pub fn transpose(&self, perm: &[usize]) -> Result<Self, LayoutError> {
        check_permutation(perm, self.rank())?;
        let order = perm.iter().rev().map(|&axis| axis_dim(axis)).collect::<Result<Dims, _>>()?;
        self.permute_outputs(&order)?.renumbered()
    }

    /// The same elements in row-major order under another shape: `tl.reshape`.
    ///
    /// # Errors
    /// When a size is not a power of two or the numbers of elements differ.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self, LayoutError> {
        self.reshape_outputs(&axis_bits(shape)?)
    }

    /// The layout with an axis of size 1 inserted before axis `axis`: `tl.expand_dims`.
    ///
    /// # Errors
    /// When `axis` is larger than the rank.
    pub fn expand_dims(&self, axis: usize) -> Result<Self, LayoutError> {
        if axis > self.rank() {
            return Err(LayoutError::NoSuchAxis { axis, rank: self.rank() });
        }
        let mut shape = self.shape();
        shape.insert(axis, 1);
        self.reshape(&shape)
    }

    /// The layout of the tensor without axis `axis`, threads and registers as they are: the result
    /// of a reduction along it. Places that differed only along `axis` become repetitions.
    ///
    /// # Errors
    /// When there is no such axis.
    pub fn remove_axis(&self, axis: usize) -> Result<Self, LayoutError> {
        if axis >= self.rank() {
            return Err(LayoutError::NoSuchAxis { axis, rank: self.rank() });
        }
        let removed = axis_dim(axis)?;
        let kept: Dims =
            self.outputs().iter().map(|output| output.dim).filter(|&dim| dim != removed).collect();
        let inputs: Dims = self.inputs().iter().map(|input| input.dim).collect();
        self.sublayout(&inputs, &kept)?.renumbered()
    }

    /// The layout with a last axis of size 2 whose index is register bit 0: `tl.join`. Register
    /// `2r + k` holds what register `r` of operand `k` held.
    ///
    /// # Errors
    /// When the result is too large.
    pub(crate) fn join_axis(&self) -> Result<Self, LayoutError> {
        let pair = Self::identity1d(2, Dim::Register, axis_dim(self.rank())?)?;
        let order: Dims = (0..=self.rank()).rev().map(axis_dim).collect::<Result<_, _>>()?;
        let mut inputs: Dims = self.inputs().iter().map(|input| input.dim).collect();
        if !inputs.contains(&Dim::Register) {
            inputs.insert(0, Dim::Register);
        }
        pair.product(self)?.permute_outputs(&order)?.permute_inputs(&inputs)
    }

    /// The register bit that alone carries the last axis, of size 2, and the layout without both:
    /// `tl.split`. `None` when the two halves are not in the same thread, so that the tensor must
    /// be converted first.
    pub(crate) fn split_axis(&self) -> Option<(u32, Self)> {
        let last = axis_dim(self.rank().checked_sub(1)?).ok()?;
        if self.output_bits(last) != 1 {
            return None;
        }
        let carriers = self.packed_bases().iter().filter(|&&basis| basis & 1 != 0).count();
        let bit = self.bases(Dim::Register).iter().position(|&basis| basis == 1)? as u32;
        if carriers != 1 {
            return None;
        }
        let keep = !(1u32 << bit);
        let halves =
            self.retain_input_bits(Dim::Register, keep).remove_axis(self.rank() - 1).ok()?;
        Some((bit, halves))
    }

    /// The layout nearest to this one that [splits](Self::split_axis), where a lane or warp bit alone
    /// carries the last axis, of size 2: it and the register bit of the farthest elements change
    /// places, so that half the elements move and neighbors stay together.
    pub(crate) fn with_pairs_in_registers(&self) -> Option<Self> {
        let bases = self.packed_bases();
        let mut carriers = (0..bases.len()).filter(|&at| bases[at] & 1 != 0);
        let pair = carriers.next().filter(|&at| bases[at] == 1 && carriers.next().is_none())?;
        let before = self.inputs().iter().take_while(|input| input.dim != Dim::Register);
        let first: usize = before.map(|input| input.bits as usize).sum();
        let registers = first..first + self.input_bits(Dim::Register) as usize;
        let farthest = registers.max_by_key(|&at| bases[at]).filter(|&at| bases[at] > 1)?;
        Some(self.exchange_bases(pair, farthest))
    }

    /// The same layout without register bits that only repeat elements of other registers.
    pub fn without_free_registers(&self) -> Self {
        self.retain_input_bits(Dim::Register, !self.free_bits(Dim::Register))
    }

    /// Renames the outputs, which stay in their order, to the axes of a tensor layout.
    fn renumbered(&self) -> Result<Self, LayoutError> {
        let last = self.rank();
        let outputs = self
            .outputs()
            .iter()
            .enumerate()
            .map(|(at, output)| Ok((axis_dim(last - 1 - at)?, output.bits)))
            .collect::<Result<SmallVec<[_; 4]>, LayoutError>>()?;
        self.reshape_outputs(&outputs)
    }
}

type Dims = SmallVec<[Dim; 4]>;

/// Checks that `perm` names each of `rank` axes once.
pub(crate) fn check_permutation(perm: &[usize], rank: usize) -> Result<(), LayoutError> {
    if perm.len() != rank {
        return Err(LayoutError::RankMismatch {
            what: "the permutation",
            expected: rank,
            actual: perm.len(),
        });
    }
    let each_once = (0..rank).all(|axis| perm.contains(&axis));
    each_once.then_some(()).ok_or_else(|| LayoutError::NotPermutation { order: perm.to_vec() })
}

/// Fits a tile of some shape to a tensor of `shape`, the last step of every constructor.
///
/// Along an axis where the tensor is larger, the tile repeats in further bits of `repeat` (the
/// register, or the offset in memory), the axes taken in `order`, fastest first. Where it is
/// smaller, lanes and warps that would lie outside repeat those inside, and bits of `repeat` that
/// would are left out. The result is a tensor layout.
pub(crate) fn fit_to_shape(
    tile: &LinearLayout,
    shape: &[usize],
    repeat: Dim,
    order: &[usize],
) -> Result<LinearLayout, LayoutError> {
    let bits = axis_bits(shape)?;
    let names: Dims = bits.iter().map(|&(dim, _)| dim).collect();
    let mut fitted = tile.permute_outputs(&names)?;
    for &axis in order {
        let dim = axis_dim(axis)?;
        let wanted = bits.iter().find(|entry| entry.0 == dim).map_or(0, |&(_, bits)| bits);
        let missing = wanted.saturating_sub(fitted.output_bits(dim));
        fitted = fitted.product(&LinearLayout::identity1d(1 << missing, repeat, dim)?)?;
    }
    let cropped = fitted.crop_outputs(&bits)?;
    let inside = cropped.bases(repeat).iter().enumerate().filter(|&(_, &basis)| basis != 0);
    let keep = inside.fold(0, |mask, (bit, _)| mask | 1 << bit);
    Ok(cropped.retain_input_bits(repeat, keep))
}
