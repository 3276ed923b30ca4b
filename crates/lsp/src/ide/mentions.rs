//! Which files of the workspace mention a name, as far as their texts tell.
//!
//! Few of thousands of files do, and reading one takes far less than parsing it. So texts are searched
//! on several threads before anything else is asked of them, and those of other files are not kept.

use std::path::{Path, PathBuf};

use memchr::memmem;
use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::hir::Name;
use tile_compiler::project;
use tile_compiler::source::FileId;

use crate::db::{Analysis, Db, SourceFile};
use crate::files::FileSystem;
use crate::ide::symbol::Symbol;
use crate::threads;

/// How often a name may be replaced by another one, until which others are searched for.
const MAX_ALIASES: usize = 4;

/// Names of one function beyond these are not followed.
const MAX_CALLEES: usize = 16;

/// The places where `word` stands in `text` as a word of its own.
pub(crate) fn places<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let bytes = text.as_bytes();
    let is_word = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(is_word_byte);
    memmem::find_iter(bytes, word.as_bytes())
        .filter(move |at| !is_word(at.checked_sub(1)) && !is_word(Some(at + word.len())))
}

/// Whether `word` stands in `text` as a word of its own.
fn mentions(text: &str, word: &str) -> bool {
    places(text, word).next().is_some()
}

/// A byte of a letter, digit or underscore; every one of a letter that takes several.
fn is_word_byte(byte: &u8) -> bool {
    *byte == b'_' || !byte.is_ascii() || byte.is_ascii_alphanumeric()
}

/// Asks about the text of the file at `path`, if there is one.
pub(crate) fn with_text<T>(db: &dyn Db, path: &Path, ask: impl FnOnce(&str) -> T) -> Option<T> {
    match db.files().known(path) {
        Some(file) => file.text(db).as_ref().map(|text| ask(text.text())),
        None => {
            db.unwind_if_revision_cancelled();
            db.files().system().read(path).map(|text| ask(&text))
        }
    }
}

/// The files among `paths` whose text is what is sought.
fn holding(
    db: &dyn Db,
    paths: &[PathBuf],
    is_sought: impl Fn(&Path, &str) -> bool + Sync,
) -> Vec<SourceFile> {
    let holds = threads::ask_all(db, paths, |db, path| {
        with_text(db, path, |text| is_sought(path, text)).unwrap_or(false)
    });
    let found = paths.iter().zip(holds).filter(|(_, holds)| *holds);
    found.map(|(path, _)| db.file(path)).collect()
}

/// The files among `paths` whose text holds `word`.
pub(crate) fn mentioning(db: &dyn Db, paths: &[PathBuf], word: &str) -> Vec<SourceFile> {
    holding(db, paths, |_, text| mentions(text, word))
}

/// The files among `paths` that may have to do with kernels by what lies on the disk.
pub(crate) fn with_kernels(system: &dyn FileSystem, mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let concerns = |(): &(), path: &PathBuf| match system.read(path) {
        Some(text) => project::paths::may_concern_kernels(&path.to_string_lossy(), &text),
        None => system.problem(path).is_some(),
    };
    let mut found =
        threads::ask_with(&paths, vec![(); threads::available()], &concerns).into_iter();
    paths.retain(|_| found.next().unwrap_or(true));
    paths
}

/// Files that may mean something by a word.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// The files.
    pub(crate) files: Vec<SourceFile>,
    /// Where it is a parameter of a function, the names by which they may call that.
    pub(crate) callees: Vec<String>,
}

/// The files among `paths` that may mean `symbol` by `word`. Members of the language are those of
/// kernels. Of what a function binds they can mean parameters, as keywords of calls: those files call
/// the function by its name, or by one that it was given elsewhere.
pub(crate) fn of_symbol(db: &dyn Db, paths: &[PathBuf], symbol: &Symbol, word: &str) -> Candidates {
    let of_language = matches!(symbol, Symbol::Builtin(_) | Symbol::BuiltinParameter(..));
    let Symbol::Local(at, _) = symbol else {
        let files = holding(db, paths, |path, text| {
            let concerns = || project::paths::may_concern_kernels(&path.to_string_lossy(), text);
            mentions(text, word) && (!of_language || concerns())
        });
        return Candidates { files, callees: Vec::new() };
    };
    let Some(function) = project::function(&Analysis(db), *at) else {
        return Candidates::default();
    };
    let mut callees: Vec<String> = vec![function.name.to_string()];
    let mut files = Vec::new();
    let mut searched = 0;
    for _ in 0..MAX_ALIASES {
        let names = &callees[searched..];
        let hits = threads::ask_all(db, paths, |db, path| {
            let look = |text: &str| {
                let others = names.iter().flat_map(|name| aliases(text, name)).map(str::to_owned);
                let calls_one = names.iter().any(|name| calls(text, name));
                (calls_one && names_parameter(text, word), others.collect::<Vec<_>>())
            };
            with_text(db, path, look).unwrap_or_default()
        });
        searched = callees.len();
        for (path, (holds_both, others)) in paths.iter().zip(hits) {
            files.extend(holds_both.then(|| db.file(path)));
            for other in others {
                if callees.len() < MAX_CALLEES && !callees.contains(&other) {
                    callees.push(other);
                }
            }
        }
        if callees.len() == searched {
            break;
        }
    }
    let mut seen = FxHashSet::default();
    files.retain(|file| seen.insert(*file));
    Candidates { files, callees }
}

