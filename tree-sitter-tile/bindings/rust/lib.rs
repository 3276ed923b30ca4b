//! The tree-sitter grammar of tile kernel files: Python, with `# tile:` scenario lines as
//! nodes of their own.
//!
//! The node shapes of scenario lines are described in the package's README.
//!
//! ```
//! let source = "# tile: x = randn(8)\n";
//! let mut parser = tree_sitter::Parser::new();
//! parser.set_language(&tree_sitter_tile::LANGUAGE.into())?;
//! let tree = parser.parse(source, None).expect("no time limit was set");
//! let line = tree.root_node().child(0).expect("the scenario line");
//! assert_eq!(line.kind(), "scenario_line");
//! # Ok::<(), tree_sitter::LanguageError>(())
//! ```

use tree_sitter_language::LanguageFn;

pub mod whole;

unsafe extern "C" {
    fn tree_sitter_tile() -> *const ();
}

/// The language, for [`tree_sitter::Parser::set_language`](https://docs.rs/tree-sitter).
// SAFETY: `tree_sitter_tile` is the language function of the generated parser.
pub const LANGUAGE: LanguageFn = unsafe { LanguageFn::from_raw(tree_sitter_tile) };

/// Every node kind with its fields and children, as generated JSON.
pub const NODE_TYPES: &str = include_str!("../../src/node-types.json");

/// Query that names the highlight of each token.
pub const HIGHLIGHTS_QUERY: &str = include_str!("../../queries/highlights.scm");

/// Query that marks scopes, definitions and references.
pub const LOCALS_QUERY: &str = include_str!("../../queries/locals.scm");

/// Query that marks the regions an editor can fold.
pub const FOLDS_QUERY: &str = include_str!("../../queries/folds.scm");

/// Query that marks definitions and calls for symbol indexes.
pub const TAGS_QUERY: &str = include_str!("../../queries/tags.scm");
