//! What each file has to do with others, found once per file: what its imports bind, which of its functions
//! lead to functions and classes of other files, and what decorators of others register in it.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::launchers::{self, Mentions, launchers, mentions, outermost};
use super::{ItemRef, Resolution, Scope, Sources, environment, item, resolve, resolve_item};
use crate::hir::{Expr, ExprId, Item, ItemKind, Literal, Module, Name, Stmt};
use crate::source::FileId;

/// The folder of a Python environment: what a package in it calls in others is its own business.
const ENVIRONMENT: &str = "/site-packages/";

/// The name of what `from … import *` binds.
const STAR: &str = "*";

/// Files of packages that are gone through for what they have by a name.
const MAX_PARTS: usize = 32;

/// What the imports of a file bind, by name.
pub type Imports = Arc<[(Name, Resolution)]>;

/// A function or class at the top of a file, or what stands in it, by its name.
pub(crate) type Place = (FileId, Name);

/// What a file has to do with others. An owner of files that change keeps it: it follows from host code
/// alone, holds no positions, and is seldom another one after an edit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The ways out of it.
    routes: Routes,
    /// The files that it imports itself, the package that it is in first.
    pub(super) imported: Vec<FileId>,
    /// Its functions and classes that have decorators of the project, as items, each with what such a
    /// decorator begins with.
    pub(crate) decorated: Vec<(u32, Resolution)>,
    /// Those of them that decorators of other files may register there, with these files.
    pub(super) registered: Vec<(Name, FileId)>,
    /// Whether it has functions that may register what they are given: they change what is not their own,
    /// and give that back.
    pub(crate) registers: bool,
    /// The names through which its launches are reached, whatever they launch, sorted.
    pub(crate) launchers: Vec<Name>,
    /// The files of the project that running it reads, outside of its functions' own imports.
    pub(super) read: Vec<FileId>,
    /// Whether it asks for variables of the environment.
    pub(super) asks_environment: bool,
}

/// The ways out of a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Routes {
    /// The functions and classes of other files that it may call, each with the name by which it has that,
    /// or its module.
    all: Vec<(Name, Place)>,
    /// By the names of its own functions and classes, which of the routes they come to.
    leading: FxHashMap<Name, Vec<u32>>,
}

impl Ways {
    /// Those of `file`, found anew: [`ways`] asks who keeps them.
    pub fn of(sources: &dyn Sources, file: FileId) -> Ways {
        let module = sources.module(file).unwrap_or_default();
        let imports = imports(sources, file);
        let mentions = mentions(sources, file);
        let decorated = decorated(sources, (file, &module));
        Ways {
            routes: routes(sources, (file, &module), &imports, &mentions),
            imported: imported_by(sources, file, &imports),
            registered: registered(sources, (file, &module), &decorated),
            decorated,
            registers: registers(&module),
            launchers: launchers(&module, &mentions),
            read: read_by(sources, file),
            asks_environment: exprs(&module).any(environment::is_asked),
        }
    }

    /// The functions and classes of other files that the file may call, by the names by which it has them,
    /// or their modules.
    pub(super) fn routes(&self) -> Vec<(Name, Vec<Place>)> {
        let same_name = self.routes.all.chunk_by(|a, b| a.0 == b.0);
        let places = |routes: &[(Name, Place)]| routes.iter().map(|(_, to)| to.clone()).collect();
        same_name.map(|routes| (routes[0].0.clone(), places(routes))).collect()
    }

    /// Where a function or class of the file leads.
    pub(super) fn from(&self, name: &Name) -> impl Iterator<Item = &Place> {
        let leading = self.routes.leading.get(name).into_iter().flatten();
        leading.map(|route| &self.routes.all[*route as usize].1)
    }
}

/// What `file` has to do with others.
pub(crate) fn ways(sources: &dyn Sources, file: FileId) -> Arc<Ways> {
    let find = || Arc::new(Ways::of(sources, file));
    sources.ways(file).unwrap_or_else(|| match sources.facts() {
        Some(facts) => facts.ways.get(file, find),
        None => find(),
    })
}

/// What the imports of a file bind.
fn imports(sources: &dyn Sources, file: FileId) -> Imports {
    let find = || find_imports(sources, file);
    sources.imports(file).unwrap_or_else(|| match sources.facts() {
        Some(facts) => facts.imports.get(file, find),
        None => find(),
    })
}

