//! Errors in a tree as diagnostics.

use super::Parse;
use crate::diagnostic::Diagnostic;
use crate::source::FileId;

/// Errors of `parse`, in source order.
pub(super) fn diagnostics(parse: &Parse, file: FileId) -> Vec<Diagnostic> {
    let _ = (parse, file);
    Vec::new()
}
