//! What a call to a worker waits for: its answers, its end, or that somebody cancels the task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ends a task from another thread. Clones share the switch.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    state: Arc<CancelState>,
}

#[derive(Debug, Default)]
struct CancelState {
    cancelled: AtomicBool,
    waiting: Mutex<Vec<Sender<Event>>>,
}

impl Cancel {
    /// Cancels every task that was or will be started with this switch.
    pub fn cancel(&self) {
        self.state.cancelled.store(true, Ordering::SeqCst);
        for sender in lock(&self.state.waiting).drain(..) {
            // A receiver that is gone has nothing left to cancel.
            let _ = sender.send(Event::Cancel);
        }
    }

    /// True once [`Cancel::cancel`] was called.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.cancelled.load(Ordering::SeqCst)
    }

    /// Has `sender` told when the task is cancelled.
    pub(crate) fn watch(&self, sender: Sender<Event>) {
        lock(&self.state.waiting).push(sender);
        if self.is_cancelled() {
            self.cancel();
        }
    }
}

/// What a waiting call wakes up for.
#[derive(Debug)]
pub(crate) enum Event {
    Line(String),
    Eof,
    Cancel,
}

/// Locks what stays whole when a thread panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
