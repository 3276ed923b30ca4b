//! What remains of a command that is killed: nothing.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::Folder;

/// A kernel that takes minutes.
const SLOW: &str = r#"import triton
import triton.language as tl


@triton.jit
def decay_kernel(x_ptr, n):
    total = tl.zeros((16,), tl.float32)
    for _ in range(n):
        total = total * 0.5 + tl.load(x_ptr + tl.arange(0, 16))
    tl.store(x_ptr + tl.arange(0, 16), total)


# tile: x = zeros(16)
# tile: decay_kernel[(1,)](x, 2_000_000_000)
"#;

/// Ticks of the clock, of which a second has a hundred, for which a process has run; `None` when it has
/// ended, whether or not anybody has taken note of that.
fn ticks(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let is_alive = !["Z", "X"].contains(&fields[0]);
    is_alive.then(|| fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap())
}

/// The first process that a thread of `process` has started.
fn child(process: u32) -> Option<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let mut lists =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.find_map(|list| list.split_whitespace().next()?.parse().ok())
}

/// What `find` gives once it gives something.
fn awaited<T>(what: &str, find: impl Fn() -> Option<T>) -> T {
    const LIMIT: Duration = Duration::from_secs(30);
    let start = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "no {what} within {} s", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_worker_ends_with_the_command_although_its_kernel_takes_minutes() {
    const AT_IT: u64 = 30;
    let folder = Folder::new(&[("decay.py", SLOW)]);
    let mut command = folder.command("run decay.py --device cpu");
    let mut running = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let worker = awaited("worker", || child(running.id()));
    awaited("kernel that runs", || ticks(worker).filter(|&ticks| ticks >= AT_IT));
    // Killed, so that it can end nothing that it started.
    running.kill().unwrap();
    running.wait().unwrap();
    awaited("end of the worker", || ticks(worker).is_none().then_some(()));
}
