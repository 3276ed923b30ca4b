//! Methods that change lists and dictionaries.

use crate::hir::CompareOp;
use crate::hir::collections::CHANGING;
use crate::host::code::arguments::Args;
use crate::host::code::operators::{self, position};
use crate::host::library::sets;
use crate::host::value::{Dict, Value};

/// What a method makes of the collection it is called on, and what it returns; `None` for methods
/// that change nothing. What cannot be followed leaves nothing known of what it holds.
pub(crate) fn changed(receiver: &Value, name: &str, args: &Args<'_>) -> Option<(Value, Value)> {
    match receiver {
        Value::List(items) => changed_list(items, name, args),
        Value::Dict(entries) => changed_dict(entries, name, args),
        Value::Set(items) => sets::changed(items, name, args),
        Value::Collection if CHANGING.contains(&name) => Some((Value::Collection, Value::Unknown)),
        _ => None,
    }
}

fn changed_list(items: &[Value], name: &str, args: &Args<'_>) -> Option<(Value, Value)> {
    let mut items = items.to_vec();
    let mut result = Value::None;
    let followed = match (name, args.get(0, ""), args.get(1, "")) {
        ("append", Some(added), None) => {
            items.push(added.clone());
            true
        }
        ("extend", Some(added), None) => match added.elements() {
            Some(added) => {
                items.extend(added);
                true
            }
            None => false,
        },
        ("insert", Some(Value::Int(Some(at))), Some(added)) => {
            let length = items.len() as i128;
            let at = if *at < 0 { at + length } else { *at };
            items.insert(at.clamp(0, length) as usize, added.clone());
            true
        }
        ("pop", at, None) => {
            let at = match at {
                None => Some(-1),
                Some(Value::Int(at)) => *at,
                Some(_) => None,
            };
            let at = at.and_then(|at| position(items.len(), at));
            result = at.map_or(Value::Unknown, |at| items.remove(at));
            at.is_some()
        }
        ("popleft", None, None) => {
            let first = (!items.is_empty()).then(|| items.remove(0));
            let is_known = first.is_some();
            result = first.unwrap_or(Value::Unknown);
            is_known
        }
        ("appendleft", Some(added), None) => {
            items.insert(0, added.clone());
            true
        }
        ("remove", Some(wanted), None) => {
            let equal = |item: &Value| operators::compare(CompareOp::Eq, item, wanted);
            let known: Option<Vec<bool>> = items.iter().map(equal).collect();
            let at = known.and_then(|known| known.iter().position(|equal| *equal));
            at.map(|at| items.remove(at));
            at.is_some()
        }
        ("sort", None, None) if args.0.is_empty() => {
            let sorted = ordered(&items);
            let is_known = sorted.is_some();
            items = sorted.unwrap_or(items);
            is_known
        }
        ("reverse", None, None) => {
            items.reverse();
            true
        }
        ("clear", None, None) => {
            items.clear();
            true
        }
        (
            "append" | "appendleft" | "extend" | "extendleft" | "insert" | "popleft" | "remove"
            | "rotate" | "sort",
            ..,
        ) => false,
        _ => return None,
    };
    Some((if followed { Value::List(items) } else { Value::Collection }, result))
}

/// Elements in order, where all are compared.
fn ordered(items: &[Value]) -> Option<Vec<Value>> {
    let mut sorted: Vec<Value> = Vec::new();
    for item in items {
        let is_less = |other: &Value| operators::compare(CompareOp::Lt, item, other);
        let less: Option<Vec<bool>> = sorted.iter().map(is_less).collect();
        let at = less?.iter().position(|less| *less).unwrap_or(sorted.len());
        sorted.insert(at, item.clone());
    }
    Some(sorted)
}

type Entries = Vec<(Value, Value)>;

