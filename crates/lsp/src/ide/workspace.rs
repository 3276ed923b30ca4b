//! Questions about every file of the workspace, open or not.

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::hir::{ItemKind, Name};
use tile_compiler::project;
use tile_compiler::source::{FileId, FileRange, TextRange};

use crate::db::{self, Db, SourceFile};
use crate::ide::navigation;
use crate::ide::structure::walk_below;
use crate::ide::symbol::{Semantics, Symbol, ancestors, range};

/// Files beyond this number are not looked at.
pub(crate) const MAX_FILES: usize = 20_000;

/// Symbols beyond this number are not shown.
const MAX_SYMBOLS: usize = 500;

/// The files among `paths` whose text holds `word`.
pub(crate) fn mentioning(db: &dyn Db, paths: &[PathBuf], word: &str) -> Vec<SourceFile> {
    holding(db, paths, |_, text| text.contains(word))
}

/// The files among `paths` whose text is what is sought. What is not is not kept in memory.
fn holding(
    db: &dyn Db,
    paths: &[PathBuf],
    is_sought: impl Fn(&Path, &str) -> bool,
) -> Vec<SourceFile> {
    let holds = |path: &PathBuf| match db.files().known(path) {
        Some(file) => file.text(db).as_ref().is_some_and(|text| is_sought(path, text.text())),
        None => {
            db.unwind_if_revision_cancelled();
            db.files().system().read(path).is_some_and(|text| is_sought(path, &text))
        }
    };
    paths.iter().filter(|path| holds(path)).map(|path| db.file(path)).collect()
}

/// The names of the jit functions of a file.
pub(crate) fn jit_names(db: &dyn Db, file: SourceFile) -> FxHashSet<Name> {
    let module = db::module(db, file);
    let jit = db::parts::jit_items(db, file).iter();
    jit.map(|(index, _)| module.items[*index as usize].name.clone()).collect()
}

/// For each of the `open` files, with the names of its jit functions, the files among `paths` that
/// may launch its kernels: those that name one of them, and whatever else is open, since that may
/// name one any moment.
pub(crate) fn importers(
    db: &dyn Db,
    paths: &[PathBuf],
    open: &FxHashMap<SourceFile, FxHashSet<Name>>,
) -> FxHashMap<FileId, Vec<FileId>> {
    let mut found: FxHashMap<FileId, Vec<FileId>> = FxHashMap::default();
    for path in paths {
        db.unwind_if_revision_cancelled();
        let known = db.files().known(path);
        let is_open = known.is_some_and(|file| open.contains_key(&file));
        let text = match known {
            _ if is_open => None,
            Some(file) => file.text(db).as_ref().map(|text| text.text().to_string()),
            None => db.files().system().read(path),
        };
        let names_one = |names: &FxHashSet<Name>| {
            text.as_ref().is_some_and(|text| names.iter().any(|name| text.contains(&**name)))
        };
        for (file, names) in open {
            let is_other = &**file.path(db) != path.as_path();
            if is_other && (is_open || names_one(names)) {
                found.entry(file.id(db)).or_default().push(db.file(path).id(db));
            }
        }
    }
    found
}

/// The files among `paths` that may have to do with kernels.
pub(crate) fn with_kernels(db: &dyn Db, paths: &[PathBuf]) -> Vec<SourceFile> {
    holding(db, paths, |path, text| {
        project::paths::may_concern_kernels(&path.to_string_lossy(), text)
    })
}

/// A jit function or class of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its name.
    pub(crate) name: String,
    /// Where its name stands.
    pub(crate) at: FileRange,
    /// It is launched, not called.
    pub(crate) kernel: bool,
    /// The file's name.
    pub(crate) container: String,
}

