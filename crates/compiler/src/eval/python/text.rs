//! What Python prints of a value.

use super::super::display::{const_text, print_text, quoted};
use super::super::dtype::Elem;
use super::super::value::{Const, Value};
use super::Obj;

/// `str(value)`; `None` where that is not known.
pub(super) fn str(value: &Obj) -> Option<String> {
    match value {
        Obj::Const(Const::Str(text)) => Some(text.to_string()),
        Obj::Const(value) => Some(const_text(value)),
        Obj::Sequence(items, _) => {
            let items = items.iter().map(|item| Some(quoted(&shown(item)?)));
            Some(format!("[{}]", items.collect::<Option<Vec<String>>>()?.join(", ")))
        }
        Obj::Value(tensor @ Value::Tensor(_)) => Some(print_text(tensor)),
        other => repr(other),
    }
}

/// An element of a tuple of the language as that shows it: without its constexpr.
fn shown(item: &Obj) -> Option<String> {
    match item {
        Obj::Constexpr(value) => str(value),
        item => str(item),
    }
}

/// `repr(value)`; `None` where that is not known.
pub(super) fn repr(value: &Obj) -> Option<String> {
    let all = |items: &[Obj]| items.iter().map(repr).collect::<Option<Vec<String>>>();
    Some(match value {
        Obj::Const(Const::Str(text)) => quoted(text),
        Obj::Const(Const::DType(Elem::Num(dtype))) => {
            format!("triton.language.{}", dtype.member())
        }
        Obj::Const(
            Const::None | Const::Bool(_) | Const::Int(_) | Const::Float(_) | Const::Ellipsis,
        ) => str(value)?,
        Obj::Constexpr(inner) => format!("constexpr[{}]", str(inner)?),
        Obj::Tuple(items, Some(named)) => {
            let fields = named.1.iter().zip(all(items)?);
            let fields: Vec<String> = fields.map(|(name, item)| format!("{name}={item}")).collect();
            format!("{}({})", named.0, fields.join(", "))
        }
        Obj::Tuple(items, None) => {
            let comma = if items.len() == 1 { "," } else { "" };
            format!("({}{comma})", all(items)?.join(", "))
        }
        Obj::Sequence(items, _) => format!("({})", all(items)?.join(", ")),
        Obj::List(items) => format!("[{}]", all(&items.borrow())?.join(", ")),
        Obj::Dict(entries) => {
            let entries = entries.borrow();
            let entries = entries
                .iter()
                .map(|(key, value)| Some(format!("{}: {}", repr(key)?, repr(value)?)));
            format!("{{{}}}", entries.collect::<Option<Vec<String>>>()?.join(", "))
        }
        Obj::Set(items) if items.borrow().len() == 1 => {
            format!("{{{}}}", all(&items.borrow())?.join(", "))
        }
        Obj::Range(start, end, 1) => format!("range({start}, {end})"),
        Obj::Range(start, end, step) => format!("range({start}, {end}, {step})"),
        Obj::Builtin(name) if super::builtins::is_class(name) => format!("<class '{name}'>"),
        _ => return None,
    })
}

/// `text % values`; `None` for conversions that are not followed.
pub(super) fn percent(text: &str, values: &Obj) -> Option<String> {
    let values = match values {
        Obj::Tuple(items, _) => items.to_vec(),
        other => vec![other.clone()],
    };
    let mut values = values.into_iter();
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            's' => out.push_str(&str(&values.next()?)?),
            'r' => out.push_str(&repr(&values.next()?)?),
            'd' | 'i' => match values.next()? {
                Obj::Const(value @ Const::Int(_)) => out.push_str(&const_text(&value)),
                _ => return None,
            },
            '%' => out.push('%'),
            _ => return None,
        }
    }
    values.next().is_none().then_some(out)
}
