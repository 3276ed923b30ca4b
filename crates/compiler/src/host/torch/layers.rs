//! What layers of neural networks make, by the numbers that they are given.

use crate::host::code::arguments::Args;
use crate::host::code::operators::{self, position};
use crate::host::torch::sizes::{
    contiguous, dims, laid_out_as, number, numbers, ordered_anyhow, same_of, tensor_at,
};
use crate::host::torch::views;
use crate::host::value::{Tensor, Value};

/// What `torch.nn.utils.rnn.pad_sequence(...)` makes: tensors beside each other, as long as the longest.
pub(crate) fn padded_rows(args: &Args<'_>) -> Option<Value> {
    let rows = args.get(0, "sequences")?.elements()?;
    let rows: Option<Vec<&Tensor>> = rows
        .iter()
        .map(|row| match row {
            Value::Tensor(row) => Some(row),
            _ => None,
        })
        .collect();
    let rows = rows?;
    let sizes = rows.iter().map(|row| dims(row)).collect::<Option<Vec<_>>>()?;
    let (rest, length) =
        (sizes.first()?.get(1..)?, sizes.iter().filter_map(|of| of.first()).max()?);
    let is_batch_first = args.get(1, "batch_first").map_or(Some(false), operators::truth)?;
    let (count, length) = (rows.len() as i128, *length);
    let outer = if is_batch_first { [count, length] } else { [length, count] };
    Some(contiguous(rows[0].dtype.clone(), &[&outer[..], rest].concat()))
}

/// What `torch.nn.functional.NAME(...)` makes; `None` for other functions, and where sizes are not known.
pub(crate) fn by_function(name: &str, args: &Args<'_>) -> Option<Value> {
    match name {
        "conv1d" | "conv2d" | "conv3d" => convolved(name, args),
        "avg_pool1d" | "avg_pool2d" | "avg_pool3d" | "max_pool1d" | "max_pool2d" | "max_pool3d" => {
            pooled(name, args)
        }
        "adaptive_avg_pool1d"
        | "adaptive_avg_pool2d"
        | "adaptive_avg_pool3d"
        | "adaptive_max_pool1d"
        | "adaptive_max_pool2d"
        | "adaptive_max_pool3d" => adapted(name, args),
        "conv_transpose1d" | "conv_transpose2d" | "conv_transpose3d" => spread(name, args),
        "cosine_similarity" => compared(args, ["x1", "x2"], 1),
        "pairwise_distance" => compared(args, ["x1", "x2"], -1),
        "glu" => {
            let input = tensor_at(args, 0, "input")?;
            let mut shape = dims(input)?;
            let axis = position(shape.len(), number(args, 1, "dim", Some(-1))?)?;
            shape[axis] /= 2;
            Some(laid_out_as(&[input], input.dtype.clone(), &shape))
        }
        "pixel_shuffle" | "pixel_unshuffle" => shuffled(name, args),
        "prelu" => {
            let input = tensor_at(args, 0, "input")?;
            Some(laid_out_as(&[input], input.dtype.clone(), &dims(input)?))
        }
        "interpolate" | "upsample" => interpolated(args),
        "one_hot" => {
            let of = dims(tensor_at(args, 0, "tensor")?)?;
            let classes = number(args, 1, "num_classes", None).filter(|classes| *classes > 0)?;
            Some(contiguous(Some("i64".into()), &[&of[..], &[classes]].concat()))
        }
        "unfold" => {
            let input = tensor_at(args, 0, "input")?;
            let of = dims(input)?;
            // Of images, in a batch or one alone.
            let (before, extents) = of.split_at(of.len().checked_sub(2)?);
            let (channels, rows) = before.split_last().filter(|(_, rows)| rows.len() < 2)?;
            let window = Window::of(args, extents.len(), [1, 4, 3, 2], false)?;
            let places: i128 = window.places(extents)?.iter().product();
            let size = channels * window.kernel.iter().product::<i128>();
            Some(contiguous(input.dtype.clone(), &[rows, &[size, places]].concat()))
        }
        "scaled_dot_product_attention" => {
            let [query, value] =
                [(0, "query"), (2, "value")].map(|(at, name)| tensor_at(args, at, name));
            let (query, value) = (query?, value?);
            let (of, values) = (dims(query)?, dims(value)?);
            let ([rest @ .., _], [batch @ .., _, columns]) = (&of[..], &values[..]) else {
                return None;
            };
            // Several heads of queries may share one of keys and values.
            let shares = matches!(args.keyword("enable_gqa"), Some(Value::Bool(Some(true))));
            let outer = |sizes: &[i128]| sizes.split_last().map(|(_, outer)| outer.to_vec());
            let fits = rest.split_last().is_some_and(|(_, own)| {
                own == batch || shares && own.len() == batch.len() && outer(own) == outer(batch)
            });
            fits.then(|| ordered_anyhow(same_of(&[query, value]), &[rest, &[*columns]].concat()))
        }
        _ => lost(name, args),
    }
}

