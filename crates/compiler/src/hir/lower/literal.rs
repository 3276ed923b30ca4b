//! Numbers and strings.

use std::sync::Arc;

use super::Lowering;
use crate::hir::{Expr, ExprId, FStringPart, Literal};
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::Node;

impl Lowering<'_> {
    pub(super) fn number(&self, node: Node<'_>) -> Literal {
        number(self.text(node))
    }

    /// Adjacent string literals, which Python joins.
    pub(super) fn string(&mut self, strings: &[Node<'_>]) -> Expr {
        let mut parts = Vec::new();
        let mut bytes = false;
        let mut formatted = false;
        for string in strings {
            let prefix = Prefix::of(*string, self.text);
            bytes |= prefix.bytes;
            formatted |= prefix.formatted;
            self.string_parts(*string, prefix, &mut parts);
        }
        match (bytes, formatted) {
            (true, _) => Expr::Literal(Literal::Bytes),
            (false, true) => Expr::FString(parts.into()),
            (false, false) => match parts.pop() {
                Some(FStringPart::Text(text)) => Expr::Literal(Literal::Str(text)),
                _ => Expr::Literal(Literal::Str(Arc::from(""))),
            },
        }
    }

    fn string_parts(&mut self, string: Node<'_>, prefix: Prefix, parts: &mut Vec<FStringPart>) {
        for child in string.named_children() {
            match child.kind() {
                Kind::StringContent => push_text(parts, &unescape(self.text(child), prefix)),
                Kind::Interpolation | Kind::FormatExpression => {
                    let value = self.field_expr(child, Field::Expression);
                    // Within the braces stands the value alone.
                    if child.children().count() == 3 {
                        parts.push(FStringPart::Hole(value));
                        continue;
                    }
                    let part = self.formatted(child, value, parts);
                    parts.push(part);
                }
                _ => {}
            }
        }
    }
}

impl Lowering<'_> {
    /// `{value=!r:format}`; the label of `=` becomes text.
    fn formatted(
        &self,
        hole: Node<'_>,
        value: ExprId,
        parts: &mut Vec<FStringPart>,
    ) -> FStringPart {
        let end = hole.field(Field::Expression).map_or(hole.start_byte(), |node| node.end_byte());
        let rest = self.text.get(end..hole.end_byte()).unwrap_or_default();
        let rest = rest.strip_suffix('}').unwrap_or(rest);
        let (how, format) = rest.split_once(':').unwrap_or((rest, ""));
        let (label, letter) = how.split_once('!').unwrap_or((how, ""));
        let mut conversion = letter.trim().chars().next();
        if label.contains('=') {
            let from = hole.start_byte() + 1;
            push_text(parts, self.text.get(from..end + label.len()).unwrap_or_default());
            if format.is_empty() {
                conversion = conversion.or(Some('r'));
            }
        }
        FStringPart::Formatted { value, conversion, format: Arc::from(format) }
    }
}

/// Appends text, joining it to text before it.
fn push_text(parts: &mut Vec<FStringPart>, text: &str) {
    match parts.last_mut() {
        Some(FStringPart::Text(before)) => *before = Arc::from(format!("{before}{text}")),
        _ => parts.push(FStringPart::Text(Arc::from(text))),
    }
}

/// The letters before a string's opening quote.
#[derive(Debug, Clone, Copy, Default)]
struct Prefix {
    raw: bool,
    bytes: bool,
    formatted: bool,
}

impl Prefix {
    fn of(string: Node<'_>, text: &str) -> Prefix {
        let start = string.children().next().filter(|child| child.kind() == Kind::StringStart);
        let spelling =
            start.and_then(|start| text.get(start.range().as_usize())).unwrap_or_default();
        let has = |letter: char| spelling.chars().any(|c| c.eq_ignore_ascii_case(&letter));
        Prefix { raw: has('r'), bytes: has('b'), formatted: has('f') || has('t') }
    }
}

/// The text that `content` stands for: escapes decoded, line ends as `\n`.
fn unescape(content: &str, prefix: Prefix) -> String {
    let content = content.replace("\r\n", "\n");
    let content =
        if prefix.formatted { content.replace("{{", "{").replace("}}", "}") } else { content };
    if prefix.raw || !content.contains('\\') {
        return content;
    }
    let mut out = String::with_capacity(content.len());
    let mut rest = content.as_str();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (decoded, length) = escape(&rest[at + 1..]);
        match decoded {
            Escape::Char(c) => out.push(c),
            Escape::Nothing => {}
            Escape::Verbatim => out.push_str(&rest[at..at + 1 + length]),
        }
        rest = &rest[at + 1 + length..];
    }
    out.push_str(rest);
    out
}

