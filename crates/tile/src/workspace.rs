//! Files on disk as the compiler sees them: found, read, parsed once, imports followed.
//!
//! A [`Workspace`] hands out one [`FileId`] per file in the order of first use; a file is read
//! when it is first needed and stays as it was then. It can be shared between threads.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ignore::WalkBuilder;
use memchr::memmem;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::gpu::arch::Arch;
use tile_compiler::hir::{self, Module, Name};
use tile_compiler::project::{
    ArrayHead, Sources, calling_names, launching_names, paths, used_files,
};
use tile_compiler::source::{FileId, LineIndex};
use tile_compiler::specialization::Facts;
use tile_compiler::syntax::Parse;
use tile_lsp::{MAX_FILE_BYTES, array_header, too_large};

use crate::output;
use crate::render::Files;

/// Calls from file to file that are looked for, from a launch to what runs by itself.
const MAX_CALLS: usize = 4;

/// Compute capability that kernels are lowered for where nothing says otherwise.
const DEFAULT_CAPABILITY: u32 = 90;

/// A file that was read.
#[derive(Debug)]
pub(crate) struct File {
    id: FileId,
    /// The path as the user wrote it, or as found on a walk.
    pub(crate) name: String,
    /// Where it lies; `None` for standard input.
    pub(crate) path: PathBuf,
    /// The text.
    pub(crate) text: Arc<str>,
    lines: OnceLock<Arc<LineIndex>>,
    contents: OnceLock<Contents>,
    /// What analysis asked for that the text names: imports, and arrays.
    asked: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    /// Where imports led, by level and module: names are followed through them all the time.
    imports: FxHashMap<u32, FxHashMap<Vec<Name>, Import>>,
    arrays: bool,
}

/// An import that was followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct AskedImport {
    level: u32,
    module: String,
    /// The file that it means.
    pub(crate) found: Option<PathBuf>,
}

/// What a text says by itself.
#[derive(Debug)]
struct Contents {
    module: Arc<Module>,
    errors: Vec<Diagnostic>,
}

impl File {
    fn new(id: FileId, name: String, path: PathBuf, text: Arc<str>) -> File {
        let (lines, contents, asked) = Default::default();
        File { id, name, path, text, lines, contents, asked }
    }

    /// Its lines.
    pub(crate) fn lines(&self) -> &Arc<LineIndex> {
        self.lines.get_or_init(|| Arc::new(LineIndex::new(&self.text)))
    }

    /// Its meaning, free of positions.
    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.contents().module
    }

    /// Its syntax errors.
    pub(crate) fn syntax_errors(&self) -> &[Diagnostic] {
        &self.contents().errors
    }

    /// Both from one tree, which takes far more memory than they do and is not kept.
    fn contents(&self) -> &Contents {
        self.contents.get_or_init(|| {
            let parse = Parse::new(Arc::clone(&self.text));
            let module = Arc::new(hir::lower(&parse));
            Contents { module, errors: parse.diagnostics(self.id) }
        })
    }
}

/// Files by number and by path.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// By number. Nothing waits for it: threads ask for modules all the time.
    files: boxcar::Vec<File>,
    by_path: Mutex<HashMap<PathBuf, Option<FileId>>>,
    imports: Mutex<HashMap<(PathBuf, String), Import>>,
    roots: Mutex<HashMap<PathBuf, Arc<Vec<String>>>>,
    /// What the headers of arrays say, by path.
    arrays: Mutex<HashMap<PathBuf, Option<ArrayHead>>>,
    site_packages: Option<PathBuf>,
    /// Compute capability that kernels are lowered for; 0 for the default.
    capability: AtomicU32,
    /// What was found out about items.
    facts: Facts,
    /// Which files launch a file's kernels.
    importers: OnceLock<HashMap<FileId, Vec<FileId>>>,
}

/// Where an import leads, and the file there if it can be read.
#[derive(Debug, Clone, Default)]
struct Import {
    path: Option<PathBuf>,
    file: Option<FileId>,
}

