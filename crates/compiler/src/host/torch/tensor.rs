//! Tensors of host code: constructors, attributes, methods.

use std::sync::Arc;

use crate::builtins::TORCH;
use crate::hir::{BinaryOp, Name};
use crate::host::code::arguments::Args;
use crate::host::code::operators::{binary, position, subscript, truth};
use crate::host::code::rebound;
use crate::host::torch::misuse::{self, Misuse};
use crate::host::torch::numbers::{self, as_size};
use crate::host::torch::reduced::made_of;
use crate::host::torch::subscripts::{self, Bound, Part};
use crate::host::torch::views::{self, elements, strides, swap_last, transpose, unknown_strides};
use crate::host::torch::{arrays, data, devices, fits, states};
use crate::host::value::dtype::{
    element_size, is_complex, is_float, named_dtype, number_dtype, promoted, python_type,
};
use crate::host::value::number::{Number, as_number};
use crate::host::value::{Descriptor, Storage, Tensor, Value};
use crate::project::Resolution;

/// A tensor of which the numbers are known is gone over where it has so many rows at most.
const MAX_KNOWN_ROWS: i128 = 256;

/// Another tensor is gone over where it has so many rows at most.
const MAX_ROWS: i128 = 64;

impl<'a> Args<'a> {
    /// `dtype=`, or `default`; `None` when it is given and not known.
    pub(crate) fn dtype(&self, default: Option<&str>) -> Option<Arc<str>> {
        match self.keyword("dtype") {
            None | Some(Value::None) => default.map(Arc::from),
            Some(value) => given_dtype(value),
        }
    }

    /// Whether elements may be laid out in another order than a contiguous tensor's.
    fn has_memory_format(&self) -> bool {
        let is_usual =
            |path: &[Name]| path.last().is_some_and(|name| &**name == "contiguous_format");
        match self.keyword("memory_format") {
            None => false,
            Some(Value::Named(Resolution::External(path))) => !is_usual(path),
            Some(_) => true,
        }
    }

    /// A copy laid out as `memory_format=` says.
    fn formatted(&self, tensor: &Tensor) -> Tensor {
        let named = |path: &[Name]| path.last().cloned();
        let format = match self.keyword("memory_format") {
            Some(Value::Named(Resolution::External(path))) => named(path),
            _ => None,
        };
        match format.as_deref() {
            Some("channels_last" | "channels_last_3d") => views::with_channels_last(tensor),
            _ => views::reordered(tensor),
        }
    }
}

/// The dtype that a value names: one of PyTorch or the scenario language, or a type of Python.
pub(crate) fn given_dtype(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::DType(dtype) | Value::TorchDType(dtype) => Some(dtype.clone()),
        Value::Global(name) => python_type(name).or_else(|| named_dtype(name)).map(Arc::from),
        Value::Str(name) => named_dtype(name).map(Arc::from),
        _ => None,
    }
}

/// Sizes given as separate arguments or as one tuple.
pub(crate) fn sizes(args: &[&Value]) -> Option<Vec<Value>> {
    match args {
        [] => None,
        [Value::Tuple(sizes) | Value::List(sizes)] => Some(sizes.iter().map(as_size).collect()),
        [Value::Ints | Value::Unknown | Value::Collection | Value::OneOf(_)] => None,
        sizes => Some(sizes.iter().map(|size| as_size(size)).collect()),
    }
}

/// Classes of tensors of one type, whose constructors take sizes or a list of numbers.
pub(crate) const OF_TYPE: &[(&str, &str)] = &[
    ("BFloat16Tensor", "bf16"),
    ("BoolTensor", "i1"),
    ("ByteTensor", "u8"),
    ("CharTensor", "i8"),
    ("DoubleTensor", "fp64"),
    ("FloatTensor", "fp32"),
    ("HalfTensor", "fp16"),
    ("IntTensor", "i32"),
    ("LongTensor", "i64"),
    ("ShortTensor", "i16"),
];

