"""Kernels that nobody here wrote, on the CPU executor and in Triton's own interpreter.

For every kernel below the given folders, `tile run --arg auto` chooses arguments and a grid. Both
then run it on the same arrays, and every array is compared: integers exactly, floats within what
their type and the kernel's products allow. Prints a line per kernel with its verdict, and the
counts at the end. Needs Triton 3.6 and NumPy before 2.4; PyTorch and what else the files import
may be missing, since nothing but jit functions runs.

    cargo xtask test corpora        # fetches the packages into target/corpora
    cargo build -p tile
    python3 tests/interpreter/unseen.py target/verify/tile target/corpora/*
        [--only NAME] [--seconds N] [--at-least N]

Exits with 1 when a result differs that `KNOWN` does not explain, or when fewer kernels agree than
`--at-least` asks for.
"""

import argparse
import ast
import collections
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path += [str(Path(__file__).resolve().parents[1] / folder) for folder in ("gpu", "triton")]

import numpy as np

import corpus
import modules
from compare import Tensor
from modules import Refused

DTYPES = {"fp32": np.float32, "fp16": np.float16, "fp64": np.float64, "i64": np.int64,
          "i32": np.int32, "i16": np.int16, "i8": np.int8, "u8": np.uint8, "u32": np.uint32,
          "u64": np.uint64, "u16": np.uint16}
#: Relative and absolute tolerance by type of the elements.
TOLERANCE = {"fp16": (1e-2, 1e-3), "fp32": (2e-4, 1e-5), "fp64": (1e-6, 1e-9)}
#: Operands of products are rounded to TF32 by default, which the interpreter does not do.
PRODUCTS = (2e-2, 2e-2)
#: Differences that are the interpreter's, by kernel, with the reason.
KNOWN = {}


def late(name):
    """A member of the language, looked up when it is called: the interpreter has its own there.
    Those of the device library it has only where the language's mathematics has them too."""
    import triton.language as tl

    def call(*args, **kwargs):
        home = tl.math if hasattr(tl.math, name) else tl
        return getattr(home, name)(*args, **kwargs)

    return call


def load(root, file, name):
    """The kernel `name` of `file`, a module below `root`, as the interpreter has it."""
    import triton.language as tl
    from triton.language.extra import libdevice

    for member in dir(tl.math):
        if hasattr(libdevice, member) and not member.startswith("_"):
            setattr(libdevice, member, late(member))
    return modules.jit_function(root, file, name, {("torch", "Tensor"): Tensor}, replace_builtins)


def replace_builtins(module):
    """Members of the language that a module imported are looked up when they are called."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__triton_builtin__", False):
            setattr(module, name, late(value.__name__))


def array_of(call, rng):
    """The array that a scenario's expression describes, with numbers of our own."""
    options = {kw.arg: ast.literal_eval(kw.value) if kw.arg != "dtype" else kw.value.id
               for kw in call.keywords}
    numbers = [ast.literal_eval(arg) for arg in call.args]
    dtype = options.get("dtype", "fp32")
    if dtype not in DTYPES:
        raise Refused(f"NumPy has no {dtype}")
    kind = call.func.id
    if kind == "randint":
        low, high, *shape = numbers
        return rng.integers(low, high, shape).astype(DTYPES[dtype]), dtype
    if kind in ("rand", "randn", "empty", "zeros"):
        return rng.random(numbers).astype(DTYPES[dtype]), dtype
    if kind == "arange":
        return np.arange(*numbers).astype(DTYPES[dtype]), dtype
    raise Refused(f"arguments are made by {kind}")


def arguments(expressions, rng):
    """Arrays with their types, and other arguments."""
    arrays, others = {}, {}
    for name, expression in expressions.items():
        if isinstance(expression, ast.Call):
            arrays[name] = array_of(expression, rng)
            continue
        if isinstance(expression, ast.Name) and expression.id in DTYPES:
            others[name] = modules.language_type(expression.id)
            continue
        try:
            others[name] = ast.literal_eval(expression)
        except ValueError:
            raise Refused(f"{name} is {ast.unparse(expression)}") from None
    return arrays, others


