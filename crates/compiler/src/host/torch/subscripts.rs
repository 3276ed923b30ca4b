//! Subscripts of tensors: `tensor[part, part]`.

use crate::hir::BinaryOp;
use crate::host::torch::views::{
    behind, broadcast, from_start, is_contiguous, reach, real_parts, strides, times,
    unknown_strides,
};
use crate::host::value::dtype::is_complex;
use crate::host::value::number::arithmetic;
use crate::host::value::{Tensor, Value};

/// What stands in a subscript of a tensor.
#[derive(Clone)]
pub(crate) enum Part {
    /// A position along an axis, perhaps known.
    At(Option<i128>),
    /// `lower:upper`.
    Slice(Bound, Bound),
    /// `lower:upper:step`.
    Stepped(Bound, Bound, i128),
    /// `None`: one more axis.
    NewAxis,
    /// Positions along an axis that a tensor or a list of integers of this shape gives.
    Picked(Vec<Value>),
    /// `...`: all axes that no other part is for.
    Rest,
    /// Anything else.
    Other,
}

impl Part {
    /// `lower:upper:step` of these values: tensors have no steps backwards.
    pub(crate) fn stepped([lower, upper, step]: [Option<&Value>; 3]) -> Part {
        let (lower, upper) = (Bound::of(lower), Bound::of(upper));
        match step {
            None | Some(Value::None | Value::Int(Some(1))) => Part::Slice(lower, upper),
            Some(Value::Int(Some(step))) if *step > 0 => Part::Stepped(lower, upper, *step),
            Some(_) => Part::Other,
        }
    }

    /// What a value in a subscript stands for.
    pub(crate) fn of(value: &Value) -> Part {
        match value {
            Value::Int(at) => Part::At(*at),
            Value::None => Part::NewAxis,
            Value::Tensor(Tensor { dtype: Some(dtype), shape: Some(shape), .. })
                if matches!(&**dtype, "i32" | "i64") && !shape.is_empty() =>
            {
                Part::Picked(shape.clone())
            }
            Value::List(items)
                if !items.is_empty() && items.iter().all(|item| matches!(item, Value::Int(_))) =>
            {
                Part::Picked(vec![Value::Int(Some(items.len() as i128))])
            }
            _ => Part::Other,
        }
    }

    /// Whether it stands for an axis of the tensor.
    pub(crate) fn is_axis(&self) -> bool {
        matches!(self, Part::At(_) | Part::Slice(..) | Part::Stepped(..) | Part::Picked(_))
    }
}

/// What stands in a subscript of a tensor, with its value if it has one.
pub(crate) type PartOfTensor = (Part, Option<Value>);

/// The slices and new axes of a subscript that also picks elements, and what that picks of the part that they leave;
/// `None` for other subscripts.
pub(crate) fn apart(parts: &[PartOfTensor]) -> Option<[Vec<PartOfTensor>; 2]> {
    let all = || (Part::Slice(Bound::Open, Bound::Open), None);
    let is_slice = |part: &Part| match part {
        Part::Slice(lower, upper) => (*lower, *upper) != (Bound::Open, Bound::Open),
        Part::Stepped(..) | Part::NewAxis => true,
        _ => false,
    };
    // Truth values along one axis.
    let is_mask = |value: &Option<Value>| match value {
        Some(Value::Tensor(Tensor { dtype: Some(dtype), shape: Some(shape), .. })) => {
            &**dtype == "i1" && shape.len() == 1
        }
        _ => false,
    };
    let picks = |(part, value): &PartOfTensor| match part {
        Part::Picked(_) => true,
        Part::Other => is_mask(value),
        _ => false,
    };
    let is_other = |(part, value): &PartOfTensor| matches!(part, Part::Other) && !is_mask(value);
    let both = parts.iter().any(|(part, _)| is_slice(part)) && parts.iter().any(picks);
    (both && !parts.iter().any(is_other)).then(|| {
        let kept = |slices: bool| {
            let of = |(part, value): &PartOfTensor| match part {
                Part::Rest => (Part::Rest, None),
                part if is_slice(part) == slices => (part.clone(), value.clone()),
                _ => all(),
            };
            parts.iter().map(of).collect()
        };
        [kept(true), kept(false)]
    })
}

/// What each part of a subscript, with the value that it is, chooses along the axes of a tensor, and `None`
/// for each axis of which it takes all; `None` where there are other parts.
pub(crate) fn along_axes(
    parts: &[Part],
    values: Vec<Option<Value>>,
    tensor: &Tensor,
) -> Option<Vec<Option<Value>>> {
    let rank = tensor.shape.as_ref()?.len();
    let mut chosen = Vec::new();
    for (part, value) in parts.iter().zip(values) {
        match part {
            Part::Slice(Bound::Open, Bound::Open) => chosen.push(None),
            // Truth values choose along several axes.
            Part::Rest if parts.iter().any(|part| matches!(part, Part::Other)) => return None,
            Part::Rest => chosen.resize((chosen.len() + rank + 1).checked_sub(parts.len())?, None),
            Part::NewAxis => return None,
            _ => chosen.push(Some(value?)),
        }
    }
    Some(chosen)
}

/// Where a slice begins or ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Where the axis does.
    Open,
    /// At a position; a negative one counts from the end.
    At(i128),
    /// That is not known.
    Unknown,
}

impl Bound {
    /// By what stands there.
    pub(crate) fn of(value: Option<&Value>) -> Bound {
        match value {
            None | Some(Value::None) => Bound::Open,
            Some(Value::Int(Some(at))) => Bound::At(*at),
            Some(_) => Bound::Unknown,
        }
    }
}

