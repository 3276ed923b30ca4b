"""What kernels compute, on the CPU executor and in Triton's own interpreter, bit by bit.

    cargo build -p tile
    python tests/interpreter/values.py target/verify/tile [FAMILY...] [--only TEXT] [--show]

The kernels are the probes that Triton accepts (tests/triton/probes.py, families.py) and the
operations of arithmetic.py, for all types. Each value that a kernel prints at compile time is kept
instead while it runs: its type, its shape and its bits. Both run the kernel with the same
arguments, and what was kept and the arrays are compared: integers and what IEEE 754 fixes exactly,
mathematical functions and products within the units that `loose` names. `KNOWN` names where the
interpreter itself differs from compiled Triton, by the kernel and by what differs. Run it with a
Python that has Triton 3.9 and a NumPy before 2.4. Exits with 1 when a value differs that nothing explains.
"""

import argparse
import ast
import collections
import concurrent.futures
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/triton")]

import numpy as np
import triton
import triton.language as tl

import arithmetic
import probes
from compare import Tensor
from modules import in_a_child
from unseen import late, number

FOLDERS = [ROOT / "crates/compiler/tests/probes" / name for name in ("kernels", "generated")]
#: Elements between two things kept, and between the elements of a tuple that is kept. Those of a
#: tuple in a tuple are nearer by a factor, down to the least distance.
SLOT, PART, NEARER, LEAST = 8192, 2048, 4, 128
SLOTS = 12
#: How the bits of what is kept are read, by a hundred times its width and its mantissa's width.
CODES = {3200: np.int32, 3223: np.float32, 1600: np.int16, 1610: np.float16, 6400: np.int64,
         6452: np.float64, 800: np.int8, 100: np.int8, 1607: "bf16", 802: "fp8e5", 803: "fp8e4"}
KEEP = f"""
@triton.jit
def _keep(_out, x, PART: tl.constexpr = {PART}):
    if isinstance(x, tl.tuple):
        for k in tl.static_range(len(x)):
            _keep(_out + PART * k, x[k], PART // {NEARER})
    elif isinstance(x, tl.tensor):
        if not x.dtype.is_ptr():
            bits: tl.constexpr = x.dtype.primitive_bitwidth
            if x.dtype.is_floating():
                code: tl.constexpr = bits * 100 + x.dtype.fp_mantissa_width
                if bits == 8:
                    y = x.to(tl.int8, bitcast=True)
                elif bits == 16:
                    y = x.to(tl.int16, bitcast=True)
                elif bits == 32:
                    y = x.to(tl.int32, bitcast=True)
                else:
                    y = x.to(tl.int64, bitcast=True)
            else:
                code: tl.constexpr = bits * 100
                y = x
            if len(y.shape) > 0:
                flat = tl.ravel(y)
                tl.store(_out + 2 + tl.arange(0, flat.shape[0]), flat.to(tl.int64))
                tl.store(_out + 1, flat.shape[0])
            else:
                tl.store(_out + 2, y.to(tl.int64))
                tl.store(_out + 1, 1)
            tl.store(_out, code)
"""


class Refused(Exception):
    """Why a kernel cannot be compared."""


def arrays():
    """The arrays that parameters of these names point at."""
    rng = np.random.default_rng(0)
    return {"p": (rng.integers(-64, 64, 1 << 14) / 4).astype(np.float32),
            "q": rng.integers(0, 16, 1 << 14, dtype=np.int32),
            "h": (rng.integers(-64, 64, 1 << 14) / 8).astype(np.float16),
            "w": arithmetic.patterns()}


#: What other parameters are.
NUMBERS = {"n": 5, "m": 7, "f": 2.5, "b": True, "B": 64, "C": 16, "N": None, "S": "text"}


class Kept(ast.NodeTransformer):
    """Makes of static prints what keeps their values; of those nested in calls, nothing."""

    def __init__(self):
        self.slots = 0

    def visit_Call(self, node):
        if ast.unparse(node.func) != "tl.static_print" or node.keywords:
            return self.generic_visit(node)
        spelled = (ast.Constant, ast.JoinedStr, ast.Starred)
        values = [value for value in node.args if not isinstance(value, spelled)]
        kept = [ast.parse(f"_keep(_out + {SLOT * (self.slots + at)}, {ast.unparse(value)})", mode="eval").body
                for at, value in enumerate(values)]
        self.slots += len(kept)
        return kept[0] if len(kept) == 1 else ast.Tuple(kept, ast.Load()) if kept else ast.Constant(None)


