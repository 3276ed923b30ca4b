//! The functions of host code through which kernels are launched, by the names that they have in a file,
//! and the programs, tests and benchmarks of other files that call them.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::routes::{reached, registered_for};
use super::ways::{Place, ways};
use super::{ItemRef, Resolution, Sources, callee, jit_functions, launching_item, resolve_item};
use crate::hir::{
    Arg, Body, Expr, ExprId, Function, Item, ItemKind, MainBlock, Module, Name, Stmt, collections,
};
use crate::source::FileId;

/// What registers a function with PyTorch under a name, by which `torch.ops` has it.
pub(crate) const REGISTERS: &[&[&str]] = &[
    &["torch", "library", "custom_op"],
    &["torch", "_library", "custom_ops", "custom_op"],
    &["torch", "library", "triton_op"],
    &["torch", "_library", "triton_op"],
    &["torch", "_library", "triton", "triton_op"],
    &["torch", "library", "impl"],
    &["torch", "library", "register_kernel"],
];

/// What registers a function that differentiates an operation: a method of the operation, and a function
/// of `torch.library`.
pub(crate) const REGISTERS_GRADIENT: &str = "register_autograd";

/// Where PyTorch has the operations that are registered with it.
const OPERATIONS: &str = "ops";

/// What has everything in a module by name: `globals()` and `sys.modules`.
const TABLES: &[&str] = &["globals", "modules"];

/// Which functions, assignments and heads of classes of a module have each name in their code: jit
/// functions launch nothing.
#[derive(Debug)]
pub(crate) struct Mentions {
    module: Arc<Module>,
    items: FxHashMap<Name, Vec<u32>>,
    /// What the module's own decorators change, by the names that they begin with.
    registering: FxHashMap<Name, Vec<Name>>,
    /// The names that decorators of functions, of classes and of their methods begin with, by the names of
    /// the functions and classes.
    decorators: FxHashMap<Name, Vec<Name>>,
    /// The operations that functions of these names differentiate: a backward pass of what they give runs
    /// those.
    differentiated: FxHashMap<Name, Vec<Name>>,
}

impl Mentions {
    /// Those of `file`.
    pub(crate) fn of(sources: &dyn Sources, file: FileId) -> Mentions {
        let module = sources.module(file).unwrap_or_default();
        let jit = jit_functions(sources, file).into_iter();
        let jit: FxHashSet<u32> = jit.map(|at| at.index).collect();
        let operations = imported_operations(sources, file, &module);
        let stands_for =
            |name: &Name| if operations.contains(name) { OPERATIONS.into() } else { name.clone() };
        let mut items: FxHashMap<Name, Vec<u32>> = FxHashMap::default();
        for (index, item) in (0..).zip(&module.items).filter(|(index, _)| !jit.contains(index)) {
            let body = match &item.kind {
                ItemKind::Function(function) => &function.body,
                ItemKind::Assign { body, .. } => body,
                // A class has what those that it derives from have.
                ItemKind::Class(class) => &class.body,
                _ => continue,
            };
            for name in named_in(body).map(stands_for) {
                match items.get_mut(&name) {
                    Some(found) if found.last() == Some(&index) => {}
                    Some(found) => found.push(index),
                    None => {
                        items.insert(name, vec![index]);
                    }
                }
            }
        }
        let mut decorators: FxHashMap<Name, Vec<Name>> = FxHashMap::default();
        for (at, by) in decorated(&module) {
            let name = outermost(&module.items[at as usize]).clone();
            decorators.entry(name).or_default().push(by.clone());
        }
        let registering = registering(&module);
        let differentiated = differentiated(&module);
        Mentions { module, items, registering, decorators, differentiated }
    }

