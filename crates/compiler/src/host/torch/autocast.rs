//! Regions in which PyTorch chooses the types that functions compute in.

use crate::builtins::TORCH;
use crate::hir::{ArgKind, Expr, ExprId, Function, Name};
use crate::host::code::operators::truth;
use crate::host::value::{Tensor, Value};
use crate::host::{Frame, Host};
use crate::project::{Resolution, Scope, callee, resolve_expr};
use crate::source::FileId;

/// Functions whose results have another type there than their arguments say. Source: PyTorch's
/// documentation of automatic mixed precision.
const CAST: &[&str] = &[
    "acos",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "arctan2",
    "asin",
    "atan2",
    "baddbmm",
    "binary_cross_entropy_with_logits",
    "bmm",
    "cdist",
    "chain_matmul",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosh",
    "cosine_similarity",
    "cross_entropy",
    "cumprod",
    "cumsum",
    "det",
    "dist",
    "dot",
    "einsum",
    "erfinv",
    "exp",
    "expm1",
    "group_norm",
    "huber_loss",
    "index_put",
    "inner",
    "inv",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "linear",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logcumsumexp",
    "logsumexp",
    "matmul",
    "mm",
    "mse_loss",
    "multi_margin_loss",
    "mv",
    "nll_loss",
    "norm",
    "normalize",
    "pairwise_distance",
    "poisson_nll_loss",
    "pow",
    "prelu",
    "prod",
    "reciprocal",
    "renorm",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter_add",
    "sinh",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "solve",
    "sum",
    "tan",
    "tensordot",
    "vdot",
    "vector_norm",
];

impl Host<'_> {
    /// What a function makes, where PyTorch may choose its type.
    pub(crate) fn cast_automatically(&self, function: &str, made: Value) -> Value {
        match made {
            Value::Tensor(tensor) if self.autocast > 0 && CAST.contains(&function) => {
                Value::Tensor(Tensor { dtype: None, ..tensor })
            }
            made => made,
        }
    }

    /// Whether PyTorch chooses types where the code runs: known of what runs as it stands outside of all regions.
    pub(crate) fn chooses_types(&mut self) -> Option<bool> {
        let outside = self.autocast == 0;
        (outside && (self.doubt.is_none() || self.happens())).then_some(false)
    }

    /// Whether a context manager lets PyTorch choose types.
    pub(crate) fn casts(&mut self, frame: &mut Frame, manager: ExprId) -> bool {
        let code = frame.code.clone();
        let body = code.body();
        let scope = Scope { file: frame.file, path: &frame.scope };
        if !is_autocast(&resolve_expr(self.sources, scope, body, callee(body, manager))) {
            return false;
        }
        let Expr::Call { args, .. } = &body.exprs[manager] else { return true };
        let is_enabled =
            |kind: &ArgKind| matches!(kind, ArgKind::Keyword(name) if &**name == "enabled");
        let enabled = args.iter().find(|arg| is_enabled(&arg.kind));
        enabled.is_none_or(|enabled| truth(&self.expr(frame, enabled.value)) != Some(false))
    }

    /// Whether a decorator of a function lets PyTorch choose types in it.
    pub(crate) fn runs_cast(&self, file: FileId, scope: &[Name], function: &Function) -> bool {
        self.decorators(file, scope, function).iter().any(is_autocast)
    }
}

fn is_autocast(found: &Resolution) -> bool {
    let Resolution::External(path) = found else { return false };
    let ends = [path.first(), path.last()].map(|part| part.map(|part| &**part));
    ends == [Some(TORCH), Some("autocast")]
}