/// The jit functions whose names hold the characters of `query` in order, kernels first.
pub(crate) fn symbols(db: &dyn Db, files: &[SourceFile], query: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for file in files {
        db.unwind_if_revision_cancelled();
        // Few files define what is asked for; the others need not be parsed.
        if !file.text(db).as_ref().is_some_and(|text| defines_one(text.text(), query)) {
            continue;
        }
        let module = db::module(db, *file);
        let name = file.path(db).file_name().map(|name| name.to_string_lossy().into_owned());
        for (index, kernel) in db::parts::jit_items(db, *file) {
            let item = &module.items[*index as usize];
            if matches(&item.name, query) {
                found.push(Found {
                    name: item.name.to_string(),
                    at: FileRange { file: file.id(db), range: item.name_range },
                    kernel: *kernel,
                    container: name.clone().unwrap_or_default(),
                });
            }
        }
    }
    found.sort_by_key(|found| (!found.kernel, found.name.len(), found.name.clone(), found.at));
    found.truncate(MAX_SYMBOLS);
    found
}

/// Whether `text` defines a function whose name holds the characters of `query`, as far as words tell.
fn defines_one(text: &str, query: &str) -> bool {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let names = text.split("def ").skip(1).map(str::trim_start);
    let mut names = names.map(|rest| rest.split(|c| !is_word(c)).next().unwrap_or_default());
    names.any(|name| matches(name, query))
}

/// True when `name` has the characters of `query` in their order, whatever their case.
fn matches(name: &str, query: &str) -> bool {
    let mut rest = name.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| rest.any(|c| c == wanted))
}

/// A function in the hierarchy of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its name.
    pub(crate) name: String,
    /// What it is, in a word.
    pub(crate) detail: &'static str,
    /// The whole.
    pub(crate) at: FileRange,
    /// Its name.
    pub(crate) name_at: FileRange,
}

/// A function and the places of calls.
pub(crate) type Calls = Vec<(Node, Vec<TextRange>)>;

/// The function, or scenario, at `offset`.
pub(crate) fn node_at(db: &dyn Db, file: SourceFile, offset: usize) -> Option<Node> {
    let semantics = Semantics::new(db, file)?;
    match semantics.symbol_at(offset)? {
        (Symbol::Item(at), _) => node(db, at),
        _ => None,
    }
}

/// The function that is an item.
pub(crate) fn node(db: &dyn Db, at: project::ItemRef) -> Option<Node> {
    let file = db.file_of(at.file)?;
    let item = db::module(db, file).items.get(at.index as usize)?;
    let ItemKind::Function(_) = &item.kind else { return None };
    let jit = db::parts::jit_items(db, file).iter().find(|(index, _)| *index == at.index);
    let detail = match jit {
        Some((_, true)) => "kernel",
        Some((_, false)) => "jit function",
        None => "host code",
    };
    let place = |range: TextRange| FileRange { file: at.file, range };
    Some(Node {
        name: item.name.to_string(),
        detail,
        at: place(item.range),
        name_at: place(item.name_range),
    })
}

/// Who calls or launches the function whose name stands at `name_at`, in `files`.
pub(crate) fn incoming(db: &dyn Db, name_at: FileRange, files: &[SourceFile]) -> Calls {
    let Some(home) = db.file_of(name_at.file) else { return Vec::new() };
    let offset = name_at.range.start as usize;
    let mut calls: Calls = Vec::new();
    let mut semantics: Option<Semantics<'_>> = None;
    for place in navigation::references(db, home, offset, files) {
        let Some(file) = db.file_of(place.file).filter(|_| place != name_at) else { continue };
        // References come file by file.
        let known = semantics.take().filter(|known| known.file == file);
        semantics = known.or_else(|| Semantics::new(db, file));
        let root = semantics.as_ref().map(Semantics::root);
        if !root.is_some_and(|root| is_called(root, place.range)) {
            continue;
        }
        let Some(caller) = caller(db, file, place.range) else { continue };
        match calls.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, places)) => places.push(place.range),
            None => calls.push((caller, vec![place.range])),
        }
    }
    calls
}

/// Whether the name at `at` is called or launched, and not only mentioned.
fn is_called(root: tree_sitter::Node<'_>, at: TextRange) -> bool {
    let at = at.as_usize();
    let Some(name) = root.descendant_for_byte_range(at.start, at.end) else { return false };
    let around = ancestors(root, name);
    let mut calls = around.iter().filter(|node| node.kind() == "call");
    calls.any(|call| call.child_by_field_name("function").is_some_and(|it| called_name(it) == name))
}

