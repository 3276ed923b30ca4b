//! The functions and methods of the host language.

use std::sync::Arc;

use rayon::prelude::*;

use super::dtype::DType;
use super::error::{Eval, fault};
use super::eval::Evaluator;
use super::npy::load_npy;
use super::operators::{Operand, align, common_dtype, map_floats, zip_floats};
use super::random::Random;
use super::reduce::{self, Reduction, RowFunction};
use super::tensor::{Array, Comparison, Data, Layout, Value};
use super::views;

/// Elements that one tensor of a scenario may have.
const MAX_ELEMENTS: usize = 1 << 31;

/// Arguments of a call.
#[derive(Debug, Clone)]
pub(super) struct Args {
    pub positional: Vec<Value>,
    pub named: Vec<(String, Value)>,
}

impl Args {
    /// Takes the named argument `name`, by the first of its spellings that is given.
    fn named(&mut self, names: &[&str]) -> Option<Value> {
        let at = self.named.iter().position(|(name, _)| names.contains(&name.as_str()))?;
        Some(self.named.remove(at).1)
    }

    /// Takes an argument that may be given by position or name.
    fn take(&mut self, names: &[&str]) -> Option<Value> {
        if self.positional.is_empty() {
            return self.named(names);
        }
        Some(self.positional.remove(0))
    }

    fn need(&mut self, function: &str, names: &[&str]) -> Eval<Value> {
        self.take(names).ok_or_else(|| fault!("{function} needs the argument `{}`", names[0]))
    }

    /// Fails if anything is left.
    fn finish(self, function: &str) -> Eval<()> {
        if let Some((name, _)) = self.named.first() {
            return Err(fault!("{function} has no argument `{name}`"));
        }
        match self.positional.len() {
            0 => Ok(()),
            count => Err(fault!("{function} was given {count} arguments too many")),
        }
    }
}

/// Every function, for the message about one that does not exist.
const FUNCTIONS: &[&str] = &[
    "abs",
    "all",
    "allclose",
    "any",
    "arange",
    "argmax",
    "argmin",
    "cat",
    "cdiv",
    "ceil",
    "clamp",
    "cos",
    "cumprod",
    "cumsum",
    "empty",
    "erf",
    "exp",
    "exp2",
    "float",
    "floor",
    "full",
    "int",
    "len",
    "load",
    "log",
    "log2",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "next_power_of_2",
    "ones",
    "prod",
    "rand",
    "randint",
    "randn",
    "range",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "sort",
    "sqrt",
    "square",
    "stack",
    "std",
    "sum",
    "tanh",
    "tensor",
    "tuple",
    "var",
    "where",
    "zeros",
];

