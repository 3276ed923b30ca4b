//! What is wrong with a file, as far as it is Tile's to say.

use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::project;

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::faded;

/// The findings to show for `file`; `exact` is what is known of its specializations. A Python file
/// that has nothing to do with kernels has none, whatever its syntax: other servers look after it.
pub(crate) fn diagnostics(db: &dyn Db, file: SourceFile, exact: &[Diagnostic]) -> Vec<Diagnostic> {
    if project::concerns_kernels(&Analysis(db), file.id(db)) {
        db::diagnostics(db, file, exact)
    } else {
        Vec::new()
    }
}

/// The findings to show for a file that is open: in addition, what its editor shows faded.
pub(crate) fn of_open(db: &dyn Db, file: SourceFile, exact: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut all = faded::general(db, file);
    all.extend_from_slice(exact);
    diagnostics(db, file, &all)
}
