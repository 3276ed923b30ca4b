//! Numbers that are computed one by one, of one tensor or of several that broadcast.

use ndarray::{ArrayD, IxDyn, Zip};

use super::{Data, of_value};
use crate::hir::{BinaryOp, CompareOp, Name, UnaryOp};
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::value::dtype::{is_float, is_integer};
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// A function of one number, by its name.
type OfOne = (&'static str, fn(f64) -> f64);

/// Functions that keep the type, or make floats of integers, as what was worked out without numbers says.
const OF_ONE: &[OfOne] = &[
    ("abs", f64::abs),
    ("absolute", f64::abs),
    ("acos", f64::acos),
    ("acosh", f64::acosh),
    ("asin", f64::asin),
    ("asinh", f64::asinh),
    ("atan", f64::atan),
    ("atanh", f64::atanh),
    ("ceil", f64::ceil),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("deg2rad", f64::to_radians),
    ("erfc", libm::erfc),
    ("erfinv", inverse_erf),
    ("exp", f64::exp),
    ("exp2", f64::exp2),
    ("expit", sigmoid),
    ("expm1", f64::exp_m1),
    ("floor", f64::floor),
    ("frac", f64::fract),
    ("lgamma", libm::lgamma),
    ("log", f64::ln),
    ("log10", f64::log10),
    ("log1p", f64::ln_1p),
    ("log2", f64::log2),
    ("logsigmoid", |number| number.min(0.0) - (-number.abs()).exp().ln_1p()),
    ("neg", |number| -number),
    ("negative", |number| -number),
    ("positive", |number| number),
    ("rad2deg", f64::to_degrees),
    ("reciprocal", f64::recip),
    ("relu", |number| greater(number, 0.0)),
    ("relu6", |number| number.clamp(0.0, 6.0)),
    ("round", f64::round_ties_even),
    ("rsqrt", |number| number.sqrt().recip()),
    ("sigmoid", sigmoid),
    ("sgn", sign),
    ("sign", sign),
    ("sin", f64::sin),
    ("sinc", |number| match number * std::f64::consts::PI {
        0.0 => 1.0,
        angle => angle.sin() / angle,
    }),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("square", |number| number * number),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
    ("trunc", f64::trunc),
];

pub(super) fn sigmoid(number: f64) -> f64 {
    (1.0 + (-number).exp()).recip()
}

/// The greater of two numbers; none if one is none.
pub(super) fn greater(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The lesser of two numbers; none if one is none.
pub(super) fn lesser(a: f64, b: f64) -> f64 {
    -greater(-a, -b)
}

/// The inverse of the error function: an approximation (S. Winitzki, 2008), and steps of Newton's.
fn inverse_erf(number: f64) -> f64 {
    if number.abs() >= 1.0 {
        return if number.abs() == 1.0 { number * f64::INFINITY } else { f64::NAN };
    }
    const A: f64 = 0.147;
    let log = (-number * number).ln_1p();
    let half = 2.0 / (std::f64::consts::PI * A) + log / 2.0;
    // Near 0 rounding may leave less than nothing.
    let first = ((half * half - log / A).sqrt() - half).max(0.0).sqrt().copysign(number);
    (0..4).fold(first, |x, _| {
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp();
        x - (libm::erf(x) - number) / slope
    })
}

fn sign(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number.signum() }
}

/// Functions that give truth values.
const TRUTHS: &[OfOne] = &[
    ("isfinite", |number| f64::from(number.is_finite())),
    ("isinf", |number| f64::from(number.is_infinite())),
    ("isnan", |number| f64::from(number.is_nan())),
    ("isneginf", |number| f64::from(number == f64::NEG_INFINITY)),
    ("isposinf", |number| f64::from(number == f64::INFINITY)),
    ("logical_not", |number| f64::from(number == 0.0)),
];

/// Functions that give the numbers that they are given, perhaps of another type.
const SAME: &[&str] = &[
    "bfloat16",
    "bool",
    "byte",
    "char",
    "clone",
    "contiguous",
    "cpu",
    "cuda",
    "detach",
    "double",
    "float",
    "half",
    "int",
    "long",
    "short",
    "to",
    "type",
    "type_as",
];

/// A function of two numbers; no number where it has none, or it is not known which.
type OfTwo = fn(f64, f64) -> Option<f64>;

/// Functions and methods that are operators or comparisons, by their names.
fn of_two(name: &str) -> Option<(OfTwo, bool)> {
    let arithmetic = |op| Some((of_operator(op)?, false));
    let truth = |op| Some((of_comparison(op)?, true));
    match name {
        "add" => arithmetic(BinaryOp::Add),
        "sub" | "subtract" => arithmetic(BinaryOp::Sub),
        "mul" | "multiply" => arithmetic(BinaryOp::Mul),
        "div" | "divide" | "true_divide" => arithmetic(BinaryOp::Div),
        "floor_divide" => arithmetic(BinaryOp::FloorDiv),
        "remainder" => arithmetic(BinaryOp::Mod),
        "pow" => arithmetic(BinaryOp::Pow),
        "bitwise_and" => arithmetic(BinaryOp::And),
        "bitwise_or" => arithmetic(BinaryOp::Or),
        "bitwise_xor" => arithmetic(BinaryOp::Xor),
        "atan2" | "arctan2" => Some((|a, b| Some(a.atan2(b)), false)),
        "copysign" => Some((|a, b| Some(a.copysign(b)), false)),
        "fmod" => Some((|a, b| (b != 0.0).then(|| a % b), false)),
        "float_power" => arithmetic(BinaryOp::Pow),
        "gcd" => Some((divisor, false)),
        "heaviside" => Some((|a, b| Some(if a == 0.0 { b } else { f64::from(a > 0.0) }), false)),
        "ldexp" => Some((|a, b| Some(a * b.exp2()), false)),
        "xlogy" => Some((|a, b| Some(if a == 0.0 { 0.0 } else { a * b.ln() }), false)),
        "hypot" => Some((|a, b| Some(a.hypot(b)), false)),
        "logaddexp" => Some((|a, b| Some(super::layers::log_sum(&[a, b])), false)),
        "maximum" => Some((|a, b| Some(greater(a, b)), false)),
        "minimum" => Some((|a, b| Some(lesser(a, b)), false)),
        "fmax" => Some((|a, b| Some(a.max(b)), false)),
        "fmin" => Some((|a, b| Some(a.min(b)), false)),
        "eq" => truth(CompareOp::Eq),
        "ne" | "not_equal" => truth(CompareOp::Ne),
        "lt" | "less" => truth(CompareOp::Lt),
        "le" | "less_equal" => truth(CompareOp::Le),
        "gt" | "greater" => truth(CompareOp::Gt),
        "ge" | "greater_equal" => truth(CompareOp::Ge),
        "logical_and" => Some((|a, b| Some(f64::from(a != 0.0 && b != 0.0)), true)),
        "logical_or" => Some((|a, b| Some(f64::from(a != 0.0 || b != 0.0)), true)),
        "logical_xor" => Some((|a, b| Some(f64::from((a != 0.0) != (b != 0.0))), true)),
        _ => None,
    }
}

/// Whether a function gives the numbers that it is given.
pub(super) fn keeps(name: &str) -> bool {
    SAME.contains(&name)
}

/// Whether a function computes each number by itself, or of those at its place in several tensors.
pub(super) fn is_of_each(name: &str) -> bool {
    OF_ONE.iter().any(|(known, _)| *known == name)
        || of_two(name).is_some_and(|(_, gives_truths)| !gives_truths)
        || matches!(
            name,
            "addcdiv"
                | "addcmul"
                | "clamp"
                | "clamp_max"
                | "clamp_min"
                | "clip"
                | "lerp"
                | "logit"
                | "nan_to_num"
                | "max"
                | "min"
        )
}

/// The greatest common divisor of whole numbers.
fn divisor(a: f64, b: f64) -> Option<f64> {
    (a.fract() == 0.0 && b.fract() == 0.0).then_some(())?;
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0.0 {
        (a, b) = (b, a % b);
    }
    Some(a)
}

fn of_operator(op: BinaryOp) -> Option<OfTwo> {
    fn whole(a: f64, b: f64, of: impl Fn(i64, i64) -> Option<i64>) -> Option<f64> {
        let is_whole = |number: f64| number.fract() == 0.0 && number.abs() <= super::MAX_EXACT;
        (is_whole(a) && is_whole(b)).then(|| of(a as i64, b as i64))?.map(|number| number as f64)
    }
    Some(match op {
        BinaryOp::Add => |a, b| Some(a + b),
        BinaryOp::Sub => |a, b| Some(a - b),
        BinaryOp::Mul => |a, b| Some(a * b),
        BinaryOp::Div => |a, b| Some(a / b),
        BinaryOp::FloorDiv => |a, b| (b != 0.0).then(|| (a / b).floor()),
        BinaryOp::Mod => |a, b| (b != 0.0).then(|| a - (a / b).floor() * b),
        BinaryOp::Pow => |a, b| Some(a.powf(b)),
        BinaryOp::And => |a, b| whole(a, b, |a, b| Some(a & b)),
        BinaryOp::Or => |a, b| whole(a, b, |a, b| Some(a | b)),
        BinaryOp::Xor => |a, b| whole(a, b, |a, b| Some(a ^ b)),
        BinaryOp::Shl => {
            |a, b| whole(a, b, |a, b| (0..53).contains(&b).then(|| a.checked_mul(1 << b))?)
        }
        BinaryOp::Shr => |a, b| whole(a, b, |a, b| (0..63).contains(&b).then(|| a >> b)),
        BinaryOp::MatMul => return None,
    })
}

fn of_comparison(op: CompareOp) -> Option<OfTwo> {
    Some(match op {
        CompareOp::Eq => |a, b| Some(f64::from(a == b)),
        CompareOp::Ne => |a, b| Some(f64::from(a != b)),
        CompareOp::Lt => |a, b| Some(f64::from(a < b)),
        CompareOp::Le => |a, b| Some(f64::from(a <= b)),
        CompareOp::Gt => |a, b| Some(f64::from(a > b)),
        CompareOp::Ge => |a, b| Some(f64::from(a >= b)),
        CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => return None,
    })
}

/// The shape that two shapes broadcast to.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut shape = long.to_vec();
    let skipped = long.len() - short.len();
    for (size, other) in shape[skipped..].iter_mut().zip(short) {
        match (*size, *other) {
            (1, other) => *size = other,
            (_, 1) => {}
            (size, other) if size == other => {}
            _ => return None,
        }
    }
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    (count <= super::MAX_COMPUTED).then_some(shape)
}

