//! The jit functions of a file, and which of them are kernels.

use std::sync::Arc;

use super::environment::asking_modules;
use super::launchers::called_hosts;
use super::{
    Decorator, ItemRef, Resolution, Scope, Sources, decorators, function, head, is_jit, item,
    paths, resolve_expr, resolve_expr_before, resolve_item,
};
use crate::hir::{
    Arg, BinaryOp, Body, Class, Expr, ExprId, Function, Item, ItemKind, Launch, Literal, Module,
    Name, Stmt,
};
use crate::source::FileId;

/// A jit function with its decorators.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The function's item.
    pub at: ItemRef,
    /// The item, for its name and scope.
    pub item: Item,
    /// The function.
    pub function: Arc<Function>,
    /// Decorators, outermost first.
    pub decorators: Vec<Decorator>,
}

/// The jit function at `at`, if it is one.
pub fn kernel(sources: &dyn Sources, at: ItemRef) -> Option<Kernel> {
    let kernel = kernel_head(sources, at)?;
    sources.look_inside(at);
    Some(kernel)
}

/// The jit function at `at`, if it is one, for whoever looks at its head alone: parameters,
/// decorators and annotations.
pub fn kernel_head(sources: &dyn Sources, at: ItemRef) -> Option<Kernel> {
    if !is_jit(sources, at) {
        return None;
    }
    let item = item(sources, at)?;
    let function = head(sources, at)?;
    Some(Kernel { at, item, function, decorators: decorators(sources, at) })
}

/// Every jit function of `file` in source order, helpers included, but for those that are never
/// defined. `name = triton.jit(f)` counts as `f`.
pub fn jit_functions(sources: &dyn Sources, file: FileId) -> Vec<ItemRef> {
    let find = || find_jit_functions(sources, file);
    match sources.facts() {
        Some(facts) => facts.functions.get(file, || find().into()).to_vec(),
        None => find(),
    }
}

fn find_jit_functions(sources: &dyn Sources, file: FileId) -> Vec<ItemRef> {
    let Some(module) = sources.module(file) else { return Vec::new() };
    let mut found = Vec::new();
    for (index, item) in module.items.iter().enumerate() {
        let at = ItemRef { file, index: index as u32 };
        let resolution = match &item.kind {
            ItemKind::Function(function) if !function.decorators.is_empty() => {
                resolve_item(sources, at)
            }
            ItemKind::Assign { body, value, .. }
                if matches!(body.exprs[*value], Expr::Call { .. }) =>
            {
                resolve_item(sources, at)
            }
            _ => continue,
        };
        if let Resolution::Jit(target) = resolution
            && target.file == file
            && !found.contains(&target)
            && !super::never_runs(sources, None, target)
            && !is_template(&module, target)
        {
            found.push(target);
        }
    }
    found.sort();
    found
}

/// Whether code gives the jit function at `at` of a module another text before it is compiled: its own is a template,
/// which need not be one of a kernel.
pub(crate) fn is_template(module: &Module, at: ItemRef) -> bool {
    let name = &module.items[at.index as usize].name;
    let is_of_it = |body: &Body, expr: ExprId, member: &str| {
        matches!(&body.exprs[expr], Expr::Attribute { value, attr }
            if **attr == *member && body.exprs[*value].is_name(name))
    };
    let replaces = |body: &Body| {
        let calls = |expr: &Expr| match expr {
            Expr::Call { callee, .. } => is_of_it(body, *callee, "_unsafe_update_src"),
            _ => false,
        };
        let sets = |stmt: &Stmt| stmt.targets().iter().any(|it| is_of_it(body, *it, "src"));
        body.exprs.values().any(calls) || body.stmts.values().any(sets)
    };
    let mut functions = module.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Function(function) => Some(&function.body),
        _ => None,
    });
    functions.any(|body| replaces(body)) || module.mains.iter().any(|main| replaces(&main.body))
}

/// Whether a variable of `file` holds what a call other than `triton.jit` made of the kernel at
/// `kernel`, as in `tuned = triton.autotune(...)(kernel)`: the call may give it arguments.
pub(crate) fn is_wrapped_by_call(sources: &dyn Sources, file: FileId, kernel: ItemRef) -> bool {
    !wrapping_calls(sources, file, kernel).is_empty()
}

