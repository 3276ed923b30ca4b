"""The kernels of examples/ and kernels/ at the sizes at which Tile and Triton are compared.

A case is made when it is run: its tensors are on the GPU. Cases with several configurations are
timed under each compiler's own best one.
"""

import importlib.machinery
import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch
import triton
import triton.language

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KERNELS = Path(__file__).resolve().parent / "kernels"


def path_of(name):
    """Where a case's file is: in `examples/`, or in `kernels/` beside this one."""
    path = EXAMPLES / name
    return path if path.is_file() else KERNELS / name


@dataclass
class Config:
    """What a kernel is compiled with beyond its arguments."""

    constexprs: dict
    num_warps: int = 4
    num_stages: int = 3

    def __str__(self):
        blocks = "x".join(str(value) for name, value in self.constexprs.items() if "BLOCK" in name)
        return f"{blocks}.w{self.num_warps}.s{self.num_stages}"


@dataclass
class Case:
    """One kernel with one set of inputs."""

    file: str
    kernel: str
    # The grid as a function of the constexprs, as in a launch.
    grid: object
    arguments: dict
    configs: list
    outputs: list
    # What the kernel must move, in bytes, or compute, in operations: the larger says how it is rated.
    moved_bytes: int = 0
    flops: int = 0
    # Largest |ours - Triton's| / max(1, |Triton's|); 0 asks for the same bits.
    tolerance: float = 0.0
    # The outputs as they should be, where Triton's are less exact than ours may be.
    exact: object = None
    # Whether the kernel is one for sm_80 too.
    sm80: bool = True
    # What outputs hold before each launch, for kernels that read them; others are poisoned.
    initial: dict = field(default_factory=dict)

    def function(self):
        """The kernel as Triton has it, without what tunes it."""
        function = getattr(load_module(self.file), self.kernel)
        while not isinstance(function, triton.runtime.JITFunction):
            function = function.fn
        return function

    def prepare(self):
        """Puts the outputs into the state in which a launch expects them."""
        for name in self.outputs:
            tensor = self.arguments[name]
            if name in self.initial:
                tensor.copy_(self.initial[name])
            else:
                tensor.view(torch.uint8).fill_(1 if tensor.dtype == torch.bool else 0xFF)


def load_module(name):
    """A file of examples/ as a module; a `.tile` file has Triton in scope without imports."""
    path = path_of(name)
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    if path.stem not in sys.modules:
        loader = importlib.machinery.SourceFileLoader(path.stem, str(path))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.stem, loader))
        if path.suffix == ".tile":
            module.triton, module.tl = triton, triton.language
        sys.modules[path.stem] = module
        loader.exec_module(module)
    return sys.modules[path.stem]


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def empty(*shape, dtype=torch.float32):
    return torch.empty(*shape, device="cuda", dtype=dtype)


def size(*tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def name_of(dtype):
    return str(dtype).removeprefix("torch.").replace("bfloat", "bf").replace("float", "f")


CASES = {}


def case(name, make, *args, **kwargs):
    CASES[name] = lambda: make(*args, **kwargs)


def blocks_of(n):
    return lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)


# Element by element.


def vector_add(n, block):
    x, y, out = randn(n), randn(n), empty(n)
    arguments = {"x_ptr": x, "y_ptr": y, "out_ptr": out, "n_elements": n}
    return Case("vector_add.py", "add_kernel", blocks_of(n), arguments,
                [Config({"BLOCK_SIZE": block})], ["out_ptr"], size(x, y, out))


for n, block in ((98_432, 1024), (2**26, 1024), (2**26 - 3, 1024), (2**26, 4096)):
    case(f"add.f32.{n}.B{block}", vector_add, n, block)


def giou(n, dtype):
    def boxes():
        low = torch.rand(n, 2, device="cuda") * 3
        return torch.cat([low, low + 0.1 + torch.rand(n, 2, device="cuda")], 1)

    preds = boxes().to(dtype)
    targets = (boxes() * (torch.rand(n, 1, device="cuda") < 0.8)).to(dtype)
    output, valid = empty(n, dtype=dtype), empty(n, dtype=torch.bool)
    arguments = {"preds_ptr": preds, "targets_ptr": targets, "output_ptr": output,
                 "valid_ptr": valid, "n_boxes": n}
    # Fused multiply-adds differ; of bf16, 1.6e-2 is two units in the last place at 1.
    return Case("giou.py", "giou_kernel", blocks_of(n), arguments, [Config({"BLOCK_SIZE": 1024})],
                ["output_ptr", "valid_ptr"], size(preds, targets, output, valid),
                tolerance=1e-4 if dtype == torch.float32 else 1.6e-2)


case("giou.f32", giou, 2**22, torch.float32)
case("giou.bf16", giou, 2**22, torch.bfloat16)
case("giou.f32.ragged", giou, 1_000_003, torch.float32)


def dropout(n):
    x, out = randn(n), empty(n)
    arguments = {"x_ptr": x, "out_ptr": out, "n_elements": n, "p": 0.25, "seed": 123}
    return Case("dropout.py", "dropout_kernel", blocks_of(n), arguments,
                [Config({"BLOCK_SIZE": 1024})], ["out_ptr"], size(x, out))


case("dropout.f32", dropout, 2**26)


