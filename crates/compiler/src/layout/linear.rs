//! The one layout type: a linear map over F2 between named, ordered dimensions.
//!
//! A layout with inputs of `i` bits in total and outputs of `o` bits in total is an `o × i` matrix
//! of bits. Its columns, the *bases*, are the images of the inputs 1, 2, 4, …; the image of any
//! input is the XOR of the bases at its set bits. Dimensions are listed **minor first**, both in
//! packed indices and wherever dimensions are flattened. Tensor layouts list their axes from the
//! last to the first, so a packed output is the element's row-major index and a reshape of the
//! tensor leaves the bases as they are.
//!
//! The theory is that of "Linear Layouts: Robust Code Generation of Efficient Tensor Computation
//! Using F2" (arXiv 2505.23819).

use std::fmt;

use smallvec::SmallVec;

use super::LayoutError;
use super::f2::{self, Span};

/// A named dimension on either side of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// Which of a thread's registers.
    Register,
    /// Which thread of a warp.
    Lane,
    /// Which warp of a program (CTA).
    Warp,
    /// Which CTA of a cluster.
    Cta,
    /// Which element of a shared memory buffer, counted from its start.
    Offset,
    /// The index along one axis of a tensor.
    Axis(u8),
}

impl Dim {
    /// The axis number of a tensor dimension.
    pub fn axis(self) -> Option<usize> {
        match self {
            Dim::Axis(axis) => Some(axis.into()),
            _ => None,
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Register => f.pad("register"),
            Dim::Lane => f.pad("lane"),
            Dim::Warp => f.pad("warp"),
            Dim::Cta => f.pad("cta"),
            Dim::Offset => f.pad("offset"),
            Dim::Axis(axis) => f.pad(&format!("axis{axis}")),
        }
    }
}

/// A dimension of `2^bits` values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DimBits {
    /// The dimension's name.
    pub dim: Dim,
    /// The number of bits of its index.
    pub bits: u32,
}

type Dims = SmallVec<[DimBits; 4]>;

/// One index per axis of a tensor, axis 0 first.
pub type Coordinates = SmallVec<[u32; 4]>;

/// A place where a tensor's element can live: one register of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HardwarePoint {
    /// The register within the thread.
    pub register: u32,
    /// The lane within the warp.
    pub lane: u32,
    /// The warp within the CTA.
    pub warp: u32,
    /// The CTA within the cluster.
    pub cta: u32,
}

/// A linear map over F2 from named input dimensions to named output dimensions.
///
/// Every size is a power of two. Dimensions are listed and packed
/// minor first; tensor layouts list their axes from the last to the first, so a packed output is a
/// row-major index.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LinearLayout {
    inputs: Dims,
    outputs: Dims,
    /// The packed image of each input bit: the first input's lowest bit first.
    bases: SmallVec<[u64; 16]>,
}

impl LinearLayout {
    /// The layout of a scalar: no inputs, no outputs. It is the unit of [`product`](Self::product).
    pub fn empty() -> Self {
        Self { inputs: Dims::new(), outputs: Dims::new(), bases: SmallVec::new() }
    }

    /// `size` inputs mapped one to one.
    pub(crate) fn identity1d(size: usize, input: Dim, output: Dim) -> Result<Self, LayoutError> {
        let bits = log2(size, || format!("the size of `{input}`"))?;
        Self::new(&[(input, bits)], &[(output, bits)], (0..bits).map(|bit| 1 << bit))
    }

    /// `size` inputs that all map to the one element of `output`: pure replication.
    pub(crate) fn zeros1d(size: usize, input: Dim, output: Dim) -> Result<Self, LayoutError> {
        let bits = log2(size, || format!("the size of `{input}`"))?;
        Self::new(&[(input, bits)], &[(output, 0)], (0..bits).map(|_| 0))
    }

