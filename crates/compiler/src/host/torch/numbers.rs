//! Integers that tensors of host code are known to hold.

use crate::host::torch::views;
use crate::host::value::contents::{Contents, MAX_LISTED};
use crate::host::value::dtype::is_integer;
use crate::host::value::{Tensor, Value};

/// All numbers of a tensor of integers in order, where they are known and not too many.
pub(crate) fn of(tensor: &Tensor) -> Option<Vec<i128>> {
    let is_dense = views::is_contiguous(tensor) == Some(true);
    let integers = is_dense && tensor.dtype.as_deref().is_some_and(is_integer);
    let count = views::elements(tensor.shape.as_deref()?).filter(|_| integers)?;
    let count = usize::try_from(count).ok().filter(|count| *count <= MAX_LISTED)?;
    tensor.storage.as_ref()?.contents.numbers(count)
}

/// The least number of a tensor and the greatest, each with whether the tensor certainly holds it.
pub(crate) fn bounds(tensor: &Tensor) -> Option<((i128, bool), (i128, bool))> {
    if let Some(numbers) = of(tensor) {
        let (least, greatest) = (numbers.iter().min()?, numbers.iter().max()?);
        return Some(((*least, true), (*greatest, true)));
    }
    match tensor.storage.as_ref()?.contents {
        Contents::Random { lo, hi } | Contents::Distinct { lo, hi } => {
            Some(((lo, false), (hi, false)))
        }
        _ => None,
    }
}

/// The number of a tensor without dimensions.
pub(crate) fn number(tensor: &Tensor) -> Option<i128> {
    let is_number = tensor.shape.as_ref().is_some_and(Vec::is_empty);
    of(tensor).filter(|_| is_number)?.first().copied()
}

/// A value as a size: PyTorch takes tensors of one number for it.
pub(crate) fn as_size(value: &Value) -> Value {
    match value {
        Value::Tensor(tensor) => Value::Int(number(tensor)),
        value => value.clone(),
    }
}
