//! From the arguments of a launch to its specialization, by Triton's rules of specialization.

use tile_compiler::specialization::{ArgSpec, ConstArg, Origin, Specialization, TupleArg};

use crate::scenario::{BoundLaunch, KernelParam, LaunchFailure, StorageId, Value};
use tile_executor::Arg;

/// Alignment that a launch is specialized on, in bytes and as a factor of integers.
const DIVISIBILITY: u64 = 16;

/// What a launch is compiled for. `address` gives the address of a storage's first byte.
///
/// # Errors
/// When an argument is of a kind that kernels do not take.
pub fn specialize(
    launch: &BoundLaunch,
    address: &dyn Fn(StorageId) -> u64,
) -> Result<Specialization, LaunchFailure> {
    let args = launch.args.iter().map(|arg| {
        let spec = arg_spec(&arg.param, &arg.value, address)?;
        Ok((arg.param.name.clone(), spec))
    });
    let args = args.collect::<Result<_, LaunchFailure>>()?;
    let options = launch.options.clone();
    Ok(Specialization { options, ..Specialization::new(Origin::Scenario, args) })
}

/// What is known of a parameter that gets `value`; `address` tells where storages begin.
pub(crate) fn arg_spec(
    param: &KernelParam,
    value: &Value,
    address: &dyn Fn(StorageId) -> u64,
) -> Result<ArgSpec, LaunchFailure> {
    if param.constexpr {
        return const_arg(param, value).map(ArgSpec::Constexpr);
    }
    let annotated = |inferred: String| match &param.annotation {
        Some(annotation) => annotation.clone(),
        None => inferred.into(),
    };
    let aligned = |number: u64| {
        param.specialize && param.specialize_alignment && number.is_multiple_of(DIVISIBILITY)
    };
    Ok(match value {
        Value::Tensor(tensor) => {
            let offset = tensor.layout.offset * tensor.dtype.bytes();
            ArgSpec::Runtime {
                signature: annotated(format!("*{}", tensor.dtype.name())),
                divisible_by_16: aligned(address(tensor.storage) + offset as u64),
            }
        }
        Value::Int(1) if param.specialize && param.annotation.is_none() => {
            ArgSpec::Constexpr(ConstArg::Int(1))
        }
        Value::Int(value) => ArgSpec::Runtime {
            signature: annotated(integer_type(param, *value)?.to_owned()),
            divisible_by_16: aligned(*value as u64),
        },
        Value::Bool(_) | Value::Comparison(_) => {
            ArgSpec::Runtime { signature: annotated("u1".to_owned()), divisible_by_16: false }
        }
        Value::Float(_) => {
            ArgSpec::Runtime { signature: annotated("fp32".to_owned()), divisible_by_16: false }
        }
        Value::Tuple(items) | Value::Record(_, items) => {
            let items = items.iter().map(|item| arg_spec(param, item, address));
            let named = match value {
                Value::Record(names, _) => Some(names.clone()),
                _ => None,
            };
            ArgSpec::Tuple(TupleArg { items: items.collect::<Result<_, _>>()?, named })
        }
        other => ArgSpec::Constexpr(const_arg(param, other)?),
    })
}

fn integer_type(param: &KernelParam, value: i128) -> Result<&'static str, LaunchFailure> {
    if i32::try_from(value).is_ok() {
        Ok("i32")
    } else if i64::try_from(value).is_ok() {
        Ok("i64")
    } else if u64::try_from(value).is_ok() {
        Ok("u64")
    } else {
        let message = format!("argument `{}`: {value} does not fit 64 bits", param.name);
        Err(LaunchFailure::Usage(message))
    }
}

fn const_arg(param: &KernelParam, value: &Value) -> Result<ConstArg, LaunchFailure> {
    Ok(match value {
        Value::None => ConstArg::None,
        Value::Bool(value) => ConstArg::Bool(*value),
        Value::Comparison(comparison) => ConstArg::Bool(comparison.ok),
        Value::Int(value) => ConstArg::Int(*value),
        Value::Float(value) => ConstArg::Float(value.to_bits()),
        Value::Str(text) => ConstArg::Str(text.clone()),
        Value::DType(dtype) => ConstArg::DType(dtype.name().into()),
        Value::Function(name) => ConstArg::Function(name.clone()),
        Value::Member(member) => ConstArg::Member(member.clone()),
        Value::Tuple(items) | Value::Record(_, items) => {
            let items = items.iter().map(|item| const_arg(param, item));
            ConstArg::Tuple(items.collect::<Result<_, _>>()?)
        }
        Value::Tensor(_) | Value::Array(_) | Value::Meta(_) => {
            let message = format!(
                "argument `{}` is a compile-time value and cannot be {}",
                param.name,
                value.kind()
            );
            return Err(LaunchFailure::Usage(message));
        }
    })
}

/// The runtime arguments of a launch in order: what its specialization does not fold.
pub(super) fn runtime_args(
    launch: &BoundLaunch,
    specialization: &Specialization,
    address: &dyn Fn(StorageId) -> u64,
) -> Vec<Arg> {
    let mut args = Vec::new();
    for (arg, spec) in launch.args.iter().zip(specialization.args.values()) {
        push_runtime(&arg.value, spec, address, &mut args);
    }
    args
}

fn push_runtime(
    value: &Value,
    spec: &ArgSpec,
    address: &dyn Fn(StorageId) -> u64,
    args: &mut Vec<Arg>,
) {
    match (spec, value) {
        (ArgSpec::Constexpr(_), _) => {}
        (ArgSpec::Tuple(tuple), Value::Tuple(items) | Value::Record(_, items)) => {
            for (spec, item) in tuple.items.iter().zip(items) {
                push_runtime(item, spec, address, args);
            }
        }
        (_, Value::Tensor(tensor)) => {
            let offset = (tensor.layout.offset * tensor.dtype.bytes()) as u64;
            args.push(Arg::Pointer(address(tensor.storage) + offset));
        }
        (_, Value::Float(value)) => args.push(Arg::Float(*value)),
        (_, Value::Bool(value)) => args.push(Arg::Int(i128::from(*value))),
        (_, Value::Comparison(comparison)) => args.push(Arg::Int(i128::from(comparison.ok))),
        (_, Value::Int(value)) => args.push(Arg::Int(*value)),
        _ => {}
    }
}

/// The tensors among the runtime arguments, by the index of the runtime argument.
pub(super) fn tensors(
    launch: &BoundLaunch,
    specialization: &Specialization,
) -> Vec<(usize, crate::scenario::Tensor)> {
    let mut found = Vec::new();
    let mut next = 0;
    for (arg, spec) in launch.args.iter().zip(specialization.args.values()) {
        collect_tensors(&arg.value, spec, &mut next, &mut found);
    }
    found
}

fn collect_tensors(
    value: &Value,
    spec: &ArgSpec,
    next: &mut usize,
    found: &mut Vec<(usize, crate::scenario::Tensor)>,
) {
    match (spec, value) {
        (ArgSpec::Constexpr(_), _) => {}
        (ArgSpec::Tuple(tuple), Value::Tuple(items) | Value::Record(_, items)) => {
            for (spec, item) in tuple.items.iter().zip(items) {
                collect_tensors(item, spec, next, found);
            }
        }
        (_, Value::Tensor(tensor)) => {
            found.push((*next, tensor.clone()));
            *next += 1;
        }
        _ => *next += 1,
    }
}