    /// A layout from its packed bases.
    ///
    /// `inputs` and `outputs` give each dimension with its number of bits, minor first.
    ///
    /// # Errors
    /// When a side names a dimension twice, has more than 63 bits, or when the number of bases or
    /// their size does not fit.
    pub fn new(
        inputs: &[(Dim, u32)],
        outputs: &[(Dim, u32)],
        bases: impl IntoIterator<Item = u64>,
    ) -> Result<Self, LayoutError> {
        let to_dims = |list: &[(Dim, u32)]| {
            list.iter().map(|&(dim, bits)| DimBits { dim, bits }).collect::<Dims>()
        };
        Self::checked(to_dims(inputs), to_dims(outputs), bases.into_iter().collect())
    }

    fn checked(
        inputs: Dims,
        outputs: Dims,
        bases: SmallVec<[u64; 16]>,
    ) -> Result<Self, LayoutError> {
        for dims in [&inputs, &outputs] {
            let total = dims.iter().fold(0u32, |sum, dim| sum.saturating_add(dim.bits));
            if total > 63 {
                return Err(LayoutError::TooLarge(total));
            }
            for (at, dim) in dims.iter().enumerate() {
                if dim.bits > 31 {
                    return Err(LayoutError::TooLarge(dim.bits));
                }
                if dims[..at].iter().any(|earlier| earlier.dim == dim.dim) {
                    return Err(LayoutError::UnknownDim(dim.dim));
                }
            }
        }
        if total_bits(&inputs) as usize != bases.len() {
            return Err(LayoutError::SizeMismatch {
                operation: "build a layout from its bases",
                expected: total_bits(&inputs).into(),
                actual: bases.len() as u64,
            });
        }
        let limit = f2::low_mask(total_bits(&outputs));
        if let Some(&large) = bases.iter().find(|&&basis| basis > limit) {
            return Err(LayoutError::SizeMismatch {
                operation: "address an element",
                expected: limit + 1,
                actual: large,
            });
        }
        Ok(Self { inputs, outputs, bases })
    }

    /// The input dimensions, minor first.
    pub fn inputs(&self) -> &[DimBits] {
        &self.inputs
    }

    /// The output dimensions, minor first.
    pub fn outputs(&self) -> &[DimBits] {
        &self.outputs
    }

    /// The number of bits of an input dimension; 0 when the layout does not have it.
    pub fn input_bits(&self, dim: Dim) -> u32 {
        find(&self.inputs, dim).map_or(0, |(_, bits)| bits)
    }

    /// The number of bits of an output dimension; 0 when the layout does not have it.
    pub(crate) fn output_bits(&self, dim: Dim) -> u32 {
        find(&self.outputs, dim).map_or(0, |(_, bits)| bits)
    }

    /// The number of bits of all outputs together: log2 of the number of elements.
    pub(crate) fn total_output_bits(&self) -> u32 {
        total_bits(&self.outputs)
    }

    /// The packed bases of all inputs, in input order.
    pub(crate) fn packed_bases(&self) -> &[u64] {
        &self.bases
    }

    /// The packed bases of one input dimension; empty when the layout does not have it.
    pub fn bases(&self, input: Dim) -> &[u64] {
        match find(&self.inputs, input) {
            Some((at, bits)) => &self.bases[at as usize..(at + bits) as usize],
            None => &[],
        }
    }

    /// The part of each basis of `input` that lies along `output`.
    pub(crate) fn bases_along(&self, input: Dim, output: Dim) -> SmallVec<[u32; 8]> {
        let part = self.output_field(output);
        self.bases(input).iter().map(|&basis| part.extract(basis)).collect()
    }

    fn output_field(&self, output: Dim) -> Field {
        Field::of(&self.outputs, output)
    }

    /// The packed output of a packed input. Input bits beyond the layout's are ignored, as a
    /// layout that lacks a dimension does not depend on it.
    pub fn apply_packed(&self, input: u64) -> u64 {
        f2::combine(&self.bases, input)
    }

    /// The output for named input indices, as one index per output dimension in output order.
    /// Dimensions not named count as 0; dimensions that the layout lacks are ignored.
    pub fn apply(&self, indices: &[(Dim, usize)]) -> SmallVec<[(Dim, usize); 4]> {
        let packed = self.apply_packed(self.pack_input(indices));
        self.outputs
            .iter()
            .map(|output| (output.dim, self.output_field(output.dim).extract(packed) as usize))
            .collect()
    }

