//! The database: source texts as inputs, everything else as queries over them.
//!
//! A clone is a snapshot: it answers for the texts as they stood when it was taken. Changing an
//! input cancels the queries of all clones, which unwinds them with [`salsa::Cancelled`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use salsa::{Durability, Setter};
use tile_compiler::analysis::{self, AtLaunch};
use tile_compiler::diagnostic::{Diagnostic, Lints, settle};
use tile_compiler::eval::{self, BodyTypes, LowerResult, Rules};
use tile_compiler::hir::{Function, Module, Name};
use tile_compiler::project::{self, ArrayHead, ItemRef, Resolution, Scope, paths};
use tile_compiler::source::{FileId, LineIndex, TextRange};
use tile_compiler::specialization::{
    Config, Flags, Specialization, TritonVersion, discover, tuning, worth_checking,
};
use tile_compiler::syntax::Parse;

use crate::files::FileSystem;

pub(crate) mod anchored;
pub(crate) mod labels;
pub(crate) mod parts;
mod settled;
#[cfg(test)]
mod tests;
mod texts;

use anchored::{Anchored, Anchors, anchor_locations};
use parts::{Observed, jit_items};
use texts::Trees;

pub(crate) use settled::lowered;
pub(crate) use texts::SourceText;

/// A file that was asked for, whether it exists or not.
#[salsa::input(debug)]
pub(crate) struct SourceFile {
    /// Its number in positions.
    #[returns(copy)]
    pub(crate) id: FileId,
    /// Its path, or the name of a text that is in no file.
    #[returns(ref)]
    pub(crate) path: Arc<Path>,
    /// Its text; `None` when there is no such file.
    #[returns(ref)]
    pub(crate) text: Option<SourceText>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every file that was asked for.
#[derive(Debug)]
pub(crate) struct Files {
    system: Arc<dyn FileSystem>,
    table: Mutex<FileTable>,
    trees: Trees,
}

#[derive(Debug, Default)]
struct FileTable {
    by_path: FxHashMap<Arc<Path>, SourceFile>,
    by_id: Vec<SourceFile>,
}

impl Files {
    /// Where files are read.
    pub(crate) fn system(&self) -> &dyn FileSystem {
        &*self.system
    }

    /// The syntax tree of a text, which is at hand from now on.
    pub(crate) fn parse(&self, text: &SourceText) -> Parse {
        self.trees.keep(text);
        text.parse()
    }

    /// The file at `path`, if it was asked for.
    pub(crate) fn known(&self, path: &Path) -> Option<SourceFile> {
        self.table().by_path.get(path).copied()
    }

    /// Every file.
    pub(crate) fn all(&self) -> Vec<SourceFile> {
        self.table().by_id.clone()
    }

    fn table(&self) -> MutexGuard<'_, FileTable> {
        lock(&self.table)
    }
}

/// What queries need of the database.
#[salsa::db]
pub(crate) trait Db: salsa::Database {
    /// The files.
    fn files(&self) -> &Files;

    /// The file at `path`; read now if it was never asked for.
    fn file(&self, path: &Path) -> SourceFile;

    /// The database as it is now, for another thread.
    fn snapshot(&self) -> Database;

    /// The file of an id that a position names.
    fn file_of(&self, id: FileId) -> Option<SourceFile> {
        self.files().table().by_id.get(id.0 as usize).copied()
    }
}

/// The database.
#[salsa::db]
#[derive(Clone)]
pub(crate) struct Database {
    storage: salsa::Storage<Self>,
    files: Arc<Files>,
}

#[salsa::db]
impl salsa::Database for Database {}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("files", &self.files).finish_non_exhaustive()
    }
}

#[salsa::db]
impl Db for Database {
    fn files(&self) -> &Files {
        &self.files
    }

    fn snapshot(&self) -> Database {
        self.clone()
    }

    fn file(&self, path: &Path) -> SourceFile {
        if let Some(file) = self.files.known(path) {
            return file;
        }
        // Whoever asks for another file meanwhile need not wait for the disk.
        let text = self.files.system.read(path).map(SourceText::new);
        let mut table = self.files.table();
        if let Some(file) = table.by_path.get(path) {
            return *file;
        }
        self.add(&mut table, path, text, Durability::MEDIUM)
    }
}

