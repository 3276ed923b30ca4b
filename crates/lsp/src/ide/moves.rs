//! Edits that keep imports right when files move.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use tile_compiler::diagnostic::TextEdit;
use tile_compiler::hir::Name;
use tile_compiler::project::Sources;
use tile_compiler::source::{FileId, FileRange};
use tree_sitter::Node;

use crate::db::{Analysis, Db, SourceFile};
use crate::ide::structure::walk;
use crate::ide::symbol::{Semantics, range};
use crate::ide::{navigation, workspace};

/// A file that is about to move.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    /// The file.
    pub(crate) file: FileId,
    /// Where it will lie.
    pub(crate) to: String,
}

/// The edits in `file`, which may move as well, that have its imports mean the same files after
/// `moves`.
pub(crate) fn imports(db: &dyn Db, file: SourceFile, moves: &[Move]) -> Vec<TextEdit> {
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
fn renamed(db: &dyn Db, file: SourceFile, text: &str, moves: &[Move]) -> Option<String> {
    let dotted = text.trim_start_matches('.');
    let level = text.len() - dotted.len();
    let names: Vec<Name> =
        dotted.split('.').map(str::trim).filter(|name| !name.is_empty()).map(Name::from).collect();
    let meant = Analysis(db).import(file.id(db), level as u32, &names)?;
    let old = db.file_of(meant)?.path(db).to_string_lossy().into_owned();
    let moved = |file: FileId| moves.iter().find(|moved| moved.file == file);
    let to = moved(meant).map_or(old.clone(), |moved| moved.to.clone());
    let from = file.path(db).to_string_lossy().into_owned();
    let from = moved(file.id(db)).map_or(from, |moved| moved.to.clone());
    // The folder that the name counts from is what remains of the old path without the name.
    let base = module_path(&old)?.strip_suffix(&names.join("/"))?.to_owned();
    if level == 0 {
        return named_below(&to, &base).filter(|name| *name != text);
    }
    let mut folder = Path::new(&from).parent();
    let mut dots = String::from(".");
    while let Some(around) = folder {
        let base = format!("{}/", around.to_string_lossy().trim_end_matches('/'));
        if let Some(name) = named_below(&to, &base) {
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

/// The dotted name of the module in the file `path`, counted from the folder `base`.
fn named_below(path: &str, base: &str) -> Option<String> {
    let name = module_path(path)?.strip_prefix(base)?;
    let parts: Vec<&str> = name.split('/').collect();
    parts.iter().all(|part| navigation::is_name(part)).then(|| parts.join("."))
}

/// The files that may import one of `moves`, among `paths` those that name its module, and the
/// files that move.
pub(crate) fn concerned(db: &dyn Db, paths: &[PathBuf], moves: &[Move]) -> Vec<SourceFile> {
    let mut found: Vec<SourceFile> =
        moves.iter().filter_map(|moved| db.file_of(moved.file)).collect();
    for moved in found.clone() {
        let path = moved.path(db).to_string_lossy().into_owned();
        let name = module_path(&path).and_then(|path| path.rsplit('/').next());
        let files = name.map(|name| workspace::mentioning(db, paths, name)).unwrap_or_default();
        found.extend(files);
    }
    let mut seen = FxHashSet::default();
    found.retain(|file| seen.insert(*file));
    found
}
