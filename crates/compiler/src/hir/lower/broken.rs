//! Statements that hold syntax errors. What a parser makes of a line that somebody is typing says
//! little of what the line will be, so nothing but the syntax error itself is reported of it.

use super::Lowering;
use super::stmt::is_statement;
use crate::hir::{Broken, Name};
use crate::source::TextRange;
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::Node;

/// Where syntax errors of a function are.
#[derive(Debug, Default)]
pub(super) struct BrokenLines {
    /// The lines that hold them.
    lines: Vec<TextRange>,
    /// Statements, without their suites, that meet these lines.
    heads: Vec<TextRange>,
}

impl BrokenLines {
    /// Finds them below `node`.
    pub(super) fn below(text: &str, node: Node<'_>) -> BrokenLines {
        let mut lines = BrokenLines::default();
        if node.has_error() {
            lines.search(text, node);
        }
        lines
    }

    fn search(&mut self, text: &str, node: Node<'_>) {
        if node.is_missing() {
            return self.add(text, node);
        }
        let is_error = node.kind() == Kind::Error;
        if is_error && node.children().next().is_none() {
            self.add(text, node);
        }
        for child in node.children() {
            // A comment leaves the code on its line whole.
            if child.kind() == Kind::ScenarioLine {
                continue;
            }
            // Recovery keeps whole statements inside an error.
            let is_whole = is_statement(child.kind());
            if child.has_error() || child.is_missing() {
                self.search(text, child);
            } else if is_error && !is_whole {
                self.add(text, child);
            }
        }
    }

    fn add(&mut self, text: &str, node: Node<'_>) {
        let start = text[..node.start_byte()].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let rest = &text[node.end_byte()..];
        let end = node.end_byte() + rest.find(['\n', '\r']).unwrap_or(rest.len());
        self.lines.push(TextRange::new(start, end));
    }

    /// Whether a statement, of which a suite does not count, holds an error or shares a line with
    /// one.
    fn meets(&mut self, statement: Node<'_>) -> bool {
        if self.lines.is_empty() {
            return false;
        }
        let suite =
            [Field::Body, Field::Consequence].into_iter().find_map(|it| statement.field(it));
        let end = suite.map_or(statement.end_byte(), |suite| suite.start_byte());
        let head = TextRange::new(statement.start_byte(), end.max(statement.start_byte()));
        let meets = self.lines.iter().any(|it| it.start <= head.end && head.start <= it.end);
        self.heads.extend(meets.then_some(head));
        meets
    }

    /// The names that stand in these lines and statements.
    fn names(&self, text: &str) -> Vec<Name> {
        let words = self.lines.iter().chain(&self.heads).flat_map(|range| {
            let code = text.get(range.as_usize()).unwrap_or_default();
            code.split(|c: char| !c.is_alphanumeric() && c != '_')
        });
        let mut words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.sort_unstable();
        words.dedup();
        words.into_iter().map(Name::from).collect()
    }
}

impl Lowering<'_> {
    /// Notes a statement that a syntax error breaks.
    pub(super) fn note_broken(&mut self, statement: Node<'_>, id: crate::hir::StmtId) {
        if self.broken.meets(statement) {
            self.body.broken.get_or_insert_default().stmts.push(id);
        }
    }

    /// Notes the names in lines with syntax errors.
    pub(super) fn note_broken_names(&mut self) {
        let names = self.broken.names(self.text);
        if !names.is_empty() {
            let broken: &mut Broken = self.body.broken.get_or_insert_default();
            broken.names = names;
        }
    }
}
