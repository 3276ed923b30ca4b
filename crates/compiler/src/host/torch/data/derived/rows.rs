//! Gradients of what is made of numbers along axes: sums, extremes, normalizations, losses of rows.

use ndarray::{ArrayD, Axis, IxDyn, Zip};

use super::super::along::{axes_of, axis_of};
use super::super::{convolutions, layers, losses, of, of_value};
use super::{Call, extents, reduced_to, several};
use crate::host::code::arguments::Args;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// What a function that made `made` hands on to the tensor that is asked for; `None` for other functions.
pub(super) fn handed_on(
    call: Call<'_>,
    made: &ArrayD<f64>,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    let (input, rest) = call.of_input()?;
    match call.name {
        "conv1d" | "conv2d" => return convolutions::handed_on(call, given),
        "index_add" | "scatter_add" => return of_added(call, given),
        "layer_norm" | "rms_norm" => return of_normalized(call, given),
        _ if !std::ptr::eq(input, call.asked) => return None,
        _ => {}
    }
    let numbers = || Some(of(input)?.numbers);
    match call.name {
        "amax" | "amin" | "max" | "min" => of_extremes(input, &rest, made, given),
        "prod" => Some(spread(input, &rest, &(made * given))? / numbers()?),
        "cumsum" => {
            let axis = Axis(axis_of(input, rest.get(0, "dim"), None)?);
            let mut sums = given.clone();
            sums.invert_axis(axis);
            sums.accumulate_axis_inplace(axis, |before, here| *here += before);
            sums.invert_axis(axis);
            Some(sums)
        }
        "softmax" | "log_softmax" => {
            let axis = Axis(axis_of(input, Some(rest.get(0, "dim")?), None)?);
            let sum = |numbers: ArrayD<f64>| numbers.sum_axis(axis).insert_axis(axis);
            Some(match call.name {
                "log_softmax" => given - made.mapv(f64::exp) * sum(given.clone()),
                _ => made * (given - sum(given * made)),
            })
        }
        "logsumexp" => {
            let chances = (numbers()? - spread(input, &rest, made)?).mapv(f64::exp);
            Some(chances * spread(input, &rest, given)?)
        }
        "norm" => {
            let one = |given: &f64, length: &f64| if *length == 0.0 { 0.0 } else { given / length };
            let scale = Zip::from(given).and(made).map_collect(one);
            Some(numbers()? * spread(input, &Args(&layers::behind_order(&rest)?), &scale)?)
        }
        "var" | "std" => of_deviation(call, made, given),
        "normalize" => {
            let axis = Axis(axis_of(input, rest.get(1, "dim"), Some(1))?);
            let along = |numbers: ArrayD<f64>| numbers.sum_axis(axis).insert_axis(axis);
            let squares = along(numbers()?.mapv(|number| number * number));
            let length = squares.mapv(|sum| sum.sqrt().max(layers::LEAST_LENGTH));
            Some((given - made * along(given * made)) / length)
        }
        "cross_entropy" => losses::of_classes(input, &rest, given),
        _ => None,
    }
}

/// The gradient of what `sum` or `mean` adds up, of which no number need be known.
pub(super) fn of_sum(call: Call<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let (input, rest) = call.of_input()?;
    let all = spread(input, &rest, given)?;
    let added = if call.name == "mean" { all.len() / given.len().max(1) } else { 1 };
    Some(all / added as f64)
}

/// Numbers of what was made along axes, at each number that it was made of.
fn spread(input: &Tensor, args: &Args<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let (axes, keeps) = axes_of(input, args)?;
    let left_out = if keeps { Vec::new() } else { axes };
    let (mut given, sizes) = (given.clone(), extents(input)?);
    if given.ndim() + left_out.len() != sizes.len() {
        return None;
    }
    left_out.into_iter().for_each(|axis| given.insert_axis_inplace(Axis(axis)));
    Some(given.broadcast(IxDyn(&sizes))?.to_owned())
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
    let is_extreme = Zip::from(&numbers)
        .and(&spread(input, args, made)?)
        .map_collect(|number, extreme| f64::from(number == extreme));
    let counts = axes.iter().fold(is_extreme.clone(), |counts, axis| {
        counts.sum_axis(Axis(*axis)).insert_axis(Axis(*axis))
    });
    Some(is_extreme * spread(input, args, given)? / counts)
}

