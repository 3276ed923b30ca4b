//! Methods of tensors.

use std::sync::Arc;

use super::super::dtype::DType;
use super::super::error::{Eval, fault};
use super::super::eval::Evaluator;
use super::super::reduce;
use super::super::tensor::{Array, Data, Layout, Value};
use super::super::views;
use super::construct::shape_of;
use super::{Args, call, pointwise, reduction, to_dtype};

/// Calls a method of a value.
pub(in crate::scenario) fn method(
    eval: &mut Evaluator,
    value: Value,
    name: &str,
    mut args: Args,
) -> Eval<Value> {
    if !matches!(value, Value::Tensor(_) | Value::Array(_)) {
        return Err(fault!("{} has no method `{name}`", value.kind()));
    }
    match name {
        "stride" => stride(eval, &value, args),
        "numel" | "nelement" => {
            args.finish(name)?;
            Ok(Value::Int(numel(&value) as i128))
        }
        "size" => {
            let shape = eval.attribute(&value, "shape")?;
            let axis = args.take(&["dim"]).map(|axis| eval.int(&axis)).transpose()?;
            args.finish(name)?;
            match (shape, axis) {
                (Value::Tuple(extents), Some(axis)) => {
                    let at = reduce::normalize_axis(axis, extents.len())?;
                    Ok(extents[at].clone())
                }
                (shape, _) => Ok(shape),
            }
        }
        "dim" => eval.attribute(&value, "ndim"),
        "data_ptr" => {
            args.finish(name)?;
            match &value {
                Value::Tensor(tensor) => eval.address(tensor),
                _ => Err(fault!("a computed tensor has no address; `.clone()` puts it in memory")),
            }
        }
        "element_size" => {
            let dtype = to_dtype(&eval.attribute(&value, "dtype")?)?;
            Ok(Value::Int(dtype.bytes() as i128))
        }
        "to" | "type" | "astype" => {
            let dtype = to_dtype(&args.need(name, &["dtype"])?)?;
            args.finish(name)?;
            convert(eval, &value, dtype)
        }
        "float" => convert(eval, &value, DType::F32),
        "half" => convert(eval, &value, DType::F16),
        "bfloat16" => convert(eval, &value, DType::BF16),
        "double" => convert(eval, &value, DType::F64),
        "int" => convert(eval, &value, DType::I32),
        "long" => convert(eval, &value, DType::I64),
        "bool" => convert(eval, &value, DType::Bool),
        "contiguous" | "clone" => {
            args.finish(name)?;
            contiguous(eval, &value, name == "clone")
        }
        "view" | "reshape" => {
            if let [Value::DType(dtype)] = args.positional[..] {
                return bitcast(eval, &value, dtype);
            }
            let shape = extents(eval, std::mem::take(&mut args.positional))?;
            reshape(eval, &value, &shape, name == "view")
        }
        "flatten" | "ravel" => reshape(eval, &value, &[-1], false),
        "t" => eval.view(&value, |layout| Ok(layout.transposed())),
        "transpose" => {
            let (a, b) = (args.need(name, &["dim0"])?, args.need(name, &["dim1"])?);
            let (a, b) = (eval.int(&a)?, eval.int(&b)?);
            eval.view(&value, |layout| {
                let rank = layout.shape.len();
                let mut order: Vec<usize> = (0..rank).collect();
                order.swap(reduce::normalize_axis(a, rank)?, reduce::normalize_axis(b, rank)?);
                views::permute(layout, &order)
            })
        }
        "permute" => {
            let order = extents(eval, std::mem::take(&mut args.positional))?;
            eval.view(&value, |layout| {
                let rank = layout.shape.len();
                let order = order.iter().map(|&axis| reduce::normalize_axis(axis, rank));
                views::permute(layout, &order.collect::<Eval<Vec<usize>>>()?)
            })
        }
        "unsqueeze" | "squeeze" => {
            let axis = args.take(&["dim", "axis"]).map(|axis| eval.int(&axis)).transpose()?;
            eval.view(&value, |layout| squeeze(layout, axis, name == "unsqueeze"))
        }
        "expand" | "broadcast_to" => {
            let shape = shape_of(eval, std::mem::take(&mut args.positional))?;
            eval.view(&value, |layout| {
                layout.broadcast(&shape).ok_or_else(|| fault!("the shapes do not broadcast"))
            })
        }
        "item" => {
            let array = eval.array(&value)?;
            match (&array.data, array.numel()) {
                (Data::Int(values), 1) => Ok(Value::Int(i128::from(values[0]))),
                (Data::Float(values), 1) => Ok(Value::Float(values[0])),
                (_, count) => Err(fault!("item of a tensor of {count} elements")),
            }
        }
        // The same on a host as on a device.
        "cuda" | "cpu" | "detach" => Ok(value),
        _ if is_function_method(name) => {
            args.positional.insert(0, value);
            call(eval, name, args)
        }
        _ => Err(fault!("a tensor has no method `{name}`")),
    }
}

