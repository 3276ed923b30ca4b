//! Distributed layouts by name, and the slices that reductions leave behind.

use super::LayoutError;
use super::blocked::BlockedLayout;
use super::linear::LinearLayout;
use super::mma::{DotOperandLayout, MmaLayout};

/// A way of spreading tensors of any shape over the threads of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DistributedLayout {
    /// Nested boxes of elements.
    Blocked(BlockedLayout),
    /// Another layout without one axis.
    Slice(SliceLayout),
    /// The accumulator of a matrix instruction.
    Mma(MmaLayout),
    /// An operand of a matrix instruction, in registers.
    DotOperand(DotOperandLayout),
    /// Bases given one by one; fits tensors of one shape only.
    Linear(LinearLayout),
}

impl DistributedLayout {
    /// The layout of a tensor of `shape`.
    ///
    /// # Errors
    /// When the layout does not fit the shape; see the constructors.
    pub fn to_linear(&self, shape: &[usize]) -> Result<LinearLayout, LayoutError> {
        match self {
            Self::Blocked(layout) => layout.to_linear(shape),
            Self::Slice(layout) => layout.to_linear(shape),
            Self::Mma(layout) => layout.to_linear(shape),
            Self::DotOperand(layout) => layout.to_linear(shape),
            Self::Linear(layout) if layout.shape().as_slice() == shape => Ok(layout.clone()),
            Self::Linear(layout) => Err(LayoutError::ShapeMismatch {
                expected: layout.shape().to_vec(),
                actual: shape.to_vec(),
            }),
        }
    }

    /// The layout of a tensor that lacks axis `dim` of tensors in this layout.
    pub fn slice(self, dim: usize) -> Self {
        Self::Slice(SliceLayout { dim, parent: Box::new(self) })
    }
}

/// The layout of a tensor that [`expand_dims`](LinearLayout::expand_dims) at `dim` turns into one
/// in the layout `parent`, and that a reduction along `dim` makes of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SliceLayout {
    /// The axis of `parent` that is missing here.
    pub dim: usize,
    /// The layout with the axis.
    pub parent: Box<DistributedLayout>,
}

impl SliceLayout {
    /// The layout of a tensor of `shape`, which lacks axis `dim`. Threads that differ only along
    /// the missing axis repeat elements; registers that would are left out.
    ///
    /// # Errors
    /// When there is no such axis, or the parent does not fit.
    pub fn to_linear(&self, shape: &[usize]) -> Result<LinearLayout, LayoutError> {
        if self.dim > shape.len() {
            return Err(LayoutError::NoSuchAxis { axis: self.dim, rank: shape.len() + 1 });
        }
        let mut with_axis = shape.to_vec();
        with_axis.insert(self.dim, 1);
        let sliced = self.parent.to_linear(&with_axis)?.remove_axis(self.dim)?;
        Ok(sliced.without_free_registers())
    }
}
