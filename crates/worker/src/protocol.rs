//! Messages between a client and a `tile worker` child.
//!
//! One JSON object a line: [`Request`]s on the child's standard input, [`Response`]s on its
//! standard output. A worker answers one request at a time, in order. Any number of
//! [`Body::Progress`] lines may precede the final one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tile_compiler::artifact::{Artifact, Keep};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::specialization::{WrittenLaunch, written_options};

/// One request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Echoed in every response to it.
    pub id: u64,
    /// What to do.
    pub task: Task,
}

/// What a worker can do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Compile tile IR.
    Compile(CompileRequest),
    /// Run or time kernels of a file.
    Run(Box<RunRequest>),
    /// Assemble PTX of any origin; the answer is one [`Body::Result`], the resources.
    Assemble(AssembleRequest),
    /// Ask the driver of the first CUDA device what a multiprocessor holds of each of these kernels,
    /// which were assembled for it; the answer is one [`Body::Result`] each, a [`Residency`].
    Residency(Vec<Artifact>),
    /// Name the CUDA devices; the answer is one [`Body::Result`] each, a [`DeviceInfo`].
    Devices,
}

/// Compile one kernel under one specialization.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompileRequest {
    /// Tile IR text, locations included; it holds the launch options.
    pub ir: String,
    /// For what machine, and what to keep.
    pub options: CompileOptions,
}

/// Everything besides the IR that an artifact depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompileOptions {
    /// Target architecture, such as `sm_90a`.
    pub arch: String,
    /// The assembler; without one the artifact ends at PTX.
    pub ptxas: Option<PathBuf>,
    /// The disassembler; without one the artifact has no SASS.
    pub nvdisasm: Option<PathBuf>,
    /// Which texts to keep.
    pub keep: Keep,
    /// How far to go.
    #[serde(default)]
    pub depth: Depth,
}

/// How far a compilation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// To machine code.
    #[default]
    Full,
    /// To GPU IR: findings alone. Takes milliseconds.
    Gpu,
}

/// Run kernels of one file. The worker reads, analyses, compiles and launches.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunRequest {
    /// The file; `load(...)` in its scenarios is relative to its folder.
    pub path: PathBuf,
    /// Its text where it differs from the disk, as in an editor's unsaved buffer.
    pub text: Option<String>,
    /// The kernel; `None` runs every scenario of the file.
    pub kernel: Option<String>,
    /// Which of the kernel's scenarios, from 0 in source order; `None` runs them all.
    pub scenario: Option<usize>,
    /// Where.
    pub device: Device,
    /// Time each launch as well.
    pub bench: bool,
    /// Check every lane's address, overlapping stores and uninitialized reads; CPU only.
    pub sanitize: bool,
    /// `NAME=EXPR` pairs: arguments of a kernel without a scenario, or values that replace the
    /// scenario's own assignments to `NAME`.
    pub args: Vec<(String, String)>,
    /// The grid of a kernel without a scenario, as an expression.
    pub grid: Option<String>,
    /// `NAME=FILE` pairs: tensors to write as `.npy` files after the run.
    pub save: Vec<(String, PathBuf)>,
    /// Changes to the specialization that the scenario implies.
    pub spec: SpecFlags,
    /// The assembler.
    pub ptxas: Option<PathBuf>,
    /// Site-packages directory for imports outside the workspace.
    pub site_packages: Option<PathBuf>,
}

impl RunRequest {
    /// The request with the arguments, grid and options of a launch of `kernel`, but for what is
    /// asked for otherwise.
    #[must_use]
    pub fn as_launched(&self, kernel: &str, launch: &WrittenLaunch) -> RunRequest {
        let is_asked = |name: &str| match name {
            "num_warps" => self.spec.num_warps.is_some(),
            "num_stages" => self.spec.num_stages.is_some(),
            _ => self.spec.values.iter().any(|(asked, _)| asked == name),
        };
        let args = launch.args.iter().map(|(name, text)| (name.to_string(), text.clone()));
        let options = written_options(&launch.options).into_iter();
        let options = options.map(|(name, value)| (name.to_owned(), value.to_string()));
        RunRequest {
            kernel: Some(kernel.to_owned()),
            args: args.chain(options).filter(|(name, _)| !is_asked(name)).collect(),
            grid: Some(launch.grid()),
            ..self.clone()
        }
    }
}