/// Whether all such calls in `file` are of Triton's functions and the project's own, so that what they make of
/// the kernel at `kernel` is known where they are followed.
pub(crate) fn is_wrapped_by_known_calls(
    sources: &dyn Sources,
    file: FileId,
    kernel: ItemRef,
) -> bool {
    let is_known = |item: &Item| {
        let ItemKind::Assign { body, value, .. } = &item.kind else { return false };
        let scope = Scope { file, path: &item.scope };
        calls_known(sources, scope, body, *value)
    };
    wrapping_calls(sources, file, kernel).iter().all(is_known)
}

/// Whether an expression calls functions of Triton and of the project alone, with others inside perhaps.
fn calls_known(sources: &dyn Sources, scope: Scope<'_>, body: &Body, id: ExprId) -> bool {
    let Expr::Call { callee, args } = &body.exprs[id] else { return true };
    let is_known = match &body.exprs[*callee] {
        Expr::Call { .. } => calls_known(sources, scope, body, *callee),
        _ => matches!(
            resolve_expr(sources, scope, body, *callee),
            Resolution::Triton(_) | Resolution::Function(_)
        ),
    };
    is_known && args.iter().all(|arg| calls_known(sources, scope, body, arg.value))
}

/// The variables of `file` that hold what calls other than `triton.jit` made of the kernel at
/// `kernel`.
pub(crate) fn wrapping_calls(sources: &dyn Sources, file: FileId, kernel: ItemRef) -> Vec<Item> {
    let Some(module) = sources.module(file) else { return Vec::new() };
    let wraps = |(index, item): &(u32, &Item)| {
        let Some((body, callee)) = called(item) else { return false };
        let scope = Scope { file, path: &item.scope };
        resolve_item(sources, ItemRef { file, index: *index }) == Resolution::Jit(kernel)
            && resolve_expr(sources, scope, body, callee) != Resolution::Triton("jit".into())
    };
    (0..).zip(&module.items).filter(wraps).map(|(_, item)| item.clone()).collect()
}

/// Whether a variable of its file holds what a call made of the function `at`, which has no
/// decorator that does, and that is a jit function.
pub(super) fn is_made_jit(sources: &dyn Sources, at: ItemRef) -> bool {
    let Some(module) = sources.module(at.file) else { return false };
    let Some(function) = module.items.get(at.index as usize) else { return false };
    (0..).zip(&module.items).any(|(index, item)| {
        let Some((body, _)) = called(item) else { return false };
        body.exprs.values().any(|expr| expr.is_name(&function.name))
            && resolve_item(sources, ItemRef { index, ..at }) == Resolution::Jit(at)
    })
}

/// What is called whose result an item binds.
fn called(item: &Item) -> Option<(&Body, ExprId)> {
    let ItemKind::Assign { body, value, .. } = &item.kind else { return None };
    match &body.exprs[*value] {
        Expr::Call { callee, .. } => Some((body, *callee)),
        _ => None,
    }
}

/// The jit functions of `file` that are entry points: see [`is_entry`].
pub fn kernels(sources: &dyn Sources, file: FileId) -> Vec<ItemRef> {
    let find = || find_kernels(sources, file);
    match sources.facts() {
        Some(facts) => facts.kernels.get(file, || find().into()).to_vec(),
        None => find(),
    }
}

fn find_kernels(sources: &dyn Sources, file: FileId) -> Vec<ItemRef> {
    let functions = jit_functions(sources, file);
    let called = called_from_jit(sources, &functions);
    let launched = launched(sources, file);
    functions
        .into_iter()
        .filter(|at| launched.contains(at) || looks_like_entry(sources, *at, &called))
        .collect()
}

/// True when the jit function `at` is launched rather than called: a launch in its file names
/// it, or it is tuned, or it returns nothing, stores or loads, itself or in what it calls, and no jit
/// function of its file calls it.
pub(crate) fn is_entry(sources: &dyn Sources, at: ItemRef) -> bool {
    kernels(sources, at.file).contains(&at)
}

/// True when a jit function of another file calls the jit function `at`, and nothing that is seen
/// launches it.
pub(crate) fn is_helper_of_others(sources: &dyn Sources, at: ItemRef) -> bool {
    let mut others = sources.importers(at.file).into_iter();
    let called = others.any(|file| {
        let functions = jit_functions(sources, file);
        called_from_jit(sources, &functions).contains(&at)
    });
    called && !is_tuned(sources, at) && !launched(sources, at.file).contains(&at)
}

