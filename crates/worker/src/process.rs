//! One worker process: started, asked, and ended with all that it started itself.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::cancel::{Cancel, Event, lock};
use crate::protocol::{Body, Failure, FailureKind, Response};
use crate::scratch::Scratch;

/// How to start a worker.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

impl WorkerCommand {
    /// `tile worker`, with the executable that is running now as `tile`.
    ///
    /// # Errors
    /// When the system cannot name the running executable.
    pub fn current_exe() -> std::io::Result<WorkerCommand> {
        Ok(WorkerCommand { program: std::env::current_exe()?, args: vec!["worker".to_owned()] })
    }
}

/// Why a call to a worker yielded nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// The worker answered that the task failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// No worker could be started.
    #[error("cannot start a worker process ({0}); check that the tile executable is in place")]
    Start(String),
    /// The worker died at this task; when compiling, two in a row.
    #[error("the worker process died ({status}){}", tail(.stderr))]
    Crashed {
        /// How it ended.
        status: String,
        /// The last lines that it wrote to standard error.
        stderr: String,
    },
    /// The deadline passed; the worker was killed.
    #[error("no answer from the worker process after {} s; it was ended", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The caller cancelled; the worker was killed.
    #[error("cancelled")]
    Cancelled,
    /// What the worker said is no answer to its task.
    #[error("the worker process gave no result; is it the same version of tile?")]
    Protocol,
}

fn tail(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(":\n{stderr}") }
}

impl WorkerError {
    /// What kind of failure it is; a cancelled task counts as a device's.
    pub fn kind(&self) -> FailureKind {
        match self {
            WorkerError::Failed(failure) => failure.kind,
            WorkerError::Protocol => FailureKind::Internal,
            _ => FailureKind::Device,
        }
    }
}

/// One worker process; killed when dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    events: Receiver<Event>,
    sender: Sender<Event>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    stderr_reader: Option<JoinHandle<()>>,
    // Removed after the process was ended, as fields are dropped after `drop` ran.
    _scratch: Scratch,
}

/// Where programs look for the folder of temporary files, by system.
const TEMPORARY: &[&str] = if cfg!(windows) { &["TMP", "TEMP"] } else { &["TMPDIR"] };

/// How many lines of a worker's standard error are kept.
const STDERR_LINES: usize = 20;

/// Lets everything else on the machine go first: whoever waits for a worker waits for the editor
/// still less.
fn step_back(child: &Child) {
    #[cfg(unix)]
    if let Err(error) = rustix::process::setpriority_process(
        Some(rustix::process::Pid::from_child(child)),
        NICENESS,
    ) {
        tracing::debug!(%error, "a worker keeps its priority");
    }
    #[cfg(not(unix))]
    let _ = child;
}

/// How far a worker steps back, in Unix's measure from 0 to 19.
#[cfg(unix)]
const NICENESS: i32 = 5;

impl Worker {
    /// Starts a process.
    pub(crate) fn start(command: &WorkerCommand) -> Result<Worker, WorkerError> {
        let scratch = Scratch::new("worker").map_err(|error| {
            let folder = std::env::temp_dir();
            WorkerError::Start(format!("no folder in {}: {error}", folder.display()))
        })?;
        let mut child = Command::new(&command.program)
            .args(&command.args)
            .envs(TEMPORARY.iter().map(|name| (name, scratch.path())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                WorkerError::Start(format!("{}: {error}", command.program.display()))
            })?;
        step_back(&child);
        let (sender, events) = channel();
        if let Some(stdout) = child.stdout.take() {
            let sender = sender.clone();
            std::thread::spawn(move || forward_lines(stdout, &sender));
        }
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let stderr_reader = child.stderr.take().map(|pipe| {
            let kept = Arc::clone(&stderr);
            std::thread::spawn(move || keep_tail(pipe, &kept))
        });
        let stdin = child.stdin.take();
        Ok(Worker { child, stdin, events, sender, stderr, stderr_reader, _scratch: scratch })
    }