/// A tensor made by `torch.NAME(...)`; `None` for other functions.
pub(crate) fn torch_constructor(name: &str, args: &Args<'_>) -> Option<Value> {
    let positional = args.positional();
    if let Some(Value::Array(array)) = positional.first() {
        return of_array(name, array, args).map(Value::Tensor);
    }
    let shaped = |dtype: Option<Arc<str>>, shape: &[&Value]| {
        let named = args.keyword("size").and_then(Value::elements);
        let shape = named.or_else(|| sizes(shape));
        let made = Tensor { dtype, shape, ..Tensor::default() };
        Value::Tensor(match args.has_memory_format() {
            true => args.formatted(&made),
            false => made,
        })
    };
    Some(match name {
        "empty" | "zeros" | "ones" | "rand" | "randn" => {
            shaped(args.dtype(Some("fp32")), &positional)
        }
        "full" => {
            let fill = args.get(1, "fill_value").and_then(number_dtype);
            shaped(args.dtype(fill), &positional[..positional.len().min(1)])
        }
        "arange" => {
            let bounds = args.bounds();
            let kinds = bounds.iter().map(|value| number_dtype(value));
            let kind = kinds.collect::<Option<Vec<_>>>().and_then(|kinds| {
                let is_float = kinds.contains(&"fp32");
                Some(if is_float { "fp32" } else { "i64" }).filter(|_| !kinds.is_empty())
            });
            let shape = counted(&bounds).map(|count| vec![count]);
            Value::Tensor(Tensor { dtype: args.dtype(kind), shape, ..Tensor::default() })
        }
        "randint" => {
            let is_size = |value: &&&Value| matches!(value, Value::Tuple(_) | Value::List(_));
            let shape = positional.iter().rev().find(is_size);
            shaped(args.dtype(Some("i64")), shape.map_or(&[], std::slice::from_ref))
        }
        "randperm" => shaped(args.dtype(Some("i64")), &positional[..positional.len().min(1)]),
        // The same tensor, of the class itself.
        "Tensor" if let [tensor @ Value::Tensor(_)] = positional.as_slice() => Value::clone(tensor),
        "Tensor" if !matches!(positional.as_slice(), [Value::Tuple(_) | Value::List(_)]) => {
            shaped(Some("fp32".into()), &positional)
        }
        "as_tensor" | "asarray" if let Some(data @ Value::Tensor(tensor)) = args.get(0, "data") => {
            let dtype = args.dtype(tensor.dtype.as_deref());
            match dtype == tensor.dtype && dtype.is_some() {
                true => data.clone(),
                false => Value::Tensor(views::with_dtype(tensor, dtype)),
            }
        }
        "scalar_tensor" => Value::Tensor(
            Tensor {
                dtype: args.dtype(Some("fp32")),
                shape: Some(Vec::new()),
                ..Tensor::default()
            }
            .copied(),
        ),
        _ if let Some((_, dtype)) = OF_TYPE.iter().find(|(class, _)| *class == name) => {
            let listed = match positional.as_slice() {
                [data @ (Value::Tuple(_) | Value::List(_))] => Some(nested_shape(data)),
                _ => None,
            };
            match listed {
                Some(shape) => {
                    let dtype = Some((*dtype).into());
                    Value::Tensor(Tensor { dtype, shape, ..Tensor::default() })
                }
                None => shaped(Some((*dtype).into()), &positional),
            }
        }
        "Tensor" | "tensor" | "as_tensor" => {
            let data = args.get(0, "data")?;
            Value::Tensor(Tensor {
                dtype: args.dtype(if name == "Tensor" {
                    Some("fp32")
                } else {
                    element_dtype(data)
                }),
                shape: nested_shape(data),
                ..Tensor::default()
            })
        }
        "empty_like" | "zeros_like" | "ones_like" | "rand_like" | "randn_like" | "full_like"
        | "randint_like" | "clone" | "abs" | "relu" => match args.get(0, "input")? {
            Value::Tensor(tensor) => {
                let own = tensor.dtype.as_deref().filter(|own| name != "abs" || !is_complex(own));
                Value::Tensor(Tensor { dtype: args.dtype(own), ..tensor.copied() })
            }
            _ => Value::Tensor(Tensor { dtype: args.dtype(None), ..Tensor::default() }),
        },
        "cat" | "concat" | "concatenate" | "stack" => match fits::not_joined(name, args) {
            Some(misfit) => misfit.into(),
            None => {
                joined(if name == "stack" { name } else { "cat" }, args).unwrap_or(Value::Unknown)
            }
        },
        "outer" => match (args.get(0, "input")?, args.get(1, "vec2")?) {
            (Value::Tensor(rows), Value::Tensor(columns)) => {
                let only = |tensor: &Tensor| match tensor.shape.as_deref() {
                    Some([extent]) => Some(extent.clone()),
                    _ => None,
                };
                let dtype = promoted(rows.dtype.as_ref(), columns.dtype.as_ref());
                let shape = only(rows).zip(only(columns)).map(|(a, b)| vec![a, b]);
                Value::Tensor(Tensor { dtype, shape, ..Tensor::default() })
            }
            _ => return None,
        },
        "eye" => {
            let rows = Value::clone(positional.first()?);
            let columns = positional.get(1).map_or_else(|| rows.clone(), |n| Value::clone(n));
            let shape = Some(vec![rows, columns]);
            Value::Tensor(Tensor { dtype: args.dtype(Some("fp32")), shape, ..Tensor::default() })
        }
        "linspace" | "logspace" => {
            let count = args.get(2, "steps").map(|count| vec![count.clone()]);
            let dtype = args.dtype(Some("fp32"));
            Value::Tensor(Tensor { dtype, shape: count, ..Tensor::default() })
        }
        "empty_strided" => Value::Tensor(Tensor {
            dtype: args.dtype(Some("fp32")),
            shape: args.get(0, "size").and_then(Value::elements),
            strides: args.get(1, "stride").and_then(Value::elements),
            ..Tensor::default()
        }),
        _ => return None,
    })
}