def module_of(lines, prelude):
    """The module of a probe whose kernel keeps what it would print, and its parameters by name."""
    tree = ast.parse(probes.module_of(lines, prelude))
    kernel = next(item for item in reversed(tree.body) if getattr(item, "name", "") == "kernel")
    rewriter = Kept()
    kernel.body = [split for part in kernel.body for split in statements(rewriter.visit(part))]
    if rewriter.slots == 0 or rewriter.slots > SLOTS:
        raise Refused(f"{rewriter.slots} values are printed")
    kernel.args.args.insert(0, ast.arg("_out"))
    parameters = {arg.arg: ast.unparse(arg.annotation) if arg.annotation else "" for arg in kernel.args.args[1:]}
    defaults = {arg.arg for arg in kernel.args.args[len(kernel.args.args) - len(kernel.args.defaults):]}
    return ast.unparse(tree) + "\n", {name: kind for name, kind in parameters.items() if name not in defaults}


def statements(node):
    """A statement, or those of a tuple of calls that stands alone."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Tuple):
        return [ast.Expr(part) for part in node.value.elts]
    return [node]


def argument(name, kind, tensors):
    """What a parameter is given, by its name and annotation."""
    if name in tensors:
        return tensors[name]
    if name in NUMBERS:
        return NUMBERS[name]
    if kind and "constexpr" not in kind or name == "desc":
        raise Refused(f"an argument `{name}: {kind}`")
    return 3


def kept_of(code, bits):
    """A value that was kept, as its kind and numbers."""
    kind = CODES.get(code, code)
    if isinstance(kind, str):
        return kind, arithmetic.decoded(kind, bits)
    return np.dtype(kind).name if kind != 100 else "bool", bits.astype(np.int64).astype(f"i{np.dtype(kind).itemsize}").view(kind)


def execute(tile, text, parameters, folder):
    """What the CPU executor keeps by place, and the arrays afterwards."""
    source = folder / "probe.py"
    source.write_text(text)
    command = [tile, "run", f"{source}::kernel", "--device", "cpu", "--grid", "(1,)",
               "--triton", probes.VERSION, "--arg", f'_out=load("{folder.parent}/out.npy")', "--save", f"_out={folder}/out.npy"]
    found = arrays()
    for name, kind in parameters.items():
        value = argument(name, kind, found)
        command += ["--arg", f"{name}=" + (f'load("{folder.parent}/{name}.npy")' if name in found else repr(value))]
        if name in found:
            command += ["--save", f"{name}={folder}/{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        said = [line for line in (done.stderr + done.stdout).strip().splitlines() if "error" in line or "panic" in line] or [done.stdout[:100]]
        raise Refused(f"tile: {said[0][:200]}")
    out = np.load(folder / "out.npy")
    kept, at = {}, 0
    while at < out.size:
        count = int(out[at + 1]) if out[at] else 0
        if count:
            kept[at] = kept_of(int(out[at]), out[at + 2:at + 2 + count])
        at += -(-(2 + count) // LEAST) * LEAST
    return kept, {name: np.load(folder / f"{name}.npy") for name in parameters if name in found}


def interpret(text, parameters, folder):
    """What Triton's interpreter keeps by place, and the arrays afterwards."""
    kept = {}

    def keep(place, value, part_size=PART):
        place = int(place) if not hasattr(place, "handle") else int(place.handle.data.item())
        if isinstance(value, (tuple, list, tl.tuple)):
            for at, part in enumerate(value):
                keep(place + part_size * at, part, part_size // NEARER)
        elif isinstance(value, (bool, int, float)):
            kept[place] = ("number", np.array([value]))
        elif isinstance(value, tl.tensor) and isinstance(value.dtype, tl.dtype) and not value.dtype.is_ptr():
            kept[place] = theirs_of(value)

    source = folder / "interpreted.py"
    source.write_text(text)
    module = types.ModuleType("interpreted")
    module.__file__ = str(source)
    sys.modules["interpreted"] = module
    exec(compile(text, str(source), "exec"), vars(module))
    module._keep = keep
    for name, value in list(vars(module).items()):
        if getattr(value, "__triton_builtin__", False):
            setattr(module, name, late(value.__name__))
    tensors = arrays()
    given = {"_out": 0}
    for name, kind in parameters.items():
        value = argument(name, kind, tensors)
        if name in tensors:
            value = Tensor(value, {"f4": tl.float32, "i4": tl.int32, "f2": tl.float16, "i8": tl.int64}[value.dtype.str[1:]])
        elif isinstance(value, float) and "constexpr" not in kind:
            value = number(value)
        given[name] = value
    module.kernel[(1,)](**given)
    return kept, {name: tensors[name] for name in parameters if name in tensors}


def theirs_of(value):
    """A tensor of the interpreter, as `kept_of` has one."""
    data, dtype = value.handle.data.reshape(-1), value.dtype
    if isinstance(value.type, tl.block_type) and data.size != np.prod([int(extent) for extent in value.shape], dtype=int):
        data = np.broadcast_to(value.handle.data, [int(extent) for extent in value.shape]).reshape(-1)
    if dtype.is_floating() and dtype.primitive_bitwidth in (8, 16) and data.dtype.kind == "u":
        code = dtype.primitive_bitwidth * 100 + dtype.fp_mantissa_width
        return kept_of(code, data.astype(np.int64))
    if dtype.is_floating():
        return kept_of(dtype.primitive_bitwidth * 100 + dtype.fp_mantissa_width,
                       data.astype(f"f{dtype.primitive_bitwidth // 8}").view(f"i{dtype.primitive_bitwidth // 8}"))
    return kept_of(dtype.primitive_bitwidth * 100, data.astype(np.int64))


def units(found, expected, signed):
    """By how many units of the type's last place two arrays of floats differ, at most; and where.
    Zeros are equal whatever their signs unless `signed`."""
    if found.dtype.kind != "f":
        wrong = found != expected
        return (np.inf, int(np.argmax(wrong))) if wrong.any() else (0, 0)
    with np.errstate(all="ignore"):
        spacing = np.spacing(np.abs(expected).astype(found.dtype))
        apart = np.abs(found.astype(np.float64) - expected.astype(np.float64)) / spacing
    same = (found == expected) & ((not signed) | (np.signbit(found) == np.signbit(expected))) | (np.isnan(found) & np.isnan(expected))
    apart = np.where(same, 0, np.where(np.isnan(apart), np.inf, apart))
    apart = np.where(~same & (apart == 0), np.inf, apart)
    return float(apart.max(initial=0)), int(np.argmax(apart)) if apart.size else 0


#: Units by which results of these may differ, if anything in the kernel matches.
LOOSE = [(r"\b(exp|exp2|log|log2|sin|cos|erf|sigmoid|softmax|rsqrt|tanh|libdevice\.\w+|randn\w*)\b", 4),
         (r"\bdot(_scaled)?\(", 1e5), (r"\b(sum|cumsum|cumprod|reduce|associative_scan)\(", 64), (r" / |fdiv\(", 2)]


#: What may give a zero of either sign: the order of zeros, and of what is summed, is not defined.
ZEROS = re.compile(r"\b(minimum|maximum|clamp|min|max|sum|cumsum|topk|reduce|associative_scan|atomic_\w+)\(")


def loose(text):
    """The units by which the results of a kernel may differ."""
    return max((allowed for pattern, allowed in LOOSE if re.search(pattern, text)), default=0)


def differing(ours, theirs, allowed, signed):
    """What differs, or None."""
    for place in sorted(ours[0].keys() | theirs[0].keys()):
        name = f"value {place // SLOT}" + (f"[{place % SLOT // PART}]" if place % SLOT else "")
        if theirs[0].get(place, ("", None))[0] == "number":
            # What stays a number in Python may be one at run time, or a constexpr.
            if place in ours[0] and not np.array_equal(ours[0][place][1], theirs[0][place][1]):
                return f"{name} is {ours[0][place][1]}, not {theirs[0][place][1]}"
            continue
        if place not in ours[0] or place not in theirs[0]:
            return f"{name} is kept only by {'Triton' if place in theirs[0] else 'tile'}"
        (kind, found), (as_kind, expected) = ours[0][place], theirs[0][place]
        if kind != as_kind or found.size != expected.size:
            return f"{name} is {found.size} {kind}, not {expected.size} {as_kind}"
        apart, at = units(found, expected, signed)
        if apart > allowed:
            return f"{name}[{at}] is {found[at]}, not {expected[at]} ({apart:g} units, {int((found != expected).sum())} of {found.size})"
    for name in ours[1]:
        found, expected = ours[1][name].reshape(-1), theirs[1][name].reshape(-1)
        apart, at = units(found, expected, signed)
        if apart > allowed:
            return f"{name}[{at}] is {found[at]}, not {expected[at]}"
    return None


def verdict(tile, lines, prelude, folder):
    """What comparing a probe gives: its kind and what there is to say."""
    try:
        text, parameters = module_of(lines, prelude)
        try:
            theirs = interpret(text, parameters, folder)
        except Refused:
            raise
        except BaseException as error:
            while error.__cause__:
                error = error.__cause__
            return "skipped", f"interpreter: {type(error).__name__}: {str(error)[:100]}"
        if not theirs[0]:
            return "skipped", "no value is kept"
        ours = execute(tile, text + KEEP, parameters, folder)
    except Refused as why:
        return ("refused" if str(why).startswith("tile:") else "skipped"), str(why)
    except subprocess.TimeoutExpired:
        return "skipped", "tile takes too long"
    found = differing(ours, theirs, loose("\n".join(lines)), not ZEROS.search("\n".join(lines)))
    if found is None:
        return "agrees", ""
    told = "\n".join([*lines, found])
    known = next((reason for pattern, reason in arithmetic.KNOWN if re.search(pattern, told, re.MULTILINE)), None)
    return ("known", f"{known} ({found})") if known else ("differs", found)


def together(kernels):
    """Kernels that differ in a last line that prints: what they share, and their last lines."""
    for setup, group in itertools.groupby(kernels, lambda lines: lines[:-1]):
        lasts = [lines[-1] for lines in group]
        for at in range(0, len(lasts), SLOTS // 2):
            yield setup, lasts[at:at + SLOTS // 2]


def families():
    """`(name, prelude, kernels that Triton accepts)`."""
    yield "arithmetic", probes.PRELUDE + arithmetic.PRELUDE, list(arithmetic.kernels())
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.txt")):
            own = path.with_suffix(".py")
            accepted = [lines for lines, said in probes.paragraphs(path.read_text())
                        if said.get(probes.VERSION, "!") != "!"]
            yield path.stem, probes.PRELUDE + (own.read_text() if own.exists() else ""), accepted


def groups(options):
    """The kernels that were asked for: of each group its family, prelude, and what `together` gives."""
    for family, prelude, kernels in families():
        if not options.family or family in options.family:
            for setup, lasts in together([lines for lines in kernels if options.only in "\n".join(lines)]):
                yield family, prelude, setup, lasts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tile", type=Path, help="the built `tile`")
    parser.add_argument("family", nargs="*")
    parser.add_argument("--only", default="", help="kernels whose text contains this")
    parser.add_argument("--seconds", type=int, default=20, help="time for one kernel")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="kernels compared at a time")
    parser.add_argument("--show", action="store_true", help="also print what is known, and what is skipped")
    options = parser.parse_args()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, array in {**arrays(), "out": np.zeros(SLOT * SLOTS, np.int64)}.items():
            np.save(folder / f"{name}.npy", array)

        def verdicts(group):
            """The family, lines, kind and what there is to say, of kernels that share all but their last lines."""
            family, prelude, setup, lasts = group

            def asked(lines):
                with tempfile.TemporaryDirectory(dir=folder) as own:
                    return in_a_child(lambda: verdict(options.tile, lines, prelude, Path(own)), options.seconds)

            if len(lasts) > 1 and asked([*setup, *lasts])[0] == "agrees":
                return [(family, [*setup, last], "agrees", "") for last in lasts]
            return [(family, [*setup, last], *asked([*setup, last])) for last in lasts]

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for family, lines, kind, what in itertools.chain.from_iterable(pool.map(verdicts, groups(options))):
                counts[kind] += 1
                if kind in ("differs", "refused") or options.show:
                    print(f"{kind:8} {family}: {' | '.join(lines)}\n         {what}", flush=True)
    print(f"Triton {triton.__version__}: {sum(counts.values())} kernels, " + ", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    sys.exit(counts["differs"] > 0)


if __name__ == "__main__":
    main()