/// What the imports of a file bind, found anew; [`STAR`] stands for what a whole file brings, and means that.
pub fn find_imports(sources: &dyn Sources, file: FileId) -> Imports {
    let module = sources.module(file).unwrap_or_default();
    let items = (0..).zip(&module.items).filter(|(_, item)| item.is_import());
    let meant = |index, item: &Item| match &item.kind {
        ItemKind::ImportFrom { level, path, member } if **member == *STAR => {
            sources.import(file, *level, path).map_or(Resolution::Unknown, Resolution::File)
        }
        _ => resolve_item(sources, ItemRef { file, index }),
    };
    // `import package.part` binds the package, which has the part from then on.
    let part = |item: &Item| match &item.kind {
        ItemKind::Import { path, within } if !within.is_empty() => {
            let part = sources.import(file, 0, &[&path[..], within].concat())?;
            Some((item.name.clone(), Resolution::File(part)))
        }
        _ => None,
    };
    let meanings = items.map(|(index, item)| ((item.name.clone(), meant(index, item)), part(item)));
    meanings.flat_map(|(package, part)| std::iter::once(package).chain(part)).collect()
}

/// The files that the imports of `file` read, outside of its functions' own.
pub fn imported_files(sources: &dyn Sources, file: FileId) -> Vec<FileId> {
    let module = sources.module(file).unwrap_or_default();
    let read = |item: &Item| match &item.kind {
        ItemKind::Import { path, within } => {
            vec![sources.import(file, 0, &[&path[..], within].concat())]
        }
        ItemKind::ImportFrom { level, path, member } => {
            let part = [&path[..], std::slice::from_ref(member)].concat();
            vec![sources.import(file, *level, path), sources.import(file, *level, &part)]
        }
        _ => Vec::new(),
    };
    let mut files: Vec<FileId> = module.items.iter().flat_map(read).flatten().collect();
    files.sort();
    files.dedup();
    files
}

/// Whether a file is of a package that is installed.
pub(crate) fn is_of_environment(sources: &dyn Sources, file: FileId) -> bool {
    sources.path(file).contains(ENVIRONMENT)
}

/// The ways out of a file.
fn routes(
    sources: &dyn Sources,
    (file, module): (FileId, &Module),
    imports: &Imports,
    mentions: &Mentions,
) -> Routes {
    let (members, names) = (OnceCell::new(), OnceCell::new());
    let mut to: BTreeMap<Name, Vec<Place>> = BTreeMap::new();
    let mut add = |name: &Name, found: Vec<ItemRef>| {
        let others = found.into_iter().filter(|at| at.file != file);
        to.entry(name.clone()).or_default().extend(others.filter_map(|at| place(sources, at)));
    };
    for (name, meant) in imports.iter() {
        match meant {
            Resolution::File(other) if *other == file => {}
            Resolution::File(other) if **name == *STAR => {
                let names = names.get_or_init(|| plainly_named(module));
                for at in members_called(sources, *other, names) {
                    if let Some(name) = item(sources, at).map(|item| item.name.clone()) {
                        add(&name, vec![at]);
                    }
                }
            }
            Resolution::File(other) => {
                let members = members.get_or_init(|| members_named(module));
                add(name, members_called(sources, *other, members));
            }
            meant => add(name, callable(sources, meant).into_iter().collect()),
        }
    }
    let Routes { mut all, mut leading } = Routes::default();
    for (name, places) in to.into_iter().filter(|(_, places)| !places.is_empty()) {
        let own: Vec<u32> = (all.len() as u32..).take(places.len()).collect();
        for from in mentions.reaching(FxHashSet::from_iter([name.clone()])) {
            leading.entry(from).or_default().extend(&own);
        }
        all.extend(places.into_iter().map(|place| (name.clone(), place)));
    }
    Routes { all, leading }
}

/// The place that something belongs to.
fn place(sources: &dyn Sources, at: ItemRef) -> Option<Place> {
    item(sources, at).map(|item| (at.file, outermost(&item).clone()))
}

