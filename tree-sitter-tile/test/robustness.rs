//! No bytes crash the parser or its scanner, and none make it slow.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tree_sitter::Node;

use crate::{
    incremental::{FRAGMENTS, sources},
    parse,
};

/// Ranges of children lie in order within those of their parents.
fn assert_well_formed(node: Node, length: usize) {
    assert!(node.end_byte() <= length, "a node reaches past the text");
    let mut position = node.start_byte();
    for child in node.children(&mut node.walk()) {
        assert!(position <= child.start_byte() && child.end_byte() <= node.end_byte());
        position = child.end_byte();
        assert_well_formed(child, length);
    }
}

fn check(source: &[u8]) {
    let tree = parse(source);
    assert_well_formed(tree.root_node(), source.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(source in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&source);
    }

    #[test]
    fn arbitrary_tokens(indices in prop::collection::vec(0..FRAGMENTS.len(), 0..120)) {
        let source: String = indices.into_iter().map(|index| FRAGMENTS[index]).collect();
        check(source.as_bytes());
    }

    #[test]
    fn damaged_sources(
        source in 0..sources().len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut source = sources()[source].clone().into_bytes();
        for (index, byte) in damage {
            let index = index.index(source.len());
            source[index] = byte;
        }
        check(&source);
    }
}

/// Texts that are deep or long in one dimension.
#[test]
fn extreme_sources_parse_in_linear_time() {
    let nested_blocks: String = (0..300).map(|depth| " ".repeat(depth) + "if x:\n").collect();
    let sources = [
        "(".repeat(20_000),
        "[{(".repeat(5_000),
        "f\"{".repeat(5_000),
        "f'''{x:{".repeat(2_000),
        nested_blocks,
        format!("def f():\n    x\n{}    y\n", " # comment\n".repeat(50_000)),
        format!("def f():\n    x\n{}y\n", "# tile: x = 1\n".repeat(20_000)),
        format!("x = [\n{}]\n", "# comment\n".repeat(50_000)),
        format!("{}x\n", "\n".repeat(200_000)),
        format!("x = \"{}\"\n", "a\\n".repeat(50_000)),
        format!("# tile: {}\n", "x, ".repeat(50_000)),
        format!("x{}", " ".repeat(200_000)),
    ];
    for source in sources {
        let start = Instant::now();
        check_shallow(source.as_bytes());
        let elapsed = start.elapsed();
        let head = &source[..source.len().min(20)];
        assert!(elapsed < Duration::from_secs(5), "{head:?}... took {elapsed:?}");
    }
}

/// Like [`check`], for trees that are too deep to walk recursively.
fn check_shallow(source: &[u8]) {
    assert!(parse(source).root_node().end_byte() <= source.len());
}
