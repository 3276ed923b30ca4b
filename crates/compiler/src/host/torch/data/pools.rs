//! Numbers of windows that are taken together, and the way back from channels to pixels.

use ndarray::{ArrayD, IxDyn};

use super::{Data, MAX_COMPUTED, known, of};
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::value::{Tensor, Value};

/// What a function makes of `tensor` and its arguments; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    if name == "pixel_shuffle" {
        return shuffled(
            of(tensor)?,
            usize::try_from(known(args.get(0, "upscale_factor")?)?).ok()?,
        );
    }
    let (kind, axes) = [("1d", 1), ("2d", 2), ("3d", 3)]
        .into_iter()
        .find_map(|(end, axes)| Some((name.strip_suffix(end)?, axes)))?;
    let data = of(tensor)?;
    let first = data.numbers.ndim().checked_sub(axes)?;
    let sizes = data.numbers.shape()[first..].to_vec();
    let windows = match kind {
        "avg_pool" | "max_pool" => fixed(&sizes, args)?,
        "adaptive_avg_pool" | "adaptive_max_pool" => adaptive(&sizes, args)?,
        _ => return None,
    };
    pooled(&data, first, &windows, kind.ends_with("max_pool"))
}

/// Where the windows along an axis begin and end, which may be outside of it.
type Windows = Vec<(i128, i128)>;

/// Windows of one size.
fn fixed(sizes: &[usize], args: &Args<'_>) -> Option<Vec<Windows>> {
    const KNOWN: &[&str] =
        &["ceil_mode", "count_include_pad", "divisor_override", "kernel_size", "padding", "stride"];
    let is_known = |name: &str| KNOWN.contains(&name);
    let all_known = args.keywords().iter().all(|(name, _)| name.as_deref().is_none_or(is_known));
    let is_plain = args.positional().len() <= 3
        && args.keyword("divisor_override").is_none_or(|divisor| *divisor == Value::None)
        && args.keyword("ceil_mode").is_none_or(|flag| truth(flag) == Some(false))
        && args.keyword("count_include_pad").is_none_or(|flag| truth(flag) == Some(true));
    (all_known && is_plain).then_some(())?;
    let kernel = each(args.get(0, "kernel_size"), sizes.len())?;
    let stride = args.get(1, "stride").filter(|stride| **stride != Value::None);
    let stride = stride.map_or(Some(kernel.clone()), |stride| each(Some(stride), sizes.len()))?;
    let padding = args
        .get(2, "padding")
        .map_or(Some(vec![0; sizes.len()]), |padding| each(Some(padding), sizes.len()))?;
    let along = |axis: usize| {
        let (kernel, stride, padding) = (kernel[axis], stride[axis], padding[axis]);
        // PyTorch pads by half of a window at most.
        let is_plain = (1..=MAX_COMPUTED as i128).contains(&kernel)
            && (0..=kernel / 2).contains(&padding)
            && stride > 0;
        let room = is_plain.then(|| sizes[axis] as i128 + 2 * padding - kernel)?;
        (room >= 0).then(|| {
            let start = |at: i128| at * stride - padding;
            (0..=room / stride).map(|at| (start(at), start(at) + kernel)).collect()
        })
    };
    (0..sizes.len()).map(along).collect()
}

/// So many windows that an axis is covered.
fn adaptive(sizes: &[usize], args: &Args<'_>) -> Option<Vec<Windows>> {
    let counts = each(args.get(0, "output_size"), sizes.len())?;
    let flag = args.get(1, "return_indices").is_some();
    let count = counts.iter().try_fold(1i128, |all, count| all.checked_mul(*count))?;
    (count <= MAX_COMPUTED as i128).then_some(())?;
    let along = |(size, count): (&usize, i128)| {
        let size = *size as i128;
        (0..count).map(|at| (at * size / count, ((at + 1) * size + count - 1) / count)).collect()
    };
    (!flag && counts.iter().all(|count| *count > 0))
        .then(|| sizes.iter().zip(counts).map(along).collect())
}

/// A number for each of several axes, or one for all.
fn each(value: Option<&Value>, axes: usize) -> Option<Vec<i128>> {
    let value = value?;
    match value.elements() {
        None => Some(vec![known(value)?; axes]),
        Some(items) if items.len() == 1 => Some(vec![known(&items[0])?; axes]),
        Some(items) if items.len() == axes => items.iter().map(known).collect(),
        Some(_) => None,
    }
}

fn pooled(data: &Data, first: usize, windows: &[Windows], greatest: bool) -> Option<Data> {
    let sizes = data.numbers.shape();
    let kept = sizes[..first].iter().copied();
    let shape: Vec<usize> = kept.chain(windows.iter().map(Vec::len)).collect();
    let of_window = |windows: &Windows| windows.iter().map(|(from, to)| to - from).max();
    let steps =
        windows.iter().try_fold(1i128, |steps, along| steps.checked_mul(of_window(along)?))?;
    let count = shape.iter().product::<usize>() as i128;
    (count <= MAX_COMPUTED as i128 && count.checked_mul(steps)? <= 1 << 23).then_some(())?;
    let numbers = ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        let bounds: Vec<(i128, i128)> =
            windows.iter().enumerate().map(|(axis, along)| along[at[first + axis]]).collect();
        let all: i128 = bounds.iter().map(|(from, to)| to - from).product();
        let mut place = at.clone();
        let inside = (0..all).filter_map(|step| {
            let mut rest = step;
            for (axis, (from, to)) in bounds.iter().enumerate().rev() {
                let here = from + rest % (to - from);
                rest /= to - from;
                place[first + axis] =
                    usize::try_from(here).ok().filter(|here| *here < sizes[first + axis])?;
            }
            Some(data.numbers[&place])
        });
        match greatest {
            true => inside.fold(f64::NEG_INFINITY, f64::max),
            false => inside.sum::<f64>() / all as f64,
        }
    });
    Some(data.with(numbers))
}

/// `F.pixel_shuffle`: squares of pixels of which each channel has one.
fn shuffled(data: Data, factor: usize) -> Option<Data> {
    let mut shape = data.numbers.shape().to_vec();
    let first = shape.len().checked_sub(3)?;
    let square = factor.checked_mul(factor).filter(|square| *square > 0)?;
    shape[first].is_multiple_of(square).then_some(())?;
    shape[first] /= square;
    shape[first + 1] *= factor;
    shape[first + 2] *= factor;
    let numbers = ArrayD::from_shape_fn(IxDyn(&shape), |mut at| {
        let (row, column) = (at[first + 1], at[first + 2]);
        at[first] = at[first] * square + row % factor * factor + column % factor;
        (at[first + 1], at[first + 2]) = (row / factor, column / factor);
        data.numbers[&at]
    });
    Some(data.with(numbers))
}
