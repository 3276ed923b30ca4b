//! Numbers of windows that are taken together, and the way back from channels to pixels.

use ndarray::{ArrayD, IxDyn};

use super::arithmetic::greater;
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
    let (kind, axes) = kind(name)?;
    let data = of(tensor)?;
    let first = data.numbers.ndim().checked_sub(axes)?;
    let sizes = data.numbers.shape()[first..].to_vec();
    let (windows, counts) = match kind {
        "avg_pool" | "max_pool" => (fixed(&sizes, args)?, Counts::of(args)?),
        "adaptive_avg_pool" | "adaptive_max_pool" => (adaptive(&sizes, args)?, Counts::Inside),
        _ => return None,
    };
    pooled(&data, first, &windows, (!kind.ends_with("max_pool")).then_some(counts))
}

/// What a function is called without its number of axes, and that.
fn kind(name: &str) -> Option<(&str, usize)> {
    let mut ends = [("1d", 1), ("2d", 2), ("3d", 3)].into_iter();
    ends.find_map(|(end, axes)| Some((name.strip_suffix(end)?, axes)))
}

/// Along how many axes a function takes windows; `None` for other functions.
pub(super) fn axes(name: &str) -> Option<usize> {
    let (kind, axes) = kind(name)?;
    kind.ends_with("_pool").then_some(axes)
}

/// Where a window along an axis begins and ends, which may be outside of it, and how much of it counts where
/// padding does.
#[derive(Clone, Copy)]
struct Window {
    from: i128,
    to: i128,
    counted: i128,
}

/// The windows along an axis.
type Windows = Vec<Window>;

/// What the sum of a window is divided by.
#[derive(Clone, Copy)]
enum Counts {
    /// The numbers in it, with padding.
    All,
    /// The numbers in it.
    Inside,
    /// A number that is told.
    Told(f64),
}

impl Counts {
    fn of(args: &Args<'_>) -> Option<Counts> {
        match args.keyword("divisor_override") {
            None | Some(Value::None) => {}
            Some(divisor) => return Some(Counts::Told(known(divisor)? as f64)),
        }
        let padding_counts = args.keyword("count_include_pad").map_or(Some(true), truth)?;
        Some(if padding_counts { Counts::All } else { Counts::Inside })
    }
}

/// Windows of one size.
fn fixed(sizes: &[usize], args: &Args<'_>) -> Option<Vec<Windows>> {
    const KNOWN: &[&str] = &[
        "ceil_mode",
        "count_include_pad",
        "dilation",
        "divisor_override",
        "kernel_size",
        "padding",
        "return_indices",
        "stride",
    ];
    let is_known = |name: &str| KNOWN.contains(&name);
    let all_known = args.keywords().iter().all(|(name, _)| name.as_deref().is_none_or(is_known));
    let is_dense = args.keyword("dilation").is_none_or(|dilation| {
        each(Some(dilation), sizes.len()).is_some_and(|all| all.iter().all(|one| *one == 1))
    });
    let is_plain = args.positional().len() <= 3
        && is_dense
        && args.keyword("return_indices").is_none_or(|flag| truth(flag) == Some(false));
    (all_known && is_plain).then_some(())?;
    let ceils = args.keyword("ceil_mode").map_or(Some(false), truth)?;
    let kernel = each(args.get(0, "kernel_size"), sizes.len())?;
    let stride = args.get(1, "stride").filter(|stride| **stride != Value::None);
    let stride = stride.map_or(Some(kernel.clone()), |stride| each(Some(stride), sizes.len()))?;
    let padding = args
        .get(2, "padding")
        .map_or(Some(vec![0; sizes.len()]), |padding| each(Some(padding), sizes.len()))?;
    let along = |axis: usize| {
        let (kernel, stride, padding) = (kernel[axis], stride[axis], padding[axis]);
        let size = sizes[axis] as i128;
        // PyTorch pads by half of a window at most.
        let is_plain = (1..=MAX_COMPUTED as i128).contains(&kernel)
            && (0..=kernel / 2).contains(&padding)
            && stride > 0;
        let room = is_plain.then(|| size + 2 * padding - kernel)?;
        let more = if ceils { stride - 1 } else { 0 };
        // What is rounded up begins before the padding behind.
        let begins = |at: &i128| !ceils || at * stride < size + padding;
        let window = |at: i128| {
            let from = at * stride - padding;
            let counted = (from + kernel).min(size + padding) - from;
            Window { from, to: from + kernel, counted }
        };
        (room >= 0).then(|| (0..=(room + more) / stride).filter(begins).map(window).collect())
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
        let window = |at: i128| {
            let (from, to) = (at * size / count, ((at + 1) * size + count - 1) / count);
            Window { from, to, counted: to - from }
        };
        (0..count).map(window).collect()
    };
    (!flag && counts.iter().all(|count| *count > 0))
        .then(|| sizes.iter().zip(counts).map(along).collect())
}

/// A number for each of several axes, or one for all.
pub(super) fn each(value: Option<&Value>, axes: usize) -> Option<Vec<i128>> {
    let value = value?;
    match value.elements() {
        None => Some(vec![known(value)?; axes]),
        Some(items) if items.len() == 1 => Some(vec![known(&items[0])?; axes]),
        Some(items) if items.len() == axes => items.iter().map(known).collect(),
        Some(_) => None,
    }
}

/// The greatest number of each window, or what its sum is divided by `counts`.
fn pooled(data: &Data, first: usize, windows: &[Windows], counts: Option<Counts>) -> Option<Data> {
    let sizes = data.numbers.shape();
    let kept = sizes[..first].iter().copied();
    let shape: Vec<usize> = kept.chain(windows.iter().map(Vec::len)).collect();
    let of_window = |windows: &Windows| windows.iter().map(|window| window.to - window.from).max();
    let steps =
        windows.iter().try_fold(1i128, |steps, along| steps.checked_mul(of_window(along)?))?;
    let count = shape.iter().product::<usize>() as i128;
    (count <= MAX_COMPUTED as i128 && count.checked_mul(steps)? <= 1 << 23).then_some(())?;
    let numbers = ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        let bounds: Vec<Window> =
            windows.iter().enumerate().map(|(axis, along)| along[at[first + axis]]).collect();
        let all: i128 = bounds.iter().map(|window| window.to - window.from).product();
        let mut place = at.clone();
        let inside = (0..all).filter_map(|step| {
            let mut rest = step;
            for (axis, window) in bounds.iter().enumerate().rev() {
                let here = window.from + rest % (window.to - window.from);
                rest /= window.to - window.from;
                place[first + axis] =
                    usize::try_from(here).ok().filter(|here| *here < sizes[first + axis])?;
            }
            Some(data.numbers[&place])
        });
        let inside: Vec<f64> = inside.collect();
        let divisor = match counts {
            None => return inside.into_iter().fold(f64::NEG_INFINITY, greater),
            Some(Counts::All) => {
                bounds.iter().map(|window| window.counted).product::<i128>() as f64
            }
            Some(Counts::Inside) => inside.len() as f64,
            Some(Counts::Told(divisor)) => divisor,
        };
        inside.iter().sum::<f64>() / divisor
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