/// Why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadError {
    /// The file, as the user wrote it.
    pub(crate) name: String,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

impl Workspace {
    /// A workspace that also follows imports into this site-packages folder.
    pub(crate) fn new(site_packages: Option<PathBuf>) -> Workspace {
        Workspace { site_packages, ..Workspace::default() }
    }

    /// Kernels are lowered for this architecture from now on.
    pub(crate) fn lower_for(&self, arch: &str) {
        if let Ok(Arch { capability, .. }) = arch.parse() {
            self.capability.store(capability, Ordering::Relaxed);
        }
    }

    /// Reads a file, or returns it if it was read before.
    pub(crate) fn open(&self, path: &Path) -> Result<FileId, ReadError> {
        let key = normal(path);
        if let Some(Some(id)) = lock(&self.by_path).get(&key) {
            return Ok(*id);
        }
        let text = read(path)?;
        Ok(self.add(path.display().to_string(), key, text))
    }

    /// How long the text of a file is, in bytes; 0 where it cannot be read.
    pub(crate) fn size(&self, path: &Path) -> usize {
        let file = self.open(path).ok().and_then(|file| self.file(file));
        file.map_or(0, |file| file.text.len())
    }

    /// The file at an absolute path, named as a user would name it; `None` if it cannot be read.
    pub(crate) fn open_absolute(&self, path: &Path) -> Option<FileId> {
        self.open(from_here(path)).ok()
    }

    /// The imports of a file that were followed so far; `None` when more was read for it than the
    /// texts of modules.
    pub(crate) fn asked(&self, file: FileId) -> Option<Vec<AskedImport>> {
        let asked = lock(&self.file(file)?.asked);
        let imports = asked.imports.iter().flat_map(|(level, modules)| {
            let imports = modules.iter();
            imports.map(|(path, found)| AskedImport {
                level: *level,
                module: path.join("."),
                found: found.path.clone(),
            })
        });
        let mut imports: Vec<AskedImport> = imports.collect();
        imports.sort_by(|a, b| (a.level, &a.module).cmp(&(b.level, &b.module)));
        (!asked.arrays).then_some(imports)
    }

    /// Whether an import in the file at `from` leads where it led.
    pub(crate) fn still_leads(&self, from: &Path, import: &AskedImport) -> bool {
        let now = self.follow(from, import.level, &import.module);
        now.is_some_and(|now| now.path == import.found)
    }

    /// Adds a text that stands for the file at `path`, which need not exist.
    pub(crate) fn open_text(&self, path: &Path, text: String) -> FileId {
        self.add(path.display().to_string(), normal(path), text)
    }

    fn add(&self, name: String, path: PathBuf, text: String) -> FileId {
        let mut by_path = lock(&self.by_path);
        if let Some(Some(id)) = by_path.get(&path) {
            return *id;
        }
        // Nobody adds another one meanwhile.
        let id = FileId(self.files.count() as u32);
        self.files.push(File::new(id, name, path.clone(), text.into()));
        by_path.insert(path, Some(id));
        id
    }

    /// The folder of the environment into which imports are followed.
    pub(crate) fn site_packages(&self) -> Option<&Path> {
        self.site_packages.as_deref()
    }

    /// A file by number.
    pub(crate) fn file(&self, id: FileId) -> Option<&File> {
        self.files.get(id.0 as usize)
    }

