//! What PyTorch and NumPy have and kernels do not, and what kernels use instead.

/// Functions of `torch`, `torch.nn.functional` or `numpy` that the language has under another name
/// or not at all, each with what takes its place in a kernel.
const INSTEAD: &[(&str, &str)] = &[
    ("all", "`tl.min(x.to(tl.int32), axis)`, which is 1 where all are true"),
    ("allclose", "`tl.max(tl.abs(x - y), axis)`"),
    ("amax", "`tl.max`"),
    ("amin", "`tl.min`"),
    ("any", "`tl.max(x.to(tl.int32), axis)`, which is 1 where one is true"),
    ("append", "a store to memory, or `tl.cat` or `tl.join`: tiles do not grow"),
    ("argsort", "`tl.sort` of keys and positions packed into one integer"),
    ("array", "`tl.full`, or `tl.join` of what there is"),
    ("as_tensor", "the number itself, or `tl.full(shape, value, dtype)`"),
    ("astype", "`x.to(dtype)`"),
    ("atomic_sub", "`tl.atomic_add(pointer, -value)`"),
    ("bmm", "`tl.dot`, which takes tiles of two or three axes"),
    ("clip", "`tl.clamp`, or `tl.minimum(tl.maximum(x, low), high)`"),
    ("concat", "`tl.cat(x, y, can_reorder=True)` or `tl.join(x, y)`, of equal shapes"),
    ("concatenate", "`tl.cat(x, y, can_reorder=True)` or `tl.join(x, y)`, of equal shapes"),
    ("count_nonzero", "`tl.sum((x != 0).to(tl.int32), axis)`"),
    ("diag", "`tl.where(rows[:, None] == columns[None, :], x, 0.0)`"),
    ("div", "the operator `/`"),
    ("divide", "the operator `/`"),
    ("dropout", "`tl.where(tl.rand(seed, offsets) > p, x / (1 - p), 0.0)`"),
    ("einsum", "`tl.dot`, or a product with broadcasting and `tl.sum`"),
    ("elu", "`tl.where(x > 0, x, tl.exp(x) - 1)`"),
    ("empty", "`tl.zeros(shape, dtype)`: a tile always has values"),
    ("empty_like", "`tl.zeros_like(x)`: a tile always has values"),
    ("eq", "the operator `==`"),
    ("eye", "`(rows[:, None] == columns[None, :]).to(dtype)`"),
    ("ge", "the operator `>=`"),
    ("gelu", "`0.5 * x * (1 + tl.erf(x * 0.7071067811865476))`"),
    ("gt", "the operator `>`"),
    ("hardtanh", "`tl.clamp(x, -1.0, 1.0)`"),
    ("hstack", "`tl.join(x, y)`, then `tl.reshape`"),
    ("index_select", "`tl.gather`, or a load at computed addresses"),
    ("isclose", "`tl.abs(x - y) < tolerance`"),
    ("layer_norm", "`tl.sum` for the mean and the variance"),
    ("le", "the operator `<=`"),
    ("leaky_relu", "`tl.where(x > 0, x, slope * x)`"),
    ("linspace", "`start + step * tl.arange(0, count)`"),
    ("log_softmax", "`x - maximum - tl.log(tl.sum(tl.exp(x - maximum), axis))`"),
    ("logical_and", "the operator `&`"),
    ("logical_not", "the operator `~` or `not`"),
    ("logical_or", "the operator `|`"),
    ("logical_xor", "the operator `^`"),
    ("logsumexp", "`maximum + tl.log(tl.sum(tl.exp(x - maximum), axis))`"),
    ("lt", "the operator `<`"),
    ("masked_fill", "`tl.where(mask, value, x)`"),
    ("matmul", "`tl.dot`"),
    ("mean", "`tl.sum(x, axis) / count`, with the number of elements that are in range"),
    ("median", "`tl.sort`, then the element in the middle"),
    ("mm", "`tl.dot`"),
    ("multiply", "the operator `*`"),
    ("ne", "the operator `!=`"),
    ("neg", "the operator `-`"),
    ("negative", "the operator `-`"),
    ("nonzero", "`tl.where`: how many there are is not known while compiling"),
    ("norm", "`tl.sqrt(tl.sum(x * x, axis))`"),
    ("normalize", "`x / tl.sqrt(tl.sum(x * x, axis))`"),
    ("ones", "`tl.full(shape, 1, dtype)`"),
    ("ones_like", "`tl.full(x.shape, 1, x.dtype)`"),
    ("outer", "`x[:, None] * y[None, :]`"),
    ("pad", "a load with `mask` and `other`"),
    ("pid", "`tl.program_id(axis)`"),
    ("power", "`x * x` for a square, or `libdevice.pow`"),
    ("printf", "`tl.device_print(\"text\", value)`"),
    ("prod", "`tl.reduce(x, axis, function)` with a jit function that multiplies"),
    ("rand_like", "`tl.rand(seed, offsets)`"),
    ("reciprocal", "`1 / x`"),
    ("relu", "`tl.maximum(x, 0.0)`"),
    ("repeat", "`tl.broadcast_to`, after `tl.expand_dims`"),
    ("roll", "a load at shifted addresses, or `tl.gather`"),
    ("scatter", "a store at computed addresses"),
    ("scatter_add", "`tl.atomic_add` at computed addresses"),
    ("sign", "`tl.where(x > 0, 1, tl.where(x < 0, -1, 0))`"),
    ("silu", "`x * tl.sigmoid(x)`"),
    ("size", "`x.shape[axis]`, which is known while compiling"),
    ("softplus", "`tl.log(1 + tl.exp(x))`"),
    ("square", "`x * x`"),
    ("squeeze", "`tl.reshape`"),
    ("stack", "`tl.join(x, y)`, along a new last axis"),
    ("std", "`tl.sqrt` of the mean of the squared differences from the mean"),
    ("subtract", "the operator `-`"),
    ("swish", "`x * tl.sigmoid(x)`"),
    ("syncthreads", "`tl.debug_barrier()`; most kernels need none"),
    ("take", "`tl.gather`, or a load at computed addresses"),
    ("take_along_axis", "`tl.gather`"),
    ("thread_id", "`tl.arange`: a program works on whole tiles, threads are the compiler's"),
    ("tile", "`tl.broadcast_to`, after `tl.expand_dims`"),
    ("transpose", "`tl.trans`"),
    ("tril", "`tl.where(rows[:, None] >= columns[None, :], x, 0.0)`"),
    ("triu", "`tl.where(rows[:, None] <= columns[None, :], x, 0.0)`"),
    ("true_divide", "the operator `/`"),
    ("unsqueeze", "`tl.expand_dims(x, axis)`, or `x[:, None]`"),
    ("var", "the mean of the squared differences from the mean"),
    ("vstack", "`tl.join(x, y)`, then `tl.permute` and `tl.reshape`"),
];

