//! Trees of whole texts without errors, by the tables of the grammar alone.
//!
//! Tree-sitter makes trees that can be edited, of any text: it keeps for each token what it depends on,
//! counts what every node holds, and repairs what is broken. Of a text that is read once and
//! has no errors nothing of that is needed, so the same tables, lexers and scanner make its tree in a
//! third of the time. It is the same tree: where tree-sitter would recover from an error or choose
//! between two readings, there is none.

pub use self::nodes::Node;

mod lexer;
mod nodes;
mod parser;
mod tables;

/// The nodes of `text` below the outermost one, each before what it holds, in the order of the text.
/// `None` where tree-sitter has to be asked: for all texts with errors, and for few others.
pub fn parse(text: &str) -> Option<Vec<Node>> {
    u32::try_from(text.len()).ok()?;
    let (forest, outermost) = parser::parse(text)?;
    Some(nodes::of(&tables::TABLES, &forest, &outermost))
}
