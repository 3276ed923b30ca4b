//! What scenarios call: makers of tensors, and functions and reductions of them.

use std::sync::Arc;

use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::library::triton::triton_call;
use crate::host::torch::made;
use crate::host::torch::reduced::along_axis;
use crate::host::torch::tensor::{counted, joined, sizes, torch_constructor};
use crate::host::torch::views::{broadcast, elementwise};
use crate::host::value::contents::Contents;
use crate::host::value::dtype::{is_float, promoted, with_number};
use crate::host::value::{Tensor, Value};
use crate::project::ArrayHead;
use crate::source::FileId;

impl Host<'_> {
    /// A call of one of a scenario's own functions.
    pub(crate) fn scenario_call(
        &mut self,
        file: FileId,
        name: &str,
        args: &Args<'_>,
    ) -> Option<Value> {
        if name == "load" {
            let head = match args.get(0, "file") {
                Some(Value::Str(path)) => self.sources.array(file, path),
                _ => None,
            };
            let tensor = loaded(head.as_ref(), args);
            return Some(self.allocate(tensor, Contents::Unknown));
        }
        if let Some(tensor) = scenario_constructor(name, args) {
            return Some(self.allocate(tensor, made::by_scenario(name, args)));
        }
        if matches!(name, "cdiv" | "next_power_of_2") {
            return Some(triton_call(name, args));
        }
        if let Some(value) = scenario_function(name, args) {
            return Some(value);
        }
        let (tensor, rest) = args.of_tensor()?;
        scenario_reduction(tensor, name, &rest)
    }
}

/// A function of scenarios on tensors, other than constructors; `None` for other functions.
fn scenario_function(name: &str, args: &Args<'_>) -> Option<Value> {
    let positional = args.positional();
    let tensors: Vec<&Tensor> = positional
        .iter()
        .filter_map(|value| match value {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        })
        .collect();
    match (name, tensors.as_slice()) {
        (
            "abs" | "acos" | "asin" | "atan" | "cos" | "cumprod" | "cumsum" | "erf" | "exp"
            | "exp2" | "log" | "log2" | "log_softmax" | "rsqrt" | "sigmoid" | "sin" | "softmax"
            | "sqrt" | "tanh" | "clamp",
            [tensor],
        ) => {
            let kept = name == "abs" || name == "cumsum" || name == "clamp";
            let dtype = tensor.dtype.as_ref().map(|dtype| match is_float(dtype) || kept {
                true => dtype.clone(),
                false => Arc::from("fp32"),
            });
            let result = Tensor { dtype, strides: None, ..Tensor::clone(tensor) };
            Some(Value::Tensor(result.copied()))
        }
        ("cos" | "exp" | "log" | "log2" | "rsqrt" | "sin" | "sqrt", [])
            if matches!(positional.as_slice(), [Value::Int(_) | Value::Float(_)]) =>
        {
            Some(Value::Float(None))
        }
        ("where", [first, rest @ ..]) => {
            let shape = rest.iter().try_fold(first.shape.clone()?, |shape, tensor| {
                broadcast(Some(&shape), tensor.shape.as_deref())
            });
            let dtype = match positional.get(1..3)? {
                [Value::Tensor(a), Value::Tensor(b)] => {
                    promoted(a.dtype.as_ref(), b.dtype.as_ref())
                }
                [Value::Tensor(a), number] | [number, Value::Tensor(a)] => {
                    with_number(a.dtype.as_ref(), number)
                }
                _ => None,
            };
            Some(Value::Tensor(Tensor { dtype, shape, ..Tensor::default() }.copied()))
        }
        ("minimum" | "maximum", [a, b]) => Some(Value::Tensor(elementwise(a, Some(b)))),
        ("cat" | "concatenate" | "stack", []) => {
            joined(if name == "stack" { name } else { "cat" }, args)
        }
        _ => None,
    }
}

/// A scenario's reduction of a tensor along a dimension, or of all of it.
pub(crate) fn scenario_reduction(tensor: &Tensor, name: &str, args: &Args<'_>) -> Option<Value> {
    if !matches!(name, "sum" | "mean" | "max" | "min" | "prod") {
        return None;
    }
    match along_axis(name, tensor, args)? {
        Value::Record { items, .. } => items.into_iter().next(),
        value => Some(value),
    }
}

/// A tensor made by a scenario's constructor; `None` for other functions. Every constructor
/// makes fp32 unless `dtype=` says otherwise, and `load` what the file holds.
fn scenario_constructor(name: &str, args: &Args<'_>) -> Option<Value> {
    let positional = args.positional();
    let shape = match name {
        "randn" | "rand" | "zeros" | "ones" | "empty" => sizes(&positional),
        "randint" => sizes(positional.get(2..).unwrap_or_default()),
        "full" => sizes(positional.split_last().map_or(&[], |(_, shape)| shape)),
        "arange" => counted(&positional).map(|count| vec![count]),
        "tensor" => return torch_constructor(name, args),
        _ => return None,
    };
    Some(Value::Tensor(Tensor { dtype: args.dtype(Some("fp32")), shape, ..Tensor::default() }))
}

/// The tensor that a scenario loads from a file with this header, converted where the call says so.
fn loaded(head: Option<&ArrayHead>, args: &Args<'_>) -> Value {
    let extent = |extent: &u64| Value::Int(Some(i128::from(*extent)));
    let shape = head.map(|head| head.shape.iter().map(extent).collect());
    let dtype = args.dtype(head.map(|head| &*head.dtype));
    Value::Tensor(Tensor { dtype, shape, ..Tensor::default() })
}
