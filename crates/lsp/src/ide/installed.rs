//! Where the installed Triton defines members of the language. Its files are read, never run.

use tile_compiler::builtins::{self, Builtin};
use tile_compiler::hir::{ItemKind, Name};
use tile_compiler::project::{self, ItemRef, Resolution, Scope, Sources};
use tile_compiler::source::{FileId, FileRange, TextRange};

use crate::db::{self, Analysis, Db, SourceFile};

/// Modules that define what others hand on in ways that are not followed, such as members that
/// a decorator puts into classes.
const DEFINING: [&str; 5] = [
    "triton.language.core",
    "triton.language.standard",
    "triton.language.math",
    "triton.language.random",
    "triton.language.extra.cuda.libdevice",
];

/// Where `builtin` is defined in the Triton that `file` imports; `None` where there is none, or it
/// defines no such member.
pub(crate) fn definition(db: &dyn Db, file: SourceFile, builtin: &Builtin) -> Option<FileRange> {
    if !builtin.module.starts_with(builtins::TRITON) {
        return None;
    }
    let sources = Analysis(db);
    let modules = [builtin.module].into_iter().chain(DEFINING);
    modules
        .filter_map(|module| {
            let path: Vec<Name> = module.split('.').map(Name::from).collect();
            sources.import(file.id(db), 0, &path)
        })
        .find_map(|module| {
            let handed_on = resolved(&sources, module, builtin.name);
            let item = handed_on.or_else(|| named(db, module, builtin.name))?;
            let name_range = project::item(&sources, item)?.name_range;
            Some(FileRange { file: item.file, range: name_range })
        })
}

/// The start of a module of the Triton that `file` imports, by its path inside the package, as
/// [`Resolution::TritonModule`] has it; `None` where there is none.
pub(crate) fn module(db: &dyn Db, file: SourceFile, path: &str) -> Option<FileRange> {
    let names =
        [builtins::TRITON].into_iter().chain(path.split('.').filter(|name| !name.is_empty()));
    let names: Vec<Name> = names.map(Name::from).collect();
    let found = Analysis(db).import(file.id(db), 0, &names)?;
    Some(FileRange { file: found, range: TextRange::default() })
}

/// What a module means by a name, where that is a function or class.
fn resolved(sources: &Analysis<'_>, module: FileId, name: &str) -> Option<ItemRef> {
    match project::resolve(sources, Scope { file: module, path: &[] }, name) {
        Resolution::Jit(at)
        | Resolution::Function(at)
        | Resolution::ConstexprFunction(at)
        | Resolution::Class(at) => Some(at),
        _ => None,
    }
}

/// The last function or class of a file that has this name, a method perhaps.
fn named(db: &dyn Db, module: FileId, name: &str) -> Option<ItemRef> {
    let contents = db::module(db, db.file_of(module)?);
    let is_definition = |index: &u32| {
        let item = &contents.items[*index as usize];
        matches!(item.kind, ItemKind::Function(_) | ItemKind::Class(_))
    };
    let index = contents.items_named(name).rfind(is_definition)?;
    Some(ItemRef { file: module, index })
}