    /// Packs named input indices into one word; see [`apply`](Self::apply).
    pub fn pack_input(&self, indices: &[(Dim, usize)]) -> u64 {
        indices.iter().fold(0, |packed, &(dim, index)| {
            packed | Field::of(&self.inputs, dim).insert(index as u64)
        })
    }

    /// The direct sum: in every dimension `self` takes the low bits and `other` the bits above, so
    /// `other` repeats the tile that `self` describes. Dimensions of `self` are listed first.
    ///
    /// # Errors
    /// When a side of the product has more than 63 bits.
    pub fn product(&self, other: &Self) -> Result<Self, LayoutError> {
        let inputs = joined_dims(&self.inputs, &other.inputs);
        let outputs = joined_dims(&self.outputs, &other.outputs);
        let total = total_bits(&inputs).max(total_bits(&outputs));
        if total > 63 {
            return Err(LayoutError::TooLarge(total));
        }
        let low = |basis| repack(basis, &self.outputs, &outputs, |_| 0);
        let high = |basis| {
            repack(basis, &other.outputs, &outputs, |dim| {
                find(&self.outputs, dim).map_or(0, |(_, bits)| bits)
            })
        };
        let mut bases = SmallVec::new();
        for input in &inputs {
            bases.extend(self.bases(input.dim).iter().map(|&basis| low(basis)));
            bases.extend(other.bases(input.dim).iter().map(|&basis| high(basis)));
        }
        Self::checked(inputs, outputs, bases)
    }

    /// This layout followed by `next`, whose inputs must be this layout's outputs.
    ///
    /// # Errors
    /// When an output of `self` is not an input of `next` of the same size.
    pub fn then(&self, next: &Self) -> Result<Self, LayoutError> {
        let mid = self.permute_outputs_to(&next.inputs)?;
        let bases = mid.bases.iter().map(|&basis| next.apply_packed(basis)).collect();
        Self::checked(self.inputs.clone(), next.outputs.clone(), bases)
    }

    /// Whether every output is reached.
    pub(crate) fn is_surjective(&self) -> bool {
        f2::rank(self.bases.iter().copied()) == self.total_output_bits() as usize
    }

    /// Whether no output is reached twice.
    pub(crate) fn is_injective(&self) -> bool {
        f2::rank(self.bases.iter().copied()) == self.bases.len()
    }

    /// The two-sided inverse.
    ///
    /// # Errors
    /// When the layout is not a bijection.
    pub fn invert(&self) -> Result<Self, LayoutError> {
        if !self.is_injective() {
            return Err(LayoutError::NotInjective);
        }
        self.pseudo_invert()
    }

    /// A right inverse: for each output the input that reaches it and has every
    /// [free bit](Self::free_bits) zero.
    ///
    /// # Errors
    /// When some output is not reached.
    pub(crate) fn pseudo_invert(&self) -> Result<Self, LayoutError> {
        let span = Span::of(&self.bases);
        let bases = (0..self.total_output_bits())
            .map(|bit| span.solve(1 << bit).ok_or(LayoutError::NotSurjective))
            .collect::<Result<_, _>>()?;
        Self::checked(self.outputs.clone(), self.inputs.clone(), bases)
    }

    /// The map `c` from this layout's inputs to those of `other` with `c.then(other) == self`:
    /// where `other` keeps the element that `self` keeps at a given place. Free bits of `other`
    /// are zero in the result.
    ///
    /// # Errors
    /// When the outputs differ, or `other` does not reach every element that `self` reaches.
    pub fn invert_and_compose(&self, other: &Self) -> Result<Self, LayoutError> {
        let aligned = self.permute_outputs_to(&other.outputs)?;
        let span = Span::of(&other.bases);
        let bases = aligned
            .bases
            .iter()
            .map(|&basis| span.solve(basis).ok_or(LayoutError::NotCovered))
            .collect::<Result<_, _>>()?;
        Self::checked(self.inputs.clone(), other.inputs.clone(), bases)
    }

