//! Numbers that are chosen by their positions or by truth values.

use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn};

use super::along::axis_of;
use super::arithmetic::broadcast;
use super::{Data, Made, of_value};
use crate::host::code::arguments::Args;
use crate::host::code::operators::{position, truth};
use crate::host::value::dtype::is_integer;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// Pairs of numbers that are compared to find those of one tensor in another.
const MAX_COMPARED: usize = 1 << 22;

/// What a function chooses; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Made> {
    let data = || super::of(tensor);
    Some(match name {
        "argwhere" => together(&nonzero(&data()?.numbers)).into(),
        "nonzero" => {
            let is_tuple = args.get(0, "as_tuple").map_or(Some(false), truth)?;
            let found = nonzero(&data()?.numbers);
            match is_tuple {
                true => Made::Tuple(found.into_iter().map(|row| Data::row("i64", row)).collect()),
                false => together(&found).into(),
            }
        }
        "masked_select" => picked(&data()?, &[of_value(args.get(0, "mask")?)?])?.into(),
        "take" => picked(&data()?.flat(), &[of_value(args.get(0, "index")?)?])?.into(),
        "index_select" => {
            let axis = axis_of(tensor, args.get(0, "dim"), None)?;
            let (data, rows) = (data()?, of_value(args.get(1, "index")?)?);
            let rows = positions(&rows, data.numbers.shape()[axis])?;
            data.with(data.numbers.select(Axis(axis), &rows)).into()
        }
        "embedding" => {
            let (rows, weight) = (data()?, of_value(args.get(0, "weight")?)?);
            let shape = [rows.numbers.shape(), weight.numbers.shape().get(1..)?].concat();
            let rows = positions(&rows.flat(), weight.numbers.shape()[0])?;
            let numbers = weight.numbers.select(Axis(0), &rows);
            weight.with(numbers.into_shape_with_order(IxDyn(&shape)).ok()?).into()
        }
        "reshape" | "flatten" | "ravel" => reshaped(&data()?, name, args)?.into(),
        "gather" => {
            let axis = axis_of(tensor, args.get(0, "dim"), None)?;
            gathered(&data()?, axis, &of_value(args.get(1, "index")?)?)?.into()
        }
        "take_along_dim" => {
            let (data, index) = (data()?, of_value(args.get(0, "indices")?)?);
            let axis = axis_of(tensor, args.get(1, "dim"), None)?;
            let is_same = |at: usize| {
                at == axis || data.numbers.shape().get(at) == index.numbers.shape().get(at)
            };
            (0..data.numbers.ndim()).all(is_same).then_some(())?;
            gathered(&data, axis, &index)?.into()
        }
        "diag" => {
            diagonal(&data()?, args.get(0, "diagonal").map_or(Some(0), super::known)?)?.into()
        }
        "trace" => {
            let data = data().filter(|data| data.numbers.ndim() == 2)?;
            let sum = data
                .numbers
                .indexed_iter()
                .filter(|(at, _)| at[0] == at[1])
                .map(|(_, number)| number)
                .sum();
            data.with(ArrayD::from_elem(IxDyn(&[]), sum)).into()
        }
        "cross" => crossed(&data()?, tensor, args)?.into(),
        "histc" => histogram(&data()?, args)?.into(),
        "isin" => {
            let (data, among) = (data()?, of_value(args.get(0, "test_elements")?)?);
            let others = args.keyword("invert").map_or(Some(false), truth)?;
            let is_among = |number: &f64| among.numbers.iter().any(|other| other == number);
            (data.numbers.len().checked_mul(among.numbers.len())? <= MAX_COMPARED).then_some(())?;
            let numbers = data.numbers.map(|number| f64::from(is_among(number) != others));
            Data::new("i1", numbers).into()
        }
        "repeat_interleave" => repeated(tensor, args)?.into(),
        "repeat" | "tile" => tiled(&data()?, args)?.into(),
        "searchsorted" => {
            let sorted = data().filter(|sorted| sorted.numbers.ndim() == 1)?;
            searched(&sorted, &of_value(args.get(0, "input")?)?, args)?.into()
        }
        "bucketize" => {
            let sorted = of_value(args.get(0, "boundaries")?);
            let sorted = sorted.filter(|sorted| sorted.numbers.ndim() == 1)?;
            searched(&sorted, &data()?, args)?.into()
        }
        "one_hot" => {
            let (data, classes) = (data()?, args.get(0, "num_classes").and_then(super::known)?);
            let classes = usize::try_from(classes).ok()?;
            let mut shape = data.numbers.shape().to_vec();
            shape.push(classes);
            if shape.iter().product::<usize>() > super::MAX_COMPUTED {
                return None;
            }
            let mut numbers = ArrayD::zeros(IxDyn(&shape));
            for (mut row, class) in numbers.rows_mut().into_iter().zip(&data.numbers) {
                *row.get_mut(*class as usize).filter(|_| *class >= 0.0)? = 1.0;
            }
            Data::new("i64", numbers).into()
        }
        _ => return None,
    })
}