    /// Every file.
    pub(crate) fn table(&self) -> FileTable<'_> {
        FileTable(&self.files)
    }

    /// Notes, once, which files launch kernels of which others.
    pub(crate) fn index_launches(&self, used: &[(FileId, Vec<FileId>)]) {
        self.importers.get_or_init(|| {
            let mut importers: HashMap<FileId, Vec<FileId>> = HashMap::new();
            for (from, targets) in used {
                targets.iter().for_each(|to| importers.entry(*to).or_default().push(*from));
            }
            importers
        });
    }

    /// Looks, once, in the project around `file` which files launch its kernels: only those that
    /// name one of them, or a function that launches one, are read further.
    pub(crate) fn index_launches_of(&self, file: FileId) {
        let Some(source) = self.file(file) else { return };
        let mut names = launching_names(self, file);
        if names.is_empty() {
            return;
        }
        let mut others = around(&source.path);
        others.retain(|path| normal(path) != source.path);
        let mut candidates: Vec<FileId> = Vec::new();
        // Who calls what launches is called by other names.
        for _ in 0..MAX_CALLS {
            let (named, rest): (Vec<PathBuf>, Vec<PathBuf>) =
                others.into_par_iter().partition(|path| names_any(path, &names));
            let opened: Vec<FileId> =
                named.par_iter().filter_map(|path| self.open_absolute(path)).collect();
            names = opened.iter().flat_map(|file| calling_names(self, *file, &names)).collect();
            candidates.extend(opened);
            others = rest;
            if names.is_empty() {
                break;
            }
        }
        let used = candidates.into_par_iter().map(|file| (file, used_files(self, file)));
        self.index_launches(&used.collect::<Vec<_>>());
    }

    /// Where absolute imports of the files in `folder` start, found once per folder.
    fn roots(&self, file: &Path) -> Arc<Vec<String>> {
        let folder = file.parent().unwrap_or(file).to_owned();
        if let Some(roots) = lock(&self.roots).get(&folder) {
            return Arc::clone(roots);
        }
        let top = folder.ancestors().find(|folder| folder.join(".git").exists());
        let top = top.map_or_else(|| "/".to_owned(), |top| top.display().to_string());
        let exists = |path: &str| Path::new(path).exists();
        let mut roots = paths::import_roots(&file.to_string_lossy(), &top, &exists);
        roots.extend(self.site_packages.iter().map(|folder| folder.display().to_string()));
        let roots = Arc::new(roots);
        lock(&self.roots).insert(folder, Arc::clone(&roots));
        roots
    }

    /// Where an import in the file at `from` leads, found once per folder.
    fn follow(&self, from: &Path, level: u32, module: &str) -> Option<Import> {
        let key = (from.parent()?.to_owned(), format!("{level}{module}"));
        if let Some(known) = lock(&self.imports).get(&key) {
            return Some(known.clone());
        }
        let names: Vec<Name> =
            module.split('.').filter(|name| !name.is_empty()).map(Name::from).collect();
        let path = self.find_import(from, level, &names);
        let file = path.as_deref().and_then(|path| self.open_absolute(path));
        let import = Import { path, file };
        lock(&self.imports).insert(key, import.clone());
        Some(import)
    }

    fn find_import(&self, from: &Path, level: u32, path: &[Name]) -> Option<PathBuf> {
        let candidates = paths::candidates(&from.to_string_lossy(), &self.roots(from), level, path);
        candidates.into_iter().map(PathBuf::from).find(|candidate| candidate.is_file())
    }
}

impl Sources for Workspace {
    fn module(&self, file: FileId) -> Option<Arc<Module>> {
        Some(Arc::clone(self.file(file)?.module()))
    }

    fn text(&self, file: FileId) -> Option<Arc<str>> {
        Some(Arc::clone(&self.file(file)?.text))
    }

    fn lines(&self, file: FileId) -> Option<Arc<LineIndex>> {
        Some(Arc::clone(self.file(file)?.lines()))
    }

    fn path(&self, file: FileId) -> String {
        self.file(file).map(|file| file.name.clone()).unwrap_or_default()
    }

    fn import(&self, from: FileId, level: u32, path: &[Name]) -> Option<FileId> {
        let from = self.file(from)?;
        let known = |asked: &Asked| Some(asked.imports.get(&level)?.get(path)?.file);
        if let Some(known) = known(&lock(&from.asked)) {
            return known;
        }
        let found = self.follow(&from.path, level, &path.join("."))?;
        let file = found.file;
        lock(&from.asked).imports.entry(level).or_default().insert(path.to_vec(), found);
        file
    }