    /// The bits of `input` that can be held at zero without losing an element, as a mask.
    ///
    /// Bits are considered in input order, and one is free when its basis is a sum of earlier
    /// ones. The inputs whose free bits are all zero reach each element of the image exactly once:
    /// they are the owners when a store or an atomic must not be repeated.
    pub fn free_bits(&self, input: Dim) -> u32 {
        let mut span = Span::default();
        let free = self
            .bases
            .iter()
            .enumerate()
            .filter(|&(_, &basis)| !span.insert(basis, 0))
            .fold(0, |mask, (at, _)| mask | 1 << at);
        Field::of(&self.inputs, input).extract(free)
    }

    /// The layout restricted to some inputs and projected to some outputs, in the given orders.
    ///
    /// # Errors
    /// When a dimension is unknown or named twice.
    pub(crate) fn sublayout(&self, inputs: &[Dim], outputs: &[Dim]) -> Result<Self, LayoutError> {
        let inputs = select(&self.inputs, inputs)?;
        let outputs = select(&self.outputs, outputs)?;
        let bases = inputs
            .iter()
            .flat_map(|input| self.bases(input.dim))
            .map(|&basis| repack(basis, &self.outputs, &outputs, |_| 0))
            .collect();
        Self::checked(inputs, outputs, bases)
    }

    /// The quotient `q` with `q.product(divisor) == self`, if there is one.
    pub(crate) fn divide_right(&self, divisor: &Self) -> Option<Self> {
        let inputs = quotient_dims(&self.inputs, &divisor.inputs)?;
        let outputs = quotient_dims(&self.outputs, &divisor.outputs)?;
        let mut bases = SmallVec::new();
        for input in &inputs {
            let all = self.bases(input.dim);
            let kept = all[..input.bits as usize].iter();
            bases.extend(kept.map(|&basis| shift_down(basis, &self.outputs, &outputs, |_| 0)));
        }
        let quotient = Self::checked(inputs, outputs, bases).ok()?;
        let dims =
            |list: &[DimBits]| list.iter().map(|dim| dim.dim).collect::<SmallVec<[Dim; 4]>>();
        let product = quotient
            .product(divisor)
            .ok()?
            .sublayout(&dims(&self.inputs), &dims(&self.outputs))
            .ok()?;
        (product == *self).then_some(quotient)
    }

    /// The same map with the outputs listed, and therefore packed, in another order.
    ///
    /// # Errors
    /// When `order` does not name each output once.
    pub(crate) fn permute_outputs(&self, order: &[Dim]) -> Result<Self, LayoutError> {
        let outputs = select(&self.outputs, order)?;
        if outputs.len() != self.outputs.len() {
            return Err(LayoutError::RankMismatch {
                what: "the order of outputs",
                expected: self.outputs.len(),
                actual: order.len(),
            });
        }
        let bases =
            self.bases.iter().map(|&basis| repack(basis, &self.outputs, &outputs, |_| 0)).collect();
        Self::checked(self.inputs.clone(), outputs, bases)
    }

    /// The same map with the inputs listed in another order.
    ///
    /// # Errors
    /// When `order` does not name each input once.
    pub(crate) fn permute_inputs(&self, order: &[Dim]) -> Result<Self, LayoutError> {
        let inputs = select(&self.inputs, order)?;
        if inputs.len() != self.inputs.len() {
            return Err(LayoutError::RankMismatch {
                what: "the order of inputs",
                expected: self.inputs.len(),
                actual: order.len(),
            });
        }
        let bases = inputs.iter().flat_map(|input| self.bases(input.dim)).copied().collect();
        Self::checked(inputs, self.outputs.clone(), bases)
    }

