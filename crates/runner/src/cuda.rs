//! CUDA devices, through the driver library that is loaded at run time.
//!
//! A machine without the driver is a typed error, never a panic. A fault of a kernel poisons the
//! process's CUDA context: every later call fails, so that launches belong in a worker process
//! that can be replaced.

mod driver;

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use serde::Serialize;
use thiserror::Error;
use tile_compiler::artifact::{Manifest, ProductOfParams, TensorMap};
use tile_compiler::ir::{Elem, Function};

use crate::launch::{
    Device, KernelCompiler, KernelId, KernelResources, LaunchOptions, LaunchReport,
};
use crate::scenario::{LaunchFailure, Storage, StorageId};
use driver::{Context, EncodedMap, Event, LoadedFunction, Memory};
use tile_executor::{Arg, argument_bits};

/// Why CUDA cannot be used, or what it reports.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CudaError {
    /// The driver library is not installed.
    #[error(
        "no CUDA driver was found (libcuda.so.1 or nvcuda.dll); \
         install the NVIDIA driver, or run with `--device cpu`"
    )]
    NoDriver,
    /// There is no device of this number.
    #[error("there is no CUDA device {ordinal}; the driver sees {count}")]
    NoDevice {
        /// The number asked for.
        ordinal: u32,
        /// How many devices there are.
        count: u32,
    },
    /// A call failed.
    #[error("{what}: {name}")]
    Driver {
        /// What was tried.
        what: &'static str,
        /// The driver's name for the error.
        name: String,
    },
}

/// What is known of a device without using it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// Its number, from 0.
    pub ordinal: u32,
    /// The name that NVIDIA gives it.
    pub name: String,
    /// Architecture to compile for, such as `sm_90a`.
    pub arch: String,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Peak clock of the multiprocessors in kHz.
    pub clock_khz: u32,
    /// Peak clock of the memory in kHz.
    pub memory_clock_khz: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Shared memory that one CTA may ask for, in bytes.
    pub max_shared_bytes: u32,
    /// Threads that a multiprocessor holds at once.
    pub max_threads: u32,
}

/// What of a kernel a multiprocessor holds at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Residency {
    /// CTAs.
    pub ctas: u32,
    /// Their threads over the multiprocessor's limit, 0 to 1.
    pub occupancy: f64,
}

/// The devices of this machine.
///
/// # Errors
/// When there is no driver, or it does not start.
pub fn devices() -> Result<Vec<DeviceInfo>, CudaError> {
    let count = driver::count()?;
    (0..count).map(driver::info).collect()
}

/// A device that kernels are launched on.
#[derive(Debug)]
pub struct CudaDevice {
    // Dropped in this order: what belongs to the context before the context.
    kernels: Vec<CudaKernel>,
    memories: FxHashMap<StorageId, Memory>,
    flush: Option<Memory>,
    scratch: Option<Memory>,
    start: Event,
    stop: Event,
    context: Context,
    info: DeviceInfo,
}

#[derive(Debug)]
struct CudaKernel {
    function: LoadedFunction,
    manifest: Manifest,
    types: Vec<Elem>,
    resources: KernelResources,
}

/// Size of the buffer whose writing evicts the L2 cache, in bytes.
const FLUSH_BYTES: usize = 256 << 20;
/// Dynamic shared memory that every kernel may use without asking, in bytes.
const FREE_SHARED_BYTES: u32 = 48 << 10;

