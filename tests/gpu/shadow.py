"""Repeats every launch of Triton's in a program with Tile's machine code, on the same memory.

Each launch is looked at once for each specialization: what it reads and writes is copied, Triton's
kernel runs, then the memory is put back as it was and Tile's kernel runs in its place. What the two
leave in memory is compared: integers bit by bit, floats within the tolerance of the least precise
dtype among the arguments, since kernels compute in what they are given. A second run of Triton's kernel
tells what it does not repeat itself (sums by atomics). The program goes on with Triton's results.
Where times are asked for, both kernels are launched in turns through the same call of the driver.
"""

import ast
import ctypes
import fcntl
import functools
import json
import math
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import torch
from triton.compiler.compiler import ASTSource
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from compare import CELLS, Driver, Function, spelled, tensor_maps

# How far results may be apart, relative to the largest of a tensor: float32 is multiplied in tf32.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 2e-3, torch.float16: 4e-3, torch.bfloat16: 2e-2}
# Specializations of one kernel that are looked at.
MOST = 4


class NotComparable(Exception):
    """A launch that cannot be repeated from outside, and why."""


def storages(values):
    """The memory behind tensors: their bytes, by address. A tensor may be part of its memory."""
    found = {}
    for value in values:
        # Packages wrap tensors to give them other strides.
        value = value.base if isinstance(value, TensorDescriptor) else value
        value = value if isinstance(value, torch.Tensor) else getattr(value, "_base", value)
        if isinstance(value, torch.Tensor):
            memory = value.untyped_storage()
            whole = torch.empty(0, dtype=torch.uint8, device=value.device).set_(memory)
            found[memory.data_ptr()] = (whole, value.dtype)
    return found


def contents(memory):
    return {address: whole.clone() for address, (whole, _) in memory.items()}


def put_back(memory, saved):
    for address, (whole, _) in memory.items():
        whole.copy_(saved[address])