/// Losses of a tensor and what it should be, which broadcast.
const LOSSES: &[&str] = &[
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
];

/// Losses of scores and the class that each row of them should have.
const OF_CLASSES: &[&str] = &["cross_entropy", "multi_margin_loss", "nll_loss"];

/// What `torch.NAME(...)` makes that is also one of `torch.nn.functional` with the same parameters.
pub(crate) fn by_torch(name: &str, args: &Args<'_>) -> Option<Value> {
    let differs = LOSSES.contains(&name) || name.starts_with("adaptive_max");
    if differs { None } else { by_function(name, args) }
}

/// What a loss is: one number, or one for each element or row.
fn lost(name: &str, args: &Args<'_>) -> Option<Value> {
    let of_classes = OF_CLASSES.contains(&name);
    if !of_classes && !LOSSES.contains(&name) {
        return None;
    }
    let (input, target) = (tensor_at(args, 0, "input")?, tensor_at(args, 1, "target")?);
    let dtype = match of_classes {
        true => input.dtype.clone(),
        false => same_of(&[input, target]),
    };
    // Older ways to say which of them it is are not followed.
    if args.positional().len() > 2
        || args.keyword("reduce").or(args.keyword("size_average")).is_some()
    {
        return None;
    }
    let is_whole = match args.keyword("reduction") {
        None => true,
        Some(Value::Str(reduction)) => &**reduction != "none",
        Some(_) => return None,
    };
    match is_whole {
        true if of_classes => Some(contiguous(dtype, &[])),
        true => {
            // The number is where the elements were that it is made of.
            let shape = views::broadcast(input.shape.as_deref(), target.shape.as_deref())?;
            let all = views::dense(Tensor { dtype, shape: Some(shape), ..Tensor::default() });
            Some(Value::Tensor(Tensor { shape: Some(Vec::new()), ..all }))
        }
        false if of_classes => {
            let mut shape = dims(input)?;
            let axis = shape.len().checked_sub(1)?.min(1);
            shape.remove(axis);
            Some(contiguous(dtype, &shape))
        }
        false => {
            let shape = views::broadcast(input.shape.as_deref(), target.shape.as_deref())?;
            let shape = numbers(&Value::Tuple(shape))?;
            Some(laid_out_as(&[input, target], dtype, &shape))
        }
    }
}

/// How alike two tensors are along a dimension.
fn compared(args: &Args<'_>, names: [&str; 2], default: i128) -> Option<Value> {
    let [a, b] = [0, 1].map(|at| tensor_at(args, at, names[at]));
    let (a, b) = (a?, b?);
    let shape = views::broadcast(a.shape.as_deref(), b.shape.as_deref())?;
    let mut shape = numbers(&Value::Tuple(shape))?;
    let axis = if default == 1 { number(args, 2, "dim", Some(default))? } else { default };
    if args.keyword("keepdim").is_some() {
        return None;
    }
    shape.remove(position(shape.len(), axis)?);
    Some(contiguous(same_of(&[a, b]), &shape))
}