    /// The functions and assignments that mention one of `names`.
    pub(crate) fn of_names<'n>(&self, names: impl IntoIterator<Item = &'n Name>) -> BTreeSet<u32> {
        names.into_iter().filter_map(|name| self.items.get(name)).flatten().copied().collect()
    }

    /// The names of what may run the functions and classes of this name because they are registered with it:
    /// what their decorators change, and the operations that they differentiate.
    fn registered(&self, name: &Name) -> impl Iterator<Item = Name> {
        let decorators = self.decorators.get(name).into_iter().flatten();
        let changed = decorators.filter_map(|name| self.registering.get(name)).flatten();
        changed.chain(self.differentiated.get(name).into_iter().flatten()).cloned()
    }

    /// `names`, and those through which host code reaches what has these: of functions that call them, of
    /// the classes of such, and of module-level values made from them.
    pub(crate) fn reaching(&self, mut names: FxHashSet<Name>) -> FxHashSet<Name> {
        if !names.is_empty() {
            names.extend(TABLES.iter().map(|table| Name::from(*table)));
        }
        let registered: Vec<Name> = names.iter().flat_map(|name| self.registered(name)).collect();
        names.extend(registered);
        let mut open = self.of_names(&names);
        while let Some(index) = open.pop_first() {
            let item = &self.module.items[index as usize];
            let reaches = matches!(
                item.kind,
                ItemKind::Assign { .. } | ItemKind::Function(_) | ItemKind::Class(_)
            );
            // What registers a class registers its methods.
            let registered = self.registered(outermost(item));
            for reaching in reached_by(item).chain(registered).filter(|_| reaches) {
                if names.insert(reaching.clone()) {
                    open.extend(self.of_names([&reaching]));
                }
            }
        }
        names
    }
}

/// What the decorators of a module change that are its own, by the names that they begin with: a function
/// changes what it fills, an object or a class itself.
fn registering(module: &Module) -> FxHashMap<Name, Vec<Name>> {
    let decorators: FxHashSet<&Name> = decorated(module).into_iter().map(|(_, by)| by).collect();
    let mut found: FxHashMap<Name, Vec<Name>> = FxHashMap::default();
    for item in module.items.iter().filter(|item| decorators.contains(outermost(item))) {
        let changed = match &item.kind {
            ItemKind::Function(function) => [&function.changes[..], &function.globals[..]].concat(),
            ItemKind::Assign { .. } | ItemKind::Class(_) => vec![outermost(item).clone()],
            _ => continue,
        };
        found.entry(outermost(item).clone()).or_default().extend(changed);
    }
    found
}

/// The calls among the outermost statements of a module that register functions to differentiate operations:
/// each with what is called, and its arguments.
pub(crate) fn registrations(module: &Module) -> impl Iterator<Item = (&MainBlock, ExprId, &[Arg])> {
    let statements = module.mains.iter().flat_map(|main| {
        let statements = main.body.root.iter();
        statements.map(move |statement| (main, &main.body.stmts[*statement]))
    });
    statements.filter_map(|(main, statement)| {
        let Stmt::Expr(value) = statement else { return None };
        let Expr::Call { callee, args } = &main.body.exprs[*value] else { return None };
        match &main.body.exprs[*callee] {
            Expr::Attribute { attr, .. } if &**attr == REGISTERS_GRADIENT => {
                Some((main, *callee, &args[..]))
            }
            _ => None,
        }
    })
}

/// The operations that functions differentiate, by the names of these: the one whose method registers them,
/// or any that the module registers itself, and what `torch.ops` has.
fn differentiated(module: &Module) -> FxHashMap<Name, Vec<Name>> {
    let own = || module.items.iter().filter(|item| is_registered(item)).map(|item| &item.name);
    let mut found: FxHashMap<Name, Vec<Name>> = FxHashMap::default();
    for (main, callee, args) in registrations(module) {
        let root = collections::root(&main.body, callee);
        let operations: Vec<Name> = match own().find(|name| Some(*name) == root) {
            Some(name) => vec![name.clone()],
            None => own().cloned().collect(),
        };
        for name in args.iter().filter_map(|arg| collections::root(&main.body, arg.value)) {
            let known = found.entry(name.clone()).or_default();
            known.extend(operations.iter().cloned().chain([OPERATIONS.into()]));
        }
    }
    found
}

/// The functions, classes and methods that are defined when a module runs and have decorators, by their places
/// among the items, each with the name that one of these begins with.
pub(super) fn decorated(module: &Module) -> Vec<(u32, &Name)> {
    let outermost = module.items.iter().filter(|item| item.scope.is_empty());
    let classes = outermost.filter(|item| matches!(item.kind, ItemKind::Class(_)));
    let classes: FxHashSet<&Name> = classes.map(|item| &item.name).collect();
    let is_defined = |item: &Item| match &item.scope[..] {
        [] => true,
        [class] => classes.contains(class),
        _ => false,
    };
    let items = (0..).zip(&module.items).filter(|(_, item)| is_defined(item));
    items.flat_map(|(at, item)| decorated_by(item).into_iter().map(move |by| (at, by))).collect()
}