/// What constructors make of an array of NumPy.
fn of_array(name: &str, array: &Tensor, args: &Args<'_>) -> Option<Tensor> {
    let of = arrays::as_tensor(array);
    let dtype = match name {
        "from_numpy" => of.dtype.clone(),
        "tensor" | "as_tensor" | "asarray" => args.dtype(of.dtype.as_deref()),
        "Tensor" => Some("fp32".into()),
        _ => {
            let (_, dtype) = OF_TYPE.iter().find(|(class, _)| *class == name)?;
            Some((*dtype).into())
        }
    };
    Some(if dtype == of.dtype { of } else { views::with_dtype(&of, dtype) })
}

/// What `torch.nn.functional.pad` makes: two more numbers of elements for each axis, the last one
/// first.
pub(crate) fn padded(args: &Args<'_>) -> Option<Value> {
    let Value::Tensor(tensor) = args.get(0, "input")? else { return None };
    let mut shape = tensor.shape.clone()?;
    let pads = args.get(1, "pad")?.elements()?;
    for (size, pads) in shape.iter_mut().rev().zip(pads.chunks(2)) {
        *size = pads.iter().fold(size.clone(), |size, pad| binary(BinaryOp::Add, &size, pad));
    }
    let dtype = tensor.dtype.clone();
    Some(Value::Tensor(Tensor { dtype, shape: Some(shape), ..Tensor::default() }.copied()))
}

/// How many numbers a range has: of its end, of start and end, or of start, end and step.
pub(crate) fn counted(bounds: &[&Value]) -> Option<Value> {
    let (zero, one) = (Value::Int(Some(0)), Value::Int(Some(1)));
    let (start, end, step) = match bounds {
        [end @ Value::Int(_)] => return Some(Value::clone(end)),
        [end] => (&zero, *end, &one),
        [start, end] => (*start, *end, &one),
        [start, end, step] => (*start, *end, *step),
        _ => return None,
    };
    let count = match [start, end, step].map(as_number) {
        [Some(Number::Int(start)), Some(Number::Int(end)), Some(Number::Int(step))] => {
            let (start, end, step) = (start?, end?, step?);
            let distance = end.checked_sub(start)?.checked_mul(step.signum())?.max(0);
            distance.checked_add(step.abs() - 1)?.checked_div(step.abs())?
        }
        [Some(start), Some(end), Some(step)] => {
            let count = ((end.float()? - start.float()?) / step.float()?).ceil();
            // A float beyond this is not the integer that it was computed from.
            (0.0..1e15).contains(&count).then_some(count as i128)?
        }
        _ => return None,
    };
    Some(Value::Int(Some(count)))
}

/// Tensors put one behind the other (`cat`) or side by side along a dimension of its own (`stack`).
pub(crate) fn joined(name: &str, args: &Args<'_>) -> Option<Value> {
    let items = args.get(0, "tensors")?.elements()?;
    let tensors = items.iter().map(|item| match item {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    });
    let tensors = tensors.collect::<Option<Vec<_>>>()?;
    let first = *tensors.first()?;
    let axis = match args.get(1, "dim").or_else(|| args.keyword("axis")) {
        None => 0,
        Some(Value::Int(Some(axis))) => *axis,
        Some(_) => return None,
    };
    let mut shape = first.shape.clone()?;
    let axis = position(shape.len() + usize::from(name == "stack"), axis)?;
    if name == "stack" {
        let same = tensors.iter().all(|tensor| tensor.shape == first.shape);
        shape.insert(axis, Value::Int(Some(tensors.len() as i128)));
        return same.then(|| Value::Tensor(fresh(&tensors, shape)));
    }
    let mut sum = Value::Int(Some(0));
    for tensor in &tensors {
        let mut other = tensor.shape.clone()?;
        sum = binary(BinaryOp::Add, &sum, other.get(axis)?);
        other[axis] = shape[axis].clone();
        if other != shape {
            return None;
        }
    }
    shape[axis] = sum;
    Some(Value::Tensor(fresh(&tensors, shape)))
}

/// A tensor of new memory that holds what tensors of one dtype hold.
fn fresh(tensors: &[&Tensor], shape: Vec<Value>) -> Tensor {
    let first = tensors.first().and_then(|tensor| tensor.dtype.clone());
    let dtype =
        tensors.iter().fold(first, |dtype, tensor| promoted(dtype.as_ref(), tensor.dtype.as_ref()));
    Tensor { dtype, shape: Some(shape), ..Tensor::default() }.copied()
}

/// The shape of a nested list of numbers; `None` where something in it is not known.
fn nested_shape(data: &Value) -> Option<Vec<Value>> {
    let Some(items) = data.elements() else {
        return number_dtype(data).map(|_| Vec::new());
    };
    let count = Value::Int(Some(items.len() as i128));
    let inner = items.first().map_or(Some(Vec::new()), nested_shape)?;
    Some([count].into_iter().chain(inner).collect())
}