fn changed_dict(entries: &Dict, name: &str, args: &Args<'_>) -> Option<(Value, Value)> {
    let mut entries = entries.clone();
    let mut result = Value::None;
    let followed = match (name, args.get(0, "")) {
        ("update", added) => {
            let known = match added {
                None => Some(Entries::new()),
                Some(Value::Dict(added)) => Some(added.to_vec()),
                Some(_) => None,
            };
            let mut followed = known.is_some();
            let named = args
                .keywords()
                .into_iter()
                .filter_map(|(name, value)| Some((Value::Str(name?), value)));
            for (key, value) in known.unwrap_or_default().into_iter().chain(named) {
                followed &= set(&mut entries, key, value).is_some();
            }
            followed
        }
        ("setdefault", Some(key)) if is_key(key) => {
            result = operators::subscript(&Value::Dict(entries.clone()), key);
            if !entries.iter().any(|(known, _)| known == key) {
                result = args.get(1, "").cloned().unwrap_or(Value::None);
                entries.push((key.clone(), result.clone()));
            }
            true
        }
        ("pop", Some(key)) if is_key(key) => {
            let known = entries.iter().position(|(known, _)| known == key);
            result = match known {
                Some(at) => entries.remove(at).1,
                None => args.get(1, "").cloned().unwrap_or(Value::Unknown),
            };
            true
        }
        ("clear", None) => {
            entries.clear();
            true
        }
        ("move_to_end", Some(key)) if is_key(key) && args.0.len() == 1 => {
            let known = entries.iter().position(|(known, _)| known == key);
            let moved = known.map(|at| entries.remove(at));
            let is_known = moved.is_some();
            entries.extend(moved);
            is_known
        }
        ("popitem", None) => {
            let is_last = args.keyword("last").map_or(Some(true), operators::truth);
            let popped = match is_last {
                Some(true) => entries.pop(),
                Some(false) if !entries.is_empty() => Some(entries.remove(0)),
                _ => None,
            };
            let is_known = popped.is_some();
            result = popped.map_or(Value::Unknown, |(key, value)| Value::Tuple(vec![key, value]));
            is_known
        }
        ("setdefault" | "pop" | "popitem" | "clear" | "move_to_end", _) => {
            result = Value::Unknown;
            false
        }
        _ => return None,
    };
    Some((if followed { Value::Dict(entries) } else { Value::Collection }, result))
}

/// What a method gives that changes nothing of a dict; `None` for other methods.
pub(crate) fn told(receiver: &Value, name: &str, args: &Args<'_>) -> Option<Value> {
    let Value::Dict(entries) = receiver else { return None };
    Some(match name {
        "copy" => receiver.clone(),
        "get" => {
            let key = args.get(0, "").cloned().unwrap_or(Value::Unknown);
            let default = args.get(1, "").cloned().unwrap_or(Value::None);
            match operators::compare(CompareOp::In, &key, receiver) {
                Some(true) => operators::subscript(receiver, &key),
                Some(false) => default,
                None => Value::Unknown,
            }
        }
        "items" => {
            let pair =
                |(key, value): &(Value, Value)| Value::Tuple(vec![key.clone(), value.clone()]);
            Value::List(entries.iter().map(pair).collect())
        }
        "values" => Value::List(entries.iter().map(|(_, value)| value.clone()).collect()),
        "keys" => Value::List(entries.iter().map(|(key, _)| key.clone()).collect()),
        _ => return None,
    })
}

/// Binds a key in a dict; `None` where the key is not known, so that it may be any.
pub(crate) fn set(entries: &mut Entries, key: Value, value: Value) -> Option<()> {
    if !is_key(&key) {
        return None;
    }
    // Numbers of several types that are equal are one key.
    let is_number = |key: &Value| matches!(key, Value::Bool(_) | Value::Float(_) | Value::Int(_));
    let is_like = |known: &Value| {
        is_number(known)
            && is_number(&key)
            && std::mem::discriminant(known) != std::mem::discriminant(&key)
            && operators::compare(CompareOp::Eq, known, &key) != Some(false)
    };
    if entries.iter().any(|(known, _)| is_like(known)) {
        return None;
    }
    match entries.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => *known = value,
        None => entries.push((key, value)),
    }
    Some(())
}

/// Whether a value is known well enough to tell which entry of a dict it belongs to.
pub(crate) fn is_key(value: &Value) -> bool {
    match value {
        Value::Named(_) | Value::Global(_) | Value::Object(_) | Value::Address { .. } => true,
        Value::Tuple(items) => items.iter().all(is_key),
        value => value.to_const().is_some(),
    }
}