/// True when a jit function may be one that others call although nothing that is seen does: nothing
/// launches it, it never asks for the program's position, itself or in what it calls, and it adds
/// parameters to others for addresses, which may be tiles.
pub(crate) fn may_be_helper(sources: &dyn Sources, at: ItemRef) -> bool {
    let Some(of) = function(sources, at) else { return false };
    let asks = |at: ItemRef| {
        function(sources, at).is_some_and(|function| calls(&function.body, asks_for_position))
    };
    offsets_by_parameters(&of)
        && !is_tuned(sources, at)
        && !launched(sources, at.file).contains(&at)
        && !with_callees(sources, at).into_iter().any(asks)
}

/// Whether a function adds a parameter to another, as they are, where it reads or writes memory.
fn offsets_by_parameters(function: &Function) -> bool {
    let body = &function.body;
    let is_param = |id: ExprId| {
        let name = body.exprs[id].as_name();
        name.is_some_and(|name| function.params.iter().any(|param| param.name == *name))
    };
    called_names(body).any(|(name, args)| {
        let address = args.first().map(|arg| &body.exprs[arg.value]);
        touches_memory(name)
            && matches!(address, Some(Expr::Binary { op: BinaryOp::Add, lhs, rhs })
                if is_param(*lhs) && is_param(*rhs))
    })
}

/// The jit functions that the bodies of `functions` mention, other than themselves.
pub fn called_from_jit(sources: &dyn Sources, functions: &[ItemRef]) -> Vec<ItemRef> {
    let mut called = Vec::new();
    for at in functions {
        for callee in known_callees(sources, *at).iter() {
            if callee != at && !called.contains(callee) {
                called.push(*callee);
            }
        }
    }
    called
}

/// The jit function `at` and those that it calls, directly or not.
pub fn with_callees(sources: &dyn Sources, at: ItemRef) -> Vec<ItemRef> {
    let mut functions = vec![at];
    let mut next = 0;
    while next < functions.len() {
        for callee in called_from_jit(sources, &functions[next..=next]) {
            if !functions.contains(&callee) {
                functions.push(callee);
            }
        }
        next += 1;
    }
    functions
}

/// Whether the jit function `at`, or one that it calls, has a statement with a syntax error: it does
/// not lower then, and the syntax error is what says why.
pub fn is_broken(sources: &dyn Sources, at: ItemRef) -> bool {
    with_callees(sources, at)
        .into_iter()
        .any(|at| function(sources, at).is_some_and(|function| function.body.broken.is_some()))
}

/// As [`callees`], from whoever keeps that.
fn known_callees(sources: &dyn Sources, at: ItemRef) -> Arc<[ItemRef]> {
    let kept = sources.callees(at);
    kept.unwrap_or_else(|| match sources.facts() {
        Some(facts) => facts.callees.get(at, || callees(sources, at)),
        None => callees(sources, at),
    })
}

/// Jit functions that the jit function `at` names, as callees or as arguments.
pub fn callees(sources: &dyn Sources, at: ItemRef) -> Arc<[ItemRef]> {
    let (Some(item), Some(function)) = (item(sources, at), function(sources, at)) else {
        return Arc::default();
    };
    let path = item.body_scope();
    let scope = Scope { file: at.file, path: &path };
    let body = &function.body;
    let mut found = Vec::new();
    let mut mention = |id: ExprId| {
        if !matches!(body.exprs[id], Expr::Name(_) | Expr::Attribute { .. }) {
            return;
        }
        if let Resolution::Jit(at) = resolve_expr(sources, scope, body, id)
            && !found.contains(&at)
        {
            found.push(at);
        }
    };
    for expr in body.exprs.values() {
        if let Expr::Call { callee, args } = expr {
            mention(*callee);
            args.iter().for_each(|arg| mention(arg.value));
        }
    }
    found.into()
}

/// Where the names of a launch are looked up: inside the innermost function around it.
pub(crate) fn launch_scope(module: &Module, launch: &Launch) -> Vec<Name> {
    match launching_item(module, launch) {
        Some(index) => module.items[index as usize].body_scope(),
        None => Vec::new(),
    }
}

