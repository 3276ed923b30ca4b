//! What PyTorch tells of its state, and of values whether they are of some kind.

use std::sync::Arc;

use crate::builtins::TORCH;
use crate::hir::Name;
use crate::host::code::arguments::Args;
use crate::host::library::external_call;
use crate::host::torch::sizes::numbers;
use crate::host::torch::tensor::given_dtype;
use crate::host::torch::views;
use crate::host::value::dtype::{promoted, with_number};
use crate::host::value::{Tensor, Value};
use crate::host::{Frame, Host};

/// A state as PyTorch has it until somebody changes it.
#[derive(Debug, Clone, Copy)]
enum State {
    Flag(bool),
    Text(&'static str),
    Type(&'static str),
}

/// Functions of `torch` that tell of a state. Source: PyTorch's documentation, by tests/torch/sizes.py.
const STATES: &[(&str, State)] = &[
    ("are_deterministic_algorithms_enabled", State::Flag(false)),
    ("get_autocast_gpu_dtype", State::Type("fp16")),
    ("get_default_dtype", State::Type("fp32")),
    ("get_float32_matmul_precision", State::Text("highest")),
    ("is_anomaly_enabled", State::Flag(false)),
    ("is_deterministic_algorithms_warn_only_enabled", State::Flag(false)),
    ("is_warn_always_enabled", State::Flag(false)),
];

/// Whether a function sets the type that tensors have by default.
pub(crate) fn sets_default_type(path: &[Name]) -> bool {
    let [torch, name] = path else { return false };
    **torch == *TORCH && ["set_default_dtype", "set_default_tensor_type"].contains(&&**name)
}

/// Functions of `torch` whose floats are of the default type unless they are told another one.
const OF_DEFAULT_TYPE: &[&str] = &[
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_strided",
    "eye",
    "full",
    "linspace",
    "logspace",
    "ones",
    "rand",
    "randn",
    "scalar_tensor",
    "tensor",
    "zeros",
];

/// Methods in which a region of code begins or ends.
const OF_REGIONS: &[&str] = &["__enter__", "__exit__"];

impl Host<'_> {
    /// Notes that PyTorch is told a default type. Where a region ends that a generator or a class makes is not followed.
    pub(crate) fn set_default_type(&mut self, frame: &Frame, path: &[Name], args: &Args<'_>) {
        let is_tensor_type = path.last().is_some_and(|name| &**name == "set_default_tensor_type");
        let is_of_region = frame.scope.last().is_some_and(|name| OF_REGIONS.contains(&&**name))
            || frame.code.body().yields();
        let is_known = !is_tensor_type && !is_of_region && self.doubt.is_straight();
        self.default_type = match args.get(0, "d").filter(|_| is_known) {
            Some(Value::TorchDType(dtype)) if **dtype == *"fp32" => None,
            Some(dtype @ Value::TorchDType(_)) => Some(dtype.clone()),
            _ => Some(Value::Unknown),
        };
    }

    /// The arguments of a function of PyTorch that makes floats of the default type, with that type where it is not the
    /// usual one.
    pub(crate) fn typed_by_default(
        &self,
        path: &[Name],
        values: &[(Option<Name>, Value)],
    ) -> Option<Vec<(Option<Name>, Value)>> {
        let [torch, name] = path else { return None };
        if self.default_type.is_none()
            || **torch != *TORCH
            || !OF_DEFAULT_TYPE.contains(&&**name)
            || matches!(values.first(), Some((_, Value::Tensor(_) | Value::Array(_))))
        {
            return None;
        }
        match external_call(path, &Args(values), self.sources.capability()) {
            Value::Tensor(made) if made.dtype.as_deref() == Some("fp32") => {
                self.with_default_type(&Args(values))
            }
            _ => None,
        }
    }

    /// Arguments with the default type, where it is not the usual one and they tell none.
    pub(crate) fn with_default_type(&self, args: &Args<'_>) -> Option<Vec<(Option<Name>, Value)>> {
        let dtype = self.default_type.clone()?;
        let is_told = !matches!(args.keyword("dtype"), None | Some(Value::None));
        let told = (Some(Name::from("dtype")), dtype);
        (!is_told).then(|| args.without("dtype").into_iter().chain([told]).collect())
    }
}

/// Functions of modules of PyTorch that no tensor without a class of its own, and no program that is not
/// traced, makes true.
const NEVER: &[&[&str]] = &[
    &["jit", "is_scripting"],
    &["jit", "is_tracing"],
    &["overrides", "has_torch_function"],
    &["overrides", "has_torch_function_unary"],
    &["overrides", "has_torch_function_variadic"],
    &["utils", "_python_dispatch", "is_traceable_wrapper_subclass"],
];

/// Attributes of tensors that are false of those whose elements are laid out by strides.
const LAYOUTS: &[&str] = &["is_mkldnn", "is_nested", "is_quantized", "is_sparse", "is_sparse_csr"];

/// Attributes of tensors that are false of those on a GPU of the kind that code is compiled for.
const DEVICES: &[&str] = &[
    "is_cpu",
    "is_hpu",
    "is_ipu",
    "is_maia",
    "is_meta",
    "is_mps",
    "is_mtia",
    "is_npu",
    "is_vulkan",
    "is_xla",
    "is_xpu",
];

/// What `torch.PATH(...)` tells; `None` for other functions.
pub(crate) fn told(path: &[&str], args: &Args<'_>) -> Option<Value> {
    if NEVER.contains(&path) {
        let is_plain =
            |value: &&Value| matches!(value, Value::Raises(_) | Value::Unknown | Value::Object(_));
        let known = !args.positional().iter().any(is_plain);
        return Some(Value::Bool(known.then_some(false)));
    }
    let [name] = path else { return None };
    if let Some((_, state)) = STATES.iter().find(|(known, _)| known == name) {
        return Some(match state {
            State::Flag(flag) => Value::Bool(Some(*flag)),
            State::Text(text) => Value::Str((*text).into()),
            State::Type(dtype) => Value::TorchDType((*dtype).into()),
        });
    }
    match *name {
        "is_tensor" => Some(Value::Bool(match args.get(0, "obj")? {
            Value::Tensor(_) => Some(true),
            Value::Unknown | Value::Omitted | Value::Object(_) | Value::OneOf(_) => None,
            _ => Some(false),
        })),
        "promote_types" => {
            let [a, b] = [(0, "type1"), (1, "type2")]
                .map(|(at, name)| args.get(at, name).and_then(given_dtype));
            Some(dtype(promoted(a.as_ref(), b.as_ref())))
        }
        "result_type" => match (args.get(0, "tensor1")?, args.get(1, "tensor2")?) {
            (Value::Tensor(a), Value::Tensor(b)) => {
                Some(dtype(views::elementwise(a, Some(b)).dtype))
            }
            (Value::Tensor(tensor), number) | (number, Value::Tensor(tensor)) => {
                Some(dtype(with_number(tensor.dtype.as_ref(), number)))
            }
            _ => None,
        },
        "broadcast_shapes" => {
            let mut shapes = args.positional().into_iter().map(|shape| match shape {
                Value::Int(_) => Some(vec![shape.clone()]),
                shape => numbers(shape).and_then(|_| shape.elements()),
            });
            let first = shapes.next()??;
            let broadcast = |all: Vec<Value>, shape: Option<Vec<Value>>| {
                views::broadcast(Some(&all), Some(&shape?))
            };
            Some(Value::Tuple(shapes.try_fold(first, broadcast)?))
        }
        "Size" => args.get(0, "")?.elements().map(Value::Tuple),
        _ => None,
    }
}

fn dtype(dtype: Option<Arc<str>>) -> Value {
    dtype.map_or(Value::Unknown, Value::TorchDType)
}

/// Whether a tensor of known sizes, which is a plain one, is of some kind; `None` for other attributes.
pub(crate) fn kind(tensor: &Tensor, attr: &str) -> Option<Value> {
    let is_none = tensor.shape.is_some() && LAYOUTS.contains(&attr)
        || tensor.on_gpu && DEVICES.contains(&attr);
    is_none.then_some(Value::Bool(Some(false)))
}
