//! The database: source texts as inputs, everything else as queries over them.
//!
//! A clone is a snapshot: it answers for the texts as they stood when it was taken. Changing an
//! input cancels the queries of all clones, which unwinds them with [`salsa::Cancelled`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ropey::Rope;
use rustc_hash::FxHashMap;
use salsa::{Durability, Setter};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::hir::{self, Module};
use tile_compiler::source::FileId;
use tile_compiler::syntax::Parse;

use crate::files::FileSystem;

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

/// A text in the forms that queries read. Cheap to clone; the forms are made when first asked for.
#[derive(Debug, Clone)]
pub(crate) struct SourceText {
    text: Arc<str>,
    forms: Arc<Forms>,
}

#[derive(Debug, Default)]
struct Forms {
    parse: OnceLock<Parse>,
    rope: OnceLock<Rope>,
}

impl SourceText {
    /// A text of which nothing is known yet.
    pub(crate) fn new(text: impl Into<Arc<str>>) -> SourceText {
        SourceText { text: text.into(), forms: Arc::default() }
    }

    /// A text that was parsed already.
    pub(crate) fn parsed(parse: Parse, rope: Rope) -> SourceText {
        let text = parse.text().clone();
        let forms = Forms { parse: OnceLock::from(parse), rope: OnceLock::from(rope) };
        SourceText { text, forms: Arc::new(forms) }
    }

    /// The text in one piece.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The syntax tree.
    pub(crate) fn parse(&self) -> &Parse {
        self.forms.parse.get_or_init(|| Parse::new(self.text.clone()))
    }

    /// The text by lines, for positions.
    pub(crate) fn rope(&self) -> &Rope {
        self.forms.rope.get_or_init(|| Rope::from_str(&self.text))
    }
}

/// Every file that was asked for.
#[derive(Debug)]
pub(crate) struct Files {
    system: Arc<dyn FileSystem>,
    table: Mutex<FileTable>,
}

#[derive(Debug, Default)]
struct FileTable {
    by_path: FxHashMap<Arc<Path>, SourceFile>,
    by_id: Vec<SourceFile>,
}

impl Files {
    fn table(&self) -> MutexGuard<'_, FileTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where files that nobody has open are read.
    pub(crate) fn system(&self) -> &dyn FileSystem {
        &*self.system
    }
}

/// What queries need of the database.
#[salsa::db]
pub(crate) trait Db: salsa::Database {
    /// The files.
    fn files(&self) -> &Files;

    /// The file at `path`; read now if it was never asked for.
    fn file(&self, path: &Path) -> SourceFile;

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

    fn file(&self, path: &Path) -> SourceFile {
        let mut table = self.files.table();
        if let Some(file) = table.by_path.get(path) {
            return *file;
        }
        let text = self.files.system.read(path).map(SourceText::new);
        self.add(&mut table, path, text, Durability::MEDIUM)
    }
}

impl Database {
    /// An empty database that reads what is not open from `system`.
    pub(crate) fn new(system: Arc<dyn FileSystem>) -> Database {
        let files = Files { system, table: Mutex::default() };
        Database { storage: salsa::Storage::default(), files: Arc::new(files) }
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
        match known {
            Some(file) => {
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
        let known = self.files.table().by_path.get(path).copied();
        let Some(file) = known else { return };
        let text = self.files.system.read(path);
        let unchanged = match (file.text(self), &text) {
            (Some(old), Some(new)) => **old.text() == **new,
            (None, None) => true,
            _ => false,
        };
        if !unchanged {
            let text = text.map(SourceText::new);
            file.set_text(self).with_durability(Durability::MEDIUM).to(text);
        }
    }

    /// Paths that were asked for.
    pub(crate) fn known_paths(&self) -> Vec<PathBuf> {
        self.files.table().by_path.keys().map(|path| path.to_path_buf()).collect()
    }
}

/// The HIR of a file; empty when there is no such file.
#[salsa::tracked(returns(ref))]
pub(crate) fn module(db: &dyn Db, file: SourceFile) -> Arc<Module> {
    let module = file.text(db).as_ref().map(|text| hir::lower(text.parse()));
    Arc::new(module.unwrap_or_default())
}

/// Syntax errors of a file.
#[salsa::tracked(returns(ref))]
pub(crate) fn syntax_diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let text = file.text(db).as_ref();
    text.map(|text| text.parse().diagnostics(file.id(db))).unwrap_or_default()
}