/// The dtype of a tensor that is made of nested lists: that of the widest kind of number in them.
fn element_dtype(data: &Value) -> Option<&'static str> {
    match data {
        Value::Tuple(items) | Value::List(items) => {
            let kinds = items.iter().map(element_dtype).collect::<Option<Vec<_>>>()?;
            let widest = ["fp32", "i64", "i1"].into_iter().find(|kind| kinds.contains(kind));
            Some(widest.unwrap_or("fp32"))
        }
        number => number_dtype(number),
    }
}

/// `value.attr`.
pub(crate) fn attribute(value: &Value, attr: &str) -> Value {
    match (value, attr) {
        (Value::Array(array), _) => arrays::attribute(array, attr),
        (Value::Constexpr(value), "value") => value.plain().clone(),
        (Value::Constexpr(value), _) => attribute(value, attr),
        (Value::Record { names, items }, _) => {
            let at = names.fields.iter().position(|field| &**field == attr);
            at.and_then(|at| items.get(at)).cloned().unwrap_or(Value::Unknown)
        }
        (Value::Tensor(Tensor { shape: Some(shape), .. }), "shape") => Value::Tuple(shape.clone()),
        (Value::Tensor(Tensor { shape: Some(shape), .. }), "ndim") => {
            Value::Int(Some(shape.len() as i128))
        }
        (Value::Tensor(Tensor { dtype: Some(dtype), .. }), "dtype") => {
            Value::TorchDType(dtype.clone())
        }
        (Value::Tensor(_), "layout") => {
            Value::Named(Resolution::External([TORCH, "strided"].map(Name::from).into()))
        }
        (Value::Tensor(_), "device" | "is_cuda") | (Value::Str(_), "type" | "index") => {
            devices::attribute(value, attr)
        }
        (Value::Tensor(tensor), "T") => Value::Tensor(transpose(tensor)),
        (Value::Tensor(tensor), "mT") => Value::Tensor(swap_last(tensor)),
        (Value::Tensor(tensor), "real" | "imag")
            if let Some(part) = subscripts::part_of_numbers(tensor, attr == "imag") =>
        {
            Value::Tensor(part)
        }
        (Value::Tensor(tensor), "H" | "mH") if !tensor.dtype.as_deref().is_none_or(is_complex) => {
            Value::Tensor(swap_last(tensor))
        }
        (Value::Tensor(tensor), "itemsize") => {
            Value::Int(tensor.dtype.as_deref().and_then(element_size))
        }
        (Value::Tensor(tensor), "nbytes") => {
            let size = tensor.dtype.as_deref().and_then(element_size);
            let count = tensor.shape.as_deref().and_then(elements);
            Value::Int(size.zip(count).and_then(|(size, count)| size.checked_mul(count)))
        }
        (Value::Tensor(tensor), _) if let Some(kind) = states::kind(tensor, attr) => kind,
        (Value::Tensor(tensor), "data") => {
            let mut tensor = tensor.clone();
            tensor.storage.iter_mut().for_each(|storage| storage.is_detached = true);
            Value::Tensor(tensor)
        }
        (Value::Tensor(tensor), "grad") => Value::Tensor(tensor.copied()),
        (Value::Tensor(_) | Value::Unknown, "shape") => Value::Ints,
        (Value::Tensor(_) | Value::Unknown, "ndim") => Value::Int(None),
        (Value::Unknown, "device") => Value::Device,
        // `driver.active.get_current_target().backend`
        (Value::Unknown, "backend") => Value::Str("cuda".into()),
        (Value::Unknown, "multi_processor_count" | "warp_size") => Value::Int(None),
        (Value::Config(config), "kwargs") => Value::Dict(
            config
                .kwargs
                .iter()
                .map(|(name, value)| (Value::Str(name.clone()), Value::from_const(value)))
                .collect(),
        ),
        (Value::Config(config), "num_warps") => {
            Value::Int(config.spelled_out().num_warps.map(i128::from))
        }
        (Value::Config(config), "num_stages") => {
            Value::Int(config.spelled_out().num_stages.map(i128::from))
        }
        (Value::Descriptor(descriptor), "block_shape") => Value::List(descriptor.block.clone()),
        (Value::Descriptor(descriptor), "shape") => {
            attribute(&Value::Tensor(descriptor.tensor.clone()), "shape")
        }
        (Value::Descriptor(descriptor), "strides") => {
            strides(&descriptor.tensor).map_or(Value::Ints, Value::List)
        }
        (Value::DType(dtype) | Value::TorchDType(dtype), "itemsize") => {
            Value::Int(element_size(dtype))
        }
        (Value::TorchDType(dtype), "is_floating_point") => Value::Bool(Some(is_float(dtype))),
        (Value::TorchDType(dtype), "is_complex") => Value::Bool(Some(is_complex(dtype))),
        (Value::TorchDType(dtype), "is_signed") => {
            Value::Bool(Some(!dtype.starts_with('u') && &**dtype != "i1"))
        }
        (Value::Tensor(tensor), _) => misuse::attribute(tensor, attr).unwrap_or(Value::Unknown),
        _ => Value::Unknown,
    }
}

