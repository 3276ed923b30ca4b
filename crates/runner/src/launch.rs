//! Launching kernels: what a device and a compiler must be able to do, and the session that
//! brings them together for a scenario.
//!
//! A [`Session`] is the [`Launcher`] of a scenario: it derives the specialization of each launch
//! from the actual arguments, has the kernel compiled once per specialization, keeps tensors on
//! the device while launches use them, and records what each launch did.

mod arguments;
mod flops;
mod session;
mod uses;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use arguments::arg_spec;
pub use arguments::specialize;
pub use flops::count_flops;
pub use session::{LaunchRecord, Session, SessionOptions};
use tile_compiler::artifact::{Manifest, Resources};
use tile_compiler::hir::Name;
use tile_compiler::ir::Function;
use tile_compiler::specialization::{Specialization, TupleNames};

use crate::scenario::{KernelInfo, LaunchFailure, Storage, StorageId, Value};
use tile_executor::{Arg, Finding};

/// Compiles kernels by name. The runner knows neither the front end's database nor LLVM.
pub trait KernelCompiler {
    /// Parameters and default options of a kernel.
    ///
    /// # Errors
    /// When there is no kernel of this name.
    fn kernel(&mut self, name: &str) -> Result<KernelInfo, LaunchFailure>;

    /// The parameters that heuristics set where a kernel is launched with these arguments, as far
    /// as they can be followed.
    fn heuristics(&mut self, _kernel: &str, _args: &[(Name, Value)]) -> Vec<(Name, Value)> {
        Vec::new()
    }

    /// What a named tuple of the file and its fields are called, if there is one of this name.
    fn record(&mut self, _name: &str) -> Option<Arc<TupleNames>> {
        None
    }

    /// Verified tile IR of a kernel under a specialization.
    ///
    /// # Errors
    /// When the kernel does not compile.
    fn tile_ir(
        &mut self,
        kernel: &str,
        specialization: &Specialization,
    ) -> Result<Function, LaunchFailure>;

    /// Machine code for an architecture such as `sm_90a`.
    ///
    /// # Errors
    /// When the back end fails, or no assembler is at hand.
    fn cubin(&mut self, func: &Function, arch: &str) -> Result<CompiledKernel, LaunchFailure>;
}

/// Machine code and how to launch it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledKernel {
    /// The machine code.
    pub cubin: Vec<u8>,
    /// Entry, parameters, warps, shared memory.
    pub manifest: Manifest,
    /// Measured resources, if known.
    pub resources: Option<Resources>,
}

/// A kernel that a device has loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelId(pub usize);

/// What one launch did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaunchReport {
    /// Time on the device; on the CPU, wall time.
    pub elapsed: Duration,
    /// What is wrong with the kernel.
    pub findings: Vec<Finding>,
    /// What it printed.
    pub prints: Vec<String>,
    /// Operations of matrix products, if counted.
    pub flops: Option<u64>,
    /// Bytes of distinct elements read and written, if counted.
    pub touched: Option<(u64, u64)>,
}

/// How a device runs a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LaunchOptions {
    /// Look for races, reads of uninitialized memory and births of NaN, where the device can.
    pub sanitize: bool,
    /// Count the bytes that are touched, where the device can.
    pub trace: bool,
    /// How long the launch may take.
    pub deadline: Option<Duration>,
}

/// Something that runs kernels. Memory is by storage: the device keeps its own copy of each.
pub trait Device {
    /// What people call it: `cpu`, `cuda:0 NVIDIA H100 80GB HBM3`.
    fn name(&self) -> String;

    /// The architecture that kernels are compiled for, such as `sm_90a`; `None` where tile IR runs
    /// as it is.
    fn arch(&self) -> Option<String> {
        None
    }

    /// Copies a storage to the device, in place of what the device has of it.
    ///
    /// # Errors
    /// When memory is short or the copy fails.
    fn upload(&mut self, id: StorageId, storage: &Storage) -> Result<(), LaunchFailure>;

    /// Copies a storage back.
    ///
    /// # Errors
    /// When the copy fails, as it does after a fault on the device.
    fn download(&mut self, id: StorageId) -> Result<Vec<u8>, LaunchFailure>;

    /// Address of a storage's first byte; it must have been uploaded.
    fn address(&self, id: StorageId) -> u64;

    /// Compiles and loads a kernel.
    ///
    /// # Errors
    /// When it does not compile or the device rejects it.
    fn load(
        &mut self,
        compiler: &mut dyn KernelCompiler,
        func: &Function,
    ) -> Result<KernelId, LaunchFailure>;

    /// Runs a launch to its end.
    ///
    /// # Errors
    /// When the arguments do not fit, or the launch fails or takes too long.
    fn launch(
        &mut self,
        kernel: KernelId,
        args: &[Arg],
        grid: [u32; 3],
        options: &LaunchOptions,
    ) -> Result<LaunchReport, LaunchFailure>;

    /// Evicts what caches hold, before a launch that is measured.
    ///
    /// # Errors
    /// When the device fails.
    fn flush_caches(&mut self) -> Result<(), LaunchFailure>;

    /// Measured resources of a loaded kernel, if the device has such.
    fn resources(&self, kernel: KernelId) -> Option<KernelResources>;
}

/// What a loaded kernel takes, as the driver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelResources {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread in bytes: spills and stack.
    pub local_bytes: u32,
    /// Shared memory per CTA in bytes, static and dynamic.
    pub shared_bytes: u32,
}
