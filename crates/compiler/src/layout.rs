//! Where the elements of a tensor live: layouts as linear maps over F2.
//!
//! A program holds a tensor in the registers of its threads, and shares it through memory. Every
//! way of doing so is one type, [`LinearLayout`]: a map from the bits of a hardware location
//! (register, lane, warp, CTA; or the offset in shared memory) to the bits of a tensor index, in
//! which every output bit is an XOR of input bits. [Blocked](BlockedLayout),
//! [matrix](MmaLayout) and [shared memory](NvmmaSharedLayout) layouts are constructors into it, and
//! everything the compiler wants to know is computed from it.
//!
//! # A worked table
//!
//! A 4×8 tensor on one warp of 8 lanes, each thread with two neighbors of a row, lanes four to a
//! row (`size_per_thread = [1, 2]`, `threads_per_warp = [2, 4]`, `order = [1, 0]`), shown as
//! `lane:register`:
//!
//! ```text
//!          col 0   1     2   3     4   5     6   7
//! row 0    0:0  0:1    1:0  1:1   2:0  2:1   3:0  3:1
//! row 1    4:0  4:1    5:0  5:1   6:0  6:1   7:0  7:1
//! row 2    0:2  0:3    1:2  1:3   2:2  2:3   3:2  3:3
//! row 3    4:2  4:3    5:2  5:3   6:2  6:3   7:2  7:3
//! ```
//!
//! Five columns of bits say the same, as images of the powers of two in `(row, col)`:
//!
//! ```text
//! register    1 -> (0, 1)
//! register    2 -> (2, 0)
//! lane        1 -> (0, 2)
//! lane        2 -> (0, 4)
//! lane        4 -> (1, 0)
//! ```
//!
//! Lane 6 = 4 XOR 2, register 3 = 2 XOR 1 holds `(1,0) ^ (0,4) ^ (2,0) ^ (0,1) = (3, 5)`. The part
//! of the register is a constant of the generated code; the part of lane and warp is computed once
//! per tensor type. A basis of zero is a bit that repeats elements; a reduction along an axis
//! erases that axis from every image; a transpose renames the axes; a row-major reshape changes
//! nothing but the cuts between them.

//!
//! # What generated code asks
//!
//! | question | answer |
//! |---|---|
//! | registers per thread | [`elements_per_thread`](LinearLayout::elements_per_thread) |
//! | index of register `r` along an axis | [`offset_for_register`](LinearLayout::offset_for_register) XOR the [`lane_bases`](LinearLayout::lane_bases) and [`warp_bases`](LinearLayout::warp_bases) at the set bits of lane and warp |
//! | who stores when threads repeat elements | [`duplicates`](LinearLayout::duplicates): where none of these bits is set |
//! | vectors for global memory | [`vector_bits`](LinearLayout::vector_bits) |
//! | offsets in a shared buffer | [`invert_and_compose`](LinearLayout::invert_and_compose) with its layout, [`shared_access`](LinearLayout::shared_access), [`MatrixAccess`] |
//! | a reduction along an axis | [`reduction_bits`](LinearLayout::reduction_bits), then [`remove_axis`](LinearLayout::remove_axis) |
//! | a layout conversion | [`plan_conversion`] |

mod blocked;
mod convert;
mod error;
mod f2;
mod linear;
mod matrix_access;
mod mma;
mod report;
mod shared;
mod tensor;

pub use blocked::BlockedLayout;
pub(crate) use convert::plan_conversion;
pub use convert::{
    Choice, Conversion, RoundBits, SharedConversion, ShufflePlan, ShuffleStep, ThreadIndex,
    VectorAccess,
};
pub use error::LayoutError;
pub use linear::{Coordinates, Dim, DimBits, HardwarePoint, LinearLayout};
pub use matrix_access::MatrixAccess;
#[cfg(test)]
pub(crate) use mma::DotOperandLayout;
pub use mma::{MmaLayout, MmaVersion};
pub use report::{PlaceMasks, SharedAccess};
pub use shared::{NvmmaSharedLayout, SwizzledSharedLayout};

#[cfg(test)]
mod tests;
