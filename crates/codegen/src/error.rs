//! What can go wrong between GPU IR and machine code.

use thiserror::Error;
use tile_compiler::analysis::resources::OverLimit;
use tile_compiler::gpu::LowerError;
use tile_compiler::gpu::arch::ArchError;
use tile_compiler::ir::VerifyError;
use tile_compiler::layout::LayoutError;

use crate::ptxas::AssembleError;

/// Why a kernel was not compiled.
#[derive(Debug, Error)]
pub enum CodegenError {
    /// The architecture's name is not known.
    #[error(transparent)]
    UnknownArch(#[from] ArchError),
    /// The kernel needs what this compiler or the target lacks.
    #[error("not supported on GPUs yet: {what}")]
    Unsupported {
        /// What is needed.
        what: String,
    },
    /// Inline assembly for another kind of GPU.
    #[error(
        "line {line}: inline assembly for NVIDIA GPUs has no constraint `{constraint}`; registers \
         are `r` and `l` (32 and 64 bits), `h`, `f` and `d`"
    )]
    Constraint {
        /// What stands among the constraints.
        constraint: String,
        /// The user's line.
        line: u32,
    },
    /// No GPU IR.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// A layout has no implementation.
    #[error("no way to move a tile between its layouts: {0}")]
    Layout(#[from] LayoutError),
    /// A stage broke the IR: a bug of this compiler.
    #[error("internal error: `{pass}` left a malformed function: {errors:?}")]
    Invalid {
        /// The stage.
        pass: &'static str,
        /// What does not hold.
        errors: Vec<VerifyError>,
    },
    /// LLVM rejects its input or fails: a bug of this compiler.
    #[error("internal error: LLVM {stage}: {message}")]
    Llvm {
        /// What LLVM was doing.
        stage: &'static str,
        /// Its message.
        message: String,
    },
    /// The kernel calls functions of the CUDA math library, which was not found.
    #[error(
        "this kernel calls `{function}` of CUDA's libdevice, which was not found beside ptxas; \
         `tile doctor --fix` fetches both"
    )]
    MissingLibdevice {
        /// A function that is called.
        function: String,
    },
    /// No machine code.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// No listing.
    #[error("nvdisasm failed: {message}")]
    Disassemble {
        /// What went wrong.
        message: String,
    },
    /// The kernel asks for more shared memory than a CTA can have.
    #[error(
        "out of resource: shared memory, required {} bytes, the limit of {arch} is {}; {}",
        over.required, over.limit, over.finding.notes.first().map_or("", |note| note)
    )]
    SharedMemory {
        /// How much, and where.
        over: Box<OverLimit>,
        /// The architecture.
        arch: String,
    },
}
