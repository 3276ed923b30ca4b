//! Operators of host code.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::builtins::TORCH;
use crate::hir::{BinaryOp, CompareOp, UnaryOp};
use crate::host::code::signature;
use crate::host::library::environment::{is_command_line, is_environment, is_option};
use crate::host::library::sets;
use crate::host::objects::classes::same_class;
use crate::host::torch::misuse::{self, Misuse, is_whole};
use crate::host::torch::subscripts::{self, Part};
use crate::host::torch::views;
use crate::host::torch::{arrays, data, drawn, fits};
use crate::host::value::changes::is_collection;
use crate::host::value::contents::Contents;
use crate::host::value::dtype::{float_of, has_integer, is_integer, with_number};
use crate::host::value::number::{arithmetic, as_number};
use crate::host::value::{Callable, Dict, Tensor, Value};
use crate::project::{Resolution, compare_python};

/// Lists and strings are not grown beyond this.
const MAX_LENGTH: usize = 10_000;

/// Whether a value counts as true, if that is known.
pub(crate) fn truth(value: &Value) -> Option<bool> {
    match value.plain() {
        Value::None | Value::Omitted => Some(false),
        Value::Bool(value) => *value,
        Value::Int(value) => value.map(|value| value != 0),
        Value::Float(value) => value.map(|value| value != 0.0),
        Value::Str(text) => Some(!text.is_empty()),
        Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
            Some(!items.is_empty())
        }
        Value::Dict(entries) => Some(!entries.is_empty()),
        Value::Set(items) => Some(!items.is_empty()),
        Value::DType(_)
        | Value::TorchDType(_)
        | Value::Address { .. }
        | Value::Named(_)
        | Value::Callable(_)
        | Value::Config(_) => Some(true),
        Value::OneOf(values) => agreed(values, truth),
        Value::Tensor(tensor) => truth(&data::item(tensor)?),
        _ => None,
    }
}

/// What holds of each of several values.
fn agreed(values: &[Value], holds: impl Fn(&Value) -> Option<bool>) -> Option<bool> {
    let (first, rest) = values.split_first()?;
    let known = holds(first)?;
    rest.iter().all(|value| holds(value) == Some(known)).then_some(known)
}

/// What is known of a value that is one of two.
pub(crate) fn join(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (a, b) if a == b => a.clone(),
        (Value::Bool(_), Value::Bool(_)) => Value::Bool(None),
        (Value::Int(_), Value::Int(_)) => Value::Int(None),
        (Value::Float(_), Value::Float(_)) => Value::Float(None),
        (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => {
            Value::Tuple(a.iter().zip(b).map(|(a, b)| join(a, b)).collect())
        }
        (Value::Record { names: a, items: of_a }, Value::Record { names: b, items: of_b })
            if a == b =>
        {
            let items = of_a.iter().zip(of_b).map(|(a, b)| join(a, b)).collect();
            Value::Record { names: a.clone(), items }
        }
        (Value::Constexpr(a), Value::Constexpr(b)) => Value::Constexpr(Box::new(join(a, b))),
        (Value::Tensor(a), Value::Tensor(b)) => Value::Tensor(views::join(a, b)),
        (Value::Dict(a), Value::Dict(b)) => Value::Dict(join_dicts(a, b)),
        (a, b) => Value::one_of(a, b),
    }
}

/// Entries that one of two dicts has; those of only one are not known.
fn join_dicts(a: &Dict, b: &Dict) -> Dict {
    let other = |entries: &[(Value, Value)], key: &Value| {
        entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    };
    let of_both = a.iter().map(|(key, value)| {
        (key.clone(), other(b, key).map_or(Value::Unknown, |other| join(value, &other)))
    });
    let only_b = b.iter().filter(|(key, _)| other(a, key).is_none());
    let only_b = only_b.map(|(key, _)| (key.clone(), Value::Unknown));
    let mut joined: Dict = of_both.chain(only_b).collect();
    joined.missing = b.missing.as_ref().and(a.missing.clone());
    joined
}

