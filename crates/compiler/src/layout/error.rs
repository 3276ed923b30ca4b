//! Why a layout cannot be built or an operation on layouts has no answer.

use super::Dim;

/// Why a layout cannot be built or an operation on layouts has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A size is not a power of two, so no number of bits addresses it.
    #[error("{what} is {size}, but layouts need a power of two")]
    NotPowerOfTwo {
        /// Which size.
        what: String,
        /// Its value.
        size: usize,
    },
    /// Two descriptions disagree about the number of axes.
    #[error("{what} has {actual} entries, but the tensor has {expected} axes")]
    RankMismatch {
        /// Which list.
        what: &'static str,
        /// The rank asked for.
        expected: usize,
        /// The rank given.
        actual: usize,
    },
    /// A list that must name each axis once does not.
    #[error("{order:?} does not name each of its {} axes once", order.len())]
    NotPermutation {
        /// The list.
        order: Vec<usize>,
    },
    /// The tensor has fewer axes.
    #[error("there is no axis {axis} in a tensor of rank {rank}")]
    NoSuchAxis {
        /// The axis asked for.
        axis: usize,
        /// The number of axes.
        rank: usize,
    },
    /// A dimension is named that the layout does not have, or is named twice.
    #[error("the layout has no single dimension `{0}` to select")]
    UnknownDim(Dim),
    /// An operation needs equal sizes.
    #[error("cannot {operation}: {expected} elements are needed, {actual} are given")]
    SizeMismatch {
        /// The operation, as a verb phrase.
        operation: &'static str,
        /// The number of elements needed.
        expected: u64,
        /// The number of elements given.
        actual: u64,
    },
    /// A layout of one shape is used for a tensor of another.
    #[error("a layout of shape {expected:?} does not fit a tensor of shape {actual:?}")]
    ShapeMismatch {
        /// The shape of the layout.
        expected: Vec<usize>,
        /// The shape of the tensor.
        actual: Vec<usize>,
    },
    /// Some output is reached by no input.
    #[error("the layout does not reach every element, so it has no right inverse")]
    NotSurjective,
    /// Two inputs reach the same output.
    #[error("the layout reaches an element twice, so it has no two-sided inverse")]
    NotInjective,
    /// The image of one layout is not inside the image of the other.
    #[error("the layouts do not cover the same elements")]
    NotCovered,
    /// An index would have more bits than one machine word.
    #[error("an index of {0} bits is too large: at most 31 per dimension and 63 in total")]
    TooLarge(u32),
    /// A parameter is outside the values that the hardware has.
    #[error("{what} is {value}; {allowed}")]
    Unsupported {
        /// Which parameter.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The values that are possible, as a sentence.
        allowed: &'static str,
    },
}
