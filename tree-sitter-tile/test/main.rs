//! Tests of the grammar: its corpus, Python's standard library, edits and arbitrary bytes.

mod corpus;
mod incremental;
mod placement;
mod queries;
mod robustness;
mod shape;
mod standard_library;
mod whole;

use tree_sitter::{Parser, Tree};

/// A parser for the language.
fn parser() -> Parser {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_tile::LANGUAGE.into()).expect("the language fits the runtime");
    parser
}

/// The tree of a whole source text.
fn parse(source: impl AsRef<[u8]>) -> Tree {
    parser().parse(source, None).expect("no time limit was set")
}
