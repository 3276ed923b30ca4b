//! Functions of Python's `math`.

use crate::hir::BinaryOp;
use crate::host::code::arguments::Args;
use crate::host::library::folded;
use crate::host::value::Value;
use crate::host::value::number::as_number;

/// A function of `math`.
pub(crate) fn math_call(name: &str, args: &Args<'_>) -> Value {
    if name == "prod" {
        let start = args.keyword("start").cloned().unwrap_or(Value::Int(Some(1)));
        return folded(BinaryOp::Mul, args.get(0, "iterable"), start);
    }
    if let Some(integer) = of_integers(name, args) {
        return integer;
    }
    let Some(number) = args.get(0, "x").and_then(as_number) else { return Value::Unknown };
    let number = number.float();
    let integer = |value: Option<f64>| Value::Int(value.map(|value| value as i128));
    let second = || args.get(1, "y").and_then(as_number).and_then(|second| second.float());
    match name {
        "ceil" => integer(number.map(f64::ceil)),
        "floor" => integer(number.map(f64::floor)),
        "trunc" => integer(number.map(f64::trunc)),
        "isfinite" => Value::Bool(number.map(f64::is_finite)),
        "isinf" => Value::Bool(number.map(f64::is_infinite)),
        "isnan" => Value::Bool(number.map(f64::is_nan)),
        "pow" => Value::Float(number.zip(second()).map(|(base, exponent)| base.powf(exponent))),
        "copysign" => {
            Value::Float(number.zip(second()).map(|(number, sign)| number.copysign(sign)))
        }
        "log" => match (args.get(1, "base"), number) {
            (None, number) => Value::Float(number.map(f64::ln)),
            // Python divides the natural logarithms.
            (Some(base), number) => {
                let base = as_number(base).and_then(|base| base.float());
                Value::Float(number.zip(base).map(|(number, base)| number.ln() / base.ln()))
            }
        },
        _ => match FLOATS.iter().find(|(known, _)| *known == name) {
            Some((_, function)) => Value::Float(number.map(function)),
            None => Value::Unknown,
        },
    }
}

/// A function of `math` of one number that gives a float, by its name.
type OfFloat = (&'static str, fn(f64) -> f64);

const FLOATS: &[OfFloat] = &[
    ("atan", f64::atan),
    ("cos", f64::cos),
    ("degrees", f64::to_degrees),
    ("exp", f64::exp),
    ("expm1", f64::exp_m1),
    ("fabs", f64::abs),
    ("log10", f64::log10),
    ("log1p", f64::ln_1p),
    ("log2", f64::log2),
    ("radians", f64::to_radians),
    ("sin", f64::sin),
    ("sqrt", f64::sqrt),
    ("tanh", f64::tanh),
];

/// Functions of `math` of integers that give integers; `None` for other functions.
fn of_integers(name: &str, args: &Args<'_>) -> Option<Value> {
    let given = || {
        args.positional().into_iter().map(|value| match value {
            Value::Int(number) => *number,
            _ => None,
        })
    };
    let all = |of: fn(i128, i128) -> Option<i128>, start: i128| {
        given().try_fold(start, |all, number| of(all, number?))
    };
    Some(Value::Int(match name {
        "gcd" => all(|a, b| Some(gcd(a, b)), 0),
        "lcm" => all(
            |a, b| if b == 0 { Some(0) } else { (a / gcd(a, b)).checked_mul(b).map(i128::abs) },
            1,
        ),
        "isqrt" => given().next().flatten().filter(|number| *number >= 0).map(i128::isqrt),
        "factorial" => {
            let number = given().next().flatten().filter(|number| (0..30).contains(number));
            number.map(|number| (1..=number).product())
        }
        _ => return None,
    }))
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}