/// `left op right`.
pub(crate) fn binary(op: BinaryOp, left: &Value, right: &Value) -> Value {
    let (left, right) = (left.plain(), right.plain());
    match (left, right) {
        (raised @ Value::Raises(_), _) | (_, raised @ Value::Raises(_)) => raised.clone(),
        (Value::Array(_), _) | (_, Value::Array(_)) => {
            arrays::binary(op, left, right).unwrap_or(Value::Unknown)
        }
        (Value::Tensor(a), Value::Tensor(b)) if op == BinaryOp::MatMul => {
            fits::no_product(a, b).map_or_else(|| Value::Tensor(views::product(a, b)), Value::from)
        }
        (Value::Tensor(a), Value::Tensor(b)) => {
            if let Some(misfit) = fits::no_elementwise(a, b) {
                return misfit.into();
            }
            let result = views::elementwise(a, Some(b));
            if let Some(raised) = misuse::no_bits(op, result.dtype.as_ref()) {
                return raised;
            }
            Value::Tensor(Tensor { dtype: quotient(op, result.dtype.clone()), ..result })
        }
        (Value::Tensor(a), number) | (number, Value::Tensor(a)) => {
            let mut result = views::elementwise(a, None);
            result.dtype = quotient(op, with_number(a.dtype.as_ref(), number));
            if as_number(number).is_some()
                && let Some(raised) = misuse::no_bits(op, result.dtype.as_ref())
            {
                return raised;
            }
            if as_number(number).is_none() {
                // It may be a tensor that the result is broadcast to.
                (result.shape, result.strides, result.storage) = (None, None, None);
            }
            if let Some(storage) = &mut result.storage {
                let is_first = matches!(left, Value::Tensor(_));
                let keeps = is_first || matches!(op, BinaryOp::Add | BinaryOp::Mul);
                storage.drawn = keeps.then(|| drawn::combined(op, a, number)).flatten();
                storage.made_of = a.storage.as_ref().and_then(|of| of.output.or(of.made_of));
            }
            Value::Tensor(result)
        }
        // A frozen set is a tuple here, and the keys of a dict are a list.
        (Value::Set(a) | Value::List(a), Value::Set(b) | Value::List(b) | Value::Tuple(b))
            if matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Sub) =>
        {
            sets::combined(op, a, b).unwrap_or(Value::Unknown)
        }
        (Value::List(a), Value::List(b)) if op == BinaryOp::Add => Value::List(concat(a, b)),
        (Value::Tuple(a), Value::Tuple(b)) if op == BinaryOp::Add => Value::Tuple(concat(a, b)),
        (Value::List(items), Value::Int(Some(count))) if op == BinaryOp::Mul => {
            repeat(items, *count).map_or(Value::Unknown, Value::List)
        }
        (Value::Tuple(items), Value::Int(Some(count))) if op == BinaryOp::Mul => {
            repeat(items, *count).map_or(Value::Unknown, Value::Tuple)
        }
        (Value::Str(a), Value::Str(b)) if op == BinaryOp::Add && a.len() + b.len() < MAX_LENGTH => {
            Value::Str(format!("{a}{b}").into())
        }
        (Value::Bool(Some(a)), Value::Bool(Some(b))) if let Some(bit) = of_truths(op, *a, *b) => {
            Value::Bool(Some(bit))
        }
        _ => misuse::with_none(op.symbol(), left, right)
            .or_else(|| misuse::no_operator(op, left, right))
            .unwrap_or_else(|| arithmetic(op, left, right)),
    }
}

/// What an operator for bits makes of two truth values: another one.
fn of_truths(op: BinaryOp, a: bool, b: bool) -> Option<bool> {
    Some(match op {
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        _ => return None,
    })
}

