//! Runs of kernels that the client asked for: those under way, and what came of the last ones.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Value;
use tile_worker::Cancel;
use tower_lsp::ls_types::{ProgressToken, Uri};

use super::{State, lock};

/// Runs that are under way.
#[derive(Debug, Default)]
pub(super) struct Runs {
    next: u64,
    active: FxHashMap<u64, (Option<ProgressToken>, Cancel)>,
    /// Results of the last run, by document and kernel.
    last: FxHashMap<(Uri, String), Arc<[Value]>>,
    /// The fastest configuration that tuning found, by document and kernel.
    fastest: FxHashMap<(Uri, String), Vec<(String, String)>>,
}

impl State {
    /// Records a run so that it can be ended; [`State::forget_run`] takes the number.
    pub(crate) fn watch_run(&self, token: Option<&ProgressToken>, cancel: Cancel) -> u64 {
        let mut runs = lock(&self.runs);
        runs.next += 1;
        let number = runs.next;
        runs.active.insert(number, (token.cloned(), cancel));
        number
    }

    /// A run ended.
    pub(crate) fn forget_run(&self, number: u64) {
        lock(&self.runs).active.remove(&number);
    }

    /// Keeps the results of a run.
    pub(crate) fn keep_run(&self, uri: Uri, kernel: String, results: &[Value]) {
        lock(&self.runs).last.insert((uri, kernel), results.into());
    }

    /// Results of the last run of a kernel; empty before there was one.
    pub(crate) fn last_run(&self, uri: &Uri, kernel: &str) -> Arc<[Value]> {
        let runs = lock(&self.runs);
        runs.last.get(&(uri.clone(), kernel.to_owned())).cloned().unwrap_or_default()
    }

    /// Keeps the fastest configuration of a kernel: values of its parameters and options.
    pub(crate) fn keep_fastest(&self, uri: Uri, kernel: String, values: Vec<(String, String)>) {
        lock(&self.runs).fastest.insert((uri, kernel), values);
    }

    /// The fastest configuration that tuning found.
    pub(crate) fn fastest(&self, uri: &Uri, kernel: &str) -> Option<Vec<(String, String)>> {
        lock(&self.runs).fastest.get(&(uri.clone(), kernel.to_owned())).cloned()
    }

    /// Forgets what came of runs of a document.
    pub(super) fn forget_runs_of(&self, uri: &Uri) {
        let mut runs = lock(&self.runs);
        runs.last.retain(|(of, _), _| of != uri);
        runs.fastest.retain(|(of, _), _| of != uri);
    }

    /// Ends the run that this progress item shows.
    pub(crate) fn cancel_run(&self, token: &ProgressToken) {
        for (shown, cancel) in lock(&self.runs).active.values() {
            if shown.as_ref() == Some(token) {
                cancel.cancel();
            }
        }
    }

    /// Ends every run.
    pub(crate) fn cancel_runs(&self) {
        for (_, cancel) in lock(&self.runs).active.values() {
            cancel.cancel();
        }
    }
}
