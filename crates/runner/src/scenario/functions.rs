//! The functions of the host language.

use tile_compiler::builtins::SCENARIO_FUNCTIONS;

use super::args::{Args, dtype_argument};
use super::construct::{arange, construct, construct_like, load, tensor};
use super::dtype::DType;
use super::error::{Eval, fault};
use super::host::{self, Host};
use super::operators::{Operand, align, common_dtype, map_floats, zip_floats};
use super::reduce::{self, Reduction, RowFunction};
use super::tensor::{Array, Comparison, Data, Value};

/// Calls a function by name.
pub(super) fn call(host: &mut Host, name: &str, mut args: Args) -> Eval<Value> {
    if let Some(f) = pointwise(name) {
        let value = args.need(name, &["x", "input"])?;
        args.finish(name)?;
        return map(host, name, &value, f);
    }
    if let Some(reduction) = reduction(name)
        && is_reduction(&args)
    {
        return reduce_call(host, name, reduction, args);
    }
    match name {
        "randn" | "rand" | "randint" | "zeros" | "ones" | "full" | "empty" => {
            construct(host, name, args)
        }
        "zeros_like" | "ones_like" | "empty_like" | "randn_like" | "rand_like" => {
            construct_like(host, name, args)
        }
        "arange" => arange(host, args),
        "tensor" => tensor(host, args),
        "load" => load(host, args),
        "cdiv" | "next_power_of_2" | "min" | "max" | "range" | "len" | "int" | "float"
        | "tuple" | "list" => number_function(host, name, args),
        "allclose" => allclose(host, args),
        "cumsum" | "cumprod" | "softmax" | "log_softmax" | "sort" => row_function(host, name, args),
        "maximum" | "minimum" | "pow" | "fmod" | "atan2" => pair_function(host, name, args),
        "where" => choose(host, args),
        "clamp" | "clip" => clamp(host, args),
        "matmul" | "mm" | "bmm" | "dot" => {
            let (a, b) = (args.need(name, &["a", "input"])?, args.need(name, &["b", "other"])?);
            args.finish(name)?;
            let (a, b) = (host.operand(a)?, host.operand(b)?);
            super::operators::binary(tile_compiler::hir::BinaryOp::MatMul, a, b)
        }
        "cat" | "concatenate" | "stack" => join(host, name, args),
        _ if reduction(name).is_some() => Err(fault!("{name} needs a tensor")),
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> super::error::Fault {
    let names: Vec<&str> = SCENARIO_FUNCTIONS.iter().map(|function| function.name).collect();
    let near = names.iter().find(|known| {
        known.starts_with(name) || name.starts_with(*known) || same_letters(known, name)
    });
    match near {
        Some(near) => fault!("a scenario has no function `{name}`; there is `{near}`"),
        None => fault!("a scenario has no function `{name}`; it has {}", names.join(", ")),
    }
}

fn same_letters(a: &str, b: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    sorted(a) == sorted(b)
}

/// Functions of each element.
pub(super) fn pointwise(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "exp" => libm::exp,
        "exp2" => libm::exp2,
        "expm1" => libm::expm1,
        "log" => libm::log,
        "log2" => libm::log2,
        "log10" => libm::log10,
        "log1p" => libm::log1p,
        "sqrt" => f64::sqrt,
        "rsqrt" => |x| 1.0 / x.sqrt(),
        "abs" => f64::abs,
        "sigmoid" => |x| 1.0 / (1.0 + libm::exp(-x)),
        "silu" => |x| x / (1.0 + libm::exp(-x)),
        "gelu" => |x| 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        "relu" => |x| if x > 0.0 || x.is_nan() { x } else { 0.0 },
        "square" => |x| x * x,
        "erf" => libm::erf,
        "sin" => libm::sin,
        "cos" => libm::cos,
        "tan" => libm::tan,
        "tanh" => libm::tanh,
        "asin" => libm::asin,
        "acos" => libm::acos,
        "atan" => libm::atan,
        "floor" => libm::floor,
        "ceil" => libm::ceil,
        "trunc" => libm::trunc,
        "round" => f64::round_ties_even,
        "isnan" => |x| f64::from(u8::from(x.is_nan())),
        _ => return None,
    })
}

