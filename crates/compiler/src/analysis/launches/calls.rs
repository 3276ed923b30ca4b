//! Host code that calls a kernel as if it were a function.

use rustc_hash::FxHashSet;

use crate::builtins::{self, TORCH, torch};
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::hir::{Body, Expr, ExprId, Function, Item, ItemKind, Module, Name, SourceMap, Stmt};
use crate::project::{
    Decorator, ItemRef, Resolution, Scope, Sources, is_entry, jit_functions, kernel, resolve_expr,
};
use crate::source::{FileId, FileRange, TextRange};

/// Decorators of Python's own after which a method does what its body says.
const PLAIN_DECORATORS: &[&str] = &["classmethod", "property", "staticmethod"];

/// Statements that no kernel can have, by the names of their nodes.
const HOST_STATEMENTS: &[&str] = &["FunctionDef", "Raise"];

/// Calls without a grid in the functions of `file` that run on the host, and beside them.
pub(super) fn check(sources: &dyn Sources, file: FileId, module: &Module) -> Vec<Diagnostic> {
    let compiled = jit_functions(sources, file);
    let is_host = |index: usize, item: &Item| match &item.kind {
        // A decorator may compile it, or replace what it calls.
        ItemKind::Function(function) => {
            let at = ItemRef { file, index: index as u32 };
            let scope = Scope { file, path: &item.scope };
            let decorators = function.decorators.iter();
            let kinds = decorators.map(|decorator| kind_of(sources, scope, function, *decorator));
            let kinds: Vec<Kind> = kinds.collect();
            let may_compile = kinds.contains(&Kind::Other)
                || kinds.contains(&Kind::OfProject) && !runs_on_host(sources, file, item);
            !may_compile && !compiled.contains(&at)
        }
        _ => false,
    };
    let items = module.items.iter().enumerate();
    let plain: Vec<(usize, &Item)> = items.filter(|(index, item)| is_host(*index, item)).collect();
    let hosts = hosts(sources, file, module, &plain);
    let in_functions = plain
        .iter()
        .flat_map(|(index, item)| in_function(sources, file, item, hosts.contains(index)));
    let is_bound = |callee: &Expr| {
        module.mains.iter().any(|main| {
            let mut targets = main.body.stmts.values().flat_map(Stmt::targets);
            targets.any(|target| main.body.exprs[target] == *callee)
        })
    };
    let in_mains = module.mains.iter().flat_map(|main| {
        let scope = Scope { file, path: &[] };
        in_body(sources, scope, (&main.body, &main.map), (true, &is_bound))
    });
    in_functions.chain(in_mains).collect()
}

/// What a decorator does with its function.
#[derive(PartialEq, Eq)]
enum Kind {
    /// The function does what its body says: the decorator is Python's own, or of PyTorch.
    Plain,
    /// The project says what: it may compile a kernel, but nothing that does what no kernel can.
    OfProject,
    /// It may do anything.
    Other,
}

fn kind_of(
    sources: &dyn Sources,
    scope: Scope<'_>,
    function: &Function,
    decorator: ExprId,
) -> Kind {
    let named = match &function.body.exprs[decorator] {
        Expr::Call { callee, .. } => *callee,
        _ => decorator,
    };
    if PLAIN_DECORATORS.iter().any(|plain| function.body.exprs[decorator].is_name(plain)) {
        return Kind::Plain;
    }
    match resolve_expr(sources, scope, &function.body, named) {
        meaning if is_of_torch(&meaning) => Kind::Plain,
        Resolution::Function(_) | Resolution::Class(_) => Kind::OfProject,
        _ => Kind::Other,
    }
}

fn is_of_torch(meaning: &Resolution) -> bool {
    match meaning {
        Resolution::External(path) => path.first().is_some_and(|first| &**first == TORCH),
        _ => false,
    }
}

/// The functions among `plain` that certainly run on the host: they do what no kernel can, or one that
/// does calls them.
fn hosts(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    plain: &[(usize, &Item)],
) -> FxHashSet<usize> {
    let mut found = FxHashSet::default();
    let mains = module.mains.iter().map(|main| (&*main.body, Vec::new()));
    let do_so = plain.iter().filter(|(_, item)| runs_on_host(sources, file, item));
    found.extend(do_so.map(|(index, _)| *index));
    let bodies = found.iter().filter_map(|index| body_of(&module.items[*index]));
    let mut open: Vec<_> = mains.chain(bodies).collect();
    while let Some((body, path)) = open.pop() {
        let scope = Scope { file, path: &path };
        for called in called_functions(sources, scope, body) {
            let is_plain = plain.iter().any(|(index, _)| *index == called);
            if is_plain && found.insert(called) {
                open.extend(body_of(&module.items[called]));
            }
        }
    }
    found
}

fn body_of(item: &Item) -> Option<(&Body, Vec<Name>)> {
    match &item.kind {
        ItemKind::Function(function) => Some((&function.body, item.body_scope())),
        _ => None,
    }
}

