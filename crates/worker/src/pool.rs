//! Starts, restarts and times worker processes.
//!
//! A [`Pool`] keeps idle workers for reuse. A call takes one, or starts one, and holds it until
//! the answer, the deadline or a [`Cancel`]. A worker that was killed while idle is replaced
//! silently; one that dies while it compiles is replaced and the task tried once more, since it
//! may have been killed from outside. A worker that passes its deadline is killed. What a worker
//! left among the temporary files is removed, however it ended.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tile_compiler::artifact::{Artifact, Resources};

use crate::cache::Cache;
use crate::cancel::{Cancel, lock};
use crate::process::{Worker, WorkerCommand, WorkerError};
use crate::protocol::{
    AssembleRequest, Body, CompileRequest, DeviceInfo, Failure, FailureKind, Request, Residency,
    RunRequest, Task,
};
use crate::scratch;

/// Longest that a compilation may take; the assembler has a shorter deadline of its own.
pub(crate) const COMPILE_DEADLINE: Duration = Duration::from_secs(150);

/// Longest that a worker may be silent while it runs kernels.
pub(crate) const RUN_DEADLINE: Duration = Duration::from_secs(300);

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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::Instant;

    use tile_compiler::artifact::Keep;

    use super::*;
    use crate::process::children;
    use crate::protocol::{CompileOptions, Depth, Response};

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