impl Database {
    /// An empty database that reads what is not open from `system`.
    pub(crate) fn new(system: Arc<dyn FileSystem>) -> Database {
        let files = Files { system, table: Mutex::default(), trees: Trees::default() };
        let db = Database { storage: salsa::Storage::default(), files: Arc::new(files) };
        let rules = vec![FolderRules::default()];
        let (choices, importers) = (FxHashMap::default(), FxHashMap::default());
        let workspace = Workspace::builder(Vec::new(), rules, choices, importers);
        // It is a singleton: whoever needs it asks the database.
        let _ = workspace.durability(Durability::HIGH).new(&db);
        db
    }

    fn add(
        &self,
        table: &mut FileTable,
        path: &Path,
        text: Option<SourceText>,
        durability: Durability,
    ) -> SourceFile {
        let path: Arc<Path> = Arc::from(path);
        let id = FileId(table.by_id.len() as u32);
        let file = SourceFile::builder(id, path.clone(), text)
            .durability(Durability::HIGH)
            .text_durability(durability)
            .new(self);
        table.by_path.insert(path, file);
        table.by_id.push(file);
        file
    }

    /// Sets the text of an open document.
    pub(crate) fn set_open(&mut self, path: &Path, text: SourceText) -> SourceFile {
        let known = self.files.table().by_path.get(path).copied();
        self.files.trees.keep(&text);
        match known {
            Some(file) => {
                if let Some(older) = file.text(self) {
                    text.follow(older);
                }
                file.set_text(self).with_durability(Durability::LOW).to(Some(text));
                file
            }
            None => {
                let files = self.files.clone();
                self.add(&mut files.table(), path, Some(text), Durability::LOW)
            }
        }
    }

    /// Takes the text of a file from disk again, if the file was ever asked for.
    pub(crate) fn reload(&mut self, path: &Path) {
        if let Some(file) = self.files.known(path) {
            let text = self.files.system.read(path);
            self.set_text(file, text.map(SourceText::new));
        }
    }

    /// Sets the text of a file that nobody edits.
    pub(crate) fn set_text(&mut self, file: SourceFile, text: Option<SourceText>) {
        let known = file.text(self).as_ref().map(SourceText::text);
        if known != text.as_ref().map(SourceText::text) {
            file.set_text(self).with_durability(Durability::MEDIUM).to(text);
        }
    }

    /// Takes over settings, choices and who launches what from another database.
    pub(crate) fn configure_as(&mut self, other: &Database) {
        let theirs = Workspace::get(other);
        self.configure(theirs.folders(other).clone(), theirs.rules(other).clone());
        let here = |id: &FileId| {
            let file = other.file_of(*id)?;
            Some(self.file(file.path(other)).id(self))
        };
        let importers = theirs.importers(other).iter().filter_map(|(file, importers)| {
            Some((here(file)?, importers.iter().filter_map(here).collect()))
        });
        let importers = importers.collect();
        self.set_importers(importers);
    }

    /// Keeps few of the large answers from now on: those about files that are looked at once.
    pub(crate) fn keep_few(&mut self) {
        contents::set_lru_capacity(self, KEPT_FILES);
        kernels::set_lru_capacity(self, KEPT_FILES);
        parts::keep_few(self, KEPT_FILES);
    }

    /// Forgets large answers that are more than are to be kept, as it does after every edit.
    pub(crate) fn forget_large(&mut self) {
        salsa::Database::trigger_lru_eviction(self);
    }

    /// Chooses a kernel's specialization by its label; `None` leaves it to the best known one.
    pub(crate) fn choose(&mut self, kernel: (FileId, Name), label: Option<String>) {
        let workspace = Workspace::get(self);
        let mut choices = workspace.choices(self).clone();
        match label {
            Some(label) => choices.insert(kernel, label),
            None => choices.remove(&kernel),
        };
        workspace.set_choices(self).with_durability(Durability::HIGH).to(choices);
    }

    /// Says which files may launch kernels of others; true when that is news.
    pub(crate) fn set_importers(&mut self, importers: FxHashMap<FileId, Vec<FileId>>) -> bool {
        let workspace = Workspace::get(self);
        let news = *workspace.importers(self) != importers;
        if news {
            workspace.set_importers(self).with_durability(Durability::HIGH).to(importers);
        }
        news
    }

