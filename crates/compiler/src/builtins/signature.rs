//! Parameters of builtins, read from the text of their signature.

use std::sync::{LazyLock, Mutex};

use rustc_hash::FxHashMap;

/// A parameter of a builtin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its default as Python writes it; `None` when an argument must be given.
    pub default: Option<&'static str>,
    /// How arguments reach it.
    pub kind: ParameterKind,
    /// True when the argument must be a compile-time value.
    pub constexpr: bool,
}

impl Parameter {
    /// True when the argument is an element type.
    pub fn is_dtype(&self) -> bool {
        matches!(self.name, "dtype" | "out_dtype" | "dst_ty")
    }
}

/// How arguments reach a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// By position or keyword.
    Normal,
    /// By keyword only.
    KeywordOnly,
    /// `*args`.
    VarArgs,
}

static PARSED: LazyLock<Mutex<FxHashMap<&'static str, &'static [Parameter]>>> =
    LazyLock::new(Mutex::default);

/// The parameters of a signature such as `x, axis: constexpr, *, keep_dims=False`. Each distinct
/// text is read once.
pub(super) fn parameters(signature: &'static str) -> &'static [Parameter] {
    let mut parsed = PARSED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    parsed.entry(signature).or_insert_with(|| Vec::leak(parse(signature)))
}

fn parse(signature: &'static str) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    let mut kind = ParameterKind::Normal;
    for text in split_top_level(signature) {
        if text == "*" {
            kind = ParameterKind::KeywordOnly;
            continue;
        }
        if let Some(name) = text.strip_prefix('*') {
            let kind_here = ParameterKind::VarArgs;
            parameters.push(Parameter { name, default: None, kind: kind_here, constexpr: false });
            kind = ParameterKind::KeywordOnly;
            continue;
        }
        let (head, default) = match text.split_once('=') {
            Some((head, default)) => (head.trim(), Some(default.trim())),
            None => (text, None),
        };
        let (name, constexpr) = match head.split_once(':') {
            Some((name, _)) => (name.trim(), true),
            None => (head, false),
        };
        parameters.push(Parameter { name, default, kind, constexpr });
    }
    parameters
}

/// The parts between commas that are not inside parentheses.
fn split_top_level(signature: &'static str) -> Vec<&'static str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0usize);
    for (at, c) in signature.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&signature[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&signature[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read() {
        let parameters = parameters("x, axis: constexpr, boundary=(), *, sem=None");
        let names: Vec<_> = parameters.iter().map(|p| p.name).collect();
        assert_eq!(names, ["x", "axis", "boundary", "sem"]);
        assert!(parameters[1].constexpr);
        assert_eq!(parameters[2].default, Some("()"));
        assert_eq!(parameters[3].kind, ParameterKind::KeywordOnly);
    }
}