enum Escape {
    Char(char),
    Nothing,
    Verbatim,
}

/// Decodes what follows a backslash; also its length in bytes.
fn escape(after: &str) -> (Escape, usize) {
    let Some(first) = after.chars().next() else { return (Escape::Verbatim, 0) };
    let simple = match first {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'v' => '\x0b',
        '\\' | '\'' | '"' => first,
        '\n' => return (Escape::Nothing, 1),
        'x' => return numeric(after, 1, 2, 16),
        'u' => return numeric(after, 1, 4, 16),
        'U' => return numeric(after, 1, 8, 16),
        '0'..='7' => {
            let digits = after.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
            return numeric(after, 0, digits, 8);
        }
        _ => return (Escape::Verbatim, first.len_utf8()),
    };
    (Escape::Char(simple), 1)
}

fn numeric(after: &str, skip: usize, digits: usize, radix: u32) -> (Escape, usize) {
    let decoded = after
        .get(skip..skip + digits)
        .and_then(|digits| u32::from_str_radix(digits, radix).ok())
        .and_then(char::from_u32);
    match decoded {
        Some(c) => (Escape::Char(c), skip + digits),
        None => (Escape::Verbatim, after.chars().next().map_or(0, char::len_utf8)),
    }
}

/// Reads a number as Python spells it.
fn number(spelling: &str) -> Literal {
    let digits: String = spelling.chars().filter(|&c| c != '_').collect();
    let digits = digits.to_ascii_lowercase();
    if let Some((radix, digits)) = radix_prefix(&digits) {
        return match i128::from_str_radix(digits, radix) {
            Ok(value) => Literal::Int(value.into()),
            Err(_) => Literal::BigInt(Arc::from(decimal(digits, radix))),
        };
    }
    if digits.ends_with('j') {
        return Literal::Imaginary;
    }
    let digits = digits.trim_end_matches('l');
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Literal::Float(digits.parse::<f64>().unwrap_or(f64::NAN).to_bits());
    }
    match digits.parse::<i128>() {
        Ok(value) => Literal::Int(value.into()),
        Err(_) => Literal::BigInt(Arc::from(digits.trim_start_matches('0'))),
    }
}

fn radix_prefix(digits: &str) -> Option<(u32, &str)> {
    let (radix, prefix) = [(16, "0x"), (8, "0o"), (2, "0b")]
        .into_iter()
        .find(|(_, prefix)| digits.starts_with(prefix))?;
    Some((radix, &digits[prefix.len()..]))
}

/// Digits of base `radix` in base ten, by schoolbook multiplication.
fn decimal(digits: &str, radix: u32) -> String {
    let mut little_endian = vec![0u32];
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        let mut carry = digit;
        for place in &mut little_endian {
            let value = *place * radix + carry;
            *place = value % 10;
            carry = value / 10;
        }
        while carry > 0 {
            little_endian.push(carry % 10);
            carry /= 10;
        }
    }
    little_endian.iter().rev().filter_map(|&digit| char::from_digit(digit, 10)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_of_every_base() {
        assert_eq!(number("98_432"), Literal::Int(98_432.into()));
        assert_eq!(number("0xFF_FF"), Literal::Int(65_535.into()));
        assert_eq!(number("0b1010"), Literal::Int(10.into()));
        assert_eq!(number("0o17"), Literal::Int(15.into()));
        assert_eq!(number("1_0.5e-3"), Literal::Float(0.0105f64.to_bits()));
        assert_eq!(number("2j"), Literal::Imaginary);
        let huge = "340282366920938463463374607431768211456";
        assert_eq!(number(huge), Literal::BigInt(Arc::from(huge)));
        assert_eq!(number("0x100000000000000000000000000000000"), Literal::BigInt(huge.into()));
    }

    #[test]
    fn decodes_escapes() {
        let plain = Prefix::default();
        assert_eq!(unescape(r"a\n\x41\u00e9\101\q", plain), "a\nA\u{e9}A\\q");
        assert_eq!(unescape("a\\\r\nb", plain), "ab");
        assert_eq!(unescape(r"\n", Prefix { raw: true, ..plain }), r"\n");
        assert_eq!(unescape("{{x}}", Prefix { formatted: true, ..plain }), "{x}");
        assert_eq!(unescape(r"\x4", plain), r"\x4");
    }
}
