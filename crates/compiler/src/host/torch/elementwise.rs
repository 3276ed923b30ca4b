//! Tensors that functions make element by element, of one tensor or of several that broadcast.

use std::sync::Arc;

use crate::host::code::arguments::Args;
use crate::host::torch::views;
use crate::host::value::dtype::{float_of, is_complex, is_float, with_number};
use crate::host::value::number::as_number;
use crate::host::value::{Tensor, Value};

/// The elements that a function makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// Those of its arguments' type.
    Same,
    /// Floats: of integers, of PyTorch's default type.
    Floats,
    /// Floats of 64 bits.
    Doubles,
    /// Truth values.
    Truths,
}

/// What a function of one tensor gives for each element of it, whatever its other arguments are. Source:
/// PyTorch's documentation, by tests/torch/sizes.py.
fn of_one(name: &str) -> Option<Gives> {
    Some(match name {
        "abs"
        | "absolute"
        | "alpha_dropout"
        | "bitwise_not"
        | "ceil"
        | "celu"
        | "clone"
        | "conj"
        | "conj_physical"
        | "dropout"
        | "dropout1d"
        | "dropout2d"
        | "dropout3d"
        | "elu"
        | "feature_alpha_dropout"
        | "feature_dropout"
        | "fill"
        | "fix"
        | "floor"
        | "frac"
        | "gelu"
        | "hardshrink"
        | "hardsigmoid"
        | "hardswish"
        | "hardtanh"
        | "leaky_relu"
        | "logsigmoid"
        | "mish"
        | "nan_to_num"
        | "neg"
        | "negative"
        | "positive"
        | "relu"
        | "relu6"
        | "resolve_conj"
        | "resolve_neg"
        | "round"
        | "rrelu"
        | "selu"
        | "sgn"
        | "sign"
        | "silu"
        | "softplus"
        | "softshrink"
        | "square"
        | "threshold"
        | "trunc" => Gives::Same,
        "acos" | "acosh" | "arccos" | "arccosh" | "arcsin" | "arcsinh" | "arctan" | "arctanh"
        | "asin" | "asinh" | "atan" | "atanh" | "cos" | "cosh" | "deg2rad" | "digamma" | "erf"
        | "erfc" | "erfinv" | "exp" | "exp2" | "expit" | "expm1" | "gammaln" | "i0" | "i0e"
        | "i1" | "i1e" | "lgamma" | "log" | "log10" | "log1p" | "log2" | "log_ndtr" | "logit"
        | "ndtr" | "ndtri" | "psi" | "rad2deg" | "reciprocal" | "rsqrt" | "sigmoid" | "sin"
        | "sinc" | "sinh" | "softsign" | "sqrt" | "tan" | "tanh" | "tanhshrink" => Gives::Floats,
        "isfinite" | "isinf" | "isnan" | "isneginf" | "isposinf" | "isreal" | "logical_not"
        | "signbit" => Gives::Truths,
        _ => return None,
    })
}

/// What a function of two tensors that broadcast, or of one and a number, gives. Source: as of [`of_one`].
fn of_two(name: &str) -> Option<Gives> {
    Some(match name {
        "add"
        | "bitwise_and"
        | "bitwise_left_shift"
        | "bitwise_or"
        | "bitwise_right_shift"
        | "bitwise_xor"
        | "floor_divide"
        | "fmax"
        | "fmin"
        | "fmod"
        | "gcd"
        | "heaviside"
        | "hypot"
        | "lcm"
        | "max"
        | "maximum"
        | "min"
        | "minimum"
        | "mul"
        | "multiply"
        | "nextafter"
        | "pow"
        | "remainder"
        | "rsub"
        | "sub"
        | "subtract" => Gives::Same,
        "arctan2" | "atan2" | "copysign" | "div" | "divide" | "ldexp" | "logaddexp"
        | "logaddexp2" | "true_divide" | "xlog1py" | "xlogy" => Gives::Floats,
        "float_power" => Gives::Doubles,
        "eq" | "ge" | "greater" | "greater_equal" | "gt" | "isclose" | "le" | "less"
        | "less_equal" | "logical_and" | "logical_or" | "logical_xor" | "lt" | "ne"
        | "not_equal" => Gives::Truths,
        _ => return None,
    })
}

/// The parameters behind the first of functions of three tensors that broadcast.
fn of_three(name: &str) -> Option<[&'static str; 2]> {
    Some(match name {
        "addcdiv" | "addcmul" => ["tensor1", "tensor2"],
        "lerp" => ["end", "weight"],
        "clamp" | "clip" => ["min", "max"],
        _ => return None,
    })
}

