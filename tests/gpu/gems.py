"""Calls of the operations of the package `flag_gems`, whose kernels published.py repeats.

`CALLS` holds groups of calls, each a function of the operations and of `Inputs`. Groups are called in
processes of their own, so that one that stops takes no other along.
"""

import torch


class Inputs:
    """Tensors of one dtype; `x` and `y` have rows of a length that no block divides."""

    def __init__(self, dtype, large):
        """`large` ones keep a GPU busy."""
        self.dtype = dtype
        self.rows, self.columns = (2048, 5000) if large else (48, 1000)
        self.x, self.y = self.normal(self.rows, self.columns), self.normal(self.rows, self.columns)
        self.positive = self.x.abs() + 0.1
        self.unit = torch.rand_like(self.x.float()).clamp(0.01, 0.99).to(dtype)
        self.condition = self.x > 0
        self.integers = torch.randint(1, 100, (self.rows, self.columns), device="cuda", dtype=torch.int32)
        self.weight, self.bias = self.normal(self.columns), self.normal(self.columns)
        self.targets = torch.randint(0, self.columns, (self.rows,), device="cuda")
        self.chosen = torch.randint(0, self.rows, (self.rows,), device="cuda")
        self.places = torch.randint(0, self.columns, (self.rows, 64), device="cuda")
        self.image = self.normal(2, 16, 64, 48)
        self.a, self.b = self.normal(self.rows, 512), self.normal(512, 384)

    def normal(self, *shape):
        return torch.randn(*shape, device="cuda").to(self.dtype)


def of(inputs, *names, rest=()):
    """Calls with the inputs of these names, and `rest` after them."""
    def call(name):
        return lambda ops, t: getattr(ops, name)(*(getattr(t, one) for one in inputs.split()), *rest)

    return {name: call(name) for name in names}


def reduced(*names, dim=1):
    return {f"{name}.{dim}": lambda ops, t, name=name: getattr(ops, name)(t.x, dim) for name in names}


