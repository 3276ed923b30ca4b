//! Edits that keep imports right when files move.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use tile_compiler::diagnostic::TextEdit;
use tile_compiler::hir::Name;
use tile_compiler::project::{Resolution, Sources};
use tile_compiler::source::{FileId, FileRange};
use tree_sitter::Node;

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::symbol::Semantics;
use crate::ide::tree::{ancestors, is_field, range, walk};
use crate::ide::workspace::MAX_FILES;
use crate::ide::{mentions, rename};

mod departures;

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

    /// The new name of a module that stays in its package, where it gets one.
    fn name_after(&self, db: &dyn Db, file: FileId) -> Option<String> {
        let moved = self.files.iter().find(|moved| moved.file == file && moved.ours)?;
        let old = db.file_of(file)?.path(db).to_string_lossy().into_owned();
        let (package, _) = module_path(&old)?.rsplit_once('/')?;
        let (new_package, _) = module_path(&moved.to)?.rsplit_once('/')?;
        if package == new_package { self.new_name(db, file) } else { None }
    }

    /// The new name of a module, whatever its package, where it gets one.
    fn new_name(&self, db: &dyn Db, file: FileId) -> Option<String> {
        let moved = self.files.iter().find(|moved| moved.file == file && moved.ours)?;
        let old = db.file_of(file)?.path(db).to_string_lossy().into_owned();
        let (_, name) = module_path(&old)?.rsplit_once('/')?;
        let (_, new_name) = module_path(&moved.to)?.rsplit_once('/')?;
        (name != new_name && rename::is_name(new_name)).then(|| new_name.to_owned())
    }

    /// Where a folder will lie.
    fn folder_after(&self, folder: &str) -> Option<String> {
        self.folders.iter().find_map(|(from, to)| {
            let inner = folder.strip_prefix(from.as_str())?;
            (inner.is_empty() || inner.starts_with('/')).then(|| format!("{to}{inner}"))
        })
    }
}

/// The edits in `file`, which may move as well, that have its imports, and the names of modules
/// that these bind, mean the same files after `moves`.
pub(crate) fn imports(db: &dyn Db, file: SourceFile, moves: &Moves) -> Vec<TextEdit> {
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let mut edits = Vec::new();
    let mut bound: Vec<Bound> = Vec::new();
    let edit = |node: Node<'_>, text| TextEdit {
        at: FileRange { file: file.id(db), range: range(node) },
        text,
    };
    let leaving = departures::departures(&semantics, moves);
    edits.extend(
        leaving
            .edits
            .into_iter()
            .map(|(range, text)| TextEdit { at: FileRange { file: file.id(db), range }, text }),
    );
    walk(semantics.root(), &mut |node| {
        let is_settled = leaving.settled.contains(&node.id());
        let is_name = match node.kind() {
            "relative_import" => true,
            "dotted_name" => node.parent().is_some_and(|up| up.kind() != "relative_import"),
            _ => false,
        };
        let Some(import) = import_of(node).filter(|_| is_name) else { return };
        let old = semantics.text_of(node);
        let (text, meant) = match import {
            Import::Module | Import::BoundModule => {
                let Some(text) = renamed(db, file, old, moves) else { return };
                (text, imported(db, file, old))
            }
            Import::Member { from, .. } => {
                let package = semantics.text_of(from);
                let dot = if package.ends_with('.') { "" } else { "." };
                let meant = imported(db, file, &format!("{package}{dot}{old}"));
                let new = meant.and_then(|meant| match is_settled {
                    true => moves.new_name(db, meant),
                    false => moves.name_after(db, meant),
                });
                let Some(text) = new else { return };
                (text, meant)
            }
        };
        if import.binds()
            && let Some(meant) = meant
        {
            bound.push(Bound { old: old.to_owned(), new: text.clone(), meant });
        }
        if !is_settled {
            edits.push(edit(node, text));
        }
    });
    if bound.is_empty() {
        return edits;
    }
    walk(semantics.root(), &mut |node| {
        let is_member = node.parent().is_some_and(|up| is_field(up, "attribute", node));
        if !matches!(node.kind(), "identifier" | "attribute") || is_member {
            return;
        }
        let text = semantics.text_of(node);
        let mut named = bound.iter().filter(|bound| bound.old == text);
        let is_it = |bound: &&Bound| means(&semantics, node, bound.meant);
        if import_around(node).is_none()
            && let Some(bound) = named.find(is_it)
        {
            edits.push(edit(node, bound.new.clone()));
        }
    });
    edits
}