    fn facts(&self) -> Option<&Facts> {
        Some(&self.facts)
    }

    fn capability(&self) -> u32 {
        match self.capability.load(Ordering::Relaxed) {
            0 => DEFAULT_CAPABILITY,
            capability => capability,
        }
    }

    fn array(&self, from: FileId, path: &str) -> Option<ArrayHead> {
        let from = self.file(from)?;
        lock(&from.asked).arrays = true;
        let path = from.path.parent()?.join(path);
        let mut arrays = lock(&self.arrays);
        let head = arrays.entry(path).or_insert_with_key(|path| {
            let parse = |header: String| {
                let shown = path.display();
                ArrayHead::parse(&header).map_err(|error| format!("{shown}: {error}"))
            };
            let note = |error| {
                output::note(&format!("nothing is known of what a scenario loads: {error}"))
            };
            array_header(path).and_then(parse).map_err(note).ok()
        });
        head.clone()
    }

    fn importers(&self, file: FileId) -> Vec<FileId> {
        let known = self.importers.get().and_then(|importers| importers.get(&file));
        known.cloned().unwrap_or_default()
    }
}

/// The files of a workspace.
#[derive(Debug)]
pub(crate) struct FileTable<'w>(&'w boxcar::Vec<File>);

impl Files for FileTable<'_> {
    fn name(&self, file: FileId) -> &str {
        &self.0[file.0 as usize].name
    }

    fn text(&self, file: FileId) -> &str {
        &self.0[file.0 as usize].text
    }

    fn lines(&self, file: FileId) -> &LineIndex {
        self.0[file.0 as usize].lines()
    }
}

/// Reads a text file within the limits.
pub(crate) fn read(path: &Path) -> Result<String, ReadError> {
    let name = path.display().to_string();
    let io_error = |error: std::io::Error| ReadError {
        name: name.clone(),
        message: match error.kind() {
            std::io::ErrorKind::NotFound => "no such file or folder".to_owned(),
            std::io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
            _ => error.to_string(),
        },
    };
    let meta = std::fs::metadata(path).map_err(io_error)?;
    if meta.is_dir() {
        let message = "this is a folder; name a file".to_owned();
        return Err(ReadError { name, message });
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(ReadError { name, message: too_large(meta.len()) });
    }
    let file = std::fs::File::open(path).map_err(io_error)?;
    decode(read_limited(file).map_err(io_error)?, name)
}