/// What the tensor `left op right` holds.
pub(crate) fn contents(op: BinaryOp, left: &Value, right: &Value) -> Contents {
    let (tensor, number) = match (left.plain(), right.plain()) {
        (Value::Tensor(tensor), Value::Int(Some(number))) => (tensor, *number),
        (Value::Int(Some(number)), Value::Tensor(tensor))
            if matches!(op, BinaryOp::Add | BinaryOp::Mul) =>
        {
            (tensor, *number)
        }
        _ => return Contents::Unknown,
    };
    let is_dense = |elements| views::span(tensor) == Some(elements) && tensor.strides.is_none();
    match (&tensor.storage, tensor.dtype.as_deref()) {
        (Some(storage), Some(dtype)) if is_integer(dtype) => {
            let elements = storage.elements;
            let contents = storage.contents.clone().of_part(elements, is_dense(elements));
            // Others begin from the other end of the type's numbers.
            let exactly =
                |value| integer_of(op, value, number).filter(|it| has_integer(dtype, *it));
            contents.combined(elements, exactly)
        }
        _ => Contents::Unknown,
    }
}

/// `value op number` of integers of tensors, where both are known and it rises or falls with the
/// first or takes it apart.
pub(crate) fn integer_of(op: BinaryOp, value: i128, number: i128) -> Option<i128> {
    match op {
        BinaryOp::Add => value.checked_add(number),
        BinaryOp::Sub => value.checked_sub(number),
        BinaryOp::Mul => value.checked_mul(number),
        BinaryOp::FloorDiv if number > 0 => Some(value.div_euclid(number)),
        BinaryOp::Mod if number > 0 => Some(value.rem_euclid(number)),
        _ => None,
    }
}

/// The dtype of `a op b` where that of other operators is `dtype`: `/` gives floats.
fn quotient(op: BinaryOp, dtype: Option<Arc<str>>) -> Option<Arc<str>> {
    let divides = |dtype: Arc<str>| match op {
        BinaryOp::Div => float_of(&dtype),
        _ => dtype,
    };
    dtype.map(divides)
}

fn concat(a: &[Value], b: &[Value]) -> Vec<Value> {
    a.iter().chain(b).take(MAX_LENGTH).cloned().collect()
}

fn repeat(items: &[Value], count: i128) -> Option<Vec<Value>> {
    let count = usize::try_from(count).unwrap_or(0);
    let length = items.len().checked_mul(count).filter(|length| *length <= MAX_LENGTH)?;
    // A collection in it is one in several places: what changes one of them changes all.
    let repeated = items.iter().map(|item| match count > 1 && is_collection(item) {
        true => Value::Collection,
        false => item.clone(),
    });
    Some(repeated.cycle().take(length).collect())
}

/// `op operand`, other than `not`.
pub(crate) fn unary(op: UnaryOp, operand: &Value) -> Value {
    match (op, operand.plain()) {
        (UnaryOp::Plus, operand) => operand.clone(),
        (UnaryOp::Minus, Value::Int(value)) => Value::Int(value.and_then(i128::checked_neg)),
        (UnaryOp::Minus, Value::Float(value)) => Value::Float(value.map(|value| -value)),
        (UnaryOp::Invert, Value::Int(value)) => Value::Int(value.map(|value| !value)),
        (_, Value::Tensor(tensor)) => Value::Tensor(tensor.copied()),
        _ => Value::Unknown,
    }
}

/// The tensor that a comparison with a tensor gives, or that Python refuses it; `None` for one of
/// numbers.
pub(crate) fn compared(op: CompareOp, left: &Value, right: &Value) -> Option<Value> {
    let orders = matches!(op, CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge);
    let refused = || {
        let none = misuse::with_none(op.symbol(), left, right);
        none.or_else(|| misuse::no_order(op.symbol(), left, right))
    };
    if orders && let Some(raised) = refused() {
        return Some(raised);
    }
    let elementwise =
        !matches!(op, CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn);
    let (left, right) = (left.plain(), right.plain());
    let has_tensor = matches!(left, Value::Tensor(_)) || matches!(right, Value::Tensor(_));
    // A tensor knows no comparison with `None`: the two are other objects.
    let has_none = matches!(left, Value::None) || matches!(right, Value::None);
    if !elementwise || !has_tensor || has_none {
        return None;
    }
    // Sizes are those of arithmetic.
    match binary(BinaryOp::Sub, left, right) {
        Value::Tensor(tensor) => {
            Some(Value::Tensor(Tensor { dtype: Some(Arc::from("i1")), ..tensor }))
        }
        raised @ Value::Raises(_) => Some(raised),
        _ => None,
    }
}

