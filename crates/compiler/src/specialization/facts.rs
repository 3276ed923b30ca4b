//! What was found out about files and their functions, for whoever owns files that never change.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::launches::Runs;
use super::usage::Use;
use crate::host::Rebound;
use crate::project::launchers::{Called, Mentions};
use crate::project::ways::{Imports, Ways};
use crate::project::{ItemRef, Resolution};
use crate::source::FileId;

/// What was found out about files and their jit functions: an owner of files that never change, and
/// whose importers do not, keeps it, so that it is found out once. See [`Sources::facts`](crate::project::Sources::facts).
#[derive(Debug, Default)]
pub struct Facts {
    /// How each parameter of a function is used.
    pub(super) uses: Table<ItemRef, Arc<[Use]>>,
    /// Whether each parameter of a function may be written to.
    pub(super) written: Table<ItemRef, Arc<[bool]>>,
    /// The jit functions of a file.
    pub(crate) functions: Table<FileId, Arc<[ItemRef]>>,
    /// Those that are kernels.
    pub(crate) kernels: Table<FileId, Arc<[ItemRef]>>,
    /// Those that a jit function names.
    pub(crate) callees: Table<ItemRef, Arc<[ItemRef]>>,
    /// Which functions of a file have each name in their code.
    pub(crate) mentions: Table<FileId, Arc<Mentions>>,
    /// What its imports bind.
    pub(crate) imports: Table<FileId, Imports>,
    /// What it has to do with other files.
    pub(crate) ways: Table<FileId, Arc<Ways>>,
    /// The files that it imports, and those by way of packages.
    pub(crate) imported: Table<FileId, Arc<[FileId]>>,
    /// What it may call of other files when it runs.
    pub(crate) called: Table<FileId, Arc<Called>>,
    /// What each item of a file means.
    pub(super) items: Table<FileId, Arc<[Resolution]>>,
    /// What each launch in a file launches.
    pub(super) launched: Table<FileId, Arc<[Resolution]>>,
    /// Its names that functions bind which are not their own.
    pub(crate) rebound: Table<FileId, Arc<Rebound>>,
    /// What its pieces launch when they run.
    pub(super) runs: Table<FileId, Arc<Runs>>,
}

/// Answers by what was asked about.
#[derive(Debug)]
pub(crate) struct Table<K, V>(Mutex<FxHashMap<K, V>>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash, V: Clone> Table<K, V> {
    /// The answer for `at`, which `find` gives when nobody asked before. Nobody waits for it:
    /// two threads may find the same.
    pub(crate) fn get(&self, at: K, find: impl FnOnce() -> V) -> V {
        let table = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table().get(&at).cloned();
        known.unwrap_or_else(|| {
            let found = find();
            table().entry(at).or_insert(found).clone()
        })
    }
}
