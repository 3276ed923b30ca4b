//! Tensors that functions of `torch.linalg` and `torch.fft` make.

use std::sync::Arc;

use crate::host::code::arguments::Args;
use crate::host::torch::reduced;
use crate::host::torch::sizes::{contiguous, dims, number, ordered_anyhow};
use crate::host::value::dtype::{is_complex, is_float};
use crate::host::value::{Tensor, Value};

/// Functions of square matrices that give matrices of the same sizes, laid out as they are computed.
const MATRICES: &[&str] = &["cholesky", "inv", "matrix_exp", "matrix_power"];

/// Functions of Fourier that give a complex number for each element.
const TRANSFORMS: &[&str] = &["fft", "fft2", "fftn", "ifft", "ifft2", "ifftn"];

/// What `torch.linalg.NAME(...)`, or `torch.fft.NAME(...)`, makes of a tensor and the arguments after it;
/// `None` for other functions.
pub(crate) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    match name {
        "norm" | "vector_norm" => reduced::made_of("norm", tensor, args),
        "matmul" => reduced::made_of(name, tensor, args),
        "det" => match dims(tensor)?.as_slice() {
            [batch @ .., _, _] => Some(contiguous(tensor.dtype.clone(), batch)),
            _ => None,
        },
        "svd" | "qr" | "eigh" | "svdvals" | "eigvalsh" | "pinv" => factors(name, tensor, args),
        _ if MATRICES.contains(&name) => Some(ordered_anyhow(tensor.dtype.clone(), &dims(tensor)?)),
        "solve" => match args.get(0, "B")? {
            Value::Tensor(right) if right.dtype == tensor.dtype => like_right_side(right),
            _ => None,
        },
        _ => transformed(name, tensor, args),
    }
}

/// What solves equations for the columns of `right`.
pub(crate) fn like_right_side(right: &Tensor) -> Option<Value> {
    let sizes = dims(right).filter(|sizes| sizes.len() > 1)?;
    Some(ordered_anyhow(right.dtype.clone(), &sizes))
}

/// What decompositions of matrices give.
fn factors(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let of = dims(tensor)?;
    let [batch @ .., rows, columns] = of.as_slice() else { return None };
    let inner = *rows.min(columns);
    let dtype = tensor.dtype.clone();
    let matrix = |rows: i128, columns: i128| {
        ordered_anyhow(dtype.clone(), &[batch, &[rows, columns]].concat())
    };
    let numbers = || ordered_anyhow(real_of(dtype.as_ref()), &[batch, &[inner]].concat());
    let made = match name {
        "svd" => {
            let is_full = match args.get(0, "full_matrices") {
                None => true,
                Some(Value::Bool(is_full)) => (*is_full)?,
                Some(_) => return None,
            };
            let (left, right) = if is_full { (*rows, *columns) } else { (inner, inner) };
            vec![matrix(*rows, left), numbers(), matrix(right, *columns)]
        }
        "qr" => {
            let inner = match args.get(0, "mode") {
                None => inner,
                Some(Value::Str(mode)) if &**mode == "reduced" => inner,
                Some(Value::Str(mode)) if &**mode == "complete" => *rows,
                Some(_) => return None,
            };
            vec![matrix(*rows, inner), matrix(inner, *columns)]
        }
        "eigh" => vec![numbers(), matrix(*rows, *columns)],
        "pinv" => return Some(matrix(*columns, *rows)),
        _ => return Some(numbers()),
    };
    Some(Value::Tuple(made))
}

fn transformed(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let of = dims(tensor)?;
    let has_default = |at, name| matches!(args.get(at, name), None | Some(Value::None));
    // Sizes to which the dimensions are cut or filled up, and the dimensions.
    let is_plain = ["n", "s"].iter().all(|name| has_default(0, name));
    if TRANSFORMS.contains(&name) {
        return is_plain.then(|| ordered_anyhow(complex_of(tensor.dtype.as_ref()), &of));
    }
    let axis = number(args, 1, "dim", Some(-1))
        .filter(|axis| *axis == -1 || *axis == of.len() as i128 - 1)?;
    let (last, rest) = of.split_last().filter(|_| axis == -1 || is_plain)?;
    match name {
        "rfft" => {
            let size = number(args, 0, "n", Some(*last))? / 2 + 1;
            Some(ordered_anyhow(complex_of(tensor.dtype.as_ref()), &[rest, &[size]].concat()))
        }
        "irfft" => {
            let size = number(args, 0, "n", Some(2 * (last - 1)))?;
            Some(ordered_anyhow(real_of(tensor.dtype.as_ref()), &[rest, &[size]].concat()))
        }
        _ => None,
    }
}

fn complex_of(dtype: Option<&Arc<str>>) -> Option<Arc<str>> {
    Some(match &**dtype? {
        "fp64" => Arc::from("complex128"),
        "fp16" => Arc::from("complex32"),
        dtype if is_complex(dtype) => Arc::from(dtype),
        _ => Arc::from("complex64"),
    })
}

fn real_of(dtype: Option<&Arc<str>>) -> Option<Arc<str>> {
    Some(match &**dtype? {
        "complex128" | "fp64" => Arc::from("fp64"),
        "complex32" | "fp16" => Arc::from("fp16"),
        dtype if is_float(dtype) => Arc::from(dtype),
        _ => Arc::from("fp32"),
    })
}
