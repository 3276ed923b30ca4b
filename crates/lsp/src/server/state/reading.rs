//! Reads of the state: on a snapshot, and again on a newer one when an edit overtakes them.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::snapshot::Snapshot;
use super::{State, lock};
use crate::db::Database;

/// A request that edits overtake is started again this often.
const MAX_ATTEMPTS: usize = 8;

/// Why a read has no answer.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// Edits kept arriving.
    Overtaken,
    /// The code panicked; what it said.
    Panicked(String),
    /// Nobody waits for the answer any more.
    Withdrawn,
}

/// A request that is being answered, as those see it who do the work. Clones are the same request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request(Arc<RequestState>);

#[derive(Debug, Default)]
struct RequestState {
    pub(super) withdrawn: AtomicBool,
    /// Ends the queries that are under way for it.
    pub(super) token: Mutex<Option<salsa::CancellationToken>>,
}

impl Request {
    /// Withdraws the request: work on it ends soon.
    pub(crate) fn withdraw(&self) {
        self.0.withdrawn.store(true, Ordering::SeqCst);
        if let Some(token) = &*lock(&self.0.token) {
            token.cancel();
        }
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.0.withdrawn.load(Ordering::SeqCst)
    }

    /// Queries of `db` are for this request from now on.
    fn watch(&self, db: &Database) {
        *lock(&self.0.token) = Some(salsa::Database::cancellation_token(db));
    }
}

impl State {
    /// Runs `answer` on a snapshot, again on a newer one when an edit overtakes it. A panic in it
    /// is logged and ends here.
    pub(crate) fn read<T>(&self, answer: impl Fn(&Snapshot) -> T) -> Result<T, ReadError> {
        self.read_for(&Request::default(), answer)
    }

    /// As [`State::read`], for as long as the request is not withdrawn.
    pub(crate) fn read_for<T>(
        &self,
        request: &Request,
        answer: impl Fn(&Snapshot) -> T,
    ) -> Result<T, ReadError> {
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.snapshot();
            request.watch(&snapshot.db);
            if request.is_withdrawn() {
                return Err(ReadError::Withdrawn);
            }
            match attempt(&snapshot, &answer) {
                Err(ReadError::Overtaken) => {}
                ended => return ended,
            }
        }
        Err(ReadError::Overtaken)
    }

    /// As [`State::read`], but gives up when an edit overtakes it, and leaves no more large answers
    /// behind than are to be kept: for work that nobody waits for, which goes on to many files.
    pub(crate) fn read_once<T>(&self, answer: impl Fn(&Snapshot) -> T) -> Result<T, ReadError> {
        let ended = attempt(&self.snapshot(), answer);
        self.forget_large();
        ended
    }
}

/// Asks a snapshot once.
pub(super) fn attempt<T>(
    snapshot: &Snapshot,
    answer: impl Fn(&Snapshot) -> T,
) -> Result<T, ReadError> {
    let attempt = || salsa::Cancelled::catch(AssertUnwindSafe(|| answer(snapshot)));
    match std::panic::catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) => Err(ReadError::Overtaken),
        Err(payload) => Err(ReadError::Panicked(panic_text(&*payload))),
    }
}

/// What a panic said.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_owned())
}