/// `value.name(args)`; `None` when the method is not one of a tensor's.
pub(crate) fn method(value: &Value, name: &str, args: &Args<'_>) -> Option<Value> {
    let given = method_of(value, name, args)?;
    Some(match value {
        Value::Tensor(tensor) => devices::given(tensor, (name, args), given),
        _ => given,
    })
}

fn method_of(value: &Value, name: &str, args: &Args<'_>) -> Option<Value> {
    let unknown = Tensor::default();
    let tensor = match value {
        Value::Tensor(tensor) => tensor,
        Value::Unknown => &unknown,
        _ => return None,
    };
    if let Some(misuse) = fits::refusal(name, tensor, args) {
        return Some(Value::Raises(misuse));
    }
    let cast = |dtype: &str| {
        Value::Tensor(match tensor.dtype.as_deref() == Some(dtype) {
            true => tensor.clone(),
            false => views::with_dtype(tensor, Some(Arc::from(dtype))),
        })
    };
    let no_dimension = |at, rank| Value::Raises(Misuse::NoDimension { at, rank });
    let dimension = |values: Option<Vec<Value>>| match (args.get(0, "dim"), values) {
        (None, Some(values)) => Value::Tuple(values),
        (None, None) => Value::Ints,
        (Some(Value::Int(Some(at))), Some(values)) => {
            let rank = values.len();
            position(rank, *at).map_or(no_dimension(*at, rank), |at| values[at].clone())
        }
        _ => Value::Int(None),
    };
    Some(match name {
        "stride" => dimension(strides(tensor)),
        // What has such a method may be no tensor.
        "size" if matches!(value, Value::Unknown) && args.0.is_empty() => {
            Value::OneOf(vec![Value::Ints, Value::Int(None)])
        }
        "size" => dimension(tensor.shape.clone()),
        "numel" | "nelement" => Value::Int(tensor.shape.as_deref().and_then(elements)),
        "dim" | "ndimension" => Value::Int(tensor.shape.as_ref().map(|shape| shape.len() as i128)),
        "element_size" => Value::Int(tensor.dtype.as_deref().and_then(element_size)),
        // Some number of the tensor's type.
        "item" if let Some(number) = data::item(tensor) => number,
        "item" => match tensor.dtype.as_deref()? {
            "i1" => Value::Bool(None),
            dtype if is_float(dtype) => Value::Float(None),
            _ => Value::Int(numbers::number(tensor)),
        },
        "tolist" => return data::nested(tensor),
        "unbind" => Value::Tuple(unbound(tensor, args)?),
        "data_ptr" => address(tensor).unwrap_or(Value::Int(None)),
        "get_device" => Value::Int(None),
        // Bytes, from the first one of the memory on.
        "storage" | "untyped_storage" => {
            let storage = tensor.storage.as_deref()?;
            let whole = Storage { before: 0, elements: 0, ..storage.clone() };
            Value::Tensor(Tensor {
                dtype: Some("u8".into()),
                storage: Some(Box::new(whole)),
                on_gpu: tensor.on_gpu,
                ..Tensor::default()
            })
        }
        "storage_offset" => Value::Int(tensor.storage.as_ref().map(|storage| storage.before)),
        "is_contiguous" if args.0.is_empty() => Value::Bool(views::is_contiguous(tensor)),
        "is_contiguous" => Value::Bool(None),
        _ if let Some((_, dtype)) = CASTS.iter().find(|(cast, _)| *cast == name) => cast(dtype),
        "to" => converted(value, tensor, args),
        "type" => match args.get(0, "dtype").map(given_dtype) {
            Some(Some(dtype)) => cast(&dtype),
            _ => Value::Tensor(Tensor { dtype: None, ..tensor.copied() }),
        },
        "contiguous" if args.has_memory_format() => Value::Tensor(args.formatted(tensor)),
        "contiguous" if views::is_contiguous(tensor) == Some(true) => value.clone(),
        "contiguous" => Value::Tensor(Tensor { strides: None, ..tensor.clone() }.copied()),
        "abs" if tensor.dtype.as_deref().is_some_and(is_complex) => {
            Value::Tensor(Tensor { dtype: None, ..tensor.copied() })
        }
        "clone" | "abs" | "neg" | "pin_memory" => Value::Tensor(tensor.copied()),
        "cuda" | "cpu" | "detach" => Value::Tensor(tensor.clone().moved()),
        _ if rebound::keeps_shape(name) => {
            let mut written = value.clone();
            if let Value::Tensor(tensor) = &mut written {
                tensor.note_write();
            }
            written
        }
        "t" => Value::Tensor(transpose(tensor)),
        "adjoint" if !tensor.dtype.as_deref().is_none_or(is_complex) => {
            Value::Tensor(swap_last(tensor))
        }
        "transpose" | "swapaxes" | "swapdims" | "permute" | "expand" | "expand_as" | "squeeze" => {
            let view = viewed(tensor, name, args);
            view.map_or_else(|| Value::tensor(tensor.dtype.as_deref()), Value::Tensor)
        }
        "view"
            if let [Value::DType(dtype) | Value::TorchDType(dtype)] =
                args.positional().as_slice() =>
        {
            let view = views::reinterpreted(tensor, dtype);
            view.map_or_else(|| Value::tensor(Some(dtype)), Value::Tensor)
        }
        // What it is looked at as is a type, or may be one.
        // As a type that is not known, or that is none of Triton's.
        "view" if let [Value::OneOf(_) | Value::Named(_)] = args.positional().as_slice() => {
            Value::tensor(None)
        }
        "view_as" | "reshape_as" => {
            let Some(Value::Tensor(other)) = args.get(0, "other") else { return None };
            let sizes = other.shape.clone().map_or(Value::Ints, Value::Tuple);
            return method_of(value, name.trim_end_matches("_as"), &Args(&[(None, sizes)]));
        }
        "type_as" => match args.get(0, "other")? {
            Value::Tensor(other) => Value::Tensor(views::with_dtype(tensor, other.dtype.clone())),
            _ => return None,
        },
        "flatten" | "unflatten" if let Some(sizes) = regrouped(tensor, name, args) => {
            return method_of(value, "reshape", &Args(&[(None, Value::Tuple(sizes))]));
        }
        "narrow" | "select" if let Some(part) = part_along(tensor, name, args) => {
            Value::Tensor(part)
        }
        "flatten" | "ravel" if args.0.is_empty() => {
            return method_of(value, "reshape", &Args(&[(None, Value::Int(Some(-1)))]));
        }
        "unsqueeze" => Value::Tensor(Tensor {
            dtype: tensor.dtype.clone(),
            storage: tensor.storage.clone(),
            ..unsqueezed(tensor, args.get(0, "dim")).unwrap_or_default()
        }),
        "repeat" => {
            let shape = repeated(tensor, &args.positional());
            let dtype = tensor.dtype.clone();
            Value::Tensor(Tensor { dtype, shape, ..Tensor::default() }.copied())
        }
        "view" | "reshape" => {
            let shape = viewed_sizes(tensor, &args.positional());
            if let Some(view) = views::of_one_element(tensor, shape.as_deref()) {
                return Some(Value::Tensor(view));
            }
            looked_at(tensor, name, shape)
        }
        "new_empty" | "new_zeros" | "new_ones" | "new_full" => {
            let mut shape = args.positional();
            // The size is followed by the value to fill it with.
            shape.truncate(if name == "new_full" { 1 } else { usize::MAX });
            Value::Tensor(Tensor {
                dtype: args.dtype(tensor.dtype.as_deref()),
                shape: sizes(&shape),
                ..Tensor::default()
            })
        }
        "is_conj" | "is_neg" => {
            let is_plain = tensor.dtype.as_deref().is_some_and(|dtype| !is_complex(dtype));
            Value::Bool(is_plain.then_some(false))
        }
        "is_signed" => attribute(&attribute(value, "dtype"), name),
        "is_floating_point" => Value::Bool(tensor.dtype.as_deref().map(is_float)),
        "is_complex" => Value::Bool(tensor.dtype.as_deref().map(is_complex)),
        "chunk" | "split" | "split_with_sizes" => {
            made_of(name, tensor, args).unwrap_or(Value::Unknown)
        }
        "new_tensor" => match torch_constructor("tensor", args)? {
            Value::Tensor(made) => {
                Value::Tensor(Tensor { dtype: args.dtype(tensor.dtype.as_deref()), ..made })
            }
            made => made,
        },
        "flatten" | "narrow" => Value::tensor(tensor.dtype.as_deref()),
        "sum" | "mean" | "prod" => made_of(name, tensor, args)?,
        _ if let (Value::Tensor(_), Some(made)) = (value, made_of(name, tensor, args)) => made,
        _ => return misuse::call(tensor, name).filter(|_| matches!(value, Value::Tensor(_))),
    })
}