    /// Has it do a task; `on_event` receives what it tells. A worker that says nothing for as long as
    /// `silence` is given up.
    pub(crate) fn call(
        &mut self,
        id: u64,
        line: &str,
        silence: Duration,
        cancel: &Cancel,
        on_event: &mut dyn FnMut(Body),
    ) -> Result<(), WorkerError> {
        if self.send(line).is_err() {
            return Err(self.crashed());
        }
        cancel.watch(self.sender.clone());
        let mut limit = Instant::now() + silence;
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let text = match self.events.recv_timeout(left) {
                Ok(Event::Line(text)) => text,
                Ok(Event::Cancel) if cancel.is_cancelled() => return Err(WorkerError::Cancelled),
                // Left over from an earlier task that had already ended.
                Ok(Event::Cancel) => continue,
                Ok(Event::Eof) | Err(RecvTimeoutError::Disconnected) => return Err(self.crashed()),
                Err(RecvTimeoutError::Timeout) => return Err(WorkerError::TimedOut(silence)),
            };
            let Ok(response) = serde_json::from_str::<Response>(&text) else {
                return Err(WorkerError::Protocol);
            };
            if response.id != id {
                continue;
            }
            limit = Instant::now() + silence;
            match response.body {
                Body::Failed(failure) => return Err(failure.into()),
                Body::Done => return Ok(()),
                body @ Body::Compiled(_) => {
                    on_event(body);
                    return Ok(());
                }
                body => on_event(body),
            }
        }
    }

    fn send(&mut self, line: &str) -> std::io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        stdin.write_all(line.as_bytes())?;
        stdin.write_all(b"\n")?;
        stdin.flush()
    }

    fn crashed(&mut self) -> WorkerError {
        // The pipe is closed; what still runs behind it is of no use.
        let _ = self.child.kill();
        let status = match self.child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        // A grandchild may hold the pipe open, so the wait for the last words is bounded.
        let limit = Instant::now() + Duration::from_millis(200);
        while self.stderr_reader.as_ref().is_some_and(|reader| !reader.is_finished())
            && Instant::now() < limit
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let lines: Vec<String> = lock(&self.stderr).iter().cloned().collect();
        WorkerError::Crashed { status, stderr: lines.join("\n") }
    }
}

/// Ends what a process has started, such as an assembler that hangs: nobody would wait for it any
/// more. Where the system does not tell what that is, nothing happens.
fn end_children(process: u32) {
    #[cfg(unix)]
    for child in children(process) {
        end_children(child);
        let child = i32::try_from(child).ok().and_then(rustix::process::Pid::from_raw);
        // Fails when it has ended by itself.
        let _ =
            child.map(|child| rustix::process::kill_process(child, rustix::process::Signal::KILL));
    }
    #[cfg(not(unix))]
    let _ = process;
}

/// The processes that a process has started, as Linux tells them.
#[cfg(unix)]
pub(crate) fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists =
        lists.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let ids = |list: String| list.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    lists.flat_map(|list| -> Vec<u32> { ids(list) }).collect()
}

impl Drop for Worker {
    fn drop(&mut self) {
        end_children(self.child.id());
        // Both fail only when the child is already gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => status.to_string(),
    }
}

#[cfg(not(unix))]
fn describe(status: ExitStatus) -> String {
    status.to_string()
}

fn forward_lines(stdout: impl Read, sender: &Sender<Event>) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { break };
        if sender.send(Event::Line(line)).is_err() {
            return;
        }
    }
    // Nobody waits when the receiver is gone.
    let _ = sender.send(Event::Eof);
}

fn keep_tail(stderr: impl Read, kept: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stderr).lines() {
        let Ok(line) = line else { break };
        let mut kept = lock(kept);
        if kept.len() == STDERR_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}
