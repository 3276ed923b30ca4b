//! Tensors that functions make of others: reductions and orders along an axis, copies, products.

use std::sync::Arc;

use crate::host::code::arguments::Args;
use crate::host::code::operators::{position, truth};
use crate::host::torch::{elementwise, numbers, order, sizes, views};
use crate::host::value::dtype::{float_of, is_complex, is_float, promoted};
use crate::host::value::{Tensor, Value};
use crate::specialization::TupleNames;

/// What a function gives along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// Elements, of the tensor's type.
    Elements,
    /// Floats that are computed of elements.
    Floats,
    /// Sums of elements: those of integers are of 64 bits.
    Sums,
    /// Positions of elements.
    Positions,
    /// Truth values.
    Truths,
    /// Elements and their positions.
    Both,
    /// The least and the greatest elements.
    Extrema,
}

/// What a function makes of a tensor and the arguments after it, which is also a method of tensors;
/// `None` for other functions.
pub(crate) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    along_axis(name, tensor, args)
        .or_else(|| elementwise::made_of(name, tensor, args))
        .or_else(|| combined(name, tensor, args))
        .or_else(|| cut(name, tensor, args))
        .or_else(|| looked_up(name, tensor, args))
        .or_else(|| sizes::made_of(name, tensor, args))
        .or_else(|| counted(name, tensor, args))
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
        "split" | "split_with_sizes" => {
            let sections = args.keyword("split_sizes");
            match sections
                .or(args.get(0, "split_size"))
                .or_else(|| args.keyword("split_size_or_sections"))?
            {
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
fn counted(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let rank = tensor.shape.as_ref().map(|shape| Value::Int(Some(shape.len() as i128)));
    let flag = |at: usize, name: &str| {
        args.get(at, name).is_some_and(|flag| *flag != Value::Bool(Some(false)))
    };
    // Positions are gathered by dimensions, or by elements.
    let positions = |shape: Option<Vec<Value>>| {
        let strides = views::unknown_strides(shape.as_deref());
        Tensor { dtype: Some("i64".into()), shape, strides, ..Tensor::default() }
    };
    Some(match name {
        "repeat_interleave" | "masked_select" => Value::tensor(tensor.dtype.as_deref()),
        "bincount" if args.get(0, "weights").is_none() => {
            let least = args.get(1, "minlength").map_or(Some(0), known);
            let greatest = numbers::bounds(tensor).map(|(_, greatest)| greatest);
            let count = match (least, greatest) {
                (Some(least), Some((greatest, _))) if greatest < least => Some(least),
                (Some(least), Some((greatest, true))) => Some(least.max(greatest + 1)),
                _ => None,
            };
            let shape = count.map(|count| vec![Value::Int(Some(count))]);
            Value::Tensor(Tensor { dtype: Some("i64".into()), shape, ..Tensor::default() }.copied())
        }
        "bincount" => Value::tensor(None),
        "_convert_indices_from_coo_to_csr" => {
            let rows = args.get(0, "size").and_then(known);
            let shape = rows.map(|rows| vec![Value::Int(Some(rows + 1))]);
            let is_short = args.keyword("out_int32").map_or(Some(false), truth);
            let dtype = is_short.map(|short| if short { "i32" } else { "i64" }.into());
            Value::Tensor(Tensor { dtype, shape, ..Tensor::default() }.copied())
        }
        "histc" => {
            let bins = args.get(0, "bins").cloned().unwrap_or(Value::Int(Some(100)));
            let shape = matches!(bins, Value::Int(_)).then(|| vec![bins]);
            let dtype = tensor.dtype.clone();
            Value::Tensor(Tensor { dtype, shape, ..Tensor::default() }.copied())
        }
        "nonzero" if flag(0, "as_tuple") => {
            let axis = |_: &Value| Value::Tensor(positions(Some(vec![Value::Int(None)])));
            Value::Tuple(tensor.shape.as_ref()?.iter().map(axis).collect())
        }
        "nonzero" | "argwhere" => {
            Value::Tensor(positions(rank.map(|rank| vec![Value::Int(None), rank])))
        }
        "unique" | "unique_consecutive" => {
            let places = if name == "unique" { 1 } else { 0 };
            let more = [(places, "return_inverse"), (places + 1, "return_counts")];
            match more.iter().any(|(at, name)| flag(*at, name)) {
                true => return None,
                false => Value::tensor(tensor.dtype.as_deref()),
            }
        }
        _ => return None,
    })
}

/// What `name` makes along an axis of `tensor`, with the arguments after it; `None` for other
/// functions.
pub(crate) fn along_axis(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let by_order = match name {
        "topk" | "sort" => Some(Gives::Both),
        "argsort" => Some(Gives::Positions),
        "cumsum" | "cumprod" if views::is_contiguous(tensor) == Some(true) => Some(Gives::Sums),
        "cummax" | "cummin" => Some(Gives::Both),
        _ => None,
    };
    match by_order {
        Some(gives) => {
            let made = made(tensor, ordered(name, tensor, args), gives, args);
            let made = if is_ordered(tensor) { made } else { made.in_any_order() };
            Some(match name {
                "sort" | "argsort" => order::noted(tensor, args, made),
                _ => made,
            })
        }
        None => reduced(name, tensor, args),
    }
}

/// Whether what is made of a tensor along a dimension is contiguous.
fn is_ordered(tensor: &Tensor) -> bool {
    tensor.strides.is_none()
}

/// What a function that reduces a tensor, or a dimension of it, gives. Source: PyTorch's documentation, by
/// tests/torch/sizes.py.
fn reduces_to(name: &str) -> Option<Gives> {
    Some(match name {
        "amax" | "amin" | "max" | "median" | "min" | "nanmedian" => Gives::Elements,
        "logsumexp" | "mean" | "nanmean" | "nanquantile" | "norm" | "quantile" | "std" | "var" => {
            Gives::Floats
        }
        "nansum" | "prod" | "sum" | "trace" => Gives::Sums,
        "argmax" | "argmin" | "count_nonzero" => Gives::Positions,
        "all" | "any" => Gives::Truths,
        "kthvalue" | "mode" => Gives::Both,
        "aminmax" => Gives::Extrema,
        _ => return None,
    })
}

fn reduced(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let gives = reduces_to(name)?;
    // The dimension follows what is reduced by: the kind of norm, the place in order.
    let at = usize::from(matches!(name, "norm" | "kthvalue" | "quantile" | "nanquantile"));
    let dim = args.get(at, "dim").or_else(|| args.keyword("axis"));
    let last = Value::Int(Some(-1));
    let (dim, gives) = match name {
        // Of two tensors they take the greater or lesser elements.
        "max" | "min" if matches!(dim, Some(Value::Tensor(_)) | Some(Value::Unknown)) => {
            return None;
        }
        "max" | "min" | "median" | "nanmedian" if dim.is_some() => (dim, Gives::Both),
        "mode" | "kthvalue" => (Some(dim.unwrap_or(&last)), gives),
        "trace" => (None, gives),
        "quantile" | "nanquantile" if !matches!(args.get(0, "q"), Some(Value::Float(_))) => {
            return None;
        }
        "prod" if dim.is_some_and(|dim| dim.elements().is_some()) => return None,
        _ => (dim, gives),
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
        // Some functions reduce none of no dimensions, others all.
        Some(_) if several.as_ref().is_none_or(Vec::is_empty) => return None,
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
    let own = tensor.dtype.as_deref();
    let is_counted = own.is_some_and(|dtype| !is_float(dtype) && !is_complex(dtype));
    let positions = || of_type(Some(Arc::from("i64")));
    let record = |fields: [&str; 2], items: Vec<Value>| {
        let fields = fields.map(Into::into).to_vec();
        let names = Arc::new(TupleNames { class: "return_types".into(), fields });
        Value::Record { names, items }
    };
    let elements = || of_type(tensor.dtype.clone());
    match gives {
        Gives::Elements => elements(),
        Gives::Floats => of_type(tensor.dtype.as_ref().map(float_of)),
        Gives::Sums if is_counted => positions(),
        Gives::Sums => elements(),
        Gives::Positions => positions(),
        // Of bytes they give bytes, as once there were no truth values.
        Gives::Truths => of_type(Some(Arc::from(if own == Some("u8") { "u8" } else { "i1" }))),
        Gives::Both => record(["values", "indices"], vec![elements(), positions()]),
        Gives::Extrema => record(["min", "max"], vec![elements(), elements()]),
    }
}

/// What a function makes of two tensors that it multiplies; `None` for other functions.
fn combined(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let other = |name: &str| match args.get(0, name)? {
        Value::Tensor(other) => Some(other),
        _ => None,
    };
    let other = match name {
        "matmul" | "inner" | "dot" | "ger" | "outer" | "vdot" | "mm" | "bmm" | "mv" => {
            ["other", "mat2", "tensor", "vec", "vec2"].into_iter().find_map(other)?
        }
        "addmm" | "addmv" | "addbmm" | "baddbmm" | "addr" => return added(name, tensor, args),
        _ => return None,
    };
    multiplied(name, tensor, other).map(Value::Tensor)
}

fn multiplied(name: &str, a: &Tensor, b: &Tensor) -> Option<Tensor> {
    let shape = match (name, a.shape.as_deref()?, b.shape.as_deref()?) {
        ("ger" | "outer" | "addr", [rows], [columns]) => vec![rows.clone(), columns.clone()],
        ("inner", [a @ .., _], [b @ .., _]) => [a, b].concat(),
        ("addbmm", [_, rows, _], [_, _, columns]) => vec![rows.clone(), columns.clone()],
        _ => return Some(views::product(a, b)),
    };
    let dtype = match name {
        "ger" | "outer" => promoted(a.dtype.as_ref(), b.dtype.as_ref()),
        _ => a.dtype.clone().filter(|dtype| Some(dtype) == b.dtype.as_ref()),
    };
    Some(Tensor { dtype, shape: Some(shape), on_gpu: a.on_gpu, ..Tensor::default() }.copied())
}

/// A product to which a tensor is added.
fn added(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let names = match name {
        "addmm" => ["mat1", "mat2"],
        "addmv" => ["mat", "vec"],
        "addr" => ["vec1", "vec2"],
        _ => ["batch1", "batch2"],
    };
    let (Value::Tensor(a), Value::Tensor(b)) = (args.get(0, names[0])?, args.get(1, names[1])?)
    else {
        return None;
    };
    let product = multiplied(name, a, b)?;
    let dtype = product.dtype.clone().filter(|dtype| Some(dtype) == tensor.dtype.as_ref());
    let product = if tensor.strides.is_some() { views::reordered(&product) } else { product };
    Some(Value::Tensor(Tensor { dtype, ..product }))
}
