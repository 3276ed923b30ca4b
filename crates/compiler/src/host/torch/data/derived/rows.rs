//! Gradients of what is made of numbers along axes: sums, extremes, normalizations, losses of rows.

use ndarray::{ArrayD, Axis, IxDyn};

use super::super::along::{axes_of, axis_of};
use super::super::{Data, Made, convolutions, layers, losses, of, of_value};
use super::{Given, extents, reduced_to, several, tensors_in};
use crate::host::code::arguments::Args;
use crate::host::launch::past::Maker;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// What a function hands on to the tensor at `at` among those in its arguments; `None` for other functions.
pub(super) fn handed_on(
    name: &str,
    args: &Given,
    at: usize,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    let asked = tensors_in(args)[at];
    let (input, rest) = Args(args).of_input()?;
    if let "layer_norm" | "rms_norm" = name {
        return of_normalized(name == "layer_norm", input, &rest, asked, given);
    }
    if let "conv1d" | "conv2d" = name {
        return convolutions::handed_on(name, input, &rest, asked, given);
    }
    if let "index_add" | "scatter_add" = name {
        return of_added(name, input, &rest, asked, given);
    }
    if !std::ptr::eq(input, asked) {
        return None;
    }
    match name {
        "sum" => spread(input, &rest, given),
        "mean" => {
            let count: usize = extents(input)?.iter().product();
            let all = spread(input, &rest, given)?;
            let kept = given.len().max(1);
            Some(all.mapv(|number| number * kept as f64 / count as f64))
        }
        "amax" | "amin" | "max" | "min" => {
            let made = super::super::of_method(name, input, &rest, super::super::Ties::InOrder)?;
            let Made::One(made) = made else { return None };
            of_extremes(input, &rest, &made.numbers, given)
        }
        "prod" => {
            let made = super::super::of_method(name, input, &rest, super::super::Ties::InOrder)?;
            let Made::One(made) = made else { return None };
            let (made, given) =
                (spread(input, &rest, &made.numbers)?, spread(input, &rest, given)?);
            Some(made * given / of(input)?.numbers)
        }
        "cumsum" => {
            let axis = Axis(axis_of(input, rest.get(0, "dim"), None)?);
            let mut sums = given.clone();
            sums.invert_axis(axis);
            sums.accumulate_axis_inplace(axis, |before, here| *here += before);
            sums.invert_axis(axis);
            Some(sums)
        }
        "softmax" | "log_softmax" => {
            let axis = axis_of(input, Some(rest.get(0, "dim")?), None)?;
            let made = layers::made_of(name, input, &rest)?.numbers;
            Some(of_softmax(name == "log_softmax", &made, axis, given))
        }
        "logsumexp" => {
            let made = spread(input, &rest, &layers::made_of(name, input, &rest)?.numbers)?;
            let chances = (of(input)?.numbers - made).mapv(f64::exp);
            Some(chances * spread(input, &rest, given)?)
        }
        "norm" => {
            let rest = layers::behind_order(&rest)?;
            let length = layers::made_of(name, input, &Args(&rest))?.numbers;
            let scale = ndarray::Zip::from(given)
                .and(&length)
                .map_collect(|given, length| if *length == 0.0 { 0.0 } else { given / length });
            Some(of(input)?.numbers * spread(input, &Args(&rest), &scale)?)
        }
        "var" | "std" => of_deviation(name, input, &rest, given),
        "normalize" => of_unit(input, &rest, given),
        "cross_entropy" => losses::of_classes(input, &rest, given),
        _ => None,
    }
}

/// Numbers of what was made along axes, at each number that it was made of.
fn spread(input: &Tensor, args: &Args<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let (axes, keeps) = axes_of(input, args)?;
    let mut given = given.clone();
    let rank = extents(input)?.len();
    if given.ndim() + if keeps { 0 } else { axes.len() } != rank {
        return None;
    }
    if !keeps {
        axes.iter().for_each(|axis| given.insert_axis_inplace(Axis(*axis)));
    }
    Some(given.broadcast(IxDyn(&extents(input)?))?.to_owned())
}

/// Those that are the extreme have equal parts.
fn of_extremes(
    input: &Tensor,
    args: &Args<'_>,
    made: &ArrayD<f64>,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    let (axes, _) = axes_of(input, args)?;
    let numbers = of(input)?.numbers;
    let is_extreme = ndarray::Zip::from(&numbers)
        .and(&spread(input, args, made)?)
        .map_collect(|number, extreme| f64::from(number == extreme));
    let counts = axes.iter().fold(is_extreme.clone(), |counts, axis| {
        counts.sum_axis(Axis(*axis)).insert_axis(Axis(*axis))
    });
    Some(is_extreme * spread(input, args, given)? / counts)
}

/// The gradient of what chooses numbers along an axis and tells their positions.
pub(super) fn chosen(maker: &Maker, args: &Given, at: usize, given: &Data) -> Option<ArrayD<f64>> {
    let asked = tensors_in(args)[at];
    let (input, rest) = Args(args).of_input()?;
    let name = maker.name()?;
    let place = if matches!(name, "topk") { 1 } else { 0 };
    let default = matches!(name, "sort" | "topk").then_some(-1);
    let axis =
        axis_of(input, rest.get(place, "dim"), default).filter(|_| std::ptr::eq(input, asked))?;
    let [_, positions] = &several(maker.make(args)?)[..] else { return None };
    let keeps_axis = positions.numbers.ndim() == extents(input)?.len();
    let with_axis = |numbers: &ArrayD<f64>| match keeps_axis {
        true => numbers.clone(),
        false => numbers.clone().insert_axis(Axis(axis)),
    };
    let mut gradient = ArrayD::zeros(extents(input)?);
    let (positions, given) = (with_axis(&positions.numbers), with_axis(&given.numbers));
    for (index, from) in positions.indexed_iter() {
        let mut to = index.clone();
        to[axis] = *from as usize;
        *gradient.get_mut(to)? += given.get(index)?;
    }
    Some(gradient)
}