def execute(tile, file, name, grid, expressions, arrays, folder):
    """The arrays after the CPU executor ran the kernel."""
    command = [tile, "run", f"{file}::{name}", "--device", "cpu", "--triton", "3.6",
               "--grid", repr(grid)]
    for argument, expression in expressions.items():
        if argument in arrays:
            np.save(folder / f"{argument}.npy", arrays[argument][0])
            value = f'load("{folder / argument}.npy")'
            command += ["--save", f"{argument}={folder / argument}.out.npy"]
        else:
            value = ast.unparse(expression)
        command += ["--arg", f"{argument}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Refused("tile: " + (done.stderr or done.stdout).strip().splitlines()[0][:120])
    return {argument: np.load(folder / f"{argument}.out.npy")
            for argument in arrays if (folder / f"{argument}.out.npy").exists()}


def number(value):
    """A float as the interpreter has what it computes."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    return tl.tensor(TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)


def interpret(root, file, name, grid, arrays, others):
    """The arrays after Triton's interpreter ran the kernel."""
    kernel = load(root, file, name)
    constexprs = {parameter for parameter, annotation in kernel.fn.__annotations__.items()
                  if "constexpr" in str(annotation)}
    # Launches make tensors of numbers; the interpreter leaves floats as they are.
    others = {argument: number(value) if type(value) is float and argument not in constexprs
              else value for argument, value in others.items()}
    tensors = {argument: Tensor(array.copy(), modules.language_type(dtype))
               for argument, (array, dtype) in arrays.items()}
    kernel[grid](**tensors, **others)
    return {argument: tensor.array for argument, tensor in tensors.items()}


def differing(name, before, ours, theirs, text):
    """What differs, or None; raises where the kernel wrote nothing."""
    written = False
    for argument, found in ours.items():
        array, dtype = before[argument]
        expected = theirs[argument].reshape(-1)
        found = found.reshape(-1)
        written |= not np.array_equal(array.reshape(-1), expected, equal_nan=array.dtype.kind == "f")
        if dtype not in TOLERANCE:
            if not np.array_equal(found, expected):
                return f"{argument} differs at {int(np.argmax(found != expected))}"
            continue
        rtol, atol = TOLERANCE[dtype]
        if "tl.dot" in text:
            rtol, atol = PRODUCTS
        # Sums are taken in another order, and what cancels in them is as large as the largest.
        finite = np.abs(expected[np.isfinite(expected)], dtype=np.float64)
        atol += rtol * 1e-2 * finite.max(initial=0.0)
        same = np.isclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
        if not same.all():
            at = int(np.argmin(same))
            return f"{argument}[{at}] is {found[at]}, not {expected[at]}"
    if not written:
        raise Refused("it writes nothing on these arguments")
    return None


def compare(tile, root, file, name):
    """The verdict on one kernel: its kind and what there is to say."""
    rng = np.random.default_rng(0)
    try:
        grid, expressions = modules.chosen(tile, file, name)
        arrays, others = arguments(expressions, rng)
        with tempfile.TemporaryDirectory() as folder:
            ours = execute(tile, file, name, grid, expressions, arrays, Path(folder))
        try:
            theirs = interpret(root, file, name, grid, arrays, others)
        except Exception as error:
            while error.__cause__:
                error = error.__cause__
            return "skipped", f"interpreter: {type(error).__name__}: {str(error)[:100]}"
        found = differing(name, arrays, ours, theirs, file.read_text())
    except Refused as why:
        return "skipped", str(why)
    except subprocess.TimeoutExpired:
        return "skipped", "tile takes too long"
    if found is None:
        return "agrees", f"{len(ours)} arrays, grid {grid}"
    return ("known", f"{KNOWN[name]} ({found})") if name in KNOWN else ("differs", found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tile", type=Path, help="the built `tile`")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="kernels whose file or name contains this")
    parser.add_argument("--seconds", type=int, default=60, help="time for one kernel")
    parser.add_argument("--at-least", type=int, default=25, help="how many kernels must agree")
    options = parser.parse_args()
    counts = collections.Counter()
    for root in options.folders:
        for file, name in corpus.kernels([root.resolve()]):
            if options.only not in f"{file}::{name}":
                continue
            answer = functools.partial(compare, options.tile, root.resolve(), file, name)
            kind, what = modules.in_a_child(answer, options.seconds)
            counts[kind] += 1
            print(f"{kind:8} {file.relative_to(root.resolve())}::{name}: {what}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    sys.exit(counts["differs"] > 0 or counts["agrees"] < options.at_least)


if __name__ == "__main__":
    main()
