//! Products of matrices.

use ndarray::{Array2, ArrayD, Axis, Ix2, IxDyn};

use super::arithmetic::broadcast;
use super::{Data, of, of_value};
use crate::host::code::arguments::Args;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// Multiplications of one product; beyond, its numbers are not worked out.
const MAX_STEPS: usize = 1 << 27;

/// Numbers of both sides together, where they are repeated for each of several products.
const MAX_COPIED: usize = 1 << 24;

/// What a function makes of products of `tensor` and its arguments; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let other = |at: usize, name: &str| of_value(args.get(at, name)?);
    match name {
        "matmul" | "__matmul__" => product(&of(tensor)?, &other(0, "other")?),
        "mm" | "bmm" => product(&of(tensor)?, &other(0, "mat2")?),
        "inner" => {
            let other = other(0, "other")?;
            let is_flat = other.numbers.ndim() <= 2;
            is_flat.then(|| product(&of(tensor)?, &other.with(other.numbers.t().to_owned())))?
        }
        "mv" | "dot" | "vdot" => {
            let (a, b) =
                (of(tensor)?, args.positional().first().and_then(|other| of_value(other))?);
            (b.numbers.ndim() == 1).then(|| product(&a, &b))?
        }
        "outer" | "ger" => {
            let (a, b) =
                (of(tensor)?, args.positional().first().and_then(|other| of_value(other))?);
            let [column, row] = crossed(&a, &b)?;
            product(&column, &row)
        }
        "linear" => {
            let weight = other(0, "weight")?;
            let made = product(&of(tensor)?, &weight.with(weight.numbers.t().to_owned()))?;
            match args.get(1, "bias").filter(|bias| **bias != Value::None) {
                None => Some(made),
                Some(bias) => sum(&made, &of_value(bias)?),
            }
        }
        "addmm" => added(tensor, [other(0, "mat1")?, other(1, "mat2")?], args),
        "addmv" => added(tensor, [other(0, "mat")?, other(1, "vec")?], args),
        "baddbmm" => added(tensor, [other(0, "batch1")?, other(1, "batch2")?], args),
        "addr" => added(tensor, crossed(&other(0, "vec1")?, &other(1, "vec2")?)?, args),
        "tensordot" => {
            let (a, b) = (of(tensor)?, other(0, "other")?);
            contracted(&a, &b, args.get(1, "dims").map_or(Some(2), super::known)?)
        }
        _ => None,
    }
}

/// Two rows as a column and a row, of which the product has each number of one with each of the other.
fn crossed(a: &Data, b: &Data) -> Option<[Data; 2]> {
    let column = a.with(a.numbers.clone().insert_axis(Axis(1)));
    let row = b.with(b.numbers.clone().insert_axis(Axis(0)));
    (a.numbers.ndim() == 1 && b.numbers.ndim() == 1).then_some([column, row])
}

/// `beta * tensor + alpha * (a @ b)`.
fn added(tensor: &Tensor, [a, b]: [Data; 2], args: &Args<'_>) -> Option<Data> {
    let factor = |name: &str| args.keyword(name).map_or(Some(1.0), as_float);
    let (mut made, mut start) = (product(&a, &b)?, of(tensor)?);
    for (data, by) in [(&mut made, factor("alpha")?), (&mut start, factor("beta")?)] {
        data.numbers.mapv_inplace(|number| by * number);
    }
    sum(&made, &start)
}

/// `torch.tensordot` along the last axes of one and the first of the other.
fn contracted(a: &Data, b: &Data, count: i128) -> Option<Data> {
    let count = usize::try_from(count).ok()?;
    let (rows, inner) = a.numbers.shape().split_at(a.numbers.ndim().checked_sub(count)?);
    let (of_other, columns) = b.numbers.shape().split_at_checked(count)?;
    (inner == of_other).then_some(())?;
    let flat = |data: &Data, shape: [&[usize]; 2]| {
        let shape = shape.map(|sizes| sizes.iter().product::<usize>());
        let numbers: Vec<f64> = data.numbers.iter().copied().collect();
        Some(data.with(ArrayD::from_shape_vec(IxDyn(&shape), numbers).ok()?))
    };
    let made = product(&flat(a, [rows, inner])?, &flat(b, [inner, columns])?)?;
    let numbers = made.numbers.into_shape_with_order(IxDyn(&[rows, columns].concat())).ok()?;
    Some(a.with(numbers))
}

fn sum(a: &Data, b: &Data) -> Option<Data> {
    let numbers = super::arithmetic::zipped(&a.numbers, &b.numbers, |a, b| Some(a + b))?;
    Some(a.with(numbers))
}

/// `a @ b`, with the axes before the last two broadcast.
pub(super) fn product(a: &Data, b: &Data) -> Option<Data> {
    let (left, right) = (&a.numbers, &b.numbers);
    let (is_row, is_column) = (left.ndim() == 1, right.ndim() == 1);
    let left = if is_row { left.clone().insert_axis(Axis(0)) } else { left.clone() };
    let right = if is_column { right.clone().insert_axis(Axis(1)) } else { right.clone() };
    let (Some(batch), Some(of_right)) = (left.ndim().checked_sub(2), right.ndim().checked_sub(2))
    else {
        return None;
    };
    let [rows, inner] = [left.shape()[batch], left.shape()[batch + 1]];
    let [other, columns] = [right.shape()[of_right], right.shape()[of_right + 1]];
    let batches = broadcast(&left.shape()[..batch], &right.shape()[..of_right])?;
    let count: usize = batches.iter().product();
    let steps =
        [rows, inner, columns].iter().try_fold(count, |all, size| all.checked_mul(*size))?;
    let copied = count.checked_mul(rows * inner + inner * columns)?;
    if inner != other || steps > MAX_STEPS || copied > MAX_COPIED {
        return None;
    }
    let stacked = |numbers: &ArrayD<f64>, sizes: [usize; 2]| -> Option<Vec<Array2<f64>>> {
        let shape: Vec<usize> = batches.iter().copied().chain(sizes).collect();
        let all = numbers.broadcast(IxDyn(&shape))?.as_standard_layout().into_owned();
        let all = all.into_shape_with_order((count, sizes[0], sizes[1])).ok()?;
        Some(all.outer_iter().map(|one| one.to_owned()).collect())
    };
    let (lefts, rights) = (stacked(&left, [rows, inner])?, stacked(&right, [inner, columns])?);
    let mut numbers = Vec::with_capacity(count * rows * columns);
    for (left, right) in lefts.iter().zip(&rights) {
        numbers.extend(left.dot(right).into_dimensionality::<Ix2>().ok()?.iter());
    }
    let kept = [(!is_row).then_some(rows), (!is_column).then_some(columns)];
    let shape: Vec<usize> = batches.into_iter().chain(kept.into_iter().flatten()).collect();
    Some(a.with(ArrayD::from_shape_vec(IxDyn(&shape), numbers).ok()?))
}