/// What a launch names. Of kernels that a module defines anew by one name, that is the last one before a launch
/// outside of functions; which one a function launches that stands between them, only a run tells.
pub fn launched_by(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    launch: &Launch,
) -> Resolution {
    let path = launch_scope(module, launch);
    let scope = Scope { file, path: &path };
    let found = resolve_expr(sources, scope, &launch.body, launch.kernel);
    let starts_later = |item: &Item| item.range.start >= launch.range.start;
    let (Resolution::Jit(at), Some(later)) = (&found, module.items.iter().position(starts_later))
    else {
        return found;
    };
    if at.file != file || (at.index as usize) < later {
        return found;
    }
    match resolve_expr_before(sources, scope, &launch.body, launch.kernel, later as u32) {
        earlier @ Resolution::Jit(_) if launch.host.is_none() => earlier,
        Resolution::Jit(_) => Resolution::Undefined,
        _ => found,
    }
}

/// The innermost function around a launch, as an index into the module's items.
pub(crate) fn launching_item(module: &Module, launch: &Launch) -> Option<u32> {
    launch.host.as_ref()?;
    let holds = |item: &Item| {
        matches!(item.kind, ItemKind::Function(_)) && item.range.contains_range(launch.range)
    };
    module.items.iter().rposition(holds).map(|index| index as u32)
}

/// True for files that users want to hear about: `.tile` files, and those with jit functions, launches or
/// scenarios, those that import Triton, and what runs by itself and calls functions that launch kernels.
pub fn concerns_kernels(sources: &dyn Sources, file: FileId) -> bool {
    let module = sources.module(file).unwrap_or_default();
    paths::is_tile(&sources.path(file))
        || !module.scenarios.is_empty()
        || imports_triton(&module)
        || !jit_functions(sources, file).is_empty()
        || !launched_files(sources, file).is_empty()
}

fn imports_triton(module: &Module) -> bool {
    module.items.iter().any(|item| {
        let path = match &item.kind {
            ItemKind::Import { path, .. } => path,
            ItemKind::ImportFrom { level: 0, path, .. } => path,
            _ => return false,
        };
        path.first().is_some_and(|first| &**first == "triton")
    })
}

/// The files other than `file` whose kernels host code in `file` launches, or may launch, and whose helpers its
/// jit functions call; of what runs by itself, such as a test, also those whose functions it calls
/// that launch kernels, with the files of these, and those of what it imports that ask for variables of the
/// environment, which it may set.
pub fn used_files(sources: &dyn Sources, file: FileId) -> Vec<FileId> {
    let mut files = launched_files(sources, file);
    files.extend(asking_modules(sources, file));
    files.sort();
    files.dedup();
    files
}

/// Those of the [`used_files`] that have to do with launches.
fn launched_files(sources: &dyn Sources, file: FileId) -> Vec<FileId> {
    let called = called_from_jit(sources, &jit_functions(sources, file)).into_iter();
    let used = launched_in(sources, file).chain(perhaps_launched_in(sources, file)).chain(called);
    let mut files: Vec<FileId> = used.map(|at| at.file).collect();
    for host in called_hosts(sources, file) {
        files.push(host);
        let launched = launched_in(sources, host).chain(perhaps_launched_in(sources, host));
        files.extend(launched.map(|at| at.file));
    }
    files.sort();
    files.dedup();
    files.retain(|other| *other != file);
    files
}

/// The jit functions of `file` that launches in it, or in files that import from it, name.
fn launched(sources: &dyn Sources, file: FileId) -> Vec<ItemRef> {
    let elsewhere = sources.importers(file);
    let launching = [file].into_iter().chain(elsewhere);
    launching
        .flat_map(|from| launched_in(sources, from).collect::<Vec<_>>())
        .filter(|at| at.file == file)
        .collect()
}

/// The jit functions that launches in `file` name.
fn launched_in(sources: &dyn Sources, file: FileId) -> impl Iterator<Item = ItemRef> {
    let named = what_is_launched(sources, file).into_iter().filter_map(|found| match found {
        Resolution::Jit(at) => Some(at),
        _ => None,
    });
    let mut found: Vec<ItemRef> = named.collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter()
}

