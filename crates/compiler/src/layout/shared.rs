//! Shared memory layouts: maps from the element's offset in a buffer to its tensor index.
//!
//! Shared memory has 32 banks of four bytes; a warp that touches two words of one bank waits for
//! both. Swizzles XOR some row bits into the column bits, so that a column of the tensor is spread
//! over the banks while rows stay whole.

use smallvec::SmallVec;

use super::LayoutError;
use super::linear::{Dim, LinearLayout, log2};
use super::tensor::{axis_dim, check_permutation, fit_to_shape};

/// Row `r`, column `c` is kept at column `((c / vec) ^ ((r / per_phase) % max_phase)) * vec + c %
/// vec` of row `r`, where columns run along `order[0]` and rows along `order[1]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SwizzledSharedLayout {
    /// The neighbors that stay together.
    pub vec: usize,
    /// The consecutive rows that are permuted alike.
    pub per_phase: usize,
    /// The number of different permutations; 1 leaves rows as they are.
    pub max_phase: usize,
    /// The axes from the fastest varying to the slowest.
    pub order: SmallVec<[usize; 4]>,
}

impl SwizzledSharedLayout {
    /// Plain storage without a swizzle.
    pub fn plain(order: &[usize]) -> Self {
        Self { vec: 1, per_phase: 1, max_phase: 1, order: order.into() }
    }

    /// The map from element offset to tensor index for a tensor of `shape`.
    ///
    /// # Errors
    /// When a size or parameter is not a power of two or `order` is not a permutation.
    pub(crate) fn to_linear(&self, shape: &[usize]) -> Result<LinearLayout, LayoutError> {
        check_permutation(&self.order, shape.len())?;
        log2(self.vec, || "vec".into())?;
        log2(self.per_phase, || "per_phase".into())?;
        log2(self.max_phase, || "max_phase".into())?;
        let phase = |row: usize| (row / self.per_phase % self.max_phase).wrapping_mul(self.vec);
        rows_with_phase(shape, &self.order, phase)
    }
}

/// The storage of matrix operands that the tensor cores and the bulk copy engine of sm_90 share:
/// blocks of eight rows by `swizzle_bytes`, in which 16-byte chunks are permuted by the row.
/// Blocks are stacked along the rows first, then along the contiguous axis, as one bulk tensor
/// copy per column of blocks leaves them. Buffers must be aligned to 1024 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NvmmaSharedLayout {
    /// The width of a block: 32, 64 or 128 bytes, or 0 for blocks of one 16-byte chunk.
    pub swizzle_bytes: usize,
    /// Whether the contiguous axis is the second to last instead of the last.
    pub transposed: bool,
    /// The size of an element: 8, 16 or 32 bits.
    pub element_bits: usize,
}

/// The rows of one block.
const BLOCK_ROWS: usize = 8;
/// The chunk that swizzles move as a whole.
const CHUNK_BYTES: usize = 16;
/// The distance over which the hardware's address bits repeat: all banks once.
const BANK_LINE_BYTES: usize = 128;

impl NvmmaSharedLayout {
    /// The widest swizzle that a tensor of `shape` has room for.
    pub(crate) fn widest_for(shape: &[usize], transposed: bool, element_bits: usize) -> Self {
        let contiguous = shape.iter().rev().nth(usize::from(transposed)).copied().unwrap_or(1);
        let row_bytes = contiguous.saturating_mul(element_bits) / 8;
        let fits = [128, 64, 32].into_iter().find(|&bytes| row_bytes.is_multiple_of(bytes));
        let swizzle_bytes = if row_bytes == 0 { 0 } else { fits.unwrap_or(0) };
        Self { swizzle_bytes, transposed, element_bits }
    }

    /// The storage that `layout` is, if it is one of these, swizzled, of a matrix of `shape`.
    pub fn of(layout: &LinearLayout, shape: &[usize], element_bits: usize) -> Option<Self> {
        let candidates = [false, true].into_iter().flat_map(|transposed| {
            [128, 64, 32].map(|swizzle_bytes| Self { swizzle_bytes, transposed, element_bits })
        });
        candidates.into_iter().find(|storage| storage.to_linear(shape).is_ok_and(|l| l == *layout))
    }

    /// The distance in bytes from a block to the next one along the rows: the *stride byte offset*
    /// of a `wgmma` descriptor whose operand has k along the contiguous axis.
    pub fn row_block_stride(&self) -> usize {
        BLOCK_ROWS * self.swizzle_bytes.max(CHUNK_BYTES)
    }

