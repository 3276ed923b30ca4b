//! Errors in a tree as diagnostics.
//!
//! A broken place yields one diagnostic, at what the author must change: an opening bracket that
//! nothing closes, a string without an end, the token that cannot stand where it does. Of several
//! errors on one line only the first is reported, because the others follow from it.

use std::cmp::Ordering;
use std::ops::Range;

use tree_sitter::Node;

use super::kind::{Field, Kind};
use super::node::SyntaxNode;
use super::statement::{Statement, Statements, scenario_line_in};
use super::{Kept, Parse, range, rules};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{FileId, FileRange, TextRange};

/// At most this many syntax errors of one file are reported.
const MAX_ERRORS: usize = 100;

/// Keywords that begin compound statements.
const COMPOUND_KEYWORDS: &[&str] =
    &["class", "def", "elif", "else", "except", "finally", "for", "if", "try", "while", "with"];

/// Text shown in a message is cut after this many characters.
const MAX_QUOTE: usize = 24;

/// Errors of a text, in source order; there are none in what is `kept`.
pub(super) fn diagnostics(
    statements: &Statements<'_>,
    file: FileId,
    kept: &Kept,
) -> Vec<Diagnostic> {
    let parse = statements.parse();
    let mut errors = Errors { text: parse.text(), file, found: Vec::new(), unclosed: Vec::new() };
    if parse.has_error() {
        errors.broken(parse.root());
    }
    errors.indentation(statements.all(), kept);
    for line in Statement::scenario_lines(parse) {
        if line.top().children().any(|child| child.kind() == Kind::Unfinished) {
            errors.unfinished(parse, line.range());
        }
    }
    errors.found.retain(|found| !in_remark(parse, found));
    if errors.found.is_empty() {
        errors.found = rules::diagnostics(parse.text(), statements.all(), file, kept);
    }
    errors.finish()
}

/// True for an error in a comment that only looks like a scenario line.
fn in_remark(parse: &Parse, found: &Diagnostic) -> bool {
    let range = found.primary.range;
    let line = scenario_line_in(parse, range.start as usize, range.end as usize);
    line.is_some_and(|line| Statement::of(line).is_remark(parse.text()))
}

struct Errors<'a> {
    text: &'a str,
    file: FileId,
    found: Vec<Diagnostic>,
    /// What lies between brackets that are never closed and the places where they would have to be:
    /// what is wrong there follows from that.
    unclosed: Vec<TextRange>,
}

impl<'a> Errors<'a> {
    fn report(&mut self, at: TextRange, message: impl Into<String>) {
        let at = FileRange { file: self.file, range: at };
        self.found.push(Diagnostic::new(Code::SyntaxError, at, message));
    }

    fn note(&mut self, note: &str) {
        if let Some(last) = self.found.pop() {
            self.found.push(last.with_note(note));
        }
    }

    fn relate(&mut self, at: TextRange, message: &str) {
        let at = FileRange { file: self.file, range: at };
        if let Some(last) = self.found.pop() {
            self.found.push(last.with_related(at, message));
        }
    }

