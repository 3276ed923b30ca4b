//! The functions of host code through which kernels are launched, by the names that they have in a file,
//! and the programs, tests and benchmarks of other files that call them.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{ItemRef, Resolution, Sources, callee, jit_functions, launching_item, resolve_item};
use crate::hir::{Body, Expr, ExprId, Function, Item, ItemKind, Module, Name};
use crate::source::FileId;

/// What registers a function with PyTorch under a name, by which `torch.ops` has it.
pub(crate) const REGISTERS: &[&[&str]] = &[
    &["torch", "library", "custom_op"],
    &["torch", "library", "triton_op"],
    &["torch", "_library", "triton", "triton_op"],
];

/// Where PyTorch has the operations that are registered with it.
const OPERATIONS: &str = "ops";

/// Which functions, assignments and heads of classes of a module have each name in their code: jit
/// functions launch nothing.
pub(crate) struct Mentions {
    module: Arc<Module>,
    items: FxHashMap<Name, Vec<u32>>,
}

impl Mentions {
    /// Those of `file`.
    pub(crate) fn of(sources: &dyn Sources, file: FileId) -> Mentions {
        let module = sources.module(file).unwrap_or_default();
        let jit = jit_functions(sources, file).into_iter();
        let jit: FxHashSet<u32> = jit.map(|at| at.index).collect();
        let mut items: FxHashMap<Name, Vec<u32>> = FxHashMap::default();
        for (index, item) in (0..).zip(&module.items).filter(|(index, _)| !jit.contains(index)) {
            let body = match &item.kind {
                ItemKind::Function(function) => &function.body,
                ItemKind::Assign { body, .. } => body,
                // A class has what those that it derives from have.
                ItemKind::Class(class) => &class.body,
                _ => continue,
            };
            for name in named_in(body) {
                match items.get_mut(name) {
                    Some(found) if found.last() == Some(&index) => {}
                    Some(found) => found.push(index),
                    None => {
                        items.insert(name.clone(), vec![index]);
                    }
                }
            }
        }
        Mentions { module, items }
    }

    /// The functions and assignments that mention one of `names`.
    pub(crate) fn of_names<'n>(&self, names: impl IntoIterator<Item = &'n Name>) -> BTreeSet<u32> {
        names.into_iter().filter_map(|name| self.items.get(name)).flatten().copied().collect()
    }

    /// `names`, and those through which host code reaches what has these: of functions that call them, of
    /// the classes of such, and of module-level values made from them.
    pub(crate) fn reaching(&self, mut names: FxHashSet<Name>) -> FxHashSet<Name> {
        let mut open = self.of_names(&names);
        while let Some(index) = open.pop_first() {
            let item = &self.module.items[index as usize];
            let reaches = matches!(
                item.kind,
                ItemKind::Assign { .. } | ItemKind::Function(_) | ItemKind::Class(_)
            );
            for reaching in reached_by(item).filter(|_| reaches) {
                if names.insert(reaching.clone()) {
                    open.extend(self.of_names([&reaching]));
                }
            }
        }
        names
    }
}

/// The names in a piece of code by which it may reach functions that launch.
pub(crate) fn named_in(body: &Body) -> impl Iterator<Item = &Name> {
    body.exprs.values().filter_map(|expr| match expr {
        Expr::Name(name) => Some(name),
        Expr::Attribute { attr, .. } if &**attr == OPERATIONS => Some(attr),
        _ => None,
    })
}

/// The names by which a module reaches a function: that of the outermost class or function around
/// it, or its own; and `ops` for an operation that it registers with PyTorch.
pub(crate) fn reached_by(item: &Item) -> impl Iterator<Item = Name> {
    [outermost(item).clone()].into_iter().chain(is_registered(item).then(|| OPERATIONS.into()))
}

fn outermost(item: &Item) -> &Name {
    item.scope.first().unwrap_or(&item.name)
}

/// Whether a decorator registers a function with PyTorch, by whatever path it is reached.
fn is_registered(item: &Item) -> bool {
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
    item.name.starts_with("test")
        || function.params.iter().all(|param| param.default.is_some())
        || has_decorator(function, |name| matches!(name, "parametrize" | "perf_report"))
}

/// The names through which the launches of a file are reached, whatever they launch.
fn launchers(sources: &dyn Sources, file: FileId) -> Arc<[Name]> {
    let find = || {
        let module = sources.module(file).unwrap_or_default();
        let launching = module.launches.iter().filter_map(|launch| launching_item(&module, launch));
        let names: FxHashSet<Name> =
            launching.flat_map(|index| reached_by(&module.items[index as usize])).collect();
        match names.is_empty() {
            true => Arc::default(),
            false => Mentions::of(sources, file).reaching(names).into_iter().collect(),
        }
    };
    match sources.facts() {
        Some(facts) => facts.launchers.get(file, find),
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
    let launchers = launchers(sources, file);
    let launchers = launchers.iter().filter(|name| !alone.contains(name) && ***name != *OPERATIONS);
    jit.chain(launchers.cloned()).collect()
}

/// The functions and classes of other files that what `file` runs as a program, a test or a benchmark may
/// call, as it imports them or has them in a module that it imports, each with the name by which it has
/// it.
pub(crate) fn called_elsewhere(sources: &dyn Sources, file: FileId) -> Vec<(Name, ItemRef)> {
    let module = sources.module(file).unwrap_or_default();
    let mut found = Vec::new();
    if module.mains.is_empty() && !module.items.iter().any(runs_alone) {
        return found;
    }
    for (name, meant) in imports(sources, file) {
        let members = match meant {
            Resolution::File(module) if module != file => exported(sources, module),
            Resolution::Function(at) | Resolution::Class(at) => vec![at],
            _ => continue,
        };
        found.extend(members.into_iter().filter(|at| at.file != file).map(|at| (name.clone(), at)));
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

/// Whether `at` is one of the things of its file that have these names, or lies in one of them.
pub(crate) fn is_named<'n>(
    sources: &dyn Sources,
    at: ItemRef,
    names: impl IntoIterator<Item = &'n Name>,
) -> bool {
    let item = super::item(sources, at);
    item.is_some_and(|item| names.into_iter().any(|name| name == outermost(&item)))
}

/// The files whose functions what `file` runs as a program, a test or a benchmark may call to launch
/// kernels.
pub(super) fn called_hosts(sources: &dyn Sources, file: FileId) -> Vec<FileId> {
    let mut found: Vec<FileId> = Vec::new();
    for (_, at) in called_elsewhere(sources, file) {
        if !found.contains(&at.file) && is_named(sources, at, &*launchers(sources, at.file)) {
            found.push(at.file);
        }
    }
    found
}
