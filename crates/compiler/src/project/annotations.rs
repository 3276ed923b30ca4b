//! What annotations of parameters mean.

use crate::builtins::TORCH;
use crate::hir::{Expr, ExprId, Function, Literal, Name};

use super::{ItemRef, Resolution, Scope, Sources, head, item_scope, resolve_expr};

/// Whether an annotation by the name of `Tensor` may mean PyTorch's, by what its first name means.
/// Others have tensors too.
pub(crate) fn may_be_of_torch(root: &Resolution) -> bool {
    match root {
        Resolution::External(path) => path.first().is_none_or(|package| &**package == TORCH),
        Resolution::Class(_) => false,
        _ => true,
    }
}

/// True where `annotation`, of a parameter of `function`, makes its argument a compile-time value:
/// `tl.constexpr` by any name, in a string, or inside of another annotation such as
/// `Optional[tl.constexpr]`. Triton looks for the word in the annotation's text
/// (`KernelParam.is_constexpr` in `runtime/jit.py`), which for a class is its own name.
pub(crate) fn is_constexpr(
    sources: &dyn Sources,
    scope: Scope<'_>,
    function: &Function,
    annotation: ExprId,
) -> bool {
    let inside = |part: &ExprId| is_constexpr(sources, scope, function, *part);
    match &function.body.exprs[annotation] {
        Expr::Literal(Literal::Str(text)) => text.contains("constexpr"),
        Expr::Attribute { attr: name, .. } | Expr::Name(name) => {
            &**name == "constexpr"
                || resolve_expr(sources, scope, &function.body, annotation)
                    == Resolution::Triton("language.constexpr".into())
        }
        Expr::Subscript { value, index } => inside(value) || inside(index),
        Expr::Binary { lhs, rhs, .. } => inside(lhs) || inside(rhs),
        Expr::Tuple(items) | Expr::List(items) => items.iter().any(inside),
        _ => false,
    }
}

/// The names of the parameters of the function `at` that are compile-time values by annotation.
pub fn constexpr_params(sources: &dyn Sources, at: ItemRef) -> Vec<Name> {
    let Some(function) = head(sources, at) else { return Vec::new() };
    let path = item_scope(sources, at);
    let scope = Scope { file: at.file, path: &path };
    let constant = |annotation| is_constexpr(sources, scope, &function, annotation);
    let params = function.params.iter().filter(|param| param.annotation.is_some_and(constant));
    params.map(|param| param.name.clone()).collect()
}
