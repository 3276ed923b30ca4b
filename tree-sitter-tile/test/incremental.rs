//! A tree that follows edits equals the tree of the edited text.

use std::{fs, path::Path, sync::OnceLock};

use proptest::prelude::*;
use tree_sitter::{InputEdit, Parser, Point, Tree};

use crate::{corpus::cases, parser, shape::shape_with_ranges};

/// What edits insert: pieces that change the context of what follows.
pub const FRAGMENTS: [&str; 40] = [
    "",
    "\n",
    "    ",
    "\t",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\"\"\"",
    "f\"{",
    "rb'",
    "{{",
    "#",
    "# tile: ",
    "# tile: x = randn(8)\n",
    "# tile: k[(1,)](x)",
    "def f(a):\n",
    "class C:\n",
    "if x:\n        y\n",
    "else:\n",
    "for i in range(3):",
    "return",
    "@triton.jit\n",
    "x",
    " = ",
    " + ",
    ":",
    ",",
    "\\\n",
    "\\",
    "é",
    "\r\n",
    "lambda",
    "tl.load(p, mask=m)",
    "\n\n    pass\n",
    "match x:\n",
];

/// One replacement. Positions are fractions of the text, so they fit texts of any length.
#[derive(Clone, Debug)]
struct Edit {
    position: f64,
    removed: usize,
    inserted: &'static str,
}

fn edit() -> impl Strategy<Value = Edit> {
    (0.0..1.0, prop_oneof![3 => Just(0), 2 => 1..4_usize, 1 => 4..60_usize], 0..FRAGMENTS.len())
        .prop_map(|(position, removed, fragment)| Edit {
            position,
            removed,
            inserted: FRAGMENTS[fragment],
        })
}

/// Kernels, scenario lines and ordinary Python.
pub fn sources() -> &'static [String] {
    static SOURCES: OnceLock<Vec<String>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let mut sources: Vec<String> = fs::read_dir(examples)
            .expect("the repository has examples")
            .map(|entry| entry.expect("a readable entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
            .map(|path| fs::read_to_string(path).expect("a readable example"))
            .collect();
        sources.sort();
        let mut cases = cases();
        cases.retain(|case| !case.is_broken());
        let texts: Vec<_> = cases.iter().map(|case| &*case.source).collect();
        sources.extend(texts.chunks(8).map(|chunk| chunk.join("\n")));
        sources
    })
}

/// A text with a tree that is never parsed from scratch.
struct Document {
    parser: Parser,
    text: String,
    tree: Tree,
}

impl Document {
    fn new(text: &str) -> Self {
        let mut parser = parser();
        let tree = parser.parse(text, None).expect("no time limit was set");
        Self { parser, text: text.to_owned(), tree }
    }

    fn replace(&mut self, start: usize, end: usize, inserted: &str) {
        let point = |text: &str, byte: usize| {
            let before = &text[..byte];
            let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
            Point::new(before.matches('\n').count(), byte - line_start)
        };
        let (start_position, old_end_position) = (point(&self.text, start), point(&self.text, end));
        self.text.replace_range(start..end, inserted);
        let new_end_byte = start + inserted.len();
        self.tree.edit(&InputEdit {
            start_byte: start,
            old_end_byte: end,
            new_end_byte,
            start_position,
            old_end_position,
            new_end_position: point(&self.text, new_end_byte),
        });
        self.tree = self.parser.parse(&self.text, Some(&self.tree)).expect("no time limit was set");
    }

    /// Compares with a fresh tree. Trees with errors may differ, because recovery depends
    /// on what can be reused; returns whether they do.
    fn check(&self) -> Result<bool, TestCaseError> {
        let fresh = parser().parse(&self.text, None).expect("no time limit was set");
        let (actual, expected) =
            (shape_with_ranges(self.tree.root_node()), shape_with_ranges(fresh.root_node()));
        if fresh.root_node().has_error() {
            return Ok(actual != expected);
        }
        prop_assert_eq!(actual, expected, "in\n{}", self.text);
        Ok(false)
    }
}

#[test]
fn edited_trees_equal_fresh_trees() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (0..sources().len(), prop::collection::vec(edit(), 1..8));
    let (mut parses, mut differing) = (0, 0);
    let counts = std::cell::RefCell::new((&mut parses, &mut differing));
    runner
        .run(&strategy, |(source, edits)| {
            let mut document = Document::new(&sources()[source]);
            for edit in edits {
                let differs = apply_and_undo(&mut document, &edit)?;
                let mut counts = counts.borrow_mut();
                *counts.0 += 2;
                *counts.1 += differs;
            }
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
    println!("{parses} reparses; {differing} of them with errors recovered in another way");
}

/// Applies the edit and checks, undoes it and checks, then applies it for good. Counts the
/// trees with errors that differ.
fn apply_and_undo(document: &mut Document, edit: &Edit) -> Result<usize, TestCaseError> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction")]
    let mut start = (document.text.len() as f64 * edit.position) as usize;
    let mut end = (start + edit.removed).min(document.text.len());
    while !document.text.is_char_boundary(start) {
        start -= 1;
    }
    while !document.text.is_char_boundary(end) {
        end += 1;
    }
    let removed = document.text[start..end].to_owned();
    let mut differing = 0;
    document.replace(start, end, edit.inserted);
    differing += usize::from(document.check()?);
    document.replace(start, start + edit.inserted.len(), &removed);
    differing += usize::from(document.check()?);
    document.replace(start, end, edit.inserted);
    Ok(differing)
}
