//! Losses, distances and convolutions.

use ndarray::{Array4, ArrayD, Axis, IxDyn};

use super::arithmetic::zipped;
use super::layers::log_sum;
use super::{Data, known, of, of_value};
use crate::host::code::arguments::Args;
use crate::host::value::dtype::is_integer;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// Multiplications of one convolution; beyond, its numbers are not worked out.
const MAX_STEPS: usize = 1 << 23;

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
        "conv1d" => convolved(tensor, args, 1),
        "conv2d" => convolved(tensor, args, 2),
        _ => None,
    }
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
    let ignored = args.keyword("ignore_index").map_or(Some(-100), known)? as f64;
    let smoothing = args.keyword("label_smoothing").map_or(Some(0.0), as_float)?;
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

/// A convolution along one or two axes.
fn convolved(tensor: &Tensor, args: &Args<'_>, axes: usize) -> Option<Data> {
    let (input, weight) = (of(tensor)?, of_value(args.get(0, "weight")?)?);
    let numbers = |at: usize, name: &str, default: usize| -> Option<[usize; 2]> {
        let told = match args.get(at, name) {
            None => vec![default; axes],
            Some(Value::Int(Some(one))) => vec![usize::try_from(*one).ok()?; axes],
            Some(several) => {
                let each = several.elements()?;
                let each = each.iter().map(|one| usize::try_from(known(one)?).ok());
                each.collect::<Option<Vec<usize>>>()?
            }
        };
        match told[..] {
            [one] => Some([default, one]),
            [first, second] if axes == 2 => Some([first, second]),
            _ => None,
        }
    };
    let (stride, padding, dilation) =
        (numbers(2, "stride", 1)?, numbers(3, "padding", 0)?, numbers(4, "dilation", 1)?);
    let groups = args.get(5, "groups").map_or(Some(1), known)?;
    let groups = usize::try_from(groups).ok().filter(|groups| *groups > 0)?;
    // One axis counts as the second of two.
    let planar = |data: &Data| -> Option<Array4<f64>> {
        let planes = match (axes, data.numbers.ndim()) {
            (1, 3) => data.numbers.clone().insert_axis(Axis(2)),
            (2, 4) => data.numbers.clone(),
            _ => return None,
        };
        planes.into_dimensionality().ok()
    };
    let padding = if axes == 1 { [0, padding[1]] } else { padding };
    let (image, kernel) = (planar(&input)?, planar(&weight)?);
    let (batch, channels, height, width) = image.dim();
    let (outputs, inner, rows, columns) = kernel.dim();
    if channels != inner * groups || outputs % groups != 0 || stride.contains(&0) {
        return None;
    }
    let length = |size: usize, taps: usize, at: usize| {
        let reach = dilation[at].checked_mul(taps.checked_sub(1)?)?.checked_add(1)?;
        let padded = padding[at].checked_mul(2)?.checked_add(size)?;
        Some(padded.checked_sub(reach)? / stride[at] + 1)
    };
    let (tall, wide) = (length(height, rows, 0)?, length(width, columns, 1)?);
    let shape = [batch, outputs, tall, wide];
    let bias = match args.get(1, "bias").filter(|bias| **bias != Value::None) {
        Some(bias) => of_value(bias)?.numbers.iter().copied().collect(),
        None => vec![0.0; outputs],
    };
    let mut extents = shape.iter().chain([&inner, &rows, &columns]);
    let steps = extents.try_fold(1usize, |steps, size| steps.checked_mul(*size))?;
    if steps > MAX_STEPS || bias.len() != outputs {
        return None;
    }
    let one = |at: IxDyn| {
        let [batch, output, y, x] = [at[0], at[1], at[2], at[3]];
        let first = output / (outputs / groups) * inner;
        let mut sum = bias[output];
        for channel in 0..inner {
            for row in 0..rows {
                let Some(from) = (y * stride[0] + row * dilation[0]).checked_sub(padding[0]) else {
                    continue;
                };
                for column in 0..columns {
                    let Some(across) =
                        (x * stride[1] + column * dilation[1]).checked_sub(padding[1])
                    else {
                        continue;
                    };
                    if from < height && across < width {
                        let pixel = image[[batch, first + channel, from, across]];
                        sum += pixel * kernel[[output, channel, row, column]];
                    }
                }
            }
        }
        sum
    };
    let made = ArrayD::from_shape_fn(IxDyn(&shape), one);
    let made = if axes == 1 { made.index_axis_move(Axis(2), 0) } else { made };
    Some(input.with(made.as_standard_layout().into_owned()))
}
