//! Tensors that functions make of others: reductions and orders along an axis, copies, products.

use std::sync::Arc;

use super::arguments::Args;
use super::dtype::is_float;
use super::operators::position;
use super::value::{Tensor, Value};
use super::{order, sizes, views};
use crate::specialization::TupleNames;

/// What a function gives along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// Elements, of the tensor's type.
    Elements,
    /// Sums of elements: those of integers are of 64 bits.
    Sums,
    /// Positions of elements.
    Positions,
    /// Truth values.
    Truths,
    /// Elements and their positions.
    Both,
}

/// What a function makes of a tensor and the arguments after it, which is also a method of tensors;
/// `None` for other functions.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let kept =
        matches!(name, "clamp" | "clip" | "neg" | "tril" | "triu" | "flip" | "roll" | "bernoulli");
    match kept && tensor.strides.is_none() {
        true => Some(Value::Tensor(tensor.copied())),
        false => along_axis(name, tensor, args)
            .or_else(|| combined(name, tensor, args))
            .or_else(|| cut(name, tensor, args))
            .or_else(|| looked_up(name, tensor, args))
            .or_else(|| sizes::made_of(name, tensor, args))
            .or_else(|| counted(name, tensor)),
    }
}

/// The parts that `chunk` and `split` show, and what `gather` and `masked_fill` make.
fn cut(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let axis = || {
        let dim = args.get(1, "dim").map_or(Some(0), known)?;
        position(tensor.shape.as_ref()?.len(), dim)
    };
    let size = || known(&tensor.shape.as_ref()?[axis()?]);
    let lengths = |each: i128| {
        let whole = size()?;
        let count =
            if each > 0 { whole.div_euclid(each) + i128::from(whole % each != 0) } else { 0 };
        (1..=views::MAX_ROWS)
            .contains(&count)
            .then(|| (0..count).map(|at| each.min(whole - at * each)).collect::<Vec<_>>())
    };
    let lengths = match name {
        "chunk" => {
            let chunks = args.get(0, "chunks").and_then(known).filter(|chunks| *chunks > 0)?;
            let whole = size()?;
            lengths(whole / chunks + i128::from(whole % chunks != 0))?
        }
        "split" => {
            match args.get(0, "split_size").or_else(|| args.keyword("split_size_or_sections"))? {
                Value::Int(each) => lengths((*each)?)?,
                sections => {
                    let lengths =
                        sections.elements()?.iter().map(known).collect::<Option<Vec<_>>>()?;
                    (size() == Some(lengths.iter().sum())).then_some(lengths)?
                }
            }
        }
        "gather" => {
            let Value::Tensor(index) = args.get(1, "index")? else { return None };
            let (dtype, shape) = (tensor.dtype.clone(), index.shape.clone());
            return Some(Value::Tensor(Tensor { dtype, shape, ..Tensor::default() }.copied()));
        }
        "masked_fill" => {
            let Some(Value::Tensor(mask)) = args.get(0, "mask") else {
                return Some(Value::tensor(tensor.dtype.as_deref()));
            };
            let shape = views::broadcast(tensor.shape.as_deref(), mask.shape.as_deref());
            let dtype = tensor.dtype.clone();
            return Some(Value::Tensor(Tensor { dtype, shape, ..Tensor::default() }.copied()));
        }
        _ => return None,
    };
    views::cut_up(tensor, axis()?, &lengths).map(Value::Tuple)
}

/// What is looked up for each element of a tensor, or asked of it: positions, elements at positions,
/// truth values.
fn looked_up(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let of = |dtype: Option<Arc<str>>, shape: Option<Vec<Value>>| {
        Some(Value::Tensor(Tensor { dtype, shape, ..Tensor::default() }.copied()))
    };
    let tensor_at = |at: usize, name: &str| match args.get(at, name)? {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    };
    let positions = || match args.keyword("out_int32") {
        None | Some(Value::Bool(Some(false))) => Some(Arc::from("i64")),
        Some(Value::Bool(Some(true))) => Some(Arc::from("i32")),
        Some(_) => None,
    };
    match name {
        "bucketize" => of(positions(), tensor.shape.clone()),
        "searchsorted" => of(positions(), tensor_at(0, "input")?.shape.clone()),
        "isfinite" | "isinf" | "isnan" | "logical_not" => {
            of(Some(Arc::from("i1")), tensor.shape.clone())
        }
        "index_select" => {
            let mut shape = tensor.shape.clone()?;
            let axis = position(shape.len(), known(args.get(0, "dim")?)?)?;
            shape[axis] = tensor_at(1, "index")?.shape.as_ref()?.first()?.clone();
            of(tensor.dtype.clone(), Some(shape))
        }
        _ => None,
    }
}

/// What `name` makes whose number of elements depends on those of `tensor` or on other arguments.
fn counted(name: &str, tensor: &Tensor) -> Option<Value> {
    Some(match name {
        "repeat_interleave" | "masked_select" => Value::tensor(tensor.dtype.as_deref()),
        "bincount" => Value::tensor(Some("i64")),
        _ => return None,
    })
}