def as_numbers(content, dtype):
    size = dtype.itemsize
    return content[: content.numel() // size * size].view(dtype)


def distance(ours, theirs):
    """Largest difference, relative to the largest finite value; infinite where only one is finite."""
    if ours.dtype.is_floating_point:
        ours, theirs = ours.double(), theirs.double()
        finite = theirs.isfinite()
        if not torch.equal(finite, ours.isfinite()):
            return float("inf")
        ours, theirs = ours[finite], theirs[finite]
        if not theirs.numel():
            return 0.0
        scale = max(theirs.abs().max().item(), 1e-30)
        return ((ours - theirs).abs().max() / scale).item()
    return 0.0 if torch.equal(ours, theirs) else float("inf")


def part(bound, name):
    """The argument that a parameter of a manifest takes: of descriptors, the base, an extent or a stride."""
    owner, _, inner = name.partition(".")
    if not inner:
        return bound[owner]
    field, _, axis = inner.partition(".")
    found = getattr(bound[owner], {"stride": "strides"}.get(field, field))
    return found[int(axis)] if axis else found


def cell(kind, value):
    """An argument as the driver takes it."""
    if kind.startswith("*"):
        return ctypes.c_uint64(value.data_ptr() if hasattr(value, "data_ptr") else value)
    return CELLS[kind](value)


class Shadow:
    """Looks at launches; `rows` holds one record for each specialization."""

    def __init__(self, tile, rounds=0):
        """`rounds` of times for each launch, by one process at a time."""
        self.rounds, self.cache = rounds, None
        self.tile, self.driver, self.rows, self.seen, self.counts = tile, Driver(), [], set(), {}
        major, minor = torch.cuda.get_device_capability()
        self.arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
        self.busy = False

    def install(self):
        """Takes the place of Triton's launches; of several configurations tuning takes the first."""
        run, prune, shadow = JITFunction.run, Autotuner.prune_configs, self

        def launch(function, *args, grid, warmup, **kwargs):
            def theirs():
                return run(function, *args, grid=grid, warmup=warmup, **kwargs)

            if warmup or shadow.busy:
                return theirs()
            return shadow.look(function, args, grid, kwargs, theirs)

        JITFunction.run = launch
        Autotuner.prune_configs = lambda tuner, kwargs: prune(tuner, kwargs)[:1]

    def look(self, function, args, grid, kwargs, theirs):
        binder = function.device_caches[torch.cuda.current_device()][4]
        bound = binder(*args, **{**kwargs, "debug": False, "instrumentation_mode": ""})[0]
        memory = storages(bound.values())
        before = self.before = contents(memory)
        compiled = theirs()
        torch.cuda.synchronize()
        name = function.fn.__name__
        key = (name, compiled.hash)
        if key in self.seen or self.counts.get(name, 0) >= MOST:
            return compiled
        self.seen.add(key)
        self.counts[name] = self.counts.get(name, 0) + 1
        row = {"kernel": name, "file": function.fn.__code__.co_filename}
        results = contents(memory)
        put_back(memory, before)
        theirs()
        torch.cuda.synchronize()
        again = contents(memory)
        put_back(memory, before)
        try:
            self.busy = True
            grid = grid(bound) if callable(grid) else grid
            # Sizes may be tensors of one number.
            grid = tuple(int(size) for size in grid)
            if 0 in grid:
                raise NotComparable("no program is launched")
            ours = self.repeat(function, bound, grid, compiled, row)
            row.update(self.verdict(memory, results, again))
            if self.rounds:
                theirs = self.bind_triton(bound, grid, compiled)
                row["ratio"], row["ms"] = self.time(ours, theirs, lambda: put_back(memory, before))
        except NotComparable as reason:
            row["skipped"] = str(reason)
        except Exception as problem:
            row["problem"] = str(problem).strip()[:600]
        finally:
            self.busy = False
        self.rows.append(row)
        put_back(memory, results)
        return compiled

    def flags(self, function, bound, compiled, row):
        """The command line of the same specialization."""
        source = compiled.src
        if not isinstance(source, ASTSource):
            raise NotComparable("not compiled from source")
        # Of a specialized kernel the metadata counts the warps that Triton adds too.
        warps = re.search(r'"ttg.num-warps" = (\d+)', compiled.asm["ttgir"])[1]
        flags = ["--arch", self.arch, "--num-warps", warps,
                 "--num-stages", str(compiled.metadata.num_stages)]
        for number, param in enumerate(function.params):
            kind, value = source.signature[param.name], bound[param.name]
            has_nan = getattr(value, "padding", "zero") == "nan"
            if (isinstance(value, tuple) and kind != "constexpr") or kind.startswith("nvTmaDesc") or has_nan:
                raise NotComparable(f"`{param.name}` is a {type(value).__name__}")
            if kind.startswith("tensordesc"):
                flags += ["--type", f"{param.name}={kind}"]
            elif kind != "constexpr":
                divisible = (number,) in source.attrs and source.attrs[(number,)]
                flags += ["--type", f"{param.name}={kind}{':16' if divisible else ''}"]
            elif not param.is_constexpr and type(value) is int:
                flags += ["--type", f"{param.name}=i32:1"]
            else:
                value = getattr(value, "value", value)
                flags += ["--set", f"{param.name}={spelled(value)}"]
        row["flags"] = flags
        return flags

    @functools.cache
    def source(self, function):
        """The file of a kernel. One whose module got the names of another as it ran, as those of
        generated kernels do, is written again beside it with imports of them."""
        path = Path(function.fn.__code__.co_filename)
        text = path.read_text()
        nodes = list(ast.walk(ast.parse(text)))
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        bound |= {(node.asname or node.name).split(".")[0] for node in nodes if isinstance(node, ast.alias)}
        used = {node.id for node in nodes if isinstance(node, ast.Name)} - bound
        given = sorted(used & set(function.fn.__globals__))
        if not given:
            return path
        whole = path.with_name(f"{path.stem}.given.py")
        whole.write_text(f"{text}\nfrom {function.fn.__globals__['__name__']} import {', '.join(given)}\n")
        return whole

    def repeat(self, function, bound, grid, compiled, row):
        """Runs Tile's kernel as Triton's was launched."""
        source = f"{self.source(function)}::{function.fn.__name__}"
        flags = self.flags(function, bound, compiled, row)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "kernel.cubin"
            command = [self.tile, "emit", source, "--stage", "cubin", *flags, "-o", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                raise RuntimeError(f"not compiled: {done.stderr.strip() or done.stdout.strip()}")
            image, manifest = out.read_bytes(), json.loads(Path(f"{out}.json").read_text())
        loaded = Function(self.driver, image, manifest["entry"], manifest["shared_bytes"])
        row["registers"] = [loaded.registers, compiled.n_regs]
        row["spilled_bytes"] = [loaded.local_bytes, 4 * compiled.n_spills]
        if manifest["scratch_bytes"]:
            raise NotComparable("needs scratch memory")
        cells = [cell(param["type"], part(bound, param["name"])) for param in manifest["params"]]
        cells += tensor_maps(self.driver, manifest, cells)
        launch = loaded.bind(grid, manifest["block"][0], cells)
        launch()
        torch.cuda.synchronize()
        return launch

    def bind_triton(self, bound, grid, compiled):
        """Launches of Triton's machine code as Tile's are made."""
        metadata = compiled.metadata
        loaded = Function(self.driver, compiled.asm["cubin"], metadata.name, metadata.shared)
        kinds = compiled.src.signature.items()
        if any(kind.startswith("tensordesc") for _, kind in kinds):
            raise NotComparable("takes descriptors that Triton encodes itself")
        cells = [cell(kind, bound[name]) for name, kind in kinds if kind != "constexpr"]
        # Of two kinds of scratch memory kernels have one, as much for each program.
        size = metadata.global_scratch_size * math.prod(grid)
        scratch = self.scratch = torch.empty(size, dtype=torch.uint8, device="cuda")
        cells += [ctypes.c_uint64(scratch.data_ptr()), ctypes.c_uint64(0)]
        return loaded.bind(grid, 32 * metadata.num_warps, cells)

    # What a program makes in inference mode is not written outside of it: the cache outlives both.
    @torch.inference_mode()
    def time(self, ours, theirs, reset):
        """Median ratio of the rounds, and both medians in milliseconds, with a cold L2. Each launch finds
        memory as the first one did: counters that grow with each would lead out of it."""
        if self.cache is None:
            self.cache = torch.empty(128 * 2**20, dtype=torch.int8, device="cuda")
        samples = ([], [])
        with open(Path(tempfile.gettempdir()) / "shadow.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for turn in range(self.rounds + 2):
                pair = list(zip(samples, (ours, theirs)))
                for times, launch in pair[:: -1 if turn % 2 else 1]:
                    reset()
                    self.cache.zero_()
                    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    start.record()
                    launch()
                    end.record()
                    times.append((start, end))
            torch.cuda.synchronize()
        a, b = ([start.elapsed_time(end) for start, end in times[2:]] for times in samples)
        ratio = statistics.median(x / y for x, y in zip(a, b))
        return ratio, [statistics.median(a), statistics.median(b)]

    def verdict(self, memory, results, again):
        """How far apart the results are, the worst tensor first."""
        precision = max((TOLERANCES.get(dtype, 0.0) for _, dtype in memory.values()), default=0.0)
        tensors = []
        for address, (whole, dtype) in memory.items():
            theirs = as_numbers(results[address], dtype)
            noise = distance(as_numbers(again[address], dtype), theirs)
            found = distance(as_numbers(whole, dtype), theirs)
            allowed = max(precision if dtype.is_floating_point else 0.0, 4 * noise)
            tensors.append({"distance": found, "tolerance": allowed, "dtype": str(dtype),
                            "ok": found <= allowed})
        worst = max(tensors, key=lambda tensor: (not tensor["ok"], tensor["distance"]), default={"ok": True})
        changed = any(not torch.equal(results[address], self.before[address]) for address in memory)
        return {**worst, "changed": changed}
