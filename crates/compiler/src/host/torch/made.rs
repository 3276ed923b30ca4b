//! What tensors hold that constructors make, where they write integers or numbers of either sign.

use crate::host::code::arguments::Args;
use crate::host::torch::drawn;
use crate::host::value::Value;
use crate::host::value::contents::{Contents, MAX_LISTED};

/// What a tensor holds that `torch.NAME(...)` makes, or a tensor's method of that name.
pub(crate) fn by_torch(name: &str, args: &Args<'_>) -> Contents {
    let positional = args.positional();
    let found = match name {
        "arange" => progression(&args.bounds()),
        "randint" => {
            // The size comes last.
            let bounds: Vec<_> = positional.iter().filter_map(|value| integer(value)).collect();
            let named = |name| args.keyword(name).and_then(integer);
            random(
                &[named("low"), named("high")]
                    .into_iter()
                    .flatten()
                    .chain(bounds)
                    .collect::<Vec<_>>(),
            )
        }
        "randperm" => positional
            .first()
            .and_then(|count| integer(count))
            .filter(|count| *count > 0)
            .map(|count| Contents::Distinct { lo: 0, hi: count - 1 }),
        "tensor" | "as_tensor" => args.get(0, "data").and_then(listed),
        _ => filled(name, args.get(1, "fill_value")),
    };
    let of_drawn = || {
        let (tensor, rest) = args.of_tensor()?;
        drawn::integers(name, tensor, &rest)
    };
    found.or_else(of_drawn).unwrap_or_default()
}

/// What a tensor holds that a scenario's constructor makes: its sizes come last.
pub(crate) fn by_scenario(name: &str, args: &Args<'_>) -> Contents {
    let positional = args.positional();
    let found = match name {
        "randint" => {
            let bounds = positional.iter().take(2).filter_map(|value| integer(value));
            random(&bounds.collect::<Vec<_>>())
        }
        "full" => filled(name, positional.last().copied()),
        "rand" | "load" => None,
        _ => return by_torch(name, args),
    };
    found.unwrap_or_default()
}

/// What constructors write throughout: `empty_like` nothing, `new_zeros` zeros.
fn filled(name: &str, fill: Option<&Value>) -> Option<Contents> {
    let plain = name.strip_prefix("new_").unwrap_or(name);
    let plain = plain.strip_suffix("_like").unwrap_or(plain);
    Some(match plain {
        "empty" | "empty_strided" => Contents::Uninitialized,
        "randn" => Contents::Signed,
        "zeros" => Contents::constant(0),
        "ones" => Contents::constant(1),
        "full" => Contents::constant(match fill? {
            Value::Bool(truth) => i128::from((*truth)?),
            fill => integer(fill)?,
        }),
        _ => return None,
    })
}

fn progression(bounds: &[&Value]) -> Option<Contents> {
    let bounds = bounds.iter().map(|value| integer(value)).collect::<Option<Vec<_>>>()?;
    let (start, step) = match bounds.as_slice() {
        [_] => (0, 1),
        [start, _] => (*start, 1),
        [start, _, step] => (*start, *step),
        _ => return None,
    };
    Some(Contents::Progression { start, step })
}

/// Any integer below the last bound, from the first on or from 0.
fn random(bounds: &[i128]) -> Option<Contents> {
    let (lo, end) = match bounds {
        [end] => (0, *end),
        [start, end] => (*start, *end),
        _ => return None,
    };
    (lo < end).then_some(Contents::Random { lo, hi: end - 1 })
}

/// The integers of nested lists, in order.
fn listed(data: &Value) -> Option<Contents> {
    let mut numbers = Vec::new();
    flatten(data, &mut numbers)?;
    Some(Contents::Listed(numbers.into()))
}

fn flatten(data: &Value, numbers: &mut Vec<i128>) -> Option<()> {
    match data.elements() {
        Some(items) => items.iter().try_for_each(|item| flatten(item, numbers)),
        None if numbers.len() < MAX_LISTED => {
            numbers.push(integer(data)?);
            Some(())
        }
        None => None,
    }
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(value) => *value,
        _ => None,
    }
}