/// Applies a function to a number or to each element.
fn map(host: &mut Host, name: &str, value: &Value, f: fn(f64) -> f64) -> Eval<Value> {
    Ok(match host.operand(value.clone())? {
        Operand::Int(value) if name == "abs" => Value::Int(value.wrapping_abs()),
        Operand::Int(value) => Value::Float(f(value as f64)),
        Operand::Float(value) => Value::Float(f(value)),
        Operand::Array(array) if name == "isnan" => {
            Value::Array(map_floats(&array, DType::F32, f).convert(DType::Bool).into())
        }
        Operand::Array(array) => match &array.data {
            Data::Int(values) if name == "abs" => {
                let values = values.iter().map(|value| value.wrapping_abs()).collect();
                Value::Array(Array::ints(array.dtype, array.shape.clone(), values).into())
            }
            Data::Int(_) => Value::Array(map_floats(&array, DType::F32, f).into()),
            Data::Float(_) => Value::Array(map_floats(&array, array.dtype, f).into()),
        },
    })
}

pub(super) fn reduction(name: &str) -> Option<Reduction> {
    Some(match name {
        "sum" => Reduction::Sum,
        "prod" => Reduction::Prod,
        "mean" => Reduction::Mean,
        "max" | "amax" => Reduction::Max,
        "min" | "amin" => Reduction::Min,
        "argmax" => Reduction::ArgMax,
        "argmin" => Reduction::ArgMin,
        "any" => Reduction::Any,
        "all" => Reduction::All,
        "var" => Reduction::Var,
        "std" => Reduction::Std,
        _ => return None,
    })
}

/// `max(a, b)` of numbers is not a reduction, `max(x)` and `max(x, 1)` are.
fn is_reduction(args: &Args) -> bool {
    let tensor = |value: &Value| matches!(value, Value::Tensor(_) | Value::Array(_));
    match args.positional.as_slice() {
        [] => args.named.iter().any(|(name, _)| name == "x" || name == "input"),
        [first] => tensor(first),
        [first, second, ..] => tensor(first) && !tensor(second),
    }
}

fn reduce_call(host: &mut Host, name: &str, reduction: Reduction, mut args: Args) -> Eval<Value> {
    let value = args.need(name, &["x", "input"])?;
    let axis = axis_argument(host, &mut args)?;
    let keep = args.take(&["keepdims", "keepdim", "keep_dims"]);
    let dtype = dtype_argument(&mut args)?;
    args.finish(name)?;
    let keep = keep.map(|keep| host.truth(&keep)).transpose()?.unwrap_or(false);
    let array = host.array(&value)?;
    let mut reduced = reduce::reduce(reduction, &array, axis, keep)?;
    if let Some(dtype) = dtype {
        reduced = reduced.convert(dtype);
    }
    Ok(Value::Array(reduced.into()))
}

fn axis_argument(host: &Host, args: &mut Args) -> Eval<Option<i128>> {
    match args.take(&["axis", "dim"]) {
        None | Some(Value::None) => Ok(None),
        Some(value) => host.int(&value).map(Some),
    }
}

/// Functions of numbers.
fn number_function(host: &mut Host, name: &str, mut args: Args) -> Eval<Value> {
    let values = std::mem::take(&mut args.positional);
    args.finish(name)?;
    match (name, values.as_slice()) {
        ("cdiv", [a, b]) => {
            let (a, b) = (host.int(a)?, host.int(b)?);
            if b <= 0 {
                return Err(fault!("cdiv by {b}"));
            }
            Ok(Value::Int(a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0)))
        }
        ("next_power_of_2", [value]) => {
            let value = host.int(value)?.max(1);
            let power = u64::try_from(value).ok().and_then(u64::checked_next_power_of_two);
            power.map(|power| Value::Int(i128::from(power))).ok_or_else(|| fault!("too large"))
        }
        ("range", _) => {
            let bounds = values.iter().map(|bound| host.int(bound)).collect::<Eval<Vec<i128>>>()?;
            match bounds[..] {
                [end] => host::range(0, end, 1),
                [start, end] => host::range(start, end, 1),
                [start, end, step] => host::range(start, end, step),
                _ => Err(fault!("range takes one to three integers")),
            }
        }
        ("len", [Value::Tuple(items) | Value::Record(_, items)]) => {
            Ok(Value::Int(items.len() as i128))
        }
        ("len", [value @ (Value::Tensor(_) | Value::Array(_))]) => {
            let extent = host.array(value)?.shape.first().copied();
            extent.map(|extent| Value::Int(extent as i128)).ok_or_else(|| fault!("len of a number"))
        }
        ("tuple" | "list", [value @ Value::Tuple(_)]) => Ok(value.clone()),
        ("int", [value]) => match host.operand(value.clone())? {
            Operand::Int(value) => Ok(Value::Int(value)),
            Operand::Float(value) => Ok(Value::Int(value as i128)),
            Operand::Array(array) if array.numel() == 1 => {
                Ok(Value::Int(array.float_at(0) as i128))
            }
            Operand::Array(_) => Err(fault!("int takes one number")),
        },
        ("float", [Value::Str(text)]) => match text.trim().parse() {
            Ok(value) => Ok(Value::Float(value)),
            Err(_) => Err(fault!("float takes a number, not {text:?}")),
        },
        ("float", [value]) => match host.operand(value.clone())? {
            Operand::Int(value) => Ok(Value::Float(value as f64)),
            Operand::Float(value) => Ok(Value::Float(value)),
            Operand::Array(array) if array.numel() == 1 => Ok(Value::Float(array.float_at(0))),
            Operand::Array(_) => Err(fault!("float takes one number")),
        },
        ("min" | "max", [Value::Tuple(items)]) => extreme(host, name, items),
        ("min" | "max", [_, _, ..]) => extreme(host, name, &values),
        _ => Err(fault!("{name} was called with the wrong arguments")),
    }
}