CALLS = {
    "unary": of("x", "abs", "angle", "arcsinh", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1",
                 "hardsigmoid", "i0", "isfinite", "isinf", "isnan", "isneginf", "neg", "square"),
    "activations": of("x", "celu", "elu", "gelu", "log_sigmoid", "nan_to_num", "reciprocal", "relu", "round", "sigmoid",
                       "signbit", "silu", "sin", "softplus", "softshrink", "special_i0e", "special_i1", "tan", "tanh",
                       "logical_not"),
    "logarithms": {**of("positive", "log", "log10", "rsqrt", "sqrt"),
                   "acos": lambda ops, t: ops.acos(t.unit),
                   "logit": lambda ops, t: ops.logit(t.unit),
                   "threshold": lambda ops, t: ops.threshold(t.x, 0.1, 2.0),
                   "clamp": lambda ops, t: ops.clamp(t.x, -0.5, 0.5),
                   "gelu.tanh": lambda ops, t: ops.gelu(t.x, approximate="tanh"),
                   "glu": lambda ops, t: ops.glu(t.x),
                   "polar": lambda ops, t: ops.polar(t.positive.float(), t.x.float())},
    "binary": {**of("x y", "add", "atan2", "copysign", "floor_divide", "fmin", "hypot", "logaddexp", "maximum",
                    "minimum", "mul", "remainder", "sub", "true_divide", "div_mode"),
               "pow": lambda ops, t: ops.pow_tensor_tensor(t.positive, t.y),
               "div.floor": lambda ops, t: ops.div_mode(t.x, t.y, rounding_mode="floor"),
               "div.trunc": lambda ops, t: ops.div_mode(t.x, t.y, rounding_mode="trunc"),
               "broadcast": lambda ops, t: ops.add(t.x, t.weight),
               "turned": lambda ops, t: ops.mul(t.x.t(), t.y.t())},
    "comparisons": {**of("x y", "eq", "ge", "gt", "le", "lt", "ne", "logical_and", "logical_or", "logical_xor",
                         "isclose"),
                    **of("x", "eq_scalar", "ge_scalar", "gt_scalar", "le_scalar", "lt_scalar", "ne_scalar",
                         rest=(0.5,)),
                    "where": lambda ops, t: ops.where_self(t.condition, t.x, t.y),
                    "masked_fill": lambda ops, t: ops.masked_fill(t.x, t.condition, 2.0),
                    "pow.scalar": lambda ops, t: ops.pow_tensor_scalar(t.positive, 1.5)},
    "integers": {"bitwise_and": lambda ops, t: ops.bitwise_and_tensor(t.integers, t.integers.flip(0)),
                 "bitwise_or": lambda ops, t: ops.bitwise_or_tensor(t.integers, t.integers.flip(0)),
                 "bitwise_not": lambda ops, t: ops.bitwise_not(t.integers),
                 "bitwise_left_shift": lambda ops, t: ops.bitwise_left_shift(t.integers, t.integers % 8),
                 "bitwise_right_shift": lambda ops, t: ops.bitwise_right_shift(t.integers, t.integers % 8),
                 "floor_divide": lambda ops, t: ops.floor_divide(-t.integers, t.integers.flip(0)),
                 "remainder": lambda ops, t: ops.remainder(-t.integers, t.integers.flip(0)),
                 "sum": lambda ops, t: ops.sum_dim(t.integers, [1]),
                 "cumsum": lambda ops, t: ops.cumsum(t.integers, 1),
                 "sort": lambda ops, t: ops.sort(t.integers[:, :512].contiguous()),
                 "bincount": lambda ops, t: ops.one_hot(t.integers[:, 0].long(), 100),
                 "unique": lambda ops, t: ops._unique2(t.integers.flatten()[:4096])},
    "ternary": {"addcdiv": lambda ops, t: ops.addcdiv(t.x, t.y, t.positive),
                "addcmul": lambda ops, t: ops.addcmul(t.x, t.y, t.positive),
                "lerp": lambda ops, t: ops.lerp_tensor(t.x, t.y, t.unit),
                "lerp.scalar": lambda ops, t: ops.lerp_scalar(t.x, t.y, 0.3),
                "mse_loss": lambda ops, t: ops.mse_loss(t.x, t.y),
                "soft_margin_loss": lambda ops, t: ops.soft_margin_loss(t.x, t.y.sign()),
                "dropout_backward": lambda ops, t: ops.dropout_backward(t.x, t.condition, 2.0),
                "dropout": lambda ops, t: ops.dropout(t.x, 0.3),
                "rand_like": lambda ops, t: ops.rand_like(t.x),
                "randn_like": lambda ops, t: ops.randn_like(t.x)},
    "gradients": {"elu": lambda ops, t: ops.elu_backward(t.x, 1.0, 1.0, 1.0, False, t.y),
                  "gelu": lambda ops, t: ops.gelu_backward(t.x, t.y),
                  "glu": lambda ops, t: ops.glu_backward(t.x[:, :500].contiguous(), t.y[:, :1000].contiguous()),
                  "sigmoid": lambda ops, t: ops.sigmoid_backward(t.x, t.unit),
                  "silu": lambda ops, t: ops.silu_backward(t.x, t.y),
                  "tanh": lambda ops, t: ops.tanh_backward(t.x, t.unit),
                  "threshold": lambda ops, t: ops.threshold_backward(t.x, t.y, 0.1),
                  "softmax": lambda ops, t: ops.softmax_backward(t.x, t.unit, 1, t.dtype),
                  "log_softmax": lambda ops, t: ops.log_softmax_backward(t.x, t.y, 1, t.dtype),
                  "scaled_softmax": lambda ops, t: ops.scaled_softmax_backward(t.image, t.image, 0.5)},
    "reductions": {**of("x", "all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum", "count_nonzero",
                         "aminmax", "vector_norm"),
                   "dot": lambda ops, t: ops.dot(t.weight, t.bias),
                   "vdot": lambda ops, t: ops.vdot(t.weight, t.bias),
                   "trace": lambda ops, t: ops.trace(t.x),
                   "allclose": lambda ops, t: ops.allclose(t.x, t.x)},
    "rows": {**reduced("all_dim", "amax", "any_dim", "argmax", "argmin", "max_dim", "min_dim", "prod_dim"),
             **{f"{name}.list": lambda ops, t, name=name: getattr(ops, name)(t.x, [1])
                for name in ("mean_dim", "sum_dim", "var_mean", "vector_norm")},
             "std": lambda ops, t: ops.std(t.x, [1])},
    "columns": {**reduced("all_dim", "amax", "any_dim", "argmax", "max_dim", "min_dim", dim=0),
                **{f"{name}.list": lambda ops, t, name=name: (getattr(ops, name)(t.x, [0]))
                   for name in ("mean_dim", "sum_dim", "var_mean")}},
    "normalizations": {
        "layer_norm": lambda ops, t: ops.layer_norm(t.x, [t.columns], t.weight, t.bias),
        "layer_norm_backward": lambda ops, t: ops.layer_norm_backward(
            t.y, t.x, [t.columns], t.x.float().mean(1), t.x.float().std(1).reciprocal(), t.weight, t.bias, [True] * 3),
        "rms_norm": lambda ops, t: ops.rms_norm_forward(t.x, [t.columns], t.weight),
        "rms_norm_backward": lambda ops, t: ops.rms_norm_backward(
            t.y, t.x, t.x.float().pow(2).mean(1).rsqrt(), [t.columns], t.weight),
        "group_norm": lambda ops, t: ops.group_norm(t.image, t.weight[:16], t.bias[:16], 2, 16, 64 * 48, 4),
        "batch_norm": lambda ops, t: ops.batch_norm(
            t.image, t.weight[:16], t.bias[:16], t.weight[:16].float(), t.bias[:16].float().abs(), True),
        "softmax": lambda ops, t: ops.softmax(t.x, 1),
        "softmax.columns": lambda ops, t: ops.softmax(t.x, 0),
        "log_softmax": lambda ops, t: ops.log_softmax(t.x, 1),
        "safe_softmax": lambda ops, t: ops._safe_softmax(t.x, 1),
        "scaled_softmax": lambda ops, t: ops.scaled_softmax_forward(t.image, 0.5),
        "weight_norm": lambda ops, t: ops.weight_norm_interface(t.x, t.x[:, :1].float().abs().to(t.dtype), 0)},
    "orders": {"cummax": lambda ops, t: ops.cummax(t.x, 1),
               "cummin": lambda ops, t: ops.cummin(t.x, 1),
               "cumsum": lambda ops, t: ops.cumsum(t.x, 1),
               "cumsum.columns": lambda ops, t: ops.cumsum(t.x, 0),
               "normed_cumsum": lambda ops, t: ops.normed_cumsum(t.unit),
               "topk": lambda ops, t: ops.topk(t.x, 5),
               "sort": lambda ops, t: ops.sort(t.x),
               "sort.stable": lambda ops, t: ops.sort_stable(t.x, stable=True, descending=True),
               "nonzero": lambda ops, t: ops.nonzero(t.condition),
               "masked_select": lambda ops, t: ops.masked_select(t.x, t.condition),
               "masked_scatter": lambda ops, t: ops.masked_scatter(t.x, t.condition, t.y),
               "isin": lambda ops, t: ops.isin(t.integers[:, 0].contiguous(), t.integers[0, :64].contiguous()),
               "unique_consecutive": lambda ops, t: ops.unique_consecutive(t.integers.flatten()[:4096])},
    "indexing": {"embedding": lambda ops, t: ops.embedding(t.x, t.chosen),
                 "embedding_backward": lambda ops, t: ops.embedding_backward(t.x, t.chosen, t.rows),
                 "gather": lambda ops, t: ops.gather(t.x, 1, t.places),
                 "scatter": lambda ops, t: ops.scatter(t.x, 1, t.places[:, :1].contiguous(), t.y[:, :1].contiguous()),
                 "index": lambda ops, t: ops.index(t.x, [t.chosen]),
                 "index_select": lambda ops, t: ops.index_select(t.x, 0, t.chosen),
                 "index_add": lambda ops, t: ops.index_add(t.x.float(), 0, t.chosen, t.y.float()),
                 "index_put": lambda ops, t: ops.index_put(t.x, [torch.arange(t.rows, device="cuda")], t.y),
                 "select_scatter": lambda ops, t: ops.select_scatter(t.x, t.y[0], 0, 3),
                 "slice_scatter": lambda ops, t: ops.slice_scatter(t.x, t.y[:, ::3].contiguous(), 1, 0, t.columns, 3),
                 "nll_loss": lambda ops, t: ops.nll_loss_forward(t.x, t.targets),
                 "diag": lambda ops, t: ops.diag(t.weight),
                 "diag_embed": lambda ops, t: ops.diag_embed(t.a[:16, :32].contiguous())},
    "shapes": {"cat": lambda ops, t: ops.cat([t.x, t.y], 1),
               "stack": lambda ops, t: ops.stack([t.x, t.y], 1),
               "flip": lambda ops, t: ops.flip(t.x, [1]),
               "roll": lambda ops, t: ops.roll(t.x, 3, 1),
               "repeat": lambda ops, t: ops.repeat(t.x, (1, 2)),
               "repeat_interleave": lambda ops, t: ops.repeat_interleave_self_int(t.x, 3, 1),
               "tile": lambda ops, t: ops.tile(t.x, (2, 1)),
               "tril": lambda ops, t: ops.tril(t.x),
               "triu": lambda ops, t: ops.triu(t.x),
               "pad": lambda ops, t: ops.constant_pad_nd(t.x, (1, 2), 3.0),
               "reflection_pad1d": lambda ops, t: ops.reflection_pad1d(t.x, (3, 4)),
               "kron": lambda ops, t: ops.kron(t.a[:16, :16].contiguous(), t.b[:8, :8].contiguous()),
               "arange": lambda ops, t: ops.arange_start(3, 5000, 7, device="cuda"),
               "linspace": lambda ops, t: ops.linspace(0, 1, 1001, device="cuda"),
               "eye": lambda ops, t: ops.eye_m(100, 130, device="cuda"),
               "full": lambda ops, t: ops.full((100, 130), 2.5, device="cuda"),
               "pixel_unshuffle": lambda ops, t: ops.pixel_unshuffle(t.image, 2),
               "contiguous": lambda ops, t: ops.contiguous(t.x.t())},
    "products": {"mm": lambda ops, t: ops.mm(t.a, t.b),
                 "addmm": lambda ops, t: ops.addmm(t.bias[:384], t.a, t.b),
                 "bmm": lambda ops, t: ops.bmm(t.a.view(-1, 16, 512), t.b.expand(t.rows // 16, 512, 384).contiguous()),
                 "baddbmm": lambda ops, t: ops.baddbmm(t.bias[:384].expand(t.rows // 16, 16, 384).contiguous(),
                                                       t.a.view(-1, 16, 512),
                                                       t.b.expand(t.rows // 16, 512, 384).contiguous()),
                 "mv": lambda ops, t: ops.mv(t.x, t.weight),
                 "addmv": lambda ops, t: ops.addmv(t.x[:, 0].contiguous(), t.x, t.weight),
                 "addr": lambda ops, t: ops.addr(t.x, t.x[:, 0].contiguous(), t.weight),
                 "attention": lambda ops, t: ops.scaled_dot_product_attention(
                     *(t.normal(2, 4, 256, 64) for _ in range(3)), is_causal=True)},
    "images": {"avg_pool2d": lambda ops, t: ops.avg_pool2d(t.image, 3, 2, 1),
               "max_pool2d": lambda ops, t: ops.max_pool2d_with_indices(t.image, 3, 2, 1),
               "conv1d": lambda ops, t: ops.conv1d(t.image[:, :, 0].contiguous(), t.normal(32, 16, 3)),
               "conv2d": lambda ops, t: ops.conv2d(t.image, t.normal(32, 16, 3, 3), padding=1),
               "conv_depthwise2d": lambda ops, t: ops._conv_depthwise2d(
                   t.image, t.normal(16, 1, 3, 3), (3, 3), None, (1, 1), (1, 1), (1, 1)),
               "upsample_nearest2d": lambda ops, t: ops.upsample_nearest2d(t.image, (100, 90)),
               "upsample_bicubic2d": lambda ops, t: ops.upsample_bicubic2d(t.image, (100, 90)),
               "upsample_bicubic2d_aa": lambda ops, t: ops._upsample_bicubic2d_aa(t.image, (100, 90)),
               "upsample_linear1d": lambda ops, t: ops.upsample_linear1d(t.image[:, :, 0].contiguous(), [99], False),
               "reflection_pad2d": lambda ops, t: ops.reflection_pad2d(t.image, (1, 2, 3, 4)),
               "hadamard": lambda ops, t: ops.hadamard_transform(t.a)},
}


def run(group, dtype, large):
    """Every call of a group; what stopped which call, if any did."""
    import flag_gems.ops as ops

    torch.manual_seed(0)
    inputs, problems = Inputs(dtype, large), []
    for name, call in CALLS[group].items():
        try:
            call(ops, inputs)
            torch.cuda.synchronize()
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {str(error).strip()[:120]}")
    if problems:
        raise RuntimeError("; ".join(problems))
