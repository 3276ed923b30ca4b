//! The front end over a workspace: what `check`, `emit`, `info` and the worker share.

use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::project::{self, Sources};
use tile_compiler::source::{FileId, FileRange};
use tile_compiler::specialization::TritonVersion;
use tile_worker::protocol::SpecFlags;

use crate::CommandError;
use crate::workspace::Workspace;

/// Choices that hold for a whole command.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Whose rules hold.
    pub(crate) triton: TritonVersion,
    /// Changes to specializations.
    pub(crate) flags: SpecFlags,
}

impl Options {
    /// From the command line.
    pub(crate) fn new(flags: &SpecFlags) -> Result<Options, CommandError> {
        let triton = match flags.triton.as_deref() {
            None => TritonVersion::default(),
            Some(name) => TritonVersion::from_name(name)
                .ok_or_else(|| CommandError::usage(format!("Triton {name} is not known")))?,
        };
        Ok(Options { triton, flags: flags.clone() })
    }
}

/// What checking a file found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Findings, sorted.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Names of the file's kernels, in source order.
    pub(crate) kernels: Vec<String>,
}

/// Checks one file.
pub(crate) fn check(workspace: &Workspace, file: FileId, options: &Options) -> Found {
    let _ = options.triton;
    let Some(source) = workspace.file(file) else { return Found::default() };
    let mut diagnostics = source.parse().diagnostics(file);
    crate::check::tidy(&mut diagnostics, file);
    Found { diagnostics, kernels: kernel_names(workspace, file) }
}

/// Names of a file's kernels, in source order.
pub(crate) fn kernel_names(workspace: &Workspace, file: FileId) -> Vec<String> {
    let kernels = project::kernels(workspace, file).into_iter();
    kernels.filter_map(|at| Some(project::item(workspace, at)?.name.to_string())).collect()
}

/// What to say when a file has no kernel of this name.
pub(crate) fn no_such_kernel(wanted: &str, kernels: &[String]) -> String {
    if kernels.is_empty() {
        return format!(
            "there is no kernel `{wanted}`, and no other: kernels are functions marked @triton.jit"
        );
    }
    format!("there is no kernel `{wanted}`; the kernels are {}", kernels.join(", "))
}

/// Whether a place lies in the definition of a kernel.
pub(crate) fn inside_kernel(
    workspace: &Workspace,
    file: FileId,
    kernel: &str,
    at: FileRange,
) -> bool {
    let Some(module) = workspace.module(file) else { return false };
    let mut items = module.items.iter().filter(|item| &*item.name == kernel);
    at.file == file && items.any(|item| item.range.contains_range(at.range))
}
