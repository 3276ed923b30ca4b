//! What the server holds of the machine's memory beyond what it uses.
//!
//! Every edit makes and drops much that is small, so the heaps of GNU's C library become full of
//! holes: a session that goes on for hours would hold several times what is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Memory is given back at most this often: it takes milliseconds.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(10);

/// Whether anything was worked on since memory was given back.
#[derive(Debug, Default)]
pub(crate) struct Worked(AtomicBool);

impl Worked {
    /// Something was worked on.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Lets all threads share a few heaps. The library gives nearly every thread one of its own, and
/// what is free in one serves no other.
pub(crate) fn limit() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a parameter of the allocator, which is allowed at any time. It fails by changing
    // nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Gives memory that is free inside of the heaps back to the system, after work, until the session
/// ends.
pub(crate) async fn give_back(worked: Arc<Worked>) {
    loop {
        tokio::time::sleep(GIVE_BACK_EVERY).await;
        if worked.take() {
            // It fails only where the runtime ends.
            let _ = tokio::task::spawn_blocking(trim).await;
        }
    }
}

fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: any thread may ask the allocator for this at any time; it moves nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
