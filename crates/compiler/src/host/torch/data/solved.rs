//! Linear algebra: what follows from matrices by elimination. Leading axes are of several matrices.

use ndarray::{Array2, ArrayD, ArrayView2, Axis, IxDyn};

use super::products::product;
use super::{Data, Made, known, of, of_value};
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::value::{Tensor, Value};

/// Steps of eliminations; beyond, their numbers are not worked out.
const MAX_STEPS: usize = 1 << 24;

/// What a function of `torch.linalg` makes of `tensor` and its arguments; `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Made> {
    let data = || of(tensor);
    Some(match name {
        "inv" | "inverse" => of_each(&data()?, |matrix| solution(matrix, identity(matrix)))?.into(),
        "det" => {
            let data = data()?;
            let all = matrices(&data)?;
            let numbers = all.iter().map(|matrix| determinant(matrix.view()));
            let numbers = numbers.collect::<Option<Vec<f64>>>()?;
            let shape = &data.numbers.shape()[..data.numbers.ndim() - 2];
            data.with(ArrayD::from_shape_vec(IxDyn(shape), numbers).ok()?).into()
        }
        "cholesky" => {
            args.0.is_empty().then_some(())?;
            of_each(&data()?, |matrix| cholesky(matrix))?.into()
        }
        "matrix_power" => {
            let times = known(args.get(0, "n")?).filter(|times| (0..=64).contains(times))?;
            let data = data()?;
            let one = of_each(&data, |matrix| Some(identity(matrix)))?;
            (0..times).try_fold(one, |made, _| product(&made, &data))?.into()
        }
        "solve" => {
            let (data, right) = (data()?, of_value(args.get(0, "B")?)?);
            (args.keyword("left").is_none() && right.numbers.ndim() == data.numbers.ndim())
                .then_some(())?;
            of_both(&data, &right, solution)?.into()
        }
        "solve_triangular" => {
            let (data, right) = (data()?, of_value(args.get(0, "B")?)?);
            triangular(&data, &right, args)?.into()
        }
        // It gives the matrix as well.
        "triangular_solve" => {
            let (right, matrix) = (data()?, of_value(args.get(0, "A")?)?);
            let is_plain = args.get(2, "transpose").is_none_or(|told| truth(told) == Some(false));
            let upper = args.get(1, "upper").map_or(Some(true), truth)?;
            let unit = args.get(3, "unitriangular").map_or(Some(false), truth)?;
            let solved =
                is_plain.then(|| of_both(&matrix, &right, triangle_solver(upper, unit)))??;
            Made::Record(["solution", "cloned_coefficient"], [solved, matrix])
        }
        _ => return None,
    })
}

/// The square matrices along the last two axes.
fn matrices(data: &Data) -> Option<Vec<Array2<f64>>> {
    let [.., rows, columns] = *data.numbers.shape() else { return None };
    let steps = data.numbers.len().checked_mul(rows)?;
    (rows == columns && rows > 0 && steps <= MAX_STEPS).then_some(())?;
    stacked(data)
}

/// The matrices along the last two axes.
fn stacked(data: &Data) -> Option<Vec<Array2<f64>>> {
    let [.., rows, columns] = *data.numbers.shape() else { return None };
    let flat: Vec<f64> = data.numbers.iter().copied().collect();
    let size = rows.checked_mul(columns).filter(|size| *size > 0)?;
    let matrix = |part: &[f64]| Array2::from_shape_vec((rows, columns), part.to_vec()).ok();
    flat.chunks_exact(size).map(matrix).collect()
}

