//! Where tensors are: on the GPU, as far as host code says.

use crate::host::code::arguments::Args;
use crate::host::value::dtype::named_dtype;
use crate::host::value::{Tensor, Value};

/// The GPU, as PyTorch writes it. Which of several it is matters to nothing that is said here.
const GPU: &str = "cuda:0";

/// The device that `torch.device(...)` is.
pub(crate) fn named(device: &Value) -> Value {
    match device {
        Value::Str(name) if is_gpu(name) => Value::Str(GPU.into()),
        device @ Value::Str(_) => device.clone(),
        _ => Value::Device,
    }
}

fn is_gpu(name: &str) -> bool {
    matches!(name, "cuda" | GPU)
}

/// What `torch.cuda.get_device_name()` gives on the GPU of a compute capability that most have; where there
/// are several as common, it is not known. Names as NVIDIA's driver writes them.
pub(crate) fn name(capability: u32) -> Value {
    match capability {
        75 => Value::Str("Tesla T4".into()),
        80 => Value::Str("NVIDIA A100-SXM4-80GB".into()),
        90 => Value::Str("NVIDIA H100 80GB HBM3".into()),
        100 => Value::Str("NVIDIA B200".into()),
        _ => Value::Unknown,
    }
}

/// What an attribute says of the device of a tensor, or of a device.
pub(crate) fn attribute(value: &Value, attr: &str) -> Value {
    match (value, attr) {
        (Value::Tensor(Tensor { on_gpu: true, .. }), "device") => Value::Str(GPU.into()),
        (Value::Tensor(Tensor { on_gpu, .. }), "is_cuda") => Value::Bool(on_gpu.then_some(true)),
        (Value::Tensor(_), "device") => Value::Device,
        (Value::Str(name), "type") if is_gpu(name) => Value::Str("cuda".into()),
        _ => Value::Unknown,
    }
}

/// Functions that take the tensors of a list for numbers, and put these where they are told.
const OF_NUMBERS: &[&str] = &["as_tensor", "asarray", "tensor"];

/// What `torch.NAME(args)` makes: on the device that it is told, else on that of the tensors that it is given.
pub(crate) fn made(name: &str, args: &Args<'_>, made: Value) -> Value {
    let of_tensors = args.0.iter().any(|(_, value)| match value {
        Value::Tensor(tensor) => tensor.on_gpu,
        Value::List(items) | Value::Tuple(items) => {
            let is_on_gpu = |item: &Value| matches!(item, Value::Tensor(tensor) if tensor.on_gpu);
            !OF_NUMBERS.contains(&name) && items.iter().any(is_on_gpu)
        }
        _ => false,
    });
    let on_gpu = args.keyword("device").map_or(Some(of_tensors), place).unwrap_or(of_tensors);
    put(made, on_gpu)
}

/// What a method of `tensor` gives: on the same device, unless it is told another.
pub(crate) fn given(tensor: &Tensor, (name, args): (&str, &Args<'_>), given: Value) -> Value {
    let told = args.keyword("device").or(args.keyword("other"));
    let on_gpu = match name {
        "cpu" => false,
        "cuda" => args.0.is_empty() || tensor.on_gpu,
        "to" => {
            let told = args.positional().into_iter().chain(told);
            told.filter_map(place).next_back().unwrap_or(tensor.on_gpu)
        }
        _ => told.and_then(place).unwrap_or(tensor.on_gpu),
    };
    put(given, on_gpu)
}

/// Whether a device is certainly the GPU; `None` for what names no device.
fn place(device: &Value) -> Option<bool> {
    match device.plain() {
        Value::Str(name) if named_dtype(name).is_none() => Some(is_gpu(name)),
        Value::Tensor(tensor) => Some(tensor.on_gpu),
        Value::Str(_) | Value::DType(_) | Value::TorchDType(_) | Value::Bool(_) | Value::None => {
            None
        }
        _ => Some(false),
    }
}

fn put(value: Value, on_gpu: bool) -> Value {
    match value {
        Value::Tensor(tensor) => Value::Tensor(Tensor { on_gpu, ..tensor }),
        Value::Tuple(items) => {
            Value::Tuple(items.into_iter().map(|item| put(item, on_gpu)).collect())
        }
        Value::Record { names, items } => {
            let items = items.into_iter().map(|item| put(item, on_gpu)).collect();
            Value::Record { names, items }
        }
        value => value,
    }
}
