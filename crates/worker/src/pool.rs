//! Starts, restarts and times worker processes.
//!
//! A [`Pool`] keeps idle workers for reuse. A call takes one, or starts one, and holds it until
//! the answer, the deadline or a [`Cancel`]. A worker that was killed while idle is replaced
//! silently; one that dies while it compiles is replaced and the task tried once more, since it
//! may have been killed from outside. A worker that passes its deadline is killed. What a worker
//! left among the temporary files is removed, however it ended.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tile_compiler::artifact::{Artifact, Resources};

use crate::cache::Cache;
use crate::protocol::{
    AssembleRequest, Body, CompileRequest, DeviceInfo, Failure, FailureKind, Request, Residency,
    Response, RunRequest, Task,
};
use crate::scratch::{self, Scratch};

/// Longest that a compilation may take; the assembler has a shorter deadline of its own.
pub(crate) const COMPILE_DEADLINE: Duration = Duration::from_secs(150);

/// Longest that a worker may be silent while it runs kernels.
pub(crate) const RUN_DEADLINE: Duration = Duration::from_secs(300);

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

    fn watch(&self, sender: Sender<Event>) {
        lock(&self.state.waiting).push(sender);
        if self.is_cancelled() {
            self.cancel();
        }
    }
}

/// What a waiting call wakes up for.
#[derive(Debug)]
enum Event {
    Line(String),
    Eof,
    Cancel,
}

/// A set of worker processes.
#[derive(Debug)]
pub struct Pool {
    command: WorkerCommand,
    cache: Cache,
    idle: Mutex<Vec<Worker>>,
    next_id: AtomicU64,
    generation: AtomicU64,
    deaths: AtomicU64,
}

impl Pool {
    /// A pool that starts workers with `command` on demand and keeps artifacts in `cache`.
    pub fn new(command: WorkerCommand, cache: Cache) -> Pool {
        Pool {
            command,
            cache,
            idle: Mutex::default(),
            next_id: AtomicU64::new(1),
            generation: AtomicU64::new(0),
            deaths: AtomicU64::new(0),
        }
    }

    /// Compiles tile IR, or takes the artifact from the cache. Blocks; several threads may call.
    ///
    /// # Errors
    /// See [`WorkerError`].
    pub fn compile(
        &self,
        request: &CompileRequest,
        cancel: &Cancel,
    ) -> Result<Artifact, WorkerError> {
        let key = self.cache.key(request, &self.command.program);
        if let Some(artifact) = self.cache.get(&key) {
            return Ok(artifact);
        }
        let mut artifact = None;
        self.call(Task::Compile(request.clone()), COMPILE_DEADLINE, cancel, &mut |body| {
            if let Body::Compiled(compiled) = body {
                artifact = Some(*compiled);
            }
        })?;
        let artifact = artifact.ok_or(WorkerError::Protocol)?;
        self.cache.put(&key, &artifact);
        Ok(artifact)
    }

    /// Runs kernels; `on_event` receives [`Body::Progress`] and [`Body::Result`] as they come.
    /// Blocks. A run is tried once only: it may have written files.
    ///
    /// # Errors
    /// See [`WorkerError`].
    pub fn run(
        &self,
        request: &RunRequest,
        cancel: &Cancel,
        on_event: &mut dyn FnMut(Body),
    ) -> Result<(), WorkerError> {
        self.call(Task::Run(Box::new(request.clone())), RUN_DEADLINE, cancel, on_event)
    }

    /// Assembles and measures PTX.
    ///
    /// # Errors
    /// See [`WorkerError`].
    pub fn assemble(&self, request: &AssembleRequest) -> Result<Resources, WorkerError> {
        let mut resources = None;
        let task = Task::Assemble(request.clone());
        self.call(task, COMPILE_DEADLINE, &Cancel::default(), &mut |body| {
            if let Body::Result(value) = body {
                resources = serde_json::from_value(value).ok();
            }
        })?;
        resources.ok_or(WorkerError::Protocol)
    }

