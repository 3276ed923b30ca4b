//! Register fragments of NVIDIA's matrix instructions.
//!
//! The tables of the PTX manual ("Matrix Fragments for mma.m16n8k16", "Register Fragments for
//! wgmma.mma_async") all have one form: four neighboring lanes share a row, eight groups of lanes
//! make eight rows, and registers repeat that pattern. In bits, for the 16×8 accumulator:
//!
//! ```text
//! register  1 -> (0, 1)     lane  1 -> (0, 2)     lane  4 -> (1, 0)
//! register  2 -> (8, 0)     lane  2 -> (0, 4)     lane  8 -> (2, 0)
//!                                                 lane 16 -> (4, 0)
//! ```

use smallvec::{SmallVec, smallvec};

use super::LayoutError;
use super::linear::{Coordinates, Dim, LinearLayout, log2};
use super::tensor::{axis_bits, axis_dim, fit_to_shape};

/// The rows of the accumulator that one warp owns per instruction, in every generation.
const ROWS_PER_WARP: usize = 16;
/// The columns of one `mma.sync` accumulator.
const MMA_COLUMNS: usize = 8;
/// The widest accumulator of `wgmma`.
const MAX_WGMMA_COLUMNS: usize = 256;
/// The warps that issue one `wgmma` together, 16 rows each.
const WARPS_PER_GROUP: usize = 4;

/// A family of matrix instructions, which fixes the shape of one instruction's accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MmaVersion {
    /// `mma.sync`, 16×8 per warp (sm_75 and later).
    V2,
    /// `wgmma.mma_async`, 64×`columns` per warp group of four warps (sm_90).
    V3 {
        /// The columns of one instruction, a power of two from 8 to 256.
        columns: usize,
    },
}

/// The accumulator of matrix products: the last two axes are rows and columns, axes before them
/// count independent products.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MmaLayout {
    /// The instruction.
    pub version: MmaVersion,
    /// How warps tile the result, one entry per axis. `V3` needs a multiple of four along rows.
    pub warps_per_cta: SmallVec<[usize; 4]>,
}

impl MmaLayout {
    /// The `mma.sync` accumulator for a result of `shape` (`[rows, columns]`): warps split the
    /// longer side of the part that each owns, as operand traffic grows with the sum of the sides.
    /// With `keep_rows` (the result is the left operand of another product, or is reduced along
    /// columns) they split rows only, as long as there are rows to split.
    ///
    /// # Errors
    /// When a size is not a power of two.
    pub(crate) fn v2_for(
        shape: [usize; 2],
        num_warps: usize,
        keep_rows: bool,
    ) -> Result<Self, LayoutError> {
        let [rows, columns] = check_matrix(shape, num_warps)?;
        let mut warps = [1, 1];
        while warps[0] * warps[1] < num_warps {
            let own = [rows / warps[0], columns / warps[1]];
            let can_split_rows = own[0] > ROWS_PER_WARP;
            let can_split_columns = own[1] > MMA_COLUMNS;
            let split_rows =
                can_split_rows && (keep_rows || own[0] >= own[1] || !can_split_columns);
            warps[usize::from(!split_rows)] *= 2;
        }
        Ok(Self { version: MmaVersion::V2, warps_per_cta: warps.as_slice().into() })
    }

    /// The `wgmma` accumulator for a result of `shape` (`[rows, columns]`): warp groups split rows
    /// while there are 64 for each, then columns; instructions are as wide as they can be.
    ///
    /// # Errors
    /// When a size is not a power of two, or `num_warps` is not a multiple of four.
    pub fn v3_for(shape: [usize; 2], num_warps: usize) -> Result<Self, LayoutError> {
        let [rows, columns] = check_matrix(shape, num_warps)?;
        if !num_warps.is_multiple_of(WARPS_PER_GROUP) {
            return Err(LayoutError::Unsupported {
                what: "num_warps",
                value: num_warps,
                allowed: "wgmma needs a multiple of 4",
            });
        }
        let groups = num_warps / WARPS_PER_GROUP;
        let row_groups = groups.min((rows / (ROWS_PER_WARP * WARPS_PER_GROUP)).max(1));
        let column_warps = groups / row_groups;
        let own_columns = (columns / column_warps).clamp(MMA_COLUMNS, MAX_WGMMA_COLUMNS);
        Ok(Self {
            version: MmaVersion::V3 { columns: own_columns },
            warps_per_cta: smallvec![row_groups * WARPS_PER_GROUP, column_warps],
        })
    }

