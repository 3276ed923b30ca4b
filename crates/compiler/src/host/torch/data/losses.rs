//! Losses and distances.

use ndarray::{ArrayD, Axis, IxDyn};

use super::arithmetic::zipped;
use super::layers::log_sum;
use super::{Data, known, of, of_value};
use crate::host::code::arguments::Args;
use crate::host::code::operators::{position, truth};
use crate::host::value::dtype::is_integer;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// What a function makes of `tensor` and its arguments; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    match name {
        "cross_entropy" => cross_entropy(tensor, args).or_else(|| of_probabilities(tensor, args)),
        "nll_loss" => of_logarithms(tensor, args),
        "mse_loss" => of_each(tensor, args, |a, b| (a - b) * (a - b)),
        "l1_loss" => of_each(tensor, args, |a, b| (a - b).abs()),
        "binary_cross_entropy_with_logits" if args.keyword("weight").is_none() => {
            of_each(tensor, args, |x, y| x.max(0.0) - x * y + (-x.abs()).exp().ln_1p())
        }
        // Logarithms are no less than -100.
        "binary_cross_entropy" if args.keyword("weight").is_none() => {
            of_each(tensor, args, |x, y| {
                -(y * x.ln().max(-100.0) + (1.0 - y) * (1.0 - x).ln().max(-100.0))
            })
        }
        "smooth_l1_loss" => {
            let beta = args.keyword("beta").map_or(Some(1.0), as_float)?;
            of_each(tensor, args, |a, b| match (a - b).abs() {
                error if error < beta => 0.5 * error * error / beta,
                error => error - 0.5 * beta,
            })
        }
        "huber_loss" => {
            let delta = args.keyword("delta").map_or(Some(1.0), as_float)?;
            of_each(tensor, args, |a, b| match (a - b).abs() {
                error if error <= delta => 0.5 * error * error,
                error => delta * (error - 0.5 * delta),
            })
        }
        "soft_margin_loss" => of_each(tensor, args, |x, y| (-y * x).exp().ln_1p()),
        "hinge_embedding_loss" => {
            let margin = margin(args, 1.0)?;
            of_each(tensor, args, |x, y| if y == 1.0 { x } else { (margin - x).max(0.0) })
        }
        "poisson_nll_loss" => {
            let is_log = args.keyword("log_input").map_or(Some(true), truth)?;
            let is_full = args.keyword("full").map_or(Some(false), truth)?;
            let eps = args.keyword("eps").map_or(Some(1e-8), as_float)?;
            (!is_full).then(|| {
                of_each(tensor, args, |x, y| match is_log {
                    true => x.exp() - y * x,
                    false => x - y * (x + eps).ln(),
                })
            })?
        }
        "margin_ranking_loss" => ranked(tensor, args),
        "triplet_margin_loss" => triplets(tensor, args),
        "cosine_embedding_loss" => embedded(tensor, args),
        "kl_div" => divergence(tensor, args),
        "cosine_similarity" => similarity(tensor, args),
        "pairwise_distance" if args.get(1, "p").is_none() => {
            let eps = args.get(2, "eps").map_or(Some(1e-6), as_float)?;
            apart(tensor, args.get(0, "x2")?, eps, args.get(3, "keepdim"))
        }
        "cdist" if args.get(1, "p").is_none() => distances(tensor, args),
        _ => None,
    }
}

fn margin(args: &Args<'_>, default: f64) -> Option<f64> {
    args.keyword("margin").map_or(Some(default), as_float)
}

/// Losses of elements, reduced to their mean unless `reduction` says otherwise.
fn mean_of(losses: Data, args: &Args<'_>) -> Option<Data> {
    let count = losses.numbers.len() as f64;
    reduced(losses, count, args)
}