/// Calls a function by name.
pub(super) fn call(eval: &mut Evaluator, name: &str, mut args: Args) -> Eval<Value> {
    if let Some(f) = pointwise(name) {
        let value = args.need(name, &["x", "input"])?;
        args.finish(name)?;
        return map(eval, name, &value, f);
    }
    if let Some(reduction) = reduction(name)
        && is_reduction(&args)
    {
        return reduce_call(eval, name, reduction, args);
    }
    match name {
        "randn" | "rand" | "randint" | "zeros" | "ones" | "full" | "empty" => {
            construct(eval, name, args)
        }
        "zeros_like" | "ones_like" | "empty_like" | "randn_like" | "rand_like" => {
            construct_like(eval, name, args)
        }
        "arange" => arange(eval, args),
        "tensor" => tensor(eval, args),
        "load" => load(eval, args),
        "cdiv" | "next_power_of_2" | "min" | "max" | "range" | "len" | "int" | "float"
        | "tuple" | "list" => number_function(eval, name, args),
        "allclose" => allclose(eval, args),
        "cumsum" | "cumprod" | "softmax" | "log_softmax" | "sort" => row_function(eval, name, args),
        "maximum" | "minimum" | "pow" | "fmod" | "atan2" => pair_function(eval, name, args),
        "where" => choose(eval, args),
        "clamp" | "clip" => clamp(eval, args),
        "matmul" | "mm" | "bmm" | "dot" => {
            let (a, b) = (args.need(name, &["a", "input"])?, args.need(name, &["b", "other"])?);
            args.finish(name)?;
            let (a, b) = (eval.operand(a)?, eval.operand(b)?);
            super::operators::binary(tile_compiler::hir::BinaryOp::MatMul, a, b)
        }
        "cat" | "concatenate" | "stack" => join(eval, name, args),
        "transpose" | "permute" | "reshape" => {
            let value = args.need(name, &["x", "input"])?;
            method(eval, value, name, args)
        }
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> super::error::Fault {
    let near = FUNCTIONS.iter().filter(|known| {
        known.starts_with(name) || name.starts_with(*known) || same_letters(known, name)
    });
    match near.clone().next() {
        Some(near) => fault!("a scenario has no function `{name}`; there is `{near}`"),
        None => fault!("a scenario has no function `{name}`; it has {}", FUNCTIONS.join(", ")),
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
fn pointwise(name: &str) -> Option<fn(f64) -> f64> {
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
fn map(eval: &mut Evaluator, name: &str, value: &Value, f: fn(f64) -> f64) -> Eval<Value> {
    Ok(match eval.operand(value.clone())? {
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

fn reduction(name: &str) -> Option<Reduction> {
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

fn reduce_call(
    eval: &mut Evaluator,
    name: &str,
    reduction: Reduction,
    mut args: Args,
) -> Eval<Value> {
    let value = args.need(name, &["x", "input"])?;
    let axis = axis_argument(eval, &mut args)?;
    let keep = args.take(&["keepdims", "keepdim", "keep_dims"]);
    let dtype = dtype_argument(&mut args)?;
    args.finish(name)?;
    let keep = keep.map(|keep| eval.truth(&keep)).transpose()?.unwrap_or(false);
    let array = eval.array(&value)?;
    let mut reduced = reduce::reduce(reduction, &array, axis, keep)?;
    if let Some(dtype) = dtype {
        reduced = reduced.convert(dtype);
    }
    Ok(Value::Array(reduced.into()))
}

fn axis_argument(eval: &Evaluator, args: &mut Args) -> Eval<Option<i128>> {
    match args.take(&["axis", "dim"]) {
        None | Some(Value::None) => Ok(None),
        Some(value) => eval.int(&value).map(Some),
    }
}

fn dtype_argument(args: &mut Args) -> Eval<Option<DType>> {
    args.named(&["dtype"]).map(|value| to_dtype(&value)).transpose()
}

fn to_dtype(value: &Value) -> Eval<DType> {
    match value {
        Value::DType(dtype) => Ok(*dtype),
        Value::Str(name) => {
            DType::from_name(name).ok_or_else(|| fault!("there is no dtype `{name}`"))
        }
        other => Err(fault!("a dtype is needed here, not {}", other.kind())),
    }
}

/// A shape from arguments: extents, or one tuple of them.
fn shape_of(eval: &Evaluator, values: Vec<Value>) -> Eval<Vec<usize>> {
    let values = match values.as_slice() {
        [Value::Tuple(items)] => items.clone(),
        _ => values,
    };
    let extent = |value: &Value| {
        let extent = eval.int(value)?;
        usize::try_from(extent).map_err(|_| fault!("an extent cannot be {extent}"))
    };
    let shape = values.iter().map(extent).collect::<Eval<Vec<usize>>>()?;
    let numel = shape.iter().try_fold(1usize, |numel, &extent| numel.checked_mul(extent));
    match numel {
        Some(numel) if numel <= MAX_ELEMENTS => Ok(shape),
        _ => Err(fault!("a tensor of a scenario has at most {MAX_ELEMENTS} elements")),
    }
}

/// `randn rand randint zeros ones full empty`.
fn construct(eval: &mut Evaluator, name: &str, mut args: Args) -> Eval<Value> {
    let dtype = dtype_argument(&mut args)?.unwrap_or(DType::F32);
    let seed = args.named(&["seed"]).map(|seed| eval.int(&seed)).transpose()?.unwrap_or(0);
    let mut positional = std::mem::take(&mut args.positional);
    if let Some(shape) = args.named(&["shape", "size"]) {
        positional.push(shape);
    }
    let filling = match name {
        "randint" if positional.len() < 2 => {
            return Err(fault!("randint takes a lower and an upper bound, then the shape"));
        }
        "randint" => {
            let high = eval.int(&positional.remove(1))?;
            let low = eval.int(&positional.remove(0))?;
            if low >= high {
                return Err(fault!("randint({low}, {high}) has nothing to draw from"));
            }
            Filling::Integers(low as i64, high as i64)
        }
        "full" => {
            let value = args.named(&["value", "fill_value"]).or_else(|| positional.pop());
            let value = value.ok_or_else(|| fault!("full takes a shape and then a value"))?;
            match eval.operand(value)? {
                Operand::Int(value) => Filling::Same(value as f64, value as i64),
                Operand::Float(value) => Filling::Same(value, value as i64),
                Operand::Array(_) => return Err(fault!("full takes a number")),
            }
        }
        "zeros" => Filling::Same(0.0, 0),
        "ones" => Filling::Same(1.0, 1),
        "rand" => Filling::Uniform,
        "randn" => Filling::Normal,
        _ => Filling::Poison,
    };
    args.finish(name)?;
    let shape = shape_of(eval, positional)?;
    Ok(filled(eval, filling, dtype, &shape, seed as u64))
}

#[derive(Debug, Clone, Copy)]
enum Filling {
    Same(f64, i64),
    Uniform,
    Normal,
    Integers(i64, i64),
    Poison,
}

fn filled(
    eval: &mut Evaluator,
    filling: Filling,
    dtype: DType,
    shape: &[usize],
    seed: u64,
) -> Value {
    let numel: usize = shape.iter().product();
    let random = Random::new(seed);
    let floats = |f: &(dyn Fn(u64) -> f64 + Sync)| {
        let values = (0..numel as u64).into_par_iter().map(f).collect();
        Array::floats(DType::F64, shape.to_vec(), values).convert(dtype)
    };
    let array = match filling {
        Filling::Poison => {
            let bytes = poison(dtype, numel);
            return Value::Tensor(eval.store.add(dtype, shape, bytes, false));
        }
        Filling::Same(value, _) if dtype.is_float() => floats(&|_| value),
        Filling::Same(_, value) => {
            Array::ints(DType::I64, shape.to_vec(), vec![value; numel]).convert(dtype)
        }
        Filling::Uniform => floats(&|at| random.uniform(at)),
        Filling::Normal => floats(&|at| random.normal(at)),
        Filling::Integers(low, high) => {
            let values = (0..numel as u64).map(|at| random.integer(at, low, high)).collect();
            Array::ints(DType::I64, shape.to_vec(), values).convert(dtype)
        }
    };
    Value::Tensor(eval.store.store(&array))
}

/// What `empty` holds: NaN, or for integers a pattern that catches the eye and is far outside
/// most buffers when it is taken for an index.
fn poison(dtype: DType, numel: usize) -> Vec<u8> {
    let bits = match dtype {
        DType::Bool => 1,
        dtype if dtype.is_float() => crate::number::encode(dtype.scalar(), f64::NAN),
        _ => 0x6BAD_BAD1_6BAD_BAD1,
    };
    let element: Vec<u8> = bits.to_le_bytes().into_iter().take(dtype.bytes()).collect();
    element.repeat(numel)
}

fn construct_like(eval: &mut Evaluator, name: &str, mut args: Args) -> Eval<Value> {
    let like = args.need(name, &["x", "input"])?;
    let array = eval.array(&like)?;
    let shape = array.shape.iter().map(|&extent| Value::Int(extent as i128)).collect();
    args.positional.insert(0, Value::Tuple(shape));
    if !args.named.iter().any(|(name, _)| name == "dtype") {
        args.named.push(("dtype".to_owned(), Value::DType(array.dtype)));
    }
    construct(eval, name.trim_end_matches("_like"), args)
}

fn arange(eval: &mut Evaluator, mut args: Args) -> Eval<Value> {
    let dtype = dtype_argument(&mut args)?.unwrap_or(DType::F32);
    let bounds = std::mem::take(&mut args.positional);
    args.finish("arange")?;
    let bounds = bounds.iter().map(|bound| eval.int(bound)).collect::<Eval<Vec<i128>>>()?;
    let (start, end, step) = match bounds[..] {
        [end] => (0, end, 1),
        [start, end] => (start, end, 1),
        [start, end, step] if step != 0 => (start, end, step),
        _ => return Err(fault!("arange takes an end, or start and end, or start, end and step")),
    };
    let span = if step > 0 { end - start } else { start - end };
    let count = ((span + step.abs() - 1) / step.abs()).max(0) as usize;
    shape_of(eval, vec![Value::Int(count as i128)])?;
    let values = (0..count as i128).map(|at| (start + at * step) as i64).collect();
    let array = Array::ints(DType::I64, vec![count], values).convert(dtype);
    Ok(Value::Tensor(eval.store.store(&array)))
}

/// `tensor(values, dtype=)`: the numbers of a nested list.
fn tensor(eval: &mut Evaluator, mut args: Args) -> Eval<Value> {
    let data = args.need("tensor", &["data", "values"])?;
    let dtype = dtype_argument(&mut args)?;
    args.finish("tensor")?;
    let mut numbers = Vec::new();
    let shape = flatten_list(&data, &mut numbers)?;
    let natural = match numbers.first() {
        Some(Value::Bool(_)) => DType::Bool,
        Some(Value::Int(_)) => DType::I64,
        _ => DType::F32,
    };
    let integer = |number: &Value| match number {
        Value::Int(value) => i64::try_from(*value).ok(),
        Value::Bool(value) => Some(i64::from(*value)),
        _ => None,
    };
    let array = match numbers.iter().map(integer).collect::<Option<Vec<i64>>>() {
        Some(values) => Array::ints(DType::I64, shape, values).convert(dtype.unwrap_or(natural)),
        None => {
            let floats = numbers.into_iter().map(|number| {
                eval.operand(number)?.to_float().ok_or_else(|| fault!("tensor takes numbers"))
            });
            Array::floats(DType::F64, shape, floats.collect::<Eval<_>>()?)
                .convert(dtype.unwrap_or(DType::F32))
        }
    };
    Ok(Value::Tensor(eval.store.store(&array)))
}

/// Collects the numbers of a nested list in row-major order; its shape.
fn flatten_list(value: &Value, numbers: &mut Vec<Value>) -> Eval<Vec<usize>> {
    let Value::Tuple(items) = value else {
        numbers.push(value.clone());
        return Ok(Vec::new());
    };
    let mut inner: Option<Vec<usize>> = None;
    for item in items {
        let shape = flatten_list(item, numbers)?;
        if inner.as_ref().is_some_and(|known| *known != shape) {
            return Err(fault!("the lists in a tensor have one length"));
        }
        inner = Some(shape);
    }
    Ok([items.len()].into_iter().chain(inner.unwrap_or_default()).collect())
}

fn load(eval: &mut Evaluator, mut args: Args) -> Eval<Value> {
    let path = args.need("load", &["file"])?;
    let dtype = dtype_argument(&mut args)?;
    args.finish("load")?;
    let Value::Str(path) = path else { return Err(fault!("load takes a file name")) };
    let array = load_npy(&eval.options.folder.join(&*path)).map_err(|error| fault!("{error}"))?;
    let array = dtype.map_or_else(|| array.clone(), |dtype| array.convert(dtype));
    Ok(Value::Tensor(eval.store.store(&array)))
}

/// Functions of numbers.
fn number_function(eval: &mut Evaluator, name: &str, mut args: Args) -> Eval<Value> {
    let values = std::mem::take(&mut args.positional);
    args.finish(name)?;
    match (name, values.as_slice()) {
        ("cdiv", [a, b]) => {
            let (a, b) = (eval.int(a)?, eval.int(b)?);
            if b <= 0 {
                return Err(fault!("cdiv by {b}"));
            }
            Ok(Value::Int(a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0)))
        }
        ("next_power_of_2", [value]) => {
            let value = eval.int(value)?.max(1);
            let power = u64::try_from(value).ok().and_then(u64::checked_next_power_of_two);
            power.map(|power| Value::Int(i128::from(power))).ok_or_else(|| fault!("too large"))
        }
        ("range", _) => {
            let bounds = values.iter().map(|bound| eval.int(bound)).collect::<Eval<Vec<i128>>>()?;
            match bounds[..] {
                [end] => Evaluator::range(0, end, 1),
                [start, end] => Evaluator::range(start, end, 1),
                [start, end, step] => Evaluator::range(start, end, step),
                _ => Err(fault!("range takes one to three integers")),
            }
        }
        ("len", [Value::Tuple(items)]) => Ok(Value::Int(items.len() as i128)),
        ("len", [value @ (Value::Tensor(_) | Value::Array(_))]) => {
            let extent = eval.array(value)?.shape.first().copied();
            extent.map(|extent| Value::Int(extent as i128)).ok_or_else(|| fault!("len of a number"))
        }
        ("tuple" | "list", [value @ Value::Tuple(_)]) => Ok(value.clone()),
        ("int", [value]) => match eval.operand(value.clone())? {
            Operand::Int(value) => Ok(Value::Int(value)),
            Operand::Float(value) => Ok(Value::Int(value as i128)),
            Operand::Array(array) if array.numel() == 1 => {
                Ok(Value::Int(array.float_at(0) as i128))
            }
            Operand::Array(_) => Err(fault!("int takes one number")),
        },
        ("float", [value]) => match eval.operand(value.clone())? {
            Operand::Int(value) => Ok(Value::Float(value as f64)),
            Operand::Float(value) => Ok(Value::Float(value)),
            Operand::Array(array) if array.numel() == 1 => Ok(Value::Float(array.float_at(0))),
            Operand::Array(_) => Err(fault!("float takes one number")),
        },
        ("min" | "max", [Value::Tuple(items)]) => extreme(eval, name, items),
        ("min" | "max", [_, _, ..]) => extreme(eval, name, &values),
        _ => Err(fault!("{name} was called with the wrong arguments")),
    }
}

fn extreme(eval: &mut Evaluator, name: &str, values: &[Value]) -> Eval<Value> {
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
        let (a, b) = (eval.operand(value.clone())?, eval.operand(kept)?);
        let better = super::operators::compare(op, a, b)?;
        if eval.truth(&better)? {
            best = Some(value.clone());
        }
    }
    best.ok_or_else(|| fault!("{name} of nothing"))
}

fn row_function(eval: &mut Evaluator, name: &str, mut args: Args) -> Eval<Value> {
    let value = args.need(name, &["x", "input"])?;
    let axis = axis_argument(eval, &mut args)?;
    let descending = args.take(&["descending"]);
    let dtype = dtype_argument(&mut args)?;
    args.finish(name)?;
    let descending = descending.map(|value| eval.truth(&value)).transpose()?.unwrap_or(false);
    let array = eval.array(&value)?;
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

fn pair_function(eval: &mut Evaluator, name: &str, mut args: Args) -> Eval<Value> {
    let (a, b) = (args.need(name, &["a", "input"])?, args.need(name, &["b", "other"])?);
    args.finish(name)?;
    let f: fn(f64, f64) -> f64 = match name {
        "maximum" => |x, y| if x.is_nan() || x > y { x } else { y },
        "minimum" => |x, y| if x.is_nan() || x < y { x } else { y },
        "pow" => libm::pow,
        "fmod" => libm::fmod,
        _ => libm::atan2,
    };
    let (a, b) = (eval.operand(a)?, eval.operand(b)?);
    let dtype = common_dtype(&a, &b);
    let array = zip_floats(&a.to_array(dtype), &b.to_array(dtype), dtype, f)?;
    let array = if dtype.is_float() { array } else { array.convert(dtype) };
    Ok(Value::Array(array.into()))
}

fn choose(eval: &mut Evaluator, mut args: Args) -> Eval<Value> {
    let condition = args.need("where", &["condition"])?;
    let (a, b) = (args.need("where", &["x", "input"])?, args.need("where", &["y", "other"])?);
    args.finish("where")?;
    let condition = eval.array(&condition)?;
    let (a, b) = (eval.operand(a)?, eval.operand(b)?);
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

fn clamp(eval: &mut Evaluator, mut args: Args) -> Eval<Value> {
    let value = args.need("clamp", &["x", "input"])?;
    let (low, high) = (args.take(&["min"]), args.take(&["max"]));
    args.finish("clamp")?;
    let mut result = value;
    for (bound, name) in [(low, "maximum"), (high, "minimum")] {
        if let Some(bound) = bound.filter(|bound| !matches!(bound, Value::None)) {
            let args = Args { positional: vec![result, bound], named: vec![] };
            result = pair_function(eval, name, args)?;
        }
    }
    Ok(result)
}

fn join(eval: &mut Evaluator, name: &str, mut args: Args) -> Eval<Value> {
    let Value::Tuple(parts) = args.need(name, &["tensors"])? else {
        return Err(fault!("{name} takes a tuple of tensors"));
    };
    let axis = axis_argument(eval, &mut args)?.unwrap_or(0);
    args.finish(name)?;
    let mut arrays: Vec<Array> = Vec::new();
    for part in &parts {
        arrays.push((*eval.array(part)?).clone());
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
fn allclose(eval: &mut Evaluator, mut args: Args) -> Eval<Value> {
    let (a, b) = (args.need("allclose", &["a", "input"])?, args.need("allclose", &["b", "other"])?);
    let mut float = |names: &[&str]| -> Eval<Option<f64>> {
        let Some(value) = args.take(names) else { return Ok(None) };
        eval.operand(value)?.to_float().map(Some).ok_or_else(|| fault!("a tolerance is a number"))
    };
    let (rtol, atol) = (float(&["rtol"])?, float(&["atol"])?);
    let equal_nan = args.take(&["equal_nan"]);
    args.finish("allclose")?;
    let equal_nan = equal_nan.map(|value| eval.truth(&value)).transpose()?.unwrap_or(false);
    let (a, b) = (eval.operand(a)?, eval.operand(b)?);
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

/// Calls a method of a value.
pub(super) fn method(
    eval: &mut Evaluator,
    value: Value,
    name: &str,
    mut args: Args,
) -> Eval<Value> {
    if !matches!(value, Value::Tensor(_) | Value::Array(_)) {
        return Err(fault!("{} has no method `{name}`", value.kind()));
    }
    match name {
        "stride" => stride(eval, &value, args),
        "numel" | "nelement" => {
            args.finish(name)?;
            Ok(Value::Int(numel(&value) as i128))
        }
        "size" => {
            let shape = eval.attribute(&value, "shape")?;
            let axis = args.take(&["dim"]).map(|axis| eval.int(&axis)).transpose()?;
            args.finish(name)?;
            match (shape, axis) {
                (Value::Tuple(extents), Some(axis)) => {
                    let at = reduce::normalize_axis(axis, extents.len())?;
                    Ok(extents[at].clone())
                }
                (shape, _) => Ok(shape),
            }
        }
        "dim" => eval.attribute(&value, "ndim"),
        "data_ptr" => {
            args.finish(name)?;
            match &value {
                Value::Tensor(tensor) => eval.address(tensor),
                _ => Err(fault!("a computed tensor has no address; `.clone()` puts it in memory")),
            }
        }
        "element_size" => {
            let dtype = to_dtype(&eval.attribute(&value, "dtype")?)?;
            Ok(Value::Int(dtype.bytes() as i128))
        }
        "to" | "type" | "astype" => {
            let dtype = to_dtype(&args.need(name, &["dtype"])?)?;
            args.finish(name)?;
            convert(eval, &value, dtype)
        }
        "float" => convert(eval, &value, DType::F32),
        "half" => convert(eval, &value, DType::F16),
        "bfloat16" => convert(eval, &value, DType::BF16),
        "double" => convert(eval, &value, DType::F64),
        "int" => convert(eval, &value, DType::I32),
        "long" => convert(eval, &value, DType::I64),
        "bool" => convert(eval, &value, DType::Bool),
        "contiguous" | "clone" => {
            args.finish(name)?;
            contiguous(eval, &value, name == "clone")
        }
        "view" | "reshape" => {
            if let [Value::DType(dtype)] = args.positional[..] {
                return bitcast(eval, &value, dtype);
            }
            let shape = extents(eval, std::mem::take(&mut args.positional))?;
            reshape(eval, &value, &shape, name == "view")
        }
        "flatten" | "ravel" => reshape(eval, &value, &[-1], false),
        "t" => eval.view(&value, |layout| Ok(layout.transposed())),
        "transpose" => {
            let (a, b) = (args.need(name, &["dim0"])?, args.need(name, &["dim1"])?);
            let (a, b) = (eval.int(&a)?, eval.int(&b)?);
            eval.view(&value, |layout| {
                let rank = layout.shape.len();
                let mut order: Vec<usize> = (0..rank).collect();
                order.swap(reduce::normalize_axis(a, rank)?, reduce::normalize_axis(b, rank)?);
                views::permute(layout, &order)
            })
        }
        "permute" => {
            let order = extents(eval, std::mem::take(&mut args.positional))?;
            eval.view(&value, |layout| {
                let rank = layout.shape.len();
                let order = order.iter().map(|&axis| reduce::normalize_axis(axis, rank));
                views::permute(layout, &order.collect::<Eval<Vec<usize>>>()?)
            })
        }
        "unsqueeze" | "squeeze" => {
            let axis = args.take(&["dim", "axis"]).map(|axis| eval.int(&axis)).transpose()?;
            eval.view(&value, |layout| squeeze(layout, axis, name == "unsqueeze"))
        }
        "expand" | "broadcast_to" => {
            let shape = shape_of(eval, std::mem::take(&mut args.positional))?;
            eval.view(&value, |layout| {
                layout.broadcast(&shape).ok_or_else(|| fault!("the shapes do not broadcast"))
            })
        }
        "item" => {
            let array = eval.array(&value)?;
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
            call(eval, name, args)
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

fn stride(eval: &mut Evaluator, value: &Value, mut args: Args) -> Eval<Value> {
    let layout = match value {
        Value::Tensor(tensor) => tensor.layout.clone(),
        other => Layout::contiguous(&eval.array(other)?.shape),
    };
    let axis = args.take(&["dim"]).map(|axis| eval.int(&axis)).transpose()?;
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

fn convert(eval: &mut Evaluator, value: &Value, dtype: DType) -> Eval<Value> {
    if let Value::Tensor(tensor) = value
        && tensor.dtype == dtype
    {
        return Ok(value.clone());
    }
    Ok(Value::Array(eval.array(value)?.convert(dtype).into()))
}

fn contiguous(eval: &mut Evaluator, value: &Value, copy: bool) -> Eval<Value> {
    match value {
        Value::Tensor(tensor) if tensor.layout.is_contiguous() && !copy => Ok(value.clone()),
        Value::Tensor(_) => {
            let array = eval.array(value)?;
            Ok(Value::Tensor(eval.store.store(&array)))
        }
        other => Ok(other.clone()),
    }
}

fn extents(eval: &Evaluator, values: Vec<Value>) -> Eval<Vec<i128>> {
    let values = match values.as_slice() {
        [Value::Tuple(items)] => items.clone(),
        _ => values,
    };
    values.iter().map(|value| eval.int(value)).collect()
}

fn reshape(eval: &mut Evaluator, value: &Value, shape: &[i128], strict: bool) -> Eval<Value> {
    match value {
        Value::Tensor(tensor) => match views::reshape(&tensor.layout, shape)? {
            Some(layout) => eval.view(value, |_| Ok(layout)),
            None if strict => {
                Err(fault!("view needs contiguous elements; use .contiguous() or .reshape(...)"))
            }
            None => {
                let dense = contiguous(eval, value, true)?;
                reshape(eval, &dense, shape, true)
            }
        },
        other => {
            let array = eval.array(other)?;
            let layout = views::reshape(&Layout::contiguous(&array.shape), shape)?;
            let shape = layout.map_or_else(Vec::new, |layout| layout.shape);
            Ok(Value::Array(Arc::new(Array { shape, ..(*array).clone() })))
        }
    }
}

/// The same bytes as elements of another type of the same size.
fn bitcast(eval: &mut Evaluator, value: &Value, dtype: DType) -> Eval<Value> {
    let array = eval.array(value)?;
    if array.dtype.bytes() != dtype.bytes() {
        return Err(fault!(
            "{} elements cannot be viewed as {dtype}: their sizes differ",
            array.dtype
        ));
    }
    let bytes = array.to_bytes();
    Ok(Value::Tensor(eval.store.add(dtype, &array.shape, bytes, true)))
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
