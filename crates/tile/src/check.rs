//! `tile check`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;
use tile_compiler::diagnostic::{Diagnostic, Severity};
use tile_compiler::project::{self, ItemRef};
use tile_compiler::source::FileId;
use tile_worker::ptxas;

use crate::analysis::{self, Found};
use crate::cli::{CheckArgs, CheckFormat, Target};
use crate::compile::Compiler;
use crate::options::Options;
use crate::render::{self, Files};
use crate::sarif::Sarif;
use crate::workspace::{self, FileTable, ReadError, Workspace, largest_first};
use crate::{CommandError, Exit, output};

mod remembered;

use remembered::Remembered;

/// The last line of `--format json`.
#[derive(Debug, Default, Serialize)]
struct Summary {
    files: usize,
    kernels: usize,
    errors: usize,
    warnings: usize,
    ms: f64,
}

/// One file to check.
struct Job {
    path: PathBuf,
    kernel: Option<String>,
    /// Found on a walk rather than named: a file is passed over that does not concern kernels, and that none
    /// which do import.
    walked: bool,
}

/// What checking one file yielded.
struct Checked {
    diagnostics: Vec<Diagnostic>,
    kernels: usize,
}

/// Checks every path and prints what was found.
pub(crate) fn run(arguments: &CheckArgs) -> Result<Exit, CommandError> {
    let start = Instant::now();
    let here = Path::new(".");
    let site_packages = workspace::site_packages(here);
    let workspace = Workspace::new(site_packages.clone());
    let mut unreadable = Vec::new();
    let jobs = jobs(arguments, &workspace, &mut unreadable);
    let own = workspace::module_names(jobs.iter().map(|job| &*job.path));
    let is_own = |name: &str| own.contains(name);
    let is_likely = |job: &Job| !job.walked || workspace::may_run_kernels(&job.path, &is_own);
    let (mut jobs, mut others): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(is_likely);
    let folders = jobs.iter().chain(&others).map(|job| folder_of(&job.path));
    let folders = folders.chain(jobs.is_empty().then_some(here));
    let (options, by_folder) =
        Options::by_folder(&arguments.spec.flags(), folders, site_packages.as_deref())?;
    if let Some(arch) = &options.arch {
        workspace.lower_for(arch);
    }
    let compiler = match arguments.compile {
        true => Some(Compiler::new(&workspace, &options, site_packages.as_deref())?),
        false => None,
    };
    if compiler.as_ref().is_some_and(|compiler| compiler.ptxas.is_none()) {
        output::note(&format!("spills and occupancy are not looked at: {}", ptxas::missing()));
    }
    let remembered = remembered(&workspace, &jobs, arguments, &by_folder);
    if !options.flags.args.is_empty() {
        analysis::check_flags(&workspace, kernels(&workspace, &jobs), &options)?;
    }
    let look = |job: &Job| {
        let file = workspace.open(&job.path)?;
        let known = remembered.as_ref().and_then(|remembered| remembered.found(file));
        let options = &by_folder[folder_of(&job.path)];
        let check = || analysis::check(&workspace, file, options, compiler.as_ref());
        Ok((file, known.unwrap_or_else(check)))
    };
    let mut results = largest_first(&jobs, |job| workspace.size(&job.path), look);
    if let Some(remembered) = &remembered {
        remembered.keep(results.iter().flatten());
    }
    let mut imported = imported_files(&jobs, &results);
    loop {
        let is_imported = |job: &Job| imported.contains(&workspace::normal(&job.path));
        let (more, rest): (Vec<Job>, Vec<Job>) = others.into_iter().partition(is_imported);
        others = rest;
        results.extend(largest_first(&more, |job| workspace.size(&job.path), look));
        jobs.extend(more);
        let known = imported.len();
        imported = imported_files(&jobs, &results);
        if imported.len() == known {
            break;
        }
    }
    let is_imported = |job: &Job| imported.contains(&workspace::normal(&job.path));
    let mut summary = Summary::default();
    let mut diagnostics = Vec::new();
    for (job, result) in jobs.iter().zip(results) {
        let is_passed_over =
            |found: &Found| job.walked && !found.is_about_kernels && !is_imported(job);
        let checked = match result {
            Ok((_, found)) if is_passed_over(&found) => Ok(None),
            Ok((file, found)) => wanted(&workspace, job, file, found),
            Err(error) => Err(error),
        };
        match checked {
            Ok(None) => {}
            Ok(Some(checked)) => {
                summary.files += 1;
                summary.kernels += checked.kernels;
                diagnostics.extend(checked.diagnostics);
            }
            Err(error) => unreadable.push(error),
        }
    }
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    summary.errors = count(Severity::Error);
    if !matches!(arguments.format, CheckFormat::Human) {
        // Those that cannot be read are findings there.
        summary.errors += unreadable.len();
    }
    summary.warnings = count(Severity::Warning);
    summary.ms = start.elapsed().as_secs_f64() * 1e3;
    print(arguments.format, &workspace.table(), &diagnostics, &unreadable, &summary)?;
    for error in &unreadable {
        output::error(&format!("{}: {}", error.name, error.message));
    }
    // The process is about to end, which gives back memory faster than piece by piece.
    std::mem::forget(workspace);
    let denied = arguments.deny.severity();
    Ok(if !unreadable.is_empty() {
        Exit::Usage
    } else if diagnostics.iter().any(|diagnostic| diagnostic.severity >= denied) {
        Exit::Findings
    } else {
        Exit::Success
    })
}