/// Functions that are also methods.
fn is_function_method(name: &str) -> bool {
    pointwise(name).is_some()
        || reduction(name).is_some()
        || matches!(
            name,
            "cumsum"
                | "cumprod"
                | "softmax"
                | "log_softmax"
                | "sort"
                | "clamp"
                | "clip"
                | "maximum"
                | "minimum"
                | "pow"
                | "matmul"
                | "mm"
                | "allclose"
        )
}

fn numel(value: &Value) -> usize {
    match value {
        Value::Tensor(tensor) => tensor.layout.numel(),
        Value::Array(array) => array.numel(),
        _ => 0,
    }
}

fn stride(eval: &mut Evaluator, value: &Value, mut args: Args) -> Eval<Value> {
    let layout = match value {
        Value::Tensor(tensor) => tensor.layout.clone(),
        other => Layout::contiguous(&eval.array(other)?.shape),
    };
    let axis = args.take(&["dim"]).map(|axis| eval.int(&axis)).transpose()?;
    args.finish("stride")?;
    let int = |stride: isize| Value::Int(stride as i128);
    match axis {
        Some(axis) => {
            let at = reduce::normalize_axis(axis, layout.strides.len())?;
            Ok(int(layout.strides[at]))
        }
        None => Ok(Value::Tuple(layout.strides.into_iter().map(int).collect())),
    }
}

fn convert(eval: &mut Evaluator, value: &Value, dtype: DType) -> Eval<Value> {
    if let Value::Tensor(tensor) = value
        && tensor.dtype == dtype
    {
        return Ok(value.clone());
    }
    Ok(Value::Array(eval.array(value)?.convert(dtype).into()))
}

fn contiguous(eval: &mut Evaluator, value: &Value, copy: bool) -> Eval<Value> {
    match value {
        Value::Tensor(tensor) if tensor.layout.is_contiguous() && !copy => Ok(value.clone()),
        Value::Tensor(_) => {
            let array = eval.array(value)?;
            Ok(Value::Tensor(eval.store.store(&array)))
        }
        other => Ok(other.clone()),
    }
}

fn extents(eval: &Evaluator, values: Vec<Value>) -> Eval<Vec<i128>> {
    let values = match values.as_slice() {
        [Value::Tuple(items)] => items.clone(),
        _ => values,
    };
    values.iter().map(|value| eval.int(value)).collect()
}

fn reshape(eval: &mut Evaluator, value: &Value, shape: &[i128], strict: bool) -> Eval<Value> {
    match value {
        Value::Tensor(tensor) => match views::reshape(&tensor.layout, shape)? {
            Some(layout) => eval.view(value, |_| Ok(layout)),
            None if strict => {
                Err(fault!("view needs contiguous elements; use .contiguous() or .reshape(...)"))
            }
            None => {
                let dense = contiguous(eval, value, true)?;
                reshape(eval, &dense, shape, true)
            }
        },
        other => {
            let array = eval.array(other)?;
            let layout = views::reshape(&Layout::contiguous(&array.shape), shape)?;
            let shape = layout.map_or_else(Vec::new, |layout| layout.shape);
            Ok(Value::Array(Arc::new(Array { shape, ..(*array).clone() })))
        }
    }
}

/// The same bytes as elements of another type of the same size.
fn bitcast(eval: &mut Evaluator, value: &Value, dtype: DType) -> Eval<Value> {
    let array = eval.array(value)?;
    if array.dtype.bytes() != dtype.bytes() {
        return Err(fault!(
            "{} elements cannot be viewed as {dtype}: their sizes differ",
            array.dtype
        ));
    }
    let bytes = array.to_bytes();
    Ok(Value::Tensor(eval.store.add(dtype, &array.shape, bytes, true)))
}

fn squeeze(layout: &Layout, axis: Option<i128>, insert: bool) -> Eval<Layout> {
    let mut view = layout.clone();
    let rank = layout.shape.len();
    if insert {
        let axis = axis.ok_or_else(|| fault!("unsqueeze needs an axis"))?;
        let at = reduce::normalize_axis(axis, rank + 1)?;
        view.shape.insert(at, 1);
        view.strides.insert(at, 0);
        return Ok(view);
    }
    let at = axis.map(|axis| reduce::normalize_axis(axis, rank)).transpose()?;
    let dropped = |index: usize| view.shape[index] == 1 && at.is_none_or(|at| at == index);
    let kept: Vec<usize> = (0..rank).filter(|&index| !dropped(index)).collect();
    Ok(Layout {
        shape: kept.iter().map(|&index| layout.shape[index]).collect(),
        strides: kept.iter().map(|&index| layout.strides[index]).collect(),
        offset: layout.offset,
    })
}
