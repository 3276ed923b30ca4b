//! How host code comes from file to file: the functions and classes of other files that a file calls, and
//! what these call in turn, as a test calls a module's method, which calls an operation, which launches
//! a kernel in a third file.

use std::cell::OnceCell;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::launchers::{Mentions, decorated_by, outermost};
use super::{ItemRef, Resolution, Scope, Sources, item, resolve, resolve_item};
use crate::hir::{Body, Expr, ExprId, Item, ItemKind, Module, Name, Stmt};
use crate::source::FileId;

/// Files that are gone through from one on.
const MAX_FILES: usize = 256;

/// The folder of a Python environment: what a package in it calls in others is its own business.
const ENVIRONMENT: &str = "/site-packages/";

/// A function or class at the top of a file, or what stands in it, by its name.
pub(crate) type Place = (FileId, Name);

/// The way to a function or class of another file.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Where it leads.
    to: Place,
    /// The names of the file's own functions and classes from which it leads there.
    from: Arc<FxHashSet<Name>>,
}

/// A function or class of another file that a file imports, or has in a module that it imports.
pub(crate) struct Imported {
    /// The name by which the file has it, or the module.
    pub(crate) name: Name,
    /// What it is.
    pub(crate) at: ItemRef,
    /// Whether the name is that of the module.
    is_member: bool,
}

/// The functions and classes of other files that `file` imports, or has in a module that it imports.
pub(super) fn imported(sources: &dyn Sources, file: FileId) -> Vec<Imported> {
    let mut found = Vec::new();
    let module = sources.module(file).unwrap_or_default();
    let named = OnceCell::new();
    for (name, meant) in imports(sources, file).iter().cloned() {
        let (members, is_member) = match meant {
            Resolution::File(other) if other != file => {
                let named = named.get_or_init(|| members_named(&module));
                (exported(sources, other, named), true)
            }
            meant => match callable(sources, meant) {
                Some(at) => (vec![at], false),
                None => continue,
            },
        };
        let members = members.into_iter().filter(|at| at.file != file);
        found.extend(members.map(|at| Imported { name: name.clone(), at, is_member }));
    }
    found
}

/// What the imports of a file bind.
fn imports(sources: &dyn Sources, file: FileId) -> Arc<[(Name, Resolution)]> {
    let find = || {
        let module = sources.module(file).unwrap_or_default();
        let items = (0..).zip(&module.items).filter(|(_, item)| is_import(item));
        let meant = |index| resolve_item(sources, ItemRef { file, index });
        items.map(|(index, item)| (item.name.clone(), meant(index))).collect()
    };
    match sources.facts() {
        Some(facts) => facts.imports.get(file, find),
        None => find(),
    }
}

fn is_import(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Import { .. } | ItemKind::ImportFrom { .. })
}

/// What may be called of what a name means: a function, a class, or what a module has made of them.
fn callable(sources: &dyn Sources, meant: Resolution) -> Option<ItemRef> {
    match meant {
        Resolution::Function(at) | Resolution::Class(at) => Some(at),
        Resolution::Constant(at) => item(sources, at).filter(is_made_of_others).map(|_| at),
        _ => None,
    }
}

/// Whether a module makes a value of what has names: a member, a function, or a table of such.
fn is_made_of_others(item: &Item) -> bool {
    match &item.kind {
        ItemKind::Assign { body, value, .. } => matches!(
            body.exprs[*value],
            Expr::Attribute { .. }
                | Expr::Call { .. }
                | Expr::Dict(_)
                | Expr::Lambda { .. }
                | Expr::List(_)
        ),
        _ => false,
    }
}

/// The functions and classes of a module at its top, its own and those that it imports, and what it has
/// made of them that is called by one of these names.
fn exported(sources: &dyn Sources, file: FileId, named: &FxHashSet<&Name>) -> Vec<ItemRef> {
    let module = sources.module(file).unwrap_or_default();
    let is_own = |item: &Item| {
        item.scope.is_empty()
            && match item.kind {
                ItemKind::Function(_) | ItemKind::Class(_) => true,
                ItemKind::Assign { .. } => named.contains(&item.name) && is_made_of_others(item),
                _ => false,
            }
    };
    let items = (0..).zip(&module.items).filter(|(_, item)| is_own(item));
    let own = items.map(|(index, _)| ItemRef { file, index });
    let imports = imports(sources, file);
    let brought = imports.iter().cloned().filter_map(|(name, meant)| match meant {
        Resolution::Constant(_) if !named.contains(&name) => None,
        meant => callable(sources, meant),
    });
    own.chain(brought).collect()
}

