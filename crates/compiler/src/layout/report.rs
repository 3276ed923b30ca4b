//! What a layout costs: vector widths, bank conflicts, and which parts of the machine a reduction
//! crosses. All are ranks of a few columns.

use smallvec::SmallVec;

use super::f2;
use super::linear::{Dim, LinearLayout};
use super::tensor::axis_dim;

/// One load or store instruction of a warp on shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedAccess {
    /// The passes over the banks that the instruction takes.
    pub wavefronts: usize,
    /// The passes that it would take without conflicts: one per 128 bytes that 32 threads with
    /// vectors of this size move.
    pub least_wavefronts: usize,
}

impl SharedAccess {
    /// The bytes of one bank of shared memory.
    pub(super) const WORD_BYTES: usize = 4;
    /// The number of banks.
    pub(super) const BANKS: usize = 32;

    /// The cost of moving vectors of `vector_elements` elements of `element_bytes`.
    ///
    /// `offsets` maps (register, lane, warp) to the element offset ([`Dim::Offset`]); the vector's
    /// offsets are consecutive and aligned. Vectors of 8 or 16 bytes take a half or a quarter of
    /// the warp at a time. Within a pass, lanes that access the same word do not conflict.
    pub fn of(offsets: &LinearLayout, element_bytes: usize, vector_elements: usize) -> Self {
        let vector_words = (element_bytes * vector_elements / Self::WORD_BYTES).max(1);
        let lane_bits = (Self::BANKS / vector_words).max(1).trailing_zeros() as usize;
        let word = |offset: u64| offset * element_bytes as u64 / Self::WORD_BYTES as u64;
        let words: SmallVec<[u64; 8]> = offsets
            .bases(Dim::Lane)
            .iter()
            .take(lane_bits)
            .map(|&offset| word(offset))
            .chain((0..vector_words.trailing_zeros()).map(|bit| 1 << bit))
            .collect();
        let wavefronts = vector_words * Self::words_per_bank(&words);
        Self { wavefronts, least_wavefronts: vector_words }
    }

    /// How many times longer the instruction takes than without bank conflicts.
    pub(crate) fn conflict_degree(&self) -> usize {
        self.wavefronts / self.least_wavefronts
    }
}

/// The bits of a hardware place over which the elements of one axis are spread, as masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlaceMasks {
    /// Bits of the register number.
    pub register: u32,
    /// Bits of the lane.
    pub lane: u32,
    /// Bits of the warp.
    pub warp: u32,
    /// Bits of the CTA.
    pub cta: u32,
}

impl LinearLayout {
    /// The [free bits](Self::free_bits) of every part of a hardware place. A store or an atomic
    /// must be done only where none of them is set.
    pub fn duplicates(&self) -> PlaceMasks {
        self.place_masks(|dim| self.free_bits(dim))
    }

    /// The bits that a reduction along `axis` must combine over, each once: registers within the
    /// thread, lanes by butterfly shuffles (`shfl.sync.bfly` by each single bit), warps through
    /// shared memory. Bits that only repeat elements are not among them. Afterwards every place
    /// holds the result as [`remove_axis`](Self::remove_axis) says.
    ///
    /// `None` when there is no such axis or some bit moves along it and another axis at once, as in
    /// a swizzled layout; the tensor must then be converted first.
    pub fn reduction_bits(&self, axis: usize) -> Option<PlaceMasks> {
        let along = self.axis_mask(axis)?;
        let separate =
            self.packed_bases().iter().all(|basis| basis & along == 0 || basis & !along == 0);
        separate.then(|| {
            self.place_masks(|dim| {
                let moves = self.bases(dim).iter().enumerate();
                let moving = moves.filter(|(_, basis)| *basis & along != 0);
                moving.fold(0, |mask, (bit, _)| mask | 1 << bit) & !self.free_bits(dim)
            })
        })
    }

    /// The bits that lead from each element to the one as far from the other end of `axis`, as XOR: all that move
    /// along it, each once. `None` as for reductions, and where bits do not move by a power of two each.
    pub fn mirror_bits(&self, axis: usize) -> Option<PlaceMasks> {
        let bits = self.reduction_bits(axis)?;
        let places = [
            (Dim::Register, bits.register),
            (Dim::Lane, bits.lane),
            (Dim::Warp, bits.warp),
            (Dim::Cta, bits.cta),
        ];
        let inputs = places.map(|(dim, mask)| (dim, mask as usize));
        (Some(self.apply_packed(self.pack_input(&inputs))) == self.axis_mask(axis)).then_some(bits)
    }

    fn place_masks(&self, mask: impl Fn(Dim) -> u32) -> PlaceMasks {
        PlaceMasks {
            register: mask(Dim::Register),
            lane: mask(Dim::Lane),
            warp: mask(Dim::Warp),
            cta: mask(Dim::Cta),
        }
    }

    /// The bits of the packed index that belong to `axis`.
    fn axis_mask(&self, axis: usize) -> Option<u64> {
        let dim = axis_dim(axis).ok()?;
        let at = self.outputs().iter().position(|output| output.dim == dim)?;
        let shift: u32 = self.outputs()[..at].iter().map(|output| output.bits).sum();
        Some(f2::low_mask(self.outputs()[at].bits) << shift)
    }

    /// The register bits that count, lowest first, through neighbors along `axis` which each
    /// thread holds: `k` bits mean vectors of `2^k` elements, aligned to their size.
    pub fn vector_bits(&self, axis: usize) -> SmallVec<[u32; 4]> {
        let mut bits = SmallVec::new();
        let Some(mask) = self.axis_mask(axis) else { return bits };
        let unit = mask & mask.wrapping_neg();
        let registers = self.bases(Dim::Register);
        for at in 0..mask.count_ones() {
            let step = unit << at;
            let users = self.packed_bases().iter().filter(|&basis| basis & step != 0).count();
            match registers.iter().position(|&basis| basis == step) {
                Some(bit) if users == 1 => bits.push(bit as u32),
                _ => break,
            }
        }
        bits
    }

    /// The neighbors along `axis` that each thread holds; see [`vector_bits`](Self::vector_bits).
    pub fn contiguous_per_thread(&self, axis: usize) -> usize {
        1 << self.vector_bits(axis).len()
    }

    /// The cost of accessing a tensor in this layout in a buffer of shared memory whose elements
    /// are laid out by `buffer` ([`Dim::Offset`] to axes), with the widest vectors, up to 16
    /// bytes, that the two allow. `None` when the buffer does not hold the tensor.
    pub fn shared_access(
        &self,
        buffer: &LinearLayout,
        element_bytes: usize,
    ) -> Option<(SmallVec<[u32; 4]>, SharedAccess)> {
        let element_bytes = element_bytes.max(1);
        let offsets = self.invert_and_compose(buffer).ok()?;
        let flat = offsets.reshape_outputs(&[(Dim::Axis(0), offsets.total_output_bits())]).ok()?;
        let mut vector = flat.vector_bits(0);
        vector.truncate((16 / element_bytes).max(1).ilog2() as usize);
        let access = SharedAccess::of(&offsets, element_bytes, 1 << vector.len());
        Some((vector, access))
    }
}
