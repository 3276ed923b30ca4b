//! Methods of integers, and formats, at compile time.

use super::super::call::Call;
use super::super::value::{Const, Value};
use super::super::{Eval, Evaluator};

impl Evaluator<'_> {
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