fn extreme(host: &mut Host, name: &str, values: &[Value]) -> Eval<Value> {
    let mut best: Option<Value> = None;
    for value in values {
        let Some(kept) = best.clone() else {
            best = Some(value.clone());
            continue;
        };
        let op = match name {
            "min" => tile_compiler::hir::CompareOp::Lt,
            _ => tile_compiler::hir::CompareOp::Gt,
        };
        let (a, b) = (host.operand(value.clone())?, host.operand(kept)?);
        let better = super::operators::compare(op, a, b)?;
        if host.truth(&better)? {
            best = Some(value.clone());
        }
    }
    best.ok_or_else(|| fault!("{name} of nothing"))
}

fn row_function(host: &mut Host, name: &str, mut args: Args) -> Eval<Value> {
    let value = args.need(name, &["x", "input"])?;
    let axis = axis_argument(host, &mut args)?;
    let descending = args.take(&["descending"]);
    let dtype = dtype_argument(&mut args)?;
    args.finish(name)?;
    let descending = descending.map(|value| host.truth(&value)).transpose()?.unwrap_or(false);
    let array = host.array(&value)?;
    let function = match name {
        "cumsum" => RowFunction::CumSum,
        "cumprod" => RowFunction::CumProd,
        "softmax" => RowFunction::Softmax,
        "log_softmax" => RowFunction::LogSoftmax,
        _ => RowFunction::Sort { descending },
    };
    let mut result = reduce::along_rows(function, &array, axis.unwrap_or(-1))?;
    if let Some(dtype) = dtype {
        result = result.convert(dtype);
    }
    Ok(Value::Array(result.into()))
}

fn pair_function(host: &mut Host, name: &str, mut args: Args) -> Eval<Value> {
    let (a, b) = (args.need(name, &["a", "input"])?, args.need(name, &["b", "other"])?);
    args.finish(name)?;
    let f: fn(f64, f64) -> f64 = match name {
        "maximum" => |x, y| if x.is_nan() || x > y { x } else { y },
        "minimum" => |x, y| if x.is_nan() || x < y { x } else { y },
        "pow" => libm::pow,
        "fmod" => libm::fmod,
        _ => libm::atan2,
    };
    let (a, b) = (host.operand(a)?, host.operand(b)?);
    let dtype = common_dtype(&a, &b);
    let array = zip_floats(&a.to_array(dtype), &b.to_array(dtype), dtype, f)?;
    let array = if dtype.is_float() { array } else { array.convert(dtype) };
    Ok(Value::Array(array.into()))
}

fn choose(host: &mut Host, mut args: Args) -> Eval<Value> {
    let condition = args.need("where", &["condition"])?;
    let (a, b) = (args.need("where", &["x", "input"])?, args.need("where", &["y", "other"])?);
    args.finish("where")?;
    let condition = host.array(&condition)?;
    let (a, b) = (host.operand(a)?, host.operand(b)?);
    let dtype = common_dtype(&a, &b);
    let (a, b) = align(&a.to_array(dtype), &b.to_array(dtype))?;
    let (condition, a) = align(&condition, &a)?;
    let (_, b) = align(&condition, &b)?;
    let (chosen, a_values, b_values) = (condition.to_floats(), a.to_floats(), b.to_floats());
    let values = chosen.into_iter().zip(a_values.into_iter().zip(b_values));
    let values = values.map(|(condition, (a, b))| if condition != 0.0 { a } else { b }).collect();
    let array = Array::floats(dtype, condition.shape.clone(), values);
    Ok(Value::Array(if dtype.is_float() { array } else { array.convert(dtype) }.into()))
}

fn clamp(host: &mut Host, mut args: Args) -> Eval<Value> {
    let value = args.need("clamp", &["x", "input"])?;
    let (low, high) = (args.take(&["min"]), args.take(&["max"]));
    args.finish("clamp")?;
    let mut result = value;
    for (bound, name) in [(low, "maximum"), (high, "minimum")] {
        if let Some(bound) = bound.filter(|bound| !matches!(bound, Value::None)) {
            let args = Args { positional: vec![result, bound], named: vec![] };
            result = pair_function(host, name, args)?;
        }
    }
    Ok(result)
}