impl CudaDevice {
    /// Opens a device by number.
    ///
    /// # Errors
    /// When there is no driver or no such device.
    pub fn open(ordinal: u32) -> Result<CudaDevice, CudaError> {
        let count = driver::count()?;
        if ordinal >= count {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let info = driver::info(ordinal)?;
        let context = Context::new(ordinal)?;
        Ok(CudaDevice {
            kernels: Vec::new(),
            memories: FxHashMap::default(),
            flush: None,
            scratch: None,
            start: Event::new(&context)?,
            stop: Event::new(&context)?,
            context,
            info,
        })
    }

    /// What is known of the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// What a multiprocessor of this device holds of a kernel, as the driver says
    /// (`cuOccupancyMaxActiveBlocksPerMultiprocessor`). The limits of clusters are not in it.
    ///
    /// # Errors
    /// When the machine code cannot be loaded, for another architecture for instance.
    pub fn residency(&self, cubin: &[u8], manifest: &Manifest) -> Result<Residency, CudaError> {
        self.context.bind()?;
        let kernel = self.load_function(cubin, manifest.clone(), Vec::new())?;
        let threads = manifest.block.iter().product();
        let ctas = kernel.function.resident_ctas(threads, manifest.shared_bytes)?;
        let resident = f64::from(ctas) * f64::from(threads);
        Ok(Residency { ctas, occupancy: resident / f64::from(self.info.max_threads.max(1)) })
    }

    /// Loads machine code and prepares its entry function.
    fn load_function(
        &self,
        cubin: &[u8],
        manifest: Manifest,
        types: Vec<Elem>,
    ) -> Result<CudaKernel, CudaError> {
        let function = LoadedFunction::new(&self.context, cubin, &manifest.entry)?;
        if manifest.shared_bytes > FREE_SHARED_BYTES {
            function.allow_shared(manifest.shared_bytes)?;
        }
        let measured = function.resources()?;
        let resources = KernelResources {
            shared_bytes: measured.shared_bytes + manifest.shared_bytes,
            ..measured
        };
        Ok(CudaKernel { function, manifest, types, resources })
    }

    /// Memory for kernels that take scratch: zeroed, of at least `bytes`.
    fn scratch(&mut self, bytes: u64) -> Result<u64, CudaError> {
        let bytes = bytes as usize;
        if self.scratch.as_ref().is_none_or(|memory| memory.len() < bytes) {
            self.scratch = Some(Memory::new(&self.context, bytes)?);
        }
        let Some(memory) = &mut self.scratch else { return Ok(0) };
        memory.fill(&self.context, 0)?;
        Ok(memory.address())
    }

    fn run(
        &mut self,
        kernel: KernelId,
        args: &[Arg],
        grid: [u32; 3],
        options: &LaunchOptions,
    ) -> Result<Duration, LaunchFailure> {
        self.context.bind().map_err(failure)?;
        let mut params = self.pack(kernel, args)?;
        let scratch_bytes = self.kernels[kernel.0].manifest.scratch_bytes;
        if scratch_bytes > 0 {
            let programs: u64 = grid.iter().map(|&extent| u64::from(extent)).product();
            params.push(self.scratch(scratch_bytes * programs).map_err(failure)?);
        }
        let loaded = &self.kernels[kernel.0];
        let manifest = &loaded.manifest;
        let mut maps = tensor_maps(manifest, args).map_err(failure)?;
        let ctas = manifest.cluster[0].max(1);
        // Each program is a cluster: its CTAs stand along x.
        let grid = [grid[0].saturating_mul(ctas), grid[1], grid[2]];
        self.start.record(&self.context).map_err(failure)?;
        loaded
            .function
            .launch(&self.context, grid, manifest, &mut params, &mut maps)
            .map_err(|error| launch_failure(&error, manifest, &self.info))?;
        self.stop.record(&self.context).map_err(failure)?;
        self.wait(options.deadline)?;
        self.stop.since(&self.start).map_err(failure)
    }

    /// Waits for the launch, at most until the deadline.
    fn wait(&self, deadline: Option<Duration>) -> Result<(), LaunchFailure> {
        let Some(deadline) = deadline else {
            return self.stop.wait().map_err(fault);
        };
        let until = Instant::now() + deadline;
        while !self.stop.is_done().map_err(fault)? {
            if Instant::now() > until {
                let message = format!(
                    "the launch did not finish in {:.1} s; a loop may never end",
                    deadline.as_secs_f64()
                );
                return Err(LaunchFailure::Device(message));
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }

    /// The bits of each argument as its parameter's type.
    fn pack(&self, kernel: KernelId, args: &[Arg]) -> Result<Vec<u64>, LaunchFailure> {
        let kernel = &self.kernels[kernel.0];
        let params = kernel.manifest.params.len();
        if params != args.len() || kernel.types.len() != args.len() {
            let message = format!("the kernel takes {params} arguments, got {}", args.len());
            return Err(LaunchFailure::Usage(message));
        }
        let bits = args.iter().zip(&kernel.types).zip(&kernel.manifest.params);
        bits.map(|((&arg, &elem), param)| {
            argument_bits(arg, elem).ok_or_else(|| {
                let message =
                    format!("argument `{}` is {arg}, which is no {}", param.name, param.ty);
                LaunchFailure::Usage(message)
            })
        })
        .collect()
    }
}

/// The tensor maps that a kernel takes with `args`.
fn tensor_maps(manifest: &Manifest, args: &[Arg]) -> Result<Vec<EncodedMap>, CudaError> {
    let arg = |name: &String| {
        let at = manifest.params.iter().position(|param| param.name == *name);
        match at.and_then(|at| args.get(at)) {
            Some(&Arg::Pointer(address)) => address as i64,
            Some(&Arg::Int(value)) => value as i64,
            _ => 0,
        }
    };
    let number = |product: &ProductOfParams| {
        product.params.iter().map(arg).fold(product.factor, i64::wrapping_mul)
    };
    let encode = |map: &TensorMap| {
        let extents: Vec<u64> = map.shape.iter().map(|it| number(it).max(1) as u64).collect();
        let strides: Vec<u64> = map.strides.iter().map(|it| number(it) as u64).collect();
        EncodedMap::new(map, arg(&map.base) as u64, &extents, &strides)
    };
    manifest.tensor_maps.iter().map(encode).collect()
}

fn failure(error: CudaError) -> LaunchFailure {
    LaunchFailure::Device(error.to_string())
}

/// An error while a kernel runs is the kernel's, most likely.
fn fault(error: CudaError) -> LaunchFailure {
    let hint = "the kernel may access memory outside its tensors; \
                `--device cpu --sanitize` says where";
    LaunchFailure::Device(format!("{error}; {hint}"))
}

/// A launch that the driver refuses asks for too much, most likely.
fn launch_failure(error: &CudaError, manifest: &Manifest, info: &DeviceInfo) -> LaunchFailure {
    let (needs, has) = (manifest.shared_bytes, info.max_shared_bytes);
    let message = match needs > has {
        true => format!(
            "the kernel needs {needs} bytes of shared memory, the device has {has}; \
             smaller tiles or fewer stages need less"
        ),
        false => error.to_string(),
    };
    LaunchFailure::Device(message)
}

impl Device for CudaDevice {
    fn name(&self) -> String {
        format!("cuda:{} {}", self.info.ordinal, self.info.name)
    }

    fn arch(&self) -> Option<String> {
        Some(self.info.arch.clone())
    }

    fn upload(&mut self, id: StorageId, storage: &Storage) -> Result<(), LaunchFailure> {
        self.context.bind().map_err(failure)?;
        let fits = self.memories.get(&id).is_some_and(|known| known.len() == storage.bytes.len());
        if !fits {
            let memory = Memory::new(&self.context, storage.bytes.len()).map_err(failure)?;
            self.memories.insert(id, memory);
        }
        match self.memories.get_mut(&id) {
            Some(memory) => memory.write(&storage.bytes).map_err(failure),
            None => Ok(()),
        }
    }

    fn download(&mut self, id: StorageId) -> Result<Vec<u8>, LaunchFailure> {
        self.context.bind().map_err(failure)?;
        match self.memories.get(&id) {
            Some(memory) => memory.read().map_err(fault),
            None => Ok(Vec::new()),
        }
    }

    fn address(&self, id: StorageId) -> u64 {
        self.memories.get(&id).map_or(0, Memory::address)
    }

    fn load(
        &mut self,
        compiler: &mut dyn KernelCompiler,
        func: &Function,
    ) -> Result<KernelId, LaunchFailure> {
        let compiled = compiler.cubin(func, &self.info.arch)?;
        self.context.bind().map_err(failure)?;
        let args = &func.regions[func.body].args;
        let types = args.iter().filter_map(|&arg| func.ty(arg).elem()).collect();
        let manifest = compiled.manifest;
        let (needs, has) = (manifest.shared_bytes, self.info.max_shared_bytes);
        let kernel = self.load_function(&compiled.cubin, manifest, types).map_err(|error| {
            let manifest = Manifest { shared_bytes: needs, ..Manifest::default() };
            if needs > has { launch_failure(&error, &manifest, &self.info) } else { failure(error) }
        })?;
        self.kernels.push(kernel);
        Ok(KernelId(self.kernels.len() - 1))
    }

    fn launch(
        &mut self,
        kernel: KernelId,
        args: &[Arg],
        grid: [u32; 3],
        options: &LaunchOptions,
    ) -> Result<LaunchReport, LaunchFailure> {
        let elapsed = self.run(kernel, args, grid, options)?;
        Ok(LaunchReport { elapsed, ..LaunchReport::default() })
    }

    fn flush_caches(&mut self) -> Result<(), LaunchFailure> {
        self.context.bind().map_err(failure)?;
        if self.flush.is_none() {
            self.flush = Some(Memory::new(&self.context, FLUSH_BYTES).map_err(failure)?);
        }
        match &mut self.flush {
            Some(memory) => memory.fill(&self.context, 0).map_err(failure),
            None => Ok(()),
        }
    }

    fn resources(&self, kernel: KernelId) -> Option<KernelResources> {
        self.kernels.get(kernel.0).map(|kernel| kernel.resources)
    }
}
