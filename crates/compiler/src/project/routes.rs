//! How host code comes from file to file: the functions and classes of other files that a file calls, and
//! what these call in turn, as a test calls a module's method, which calls an operation, which launches
//! a kernel in a third file.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Sources;
use super::launchers::mentions;
use super::ways::{Place, is_of_environment, ways};
use crate::hir::{Body, Expr, ItemKind, Module, Name, collections};
use crate::source::FileId;

/// Files that are gone through from one on, the nearest first: all of a small project, and of a large one those
/// around.
const MAX_FILES: usize = 64;

/// The functions and classes that host code comes to which begins with those at `from`, as far as names
/// tell, and those `registered` in a file by others that it comes to.
pub(crate) fn reached(
    sources: &dyn Sources,
    from: Vec<Place>,
    registered: &[(Place, FileId)],
) -> FxHashSet<Place> {
    let mut open = VecDeque::from(from);
    let mut found = FxHashSet::default();
    let mut files = FxHashSet::default();
    while let Some(place) = open.pop_front() {
        if found.contains(&place) || (!files.contains(&place.0) && files.len() == MAX_FILES) {
            continue;
        }
        if files.insert(place.0) {
            let here = registered.iter().filter(|(_, with)| *with == place.0);
            open.extend(here.map(|(registered, _)| registered.clone()));
        }
        if !is_of_environment(sources, place.0) {
            let ways = ways(sources, place.0);
            open.extend(ways.from(&place.1).filter(|to| !found.contains(*to)).cloned());
        }
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
    let imported = module.items.iter().filter(|item| item.is_import()).map(|item| &item.name);
    let owners = owners(&module, called);
    let comes = |name: &&Name| called.contains(*name) || owners.contains(*name);
    let named: FxHashSet<Name> = imported.filter(comes).cloned().collect();
    match named.is_empty() {
        true => FxHashSet::default(),
        false => mentions(sources, file).reaching(named),
    }
}

/// What a module asks for members of these names, by the names that it has it by.
fn owners<'m>(module: &'m Module, members: &FxHashSet<Name>) -> FxHashSet<&'m Name> {
    let bodies = module.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Function(function) => Some(&*function.body),
        ItemKind::Assign { body, .. } => Some(&**body),
        _ => None,
    });
    let owner = |body: &'m Body, expr: &'m Expr| match expr {
        Expr::Attribute { value, attr } if members.contains(attr) => {
            collections::root(body, *value)
        }
        _ => None,
    };
    let of_body = |body: &'m Body| body.exprs.values().filter_map(move |expr| owner(body, expr));
    bodies.flat_map(of_body).collect()
}

/// The functions and classes that decorators of other files register there, in the files that `file`
/// imports, each with that file.
pub(super) fn registered_for(sources: &dyn Sources, file: FileId) -> Vec<(Place, FileId)> {
    let files = imported_files(sources, file);
    let of_file = |file: &FileId| {
        let ways = ways(sources, *file);
        let registered = ways.registered.iter();
        registered.map(|(name, with)| ((*file, name.clone()), *with)).collect::<Vec<_>>()
    };
    files.iter().flat_map(of_file).collect()
}

/// The files that a file imports with the packages that they are in, and those that these packages import,
/// those first that are imported first, with the file itself.
pub(crate) fn imported_files(sources: &dyn Sources, file: FileId) -> Arc<[FileId]> {
    let find = || find_imported(sources, file).into();
    match sources.facts() {
        Some(facts) => facts.imported.get(file, find),
        None => find(),
    }
}

fn find_imported(sources: &dyn Sources, file: FileId) -> Vec<FileId> {
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
                    let ways = ways(sources, file);
                    ways.imported.iter().for_each(|at| add(sources, *at, begun, found));
                }
            }
            found.push(file);
        }
    }
    let mut found = Vec::new();
    let mut begun = FxHashSet::default();
    ways(sources, file).imported.iter().for_each(|at| add(sources, *at, &mut begun, &mut found));
    add(sources, file, &mut begun, &mut found);
    found
}
