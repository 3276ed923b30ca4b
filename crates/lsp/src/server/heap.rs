//! What the server holds of the machine's memory beyond what it uses.
//!
//! Every edit makes and drops much that is small, so the heaps of GNU's C library become full of
//! holes: a session that goes on for hours would hold several times what is in use. And the program's
//! own code counts: most of it is that of the workers, of which a start runs a little everywhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::server::state::State;

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

/// Gives back the program's code that was run up to now. Libraries that only workers use prepare
/// themselves in hundreds of places when the program starts, and the system maps what is around each;
/// what the server runs comes back when it runs.
pub(crate) fn give_back_code() {
    #[cfg(target_os = "linux")]
    for range in own_code().unwrap_or_default() {
        // SAFETY: the range is memory of a file that is mapped to be run and was never writable, so its
        // pages are read from the file again when they are needed. It fails by changing nothing.
        unsafe {
            libc::madvise(range.start as *mut libc::c_void, range.len(), libc::MADV_DONTNEED);
        }
    }
}

/// Where the program's code lies in memory, without that of libraries which it shares with others.
#[cfg(target_os = "linux")]
fn own_code() -> std::io::Result<Vec<std::ops::Range<usize>>> {
    let program = std::env::current_exe()?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let code = |line: &str| {
        // `start-end permissions offset device inode path`, and the path may have spaces in it.
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let runs_only = fields.next()? == "r-xp";
        let path = fields.nth(3)?.trim_start();
        let place = |digits| usize::from_str_radix(digits, 16).ok();
        (runs_only && std::path::Path::new(path) == program).then_some(place(start)?..place(end)?)
    };
    Ok(maps.lines().filter_map(code).collect())
}

/// Gives memory that holds what need not be kept, or is free inside of the heaps, back to the system,
/// after work, until the session ends.
pub(crate) async fn give_back(state: Arc<State>) {
    loop {
        tokio::time::sleep(GIVE_BACK_EVERY).await;
        if state.worked.take() {
            let state = state.clone();
            let give_back = move || {
                state.forget_large();
                trim();
            };
            // It fails only where the runtime ends.
            let _ = tokio::task::spawn_blocking(give_back).await;
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// KiB of the program's code that are in memory.
    fn resident() -> u64 {
        let own = own_code().expect("a program has code").remove(0);
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("the system tells it");
        let mut lines =
            maps.lines().skip_while(|line| !line.starts_with(&format!("{:x}-", own.start)));
        let figure = lines.find_map(|line| line.strip_prefix("Rss:")).expect("each range has it");
        figure.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    #[test]
    fn code_that_was_given_back_runs_again() {
        let before = resident();
        give_back_code();
        let after = resident();
        assert!(after < before, "{before} KiB became {after}");
        assert_eq!(own_code().unwrap().len(), 1);
    }
}
