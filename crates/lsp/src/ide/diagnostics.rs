//! What is wrong with a file, as far as it is Tile's to say.

use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::hir::{ItemKind, Module};
use tile_compiler::project::{self, paths};

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::faded;

/// The findings to show for `file`; `exact` is what is known of its specializations. A Python file
/// that has nothing to do with kernels has none, whatever its syntax: other servers look after it.
pub(crate) fn diagnostics(db: &dyn Db, file: SourceFile, exact: &[Diagnostic]) -> Vec<Diagnostic> {
    if concerns_kernels(db, file) { db::diagnostics(db, file, exact) } else { Vec::new() }
}

/// The findings to show for a file that is open: in addition, what its editor shows faded.
pub(crate) fn of_open(db: &dyn Db, file: SourceFile, exact: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut all = faded::general(db, file);
    all.extend_from_slice(exact);
    diagnostics(db, file, &all)
}

/// True for files with jit functions or scenarios, for those that import Triton, and for `.tile`
/// files.
pub(crate) fn concerns_kernels(db: &dyn Db, file: SourceFile) -> bool {
    if paths::is_tile(&file.path(db).to_string_lossy()) {
        return true;
    }
    let module = db::module(db, file);
    !module.scenarios.is_empty()
        || imports_triton(module)
        || !project::jit_functions(&Analysis(db), file.id(db)).is_empty()
}

fn imports_triton(module: &Module) -> bool {
    module.items.iter().any(|item| {
        let path = match &item.kind {
            ItemKind::Import { path } => path,
            ItemKind::ImportFrom { level: 0, path, .. } => path,
            _ => return false,
        };
        path.first().is_some_and(|first| &**first == "triton")
    })
}