    /// What a multiprocessor of the first CUDA device holds of each of these kernels, which were
    /// assembled for it, as the driver says.
    ///
    /// # Errors
    /// See [`WorkerError`]; [`FailureKind::Device`] without a device.
    pub fn residency(&self, kernels: Vec<Artifact>) -> Result<Vec<Residency>, WorkerError> {
        let (asked, mut found) = (kernels.len(), Vec::new());
        let task = Task::Residency(kernels);
        // A worker that dies in between is asked from the first kernel on again.
        self.call(task, COMPILE_DEADLINE, &Cancel::default(), &mut |body| {
            if let Body::Result(value) = body {
                found.extend(serde_json::from_value(value).ok());
            }
        })?;
        if found.len() < asked {
            return Err(WorkerError::Protocol);
        }
        Ok(found.split_off(found.len() - asked))
    }

    /// The CUDA devices of this machine; empty without a driver.
    ///
    /// # Errors
    /// See [`WorkerError`].
    pub fn devices(&self) -> Result<Vec<DeviceInfo>, WorkerError> {
        let mut devices = Vec::new();
        self.call(Task::Devices, COMPILE_DEADLINE, &Cancel::default(), &mut |body| {
            if let Body::Result(value) = body {
                devices.extend(serde_json::from_value(value).ok());
            }
        })?;
        Ok(devices)
    }

    /// The architecture of the first CUDA device; a worker is asked only where there is a driver.
    pub fn local_arch(&self) -> Option<String> {
        if !Path::new("/dev/nvidiactl").exists() {
            return None;
        }
        self.devices().ok()?.into_iter().next().map(|device| device.arch)
    }