/// The files that those about kernels import, and that these import in turn: what is loaded with kernels.
fn imported_files(
    jobs: &[Job],
    results: &[Result<(FileId, Found), ReadError>],
) -> HashSet<PathBuf> {
    let checked = jobs.iter().zip(results).filter_map(|(job, result)| {
        let (_, found) = result.as_ref().ok()?;
        Some((workspace::normal(&job.path), found))
    });
    let checked: HashMap<PathBuf, &Found> = checked.collect();
    let about_kernels = checked.values().filter(|found| found.is_about_kernels);
    let mut next: Vec<&PathBuf> = about_kernels.flat_map(|found| &found.imported).collect();
    let mut imported = HashSet::new();
    while let Some(path) = next.pop() {
        if imported.insert(path.clone()) {
            next.extend(checked.get(path).into_iter().flat_map(|found| &found.imported));
        }
    }
    imported
}

/// The files that the paths mean, each once.
fn jobs(arguments: &CheckArgs, workspace: &Workspace, unreadable: &mut Vec<ReadError>) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for Target { path, kernel, .. } in &arguments.paths {
        if path.as_os_str() == "-" {
            let name = arguments.input.stdin_name.clone().unwrap_or_else(|| "<stdin>".into());
            match workspace::read_stdin(&name) {
                Ok(text) => {
                    workspace.open_text(&name, text);
                    jobs.push(Job { path: name, kernel: kernel.clone(), walked: false });
                }
                Err(error) => unreadable.push(error),
            }
        } else if path.is_dir() {
            let walked = workspace::walk(path);
            if walked.is_empty() {
                output::note(&format!("{}: no .py or .tile file lies below", path.display()));
            }
            jobs.extend(walked.into_iter().map(|path| Job {
                path,
                kernel: kernel.clone(),
                walked: true,
            }));
        } else {
            jobs.push(Job { path: path.clone(), kernel: kernel.clone(), walked: false });
        }
    }
    let mut seen = HashSet::new();
    jobs.retain(|job| seen.insert((job.path.clone(), job.kernel.clone())));
    jobs
}

/// The folder whose settings hold for a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Finds the launches in one file of kernels in another: among the files to check, or, for a
/// single file, in the project around it. Of several whole files it is remembered what was found.
fn remembered<'w>(
    workspace: &'w Workspace,
    jobs: &[Job],
    arguments: &CheckArgs,
    options: &BTreeMap<PathBuf, Options>,
) -> Option<Remembered<'w>> {
    let files: Vec<FileId> =
        jobs.par_iter().filter_map(|job| workspace.open(&job.path).ok()).collect();
    if let [file] = files[..] {
        workspace.index_launches_of(file);
        return None;
    }
    let whole = jobs.iter().all(|job| job.kernel.is_none());
    let is_remembered = whole && !arguments.compile && !arguments.no_cache;
    let said = format!("{:?} {options:?} {:?}", arguments.paths, workspace.site_packages());
    Some(Remembered::new(workspace, files, is_remembered.then_some(&*said)))
}