def random(n):
    outputs = {"bits_ptr": empty(n, dtype=torch.int32), "uniform_ptr": empty(n)}
    normal = empty(n)
    arguments = {**outputs, "normal_ptr": normal, "seed": 42}
    # Normal numbers are made with log, sqrt, sin and cos, of which the last bits may differ.
    return Case("dropout.py", "random_kernel", (n // 1024,), arguments,
                [Config({"BLOCK_SIZE": 1024})], [*outputs, "normal_ptr"],
                size(*outputs.values(), normal), tolerance=1e-5)


case("random", random, 2**24)


def random_bits(n):
    made = random(n)
    made.outputs, made.tolerance = ["bits_ptr", "uniform_ptr"], 0.0
    return made


case("random.bits", random_bits, 2**20)


def elementwise(file, kernel, n, dtype, tolerance):
    x = (torch.rand(n, device="cuda") * 2 - 1).to(dtype)
    out = torch.empty_like(x)
    arguments = {"x_ptr": x, "out_ptr": out, "n_elements": n}
    return Case(file, kernel, blocks_of(n), arguments, [Config({"BLOCK_SIZE": 1024})],
                ["out_ptr"], size(x, out), tolerance=tolerance)


case("asin.f32", elementwise, "asin.py", "asin_kernel", 2**25, torch.float32, 1e-6)
case("gelu.f32", elementwise, "gelu.tile", "gelu_kernel", 2**25, torch.float32, 1e-5)
case("gelu.bf16", elementwise, "gelu.tile", "gelu_kernel", 2**25, torch.bfloat16, 8e-3)


def gated_forward(n, activation, dtype):
    gate, up, out = randn(n, dtype=dtype), randn(n, dtype=dtype), empty(n, dtype=dtype)
    arguments = {"gate_ptr": gate, "up_ptr": up, "out_ptr": out, "n_elements": n}
    function = getattr(load_module("activations.py"), activation)
    return Case("gated.py", "gated_forward", blocks_of(n), arguments,
                [Config({"ACTIVATION": function, "BLOCK_SIZE": 1024})], ["out_ptr"],
                size(gate, up, out), tolerance=1e-5 if dtype == torch.float32 else 1.6e-2)


def gated_backward(n, gelu):
    gate, up, dout, dgate, dup = (randn(n) for _ in range(5))
    arguments = {"gate_ptr": gate, "up_ptr": up, "dout_ptr": dout, "dgate_ptr": dgate,
                 "dup_ptr": dup, "n_elements": n}
    return Case("gated.py", "gated_backward", blocks_of(n), arguments,
                [Config({"GELU": gelu, "BLOCK_SIZE": 1024})], ["dgate_ptr", "dup_ptr"],
                size(gate, up, dout, dgate, dup), tolerance=1e-5)


case("swiglu.f32", gated_forward, 2**24, "silu", torch.float32)
case("swiglu.bf16", gated_forward, 2**24, "silu", torch.bfloat16)
case("geglu.f32", gated_forward, 2**24, "gelu", torch.float32)
case("swiglu.backward", gated_backward, 2**23, False)
case("geglu.backward", gated_backward, 2**23, True)


def rope(tokens, heads, half, dtype):
    x = randn(tokens, heads, 2 * half, dtype=dtype)
    out = torch.empty_like(x)
    angle = torch.outer(torch.arange(tokens), 10000 ** (-torch.arange(half) / half)).cuda()
    cos, sin = angle.cos().float(), angle.sin().float()
    arguments = {"x_ptr": x, "out_ptr": out, "cos_ptr": cos, "sin_ptr": sin, "n_tokens": tokens,
                 "n_heads": heads}
    return Case("rope.py", "rope_kernel", (tokens, heads), arguments,
                [Config({"HALF": half, "BACKWARD": False}, num_warps=1)], ["out_ptr"],
                size(x, out, cos, sin), tolerance=1e-5 if dtype == torch.float32 else 1.6e-2)


case("rope.f32", rope, 4096, 32, 64, torch.float32)
case("rope.bf16", rope, 4096, 32, 64, torch.bfloat16)


def embedding(rows, cols, n):
    index = torch.randint(0, rows, (n,), device="cuda", dtype=torch.int32)
    table, out = randn(rows, cols), empty(n, cols)
    arguments = {"index_ptr": index, "table_ptr": table, "out_ptr": out, "n_cols": cols}
    return Case("embedding.py", "embedding_kernel",
                lambda meta: (n, triton.cdiv(cols, meta["BLOCK_SIZE"])), arguments,
                [Config({"BLOCK_SIZE": 1024})], ["out_ptr"], 2 * size(out))


def embedding_backward(rows, cols, n):
    index = torch.randint(0, rows, (n,), device="cuda", dtype=torch.int32)
    dout, dtable = randn(n, cols), empty(rows, cols)
    arguments = {"index_ptr": index, "dout_ptr": dout, "dtable_ptr": dtable, "n_cols": cols}
    # Atomic additions come in any order.
    return Case("embedding.py", "embedding_backward_kernel",
                lambda meta: (n, triton.cdiv(cols, meta["BLOCK_SIZE"])), arguments,
                [Config({"BLOCK_SIZE": 1024})], ["dtable_ptr"], size(dout, dtable),
                tolerance=1e-5, initial={"dtable_ptr": torch.zeros_like(dtable)})


def lookup(n):
    code = torch.randint(0, 16, (n,), device="cuda", dtype=torch.uint8)
    table, out = randn(16), empty(n)
    arguments = {"code_ptr": code, "table_ptr": table, "out_ptr": out, "n_elements": n}
    return Case("embedding.py", "lookup_kernel", blocks_of(n), arguments,
                [Config({"CODES": 16, "BLOCK_SIZE": 1024})], ["out_ptr"], size(code, out))


case("embedding.f32", embedding, 50_000, 1024, 16_384)
case("embedding.backward", embedding_backward, 5_000, 1024, 16_384)
case("lookup.u8", lookup, 2**24)


# Row by row.


def softmax(rows, cols, dtype, warps):
    x = randn(rows, cols, dtype=dtype)
    out = torch.empty_like(x)
    arguments = {"out_ptr": out, "in_ptr": x, "in_row_stride": cols, "out_row_stride": cols,
                 "n_cols": cols}
    config = Config({"BLOCK_SIZE": triton.next_power_of_2(cols)}, num_warps=warps)
    return Case("softmax.py", "softmax_kernel", (rows,), arguments, [config], ["out_ptr"],
                size(x, out), tolerance=1e-5)


for cols, dtype, warps in (
    (4096, torch.float32, 4), (4096, torch.float32, 8), (4096, torch.float32, 16),
    (7881, torch.float32, 4), (7881, torch.float32, 8), (7881, torch.float32, 16),
    (4096, torch.float16, 4), (4096, torch.float16, 8),
    (7881, torch.float16, 8),
):
    case(f"softmax.{name_of(dtype)}.{cols}.w{warps}", softmax, 8192, cols, dtype, warps)
case("softmax.f32.781", softmax, 1823, 781, torch.float32, 4)


def softmax_persistent(rows, cols, programs):
    x = randn(rows, cols)
    out = torch.empty_like(x)
    arguments = {"out_ptr": out, "in_ptr": x, "in_row_stride": cols, "out_row_stride": cols,
                 "n_rows": rows, "n_cols": cols}
    config = Config({"BLOCK_SIZE": triton.next_power_of_2(cols), "STAGES": 2}, num_warps=8)
    return Case("softmax_persistent.py", "softmax_kernel", (programs,), arguments, [config],
                ["out_ptr"], size(x, out), tolerance=1e-5)


case("softmax.persistent.f32.4096", softmax_persistent, 8192, 4096, 4 * 132)


def softmax_online(rows, cols, dtype):
    x = randn(rows, cols, dtype=dtype)
    out = torch.empty_like(x)
    arguments = {"out_ptr": out, "in_ptr": x, "row_stride": cols, "n_cols": cols}
    return Case("softmax_online.py", "online_softmax_kernel", (rows,), arguments,
                [Config({"BLOCK_SIZE": 2048}, num_warps=8)], ["out_ptr"], size(x, out),
                tolerance=1e-5)


case("softmax.online.f32.50257", softmax_online, 2048, 50_257, torch.float32)
case("softmax.online.f16.32768", softmax_online, 4096, 32_768, torch.float16)


def layer_norm_forward(rows, cols, dtype):
    x, w, b = (randn(*shape, dtype=dtype) for shape in ((rows, cols), (cols,), (cols,)))
    y, mean, rstd = torch.empty_like(x), empty(rows), empty(rows)
    arguments = {"x_ptr": x, "y_ptr": y, "w_ptr": w, "b_ptr": b, "mean_ptr": mean,
                 "rstd_ptr": rstd, "stride": cols, "N": cols, "eps": 1e-5}
    return Case("layer_norm.py", "layer_norm_forward", (rows,), arguments,
                [Config({"BLOCK_SIZE": 4096}, num_warps=8)], ["y_ptr", "mean_ptr", "rstd_ptr"],
                size(x, y), tolerance=1e-5 if dtype == torch.float32 else 4e-3)


def layer_norm_backward_dx(rows, cols, dtype, groups=96):
    x, dy, w = (randn(*shape, dtype=dtype) for shape in ((rows, cols), (rows, cols), (cols,)))
    dx, dw, db = torch.empty_like(x), empty(groups, cols), empty(groups, cols)
    mean = x.float().mean(1)
    rstd = (x.float().var(1, unbiased=False) + 1e-5).rsqrt()
    locks = torch.zeros(2 * groups, device="cuda", dtype=torch.int32)
    arguments = {"dx_ptr": dx, "dy_ptr": dy, "dw_ptr": dw, "db_ptr": db, "x_ptr": x, "w_ptr": w,
                 "mean_ptr": mean, "rstd_ptr": rstd, "lock_ptr": locks, "stride": cols, "N": cols}
    config = Config({"GROUP_SIZE": groups, "BLOCK_SIZE": triton.next_power_of_2(cols)}, num_warps=8)
    # Rows of a group come in any order.
    return Case("layer_norm.py", "layer_norm_backward_dx", (rows,), arguments, [config],
                ["dx_ptr", "dw_ptr", "db_ptr", "lock_ptr"], size(x, dy, dx),
                tolerance=1e-4 if dtype == torch.float32 else 4e-3,
                initial={"lock_ptr": torch.zeros_like(locks)})


def layer_norm_backward_wb(rows, cols):
    dw_part, db_part, dw, db = randn(rows, cols), randn(rows, cols), empty(cols), empty(cols)
    arguments = {"dw_part_ptr": dw_part, "db_part_ptr": db_part, "dw_ptr": dw, "db_ptr": db,
                 "M": rows, "N": cols}
    return Case("layer_norm.py", "layer_norm_backward_wb",
                lambda meta: (triton.cdiv(cols, meta["BLOCK_N"]),), arguments,
                [Config({"BLOCK_M": 32, "BLOCK_N": 128})], ["dw_ptr", "db_ptr"],
                size(dw_part, db_part, dw, db), tolerance=1e-4)


case("layernorm.f32", layer_norm_forward, 8192, 8192, torch.float32)
case("layernorm.f16", layer_norm_forward, 8192, 8192, torch.float16)
case("layernorm.backward_dx.f32", layer_norm_backward_dx, 4096, 8192, torch.float32)
case("layernorm.backward_dx.f16", layer_norm_backward_dx, 4096, 8192, torch.float16)
case("layernorm.backward_wb", layer_norm_backward_wb, 4096, 8192)


def rms_norm_forward(rows, cols, dtype):
    x, w, y, rstd = randn(rows, cols, dtype=dtype), randn(cols), empty(rows, cols, dtype=dtype), empty(rows)
    arguments = {"x_ptr": x, "y_ptr": y, "w_ptr": w, "rstd_ptr": rstd, "row_stride": cols,
                 "n_cols": cols, "eps": 1e-6}
    config = Config({"BLOCK_SIZE": triton.next_power_of_2(cols)}, num_warps=8)
    return Case("rms_norm.py", "rms_norm_forward", (rows,), arguments, [config],
                ["y_ptr", "rstd_ptr"], size(x, y),
                tolerance=1e-5 if dtype == torch.float32 else 1.6e-2)


def rms_norm_backward(rows, cols, dtype, programs=132):
    x, dy, dx = (randn(rows, cols, dtype=dtype) for _ in range(3))
    w, dw = randn(cols), empty(programs, cols)
    rstd = (x.float().square().mean(1) + 1e-6).rsqrt()
    arguments = {"dy_ptr": dy, "dx_ptr": dx, "dw_ptr": dw, "x_ptr": x, "w_ptr": w,
                 "rstd_ptr": rstd, "row_stride": cols, "n_rows": rows, "n_cols": cols,
                 "rows_per_program": triton.cdiv(rows, programs)}
    config = Config({"BLOCK_SIZE": triton.next_power_of_2(cols)}, num_warps=8)
    return Case("rms_norm.py", "rms_norm_backward", (programs,), arguments, [config],
                ["dx_ptr", "dw_ptr"], size(x, dy, dx, dw),
                tolerance=1e-4 if dtype == torch.float32 else 1.6e-2)


case("rmsnorm.f32", rms_norm_forward, 8192, 8192, torch.float32)
case("rmsnorm.bf16", rms_norm_forward, 8192, 8192, torch.bfloat16)
case("rmsnorm.backward.f32", rms_norm_backward, 8192, 4096, torch.float32)
case("rmsnorm.backward.bf16", rms_norm_backward, 8192, 4096, torch.bfloat16)


def cross_entropy(rows, cols, dtype, backward):
    logits = randn(rows, cols, dtype=dtype)
    target = torch.randint(0, cols, (rows,), device="cuda")
    target[5] = -100
    arguments = {"logits_ptr": logits, "target_ptr": target}
    constexprs = {"IGNORE": -100, "BLOCK_SIZE": 4096}
    shared = {"row_stride": cols, "n_cols": cols}
    tolerance = 1e-5 if dtype == torch.float32 else 1.6e-2
    if backward:
        lse = torch.logsumexp(logits.float(), 1)
        arguments |= {"dloss_ptr": torch.rand(rows, device="cuda"), "lse_ptr": lse, **shared}
        return Case("cross_entropy.py", "cross_entropy_backward",
                    lambda meta: (rows, triton.cdiv(cols, meta["BLOCK_SIZE"])), arguments,
                    [Config(constexprs, num_warps=8)], ["logits_ptr"], 2 * size(logits),
                    tolerance=tolerance, initial={"logits_ptr": logits.clone()})
    arguments |= {"loss_ptr": empty(rows), "lse_ptr": empty(rows), **shared}
    return Case("cross_entropy.py", "cross_entropy_forward", (rows,), arguments,
                [Config(constexprs, num_warps=8)], ["loss_ptr", "lse_ptr"], size(logits),
                tolerance=1e-5)


for dtype in (torch.float32, torch.bfloat16):
    case(f"crossentropy.{name_of(dtype)}", cross_entropy, 4096, 32_000, dtype, False)
    case(f"crossentropy.backward.{name_of(dtype)}", cross_entropy, 4096, 32_000, dtype, True)


def cumsum(rows, cols):
    x, out = randn(rows, cols), empty(rows, cols)
    arguments = {"x_ptr": x, "out_ptr": out, "row_stride": cols, "n_cols": cols}
    # Sums are taken in another order.
    return Case("cumsum.py", "cumsum_kernel", (rows,), arguments, [Config({"BLOCK_SIZE": 1024})],
                ["out_ptr"], size(x, out), tolerance=1e-3)


def decay(rows, cols):
    a, b, h = torch.rand(rows, cols, device="cuda"), randn(rows, cols), empty(rows, cols)
    arguments = {"a_ptr": a, "b_ptr": b, "h_ptr": h, "row_stride": cols}
    return Case("cumsum.py", "decay_kernel", (rows,), arguments, [Config({"BLOCK_SIZE": cols})],
                ["h_ptr"], size(a, b, h), tolerance=1e-4)


case("cumsum.f32", cumsum, 4096, 8192)
case("decay.f32", decay, 8192, 2048)


def sort(rows, cols, dtype, descending):
    x, out = randn(rows, cols, dtype=dtype), empty(rows, cols, dtype=dtype)
    arguments = {"x_ptr": x, "out_ptr": out, "n_cols": cols}
    constexprs = {"DESCENDING": descending, "BLOCK_SIZE": triton.next_power_of_2(cols)}
    return Case("sort.py", "sort_kernel", (rows,), arguments, [Config(constexprs)], ["out_ptr"],
                size(x, out))


def topk(rows, cols, k):
    x, out = randn(rows, cols), empty(rows, k)
    arguments = {"x_ptr": x, "out_ptr": out, "n_cols": cols}
    constexprs = {"K": k, "BLOCK_SIZE": triton.next_power_of_2(cols)}
    return Case("sort.py", "topk_kernel", (rows,), arguments, [Config(constexprs)], ["out_ptr"],
                size(x, out))


case("sort.f32", sort, 8192, 1000, torch.float32, False)
case("sort.f16.descending", sort, 8192, 1024, torch.float16, True)
case("topk.f32", topk, 8192, 1000, 16)


def histogram(n, bins):
    x = torch.randint(0, bins, (n,), device="cuda", dtype=torch.int32)
    counts = empty(bins, dtype=torch.int32)
    arguments = {"x_ptr": x, "bins_ptr": counts, "n_elements": n}
    return Case("histogram.py", "histogram_kernel", blocks_of(n), arguments,
                [Config({"BINS": bins, "BLOCK_SIZE": 2048})], ["bins_ptr"], size(x),
                initial={"bins_ptr": torch.zeros_like(counts)})


case("histogram.256", histogram, 2**24, 256)


def quantize(rows, cols, kernel, dtype):
    x, q, scale = randn(rows, cols), empty(rows, cols, dtype=dtype), empty(rows)
    arguments = {"x_ptr": x, "q_ptr": q, "scale_ptr": scale, "n_cols": cols}
    config = Config({"BLOCK_SIZE": triton.next_power_of_2(cols)}, num_warps=8)
    return Case("quantize.py", kernel, (rows,), arguments, [config], ["q_ptr", "scale_ptr"],
                size(x, q))


case("quantize.int8", quantize, 8192, 4096, "quantize_int8_kernel", torch.int8)
case("quantize.fp8e5", quantize, 8192, 4096, "quantize_fp8_kernel", torch.float8_e5m2)
case("quantize.fp8e4nv", quantize, 8192, 4096, "quantize_fp8_kernel", torch.float8_e4m3fn)


# Kernels as model code has them.


def kernel_of_memory(kernel, grid, arguments, outputs, moved, constexprs, warps=4, tolerance=1e-5,
                     initial=()):
    """A case of `kernels/memory.py`; what `initial` names is read before it is written."""
    before = {name: arguments[name].clone() for name in initial}
    return Case("memory.py", kernel, grid, arguments, [Config(constexprs, num_warps=warps)], outputs,
                size(*(arguments[name] for name in moved)), tolerance=tolerance, initial=before)


BF16_UNITS = 1.6e-2


def add_rms_norm(rows, cols, dtype):
    arguments = {"x_ptr": randn(rows, cols, dtype=dtype), "residual_ptr": randn(rows, cols, dtype=dtype),
                 "w_ptr": randn(cols, dtype=dtype), "y_ptr": empty(rows, cols, dtype=dtype),
                 "n_cols": cols, "eps": 1e-6}
    return kernel_of_memory("add_rms_norm", (rows,), arguments, ["residual_ptr", "y_ptr"],
                            ["x_ptr", "residual_ptr", "residual_ptr", "y_ptr"],
                            {"BLOCK_SIZE": triton.next_power_of_2(cols)}, 8,
                            2 * BF16_UNITS if dtype == torch.bfloat16 else 1e-5, ["residual_ptr"])


def group_norm(batch, groups, channels, pixels, dtype):
    n = batch * groups * channels * pixels
    arguments = {"x_ptr": randn(n, dtype=dtype), "y_ptr": empty(n, dtype=dtype),
                 "w_ptr": randn(groups * channels), "b_ptr": randn(groups * channels),
                 "group_size": channels * pixels, "n_groups": groups, "per_channel": pixels, "eps": 1e-5}
    return kernel_of_memory("group_norm", (batch * groups,), arguments, ["y_ptr"], ["x_ptr", "y_ptr"],
                            {"BLOCK_SIZE": 2048}, 8, BF16_UNITS if dtype == torch.bfloat16 else 1e-4)


def by_row(kernel, rows, cols, dtype, arguments, moved, block=1024):
    grid = lambda meta: (rows, triton.cdiv(cols, meta["BLOCK_SIZE"]))
    return kernel_of_memory(kernel, grid, arguments | {"n_cols": cols}, ["y_ptr"], [*moved, "y_ptr"],
                            {"BLOCK_SIZE": block}, 4, BF16_UNITS if dtype == torch.bfloat16 else 1e-5)


def softcap(rows, cols, dtype):
    arguments = {"x_ptr": randn(rows, cols, dtype=dtype), "y_ptr": empty(rows, cols, dtype=dtype), "cap": 30.0}
    return by_row("softcap_rows", rows, cols, dtype, arguments, ["x_ptr"])


def packed_swiglu(rows, cols, dtype):
    arguments = {"x_ptr": randn(rows, 2 * cols, dtype=dtype), "y_ptr": empty(rows, cols, dtype=dtype)}
    return by_row("packed_swiglu", rows, cols, dtype, arguments, ["x_ptr"])


def dequantize(rows, cols, dtype):
    q = torch.randint(-127, 128, (rows, cols), device="cuda", dtype=torch.int8)
    arguments = {"q_ptr": q, "scale_ptr": randn(rows), "y_ptr": empty(rows, cols, dtype=dtype)}
    return by_row("dequantize", rows, cols, dtype, arguments, ["q_ptr"], 2048)


def unpack_int4(rows, cols, dtype):
    q = torch.randint(0, 256, (rows, cols), device="cuda", dtype=torch.uint8)
    arguments = {"q_ptr": q, "scale_ptr": randn(rows), "y_ptr": empty(rows, 2 * cols, dtype=dtype)}
    return by_row("unpack_int4", rows, cols, dtype, arguments, ["q_ptr"])


def rope_pairs(tokens, heads, half, dtype):
    x = randn(tokens, heads, 2 * half, dtype=dtype)
    arguments = {"x_ptr": x, "cos_ptr": randn(tokens, half), "sin_ptr": randn(tokens, half), "n_heads": heads}
    return kernel_of_memory("rope_pairs", (tokens,), arguments, ["x_ptr"],
                            ["x_ptr", "x_ptr", "cos_ptr", "sin_ptr"],
                            {"HALF": half, "HEADS": triton.next_power_of_2(heads)}, 4, 2 * BF16_UNITS, ["x_ptr"])


def quantize_groups(n, group, dtype):
    arguments = {"x_ptr": randn(n, dtype=dtype), "q_ptr": empty(n, dtype=torch.float8_e4m3fn),
                 "scale_ptr": empty(n // group)}
    return kernel_of_memory("quantize_groups", (n // group // 32,), arguments, ["q_ptr", "scale_ptr"],
                            ["x_ptr", "q_ptr"], {"GROUP": group, "GROUPS": 32}, 4, 0.0)


def transpose(rows, cols, dtype):
    arguments = {"x_ptr": randn(rows, cols, dtype=dtype), "y_ptr": empty(cols, rows, dtype=dtype),
                 "n_rows": rows, "n_cols": cols}
    grid = lambda meta: (triton.cdiv(rows, meta["BLOCK_M"]), triton.cdiv(cols, meta["BLOCK_N"]))
    return kernel_of_memory("transpose", grid, arguments, ["y_ptr"], ["x_ptr", "y_ptr"],
                            {"BLOCK_M": 64, "BLOCK_N": 64}, 4, 0.0)


def strided_copy(n, stride, dtype):
    arguments = {"x_ptr": randn(n * stride, dtype=dtype), "y_ptr": empty(n, dtype=dtype), "n": n,
                 "stride": stride}
    return kernel_of_memory("strided_copy", blocks_of(n), arguments, ["y_ptr"], ["x_ptr", "y_ptr"],
                            {"BLOCK_SIZE": 1024}, 4, 0.0)


def masked_mean(batch, rows, cols, dtype):
    lengths = torch.full((batch,), rows - 5, device="cuda", dtype=torch.int32)
    arguments = {"x_ptr": randn(batch, rows, cols, dtype=dtype), "length_ptr": lengths,
                 "out_ptr": empty(batch, cols), "n_rows": rows, "n_cols": cols}
    return kernel_of_memory("masked_mean", lambda meta: (cols // meta["BLOCK_N"], batch), arguments,
                            ["out_ptr"], ["x_ptr"], {"BLOCK_M": 32, "BLOCK_N": 128}, 4, 1e-4)


def divergence(rows, cols, dtype):
    arguments = {"p_ptr": randn(rows, cols, dtype=dtype), "q_ptr": randn(rows, cols, dtype=dtype),
                 "out_ptr": empty(rows), "n_cols": cols}
    return kernel_of_memory("divergence", (rows,), arguments, ["out_ptr"], ["p_ptr", "q_ptr"],
                            {"BLOCK_SIZE": 4096}, 8, 1e-4)


def row_argmax(rows, cols, dtype):
    arguments = {"x_ptr": randn(rows, cols, dtype=dtype), "value_ptr": empty(rows, dtype=dtype),
                 "index_ptr": empty(rows, dtype=torch.int32), "n_cols": cols}
    return kernel_of_memory("row_argmax", (rows,), arguments, ["value_ptr", "index_ptr"], ["x_ptr"],
                            {"BLOCK_SIZE": triton.next_power_of_2(cols)}, 8, 0.0)


def gated_scan(rows, cols, dtype):
    arguments = {"g_ptr": -torch.rand(rows, cols, device="cuda").to(dtype), "x_ptr": randn(rows, cols, dtype=dtype),
                 "out_ptr": empty(rows, cols), "n_rows": rows, "n_cols": cols}
    return kernel_of_memory("gated_scan", (cols // 64, rows // 64), arguments, ["out_ptr"],
                            ["g_ptr", "x_ptr", "out_ptr"], {"ROWS": 64, "BLOCK_N": 64}, 4, 1e-4)


for dtype in (torch.float32, torch.bfloat16):
    name = name_of(dtype)
    case(f"memory.add_rms_norm.{name}", add_rms_norm, 8192, 4096, dtype)
    case(f"memory.group_norm.{name}", group_norm, 32, 32, 16, 4096, dtype)
    case(f"memory.softcap.{name}", softcap, 4096, 8192, dtype)
    case(f"memory.packed_swiglu.{name}", packed_swiglu, 8192, 5632, dtype)
    case(f"memory.dequantize.{name}", dequantize, 8192, 8192, dtype)
    case(f"memory.unpack_int4.{name}", unpack_int4, 8192, 4096, dtype)
    case(f"memory.rope_pairs.{name}", rope_pairs, 8192, 32, 64, dtype)
    case(f"memory.quantize_groups.{name}", quantize_groups, 2**25, 128, dtype)
    case(f"memory.transpose.{name}", transpose, 8192, 8192, dtype)
    case(f"memory.strided_copy.{name}", strided_copy, 2**24, 2, dtype)
    case(f"memory.masked_mean.{name}", masked_mean, 64, 1024, 1024, dtype)
    case(f"memory.divergence.{name}", divergence, 4096, 32_000, dtype)
    case(f"memory.row_argmax.{name}", row_argmax, 8192, 8192, dtype)
    case(f"memory.gated_scan.{name}", gated_scan, 16_384, 2048, dtype)


# Products. The configurations are those of shared figures: blocks of M, N and K, stages, warps.

TILES = ((128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (128, 128, 64, 4, 4), (128, 128, 64, 3, 8),
         (256, 128, 64, 3, 8), (128, 128, 32, 4, 4), (64, 256, 32, 4, 4), (128, 256, 32, 4, 8),
         (64, 64, 64, 4, 4), (64, 128, 64, 4, 4))


def tiles(choices, **others):
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
    return [Config(dict(zip(names, choice)) | others, choice[4], choice[3]) for choice in choices]


def tile_grid(m, n):
    return lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)


def matmul(n, dtype, tolerance, choices=TILES):
    out = dtype if dtype.itemsize > 1 else torch.float16
    a, b, c = randn(n, n, dtype=dtype), randn(n, n, dtype=dtype), empty(n, n, dtype=out)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": n, "N": n, "K": n,
                 "stride_am": n, "stride_bk": n, "stride_cm": n}
    made = Case("matmul.py", "matmul_kernel", tile_grid(n, n), arguments,
                tiles(choices, GROUP_M=8), ["c_ptr"], size(a, b, c), 2 * n**3, tolerance)
    if dtype.itemsize == 1:
        made.exact, made.sm80 = lambda: [(a.float() @ b.float()).half()], False
    return made


# Odd sizes wrap and mask; one stage has no pipeline.
case("matmul.f16.1000", matmul, 1000, torch.float16, 4e-3, ((64, 64, 32, 3, 4),))
case("matmul.f32.1000", matmul, 1000, torch.float32, 5e-2, ((64, 64, 32, 1, 4),))
for n in (1024, 4096, 8192):
    case(f"matmul.f16.{n}", matmul, n, torch.float16, 4e-3)
    case(f"matmul.bf16.{n}", matmul, n, torch.bfloat16, 2e-2)
case("matmul.tf32.4096", matmul, 4096, torch.float32, 5e-2,
     ((128, 128, 32, 3, 8), (128, 128, 32, 4, 4), (128, 256, 32, 3, 8), (64, 128, 32, 4, 4)))
FP8_TILES = ((128, 128, 64, 4, 4), (128, 256, 64, 3, 8), (128, 128, 128, 3, 8), (128, 256, 128, 3, 8))
case("matmul.fp8e5.4096", matmul, 4096, torch.float8_e5m2, 2e-2, FP8_TILES)
case("matmul.fp8e4nv.4096", matmul, 4096, torch.float8_e4m3fn, 2e-2, FP8_TILES)


def matmul_leaky_relu(n):
    a, b, c = (randn(n, n, dtype=torch.float16) for _ in range(3))
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": n, "N": n, "K": n, "stride_am": n,
                 "stride_ak": 1, "stride_bk": n, "stride_bn": 1, "stride_cm": n, "stride_cn": 1}
    configs = tiles(TILES[:4], GROUP_M=8, ACTIVATION="leaky_relu")
    return Case("matmul_leaky_relu.py", "matmul_kernel", tile_grid(n, n), arguments, configs,
                ["c_ptr"], size(a, b, c), 2 * n**3, 4e-3)


def matmul_int4(m, n, choices):
    group = 128
    a, c = randn(m, n, dtype=torch.float16), empty(m, n, dtype=torch.float16)
    b = torch.randint(-2**31, 2**31 - 1, (n // 8, n), device="cuda", dtype=torch.int32)
    scale = (torch.rand(n // group, n, device="cuda") / 8).half()
    zero = torch.randint(0, 16, (n // group, n), device="cuda", dtype=torch.int8)
    arguments = {"a_ptr": a, "b_ptr": b, "scale_ptr": scale, "zero_ptr": zero, "c_ptr": c, "M": m,
                 "N": n, "K": n}
    return Case("matmul_int4.py", "matmul_int4_kernel",
                lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"])),
                arguments, tiles(choices, GROUP=group), ["c_ptr"], size(a, b, scale, zero, c),
                2 * m * n * n, 2e-2)


INT4_TILES = ((16, 64, 64, 2, 4), (16, 64, 128, 3, 4), (16, 128, 64, 4, 4))
case("matmul_int4.decode", matmul_int4, 16, 8192, INT4_TILES)
INT4_TILES = ((64, 64, 32, 3, 4), (128, 128, 64, 3, 8), (64, 128, 64, 3, 4))
case("matmul_int4.prefill", matmul_int4, 2048, 4096, INT4_TILES)


# Serving models.


def gemv(n, dtype):
    a, x, y = randn(n, n, dtype=dtype), randn(n, dtype=dtype), empty(n)
    arguments = {"a_ptr": a, "x_ptr": x, "y_ptr": y, "n_cols": n}
    return Case("serving.py", "gemv", lambda meta: (n // meta["BLOCK_M"],), arguments,
                [Config({"BLOCK_M": 4, "BLOCK_N": 512}), Config({"BLOCK_M": 1, "BLOCK_N": 2048})],
                ["y_ptr"], size(a, x, y), tolerance=1e-3)


def paged_attention(sequences, kv_heads, group, length, page=64, dim=128):
    pages = length // page
    count = sequences * pages
    k, v = (randn(count, page, kv_heads, dim, dtype=torch.float16) for _ in range(2))
    q = randn(sequences, kv_heads * group, dim, dtype=torch.float16)
    out = torch.empty_like(q)
    table = torch.randperm(count, device="cuda").int().view(sequences, pages)
    lengths = torch.randint(length // 2, length, (sequences,), device="cuda", dtype=torch.int32)
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "table_ptr": table, "length_ptr": lengths,
                 "out_ptr": out, "scale": dim**-0.5, "n_heads": kv_heads, "max_pages": pages}
    read = 4 * dim * kv_heads * int(lengths.sum())
    return Case("serving.py", "paged_attention", (sequences, kv_heads), arguments,
                [Config({"GROUP": group, "PAGE": page, "DIM": dim}, 4, stages) for stages in (3, 2)],
                ["out_ptr"], read, tolerance=4e-3)


def causal_conv(batch, length, channels, dtype):
    x = randn(batch, length, channels, dtype=dtype)
    w, bias, y = randn(channels, 4, dtype=dtype), randn(channels, dtype=dtype), torch.empty_like(x)
    arguments = {"x_ptr": x, "w_ptr": w, "bias_ptr": bias, "y_ptr": y, "length": length,
                 "channels": channels}
    grid = lambda meta: (triton.cdiv(length, meta["BLOCK_T"]),
                         triton.cdiv(channels, meta["BLOCK_C"]), batch)
    return Case("serving.py", "causal_conv", grid, arguments,
                [Config({"WIDTH": 4, "BLOCK_T": 32, "BLOCK_C": 128})], ["y_ptr"], size(x, y),
                tolerance=1e-5 if dtype == torch.float32 else 1.6e-2)


def chunked_attention(heads, length, dim):
    q, k, v = (randn(heads, length, dim, dtype=torch.float16) / 8 for _ in range(3))
    g, o = -torch.rand(heads, length, device="cuda") / 8, torch.empty_like(v)
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "g_ptr": g, "o_ptr": o, "length": length}
    flops = 2 * heads * length * dim * (2 * 64 + 2 * dim)
    return Case("serving.py", "chunked_attention", lambda meta: (dim // meta["BLOCK_V"], heads),
                arguments, [Config({"K": dim, "V": dim, "BLOCK_V": 64, "CHUNK": 64}, warps, 2)
                            for warps in (4, 8)],
                ["o_ptr"], size(q, k, v, o), flops, 4e-3)


def expert_products(tokens, experts, n, k, block=64):
    x, w = randn(tokens, k, dtype=torch.float16), randn(experts, n, k, dtype=torch.float16)
    y = empty(tokens, n, dtype=torch.float16)
    order = torch.randperm(tokens, device="cuda").int()
    of_block = torch.randint(0, experts, (tokens // block,), device="cuda", dtype=torch.int32)
    arguments = {"x_ptr": x, "w_ptr": w, "y_ptr": y, "token_ptr": order, "expert_ptr": of_block,
                 "n_tokens": tokens, "N": n, "K": k}
    return Case("serving.py", "expert_products",
                lambda meta: (tokens // block, n // meta["BLOCK_N"]), arguments,
                tiles(((block, 128, 64, 3, 4), (block, 64, 64, 4, 4), (block, 128, 64, 4, 8))),
                ["y_ptr"], size(x, w, y), 2 * tokens * n * k, 4e-3)


case("serving.gemv.f16", gemv, 8192, torch.float16)
case("serving.gemv.f32", gemv, 8192, torch.float32)
case("serving.paged_attention", paged_attention, 64, 8, 16, 4096)
case("serving.causal_conv.f32", causal_conv, 8, 4096, 2048, torch.float32)
case("serving.causal_conv.bf16", causal_conv, 8, 4096, 2048, torch.bfloat16)
case("serving.chunked_attention", chunked_attention, 128, 4096, 128)
case("serving.experts", expert_products, 8192, 8, 2048, 2048)


def matmul_persistent(n, dtype=torch.float16, choices=TILES[:5], programs=132):
    a, b, c = randn(n, n, dtype=dtype), randn(n, n, dtype=dtype), empty(n, n, dtype=torch.float16)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": n, "N": n, "K": n, "stride_am": n,
                 "stride_bn": n, "stride_cm": n}
    made = Case("matmul_persistent.py", "matmul_persistent_kernel", (programs,), arguments,
                tiles(choices, GROUP_M=8), ["c_ptr"], size(a, b, c), 2 * n**3, 4e-3)
    if dtype.itemsize == 1:
        # Tensor cores of sm_90 add products of fp8 in fewer bits than float32 has.
        made.exact, made.sm80 = lambda: [(a.float() @ b.float().T).half()], False
    return made


def matmul_descriptor(n, programs=132):
    a, b, c = (randn(n, n, dtype=torch.float16) for _ in range(3))
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": n, "N": n, "K": n}
    return Case("matmul_descriptor.py", "matmul_descriptor_kernel", (programs,), arguments,
                tiles(TILES[:5], GROUP_M=8), ["c_ptr"], size(a, b, c), 2 * n**3, 4e-3)


def matmul_split_k(m, n, k):
    a, b, c = randn(m, k, dtype=torch.float16), randn(k, n, dtype=torch.float16), empty(m, n)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k, "stride_am": k,
                 "stride_bk": n, "stride_cm": n}
    grid = tile_grid(m, n)
    return Case("matmul_split_k.py", "matmul_split_k_kernel",
                lambda meta: (*grid(meta), meta["SPLIT_K"]), arguments,
                tiles(((64, 64, 64, 3, 4), (64, 128, 64, 3, 4)), SPLIT_K=16), ["c_ptr"],
                size(a, b, c), 2 * m * n * k, 1e-3, initial={"c_ptr": torch.zeros_like(c)})


def matmul_batched(batch, n):
    a, b, c = (randn(batch, n, n, dtype=torch.float16) for _ in range(3))
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "n_batch": batch, "M": n, "N": n, "K": n}
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_N"]), triton.cdiv(n, meta["BLOCK_M"]),
                         triton.cdiv(batch, meta["BLOCK_B"]))
    return Case("matmul_batched.py", "matmul_batched_kernel", grid, arguments,
                tiles(((32, 32, 32, 3, 4),), BLOCK_B=4), ["c_ptr"], size(a, b, c),
                2 * batch * n**3, 4e-3)


def matmul_grouped(sizes):
    pairs = [(randn(m, k, dtype=torch.float16), randn(k, n, dtype=torch.float16)) for m, n, k in sizes]
    # The results share one tensor, so that it can be compared.
    results = empty(sum(m * n for m, n, _ in sizes), dtype=torch.float16)
    ends = [0]
    for m, n, _ in sizes:
        ends.append(ends[-1] + m * n)
    addresses = lambda tensors: torch.tensor([t.data_ptr() for t in tensors], device="cuda")
    arguments = {"a_ptrs": addresses([a for a, _ in pairs]), "b_ptrs": addresses([b for _, b in pairs]),
                 "c_ptrs": addresses([results[end:] for end in ends[:-1]]),
                 "sizes_ptr": torch.tensor(sizes, device="cuda", dtype=torch.int32),
                 "group_size": len(sizes)}
    made = Case("matmul_grouped.py", "matmul_grouped_kernel", (132,), arguments,
                tiles(((64, 64, 32, 3, 4), (128, 128, 32, 3, 8))), ["results"],
                0, sum(2 * m * n * k for m, n, k in sizes), 4e-3)
    made.arguments = arguments | {"results": results, "operands": pairs}
    return made


def matmul_block_scaled(n):
    a, b = (randn(n, n).to(torch.float8_e4m3fn) for _ in range(2))
    a_scale, b_scale = (torch.randint(125, 130, (n, n // 32), device="cuda", dtype=torch.uint8) for _ in range(2))
    arguments = {"a_ptr": a, "a_scale_ptr": a_scale, "b_ptr": b, "b_scale_ptr": b_scale,
                 "c_ptr": empty(n, n), "M": n, "N": n, "K": n}
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]))
    return Case("matmul_block_scaled.py", "matmul_block_scaled_kernel", grid, arguments,
                tiles(((128, 128, 128, 3, 8), (128, 128, 64, 3, 8))), ["c_ptr"], 3 * size(a),
                2 * n**3, 5e-2, sm80=False)


def matmul_int8(n):
    a, b = (torch.randint(-127, 128, (n, n), device="cuda", dtype=torch.int8) for _ in range(2))
    a_scale, b_scale = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    arguments = {"a_ptr": a, "b_ptr": b, "a_scale_ptr": a_scale, "b_scale_ptr": b_scale,
                 "c_ptr": empty(n, n), "M": n, "N": n, "K": n}
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]))
    return Case("quantize.py", "matmul_int8_kernel", grid, arguments,
                tiles(((128, 128, 64, 3, 8), (128, 128, 128, 3, 8), (64, 64, 64, 3, 4))), ["c_ptr"],
                6 * size(a), 2 * n**3, 1e-6)


case("matmul.leaky_relu.f16.4096", matmul_leaky_relu, 4096)
case("matmul.persistent.f16.4096", matmul_persistent, 4096)
case("matmul.persistent.fp8e5.4096", matmul_persistent, 4096, torch.float8_e5m2, FP8_TILES)
case("matmul.persistent.fp8e4nv.4096", matmul_persistent, 4096, torch.float8_e4m3fn, FP8_TILES)
case("matmul.descriptor.f16.4096", matmul_descriptor, 4096)
case("matmul.split_k.f16", matmul_split_k, 128, 256, 32_768)
case("matmul.batched.f16", matmul_batched, 512, 256)
case("matmul.grouped.f16", matmul_grouped, [(1024, 1024, 1024), (512, 2048, 1024), (100, 72, 304)])
case("matmul.block_scaled.4096", matmul_block_scaled, 4096)
case("matmul.int8.4096", matmul_int8, 4096)


def attention_inputs(batch, heads, tokens, dims):
    return [randn(batch * heads, tokens, dims, dtype=torch.float16) for _ in range(4)]


def attention_flops(heads, tokens, dims, products, causal):
    return products * 2 * heads * tokens**2 * dims // (2 if causal else 1)


def attention(dims, causal, batch=4, heads=32, tokens=4096):
    q, k, v, out = attention_inputs(batch, heads, tokens, dims)
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": out,
                 "lse_ptr": empty(batch * heads, tokens), "scale": dims**-0.5,
                 "stride_h": tokens * dims, "stride_n": dims, "n_ctx": tokens}
    choices = [(m, n, stages, warps) for m, n, warps in ((128, 64, 8), (128, 64, 4), (64, 64, 4), (128, 128, 8))
               for stages in (2, 3)]
    configs = [Config({"HEAD_DIM": dims, "BLOCK_M": m, "BLOCK_N": n, "CAUSAL": causal}, warps, stages)
               for m, n, stages, warps in choices]
    return Case("attention.py", "attention_forward",
                lambda meta: (triton.cdiv(tokens, meta["BLOCK_M"]), batch * heads), arguments,
                configs, ["out_ptr", "lse_ptr"], size(q, k, v, out),
                attention_flops(batch * heads, tokens, dims, 2, causal), 4e-3)


def attention_backward(part, dims, causal, batch=2, heads=16, tokens=2048):
    q, k, v, dout = attention_inputs(batch, heads, tokens, dims)
    scale = dims**-0.5
    scores = (q.float() @ k.float().mT) * scale
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens, device="cuda").triu(1).bool(), -1e30)
    lse = torch.logsumexp(scores, -1) * 1.4426950408889634
    delta = ((scores.softmax(-1) @ v.float()) * dout.float()).sum(-1)
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "dout_ptr": dout}
    if part == "kv":
        outputs = {"dk_ptr": torch.empty_like(k), "dv_ptr": torch.empty_like(v)}
        block, products = "BLOCK_N", 4
    else:
        outputs, block, products = {"dq_ptr": torch.empty_like(q)}, "BLOCK_M", 3
    arguments |= outputs | {"lse_ptr": lse, "delta_ptr": delta, "scale": scale, "n_ctx": tokens}
    choices = ((64, 64, 2, 4), (64, 64, 1, 4), (32, 128, 2, 4), (128, 64, 2, 8), (64, 128, 2, 8))
    configs = [Config({"HEAD_DIM": dims, "BLOCK_M": m, "BLOCK_N": n, "CAUSAL": causal}, warps, stages)
               for m, n, stages, warps in choices]
    return Case("attention_backward.py", f"attention_backward_{part}",
                lambda meta: (triton.cdiv(tokens, meta[block]), batch * heads), arguments, configs,
                list(outputs), size(q, k, v, dout),
                attention_flops(batch * heads, tokens, dims, products, causal), 1e-2)


def attention_delta(rows, dims):
    out, dout, delta = randn(rows, dims, dtype=torch.float16), randn(rows, dims, dtype=torch.float16), empty(rows)
    arguments = {"out_ptr": out, "dout_ptr": dout, "delta_ptr": delta, "n_rows": rows}
    return Case("attention_backward.py", "attention_delta",
                lambda meta: (triton.cdiv(rows, meta["BLOCK_M"]),), arguments,
                [Config({"HEAD_DIM": dims, "BLOCK_M": 128})], ["delta_ptr"], size(out, dout, delta),
                tolerance=1e-4)


for dims in (64, 128):
    for causal in (False, True):
        kind = f"D{dims}.{'causal' if causal else 'full'}"
        case(f"attention.{kind}", attention, dims, causal)
        case(f"attention.backward_kv.{kind}", attention_backward, "kv", dims, causal)
        case(f"attention.backward_q.{kind}", attention_backward, "q", dims, causal)
case("attention.backward_delta", attention_delta, 2**19, 64)
