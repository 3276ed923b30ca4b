//! Trees that are read at once are those of tree-sitter.

use proptest::prelude::*;
use tree_sitter::TreeCursor;
use tree_sitter_tile::whole::{self, Node};

use crate::{
    incremental::{FRAGMENTS, sources},
    parse,
    standard_library::standard_library,
};

/// The nodes of tree-sitter's tree below the outermost one; `None` with errors.
fn expected(text: &str) -> Option<Vec<Node>> {
    let tree = parse(text);
    if tree.root_node().has_error() {
        return None;
    }
    let mut nodes = Vec::new();
    let mut cursor = tree.walk();
    if cursor.goto_first_child() {
        add_siblings(&mut cursor, &mut nodes);
    }
    Some(nodes)
}

fn add_siblings(cursor: &mut TreeCursor<'_>, nodes: &mut Vec<Node>) {
    loop {
        let (node, at) = (cursor.node(), nodes.len());
        nodes.push(Node {
            start: node.start_byte() as u32,
            end: node.end_byte() as u32,
            next: 0,
            kind: node.kind_id(),
            field: cursor.field_id().map_or(0, |id| id.get()),
            is_named: node.is_named(),
        });
        if cursor.goto_first_child() {
            add_siblings(cursor, nodes);
            cursor.goto_parent();
        }
        nodes[at].next = nodes.len() as u32;
        if !cursor.goto_next_sibling() {
            return;
        }
    }
}

/// Compares both; whether the text was read at once.
fn check(text: &str) -> bool {
    let Some(nodes) = whole::parse(text) else { return false };
    let expected = expected(text);
    let expected = expected.unwrap_or_else(|| panic!("a text with errors is left alone: {text}"));
    for (node, expected) in nodes.iter().zip(&expected) {
        assert_eq!(node, expected, "{:?}", text.get(node.start as usize..node.end as usize));
    }
    assert_eq!(nodes.len(), expected.len());
    true
}

#[test]
fn examples_and_cases_are_read() {
    let left: Vec<&String> = sources().iter().filter(|text| !check(text)).collect();
    assert!(left.is_empty(), "left to tree-sitter: {left:#?}");
}

#[test]
fn standard_library_is_read() {
    let files = standard_library();
    let texts = files.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let texts: Vec<String> = texts.filter(|text| !parse(text).root_node().has_error()).collect();
    let read = texts.iter().filter(|text| check(text)).count();
    println!("read {read} of {} files of the standard library at once", texts.len());
    assert!(read * 100 >= texts.len() * 99, "at least 99 % are read at once");
}

#[test]
fn marks_line_ends_and_wide_characters_are_read() {
    let texts = [
        "",
        "\n\n",
        "\u{feff}x = 1\n",
        "\u{feff}# tile: x = randn(8)\r\nx = 1\r\nif x:\r\n    y = '\u{1f600}'\r\n",
        "x = 1",
        "if x:\n\ty\n\tz\n# tile: k[(1,)](x)\n",
        "# \u{4e2d}\u{6587}\ndef f():\n    # tile: allow bounds/out-of-bounds\n    return '\u{e9}'  # \u{e9}\n",
        "x = f'{a:{b}}' f\"{c!r:>{d}}\"\n",
        "a, b.c = d, e[f] = (g, [h]) = i\n",
        "x = 1 \\\n    + 2\n",
    ];
    for text in texts {
        assert!(check(text), "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_in_any_order(indices in prop::collection::vec(0..FRAGMENTS.len(), 0..120)) {
        let text: String = indices.into_iter().map(|index| FRAGMENTS[index]).collect();
        check(&text);
    }

    #[test]
    fn damaged_texts(
        source in 0..sources().len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..FRAGMENTS.len()), 0..3),
    ) {
        let mut text = sources()[source].clone();
        for (index, fragment) in damage {
            let at = (0..=index.index(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at));
            text.insert_str(at.unwrap_or_default(), FRAGMENTS[fragment]);
        }
        check(&text);
    }
}
