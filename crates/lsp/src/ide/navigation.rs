//! Where things are defined and used.

use std::path::PathBuf;

use rustc_hash::FxHashSet;
use tile_compiler::builtins::Builtin;
use tile_compiler::eval::value::Value;
use tile_compiler::hir::Name;
use tile_compiler::project::{self, ItemRef, Resolution, Scope};
use tile_compiler::source::{FileId, FileRange, TextRange};
use tree_sitter::Node;

use crate::db::{Analysis, Db, SourceFile};
use crate::ide::installed;
use crate::ide::mentions::{self, Candidates};
use crate::ide::symbol::{Semantics, Symbol, unified};
use crate::ide::tree::{ancestors, identifier_at, is_field, is_word, range};
use crate::threads;

/// Where what stands at `offset` is defined.
pub(crate) fn definition(db: &dyn Db, file: SourceFile, offset: usize) -> Option<FileRange> {
    let semantics = Semantics::new(db, file)?;
    match semantics.symbol_at(offset)? {
        (Symbol::Module(path), at) => {
            let import = || {
                let module = crate::db::module(db, file);
                let index = module.items_named(semantics.text.get(at.as_usize())?).next()?;
                let range = module.items[index as usize].name_range;
                Some(FileRange { file: file.id(db), range })
            };
            installed::module(db, file, &path).or_else(import)
        }
        (symbol, _) => definition_of(db, &symbol),
    }
}

/// The member of the language that stands at `offset`.
pub(crate) fn builtin_at(db: &dyn Db, file: SourceFile, offset: usize) -> Option<&'static Builtin> {
    match Semantics::new(db, file)?.symbol_at(offset)? {
        (Symbol::Builtin(builtin) | Symbol::BuiltinParameter(builtin, _), _) => Some(builtin),
        _ => None,
    }
}

/// Where the type of what stands at `offset` is defined: the class of an aggregate.
pub(crate) fn type_definition(db: &dyn Db, file: SourceFile, offset: usize) -> Option<FileRange> {
    let semantics = Semantics::new(db, file)?;
    let (symbol, at) = semantics.symbol_at(offset)?;
    if let Symbol::Item(item) = &symbol
        && let Resolution::Class(_) = project::resolve_item(&Analysis(db), *item)
    {
        return definition_of(db, &symbol);
    }
    let (item, function) = semantics.functions_around(offset).into_iter().next()?;
    let types = crate::db::types(db, file, item.index)?;
    let mut exprs = function.body.exprs.keys();
    let expr = exprs.find(|expr| function.map.exprs[*expr] == at)?;
    let (home, name) = match types.value(expr)? {
        Value::Object(object) => (object.class.file, object.class.class.name.clone()),
        Value::Class(class) => (class.file, class.class.name.clone()),
        Value::Tuple(tuple) => (file.id(db), tuple.named.as_ref()?.0.clone()),
        _ => return None,
    };
    let scope = Scope { file: home, path: &[] };
    match project::resolve(&Analysis(db), scope, &name) {
        Resolution::Class(class) => definition_of(db, &Symbol::Item(class)),
        _ => None,
    }
}

fn definition_of(db: &dyn Db, symbol: &Symbol) -> Option<FileRange> {
    match symbol {
        Symbol::Local(ItemRef { file, .. }, name) | Symbol::Variable(file, _, name) => {
            binding(db, *file, symbol, name)
        }
        Symbol::Item(at) => {
            let item = project::item(&Analysis(db), *at)?;
            Some(FileRange { file: at.file, range: item.name_range })
        }
        Symbol::File(file) => Some(FileRange { file: *file, range: TextRange::default() }),
        Symbol::Module(_) | Symbol::Builtin(_) | Symbol::BuiltinParameter(..) => None,
    }
}

/// Where a function or scenario first binds a name: its parameter, or the first target.
fn binding(db: &dyn Db, file: FileId, symbol: &Symbol, name: &str) -> Option<FileRange> {
    let mut uses = uses(db, db.file_of(file)?, symbol, name, &[]).into_iter();
    uses.find(|found| found.is_binding).map(|found| FileRange { file, range: found.range })
}

/// The word at `offset`, if it is one.
pub(crate) fn word_at(db: &dyn Db, file: SourceFile, offset: usize) -> Option<&str> {
    let semantics = Semantics::new(db, file)?;
    let node = identifier_at(semantics.root(), offset)?;
    Some(semantics.text_of(node))
}