/// `F.margin_ranking_loss`.
fn ranked(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    (args.positional().len() <= 2).then_some(())?;
    let margin = margin(args, 0.0)?;
    let (first, second) = (of(tensor)?, of_value(args.get(0, "input2")?)?);
    let target = of_value(args.get(1, "target")?)?;
    let apart = zipped(&first.numbers, &second.numbers, |a, b| Some(a - b))?;
    let loss = |apart: f64, target: f64| Some((margin - target * apart).max(0.0));
    mean_of(first.with(zipped(&apart, &target.numbers, loss)?), args)
}

/// `F.triplet_margin_loss` of Euclidean distances.
fn triplets(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let is_plain = args.positional().len() <= 2
        && args.keyword("p").is_none_or(|p| as_float(p) == Some(2.0))
        && args.keyword("swap").is_none_or(|swap| truth(swap) == Some(false));
    is_plain.then_some(())?;
    let (margin, eps) = (margin(args, 1.0)?, args.keyword("eps").map_or(Some(1e-6), as_float)?);
    let distance = |at: usize, name: &str| apart(tensor, args.get(at, name)?, eps, None);
    let (near, far) = (distance(0, "positive")?, distance(1, "negative")?);
    let loss = |near: f64, far: f64| Some((near - far + margin).max(0.0));
    mean_of(near.with(zipped(&near.numbers, &far.numbers, loss)?), args)
}

/// `F.cosine_embedding_loss`.
fn embedded(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    (args.positional().len() <= 2).then_some(())?;
    let margin = margin(args, 0.0)?;
    let target = of_value(args.get(1, "target")?)?;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // As in PyTorch's own formula.
    const EPS: f64 = 1e-12;
    let alike = of_rows(tensor, args.get(0, "input2")?, -1, None, |a, b| {
        product(a, b) / ((product(a, a) + EPS) * (product(b, b) + EPS)).sqrt()
    })?;
    (alike.numbers.shape() == target.numbers.shape()).then_some(())?;
    let losses = zipped(&alike.numbers, &target.numbers, |alike, target| {
        Some(if target == 1.0 { 1.0 - alike } else { (alike - margin).max(0.0) })
    })?;
    mean_of(alike.with(losses), args)
}

/// The Euclidean distances of rows, with `eps` added to each difference.
fn apart(tensor: &Tensor, other: &Value, eps: f64, keeps: Option<&Value>) -> Option<Data> {
    of_rows(tensor, other, -1, keeps, |a, b| {
        let squares = a.iter().zip(b).map(|(a, b)| (a - b + eps) * (a - b + eps));
        squares.sum::<f64>().sqrt()
    })
}

