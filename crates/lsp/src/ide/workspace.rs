//! Questions about every file of the workspace, open or not.

use std::path::{Path, PathBuf};

use tile_compiler::hir::ItemKind;
use tile_compiler::project;
use tile_compiler::source::{FileRange, TextRange};

use crate::db::{self, Db, SourceFile};
use crate::ide::matching::matches;
use crate::ide::symbol::{Semantics, Symbol};
use crate::ide::tree::{range, walk_below};
use crate::ide::{mentions, navigation};
use crate::threads;

/// Files beyond this number are not looked at.
pub(crate) const MAX_FILES: usize = 20_000;

/// Symbols beyond this number are not shown.
const MAX_SYMBOLS: usize = 500;

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

/// The jit functions in the files at `paths` whose names hold the characters of `query` in order,
/// kernels first.
pub(crate) fn symbols(db: &dyn Db, paths: &[PathBuf], query: &str) -> Vec<Found> {
    let mut candidates = candidates(db, paths, query);
    let mut found: Vec<Found> = Vec::new();
    // Files with the best names come first, and no more are parsed than are shown.
    while !candidates.is_empty() && found.len() < MAX_SYMBOLS {
        let later = candidates.split_off(FILES_AT_ONCE.min(candidates.len()));
        let files = threads::ask_all(db, &candidates, |db, path| jit_functions(db, path, query));
        found.extend(files.into_iter().flatten());
        candidates = later;
    }
    found.sort_by_key(|found| (!found.kernel, found.name.len(), found.name.clone(), found.at));
    found.truncate(MAX_SYMBOLS);
    found
}

/// Files that are parsed before it is asked whether that is enough.
const FILES_AT_ONCE: usize = 64;

/// The files that define what has such a name, as far as words tell, those with the shortest first.
fn candidates(db: &dyn Db, paths: &[PathBuf], query: &str) -> Vec<PathBuf> {
    let best = threads::ask_all(db, paths, |db, path| {
        mentions::with_text(db, path, |text| best_name(text, query)).flatten()
    });
    let mut found: Vec<_> =
        best.into_iter().zip(paths).filter_map(|(best, path)| Some((best?, path))).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path.clone()).collect()
}

/// The jit functions of a file whose names hold the characters of `query` in order.
fn jit_functions(db: &dyn Db, path: &Path, query: &str) -> Vec<Found> {
    let file = db.file(path);
    let module = db::module(db, file);
    let container = path.file_name().unwrap_or_default().to_string_lossy();
    let items = db::parts::jit_items(db, file).iter();
    let items = items.map(|(index, kernel)| (&module.items[*index as usize], *kernel));
    items
        .filter(|(item, _)| matches(&item.name, query))
        .map(|(item, kernel)| Found {
            name: item.name.to_string(),
            at: FileRange { file: file.id(db), range: item.name_range },
            kernel,
            container: container.to_string(),
        })
        .collect()
}

/// The length of the shortest name of a function in `text` that holds the characters of `query`, as
/// far as words tell.
fn best_name(text: &str, query: &str) -> Option<usize> {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let names = text.split("def ").skip(1).map(str::trim_start);
    let names = names.map(|rest| rest.split(|c| !is_word(c)).next().unwrap_or_default());
    names.filter(|name| matches(name, query)).map(str::len).min()
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

/// Who calls or launches the function whose name stands at `name_at`, in the files at `paths`.
pub(crate) fn incoming(db: &dyn Db, name_at: FileRange, paths: &[PathBuf]) -> Calls {
    let Some(home) = db.file_of(name_at.file) else { return Vec::new() };
    let offset = name_at.range.start as usize;
    let mut calls: Calls = Vec::new();
    for (id, found) in navigation::occurrences_of(db, home, offset, paths) {
        let is_own = FileRange { file: id, range: found.range } == name_at;
        let Some(file) = db.file_of(id).filter(|_| found.is_called && !is_own) else { continue };
        let Some(caller) = caller(db, file, found.range) else { continue };
        match calls.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, places)) => places.push(found.range),
            None => calls.push((caller, vec![found.range])),
        }
    }
    calls
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
            let place = range(navigation::called_name(call.child(0).unwrap_or(call)));
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
            for (other, places) in incoming(&db, this.name_at, &[]) {
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
        let lengths = ["", "KNL", "pt"].map(|query| best_name(TEXT, query));
        assert_eq!(lengths, [Some("part".len()), Some("kernel".len()), Some("part".len())]);
        assert!(
            best_name(TEXT, "helpers").is_none() && best_name("kernel = 1", "kernel").is_none()
        );
    }
}
