//! Ranges whose bounds are known when the kernel is compiled.

use super::value::{Const, RangeValue, Value};

/// Copies of an unrolled body at most.
pub(super) const MAX_UNROLL: i128 = 65_536;

/// The indices of a `range` of Python, where they are known and not too many.
pub(super) fn python_range(range: &RangeValue) -> Option<Vec<Value>> {
    let bound = |value: &Value| match value {
        Value::Const(Const::Int(value)) => Some(*value),
        Value::Const(Const::Bool(value)) => Some(i128::from(*value)),
        _ => None,
    };
    let (start, end, step) = (bound(&range.start)?, bound(&range.end)?, bound(&range.step)?);
    let count = if step == 0 { return None } else { iterations(start, end, step) };
    (count <= MAX_UNROLL).then(|| (0..count).map(|at| Value::int(start + at * step)).collect())
}

/// How often a Python range runs.
pub(super) fn iterations(start: i128, end: i128, step: i128) -> i128 {
    let span = if step > 0 { end - start } else { start - end };
    let step = step.abs();
    if span <= 0 { 0 } else { (span + step - 1) / step }
}