    /// Sorts, and keeps the first error of each line.
    fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(Diagnostic::sort_key);
        let unclosed = std::mem::take(&mut self.unclosed);
        self.found.retain(|found| {
            let at = found.primary.range.start;
            !unclosed.iter().any(|inside| inside.start < at && at < inside.end)
        });
        let mut last_line_end = None;
        let text = self.text;
        self.found.retain(|diagnostic| {
            let start = diagnostic.primary.range.start as usize;
            let fresh = last_line_end.is_none_or(|end| start > end);
            if fresh {
                last_line_end = Some(line_end(text, start));
            }
            fresh
        });
        self.found.truncate(MAX_ERRORS);
        self.found
    }

    /// Visits the nodes that hold errors.
    fn broken(&mut self, root: Node<'_>) {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            let descend = node.has_error() && !self.broken_node(node);
            if descend && cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    /// Reports `node` if it is an error itself; then its inside is not looked at.
    fn broken_node(&mut self, node: Node<'_>) -> bool {
        if node.is_missing() {
            self.missing(node);
            return true;
        }
        if Kind::of(node) == Kind::Error {
            self.error(node);
            return true;
        }
        false
    }

    /// A token that the parser had to invent.
    fn missing(&mut self, node: Node<'_>) {
        let at = self.after_code(node.start_byte());
        match node.kind() {
            ")" | "]" | "}" => match opener(node) {
                Some(opener) => self.unclosed(opener, at),
                None => self.report(at, format!("expected `{}`", node.kind())),
            },
            "_indent" => self.report(at, "expected an indented block"),
            "identifier" => self.report(at, "expected a name"),
            "string_end" => self.report(at, "this string has no end"),
            kind if kind.starts_with('_') => self.report(at, "this statement is not complete"),
            kind => self.report(at, format!("expected `{kind}`")),
        }
    }

    /// Text that the parser had to skip.
    fn error(&mut self, node: Node<'_>) {
        let tokens = tokens(node);
        self.missing_colons(&tokens);
        if let Some(quote) = tokens.iter().find(|token| is_unclosed_string(**token)) {
            let end = line_end(self.text, quote.start_byte());
            self.report(TextRange::new(quote.start_byte(), end), "this string has no end");
            return;
        }
        match unbalanced(&tokens) {
            Some(Bracket::Unclosed(opener)) => {
                let at = self.after_code(node.end_byte());
                return self.unclosed(opener, at);
            }
            Some(Bracket::Unmatched(closer)) => {
                let quote = self.quote(range(closer));
                return self.report(range(closer), format!("{quote} closes nothing"));
            }
            None => {}
        }
        match tokens.first() {
            Some(first) => self.unexpected(node, *first),
            None => {
                let token = self.token_at(node.start_byte());
                let quote = self.quote(token);
                self.report(token, format!("unexpected {quote}"));
            }
        }
    }

    /// A scenario line that ends inside brackets or a string.
    fn unfinished(&mut self, parse: &Parse, line: TextRange) {
        let line = scenario_line_in(parse, line.start as usize, line.end as usize);
        let Some(line) = line else { return };
        let tokens = tokens(line);
        match (tokens.iter().find(|token| is_unclosed_string(**token)), unbalanced(&tokens)) {
            (Some(quote), _) => self.report(range(*quote), "this string has no end"),
            (None, Some(Bracket::Unclosed(opener))) => {
                let quote = self.quote(range(opener));
                let message = format!("{quote} is never closed; a scenario statement is one line");
                self.report(range(opener), message);
            }
            _ => self.report(range(line), "this scenario statement is not complete"),
        }
    }

    /// Compound statements inside skipped text whose line does not end in a colon.
    fn missing_colons(&mut self, tokens: &[Node<'_>]) {
        for token in tokens.iter().filter(|token| COMPOUND_KEYWORDS.contains(&token.kind())) {
            let start = token.start_byte();
            let line_start = self.text[..start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
            if !self.text[line_start..start].trim().is_empty() {
                continue;
            }
            let end = line_end(self.text, start);
            let code = self.text[start..end].split('#').next().unwrap_or_default().trim_end();
            let open =
                code.matches(['(', '[', '{']).count() > code.matches([')', ']', '}']).count();
            if !code.contains(':') && !open && !code.ends_with('\\') {
                let at = self.after_code(start + code.len());
                self.report(at, format!("expected `:` at the end of this `{}`", token.kind()));
            }
        }
    }

    fn unclosed(&mut self, opener: Node<'_>, end: TextRange) {
        let quote = self.quote(range(opener));
        self.report(range(opener), format!("{quote} is never closed"));
        self.relate(end, "it would have to be closed here");
        self.unclosed.push(TextRange { start: range(opener).start, end: end.end });
    }

    /// Says what is wrong with a token at the start of skipped text.
    fn unexpected(&mut self, error: Node<'_>, first: Node<'_>) {
        let at = range(first);
        let text = &self.text[first.byte_range()];
        let rest = self.text[first.end_byte()..].trim_start_matches([' ', '\t']);
        let ends_line = rest.is_empty() || rest.starts_with(['\n', '\r', '#']);
        if text == "." && (ends_line || !rest.starts_with(is_name_start)) {
            return self.report(at, "expected a name after `.`");
        }
        if ends_line && is_operator(text) {
            return self.report(at, format!("expected an expression after `{text}`"));
        }
        if text == "=" && in_condition(error) {
            let at = self.here(at);
            let fix = crate::diagnostic::TextEdit { at, text: "==".to_owned() };
            let diagnostic = Diagnostic::new(
                Code::SyntaxError,
                at,
                "`=` assigns; a condition compares with `==`",
            );
            self.found.push(diagnostic.with_fix("Replace `=` with `==`", vec![fix]));
            return;
        }
        match text {
            "else" | "elif" => {
                self.report(at, format!("`{text}` has no `if` at its indentation"));
            }
            "except" | "finally" => {
                self.report(at, format!("`{text}` has no `try` at its indentation"));
            }
            "," | ";" | ":" => self.report(at, format!("unexpected `{text}`")),
            _ => {
                let quote = self.quote(at);
                self.report(at, format!("unexpected {quote}"));
                if text == "print" {
                    self.note("print is a function: write `print(...)`");
                }
            }
        }
    }

    fn here(&self, range: TextRange) -> FileRange {
        FileRange { file: self.file, range }
    }

    /// The last character of code at or before `offset`: where something is missing.
    fn after_code(&self, offset: usize) -> TextRange {
        let before = self.text[..offset].trim_end();
        let last = before.chars().next_back().map_or(0, char::len_utf8);
        TextRange::new(before.len() - last, before.len())
    }

    /// The word or character at or after `offset`, on its line.
    fn token_at(&self, offset: usize) -> TextRange {
        let rest = &self.text[offset..];
        let start = offset + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
        let token = &self.text[start..];
        let word = token.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(token.len());
        let first = token.chars().next().map_or(0, char::len_utf8);
        TextRange::new(start, start + word.max(first))
    }

    /// The text at `at` as a message shows it.
    fn quote(&self, at: TextRange) -> String {
        let text = self.text.get(at.as_usize()).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        match line.char_indices().nth(MAX_QUOTE) {
            _ if line.is_empty() => "end of line".to_owned(),
            Some((end, _)) => format!("`{}...`", &line[..end]),
            None => format!("`{line}`"),
        }
    }

    /// Checks what the parser lets pass: that blocks are there and evenly indented, and that each
    /// statement has its line.
    fn indentation(&mut self, statements: &[Statement<'_>], kept: &Kept) {
        let mut module = BlockLines { is_module: true, ..BlockLines::default() };
        for statement in statements.iter().filter(|statement| !statement.kind().is_extra()) {
            self.statement_line(statement.kind(), statement.range(), &mut module);
            if statement.kind().is_compound() && kept.place_before(statement.range()).is_none() {
                match statement.in_tree() {
                    Some(node) => self.indentation_within(node),
                    None => self.indentation_within(statement.top()),
                }
            }
        }
    }

    fn indentation_within<N: SyntaxNode>(&mut self, statement: N) {
        let mut pending = vec![statement];
        while let Some(node) = pending.pop() {
            let mut block = BlockLines::default();
            let children = node.named_parts();
            for child in children.into_iter().filter(|child| !child.sort().is_extra()) {
                let is_block = child.sort() == Kind::Block;
                if is_block && child.named_parts().is_empty() && !child.is_broken() {
                    self.empty_block(node.first_word(), child.place());
                }
                if node.sort() == Kind::Block {
                    self.statement_line(child.sort(), child.place(), &mut block);
                }
                if child.sort().is_compound() {
                    pending.push(child);
                }
            }
        }
    }

    /// Compares the place of a statement with those before it in its block.
    fn statement_line(&mut self, kind: Kind, at: TextRange, block: &mut BlockLines<'a>) {
        let Range { start, end } = at.as_usize();
        let is_error = kind == Kind::Error;
        let (previous_end, after_error) = (block.end, block.after_error);
        block.end = end;
        block.after_error = is_error;
        if is_error || after_error {
            return;
        }
        let line = self.text[..start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let before = self.text[line..start].trim_start_matches('\u{feff}');
        // A form feed has columns count from 0 again.
        let before = before.rsplit('\u{c}').next().unwrap_or_default();
        if before.chars().all(char::is_whitespace) {
            self.statement_indent(before, start, block);
        } else if previous_end > line && !self.text[previous_end..start].contains([';', '\\']) {
            let at = self.token_at(start);
            let quote = self.quote(at);
            self.report(at, format!("unexpected {quote}: the statement before it ends here"));
            if self.text[..start].trim_end().ends_with("print") {
                self.note("print is a function: write `print(...)`");
            }
        }
    }

    /// Compares the indentation of a statement with that of the first one of its block.
    fn statement_indent(&mut self, indent: &'a str, start: usize, block: &mut BlockLines<'a>) {
        let at = self.token_at(start);
        let first = match block.indent {
            Some(first) => first,
            None if block.is_module => "",
            None => indent,
        };
        block.indent = Some(first);
        if first == indent {
            return;
        }
        match indent_width(indent).cmp(&indent_width(first)) {
            Ordering::Greater => self.report(at, "unexpected indentation"),
            Ordering::Less => self.report(at, "this line is indented like no block around it"),
            Ordering::Equal => {
                self.report(at, "tabs and spaces are mixed in this block's indentation");
            }
        }
    }

    fn empty_block(&mut self, keyword: &str, block: TextRange) {
        let at = self.after_code(block.as_usize().start);
        self.report(at, format!("expected an indented block after `{keyword}`"));
    }
}

/// Where the statements of a block stand.
#[derive(Default)]
struct BlockLines<'a> {
    is_module: bool,
    /// Leading white space of the first statement.
    indent: Option<&'a str>,
    /// End of the statement before.
    end: usize,
    /// Whether that statement is broken, so that what follows may be misplaced for it.
    after_error: bool,
}

/// Columns that leading white space takes, with tabs as Python counts them.
fn indent_width(indent: &str) -> usize {
    indent.chars().fold(0, |width, c| match c {
        '\t' => (width / 8 + 1) * 8,
        _ => width + 1,
    })
}

/// End of the line around `offset`.
fn line_end(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or_default();
    rest.find(['\n', '\r']).map_or(text.len(), |at| offset + at)
}

/// Leaves of an error, in order, without comments.
fn tokens(error: Node<'_>) -> Vec<Node<'_>> {
    let mut tokens = Vec::new();
    let mut cursor = error.walk();
    loop {
        let node = cursor.node();
        let kind = Kind::of(node);
        if cursor.goto_first_child() {
            continue;
        }
        let is_token = !kind.is_extra() && node.id() != error.id() && !node.byte_range().is_empty();
        if is_token {
            tokens.push(node);
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return tokens;
            }
        }
    }
}

enum Bracket<'t> {
    Unclosed(Node<'t>),
    Unmatched(Node<'t>),
}

/// The first bracket of skipped text that has no partner there.
fn unbalanced<'t>(tokens: &[Node<'t>]) -> Option<Bracket<'t>> {
    let mut open: Vec<Node<'t>> = Vec::new();
    for token in tokens {
        match token.kind() {
            "(" | "[" | "{" => open.push(*token),
            ")" | "]" | "}" if open.pop().is_none() => return Some(Bracket::Unmatched(*token)),
            _ => {}
        }
    }
    open.first().map(|opener| Bracket::Unclosed(*opener))
}

/// The bracket that the missing closing bracket `node` belongs to.
fn opener(node: Node<'_>) -> Option<Node<'_>> {
    let wanted = match node.kind() {
        ")" => "(",
        "]" => "[",
        _ => "{",
    };
    let parent = node.parent()?;
    let mut cursor = parent.walk();
    parent.children(&mut cursor).find(|child| child.kind() == wanted)
}

fn is_unclosed_string(token: Node<'_>) -> bool {
    if Kind::of(token) != Kind::StringStart {
        return false;
    }
    let siblings = token.parent().map(|parent| {
        let mut cursor = parent.walk();
        parent.children(&mut cursor).any(|child| Kind::of(child) == Kind::StringEnd)
    });
    siblings != Some(true)
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Operators and keywords that an expression must follow.
fn is_operator(text: &str) -> bool {
    let symbol = !text.is_empty() && text.chars().all(|c| "+-*/%@&|^~<>=!".contains(c));
    symbol || matches!(text, "and" | "or" | "not" | "in" | "is" | "if" | "return" | "lambda")
}

/// True when the error stands in the condition of an `if`, `elif` or `while`.
fn in_condition(error: Node<'_>) -> bool {
    let Some(parent) = error.parent() else { return false };
    matches!(Kind::of(parent), Kind::IfStatement | Kind::ElifClause | Kind::WhileStatement)
        && Field::Condition.of(parent).is_some_and(|test| test.end_byte() <= error.start_byte())
}