/// What a function makes of each two numbers.
pub(super) fn zipped(
    a: &ArrayD<f64>,
    b: &ArrayD<f64>,
    of: impl Fn(f64, f64) -> Option<f64>,
) -> Option<ArrayD<f64>> {
    let shape = IxDyn(&broadcast(a.shape(), b.shape())?);
    let (a, b) = (a.broadcast(shape.clone())?, b.broadcast(shape)?);
    let mut all_known = true;
    let made = Zip::from(&a).and(&b).map_collect(|a, b| {
        let number = of(*a, *b);
        all_known &= number.is_some();
        number.unwrap_or_default()
    });
    all_known.then_some(made)
}

/// What `left op right` holds, where one of them is a tensor.
pub(crate) fn binary(op: BinaryOp, left: &Value, right: &Value) -> Option<Data> {
    let (a, b) = of_both(left, right)?;
    match op {
        BinaryOp::MatMul => super::products::product(&a, &b),
        op => of_numbers(of_operator(op)?, &a, &b),
    }
}

/// What a comparison holds, where one side is a tensor.
pub(crate) fn compared(op: CompareOp, left: &Value, right: &Value) -> Option<Data> {
    let (a, b) = of_both(left, right)?;
    let numbers = zipped(&a.numbers, &b.numbers, of_comparison(op)?)?;
    Some(Data::new("i1", numbers))
}

