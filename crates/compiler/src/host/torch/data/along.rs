//! Numbers of an axis, or of all axes, that are taken together: sums, extremes, orders.

use std::cmp::Ordering;

use ndarray::{ArrayD, ArrayView1, Axis, IxDyn};

use super::arithmetic::{greater, lesser};
use super::{Data, Made, Ties};
use crate::host::code::arguments::Args;
use crate::host::code::operators::{position, truth};
use crate::host::value::dtype::is_float;
use crate::host::value::{Tensor, Value};

/// What a function makes of the numbers along an axis.
type OfRow = fn(ArrayView1<'_, f64>) -> f64;

/// The type of what a function gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// As the tensor's.
    Same,
    /// Sums: those of integers are of 64 bits.
    Sums,
    /// Positions.
    Positions,
    /// Truth values.
    Truths,
}

const REDUCTIONS: &[(&str, OfRow, Gives)] = &[
    ("all", |row| f64::from(row.iter().all(|number| *number != 0.0)), Gives::Truths),
    ("amax", greatest, Gives::Same),
    ("amin", least, Gives::Same),
    ("any", |row| f64::from(row.iter().any(|number| *number != 0.0)), Gives::Truths),
    ("argmax", |row| extreme(row, Ordering::is_gt) as f64, Gives::Positions),
    ("argmin", |row| extreme(row, Ordering::is_lt) as f64, Gives::Positions),
    (
        "count_nonzero",
        |row| row.iter().filter(|number| **number != 0.0).count() as f64,
        Gives::Positions,
    ),
    ("max", greatest, Gives::Same),
    ("mean", |row| row.sum() / row.len() as f64, Gives::Same),
    ("min", least, Gives::Same),
    (
        "nanmean",
        |row| {
            let known = row.iter().filter(|number| !number.is_nan());
            known.clone().sum::<f64>() / known.count() as f64
        },
        Gives::Same,
    ),
    ("nansum", |row| row.iter().filter(|number| !number.is_nan()).sum(), Gives::Sums),
    ("prod", |row| row.product(), Gives::Sums),
    ("sum", |row| row.sum(), Gives::Sums),
];

fn greatest(row: ArrayView1<'_, f64>) -> f64 {
    row.iter().copied().fold(f64::NEG_INFINITY, greater)
}

fn least(row: ArrayView1<'_, f64>) -> f64 {
    row.iter().copied().fold(f64::INFINITY, lesser)
}

/// The position of the first number of which no other comes before.
fn extreme(row: ArrayView1<'_, f64>, is_better: fn(Ordering) -> bool) -> usize {
    let better = |best: usize, at: usize| match is_better(row[at].total_cmp(&row[best])) {
        true => at,
        false => best,
    };
    (0..row.len()).fold(0, better)
}

