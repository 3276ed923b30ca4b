//! The nodes of a statement, laid out for those who visit them.
//!
//! Trees of tree-sitter are made for edits: where a node stands follows from all that stands before it,
//! and which field it is in from the rules that made it. Lowering visits nodes several times, so it
//! visits a copy of each statement, in which that is written beside the node.

use std::num::NonZeroU16;

use tree_sitter_tile::whole;

use super::kind::{Field, Kind, spelling};
use super::range;
use crate::source::TextRange;

/// Nodes and all below them, each before what it holds, in the order of the text.
#[derive(Debug)]
pub(crate) struct Nodes(Vec<Data>);

#[derive(Debug)]
struct Data {
    start: u32,
    end: u32,
    /// The number of the first node after all that are below.
    next: u32,
    /// The grammar's number of its kind.
    id: u16,
    kind: Kind,
    field: Option<Field>,
    is_named: bool,
    is_missing: bool,
    has_error: bool,
}

/// One of [`Nodes`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'t> {
    nodes: &'t [Data],
    at: u32,
}

/// What is asked of nodes that are laid out and of tree-sitter's.
pub(super) trait SyntaxNode: Copy {
    /// Its kind.
    fn sort(self) -> Kind;
    /// Where it stands.
    fn place(self) -> TextRange;
    /// Whether it is, or holds, what did not parse.
    fn is_broken(self) -> bool;
    /// The nodes right below it that are more than keywords and punctuation.
    fn named_parts(self) -> Vec<Self>;
    /// The grammar's name of its first part: of a keyword, the word.
    fn first_word(self) -> &'static str;
}

impl SyntaxNode for Node<'_> {
    fn sort(self) -> Kind {
        self.kind()
    }

    fn place(self) -> TextRange {
        self.range()
    }

    fn is_broken(self) -> bool {
        self.has_error()
    }

    fn named_parts(self) -> Vec<Self> {
        self.named_children().collect()
    }

    fn first_word(self) -> &'static str {
        self.children().next().map_or("", Node::spelling)
    }
}

impl SyntaxNode for tree_sitter::Node<'_> {
    fn sort(self) -> Kind {
        Kind::of(self)
    }

    fn place(self) -> TextRange {
        range(self)
    }

    fn is_broken(self) -> bool {
        self.has_error()
    }

    fn named_parts(self) -> Vec<Self> {
        let mut cursor = self.walk();
        self.named_children(&mut cursor).collect()
    }

    fn first_word(self) -> &'static str {
        self.child(0).map_or("", |child| child.kind())
    }
}

impl Nodes {
    /// Copies `top` and what is below.
    pub(crate) fn of(top: tree_sitter::Node<'_>) -> Nodes {
        let mut nodes: Vec<Data> = Vec::new();
        let mut around: Vec<usize> = Vec::new();
        let has_errors = top.has_error();
        let mut cursor = top.walk();
        loop {
            let at = nodes.len();
            nodes.push(Data::new(&cursor, at, has_errors));
            if cursor.goto_first_child() {
                around.push(at);
                continue;
            }
            while !cursor.goto_next_sibling() {
                let Some(parent) = around.pop() else { return Nodes(nodes) };
                nodes[parent].next = nodes.len() as u32;
                cursor.goto_parent();
            }
        }
    }

    /// The nodes of a text that was read at once.
    pub(super) fn whole(nodes: &[whole::Node]) -> Nodes {
        Nodes(nodes.iter().map(Data::from).collect())
    }

    /// The first outermost node.
    pub(crate) fn top(&self) -> Node<'_> {
        Node { nodes: &self.0, at: 0 }
    }

    /// The outermost nodes.
    pub(super) fn outermost(&self) -> impl Iterator<Item = Node<'_>> {
        siblings(&self.0, 0, self.0.len() as u32)
    }

    /// The scenario line that begins at this byte.
    pub(super) fn scenario_line_at(&self, start: usize) -> Option<Node<'_>> {
        // Nodes begin in the order in which they stand here.
        let first = self.0.partition_point(|node| (node.start as usize) < start);
        let nodes = (first..self.0.len()).map(|at| Node { nodes: &self.0, at: at as u32 });
        let mut here = nodes.take_while(|node| node.start_byte() == start);
        here.find(|node| node.kind() == Kind::ScenarioLine)
    }
}