fn of_softmax(is_log: bool, made: &ArrayD<f64>, axis: usize, given: &ArrayD<f64>) -> ArrayD<f64> {
    let sum = |numbers: ArrayD<f64>| numbers.sum_axis(Axis(axis)).insert_axis(Axis(axis));
    match is_log {
        true => given - made.mapv(f64::exp) * sum(given.clone()),
        false => made * (given - sum(given * made)),
    }
}

fn of_deviation(
    name: &str,
    input: &Tensor,
    args: &Args<'_>,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    let made = layers::made_of(name, input, args)?.numbers;
    let numbers = of(input)?.numbers;
    let (axes, _) = axes_of(input, args)?;
    let mean = axes.iter().try_fold(numbers.clone(), |mean, axis| {
        Some(mean.mean_axis(Axis(*axis))?.insert_axis(Axis(*axis)))
    })?;
    let count = axes.iter().map(|axis| numbers.shape()[*axis]).product::<usize>() as f64;
    let divisor = count - f64::from(u8::from(layers::is_unbiased(args)?));
    let scale = match name {
        "std" => (given / &made).mapv(|number| number / divisor),
        _ => given.mapv(|number| number * 2.0 / divisor),
    };
    Some((numbers - mean) * spread(input, args, &scale)?)
}

/// The gradient of rows that are divided by their lengths.
fn of_unit(input: &Tensor, args: &Args<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let axis = Axis(axis_of(input, args.get(1, "dim"), Some(1))?);
    let made = layers::made_of("normalize", input, args)?.numbers;
    let numbers = of(input)?.numbers;
    let along = |numbers: ArrayD<f64>| numbers.sum_axis(axis).insert_axis(axis);
    let length = along(numbers.mapv(|number| number * number)).mapv(|sum| sum.sqrt().max(1e-12));
    Some((given - &made * along(given * &made)) / length)
}

/// The gradient of what layer or RMS normalization is given.
fn of_normalized(
    centers: bool,
    input: &Tensor,
    args: &Args<'_>,
    asked: &Tensor,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    let is_asked = |value: Option<&Value>| match value {
        Some(Value::Tensor(tensor)) => std::ptr::eq(tensor, asked),
        _ => false,
    };
    let is_weight = is_asked(args.get(1, "weight"));
    if is_asked(args.get(2, "bias")).then_some(()).is_some_and(|()| centers) {
        return reduced_to(&extents(asked)?, given.clone());
    }
    let rows = layers::normalized_rows(centers, input, args)?;
    if is_weight {
        return reduced_to(&extents(asked)?, given * &rows.made);
    }
    if !std::ptr::eq(input, asked) {
        return None;
    }
    let given = match args.get(1, "weight").filter(|weight| **weight != Value::None) {
        None => given.clone(),
        Some(weight) => {
            let weight = of_value(weight)?.numbers;
            given * &weight.broadcast(given.raw_dim())?
        }
    };
    let length = rows.length.max(1);
    let (given, made): (Vec<f64>, Vec<f64>) =
        (given.iter().copied().collect(), rows.made.iter().copied().collect());
    let mut gradient = Vec::with_capacity(given.len());
    let both = given.chunks_exact(length).zip(made.chunks_exact(length));
    for ((given, made), scale) in both.zip(&rows.scales) {
        let mean = |numbers: &mut dyn Iterator<Item = f64>| numbers.sum::<f64>() / length as f64;
        let shift = if centers { mean(&mut given.iter().copied()) } else { 0.0 };
        let along = mean(&mut given.iter().zip(made).map(|(given, made)| given * made));
        let one = |(given, made): (&f64, &f64)| scale * (given - shift - made * along);
        gradient.extend(given.iter().zip(made).map(one));
    }
    ArrayD::from_shape_vec(rows.made.raw_dim(), gradient).ok()
}

/// The gradient of what is added to chosen elements, and of what these are added to.
fn of_added(
    name: &str,
    input: &Tensor,
    args: &Args<'_>,
    asked: &Tensor,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    if std::ptr::eq(input, asked) {
        return Some(given.clone());
    }
    if args.0.len() > 4 || args.keyword("reduce").is_some() {
        return None;
    }
    let scale = args.keyword("alpha").map_or(Some(1.0), as_float)?;
    let axis = axis_of(input, args.get(0, "dim"), None)?;
    let index = of_value(args.get(1, "index")?)?;
    let sizes = extents(asked)?;
    let taken = |at: IxDyn| {
        let mut from = at.clone();
        let along = if name == "index_add" { IxDyn(&[at[axis]]) } else { at };
        from[axis] = index.numbers.get(along).map_or(usize::MAX, |row| *row as usize);
        given.get(from).map_or(f64::NAN, |number| scale * number)
    };
    let fits = sizes.len() == given.ndim();
    fits.then(|| ArrayD::from_shape_fn(IxDyn(&sizes), taken))
}