    /// The distance in bytes from a block to the next one along the contiguous axis, for a matrix
    /// of `rows` rows.
    pub fn column_block_stride(&self, rows: usize) -> usize {
        rows.saturating_mul(self.swizzle_bytes.max(CHUNK_BYTES))
    }

    /// The map from element offset to tensor index for a tensor of `shape`, whose last two axes
    /// are the matrix.
    ///
    /// # Errors
    /// When a size is not a power of two, the swizzle or the element size does not exist, or the
    /// matrix is smaller than one block.
    pub(crate) fn to_linear(self, shape: &[usize]) -> Result<LinearLayout, LayoutError> {
        self.check()?;
        let rank = shape.len();
        if rank < 2 {
            return Err(LayoutError::RankMismatch { what: "the shape", expected: 2, actual: rank });
        }
        let (row_axis, column_axis) =
            if self.transposed { (rank - 1, rank - 2) } else { (rank - 2, rank - 1) };
        let chunk = CHUNK_BYTES * 8 / self.element_bits;
        let columns = self.swizzle_bytes.max(CHUNK_BYTES) * 8 / self.element_bits;
        for (what, have, need) in [
            ("the number of rows", shape[row_axis], BLOCK_ROWS),
            ("the length of a row", shape[column_axis], columns),
        ] {
            if have < need {
                let allowed = "it must hold a whole block of the swizzle";
                return Err(LayoutError::Unsupported { what, value: have, allowed });
            }
        }
        let per_phase = (BANK_LINE_BYTES / self.swizzle_bytes.max(CHUNK_BYTES)).min(BLOCK_ROWS);
        let max_phase = BLOCK_ROWS / per_phase;
        let block = rows_with_phase(&[BLOCK_ROWS, columns], &[1, 0], |row| {
            chunk * (row / per_phase % max_phase)
        })?;
        let bits = |size: usize| size.trailing_zeros();
        let matrix = block.reshape_outputs(&[
            (axis_dim(column_axis)?, bits(columns)),
            (axis_dim(row_axis)?, bits(BLOCK_ROWS)),
        ])?;
        let mut order = SmallVec::<[usize; 4]>::from_slice(&[row_axis, column_axis]);
        order.extend((0..rank - 2).rev());
        let unit = |axis| LinearLayout::zeros1d(1, Dim::Offset, axis_dim(axis)?);
        let tile = (0..rank - 2).try_fold(matrix, |tile, axis| tile.product(&unit(axis)?))?;
        fit_to_shape(&tile, shape, Dim::Offset, &order)
    }

    fn check(&self) -> Result<(), LayoutError> {
        if ![0, 32, 64, 128].contains(&self.swizzle_bytes) {
            return Err(LayoutError::Unsupported {
                what: "swizzle_bytes",
                value: self.swizzle_bytes,
                allowed: "the hardware has 0, 32, 64 and 128",
            });
        }
        if ![8, 16, 32].contains(&self.element_bits) {
            return Err(LayoutError::Unsupported {
                what: "element_bits",
                value: self.element_bits,
                allowed: "matrix operands have 8, 16 or 32",
            });
        }
        Ok(())
    }
}

/// Storage axis by axis in `order`, in which row `r` (along `order[1]`) has its column index XORed
/// with `phase(r)`, cut to the row. `phase` must be linear over F2.
fn rows_with_phase(
    shape: &[usize],
    order: &[usize],
    phase: impl Fn(usize) -> usize,
) -> Result<LinearLayout, LayoutError> {
    let mut outputs = SmallVec::<[(Dim, u32); 4]>::new();
    for &axis in order {
        outputs.push((axis_dim(axis)?, log2(shape[axis], || format!("the size of axis {axis}"))?));
    }
    let total = outputs.iter().map(|&(_, bits)| bits).sum();
    if total > 63 {
        return Err(LayoutError::TooLarge(total));
    }
    let column_bits = outputs.first().map_or(0, |&(_, bits)| bits);
    let row_bits = outputs.get(1).map_or(0, |&(_, bits)| bits);
    let bases = (0..total).map(|bit| {
        let is_row = (column_bits..column_bits + row_bits).contains(&bit);
        let swizzle = if is_row { phase(1 << (bit - column_bits)) } else { 0 };
        1u64 << bit | swizzle as u64 & ((1 << column_bits) - 1)
    });
    let stored = LinearLayout::new(&[(Dim::Offset, total)], &outputs, bases)?;
    let axes = (0..shape.len()).rev().map(axis_dim).collect::<Result<SmallVec<[Dim; 4]>, _>>()?;
    stored.permute_outputs(&axes)
}