/// What a function makes of numbers along axes; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>, ties: Ties) -> Option<Made> {
    if let ("max" | "min", Some(Value::Tensor(_))) = (name, args.get(0, "other")) {
        let name = if name == "max" { "maximum" } else { "minimum" };
        return super::arithmetic::made_of(name, tensor, args).map(Made::One);
    }
    if let Some((_, of, gives)) = REDUCTIONS.iter().find(|(known, ..)| *known == name) {
        return reduced(name, tensor, args, *of, *gives);
    }
    let data = || super::of(tensor);
    let axis = |at: usize, default: Option<i128>| axis_of(tensor, args.get(at, "dim"), default);
    Some(match name {
        "cumsum" | "cumprod" => {
            let mut data = data()?;
            let add = if name == "cumsum" { |a: f64, b: f64| a + b } else { |a, b| a * b };
            data.numbers.accumulate_axis_inplace(Axis(axis(0, None)?), |before, here| {
                *here = add(*before, *here)
            });
            let counted = !is_float(&data.dtype);
            if counted { Data::new("i64", data.numbers) } else { data }.into()
        }
        "logcumsumexp" => {
            let mut data = data()?;
            data.numbers.accumulate_axis_inplace(Axis(axis(0, None)?), |before, here| {
                *here = super::layers::log_sum(&[*before, *here]);
            });
            data.into()
        }
        "kthvalue" => {
            let rank = super::known(args.get(0, "k")?)?.checked_sub(1)?;
            let keeps = flag(args.get(2, "keepdim"))?;
            of_rank(&data()?, axis(1, Some(-1))?, usize::try_from(rank).ok()?, keeps, ties)?
        }
        "median" if !args.0.is_empty() => {
            let (data, axis) = (data()?, axis(0, None)?);
            let middle = data.numbers.len_of(Axis(axis)).checked_sub(1)? / 2;
            of_rank(&data, axis, middle, flag(args.get(1, "keepdim"))?, ties)?
        }
        "diff" => differences(&data()?, Axis(axis(1, Some(-1))?), args)?.into(),
        "cummax" | "cummin" => {
            let (mut data, axis) = (data()?, axis(0, None)?);
            let mut positions = data.numbers.clone();
            let is_better = |a: f64, b: f64| if name == "cummax" { a >= b } else { a <= b };
            let lanes = data.numbers.lanes_mut(Axis(axis)).into_iter();
            for (mut lane, mut positions) in lanes.zip(positions.lanes_mut(Axis(axis))) {
                let mut best = 0;
                for at in 0..lane.len() {
                    best = if is_better(lane[at], lane[best]) { at } else { best };
                    (lane[at], positions[at]) = (lane[best], best as f64);
                }
            }
            Made::Record(["values", "indices"], [data, Data::new("i64", positions)])
        }
        "std_mean" | "var_mean" => {
            let first = if name == "std_mean" { "std" } else { "var" };
            let both =
                [first, "mean"].map(|name| super::calls::of_method(name, tensor, args, ties));
            let both = both.into_iter().map(|made| match made? {
                Made::One(data) => Some(data),
                _ => None,
            });
            Made::Tuple(both.collect::<Option<Vec<Data>>>()?)
        }
        "aminmax" => {
            let both = ["amin", "amax"].map(|name| {
                let (_, of, gives) = REDUCTIONS.iter().find(|(known, ..)| *known == name)?;
                reduced(name, tensor, args, *of, *gives)
            });
            match both {
                [Some(Made::One(least)), Some(Made::One(most))] => {
                    Made::Record(["min", "max"], [least, most])
                }
                _ => return None,
            }
        }
        "median" if args.0.is_empty() => {
            let mut numbers: Vec<f64> = data()?.numbers.iter().copied().collect();
            numbers.sort_by(f64::total_cmp);
            let middle = *numbers.get(numbers.len().checked_sub(1)? / 2)?;
            data()?.with(ArrayD::from_elem(IxDyn(&[]), middle)).into()
        }
        "flip" => {
            let mut data = data()?;
            let axes = args.get(0, "dims")?;
            for axis in axes.elements().unwrap_or_else(|| vec![axes.clone()]) {
                data.numbers.invert_axis(Axis(axis_of(tensor, Some(&axis), None)?));
            }
            data.into()
        }
        "sort" | "argsort" | "msort" => {
            let stable = args.keyword("stable");
            let at = if stable.is_some() { args.keyword("dim") } else { args.get(0, "dim") };
            let at = axis_of(tensor, at, Some(if name == "msort" { 0 } else { -1 }))?;
            let falls = flag(args.keyword("descending").or_else(|| args.get(1, "descending")))?;
            let ties = if name == "msort" || flag(stable)? { Ties::InOrder } else { ties };
            let (values, positions) = sorted(&data()?, at, falls, ties)?;
            match name {
                "argsort" => positions.into(),
                "msort" => values.into(),
                _ => Made::Record(["values", "indices"], [values, positions]),
            }
        }
        "topk" => {
            let at = axis(1, Some(-1))?;
            let falls = args.get(2, "largest").map_or(Some(true), truth)?;
            let count = usize::try_from(super::known(args.get(0, "k")?)?).ok()?;
            let (mut values, mut positions) = sorted(&data()?, at, falls, ties)?;
            for data in [&mut values, &mut positions] {
                let first: Vec<usize> = (0..count).collect();
                if count > data.numbers.shape()[at] {
                    return None;
                }
                data.numbers = data.numbers.select(Axis(at), &first);
            }
            Made::Record(["values", "indices"], [values, positions])
        }
        "roll" => {
            let data = data()?;
            let shift = super::known(args.get(0, "shifts")?)?;
            let rolled = |row: Vec<f64>| {
                let mut row = row;
                let by = shift.rem_euclid(row.len().max(1) as i128) as usize;
                row.rotate_right(by);
                row
            };
            match args.get(1, "dims").filter(|dims| **dims != Value::None) {
                None => {
                    let flat = rolled(data.numbers.iter().copied().collect());
                    data.with(ArrayD::from_shape_vec(data.numbers.raw_dim(), flat).ok()?).into()
                }
                Some(dims) => {
                    let at = axis_of(tensor, Some(dims), None)?;
                    let mut made = data.clone();
                    for mut lane in made.numbers.lanes_mut(Axis(at)) {
                        let row = rolled(lane.to_vec());
                        lane.iter_mut().zip(row).for_each(|(place, number)| *place = number);
                    }
                    made.into()
                }
            }
        }
        "unique" => unique(&data()?, args)?,
        "bincount" if args.get(0, "weights").is_none() => {
            let least = args.get(1, "minlength").map_or(Some(0), super::known)?;
            counted(&data()?.positions()?, usize::try_from(least).ok()?)?.into()
        }
        "_convert_indices_from_coo_to_csr" => {
            let rows = usize::try_from(super::known(args.get(0, "size")?)?).ok()?;
            starts(&data()?.positions()?, rows, flag(args.keyword("out_int32")))?.into()
        }
        _ => return None,
    })
}

