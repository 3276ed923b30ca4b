//! GPU IR to LLVM, PTX, machine code, resources and line map.
//!
//! ```text
//! tile IR ▶ GPU IR (tile_compiler::gpu) ▶ LLVM IR text ▶ LLVM ▶ PTX ▶ ptxas ▶ cubin, Resources
//! ```
//!
//! [`compile`] runs the whole path for one kernel under one specialization. This is the one crate
//! that links LLVM. It runs in worker processes only: LLVM can abort and the assembler can hang.

mod error;
pub mod line_map;
mod llvm;
mod machine;
pub mod occupancy;
pub mod ptxas;
mod sass;
mod streams;
mod target;

use std::path::PathBuf;
use std::time::Instant;

use tile_compiler::artifact::{Artifact, Keep, Manifest, ManifestParam, Timings};
use tile_compiler::gpu::{self, GpuTarget};
use tile_compiler::ir::{Function, Verified, verify};
use tile_compiler::passes;

pub use error::CodegenError;
pub use target::{Arch, Target};

use self::occupancy::SmLimits;

/// How to compile.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Texts to keep in the artifact besides PTX.
    pub keep: Keep,
    /// The assembler; without one the artifact ends at PTX. The math library that functions such
    /// as `log` need is looked for beside it.
    pub ptxas: Option<PathBuf>,
    /// The disassembler; without one the artifact has no SASS.
    pub nvdisasm: Option<PathBuf>,
}

/// Compiles a tile-level function.
///
/// # Errors
/// When the kernel needs what the target or this compiler lacks, when a tool is missing or fails,
/// or when a stage breaks its own invariants.
pub fn compile(
    func: &Function,
    target: Target,
    options: &Options,
) -> Result<Artifact, CodegenError> {
    let start = Instant::now();
    let mut tile = func.clone();
    passes::optimize(&mut tile).map_err(|(pass, errors)| CodegenError::Invalid { pass, errors })?;
    let tile = verified("front end", &tile)?;
    let Arch { capability, specific } = target.arch;
    let has_warp_groups = capability == 90 && specific;
    let gpu = gpu::lower(tile, GpuTarget { capability, has_warp_groups })?;
    let passes_ms = milliseconds(start);
    let mut artifact = compile_gpu(verified("gpu", &gpu)?, target, options)?;
    artifact.timings.passes = passes_ms;
    Ok(artifact)
}

/// Compiles a GPU-level function.
///
/// # Errors
/// As [`compile`].
pub fn compile_gpu(
    func: Verified<'_>,
    target: Target,
    options: &Options,
) -> Result<Artifact, CodegenError> {
    let start = Instant::now();
    let module = llvm::emit(func, target)?;
    let libdevice = options.ptxas.as_deref().and_then(machine::find_libdevice);
    let generated = machine::generate(&module, target, libdevice.as_deref(), options.keep.llvm)?;
    let (ptx, line_map) = line_map::relocate(&generated.ptx, &func);
    let mut artifact = Artifact {
        gpu_ir: if options.keep.gpu { func.to_string() } else { String::new() },
        llvm_ir: generated.llvm_ir,
        ptx,
        line_map,
        manifest: manifest(&func, target, module.shared_bytes),
        timings: Timings { llvm: milliseconds(start), ..Timings::default() },
        ..Artifact::default()
    };
    let streams = func.options.max_registers.is_none() && streams::found(&func);
    assemble(&mut artifact, options, streams)?;
    Ok(artifact)
}

/// Fills in machine code, resources and SASS, as far as tools are at hand. Kernels that stream are
/// assembled with room for their loads, if that needs no spills.
fn assemble(artifact: &mut Artifact, options: &Options, streams: bool) -> Result<(), CodegenError> {
    let Manifest { arch, num_warps, shared_bytes, .. } = &artifact.manifest;
    let limit = SmLimits::of(arch).map_or(u32::MAX, |limits| limits.shared_bytes_per_block);
    if *shared_bytes > limit {
        let (required, arch) = (*shared_bytes, arch.clone());
        return Err(CodegenError::SharedMemory { required, limit, arch });
    }
    let Some(tool) = options.ptxas.as_deref() else { return Ok(()) };
    let start = Instant::now();
    let mut assembled = ptxas::assemble(tool, &artifact.ptx, arch)?;
    if streams {
        let warps = SmLimits::of(arch).map_or(0, |limits| limits.warps);
        let registers = assembled.report.registers;
        if let Some(ptx) = streams::with_room(&artifact.ptx, num_warps * 32, warps, registers) {
            let other = ptxas::assemble(tool, &ptx, arch)?;
            if other.report.spill_store_bytes <= assembled.report.spill_store_bytes {
                (artifact.ptx, assembled) = (ptx, other);
            }
        }
    }
    artifact.resources = assembled.report.resources(tool, arch, *num_warps, *shared_bytes);
    artifact.timings.ptxas = milliseconds(start);
    if let (true, Some(tool)) = (options.keep.sass, options.nvdisasm.as_deref()) {
        artifact.sass = Some(sass::disassemble(tool, &assembled.cubin)?);
    }
    artifact.cubin = Some(assembled.cubin);
    Ok(())
}

fn verified<'f>(pass: &'static str, func: &'f Function) -> Result<Verified<'f>, CodegenError> {
    verify(func).map_err(|errors| CodegenError::Invalid { pass, errors })
}

fn manifest(func: &Function, target: Target, shared_bytes: u32) -> Manifest {
    let params = func.params.iter().map(|param| ManifestParam {
        name: param.name.to_string(),
        ty: param.signature.to_string(),
    });
    Manifest {
        entry: func.name.to_string(),
        arch: target.arch.to_string(),
        params: params.collect(),
        num_warps: func.options.num_warps,
        block: [func.options.num_warps * 32, 1, 1],
        shared_bytes,
        cluster: [1, 1, 1],
        scratch_bytes: 0,
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
