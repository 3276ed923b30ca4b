//! Functions of Python that apply a function to elements: `sorted` by a key, `filter` and `reduce`.

use super::arguments::Args;
use super::value::Value;
use super::{Host, operators};
use crate::hir::CompareOp;

impl Host<'_> {
    /// Elements in the order of what a function makes of them, if that is known.
    pub(super) fn sorted(&mut self, items: &Value, key: &Value, reverse: Option<&Value>) -> Value {
        let reverse = reverse.map_or(Some(false), operators::truth);
        let (Some(items), Some(reverse)) = (items.elements(), reverse) else {
            return Value::Unknown;
        };
        let mut sorted: Vec<(Value, Value)> = Vec::new();
        for item in items {
            let key = self.call_value(key, &[(None, item.clone())]);
            let mut at = sorted.len();
            while at > 0 {
                let (this, before) = (&key, &sorted[at - 1].0);
                let (less, than) = if reverse { (before, this) } else { (this, before) };
                match operators::compare(CompareOp::Lt, less, than) {
                    Some(true) => at -= 1,
                    Some(false) => break,
                    None => return Value::Unknown,
                }
            }
            sorted.insert(at, (key, item));
        }
        Value::List(sorted.into_iter().map(|(_, item)| item).collect())
    }

    /// What `functools.reduce(function, items, initial)` gives.
    pub(super) fn reduced(&mut self, args: &Args<'_>) -> Option<Value> {
        let (function, items) = (args.get(0, "function")?, args.get(1, "iterable")?.elements()?);
        let mut items = items.into_iter();
        let first = args.get(2, "initial").cloned().or_else(|| items.next())?;
        Some(
            items.fold(first, |result, item| {
                self.call_value(function, &[(None, result), (None, item)])
            }),
        )
    }

    /// Elements that are not known to be filtered out.
    pub(super) fn filter(&mut self, function: &Value, items: &Value) -> Value {
        let Some(mut items) = items.elements() else { return Value::Unknown };
        items.retain(|item| {
            let kept = match function {
                Value::None => item.clone(),
                function => self.call_value(function, &[(None, item.clone())]),
            };
            let kept = operators::truth(&kept);
            if kept.is_none() {
                self.doubt.note_more();
            }
            kept != Some(false)
        });
        Value::List(items)
    }
}