/// The gradient of what chooses numbers along an axis and tells their positions.
pub(super) fn chosen(call: Call<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let (input, rest) = call.of_input()?;
    let place = usize::from(call.name == "topk");
    let default = matches!(call.name, "sort" | "topk").then_some(-1);
    let axis = axis_of(input, rest.get(place, "dim"), default)
        .filter(|_| std::ptr::eq(input, call.asked))?;
    let [_, positions] = &several(call.maker.make(call.args)?)[..] else { return None };
    let keeps_axis = positions.numbers.ndim() == extents(input)?.len();
    let with_axis = |numbers: &ArrayD<f64>| match keeps_axis {
        true => numbers.clone(),
        false => numbers.clone().insert_axis(Axis(axis)),
    };
    let mut gradient = ArrayD::zeros(extents(input)?);
    let (positions, given) = (with_axis(&positions.numbers), with_axis(given));
    for (index, from) in positions.indexed_iter() {
        let mut to = index.clone();
        to[axis] = *from as usize;
        *gradient.get_mut(to)? += given.get(index)?;
    }
    Some(gradient)
}

/// The gradient of a variance, or of its root.
fn of_deviation(call: Call<'_>, made: &ArrayD<f64>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let (input, args) = call.of_input()?;
    let numbers = of(input)?.numbers;
    let (axes, _) = axes_of(input, &args)?;
    let mean = axes.iter().try_fold(numbers.clone(), |mean, axis| {
        Some(mean.mean_axis(Axis(*axis))?.insert_axis(Axis(*axis)))
    })?;
    let count = axes.iter().map(|axis| numbers.shape()[*axis]).product::<usize>() as f64;
    let divisor = count - f64::from(u8::from(layers::is_unbiased(&args)?));
    let scale = match call.name {
        "std" => given / made / divisor,
        _ => given * 2.0 / divisor,
    };
    Some((numbers - mean) * spread(input, &args, &scale)?)
}

/// The gradient of what layer or RMS normalization is given.
fn of_normalized(call: Call<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let (input, args) = call.of_input()?;
    let centers = call.name == "layer_norm";
    if centers && call.asks_for(args.get(2, "bias")) {
        return reduced_to(&extents(call.asked)?, given.clone());
    }
    let rows = layers::normalized_rows(centers, input, &args)?;
    if call.asks_for(args.get(1, "weight")) {
        return reduced_to(&extents(call.asked)?, given * &rows.made);
    }
    if !std::ptr::eq(input, call.asked) {
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
fn of_added(call: Call<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let (input, args) = call.of_input()?;
    if std::ptr::eq(input, call.asked) {
        return Some(given.clone());
    }
    if args.0.len() > 4 || args.keyword("reduce").is_some() {
        return None;
    }
    let scale = args.keyword("alpha").map_or(Some(1.0), as_float)?;
    let axis = axis_of(input, args.get(0, "dim"), None)?;
    let index = of_value(args.get(1, "index")?)?;
    let sizes = extents(call.asked)?;
    let taken = |at: IxDyn| {
        let mut from = at.clone();
        let along = if call.name == "index_add" { IxDyn(&[at[axis]]) } else { at };
        from[axis] = index.numbers.get(along).map_or(usize::MAX, |row| *row as usize);
        given.get(from).map_or(f64::NAN, |number| scale * number)
    };
    let fits = sizes.len() == given.ndim();
    fits.then(|| ArrayD::from_shape_fn(IxDyn(&sizes), taken))
}
