//! What Python makes of what it goes over: `range`, `enumerate`, `zip`, and functions of `itertools`.

use crate::hir::{BinaryOp, CompareOp};
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::torch::data;
use crate::host::value::Value;

/// More elements than these are not listed.
const MAX_RANGE: i128 = 4096;

/// So many elements are listed of what never ends: what goes over it ends before, or goes over something else
/// beside it.
const MAX_ENDLESS: usize = 1024;

/// The numbers of `range(...)`, where they are not too many.
pub(crate) fn range(bounds: &[&Value]) -> Option<Vec<Value>> {
    let bound = |value: &Value| match value {
        Value::Int(value) => *value,
        Value::Tensor(tensor) => match data::item(tensor)? {
            Value::Int(value) => value,
            _ => None,
        },
        _ => None,
    };
    let (start, end, step) = match bounds {
        [end] => (0, bound(end)?, 1),
        [start, end] => (bound(start)?, bound(end)?, 1),
        [start, end, step] => (bound(start)?, bound(end)?, bound(step)?),
        _ => return None,
    };
    let length = end.checked_sub(start)?.checked_div(step)?;
    if length > MAX_RANGE {
        return None;
    }
    let mut items = Vec::new();
    let mut at = start;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        items.push(Value::Int(Some(at)));
        at = at.checked_add(step)?;
    }
    Some(items)
}

/// Pairs of numbers, from `start`, and elements.
pub(crate) fn enumerated(args: &Args<'_>) -> Option<Vec<Value>> {
    let first = match args.get(1, "start") {
        None => 0,
        Some(Value::Int(start)) => (*start)?,
        Some(_) => return None,
    };
    let items = args.get(0, "iterable")?.elements()?;
    let pair = |(at, item)| Value::Tuple(vec![Value::Int(Some(at)), item]);
    Some((first..).zip(items).map(pair).collect())
}

/// Tuples of the elements that stand at the same place, up to the end of the shortest.
pub(crate) fn zipped(lists: &[&Value]) -> Value {
    let each = |list: &&Value| list.elements().or_else(|| list.letters());
    let lists: Option<Vec<Vec<Value>>> = lists.iter().map(each).collect();
    let Some(lists) = lists else { return Value::Unknown };
    let length = lists.iter().map(Vec::len).min().unwrap_or_default();
    let tuple = |at: usize| Value::Tuple(lists.iter().map(|list| list[at].clone()).collect());
    Value::List((0..length).map(tuple).collect())
}

/// Tuples of the elements that stand at the same place, up to the end of the longest: `fillvalue` stands for
/// those that the others lack.
pub(crate) fn zipped_longest(args: &Args<'_>) -> Option<Vec<Value>> {
    let lists: Option<Vec<_>> = args.positional().into_iter().map(Value::elements).collect();
    let lists = lists?;
    let length = lists.iter().map(Vec::len).max()?;
    let fill = args.keyword("fillvalue").cloned().unwrap_or(Value::None);
    let at = |list: &Vec<Value>, at: usize| list.get(at).unwrap_or(&fill).clone();
    let tuple = |index| Value::Tuple(lists.iter().map(|list| at(list, index)).collect());
    Some((0..length).map(tuple).collect())
}

/// Each element but the last with the one that follows.
pub(crate) fn pairs(items: &Value) -> Option<Vec<Value>> {
    let items = items.elements()?;
    Some(items.windows(2).map(|pair| Value::Tuple(pair.to_vec())).collect())
}

/// The sums of the first elements, from the first alone or from `initial=` on.
pub(crate) fn accumulated(args: &Args<'_>) -> Option<Vec<Value>> {
    let mut items = args.get(0, "iterable")?.elements()?.into_iter();
    let first = match args.keyword("initial") {
        None | Some(Value::None) => items.next(),
        Some(initial) => Some(initial.clone()),
    };
    let Some(first) = first else { return Some(Vec::new()) };
    let mut sums = vec![first];
    for item in items {
        let sum = operators::binary(BinaryOp::Add, sums.last()?, &item);
        sums.push(sum);
    }
    Some(sums)
}

/// What `itertools.cycle(items)` gives, as far as anything goes over it.
pub(crate) fn cycled(args: &Args<'_>) -> Option<Vec<Value>> {
    let items = args.get(0, "iterable")?.elements()?;
    Some(items.into_iter().cycle().take(MAX_ENDLESS).collect())
}

/// What `itertools.count(start, step)` gives, as far as anything goes over it.
pub(crate) fn counted(args: &Args<'_>) -> Option<Vec<Value>> {
    let number = |at: usize, name: &str, default: i128| match args.get(at, name) {
        None => Some(default),
        Some(Value::Int(number)) => *number,
        Some(_) => None,
    };
    let (start, step) = (number(0, "start", 0)?, number(1, "step", 1)?);
    let numbers = std::iter::successors(Some(start), |number| number.checked_add(step));
    Some(numbers.take(MAX_ENDLESS).map(|number| Value::Int(Some(number))).collect())
}

/// What `itertools.islice(items, stop)` or `islice(items, start, stop)` gives.
pub(crate) fn first_of(args: &Args<'_>) -> Option<Vec<Value>> {
    let [items, bounds @ ..] = &args.positional()[..] else { return None };
    let bound = |value: &Value| match value {
        Value::Int(Some(bound)) => usize::try_from(*bound).ok(),
        Value::None => Some(usize::MAX),
        _ => None,
    };
    let (start, stop) = match bounds {
        [stop] => (0, bound(stop)?),
        [start, stop] => (bound(start)?, bound(stop)?),
        _ => return None,
    };
    Some(items.elements()?.into_iter().take(stop).skip(start).collect())
}

/// Where `bisect` puts a value among elements in order: before those that it equals, or after them.
pub(crate) fn place_in(args: &Args<'_>, before: bool) -> Option<i128> {
    let [items, value] = args.positional()[..] else { return None };
    if !args.keywords().is_empty() {
        return None;
    }
    let comes_first = |item: &Value| match before {
        true => operators::compare(CompareOp::Lt, item, value),
        false => operators::compare(CompareOp::Le, item, value),
    };
    let first: Option<Vec<bool>> = items.elements()?.iter().map(comes_first).collect();
    Some(first?.into_iter().take_while(|first| *first).count() as i128)
}

/// The rows of `itertools.product(...)`, where they are not too many.
pub(crate) fn product(args: &Args<'_>) -> Option<Vec<Value>> {
    let times = match args.keyword("repeat") {
        None => 1,
        Some(Value::Int(Some(times))) => usize::try_from(*times).ok()?,
        Some(_) => return None,
    };
    let factors = args.positional();
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for factor in std::iter::repeat_n(factors, times).flatten() {
        let items = factor.elements()?;
        if rows.len().checked_mul(items.len())? > MAX_RANGE as usize {
            return None;
        }
        rows = rows
            .iter()
            .flat_map(|row| {
                items.iter().map(move |item| row.iter().cloned().chain([item.clone()]).collect())
            })
            .collect();
    }
    Some(rows.into_iter().map(Value::Tuple).collect())
}