    /// The layout of a result of `shape`.
    ///
    /// # Errors
    /// When a size is not a power of two, the rank does not fit or is below two, or the
    /// instruction does not exist.
    pub(crate) fn to_linear(&self, shape: &[usize]) -> Result<LinearLayout, LayoutError> {
        self.check()?;
        let (rows, columns) = self.matrix_axes(shape)?;
        let width = match self.version {
            MmaVersion::V2 => MMA_COLUMNS,
            MmaVersion::V3 { columns } => columns,
        };
        let tile = product(&[
            (2, Dim::Register, columns),
            (4, Dim::Lane, columns),
            (8, Dim::Lane, rows),
            (2, Dim::Register, rows),
            (width / MMA_COLUMNS, Dim::Register, columns),
        ])?;
        let tile = tile.product(&self.warps(None)?)?;
        fit_to_shape(&tile, shape, Dim::Register, &minor_first(shape.len()))
    }

    /// How warps are dealt over the axes; along `shared` they all see the same elements.
    fn warps(&self, shared: Option<usize>) -> Result<LinearLayout, LayoutError> {
        let rank = self.warps_per_cta.len();
        let mut order = minor_first(rank);
        if matches!(self.version, MmaVersion::V3 { .. }) {
            order.swap(0, 1); // A warp group is four consecutive warps along the rows.
        }
        let mut warps = LinearLayout::empty();
        for axis in order {
            let (count, dim) = (self.warps_per_cta[axis], axis_dim(axis)?);
            let along = match shared {
                Some(shared) if shared == axis => LinearLayout::zeros1d(count, Dim::Warp, dim)?,
                _ => LinearLayout::identity1d(count, Dim::Warp, dim)?,
            };
            warps = warps.product(&along)?;
        }
        Ok(warps)
    }

    /// The axes of rows and columns, after checking that the rank fits `shape`.
    fn matrix_axes(&self, shape: &[usize]) -> Result<(usize, usize), LayoutError> {
        let rank = self.warps_per_cta.len();
        if shape.len() != rank {
            return Err(LayoutError::RankMismatch {
                what: "warps_per_cta",
                expected: shape.len(),
                actual: rank,
            });
        }
        Ok((rank - 2, rank - 1))
    }

    fn check(&self) -> Result<(), LayoutError> {
        let rank = self.warps_per_cta.len();
        if rank < 2 {
            return Err(LayoutError::RankMismatch {
                what: "warps_per_cta",
                expected: 2,
                actual: rank,
            });
        }
        for (axis, &warps) in self.warps_per_cta.iter().enumerate() {
            log2(warps, || format!("warps_per_cta[{axis}]"))?;
        }
        let MmaVersion::V3 { columns } = self.version else { return Ok(()) };
        log2(columns, || "the instruction's columns".into())?;
        if !(MMA_COLUMNS..=MAX_WGMMA_COLUMNS).contains(&columns) {
            return Err(LayoutError::Unsupported {
                what: "the instruction's columns",
                value: columns,
                allowed: "wgmma has 8 to 256",
            });
        }
        if !self.warps_per_cta[rank - 2].is_multiple_of(WARPS_PER_GROUP) {
            return Err(LayoutError::Unsupported {
                what: "the number of warps along the rows",
                value: self.warps_per_cta[rank - 2],
                allowed: "wgmma needs a multiple of 4",
            });
        }
        Ok(())
    }
}

/// An operand of a matrix product by the table of the instruction that reads it: what tests compare
/// [`mma_operand`](LinearLayout::mma_operand) with.
#[cfg(test)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DotOperandLayout {
    /// 0 for the left operand (rows × k), 1 for the right one (k × columns).
    pub operand: usize,
    /// The accumulator's layout.
    pub parent: MmaLayout,
    /// The neighbors along k in one thread: 32 bits' worth for one instruction per step.
    pub k_width: usize,
}

