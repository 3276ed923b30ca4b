//! Functions along an axis.

use rayon::prelude::*;

use super::dtype::DType;
use super::error::{Eval, fault};
use super::tensor::{Array, Data};

/// An array seen along one axis, or as one row.
struct Along {
    outer: usize,
    axis: usize,
    inner: usize,
    /// Shape without the axis, or with extent 1 there.
    reduced: Vec<usize>,
}

fn along(array: &Array, axis: Option<i128>, keep: bool) -> Eval<Along> {
    let rank = array.shape.len();
    let Some(axis) = axis else {
        let reduced = if keep { vec![1; rank] } else { vec![] };
        return Ok(Along { outer: 1, axis: array.numel(), inner: 1, reduced });
    };
    let at = normalize_axis(axis, rank)?;
    let mut reduced = array.shape.clone();
    if keep {
        reduced[at] = 1;
    } else {
        reduced.remove(at);
    }
    Ok(Along {
        outer: array.shape[..at].iter().product(),
        axis: array.shape[at],
        inner: array.shape[at + 1..].iter().product(),
        reduced,
    })
}

/// An axis counted from the end if negative.
pub(super) fn normalize_axis(axis: i128, rank: usize) -> Eval<usize> {
    let at = if axis < 0 { axis + rank as i128 } else { axis };
    if (0..rank as i128).contains(&at) {
        Ok(at as usize)
    } else {
        Err(fault!("there is no axis {axis} in a tensor of rank {rank}"))
    }
}

impl Along {
    /// Applies `f` to each row along the axis.
    fn rows<V, T>(&self, values: &[V], f: impl Fn(&[V]) -> T + Sync) -> Vec<T>
    where
        V: Copy + Sync,
        T: Send,
    {
        let row = |at: usize| {
            let (outer, inner) = (at / self.inner.max(1), at % self.inner.max(1));
            let start = outer * self.axis * self.inner + inner;
            let row = (0..self.axis).map(|step| values[start + step * self.inner]);
            f(&row.collect::<Vec<V>>())
        };
        (0..self.outer * self.inner).into_par_iter().map(row).collect()
    }

    /// Applies `f` to each row, which gives a row of the same length.
    fn map_rows<V>(&self, values: &[V], f: impl Fn(&[V]) -> Vec<V> + Sync) -> Vec<V>
    where
        V: Copy + Default + Send + Sync,
    {
        let rows = self.rows(values, f);
        let mut out = vec![V::default(); values.len()];
        for (at, row) in rows.into_iter().enumerate() {
            let (outer, inner) = (at / self.inner.max(1), at % self.inner.max(1));
            let start = outer * self.axis * self.inner + inner;
            for (step, value) in row.into_iter().enumerate() {
                out[start + step * self.inner] = value;
            }
        }
        out
    }
}

/// Reductions by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reduction {
    Sum,
    Prod,
    Mean,
    Max,
    Min,
    ArgMax,
    ArgMin,
    Any,
    All,
    Var,
    Std,
}