/// The kernels that are asked for.
fn kernels(workspace: &Workspace, jobs: &[Job]) -> Vec<ItemRef> {
    let of_job = |job: &Job| {
        let file = workspace.open(&job.path).ok()?;
        let named = |at: &ItemRef| match &job.kernel {
            Some(wanted) => {
                project::item(workspace, *at).is_some_and(|item| *item.name == **wanted)
            }
            None => true,
        };
        Some(project::kernels(workspace, file).into_iter().filter(named).collect::<Vec<_>>())
    };
    jobs.iter().filter_map(of_job).flatten().collect()
}

/// What is asked for of what was found in a file; `None` when it was found on a walk and lacks the kernel.
fn wanted(
    workspace: &Workspace,
    job: &Job,
    file: FileId,
    found: Found,
) -> Result<Option<Checked>, ReadError> {
    let Some(wanted) = &job.kernel else {
        return Ok(Some(Checked { diagnostics: found.diagnostics, kernels: found.kernels.len() }));
    };
    if !found.kernels.iter().any(|kernel| kernel == wanted) {
        if job.walked {
            return Ok(None);
        }
        let message = analysis::no_such_kernel(wanted, &found.kernels);
        return Err(ReadError { name: job.path.display().to_string(), message });
    }
    let concerns = |diagnostic: &Diagnostic| match &diagnostic.kernel {
        Some(kernel) => kernel == wanted,
        None => analysis::inside_kernel(workspace, file, wanted, diagnostic.primary),
    };
    let diagnostics = found.diagnostics.into_iter().filter(concerns).collect();
    Ok(Some(Checked { diagnostics, kernels: 1 }))
}

fn print(
    format: CheckFormat,
    files: &FileTable<'_>,
    diagnostics: &[Diagnostic],
    unreadable: &[ReadError],
    summary: &Summary,
) -> Result<(), CommandError> {
    match format {
        CheckFormat::Human => human(files, diagnostics, unreadable.len(), summary),
        CheckFormat::Json => {
            for diagnostic in diagnostics {
                output::json(&render::json(files, diagnostic))?;
            }
            for error in unreadable {
                output::json(&render::json_read_error(&error.name, &error.message))?;
            }
            output::json(&serde_json::json!({ "summary": summary }))
        }
        CheckFormat::Sarif => {
            let mut sarif = Sarif::default();
            for diagnostic in diagnostics {
                sarif.add(&render::json(files, diagnostic));
            }
            for error in unreadable {
                sarif.add(&render::json_read_error(&error.name, &error.message));
            }
            output::json(&sarif.log())
        }
    }
}

fn human(
    files: &dyn Files,
    diagnostics: &[Diagnostic],
    unreadable: usize,
    summary: &Summary,
) -> Result<(), CommandError> {
    let styled = output::styled(&std::io::stdout());
    for diagnostic in diagnostics {
        output::text_line(&render::human(files, diagnostic, styled))?;
        output::text_line("")?;
    }
    if summary.files == 0 && unreadable > 0 {
        // Of nothing that was read there is nothing to say.
        return Ok(());
    }
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let found = match (summary.errors, summary.warnings) {
        (0, 0) => "no errors".to_owned(),
        (errors, 0) => many(errors, "error"),
        (errors, warnings) => format!("{}, {}", many(errors, "error"), many(warnings, "warning")),
    };
    let unchecked = match unreadable {
        0 => String::new(),
        number => format!("; not checked: {}", many(number, "file")),
    };
    output::text_line(&format!(
        "{found} in {} of {}{unchecked} ({:.0} ms)",
        many(summary.kernels, "kernel"),
        many(summary.files, "file"),
        summary.ms
    ))
}
