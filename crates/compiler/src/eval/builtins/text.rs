//! Methods of strings and integers at compile time.

use std::sync::Arc;

use super::super::call::Call;
use super::super::value::{Const, Value};
use super::super::{Eval, Evaluator, Stop};

impl Evaluator<'_> {
    /// A method of a compile-time string.
    pub(super) fn python_string(&mut self, call: &Call) -> Eval<Value> {
        let Some(text) = string(&call.nth(0)) else { return Ok(self.fresh_const()) };
        let given = call.nth(1);
        let argument = string(&given);
        let chars = |c: char| match &argument {
            Some(chars) => chars.contains(c),
            None => c.is_whitespace(),
        };
        let has_argument = argument.is_some() || given.is_none();
        if !has_argument {
            return Ok(self.fresh_const());
        }
        let other = argument.as_deref().unwrap_or_default();
        Ok(match call.builtin.name {
            "count" => Value::int(text.matches(other).count() as i128),
            "endswith" => Value::bool(text.ends_with(other)),
            "find" => {
                let found = text.find(other).map(|at| text[..at].chars().count() as i128);
                Value::int(found.unwrap_or(-1))
            }
            "isdigit" => Value::bool(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit())),
            "lower" => Value::str(text.to_lowercase()),
            "lstrip" => Value::str(text.trim_start_matches(chars)),
            "replace" => match string(&call.nth(2)) {
                Some(new) => Value::str(text.replace(other, &new)),
                None => return Err(Stop::Unknown),
            },
            "rstrip" => Value::str(text.trim_end_matches(chars)),
            "split" => {
                let parts: Vec<&str> = match &argument {
                    Some(separator) => text.split(&**separator).collect(),
                    None => text.split_whitespace().collect(),
                };
                Value::tuple(parts.into_iter().map(Value::str).collect())
            }
            "startswith" => Value::bool(text.starts_with(other)),
            "strip" => Value::str(text.trim_matches(chars)),
            "upper" => Value::str(text.to_uppercase()),
            _ => self.fresh_const(),
        })
    }

    /// `n.bit_length()` of a compile-time integer.
    pub(super) fn python_bit_length(&mut self, call: &Call) -> Eval<Value> {
        Ok(match call.nth(0) {
            Value::Const(Const::Int(value)) => {
                Value::int(i128::from(i128::BITS - value.unsigned_abs().leading_zeros()))
            }
            Value::Const(Const::Bool(value)) => Value::int(i128::from(value)),
            _ => self.fresh_const(),
        })
    }
}

fn string(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::Const(Const::Str(text)) => Some(text.clone()),
        _ => None,
    }
}

/// `text % value` for the conversions `%d`, `%s` and `%%`; `None` for others.
pub(in super::super) fn format_percent(text: &str, value: &str) -> Option<String> {
    let mut out = String::new();
    let mut value = Some(value);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next()? {
                'd' | 's' | 'i' => out.push_str(value.take()?),
                '%' => out.push('%'),
                _ => return None,
            },
            c => out.push(c),
        }
    }
    value.is_none().then_some(out)
}
