//! The front end over a workspace: what `check`, `emit`, `info` and the worker share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tile_compiler::analysis::{self, CompiledKernel, settle};
use tile_compiler::artifact::{Frame, Keep};
use tile_compiler::diagnostic::{Diagnostic, Severity};
use tile_compiler::hir;
use tile_compiler::ir::Function;
use tile_compiler::project::{self, ItemRef, Sources};
use tile_compiler::source::{FileId, FileRange};
use tile_compiler::specialization::{
    CHECKED_CLOSELY, Discovery, Specialization, discover, worth_checking,
};
use tile_executor::Executor;
use tile_worker::WorkerError;
use tile_worker::protocol::SpecFlags;

use crate::cli::{InputArgs, Target};
use crate::compile::Compiler;
use crate::options::Options;
use crate::workspace::{self, ReadError, Workspace};
use crate::{CommandError, output, render};

/// What checking a file found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Findings, sorted.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Names of the file's kernels, in source order.
    pub(crate) kernels: Vec<String>,
    /// Whether the file [concerns kernels](project::concerns_kernels), or is broken and looks as if it did.
    pub(crate) is_about_kernels: bool,
    /// The files that it imports.
    pub(crate) imported: Vec<PathBuf>,
}

/// Checks one file: its syntax, what holds for every specialization, and each kernel under the
/// specializations that are known. A guess yields no diagnostic.
/// With a compiler, each is compiled as well.
pub(crate) fn check(
    workspace: &Workspace,
    file: FileId,
    options: &Options,
    compiler: Option<&Compiler>,
) -> Found {
    let Some(source) = workspace.file(file) else { return Found::default() };
    let mut diagnostics = source.syntax_errors().to_vec();
    let is_about_kernels = project::concerns_kernels(workspace, file)
        || (!diagnostics.is_empty() && source.text.contains("triton.jit"));
    for kernel in options.rules.infer_file(workspace, file).kernels {
        diagnostics.extend(kernel.diagnostics);
    }
    diagnostics.extend(analysis::check_launches(workspace, file));
    let mut kernels = Vec::new();
    let discovery = Discovery::new(workspace, &options.flags);
    diagnostics.extend(analysis::check_host(workspace, &discovery, file));
    let (rules, run) = (options.rules, &Executor);
    diagnostics.extend(analysis::check_results(workspace, rules, &discovery, file, run));
    for at in project::kernels(workspace, file) {
        let Some(item) = project::item(workspace, at) else { continue };
        let mut lowering = options.rules.lowering(workspace, at);
        let (mut known, mut proved) = (Vec::new(), Vec::new());
        if let Some(compiler) = compiler {
            let compiled = check_compiled(workspace, at, options, compiler);
            diagnostics.extend(compiled);
        }
        let specs = discovery.of(at);
        let specs: Vec<&Specialization> = specs.iter().collect();
        for (number, index) in worth_checking(&specs).into_iter().enumerate() {
            let spec = specs[index];
            let masks = number < CHECKED_CLOSELY;
            let found =
                analysis::check_specialization(&mut lowering, spec, masks, &Executor).into_iter();
            known.push(spec);
            proved.push(found.map(|(found, at)| at.attach(found, workspace)).collect::<Vec<_>>());
        }
        analysis::reconcile(&known, &mut proved);
        diagnostics.extend(proved.into_iter().flatten());
        kernels.push(item.name.to_string());
    }
    let text = (&**source.lines(), &*source.text);
    settle(&mut diagnostics, file, source.module(), text, &options.lints);
    let imported = imported(workspace, file);
    Found { diagnostics, kernels, is_about_kernels, imported }
}

/// Where the files are that a file imports.
fn imported(workspace: &Workspace, file: FileId) -> Vec<PathBuf> {
    let files = project::imported_files(workspace, file).into_iter();
    files.filter_map(|file| Some(workspace.file(file)?.path.clone())).collect()
}

/// What compiling a kernel under each specialization that is known finds.
fn check_compiled(
    workspace: &Workspace,
    at: ItemRef,
    options: &Options,
    compiler: &Compiler,
) -> Vec<Diagnostic> {
    let Some(item) = project::item(workspace, at) else { return Vec::new() };
    let certain = |spec: &Specialization| spec.is_certain();
    let specs = discover(workspace, at, &options.flags).into_iter().filter(certain);
    let mut found = Vec::new();
    for spec in specs {
        let lowered = options.rules.lower_kernel(workspace, at, &spec);
        let Some(function) = lowered.function else { continue };
        let compiled = compiler.try_compile(&function, Keep::default());
        let compiled = match &compiled {
            Ok(artifact) => CompiledKernel::new(artifact),
            Err(WorkerError::Failed(failure)) => {
                CompiledKernel::failed(&failure.findings, &compiler.arch)
            }
            Err(error) => {
                output::error(&format!("{}: {error}", item.name));
                continue;
            }
        };
        found.extend(analysis::check_compiled(workspace, at, &spec, compiled));
    }
    found
}