/// Methods that convert to a type.
const CASTS: &[(&str, &str)] = &[
    ("bfloat16", "bf16"),
    ("bool", "i1"),
    ("byte", "u8"),
    ("cdouble", "complex128"),
    ("cfloat", "complex64"),
    ("char", "i8"),
    ("double", "fp64"),
    ("float", "fp32"),
    ("half", "fp16"),
    ("int", "i32"),
    ("long", "i64"),
    ("short", "i16"),
];

/// What `view` and `reshape` make: other sizes of the same memory, or where its elements are not in an order
/// that allows that, a copy.
fn looked_at(tensor: &Tensor, name: &str, shape: Option<Vec<Value>>) -> Value {
    let dtype = tensor.dtype.clone();
    let view =
        |strides| Tensor { dtype: dtype.clone(), shape: shape.clone(), strides, ..tensor.clone() };
    if tensor.strides.is_none() || views::is_contiguous(tensor) == Some(true) {
        return Value::Tensor(view(None));
    }
    match (views::viewed_strides(tensor, shape.as_deref()), name) {
        (Some(Some(strides)), _) => Value::Tensor(view(Some(strides))),
        (Some(None), "reshape") => {
            let copy =
                Tensor { dtype, shape: shape.clone(), on_gpu: tensor.on_gpu, ..Tensor::default() };
            Value::Tensor(copy.copied())
        }
        _ => {
            let strides = unknown_strides(shape.as_deref());
            Value::Tensor(Tensor { strides, storage: None, ..view(None) })
        }
    }
}