/// Functions that keep the sizes and look at the elements of an axis, or at others, for each. They lay the
/// result out in a way of their own.
const KEEPING: &[&str] = &[
    "batch_norm",
    "bernoulli",
    "cumprod",
    "cumsum",
    "flip",
    "fliplr",
    "flipud",
    "group_norm",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_reduce",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "log_softmax",
    "logcumsumexp",
    "masked_scatter",
    "msort",
    "normalize",
    "put",
    "renorm",
    "rms_norm",
    "roll",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select_scatter",
    "slice_scatter",
    "diagonal_scatter",
    "softmax",
    "softmin",
    "tril",
    "triu",
];

/// Those of them that add up integers of 64 bits.
const SUMMING: &[&str] = &["cumprod", "cumsum"];

/// The second parameter of a function of two tensors.
fn parameter(name: &str) -> &'static str {
    match name {
        "float_power" | "pow" => "exponent",
        "heaviside" => "values",
        _ => "other",
    }
}

/// The second parameter of a function that broadcasts two tensors and does nothing else; `None` for other
/// functions.
pub(crate) fn second(name: &str) -> Option<&'static str> {
    let is_other = matches!(name, "max" | "min");
    of_two(name).filter(|_| !is_other).map(|_| parameter(name))
}

/// What a function makes of a tensor and the arguments after it, element by element; `None` for other
/// functions.
pub(crate) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    if KEEPING.contains(&name) {
        return Some(kept(name, tensor, args));
    }
    if let Some(gives) = of_one(name) {
        return Some(one(name, tensor, gives));
    }
    let reduces =
        matches!(name, "max" | "min") && !matches!(args.get(0, "other"), Some(Value::Tensor(_)));
    if let Some(gives) = of_two(name).filter(|_| !reduces)
        && let Some(other) = args.get(0, parameter(name))
    {
        let gives = match args.get(1, "rounding_mode") {
            Some(Value::Str(_)) if gives == Gives::Floats => Gives::Same,
            _ => gives,
        };
        return two(tensor, other, gives);
    }
    if name == "clamp_min" || name == "clamp_max" {
        let bound = args.get(0, name.strip_prefix("clamp_")?)?;
        return two(tensor, bound, Gives::Same);
    }
    let others = of_three(name)?;
    let others = others.iter().enumerate().filter_map(|(at, name)| args.get(at, name));
    let first = Value::Tensor(tensor.copied());
    others.filter(|other| **other != Value::None).try_fold(first, |made, other| match made {
        Value::Tensor(made) if name == "lerp" && as_number(other).is_some() => {
            Some(Value::Tensor(made))
        }
        Value::Tensor(made) => two(&made, other, Gives::Same),
        _ => None,
    })
}

/// A tensor of the same sizes, of another type where the function is told one.
fn kept(name: &str, tensor: &Tensor, args: &Args<'_>) -> Value {
    let is_counted = |dtype: &str| !is_float(dtype) && !is_complex(dtype);
    let own = match tensor.dtype.as_deref() {
        Some(dtype) if SUMMING.contains(&name) && is_counted(dtype) => Some("i64"),
        own => own,
    };
    let copy = Tensor { dtype: args.dtype(own), ..tensor.copied() };
    match tensor.strides {
        None => Value::Tensor(copy),
        Some(_) => Value::Tensor(views::reordered(&copy)),
    }
}

fn one(name: &str, tensor: &Tensor, gives: Gives) -> Value {
    let dtype = tensor.dtype.as_ref();
    let is_length =
        matches!(name, "abs" | "absolute") && dtype.is_some_and(|dtype| is_complex(dtype));
    let dtype = match name {
        _ if is_length => None,
        // Numbers are squared by a power, an integer.
        "square" => with_number(dtype, &Value::Int(None)),
        _ => made_type(dtype.cloned(), gives),
    };
    Value::Tensor(Tensor { dtype, ..tensor.copied() })
}

fn two(tensor: &Tensor, other: &Value, gives: Gives) -> Option<Value> {
    let made = match other.plain() {
        Value::Tensor(other) => views::elementwise(tensor, Some(other)),
        number => {
            as_number(number)?;
            let dtype = with_number(tensor.dtype.as_ref(), number);
            Tensor { dtype, ..views::elementwise(tensor, None) }
        }
    };
    let dtype = made_type(made.dtype.clone(), gives);
    Some(Value::Tensor(Tensor { dtype, ..made }))
}

/// The type of what a function gives of elements of this type.
fn made_type(dtype: Option<Arc<str>>, gives: Gives) -> Option<Arc<str>> {
    match gives {
        Gives::Same => dtype,
        Gives::Floats => dtype.map(|dtype| float_of(&dtype)),
        Gives::Doubles => dtype.filter(|dtype| !is_complex(dtype)).map(|_| Arc::from("fp64")),
        Gives::Truths => Some(Arc::from("i1")),
    }
}
