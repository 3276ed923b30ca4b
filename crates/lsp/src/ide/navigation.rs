//! Where things are defined and used, and giving them other names.

use rustc_hash::FxHashSet;
use tile_compiler::builtins::Builtin;
use tile_compiler::eval::value::Value;
use tile_compiler::project::{self, ItemRef, Resolution, Scope};
use tile_compiler::source::{FileId, FileRange, TextRange};

use crate::db::{Analysis, Db, SourceFile};
use crate::ide::installed;
use crate::ide::symbol::{Semantics, Symbol, is_word, range};

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
    let file = db.file_of(file)?;
    let semantics = Semantics::new(db, file)?;
    let binds = |at: &FileRange| {
        let around = (at.range.start as usize, at.range.end as usize);
        let node = semantics.root().descendant_for_byte_range(around.0, around.1);
        node.is_some_and(is_binding)
    };
    uses(db, file, symbol, name).into_iter().find(binds)
}

/// The word at `offset`, if it is one.
pub(crate) fn word_at(db: &dyn Db, file: SourceFile, offset: usize) -> Option<&str> {
    let semantics = Semantics::new(db, file)?;
    let node = crate::ide::symbol::identifier_at(semantics.root(), offset)?;
    Some(semantics.text_of(node))
}

/// Every place that means what stands at `offset`, in the files of `among` and in the one that
/// defines it.
pub(crate) fn references(
    db: &dyn Db,
    file: SourceFile,
    offset: usize,
    among: &[SourceFile],
) -> Vec<FileRange> {
    let found = Semantics::new(db, file).and_then(|semantics| {
        let (symbol, at) = semantics.symbol_at(offset)?;
        Some((symbol, semantics.text.get(at.as_usize())?.to_owned()))
    });
    let Some((symbol, word)) = found else { return Vec::new() };
    let mut files: Vec<SourceFile> = vec![file];
    let home = match &symbol {
        Symbol::Local(ItemRef { file, .. }, _)
        | Symbol::Item(ItemRef { file, .. })
        | Symbol::Variable(file, ..) => db.file_of(*file),
        _ => None,
    };
    files.extend(home);
    files.extend(among);
    let mut seen = FxHashSet::default();
    files.retain(|file| seen.insert(*file));
    files.into_iter().flat_map(|file| uses(db, file, &symbol, &word)).collect()
}

/// Whether files other than the one that binds it can mean what stands at `offset`: of what functions
/// bind they can mean parameters alone, as keywords of calls.
pub(crate) fn is_seen_elsewhere(db: &dyn Db, file: SourceFile, offset: usize) -> bool {
    let Some(semantics) = Semantics::new(db, file) else { return false };
    let Some((symbol, at)) = semantics.symbol_at(offset) else { return false };
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

/// Places in one file that mean `symbol`, which is spelled `word`.
pub(crate) fn uses(db: &dyn Db, file: SourceFile, symbol: &Symbol, word: &str) -> Vec<FileRange> {
    let has_word = file.text(db).as_ref().is_some_and(|text| text.text().contains(word));
    if !has_word {
        // It need not be parsed.
        return Vec::new();
    }
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let root = semantics.root();
    let id = file.id(db);
    let mut found = Vec::new();
    for (start, _) in semantics.text.match_indices(word) {
        let node = root.descendant_for_byte_range(start, start + word.len());
        let Some(node) = node.filter(|node| is_word(*node)) else { continue };
        if range(node) == TextRange::new(start, start + word.len())
            && means(&semantics, node, symbol)
        {
            found.push(FileRange { file: id, range: range(node) });
        }
    }
    found
}

fn means(semantics: &Semantics<'_>, node: tree_sitter::Node<'_>, symbol: &Symbol) -> bool {
    if semantics.symbol(node).as_ref() == Some(symbol) {
        return true;
    }
    // A string can name parameters of several kernels.
    matches!(symbol, Symbol::Local(at, _) if semantics.owners(node).contains(at))
}

/// The places of one file that mean what stands at `offset`; true where it is bound.
pub(crate) fn highlights(db: &dyn Db, file: SourceFile, offset: usize) -> Vec<(TextRange, bool)> {
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let Some((symbol, at)) = semantics.symbol_at(offset) else { return Vec::new() };
    let Some(word) = semantics.text.get(at.as_usize()) else { return Vec::new() };
    let root = semantics.root();
    let uses = uses(db, file, &symbol, word).into_iter().map(|at| at.range);
    uses.map(|at| {
        let node = root.descendant_for_byte_range(at.start as usize, at.end as usize);
        (at, node.is_some_and(is_binding))
    })
    .collect()
}

fn is_binding(node: tree_sitter::Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    let is = |field: &str| crate::ide::symbol::is_field(parent, field, node);
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
