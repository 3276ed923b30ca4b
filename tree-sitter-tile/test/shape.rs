//! The text form of trees that the tests compare.

use std::fmt::Write;

use tree_sitter::Node;

/// The s-expression of a tree as tree-sitter's corpus files write it: named and missing
/// nodes with their fields, one a line.
pub fn shape(node: Node) -> String {
    let mut out = String::new();
    write_node(node, None, 0, &|_| true, &mut out);
    out
}

/// The same without the subtrees that `keep` refuses.
pub fn shape_of(node: Node, keep: &dyn Fn(Node) -> bool) -> String {
    let mut out = String::new();
    write_node(node, None, 0, keep, &mut out);
    out
}

/// Every node, anonymous ones included, with its kind and its range.
pub fn shape_with_ranges(node: Node) -> String {
    let mut out = String::new();
    write_range(node, 0, &mut out);
    out
}

fn write_node(
    node: Node,
    field: Option<&str>,
    depth: usize,
    keep: &dyn Fn(Node) -> bool,
    out: &mut String,
) {
    if !keep(node) || !(node.is_named() || node.is_missing()) {
        return;
    }
    if depth > 0 {
        out.push('\n');
    }
    out.extend(std::iter::repeat_n("  ", depth));
    if let Some(field) = field {
        write!(out, "{field}: ").expect("writing to a string");
    }
    if node.is_missing() {
        let quote = if node.is_named() { "" } else { "\"" };
        write!(out, "(MISSING {quote}{}{quote})", node.kind()).expect("writing to a string");
        return;
    }
    write!(out, "({}", node.kind()).expect("writing to a string");
    for index in 0..node.child_count() {
        let index = u32::try_from(index).expect("trees are smaller than 4 GiB");
        let child = node.child(index).expect("index below child_count");
        write_node(child, node.field_name_for_child(index), depth + 1, keep, out);
    }
    out.push(')');
}

fn write_range(node: Node, depth: usize, out: &mut String) {
    let (kind, range) = (node.kind(), node.byte_range());
    let missing = if node.is_missing() { " missing" } else { "" };
    writeln!(out, "{:depth$}{kind}{missing} {range:?}", "").expect("writing to a string");
    for child in node.children(&mut node.walk()) {
        write_range(child, depth + 1, out);
    }
}
