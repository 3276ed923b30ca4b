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
        Obj::Const(Const::Str(text)) => {
            let is_shown = |char: char| !char.is_control() || matches!(char, '\n' | '\r' | '\t');
            text.chars().all(is_shown).then(|| quoted(text))?
        }
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

/// `f"{value!conversion:format}"`; `None` where that is not known.
pub(super) fn converted(value: &Obj, conversion: Option<char>, format: &str) -> Option<String> {
    match conversion {
        None => formatted(value, format),
        Some('r') => padded(&repr(value)?, format),
        Some('s') => padded(&str(value)?, format),
        Some(_) => None,
    }
}

/// `format(value, format)`; `None` for formats that are not followed.
fn formatted(value: &Obj, format: &str) -> Option<String> {
    match value {
        _ if format.is_empty() => str(value),
        Obj::Const(Const::Str(text)) => padded(text, format),
        Obj::Const(Const::Int(number)) => numeral(Number::Int(*number), format),
        Obj::Const(Const::Bool(truth)) => numeral(Number::Int(i128::from(*truth)), format),
        Obj::Const(Const::Float(number)) => numeral(Number::Float(*number), format),
        _ => None,
    }
}

/// The parts of a format: `[[fill]align][sign][#][0][width][grouping][.precision][type]`.
struct Format {
    fill: char,
    align: Option<char>,
    sign: Option<char>,
    prefix: bool,
    zeros: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Format {
    fn parse(text: &str) -> Option<Format> {
        let is_align = |c: &char| "<>^=".contains(*c);
        let mut rest = text.chars().peekable();
        let mut ahead = text.chars().skip(1);
        let (fill, align) = match ahead.next().filter(is_align) {
            Some(align) => (rest.next()?, Some(align)),
            None => (' ', rest.peek().copied().filter(is_align)),
        };
        if align.is_some() {
            rest.next();
        }
        let sign = rest.next_if(|c| "+- ".contains(*c));
        let prefix = rest.next_if_eq(&'#').is_some();
        let zeros = rest.next_if_eq(&'0').is_some();
        let number = |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let digits: String =
                std::iter::from_fn(|| rest.next_if(char::is_ascii_digit)).take(4).collect();
            digits.parse::<usize>().ok()
        };
        let width = number(&mut rest).unwrap_or(0);
        let grouping = rest.next_if(|c| ",_".contains(*c));
        let precision = match rest.next_if_eq(&'.') {
            Some(_) => Some(number(&mut rest)?),
            None => None,
        };
        let kind = rest.next();
        let format = Format { fill, align, sign, prefix, zeros, width, grouping, precision, kind };
        rest.next().is_none().then_some(format)
    }

    /// The text with what fills it up to the width.
    fn fill(&self, text: &str, usual: char) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        let before = match self.align.unwrap_or(usual) {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        let fill = |count: usize| self.fill.to_string().repeat(count);
        format!("{}{text}{}", fill(before), fill(missing - before))
    }
}

/// Text by a format.
fn padded(text: &str, format: &str) -> Option<String> {
    let format = Format::parse(format)?;
    let of_numbers = format.sign.is_some() || format.prefix || format.zeros;
    if of_numbers
        || format.grouping.is_some()
        || format.align == Some('=')
        || format.kind.is_some_and(|kind| kind != 's')
    {
        return None;
    }
    let kept = text.chars().take(format.precision.unwrap_or(usize::MAX));
    Some(format.fill(&kept.collect::<String>(), '<'))
}

enum Number {
    Int(i128),
    Float(f64),
}

/// A number by a format.
fn numeral(number: Number, format: &str) -> Option<String> {
    let format = Format::parse(format)?;
    let (negative, digits, prefix) = match (&number, format.kind) {
        (Number::Int(value), None | Some('d' | 'b' | 'o' | 'x' | 'X'))
            if format.precision.is_none() =>
        {
            let size = value.unsigned_abs();
            let (digits, prefix) = match format.kind {
                Some('b') => (format!("{size:b}"), "0b"),
                Some('o') => (format!("{size:o}"), "0o"),
                Some('x') => (format!("{size:x}"), "0x"),
                Some('X') => (format!("{size:X}"), "0X"),
                _ => (size.to_string(), ""),
            };
            (*value < 0, digits, prefix)
        }
        (_, Some(kind @ ('f' | 'F' | '%'))) => {
            let value = match number {
                Number::Int(value) => value as f64,
                Number::Float(value) => value,
            };
            if !value.is_finite() {
                return None;
            }
            let (value, unit) = if kind == '%' { (value * 100.0, "%") } else { (value, "") };
            let precision = format.precision.unwrap_or(6);
            (value.is_sign_negative(), format!("{:.precision$}{unit}", value.abs()), "")
        }
        (Number::Float(value), None) if format.precision.is_none() && value.is_finite() => {
            let shown = const_text(&Const::Float(value.abs()));
            (value.is_sign_negative(), shown, "")
        }
        _ => return None,
    };
    let digits = match format.grouping {
        // Zeros before a number are grouped as well.
        Some(_) if format.zeros || !prefix.is_empty() => return None,
        Some(mark) => grouped(&digits, mark),
        None => digits,
    };
    let sign = match (negative, format.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        _ => "",
    };
    let head = format!("{sign}{}", if format.prefix { prefix } else { "" });
    let missing = format.width.saturating_sub(head.len() + digits.len());
    Some(match format.align {
        None if format.zeros => format!("{head}{}{digits}", "0".repeat(missing)),
        Some('=') => format!("{head}{}{digits}", format.fill.to_string().repeat(missing)),
        _ if format.zeros => return None,
        _ => format.fill(&format!("{head}{digits}"), '>'),
    })
}

/// Digits before the point in groups of three.
fn grouped(digits: &str, mark: char) -> String {
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(end);
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(mark);
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_pythons() {
        let int = |value| Obj::Const(Const::Int(value));
        let float = |value| Obj::Const(Const::Float(value));
        for (value, format, shown) in [
            (int(3), "04d", Some("0003")),
            (int(-3), "04", Some("-003")),
            (int(255), "#x", Some("0xff")),
            (int(255), "#06x", Some("0x00ff")),
            (int(5), "+d", Some("+5")),
            (int(1_234_567), ",", Some("1,234,567")),
            (int(7), ">3", Some("  7")),
            (int(7), "*^5", Some("**7**")),
            (int(7), "<3", Some("7  ")),
            (int(1), ".2f", Some("1.00")),
            (float(0.125), ".2f", Some("0.12")),
            (float(0.5), ".0%", Some("50%")),
            (float(1.5), "6", Some("   1.5")),
            (float(1.5), ".2", None),
            (Obj::str("ab"), ">4", Some("  ab")),
            (Obj::str("abc"), ".2", Some("ab")),
            (Obj::str("ab"), "d", None),
            (int(3), "{w}", None),
        ] {
            assert_eq!(formatted(&value, format).as_deref(), shown, "{format}");
        }
    }
}