/// Every place that means what stands at `offset`, in the files of `paths` that can, in the one around
/// it and in the one that defines it.
pub(crate) fn references(
    db: &dyn Db,
    file: SourceFile,
    offset: usize,
    paths: &[PathBuf],
) -> Vec<FileRange> {
    let found = occurrences_of(db, file, offset, paths);
    found.into_iter().map(|(file, found)| FileRange { file, range: found.range }).collect()
}

/// As [`references`], with how each word is used.
pub(crate) fn occurrences_of(
    db: &dyn Db,
    file: SourceFile,
    offset: usize,
    paths: &[PathBuf],
) -> Vec<(FileId, Occurrence)> {
    let found = Semantics::new(db, file).and_then(|semantics| {
        let (symbol, at) = semantics.symbol_at(offset)?;
        Some((unified(db, &symbol), semantics.text.get(at.as_usize())?.to_owned()))
    });
    let Some((symbol, word)) = found else { return Vec::new() };
    let mut files: Vec<(SourceFile, Vec<String>)> = vec![(file, Vec::new())];
    let home = match &symbol {
        Symbol::Local(ItemRef { file, .. }, _)
        | Symbol::Item(ItemRef { file, .. })
        | Symbol::Variable(file, ..) => db.file_of(*file),
        _ => None,
    };
    files.extend(home.map(|home| (home, Vec::new())));
    if is_seen_elsewhere(db, file, offset) {
        let Candidates { files: others, callees } = mentions::of_symbol(db, paths, &symbol, &word);
        files.extend(others.into_iter().map(|file| (file, callees.clone())));
    }
    let mut seen = FxHashSet::default();
    files.retain(|(file, _)| seen.insert(*file));
    let uses = threads::ask_all(db, &files, |db, (file, callees)| {
        let found = uses(db, *file, &symbol, &word, callees).into_iter();
        found.map(|found| (file.id(db), found.clone())).collect::<Vec<_>>()
    });
    uses.into_iter().flatten().collect()
}

/// Whether files other than the one that binds it can mean what stands at `offset`: of what functions
/// bind they can mean parameters alone, as keywords of calls.
fn is_seen_elsewhere(db: &dyn Db, file: SourceFile, offset: usize) -> bool {
    let Some(semantics) = Semantics::new(db, file) else { return false };
    let Some((symbol, at)) = semantics.symbol_at(offset) else { return false };
    let symbol = unified(db, &symbol);
    match &symbol {
        Symbol::Local(at, name) => project::function(&Analysis(db), *at)
            .is_some_and(|function| function.params.iter().any(|param| param.name == *name)),
        Symbol::Variable(..) => false,
        // Every file has its own name for a module of the language.
        Symbol::Module(_) => false,
        symbol => !is_alias(db, symbol, semantics.text.get(at.as_usize()).unwrap_or_default()),
    }
}

/// Whether a file calls something `word` that is called otherwise where it is defined.
pub(crate) fn is_alias(db: &dyn Db, symbol: &Symbol, word: &str) -> bool {
    match symbol {
        Symbol::Item(at) => {
            project::item(&Analysis(db), *at).is_some_and(|item| &*item.name != word)
        }
        Symbol::File(file) => {
            let path = db.file_of(*file).map(|file| file.path(db));
            let own = |path: &std::path::Path| {
                path.iter().rev().take(2).any(|part| {
                    std::path::Path::new(part).file_stem().is_some_and(|stem| stem == word)
                })
            };
            path.is_some_and(|path| !own(path))
        }
        _ => false,
    }
}

/// A word in a file and what it means there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Occurrence {
    /// Where it stands.
    pub(crate) range: TextRange,
    /// What it means: more than one thing where a string names parameters of several kernels.
    meanings: Vec<Symbol>,
    /// It is bound here.
    pub(crate) is_binding: bool,
    /// It is called or launched here, and not only mentioned.
    pub(crate) is_called: bool,
}

