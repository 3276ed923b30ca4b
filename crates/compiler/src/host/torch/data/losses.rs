//! Losses and distances.

use ndarray::{ArrayD, Axis, IxDyn};

use super::arithmetic::zipped;
use super::layers::log_sum;
use super::{Data, known, of, of_value};
use crate::host::code::arguments::Args;
use crate::host::value::dtype::is_integer;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// What a function makes of `tensor` and its arguments; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    match name {
        "cross_entropy" => cross_entropy(tensor, args),
        "mse_loss" => of_each(tensor, args, |a, b| (a - b) * (a - b)),
        "l1_loss" => of_each(tensor, args, |a, b| (a - b).abs()),
        "binary_cross_entropy_with_logits" if args.keyword("weight").is_none() => {
            of_each(tensor, args, |x, y| x.max(0.0) - x * y + (-x.abs()).exp().ln_1p())
        }
        "cdist" if args.get(1, "p").is_none() => distances(tensor, args),
        _ => None,
    }
}

/// Whether a loss is computed of each number by itself, before it is reduced.
pub(super) fn is_of_each(name: &str) -> bool {
    matches!(name, "binary_cross_entropy_with_logits" | "l1_loss" | "mse_loss")
}

/// The losses of single elements as `reduction` says.
fn reduced(losses: Data, counted: f64, args: &Args<'_>) -> Option<Data> {
    let one = |number: f64| losses.with(ArrayD::from_elem(IxDyn(&[]), number));
    match args.keyword("reduction") {
        None => Some(one(losses.numbers.sum() / counted)),
        Some(Value::Str(how)) => match &**how {
            "none" => Some(losses),
            "mean" => Some(one(losses.numbers.sum() / counted)),
            "sum" => Some(one(losses.numbers.sum())),
            _ => None,
        },
        Some(_) => None,
    }
}

fn of_each(tensor: &Tensor, args: &Args<'_>, loss: impl Fn(f64, f64) -> f64) -> Option<Data> {
    let (input, target) = (of(tensor)?, of_value(args.get(0, "target")?)?);
    if args.positional().len() > 1 {
        return None;
    }
    let losses = input.with(zipped(&input.numbers, &target.numbers, |a, b| Some(loss(a, b)))?);
    let count = losses.numbers.len() as f64;
    reduced(losses, count, args)
}

/// The class whose rows do not count, and how much of all classes the right one is.
fn ignored_and_smoothing(args: &Args<'_>) -> Option<(f64, f64)> {
    let ignored = args.keyword("ignore_index").map_or(Some(-100), known)? as f64;
    Some((ignored, args.keyword("label_smoothing").map_or(Some(0.0), as_float)?))
}

/// The gradient of the rows of `F.cross_entropy`, of that of what it gives.
pub(super) fn of_classes(
    tensor: &Tensor,
    args: &Args<'_>,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    cross_entropy(tensor, args)?;
    let (mut numbers, target) = (of(tensor)?.numbers, of_value(args.get(0, "target")?)?.numbers);
    let (ignored, smoothing) = ignored_and_smoothing(args)?;
    let counted = target.iter().filter(|class| **class != ignored).count() as f64;
    let classes = numbers.shape()[1] as f64;
    let is_mean = match args.keyword("reduction") {
        None => true,
        Some(Value::Str(how)) => &**how == "mean",
        Some(_) => return None,
    };
    let given = given.broadcast(IxDyn(&[target.len()]))?;
    for ((mut row, class), given) in numbers.rows_mut().into_iter().zip(&target).zip(given) {
        if *class == ignored {
            row.fill(0.0);
            continue;
        }
        let scale = if is_mean { given / counted } else { *given };
        let log_sum = log_sum(&row.to_vec());
        row.mapv_inplace(|number| (number - log_sum).exp() - smoothing / classes);
        row[*class as usize] -= 1.0 - smoothing;
        row.mapv_inplace(|number| scale * number);
    }
    Some(numbers)
}

/// `F.cross_entropy` of rows of classes, of which numbers name the right ones.
fn cross_entropy(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let (input, target) = (of(tensor)?, of_value(args.get(0, "target")?)?);
    let is_weighted = args.get(1, "weight").is_some_and(|weight| *weight != Value::None);
    if input.numbers.ndim() != 2
        || target.numbers.ndim() != 1
        || !is_integer(&target.dtype)
        || is_weighted
        || args.positional().len() > 1
    {
        return None;
    }
    let (ignored, smoothing) = ignored_and_smoothing(args)?;
    let mut losses = Vec::new();
    let mut counted = 0.0;
    for (row, class) in input.numbers.rows().into_iter().zip(&target.numbers) {
        if *class == ignored {
            losses.push(0.0);
            continue;
        }
        counted += 1.0;
        let log_sum = log_sum(&row.to_vec());
        let right = log_sum - row.get(usize::try_from(*class as i64).ok()?)?;
        let all = log_sum - row.sum() / row.len() as f64;
        losses.push(if smoothing == 0.0 {
            right
        } else {
            (1.0 - smoothing) * right + smoothing * all
        });
    }
    reduced(Data::row(&input.dtype, losses), counted, args)
}

/// The distances of rows.
fn distances(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let (a, b) = (of(tensor)?, of_value(args.get(0, "x2")?)?);
    if a.numbers.ndim() != 2
        || b.numbers.ndim() != 2
        || a.numbers.shape()[1] != b.numbers.shape()[1]
    {
        return None;
    }
    let shape = [a.numbers.shape()[0], b.numbers.shape()[0]];
    if shape[0] * shape[1] > super::MAX_COMPUTED {
        return None;
    }
    let distance = |at: IxDyn| {
        let (a, b) = (a.numbers.index_axis(Axis(0), at[0]), b.numbers.index_axis(Axis(0), at[1]));
        a.iter().zip(b.iter()).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    };
    Some(a.with(ArrayD::from_shape_fn(IxDyn(&shape), distance)))
}