    /// Takes over what settings say about analysis: the workspace's folders, and what holds where.
    /// `rules` are sorted by folder and start with those that hold everywhere.
    pub(crate) fn configure(&mut self, folders: Vec<PathBuf>, rules: Vec<FolderRules>) {
        let workspace = Workspace::get(self);
        if *workspace.folders(self) != folders {
            workspace.set_folders(self).with_durability(Durability::HIGH).to(folders);
        }
        if *workspace.rules(self) != rules {
            workspace.set_rules(self).with_durability(Durability::HIGH).to(rules);
        }
    }
}

/// Files of which [`Database::keep_few`] keeps what is large; a database keeps all otherwise.
const KEPT_FILES: usize = 64;

/// What holds for every file.
#[salsa::input(singleton)]
pub(crate) struct Workspace {
    /// Its folders.
    #[returns(ref)]
    pub(crate) folders: Vec<PathBuf>,
    /// What holds below which folder, sorted by folder; the first holds everywhere.
    #[returns(ref)]
    pub(crate) rules: Vec<FolderRules>,
    /// The specialization that the user chose for a kernel, by its label.
    #[returns(ref)]
    pub(crate) choices: FxHashMap<(FileId, Name), String>,
    /// Files that may launch kernels of a file; see [`Sources::importers`](project::Sources).
    #[returns(ref)]
    pub(crate) importers: FxHashMap<FileId, Vec<FileId>>,
}

/// Compute capability that kernels are lowered for where nothing says otherwise.
const DEFAULT_CAPABILITY: u32 = 90;

/// What settings say about the analysis of files below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FolderRules {
    /// The folder; empty for what holds everywhere.
    pub(crate) folder: PathBuf,
    /// Where packages of the Python environment lie.
    pub(crate) site_packages: Option<PathBuf>,
    /// Whose rules hold.
    pub(crate) triton: Rules,
    /// Levels that the user set.
    pub(crate) lints: Lints,
    /// Compute capability that kernels are lowered for, such as 80 for sm_80.
    pub(crate) capability: u32,
}

impl Default for FolderRules {
    fn default() -> FolderRules {
        FolderRules {
            folder: PathBuf::new(),
            site_packages: None,
            triton: Rules::default(),
            lints: Lints::default(),
            capability: DEFAULT_CAPABILITY,
        }
    }
}

impl FolderRules {
    /// The compute capability of an architecture such as `sm_90a`.
    pub(crate) fn capability_of(arch: &str) -> Option<u32> {
        arch.strip_prefix("sm_")?.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse().ok()
    }
}

/// What settings say about a file: what they say of the innermost folder around it.
#[salsa::tracked(returns(ref))]
pub(crate) fn folder_rules(db: &dyn Db, file: SourceFile) -> FolderRules {
    let rules = Workspace::get(db).rules(db);
    let mut around = rules.iter().rev().filter(|rules| file.path(db).starts_with(&rules.folder));
    around.next().cloned().unwrap_or_default()
}

/// The version of Triton whose documentation and signatures are shown in a file.
pub(crate) fn version(db: &dyn Db, file: SourceFile) -> TritonVersion {
    folder_rules(db, file).triton.newest()
}

/// What the text of a file says by itself.
#[derive(Debug, PartialEq)]
struct Contents {
    module: Arc<Module>,
    errors: Vec<Diagnostic>,
}

/// Both from one tree, which is not kept where nobody edits the file.
#[salsa::tracked(returns(ref), lru = 0)]
fn contents(db: &dyn Db, file: SourceFile) -> Contents {
    let Some(text) = file.text(db) else {
        return Contents { module: Arc::default(), errors: Vec::new() };
    };
    text.lower(file.id(db))
}

/// The HIR of a file; empty when there is no such file.
pub(crate) fn module(db: &dyn Db, file: SourceFile) -> &Arc<Module> {
    &contents(db, file).module
}

/// Syntax errors of a file.
pub(crate) fn syntax_diagnostics(db: &dyn Db, file: SourceFile) -> &[Diagnostic] {
    &contents(db, file).errors
}

