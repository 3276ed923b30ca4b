//! Sets of Python: elements that are known, each once. Their order is not known where there are several.

use crate::hir::{BinaryOp, CompareOp};
use crate::host::code::arguments::Args;
use crate::host::code::operators::compare;
use crate::host::library::collections::is_key;
use crate::host::value::Value;

/// The set of these; `None` where not all are known well enough to tell them apart.
pub(crate) fn of(items: Vec<Value>) -> Option<Value> {
    let mut different: Vec<Value> = Vec::new();
    for item in items {
        add(&mut different, item)?;
    }
    Some(Value::Set(different))
}

fn add(items: &mut Vec<Value>, item: Value) -> Option<()> {
    if !is_key(&item) {
        return None;
    }
    if !has(items, &item)? {
        items.push(item);
    }
    Some(())
}

fn has(items: &[Value], item: &Value) -> Option<bool> {
    compare(CompareOp::In, item, &Value::List(items.to_vec()))
}

/// Those of `items` that `others` have, or have not.
fn kept(items: &[Value], others: &[Value], shared: bool) -> Option<Value> {
    let mut kept = Vec::new();
    for item in items {
        if has(others, item)? == shared {
            kept.push(item.clone());
        }
    }
    Some(Value::Set(kept))
}

/// `left op right` of two sets.
pub(crate) fn combined(op: BinaryOp, left: &[Value], right: &[Value]) -> Option<Value> {
    match op {
        BinaryOp::Or => of([left, right].concat()),
        BinaryOp::And => kept(left, right, true),
        BinaryOp::Sub => kept(left, right, false),
        _ => None,
    }
}

/// Whether all elements of one are in the other.
pub(crate) fn is_part(items: &[Value], of: &[Value]) -> Option<bool> {
    items.iter().try_fold(true, |all, item| Some(all && has(of, item)?))
}

/// What a method that changes nothing gives.
pub(crate) fn method(items: &[Value], name: &str, args: &Args<'_>) -> Option<Value> {
    if name == "copy" {
        return Some(Value::Set(items.to_vec()));
    }
    let [other] = args.positional()[..] else { return None };
    let other = members(other)?;
    let holds = |held: Option<bool>| Some(Value::Bool(Some(held?)));
    match name {
        "union" => combined(BinaryOp::Or, items, &other),
        "intersection" => combined(BinaryOp::And, items, &other),
        "difference" => combined(BinaryOp::Sub, items, &other),
        "issubset" => holds(is_part(items, &other)),
        "issuperset" => holds(is_part(&other, items)),
        _ => None,
    }
}

/// The elements of a set, or of what one is made of.
pub(crate) fn members(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Set(items) => Some(items.clone()),
        value => value.elements(),
    }
}

/// What a method makes of a set that it changes, and what it gives; `None` for others.
pub(crate) fn changed(items: &[Value], name: &str, args: &Args<'_>) -> Option<(Value, Value)> {
    let given = args.get(0, "");
    let mut result = Value::None;
    let changed = match (name, given) {
        ("add", Some(item)) => of([items, std::slice::from_ref(item)].concat()),
        ("discard" | "remove", Some(item)) if is_key(item) => {
            kept(items, std::slice::from_ref(item), false)
        }
        ("update", Some(others)) => {
            members(others).and_then(|others| of([items, &others].concat()))
        }
        ("clear", None) => Some(Value::Set(Vec::new())),
        ("add" | "discard" | "remove" | "update", _) => None,
        ("pop" | "difference_update" | "intersection_update", _) => {
            result = Value::Unknown;
            None
        }
        _ => return None,
    };
    Some((changed.unwrap_or(Value::Collection), result))
}