    fn permute_outputs_to(&self, target: &[DimBits]) -> Result<Self, LayoutError> {
        if self.outputs.as_slice() == target {
            return Ok(self.clone());
        }
        let order = target.iter().map(|dim| dim.dim).collect::<SmallVec<[Dim; 4]>>();
        let permuted = self.permute_outputs(&order)?;
        if permuted.outputs.as_slice() != target {
            return Err(LayoutError::SizeMismatch {
                operation: "match the dimensions of two layouts",
                expected: 1 << total_bits(target),
                actual: 1 << self.total_output_bits(),
            });
        }
        Ok(permuted)
    }

    /// The same map to other output dimensions of the same total size: flattens the outputs, minor
    /// first, and cuts them anew.
    ///
    /// # Errors
    /// When the total sizes differ or a dimension is named twice.
    pub(crate) fn reshape_outputs(&self, outputs: &[(Dim, u32)]) -> Result<Self, LayoutError> {
        let outputs = same_size_dims(&self.outputs, outputs)?;
        Self::checked(self.inputs.clone(), outputs, self.bases.clone())
    }

    /// The same map with each output narrowed to the given number of low bits; bases that lie
    /// outside become zero, so what pointed outside repeats what is inside.
    ///
    /// # Errors
    /// When an output is unknown or named twice.
    pub(crate) fn crop_outputs(&self, outputs: &[(Dim, u32)]) -> Result<Self, LayoutError> {
        let narrowed: Dims = outputs.iter().map(|&(dim, bits)| DimBits { dim, bits }).collect();
        if let Some(unknown) = narrowed.iter().find(|dim| find(&self.outputs, dim.dim).is_none()) {
            return Err(LayoutError::UnknownDim(unknown.dim));
        }
        let bases = self
            .bases
            .iter()
            .map(|&basis| repack(basis, &self.outputs, &narrowed, |_| 0))
            .collect();
        Self::checked(self.inputs.clone(), narrowed, bases)
    }

    /// The same layout with the bits of `input` kept where `keep` has a set bit, dropped elsewhere.
    pub(crate) fn retain_input_bits(&self, input: Dim, keep: u32) -> Self {
        let mut inputs = self.inputs.clone();
        let mut bases = SmallVec::new();
        for dim in &mut inputs {
            let own = self.bases(dim.dim);
            if dim.dim != input {
                bases.extend_from_slice(own);
                continue;
            }
            let kept = f2::bits(u64::from(keep)).filter_map(|bit| own.get(bit as usize)).copied();
            let before = bases.len();
            bases.extend(kept);
            dim.bits = (bases.len() - before) as u32;
        }
        Self { inputs, outputs: self.outputs.clone(), bases }
    }

    /// The same layout with two of its [bases](Self::packed_bases) exchanged.
    pub(crate) fn exchange_bases(&self, a: usize, b: usize) -> Self {
        let mut exchanged = self.clone();
        exchanged.bases.swap(a, b);
        exchanged
    }
}

/// Where one dimension's index sits in a packed word.
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    bits: u32,
}

impl Field {
    /// The field of `dim`; empty when `dims` lacks it.
    fn of(dims: &[DimBits], dim: Dim) -> Self {
        find(dims, dim).map_or(Field { shift: 0, bits: 0 }, |(shift, bits)| Field { shift, bits })
    }

    fn extract(self, packed: u64) -> u32 {
        (packed >> self.shift & f2::low_mask(self.bits)) as u32
    }

    fn insert(self, index: u64) -> u64 {
        (index & f2::low_mask(self.bits)) << self.shift
    }
}

/// The bit position and the width of `dim` in a packed word.
fn find(dims: &[DimBits], dim: Dim) -> Option<(u32, u32)> {
    let at = dims.iter().position(|candidate| candidate.dim == dim)?;
    Some((total_bits(&dims[..at]), dims[at].bits))
}

fn total_bits(dims: &[DimBits]) -> u32 {
    dims.iter().map(|dim| dim.bits).sum()
}

/// log2 of a power of two; the error names the size as `what` does.
pub(crate) fn log2(size: usize, what: impl FnOnce() -> String) -> Result<u32, LayoutError> {
    if size.is_power_of_two() {
        Ok(size.trailing_zeros())
    } else {
        Err(LayoutError::NotPowerOfTwo { what: what(), size })
    }
}