/// What `op operand` holds.
pub(crate) fn unary(op: UnaryOp, operand: &Value) -> Option<Data> {
    let Value::Tensor(tensor) = operand else { return None };
    let data = super::of(tensor)?;
    match op {
        UnaryOp::Minus => Some(data.with(data.numbers.mapv(|number| -number))),
        UnaryOp::Invert if &*data.dtype == "i1" => {
            Some(data.with(data.numbers.mapv(|truth| 1.0 - truth)))
        }
        UnaryOp::Invert if is_integer(&data.dtype) && data.dtype.starts_with('i') => {
            Some(data.with(data.numbers.mapv(|number| -1.0 - number)))
        }
        _ => None,
    }
}

fn of_both(left: &Value, right: &Value) -> Option<(Data, Data)> {
    let has_tensor =
        matches!(left.plain(), Value::Tensor(_)) || matches!(right.plain(), Value::Tensor(_));
    has_tensor.then(|| of_value(left).zip(of_value(right)))?
}

fn of_numbers(of: OfTwo, a: &Data, b: &Data) -> Option<Data> {
    // The type that was worked out without numbers counts; this is near it.
    let dtype = if is_float(&b.dtype) || &*a.dtype == "i1" { &b.dtype } else { &a.dtype };
    Some(Data { dtype: dtype.clone(), numbers: zipped(&a.numbers, &b.numbers, of)? })
}