/// What is wrong with the syntax of the function at `at`, or of one that it calls. Evaluation
/// leaves out what does not parse, so what it gives then is not what the author means.
pub(crate) fn syntax_error_in(db: &dyn Db, at: ItemRef) -> Option<String> {
    let sources = Analysis(db);
    let mut functions = vec![at];
    let mut next = 0;
    while next < functions.len() {
        for callee in project::called_from_jit(&sources, &functions[next..=next]) {
            if !functions.contains(&callee) {
                functions.push(callee);
            }
        }
        next += 1;
    }
    functions.into_iter().find_map(|at| {
        let file = db.file_of(at.file)?;
        let range = module(db, file).items.get(at.index as usize)?.range;
        let errors = syntax_diagnostics(db, file).iter();
        let mut inside = errors.filter(|error| range.touches(error.primary.range.start as usize));
        Some(inside.next()?.message.clone())
    })
}

/// The folders from which absolute imports of a file start, nearest first.
#[salsa::tracked(returns(ref))]
fn import_roots(db: &dyn Db, file: SourceFile) -> Vec<String> {
    let path = file.path(db).to_string_lossy();
    let exists = |path: &str| db.file(Path::new(path)).text(db).is_some();
    let workspace = Workspace::get(db);
    let around = workspace.folders(db).iter().filter(|folder| file.path(db).starts_with(folder));
    let root = around.map(|folder| folder.to_string_lossy()).max_by_key(|folder| folder.len());
    let root = root.map_or_else(|| repository(&path, &exists), |root| root.into_owned());
    let mut roots = paths::import_roots(&path, &root, &exists);
    let packages = folder_rules(db, file).site_packages.iter();
    roots.extend(packages.map(|path| path.display().to_string()));
    roots
}

/// The folder of the repository around `path`, else the root of all.
fn repository(path: &str, exists: &dyn Fn(&str) -> bool) -> String {
    let folders = Path::new(path).ancestors().skip(1).map(|folder| folder.display().to_string());
    folders.into_iter().find(|folder| exists(&format!("{folder}/.git/HEAD"))).unwrap_or("/".into())
}

/// The file that `from <level dots><path> import ...` means.
#[salsa::tracked(returns(copy))]
fn import(db: &dyn Db, from: SourceFile, level: u32, dotted: String) -> Option<SourceFile> {
    let path: Vec<Name> = dotted.split('.').filter(|n| !n.is_empty()).map(Name::from).collect();
    let roots = import_roots(db, from);
    let candidates = paths::candidates(&from.path(db).to_string_lossy(), roots, level, &path);
    let mut files = candidates.iter().map(|candidate| db.file(Path::new(candidate)));
    files.find(|file| file.text(db).is_some())
}

/// The folders that `from <level dots><path> import ...` may mean where no file does, best first.
pub(crate) fn package_folders(
    db: &dyn Db,
    from: SourceFile,
    level: u32,
    path: &[Name],
) -> Vec<String> {
    let roots = import_roots(db, from);
    let candidates = paths::candidates(&from.path(db).to_string_lossy(), roots, level, path);
    let inits = candidates.iter().filter_map(|file| file.strip_suffix("/__init__.py"));
    inits.map(str::to_owned).collect()
}

/// The files whose kernels host code of `file` launches.
#[salsa::tracked(returns(ref))]
fn used_files(db: &dyn Db, file: SourceFile) -> Vec<FileId> {
    project::used_files(&Analysis(db), file.id(db))
}

/// The database as the compiler's front end asks it.
#[derive(Clone, Copy)]
pub(crate) struct Analysis<'db>(pub(crate) &'db dyn Db);

impl project::Sources for Analysis<'_> {
    fn module(&self, file: FileId) -> Option<Arc<Module>> {
        // The search for specializations asks often and takes long.
        project::Sources::checkpoint(self);
        let file = self.0.file_of(file)?;
        file.text(self.0).as_ref()?;
        Some(module(self.0, file).clone())
    }

    fn checkpoint(&self) {
        self.0.unwind_if_revision_cancelled();
    }

    fn text(&self, file: FileId) -> Option<Arc<str>> {
        Some(self.0.file_of(file)?.text(self.0).as_ref()?.text().clone())
    }

    fn path(&self, file: FileId) -> String {
        let file = self.0.file_of(file);
        file.map(|file| file.path(self.0).display().to_string()).unwrap_or_default()
    }

    fn import(&self, from: FileId, level: u32, path: &[Name]) -> Option<FileId> {
        let from = self.0.file_of(from)?;
        Some(import(self.0, from, level, path.join("."))?.id(self.0))
    }

    fn array(&self, from: FileId, path: &str) -> Option<ArrayHead> {
        let folder = self.0.file_of(from)?.path(self.0).parent()?;
        let header = self.0.file(&folder.join(path)).text(self.0).as_ref()?;
        ArrayHead::parse(header.text()).ok()
    }

    fn importers(&self, file: FileId) -> Vec<FileId> {
        let known = Workspace::get(self.0).importers(self.0).get(&file);
        let candidates = known.into_iter().flatten().copied();
        let launches = |from: &FileId| {
            let from = self.0.file_of(*from);
            from.is_some_and(|from| used_files(self.0, from).contains(&file))
        };
        candidates.filter(launches).collect()
    }
}