/// The place that something belongs to.
pub(super) fn place(sources: &dyn Sources, at: ItemRef) -> Option<Place> {
    item(sources, at).map(|item| (at.file, outermost(&item).clone()))
}

/// The functions and classes that host code comes to which begins with those at `from`, as far as names
/// tell, and those `registered` in a file by others that it comes to.
pub(crate) fn reached(
    sources: &dyn Sources,
    from: Vec<Place>,
    registered: &[(Place, FileId)],
) -> FxHashSet<Place> {
    let mut open = from;
    let mut found = FxHashSet::default();
    let mut files = FxHashSet::default();
    while let Some(place) = open.pop() {
        if found.contains(&place) || (!files.contains(&place.0) && files.len() == MAX_FILES) {
            continue;
        }
        if files.insert(place.0) {
            let here = registered.iter().filter(|(_, with)| *with == place.0);
            open.extend(here.map(|(registered, _)| registered.clone()));
        }
        let ways = routes(sources, place.0);
        let ways = ways.iter().filter(|route| route.from.contains(&place.1));
        open.extend(ways.map(|route| route.to.clone()).filter(|to| !found.contains(to)));
        found.insert(place);
    }
    found
}

/// The names by which other files may come, through a file, to what it has by one of `called`.
pub fn calling_names(
    sources: &dyn Sources,
    file: FileId,
    called: &FxHashSet<Name>,
) -> FxHashSet<Name> {
    let module = sources.module(file).unwrap_or_default();
    let imported = module.items.iter().filter(|item| is_import(item)).map(|item| &item.name);
    let named: FxHashSet<Name> = imported.filter(|name| called.contains(*name)).cloned().collect();
    match named.is_empty() {
        true => FxHashSet::default(),
        false => Mentions::of(sources, file).reaching(named),
    }
}

/// Whether a file has functions that may register what they are given: they change what is not their own,
/// and give that back.
pub(crate) fn registers(sources: &dyn Sources, file: FileId) -> bool {
    let module = sources.module(file).unwrap_or_default();
    module.items.iter().any(|item| match &item.kind {
        ItemKind::Function(function) => {
            let is_given = |value: &ExprId| {
                let given = function.body.exprs[*value].as_name();
                given.is_some_and(|name| function.params.iter().any(|param| param.name == *name))
            };
            !function.changes.is_empty()
                && function
                    .body
                    .stmts
                    .values()
                    .any(|stmt| matches!(stmt, Stmt::Return(Some(value)) if is_given(value)))
        }
        _ => false,
    })
}

/// The functions and classes that decorators of other files register there, in the files that `file`
/// imports, each with that file.
pub(super) fn registered_for(sources: &dyn Sources, file: FileId) -> Vec<(Place, FileId)> {
    let files = imported_files(sources, file).into_iter();
    files.flat_map(|file| registered(sources, file).to_vec()).collect()
}

/// The functions and classes of a file that decorators of others register there.
fn registered(sources: &dyn Sources, file: FileId) -> Arc<[(Place, FileId)]> {
    let find = || {
        let module = sources.module(file).unwrap_or_default();
        let scope = Scope { file, path: &[] };
        let with = |name: &Name| {
            let other = callable(sources, resolve(sources, scope, name))?.file;
            (other != file && !is_of_environment(sources, other)).then_some(other)
        };
        let mut known: FxHashMap<&Name, Option<FileId>> = FxHashMap::default();
        let mut found = Vec::new();
        for item in &module.items {
            for name in decorated_by(item) {
                let other = *known.entry(name).or_insert_with(|| with(name));
                found.extend(other.map(|other| ((file, item.name.clone()), other)));
            }
        }
        found.into()
    };
    match sources.facts() {
        Some(facts) => facts.registered.get(file, find),
        None => find(),
    }
}

