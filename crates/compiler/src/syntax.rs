//! Text to syntax tree, incrementally, with readable syntax errors.
//!
//! A [`Parse`] is a tree together with the text it was made from. It is immutable and cheap to
//! clone; an edit makes a new one that shares the unchanged parts.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use tree_sitter::{InputEdit, Node, Parser, Point, Tree};

use crate::diagnostic::Diagnostic;
use crate::source::{FileId, TextRange};

pub use self::kept::{Kept, Outline};
use self::kind::Kind;
use self::node::Nodes;
pub use self::statement::Statements;

mod error;
mod kept;
pub(crate) mod kind;
pub(crate) mod node;
mod rules;
pub(crate) mod statement;
#[cfg(test)]
mod tests;

/// A syntax tree and the text it describes.
#[derive(Debug, Clone)]
pub struct Parse {
    text: Arc<str>,
    /// The nodes of a text without errors that was read at once, which is some times faster than
    /// making a tree that can be edited.
    nodes: Option<Arc<Nodes>>,
    /// That tree, once somebody asked for it.
    tree: Arc<OnceLock<Tree>>,
}

/// Replacement of a range of the old text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    /// The bytes of the old text that are replaced.
    pub old: TextRange,
    /// Number of bytes that stand there in the new text.
    pub new_len: usize,
}

impl Parse {
    /// Parses `text` from nothing. Any text has a tree; what does not parse is marked in it.
    pub fn new(text: impl Into<Arc<str>>) -> Parse {
        let text = text.into();
        let nodes = tree_sitter_tile::whole::parse(&text);
        let nodes = nodes.map(|nodes| Arc::new(Nodes::whole(&nodes)));
        Parse { text, nodes, tree: Arc::default() }
    }

    /// Parses `new_text`, reusing what `edit` left alone. `new_text` must be the old text with
    /// the edit applied; an edit that does not describe the change is answered by a full parse.
    #[must_use]
    pub fn edit(&self, edit: &Edit, new_text: impl Into<Arc<str>>) -> Parse {
        let new_text = new_text.into();
        if !edit.describes(&self.text, &new_text) {
            return Parse::new(new_text);
        }
        let mut old = self.tree().clone();
        old.edit(&edit.to_input(&self.text, &new_text));
        let tree = parse(&new_text, Some(&old));
        Parse { text: new_text, nodes: None, tree: Arc::new(OnceLock::from(tree)) }
    }

    /// The text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The tree. The first call for a text that was not edited makes it.
    pub fn tree(&self) -> &Tree {
        self.tree.get_or_init(|| parse(&self.text, None))
    }

    /// The tree's outermost node.
    pub fn root(&self) -> Node<'_> {
        self.tree().root_node()
    }

    /// Whether something did not parse.
    pub fn has_error(&self) -> bool {
        self.nodes.is_none() && self.root().has_error()
    }

    /// Syntax errors, in source order, one per broken place.
    pub fn diagnostics(&self, file: FileId) -> Vec<Diagnostic> {
        Statements::of(self).diagnostics(file, &Kept::default())
    }
}

impl Edit {
    /// True when the edit turns a text of `old`'s length into one of `new`'s at sane places.
    fn describes(&self, old: &str, new: &str) -> bool {
        let old_range = self.old.as_usize();
        let new_end = old_range.start + self.new_len;
        old.is_char_boundary(old_range.start)
            && old.is_char_boundary(old_range.end)
            && new.is_char_boundary(old_range.start)
            && new.is_char_boundary(new_end)
            && old.len() - old_range.len() + self.new_len == new.len()
    }

    fn to_input(self, old: &str, new: &str) -> InputEdit {
        let old_range = self.old.as_usize();
        let new_end = old_range.start + self.new_len;
        InputEdit {
            start_byte: old_range.start,
            old_end_byte: old_range.end,
            new_end_byte: new_end,
            start_position: point(old, old_range.start),
            old_end_position: point(old, old_range.end),
            new_end_position: point(new, new_end),
        }
    }
}

/// Row and byte column of `offset`.
fn point(text: &str, offset: usize) -> Point {
    let before = &text.as_bytes()[..offset];
    let row = before.iter().filter(|&&byte| byte == b'\n').count();
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    Point { row, column: offset - start }
}

fn enclosing_scenario_line(node: Node<'_>) -> Option<Node<'_>> {
    let mut current = Some(node);
    while let Some(node) = current {
        if Kind::of(node) == Kind::ScenarioLine {
            return current;
        }
        current = node.parent();
    }
    None
}

/// Range of a node.
pub(crate) fn range(node: Node<'_>) -> TextRange {
    TextRange::new(node.start_byte(), node.end_byte())
}

thread_local! {
    static PARSER: RefCell<Parser> = RefCell::new(new_parser());
}

fn new_parser() -> Parser {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_tile::LANGUAGE.into())
        .expect("invariant: the grammar is generated for this version of tree-sitter");
    parser
}

fn parse(text: &str, old: Option<&Tree>) -> Tree {
    PARSER.with_borrow_mut(|parser| {
        parser.parse(text, old).expect("invariant: parsing has a language and no time limit")
    })
}
