//! The call around the cursor, from the text alone: while it is written it does not parse.

use super::is_word;

/// Calls are looked for this many bytes back.
const MAX_LOOK_BACK: usize = 4000;

/// A call whose arguments are being written.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    /// What it calls, as a dotted path.
    pub(crate) callee: Vec<String>,
    /// Number of arguments before the cursor's.
    pub(crate) position: usize,
    /// The keyword of the cursor's argument.
    pub(crate) keyword: Option<String>,
    /// Keywords that are given already.
    pub(crate) given: Vec<String>,
    /// It is a launch, `kernel[grid](...)`.
    pub(crate) launch: bool,
}

/// The dotted path at the end of `text`; empty when there is none.
pub(super) fn path_at_end(text: &str) -> Vec<String> {
    let start = text.trim_end_matches(|c: char| is_word(c) || c == '.').len();
    let path: Vec<String> = text[start..].split('.').map(str::to_owned).collect();
    let starts_with_digit = path[0].starts_with(|c: char| c.is_ascii_digit());
    if path.iter().any(String::is_empty) || starts_with_digit { Vec::new() } else { path }
}

/// The innermost call whose parentheses are open at `offset`.
pub(crate) fn open_call(text: &str, offset: usize) -> Option<OpenCall> {
    let code = code_alone(&text[..offset]);
    let mut from = offset.saturating_sub(MAX_LOOK_BACK);
    while !code.is_char_boundary(from) {
        from += 1;
    }
    let window = &code[from..];
    let mut depth = 0usize;
    let mut open = None;
    for (at, c) in window.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth > 0 => depth -= 1,
            '(' => {
                open = Some(at);
                break;
            }
            '[' | '{' => return None,
            _ => {}
        }
    }
    let open = open?;
    let is_definition = |keyword: &str| {
        let before = window[..open].trim_end_matches(is_word).trim_end();
        before.strip_suffix(keyword).is_some_and(|rest| !rest.ends_with(is_word))
    };
    if is_definition("def") || is_definition("class") {
        return None;
    }
    let launch = window[..open].trim_end().ends_with(']');
    let mut callee = path_at_end(window[..open].trim_end());
    if callee.is_empty() {
        // `kernel[grid](...)` calls the kernel, `f(x).sum(...)` a method.
        callee = launched(window[..open].trim_end())?;
    }
    let mut arguments = split(&window[open + 1..]);
    let current = arguments.pop().unwrap_or_default();
    let keyword_of = |argument: &str| {
        let (name, rest) = argument.split_once('=')?;
        let name = name.trim();
        let is_keyword = !rest.starts_with('=') && !name.is_empty() && name.chars().all(is_word);
        is_keyword.then(|| name.to_owned())
    };
    let given = arguments.iter().filter_map(|argument| keyword_of(argument)).collect();
    let position = arguments.iter().filter(|argument| keyword_of(argument).is_none()).count();
    Some(OpenCall { callee, position, keyword: keyword_of(&current), given, launch })
}

/// The text with blanks in place of comments and of what stands in strings, byte for byte: brackets,
/// commas and equal signs there mean nothing.
pub(super) fn code_alone(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['#', '"', '\'']) {
        let (before, from) = rest.split_at(at);
        let (opening, inside) = match () {
            () if is_scenario_line(from) => (0, 1),
            () if from.starts_with('#') => (0, from.find('\n').unwrap_or(from.len())),
            () => string_at(from),
        };
        code.push_str(before);
        code.push_str(&from[..opening]);
        code.extend(std::iter::repeat_n(' ', inside));
        // What closes a string is read again as if nothing was open, so it is passed over here.
        let end = (opening + inside).min(from.len());
        let closing = if from[end..].starts_with(&from[..opening]) { opening } else { 0 };
        code.push_str(&from[end..end + closing]);
        rest = &from[end + closing..];
    }
    code.push_str(rest);
    code
}

/// Whether the comment at the start of `text` is a statement of a scenario, and so code.
fn is_scenario_line(text: &str) -> bool {
    let comment = text.strip_prefix('#').map(str::trim_start);
    let statement = comment.and_then(|comment| comment.strip_prefix("tile:"));
    statement.is_some_and(|statement| !statement.trim_start().starts_with("allow "))
}

/// The lengths of the quotes that open the string at the start of `text`, and of what stands in it. A
/// string with single quotes ends with its line.
fn string_at(text: &str) -> (usize, usize) {
    let quote = &text[..1];
    let triple = quote.repeat(3);
    let closing = if text.starts_with(&triple) { &triple } else { quote };
    let inside = &text[closing.len()..];
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        let ends = inside[at..].starts_with(closing) || closing == quote && c == '\n';
        if ends && !escaped {
            return (closing.len(), at);
        }
        escaped = c == '\\' && !escaped;
    }
    (closing.len(), inside.len())
}

/// The path before `[grid]`, or of a method of any value as `["", name]`.
fn launched(text: &str) -> Option<Vec<String>> {
    if let Some(inside) = text.strip_suffix(']') {
        let mut depth = 1usize;
        for (at, c) in inside.char_indices().rev() {
            match c {
                ']' => depth += 1,
                '[' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let path = path_at_end(inside[..at].trim_end());
                return (!path.is_empty()).then_some(path);
            }
        }
        return None;
    }
    let start = text.trim_end_matches(is_word).len();
    let name = &text[start..];
    (text[..start].ends_with('.') && !name.is_empty()).then(|| vec![String::new(), name.to_owned()])
}

/// Arguments at the outermost level, the last one unfinished.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}
