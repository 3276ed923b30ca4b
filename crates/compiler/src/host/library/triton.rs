//! Functions of the triton package that host code calls.

use std::sync::Arc;

use crate::hir::{BinaryOp, Name};
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::torch::misuse::{self, Misuse};
use crate::host::torch::tensor;
use crate::host::value::dtype::element_size;
use crate::host::value::{Callable, Tensor, Tuner, TunerKind, Value};
use crate::project::Resolution;
use crate::specialization::{Config, ConstArg};

/// Functions of the triton package that take so many arguments: as a path, and as users call them.
const COUNTED: &[(&str, &str, usize)] =
    &[("cdiv", "triton.cdiv", 2), ("next_power_of_2", "triton.next_power_of_2", 1)];

/// A function of the triton package.
pub(crate) fn triton_call(path: &str, args: &Args<'_>) -> Value {
    let (counted, given) = (COUNTED.iter().find(|(name, ..)| *name == path), args.0.len());
    if let Some(&(_, function, takes)) = counted.filter(|(.., takes)| *takes != given) {
        return Value::Raises(Misuse::ArgumentCount { function, takes, given });
    }
    match path {
        "cdiv" | "language.cdiv" => match (args.get(0, "x"), args.get(1, "y")) {
            (Some(x), Some(y)) => {
                let one = Value::Int(Some(1));
                let less = operators::binary(BinaryOp::Sub, y, &one);
                let sum = operators::binary(BinaryOp::Add, x, &less);
                operators::binary(BinaryOp::FloorDiv, &sum, y)
            }
            _ => Value::Unknown,
        },
        "next_power_of_2" => match args.get(0, "n") {
            Some(Value::Int(Some(n))) => Value::Int(next_power_of_2(*n)),
            Some(Value::Int(None)) => Value::Int(None),
            Some(raised @ Value::Raises(_)) => raised.clone(),
            Some(n) => {
                let one = Value::Int(Some(1));
                misuse::no_operator(BinaryOp::Sub, n, &one).unwrap_or(Value::Unknown)
            }
            None => Value::Unknown,
        },
        // Tests of Triton ask what they run on: what is compiled here is for NVIDIA.
        "_internal_testing.is_cuda" => Value::Bool(Some(true)),
        "_internal_testing.is_hip" | "_internal_testing.is_interpreter" => Value::Bool(Some(false)),
        "language.constexpr" => match args.get(0, "value") {
            Some(value) => Value::Constexpr(Box::new(value.plain().clone())),
            None => Value::Unknown,
        },
        "reinterpret" => args.get(0, "tensor").map_or(Value::Unknown, |tensor| {
            reinterpreted(tensor, args.get(1, "dtype").and_then(tensor::given_dtype))
        }),
        "jit" => match args.get(0, "fn") {
            Some(Value::Named(Resolution::Function(at))) => Value::Named(Resolution::Jit(*at)),
            _ => Value::Unknown,
        },
        "autotune" => tuner(TunerKind::Autotune, args),
        "heuristics" => tuner(TunerKind::Heuristics, args),
        "Config" => config(args).map_or(Value::Unknown, |config| Value::Config(Box::new(config))),
        "tools.tensor_descriptor.TensorDescriptor" => {
            let (shape, strides) = (args.get(1, "shape"), args.get(2, "strides"));
            let unknown = Value::Unknown;
            tensor::descriptor(
                args.get(0, "base"),
                shape.or(Some(&unknown)),
                strides.or(Some(&unknown)),
                args.get(3, "block_shape"),
            )
        }
        "tools.tensor_descriptor.TensorDescriptor.from_tensor" => {
            tensor::descriptor(args.get(0, "tensor"), None, None, args.get(1, "block_shape"))
        }
        _ => Value::Unknown,
    }
}

/// The same memory, whose elements are taken for others of the same size.
fn reinterpreted(tensor: &Value, dtype: Option<Arc<str>>) -> Value {
    let Value::Tensor(tensor) = tensor else { return Value::tensor(dtype.as_deref()) };
    let size = |dtype: &Option<Arc<str>>| dtype.as_deref().and_then(element_size);
    match size(&tensor.dtype).is_some() && size(&tensor.dtype) == size(&dtype) {
        true => Value::Tensor(Tensor { dtype, ..tensor.clone() }),
        false => Value::tensor(dtype.as_deref()),
    }
}

fn tuner(kind: TunerKind, args: &Args<'_>) -> Value {
    Value::Callable(Callable::Tuner(Arc::new(Tuner { kind, args: args.0.to_vec() })))
}

fn next_power_of_2(n: i128) -> Option<i128> {
    let n = u64::try_from(n.max(1)).ok()?;
    n.checked_next_power_of_two().map(i128::from)
}

/// The values of constexpr parameters in a dict.
fn constants(kwargs: &Value) -> Option<Vec<(Name, ConstArg)>> {
    let Value::Dict(entries) = kwargs else { return None };
    let constant = |(key, value): (&Value, &Value)| match key {
        Value::Str(name) => Some((name.clone(), value.to_const()?)),
        _ => None,
    };
    entries.iter().map(|(key, value)| constant((key, value))).collect()
}

/// What `config.attr = value` makes of a configuration.
pub(crate) fn with_attribute(config: &Config, attr: &str, value: &Value) -> Value {
    let mut config = config.clone();
    let option = match value {
        Value::Int(Some(value)) => u32::try_from(*value).ok(),
        _ => None,
    };
    match attr {
        "kwargs" => match constants(value) {
            Some(kwargs) => config.kwargs = kwargs,
            None => return Value::Unknown,
        },
        "num_warps" | "num_stages" | "num_ctas" if option.is_none() => return Value::Unknown,
        "num_warps" => config.num_warps = option,
        "num_stages" => config.num_stages = option,
        "num_ctas" => config.num_ctas = option,
        _ => return Value::Unknown,
    }
    Value::Config(Box::new(config))
}

/// `triton.Config(kwargs, num_warps=..., ...)`.
fn config(args: &Args<'_>) -> Option<Config> {
    let kwargs = constants(args.get(0, "kwargs")?)?;
    let option = |index: usize, name: &str| match args.get(index, name) {
        Some(Value::Int(Some(value))) => u32::try_from(*value).ok(),
        _ => None,
    };
    Some(Config {
        kwargs,
        num_warps: option(1, "num_warps"),
        num_stages: option(2, "num_stages"),
        num_ctas: option(3, "num_ctas"),
        max_registers: option(4, "maxnreg"),
        pre_hook: match args.get(5, "pre_hook") {
            Some(Value::Named(Resolution::Function(at))) => Some(*at),
            _ => None,
        },
        is_prepared: args.get(5, "pre_hook").is_some_and(|hook| !matches!(hook, Value::None)),
        at: None,
    })
}

/// `Config.all_kwargs()`: what a configuration sets, its launch options among it.
pub(crate) fn all_kwargs(config: &Config) -> Value {
    let config = config.spelled_out();
    let values = config.kwargs.iter().map(|(name, value)| (&**name, Value::from_const(value)));
    let options = [
        ("num_warps", config.num_warps),
        ("num_ctas", config.num_ctas),
        ("num_stages", config.num_stages),
        ("maxnreg", config.max_registers),
    ];
    let options = options
        .into_iter()
        .filter_map(|(name, value)| Some((name, Value::Int(Some(value?.into())))));
    let entries = values.chain(options).map(|(name, value)| (Value::Str(name.into()), value));
    Value::Dict(entries.collect())
}