/// `torch.diag`: a matrix with these numbers on a diagonal, or those on the diagonal of a matrix.
fn diagonal(data: &Data, diagonal: i128) -> Option<Data> {
    let steps = usize::try_from(diagonal.unsigned_abs()).ok()?;
    let (down, right) = if diagonal < 0 { (steps, 0) } else { (0, steps) };
    match data.numbers.shape() {
        [length] => {
            let size = length.checked_add(steps)?;
            (size.checked_mul(size)? <= super::MAX_COMPUTED).then_some(())?;
            let mut made = ArrayD::zeros(IxDyn(&[size, size]));
            data.numbers
                .iter()
                .enumerate()
                .for_each(|(at, number)| made[[at + down, at + right]] = *number);
            Some(data.with(made))
        }
        [rows, columns] => {
            let length = rows.saturating_sub(down).min(columns.saturating_sub(right));
            let numbers = (0..length).map(|at| data.numbers[[at + down, at + right]]);
            Some(Data::row(&data.dtype, numbers.collect()))
        }
        _ => None,
    }
}

/// `torch.cross`: products of vectors of three numbers.
fn crossed(data: &Data, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let other = of_value(args.get(0, "other")?)?;
    // Without an axis it is the first of three numbers.
    let first = || data.numbers.shape().iter().position(|size| *size == 3);
    let axis = match args.get(1, "dim") {
        Some(dim) if *dim != Value::None => axis_of(tensor, Some(dim), None)?,
        _ => first()?,
    };
    let is_of_three =
        data.numbers.shape() == other.numbers.shape() && data.numbers.len_of(Axis(axis)) == 3;
    is_of_three.then_some(())?;
    let numbers = ArrayD::from_shape_fn(data.numbers.raw_dim(), |at| {
        let number = |of: &Data, step: usize| {
            let mut place = at.clone();
            place[axis] = (at[axis] + step) % 3;
            of.numbers[place]
        };
        number(data, 1) * number(&other, 2) - number(data, 2) * number(&other, 1)
    });
    Some(data.with(numbers))
}

/// `torch.histc`, where no number is so near to the bounds of a bin that rounding decides.
fn histogram(data: &Data, args: &Args<'_>) -> Option<Data> {
    let bins = args.get(0, "bins").map_or(Some(100), super::known)?;
    let bins = usize::try_from(bins).ok().filter(|bins| (1..=super::MAX_NUMBERS).contains(bins))?;
    let bound = |at: usize, name: &str| args.get(at, name).map_or(Some(0.0), as_float);
    let (mut least, mut most) = (bound(1, "min")?, bound(2, "max")?);
    if least == most {
        least = data.numbers.iter().copied().fold(f64::INFINITY, f64::min);
        most = data.numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    }
    (least < most && most.is_finite() && least.is_finite()).then_some(())?;
    let mut counts = vec![0.0; bins];
    for number in data.numbers.iter().filter(|number| (least..=most).contains(*number)) {
        let place = (number - least) / (most - least) * bins as f64;
        let is_end = *number == least || *number == most;
        (is_end || (place - place.round()).abs() > 1e-4).then_some(())?;
        counts[(place as usize).min(bins - 1)] += 1.0;
    }
    Some(Data::row(&data.dtype, counts))
}

