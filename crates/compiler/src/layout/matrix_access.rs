//! Loads and stores of 8×8 matrices between shared memory and register fragments, by whole warps
//! (`ldmatrix`, `stmatrix`).
//!
//! The instruction moves up to four matrices of eight rows of 16 bytes. Lane `8m + i` gives the
//! address of row `i` of matrix `m`; lane `l` holds, of each matrix, the four bytes number `l % 4`
//! of row `l / 4`. Transposed (16-bit elements only) it holds elements `l / 4` of rows `2 (l % 4)`
//! and `2 (l % 4) + 1`. Whether a fragment fits is a question of which columns of the map from
//! fragment to offset are which powers of two.

use smallvec::SmallVec;

use super::convert::register_groups;
use super::f2;
use super::linear::{Dim, LinearLayout};
use super::report::SharedAccess;

/// The bytes of one matrix row.
const ROW_BYTES: usize = 16;
/// The bytes that one lane holds of each matrix.
const LANE_BYTES: usize = 4;
/// log2 of the most matrices that one instruction moves.
const MAX_MATRIX_BITS: usize = 2;

/// How a fragment is moved by matrix instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixAccess {
    /// Whether the `.trans` form is needed.
    pub transposed: bool,
    /// The register bits that count through the elements of one 32-bit register.
    pub packed_bits: SmallVec<[u32; 2]>,
    /// The register bits that count through the matrices of one instruction.
    pub matrix_bits: SmallVec<[u32; 2]>,
    /// What each bit of the lane contributes, by XOR, to the element offset of the row whose
    /// address it gives. The rest of the address is the offset of the instruction's first register
    /// in lane 0 of the warp.
    pub row_bases: SmallVec<[u32; 5]>,
    /// The cost of one instruction.
    pub cost: SharedAccess,
    register_bits: u32,
}

impl MatrixAccess {
    /// The matrix access of a fragment that lies in memory as `offsets` says, a map from
    /// (register, lane, warp) to element offset ([`Dim::Offset`]). `None` when the instructions
    /// cannot do it.
    pub fn of(offsets: &LinearLayout, element_bytes: usize) -> Option<Self> {
        let fits = element_bytes.is_power_of_two() && element_bytes <= LANE_BYTES;
        if !fits || offsets.bases(Dim::Lane).len() != 5 {
            return None;
        }
        Self::straight(offsets, element_bytes)
            .or_else(|| if element_bytes == 2 { Self::transposed(offsets) } else { None })
    }

    /// The form in which a lane's elements are neighbors of a row.
    fn straight(offsets: &LinearLayout, element_bytes: usize) -> Option<Self> {
        let (registers, lanes) = (offsets.bases(Dim::Register), offsets.bases(Dim::Lane));
        let packed = (LANE_BYTES / element_bytes) as u64;
        let packed_bits = (0..packed.trailing_zeros())
            .map(|bit| Some(registers.iter().position(|&basis| basis == 1 << bit)? as u32))
            .collect::<Option<SmallVec<[u32; 2]>>>()?;
        let in_row = lanes[0] == packed && lanes[1] == 2 * packed;
        let rows = [lanes[2], lanes[3], lanes[4]];
        in_row.then(|| Self::finish(offsets, element_bytes, false, packed_bits, rows)).flatten()
    }

    /// The form in which a lane's elements are neighbors of a column.
    fn transposed(offsets: &LinearLayout) -> Option<Self> {
        let (&first, lanes) = (offsets.bases(Dim::Register).first()?, offsets.bases(Dim::Lane));
        let in_row = lanes[2..] == [1, 2, 4];
        let rows = [first, lanes[0], lanes[1]];
        in_row.then(|| Self::finish(offsets, 2, true, SmallVec::from_slice(&[0]), rows)).flatten()
    }

    fn finish(
        offsets: &LinearLayout,
        element_bytes: usize,
        transposed: bool,
        packed_bits: SmallVec<[u32; 2]>,
        rows: [u64; 3],
    ) -> Option<Self> {
        let registers = offsets.bases(Dim::Register);
        let matrix_bits: SmallVec<[u32; 2]> = (0..registers.len() as u32)
            .filter(|bit| !packed_bits.contains(bit))
            .take(MAX_MATRIX_BITS)
            .collect();
        let within_row = (ROW_BYTES / element_bytes) as u64 - 1;
        let moving = offsets.packed_bases().iter().filter(|&offset| offset & within_row != 0);
        let rows_are_aligned = rows.iter().all(|row| row & within_row == 0);
        if !rows_are_aligned || moving.count() != within_row.count_ones() as usize {
            return None;
        }
        let matrices = matrix_bits.iter().map(|&bit| registers[bit as usize]);
        let mut row_bases: SmallVec<[u32; 5]> =
            rows.into_iter().chain(matrices).map(|offset| offset as u32).collect();
        row_bases.resize(5, 0);
        Some(Self {
            transposed,
            packed_bits,
            cost: SharedAccess::of_rows(&rows, element_bytes, ROW_BYTES, 1 << matrix_bits.len()),
            matrix_bits,
            row_bases,
            register_bits: registers.len() as u32,
        })
    }

    /// The registers of each instruction: the elements of the first matrix in their order, then
    /// those of the second, and so on.
    pub fn instructions(&self) -> Vec<SmallVec<[u32; 16]>> {
        let members: SmallVec<[u32; 4]> =
            self.packed_bits.iter().chain(&self.matrix_bits).copied().collect();
        register_groups(self.register_bits, &members)
    }
}

impl SharedAccess {
    /// The cost of `passes` passes, in each of which rows of `row_bytes` are accessed at the
    /// element offsets that `rows` span.
    fn of_rows(rows: &[u64], element_bytes: usize, row_bytes: usize, passes: usize) -> Self {
        let row_words = (row_bytes / Self::WORD_BYTES).trailing_zeros();
        let words = rows.iter().map(|row| row * element_bytes as u64 / Self::WORD_BYTES as u64);
        let words: SmallVec<[u64; 8]> = words.chain((0..row_words).map(|bit| 1 << bit)).collect();
        Self { wavefronts: passes * Self::words_per_bank(&words), least_wavefronts: passes }
    }

    /// The most words in one bank among all sums of `words`.
    pub(super) fn words_per_bank(words: &[u64]) -> usize {
        let distinct = f2::rank(words.iter().copied());
        let banks = f2::rank(words.iter().map(|word| word & (Self::BANKS as u64 - 1)));
        1 << (distinct - banks)
    }
}
