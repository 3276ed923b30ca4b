//! Pictures that are sampled at other places: resized, looked up by coordinates, cut into windows.

use ndarray::{Array1, ArrayD, Axis, IxDyn};

use super::pools::each;
use super::{Data, MAX_COMPUTED, of, of_value};
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// What a function makes of `tensor` and its arguments; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    match name {
        "grid_sample" => looked_up(&of(tensor)?, args),
        "interpolate" | "upsample" => resized(&of(tensor)?, args),
        "unfold" if tensor.shape.as_ref()?.len() == 4 && args.get(2, "step").is_none() => {
            windows(&of(tensor)?, args)
        }
        _ => None,
    }
}

/// A place along an axis, and how much of the number there counts.
type Share = (usize, f64);

/// `F.interpolate`, along one axis after the other.
fn resized(data: &Data, args: &Args<'_>) -> Option<Data> {
    let given = |at: usize, name: &str| args.get(at, name).filter(|given| **given != Value::None);
    let corners = given(3, "align_corners").map_or(Some(false), truth)?;
    let is_plain = ["recompute_scale_factor", "antialias"]
        .iter()
        .all(|name| args.keyword(name).is_none_or(|told| truth(told) == Some(false)));
    let linear = match given(2, "mode") {
        None => false,
        Some(Value::Str(mode)) => match (&**mode, data.numbers.ndim()) {
            ("nearest", _) => false,
            ("linear", 3) | ("bilinear", 4) | ("trilinear", 5) => true,
            _ => return None,
        },
        Some(_) => return None,
    };
    let axes = data.numbers.ndim().checked_sub(2).filter(|axes| *axes > 0 && is_plain)?;
    let sizes = match given(0, "size") {
        Some(size) => each(Some(size), axes)?,
        None => {
            let factor = given(1, "scale_factor")?;
            let factors = match factor.elements() {
                Some(factors) => factors.iter().map(as_float).collect::<Option<Vec<f64>>>()?,
                None => vec![as_float(factor)?; axes],
            };
            // By a part it takes the factor itself for how far two places are from each other.
            let is_whole = factors.iter().all(|factor| factor.fract() == 0.0 && *factor >= 1.0);
            (is_whole && factors.len() == axes).then_some(())?;
            let sizes = data.numbers.shape()[2..].iter().zip(factors);
            sizes.map(|(size, factor)| (*size as f64 * factor) as i128).collect()
        }
    };
    let mut made = data.numbers.clone();
    for (axis, size) in sizes.into_iter().enumerate().map(|(axis, size)| (axis + 2, size)) {
        let size = usize::try_from(size).ok().filter(|size| *size > 0)?;
        let from = made.len_of(Axis(axis));
        ((made.len() / from.max(1)).checked_mul(size)? <= MAX_COMPUTED).then_some(())?;
        let shares = (0..size).map(|at| share(at, (from, size), linear, corners));
        let shares = shares.collect::<Option<Vec<[Share; 2]>>>()?;
        made = along(&made, axis, &shares);
    }
    Some(data.with(made))
}

/// What counts of the numbers along an axis at a place of a resized one.
fn share(at: usize, (from, to): (usize, usize), linear: bool, corners: bool) -> Option<[Share; 2]> {
    let last = from.checked_sub(1)?;
    if !linear {
        return Some([((at * from / to).min(last), 1.0), (0, 0.0)]);
    }
    let (at, from, to) = (at as f64, from as f64, to as f64);
    let place = match corners {
        true if to > 1.0 => at * (from - 1.0) / (to - 1.0),
        true => 0.0,
        false => ((at + 0.5) * from / to - 0.5).max(0.0),
    };
    let first = (place as usize).min(last);
    let part = place - first as f64;
    Some([(first, 1.0 - part), ((first + 1).min(last), part)])
}

/// Numbers of which each place along an axis has shares.
fn along(numbers: &ArrayD<f64>, axis: usize, shares: &[[Share; 2]]) -> ArrayD<f64> {
    let mut shape = numbers.raw_dim();
    shape[axis] = shares.len();
    let mut made = ArrayD::zeros(shape);
    let lanes = numbers.lanes(Axis(axis)).into_iter();
    for (lane, mut place) in lanes.zip(made.lanes_mut(Axis(axis))) {
        let of_shares = |shares: &[Share; 2]| {
            let [(a, of_a), (b, of_b)] = *shares;
            if of_b == 0.0 { lane[a] * of_a } else { lane[a] * of_a + lane[b] * of_b }
        };
        place.assign(&shares.iter().map(of_shares).collect::<Array1<f64>>());
    }
    made
}

