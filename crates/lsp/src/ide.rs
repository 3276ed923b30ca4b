//! Editor features as plain functions over a snapshot: files and byte offsets in, plain data out.

pub(crate) mod assists;
pub(crate) mod compiled;
pub(crate) mod completion;
pub(crate) mod diagnostics;
pub(crate) mod faded;
pub(crate) mod fixes;
pub(crate) mod hints;
pub(crate) mod hover;
pub(crate) mod installed;
pub(crate) mod layouts;
pub(crate) mod lenses;
pub(crate) mod matching;
pub(crate) mod mentions;
pub(crate) mod moves;
pub(crate) mod navigation;
pub(crate) mod rename;
pub(crate) mod resources;
pub(crate) mod signature;
pub(crate) mod structure;
pub(crate) mod symbol;
pub(crate) mod tokens;
pub(crate) mod tree;
pub(crate) mod trial;
pub(crate) mod workspace;