/// What pooling to so many places gives; a place that is `None` stands for as many as there are.
fn adapted(name: &str, args: &Args<'_>) -> Option<Value> {
    let input = tensor_at(args, 0, "input")?;
    let (rank, of) = (rank_of(name)?, dims(input)?);
    let (before, extents) = of.split_at(of.len().checked_sub(rank)?);
    if args.get(2, "return_indices").is_some() {
        return None;
    }
    let places = match args.get(1, "output_size")? {
        Value::Int(size) => vec![(*size)?; rank],
        sizes => {
            let size = |(size, extent): (&Value, &i128)| match size {
                Value::None => Some(*extent),
                Value::Int(size) => *size,
                _ => None,
            };
            sizes.elements()?.iter().zip(extents).map(size).collect::<Option<Vec<_>>>()?
        }
    };
    (places.len() == rank).then(|| ordered_anyhow(input.dtype.clone(), &[before, &places].concat()))
}

/// What a transposed convolution makes.
fn spread(name: &str, args: &Args<'_>) -> Option<Value> {
    let (input, weight) = (tensor_at(args, 0, "input")?, tensor_at(args, 1, "weight")?);
    let (rank, of, weights) = (rank_of(name)?, dims(input)?, dims(weight)?);
    let [_, outputs, kernel @ ..] = weights.as_slice() else { return None };
    let (before, extents) = of.split_at(of.len().checked_sub(rank)?);
    let (_, rows) = before.split_last()?;
    let option = |at, name, default| match args.get(at, name) {
        None => Some(vec![default; rank]),
        Some(given) => each(given, rank),
    };
    let (steps, padding, more) =
        (option(3, "stride", 1)?, option(4, "padding", 0)?, option(5, "output_padding", 0)?);
    let (groups, dilation) = (number(args, 6, "groups", Some(1))?, option(7, "dilation", 1)?);
    let places = (0..rank).map(|axis| {
        (extents[axis] - 1) * steps[axis] - 2 * padding[axis]
            + dilation[axis] * (kernel.get(axis).copied().unwrap_or(1) - 1)
            + more[axis]
            + 1
    });
    let shape: Vec<i128> = rows.iter().copied().chain([outputs * groups]).chain(places).collect();
    (kernel.len() == rank).then(|| ordered_anyhow(same_of(&[input, weight]), &shape))
}

/// Elements of channels that become neighbors, or the other way round.
fn shuffled(name: &str, args: &Args<'_>) -> Option<Value> {
    let input = tensor_at(args, 0, "input")?;
    let mut shape = dims(input)?;
    let factor = args.get(1, "upscale_factor").or_else(|| args.keyword("downscale_factor"))?;
    let Value::Int(Some(factor)) = factor else { return None };
    let [.., channels, rows, columns] = shape.as_mut_slice() else { return None };
    match name {
        "pixel_shuffle" => {
            *channels /= factor * factor;
            (*rows, *columns) = (*rows * factor, *columns * factor);
        }
        _ => {
            *channels *= factor * factor;
            (*rows, *columns) = (*rows / factor, *columns / factor);
        }
    }
    Some(contiguous(input.dtype.clone(), &shape))
}

/// How a window moves over the dimensions of an input behind its channels.
struct Window {
    kernel: Vec<i128>,
    stride: Vec<i128>,
    padding: Vec<i128>,
    dilation: Vec<i128>,
}

impl Window {
    /// By the arguments at these places: the size, the steps, which are of that size if none are given
    /// and it is `apart`, what is added on both sides, and how far apart its elements are.
    fn of(args: &Args<'_>, rank: usize, places: [usize; 4], apart: bool) -> Option<Window> {
        const NAMES: [&str; 4] = ["kernel_size", "stride", "padding", "dilation"];
        let [kernel, stride, padding, dilation] =
            [0, 1, 2, 3].map(|at| args.get(places[at], NAMES[at]));
        let kernel = each(kernel?, rank)?;
        let or_else = |given: Option<&Value>, default: Vec<i128>| match given {
            None | Some(Value::None) => Some(default),
            Some(Value::Tuple(none) | Value::List(none)) if none.is_empty() => Some(default),
            Some(given) => each(given, rank),
        };
        let steps = if apart { kernel.clone() } else { vec![1; rank] };
        Some(Window {
            stride: or_else(stride, steps)?,
            padding: or_else(padding, vec![0; rank])?,
            dilation: or_else(dilation, vec![1; rank])?,
            kernel,
        })
    }