/// The names that the decorators of a function or class begin with.
fn decorated_by(item: &Item) -> Vec<&Name> {
    let (body, decorators) = match &item.kind {
        ItemKind::Function(function) => (&function.body, &function.decorators),
        ItemKind::Class(class) => (&class.body, &class.decorators),
        _ => return Vec::new(),
    };
    decorators.iter().filter_map(|decorator| collections::root(body, *decorator)).collect()
}

/// The names in a piece of code by which it may reach functions that launch.
pub(crate) fn named_in(body: &Body) -> impl Iterator<Item = &Name> {
    body.exprs.values().filter_map(|expr| match expr {
        Expr::Name(name) => Some(name),
        Expr::Attribute { attr, .. } if &**attr == OPERATIONS => Some(attr),
        Expr::Attribute { value, attr } if &**attr == TABLES[1] => {
            body.exprs[*value].is_name("sys").then_some(attr)
        }
        _ => None,
    })
}

/// The names that a module takes from other files for `torch.ops`, or a part of it.
fn imported_operations(sources: &dyn Sources, file: FileId, module: &Module) -> FxHashSet<Name> {
    let imports = (0..).zip(&module.items).filter(|(_, item)| item.is_import());
    let are_operations =
        |(index, item): (u32, &Item)| match resolve_item(sources, ItemRef { file, index }) {
            Resolution::External(path) if path.get(1).is_some_and(|part| **part == *OPERATIONS) => {
                Some(item.name.clone())
            }
            _ => None,
        };
    imports.filter_map(are_operations).collect()
}

/// The names by which a module reaches a function: that of the outermost class or function around
/// it, or its own; and `ops` for an operation that it registers with PyTorch.
pub(crate) fn reached_by(item: &Item) -> impl Iterator<Item = Name> {
    [outermost(item).clone()].into_iter().chain(is_registered(item).then(|| OPERATIONS.into()))
}

/// The outermost function or class that something stands in, or itself, by its name.
pub(super) fn outermost(item: &Item) -> &Name {
    item.scope.first().unwrap_or(&item.name)
}

/// Whether a decorator registers a function with PyTorch, by whatever path it is reached.
pub(crate) fn is_registered(item: &Item) -> bool {
    let ItemKind::Function(function) = &item.kind else { return false };
    has_decorator(function, |name| REGISTERS.iter().any(|path| path.last() == Some(&name)))
}

/// Whether a function has a decorator the last part of whose name is of a kind.
fn has_decorator(function: &Function, is_meant: impl Fn(&str) -> bool) -> bool {
    let named = |decorator: &ExprId| match &function.body.exprs[callee(&function.body, *decorator)]
    {
        Expr::Attribute { attr: name, .. } | Expr::Name(name) => is_meant(name),
        _ => false,
    };
    function.decorators.iter().any(named)
}

/// Whether something runs a function as it stands: it needs no argument, or is a test or a benchmark,
/// whose arguments come from decorators and fixtures.
pub(crate) fn runs_alone(item: &Item) -> bool {
    let ItemKind::Function(function) = &item.kind else { return false };
    is_test(function) || function.params.iter().all(|param| param.default.is_some())
}

/// Whether a function is a test or a benchmark.
pub(crate) fn is_test(function: &Function) -> bool {
    function.name.starts_with("test")
        || has_decorator(function, |name| matches!(name, "parametrize" | "perf_report"))
}

/// The names through which the launches of a module are reached, whatever they launch.
pub(super) fn launchers(module: &Module, mentions: &Mentions) -> Vec<Name> {
    let launching = module.launches.iter().filter_map(|launch| launching_item(module, launch));
    let names: FxHashSet<Name> =
        launching.flat_map(|index| reached_by(&module.items[index as usize])).collect();
    match names.is_empty() {
        true => Vec::new(),
        false => {
            let mut reaching: Vec<Name> = mentions.reaching(names).into_iter().collect();
            reaching.sort_unstable();
            reaching
        }
    }
}

/// Which functions and assignments of a file have each name in their code.
pub(crate) fn mentions(sources: &dyn Sources, file: FileId) -> Arc<Mentions> {
    let find = || Arc::new(Mentions::of(sources, file));
    match sources.facts() {
        Some(facts) => facts.mentions.get(file, find),
        None => find(),
    }
}