pub(super) fn reduce(
    reduction: Reduction,
    array: &Array,
    axis: Option<i128>,
    keep: bool,
) -> Eval<Array> {
    let along = along(array, axis, keep)?;
    let needs_elements =
        !matches!(reduction, Reduction::Sum | Reduction::Prod | Reduction::Any | Reduction::All);
    if needs_elements && along.axis == 0 {
        return Err(fault!("nothing to reduce: the axis has extent 0"));
    }
    if let (Data::Int(values), Reduction::Sum | Reduction::Prod) = (&array.data, reduction) {
        let values = along.rows(values, |row: &[i64]| match reduction {
            Reduction::Sum => row.iter().copied().fold(0, i64::wrapping_add),
            _ => row.iter().copied().fold(1, i64::wrapping_mul),
        });
        return Ok(Array::ints(DType::I64, along.reduced, values));
    }
    let f: fn(&[f64]) -> f64 = match reduction {
        Reduction::Sum => |row| row.iter().sum(),
        Reduction::Prod => |row| row.iter().product(),
        Reduction::Mean => |row| row.iter().sum::<f64>() / row.len() as f64,
        Reduction::Max => |row| row.iter().copied().fold(f64::NEG_INFINITY, nan_or(f64::max)),
        Reduction::Min => |row| row.iter().copied().fold(f64::INFINITY, nan_or(f64::min)),
        Reduction::ArgMax => |row| position(row, |best, value| value > best),
        Reduction::ArgMin => |row| position(row, |best, value| value < best),
        Reduction::Any => |row| f64::from(u8::from(row.iter().any(|&value| value != 0.0))),
        Reduction::All => |row| f64::from(u8::from(row.iter().all(|&value| value != 0.0))),
        Reduction::Var => variance,
        Reduction::Std => |row| variance(row).sqrt(),
    };
    let values = along.rows(&array.to_floats(), f);
    let dtype = match reduction {
        Reduction::ArgMax | Reduction::ArgMin => DType::I64,
        Reduction::Any | Reduction::All => DType::Bool,
        Reduction::Mean | Reduction::Var | Reduction::Std if !array.dtype.is_float() => DType::F32,
        _ => array.dtype,
    };
    let out = Array::floats(dtype, along.reduced, values);
    Ok(if dtype.is_float() { out } else { out.convert(dtype) })
}

/// Biased by one, as PyTorch's default.
fn variance(row: &[f64]) -> f64 {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    let squares: f64 = row.iter().map(|value| (value - mean) * (value - mean)).sum();
    squares / (row.len() as f64 - 1.0)
}

fn nan_or(f: fn(f64, f64) -> f64) -> impl Fn(f64, f64) -> f64 {
    move |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { f(a, b) }
}

/// Index of the first best element; the first NaN wins.
fn position(row: &[f64], better: fn(f64, f64) -> bool) -> f64 {
    let mut best = 0;
    for (at, &value) in row.iter().enumerate() {
        if row[best].is_nan() {
            break;
        }
        if value.is_nan() || better(row[best], value) {
            best = at;
        }
    }
    best as f64
}

/// Functions from rows to rows, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFunction {
    CumSum,
    CumProd,
    Softmax,
    LogSoftmax,
    Sort { descending: bool },
}

pub(super) fn along_rows(function: RowFunction, array: &Array, axis: i128) -> Eval<Array> {
    let along = along(array, Some(axis), true)?;
    if let (Data::Int(values), RowFunction::CumSum | RowFunction::CumProd) =
        (&array.data, &function)
    {
        let values = along.map_rows(values, |row: &[i64]| match function {
            RowFunction::CumSum => running(row, i64::wrapping_add),
            _ => running(row, i64::wrapping_mul),
        });
        return Ok(Array::ints(DType::I64, array.shape.clone(), values));
    }
    let values = along.map_rows(&array.to_floats(), |row: &[f64]| match function {
        RowFunction::CumSum => running(row, |sum, value| sum + value),
        RowFunction::CumProd => running(row, |product, value| product * value),
        RowFunction::Softmax => softmax(row),
        RowFunction::LogSoftmax => softmax(row).into_iter().map(libm::log).collect(),
        RowFunction::Sort { descending } => {
            let mut row = row.to_vec();
            row.sort_by(|a, b| match (a.is_nan(), b.is_nan()) {
                (false, false) => a.total_cmp(b),
                (a, b) => a.cmp(&b),
            });
            if descending {
                row.reverse();
            }
            row
        }
    });
    let softmax = matches!(function, RowFunction::Softmax | RowFunction::LogSoftmax);
    let dtype = match array.dtype {
        dtype if dtype.is_float() => dtype,
        _ if softmax => DType::F32,
        dtype => dtype,
    };
    let out = Array::floats(dtype, array.shape.clone(), values);
    Ok(if dtype.is_float() { out } else { out.convert(dtype) })
}

fn running<V: Copy>(row: &[V], f: impl Fn(V, V) -> V) -> Vec<V> {
    let mut total = None;
    let step = |&value: &V| {
        let next = total.map_or(value, |total| f(total, value));
        total = Some(next);
        next
    };
    row.iter().map(step).collect()
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|value| libm::exp(value - largest)).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}