fn join(host: &mut Host, name: &str, mut args: Args) -> Eval<Value> {
    let Value::Tuple(parts) = args.need(name, &["tensors"])? else {
        return Err(fault!("{name} takes a tuple of tensors"));
    };
    let axis = axis_argument(host, &mut args)?.unwrap_or(0);
    args.finish(name)?;
    let mut arrays: Vec<Array> = Vec::new();
    for part in &parts {
        arrays.push((*host.array(part)?).clone());
    }
    let Some(first) = arrays.first().cloned() else { return Err(fault!("{name} of nothing")) };
    let rank = first.shape.len() + usize::from(name == "stack");
    let axis = reduce::normalize_axis(axis, rank)?;
    if name == "stack" {
        arrays.iter_mut().for_each(|array| array.shape.insert(axis, 1));
    }
    let without = |array: &Array| {
        let mut shape = array.shape.clone();
        if axis < shape.len() {
            shape.remove(axis);
        }
        shape
    };
    if arrays.iter().any(|array| without(array) != without(&arrays[0])) {
        return Err(fault!("{name} takes tensors that differ in one axis only"));
    }
    let dtype = arrays.iter().fold(first.dtype, |dtype, array| dtype.promote(array.dtype));
    let mut shape = arrays[0].shape.clone();
    shape[axis] = arrays.iter().map(|array| array.shape[axis]).sum();
    let outer: usize = shape[..axis].iter().product();
    let mut values = Vec::with_capacity(shape.iter().product());
    for row in 0..outer {
        for array in &arrays {
            let size: usize = array.shape[axis..].iter().product();
            values.extend_from_slice(&array.to_floats()[row * size..(row + 1) * size]);
        }
    }
    let array = Array::floats(dtype, shape, values);
    Ok(Value::Array(if dtype.is_float() { array } else { array.convert(dtype) }.into()))
}

/// `allclose(a, b, rtol=, atol=, equal_nan=)`.
fn allclose(host: &mut Host, mut args: Args) -> Eval<Value> {
    let (a, b) = (args.need("allclose", &["a", "input"])?, args.need("allclose", &["b", "other"])?);
    let mut float = |names: &[&str]| -> Eval<Option<f64>> {
        let Some(value) = args.take(names) else { return Ok(None) };
        host.operand(value)?.to_float().map(Some).ok_or_else(|| fault!("a tolerance is a number"))
    };
    let (rtol, atol) = (float(&["rtol"])?, float(&["atol"])?);
    let equal_nan = args.take(&["equal_nan"]);
    args.finish("allclose")?;
    let equal_nan = equal_nan.map(|value| host.truth(&value)).transpose()?.unwrap_or(false);
    let (a, b) = (host.operand(a)?, host.operand(b)?);
    let tolerance = [&a, &b].into_iter().filter_map(|operand| match operand {
        Operand::Array(array) => Some(array.dtype.tolerance()),
        _ => None,
    });
    let loosest =
        tolerance.fold((0.0, 0.0), |(rtol, atol), (r, a)| (f64::max(rtol, r), f64::max(atol, a)));
    let (rtol, atol) = match (rtol, atol) {
        (None, None) => loosest,
        (rtol, atol) => (rtol.unwrap_or(0.0), atol.unwrap_or(0.0)),
    };
    let dtype = common_dtype(&a, &b);
    let (a, b) = align(&a.to_array(dtype), &b.to_array(dtype))?;
    Ok(Value::Comparison(compare_all(&a.to_floats(), &b.to_floats(), rtol, atol, equal_nan)))
}

fn compare_all(a: &[f64], b: &[f64], rtol: f64, atol: f64, equal_nan: bool) -> Comparison {
    let mut found = Comparison {
        ok: true,
        max_abs: 0.0,
        max_rel: 0.0,
        first: None,
        outside: 0,
        count: a.len(),
    };
    for (at, (&a, &b)) in a.iter().zip(b).enumerate() {
        if a == b || (equal_nan && a.is_nan() && b.is_nan()) {
            continue;
        }
        let difference = (a - b).abs();
        found.max_abs = nan_max(found.max_abs, difference);
        if b != 0.0 {
            found.max_rel = nan_max(found.max_rel, difference / b.abs());
        }
        let within = difference <= atol + rtol * b.abs() && difference.is_finite();
        if !within {
            found.ok = false;
            found.outside += 1;
            found.first.get_or_insert((at, a, b));
        }
    }
    found
}

/// The larger; NaN if either is.
fn nan_max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