/// Where `word` stands in a file as a name; as that of a parameter of a function that is called one of
/// `callees` where there are any: what else it means may take long to find out. The tree of a file
/// that is not open is not kept, so what was found is: the same name is often asked for again.
#[salsa::tracked(returns(ref), lru = 512)]
fn occurrences(
    db: &dyn Db,
    file: SourceFile,
    word: String,
    callees: Vec<String>,
) -> Vec<Occurrence> {
    let text = file.text(db).as_ref().map_or("", |text| text.text());
    let mut places = mentions::places(text, &word).peekable();
    if places.peek().is_none() {
        // It need not be parsed.
        return Vec::new();
    }
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let root = semantics.root();
    let occurrence = |start: usize| {
        let node = root.descendant_for_byte_range(start, start + word.len());
        let node = node.filter(|node| is_word(*node) && node.byte_range().len() == word.len())?;
        let around = ancestors(root, node);
        if !callees.is_empty() && !may_be_parameter(&semantics, &around, &callees) {
            return None;
        }
        let mut meanings: Vec<Symbol> = semantics.symbol_below(&around, node).into_iter().collect();
        let owners = semantics.owners(node).into_iter();
        meanings.extend(owners.map(|at| Symbol::Local(at, Name::from(&*word))));
        meanings.iter_mut().for_each(|symbol| *symbol = unified(db, symbol));
        Some(Occurrence {
            range: range(node),
            meanings,
            is_binding: is_binding(node),
            is_called: is_called(&around, node),
        })
    };
    places.filter_map(occurrence).filter(|found| !found.meanings.is_empty()).collect()
}

/// Whether what lies in these nodes can name a parameter of a function that is called one of `callees`:
/// it is a keyword of a call of it, or stands in a string.
fn may_be_parameter(semantics: &Semantics<'_>, around: &[Node<'_>], callees: &[String]) -> bool {
    match around.last().map(Node::kind) {
        Some("string") => true,
        Some("keyword_argument") => {
            let call = around.iter().rev().find(|node| node.kind() == "call");
            let callee = call.and_then(|call| call.child_by_field_name("function"));
            let name = callee.map(|callee| semantics.text_of(called_name(callee)));
            name.is_some_and(|name| callees.iter().any(|callee| *callee == name))
        }
        _ => false,
    }
}

/// Places in one file that mean `symbol`, which is spelled `word`; see [`occurrences`].
fn uses<'db>(
    db: &'db dyn Db,
    file: SourceFile,
    symbol: &Symbol,
    word: &str,
    callees: &[String],
) -> Vec<&'db Occurrence> {
    let all = occurrences(db, file, word.to_owned(), callees.to_vec()).iter();
    let symbol = unified(db, symbol);
    all.filter(|found| found.meanings.contains(&symbol)).collect()
}

/// Whether the name `name`, which lies in these nodes, is called or launched, and not only mentioned.
fn is_called(around: &[Node<'_>], name: Node<'_>) -> bool {
    let mut calls = around.iter().filter(|node| node.kind() == "call");
    calls.any(|call| call.child_by_field_name("function").is_some_and(|it| called_name(it) == name))
}

/// The name of what is called, or launched on a grid, by its module or class as well.
pub(crate) fn called_name(callee: Node<'_>) -> Node<'_> {
    let field = match callee.kind() {
        "subscript" => "value",
        "attribute" => "attribute",
        _ => return callee,
    };
    callee.child_by_field_name(field).map_or(callee, called_name)
}

/// The places of one file that mean what stands at `offset`; true where it is bound.
pub(crate) fn highlights(db: &dyn Db, file: SourceFile, offset: usize) -> Vec<(TextRange, bool)> {
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let Some((symbol, at)) = semantics.symbol_at(offset) else { return Vec::new() };
    let Some(word) = semantics.text.get(at.as_usize()) else { return Vec::new() };
    let uses = uses(db, file, &symbol, word, &[]).into_iter();
    uses.map(|found| (found.range, found.is_binding)).collect()
}

fn is_binding(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    let is = |field: &str| is_field(parent, field, node);
    match parent.kind() {
        "assignment" | "augmented_assignment" | "for_statement" => is("left"),
        "named_expression" | "function_definition" | "default_parameter" => is("name"),
        "typed_default_parameter" => is("name"),
        "parameters" | "lambda_parameters" | "typed_parameter" => true,
        "pattern_list" | "tuple_pattern" | "list_splat_pattern" | "dictionary_splat_pattern" => {
            true
        }
        "for_in_clause" => is("left"),
        "as_pattern_target" => true,
        _ => false,
    }
}
