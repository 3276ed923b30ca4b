//! What the parser made, as the nodes that tree-sitter shows of it.

use super::parser::{Forest, Made};
use super::tables::Tables;

/// A node of a syntax tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Where it begins, in bytes.
    pub start: u32,
    /// Where it ends, in bytes.
    pub end: u32,
    /// The number of the first node after all that are below.
    pub next: u32,
    /// Tree-sitter's number of its kind.
    pub kind: u16,
    /// Tree-sitter's number of the field of its parent that it is in; 0 where it is in none.
    pub field: u16,
    /// Whether it is more than a keyword or punctuation.
    pub is_named: bool,
}

/// Parts that are still to be laid out.
struct Level<'f> {
    parts: &'f [u32],
    production: u16,
    /// How many of the parts that belong to the rule came before.
    child: usize,
    /// The field that all of them are in which have none of their own.
    field: u16,
    /// The node that they are below.
    below: Option<usize>,
}

/// The nodes of a text without the outermost one, each before what it holds.
pub(super) fn of(tables: &Tables, forest: &Forest, outermost: &[u32]) -> Vec<Node> {
    let mut nodes = Vec::with_capacity(forest.made.len());
    let mut levels: Vec<Level<'_>> = Vec::new();
    let spliced = splice(forest, outermost);
    let root = outermost.iter().map(|made| &forest.made[*made as usize]).find(|made| !made.extra);
    let production = root.map_or(0, |root| root.production);
    levels.push(Level { parts: &spliced, production, child: 0, field: 0, below: None });
    while let Some(level) = levels.last_mut() {
        let Some((part, rest)) = level.parts.split_first() else {
            if let Some(node) = level.below {
                let next = nodes.len() as u32;
                let node: &mut Node = &mut nodes[node];
                node.next = next;
            }
            levels.pop();
            continue;
        };
        level.parts = rest;
        let part = &forest.made[*part as usize];
        let (symbol, field) = level.place(tables, part);
        let metadata = tables.metadata(symbol);
        let at = nodes.len();
        if metadata.visible {
            nodes.push(Node {
                start: part.start,
                end: part.end,
                next: at as u32 + 1,
                kind: tables.kind(symbol),
                field,
                is_named: metadata.named,
            });
        }
        if part.parts > 0 {
            levels.push(Level {
                parts: forest.parts(part),
                production: part.production,
                child: 0,
                field: if metadata.visible { 0 } else { field },
                below: metadata.visible.then_some(at),
            });
        }
    }
    nodes
}

impl Level<'_> {
    /// The symbol that the next part goes by, and its field.
    fn place(&mut self, tables: &Tables, part: &Made) -> (u16, u16) {
        if part.extra {
            return (part.symbol, 0);
        }
        let child = self.child;
        self.child += 1;
        let symbol = tables.alias(self.production, child).unwrap_or(part.symbol);
        (symbol, tables.field(self.production, child).unwrap_or(self.field))
    }
}

/// What is outermost, with the parts of the outermost rule in its place.
fn splice(forest: &Forest, outermost: &[u32]) -> Vec<u32> {
    let mut parts = Vec::new();
    for made in outermost {
        let node = &forest.made[*made as usize];
        match node.extra {
            true => parts.push(*made),
            false => parts.extend(forest.parts(node)),
        }
    }
    parts
}