/// What may be called of what a name means: a function, a class, or what a module has made of them.
fn callable(sources: &dyn Sources, meant: &Resolution) -> Option<ItemRef> {
    match meant {
        Resolution::Function(at) | Resolution::Class(at) => Some(*at),
        Resolution::Constant(at) => item(sources, *at).filter(is_made_of_others).map(|_| *at),
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

/// What a module has by one of the names `called`: its own functions and classes, those that it imports,
/// what it has made of such, and what modules have that it has by one of these names itself.
fn members_called(sources: &dyn Sources, file: FileId, called: &FxHashSet<Name>) -> Vec<ItemRef> {
    let (mut open, mut begun, mut found) = (vec![file], vec![file], Vec::new());
    while let Some(file) = open.pop() {
        found.extend(own_members(sources, file, called));
        for (name, meant) in imports(sources, file).iter() {
            match meant {
                Resolution::File(part) if called.contains(name) || **name == *STAR => {
                    let is_new = begun.len() < MAX_PARTS && !begun.contains(part);
                    let new = is_new.then_some(*part);
                    begun.extend(new);
                    open.extend(new);
                }
                meant if called.contains(name) => found.extend(callable(sources, meant)),
                _ => {}
            }
        }
    }
    found
}

/// What a module defines by one of the names `called`.
fn own_members(sources: &dyn Sources, file: FileId, called: &FxHashSet<Name>) -> Vec<ItemRef> {
    let module = sources.module(file).unwrap_or_default();
    let is_own = |item: &Item| {
        item.scope.is_empty()
            && called.contains(&item.name)
            && match item.kind {
                ItemKind::Function(_) | ItemKind::Class(_) => true,
                ItemKind::Assign { .. } => is_made_of_others(item),
                _ => false,
            }
    };
    let items = (0..).zip(&module.items).filter(|(_, item)| is_own(item));
    items.map(|(index, _)| ItemRef { file, index }).collect()
}

/// Whether a module has functions that may register what they are given.
fn registers(module: &Module) -> bool {
    module.items.iter().any(|item| match &item.kind {
        ItemKind::Function(function) => {
            let is_given = |value: &ExprId| {
                let given = function.body.exprs[*value].as_name();
                given.is_some_and(|name| function.params.iter().any(|param| param.name == *name))
            };
            let gives_back =
                |stmt: &Stmt| matches!(stmt, Stmt::Return(Some(value)) if is_given(value));
            !function.changes.is_empty() && function.body.stmts.values().any(gives_back)
        }
        _ => false,
    })
}

/// The functions and classes of a file that have decorators of the project.
fn decorated(sources: &dyn Sources, (file, module): (FileId, &Module)) -> Vec<(u32, Resolution)> {
    let scope = Scope { file, path: &[] };
    let is_own = |meant: &Resolution| match meant {
        Resolution::Function(at) | Resolution::Class(at) | Resolution::Constant(at) => {
            !is_of_environment(sources, at.file)
        }
        _ => false,
    };
    let mut known: FxHashMap<&Name, Option<Resolution>> = FxHashMap::default();
    let mut found = Vec::new();
    for (index, name) in launchers::decorated(module) {
        let with =
            known.entry(name).or_insert_with(|| Some(resolve(sources, scope, name)).filter(is_own));
        found.extend(with.clone().map(|with| (index, with)));
    }
    found
}

/// The functions and classes of a file that decorators of others register there.
fn registered(
    sources: &dyn Sources,
    (file, module): (FileId, &Module),
    decorated: &[(u32, Resolution)],
) -> Vec<(Name, FileId)> {
    let others = decorated.iter().filter_map(|(index, with)| {
        let other = callable(sources, with)?.file;
        (other != file).then(|| (outermost(&module.items[*index as usize]).clone(), other))
    });
    others.collect()
}

/// The files that a file imports itself, and the package that it is in.
fn imported_by(sources: &dyn Sources, file: FileId, imports: &Imports) -> Vec<FileId> {
    let files = imports.iter().filter_map(|(_, meant)| match meant {
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
    found
}

fn read_by(sources: &dyn Sources, file: FileId) -> Vec<FileId> {
    let is_own = |other: &FileId| *other != file && !is_of_environment(sources, *other);
    imported_files(sources, file).into_iter().filter(is_own).collect()
}

/// The names after dots in the code of a module, and the texts in it where it asks for members by those.
fn members_named(module: &Module) -> FxHashSet<Name> {
    let by_text = exprs(module).any(|expr| expr.is_name("getattr"));
    let members = exprs(module).filter_map(|expr| match expr {
        Expr::Attribute { attr, .. } => Some(attr.clone()),
        Expr::Literal(Literal::Str(text)) if by_text => Some(Name::from(&**text)),
        _ => None,
    });
    members.collect()
}

/// The names that stand by themselves in the code of a module.
fn plainly_named(module: &Module) -> FxHashSet<Name> {
    exprs(module).filter_map(Expr::as_name).cloned().collect()
}

fn exprs(module: &Module) -> impl Iterator<Item = &Expr> {
    let bodies = module.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Function(function) => Some(&*function.body),
        ItemKind::Assign { body, .. } => Some(&**body),
        ItemKind::Class(class) => Some(&*class.body),
        _ => None,
    });
    let bodies = bodies.chain(module.mains.iter().map(|main| &*main.body));
    bodies.flat_map(|body| body.exprs.values())
}
