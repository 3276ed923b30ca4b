//! What was found out about jit functions, for whoever owns files that never change.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::Use;
use crate::project::ItemRef;

/// What was found out about jit functions: an owner of files that never change keeps it, so that it
/// is found out once. See [`Sources::facts`](crate::project::Sources::facts).
#[derive(Debug, Default)]
pub struct Facts {
    pub(super) uses: Table<Use>,
    pub(super) written: Table<bool>,
}

/// An answer for each parameter of a function.
#[derive(Debug)]
pub(super) struct Table<T>(Mutex<FxHashMap<ItemRef, Arc<[T]>>>);

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table(Mutex::default())
    }
}

impl<T> Table<T> {
    /// The answers for `at`, which `find` gives when nobody asked before. Nobody waits for it:
    /// two threads may find the same.
    pub(super) fn get(&self, at: ItemRef, find: impl FnOnce() -> Arc<[T]>) -> Arc<[T]> {
        let table = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table().get(&at).cloned();
        known.unwrap_or_else(|| {
            let found = find();
            table().entry(at).or_insert(found).clone()
        })
    }
}