/// The same numbers in another shape, of which one size may follow from the others.
fn reshaped(data: &Data, name: &str, args: &Args<'_>) -> Option<Data> {
    let sizes: Vec<i128> = match (name, args.positional().as_slice()) {
        ("ravel" | "flatten", []) if args.keywords().is_empty() => vec![-1],
        ("reshape", [one]) if one.elements().is_some() => {
            one.elements()?.iter().map(super::known).collect::<Option<_>>()?
        }
        ("reshape", several) => {
            several.iter().map(|size| super::known(size)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let mut known = sizes.iter().filter(|size| **size >= 0);
    let told = known.try_fold(1i128, |told, size| told.checked_mul(*size))?;
    let rest = (data.numbers.len() as i128).checked_div(told)?;
    let sizes = sizes.into_iter().map(|size| if size < 0 { rest } else { size } as usize);
    let shape: Vec<usize> = sizes.collect();
    let numbers: Vec<f64> = data.numbers.iter().copied().collect();
    Some(data.with(ArrayD::from_shape_vec(IxDyn(&shape), numbers).ok()?))
}

/// The positions along each axis of what is not zero.
pub(super) fn nonzero(numbers: &ArrayD<f64>) -> Vec<Vec<f64>> {
    let mut found = vec![Vec::new(); numbers.ndim()];
    for (index, _) in numbers.indexed_iter().filter(|(_, number)| **number != 0.0) {
        (0..numbers.ndim()).for_each(|axis| found[axis].push(index[axis] as f64));
    }
    found
}

/// Positions, a row for each.
fn together(found: &[Vec<f64>]) -> Data {
    let count = found.first().map_or(0, Vec::len);
    let numbers = ArrayD::from_shape_fn(IxDyn(&[count, found.len()]), |at| found[at[1]][at[0]]);
    Data::new("i64", numbers)
}

/// Positions within a size, from the end on where they are negative.
fn positions(data: &Data, size: usize) -> Option<Vec<usize>> {
    data.positions()?.into_iter().map(|at| position(size, at)).collect()
}

/// `tensor[index]`, where tensors and numbers choose along neighboring axes, and all is taken of others:
/// `None` in front and behind.
pub(crate) fn indexed(tensor: &Tensor, index: &[Option<Value>]) -> Option<Data> {
    let before = index.iter().take_while(|index| index.is_none()).count();
    let behind = index.iter().rev().take_while(|index| index.is_none()).count();
    let index = index.get(before..index.len().checked_sub(behind)?)?;
    let index = index.iter().cloned().collect::<Option<Vec<Value>>>()?;
    if !index.iter().any(|index| matches!(index, Value::Tensor(_) | Value::List(_))) {
        return None;
    }
    let index = index.iter().map(chooser).collect::<Option<Vec<Data>>>()?;
    let data = super::of(tensor)?;
    if before > data.numbers.ndim() {
        return None;
    }
    let picked = picked(&moved(data, |axes| axes.rotate_left(before)), &index)?;
    (before <= picked.numbers.ndim()).then(|| moved(picked, |axes| axes.rotate_right(before)))
}

/// The same with its axes in the order that `change` gives them.
fn moved(data: Data, change: impl Fn(&mut [usize])) -> Data {
    let mut axes: Vec<usize> = (0..data.numbers.ndim()).collect();
    change(&mut axes);
    let numbers = data.numbers.permuted_axes(IxDyn(&axes)).as_standard_layout().into_owned();
    Data { numbers, ..data }
}

/// The numbers of what stands between brackets.
fn chooser(value: &Value) -> Option<Data> {
    match value {
        Value::List(items) => {
            let row = items.iter().map(super::known).collect::<Option<Vec<i128>>>()?;
            Some(Data::row("i64", row.into_iter().map(|at| at as f64).collect()))
        }
        value => of_value(value),
    }
}

/// What positions or truth values choose along the first axes.
pub(super) fn picked(data: &Data, index: &[Data]) -> Option<Data> {
    let (places, shape) = places(data.numbers.shape(), index)?;
    let inner = data.numbers.shape().get(places.first().map_or(index.len(), Vec::len)..)?.to_vec();
    let each = |place: &Vec<usize>| {
        let part =
            place.iter().fold(data.numbers.view(), |part, at| part.index_axis_move(Axis(0), *at));
        part.iter().copied().collect::<Vec<f64>>()
    };
    let numbers: Vec<f64> = places.iter().flat_map(each).collect();
    let shape = [shape, inner].concat();
    if numbers.len() > super::MAX_COMPUTED {
        return None;
    }
    Some(data.with(ArrayD::from_shape_vec(IxDyn(&shape), numbers).ok()?))
}

/// The places along the first axes that `index` chooses, in order, and the shape in which they stand.
pub(super) fn places(shape: &[usize], index: &[Data]) -> Option<(Vec<Vec<usize>>, Vec<usize>)> {
    let mut along: Vec<ArrayD<f64>> = Vec::new();
    for data in index {
        if &*data.dtype == "i1" {
            let masked = shape.get(along.len()..along.len() + data.numbers.ndim())?;
            if masked != data.numbers.shape() || data.numbers.ndim() == 0 {
                return None;
            }
            let rows = nonzero(&data.numbers).into_iter();
            along.extend(rows.map(|row| ndarray::Array1::from(row).into_dyn()));
        } else if is_integer(&data.dtype) {
            along.push(data.numbers.clone());
        } else {
            return None;
        }
    }
    let sizes = shape.get(..along.len())?;
    let outer = along.iter().try_fold(Vec::new(), |outer, data| broadcast(&outer, data.shape()))?;
    let views = along.iter().map(|data| data.broadcast(IxDyn(&outer)));
    let views = views.collect::<Option<Vec<ArrayViewD<'_, f64>>>>()?;
    let mut places = vec![Vec::new(); outer.iter().product()];
    for (view, size) in views.iter().zip(sizes) {
        for (place, at) in places.iter_mut().zip(view) {
            place.push(position(*size, *at as i128)?);
        }
    }
    Some((places, outer))
}

fn gathered(data: &Data, axis: usize, index: &Data) -> Option<Data> {
    if index.numbers.ndim() != data.numbers.ndim() {
        return None;
    }
    let mut all_known = true;
    let numbers = ArrayD::from_shape_fn(index.numbers.raw_dim(), |mut at| {
        let from = index.numbers[&at];
        at[axis] = from.max(0.0) as usize;
        let number = data.numbers.get(&at).filter(|_| from >= 0.0);
        all_known &= number.is_some();
        number.copied().unwrap_or_default()
    });
    all_known.then(|| data.with(numbers))
}

/// Each element so many times, along an axis or in a row.
fn repeated(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let data = super::of(tensor)?;
    // Of counts alone it gives positions.
    let Some(times) = args.get(0, "repeats") else {
        let counts = data.positions()?;
        return repeat_each(
            &Data::row("i64", (0..counts.len()).map(|at| at as f64).collect()),
            0,
            &counts,
        );
    };
    let (data, axis) = match args.get(1, "dim") {
        None | Some(Value::None) => (data.flat(), 0),
        axis => {
            let axis = axis_of(tensor, axis, None)?;
            (data, axis)
        }
    };
    let times = of_value(times)?;
    let counts = match times.number() {
        Some(times) => vec![times as i128; data.numbers.shape()[axis]],
        None => times.positions()?,
    };
    repeat_each(&data, axis, &counts)
}

fn repeat_each(data: &Data, axis: usize, counts: &[i128]) -> Option<Data> {
    if counts.len() != data.numbers.shape()[axis] || counts.iter().any(|count| *count < 0) {
        return None;
    }
    let others = (data.numbers.len() / counts.len().max(1)) as i128;
    let total = counts.iter().try_fold(0i128, |sum, count| sum.checked_add(*count))?;
    if total.checked_mul(others)? > super::MAX_COMPUTED as i128 {
        return None;
    }
    let rows: Vec<usize> = counts
        .iter()
        .enumerate()
        .flat_map(|(at, count)| std::iter::repeat_n(at, *count as usize))
        .collect();
    Some(data.with(data.numbers.select(Axis(axis), &rows)))
}

/// All of it so many times along each axis.
fn tiled(data: &Data, args: &Args<'_>) -> Option<Data> {
    let positional = args.positional();
    let times = match positional.as_slice() {
        [list] if list.elements().is_some() => list.elements()?,
        several => several.iter().copied().cloned().collect(),
    };
    let times = times.iter().map(|times| usize::try_from(super::known(times)?).ok());
    let times = times.collect::<Option<Vec<usize>>>()?;
    let rank = times.len().max(data.numbers.ndim());
    let lead = vec![1; rank - data.numbers.ndim()];
    let sizes = [lead.as_slice(), data.numbers.shape()].concat();
    let times = [vec![1; rank - times.len()], times].concat();
    let shape: Vec<usize> = sizes.iter().zip(&times).map(|(size, times)| size * times).collect();
    if shape.iter().product::<usize>() > super::MAX_COMPUTED {
        return None;
    }
    let whole = data.numbers.broadcast(IxDyn(&sizes))?;
    let numbers = ArrayD::from_shape_fn(IxDyn(&shape), |mut at| {
        (0..rank).for_each(|axis| at[axis] %= sizes[axis]);
        whole[at]
    });
    Some(data.with(numbers))
}

/// Where numbers stand among sorted ones.
fn searched(sorted: &Data, wanted: &Data, args: &Args<'_>) -> Option<Data> {
    let right = match (args.keyword("right"), args.keyword("side")) {
        (None, None) => false,
        (Some(right), None) => truth(right)?,
        (None, Some(Value::Str(side))) => &**side == "right",
        _ => return None,
    };
    let sorted: Vec<f64> = sorted.numbers.iter().copied().collect();
    let place = |number: &f64| {
        sorted.partition_point(|known| known < number || right && known == number) as f64
    };
    Some(Data::new("i64", wanted.numbers.map(place)))
}