/// The functions of the scope's file that a body calls by their names.
fn called_functions(sources: &dyn Sources, scope: Scope<'_>, body: &Body) -> Vec<usize> {
    let calls = body.exprs.values().filter_map(|expr| match expr {
        Expr::Call { callee, .. } => Some(*callee),
        _ => None,
    });
    let meanings = calls.map(|callee| resolve_expr(sources, scope, body, callee));
    let here = meanings.filter_map(|meaning| match meaning {
        Resolution::Function(at) if at.file == scope.file => Some(at.index as usize),
        _ => None,
    });
    here.collect()
}

fn in_function(sources: &dyn Sources, file: FileId, item: &Item, is_host: bool) -> Vec<Diagnostic> {
    let Some((_, path)) = body_of(item) else { return Vec::new() };
    let ItemKind::Function(function) = &item.kind else { return Vec::new() };
    let scope = Scope { file, path: &path };
    in_body(sources, scope, (&function.body, &function.map), (is_host, &|_| false))
}

fn in_body(
    sources: &dyn Sources,
    scope: Scope<'_>,
    (body, map): (&Body, &SourceMap),
    (is_host, is_bound): (bool, &dyn Fn(&Expr) -> bool),
) -> Vec<Diagnostic> {
    let called = body.exprs.iter().filter_map(|(_, expr)| match expr {
        Expr::Call { callee, .. } => Some(*callee),
        _ => None,
    });
    let named = called.filter(|callee| {
        let callee = &body.exprs[*callee];
        matches!(callee, Expr::Name(_) | Expr::Attribute { .. }) && !is_bound(callee)
    });
    let mut found = Vec::new();
    for callee in named {
        let Resolution::Jit(at) = resolve_expr(sources, scope, body, callee) else { continue };
        let range = FileRange { file: scope.file, range: map.exprs[callee] };
        found.extend(gridless(sources, at, range, is_host));
    }
    found
}

/// Whether only what the host has has a method: a tensor of PyTorch, or the context of a function.
fn is_host_method(name: &str) -> bool {
    let is_of_kernels =
        || builtins::method(name).is_some() || builtins::descriptor_method(name).is_some();
    let is_of_tensors = || torch::tensor_members().is_some_and(|members| members.contains(name));
    name == "save_for_backward" || is_of_tensors() && !is_of_kernels()
}

/// Whether a function does what no kernel can: take what it says is PyTorch's, launch a kernel, call PyTorch
/// or what its tensors have, or raise. Any other may be passed to `triton.jit` somewhere.
fn runs_on_host(sources: &dyn Sources, file: FileId, item: &Item) -> bool {
    let ItemKind::Function(function) = &item.kind else { return false };
    let scope = Scope { file, path: &item.body_scope() };
    let is_of_host = |stmt: &Stmt| match stmt {
        Stmt::Unsupported(kind) => HOST_STATEMENTS.contains(kind),
        Stmt::Try { .. } => true,
        _ => false,
    };
    if function.body.stmts.values().any(is_of_host) {
        return true;
    }
    let means = |id| resolve_expr(sources, scope, &function.body, id);
    // `tl.where` is a function of Triton, where `x.where` is a method of the host's.
    let is_of_host_call = |callee: &ExprId| match (means(*callee), &function.body.exprs[*callee]) {
        (Resolution::Triton(_), _) => false,
        (_, Expr::Attribute { attr, .. }) if is_host_method(attr) => true,
        (meaning, _) => is_of_torch(&meaning),
    };
    let mut annotations = function.params.iter().filter_map(|param| param.annotation);
    if annotations.any(|annotation| is_of_torch(&means(annotation))) {
        return true;
    }
    function.body.exprs.values().any(|expr| {
        let Expr::Call { callee, .. } = expr else { return false };
        match &function.body.exprs[*callee] {
            Expr::Subscript { value, .. } => matches!(means(*value), Resolution::Jit(_)),
            Expr::Name(_) | Expr::Attribute { .. } => is_of_host_call(callee),
            _ => false,
        }
    })
}

fn gridless(
    sources: &dyn Sources,
    at: ItemRef,
    callee: FileRange,
    is_host: bool,
) -> Option<Diagnostic> {
    let kernel = kernel(sources, at)?;
    let is_wrapped = kernel.decorators.iter().any(|found| matches!(found, Decorator::Other(_)));
    // Kernels may call others, but none that is tuned.
    let is_tuned = kernel
        .decorators
        .iter()
        .any(|found| matches!(found, Decorator::Autotune(_) | Decorator::Heuristics(_)));
    if is_wrapped || !is_entry(sources, at) || !(is_host || is_tuned) {
        return None;
    }
    let name = &kernel.function.name;
    let message = format!("`{name}` is a kernel, so host code launches it with a grid");
    let end = FileRange { range: TextRange::empty(callee.range.end as usize), ..callee };
    let edit = TextEdit { at: end, text: "[(1,)]".to_owned() };
    let definition = FileRange { file: at.file, range: kernel.item.name_range };
    let found = Diagnostic::new(Code::GridShape, callee, message)
        .with_related(definition, "the kernel is defined here")
        .with_note(format!("the grid says how many programs run: `{name}[(programs,)](...)`"));
    Some(found.with_fix("Launch one program", vec![edit]))
}
