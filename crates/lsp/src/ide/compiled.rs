//! What compiling kernels in the background showed of their source.

use tile_compiler::analysis::{CompiledKernel, check_compiled};
use tile_compiler::diagnostic::Diagnostic;

use crate::compile::{KernelKey, Verdict};
use crate::db::{self, Analysis, Db, SourceFile};

/// The findings of compilations of the kernels of a file, where they are now. A specialization
/// that no longer exists says nothing.
pub(crate) fn diagnostics(
    db: &dyn Db,
    file: SourceFile,
    verdicts: &dyn Fn(&KernelKey) -> Vec<Verdict>,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for kernel in db::kernels(db, file) {
        let key = KernelKey { file: file.id(db), kernel: kernel.name.clone() };
        for verdict in verdicts(&key) {
            let mut known = kernel.specializations.iter();
            let labelled = known.find(|labelled| labelled.label == verdict.wish.label);
            let Some(labelled) = labelled.filter(|labelled| labelled.spec.is_certain()) else {
                continue;
            };
            let findings = verdict.wish.anchors.place_all(db, &verdict.findings);
            let compiled = CompiledKernel {
                findings: &findings,
                resources: verdict.resources.as_ref(),
                has_products: verdict.has_products,
                arch: &verdict.wish.options.arch,
            };
            found.extend(check_compiled(&Analysis(db), kernel.at, &labelled.spec, compiled));
        }
    }
    found
}