    /// At how many places along each dimension it is.
    fn places(&self, extents: &[i128]) -> Option<Vec<i128>> {
        let at = |(axis, extent): (usize, &i128)| {
            let reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1;
            let room = extent + 2 * self.padding[axis] - reach;
            (room >= 0 && self.stride[axis] > 0).then(|| room / self.stride[axis] + 1)
        };
        let fits = extents.len() == self.kernel.len();
        extents.iter().enumerate().map(at).collect::<Option<Vec<_>>>().filter(|_| fits)
    }
}

/// A number for each of some dimensions, or one for all.
fn each(value: &Value, rank: usize) -> Option<Vec<i128>> {
    match value {
        Value::Int(number) => Some(vec![(*number)?; rank]),
        several => match numbers(several)?.as_slice() {
            [one] => Some(vec![*one; rank]),
            several => (several.len() == rank).then(|| several.to_vec()),
        },
    }
}

/// Dimensions that a function of this name moves along.
fn rank_of(name: &str) -> Option<usize> {
    Some(name.strip_suffix('d')?.chars().next_back()?.to_digit(10)? as usize)
}

fn convolved(name: &str, args: &Args<'_>) -> Option<Value> {
    let (input, weight) = (tensor_at(args, 0, "input")?, tensor_at(args, 1, "weight")?);
    let rank = rank_of(name)?;
    let (of, weights) = (dims(input)?, dims(weight)?);
    let (before, extents) = of.split_at(of.len().checked_sub(rank)?);
    let [outputs, _, kernel @ ..] = weights.as_slice() else { return None };
    let (rows, _) = before.split_at(before.len().checked_sub(1)?);
    let option = |at, name, default| match args.get(at, name) {
        None => Some(vec![default; rank]),
        Some(given) => each(given, rank),
    };
    let places = match args.get(4, "padding") {
        Some(Value::Str(same)) if &**same == "same" => extents.to_vec(),
        _ => {
            let window = Window {
                kernel: kernel.to_vec(),
                stride: option(3, "stride", 1)?,
                padding: match args.get(4, "padding") {
                    Some(Value::Str(valid)) if &**valid == "valid" => vec![0; rank],
                    _ => option(4, "padding", 0)?,
                },
                dilation: option(5, "dilation", 1)?,
            };
            window.places(extents)?
        }
    };
    let shape = [rows, &[*outputs], &places].concat();
    // The library that multiplies chooses the order of elements.
    Some(ordered_anyhow(same_of(&[input, weight]), &shape))
}

fn pooled(name: &str, args: &Args<'_>) -> Option<Value> {
    let input = tensor_at(args, 0, "input")?;
    let (rank, of) = (rank_of(name)?, dims(input)?);
    let is_maximum = name.starts_with("max");
    let is_off = |at, name| match args.get(at, name) {
        None => true,
        Some(given) => *given == Value::Bool(Some(false)),
    };
    let ceil = if is_maximum { 5 } else { 4 };
    if !is_off(ceil, "ceil_mode") || is_maximum && !is_off(6, "return_indices") {
        return None;
    }
    // The batch may be missing.
    if !(rank + 1..=rank + 2).contains(&of.len()) {
        return None;
    }
    // Averages are not taken over what is farther apart.
    let dilation = if is_maximum { 4 } else { usize::MAX };
    let window = Window::of(args, rank, [1, 2, 3, dilation], true)?;
    let (before, extents) = of.split_at(of.len().checked_sub(rank)?);
    let shape = [before, &window.places(extents)?].concat();
    Some(laid_out_as(&[input], input.dtype.clone(), &shape))
}

fn interpolated(args: &Args<'_>) -> Option<Value> {
    let input = tensor_at(args, 0, "input")?;
    let of = dims(input)?;
    let [rows, channels, extents @ ..] = of.as_slice() else { return None };
    let places = match (args.get(1, "size"), args.get(2, "scale_factor")) {
        (None | Some(Value::None), Some(Value::Int(Some(factor)))) => {
            extents.iter().map(|extent| extent * factor).collect()
        }
        (Some(size), None | Some(Value::None)) => each(size, extents.len())?,
        _ => return None,
    };
    let shape = [&[*rows, *channels], &places[..]].concat();
    Some(laid_out_as(&[input], input.dtype.clone(), &shape))
}
