//! Host code that calls a kernel as if it were a function.

use crate::builtins::TORCH;
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::hir::{Expr, ExprId, Function, Item, ItemKind, Module};
use crate::project::{
    Decorator, ItemRef, Resolution, Scope, Sources, is_entry, jit_functions, kernel, resolve_expr,
};
use crate::source::{FileId, FileRange, TextRange};

/// Decorators of Python's own after which a method does what its body says.
const PLAIN_DECORATORS: &[&str] = &["classmethod", "property", "staticmethod"];

/// Calls without a grid in the functions of `file` that run on the host.
pub(super) fn check(sources: &dyn Sources, file: FileId, module: &Module) -> Vec<Diagnostic> {
    let compiled = jit_functions(sources, file);
    let is_host = |index: usize, item: &Item| match &item.kind {
        // A decorator may compile it, or replace what it calls.
        ItemKind::Function(function) => {
            let at = ItemRef { file, index: index as u32 };
            let is_plain = |decorator: &ExprId| {
                let decorator = &function.body.exprs[*decorator];
                PLAIN_DECORATORS.iter().any(|plain| decorator.is_name(plain))
            };
            function.decorators.iter().all(is_plain) && !compiled.contains(&at)
        }
        _ => false,
    };
    let items = module.items.iter().enumerate();
    let hosts = items.filter(|(index, item)| is_host(*index, item));
    hosts.flat_map(|(_, item)| in_function(sources, file, item)).collect()
}

fn in_function(sources: &dyn Sources, file: FileId, item: &Item) -> Vec<Diagnostic> {
    let ItemKind::Function(function) = &item.kind else { return Vec::new() };
    let path = item.body_scope();
    let scope = Scope { file, path: &path };
    let is_host = runs_on_host(sources, scope, function);
    let called = function.body.exprs.iter().filter_map(|(_, expr)| match expr {
        Expr::Call { callee, .. } => Some(*callee),
        _ => None,
    });
    let named = called.filter(|callee| {
        matches!(function.body.exprs[*callee], Expr::Name(_) | Expr::Attribute { .. })
    });
    let mut found = Vec::new();
    for callee in named {
        let Resolution::Jit(at) = resolve_expr(sources, scope, &function.body, callee) else {
            continue;
        };
        let range = FileRange { file, range: function.map.exprs[callee] };
        found.extend(gridless(sources, at, range, is_host));
    }
    found
}

/// Whether a function does what no kernel can: launch a kernel, or call PyTorch. Any other may be
/// passed to `triton.jit` somewhere.
fn runs_on_host(sources: &dyn Sources, scope: Scope<'_>, function: &Function) -> bool {
    let means = |id| resolve_expr(sources, scope, &function.body, id);
    function.body.exprs.values().any(|expr| {
        let Expr::Call { callee, .. } = expr else { return false };
        match &function.body.exprs[*callee] {
            Expr::Subscript { value, .. } => matches!(means(*value), Resolution::Jit(_)),
            Expr::Name(_) | Expr::Attribute { .. } => match means(*callee) {
                Resolution::External(path) => path.first().is_some_and(|first| &**first == TORCH),
                _ => false,
            },
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