/// Functions of `torch` or `numpy` that the language has under the same name.
const SHARED: &[&str] = &[
    "abs",
    "arange",
    "argmax",
    "argmin",
    "broadcast_to",
    "cat",
    "ceil",
    "clamp",
    "cos",
    "cumprod",
    "cumsum",
    "dot",
    "erf",
    "exp",
    "exp2",
    "flip",
    "floor",
    "full",
    "gather",
    "load",
    "log",
    "log2",
    "max",
    "maximum",
    "min",
    "minimum",
    "permute",
    "rand",
    "randint",
    "randn",
    "ravel",
    "reshape",
    "rsqrt",
    "sigmoid",
    "sin",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "sum",
    "topk",
    "where",
    "zeros",
    "zeros_like",
];

/// What takes the place of a function that PyTorch or NumPy has, in words.
pub fn instead(name: &str) -> Option<&'static str> {
    let at = INSTEAD.binary_search_by_key(&name, |(known, _)| known).ok()?;
    Some(INSTEAD[at].1)
}

/// Whether PyTorch or NumPy have a function of this name that the language has too.
pub(crate) fn is_shared(name: &str) -> bool {
    SHARED.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::{LANGUAGE, TritonVersion, member};
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(INSTEAD.is_sorted_by_key(|(name, _)| name));
        assert!(SHARED.is_sorted());
    }

    #[test]
    fn shared_functions_are_the_languages() {
        for name in SHARED {
            assert!(member(LANGUAGE, name).is_some(), "{name}");
        }
        for (name, _) in INSTEAD {
            // Later versions may have it.
            let known = member(LANGUAGE, name);
            assert!(known.is_none_or(|known| !known.exists_in(TritonVersion::V3_6)), "{name}");
        }
    }

    #[test]
    fn what_is_named_exists() {
        for (name, instead) in INSTEAD {
            let parts: Vec<&str> = instead.split("tl.").collect();
            for part in &parts[1..] {
                let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
                let used = &part[..end.unwrap_or(part.len())];
                assert!(used == "int32" || member(LANGUAGE, used).is_some(), "{name}: tl.{used}");
            }
        }
    }
}
