//! The database: source texts as inputs, everything else as queries over them.
//!
//! A clone is a snapshot: it answers for the texts as they stood when it was taken. Changing an
//! input cancels the queries of all clones, which unwinds them with [`salsa::Cancelled`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use salsa::{Durability, Setter};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::hir::Module;
use tile_compiler::source::{FileId, LineIndex};
use tile_compiler::syntax::Parse;

use crate::files::FileSystem;

pub(crate) mod anchored;
mod findings;
mod kernel;
pub(crate) mod labels;
pub(crate) mod launched;
pub(crate) mod parts;
mod settled;
mod sources;
#[cfg(test)]
mod tests;
mod texts;
mod workspace;

use texts::Trees;

pub(crate) use findings::{diagnostics, exact_diagnostics, types};
pub(crate) use kernel::{
    Kernel, Labelled, Lowered, configurations, kernel, kernel_at, kernels, scenarios,
    syntax_error_in,
};
pub(crate) use settled::{exact_types, lowered};
pub(crate) use sources::{Analysis, launching_names, package_folders};
pub(crate) use texts::SourceText;
pub(crate) use workspace::{FolderRules, Workspace, folder_rules, version};

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

    /// The paths of the files that were asked for and lie below one of `folders`.
    pub(crate) fn known_below(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        if folders.is_empty() {
            return Vec::new();
        }
        let folders: FxHashSet<&Path> = folders.iter().map(PathBuf::as_path).collect();
        let table = self.files.table();
        let lies_below = |path: &&Arc<Path>| path.ancestors().any(|part| folders.contains(part));
        table.by_path.keys().filter(lies_below).map(|path| path.to_path_buf()).collect()
    }

    /// Sets the text of a file that nobody edits.
    pub(crate) fn set_text(&mut self, file: SourceFile, text: Option<SourceText>) {
        let known = file.text(self).as_ref().map(SourceText::text);
        if known != text.as_ref().map(SourceText::text) {
            file.set_text(self).with_durability(Durability::MEDIUM).to(text);
        }
    }

    /// Keeps few of the large answers from now on: those about files that are looked at once.
    pub(crate) fn keep_few(&mut self) {
        contents::set_lru_capacity(self, KEPT_FILES);
        kernel::keep_few(self, KEPT_FILES);
        parts::keep_few(self, KEPT_FILES);
    }

    /// Forgets large answers that are more than are to be kept, as it does after every edit. It waits
    /// until all clones are gone.
    pub(crate) fn forget_large(&mut self) {
        salsa::Database::trigger_lru_eviction(self);
    }
}

/// Files of which [`Database::keep_few`] keeps what is large; a database keeps all otherwise.
const KEPT_FILES: usize = 64;

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

/// Where the lines of a file start.
#[salsa::tracked(returns(ref))]
pub(crate) fn line_index(db: &dyn Db, file: SourceFile) -> Arc<LineIndex> {
    Arc::new(LineIndex::new(file.text(db).as_ref().map_or("", |text| text.text())))
}