/// The files that a file imports with the packages that they are in, and those that these packages import,
/// those first that are imported first, with the file itself.
pub(crate) fn imported_files(sources: &dyn Sources, file: FileId) -> Vec<FileId> {
    fn add(
        sources: &dyn Sources,
        file: FileId,
        begun: &mut FxHashSet<FileId>,
        found: &mut Vec<FileId>,
    ) {
        if begun.len() < MAX_FILES && begun.insert(file) {
            // What registers anything is imported by who uses it, or by its package.
            let package = sources.import(file, 1, &[]).filter(|package| *package != file);
            match package {
                Some(package) => add(sources, package, begun, found),
                None => {
                    imported_by(sources, file).iter().for_each(|at| add(sources, *at, begun, found))
                }
            }
            found.push(file);
        }
    }
    let mut found = Vec::new();
    let mut begun = FxHashSet::default();
    imported_by(sources, file).iter().for_each(|at| add(sources, *at, &mut begun, &mut found));
    add(sources, file, &mut begun, &mut found);
    found
}

/// The files that a file imports itself, and the package that it is in.
fn imported_by(sources: &dyn Sources, file: FileId) -> Arc<[FileId]> {
    let find = || {
        let meant = imports(sources, file);
        let files = meant.iter().filter_map(|(_, meant)| match meant {
            Resolution::File(file) => Some(*file),
            Resolution::Function(at)
            | Resolution::Class(at)
            | Resolution::Constant(at)
            | Resolution::Jit(at) => Some(at.file),
            _ => None,
        });
        let mut found: Vec<FileId> = Vec::new();
        for other in sources.import(file, 1, &[]).into_iter().chain(files) {
            if other != file && !found.contains(&other) && !is_of_environment(sources, other) {
                found.push(other);
            }
        }
        found.into()
    };
    match sources.facts() {
        Some(facts) => facts.imported.get(file, find),
        None => find(),
    }
}

/// Whether a file is of a package that is installed.
pub(crate) fn is_of_environment(sources: &dyn Sources, file: FileId) -> bool {
    sources.path(file).contains(ENVIRONMENT)
}

/// The ways that lead out of a file.
fn routes(sources: &dyn Sources, file: FileId) -> Arc<[Route]> {
    let find = || {
        let imported = match is_of_environment(sources, file) {
            true => Vec::new(),
            false => imported(sources, file),
        };
        if imported.is_empty() {
            return Arc::default();
        }
        let module = sources.module(file).unwrap_or_default();
        let (mentions, members) = (Mentions::of(sources, file), members_named(&module));
        let mut routes: Vec<Route> = Vec::new();
        let mut known: Option<(Name, Arc<FxHashSet<Name>>)> = None;
        for Imported { name, at, is_member } in imported {
            let Some(to) = place(sources, at) else { continue };
            if is_member && !members.contains(&to.1) {
                continue;
            }
            let from = match &known {
                Some((known, from)) if *known == name => Arc::clone(from),
                _ => Arc::new(mentions.reaching(FxHashSet::from_iter([name.clone()]))),
            };
            known = Some((name, Arc::clone(&from)));
            routes.push(Route { to, from });
        }
        routes.into()
    };
    match sources.facts() {
        Some(facts) => facts.routes.get(file, find),
        None => find(),
    }
}

/// The names after dots in the code of a module.
fn members_named(module: &Module) -> FxHashSet<&Name> {
    fn named(body: &Body) -> impl Iterator<Item = &Name> {
        body.exprs.values().filter_map(|expr| match expr {
            Expr::Attribute { attr, .. } => Some(attr),
            _ => None,
        })
    }
    let bodies = module.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Function(function) => Some(&function.body),
        ItemKind::Assign { body, .. } => Some(body),
        ItemKind::Class(class) => Some(&class.body),
        _ => None,
    });
    bodies.chain(module.mains.iter().map(|main| &main.body)).flat_map(|body| named(body)).collect()
}
