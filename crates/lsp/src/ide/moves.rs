//! Edits that keep imports right when files move.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use tile_compiler::diagnostic::TextEdit;
use tile_compiler::hir::Name;
use tile_compiler::project::Sources;
use tile_compiler::source::{FileId, FileRange};
use tree_sitter::Node;

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::navigation;
use crate::ide::structure::walk;
use crate::ide::symbol::{Semantics, range};
use crate::ide::workspace::{self, MAX_FILES};

/// A file that is about to move.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    /// The file.
    pub(crate) file: FileId,
    /// Where it will lie.
    pub(crate) to: String,
    /// Imports of it, and its own, are edited; otherwise another server looks after them.
    pub(crate) ours: bool,
}

/// What is about to move.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moves {
    /// Files, those in folders that move among them.
    pub(crate) files: Vec<Move>,
    /// Folders: where each lies, and where it will.
    pub(crate) folders: Vec<(String, String)>,
}

impl Moves {
    /// Adds what is at `from`: a file, or a folder with the source files in it. `ours` says of
    /// which files imports are edited.
    pub(crate) fn add(
        &mut self,
        db: &dyn Db,
        (from, to): (&Path, &Path),
        ours: impl Fn(&Path) -> bool,
    ) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        if db.file(from).text(db).is_some() {
            let file = db.file(from).id(db);
            self.files.push(Move { file, to: text(to), ours: ours(from) });
            return;
        }
        self.folders.push((text(from), text(to)));
        for path in db.files().system().walk(from, MAX_FILES) {
            let Ok(inner) = path.strip_prefix(from) else { continue };
            let (file, to) = (db.file(&path).id(db), text(&to.join(inner)));
            self.files.push(Move { file, to, ours: ours(&path) });
        }
    }

    /// True when nothing moves that anything is edited for.
    pub(crate) fn are_none_of_ours(&self) -> bool {
        !self.files.iter().any(|moved| moved.ours)
    }

    fn are_ours(&self, file: FileId) -> bool {
        self.files.iter().any(|moved| moved.file == file && moved.ours)
    }

    /// Where a file will lie.
    fn path_after(&self, db: &dyn Db, file: FileId) -> Option<String> {
        match self.files.iter().find(|moved| moved.file == file) {
            Some(moved) => Some(moved.to.clone()),
            None => Some(db.file_of(file)?.path(db).to_string_lossy().into_owned()),
        }
    }

    /// Where a folder will lie.
    fn folder_after(&self, folder: &str) -> Option<String> {
        self.folders.iter().find_map(|(from, to)| {
            let inner = folder.strip_prefix(from.as_str())?;
            (inner.is_empty() || inner.starts_with('/')).then(|| format!("{to}{inner}"))
        })
    }
}

/// The edits in `file`, which may move as well, that have its imports mean the same files after
/// `moves`.
pub(crate) fn imports(db: &dyn Db, file: SourceFile, moves: &Moves) -> Vec<TextEdit> {
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let mut edits = Vec::new();
    walk(semantics.root(), &mut |node| {
        let in_import = |node: Node<'_>| {
            let parent = node.parent()?;
            let statement =
                if parent.kind() == "aliased_import" { parent.parent()? } else { parent };
            let is_module = match statement.kind() {
                "import_statement" => true,
                "import_from_statement" => {
                    statement.child_by_field_name("module_name") == Some(node)
                }
                _ => false,
            };
            is_module.then_some(())
        };
        let is_name = match node.kind() {
            "relative_import" => true,
            "dotted_name" => node.parent().is_some_and(|up| up.kind() != "relative_import"),
            _ => false,
        };
        if !is_name || in_import(node).is_none() {
            return;
        }
        let text = semantics.text_of(node);
        if let Some(text) = renamed(db, file, text, moves) {
            edits.push(TextEdit { at: FileRange { file: file.id(db), range: range(node) }, text });
        }
    });
    edits
}

/// The new name of the module that `text` names, where it gets one.
fn renamed(db: &dyn Db, file: SourceFile, text: &str, moves: &Moves) -> Option<String> {
    let dotted = text.trim_start_matches('.');
    let level = text.len() - dotted.len();
    let names: Vec<Name> =
        dotted.split('.').map(str::trim).filter(|name| !name.is_empty()).map(Name::from).collect();
    let (old, new) = match Analysis(db).import(file.id(db), level as u32, &names) {
        Some(meant) => {
            let old = db.file_of(meant)?.path(db).to_string_lossy().into_owned();
            let new = moves.path_after(db, meant)?;
            if !moves.are_ours(meant) && !moves.are_ours(file.id(db)) {
                return None;
            }
            (module_path(&old)?.to_owned(), module_path(&new)?.to_owned())
        }
        None => {
            let places = db::package_folders(db, file, level as u32, &names).into_iter();
            places.filter_map(|old| Some((old.clone(), moves.folder_after(&old)?))).next()?
        }
    };
    // The folder that the name counts from is what remains of the old path without the name.
    let base = old.strip_suffix(&names.join("/"))?;
    if level == 0 {
        return named_below(&new, base).filter(|name| *name != text);
    }
    let from = moves.path_after(db, file.id(db))?;
    let mut folder = Path::new(&from).parent();
    let mut dots = String::from(".");
    while let Some(around) = folder {
        let base = around.to_string_lossy();
        if *base == *new {
            return Some(dots).filter(|name| *name != text);
        }
        let base = format!("{}/", base.trim_end_matches('/'));
        if let Some(name) = named_below(&new, &base) {
            return Some(dots + &name).filter(|name| *name != text);
        }
        dots.push('.');
        folder = around.parent();
    }
    None
}

/// The path of a module's file without its extension; of a package without `__init__`.
fn module_path(file: &str) -> Option<&str> {
    let stem = file.strip_suffix(".py").or_else(|| file.strip_suffix(".tile"))?;
    Some(stem.strip_suffix("/__init__").unwrap_or(stem))
}

/// The dotted name of the module at `path`, counted from the folder `base`.
fn named_below(path: &str, base: &str) -> Option<String> {
    let name = path.strip_prefix(base)?;
    let parts: Vec<&str> = name.split('/').collect();
    parts.iter().all(|part| navigation::is_name(part)).then(|| parts.join("."))
}

/// The files that may import what `moves`, among `paths` those that name it, and the files that
/// move.
pub(crate) fn concerned(db: &dyn Db, paths: &[PathBuf], moves: &Moves) -> Vec<SourceFile> {
    let mut found: Vec<SourceFile> =
        moves.files.iter().filter_map(|moved| db.file_of(moved.file)).collect();
    let places = found.iter().filter_map(|file| {
        let path = file.path(db).to_string_lossy().into_owned();
        module_path(&path).map(str::to_owned)
    });
    let folders = moves.folders.iter().map(|(from, _)| from.clone());
    // Whoever names what lies in a folder names the folder, except from inside of it.
    let places = places.filter(|path| moves.folder_after(path).is_none()).chain(folders);
    let names: FxHashSet<String> =
        places.filter_map(|path| Some(path.rsplit('/').next()?.to_owned())).collect();
    for name in names {
        found.extend(workspace::mentioning(db, paths, &name));
    }
    let mut seen = FxHashSet::default();
    found.retain(|file| seen.insert(*file));
    found
}