/// `left op right`, if that is known.
pub(crate) fn compare(op: CompareOp, left: &Value, right: &Value) -> Option<bool> {
    match op {
        CompareOp::Is => identical(left, right),
        CompareOp::IsNot => identical(left, right).map(|same| !same),
        CompareOp::Eq => same(left, right),
        CompareOp::Ne => same(left, right).map(|same| !same),
        CompareOp::In => contains(right, left),
        CompareOp::NotIn => contains(right, left).map(|found| !found),
        CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => {
            ordered(op, left.plain(), right.plain())
        }
    }
}

fn ordered(op: CompareOp, left: &Value, right: &Value) -> Option<bool> {
    let order = match (left, right) {
        (version, Value::Tuple(numbers)) if is_python_version(version) => {
            let number = |number: &Value| match number {
                Value::Int(number) => *number,
                _ => None,
            };
            let wanted: Vec<i128> = numbers.iter().map(number).collect::<Option<_>>()?;
            return compare_python(op, &wanted);
        }
        (Value::OneOf(values), other) => {
            return agreed(values, |value| ordered(op, value, other));
        }
        (other, Value::OneOf(values)) => {
            return agreed(values, |value| ordered(op, other, value));
        }
        (Value::Tuple(a), Value::Tuple(b))
        | (Value::List(a), Value::List(b))
        | (Value::Record { items: a, .. }, Value::Record { items: b, .. }) => {
            for (a, b) in a.iter().zip(b) {
                if !same_element(a, b)? {
                    return ordered(op, a.plain(), b.plain());
                }
            }
            a.len().cmp(&b.len())
        }
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        // Of numbers that are none, no comparison holds.
        _ => match as_number(left)?.order(&as_number(right)?)? {
            Some(order) => order,
            None => return Some(false),
        },
    };
    Some(match op {
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        _ => order.is_ge(),
    })
}

/// Whether two values are one object: tensors are where all that is known of them is the same, and the
/// memory of both is known. Others that are equal may be two.
fn identical(left: &Value, right: &Value) -> Option<bool> {
    match (left.plain(), right.plain()) {
        (Value::Tensor(a), Value::Tensor(b)) => match (a.memory()?, b.memory()?) {
            (first, second) if first != second => Some(false),
            _ => (a.allocation().is_some() && a == b).then_some(true),
        },
        (Value::Bool(_), Value::Int(_) | Value::Float(_))
        | (Value::Int(_) | Value::Float(_), Value::Bool(_)) => Some(false),
        (a, b) => {
            let may_be_two = |value: &Value| {
                is_collection(value) || matches!(value, Value::Tuple(_) | Value::Float(_))
            };
            same(a, b).filter(|same| !same || !may_be_two(a) && !may_be_two(b))
        }
    }
}

