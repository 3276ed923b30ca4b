//! What `torch.nn.init` gives: the tensor that it fills, and how many inputs and outputs its elements have.

use crate::hir::BinaryOp;
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::value::{Tensor, Value};

/// What `torch.nn.init.NAME(...)` gives; `None` where that is not known.
pub(crate) fn made_of(name: &str, args: &Args<'_>) -> Option<Value> {
    if name == "calculate_gain" {
        return gain(args).map(|gain| Value::Float(Some(gain)));
    }
    let Value::Tensor(tensor) = args.get(0, "tensor")? else { return None };
    match name {
        "_calculate_fan_in_and_fan_out" => fans(tensor),
        _ => name.ends_with('_').then(|| Value::Tensor(tensor.clone())),
    }
}

/// How many elements of a weight an output sums over, and how many outputs an input goes to.
fn fans(weight: &Tensor) -> Option<Value> {
    let [outputs, inputs, field @ ..] = weight.shape.as_deref()? else { return None };
    let times = |start: &Value| {
        field
            .iter()
            .fold(start.clone(), |all, extent| operators::binary(BinaryOp::Mul, &all, extent))
    };
    Some(Value::Tuple(vec![times(inputs), times(outputs)]))
}

/// By how much what follows a layer shrinks what it gives, of the functions whose number does not depend on a
/// parameter. Source: the documentation of `torch.nn.init.calculate_gain`.
fn gain(args: &Args<'_>) -> Option<f64> {
    let Value::Str(name) = args.get(0, "nonlinearity")? else { return None };
    match &**name {
        "linear" | "sigmoid" | "conv1d" | "conv2d" | "conv3d" => Some(1.0),
        "tanh" => Some(5.0 / 3.0),
        "relu" => Some(2f64.sqrt()),
        "selu" => Some(0.75),
        _ => None,
    }
}