/// Where the lines of a file start.
#[salsa::tracked(returns(ref))]
pub(crate) fn line_index(db: &dyn Db, file: SourceFile) -> LineIndex {
    LineIndex::new(file.text(db).as_ref().map_or("", |text| text.text()))
}

/// What holds for a jit function under every specialization.
#[derive(Debug, Default)]
pub(crate) struct Inferred {
    /// Values and types of its expressions.
    pub(crate) types: BodyTypes,
    /// What is certainly wrong.
    found: Anchored,
}

/// What holds for the jit function that is this item of a file. `entry` says that it is a kernel.
#[salsa::tracked(returns(ref), no_eq, lru = 64)]
fn inferred(db: &dyn Db, file: SourceFile, index: u32, entry: bool) -> Inferred {
    let at = ItemRef { file: file.id(db), index };
    let rules = folder_rules(db, file);
    match rules.triton.infer_function(&Observed::kernels(db, rules.capability), at, entry) {
        Some(found) => Inferred { types: found.types, found: Anchored::new(db, found.diagnostics) },
        None => Inferred::default(),
    }
}

/// What is certainly wrong with the jit function that is this item of a file. It is kept where the
/// types, which are large, are not.
#[salsa::tracked(returns(ref))]
fn certain(db: &dyn Db, file: SourceFile, index: u32, entry: bool) -> Anchored {
    inferred(db, file, index, entry).found.clone()
}

/// What inference found in the jit function that is this item of a file.
pub(crate) fn types(db: &dyn Db, file: SourceFile, index: u32) -> Option<&BodyTypes> {
    let (_, entry) = jit_items(db, file).iter().find(|(item, _)| *item == index)?;
    Some(&inferred(db, file, index, *entry).types)
}

/// What the kernel that is this item of a file is compiled for.
#[salsa::tracked(returns(ref))]
fn specializations(db: &dyn Db, file: SourceFile, index: u32) -> Arc<[Labelled]> {
    let at = ItemRef { file: file.id(db), index };
    let capability = folder_rules(db, file).capability;
    labels::label_all(discover(&Observed::host(db, capability), at, &Flags::default())).into()
}

/// The autotune configurations of the kernel that is this item of a file, as values of parameters
/// and options.
#[salsa::tracked(returns(ref))]
pub(crate) fn configurations(
    db: &dyn Db,
    file: SourceFile,
    index: u32,
) -> Vec<Vec<(String, String)>> {
    let at = ItemRef { file: file.id(db), index };
    let sources = Observed::host(db, folder_rules(db, file).capability);
    let Some(kernel) = project::kernel(&sources, at) else { return Vec::new() };
    tuning(&sources, &kernel).configs.iter().map(Config::values).collect()
}

/// A kernel under one specialization.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    /// Tile IR, locations by `anchors`; `None` when there is an error.
    pub(crate) ir: Option<Arc<str>>,
    /// What the locations of the IR count from.
    pub(crate) anchors: Arc<Anchors>,
    /// What is wrong.
    pub(crate) found: Anchored,
    /// Values and types of its expressions.
    pub(crate) types: BodyTypes,
    /// What it was lowered for, where a guess had to be replaced.
    repaired: Option<Specialization>,
}

