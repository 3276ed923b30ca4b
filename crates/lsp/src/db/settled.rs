//! Specializations as they turn out.
//!
//! What no launch shows of a specialization is guessed. When a kernel does not lower under a guess,
//! the compiler guesses again; what it ends with is what the kernel is compiled for, so labels,
//! hints and hovers speak of that. Of the specializations that share all guesses the first is
//! tried; what had to be changed for it is changed for the others, without trying each.

use std::sync::Arc;

use tile_compiler::eval::BodyTypes;
use tile_compiler::specialization::{ArgSpec, Specialization};

use super::kernel::{Lowering, lower_under, specializations};
use super::{Db, Kernel, Labelled, Lowered, SourceFile, labels};

/// A specialization of a kernel as it was found first, lowered to see whether its guesses work.
#[salsa::tracked(returns(ref), no_eq, lru = 12)]
fn tried(db: &dyn Db, file: SourceFile, item: u32, index: usize) -> Lowering {
    let found = specializations(db, file, item).get(index);
    let lowering = found.and_then(|labelled| lower_under(db, file, item, &labelled.spec));
    lowering.unwrap_or_default()
}

/// What [`tried`] had to change, which is small enough to be kept.
#[salsa::tracked(returns(ref))]
fn repaired(db: &dyn Db, file: SourceFile, item: u32, index: usize) -> Option<Specialization> {
    tried(db, file, item, index).lowered.repaired.clone()
}

/// Which of `found` is tried for the one of this index: the first that has the same guesses;
/// `None` when it has none.
fn tried_for(found: &[Labelled], index: usize) -> Option<usize> {
    let spec = &found.get(index)?.spec;
    let guesses = |spec: &Specialization| {
        let guess = |name| (Clone::clone(name), spec.args.get(name).cloned());
        spec.assumed.iter().map(guess).collect::<Vec<_>>()
    };
    if spec.is_certain() {
        return None;
    }
    let wanted = guesses(spec);
    found.iter().position(|other| !other.spec.is_certain() && guesses(&other.spec) == wanted)
}

/// What the kernel that is this item of a file is compiled for, guesses that cannot work
/// replaced.
#[salsa::tracked(returns(ref))]
pub(crate) fn settled(db: &dyn Db, file: SourceFile, item: u32) -> Arc<[Labelled]> {
    let found = specializations(db, file, item);
    let settle = |(index, labelled): (usize, &Labelled)| {
        let first = tried_for(found, index)?;
        let repaired = repaired(db, file, item, first).as_ref()?;
        Some(followed(&labelled.spec, &found[first].spec, repaired))
    };
    let specs: Vec<Option<Specialization>> = found.iter().enumerate().map(settle).collect();
    if specs.iter().all(Option::is_none) {
        return found.clone();
    }
    let specs = specs.into_iter().zip(found.iter());
    let specs = specs.map(|(settled, found)| settled.unwrap_or_else(|| found.spec.clone()));
    let mut settled = labels::label_all(specs.collect());
    for (labelled, first) in settled.iter_mut().zip(found.iter()) {
        labelled.repairs = repairs(&first.spec, &labelled.spec);
    }
    settled.into()
}

/// The kernel that is this item of a file, under its specialization of this index. It is kept where
/// the types, several times as large, are not: after every edit it is asked of all kernels of open files.
#[salsa::tracked(returns(ref), no_eq, lru = 512)]
pub(crate) fn lowered(db: &dyn Db, file: SourceFile, item: u32, index: usize) -> Arc<Lowered> {
    lowering(db, file, item, index).lowered.clone()
}

/// Values and types of the expressions of a kernel under its specialization of this index.
pub(crate) fn exact_types(db: &dyn Db, file: SourceFile, item: u32, index: usize) -> &BodyTypes {
    &lowering(db, file, item, index).types
}

fn lowering(db: &dyn Db, file: SourceFile, item: u32, index: usize) -> &Lowering {
    match tried_for(specializations(db, file, item), index) == Some(index) {
        true => tried(db, file, item, index),
        false => lowering_as_settled(db, file, item, index),
    }
}

#[salsa::tracked(returns(ref), no_eq, lru = 12)]
fn lowering_as_settled(db: &dyn Db, file: SourceFile, item: u32, index: usize) -> Lowering {
    let labelled = settled(db, file, item).get(index);
    let lowering = labelled.and_then(|labelled| lower_under(db, file, item, &labelled.spec));
    lowering.unwrap_or_default()
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