/// What a function makes of each number of a tensor, and of those of other arguments.
pub(super) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    if SAME.contains(&name) {
        return super::of(tensor);
    }
    let of_one = |table: &[OfOne]| {
        table.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
    };
    if let Some(function) = of_one(OF_ONE) {
        let data = super::of(tensor)?;
        return Some(data.with(data.numbers.mapv(function)));
    }
    if let Some(function) = of_one(TRUTHS) {
        return Some(Data::new("i1", super::of(tensor)?.numbers.mapv(function)));
    }
    if let Some((function, gives_truths)) = of_two(name) {
        return two(name, tensor, args, function, gives_truths);
    }
    match name {
        "lerp" => {
            let (end, weight) = (of_value(args.get(0, "end")?)?, of_value(args.get(1, "weight")?)?);
            let start = super::of(tensor)?;
            let way = zipped(&end.numbers, &start.numbers, |end, start| Some(end - start))?;
            let way = zipped(&way, &weight.numbers, |way, weight| Some(way * weight))?;
            Some(start.with(zipped(&start.numbers, &way, |start, way| Some(start + way))?))
        }
        "addcmul" | "addcdiv" => {
            let (a, b) = (of_value(args.get(0, "tensor1")?)?, of_value(args.get(1, "tensor2")?)?);
            let value =
                args.keyword("value").map_or(Some(1.0), |value| of_value(value)?.number())?;
            let function: OfTwo = match name {
                "addcmul" => |a, b| Some(a * b),
                _ => |a, b| Some(a / b),
            };
            let (data, made) = (super::of(tensor)?, zipped(&a.numbers, &b.numbers, function)?);
            let added = |all: f64, made: f64| Some(all + value * made);
            Some(data.with(zipped(&data.numbers, &made, added)?))
        }
        "clamp" | "clip" | "clamp_min" | "clamp_max" => clamped(name, tensor, args),
        "isclose" => near(tensor, args),
        "logit" => {
            let eps = args.get(0, "eps").filter(|eps| **eps != Value::None);
            let eps = eps.map_or(Some(0.0), as_float)?;
            let data = super::of(tensor)?;
            let chance = |number: f64| lesser(greater(number, eps), 1.0 - eps);
            let logit = |number: f64| chance(number).ln() - (-chance(number)).ln_1p();
            Some(data.with(data.numbers.mapv(logit)))
        }
        "nan_to_num" => finite(tensor, args),
        "prelu" => {
            let (data, slopes) = (super::of(tensor)?, of_value(args.get(0, "weight")?)?);
            let slope = match slopes.numbers.len() {
                1 => slopes.numbers.first().copied()?,
                _ => return None,
            };
            Some(data.with(data.numbers.mapv(|x| if x >= 0.0 { x } else { slope * x })))
        }
        "masked_fill" => {
            let (mask, fill) = (of_value(args.get(0, "mask")?)?, of_value(args.get(1, "value")?)?);
            chosen(&mask, &fill, &super::of(tensor)?)
        }
        _ => None,
    }
}

/// What a function of two numbers makes where the first is none of a tensor: `torch.pow(2, x)`.
pub(super) fn of_number(name: &str, args: &Args<'_>) -> Option<Data> {
    let [number, tensor @ Value::Tensor(_)] = args.positional()[..] else { return None };
    let (function, gives_truths) = of_two(name).filter(|_| args.keywords().is_empty())?;
    let (a, b) = (of_value(number)?, of_value(tensor)?);
    let made = of_numbers(function, &a, &b)?;
    Some(if gives_truths { Data::new("i1", made.numbers) } else { made })
}

