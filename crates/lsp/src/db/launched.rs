//! Launches in host code that show all that is needed to run them.

use tile_compiler::specialization::{
    Specialization, WrittenLaunch, tuned_launches, written_launches,
};

use super::kernel::{configurations, specializations};
use super::parts::Observed;
use super::{Db, Kernel, SourceFile, folder_rules};

/// The launches of a kernel as scenarios write them, best known first.
#[salsa::tracked(returns(ref))]
pub(crate) fn written(db: &dyn Db, file: SourceFile, item: u32) -> Vec<WrittenLaunch> {
    let labelled = specializations(db, file, item);
    let specs: Vec<Specialization> = labelled.iter().map(|known| known.spec.clone()).collect();
    let at = tile_compiler::project::ItemRef { file: file.id(db), index: item };
    let sources = Observed::host(db, folder_rules(db, file).capability);
    written_launches(&sources, at, &specs).into_iter().flatten().collect()
}

/// The launch of a kernel under each of its autotune configurations, by their positions; empty where
/// none is known in full.
#[salsa::tracked(returns(ref))]
pub(crate) fn tuned(db: &dyn Db, file: SourceFile, item: u32) -> Vec<(usize, WrittenLaunch)> {
    let labelled = specializations(db, file, item);
    let specs: Vec<Specialization> = labelled.iter().map(|known| known.spec.clone()).collect();
    let at = tile_compiler::project::ItemRef { file: file.id(db), index: item };
    let sources = Observed::host(db, folder_rules(db, file).capability);
    tuned_launches(&sources, at, &specs).unwrap_or_default()
}

impl Kernel {
    /// Whether there are several configurations to time, and a scenario or launches to time them by.
    pub(crate) fn can_tune(&self, db: &dyn Db) -> bool {
        let Some(file) = db.file_of(self.at.file) else { return false };
        configurations(db, file, self.at.index).len() > 1
            && (!self.scenarios.is_empty() || !tuned(db, file, self.at.index).is_empty())
    }

    /// Whether there is a scenario or a launch to run.
    pub(crate) fn can_run(&self, db: &dyn Db) -> bool {
        let launched = || {
            let file = db.file_of(self.at.file);
            file.is_some_and(|file| !written(db, file, self.at.index).is_empty())
        };
        !self.scenarios.is_empty() || launched()
    }
}
