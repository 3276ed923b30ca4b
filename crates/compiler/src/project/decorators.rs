//! What decorators make of a function.

use super::kernels::is_made_jit;
use super::{ItemRef, Resolution, Scope, Sources, function, item, resolve_expr, resolve_item};
use crate::builtins::TORCH;
use crate::hir::{
    Arg, ArgKind, Body, Expr, ExprId, Function, Item, ItemKind, MainBlock, Name, Occasion, Stmt,
};
use crate::source::FileId;

/// A decorator with a meaning for kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decorator {
    /// `@triton.jit`, bare or called.
    Jit(ExprId),
    /// `@triton.autotune(...)`.
    Autotune(ExprId),
    /// `@triton.heuristics(...)`.
    Heuristics(ExprId),
    /// `@triton.constexpr_function`.
    ConstexprFunction,
    /// `@tl.constexpr`: a constant that is a function.
    Constant,
    /// `@triton.aggregate`, on a class.
    Aggregate,
    /// `@triton.must_use_result`.
    MustUseResult,
    /// `@triton.language.core.builtin`, or a function of the project that marks what it is given
    /// the same way: the function runs while kernels are compiled, and may be given tensors.
    Builtin,
    /// `@staticmethod`: what a class has is the function itself.
    Static,
    /// Anything else.
    Other(ExprId),
}

/// What a decorator makes of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// A jit function.
    Jit,
    /// A function that runs at compile time.
    ConstexprFunction,
}

/// What Triton calls the decorator that tries configurations.
const AUTOTUNE: &str = "autotune";

/// What Python calls a method that takes no instance.
const STATIC: &str = "staticmethod";

/// The decorators of the function or class `at`, outermost first.
pub fn decorators(sources: &dyn Sources, at: ItemRef) -> Vec<Decorator> {
    let Some(item) = item(sources, at) else { return Vec::new() };
    let scope = Scope { file: at.file, path: &item.scope };
    let classify_all = |body: &Body, ids: &[ExprId]| {
        ids.iter().map(|id| classify(sources, scope, body, *id)).collect()
    };
    match &item.kind {
        ItemKind::Function(function) => classify_all(&function.body, &function.decorators),
        ItemKind::Class(class) => classify_all(&class.body, &class.decorators),
        _ => Vec::new(),
    }
}

/// True when `at` is a jit function: by a decorator, or as in `name = triton.jit(function)`.
pub fn is_jit(sources: &dyn Sources, at: ItemRef) -> bool {
    match resolve_item(sources, at) {
        Resolution::Jit(found) => found == at,
        Resolution::Function(found) => found == at && is_made_jit(sources, at),
        _ => false,
    }
}

/// Whether the function `at` is there whenever what is around it runs, and gets what it is called with: no decorators
/// but those of PyTorch, which hand that on.
pub(crate) fn takes_what_it_is_given(sources: &dyn Sources, at: ItemRef) -> bool {
    let (Some(item), Some(function)) = (item(sources, at), function(sources, at)) else {
        return false;
    };
    let scope = Scope { file: at.file, path: &item.scope };
    let keeps = |decorator: &ExprId| {
        let decorator = callee(&function.body, *decorator);
        matches!(resolve_expr(sources, scope, &function.body, decorator),
            Resolution::External(path) if path.first().is_some_and(|first| **first == *TORCH))
    };
    item.occasion == Occasion::Always
        && item.guard.is_none()
        && function.decorators.iter().all(keeps)
}

fn classify(sources: &dyn Sources, scope: Scope<'_>, body: &Body, id: ExprId) -> Decorator {
    let path = match resolve_expr(sources, scope, body, callee(body, id)) {
        Resolution::Triton(path) => path,
        Resolution::Function(at) if marks_builtins(sources, at) => return Decorator::Builtin,
        Resolution::Function(at) if stands_for_autotune(sources, at) => {
            return Decorator::Autotune(id);
        }
        Resolution::Undefined if body.exprs[id].is_name(STATIC) => return Decorator::Static,
        _ => return Decorator::Other(id),
    };
    match &*path {
        "jit" => Decorator::Jit(id),
        AUTOTUNE => Decorator::Autotune(id),
        "heuristics" => Decorator::Heuristics(id),
        "constexpr_function" => Decorator::ConstexprFunction,
        "language.constexpr" => Decorator::Constant,
        "aggregate" => Decorator::Aggregate,
        "language.builtin" => Decorator::Builtin,
        "must_use_result" | "language.must_use_result" => Decorator::MustUseResult,
        _ => Decorator::Other(id),
    }
}

/// What a decorator expression calls: itself when it is not a call.
pub fn callee(body: &Body, id: ExprId) -> ExprId {
    match body.exprs[id] {
        Expr::Call { callee, .. } => callee,
        _ => id,
    }
}