/// Where a kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// The first CUDA device, else the CPU.
    #[default]
    Auto,
    /// The CPU executor.
    Cpu,
    /// The CUDA device of this number.
    Cuda(u32),
}

impl std::str::FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Device, String> {
        match text {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|number| number.parse().ok())
                .map(Device::Cuda)
                .ok_or_else(|| format!("`{text}` is not a device; use auto, cpu or cuda:N")),
        }
    }
}

/// Assemble PTX and measure it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssembleRequest {
    /// The PTX.
    pub ptx: String,
    /// Its target architecture.
    pub arch: String,
    /// Warps per CTA, for the occupancy.
    pub num_warps: u32,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The assembler.
    pub ptxas: PathBuf,
}

/// A CUDA device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Its marketing name.
    pub name: String,
    /// Its architecture, such as `sm_90a`.
    pub arch: String,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
}

/// What of a kernel a multiprocessor of a CUDA device holds at once, as its driver says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Residency {
    /// Resident threads over the multiprocessor's limit, 0 to 1.
    pub occupancy: f64,
    /// Resident CTAs.
    pub ctas: u32,
    /// The device: its number and name.
    pub device: String,
    /// What was asked, a function of the driver.
    pub source: String,
}

/// Flags and pins that change a specialization.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SpecFlags {
    /// Version of Triton whose rules hold, `3.6` or `3.9`; `None` for the newest.
    pub triton: Option<String>,
    /// Target architecture; `None` asks the device, else `sm_90a`.
    pub arch: Option<String>,
    /// `NAME=TYPE` pairs in Triton's signature spelling, `:16` and `:1` suffixes included.
    pub types: Vec<(String, String)>,
    /// `NAME=VALUE` pairs for constexpr parameters.
    pub values: Vec<(String, String)>,
    /// Warps per CTA.
    pub num_warps: Option<u32>,
    /// Pipeline depth.
    pub num_stages: Option<u32>,
}

impl SpecFlags {
    /// True when nothing about the specialization is asked for; version and architecture do not
    /// count, since they hold for any specialization.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
            && self.values.is_empty()
            && self.num_warps.is_none()
            && self.num_stages.is_none()
    }
}

/// One line from a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Response {
    /// The request's.
    pub id: u64,
    /// What it says.
    pub body: Body,
}

/// What a line from a worker says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// Work goes on; one line for people.
    Progress(String),
    /// The end of a [`Task::Compile`].
    Compiled(Box<Artifact>),
    /// One scenario of a [`Task::Run`] is done: the object that `tile run --format json` or
    /// `tile bench --format json` prints.
    Result(serde_json::Value),
    /// The end of a [`Task::Run`].
    Done,
    /// The end of a task that failed.
    Failed(Failure),
}

/// What `tile bench --format json` shows of a [`Body::Result`]: times and resources alone.
#[must_use]
pub fn timing(result: &serde_json::Value) -> serde_json::Value {
    let mut object = serde_json::Map::new();
    for key in [
        "kernel",
        "specialization",
        "device",
        "ms",
        "gbps",
        "tflops",
        "roof",
        "registers",
        "shared_bytes",
    ] {
        if let Some(value) = result.get(key) {
            object.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(bench) = result.get("bench") {
        object.insert("ms".to_owned(), bench.clone());
    }
    serde_json::Value::Object(object)
}

/// Why a task failed, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// What went wrong and what to do.
    pub message: String,
    /// The same in terms of the source, where a kernel does not compile for a reason that its
    /// author can change. Places are those of the IR that was compiled, and nothing is said yet of
    /// the specialization; see [`check_compiled`](tile_compiler::analysis::check_compiled).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Diagnostic>,
}

/// Kinds of failure, as the command line's exit codes tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The request itself is wrong: no such kernel, a bad expression, a file that cannot be read.
    Usage,
    /// The kernel does not compile.
    Compile,
    /// The device, the driver, or a tool that the worker calls failed.
    Device,
    /// The compiler is at fault.
    Internal,
}

impl Failure {
    /// A failure of `kind`.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), findings: Vec::new() }
    }
}