/// What is made of each matrix, in its place.
fn of_each(
    data: &Data,
    of_one: impl Fn(ArrayView2<'_, f64>) -> Option<Array2<f64>>,
) -> Option<Data> {
    let all = matrices(data)?;
    let made = all.iter().map(|matrix| of_one(matrix.view()));
    let made = made.collect::<Option<Vec<_>>>()?;
    together(data, &made)
}

/// What is made of each matrix and one of as many others.
fn of_both(
    data: &Data,
    right: &Data,
    of_two: impl Fn(ArrayView2<'_, f64>, Array2<f64>) -> Option<Array2<f64>>,
) -> Option<Data> {
    let (matrices, right_ones) = (matrices(data)?, stacked(right)?);
    let steps = right.numbers.len().checked_mul(matrices.first()?.nrows())?;
    (matrices.len() == right_ones.len() && steps <= MAX_STEPS).then_some(())?;
    let made = matrices.iter().zip(right_ones).map(|(matrix, right)| {
        (matrix.nrows() == right.nrows()).then(|| of_two(matrix.view(), right))?
    });
    let made = made.collect::<Option<Vec<_>>>()?;
    together(right, &made)
}

/// Matrices in the shape of those of which they were made.
fn together(like: &Data, made: &[Array2<f64>]) -> Option<Data> {
    let numbers: Vec<f64> = made.iter().flat_map(|matrix| matrix.iter().copied()).collect();
    Some(like.with(ArrayD::from_shape_vec(like.numbers.raw_dim(), numbers).ok()?))
}

fn identity(matrix: ArrayView2<'_, f64>) -> Array2<f64> {
    Array2::eye(matrix.nrows())
}

/// Adds so many times a row of a matrix to another.
fn add_row(matrix: &mut Array2<f64>, (from, to): (usize, usize), scale: f64) {
    let row = matrix.row(from).to_owned();
    matrix.row_mut(to).scaled_add(scale, &row);
}

/// `x` of `matrix x = right`, by elimination with the greatest pivots; `None` where there is none.
fn solution(matrix: ArrayView2<'_, f64>, mut right: Array2<f64>) -> Option<Array2<f64>> {
    let mut left = matrix.to_owned();
    let rows = left.nrows();
    for column in 0..rows {
        let pivot = greatest_below(&left, column)?;
        for swapped in [&mut left, &mut right] {
            let (a, b) = (swapped.row(column).to_owned(), swapped.row(pivot).to_owned());
            swapped.row_mut(column).assign(&b);
            swapped.row_mut(pivot).assign(&a);
        }
        for row in (0..rows).filter(|row| *row != column) {
            let scale = -left[[row, column]] / left[[column, column]];
            add_row(&mut left, (column, row), scale);
            add_row(&mut right, (column, row), scale);
        }
    }
    for row in 0..rows {
        let scale = left[[row, row]];
        right.row_mut(row).mapv_inplace(|number| number / scale);
    }
    Some(right)
}

/// The row from the diagonal on that has the greatest number in a column; `None` where all are 0.
fn greatest_below(matrix: &Array2<f64>, column: usize) -> Option<usize> {
    let size = |row: usize| matrix[[row, column]].abs();
    let rows = column..matrix.nrows();
    rows.max_by(|a, b| size(*a).total_cmp(&size(*b))).filter(|row| size(*row) > 0.0)
}

fn determinant(matrix: ArrayView2<'_, f64>) -> Option<f64> {
    let mut left = matrix.to_owned();
    let mut product = 1.0;
    for column in 0..left.nrows() {
        let Some(pivot) = greatest_below(&left, column) else { return Some(0.0) };
        if pivot != column {
            let (a, b) = (left.row(column).to_owned(), left.row(pivot).to_owned());
            left.row_mut(column).assign(&b);
            left.row_mut(pivot).assign(&a);
            product = -product;
        }
        product *= left[[column, column]];
        for row in column + 1..left.nrows() {
            let scale = -left[[row, column]] / left[[column, column]];
            add_row(&mut left, (column, row), scale);
        }
    }
    Some(product)
}

/// The lower triangle whose product with itself, turned, is a matrix.
fn cholesky(matrix: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
    let mut made = Array2::zeros(matrix.raw_dim());
    for row in 0..matrix.nrows() {
        for column in 0..=row {
            let known: f64 = (0..column).map(|at| made[[row, at]] * made[[column, at]]).sum();
            let rest = matrix[[row, column]] - known;
            made[[row, column]] = match row == column {
                true => (rest > 0.0).then(|| rest.sqrt())?,
                false => rest / made[[column, column]],
            };
        }
    }
    Some(made)
}

fn triangular(matrix: &Data, right: &Data, args: &Args<'_>) -> Option<Data> {
    let flag = |name: &str, default| args.keyword(name).map_or(Some(default), truth);
    let upper = truth(args.keyword("upper")?)?;
    let unit = flag("unitriangular", false)?;
    match flag("left", true)? {
        true => of_both(matrix, right, triangle_solver(upper, unit)),
        // x A = B is A' x' = B'.
        false => {
            let solved = of_both(&turned(matrix)?, &turned(right)?, triangle_solver(!upper, unit))?;
            turned(&solved)
        }
    }
}

/// Matrices with rows and columns exchanged.
fn turned(data: &Data) -> Option<Data> {
    let last = data.numbers.ndim().checked_sub(2)?;
    let mut numbers = data.numbers.clone();
    numbers.swap_axes(last, last + 1);
    Some(data.with(numbers.as_standard_layout().into_owned()))
}

/// What solves `x` of `matrix x = right`, where of the matrix a triangle counts alone.
fn triangle_solver(
    upper: bool,
    unit: bool,
) -> impl Fn(ArrayView2<'_, f64>, Array2<f64>) -> Option<Array2<f64>> {
    move |matrix, mut right| {
        let rows = matrix.nrows();
        for step in 0..rows {
            let row = if upper { rows - 1 - step } else { step };
            let solved = if upper { row + 1..rows } else { 0..row };
            for other in solved {
                add_row(&mut right, (other, row), -matrix[[row, other]]);
            }
            let scale = if unit { 1.0 } else { matrix[[row, row]] };
            right.index_axis_mut(Axis(0), row).mapv_inplace(|number| number / scale);
        }
        Some(right)
    }
}

/// `torch.linalg.multi_dot`: the product of several matrices.
pub(super) fn product_of_all(matrices: &[&Value]) -> Option<Data> {
    let all = matrices.iter().map(|matrix| of_value(matrix)).collect::<Option<Vec<Data>>>()?;
    let (first, others) = all.split_first()?;
    others.iter().try_fold(first.clone(), |made, next| product(&made, next))
}
