//! Strategies of Hypothesis: the values that tests are run with, as lists of some of them.

use crate::host::code::arguments::Args;
use crate::host::value::Value;

/// Some of the values that `hypothesis.strategies.NAME(args)` draws; `None` where that is not followed.
pub(crate) fn drawn_from(name: &str, args: &Args<'_>) -> Option<Vec<Value>> {
    Some(match name {
        "booleans" => [false, true].map(|value| Value::Bool(Some(value))).into(),
        "integers" => {
            let bounds = [args.get(0, "min_value")?, args.get(1, "max_value")?];
            bounds.into_iter().cloned().collect()
        }
        "just" => vec![args.get(0, "value")?.clone()],
        "none" => vec![Value::None],
        "sampled_from" => args.get(0, "elements")?.elements()?,
        _ => return None,
    })
}
