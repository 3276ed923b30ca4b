//! From a kernel under a specialization to an artifact, through a worker.

use std::path::{Path, PathBuf};

use tile_compiler::artifact::{Artifact, Keep};
use tile_compiler::ir::Function;
use tile_worker::protocol::{CompileOptions, CompileRequest, Depth, FailureKind, Residency};
use tile_worker::{Cache, Cancel, Pool, WorkerCommand, WorkerError, ptxas};

use crate::options::Options;
use crate::workspace::Workspace;
use crate::{CommandError, Exit};

/// The architecture that is compiled for where nothing says otherwise.
pub(crate) const DEFAULT_ARCH: &str = "sm_90a";

/// Workers, the assembler and the architecture of one command.
pub(crate) struct Compiler {
    /// Workers.
    pub(crate) pool: Pool,
    /// The architecture.
    pub(crate) arch: String,
    /// The assembler, if there is one.
    pub(crate) ptxas: Option<PathBuf>,
    nvdisasm: Option<PathBuf>,
}

impl Compiler {
    /// For the architecture that flags or project name, else the local device's, else
    /// [`DEFAULT_ARCH`].
    pub(crate) fn new(
        workspace: &Workspace,
        options: &Options,
        site_packages: Option<&Path>,
    ) -> Result<Compiler, CommandError> {
        let pool = pool()?;
        let arch = match &options.arch {
            Some(arch) => arch.clone(),
            None => pool.local_arch().unwrap_or_else(|| DEFAULT_ARCH.to_owned()),
        };
        workspace.lower_for(&arch);
        let ptxas = ptxas::find(options.ptxas.as_deref(), site_packages);
        let nvdisasm = ptxas::find_disassembler(ptxas.as_deref(), site_packages);
        Ok(Compiler { pool, arch, ptxas, nvdisasm })
    }

    /// Compiles tile IR.
    pub(crate) fn compile(
        &self,
        function: &Function,
        keep: Keep,
    ) -> Result<Artifact, CommandError> {
        self.try_compile(function, keep).map_err(worker_error)
    }

    /// As [`Compiler::compile`], with the worker's own answer.
    pub(crate) fn try_compile(
        &self,
        function: &Function,
        keep: Keep,
    ) -> Result<Artifact, WorkerError> {
        let options = CompileOptions {
            arch: self.arch.clone(),
            ptxas: self.ptxas.clone(),
            nvdisasm: self.nvdisasm.clone().filter(|_| keep.sass),
            keep,
            depth: if keep.gpu { Depth::Gpu } else { Depth::Full },
        };
        let request = CompileRequest { ir: function.to_string(), options };
        self.pool.compile(&request, &Cancel::default())
    }

    /// What a multiprocessor of the first CUDA device holds of each of these kernels, as its driver
    /// says; `None` where there is no device of the architecture that is compiled for.
    pub(crate) fn residency(
        &self,
        kernels: Vec<Artifact>,
    ) -> Result<Option<Vec<Residency>>, CommandError> {
        if self.pool.local_arch().as_ref() != Some(&self.arch) {
            return Ok(None);
        }
        self.pool.residency(kernels).map(Some).map_err(worker_error)
    }

    /// The assembler, which the command cannot do without.
    pub(crate) fn needs_assembler(&self) -> Result<(), CommandError> {
        if self.ptxas.is_some() { Ok(()) } else { Err(CommandError::device(ptxas::missing())) }
    }
}

/// Workers that are this very executable.
pub(crate) fn pool() -> Result<Pool, CommandError> {
    let command = WorkerCommand::current_exe().map_err(|error| {
        CommandError::device(format!("cannot find the tile executable: {error}"))
    })?;
    Ok(Pool::new(command, Cache::user()))
}

/// A worker's failure as the command's.
pub(crate) fn worker_error(error: WorkerError) -> CommandError {
    let exit = match error.kind() {
        FailureKind::Usage => Exit::Usage,
        FailureKind::Compile => Exit::Compile,
        FailureKind::Device | FailureKind::Internal => Exit::Device,
    };
    CommandError { exit, message: error.to_string() }
}