fn same(left: &Value, right: &Value) -> Option<bool> {
    match (left.plain(), right.plain()) {
        (left @ Value::Global(_), right) | (left, right @ Value::Global(_)) => {
            same_class(left, right)
        }
        (Value::Unknown, _) | (_, Value::Unknown) => None,
        (Value::OneOf(values), other) | (other, Value::OneOf(values)) => {
            agreed(values, |value| same(value, other))
        }
        (Value::None | Value::Omitted, Value::None | Value::Omitted) => Some(true),
        (Value::None | Value::Omitted, _) | (_, Value::None | Value::Omitted) => Some(false),
        (Value::Str(a), Value::Str(b))
        | (Value::DType(a), Value::DType(b))
        | (Value::TorchDType(a), Value::TorchDType(b)) => Some(a == b),
        (Value::DType(_), Value::TorchDType(_)) | (Value::TorchDType(_), Value::DType(_)) => {
            Some(false)
        }
        (Value::Bool(a), Value::Bool(b)) => Some((*a)? == (*b)?),
        (Value::Tuple(a), Value::Tuple(b))
        | (Value::List(a), Value::List(b))
        | (Value::Record { items: a, .. }, Value::Record { items: b, .. }) => {
            let mut pairs = a.iter().zip(b).map(|(a, b)| same_element(a, b));
            let known = pairs.try_fold(true, |all, pair| Some(all && pair?));
            if a.len() == b.len() { known } else { Some(false) }
        }
        (Value::Set(a), Value::Set(b)) => Some(a.len() == b.len() && sets::is_part(a, b)?),
        // What has one name is one thing; what has several may be as well.
        (Value::Named(Resolution::External(a)), Value::Named(Resolution::External(b)))
            if a == b && a.first().is_some_and(|package| **package == *TORCH) =>
        {
            Some(true)
        }
        (left @ Value::Named(Resolution::External(_)), right)
        | (left, right @ Value::Named(Resolution::External(_))) => {
            signature::same_empty(left, right)
        }
        (Value::Named(a), Value::Named(b)) => Some(a == b),
        (Value::Address { .. }, Value::Address { .. }) => Some(left == right),
        (left, right) if misuse::are_unlike(left, right) => Some(false),
        (left, right) => Some(as_number(left)?.order(&as_number(right)?)? == Some(Ordering::Equal)),
    }
}

/// Whether two elements of collections are the same: what is no number is the same as itself alone.
fn same_element(left: &Value, right: &Value) -> Option<bool> {
    let is_nan = |value: &Value| matches!(value.plain(), Value::Float(Some(it)) if it.is_nan());
    if is_nan(left) && is_nan(right) { None } else { same(left, right) }
}

/// Whether a value is `sys.version_info`.
fn is_python_version(value: &Value) -> bool {
    matches!(value, Value::Named(Resolution::External(path))
        if path.iter().map(|name| &**name).eq(["sys", "version_info"]))
}

/// Whether two keys are one: a member of an enumeration is itself, whatever it compares equal to.
fn is_same_key(known: &Value, key: &Value) -> bool {
    match (known, key) {
        (Value::Member(known), Value::Member(key)) => known == key,
        _ => same(known, key) == Some(true),
    }
}

fn contains(container: &Value, item: &Value) -> Option<bool> {
    // A variable of the environment is not set unless somebody sets it, and no option is given.
    if is_environment(container) || is_command_line(container) && is_option(item) {
        return Some(false);
    }
    if let (Value::Str(text), Value::Str(part)) = (container.plain(), item.plain()) {
        return Some(text.contains(&**part));
    }
    let items = sets::members(container.plain())?;
    let mut all_known = true;
    for known in &items {
        match same_element(known, item) {
            _ if is_same_key(known, item) => return Some(true),
            known => all_known &= known == Some(false),
        }
    }
    all_known.then_some(false)
}