/// Checks that one of the kernels has each parameter that flags name.
pub(crate) fn check_flags(
    workspace: &Workspace,
    kernels: impl IntoIterator<Item = ItemRef>,
    options: &Options,
) -> Result<(), CommandError> {
    let functions = kernels.into_iter().filter_map(|at| project::function(workspace, at));
    options.flags.check(&functions.collect::<Vec<_>>()).map_err(CommandError::usage)
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

/// One file that a command works on.
pub(crate) struct Opened {
    /// The file, and what it imports.
    pub(crate) workspace: Workspace,
    /// The file.
    pub(crate) file: FileId,
    /// Whose rules hold, and what the user pinned.
    pub(crate) options: Options,
    /// Where imports outside the workspace are looked up.
    pub(crate) site_packages: Option<PathBuf>,
}

/// A kernel under a specialization.
pub(crate) struct Selected {
    /// The kernel's name.
    pub(crate) name: String,
    /// Where it is defined.
    pub(crate) at: ItemRef,
    /// The kernel.
    pub(crate) function: Arc<hir::Function>,
    /// What it is compiled for.
    pub(crate) spec: Specialization,
}

impl Opened {
    /// Reads the file that the target names.
    pub(crate) fn new(
        target: &Target,
        input: &InputArgs,
        flags: &SpecFlags,
    ) -> Result<Opened, CommandError> {
        let text = if target.path.as_os_str() == "-" {
            let name = input.stdin_name.clone().unwrap_or_else(|| "<stdin>".into());
            Some((workspace::read_stdin(&name).map_err(read_error)?, name))
        } else {
            None
        };
        match text {
            Some((text, name)) => Opened::with_text(&name, Some(text), flags),
            None => Opened::with_text(&target.path, None, flags),
        }
    }

    /// Reads the file at `path`, or takes `text` for its text.
    pub(crate) fn with_text(
        path: &Path,
        text: Option<String>,
        flags: &SpecFlags,
    ) -> Result<Opened, CommandError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let site_packages = workspace::site_packages(folder);
        let options = Options::new(flags, folder, site_packages.as_deref())?;
        let workspace = Workspace::new(site_packages.clone());
        if let Some(arch) = &options.arch {
            workspace.lower_for(arch);
        }
        let file = match text {
            Some(text) => workspace.open_text(path, text),
            None => workspace.open(path).map_err(read_error)?,
        };
        workspace.index_launches_of(file);
        Ok(Opened { workspace, file, options, site_packages })
    }

    /// A compiler for the file's architecture.
    pub(crate) fn compiler(&self) -> Result<Compiler, CommandError> {
        Compiler::new(&self.workspace, &self.options, self.site_packages.as_deref())
    }

    /// The kernel of this name under its best known specialization.
    pub(crate) fn select_one(&self, name: Option<&str>) -> Result<Selected, CommandError> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.only_kernel()?,
        };
        let found = self.select_all(Some(&name))?;
        let ways = found.len();
        let none = || CommandError::usage(format!("{}: {name} is no kernel", self.name()));
        let first = found.into_iter().next().ok_or_else(none)?;
        if ways > 1 {
            let spec = &first.spec;
            output::note(&format!(
                "{name} is specialized in {ways} ways; this is the first, {spec}"
            ));
        }
        Ok(first)
    }

    /// The kernel that is meant where none is named.
    pub(crate) fn only_kernel(&self) -> Result<String, CommandError> {
        let mut names = self.kernel_names();
        names.dedup();
        match &*names {
            [] => Err(self.no_kernels()),
            [name] => Ok(name.clone()),
            names => Err(CommandError::usage(format!(
                "{} has several kernels; choose one with FILE::KERNEL: {}",
                self.name(),
                names.join(", ")
            ))),
        }
    }

    /// The error of a file without kernels.
    fn no_kernels(&self) -> CommandError {
        let none = || {
            let name = self.name();
            CommandError::usage(format!(
                "{name} has no kernels: functions marked @triton.jit that return no value"
            ))
        };
        self.well_formed().err().unwrap_or_else(none)
    }

    /// The kernel of this name, or every kernel, under each specialization that is known; never
    /// empty.
    pub(crate) fn select_all(&self, name: Option<&str>) -> Result<Vec<Selected>, CommandError> {
        let wanted: Vec<(String, ItemRef)> = match name {
            None => self.kernels(),
            Some(name) => vec![(name.to_owned(), self.named(name)?)],
        };
        if wanted.is_empty() {
            return Err(self.no_kernels());
        }
        check_flags(&self.workspace, wanted.iter().map(|(_, at)| *at), &self.options)?;
        let mut selected = Vec::new();
        for (name, at) in wanted {
            let Some(function) = project::function(&self.workspace, at) else { continue };
            let mut lowering = self.options.rules.lowering(&self.workspace, at);
            let specs = discover(&self.workspace, at, &self.options.flags).into_iter();
            selected.extend(specs.map(|spec| Selected {
                name: name.clone(),
                at,
                function: Arc::clone(&function),
                spec: lowering.lower(&spec).0,
            }));
        }
        Ok(selected)
    }

    /// An error that names the first syntax error of the file, if there is one.
    pub(crate) fn well_formed(&self) -> Result<(), CommandError> {
        let Some(source) = self.workspace.file(self.file) else { return Ok(()) };
        let errors = source.syntax_errors();
        let Some(first) = errors.iter().find(|it| it.severity == Severity::Error) else {
            return Ok(());
        };
        let line = source.lines().line(first.primary.range.start) + 1;
        Err(CommandError::compile(format!(
            "{}:{line}: {}; `tile check` shows all errors",
            self.name(),
            first.message
        )))
    }

    /// The file's name, as the user wrote it.
    pub(crate) fn name(&self) -> String {
        self.workspace.path(self.file)
    }

    /// The file's text.
    pub(crate) fn text(&self) -> Arc<str> {
        self.workspace.text(self.file).unwrap_or_default()
    }

    /// The file's meaning.
    pub(crate) fn module(&self) -> Arc<hir::Module> {
        self.workspace.module(self.file).unwrap_or_default()
    }

    /// Names of the file's kernels.
    pub(crate) fn kernel_names(&self) -> Vec<String> {
        self.kernels().into_iter().map(|(name, _)| name).collect()
    }

    fn kernels(&self) -> Vec<(String, ItemRef)> {
        let kernels = project::kernels(&self.workspace, self.file).into_iter();
        kernels.filter_map(|at| Some((self.item_name(at)?, at))).collect()
    }

    /// Any jit function, helpers included, by name.
    pub(crate) fn jit_function(&self, name: &str) -> Option<ItemRef> {
        let mut functions = project::jit_functions(&self.workspace, self.file).into_iter();
        functions.rfind(|at| self.item_name(*at).is_some_and(|known| known == name))
    }

    /// The jit function that the user names.
    pub(crate) fn named(&self, name: &str) -> Result<ItemRef, CommandError> {
        self.jit_function(name).ok_or_else(|| {
            let message = no_such_kernel(name, &self.kernel_names());
            CommandError::usage(format!("{}: {message}", self.name()))
        })
    }

    fn item_name(&self, at: ItemRef) -> Option<String> {
        Some(project::item(&self.workspace, at)?.name.to_string())
    }

    /// Tile IR of a kernel under a specialization, or the errors.
    pub(crate) fn lower(&self, selected: &Selected) -> Result<Function, Vec<Diagnostic>> {
        self.lower_as(selected.at, &selected.spec)
    }

    /// As [`Opened::lower`], of any jit function.
    pub(crate) fn lower_as(
        &self,
        at: ItemRef,
        spec: &Specialization,
    ) -> Result<Function, Vec<Diagnostic>> {
        let errors = self.syntax_errors_in(at);
        if !errors.is_empty() {
            return Err(errors);
        }
        let lowered = self.options.rules.lower_kernel(&self.workspace, at, spec);
        lowered.function.ok_or(lowered.diagnostics)
    }

    /// What is wrong with the syntax of a jit function and of those that it calls. Evaluation leaves out
    /// what does not parse, so what it gives then is not what the author means.
    fn syntax_errors_in(&self, at: ItemRef) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for at in project::with_callees(&self.workspace, at) {
            let (Some(source), Some(item)) =
                (self.workspace.file(at.file), project::item(&self.workspace, at))
            else {
                continue;
            };
            let is_inside =
                |error: &&Diagnostic| item.range.touches(error.primary.range.start as usize);
            found.extend(source.syntax_errors().iter().filter(is_inside).cloned());
        }
        found
    }

    /// The path and the text of a source line.
    pub(crate) fn source_line(&self, frame: &Frame) -> (String, String) {
        let Some(file) = self.workspace.file(frame.file) else { return Default::default() };
        let line = file.text.lines().nth((frame.line as usize).saturating_sub(1));
        (file.name.clone(), line.unwrap_or_default().to_owned())
    }
}

/// Shows findings to people on standard error.
pub(crate) fn print_to_stderr(
    workspace: &Workspace,
    diagnostics: &[Diagnostic],
) -> Result<(), CommandError> {
    let files = workspace.table();
    let styled = output::styled(&std::io::stderr());
    for diagnostic in diagnostics {
        eprintln!("{}\n", render::human(&files, diagnostic, styled));
    }
    Ok(())
}

/// A file that cannot be read, as the command's failure.
pub(crate) fn read_error(error: ReadError) -> CommandError {
    CommandError::usage(format!("{}: {}", error.name, error.message))
}
