//! Compile-time values that launches give to parameters without an annotation.

use super::kernels::{launch_scope, launched_by, launching_item};
use super::{ItemRef, Resolution, Scope, Sources, constexpr_params, function, resolve_expr};
use crate::hir::{
    Arg, ArgKind, Body, Expr, ExprId, Item, ItemKind, Launch, Literal, Module, Name, Param, Stmt,
};
use crate::source::FileId;

/// Whether a launch of the kernel `at` passes a `tl.constexpr(...)`, itself or by a name: whatever it
/// is passed for is a compile-time value then, with or without an annotation
/// (`native_specialize_impl` of `runtime/jit.py`).
pub(crate) fn is_given_constants(sources: &dyn Sources, at: ItemRef) -> bool {
    is_given(sources, at, |place, launch, _, arg| place.is_given(launch, arg.value))
}

/// The parameters without an annotation for which a launch of the kernel `at` passes a one: Triton takes that for a
/// compile-time value.
pub(crate) fn given_ones(sources: &dyn Sources, at: ItemRef) -> Vec<Param> {
    let Some(function) = function(sources, at) else { return Vec::new() };
    let constexpr = constexpr_params(sources, at);
    let is_one = |param: &Param| {
        is_given(sources, at, |_, launch, index, arg| {
            let of = match &arg.kind {
                ArgKind::Keyword(name) => Some(name),
                _ => function.params.get(index).map(|param| &param.name),
            };
            of == Some(&param.name)
                && matches!(&launch.body.exprs[arg.value], Expr::Literal(Literal::Int(one)) if one.get() == 1)
        })
    };
    let open = function.params.iter().filter(|param| !constexpr.contains(&param.name));
    open.filter(|param| is_one(param)).cloned().collect()
}

/// Whether a launch of the kernel `at` has an argument for which `is_so` holds, which is told where it stands.
fn is_given(
    sources: &dyn Sources,
    at: ItemRef,
    is_so: impl Fn(&Place<'_>, &Launch, usize, &Arg) -> bool,
) -> bool {
    let elsewhere = sources.importers(at.file);
    [at.file].into_iter().chain(elsewhere).any(|file| {
        let Some(module) = sources.module(file) else { return false };
        let gives = |launch: &Launch| {
            let path = launch_scope(&module, launch);
            let scope = Scope { file, path: &path };
            let place = Place { sources, file, module: &module, scope };
            let mut args = launch.args.iter().enumerate();
            launched_by(sources, file, &module, launch) == Resolution::Jit(at)
                && args.any(|(index, arg)| is_so(&place, launch, index, arg))
        };
        module.launches.iter().any(gives)
    })
}

/// Where a launch stands.
struct Place<'a> {
    sources: &'a dyn Sources,
    file: FileId,
    module: &'a Module,
    scope: Scope<'a>,
}

impl Place<'_> {
    /// Whether an argument of a launch is a compile-time value.
    fn is_given(&self, launch: &Launch, argument: ExprId) -> bool {
        match launch.body.exprs[argument].as_name() {
            Some(name) => self.is_bound_in_function(launch, name) || self.is_bound_in_module(name),
            None => self.is_constant(&launch.body, argument),
        }
    }

    fn is_bound_in_function(&self, launch: &Launch, name: &Name) -> bool {
        let host = launching_item(self.module, launch);
        let host =
            host.and_then(|index| function(self.sources, ItemRef { file: self.file, index }));
        host.is_some_and(|host| {
            let body = &host.body;
            body.stmts.values().any(|stmt| match stmt {
                Stmt::Assign { targets, value } => {
                    targets.iter().any(|target| body.exprs[*target].is_name(name))
                        && self.is_constant(body, *value)
                }
                _ => false,
            })
        })
    }

    fn is_bound_in_module(&self, name: &Name) -> bool {
        let is_constant = |item: &Item| match &item.kind {
            ItemKind::Assign { body, value, .. } => self.is_constant(body, *value),
            _ => false,
        };
        let mut items = self.module.items_named(name);
        items.any(|index| is_constant(&self.module.items[index as usize]))
    }

    /// Whether an expression is `tl.constexpr(...)`, or a tuple that holds one.
    fn is_constant(&self, body: &Body, id: ExprId) -> bool {
        match &body.exprs[id] {
            Expr::Call { callee, .. } => {
                resolve_expr(self.sources, self.scope, body, *callee)
                    == Resolution::Triton("language.constexpr".into())
            }
            Expr::Tuple(items) => items.iter().any(|item| self.is_constant(body, *item)),
            _ => false,
        }
    }
}