/// `value[index]`.
pub(crate) fn subscript(value: &Value, index: &Value) -> Value {
    match (value.plain(), index.plain()) {
        (Value::Ints, _) => Value::Int(None),
        (Value::OneOf(values), _) if values.contains(&Value::Ints) => Value::Int(None),
        (Value::Raises(_), _) => value.clone(),
        (kernel, grid) if kernel.is_kernel() => Value::Callable(Callable::Launcher {
            kernel: Box::new(kernel.clone()),
            grid: Box::new(grid.clone()),
        }),
        (version, Value::Int(Some(0))) if is_python_version(version) => Value::Int(Some(3)),
        (_, Value::OneOf(indices)) => {
            let parts = indices.iter().map(|index| subscript(value, index));
            parts.reduce(|a, b| join(&a, &b)).unwrap_or(Value::Unknown)
        }
        (
            Value::Tuple(items) | Value::List(items) | Value::Record { items, .. },
            Value::Int(Some(index)),
        ) => match (position(items.len(), *index), value.plain()) {
            (Some(at), _) => items[at].clone(),
            // Lists grow.
            (None, Value::Tuple(_)) if is_whole(items) => {
                Value::Raises(Misuse::NoElement { at: *index, len: items.len() })
            }
            (None, _) => Value::Unknown,
        },
        (Value::Array(array), index @ Value::Int(Some(_))) => {
            arrays::element(array, std::slice::from_ref(index)).unwrap_or(Value::Unknown)
        }
        (Value::Array(array), Value::Tuple(index))
            if index.iter().all(|at| matches!(at, Value::Int(Some(_)))) =>
        {
            arrays::element(array, index).unwrap_or(Value::Unknown)
        }
        (Value::Array(array), index) => arrays::part(array, index).unwrap_or(Value::Unknown),
        (Value::Dict(entries), key) => {
            let found = entries.iter().rev().find(|(known, _)| is_same_key(known, key));
            found.map_or(Value::Unknown, |(_, value)| value.clone())
        }
        (Value::Tensor(tensor), Value::Int(index)) => {
            match index.and_then(|index| fits::no_element(tensor, index)) {
                Some(misuse) => Value::Raises(misuse),
                None => Value::Tensor(views::item(tensor, *index)),
            }
        }
        (Value::Tensor(tensor), Value::None) => Value::Tensor(views::with_axis(tensor, 0)),
        (Value::Tensor(tensor), Value::Tensor(rows))
            if matches!(rows.dtype.as_deref(), Some("i32" | "i64")) =>
        {
            Value::Tensor(views::picked(tensor, rows))
        }
        (Value::Tensor(_), Value::Tensor(rows)) if let Some(misuse) = misuse::no_index(rows) => {
            Value::Raises(misuse)
        }
        (Value::Tensor(_), Value::List(_)) => parts(value.plain(), vec![Part::of(index)]),
        (Value::Tensor(tensor), _) => Value::tensor(tensor.dtype.as_deref()),
        _ => Value::Unknown,
    }
}

/// `tensor[part, part]`.
pub(crate) fn parts(value: &Value, parts: Vec<Part>) -> Value {
    match value {
        Value::Tensor(tensor) => {
            match (fits::no_part(tensor, &parts), subscripts::parts(tensor, &parts)) {
                (Some(misuse), _) => Value::Raises(misuse),
                (None, Some(part)) => Value::Tensor(part),
                (None, None) => Value::tensor(tensor.dtype.as_deref()),
            }
        }
        _ => Value::Unknown,
    }
}

/// `value[lower:upper]`.
pub(crate) fn slice(value: &Value, lower: Option<&Value>, upper: Option<&Value>) -> Value {
    let bound = |bound: Option<&Value>, default: usize, length: usize| match bound {
        None => Some(default),
        Some(Value::Int(Some(at))) if *at < 0 => {
            Some(usize::try_from(length as i128 + at).unwrap_or(0))
        }
        Some(Value::Int(Some(at))) => Some(usize::try_from(*at).unwrap_or(length).min(length)),
        Some(_) => None,
    };
    let cut = |items: &[Value]| {
        let lower = bound(lower, 0, items.len())?;
        let upper = bound(upper, items.len(), items.len())?;
        Some(items.get(lower..upper).unwrap_or_default().to_vec())
    };
    match value {
        Value::Tuple(items) => cut(items).map_or(Value::Unknown, Value::Tuple),
        Value::List(items) => cut(items).map_or(Value::Unknown, Value::List),
        Value::Ints => Value::Ints,
        Value::Tensor(tensor) => match subscripts::slice(tensor, lower, upper) {
            Some(part) => Value::Tensor(part),
            None => Value::tensor(tensor.dtype.as_deref()),
        },
        _ => Value::Unknown,
    }
}

/// The element that `index` means among `length`; negative indices count from the end.
pub(crate) fn position(length: usize, index: i128) -> Option<usize> {
    let index = if index < 0 { index + length as i128 } else { index };
    usize::try_from(index).ok().filter(|index| *index < length)
}
