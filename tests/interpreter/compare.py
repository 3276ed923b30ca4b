"""The CPU executor beside Triton's own interpreter: the same kernels, the same inputs, one machine.

Each case runs under `TRITON_INTERPRET=1` and on Tile's CPU executor in turn, the results are
compared, and the best times are printed with their ratio. Needs Triton 3.6 and NumPy; PyTorch is
not needed: arguments are NumPy arrays behind the few methods of a tensor that the interpreter
calls. Exits with 1 when a result differs or a case is less than 20 times as fast.

    cargo build --release -p tile-runner --example executor
    python3 tests/interpreter/compare.py [--executor PATH] [--only NAME] [--repeat N] [--json FILE]
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FACTOR = 20.0


class Storage:
    """The bytes of an array, as `torch.UntypedStorage` names them."""

    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def cpu(self):
        return self

    def copy_(self, other):
        if other.array is not self.array:
            self.array[...] = other.array


class Tensor:
    """A contiguous NumPy array with what the interpreter asks of a tensor."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        return Storage(self.array)

    def storage_offset(self):
        return 0

    def size(self):
        return self.array.shape

    def stride(self):
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def new_empty(self, *_, device):
        return Tensor(self.array[:0], self.dtype)

    def set_(self, storage, *_):
        self.array = storage.array


def load_kernel(path, name):
    """The kernel `name` of a Python file; a stand-in for PyTorch if it is not installed."""
    if not importable("torch"):
        sys.modules["torch"] = types.SimpleNamespace(Tensor=Tensor)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def importable(name):
    try:
        __import__(name)
    except Exception:
        return False
    return True


DTYPES = {np.dtype(np.float32): "fp32", np.dtype(np.float16): "fp16"}


class Case:
    """One launch: arrays by name, the one written last, and the arguments in order."""

    def __init__(self, name, path, kernel, grid, arrays, args, meta, tolerance):
        self.name, self.path, self.kernel, self.grid = name, ROOT / path, kernel, grid
        self.arrays, self.args, self.meta, self.tolerance = arrays, args, meta, tolerance
        self.out = list(arrays)[-1]

    def interpret(self, repeat):
        """Milliseconds of each run; the result is left in the last array."""
        import triton.language as tl

        names = {"fp32": tl.float32, "fp16": tl.float16}
        tensors = {
            name: Tensor(array, names[DTYPES[array.dtype]]) for name, array in self.arrays.items()
        }
        kernel = load_kernel(self.path, self.kernel)
        args = [tensors.get(arg, arg) if isinstance(arg, str) else arg for arg in self.args]
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            kernel[self.grid](*args, **self.meta)
            times.append((time.perf_counter() - start) * 1e3)
        return times

    def execute(self, executor, repeat):
        """Milliseconds of each run of the executor, and the assertions that do not hold."""
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            lines = [self.path.read_text().split("\n# tile:")[0], ""]
            for name, array in self.arrays.items():
                np.save(folder / f"{name}.npy", array)
                lines.append(f'# tile: {name} = load("{name}.npy")')
            out = f"empty({', '.join(map(str, self.arrays[self.out].shape))}"
            out += f", dtype={DTYPES[self.arrays[self.out].dtype]})"
            lines[-1] = f"# tile: {self.out} = {out}"
            args = [str(arg) for arg in self.args]
            args += [f"{name}={value}" for name, value in self.meta.items()]
            grid = ", ".join(map(str, self.grid))
            lines.append(f"# tile: {self.kernel}[({grid},)]({', '.join(args)})")
            rtol, atol = self.tolerance
            expected = f'load("{self.out}.npy")'
            lines.append(
                f"# tile: assert allclose({self.out}, {expected}, rtol={rtol}, atol={atol})"
            )
            source = folder / self.path.name
            source.write_text("\n".join(lines) + "\n")
            done = subprocess.run(
                [executor, str(source), str(repeat)], capture_output=True, text=True
            )
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {done.stderr.strip()}")
        [scenario] = json.loads(done.stdout)["scenarios"]
        [launch] = scenario["launches"]
        return launch["ms"], scenario["failed"]


def matmul(rng, extent, dtype, blocks):
    a, b = (rng.standard_normal((extent, extent)).astype(dtype) for _ in range(2))
    block_m, block_n, block_k = blocks
    grid = (-(-extent // block_m) * -(-extent // block_n),)
    meta = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8}
    arrays = {"a": a, "b": b, "c": np.zeros((extent, extent), dtype)}
    sizes = [extent] * 6
    # Inputs are rounded to TF32 by the kernel's default precision, which the interpreter ignores.
    tolerance = (2e-2, 1e-1)
    name = f"matmul {extent}^3 {DTYPES[np.dtype(dtype)]} " + "x".join(map(str, blocks))
    return Case(
        name, "examples/matmul.py", "matmul_kernel", grid, arrays,
        ["a", "b", "c", *sizes], meta, tolerance,
    )


def softmax(rng, rows, cols):
    x = rng.standard_normal((rows, cols)).astype(np.float32)
    arrays = {"x": x, "out": np.zeros_like(x)}
    block = 1 << (cols - 1).bit_length()
    return Case(
        f"softmax {rows}x{cols} fp32", "examples/softmax.py", "softmax_kernel", (rows,), arrays,
        ["out", "x", cols, cols, cols], {"BLOCK_SIZE": block}, (1e-4, 1e-6),
    )


def attention(rng, heads, n_ctx, dim, dtype, causal):
    q, k, v = (rng.standard_normal((heads, n_ctx, dim)).astype(dtype) for _ in range(3))
    lse = np.zeros((heads, n_ctx), np.float32)
    arrays = {"q": q, "k": k, "v": v, "lse": lse, "out": np.zeros_like(q)}
    block_m, block_n = 64, 64
    meta = {"HEAD_DIM": dim, "BLOCK_M": block_m, "BLOCK_N": block_n, "CAUSAL": causal}
    kind = "causal" if causal else "full"
    return Case(
        f"attention {heads}x{n_ctx}x{dim} {DTYPES[np.dtype(dtype)]} {kind}",
        "examples/attention.py", "attention_forward", (-(-n_ctx // block_m), heads), arrays,
        ["q", "k", "v", "out", "lse", dim**-0.5, n_ctx * dim, dim, n_ctx], meta, (2e-2, 1e-2),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ROOT / "target/release/examples/executor"
    parser.add_argument("--executor", default=default, help="the built example `executor`")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    cases = [
        softmax(rng, 1823, 781),
        softmax(rng, 512, 4096),
        matmul(rng, 1024, np.float32, (128, 128, 32)),
        matmul(rng, 1024, np.float32, (64, 64, 32)),
        matmul(rng, 1024, np.float16, (128, 128, 64)),
        attention(rng, 4, 1024, 64, np.float32, False),
        attention(rng, 4, 1024, 64, np.float16, True),
    ]
    rows, failed = [], False
    for case in (case for case in cases if options.only in case.name):
        interpreter = min(case.interpret(options.repeat))
        times, asserts = case.execute(str(options.executor), 2 * options.repeat + 1)
        ratio = interpreter / min(times)
        wrong = "".join(f"  differs: {entry}" for entry in asserts)
        failed |= bool(asserts) or ratio < FACTOR
        print(f"{case.name:40} {interpreter:10.1f} ms {min(times):9.2f} ms {ratio:7.1f}x{wrong}")
        rows.append({"case": case.name, "interpreter_ms": interpreter, "tile_ms": min(times)})
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
