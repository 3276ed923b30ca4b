//! How host code comes from file to file: the functions and classes of other files that a file calls, and
//! what these call in turn, as a test calls a module's method, which calls an operation, which launches
//! a kernel in a third file.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::launchers::{Mentions, outermost};
use super::{ItemRef, Resolution, Sources, item, resolve_item};
use crate::hir::{Body, Expr, Item, ItemKind, Module, Name};
use crate::source::FileId;

/// Files that are gone through from one on.
const MAX_FILES: usize = 64;

/// The folder of a Python environment: what a package in it calls in others is its own business.
const ENVIRONMENT: &str = "/site-packages/";

/// A function or class at the top of a file, or what stands in it, by its name.
pub(crate) type Place = (FileId, Name);

/// The way to a function or class of another file.
#[derive(Debug)]
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
    for (name, meant) in imports(sources, file) {
        let (members, is_member) = match meant {
            Resolution::File(module) if module != file => (exported(sources, module), true),
            Resolution::Function(at) | Resolution::Class(at) => (vec![at], false),
            _ => continue,
        };
        let members = members.into_iter().filter(|at| at.file != file);
        found.extend(members.map(|at| Imported { name: name.clone(), at, is_member }));
    }
    found
}

/// What the imports of a file bind.
fn imports(sources: &dyn Sources, file: FileId) -> Vec<(Name, Resolution)> {
    let module = sources.module(file).unwrap_or_default();
    let is_import =
        |item: &Item| matches!(item.kind, ItemKind::Import { .. } | ItemKind::ImportFrom { .. });
    let items = (0..).zip(&module.items).filter(|(_, item)| is_import(item));
    items
        .map(|(index, item)| (item.name.clone(), resolve_item(sources, ItemRef { file, index })))
        .collect()
}

/// The functions and classes of a module at its top, its own and those that it imports.
fn exported(sources: &dyn Sources, file: FileId) -> Vec<ItemRef> {
    let module = sources.module(file).unwrap_or_default();
    let is_own = |item: &Item| {
        item.scope.is_empty() && matches!(item.kind, ItemKind::Function(_) | ItemKind::Class(_))
    };
    let items = (0..).zip(&module.items).filter(|(_, item)| is_own(item));
    let own = items.map(|(index, _)| ItemRef { file, index });
    let brought = imports(sources, file).into_iter().filter_map(|(_, meant)| match meant {
        Resolution::Function(at) | Resolution::Class(at) => Some(at),
        _ => None,
    });
    own.chain(brought).collect()
}

/// The place that something belongs to.
pub(super) fn place(sources: &dyn Sources, at: ItemRef) -> Option<Place> {
    item(sources, at).map(|item| (at.file, outermost(&item).clone()))
}

/// The functions and classes that host code comes to which begins with those at `from`, as far as names
/// tell: `from` first.
pub(crate) fn reached(sources: &dyn Sources, from: ItemRef) -> Vec<Place> {
    let mut open: Vec<Place> = place(sources, from).into_iter().collect();
    let mut found: Vec<Place> = Vec::new();
    let mut files = FxHashSet::default();
    while let Some(place) = open.pop() {
        if found.contains(&place) || (!files.contains(&place.0) && files.len() == MAX_FILES) {
            continue;
        }
        files.insert(place.0);
        let ways = routes(sources, place.0);
        let ways = ways.iter().filter(|route| route.from.contains(&place.1));
        open.extend(ways.map(|route| route.to.clone()));
        found.push(place);
    }
    found
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
