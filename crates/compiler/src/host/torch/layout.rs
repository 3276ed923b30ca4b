//! The order in memory that PyTorch gives to what it makes element by element.

use crate::host::torch::sizes::{all_known, dims};
use crate::host::torch::views;
use crate::host::value::{Tensor, Value};

/// Strides of a new tensor of this shape that is made of these, element by element, which are none of a
/// contiguous one; `None` where that is not known. Source: `TensorIteratorBase` of PyTorch, `fast_set_up`
/// and `reorder_dimensions`.
pub(crate) fn elementwise(shape: &[Value], operands: &[&Tensor]) -> Option<Option<Vec<Value>>> {
    let sizes = all_known(shape)?;
    let is_plain = |tensor: &&Tensor| {
        tensor.shape.as_deref() == Some(shape) && views::is_contiguous(tensor) == Some(true)
    };
    if operands.iter().all(is_plain) {
        return Some(None);
    }
    let steps = operands.iter().map(|tensor| steps(&sizes, tensor));
    let steps = steps.collect::<Option<Vec<Vec<i128>>>>()?;
    let axes = innermost_first(&sizes, &steps);
    if axes.iter().rev().copied().eq(0..sizes.len()) {
        return Some(None);
    }
    let mut strides = vec![Value::Int(None); sizes.len()];
    let mut next = 1;
    for axis in axes {
        strides[axis] = Value::Int(Some(next));
        next *= sizes[axis];
    }
    Some(Some(strides))
}

/// The strides of an operand along the axes of the result; none along those in which it is repeated.
fn steps(sizes: &[i128], tensor: &Tensor) -> Option<Vec<i128>> {
    let own = dims(tensor)?;
    let strides = all_known(&views::strides(tensor)?)?;
    let added = sizes.len().checked_sub(own.len())?;
    let along = own
        .iter()
        .zip(&strides)
        .zip(&sizes[added..])
        .map(|((own, stride), size)| if *own == 1 && *size != 1 { 0 } else { *stride });
    Some(std::iter::repeat_n(0, added).chain(along).collect())
}

/// The axes in the order of the operands' strides, which they are put into as far as one of them says so.
fn innermost_first(sizes: &[i128], steps: &[Vec<i128>]) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..sizes.len()).rev().collect();
    for start in 1..axes.len() {
        let mut at = start;
        for before in (0..start).rev() {
            match order(sizes, steps, axes[before], axes[at]) {
                Some(true) => axes.swap(before, at),
                Some(false) => break,
                None => continue,
            }
            at = before;
        }
    }
    axes
}

/// Whether the second of two axes is the inner one; `None` where no operand tells.
fn order(sizes: &[i128], steps: &[Vec<i128>], first: usize, second: usize) -> Option<bool> {
    steps.iter().find_map(|steps| match (steps[first], steps[second]) {
        (0, _) | (_, 0) => None,
        (a, b) if a != b => Some(a > b),
        _ => (sizes[first] > sizes[second]).then_some(true),
    })
}
