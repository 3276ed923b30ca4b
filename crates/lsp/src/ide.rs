//! Editor features as plain functions over a snapshot: files and byte offsets in, plain data out.

pub(crate) mod diagnostics;
