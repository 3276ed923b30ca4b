//! What a scenario asks of those who compile and launch kernels.

use std::sync::Arc;

use tile_compiler::hir::Name;
use tile_compiler::ir::LaunchOptions;
use tile_compiler::specialization::TupleNames;

use super::tensor::{StorageId, Store, Value};

/// A kernel as launches see it.
#[derive(Debug, Clone, Default)]
pub struct KernelInfo {
    /// Parameters in order.
    pub params: Vec<KernelParam>,
    /// Options of a launch that does not say otherwise: those of the chosen autotune
    /// configuration.
    pub options: LaunchOptions,
}

/// A parameter of a kernel.
#[derive(Debug, Clone)]
pub struct KernelParam {
    /// Its name.
    pub name: Name,
    /// True for `tl.constexpr` parameters.
    pub constexpr: bool,
    /// The type that its annotation gives, in signature spelling, such as `i32`.
    pub annotation: Option<Arc<str>>,
    /// Whether a launch is specialized on the value 1.
    pub specialize: bool,
    /// Whether a launch is specialized on multiples of 16.
    pub specialize_alignment: bool,
    /// Value when the launch gives none: the autotune configuration's, else the default.
    pub default: Option<Value>,
    /// Whether `@triton.heuristics` sets it, from the other arguments and whatever a launch gives.
    pub computed: bool,
}

/// A launch with every argument bound.
#[derive(Debug, Clone)]
pub struct BoundLaunch {
    /// The kernel.
    pub kernel: Name,
    /// Arguments in parameter order.
    pub args: Vec<BoundArg>,
    /// Programs along x, y and z.
    pub grid: [u32; 3],
    /// Launch options.
    pub options: LaunchOptions,
}

/// An argument of a launch.
#[derive(Debug, Clone)]
pub struct BoundArg {
    /// The parameter.
    pub param: KernelParam,
    /// Its value: tensors are [`Value::Tensor`].
    pub value: Value,
}

/// Why a launch failed.
#[derive(Debug, Clone, PartialEq)]
pub enum LaunchFailure {
    /// The kernel does not compile.
    Compile(String),
    /// The device or the launch itself failed.
    Device(String),
    /// The arguments do not fit the kernel.
    Usage(String),
}

impl LaunchFailure {
    /// What people read.
    pub fn message(&self) -> &str {
        match self {
            LaunchFailure::Compile(message)
            | LaunchFailure::Device(message)
            | LaunchFailure::Usage(message) => message,
        }
    }
}

/// Compiles and launches kernels for a scenario.
pub trait Launcher {
    /// What is known of a kernel.
    ///
    /// # Errors
    /// When there is no kernel of this name.
    fn kernel(&mut self, name: &str) -> Result<KernelInfo, LaunchFailure>;

    /// The parameters that heuristics set where a kernel is launched with these arguments, as far
    /// as they can be followed.
    fn heuristics(&mut self, kernel: &str, args: &[(Name, Value)]) -> Vec<(Name, Value)>;

    /// What a named tuple of the file and its fields are called, if there is one of this name.
    fn record(&mut self, name: &str) -> Option<Arc<TupleNames>>;

    /// Runs a launch to its end: storages of the arguments hold what it wrote.
    ///
    /// # Errors
    /// When it does not compile or run.
    fn launch(&mut self, store: &mut Store, launch: &BoundLaunch) -> Result<(), LaunchFailure>;

    /// Address of a storage's first byte on the device, where it stays. Later launches may read
    /// and write it through this address.
    ///
    /// # Errors
    /// When the device has no memory for it.
    fn address(&mut self, store: &Store, id: StorageId) -> Result<u64, LaunchFailure>;
}