fn two(
    name: &str,
    tensor: &Tensor,
    args: &Args<'_>,
    function: OfTwo,
    gives_truths: bool,
) -> Option<Data> {
    let parameter = if name == "pow" { "exponent" } else { "other" };
    let (a, mut b) = (super::of(tensor)?, of_value(args.get(0, parameter)?)?);
    if let (Some(scale), "add" | "sub" | "subtract") = (args.keyword("alpha"), name) {
        let scale = as_float(scale)?;
        b.numbers.mapv_inplace(|number| scale * number);
    }
    let function: OfTwo = match args.keyword("rounding_mode") {
        None | Some(Value::None) => function,
        Some(Value::Str(mode)) if &**mode == "floor" => of_operator(BinaryOp::FloorDiv)?,
        Some(Value::Str(mode)) if &**mode == "trunc" => |a, b| (b != 0.0).then(|| (a / b).trunc()),
        Some(_) => return None,
    };
    const KNOWN: &[&str] = &["alpha", "exponent", "other", "rounding_mode"];
    let is_known = |name: &Option<Name>| name.as_deref().is_none_or(|name| KNOWN.contains(&name));
    if !args.keywords().iter().all(|(name, _)| is_known(name)) {
        return None;
    }
    match gives_truths {
        true => Some(Data::new("i1", zipped(&a.numbers, &b.numbers, function)?)),
        false => of_numbers(function, &a, &b),
    }
}

fn clamped(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let bound = |at: usize, name: &str| match args.get(at, name) {
        None | Some(Value::None) => Some(None),
        Some(bound) => of_value(bound).map(Some),
    };
    let (least, most) = match name {
        "clamp_min" => (bound(0, "min")?, None),
        "clamp_max" => (None, bound(0, "max")?),
        _ => (bound(0, "min")?, bound(1, "max")?),
    };
    let mut data = super::of(tensor)?;
    if let Some(least) = least {
        data.numbers = zipped(&data.numbers, &least.numbers, |a, b| Some(greater(a, b)))?;
    }
    if let Some(most) = most {
        data.numbers = zipped(&data.numbers, &most.numbers, |a, b| Some(lesser(a, b)))?;
    }
    Some(data)
}

/// `torch.isclose`.
fn near(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let told = |at: usize, name: &str, default| args.get(at, name).map_or(Some(default), as_float);
    let (rtol, atol) = (told(1, "rtol", 1e-5)?, told(2, "atol", 1e-8)?);
    let equal_nan = args.get(3, "equal_nan").map_or(Some(false), truth)?;
    let (a, b) = (super::of(tensor)?, of_value(args.get(0, "other")?)?);
    let is_near = |a: f64, b: f64| {
        let is_within = b.is_finite() && (a - b).abs() <= atol + rtol * b.abs();
        Some(f64::from(a == b || is_within || (equal_nan && a.is_nan() && b.is_nan())))
    };
    Some(Data::new("i1", zipped(&a.numbers, &b.numbers, is_near)?))
}

/// `torch.nan_to_num`: the largest numbers of the type for infinities, unless others are told.
fn finite(tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    let data = super::of(tensor)?;
    let most = match &*data.dtype {
        "fp16" => 65504.0,
        "bf16" => f64::from(f32::from_bits(0x7f7f_0000)),
        "fp32" => f64::from(f32::MAX),
        "fp64" => f64::MAX,
        _ => return None,
    };
    let told = |at: usize, name: &str, default: f64| match args.get(at, name) {
        None | Some(Value::None) => Some(default),
        Some(told) => as_float(told),
    };
    let none = told(0, "nan", 0.0)?;
    let (above, below) = (told(1, "posinf", most)?, told(2, "neginf", -most)?);
    Some(data.with(data.numbers.mapv(|number| match number {
        number if number.is_nan() => none,
        f64::INFINITY => above,
        f64::NEG_INFINITY => below,
        number => number,
    })))
}

/// What `torch.where` takes of two.
pub(super) fn chosen(condition: &Data, on_true: &Data, on_false: &Data) -> Option<Data> {
    let shape = broadcast(on_true.numbers.shape(), on_false.numbers.shape())?;
    let shape = IxDyn(&broadcast(condition.numbers.shape(), &shape)?);
    let condition = condition.numbers.broadcast(shape.clone())?;
    let (a, b) = (on_true.numbers.broadcast(shape.clone())?, on_false.numbers.broadcast(shape)?);
    let numbers = Zip::from(&condition)
        .and(&a)
        .and(&b)
        .map_collect(|condition, a, b| if *condition != 0.0 { *a } else { *b });
    let dtype = if is_float(&on_true.dtype) { &on_true.dtype } else { &on_false.dtype };
    Some(Data { dtype: dtype.clone(), numbers })
}