/// Whether a text calls or launches `name`, as far as characters tell.
fn calls(text: &str, name: &str) -> bool {
    let mut after = places(text, name).filter_map(|at| text.get(at + name.len()..));
    after.any(|after| after.trim_start_matches([' ', '\\', '\r', '\n']).starts_with(['(', '[']))
}

/// Whether a text names the parameter `word`, as a keyword or in quotes, as far as characters tell.
fn names_parameter(text: &str, word: &str) -> bool {
    places(text, word).any(|at| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let is_quoted = before.ends_with(['"', '\'']) && after.starts_with(['"', '\'']);
        let after = after.trim_start();
        is_quoted || after.starts_with('=') && !after.starts_with("==")
    })
}

/// Names that a text gives to what it calls `name`: `name as other`, `other = name` and
/// `other = wrapper(name)` where nothing is indented.
fn aliases<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> + 't {
    places(text, name).filter_map(move |at| {
        let after = text.get(at + name.len()..)?.trim_start_matches(' ');
        if let Some(other) = after.strip_prefix("as ") {
            let other = other.trim_start();
            let word = first_word(other)?;
            // Words of a sentence go on.
            let rest = other[word.len()..].trim_start_matches(' ');
            let ends = rest.is_empty() || rest.starts_with([',', ')', '#', '\\', ';', '\r', '\n']);
            return ends.then_some(word);
        }
        let start = text.get(..at)?.rfind('\n').map_or(0, |at| at + 1);
        let other = first_word(text.get(start..at)?)?;
        let rest = text.get(start + other.len()..at)?.trim_start();
        let is_bound = rest.starts_with('=') && !rest.starts_with("==");
        // A name in quotes stands for nothing.
        let is_value = !after.starts_with(['(', '[', '"', '\'']);
        (is_bound && is_value).then_some(other)
    })
}

/// The word that a text starts with.
fn first_word(text: &str) -> Option<&str> {
    let end = text.bytes().position(|byte| !is_word_byte(&byte)).unwrap_or(text.len());
    text.get(..end).filter(|word| !word.is_empty())
}

/// For each of the `open` files, with the [names](project::launching_names) by which others launch its
/// kernels, the files among `paths` that may do so: those that launch something or run by themselves and
/// have one of the names, and whatever else is open, since that may have one any moment.
pub(crate) fn importers(
    db: &dyn Db,
    paths: &[PathBuf],
    open: &FxHashMap<SourceFile, FxHashSet<Name>>,
) -> FxHashMap<FileId, Vec<FileId>> {
    let open: Vec<_> = open.iter().collect();
    let named = threads::ask_all(db, paths, |db, path| {
        let known = db.files().known(path);
        if known.is_some_and(|file| open.iter().any(|(open, _)| **open == file)) {
            return (0..open.len()).collect();
        }
        let names_one =
            |text: &str, names: &FxHashSet<Name>| names.iter().any(|name| mentions(text, name));
        let look = |text: &str| {
            if !project::paths::may_launch_others(&path.to_string_lossy(), text) {
                return Vec::new();
            }
            let named = open.iter().enumerate().filter(|(_, (_, names))| names_one(text, names));
            named.map(|(index, _)| index).collect::<Vec<_>>()
        };
        with_text(db, path, look).unwrap_or_default()
    });
    let mut found: FxHashMap<FileId, Vec<FileId>> = FxHashMap::default();
    for (path, named) in paths.iter().zip(named) {
        let others = named.into_iter().map(|index| open[index].0);
        for file in others.filter(|file| **file.path(db) != **path) {
            found.entry(file.id(db)).or_default().push(db.file(path).id(db));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_alone() {
        let text = "add, add_one, x.add(pre_add) # «add» addé";
        let found: Vec<&str> = places(text, "add").map(|at| &text[at..at + 4]).collect();
        assert_eq!(found, ["add,", "add("]);
    }

    #[test]
    fn other_names_are_found() {
        let text = "\
from a import f as g, h
import f as module
tuned = triton.autotune(configs)(f)
plain = f
result = f(1)
launched = f[grid](x)
same == f
    inner = f
__all__ = ['f']
# It takes f as the function, and f as is.
";
        let found: Vec<&str> = aliases(text, "f").collect();
        assert_eq!(found, ["g", "module", "tuned", "plain"]);
        assert_eq!(aliases("x = h(ff)\nf", "f").count(), 0);
        assert!(calls(text, "f") && !calls(text, "g"));
    }

    #[test]
    fn parameters_are_keywords_or_quoted() {
        for text in ["f(n=1)", "f(1, n = 1)", "{'n': 1}", "key=[\"n\"]"] {
            assert!(names_parameter(text, "n"), "{text}");
        }
        for text in ["f(n)", "n == 1", "f(nn=1)", "# of n: 1"] {
            assert!(!names_parameter(text, "n"), "{text}");
        }
    }
}