/// `tensor[lower:upper]` of known bounds.
pub(crate) fn slice(
    tensor: &Tensor,
    lower: Option<&Value>,
    upper: Option<&Value>,
) -> Option<Tensor> {
    parts(tensor, &[Part::Slice(Bound::of(lower), Bound::of(upper))])
}

/// `tensor[part, part]` of known bounds.
pub(crate) fn parts(tensor: &Tensor, parts: &[Part]) -> Option<Tensor> {
    let (sizes, strides) = (tensor.shape.as_ref()?, strides(tensor)?);
    let rest = sizes.len().checked_sub(parts.iter().filter(|part| part.is_axis()).count())?;
    let (mut shape, mut steps, mut offset) = (Vec::new(), Vec::new(), Some(0));
    let mut picks = Vec::new();
    let further = |offset: Option<i128>, at: Option<i128>, step: &Value| {
        offset.zip(times(at?, step)).map(|(offset, more)| offset + more)
    };
    let mut axes = sizes.iter().cloned().zip(strides);
    for part in parts {
        match part {
            Part::At(at) => {
                let (size, step) = axes.next()?;
                offset = further(offset, at.and_then(|at| from_start(at, &size)), &step);
            }
            Part::Slice(lower, upper) => {
                let (size, step) = axes.next()?;
                let (size, lower) = cut(size, *lower, *upper)?;
                offset = further(offset, Some(lower), &step);
                shape.push(size);
                steps.push(step);
            }
            Part::Stepped(lower, upper, every) => {
                let (size, step) = axes.next()?;
                let (Value::Int(Some(size)), lower) = cut(size, *lower, *upper)? else {
                    return None;
                };
                offset = further(offset, Some(lower), &step);
                shape.push(Value::Int(Some((size + every - 1) / every)));
                steps.push(arithmetic(BinaryOp::Mul, &step, &Value::Int(Some(*every))));
            }
            Part::NewAxis => {
                // Nothing is taken yet of the axis behind it.
                let behind = axes.clone().next();
                shape.push(Value::Int(Some(1)));
                steps.push(reach(behind.as_ref().map(|(size, step)| (size, step))));
            }
            Part::Rest => {
                let (sizes, strides): (Vec<_>, Vec<_>) = axes.by_ref().take(rest).unzip();
                shape.extend(sizes);
                steps.extend(strides);
            }
            Part::Picked(listed) => {
                let (size, step) = axes.next()?;
                picks.push((shape.len(), &listed[..]));
                shape.push(size);
                steps.push(step);
            }
            Part::Other => return None,
        }
    }
    let (sizes, strides): (Vec<_>, Vec<_>) = axes.unzip();
    shape.extend(sizes);
    steps.extend(strides);
    if !picks.is_empty() {
        return picked_along(tensor, &shape, &picks);
    }
    let part = Tensor {
        dtype: tensor.dtype.clone(),
        shape: Some(shape),
        strides: Some(steps),
        storage: behind(tensor, offset),
        on_gpu: tensor.on_gpu,
    };
    Some(part.of_part())
}

/// A copy of what lists of positions pick of a tensor along some axes of a part of it that has this shape.
/// What the lists broadcast to stands in their place, or before all else where they stand apart.
fn picked_along(tensor: &Tensor, part: &[Value], picks: &[(usize, &[Value])]) -> Option<Tensor> {
    let (&(first, listed), others) = picks.split_first()?;
    let listed = others
        .iter()
        .try_fold(listed.to_vec(), |listed, (_, other)| broadcast(Some(&listed), Some(other)))?;
    let is_together = (first..).zip(picks).all(|(axis, (pick, _))| axis == *pick);
    let is_kept = |(axis, _): &(usize, &Value)| picks.iter().all(|(pick, _)| pick != axis);
    let mut shape: Vec<Value> =
        part.iter().enumerate().filter(is_kept).map(|(_, size)| size.clone()).collect();
    let at = if is_together { first } else { 0 };
    // Several axes of a source in another order may stay in that order.
    let kept = shape.iter().filter(|size| **size != Value::Int(Some(1))).count();
    shape.splice(at..at, listed);
    let (dtype, on_gpu) = (tensor.dtype.clone(), tensor.on_gpu);
    let is_in_order = tensor.strides.is_none() || is_contiguous(tensor) == Some(true);
    let strides = match kept > 1 && !is_in_order {
        true => unknown_strides(Some(&shape)),
        false => None,
    };
    Some(Tensor { dtype, shape: Some(shape), strides, on_gpu, ..Tensor::default() }.copied())
}

/// How long a slice of an axis of this size is, and where it begins, if that is known.
fn cut(size: Value, lower: Bound, upper: Bound) -> Option<(Value, i128)> {
    if (lower, upper) == (Bound::Open, Bound::Open) {
        return Some((size, 0));
    }
    let Value::Int(Some(extent)) = size else { return None };
    let position = |bound: Bound, open: i128| match bound {
        Bound::Open => Some(open),
        Bound::At(at) => Some(if at < 0 { at + extent } else { at }.clamp(0, extent)),
        Bound::Unknown => None,
    };
    let (lower, upper) = (position(lower, 0)?, position(upper, extent)?);
    Some((Value::Int(Some((upper - lower).max(0))), lower))
}

/// The real or the imaginary part of each number, in the memory of a tensor; of numbers that are not
/// complex, the real part is all.
pub(crate) fn part_of_numbers(tensor: &Tensor, imaginary: bool) -> Option<Tensor> {
    match real_parts(tensor) {
        Some(both) => parts(&both, &[Part::Rest, Part::At(Some(i128::from(imaginary)))]),
        None => tensor
            .dtype
            .as_ref()
            .filter(|dtype| !is_complex(dtype) && !imaginary)
            .map(|_| tensor.clone()),
    }
}