/// The kernel that is this item of a file, under one specialization.
fn lower_under(db: &dyn Db, file: SourceFile, item: u32, spec: &Specialization) -> Option<Lowered> {
    let mut result = lower(db, file, item, spec)?;
    let anchors = result.function.as_mut().map(|function| anchor_locations(db, function));
    Some(Lowered {
        ir: result.function.map(|function| Arc::from(function.to_string())),
        anchors: Arc::new(anchors.unwrap_or_default()),
        found: Anchored::new(db, result.diagnostics),
        types: result.types,
        repaired: result.repaired,
    })
}

/// What is wrong with a kernel under one specialization.
#[derive(Debug, PartialEq, Eq, Default)]
struct Checked {
    /// What stops the kernel from compiling, and what analyses of it find.
    found: Anchored,
    /// The launch that each finding belongs to.
    launches: Vec<AtLaunch>,
}

/// As [`lowered`], for those who ask only what is wrong, under a specialization as it was found
/// first. `masks` says whether masks and costs are looked at.
#[salsa::tracked(returns(ref))]
fn checked(db: &dyn Db, file: SourceFile, item: u32, index: usize, masks: bool) -> Checked {
    let Some(Labelled { spec, .. }) = specializations(db, file, item).get(index) else {
        return Checked::default();
    };
    let rules = folder_rules(db, file);
    let sources = Observed::kernels(db, rules.capability);
    let at = ItemRef { file: file.id(db), index: item };
    let (used, result) = rules.triton.lowering(&sources, at).check(spec);
    let mut found = analysis::blame(&sources, rules.triton, at, spec, &result);
    let pause = || db.unwind_if_revision_cancelled();
    // Of arguments other than those of the launch nothing is proved.
    let function = result.function.filter(|_| used.args == spec.args);
    let analyzed = function.map(|func| match masks {
        true => analysis::check(&func, spec, rules.capability, &pause),
        false => analysis::check_accesses(&func, spec, &pause),
    });
    found.extend(analyzed.unwrap_or_default());
    let (found, launches): (Vec<Diagnostic>, _) = found.into_iter().unzip();
    Checked { found: Anchored::new(db, found), launches }
}

fn lower(db: &dyn Db, file: SourceFile, item: u32, spec: &Specialization) -> Option<LowerResult> {
    let rules = folder_rules(db, file);
    let sources = Observed::kernels(db, rules.capability);
    Some(rules.triton.lower_kernel(&sources, ItemRef { file: file.id(db), index: item }, spec))
}

/// What is found in a file without a specialization: fast enough for every keystroke.
#[salsa::tracked(returns(ref))]
fn general_diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let functions = jit_items(db, file).iter();
    let mut inferred: Vec<Vec<Diagnostic>> =
        functions.map(|(at, entry)| certain(db, file, *at, *entry).place(db)).collect();
    eval::drop_repeated(&mut inferred.iter_mut().collect::<Vec<_>>());
    let mut found = syntax_diagnostics(db, file).to_vec();
    found.extend(inferred.into_iter().flatten());
    found
}

/// What is found in a file under the specializations that are known. A guess yields nothing.
/// This takes a while, so it is not waited for; see [`diagnostics`].
#[salsa::tracked(returns(ref))]
pub(crate) fn exact_diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let mut found = analysis::check_launches(&Analysis(db), file.id(db));
    for kernel in kernels(db, file) {
        let specs: Vec<&Specialization> =
            kernel.specializations.iter().map(|labelled| &labelled.spec).collect();
        let (mut known, mut proved) = (Vec::new(), Vec::new());
        for (number, index) in worth_checking(&specs).into_iter().enumerate() {
            let masks = number < analysis::MASKS_CHECKED;
            let checked = checked(db, file, kernel.at.index, index, masks);
            let proves = |found: &Diagnostic| specs[index].proves(found.code);
            let launches = checked.launches.iter();
            let placed = checked.found.place(db).into_iter().zip(launches);
            let placed = placed.map(|(found, launch)| launch.attach(found, &Analysis(db)));
            known.push(specs[index]);
            proved.push(placed.filter(proves).collect::<Vec<_>>());
        }
        analysis::pass_over(&known, &mut proved);
        found.extend(proved.into_iter().flatten());
    }
    found
}