/// Whether a name that an import binds, dotted or not, means the module `meant` where it is used.
/// What leads to it may be a folder without a file of its own, of which nothing is known but that
/// nothing else has its name.
fn means(semantics: &Semantics<'_>, name: Node<'_>, meant: FileId) -> bool {
    match semantics.module_of(&ancestors(semantics.root(), name), name) {
        Some(Resolution::File(found)) => found == meant,
        Some(Resolution::External(path)) => path.join(".") == semantics.text_of(name),
        _ => {
            let object = name.child_by_field_name("object");
            let objects = std::iter::successors(object, |node| node.child_by_field_name("object"));
            objects.last().is_some_and(|first| semantics.symbol(first).is_none())
        }
    }
}

/// A name of a module that an import binds, which changes.
struct Bound {
    old: String,
    new: String,
    meant: FileId,
}

/// What a name in an import is.
enum Import<'t> {
    /// A module; whoever uses it has another name for it.
    Module,
    /// A module that is used by this very name.
    BoundModule,
    /// A member of the module `from`.
    Member { from: Node<'t>, is_renamed: bool },
}

impl Import<'_> {
    /// True when the name that stands there is the one that is used.
    fn binds(&self) -> bool {
        matches!(self, Import::BoundModule | Import::Member { is_renamed: false, .. })
    }
}

/// What a name is of the import that it stands in.
fn import_of<'t>(name: Node<'t>) -> Option<Import<'t>> {
    let parent = name.parent()?;
    let is_renamed = parent.kind() == "aliased_import";
    let statement = if is_renamed { parent.parent()? } else { parent };
    match statement.kind() {
        "import_statement" if is_renamed => Some(Import::Module),
        "import_statement" => Some(Import::BoundModule),
        "import_from_statement" => {
            let from = statement.child_by_field_name("module_name")?;
            Some(if from == name { Import::Module } else { Import::Member { from, is_renamed } })
        }
        _ => None,
    }
}

/// The import statement that a node is part of.
fn import_around(node: Node<'_>) -> Option<Node<'_>> {
    let mut around = std::iter::successors(Some(node), Node::parent);
    around.find(|node| matches!(node.kind(), "import_statement" | "import_from_statement"))
}

/// The file that a dotted name, with leading dots, means.
fn imported(db: &dyn Db, file: SourceFile, text: &str) -> Option<FileId> {
    let (level, names) = dotted(text);
    Analysis(db).import(file.id(db), level, &names)
}

/// How many dots lead a dotted name, and its parts.
fn dotted(text: &str) -> (u32, Vec<Name>) {
    let name = text.trim_start_matches('.');
    let parts = name.split('.').map(str::trim).filter(|part| !part.is_empty());
    ((text.len() - name.len()) as u32, parts.map(Name::from).collect())
}

/// The new name of the module that `text` names, where it gets one.
fn renamed(db: &dyn Db, file: SourceFile, text: &str, moves: &Moves) -> Option<String> {
    let (level, names) = dotted(text);
    let (old, new) = match Analysis(db).import(file.id(db), level, &names) {
        Some(meant) => {
            let old = db.file_of(meant)?.path(db).to_string_lossy().into_owned();
            let new = moves.path_after(db, meant)?;
            if !moves.are_ours(meant) && !moves.are_ours(file.id(db)) {
                return None;
            }
            (module_path(&old)?.to_owned(), module_path(&new)?.to_owned())
        }
        None => {
            let places = db::package_folders(db, file, level, &names).into_iter();
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
            let relative = format!("{dots}{name}");
            let is_same = relative == text;
            // Dots do not lead out of the outermost package.
            let is_whole = is_above_packages(db, around, [&from, &new]);
            return (!is_same).then_some(if is_whole { name } else { relative });
        }
        dots.push('.');
        folder = around.parent();
    }
    None
}

/// Whether a folder around some paths is certainly no package itself: it has no `__init__.py`, and is
/// a folder of the workspace, or a path leads into a package right below it.
fn is_above_packages(db: &dyn Db, folder: &Path, paths: [&str; 2]) -> bool {
    let is_package = |folder: &Path| db.file(&folder.join("__init__.py")).text(db).is_some();
    let leads_into_one = |path: &str| {
        let mut within = Path::new(path).ancestors();
        within.find(|within| within.parent() == Some(folder)).is_some_and(is_package)
    };
    let folders = db::Workspace::get(db).folders(db);
    let is_top = folders.iter().any(|root| root == folder) || paths.into_iter().any(leads_into_one);
    is_top && !is_package(folder)
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
    parts.iter().all(|part| rename::is_name(part)).then(|| parts.join("."))
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
        found.extend(mentions::mentioning(db, paths, &name));
    }
    let mut seen = FxHashSet::default();
    found.retain(|file| seen.insert(*file));
    found
}