/// The name of what is called, or launched on a grid, by its module or class as well.
fn called_name(callee: tree_sitter::Node<'_>) -> tree_sitter::Node<'_> {
    let field = match callee.kind() {
        "subscript" => "value",
        "attribute" => "attribute",
        _ => return callee,
    };
    callee.child_by_field_name(field).map_or(callee, called_name)
}

/// The function or scenario around a place; an import is none.
fn caller(db: &dyn Db, file: SourceFile, at: TextRange) -> Option<Node> {
    let module = db::module(db, file);
    let id = file.id(db);
    let functions = module.items.iter().rposition(|item| {
        matches!(item.kind, ItemKind::Function(_)) && item.range.contains_range(at)
    });
    if let Some(index) = functions {
        return node(db, project::ItemRef { file: id, index: index as u32 });
    }
    let number = module.scenarios.iter().position(|found| found.range.contains_range(at))?;
    let place = FileRange { file: id, range: module.scenarios[number].range };
    let name = format!("scenario {}", number + 1);
    Some(Node { name, detail: "scenario", at: place, name_at: place })
}

/// What the function whose name stands at `name_at` calls and launches.
pub(crate) fn outgoing(db: &dyn Db, name_at: FileRange) -> Calls {
    let Some(file) = db.file_of(name_at.file) else { return Vec::new() };
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let module = db::module(db, file);
    let item = module.items.iter().find(|item| item.name_range == name_at.range);
    let scenario = module.scenarios.iter().find(|found| found.range == name_at.range);
    let around = item.map(|item| item.range).or(scenario.map(|found| found.range));
    let Some(around) = around else { return Vec::new() };
    let mut calls: Calls = Vec::new();
    walk_below(semantics.root(), &mut |nodes, call| {
        let at = range(call);
        if around.contains_range(at)
            && call.kind() == "call"
            && let Some(Symbol::Item(item)) = semantics.callee(nodes, call)
            && let Some(callee) = node(db, item)
        {
            let place = range(called_name(call.child(0).unwrap_or(call)));
            match calls.iter_mut().find(|(known, _)| *known == callee) {
                Some((_, places)) => places.push(place),
                None => calls.push((callee, vec![place])),
            }
        }
        around.start < at.end && at.start < around.end
    });
    calls
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::db::{Database, SourceText};
    use crate::files::Disk;

    const TEXT: &str = "\
import triton
import helpers

@triton.jit
def part(x):
    return x

@triton.jit
def kernel(x):
    part(part(x))

def launch(x, wrap):
    kernel[(1,)](x)
    wrap(kernel, part)
    run = kernel
";

    fn open(db: &mut Database) -> SourceFile {
        db.set_open(Path::new("/nowhere/kernels.py"), SourceText::new(TEXT))
    }

    /// Who calls whom, and the texts at the places of the calls.
    fn edges(from: &str, to: &str, places: &[TextRange]) -> String {
        let places: Vec<&str> = places.iter().map(|at| &TEXT[at.as_usize()]).collect();
        format!("{from} -> {to}: {}", places.join(" "))
    }

    #[test]
    fn both_ends_tell_of_the_same_calls() {
        let mut db = Database::new(Arc::new(Disk));
        let file = open(&mut db);
        let (mut coming, mut going) = (Vec::new(), Vec::new());
        for index in 0..db::module(&db, file).items.len() as u32 {
            let at = project::ItemRef { file: file.id(&db), index };
            let Some(this) = node(&db, at) else { continue };
            for (other, places) in incoming(&db, this.name_at, &[file]) {
                coming.push(edges(&other.name, &this.name, &places));
            }
            for (other, places) in outgoing(&db, this.name_at) {
                going.push(edges(&this.name, &other.name, &places));
            }
        }
        coming.sort();
        going.sort();
        assert_eq!(coming, ["kernel -> part: part part", "launch -> kernel: kernel"]);
        assert_eq!(coming, going);
    }

    #[test]
    fn files_that_define_nothing_asked_for_are_told_by_their_words() {
        assert!(defines_one(TEXT, "") && defines_one(TEXT, "KNL") && defines_one(TEXT, "pt"));
        assert!(!defines_one(TEXT, "helpers") && !defines_one("kernel = 1", "kernel"));
    }
}