/// Every finding in a file, in order. `exact` is what is known of its specializations, perhaps
/// from a moment ago.
pub(crate) fn diagnostics(db: &dyn Db, file: SourceFile, exact: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut found = general_diagnostics(db, file).clone();
    found.extend(exact.iter().cloned());
    let lints = &folder_rules(db, file).lints;
    let text = file.text(db).as_ref().map_or("", |text| text.text());
    settle(&mut found, file.id(db), module(db, file), (line_index(db, file), text), lints);
    // What stands in another file is shown there.
    found.retain(|diagnostic| diagnostic.primary.file == file.id(db));
    found
}

/// A kernel of a file and what it is compiled for.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// Its item.
    pub(crate) at: ItemRef,
    /// Its name.
    pub(crate) name: Name,
    /// The whole definition, decorators included.
    pub(crate) range: TextRange,
    /// The name in `def name(...)`.
    pub(crate) name_range: TextRange,
    /// The function.
    pub(crate) function: Arc<Function>,
    /// What it is compiled for as first found, so [`Kernel::settled`] tells labels and values;
    /// never empty.
    pub(crate) specializations: Arc<[Labelled]>,
    /// Indices of its scenarios in [`Module::scenarios`].
    pub(crate) scenarios: Vec<usize>,
}

/// A specialization with the label that users see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labelled {
    /// Unique in the kernel.
    pub(crate) label: String,
    /// What the kernel is compiled for.
    pub(crate) spec: Specialization,
    /// Guesses that were replaced because they cannot work, each as `NAME: OLD → NEW`.
    pub(crate) repairs: Vec<String>,
}

/// The kernels of a file, in source order.
#[salsa::tracked(returns(ref), no_eq, lru = 0)]
pub(crate) fn kernels(db: &dyn Db, file: SourceFile) -> Vec<Kernel> {
    let sources = Analysis(db);
    let scenarios = scenarios(db, file);
    let mut kernels = Vec::new();
    for (index, _) in jit_items(db, file).iter().filter(|(_, entry)| *entry) {
        let at = ItemRef { file: file.id(db), index: *index };
        let Some(kernel) = project::kernel(&sources, at) else { continue };
        let owned = scenarios.iter().filter(|(_, owner)| *owner == at).map(|(index, _)| *index);
        kernels.push(Kernel {
            at,
            name: kernel.item.name.clone(),
            range: kernel.item.range,
            name_range: kernel.item.name_range,
            function: kernel.function,
            specializations: specializations(db, file, *index).clone(),
            scenarios: owned.collect(),
        });
    }
    kernels
}

/// Scenarios of a file, by index, with the kernel that each launches.
pub(crate) fn scenarios(db: &dyn Db, file: SourceFile) -> Vec<(usize, ItemRef)> {
    let sources = Analysis(db);
    let module = module(db, file);
    let scope = Scope { file: file.id(db), path: &[] };
    let mut owners = Vec::new();
    for (index, scenario) in module.scenarios.iter().enumerate() {
        let mut launches = module.launches.iter();
        let launch = launches.find(|launch| scenario.range.contains_range(launch.range));
        let Some(launch) = launch else { continue };
        if let Resolution::Jit(at) =
            project::resolve_expr(&sources, scope, &launch.body, launch.kernel)
        {
            owners.push((index, at));
        }
    }
    owners
}

impl Kernel {
    /// Index of the specialization that counts: the user's choice, else the best known one.
    pub(crate) fn active(&self, db: &dyn Db) -> usize {
        let choices = Workspace::get(db).choices(db);
        let chosen = choices.get(&(self.at.file, self.name.clone()));
        let position =
            |label: &String| self.settled(db).iter().position(|labelled| labelled.label == *label);
        chosen.and_then(position).unwrap_or(0)
    }
}

/// The kernel called `name` of a file; the last one when several are.
pub(crate) fn kernel<'db>(db: &'db dyn Db, file: SourceFile, name: &str) -> Option<&'db Kernel> {
    kernels(db, file).iter().rfind(|kernel| &*kernel.name == name)
}

/// The kernel whose definition or scenario covers `offset`.
pub(crate) fn kernel_at(db: &dyn Db, file: SourceFile, offset: usize) -> Option<&Kernel> {
    let scenarios = &module(db, file).scenarios;
    kernels(db, file).iter().find(|kernel| {
        let in_scenario = |index: &usize| scenarios[*index].range.touches(offset);
        kernel.range.touches(offset) || kernel.scenarios.iter().any(in_scenario)
    })
}