/// Whether the decorator `id` is the function `name`, or calls it with arguments that all stand there:
/// neither something that keeps arguments for it, as `functools.partial` does, nor with stars.
pub fn calls_plainly(body: &Body, id: ExprId, name: &str) -> bool {
    let is_star = |arg: &Arg| matches!(arg.kind, ArgKind::Star | ArgKind::DoubleStar);
    let spreads = matches!(&body.exprs[id], Expr::Call { args, .. } if args.iter().any(is_star));
    match &body.exprs[callee(body, id)] {
        Expr::Name(called) | Expr::Attribute { attr: called, .. } => !spreads && **called == *name,
        _ => false,
    }
}

/// What the decorator at this path in the `triton` package makes of a function.
pub(super) fn effect(path: &str) -> Option<Effect> {
    match path {
        "jit" => Some(Effect::Jit),
        // `@tl.constexpr` makes a constant of a function, which can still be called.
        "constexpr_function" | "language.constexpr_function" | "language.constexpr" => {
            Some(Effect::ConstexprFunction)
        }
        _ => None,
    }
}

/// True when the function `at` sets the attribute by which Triton knows its builtins.
fn marks_builtins(sources: &dyn Sources, at: ItemRef) -> bool {
    function(sources, at).is_some_and(|function| marked(&function.body).next().is_some())
}

/// Whether a function of the project stands for `triton.autotune`, as changed copies of it do: its name and its
/// first parameters are the same, and it makes an object of a class that Triton launches like a kernel.
fn stands_for_autotune(sources: &dyn Sources, at: ItemRef) -> bool {
    const PARAMS: [&str; 2] = ["configs", "key"];
    let (Some(item), Some(tuner)) = (item(sources, at), function(sources, at)) else {
        return false;
    };
    let params = tuner.params.iter().map(|param| &*param.name);
    if *item.name != *AUTOTUNE || !params.take(PARAMS.len()).eq(PARAMS) {
        return false;
    }
    let path = item.body_scope();
    let module = sources.module(at.file).unwrap_or_default();
    let mut inner = module.items.iter().filter(|item| item.scope == path);
    inner.any(|item| match &item.kind {
        ItemKind::Function(inner) => returned_callees(inner).into_iter().any(|callee| {
            let path = item.body_scope();
            let scope = Scope { file: at.file, path: &path };
            match resolve_expr(sources, scope, &inner.body, callee) {
                Resolution::Class(class) => is_launched(sources, class),
                _ => false,
            }
        }),
        _ => false,
    })
}

/// Whether a class derives from Triton's own of what is launched like a kernel.
fn is_launched(sources: &dyn Sources, at: ItemRef) -> bool {
    const LAUNCHED: &[&str] = &["Autotuner", "KernelInterface"];
    let Some(Item { kind: ItemKind::Class(class), scope, .. }) = item(sources, at) else {
        return false;
    };
    let scope = Scope { file: at.file, path: &scope };
    class.bases.iter().any(|base| match resolve_expr(sources, scope, &class.body, *base) {
        Resolution::Triton(path) => LAUNCHED.contains(&path.rsplit('.').next().unwrap_or(&path)),
        _ => false,
    })
}

/// True when a module sets the attribute by which Triton knows its builtins of its function `name`.
pub(crate) fn is_marked_builtin(sources: &dyn Sources, file: FileId, name: &Name) -> bool {
    let Some(module) = sources.module(file) else { return false };
    let marks = |main: &MainBlock| {
        marked(&main.body).any(|function| main.body.exprs[function].is_name(name))
    };
    module.mains.iter().any(marks)
}

/// What statements make a builtin of, by the attribute that Triton knows builtins by.
fn marked(body: &Body) -> impl Iterator<Item = ExprId> {
    let targets = body.stmts.values().filter_map(|stmt| match stmt {
        Stmt::Assign { targets, .. } => Some(targets),
        _ => None,
    });
    targets.flatten().filter_map(|target| match &body.exprs[*target] {
        Expr::Attribute { value, attr } if &**attr == "__triton_builtin__" => Some(*value),
        _ => None,
    })
}

/// True for what stands at this path in the `triton` package and decorates kernels.
pub(super) fn is_decorator(path: &str) -> bool {
    effect(path).is_some() || matches!(path, AUTOTUNE | "heuristics")
}

/// What calls are made of whose results `function` returns, where it is named.
pub(super) fn returned_callees(function: &Function) -> Vec<ExprId> {
    let body = &function.body;
    let callees = returned(body).filter_map(|value| match &body.exprs[value] {
        Expr::Call { callee, .. } => Some(*callee),
        _ => None,
    });
    let is_named = |id: &ExprId| matches!(body.exprs[*id], Expr::Name(_) | Expr::Attribute { .. });
    callees.filter(is_named).collect()
}

/// The variables that `function` returns.
pub(super) fn returned_names(function: &Function) -> Vec<ExprId> {
    let body = &function.body;
    returned(body).filter(|value| body.exprs[*value].as_name().is_some()).collect()
}

/// What the statements of a body return.
pub(super) fn returned(body: &Body) -> impl Iterator<Item = ExprId> {
    body.stmts.values().filter_map(|stmt| match stmt {
        Stmt::Return(value) => *value,
        _ => None,
    })
}
