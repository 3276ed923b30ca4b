//! Normalizations of channels and of groups of channels.

use ndarray::{ArrayD, Axis};

use super::{Data, known, of, of_value};
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// What a function makes of `tensor` and its arguments; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let given = |at: usize, name: &str| args.get(at, name).filter(|given| **given != Value::None);
    let eps = |at: usize| given(at, "eps").map_or(Some(1e-5), as_float);
    let flag = |at: usize, name: &str, default| given(at, name).map_or(Some(default), truth);
    let scaled = |data: Data, at: usize| {
        let affine = [given(at, "weight"), given(at + 1, "bias")];
        by_channel(data, affine)
    };
    match name {
        "group_norm" => {
            let groups = usize::try_from(known(args.get(0, "num_groups")?)?).ok()?;
            scaled(grouped(of(tensor)?, groups, eps(3)?)?, 1)
        }
        "instance_norm" if flag(4, "use_input_stats", true)? => {
            let data = of(tensor)?;
            let channels = *data.numbers.shape().get(1)?;
            scaled(grouped(data, channels, eps(6)?)?, 2)
        }
        "batch_norm" if flag(4, "training", false)? => scaled(of_batch(of(tensor)?, eps(6)?)?, 2),
        "batch_norm" => {
            let running = [args.get(0, "running_mean")?, args.get(1, "running_var")?];
            scaled(by_running(of(tensor)?, running, eps(6)?)?, 2)
        }
        _ => None,
    }
}

/// Numbers of mean 0, divided by the root of their variance.
fn standardize<'a>(numbers: impl IntoIterator<Item = &'a mut f64>, eps: f64) {
    let mut numbers: Vec<&mut f64> = numbers.into_iter().collect();
    let count = numbers.len() as f64;
    let mean = numbers.iter().map(|number| **number).sum::<f64>() / count;
    numbers.iter_mut().for_each(|number| **number -= mean);
    let variance = numbers.iter().map(|number| **number * **number).sum::<f64>() / count;
    let scale = (variance + eps).sqrt().recip();
    numbers.into_iter().for_each(|number| *number *= scale);
}

fn grouped(data: Data, groups: usize, eps: f64) -> Option<Data> {
    let shape = data.numbers.raw_dim();
    let rows = groups.checked_mul(*data.numbers.shape().first()?)?;
    let mut numbers: Vec<f64> = data.numbers.iter().copied().collect();
    let length = numbers.len().checked_div(rows).filter(|length| *length > 0)?;
    let channels = *data.numbers.shape().get(1)?;
    (channels.is_multiple_of(groups)).then_some(())?;
    numbers.chunks_exact_mut(length).for_each(|row| standardize(row, eps));
    Some(data.with(ArrayD::from_shape_vec(shape, numbers).ok()?))
}

fn of_batch(mut data: Data, eps: f64) -> Option<Data> {
    (data.numbers.ndim() > 1).then_some(())?;
    data.numbers.axis_iter_mut(Axis(1)).for_each(|mut channel| standardize(&mut channel, eps));
    Some(data)
}

fn by_running(mut data: Data, running: [&Value; 2], eps: f64) -> Option<Data> {
    let [means, variances] = running.map(of_value);
    let (means, variances) = (means?.numbers, variances?.numbers);
    let channels = (data.numbers.ndim() > 1).then(|| data.numbers.len_of(Axis(1)))?;
    (means.shape() == [channels] && variances.shape() == [channels]).then_some(())?;
    let channels = data.numbers.axis_iter_mut(Axis(1));
    for (mut channel, (mean, variance)) in channels.zip(means.iter().zip(&variances)) {
        let scale = (variance + eps).sqrt().recip();
        channel.mapv_inplace(|number| (number - mean) * scale);
    }
    Some(data)
}

/// Numbers that are multiplied with what a weight has for their channel, with what a bias has added.
fn by_channel(mut data: Data, affine: [Option<&Value>; 2]) -> Option<Data> {
    for (value, adds) in affine.into_iter().zip([false, true]) {
        let Some(value) = value else { continue };
        let of_channels = of_value(value)?.numbers;
        (of_channels.shape() == [data.numbers.len_of(Axis(1))]).then_some(())?;
        for (mut channel, by) in data.numbers.axis_iter_mut(Axis(1)).zip(&of_channels) {
            channel.mapv_inplace(|number| if adds { number + by } else { number * by });
        }
    }
    Some(data)
}
