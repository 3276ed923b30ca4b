//! Sources held in memory.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::{ArrayHead, Sources, paths, used_files};
use crate::hir::{self, Module, Name};
use crate::source::FileId;
use crate::specialization::Facts;
use crate::syntax::Parse;

/// Files given as text: for tests, and for commands that read all files up front.
#[derive(Debug, Default)]
pub struct MemorySources {
    files: Vec<File>,
    by_path: FxHashMap<String, FileId>,
    roots: Vec<String>,
    arrays: FxHashMap<String, ArrayHead>,
    /// Which files launch a file's kernels; computed when it is first asked for.
    importers: OnceLock<FxHashMap<FileId, Vec<FileId>>>,
    /// What was found out about the files as they are.
    facts: Facts,
}

#[derive(Debug)]
struct File {
    path: String,
    parse: Parse,
    module: Arc<Module>,
}

impl MemorySources {
    /// No files; absolute imports start at each of `roots`, after the importing file's directory.
    pub fn new(roots: Vec<String>) -> MemorySources {
        MemorySources { roots, ..MemorySources::default() }
    }

    /// Adds a file, or replaces the one at this path.
    pub fn add(&mut self, path: &str, text: &str) -> FileId {
        self.importers.take();
        self.facts = Facts::default();
        let parse = Parse::new(text);
        let module = Arc::new(hir::lower(&parse));
        let file = File { path: path.to_owned(), parse, module };
        if let Some(id) = self.by_path.get(path) {
            self.files[id.0 as usize] = file;
            return *id;
        }
        let id = FileId(self.files.len() as u32);
        self.files.push(file);
        self.by_path.insert(path.to_owned(), id);
        id
    }

    /// Adds what scenarios load from `path`.
    pub fn add_array(&mut self, path: &str, head: ArrayHead) {
        self.arrays.insert(path.to_owned(), head);
    }

    /// The syntax tree of `file`.
    pub fn parse(&self, file: FileId) -> Option<&Parse> {
        Some(&self.file(file)?.parse)
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len() as u32).map(FileId)
    }

    fn file(&self, file: FileId) -> Option<&File> {
        self.files.get(file.0 as usize)
    }

    fn find_importers(&self) -> FxHashMap<FileId, Vec<FileId>> {
        let mut importers: FxHashMap<FileId, Vec<FileId>> = FxHashMap::default();
        for file in self.files() {
            for launched in used_files(self, file) {
                importers.entry(launched).or_default().push(file);
            }
        }
        importers
    }
}

impl Sources for MemorySources {
    fn module(&self, file: FileId) -> Option<Arc<Module>> {
        Some(self.file(file)?.module.clone())
    }

    fn text(&self, file: FileId) -> Option<Arc<str>> {
        Some(self.file(file)?.parse.text().clone())
    }

    fn path(&self, file: FileId) -> String {
        self.file(file).map(|file| file.path.clone()).unwrap_or_default()
    }

    fn import(&self, from: FileId, level: u32, path: &[Name]) -> Option<FileId> {
        let from = &self.file(from)?.path;
        let mut roots = vec![paths::relative_base(from, 1).unwrap_or_default()];
        roots.extend(self.roots.iter().cloned());
        let candidates = paths::candidates(from, &roots, level, path);
        candidates.iter().find_map(|candidate| self.by_path.get(candidate).copied())
    }

    fn array(&self, _from: FileId, path: &str) -> Option<ArrayHead> {
        self.arrays.get(path).cloned()
    }

    fn facts(&self) -> Option<&Facts> {
        Some(&self.facts)
    }

    fn importers(&self, file: FileId) -> Vec<FileId> {
        let importers = self.importers.get_or_init(|| self.find_importers());
        importers.get(&file).cloned().unwrap_or_default()
    }
}