/// What `name` makes along an axis of `tensor`, with the arguments after it; `None` for other
/// functions.
pub(super) fn along_axis(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    if args.keyword("out").is_some() {
        return None;
    }
    let by_order = match name {
        "topk" | "sort" => Some(Gives::Both),
        "argsort" => Some(Gives::Positions),
        "cumsum" | "cumprod" if views::is_contiguous(tensor) == Some(true) => Some(Gives::Sums),
        _ => None,
    };
    match by_order {
        Some(gives) => {
            let made = made(tensor, ordered(name, tensor, args), gives, args);
            let made = if tensor.strides.is_some() { made.in_any_order() } else { made };
            Some(match name {
                "sort" | "argsort" => order::noted(tensor, args, made),
                _ => made,
            })
        }
        None => reduced(name, tensor, args),
    }
}

fn reduced(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let at = usize::from(name == "norm");
    let dim = args.get(at, "dim").or_else(|| args.keyword("axis"));
    let gives = match name {
        "amax" | "amin" | "mean" | "var" | "std" | "norm" | "logsumexp" => Gives::Elements,
        "sum" | "prod" | "nansum" => Gives::Sums,
        "argmax" | "argmin" => Gives::Positions,
        "all" | "any" => Gives::Truths,
        // Of two tensors they take the greater or lesser elements.
        "max" | "min" if matches!(dim, Some(Value::Tensor(_)) | Some(Value::Unknown)) => {
            return None;
        }
        "max" | "min" if dim.is_none() => Gives::Elements,
        "max" | "min" => Gives::Both,
        _ => return None,
    };
    // What comes after the dimension of these says what they divide by.
    let after = if matches!(name, "var" | "std") { at + 2 } else { at + 1 };
    let keeps = match args.get(after, "keepdim").or_else(|| args.keyword("keepdims")) {
        None => Some(false),
        Some(Value::Bool(keeps)) => *keeps,
        Some(_) => None,
    };
    let shape = keeps.and_then(|keeps| without(tensor.shape.as_deref()?, dim, keeps));
    Some(made(tensor, shape, gives, args))
}

/// The sizes of what is left where one dimension, several, or all are reduced.
fn without(shape: &[Value], dim: Option<&Value>, keeps: bool) -> Option<Vec<Value>> {
    let several = dim.and_then(Value::elements);
    let dims = match dim {
        None | Some(Value::None) => (0..shape.len() as i128).collect(),
        Some(Value::Int(Some(dim))) => vec![*dim],
        Some(_) => several?.iter().map(known).collect::<Option<Vec<_>>>()?,
    };
    let dims = dims.into_iter().map(|dim| position(shape.len(), dim));
    let dims = dims.collect::<Option<Vec<_>>>()?;
    let left = shape.iter().enumerate().filter_map(|(at, size)| match dims.contains(&at) {
        false => Some(size.clone()),
        true => keeps.then_some(Value::Int(Some(1))),
    });
    Some(left.collect())
}

/// The sizes of what is put in order or summed up along a dimension, the last one if none is named.
fn ordered(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Vec<Value>> {
    let mut shape = tensor.shape.clone()?;
    if name == "topk" {
        let dim = args.get(1, "dim").map_or(Some(-1), known)?;
        let at = position(shape.len(), dim)?;
        shape[at] = args.get(0, "k")?.clone();
    }
    Some(shape)
}

fn known(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => *number,
        _ => None,
    }
}

fn made(tensor: &Tensor, shape: Option<Vec<Value>>, gives: Gives, args: &Args<'_>) -> Value {
    let of_type = |dtype: Option<Arc<str>>| {
        let dtype = if args.keyword("dtype").is_some() { args.dtype(None) } else { dtype };
        Value::Tensor(Tensor { dtype, shape: shape.clone(), ..Tensor::default() }.copied())
    };
    let is_integer = tensor.dtype.as_deref().is_some_and(|dtype| !is_float(dtype));
    let positions = || of_type(Some(Arc::from("i64")));
    match gives {
        Gives::Elements => of_type(tensor.dtype.clone()),
        Gives::Sums if is_integer => of_type(Some(Arc::from("i64"))),
        Gives::Sums => of_type(tensor.dtype.clone()),
        Gives::Positions => positions(),
        Gives::Truths => of_type(Some(Arc::from("i1"))),
        Gives::Both => {
            let fields = ["values", "indices"].map(Into::into).to_vec();
            let names = Arc::new(TupleNames { class: "return_types".into(), fields });
            Value::Record { names, items: vec![of_type(tensor.dtype.clone()), positions()] }
        }
    }
}

/// What a function makes of two tensors, or of one and a number; `None` for other functions.
fn combined(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let other = args.get(0, "other").or_else(|| args.get(0, "mat2"))?;
    match (name, other) {
        ("matmul" | "mm" | "bmm", Value::Tensor(other)) => {
            Some(Value::Tensor(views::product(tensor, other)))
        }
        ("maximum" | "minimum" | "max" | "min" | "pow", Value::Tensor(other)) => {
            Some(Value::Tensor(views::elementwise(tensor, Some(other))))
        }
        ("pow", Value::Int(_) | Value::Float(_))
            if tensor.dtype.as_deref().is_some_and(is_float) =>
        {
            Some(Value::Tensor(tensor.copied()))
        }
        _ => None,
    }
}