/// The parts of a tensor along a dimension that it has not.
fn unbound(tensor: &Tensor, args: &Args<'_>) -> Option<Vec<Value>> {
    let axis = match args.get(0, "dim") {
        None => 0,
        Some(Value::Int(axis)) => (*axis)?,
        Some(_) => return None,
    };
    let shape = tensor.shape.as_ref()?;
    let axis = position(shape.len(), axis)?;
    if axis == 0 {
        return views::rows(tensor);
    }
    let Value::Int(Some(count)) = shape[axis] else { return None };
    let part = |at: i128| {
        let whole = std::iter::repeat_with(|| Part::Slice(Bound::Open, Bound::Open));
        let parts: Vec<Part> = whole.take(axis).chain([Part::At(Some(at))]).collect();
        subscripts::parts(tensor, &parts).map(Value::Tensor)
    };
    (count <= views::MAX_ROWS).then(|| (0..count).map(part).collect())?
}

/// What a method shows of the same memory in other axes, where they are known.
fn viewed(tensor: &Tensor, name: &str, args: &Args<'_>) -> Option<Tensor> {
    let positional = args.positional();
    let number = |value: &Value| match value {
        Value::Int(Some(number)) => Some(*number),
        _ => None,
    };
    match name {
        "transpose" | "swapaxes" | "swapdims" => {
            views::swapped(tensor, number(args.get(0, "dim0")?)?, number(args.get(1, "dim1")?)?)
        }
        "permute" => {
            let axes = args.keyword("dims").and_then(Value::elements).or(sizes(&positional))?;
            let rank = axes.len();
            let axes = axes.iter().map(|axis| position(rank, number(axis)?));
            views::permuted(tensor, &axes.collect::<Option<Vec<_>>>()?)
        }
        "expand" => views::expanded(tensor, &sizes(&positional)?),
        "expand_as" => match args.get(0, "other")? {
            Value::Tensor(other) => views::expanded(tensor, other.shape.as_deref()?),
            _ => None,
        },
        "squeeze" if args.0.is_empty() => {
            let rank = tensor.shape.as_ref()?.len() as i128;
            (0..rank).rev().try_fold(tensor.clone(), |tensor, axis| views::squeezed(&tensor, axis))
        }
        "squeeze" if let Some(axes) = args.get(0, "dim")?.elements() => {
            let rank = tensor.shape.as_ref()?.len();
            let axes = axes.iter().map(|axis| position(rank, number(axis)?));
            let mut axes = axes.collect::<Option<Vec<_>>>()?;
            axes.sort_unstable();
            axes.iter()
                .rev()
                .try_fold(tensor.clone(), |tensor, axis| views::squeezed(&tensor, *axis as i128))
        }
        "squeeze" => views::squeezed(tensor, number(args.get(0, "dim")?)?),
        _ => None,
    }
}

/// The sizes of a tensor of which `flatten` makes several dimensions one, or `unflatten` one several.
fn regrouped(tensor: &Tensor, name: &str, args: &Args<'_>) -> Option<Vec<Value>> {
    let shape = tensor.shape.as_ref()?;
    let axis = |at: usize, name: &str, default: i128| {
        let axis = match args.get(at, name) {
            None => default,
            Some(Value::Int(axis)) => (*axis)?,
            Some(_) => return None,
        };
        position(shape.len(), axis)
    };
    if name == "unflatten" {
        let at = axis(0, "dim", 0)?;
        let sizes = args.get(1, "sizes")?.elements()?;
        return Some([&shape[..at], &sizes, &shape[at + 1..]].concat());
    }
    let (first, last) = (axis(0, "start_dim", 0)?, axis(1, "end_dim", -1)?);
    let inner = Value::Int(Some(elements(shape.get(first..=last)?)?));
    Some([&shape[..first], &[inner], &shape[last + 1..]].concat())
}

/// What `narrow` and `select` show of a tensor along one dimension.
fn part_along(tensor: &Tensor, name: &str, args: &Args<'_>) -> Option<Tensor> {
    let number = |at: usize, name: &str| match args.get(at, name)? {
        Value::Int(number) => *number,
        _ => None,
    };
    let axis = position(tensor.shape.as_ref()?.len(), number(0, "dim")?)?;
    let whole = std::iter::repeat_with(|| Part::Slice(Bound::Open, Bound::Open));
    let part = match name {
        "narrow" => {
            let start = number(1, "start").filter(|start| *start >= 0)?;
            Part::Slice(Bound::At(start), Bound::At(start + number(2, "length")?))
        }
        _ => Part::At(Some(number(1, "index")?)),
    };
    subscripts::parts(tensor, &whole.take(axis).chain([part]).collect::<Vec<_>>())
}

