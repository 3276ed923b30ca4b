//! Editor features as plain functions over a snapshot: files and byte offsets in, plain data out.

pub(crate) mod diagnostics;
pub(crate) mod hover;
pub(crate) mod lenses;
pub(crate) mod resources;
pub(crate) mod symbol;