/// What a file or pipe holds, or more than is allowed of it: it need not end.
fn read_limited(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads standard input within the limits.
pub(crate) fn read_stdin(name: &Path) -> Result<String, ReadError> {
    let name = name.display().to_string();
    match read_limited(std::io::stdin()) {
        Ok(bytes) => decode(bytes, name),
        Err(error) => Err(ReadError { name, message: error.to_string() }),
    }
}

fn decode(bytes: Vec<u8>, name: String) -> Result<String, ReadError> {
    let decoded = tile_lsp::source_text(bytes);
    let text = decoded.map_err(|message| ReadError { name, message })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Works on everything in parallel, beginning with what is largest, so that no thread is left alone
/// with much at the end. What it yields is in the order of `all`.
pub(crate) fn largest_first<T: Sync, R: Send>(
    all: &[T],
    size: impl Fn(&T) -> usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut order: Vec<(usize, &T)> = all.iter().enumerate().collect();
    order.sort_by_key(|(_, item)| Reverse(size(item)));
    let done = order.into_iter().par_bridge().map(|(at, item)| (at, work(item)));
    let mut done: Vec<(usize, R)> = done.collect();
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The kernel files under a folder, sorted; `.gitignore` is honored.
pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    files_under(folder, None)
}

/// As [`walk`], so many folders deep.
fn files_under(folder: &Path, depth: Option<usize>) -> Vec<PathBuf> {
    let found = Mutex::new(Vec::new());
    WalkBuilder::new(folder).require_git(false).max_depth(depth).build_parallel().run(|| {
        Box::new(|entry| {
            if let Ok(entry) = entry {
                let path = entry.path();
                let named = path.extension().is_some_and(|ext| ext == "py" || ext == "tile");
                if named && entry.file_type().is_some_and(|kind| kind.is_file()) {
                    lock(&found).push(tidy(path));
                }
            }
            ignore::WalkState::Continue
        })
    });
    let mut files = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    files.sort();
    files
}

/// Whether a file found on a walk is worth parsing. `is_own` is as of [`paths::may_run_kernels`].
pub(crate) fn may_run_kernels(path: &Path, is_own: &dyn Fn(&str) -> bool) -> bool {
    let Ok(text) = std::fs::File::open(path).and_then(read_limited) else { return true };
    paths::may_run_kernels(&path.to_string_lossy(), &String::from_utf8_lossy(&text), is_own)
}

/// The first parts of names by which these files may be imported.
pub(crate) fn module_names<'p>(files: impl Iterator<Item = &'p Path>) -> FxHashSet<String> {
    let parts = files.flat_map(|path| {
        let folders = path.parent().into_iter().flat_map(Path::components);
        let folders = folders.map(|part| part.as_os_str().to_string_lossy().into_owned());
        folders.chain(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
    });
    parts.collect()
}

/// What lies at the top of a project that is installed from its folder.
const PROJECT_FILES: &[&str] = &["pyproject.toml", "setup.py", "setup.cfg", "tile.toml"];

/// The kernel files of the project that a file belongs to: of its repository, else of the innermost folder
/// that is installed, else of its outermost package; else those beside it.
fn around(file: &Path) -> Vec<PathBuf> {
    let Some(folder) = file.parent() else { return Vec::new() };
    let holding = |name: &str| folder.ancestors().find(|folder| folder.join(name).exists());
    let installed = || PROJECT_FILES.iter().filter_map(|name| holding(name));
    let project = holding(".git").or_else(|| {
        // All of them are ancestors: the innermost one has the longest path.
        installed().max_by_key(|folder| folder.as_os_str().len())
    });
    let packages = folder.ancestors().take_while(|folder| folder.join("__init__.py").exists());
    match project.or_else(|| packages.last()) {
        Some(root) => walk(root),
        None => files_under(folder, Some(1)),
    }
}

/// Whether a file launches something, or runs by itself, and contains one of `names`.
fn names_any(path: &Path, names: &FxHashSet<Name>) -> bool {
    let Ok(text) = std::fs::File::open(path).and_then(read_limited) else { return false };
    let holds = |part: &str| memmem::find(&text, part.as_bytes()).is_some();
    names.iter().any(|name| holds(name))
        && paths::may_call_others(&path.to_string_lossy(), &String::from_utf8_lossy(&text))
}

/// Without a leading `./`.
fn tidy(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

/// A path as a user would write it: from the current folder where it lies below that.
fn from_here(path: &Path) -> &Path {
    static HERE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let here = HERE.get_or_init(|| std::env::current_dir().ok());
    here.as_ref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}

/// The site-packages folder for files in `folder`: of the environment that the project names, else
/// of the one that is active or lies around. Found without running Python.
pub(crate) fn site_packages(folder: &Path) -> Option<PathBuf> {
    let chosen = tile_lsp::project_rules(folder).python;
    tile_lsp::site_packages(chosen.as_deref(), &[normal(folder)])
}

/// The version of a package, by the name of its metadata folder.
pub(crate) fn package_version(site_packages: &Path, package: &str) -> Option<String> {
    let entries = std::fs::read_dir(site_packages).ok()?;
    entries.flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let rest = name.strip_prefix(package)?.strip_prefix('-')?;
        Some(rest.strip_suffix(".dist-info")?.to_owned())
    })
}

/// An absolute path without `.` and `..`, so that a file has one spelling. Links stay.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut parts = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