/// `tensor.to(...)` with a dtype, a device, both, or another tensor whose dtype it takes.
fn converted(value: &Value, tensor: &Tensor, args: &Args<'_>) -> Value {
    let copies = args.keyword("copy").is_some_and(|copies| truth(copies) != Some(false));
    let changed = |dtype: Option<Arc<str>>| match dtype.is_some() && dtype == tensor.dtype {
        true if copies => Value::Tensor(tensor.clone().copied()),
        true => value.clone(),
        false => Value::Tensor(views::with_dtype(tensor, dtype)),
    };
    let laid_out = |value: Value| match value {
        Value::Tensor(tensor) if args.has_memory_format() => Value::Tensor(args.formatted(&tensor)),
        value => value,
    };
    let given = args.positional().into_iter().chain(args.keyword("dtype"));
    for given in given.chain(args.keyword("other")) {
        match given {
            Value::Tensor(other) => return laid_out(changed(other.dtype.clone())),
            // A device, or whether to wait and to copy.
            Value::Str(_) | Value::Device | Value::None | Value::Bool(_) | Value::Int(_) => {}
            Value::Named(Resolution::External(_)) if given_dtype(given).is_none() => {}
            given => return laid_out(changed(given_dtype(given))),
        }
    }
    laid_out(value.clone())
}

/// Shape and strides with a dimension of one element more.
fn unsqueezed(tensor: &Tensor, dim: Option<&Value>) -> Option<Tensor> {
    let Some(Value::Int(Some(dim))) = dim else { return None };
    let (mut shape, mut strides) = (tensor.shape.clone()?, strides(tensor)?);
    let at = position(shape.len() + 1, *dim)?;
    let step = match (shape.get(at), strides.get(at)) {
        (Some(size), Some(stride)) => binary(BinaryOp::Mul, size, stride),
        _ => Value::Int(Some(1)),
    };
    shape.insert(at, Value::Int(Some(1)));
    strides.insert(at, step);
    let is_plain = tensor.strides.is_none();
    Some(Tensor {
        shape: Some(shape),
        strides: (!is_plain).then_some(strides),
        ..Tensor::default()
    })
}

/// The sizes of a tensor that is repeated along each dimension.
fn repeated(tensor: &Tensor, args: &[&Value]) -> Option<Vec<Value>> {
    let (shape, times) = (tensor.shape.as_ref()?, sizes(args)?);
    let more = times.len().checked_sub(shape.len())?;
    let one = Value::Int(Some(1));
    let extents = std::iter::repeat_n(&one, more).chain(shape);
    Some(extents.zip(&times).map(|(size, times)| binary(BinaryOp::Mul, size, times)).collect())
}

/// A descriptor of `base` with sizes and strides of its own where they are given.
pub(crate) fn descriptor(
    base: Option<&Value>,
    shape: Option<&Value>,
    strides: Option<&Value>,
    block: Option<&Value>,
) -> Value {
    let Some(block) = block.and_then(Value::elements) else { return Value::Unknown };
    let of_base = match base {
        Some(Value::Tensor(tensor)) => tensor.clone(),
        _ => Tensor::default(),
    };
    let given = |value: Option<&Value>, own: Option<Vec<Value>>| match value {
        Some(value) => value.elements(),
        None => own,
    };
    let own = self::strides(&of_base);
    let tensor = Tensor {
        shape: given(shape, of_base.shape.clone()),
        strides: given(strides, own),
        ..of_base
    };
    Value::Descriptor(Box::new(Descriptor { tensor, block }))
}

/// The sizes that `view` is asked for; one that is `-1` is what the others leave.
fn viewed_sizes(tensor: &Tensor, args: &[&Value]) -> Option<Vec<Value>> {
    let mut wanted = sizes(args)?;
    let rest = wanted.iter().position(|size| matches!(size, Value::Int(Some(-1))));
    let Some(rest) = rest else { return Some(wanted) };
    let all = elements(tensor.shape.as_ref()?)?;
    wanted[rest] = Value::Int(Some(1));
    let others = elements(&wanted).filter(|others| *others > 0)?;
    wanted[rest] = Value::Int(Some(all / others));
    Some(wanted)
}

/// What going over a tensor gives, where it is short.
pub(crate) fn rows(tensor: &Tensor) -> Option<Vec<Value>> {
    let Value::Int(Some(length)) = tensor.shape.as_ref()?.first()? else { return None };
    let longest = if data::of(tensor).is_some() { MAX_KNOWN_ROWS } else { MAX_ROWS };
    let row = |at| subscript(&Value::Tensor(tensor.clone()), &Value::Int(Some(at)));
    (*length <= longest).then(|| (0..*length).map(row).collect())
}

/// Where the first element of a tensor is.
fn address(tensor: &Tensor) -> Option<Value> {
    let storage = tensor.storage.as_deref()?;
    let offset = match storage.before {
        0 => 0,
        before => before.checked_mul(element_size(tensor.dtype.as_deref()?)?)?,
    };
    Some(Value::Address { id: storage.id?, offset })
}
