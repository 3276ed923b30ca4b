//! Integers that tensors of host code are known to hold, and what is computed of them.

use std::sync::Arc;

use super::arguments::Args;
use super::dtype::is_integer;
use super::operators::{integer_of, position};
use super::value::{Tensor, Value};
use super::{drawn, views};
use crate::hir::BinaryOp;
use crate::specialization::contents::{Contents, MAX_LISTED};

/// All numbers of a tensor of integers in order, where they are known and not too many.
pub(super) fn of(tensor: &Tensor) -> Option<Vec<i128>> {
    let is_dense = views::is_contiguous(tensor) == Some(true);
    let integers = is_dense && tensor.dtype.as_deref().is_some_and(is_integer);
    let count = views::elements(tensor.shape.as_deref()?).filter(|_| integers)?;
    let count = usize::try_from(count).ok().filter(|count| *count <= MAX_LISTED)?;
    tensor.storage.as_ref()?.contents.numbers(count)
}

/// The least number of a tensor and the greatest, each with whether the tensor certainly holds it.
pub(super) fn bounds(tensor: &Tensor) -> Option<((i128, bool), (i128, bool))> {
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
pub(super) fn number(tensor: &Tensor) -> Option<i128> {
    let is_number = tensor.shape.as_ref().is_some_and(Vec::is_empty);
    of(tensor).filter(|_| is_number)?.first().copied()
}

/// A value as a size: PyTorch takes tensors of one number for it.
pub(super) fn as_size(value: &Value) -> Value {
    match value {
        Value::Tensor(tensor) => Value::Int(number(tensor)),
        value => value.clone(),
    }
}

/// What `left op right` of two tensors holds.
pub(super) fn combined(op: BinaryOp, left: &Tensor, right: &Tensor) -> Option<Contents> {
    let (left, right) = (left.shape == right.shape).then(|| of(left).zip(of(right)))??;
    let numbers = left.iter().zip(&right).map(|(left, right)| integer_of(op, *left, *right));
    Some(Contents::listed(numbers.collect::<Option<Arc<[i128]>>>()?))
}

/// What a function makes of the numbers of a tensor and the arguments after it, which is also a method
/// of tensors; unknown for other functions and numbers.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Contents {
    made(name, tensor, args).or_else(|| drawn::integers(name, tensor, args)).unwrap_or_default()
}

fn made(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Contents> {
    let numbers = of(tensor)?;
    let is_row = tensor.shape.as_ref().is_some_and(|shape| shape.len() == 1);
    Some(match (name, args.0) {
        ("max", []) => Contents::constant(*numbers.iter().max()?),
        ("min", []) => Contents::constant(*numbers.iter().min()?),
        ("sum", []) => {
            Contents::constant(numbers.iter().try_fold(0, |a: i128, b| a.checked_add(*b))?)
        }
        ("prod", []) => {
            Contents::constant(numbers.iter().try_fold(1, |a: i128, b| a.checked_mul(*b))?)
        }
        ("cumsum", _) if is_row && position(1, axis(args.get(0, "dim")?)?).is_some() => {
            let mut sum = 0i128;
            let sums = numbers.iter().map(|number| {
                sum = sum.checked_add(*number)?;
                Some(sum)
            });
            Contents::listed(sums.collect::<Option<Arc<[i128]>>>()?)
        }
        ("clone", []) => Contents::listed(numbers.into()),
        _ => return None,
    })
}

fn axis(value: &Value) -> Option<i128> {
    match value {
        Value::Int(axis) => *axis,
        _ => None,
    }
}

/// What `torch.NAME(...)` makes of tensors whose numbers are known.
pub(super) fn by_torch(name: &str, args: &Args<'_>) -> Option<Contents> {
    match (name, args.0) {
        ("cat" | "concat", [(None, tensors)]) => {
            let rows = tensors.elements()?;
            let rows = rows.iter().map(|row| match row {
                Value::Tensor(row) if row.shape.as_ref()?.len() == 1 => of(row),
                _ => None,
            });
            let numbers = rows.collect::<Option<Vec<_>>>()?.concat();
            (numbers.len() <= MAX_LISTED).then(|| Contents::listed(numbers.into()))
        }
        ("pad", [(None, Value::Tensor(row)), (None, pads)])
            if row.shape.as_ref().is_some_and(|shape| shape.len() == 1) =>
        {
            let [Value::Int(Some(before)), Value::Int(Some(after))] = pads.elements()?[..] else {
                return None;
            };
            let zeros = |count| Some(vec![0; usize::try_from(count).ok().filter(few)?]);
            let numbers = [zeros(before)?, of(row)?, zeros(after)?].concat();
            Some(Contents::listed(numbers.into()))
        }
        (_, [(None, Value::Tensor(tensor)), rest @ ..]) => {
            let rest = Args(rest);
            made(name, tensor, &rest).or_else(|| drawn::integers(name, tensor, &rest))
        }
        _ => None,
    }
}

fn few(count: &usize) -> bool {
    *count <= MAX_LISTED
}