/// Those that `file` imports, where it launches what a variable holds: that may be any of them.
fn perhaps_launched_in(sources: &dyn Sources, file: FileId) -> Vec<ItemRef> {
    // What nothing outside of a function defines is a variable of its own.
    let is_variable =
        |found: &Resolution| matches!(found, Resolution::Unknown | Resolution::Undefined);
    if !what_is_launched(sources, file).iter().any(is_variable) {
        return Vec::new();
    }
    let module = sources.module(file).unwrap_or_default();
    let is_import = |item: &Item| matches!(item.kind, ItemKind::ImportFrom { .. });
    let imports = (0..).zip(&module.items).filter(|(_, item)| is_import(item));
    let found =
        imports.filter_map(|(index, _)| match resolve_item(sources, ItemRef { file, index }) {
            Resolution::Jit(at) => Some(at),
            _ => None,
        });
    found.collect()
}

/// What each launch in `file` names.
fn what_is_launched(sources: &dyn Sources, file: FileId) -> Vec<Resolution> {
    let module = sources.module(file).unwrap_or_default();
    let named = module.launches.iter().map(|launch| launched_by(sources, file, &module, launch));
    named.collect()
}

fn is_tuned(sources: &dyn Sources, at: ItemRef) -> bool {
    decorators(sources, at)
        .iter()
        .any(|decorator| matches!(decorator, Decorator::Autotune(_) | Decorator::Heuristics(_)))
}

fn looks_like_entry(sources: &dyn Sources, at: ItemRef, called: &[ItemRef]) -> bool {
    if is_tuned(sources, at) {
        return true;
    }
    let Some(function) = function(sources, at) else { return false };
    !called.contains(&at)
        && !is_method(sources, at)
        && !returns_value(&function.body)
        && with_callees(sources, at).into_iter().any(|at| {
            self::function(sources, at)
                .is_some_and(|function| calls(&function.body, touches_memory))
        })
}

/// True for a method that kernels call: of an aggregate, which a decorator makes, or one that gets an
/// object. Other jit functions of a class are launched as those of modules are.
pub(crate) fn is_method(sources: &dyn Sources, at: ItemRef) -> bool {
    let gets_object = || {
        let params = head(sources, at).map(|function| function.params.clone());
        params.is_some_and(|params| params.first().is_some_and(|param| &*param.name == "self"))
    };
    class_around(sources, at).is_some_and(|class| !class.decorators.is_empty() || gets_object())
}

/// True when a function is defined in a class.
pub(crate) fn in_class(sources: &dyn Sources, at: ItemRef) -> bool {
    class_around(sources, at).is_some()
}

/// The class that a function is defined in.
fn class_around(sources: &dyn Sources, at: ItemRef) -> Option<Arc<Class>> {
    let (module, item) = (sources.module(at.file)?, item(sources, at)?);
    let (class, around) = item.scope.split_last()?;
    module.items_named(class).find_map(|index| {
        let outer = &module.items[index as usize];
        match &outer.kind {
            ItemKind::Class(class) if outer.scope[..] == *around => Some(class.clone()),
            _ => None,
        }
    })
}

fn returns_value(body: &Body) -> bool {
    let is_value = |value: ExprId| body.exprs[value] != Expr::Literal(Literal::None);
    body.stmts.values().any(|stmt| matches!(stmt, Stmt::Return(Some(value)) if is_value(*value)))
}

/// True when some call is of an attribute or function with a name of which `is_meant` holds.
fn calls(body: &Body, is_meant: impl Fn(&str) -> bool) -> bool {
    called_names(body).any(|(name, _)| is_meant(name))
}

/// The names of attributes and functions that are called, with the arguments.
fn called_names(body: &Body) -> impl Iterator<Item = (&Name, &[Arg])> {
    body.exprs.values().filter_map(|expr| {
        let Expr::Call { callee, args } = expr else { return None };
        match &body.exprs[*callee] {
            Expr::Name(name) | Expr::Attribute { attr: name, .. } => Some((name, &**args)),
            _ => None,
        }
    })
}

/// Whether what is called so reads or writes memory.
fn touches_memory(name: &str) -> bool {
    matches!(name, "load" | "store") || name.starts_with("atomic_")
}

/// Whether what is called so tells where in the grid a program is, or may do so.
fn asks_for_position(name: &str) -> bool {
    matches!(name, "program_id" | "inline_asm_elementwise")
}