/// The position of an axis of a tensor that an argument names.
pub(super) fn axis_of(
    tensor: &Tensor,
    given: Option<&Value>,
    default: Option<i128>,
) -> Option<usize> {
    let rank = tensor.shape.as_ref()?.len();
    let axis = match given {
        None => default?,
        Some(axis) => super::known(axis)?,
    };
    position(rank, axis)
}

/// The axes that `dim` names, in order, or all; and whether they are kept with size 1.
pub(super) fn axes_of(tensor: &Tensor, args: &Args<'_>) -> Option<(Vec<usize>, bool)> {
    let dim = args.get(0, "dim").filter(|dim| **dim != Value::None);
    let keeps = flag(args.get(1, "keepdim"))?;
    let mut axes = match dim {
        None => (0..tensor.shape.as_ref()?.len()).collect(),
        Some(dim) => {
            let dims = dim.elements().unwrap_or_else(|| vec![dim.clone()]);
            let axes = dims.iter().map(|axis| axis_of(tensor, Some(axis), None));
            axes.collect::<Option<Vec<usize>>>()?
        }
    };
    axes.sort_unstable();
    let is_twice = axes.windows(2).any(|pair| pair[0] == pair[1]);
    (!is_twice).then_some((axes, keeps))
}

fn flag(given: Option<&Value>) -> Option<bool> {
    given.map_or(Some(false), truth)
}

fn reduced(name: &str, tensor: &Tensor, args: &Args<'_>, of: OfRow, gives: Gives) -> Option<Made> {
    let data = super::of(tensor)?;
    let dtype = match gives {
        Gives::Positions => "i64",
        Gives::Truths => "i1",
        Gives::Sums if !is_float(&data.dtype) => "i64",
        _ => &*data.dtype.clone(),
    };
    let dim = args.get(0, "dim").filter(|dim| **dim != Value::None);
    let Some(dim) = dim else {
        let all = data.numbers.flatten();
        let has_none = all.is_empty() && !matches!(name, "sum" | "prod" | "all" | "any");
        let number = (!has_none).then(|| of(all.view()))?;
        return Some(Data::new(dtype, ArrayD::from_elem(IxDyn(&[]), number)).into());
    };
    let keeps = flag(args.get(1, "keepdim"))?;
    let dims = dim.elements().unwrap_or_else(|| vec![dim.clone()]);
    let mut axes = dims
        .iter()
        .map(|axis| axis_of(tensor, Some(axis), None))
        .collect::<Option<Vec<usize>>>()?;
    axes.sort_unstable();
    if axes.len() > 1 && gives == Gives::Positions && name != "count_nonzero"
        || axes.iter().any(|axis| data.numbers.shape()[*axis] == 0)
    {
        return None;
    }
    let along = |of: OfRow| {
        axes.iter().rev().fold(data.numbers.clone(), |numbers, axis| {
            let reduced = numbers.map_axis(Axis(*axis), of);
            if keeps { reduced.insert_axis(Axis(*axis)) } else { reduced }
        })
    };
    let made = Data::new(dtype, along(of));
    let position: Option<OfRow> = match name {
        "max" => Some(|row| extreme(row, Ordering::is_gt) as f64),
        "min" => Some(|row| extreme(row, Ordering::is_lt) as f64),
        _ => None,
    };
    Some(match position {
        Some(position) => {
            Made::Record(["values", "indices"], [made, Data::new("i64", along(position))])
        }
        None => made.into(),
    })
}