#[cfg(test)]
impl DotOperandLayout {
    /// The layout of an operand of `shape`. Warps that share rows (or columns) repeat elements.
    ///
    /// # Errors
    /// When a size is not a power of two, the rank does not fit, or the instruction does not read
    /// that operand from registers (the right operand of `wgmma`).
    pub(crate) fn to_linear(&self, shape: &[usize]) -> Result<LinearLayout, LayoutError> {
        self.parent.check()?;
        log2(self.k_width, || "k_width".into())?;
        let (rows, columns) = self.parent.matrix_axes(shape)?;
        let outer_and_k = match (self.operand, self.parent.version) {
            (0, _) => (rows, columns),
            (1, MmaVersion::V2) => (columns, rows),
            (operand, _) => {
                return Err(LayoutError::Unsupported {
                    what: "the operand number",
                    value: operand,
                    allowed: "registers feed operands 0 and 1 of mma.sync and operand 0 of wgmma",
                });
            }
        };
        let (outer, k) = outer_and_k;
        let outer_repeats = if self.operand == 0 { ROWS_PER_WARP / 8 } else { 1 };
        let tile = product(&[
            (self.k_width, Dim::Register, k),
            (4, Dim::Lane, k),
            (8, Dim::Lane, outer),
            (outer_repeats, Dim::Register, outer),
            (2, Dim::Register, k),
        ])?;
        let tile = tile.product(&self.parent.warps(Some(k))?)?;
        let mut order = minor_first(shape.len());
        order.retain(|&mut axis| axis != k);
        order.insert(0, k);
        fit_to_shape(&tile, shape, Dim::Register, &order)
    }
}

impl LinearLayout {
    /// The layout in which `mma.sync` reads an operand (0 the left one, 1 the right one) of extent
    /// `k`, for the accumulator in this layout; `k_width` is how many neighbors along k one thread
    /// has side by side: 32 bits' worth for one instruction per step.
    ///
    /// The registers of one instruction come first, then those of the next rows or columns, and the
    /// steps along k last, as products are computed.
    ///
    /// # Errors
    /// When a size is not a power of two or the layout is not a matrix.
    pub fn mma_operand(
        &self,
        operand: usize,
        k_width: usize,
        k: usize,
    ) -> Result<Self, LayoutError> {
        let sides = self.operand_sides(operand, k)?;
        log2(k_width, || "k_width".into())?;
        let k_bits = |from: usize, to: usize| {
            let steps = (from.trailing_zeros()..to.trailing_zeros()).map(|bit| 1 << bit);
            steps.map(|step| sides.along_k(step)).collect::<Vec<_>>()
        };
        let own = |input| sides.own(self, input);
        // Eight rows or columns of an operand are spread over lanes, whatever the accumulator does
        // with them; the other eight rows of the left one belong to the same instruction.
        let next_eight = |image: &Coordinates| image[sides.own_axis] as usize == MMA_COLUMNS;
        let (halves, repeats): (Vec<_>, Vec<_>) = own(Dim::Register)
            .into_iter()
            .filter(|image| image[sides.own_axis] as usize >= MMA_COLUMNS || sides.is_batch(image))
            .partition(|image| operand == 0 && next_eight(image));
        let instruction = 8 * k_width;
        let registers = [
            k_bits(1, k_width),
            halves,
            k_bits(instruction / 2, instruction),
            repeats,
            k_bits(instruction, k),
        ];
        let lanes_of_own = (0..3).map(|bit| sides.along_own(1 << bit));
        let lanes = k_bits(k_width, 4 * k_width).into_iter().chain(lanes_of_own).collect();
        sides.layout(registers.concat(), lanes, own(Dim::Warp))
    }

