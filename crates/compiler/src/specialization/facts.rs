//! What was found out about files and their functions, for whoever owns files that never change.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::usage::Use;
use crate::hir::Name;
use crate::project::routes::{Place, Route};
use crate::project::{ItemRef, Resolution};
use crate::source::FileId;

/// What was found out about files and their jit functions: an owner of files that never change, and
/// whose importers do not, keeps it, so that it is found out once. See [`Sources::facts`](crate::project::Sources::facts).
#[derive(Debug, Default)]
pub struct Facts {
    /// How each parameter of a function is used.
    pub(super) uses: Table<ItemRef, Use>,
    /// Whether each parameter of a function may be written to.
    pub(super) written: Table<ItemRef, bool>,
    /// The jit functions of a file.
    pub(crate) functions: Table<FileId, ItemRef>,
    /// Those that are kernels.
    pub(crate) kernels: Table<FileId, ItemRef>,
    /// Those that a jit function names.
    pub(crate) callees: Table<ItemRef, ItemRef>,
    /// The names through which a file launches kernels.
    pub(crate) launchers: Table<FileId, Name>,
    /// The ways that lead from its code to functions of other files.
    pub(crate) routes: Table<FileId, Route>,
    /// What its imports bind.
    pub(crate) imports: Table<FileId, (Name, Resolution)>,
    /// The files that it imports.
    pub(crate) imported: Table<FileId, FileId>,
    /// Its functions and classes that decorators of other files register there.
    pub(crate) registered: Table<FileId, (Place, FileId)>,
    /// What each item of a file means.
    pub(super) items: Table<FileId, Resolution>,
    /// What each launch in a file launches.
    pub(super) launched: Table<FileId, Resolution>,
}

/// Answers in order: one for each parameter of a function, say.
#[derive(Debug)]
pub(crate) struct Table<K, T>(Mutex<FxHashMap<K, Arc<[T]>>>);

impl<K, T> Default for Table<K, T> {
    fn default() -> Table<K, T> {
        Table(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash, T> Table<K, T> {
    /// The answers for `at`, which `find` gives when nobody asked before. Nobody waits for it:
    /// two threads may find the same.
    pub(crate) fn get(&self, at: K, find: impl FnOnce() -> Arc<[T]>) -> Arc<[T]> {
        let table = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table().get(&at).cloned();
        known.unwrap_or_else(|| {
            let found = find();
            table().entry(at).or_insert(found).clone()
        })
    }
}