/// The names by which other files may launch what `file` launches: those of its jit functions, and of
/// what launches kernels and does not run by itself.
pub fn launching_names(sources: &dyn Sources, file: FileId) -> FxHashSet<Name> {
    let module = sources.module(file).unwrap_or_default();
    let jit = jit_functions(sources, file).into_iter();
    let jit = jit.map(|at| module.items[at.index as usize].name.clone());
    let alone: FxHashSet<&Name> =
        module.items.iter().filter(|item| runs_alone(item)).map(|item| &item.name).collect();
    let ways = ways(sources, file);
    let is_own = |name: &&Name| ***name != *OPERATIONS && !TABLES.contains(&&***name);
    let launchers = ways.launchers.iter().filter(|name| !alone.contains(name) && is_own(name));
    jit.chain(launchers.cloned()).collect()
}

/// Whether a file runs anything by itself: it is a program, or has tests or benchmarks.
fn runs(module: &Module) -> bool {
    !module.mains.is_empty() || module.items.iter().any(runs_alone)
}

/// What the programs, tests and benchmarks of a file may call of other files.
#[derive(Debug, Default)]
pub(crate) struct Called {
    /// What they call, by the names by which they have it.
    from: Vec<(Name, Vec<Place>)>,
    /// What decorators register in files by which these come to it.
    registered: Vec<(Place, FileId)>,
    /// All that it comes to.
    places: FxHashSet<Place>,
    /// What each of `from` comes to.
    reached: OnceLock<Vec<FxHashSet<Place>>>,
}

impl Called {
    /// That of `file`.
    fn of(sources: &dyn Sources, file: FileId) -> Called {
        let module = sources.module(file).unwrap_or_default();
        if !runs(&module) {
            return Called::default();
        }
        let from = ways(sources, file).routes();
        let starts = || from.iter().flat_map(|(_, places)| places).cloned().collect();
        let mut places = reached(sources, starts(), &[]);
        let files: FxHashSet<FileId> = places.iter().map(|(file, _)| *file).collect();
        let mut registered = Vec::new();
        if files.into_iter().any(|file| ways(sources, file).registers) {
            registered = registered_for(sources, file);
            places = reached(sources, starts(), &registered);
        }
        Called { from, registered, places, reached: OnceLock::default() }
    }

    /// What launches kernels in other files than `file`, whose this is.
    fn launching(&self, sources: &dyn Sources, file: FileId) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(move |(host, name)| {
            let ways = ways(sources, *host);
            *host != file && ways.launchers.binary_search(name).is_ok()
        })
    }

    /// The names by which the file has what comes to one of `targets`.
    pub(crate) fn leading_to(
        &self,
        sources: &dyn Sources,
        targets: &FxHashSet<Place>,
    ) -> FxHashSet<Name> {
        if targets.is_disjoint(&self.places) {
            return FxHashSet::default();
        }
        let of_name =
            |(_, from): &(Name, Vec<Place>)| reached(sources, from.clone(), &self.registered);
        let reached = self.reached.get_or_init(|| self.from.iter().map(of_name).collect());
        let leading = self.from.iter().zip(reached).filter(|(_, it)| !it.is_disjoint(targets));
        leading.map(|((name, _), _)| name.clone()).collect()
    }
}

/// What the programs, tests and benchmarks of a file may call of other files.
pub(crate) fn called(sources: &dyn Sources, file: FileId) -> Arc<Called> {
    let find = || Arc::new(Called::of(sources, file));
    match sources.facts() {
        Some(facts) => facts.called.get(file, find),
        None => find(),
    }
}

/// The files from which kernels are launched by what `file` runs as a program, a test or a benchmark: it
/// calls functions of theirs, perhaps by way of others.
pub(super) fn called_hosts(sources: &dyn Sources, file: FileId) -> FxHashSet<FileId> {
    let called = called(sources, file);
    called.launching(sources, file).map(|(host, _)| *host).collect()
}

/// The names by which `file` has what launches kernels in other files, perhaps by way of others still.
pub(crate) fn calls_to_launchers(sources: &dyn Sources, file: FileId) -> FxHashSet<Name> {
    let called = called(sources, file);
    let launching: FxHashSet<Place> = called.launching(sources, file).cloned().collect();
    called.leading_to(sources, &launching)
}
