//! Statements and lines as those who visit them see them, wherever their nodes come from.

use std::cell::OnceCell;

use super::kind::Kind;
use super::node::{Node, Nodes};
use super::{Kept, Outline, Parse, enclosing_scenario_line, error, range};
use crate::diagnostic::Diagnostic;
use crate::source::{FileId, TextRange};

/// What scenario lines have after their `#`.
const MARKER: &str = "tile:";

/// The outermost statements of a text, with the comments and scenario lines between them. Whoever
/// looks through a text more than once takes the same ones: each is laid out when it is first visited.
#[derive(Debug)]
pub struct Statements<'t> {
    parse: &'t Parse,
    all: Vec<Statement<'t>>,
}

impl<'t> Statements<'t> {
    /// Those of a text.
    pub fn of(parse: &'t Parse) -> Statements<'t> {
        Statements { parse, all: Statement::all(parse) }
    }

    /// The text with its tree.
    pub(crate) fn parse(&self) -> &'t Parse {
        self.parse
    }

    /// The statements in source order.
    pub(crate) fn all(&self) -> &[Statement<'t>] {
        &self.all
    }

    /// Where they stand.
    pub fn outline(&self) -> Outline {
        Outline::of(self)
    }

    /// Syntax errors, in source order, one per broken place; there are none in what is `kept`.
    pub fn diagnostics(&self, file: FileId, kept: &Kept) -> Vec<Diagnostic> {
        error::diagnostics(self, file, kept)
    }
}

/// An outermost statement of a file, or a scenario line.
#[derive(Debug)]
pub(crate) struct Statement<'t>(Source<'t>);

#[derive(Debug)]
enum Source<'t> {
    /// A text without errors was read at once.
    Whole(Node<'t>),
    /// Laid out when somebody visits it: what an edit left alone nobody does.
    Tree(tree_sitter::Node<'t>, OnceCell<Nodes>),
}

impl<'t> Statement<'t> {
    fn all(parse: &'t Parse) -> Vec<Statement<'t>> {
        if let Some(nodes) = &parse.nodes {
            let named = nodes.outermost().filter(|node| node.is_named());
            return named.map(|node| Statement(Source::Whole(node))).collect();
        }
        let root = parse.root();
        let mut cursor = root.walk();
        root.named_children(&mut cursor).map(Statement::of).collect()
    }

    /// The one that a node of tree-sitter's tree is.
    pub(super) fn of(node: tree_sitter::Node<'t>) -> Statement<'t> {
        Statement(Source::Tree(node, OnceCell::new()))
    }

    /// Every scenario line in source order.
    pub(crate) fn scenario_lines(parse: &'t Parse) -> Vec<Statement<'t>> {
        let mut lines = Statement::marked_lines(parse);
        lines.retain(|line| !line.is_remark(parse.text()));
        lines
    }

    /// Every comment that begins with `# tile:`, in source order. They are extras, which may stand
    /// anywhere in the tree, so they are found by their text.
    pub(crate) fn marked_lines(parse: &'t Parse) -> Vec<Statement<'t>> {
        let mut lines: Vec<Statement<'t>> = Vec::new();
        for at in memchr::memmem::find_iter(parse.text.as_bytes(), MARKER) {
            let before = parse.text[..at].trim_end_matches([' ', '\t']);
            if !before.ends_with('#') {
                continue;
            }
            let (start, end) = (before.len() - 1, at + MARKER.len());
            let line = match &parse.nodes {
                Some(nodes) => {
                    nodes.scenario_line_at(start).map(|node| Statement(Source::Whole(node)))
                }
                None => scenario_line_in(parse, start, end).map(Statement::of),
            };
            lines.extend(
                line.filter(|line| lines.last().map(Statement::range) != Some(line.range())),
            );
        }
        lines
    }

    /// Its node in tree-sitter's tree, where it is from there: laying it out costs more than a look.
    pub(super) fn in_tree(&self) -> Option<tree_sitter::Node<'t>> {
        match &self.0 {
            Source::Whole(_) => None,
            Source::Tree(node, _) => Some(*node),
        }
    }

    /// Where it stands.
    pub(crate) fn range(&self) -> TextRange {
        match &self.0 {
            Source::Whole(node) => node.range(),
            Source::Tree(node, _) => range(*node),
        }
    }

    /// Its kind.
    pub(crate) fn kind(&self) -> Kind {
        match &self.0 {
            Source::Whole(node) => node.kind(),
            Source::Tree(node, _) => Kind::of(*node),
        }
    }

    /// Whether it is, or holds, what did not parse.
    pub(crate) fn has_error(&self) -> bool {
        match &self.0 {
            Source::Whole(node) => node.has_error(),
            Source::Tree(node, _) => node.has_error(),
        }
    }

    /// Its outermost node.
    pub(crate) fn top(&self) -> Node<'_> {
        match &self.0 {
            Source::Whole(node) => *node,
            Source::Tree(node, nodes) => nodes.get_or_init(|| Nodes::of(*node)).top(),
        }
    }

    /// True for a comment inside of indented code that begins like a scenario line and is none: words
    /// of a longer comment, wrapped there.
    pub(crate) fn is_remark(&self, text: &str) -> bool {
        let start = self.range().start as usize;
        self.has_error() && start > 0 && text.as_bytes()[start - 1] != b'\n'
    }
}

/// The scenario line around these bytes.
pub(super) fn scenario_line_in(
    parse: &Parse,
    start: usize,
    end: usize,
) -> Option<tree_sitter::Node<'_>> {
    let node = parse.root().descendant_for_byte_range(start, end)?;
    enclosing_scenario_line(node)
}