/// What each number of an axis is more than the one before.
fn differences(data: &Data, axis: Axis, args: &Args<'_>) -> Option<Data> {
    let more = [(0, "n"), (2, "prepend"), (3, "append")];
    let is_plain = more.iter().all(|(at, name)| args.get(*at, name).is_none());
    // Of truth values it tells which differ.
    let length = data.numbers.len_of(axis);
    (is_plain && &*data.dtype != "i1" && length > 0).then_some(())?;
    let (first, _) = data.numbers.view().split_at(axis, length - 1);
    let (_, last) = data.numbers.view().split_at(axis, 1);
    Some(data.with(&last - &first))
}

/// Numbers along an axis in order, and the positions that they had; `None` where equal ones may come in
/// any order.
fn sorted(data: &Data, axis: usize, falls: bool, ties: Ties) -> Option<(Data, Data)> {
    let (mut values, mut positions) = (data.numbers.clone(), data.numbers.clone());
    let lanes = values.lanes_mut(Axis(axis)).into_iter();
    for (mut values, mut positions) in lanes.zip(positions.lanes_mut(Axis(axis))) {
        let numbers = values.to_vec();
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by(|a, b| {
            let order = numbers[*a].total_cmp(&numbers[*b]);
            if falls { order.reverse() } else { order }
        });
        let is_tie = |pair: &[usize]| numbers[pair[0]] == numbers[pair[1]];
        if ties == Ties::Open && order.windows(2).any(is_tie) {
            return None;
        }
        for (at, from) in order.into_iter().enumerate() {
            (values[at], positions[at]) = (numbers[from], from as f64);
        }
    }
    Some((data.with(values), Data::new("i64", positions)))
}

/// The numbers along an axis that so many others come before, with their positions.
fn of_rank(data: &Data, axis: usize, rank: usize, keeps: bool, ties: Ties) -> Option<Made> {
    // Where one is none the functions differ.
    let has_order = !data.numbers.iter().any(|number| number.is_nan());
    (has_order && rank < data.numbers.len_of(Axis(axis))).then_some(())?;
    let (values, positions) = sorted(data, axis, false, ties)?;
    let at_rank = |data: Data| {
        let numbers = data.numbers.index_axis(Axis(axis), rank).to_owned();
        data.with(if keeps { numbers.insert_axis(Axis(axis)) } else { numbers })
    };
    Some(Made::Record(["values", "indices"], [at_rank(values), at_rank(positions)]))
}

/// Different numbers in order, and what else is asked for.
fn unique(data: &Data, args: &Args<'_>) -> Option<Made> {
    let is_told = |name: &str| args.keyword(name).map_or(Some(false), truth);
    if args.get(3, "dim").is_some_and(|dim| *dim != Value::None) {
        return None;
    }
    let mut different: Vec<f64> = data.numbers.iter().copied().collect();
    different.sort_by(f64::total_cmp);
    different.dedup();
    let place = |number: &f64| {
        different.binary_search_by(|known| known.total_cmp(number)).unwrap_or_default() as f64
    };
    let inverse = Data::new("i64", data.numbers.map(place));
    let mut counts = vec![0.0; different.len()];
    inverse.numbers.iter().for_each(|at| counts[*at as usize] += 1.0);
    let mut made = vec![Data::row(&data.dtype, different)];
    made.extend(is_told("return_inverse")?.then_some(inverse));
    made.extend(is_told("return_counts")?.then(|| Data::row("i64", counts)));
    Some(match made.len() {
        1 => made.remove(0).into(),
        _ => Made::Tuple(made),
    })
}

/// Where each of so many rows begins among elements whose rows are in order, and where the last one ends.
fn starts(of_rows: &[i128], rows: usize, is_short: Option<bool>) -> Option<Data> {
    let counts = counted(of_rows, rows)?;
    let ends = counts.numbers.iter().scan(0.0, |end, count| {
        *end += count;
        Some(*end)
    });
    let starts: Vec<f64> = [0.0].into_iter().chain(ends).collect();
    let dtype = if is_short? { "i32" } else { "i64" };
    (starts.len() == rows + 1).then(|| Data::row(dtype, starts))
}

/// How often each number from 0 on is there.
fn counted(numbers: &[i128], least: usize) -> Option<Data> {
    let positions = numbers.iter().map(|number| usize::try_from(*number).ok());
    let positions = positions.collect::<Option<Vec<usize>>>()?;
    let length = positions.iter().map(|number| number + 1).max().unwrap_or(0).max(least);
    let mut counts = vec![0.0; (length <= super::MAX_COMPUTED).then_some(length)?];
    positions.into_iter().for_each(|at| counts[at] += 1.0);
    Some(Data::row("i64", counts))
}