/// `F.grid_sample` of pictures.
fn looked_up(data: &Data, args: &Args<'_>) -> Option<Data> {
    let grid = of_value(args.get(0, "grid")?)?;
    let told = |at: usize, name: &str, default: &'static str| match args.get(at, name) {
        None => Some(default.to_owned()),
        Some(Value::Str(told)) => Some(told.to_string()),
        Some(_) => None,
    };
    let nearest = match &*told(1, "mode", "bilinear")? {
        "bilinear" => false,
        "nearest" => true,
        _ => return None,
    };
    let clamps = match &*told(2, "padding_mode", "zeros")? {
        "zeros" => false,
        "border" => true,
        _ => return None,
    };
    let corners = match args.get(3, "align_corners") {
        None | Some(Value::None) => false,
        Some(told) => truth(told)?,
    };
    let [pictures, channels, height, width] = *data.numbers.shape() else { return None };
    let [of_pictures, rows, columns, 2] = *grid.numbers.shape() else { return None };
    (pictures == of_pictures && height > 0 && width > 0).then_some(())?;
    let shape = [pictures, channels, rows, columns];
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    (count <= MAX_COMPUTED).then_some(())?;
    let place = |at: f64, size: usize| {
        let size = size as f64;
        let place = match corners {
            true => (at + 1.0) / 2.0 * (size - 1.0),
            false => ((at + 1.0) * size - 1.0) / 2.0,
        };
        if clamps { place.clamp(0.0, size - 1.0) } else { place }
    };
    // Half way between two, or at an edge, rounding decides which numbers count.
    let numbers = ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        let coordinate = |which: usize| grid.numbers[[at[0], at[2], at[3], which]];
        let (x, y) = (place(coordinate(0), width), place(coordinate(1), height));
        let number = |y: f64, x: f64| {
            let is_inside = (0.0..height as f64).contains(&y) && (0.0..width as f64).contains(&x);
            match is_inside {
                true => data.numbers[[at[0], at[1], y as usize, x as usize]],
                false => 0.0,
            }
        };
        if nearest {
            return number(y.round_ties_even(), x.round_ties_even());
        }
        let (left, top) = (x.floor(), y.floor());
        let (right, below) = (x - left, y - top);
        number(top, left) * (1.0 - below) * (1.0 - right)
            + number(top, left + 1.0) * (1.0 - below) * right
            + number(top + 1.0, left) * below * (1.0 - right)
            + number(top + 1.0, left + 1.0) * below * right
    });
    Some(data.with(numbers))
}

/// `F.unfold`: the windows of pictures, a column for each.
fn windows(data: &Data, args: &Args<'_>) -> Option<Data> {
    let told = |at: usize, name: &str, default: i128| match args.get(at, name) {
        None => Some(vec![default; 2]),
        told => each(told, 2),
    };
    let kernel = each(args.get(0, "kernel_size"), 2)?;
    let (dilation, padding) = (told(1, "dilation", 1)?, told(2, "padding", 0)?);
    let stride = told(3, "stride", 1)?;
    let bounded = |values: &[i128], least: i128| {
        values.iter().all(|value| (least..=MAX_COMPUTED as i128).contains(value))
    };
    let is_plain =
        bounded(&kernel, 1) && bounded(&dilation, 1) && bounded(&stride, 1) && bounded(&padding, 0);
    is_plain.then_some(())?;
    let [pictures, channels, ..] = *data.numbers.shape() else { return None };
    let sizes = &data.numbers.shape()[2..];
    let count = |axis: usize| {
        let reach = dilation[axis] * (kernel[axis] - 1) + 1;
        let room = sizes[axis] as i128 + 2 * padding[axis] - reach;
        usize::try_from(room / stride[axis] + 1).ok().filter(|_| room >= 0)
    };
    let counts = [count(0)?, count(1)?];
    let in_window = usize::try_from(kernel[0].checked_mul(kernel[1])?).ok()?;
    let shape = [pictures, channels.checked_mul(in_window)?, counts[0].checked_mul(counts[1])?];
    let all = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    (all <= MAX_COMPUTED).then_some(())?;
    let width = usize::try_from(kernel[1]).ok()?;
    let numbers = ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        let (channel, within) = (at[1] / in_window, at[1] % in_window);
        let steps = [within / width, within % width];
        let starts = [at[2] / counts[1], at[2] % counts[1]];
        let place = |axis: usize| {
            let place = starts[axis] as i128 * stride[axis] - padding[axis]
                + steps[axis] as i128 * dilation[axis];
            usize::try_from(place).ok().filter(|place| *place < sizes[axis])
        };
        match (place(0), place(1)) {
            (Some(row), Some(column)) => data.numbers[[at[0], channel, row, column]],
            _ => 0.0,
        }
    });
    Some(data.with(numbers))
}
