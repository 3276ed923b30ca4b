//! Giving things other names, where that leaves all else as it is.

use tile_compiler::hir::{Function, Item, ItemKind, Name};
use tile_compiler::project::{self, ItemRef};
use tile_compiler::source::{FileRange, TextRange};

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::navigation;
use crate::ide::symbol::{Semantics, Symbol, bindings_beside, locals, unified};
use crate::threads;

/// What stands at `offset` if it can get another name.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn renamable(db: &dyn Db, file: SourceFile, offset: usize) -> Result<TextRange, String> {
    let found = Semantics::new(db, file).and_then(|semantics| semantics.symbol_at(offset));
    match found {
        Some((Symbol::Item(item), _)) if is_member(db, item) => {
            Err("members of classes keep their names: not all of their uses are known".to_owned())
        }
        Some((Symbol::Item(item), at)) => match imported_beside(db, item) {
            Some(name) => Err(format!(
                "`{name}` is also what an import calls it; write `as` another name there first"
            )),
            None => Ok(at),
        },
        Some((Symbol::Local(..) | Symbol::Variable(..), at)) => Ok(at),
        Some((Symbol::Module(_) | Symbol::Builtin(_) | Symbol::BuiltinParameter(..), _)) => {
            Err("this name belongs to the language".to_owned())
        }
        Some((symbol @ Symbol::File(_), at))
            if navigation::word_at(db, file, offset)
                .is_some_and(|word| navigation::is_alias(db, &symbol, word)) =>
        {
            Ok(at)
        }
        Some((Symbol::File(_), _)) => Err("rename the file to rename a module".to_owned()),
        None => Err("there is nothing here that can be renamed".to_owned()),
    }
}

/// The name of an item that has another binding: an import of what cannot be read, by its own name.
fn imported_beside(db: &dyn Db, at: ItemRef) -> Option<Name> {
    let Symbol::Item(first) = unified(db, &Symbol::Item(at)) else { return None };
    bindings_beside(db, first).into_iter().find_map(|at| {
        let item = project::item(&Analysis(db), at)?;
        let own = match &item.kind {
            ItemKind::Import { path, .. } => path.first(),
            ItemKind::ImportFrom { member, .. } => Some(member),
            _ => None,
        };
        (own == Some(&item.name)).then(|| item.name.clone())
    })
}

/// Whether an item belongs to a class.
fn is_member(db: &dyn Db, at: ItemRef) -> bool {
    let item = project::item(&Analysis(db), at);
    let home = db.file_of(at.file).map(|home| db::module(db, home));
    let (Some(item), Some(home)) = (item, home) else { return false };
    let Some((class, around)) = item.scope.split_last() else { return false };
    let mut classes = home.items_named(class).map(|index| &home.items[index as usize]);
    classes.any(|found| matches!(found.kind, ItemKind::Class(_)) && found.scope == around)
}

/// Why what stands at `offset`, and at all of `places`, cannot be called `name`.
pub(crate) fn taken(
    db: &dyn Db,
    file: SourceFile,
    offset: usize,
    name: &str,
    places: &[FileRange],
) -> Option<String> {
    let (symbol, at) = Semantics::new(db, file)?.symbol_at(offset)?;
    let text = file.text(db).as_ref()?.text();
    if text.get(at.as_usize()) == Some(name) {
        return None;
    }
    let bound = match &symbol {
        Symbol::Local(at, _) => taken_in_function(db, *at, name),
        Symbol::Item(at) => taken_in_file(db, *at, name),
        Symbol::Variable(file, index, _) => {
            let scenario = &db::module(db, db.file_of(*file)?).scenarios[*index];
            let is_taken = scenario.body.exprs.values().any(|expr| expr.is_name(name));
            is_taken.then(|| format!("the scenario has a `{name}` already"))
        }
        _ => None,
    };
    let around = || {
        let taken = threads::ask_all(db, places, |db, at| taken_around(db, *at, &symbol, name));
        taken.into_iter().flatten().next()
    };
    bound.or_else(around)
}

fn taken_in_function(db: &dyn Db, at: ItemRef, name: &str) -> Option<String> {
    let function = project::function(&Analysis(db), at)?;
    if locals(&function).contains(&name) {
        return Some(format!("`{}` has a `{name}` already", function.name));
    }
    let around = project::item(&Analysis(db), at)?.range;
    let home = db::module(db, db.file_of(at.file)?);
    let inside = home.items.iter().filter(|item| around.contains_range(item.range));
    let user = functions(inside).find(|function| uses_name(function, name))?;
    Some(format!("`{}` uses a `{name}` that it would not find any more", user.name))
}

fn taken_in_file(db: &dyn Db, at: ItemRef, name: &str) -> Option<String> {
    let home = db.file_of(at.file)?;
    let scope = &project::item(&Analysis(db), at)?.scope;
    let module = db::module(db, home);
    let defines = module.items.iter().any(|item| &*item.name == name && item.scope == *scope);
    let file = home.path(db).file_name()?.to_string_lossy();
    if defines {
        return Some(format!("`{file}` defines a `{name}` already"));
    }
    let uses =
        |function: &&Function| uses_name(function, name) && !locals(function).contains(&name);
    let user = functions(module.items.iter()).find(uses)?;
    Some(format!("`{}` uses a `{name}` that it would not find any more", user.name))
}

/// Why what stands at `place` cannot be called `name` there.
fn taken_around(db: &dyn Db, place: FileRange, symbol: &Symbol, name: &str) -> Option<String> {
    let file = db.file_of(place.file)?;
    let semantics = Semantics::new(db, file)?;
    let (start, end) = (place.range.start as usize, place.range.end as usize);
    let node = semantics.root().descendant_for_byte_range(start, end)?;
    let owners = semantics.owners(node);
    if let [first, second, ..] = owners[..] {
        let functions = [first, second].map(|at| project::function(&Analysis(db), at));
        let [Some(first), Some(second)] = functions else { return None };
        return Some(format!(
            "`{}` and `{}` share the configurations or the grid that name it",
            first.name, second.name
        ));
    }
    let is_member = node.parent().is_some_and(|parent| parent.kind() == "attribute");
    if !matches!(symbol, Symbol::Item(_)) || is_member {
        return None;
    }
    let functions = semantics.functions_around(start);
    if let Some((_, around)) = functions.iter().find(|(_, it)| locals(it).contains(&name)) {
        return Some(format!("`{}` has a `{name}` of its own", around.name));
    }
    let mut items = db::module(db, file).items.iter();
    let is_taken = items.any(|item| &*item.name == name && item.scope.is_empty());
    let path = file.path(db).file_name()?.to_string_lossy();
    is_taken.then(|| format!("`{path}` defines a `{name}` already"))
}

fn functions<'m>(items: impl Iterator<Item = &'m Item>) -> impl Iterator<Item = &'m Function> {
    items.filter_map(|item| match &item.kind {
        ItemKind::Function(function) => Some(&**function),
        _ => None,
    })
}

fn uses_name(function: &Function, name: &str) -> bool {
    function.body.exprs.values().any(|expr| expr.is_name(name))
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