/// The node at `first` and those after it that are below the same one, which ends at `end`.
fn siblings(nodes: &[Data], first: u32, end: u32) -> impl Iterator<Item = Node<'_>> {
    let node = move |at: u32| (at < end).then_some(Node { nodes, at });
    std::iter::successors(node(first), move |child| node(child.data().next))
}

impl From<&whole::Node> for Data {
    fn from(node: &whole::Node) -> Data {
        Data {
            start: node.start,
            end: node.end,
            next: node.next,
            id: node.kind,
            kind: Kind::numbered(node.kind),
            field: NonZeroU16::new(node.field).and_then(Field::from_id),
            is_named: node.is_named,
            is_missing: false,
            has_error: false,
        }
    }
}

impl Data {
    /// The node at a cursor, which is the `at`th, as one with nothing below.
    fn new(cursor: &tree_sitter::TreeCursor<'_>, at: usize, has_errors: bool) -> Data {
        let node = cursor.node();
        let id = node.kind_id();
        Data {
            start: node.start_byte() as u32,
            end: node.end_byte() as u32,
            next: at as u32 + 1,
            id,
            kind: Kind::numbered(id),
            field: cursor.field_id().and_then(Field::from_id),
            is_named: node.is_named(),
            is_missing: has_errors && node.is_missing(),
            has_error: has_errors && node.has_error(),
        }
    }
}

impl<'t> Node<'t> {
    fn data(self) -> &'t Data {
        &self.nodes[self.at as usize]
    }

    /// Its kind.
    pub(crate) fn kind(self) -> Kind {
        self.data().kind
    }

    /// The grammar's name for it: of a keyword or punctuation, its text.
    pub(crate) fn spelling(self) -> &'static str {
        spelling(self.data().id)
    }

    /// Whether it is more than a keyword or punctuation.
    pub(crate) fn is_named(self) -> bool {
        self.data().is_named
    }

    /// Whether it stands for what the text lacks.
    pub(crate) fn is_missing(self) -> bool {
        self.data().is_missing
    }

    /// Whether it is, or holds, what did not parse.
    pub(crate) fn has_error(self) -> bool {
        self.data().has_error
    }

    /// Where it begins, in bytes.
    pub(crate) fn start_byte(self) -> usize {
        self.data().start as usize
    }

    /// Where it ends, in bytes.
    pub(crate) fn end_byte(self) -> usize {
        self.data().end as usize
    }

    /// Where it stands.
    pub(crate) fn range(self) -> TextRange {
        let Data { start, end, .. } = *self.data();
        TextRange { start, end }
    }

    /// The nodes right below it.
    pub(crate) fn children(self) -> impl Iterator<Item = Node<'t>> {
        siblings(self.nodes, self.at + 1, self.data().next)
    }

    /// Those that are more than keywords and punctuation.
    pub(crate) fn named_children(self) -> impl Iterator<Item = Node<'t>> {
        self.children().filter(|child| child.is_named())
    }

    /// The node and all below it in the order of the text, without what is below those that `enters`
    /// refuses.
    pub(crate) fn within(
        self,
        enters: impl Fn(Node<'t>) -> bool,
    ) -> impl Iterator<Item = Node<'t>> {
        let end = self.data().next;
        let after = move |node: &Node<'t>| {
            let at = if enters(*node) { node.at + 1 } else { node.data().next };
            (at < end).then_some(Node { at, ..*node })
        };
        std::iter::successors(Some(self), after)
    }

    /// The first child in a field.
    pub(crate) fn field(self, field: Field) -> Option<Node<'t>> {
        self.children().find(|child| child.is_in(field))
    }

    /// Whether its parent has it in this field.
    pub(crate) fn is_in(self, field: Field) -> bool {
        self.data().field == Some(field)
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && std::ptr::eq(self.nodes, other.nodes)
    }
}