    /// Starts a worker for the next call, unless one is idle, and removes what workers of
    /// processes that were killed have left.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn warm_up(&self) -> Result<(), WorkerError> {
        scratch::sweep();
        let worker = match self.take_idle() {
            Some(worker) => worker,
            None => Worker::start(&self.command)?,
        };
        lock(&self.idle).push(worker);
        Ok(())
    }

    /// Ends every idle worker, and every busy one once its task is over.
    pub fn restart(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        lock(&self.idle).clear();
    }

    /// How many workers died by themselves so far, or were killed from outside.
    pub fn deaths(&self) -> u64 {
        self.deaths.load(Ordering::SeqCst)
    }

    /// Process ids of the idle workers.
    #[cfg(test)]
    fn idle_ids(&self) -> Vec<u32> {
        lock(&self.idle).iter().map(|worker| worker.child.id()).collect()
    }

    fn call(
        &self,
        task: Task,
        deadline: Duration,
        cancel: &Cancel,
        on_event: &mut dyn FnMut(Body),
    ) -> Result<(), WorkerError> {
        let retry = !matches!(task, Task::Run(_));
        let id = self.next_id.fetch_add(1, Ordering::SeqCst);
        let request = Request { id, task };
        let line = serde_json::to_string(&request).map_err(|error| {
            Failure::new(FailureKind::Internal, format!("cannot write the request: {error}"))
        })?;
        let mut crashes = 0;
        loop {
            let generation = self.generation.load(Ordering::SeqCst);
            let mut worker = match self.take_idle() {
                Some(worker) => worker,
                None => Worker::start(&self.command)?,
            };
            let answer = worker.call(id, &line, deadline, cancel, on_event);
            if matches!(answer, Err(WorkerError::Crashed { .. })) {
                self.deaths.fetch_add(1, Ordering::SeqCst);
            }
            match answer {
                Err(WorkerError::Crashed { status, .. }) if retry && crashes == 0 => {
                    crashes += 1;
                    tracing::warn!(%status, "a worker process died; trying once more");
                }
                answer => {
                    // A device error may have poisoned the worker's CUDA context.
                    let healthy = answer.as_ref().err().is_none_or(|error| {
                        matches!(error, WorkerError::Failed(f) if f.kind != FailureKind::Device)
                    });
                    if healthy && generation == self.generation.load(Ordering::SeqCst) {
                        lock(&self.idle).push(worker);
                    }
                    return answer;
                }
            }
        }
    }

    /// An idle worker that is still alive.
    fn take_idle(&self) -> Option<Worker> {
        loop {
            let mut worker = lock(&self.idle).pop()?;
            if matches!(worker.child.try_wait(), Ok(None)) {
                return Some(worker);
            }
            self.deaths.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// One worker process; killed when dropped.
#[derive(Debug)]
struct Worker {
    child: Child,
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
    fn start(command: &WorkerCommand) -> Result<Worker, WorkerError> {
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

    fn call(
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
fn children(process: u32) -> Vec<u32> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tile_compiler::artifact::Keep;

    use super::*;
    use crate::protocol::{CompileOptions, Depth};

    /// A pool whose workers are a shell script.
    fn pool(script: &str) -> Pool {
        let args = vec!["-c".to_owned(), script.to_owned()];
        Pool::new(WorkerCommand { program: "/bin/sh".into(), args }, Cache::disabled())
    }

    fn request() -> CompileRequest {
        let options = CompileOptions {
            arch: "sm_90a".into(),
            ptxas: None,
            nvdisasm: None,
            keep: Keep::default(),
            depth: Depth::Full,
        };
        CompileRequest { ir: "ir".into(), options }
    }

    fn compiled(id: u64) -> String {
        let body = Body::Compiled(Box::new(Artifact { ptx: "p".into(), ..Artifact::default() }));
        serde_json::to_string(&Response { id, body }).unwrap()
    }

    #[test]
    fn a_worker_is_reused_and_replaced_after_it_was_killed() {
        let answers = (1..=3).map(compiled).collect::<Vec<_>>();
        // Each worker answers with the id it was asked for.
        let script = format!(
            "while read -r line; do case \"$line\" in *'\"id\":1,'*) echo '{}';; *'\"id\":2,'*) \
             echo '{}';; *) echo '{}';; esac; done",
            answers[0], answers[1], answers[2]
        );
        let pool = pool(&script);
        let compile = || pool.compile(&request(), &Cancel::default()).unwrap().ptx;
        assert_eq!(compile(), "p");
        let first = pool.idle_ids();
        assert_eq!(compile(), "p");
        assert_eq!(pool.idle_ids(), first);
        let killed = Command::new("kill").args(["-9", &first[0].to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(compile(), "p");
        assert_ne!(pool.idle_ids(), first);
    }

    #[test]
    fn a_worker_that_dies_at_work_is_reported_with_its_last_words() {
        let error = pool("read -r line; echo 'LLVM ERROR: oh' >&2; kill -ABRT $$")
            .compile(&request(), &Cancel::default())
            .unwrap_err();
        assert_eq!(error.to_string(), "the worker process died (signal 6):\nLLVM ERROR: oh");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_worker_started_ends_with_it() {
        let worker = Worker::start(&WorkerCommand {
            program: "/bin/sh".into(),
            args: vec!["-c".to_owned(), "sleep 60 & wait".to_owned()],
        })
        .unwrap();
        let started = Instant::now();
        let sleeping = loop {
            if let [child] = children(worker.child.id())[..] {
                break child;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "the shell starts its child");
        };
        drop(worker);
        // What was ended may still wait to be collected.
        let runs = || {
            let state = std::fs::read_to_string(format!("/proc/{sleeping}/stat"));
            state.is_ok_and(|state| !state.contains(") Z "))
        };
        while runs() {
            assert!(started.elapsed() < Duration::from_secs(10), "it ends with the worker");
            std::thread::yield_now();
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_a_killed_worker_left_among_the_temporary_files_is_removed() {
        let pool =
            pool("touch \"$TMPDIR/kernel.ptx\"; echo \"$TMPDIR\" >&2; read -r line; kill -9 $$");
        let error = pool.compile(&request(), &Cancel::default()).unwrap_err();
        let WorkerError::Crashed { stderr, .. } = error else { panic!("{error}") };
        let folder = PathBuf::from(stderr);
        assert!(folder.starts_with(std::env::temp_dir()), "{}", folder.display());
        assert!(!folder.exists(), "{}", folder.display());
    }

    #[test]
    fn a_silent_worker_is_ended_at_the_deadline_and_on_cancel() {
        let pool = pool("exec sleep 60");
        let task = || Task::Compile(request());
        let deadline = Duration::from_millis(50);
        let error = pool.call(task(), deadline, &Cancel::default(), &mut |_| {}).unwrap_err();
        assert_eq!(error, WorkerError::TimedOut(deadline));
        let cancel = Cancel::default();
        let error = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.call(task(), COMPILE_DEADLINE, &cancel, &mut |_| {}));
            cancel.cancel();
            waiting.join().unwrap().unwrap_err()
        });
        assert_eq!(error, WorkerError::Cancelled);
    }

    #[test]
    fn a_missing_program_is_a_clear_error() {
        let command = WorkerCommand { program: "/nonexistent/tile".into(), args: Vec::new() };
        let error = Pool::new(command, Cache::disabled())
            .compile(&request(), &Cancel::default())
            .unwrap_err();
        assert!(error.to_string().contains("/nonexistent/tile"), "{error}");
    }
}
