//! `tile worker`: compiles and runs on behalf of another `tile` process.
//!
//! Requests come as lines on standard input, one at a time; see [`tile_worker::protocol`]. The
//! process ends when its input does, and at once when nobody is there to read its answers: so it ends
//! with the process that started it, however that ended and whatever it is at.

use std::fs::File;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use tile_codegen::Target;
use tile_compiler::ir;
use tile_worker::protocol::{
    AssembleRequest, Body, CompileRequest, Depth, Failure, FailureKind, Request, Response, Task,
};

use crate::failure::codegen_failure;
use crate::{Exit, execute};

/// Serves requests until standard input ends.
pub(crate) fn run() -> Exit {
    let Ok(answers) = take_standard_output() else { return Exit::Usage };
    // A worker that cannot watch its reader notices at its next answer that it is gone.
    if let Ok(answers) = answers.try_clone() {
        std::thread::spawn(move || end_with_reader(&answers));
    }
    let mut answers = Answers { out: answers };
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        let (id, body) = match serde_json::from_str::<Request>(&line) {
            Ok(request) => (request.id, answer(request, &mut answers)),
            Err(error) => {
                let message = format!("a request could not be read: {error}");
                (0, Body::Failed(Failure::new(FailureKind::Internal, message)))
            }
        };
        if answers.send(id, body).is_err() {
            break;
        }
    }
    Exit::Success
}

/// Does the work; a panic in it is an answer too.
fn answer(request: Request, answers: &mut Answers) -> Body {
    let id = request.id;
    let mut report = |body: Body| {
        // A client that is gone is noticed at the end.
        let _ = answers.send(id, body);
    };
    let work = AssertUnwindSafe(|| perform(request.task, &mut report));
    match catch_unwind(work) {
        Ok(Ok(body)) => body,
        Ok(Err(failure)) => Body::Failed(failure),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            let message = format!("the compiler is at fault: {text}");
            Body::Failed(Failure::new(FailureKind::Internal, message))
        }
    }
}

/// Where answers go.
struct Answers {
    out: File,
}

impl Answers {
    fn send(&mut self, id: u64, body: Body) -> std::io::Result<()> {
        let mut line = serde_json::to_string(&Response { id, body })?;
        line.push('\n');
        self.out.write_all(line.as_bytes())
    }
}

/// Ends this process once nobody can read `answers` any more. A thread that computes is not asked: it
/// may be in LLVM, or in a kernel that never ends.
fn end_with_reader(answers: &File) {
    /// Between attempts to wait that were interrupted.
    const PAUSE: Duration = Duration::from_millis(100);
    loop {
        // What is asked for by no flag is told of always: that the other end was closed.
        let mut watched = [PollFd::new(answers, PollFlags::empty())];
        let waited = rustix::event::poll(&mut watched, None);
        if waited.is_ok() && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    // Nothing is cleaned up beside threads that go on. It fails for no process of one's own.
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
}

/// Keeps standard output for answers: what kernels print there goes to standard error.
fn take_standard_output() -> std::io::Result<File> {
    let answers = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(answers))
}

fn perform(task: Task, report: &mut dyn FnMut(Body)) -> Result<Body, Failure> {
    match task {
        Task::Compile(request) => compile(&request),
        Task::Assemble(request) => {
            report(assemble(&request)?);
            Ok(Body::Done)
        }
        Task::Residency(kernels) => {
            for residency in execute::device::residency(&kernels)? {
                let residency = serde_json::to_value(residency)
                    .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
                report(Body::Result(residency));
            }
            Ok(Body::Done)
        }
        Task::Devices => {
            for device in execute::device::list() {
                let device = serde_json::to_value(device)
                    .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
                report(Body::Result(device));
            }
            Ok(Body::Done)
        }
        Task::Run(request) => execute::run(&request, report).map(|()| Body::Done),
    }
}

fn compile(request: &CompileRequest) -> Result<Body, Failure> {
    let function = ir::parse(&request.ir).map_err(|error| {
        Failure::new(FailureKind::Internal, format!("the tile IR cannot be read: {error}"))
    })?;
    let options = &request.options;
    let target: Target = options.arch.parse().map_err(codegen_failure)?;
    let options = tile_codegen::Options {
        keep: options.keep,
        ptxas: options.ptxas.clone(),
        nvdisasm: options.nvdisasm.clone(),
    };
    let artifact = match request.options.depth {
        Depth::Full => tile_codegen::compile(&function, target, &options),
        Depth::Gpu => tile_codegen::inspect(&function, target, options.keep),
    };
    let artifact = artifact.map_err(codegen_failure)?;
    Ok(Body::Compiled(Box::new(artifact)))
}

fn assemble(request: &AssembleRequest) -> Result<Body, Failure> {
    let AssembleRequest { ptx, arch, num_warps, shared_bytes, ptxas } = request;
    let assembled = tile_codegen::ptxas::assemble(ptxas, ptx, arch)
        .map_err(|error| codegen_failure(error.into()))?;
    let resources = assembled.report.resources(ptxas, arch, *num_warps, *shared_bytes);
    let resources = serde_json::to_value(resources)
        .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
    Ok(Body::Result(resources))
}
