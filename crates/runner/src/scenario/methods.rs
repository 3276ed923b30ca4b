//! Calls of functions and of the methods of tensors.

use std::sync::Arc;

use super::args::{Args, to_dtype};
use super::construct::shape_of;
use super::dtype::DType;
use super::error::{Eval, fault};
use super::functions::{self, pointwise, reduction};
use super::host::Host;
use super::reduce;
use super::tensor::{Array, Data, Layout, Value};
use super::views;

/// Calls a function by name; those that give another view are methods of their first argument.
pub(super) fn call(host: &mut Host, name: &str, mut args: Args) -> Eval<Value> {
    match name {
        "transpose" | "permute" | "reshape" => {
            let value = args.need(name, &["x", "input"])?;
            method(host, value, name, args)
        }
        _ => functions::call(host, name, args),
    }
}

/// Calls a method of a value.
pub(super) fn method(host: &mut Host, value: Value, name: &str, mut args: Args) -> Eval<Value> {
    if !matches!(value, Value::Tensor(_) | Value::Array(_)) {
        return Err(fault!("{} has no method `{name}`", value.kind()));
    }
    match name {
        "stride" => stride(host, &value, args),
        "numel" | "nelement" => {
            args.finish(name)?;
            Ok(Value::Int(numel(&value) as i128))
        }
        "size" => {
            let shape = host.attribute(&value, "shape")?;
            let axis = args.take(&["dim"]).map(|axis| host.int(&axis)).transpose()?;
            args.finish(name)?;
            match (shape, axis) {
                (Value::Tuple(extents), Some(axis)) => {
                    let at = reduce::normalize_axis(axis, extents.len())?;
                    Ok(extents[at].clone())
                }
                (shape, _) => Ok(shape),
            }
        }
        "dim" => host.attribute(&value, "ndim"),
        "data_ptr" => {
            args.finish(name)?;
            match &value {
                Value::Tensor(tensor) => host.address(tensor),
                _ => Err(fault!("a computed tensor has no address; `.clone()` puts it in memory")),
            }
        }
        "element_size" => {
            let dtype = to_dtype(&host.attribute(&value, "dtype")?)?;
            Ok(Value::Int(dtype.bytes() as i128))
        }
        "to" | "type" | "astype" => {
            let dtype = to_dtype(&args.need(name, &["dtype"])?)?;
            args.finish(name)?;
            convert(host, &value, dtype)
        }
        "float" => convert(host, &value, DType::F32),
        "half" => convert(host, &value, DType::F16),
        "bfloat16" => convert(host, &value, DType::BF16),
        "double" => convert(host, &value, DType::F64),
        "int" => convert(host, &value, DType::I32),
        "long" => convert(host, &value, DType::I64),
        "bool" => convert(host, &value, DType::Bool),
        "contiguous" | "clone" => {
            args.finish(name)?;
            contiguous(host, &value, name == "clone")
        }
        "view" | "reshape" => {
            if let [Value::DType(dtype)] = args.positional[..] {
                return bitcast(host, &value, dtype);
            }
            let shape = extents(host, std::mem::take(&mut args.positional))?;
            reshape(host, &value, &shape, name == "view")
        }
        "flatten" | "ravel" => reshape(host, &value, &[-1], false),
        "t" => host.view(&value, |layout| Ok(layout.transposed())),
        "transpose" => {
            let (a, b) = (args.need(name, &["dim0"])?, args.need(name, &["dim1"])?);
            let (a, b) = (host.int(&a)?, host.int(&b)?);
            host.view(&value, |layout| {
                let rank = layout.shape.len();
                let mut order: Vec<usize> = (0..rank).collect();
                order.swap(reduce::normalize_axis(a, rank)?, reduce::normalize_axis(b, rank)?);
                views::permute(layout, &order)
            })
        }
        "permute" => {
            let order = extents(host, std::mem::take(&mut args.positional))?;
            host.view(&value, |layout| {
                let rank = layout.shape.len();
                let order = order.iter().map(|&axis| reduce::normalize_axis(axis, rank));
                views::permute(layout, &order.collect::<Eval<Vec<usize>>>()?)
            })
        }
        "unsqueeze" | "squeeze" => {
            let axis = args.take(&["dim", "axis"]).map(|axis| host.int(&axis)).transpose()?;
            host.view(&value, |layout| squeeze(layout, axis, name == "unsqueeze"))
        }
        "expand" | "broadcast_to" => {
            let shape = shape_of(host, std::mem::take(&mut args.positional))?;
            host.view(&value, |layout| {
                layout.broadcast(&shape).ok_or_else(|| fault!("the shapes do not broadcast"))
            })
        }
        "item" => {
            let array = host.array(&value)?;
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
            functions::call(host, name, args)
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

fn stride(host: &mut Host, value: &Value, mut args: Args) -> Eval<Value> {
    let layout = match value {
        Value::Tensor(tensor) => tensor.layout.clone(),
        other => Layout::contiguous(&host.array(other)?.shape),
    };
    let axis = args.take(&["dim"]).map(|axis| host.int(&axis)).transpose()?;
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

fn convert(host: &mut Host, value: &Value, dtype: DType) -> Eval<Value> {
    if let Value::Tensor(tensor) = value
        && tensor.dtype == dtype
    {
        return Ok(value.clone());
    }
    Ok(Value::Array(host.array(value)?.convert(dtype).into()))
}

fn contiguous(host: &mut Host, value: &Value, copy: bool) -> Eval<Value> {
    match value {
        Value::Tensor(tensor) if tensor.layout.is_contiguous() && !copy => Ok(value.clone()),
        Value::Tensor(_) => {
            let array = host.array(value)?;
            Ok(Value::Tensor(host.store.store(&array)))
        }
        other => Ok(other.clone()),
    }
}

fn extents(host: &Host, values: Vec<Value>) -> Eval<Vec<i128>> {
    let values = match values.as_slice() {
        [Value::Tuple(items)] => items.clone(),
        _ => values,
    };
    values.iter().map(|value| host.int(value)).collect()
}

fn reshape(host: &mut Host, value: &Value, shape: &[i128], strict: bool) -> Eval<Value> {
    match value {
        Value::Tensor(tensor) => match views::reshape(&tensor.layout, shape)? {
            Some(layout) => host.view(value, |_| Ok(layout)),
            None if strict => {
                Err(fault!("view needs contiguous elements; use .contiguous() or .reshape(...)"))
            }
            None => {
                let dense = contiguous(host, value, true)?;
                reshape(host, &dense, shape, true)
            }
        },
        other => {
            let array = host.array(other)?;
            let layout = views::reshape(&Layout::contiguous(&array.shape), shape)?;
            let shape = layout.map_or_else(Vec::new, |layout| layout.shape);
            Ok(Value::Array(Arc::new(Array { shape, ..(*array).clone() })))
        }
    }
}

/// The same bytes as elements of another type of the same size.
fn bitcast(host: &mut Host, value: &Value, dtype: DType) -> Eval<Value> {
    let array = host.array(value)?;
    if array.dtype.bytes() != dtype.bytes() {
        return Err(fault!(
            "{} elements cannot be viewed as {dtype}: their sizes differ",
            array.dtype
        ));
    }
    let bytes = array.to_bytes();
    Ok(Value::Tensor(host.store.add(dtype, &array.shape, bytes, true)))
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
