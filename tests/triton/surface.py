"""Asks an installed Triton about every builtin with every type.

    python tests/triton/surface.py

Run it with a Python that has Triton 3.6, then with one that has 3.9. No GPU and no torch are
needed: only Triton's front end runs, for compute capability 9.0. Each case is a kernel of a line
or two whose last line prints types; what Triton prints, or `!` where it refuses, is recorded in
crates/compiler/tests/probes/surface.tsv, which a Rust test reads. Names and signatures come from
the installed Triton, so a new builtin shows up by itself.
"""

import contextlib
import importlib.util
import inspect
import io
import pathlib
import tempfile
import warnings

import triton
import triton.language as tl
from triton.language.extra import libdevice

from front_end import in_children, lower

VERSION = ".".join(triton.__version__.split(".")[:2])
ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "crates/compiler/tests/probes/surface.tsv"

INTEGERS = ["int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SMALL = ["float8e5", "float8e4nv"]
NUMBERS = INTEGERS + FLOATS
TYPES = NUMBERS + SMALL
SPELLED = {"int1": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
           "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "fp16",
           "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "float8e5": "fp8e5",
           "float8e4nv": "fp8e4nv"}

PRELUDE = (ROOT / "crates/compiler/tests/probes/kernels/prelude.py").read_text()

# Expressions in `x`, a tile of four numbers.
UNARY = [
    "-x", "~x", "not x", "x + 1", "x * 2", "x - 1.5", "1 - x", "x / 2", "x // 2", "x % 2", "x & 1",
    "x | 1", "x ^ x", "x << 1", "x >> 1", "x < 1", "x == 1.0", "x > -1", "1.0 / x", "x + x",
    "x * x", "x / x", "x // x", "x % x", "tl.abs(x)", "tl.ceil(x)", "tl.floor(x)", "tl.exp(x)",
    "tl.exp2(x)", "tl.log(x)", "tl.log2(x)", "tl.sin(x)", "tl.cos(x)", "tl.sqrt(x)",
    "tl.sqrt_rn(x)", "tl.rsqrt(x)", "tl.erf(x)", "tl.sigmoid(x)", "tl.softmax(x)", "tl.sum(x)",
    "tl.sum(x, 0, keep_dims=True)", "tl.sum(x, 0, dtype=tl.float32)", "tl.max(x)", "tl.min(x, 0)",
    "tl.max(x, 0, return_indices=True)[0]", "tl.max(x, 0, return_indices=True)[1]",
    "tl.argmax(x, 0)", "tl.argmin(x, 0)", "tl.xor_sum(x)", "tl.reduce_or(x, 0)", "tl.cumsum(x)",
    "tl.cumsum(x, 0, reverse=True)", "tl.cumprod(x)", "tl.sort(x)", "tl.sort(x, descending=True)",
    "tl.flip(x, 0)", "tl.topk(x, 2)", "tl.reduce(x, 0, add)", "tl.associative_scan(x, 0, add)",
    "tl.reduce((x, x), 0, larger)[1]", "tl.map_elementwise(half, x)", "tl.maximum(x, x)",
    "tl.minimum(x, 1)", "tl.maximum(x, 0.5)", "tl.clamp(x, 0, 1)", "tl.clamp(x, 0.0, 1.0)",
    "tl.where(x > x, x, 0)", "tl.where(x > x, x, 1.5)", "tl.where(x, x, x)", "tl.fma(x, x, x)",
    "tl.fdiv(x, x)", "tl.fdiv(x, 2.0)", "tl.div_rn(x, x)", "tl.umulhi(x, x)", "tl.cdiv(x, 3)",
    "tl.full((4,), 1, x.dtype)", "tl.zeros_like(x)", "tl.reshape(x, 2, 2)", "tl.view(x, [2, 2])",
    "tl.ravel(x)", "tl.expand_dims(x, 0)", "tl.broadcast_to(x[None, :], (2, 4))", "tl.join(x, x)",
    "tl.interleave(x, x)", "tl.cat(x, x, can_reorder=True)", "tl.cat(x, x)",
    "tl.split(tl.reshape(x, 2, 2))[0]", "tl.trans(x[None, :])", "tl.permute(x[None, :], 1, 0)",
    "x[:, None].T", "tl.gather(x, tl.arange(0, 4), 0)", "tl.histogram(x, 4)", "tl.multiple_of(x, 4)",
    "tl.max_contiguous(x, 4)", "tl.max_constancy(x, 4)", "tl.rand(x, tl.arange(0, 4))",
    "tl.rand(1, x)", "tl.randn(1, x)", "tl.randint(1, x)", "tl.randint4x(1, x)[3]",
    "tl.uint_to_uniform_float(x)", "tl.swizzle2d(x, x, 4, 4, 2)[0]", "x.to(tl.int1, bitcast=True)",
    "x.to(tl.float8e5, fp_downcast_rounding='rtne')", "tl.sum(x).to(tl.float32)",
    "tl.to_tensor(x)", "tl.squeeze(x[None, :], 0)", "tl.unsqueeze(x, 0)", "x.sum()", "x.max(0)",
    "x.abs()", "x.item()", "x.logical_and(x)", "tl.math.exp(x)", "tl.math.fma(x, x, x)",
    "tl.math.umulhi(x, x)",
    "tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [x], dtype=tl.int32, is_pure=True, pack=1)",
]

# Expressions in `p`, a pointer, and `i`, four offsets.
POINTER = [
    "tl.load(p)", "tl.load(p + i)", "tl.load(p + i, i < 2, 0)", "tl.load(p + i, i < 2, other=1.5)",
    "tl.store(p + i, 1)", "tl.store(p + i, 1.5)", "tl.store(p, tl.load(p))",
    *(f"tl.atomic_{op}(p + i, 1)" for op in ["add", "max", "min", "and", "or", "xor", "xchg"]),
    *(f"tl.atomic_{op}(p, 1, sem='relaxed', scope='cta')" for op in ["add", "max", "xchg"]),
    "tl.atomic_add(p + i, 1.0, i < 2)", "tl.atomic_cas(p, tl.load(p), tl.load(p))",
    "tl.atomic_load(p)", "tl.atomic_store(p, tl.load(p))", "tl.atomic_poll(p, tl.load(p))",
    "p + 1", "p - i", "p.to(tl.int64)", "p == p",
    "tl.make_tensor_descriptor(p, [16, 64], [64, 1], [8, 32]).load([0, 0])",
    "tl.load(tl.make_block_ptr(p, (16,), (1,), (0,), (4,), (0,)))",
]

# Expressions in nothing.
PLAIN = [
    "tl.program_id(0)", "tl.num_programs(2)", "tl.arange(0, 4)", "tl.cdiv(10, 4)",
    "tl.extra.cuda.globaltimer()", "tl.extra.cuda.smid()", "tl.extra.cuda.num_threads()",
    "tl.extra.cuda.num_warps()", "tl.extra.cuda.gdc_wait()",
    "tl.extra.cuda.gdc_launch_dependents()", "tl.debug_barrier()", "tl.target_info.is_cuda()",
    "tl.target_info.cuda_capability_geq(9, 0)", "tl.core.get_int_dtype(16, False)",
    "tl.full((), 3, tl.int8)", "tl.zeros((2, 2), tl.bfloat16)", "tl.float16.primitive_bitwidth",
    "tl.int8.is_int()", "tl.bfloat16.is_floating()", "tl.uint8.int_signedness",
]


def cases():
    """`(parameters, statements)` of every case; the last statement prints types."""
    def printed(expression, bind):
        # Statements give nothing whose type could be printed.
        if expression.startswith(("tl.store", "tl.atomic_store")):
            return [*bind, expression]
        return [*bind, f"y = {expression}", "tl.static_print(y.type)"]

    for name in TYPES:
        tile = f"x = tl.full((4,), 0, tl.int32).to(tl.float32).to(tl.{name})"
        if name in NUMBERS:
            tile = f"x = tl.zeros((4,), tl.{name})"
        for expression in UNARY:
            yield "", printed(expression, [tile])
        for other in TYPES:
            yield "", printed(f"x.to(tl.{other})", [tile])
            yield "", printed(f"x.to(tl.{other}, bitcast=True)", [tile])
        for expression in POINTER:
            yield f"p: *{SPELLED[name]}", printed(expression, ["i = tl.arange(0, 4)"])
        left = f"a = tl.zeros((16, 32), tl.float32).to(tl.{name})"
        for other in dict.fromkeys([name, "float16", "float8e5"]):
            right = f"b = tl.zeros((32, 16), tl.float32).to(tl.{other})"
            yield "", printed("tl.dot(a, b)", [left, right])
            for out in ["float16", "float32", "int32"]:
                yield "", printed(f"tl.dot(a, b, out_dtype=tl.{out})", [left, right])
        for other in NUMBERS:
            pair = [tile, f"z = tl.zeros((4,), tl.{other})"]
            for operation in ["x + z", "x // z", "x / z", "x & z", "x < z", "tl.maximum(x, z)"]:
                yield "", printed(operation, pair)
    for expression in PLAIN:
        yield "", [f"tl.static_print({expression})"]
    for name in libdevice_names():
        count = len(inspect.signature(getattr(libdevice, name)).parameters)
        arity = count - sum(p in inspect.signature(getattr(libdevice, name)).parameters
                            for p in ("_semantic", "_builder"))
        for kind in ["int32", "int64", "uint32", "float16", "float32", "float64"]:
            call = f"libdevice.{name}({', '.join(['x'] * arity)})"
            yield "", printed(call, [f"x = tl.zeros((4,), tl.{kind})"])


def libdevice_names():
    from triton.language.extra.cuda import libdevice as cuda
    return sorted(name for name, value in vars(cuda).items()
                  if getattr(value, "__triton_builtin__", False))


def module_of(entries):
    text, signatures = [PRELUDE], []
    for index, (parameters, body) in enumerate(entries):
        names = [part.split(":")[0] for part in parameters.split(",") if part]
        signatures.append({part.split(":")[0]: part.split(":")[1].strip()
                           for part in parameters.split(",") if part})
        text.append(f"@triton.jit\ndef k{index}({', '.join(names)}):")
        text.extend(f"    {line}" for line in body)
    return "\n".join(text) + "\n", signatures


def answer(kernel, signature):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lower(kernel, signature, {})
    except BaseException:
        return "!"
    return " ".join(printed.getvalue().split())


def answers(entries):
    """Answers in order."""
    text, signatures = module_of(entries)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "surface_cases.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("surface_cases", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)

        def answer_to(index):
            return answer(getattr(module, f"k{index}"), signatures[index])

        return in_children(len(entries), answer_to, "!")


def main():
    entries = list(dict.fromkeys((parameters, tuple(body)) for parameters, body in cases()))
    known = {}
    if TABLE.exists():
        for line in TABLE.read_text().splitlines()[1:]:
            parameters, body, old, new = line.split("\t")
            known[parameters, body] = {"3.6": old, "3.9": new}
    lines = []
    for (parameters, body), said in zip(entries, answers(entries)):
        key = (parameters, "; ".join(body))
        row = {**known.get(key, {"3.6": "?", "3.9": "?"}), VERSION: said}
        lines.append("\t".join([*key, row["3.6"], row["3.9"]]))
    TABLE.write_text("\n".join(["parameters\tbody\t3.6\t3.9", *lines]) + "\n")
    print(f"Triton {triton.__version__}: {len(entries)} cases")


if __name__ == "__main__":
    main()