/// Moves each field of `packed` from its place in `from` to its place in `to`, raised by `raise`
/// bits. Fields that `to` lacks are dropped.
fn repack(packed: u64, from: &[DimBits], to: &[DimBits], raise: impl Fn(Dim) -> u32) -> u64 {
    to.iter().fold(0, |image, dim| {
        let index = u64::from(Field::of(from, dim.dim).extract(packed));
        image | Field::of(to, dim.dim).insert(index << raise(dim.dim))
    })
}

/// Moves each field of `packed` from its place in `from` to its place in `to`, without its `skip`
/// lowest bits.
fn shift_down(packed: u64, from: &[DimBits], to: &[DimBits], skip: impl Fn(Dim) -> u32) -> u64 {
    to.iter().fold(0, |image, dim| {
        let index = u64::from(Field::of(from, dim.dim).extract(packed));
        image | Field::of(to, dim.dim).insert(index >> skip(dim.dim))
    })
}

/// The dimensions of a product: those of `low`, widened by `high`, then what only `high` has.
fn joined_dims(low: &[DimBits], high: &[DimBits]) -> Dims {
    let mut dims: Dims = low.into();
    for dim in high {
        match dims.iter_mut().find(|candidate| candidate.dim == dim.dim) {
            Some(shared) => shared.bits += dim.bits,
            None => dims.push(*dim),
        }
    }
    dims
}

/// The dimensions of a quotient: those of `dividend`, narrowed by `divisor`.
fn quotient_dims(dividend: &[DimBits], divisor: &[DimBits]) -> Option<Dims> {
    let known = divisor.iter().all(|dim| dim.bits == 0 || find(dividend, dim.dim).is_some());
    let narrowed = dividend.iter().map(|dim| {
        let bits = dim.bits.checked_sub(find(divisor, dim.dim).map_or(0, |(_, bits)| bits))?;
        Some(DimBits { dim: dim.dim, bits })
    });
    if known { narrowed.collect() } else { None }
}

fn select(dims: &[DimBits], names: &[Dim]) -> Result<Dims, LayoutError> {
    names
        .iter()
        .map(|&name| {
            dims.iter().find(|dim| dim.dim == name).copied().ok_or(LayoutError::UnknownDim(name))
        })
        .collect()
}

fn same_size_dims(old: &[DimBits], new: &[(Dim, u32)]) -> Result<Dims, LayoutError> {
    let new: Dims = new.iter().map(|&(dim, bits)| DimBits { dim, bits }).collect();
    let size = |bits: u64| if bits < 64 { 1 << bits } else { u64::MAX };
    let new_total = new.iter().map(|dim| u64::from(dim.bits)).sum::<u64>();
    if new_total != u64::from(total_bits(old)) {
        return Err(LayoutError::SizeMismatch {
            operation: "reshape",
            expected: size(total_bits(old).into()),
            actual: size(new_total),
        });
    }
    Ok(new)
}

impl fmt::Display for LinearLayout {
    /// One line per input bit: the input value, and its image with one index per output, tensor
    /// axes from 0 up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut order = self.outputs.clone();
        order.sort_by_key(|output| output.dim);
        for input in &self.inputs {
            if input.bits == 0 {
                writeln!(f, "{:<8} (one value)", input.dim)?;
            }
            for (bit, &basis) in self.bases(input.dim).iter().enumerate() {
                let image = order
                    .iter()
                    .map(|output| self.output_field(output.dim).extract(basis).to_string())
                    .collect::<Vec<_>>();
                writeln!(f, "{:<8} {:>4} -> ({})", input.dim, 1u64 << bit, image.join(", "))?;
            }
        }
        let sizes = order
            .iter()
            .map(|output| format!("{} of {}", output.dim, 1u64 << output.bits))
            .collect::<Vec<_>>();
        write!(f, "to {}", sizes.join(", "))
    }
}

impl fmt::Debug for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
