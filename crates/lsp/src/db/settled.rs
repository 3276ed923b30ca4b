//! Specializations as they turn out.
//!
//! What no launch shows of a specialization is guessed. When a kernel does not lower under a guess,
//! the compiler guesses again; what it ends with is what the kernel is compiled for, so labels,
//! hints and hovers speak of that. One specialization is tried; what had to be changed for it is
//! changed for the others that share the guess, without trying each.

use std::sync::Arc;

use tile_compiler::specialization::{ArgSpec, Specialization};

use super::{Db, Kernel, Labelled, Lowered, SourceFile, labels, lower_under, specializations};

/// A specialization of a kernel that was lowered to see whether its guesses work.
#[derive(Debug)]
struct Trial {
    index: usize,
    lowered: Arc<Lowered>,
}

/// The first specialization that holds a guess, tried; `None` when there is no guess.
#[salsa::tracked(returns(ref), no_eq, lru = 48)]
fn trial(db: &dyn Db, file: SourceFile, item: u32) -> Option<Trial> {
    let found = specializations(db, file, item);
    let index = found.iter().position(|labelled| !labelled.spec.is_certain())?;
    let lowered = Arc::new(lower_under(db, file, item, &found[index].spec)?);
    Some(Trial { index, lowered })
}

/// What the kernel that is this item of a file is compiled for, guesses that cannot work
/// replaced.
#[salsa::tracked(returns(ref))]
pub(crate) fn settled(db: &dyn Db, file: SourceFile, item: u32) -> Arc<[Labelled]> {
    let found = specializations(db, file, item);
    let Some(Trial { index, lowered }) = trial(db, file, item) else { return found.clone() };
    let Some(repaired) = &lowered.repaired else { return found.clone() };
    let tried = &found[*index].spec;
    let specs = found.iter().map(|labelled| followed(&labelled.spec, tried, repaired));
    let mut settled = labels::label_all(specs.collect());
    for (labelled, first) in settled.iter_mut().zip(found.iter()) {
        labelled.repairs = repairs(&first.spec, &labelled.spec);
    }
    settled.into()
}

/// The kernel that is this item of a file, under its specialization of this index.
#[salsa::tracked(returns(ref), no_eq, lru = 48)]
pub(crate) fn lowered(db: &dyn Db, file: SourceFile, item: u32, index: usize) -> Arc<Lowered> {
    if let Some(trial) = trial(db, file, item)
        && trial.index == index
    {
        return trial.lowered.clone();
    }
    let labelled = settled(db, file, item).get(index);
    let lowered = labelled.and_then(|labelled| lower_under(db, file, item, &labelled.spec));
    Arc::new(lowered.unwrap_or_default())
}

impl Kernel {
    /// Its specializations, guesses that cannot work replaced.
    pub(crate) fn settled<'db>(&self, db: &'db dyn Db) -> &'db [Labelled] {
        db.file_of(self.at.file).map_or(&[], |file| settled(db, file, self.at.index))
    }

    /// What the kernel is compiled for under its specialization of this index.
    pub(crate) fn specialization(&self, db: &dyn Db, index: usize) -> Option<Labelled> {
        let labelled = self.settled(db).get(index)?;
        if labelled.spec.is_certain() {
            return Some(labelled.clone());
        }
        let file = db.file_of(self.at.file)?;
        let Some(repaired) = &lowered(db, file, self.at.index, index).repaired else {
            return Some(labelled.clone());
        };
        if *repaired == labelled.spec {
            return Some(labelled.clone());
        }
        let first = &self.specializations.get(index)?.spec;
        let repairs = repairs(first, repaired);
        Some(Labelled { label: labels::label(repaired), spec: repaired.clone(), repairs })
    }
}

/// `spec` with the guesses that it shares with `tried` replaced as `repaired` has them.
fn followed(
    spec: &Specialization,
    tried: &Specialization,
    repaired: &Specialization,
) -> Specialization {
    if spec.is_certain() {
        return spec.clone();
    }
    let mut followed = spec.clone();
    for (name, to) in &repaired.args {
        let shared = spec.args.get(name).is_some() && spec.args.get(name) == tried.args.get(name);
        if shared && tried.args.get(name) != Some(to) {
            followed.args.insert(name.clone(), to.clone());
            if !followed.assumed.contains(name) {
                followed.assumed.push(name.clone());
            }
        }
    }
    followed
}

/// What was replaced, each as `NAME: OLD → NEW`.
fn repairs(first: &Specialization, settled: &Specialization) -> Vec<String> {
    let changed = settled.args.iter().filter_map(|(name, to)| {
        let from: &ArgSpec = first.args.get(name).filter(|from| *from != to)?;
        Some(format!("{name}: {} → {}", labels::argument(from), labels::argument(to)))
    });
    changed.collect()
}