    /// The layout of an operand of a product without matrix units, for the accumulator in this
    /// layout: each thread holds all of k for the rows (or columns) that it has results in.
    ///
    /// # Errors
    /// As [`mma_operand`](Self::mma_operand).
    pub fn multiply_add_operand(&self, operand: usize, k: usize) -> Result<Self, LayoutError> {
        let sides = self.operand_sides(operand, k)?;
        let mut registers: Vec<_> =
            (0..k.trailing_zeros()).map(|bit| sides.along_k(1 << bit)).collect();
        let own = |input| sides.own(self, input);
        registers
            .extend(own(Dim::Register).into_iter().filter(|image| image.iter().any(|&i| i != 0)));
        sides.layout(registers, own(Dim::Lane), own(Dim::Warp))
    }

    fn operand_sides(&self, operand: usize, k: usize) -> Result<OperandSides, LayoutError> {
        let rank = self.rank();
        if rank < 2 {
            return Err(LayoutError::RankMismatch { what: "a product", expected: 2, actual: rank });
        }
        log2(k, || "the extent of k".into())?;
        let axes = (rank - 2, rank - 1);
        let (own_axis, k_axis) = if operand == 0 { axes } else { (axes.1, axes.0) };
        let mut shape = self.shape();
        shape[k_axis] = k;
        Ok(OperandSides { shape, own_axis, k_axis })
    }
}

/// An operand's axes: one that the result has too, and k in the place of the other.
struct OperandSides {
    shape: SmallVec<[usize; 4]>,
    own_axis: usize,
    k_axis: usize,
}

impl OperandSides {
    fn along(&self, axis: usize, step: usize) -> Coordinates {
        let mut image: Coordinates = SmallVec::from_elem(0, self.shape.len());
        // Lanes beyond a small operand repeat what is inside.
        image[axis] = if step < self.shape[axis] { step as u32 } else { 0 };
        image
    }

    fn along_k(&self, step: usize) -> Coordinates {
        self.along(self.k_axis, step)
    }

    fn along_own(&self, step: usize) -> Coordinates {
        self.along(self.own_axis, step)
    }

    /// Whether a bit moves along a leading axis.
    fn is_batch(&self, image: &Coordinates) -> bool {
        image[..self.shape.len() - 2].iter().any(|&index| index != 0)
    }

    /// The images of an input's bits in the accumulator, without the axis that the operand lacks.
    fn own(&self, accumulator: &LinearLayout, input: Dim) -> Vec<Coordinates> {
        let bits = accumulator.bases(input).iter().map(|&basis| {
            let mut image = accumulator.unpack(basis);
            image[self.k_axis] = 0;
            image
        });
        bits.collect()
    }

    fn layout(
        &self,
        registers: Vec<Coordinates>,
        lanes: Vec<Coordinates>,
        warps: Vec<Coordinates>,
    ) -> Result<LinearLayout, LayoutError> {
        let inputs = [
            (Dim::Register, registers.len() as u32),
            (Dim::Lane, lanes.len() as u32),
            (Dim::Warp, warps.len() as u32),
        ];
        let pack = |image: Coordinates| {
            image
                .iter()
                .zip(&self.shape)
                .fold(0, |packed, (&index, &size)| packed * size as u64 + u64::from(index))
        };
        let images = registers.into_iter().chain(lanes).chain(warps).map(pack);
        LinearLayout::new(&inputs, &axis_bits(&self.shape)?, images)
    }
}

/// The product of identities given as `(size, input, axis)`.
fn product(factors: &[(usize, Dim, usize)]) -> Result<LinearLayout, LayoutError> {
    factors.iter().try_fold(LinearLayout::empty(), |product, &(size, input, axis)| {
        product.product(&LinearLayout::identity1d(size, input, axis_dim(axis)?)?)
    })
}

fn minor_first(rank: usize) -> SmallVec<[usize; 4]> {
    (0..rank).rev().collect()
}

fn check_matrix(shape: [usize; 2], num_warps: usize) -> Result<[usize; 2], LayoutError> {
    log2(shape[0], || "the number of rows".into())?;
    log2(shape[1], || "the number of columns".into())?;
    log2(num_warps, || "num_warps".into())?;
    Ok(shape)
}