/// Whether a loss is computed of each number by itself, before it is reduced.
pub(super) fn is_of_each(name: &str) -> bool {
    matches!(
        name,
        "binary_cross_entropy"
            | "binary_cross_entropy_with_logits"
            | "hinge_embedding_loss"
            | "huber_loss"
            | "l1_loss"
            | "mse_loss"
            | "poisson_nll_loss"
            | "smooth_l1_loss"
            | "soft_margin_loss"
    )
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

/// Rows of classes, and the numbers of the right ones; `None` where classes have weights.
fn rows_and_classes(tensor: &Tensor, args: &Args<'_>) -> Option<(Data, Data)> {
    let (input, target) = (of(tensor)?, of_value(args.get(0, "target")?)?);
    let is_weighted = args.get(1, "weight").is_some_and(|weight| *weight != Value::None);
    let is_known = input.numbers.ndim() == 2
        && target.numbers.ndim() == 1
        && is_integer(&target.dtype)
        && args.positional().len() <= 1;
    (is_known && !is_weighted).then_some((input, target))
}

/// `F.cross_entropy` of rows of classes, of which numbers name the right ones.
fn cross_entropy(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let (input, target) = rows_and_classes(tensor, args)?;
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

/// `F.cross_entropy` of rows of classes, of which the target says how likely each is.
fn of_probabilities(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let (input, target) = (of(tensor)?, of_value(args.get(0, "target")?)?);
    let is_plain = args.keywords().iter().all(|(name, _)| {
        matches!(name.as_deref(), Some("input" | "target" | "label_smoothing" | "reduction"))
    });
    let is_known = is_plain
        && args.positional().len() <= 1
        && input.numbers.ndim() == 2
        && input.numbers.shape() == target.numbers.shape();
    is_known.then_some(())?;
    let smoothing = args.keyword("label_smoothing").map_or(Some(0.0), as_float)?;
    let rows = input.numbers.rows().into_iter().zip(target.numbers.rows());
    let losses: Vec<f64> = rows
        .map(|(row, target)| {
            let (log_sum, classes) = (log_sum(&row.to_vec()), row.len() as f64);
            let share = |chance: f64| (1.0 - smoothing) * chance + smoothing / classes;
            row.iter().zip(target).map(|(x, chance)| share(*chance) * (log_sum - x)).sum()
        })
        .collect();
    let count = losses.len() as f64;
    reduced(Data::row(&input.dtype, losses), count, args)
}

/// `F.nll_loss` of rows of logarithms of chances, of which numbers name the right ones.
fn of_logarithms(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let (input, target) = rows_and_classes(tensor, args)?;
    let (ignored, _) = ignored_and_smoothing(args)?;
    let rows = input.numbers.rows().into_iter().zip(&target.numbers);
    let losses = rows.map(|(row, class)| match *class == ignored {
        true => Some(0.0),
        false => Some(-row.get(usize::try_from(*class as i64).ok()?)?),
    });
    let losses = losses.collect::<Option<Vec<f64>>>()?;
    let counted = target.numbers.iter().filter(|class| **class != ignored).count() as f64;
    reduced(Data::row(&input.dtype, losses), counted, args)
}

/// `F.kl_div` of logarithms of chances.
fn divergence(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let is_log = args.keyword("log_target").map_or(Some(false), truth)?;
    let (input, target) = (of(tensor)?, of_value(args.get(0, "target")?)?);
    (args.positional().len() <= 1 && input.numbers.ndim() > 0).then_some(())?;
    let losses = zipped(&input.numbers, &target.numbers, |x, y| {
        Some(match is_log {
            true => y.exp() * (y - x),
            false if y > 0.0 => y * (y.ln() - x),
            false => 0.0,
        })
    })?;
    let losses = input.with(losses);
    match args.keyword("reduction") {
        Some(Value::Str(how)) if &**how == "batchmean" => {
            let mean = losses.numbers.sum() / input.numbers.shape()[0] as f64;
            Some(losses.with(ArrayD::from_elem(IxDyn(&[]), mean)))
        }
        _ => {
            let count = losses.numbers.len() as f64;
            reduced(losses, count, args)
        }
    }
}

/// `F.cosine_similarity`.
fn similarity(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let eps = args.get(2, "eps").map_or(Some(1e-8), as_float)?;
    let axis = args.get(1, "dim").map_or(Some(1), known)?;
    of_rows(tensor, args.get(0, "x2")?, axis, None, |a, b| {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        product(a, b) / (product(a, a).sqrt().max(eps) * product(b, b).sqrt().max(eps))
    })
}

/// What is made of the numbers along an axis of two tensors of one shape.
fn of_rows(
    tensor: &Tensor,
    other: &Value,
    axis: i128,
    keeps: Option<&Value>,
    of_two: impl Fn(&[f64], &[f64]) -> f64,
) -> Option<Data> {
    let (a, b) = (of(tensor)?, of_value(other)?);
    let axis = Axis(position(a.numbers.ndim(), axis)?);
    (a.numbers.shape() == b.numbers.shape()).then_some(())?;
    let lanes = a.numbers.lanes(axis).into_iter().zip(b.numbers.lanes(axis));
    let numbers: Vec<f64> = lanes.map(|(a, b)| of_two(&a.to_vec(), &b.to_vec())).collect();
    let mut shape = a.numbers.shape().to_vec();
    match keeps.map_or(Some(false), truth)? {
        true => shape[axis.index()] = 1,
        false => drop(shape.remove(axis.index())),
    }
    Some(a.with(ArrayD::from_shape_vec(IxDyn(&shape), numbers).ok()?))
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
