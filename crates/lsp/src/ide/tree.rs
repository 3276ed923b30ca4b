//! Nodes of syntax trees: where they lie, what is around them and inside.

use tile_compiler::source::TextRange;
use tree_sitter::Node;

/// The identifier at `offset`, or just before it, or what is between the quotes of a string there.
pub(crate) fn identifier_at(root: Node<'_>, offset: usize) -> Option<Node<'_>> {
    let is_word = |node: &Node<'_>| is_word(*node);
    let at = root.descendant_for_byte_range(offset, offset).filter(is_word);
    let before = || {
        let start = offset.checked_sub(1)?;
        root.descendant_for_byte_range(start, start).filter(is_word)
    };
    at.or_else(before)
}

/// True for nodes that can be the name of something.
pub(crate) fn is_word(node: Node<'_>) -> bool {
    matches!(node.kind(), "identifier" | "string_content")
}

/// The nodes around `node`, outermost first. A node does not know its parent, so each step up from it
/// is a search down from the outermost node; this is one search for all.
pub(crate) fn ancestors<'t>(root: Node<'t>, node: Node<'t>) -> Vec<Node<'t>> {
    let mut around = Vec::new();
    let mut next = Some(root).filter(|root| *root != node);
    while let Some(outer) = next {
        around.push(outer);
        next = outer.child_with_descendant(node).filter(|inner| *inner != node);
    }
    around
}

/// The bytes of a node.
pub(crate) fn range(node: Node<'_>) -> TextRange {
    TextRange::new(node.start_byte(), node.end_byte())
}

/// True when `child` stands in `field` of `parent`.
pub(crate) fn is_field(parent: Node<'_>, field: &str, child: Node<'_>) -> bool {
    let mut cursor = parent.walk();
    parent.children_by_field_name(field, &mut cursor).any(|found| found == child)
}

/// Calls `visit` with every named node.
pub(crate) fn walk<'t>(root: Node<'t>, visit: &mut dyn FnMut(Node<'t>)) {
    walk_below(root, &mut |_, node| {
        visit(node);
        true
    });
}

/// Calls `visit` with every named node and all nodes around it, outermost first; where it answers
/// false, what is inside of the node is passed over.
pub(crate) fn walk_below<'t>(root: Node<'t>, visit: &mut dyn FnMut(&[Node<'t>], Node<'t>) -> bool) {
    let mut cursor = root.walk();
    let mut around = Vec::new();
    loop {
        let node = cursor.node();
        let is_wanted = !node.is_named() || visit(&around, node);
        if is_wanted && cursor.goto_first_child() {
            around.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            around.pop();
        }
    }
}
