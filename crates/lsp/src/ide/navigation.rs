//! Where things are defined and used, and giving them other names.

use rustc_hash::FxHashSet;
use tile_compiler::builtins::Builtin;
use tile_compiler::eval::value::Value;
use tile_compiler::hir::{Expr, Stmt};
use tile_compiler::project::{self, ItemRef, Resolution, Scope};
use tile_compiler::source::{FileRange, TextRange};

use crate::db::{Analysis, Db, SourceFile};
use crate::ide::installed;
use crate::ide::symbol::{Semantics, Symbol, range};

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
        Symbol::Local(at, name) => binding(db, *at, name),
        Symbol::Item(at) => {
            let item = project::item(&Analysis(db), *at)?;
            Some(FileRange { file: at.file, range: item.name_range })
        }
        Symbol::File(file) => Some(FileRange { file: *file, range: TextRange::default() }),
        Symbol::Module(_) | Symbol::Builtin(_) | Symbol::BuiltinParameter(..) => None,
    }
}

/// Where a function first binds a name: its parameter, or the first target.
fn binding(db: &dyn Db, at: ItemRef, name: &str) -> Option<FileRange> {
    let function = project::function(&Analysis(db), at)?;
    let param = function.params.iter().find(|param| &*param.name == name);
    let targets = function.body.stmts.values().flat_map(|stmt| match stmt {
        Stmt::Assign { targets, .. } => targets.clone(),
        Stmt::AnnAssign { target, .. } | Stmt::For { target, .. } => vec![*target],
        _ => Vec::new(),
    });
    let named = |range: &TextRange| {
        let names = function
            .body
            .exprs
            .iter()
            .filter(|(_, expr)| matches!(expr, Expr::Name(found) if &**found == name));
        let inside =
            names.map(|(id, _)| function.map.exprs[id]).filter(|at| range.contains_range(*at));
        inside.min()
    };
    let target = || targets.filter_map(|target| named(&function.map.exprs[target])).min();
    let range = param.map(|param| param.range).or_else(target)?;
    Some(FileRange { file: at.file, range })
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
        Symbol::Local(at, _) | Symbol::Item(at) => db.file_of(at.file),
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
    let symbol = Semantics::new(db, file).and_then(|semantics| semantics.symbol_at(offset));
    match symbol {
        Some((Symbol::Local(at, name), _)) => project::function(&Analysis(db), at)
            .is_some_and(|function| function.params.iter().any(|param| param.name == name)),
        // Every file has its own name for a module of the language.
        Some((Symbol::Module(_), _)) => false,
        other => other.is_some(),
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
        let Some(node) = node.filter(|node| node.kind() == "identifier") else { continue };
        if range(node) == TextRange::new(start, start + word.len())
            && semantics.symbol(node).as_ref() == Some(symbol)
        {
            found.push(FileRange { file: id, range: range(node) });
        }
    }
    found
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
        "parameters" | "typed_parameter" => true,
        "pattern_list" | "tuple_pattern" => true,
        _ => false,
    }
}

/// What stands at `offset` if it can get another name.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn renamable(db: &dyn Db, file: SourceFile, offset: usize) -> Result<TextRange, String> {
    let found = Semantics::new(db, file).and_then(|semantics| semantics.symbol_at(offset));
    match found {
        Some((Symbol::Local(..) | Symbol::Item(_), at)) => Ok(at),
        Some((Symbol::Module(_) | Symbol::Builtin(_) | Symbol::BuiltinParameter(..), _)) => {
            Err("this name belongs to the language".to_owned())
        }
        Some((Symbol::File(_), _)) => Err("rename the file to rename a module".to_owned()),
        None => Err("there is nothing here that can be renamed".to_owned()),
    }
}

/// Why what stands at `offset` cannot be called `name`: something around it is.
pub(crate) fn taken(db: &dyn Db, file: SourceFile, offset: usize, name: &str) -> Option<String> {
    let (symbol, at) = Semantics::new(db, file)?.symbol_at(offset)?;
    let text = file.text(db).as_ref()?.text();
    if text.get(at.as_usize()) == Some(name) {
        return None;
    }
    let sources = Analysis(db);
    match symbol {
        Symbol::Local(at, _) => {
            let function = project::function(&sources, at)?;
            let is_taken = crate::ide::symbol::locals(&function).contains(&name);
            is_taken.then(|| format!("`{}` has a `{name}` already", function.name))
        }
        Symbol::Item(at) => {
            let home = db.file_of(at.file)?;
            let scope = &project::item(&sources, at)?.scope;
            let mut items = crate::db::module(db, home).items.iter();
            let is_taken = items.any(|item| &*item.name == name && item.scope == *scope);
            let file = home.path(db).file_name()?.to_string_lossy();
            is_taken.then(|| format!("`{file}` defines a `{name}` already"))
        }
        _ => None,
    }
}

/// True for a word that Python takes as a name.
pub(crate) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = chars.next().is_some_and(|c| c == '_' || c.is_alphabetic());
    starts && chars.all(|c| c == '_' || c.is_alphanumeric()) && !KEYWORDS.contains(&text)
}

/// Words that Python keeps for itself.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];
