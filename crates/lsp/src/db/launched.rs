//! Launches in host code that show all that is needed to run them.

use tile_compiler::specialization::{Specialization, WrittenLaunch, written_launches};

use super::kernel::specializations;
use super::{Analysis, Db, Kernel, SourceFile};

/// The launches of a kernel as scenarios write them, best known first.
#[salsa::tracked(returns(ref))]
pub(crate) fn written(db: &dyn Db, file: SourceFile, item: u32) -> Vec<WrittenLaunch> {
    let labelled = specializations(db, file, item);
    let specs: Vec<Specialization> = labelled.iter().map(|known| known.spec.clone()).collect();
    let at = tile_compiler::project::ItemRef { file: file.id(db), index: item };
    written_launches(&Analysis(db), at, &specs).into_iter().flatten().collect()
}

impl Kernel {
    /// Whether there is a scenario or a launch to run.
    pub(crate) fn can_run(&self, db: &dyn Db) -> bool {
        let launched = || {
            let file = db.file_of(self.at.file);
            file.is_some_and(|file| !written(db, file, self.at.index).is_empty())
        };
        !self.scenarios.is_empty() || launched()
    }
}
