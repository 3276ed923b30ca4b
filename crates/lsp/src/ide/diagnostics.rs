//! What is wrong with a file.

use tile_compiler::diagnostic::Diagnostic;

use crate::db::{self, Db, SourceFile};

/// Every finding in `file`, in source order.
pub(crate) fn diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let mut found = db::syntax_diagnostics(db, file).clone();
    found.sort_by_cached_key(Diagnostic::sort_key);
    found
}
