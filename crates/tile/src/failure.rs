//! What a worker answers where it could not do its work.

use tile_codegen::CodegenError;
use tile_codegen::ptxas::AssembleError;
use tile_runner::scenario::LaunchFailure;
use tile_worker::protocol::{Failure, FailureKind};

use crate::{CommandError, Exit};

/// Whose fault a failed compilation is.
pub(crate) fn codegen_failure(error: CodegenError) -> Failure {
    let kind = match &error {
        CodegenError::UnknownArch(_) => FailureKind::Usage,
        CodegenError::Unsupported { .. }
        | CodegenError::Constraint { .. }
        | CodegenError::Lower(_)
        | CodegenError::Assemble(AssembleError::Rejected { .. })
        | CodegenError::SharedMemory { .. } => FailureKind::Compile,
        CodegenError::MissingLibdevice { .. }
        | CodegenError::Assemble(_)
        | CodegenError::Disassemble { .. } => FailureKind::Device,
        CodegenError::Layout(_) | CodegenError::Invalid { .. } | CodegenError::Llvm { .. } => {
            FailureKind::Internal
        }
    };
    let message = error.to_string();
    let findings = match error {
        CodegenError::SharedMemory { over, .. } => vec![over.finding],
        _ => Vec::new(),
    };
    Failure { findings, ..Failure::new(kind, message) }
}

/// Whose fault a failed launch is.
pub(crate) fn launch_failure(failure: LaunchFailure) -> Failure {
    let kind = match failure {
        LaunchFailure::Compile(_) => FailureKind::Compile,
        LaunchFailure::Device(_) => FailureKind::Device,
        LaunchFailure::Usage(_) => FailureKind::Usage,
    };
    Failure::new(kind, failure.message())
}

/// A command's error as a worker answers it.
pub(crate) fn command_failure(error: CommandError) -> Failure {
    let kind = match error.exit {
        Exit::Success | Exit::Findings | Exit::Usage => FailureKind::Usage,
        Exit::Compile => FailureKind::Compile,
        Exit::Device => FailureKind::Device,
    };
    Failure::new(kind, error.message)
}

/// Wrong usage, input or output.
pub(crate) fn usage(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Usage, message)
}
