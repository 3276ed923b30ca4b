"""Tile beside Triton on one GPU: the kernels of examples/, the same inputs, in one process.

    python3 tests/gpu/compare.py PATH_TO_TILE [--json FILE] [--only TEXT]... [--without TEXT]...
                                [--skip STEP]... [--code FOLDER] [--ptxas FILE]

Four steps, each of which can be skipped:

  python     every example runs as a Python program under Triton, as its users run it
  scenarios  every scenario gives the same on the GPU as on the CPU executor, element by element
  sanitizer  compute-sanitizer finds nothing in the examples, by memcheck and racecheck
  triton     each case of cases.py under both compilers: results, times, registers, shared memory,
             spills; products also under Triton's code for sm_80; at the end how many cases are within
             which share of Triton's time, and which take more registers or spill where Triton does
             not under the same configuration: the one that is fastest under Tile

Before anything is timed, processes beside each other compile everything that the last step needs into
both compilers' caches; what is timed has the machine to itself.

Times are compared in rounds. A round takes every kernel once, through the same call of the driver; the
ratio of a case is the median of its rounds' ratios, with a 95 % interval that assumes no distribution.
Each round also takes a second copy of Triton's own kernel. What that copy's interval is away from 1 is
what the method cannot tell apart: ratios whose interval reaches so far count as equal.

Triton brings an assembler of its own, Tile takes the one that --ptxas names, else TILE_PTXAS, else what is
installed. Both sides are timed as they come; the column `alike` is Tile's time over that of Triton's PTX
through Tile's assembler, at Triton's best configuration, so that the assembler is no part of it.

A case that fails is marked and the rest goes on; one that breaks the GPU's context costs a new
process. All figures go into one JSON file. Exits with 1 when anything failed.
"""

import argparse
import contextlib
import ctypes
import functools
import itertools
import json
import math
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPUS = len(os.sched_getaffinity(0))
# A case that takes longer hangs.
CASE_SECONDS = 180
# Into how many jobs a case's configurations are divided when they are compiled ahead.
AHEAD_PARTS = 4


# The programs and scenarios of examples/.


def example_files(*folders):
    """The programs of `examples/`, and of other folders."""
    found = [path for folder in (ROOT / "examples", *folders) for path in sorted(folder.iterdir())]
    return [path for path in found if path.suffix in (".py", ".tile")]


def is_wanted(name, only):
    """Whether a file or a case has one of the texts in its name; with no texts all are wanted."""
    return not only or any(text in name for text in only)


def in_parallel(function, items, threads):
    """Results of `function` over `items`, in order; each is shown as soon as its turn comes."""
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, items)


def output_of(command, seconds=300, **options):
    """Exit status and both outputs of a command; a time-out is the status 124."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, **options)
    except subprocess.TimeoutExpired:
        return 124, "", f"no end after {seconds} s"
    return done.returncode, done.stdout, done.stderr


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def run_python(only):
    """Each example as a program of its own under Triton."""
    def run(path):
        status, _, errors = output_of([sys.executable, str(path)], cwd=path.parent)
        return {"file": path.name, "ok": status == 0, "problem": last_line(errors) if status else None}

    wanted = [path for path in example_files()
              if path.suffix == ".py" and "__main__" in path.read_text() and is_wanted(path.name, only)]
    return list(in_parallel(run, wanted, min(8, CPUS)))


def kernels_with_scenarios(tile, path):
    """Kernels of a file and how many scenarios each has, with the names of what they write."""
    status, output, errors = output_of([tile, "run", str(path), "--device", "cpu", "--format", "json"])
    results = [json.loads(line) for line in output.splitlines()]
    if status not in (0, 1) or not results:
        raise RuntimeError(last_line(errors) or f"exit status {status}")
    numbers = {}
    for result in results:
        numbers[result["kernel"]] = numbers.get(result["kernel"], 0) + 1
        yield f"{result['kernel']}#{numbers[result['kernel']]}", list(result["outputs"])


def run_scenario(tile, path, scenario, outputs, device, folder):
    """A scenario's result, and what it wrote as arrays."""
    files = {name: Path(folder) / f"{device.replace(':', '')}.{name}.npy" for name in outputs}
    save = [f"--save={name}={file}" for name, file in files.items()]
    target = f"{path}::{scenario}"
    command = [tile, "run", target, "--device", device, "--format", "json", *save]
    status, output, errors = output_of(command)
    if status not in (0, 1):
        raise RuntimeError(f"{device}: {last_line(errors)}")
    return json.loads(last_line(output)), {name: load_array(file) for name, file in files.items()}


def load_array(path):
    """An array of a file, as float64; types that NumPy lacks are stored as float32."""
    import numpy

    return numpy.load(path).astype(numpy.float64)


# Differences that rounding explains, relative to the larger of 1 and the value.
TOLERANCES = {"fp64": 1e-9, "fp32": 1e-3, "fp16": 1e-2, "bf16": 3e-2, "fp8e5": 0.3, "fp8e4nv": 0.15}


def array_difference(ours, theirs):
    import numpy

    if ours.shape != theirs.shape or not (numpy.isfinite(ours) == numpy.isfinite(theirs)).all():
        return float("inf")
    error = numpy.abs(ours - theirs) / numpy.maximum(1, numpy.abs(theirs))
    return float(numpy.nan_to_num(error).max(initial=0.0))


def run_scenarios(tile, only):
    """Every scenario on both devices."""
    def find(path):
        try:
            return [(path, *found) for found in kernels_with_scenarios(tile, path)]
        except Exception as problem:
            return [(path, None, problem)]

    def run(job):
        path, scenario, outputs = job
        if scenario is None:
            return {"scenario": path.name, "ok": False, "problem": str(outputs)}
        row = {"scenario": f"{path.name}::{scenario}", "ok": False}
        try:
            with tempfile.TemporaryDirectory() as folder:
                cpu, expected = run_scenario(tile, path, scenario, outputs, "cpu", folder)
                gpu, found = run_scenario(tile, path, scenario, outputs, "cuda:0", folder)
        except Exception as problem:
            return row | {"problem": str(problem)}
        errors = {name: array_difference(found[name], expected[name]) for name in outputs}
        allowed = {name: TOLERANCES.get(cpu["outputs"][name]["dtype"], 0.0) for name in outputs}
        if path.parent.name == "kernels" and cpu["asserts"]:
            # Products of formats that the units add in fewer bits state what is expected.
            allowed = {name: float("inf") for name in outputs}
        row["errors"] = errors
        row["ok"] = gpu["ok"] and cpu["ok"] and all(errors[name] <= allowed[name] for name in outputs)
        if not row["ok"]:
            failed = [str(check["line"]) for check in gpu["asserts"] if not check["ok"]]
            row["problem"] = f"asserts of lines {', '.join(failed)}" if failed else str(errors)
        return row

    wanted = [path for path in example_files(ROOT / "tests/gpu/kernels")
              if "# tile:" in path.read_text() and is_wanted(path.name, only)]
    threads = min(12, CPUS)
    jobs = list(itertools.chain.from_iterable(in_parallel(find, wanted, threads)))
    return list(in_parallel(run, jobs, threads))


def run_sanitizer(tile, only):
    """The examples under memcheck and racecheck."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(program).exists():
        return [{"file": "compute-sanitizer", "ok": False, "problem": "is not installed"}]

    def run(job):
        path, tool = job
        command = [program, "--tool", tool, "--target-processes", "all", "--error-exitcode", "9",
                   tile, "run", str(path), "--device", "cuda:0"]
        status, output, errors = output_of(command)
        text = output + errors
        summaries = [line for line in text.splitlines() if "SUMMARY" in line]
        found = [line for line in summaries if " 0 " not in line]
        # The tool itself can die, which says nothing of the kernel.
        end = last_line(text) if summaries else f"status {status}, no summary: {last_line(text)}"
        problem = found[0] if found else end
        clean = status == 0 and not found
        return {"file": path.name, "tool": tool, "ok": clean, "problem": None if clean else problem}

    wanted = [path for path in example_files(ROOT / "tests/gpu/kernels")
              if "# tile:" in path.read_text() and is_wanted(path.name, only)]
    jobs = [(path, tool) for path in wanted for tool in ("memcheck", "racecheck")]
    return list(in_parallel(run, jobs, min(8, CPUS)))


# Tile beside Triton. Everything below but `run_cases` runs in a process with a CUDA context.


class Driver:
    """The CUDA driver, through its C interface alone."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __call__(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(result, ctypes.byref(text))
            raise RuntimeError(f"{name}: {text.value.decode() if text.value else result}")


class Function:
    """A loaded kernel: what it uses, and launches of it on torch's stream."""

    def __init__(self, driver, image, entry, shared):
        self.driver, self.shared = driver, shared
        self.image = image if isinstance(image, bytes) else image.encode() + b"\0"
        module, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        driver("cuModuleLoadData", ctypes.byref(module), self.image)
        driver("cuModuleGetFunction", ctypes.byref(self.handle), module, entry.encode())
        if shared > 48 * 1024:
            driver("cuFuncSetAttribute", self.handle, 8, shared)

    def attribute(self, number):
        value = ctypes.c_int()
        self.driver("cuFuncGetAttribute", ctypes.byref(value), number, self.handle)
        return value.value

    @property
    def registers(self):
        return self.attribute(4)

    @property
    def local_bytes(self):
        return self.attribute(3)

    def bind(self, grid, threads, cells):
        import torch

        pointers = (ctypes.c_void_p * len(cells))(*[ctypes.addressof(cell) for cell in cells])
        grid = tuple(grid) + (1,) * (3 - len(grid))

        def launch():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            self.driver("cuLaunchKernel", self.handle, *grid, threads, 1, 1, self.shared, stream,
                        pointers, None)

        launch.keep = (cells, pointers)
        return launch


# Rounds after which a case is timed no longer.
MOST_ROUNDS = 600


def median_ratio(ours, theirs):
    """Median of the rounds' ratios, and its 95 % interval: the order statistics between which the
    median of any distribution lies that often."""
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    reach = 0.98 * math.sqrt(len(ratios))
    low = max(0, math.floor(len(ratios) / 2 - reach))
    high = min(len(ratios) - 1, math.ceil(len(ratios) / 2 + reach))
    return statistics.median(ratios), (ratios[low], ratios[high])


def verdict(row):
    """How a case's time compares, as far as the rounds can tell."""
    noise = max(abs(end - 1) for end in row["control_interval"])
    low, high = row["interval"]
    return "slower" if low > 1 + noise else "faster" if high < 1 - noise else "equal"


CELLS = {
    "i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
    "i64": ctypes.c_int64, "u1": ctypes.c_uint8, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "fp32": ctypes.c_float, "fp64": ctypes.c_double,
}


# Of what tensor maps name.
ELEMENT_BYTES = {
    "i8": 1, "u8": 1, "fp8e5": 1, "fp8e4nv": 1, "fp8e4b15": 1, "i16": 2, "u16": 2, "fp16": 2, "bf16": 2,
    "i32": 4, "u32": 4, "fp32": 4,
}


def pack(kind, value):
    return ctypes.c_uint64(value.data_ptr()) if kind.startswith("*") else CELLS[kind](value)


def tensor_maps(driver, manifest, cells):
    """What Tile's kernel takes behind its other arguments, made as its manifest says."""
    given = {param["name"]: cell.value for param, cell in zip(manifest["params"], cells)}

    def numbers(products):
        return [math.prod([given[name] for name in it["params"]], start=it["factor"]) for it in products]

    made = []
    for spec in manifest.get("tensor_maps", []):
        size = ELEMENT_BYTES[spec["type"]]
        extents = [max(extent, 1) for extent in numbers(spec["shape"])]
        strides = [size * stride for stride in numbers(spec["strides"])]
        rank = len(extents)
        memory = (ctypes.c_uint8 * 192)()
        aligned = (ctypes.c_uint8 * 128).from_buffer(memory, -ctypes.addressof(memory) % 64)
        longs, words = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        driver("cuTensorMapEncodeTiled", ctypes.byref(aligned), {1: 0, 2: 1, 4: 2}[size], rank,
               ctypes.c_void_p(given[spec["base"]]), longs(*extents[::-1]), longs(*strides[::-1]),
               words(*spec["box"][::-1]), words(*[1] * rank), 0,
               {32: 1, 64: 2, 128: 3}[spec["swizzle_bytes"]], 2, 0)
        made.append(aligned)
    return made


def signature(value):
    """Triton's own rules of specialization, spelled for `--type`."""
    import torch

    if isinstance(value, torch.Tensor):
        names = {
            torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.bool: "i1",
            torch.float64: "fp64", torch.int32: "i32", torch.int64: "i64", torch.int16: "i16",
            torch.int8: "i8", torch.uint8: "u8",
            torch.float8_e5m2: "fp8e5", torch.float8_e4m3fn: "fp8e4nv",
        }
        return f"*{names[value.dtype]}" + (":16" if value.data_ptr() % 16 == 0 else "")
    if isinstance(value, float):
        return "fp32"
    if value == 1:
        return "i32:1"
    kind = "i32" if -2**31 <= value < 2**31 else "i64"
    return kind + (":16" if value % 16 == 0 else "")


def spelled(value):
    """A constexpr as `--set` reads it: functions by name, everything else as Python writes it."""
    return value.fn.__name__ if hasattr(value, "fn") else repr(value)


def installed_ptxas():
    """The assembler that Tile is told to take; empty where it has to find one by itself."""
    toolkit = "/usr/local/cuda/bin/ptxas"
    named = os.environ.get("TILE_PTXAS") or shutil.which("ptxas")
    return named or (toolkit if Path(toolkit).exists() else "")


def ptxas_version(program):
    """`12.8.93`, say."""
    with contextlib.suppress(OSError):
        _, output, _ = output_of([program, "--version"])
        if ", V" in output:
            return output.rpartition(", V")[2].split()[0]
    return "of unknown version"


class Bench:
    """Runs cases in this process."""

    def __init__(self, tile, code):
        import torch
        import triton

        import cases
        import families  # noqa: F401, registers its cases

        self.torch, self.triton, self.cases = torch, triton, cases
        self.tile, self.code = tile, code
        self.driver = Driver()
        major, minor = torch.cuda.get_device_capability()
        self.arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
        self.pool = ThreadPoolExecutor(max(1, CPUS - 2))
        # Scratch memory of the case that runs.
        self.kept = []
        triton.set_allocator(
            lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda")
        )

    @functools.cached_property
    def cache(self):
        """What is written between launches, larger than the L2."""
        return self.torch.empty(256 * 2**20, dtype=self.torch.int8, device="cuda")

    def arguments(self, case):
        names = case.function().arg_names
        return {name: value for name, value in case.arguments.items() if name in names}

    def grid(self, case, config):
        return case.grid(config.constexprs) if callable(case.grid) else case.grid

    def scratch(self, size, grid):
        """Memory of `size` bytes for each program, as an argument; `None` of no bytes."""
        if not size:
            return None
        memory = self.torch.zeros(size * math.prod(grid), dtype=self.torch.int8, device="cuda")
        self.kept.append(memory)
        return pack("*i8", memory)

    # Tile

    def emit_flags(self, case, arguments, config):
        """The command line that compiles one configuration, but for the program and what it writes."""
        flags = ["--arch", self.arch, "--num-warps", str(config.num_warps),
                 "--num-stages", str(config.num_stages)]
        for name, value in arguments.items():
            flags += ["--type", f"{name}={signature(value)}"]
        for name, value in config.constexprs.items():
            flags += ["--set", f"{name}={spelled(value)}"]
        return ["emit", f"{self.cases.path_of(case.file)}::{case.kernel}", "--stage", "cubin", *flags]

    def emit(self, case, arguments, config):
        """Machine code and manifest of one configuration."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "kernel.cubin"
            command = [self.tile, *self.emit_flags(case, arguments, config), "-o", str(out)]
            status, output, errors = output_of(command)
            if status != 0:
                raise RuntimeError(errors.strip() or output.strip() or f"exit status {status}")
            return out.read_bytes(), json.loads(Path(f"{out}.json").read_text())

    def tile_launch(self, case, config, emitted):
        image, manifest = emitted
        function = Function(self.driver, image, manifest["entry"], manifest["shared_bytes"])
        arguments = self.arguments(case)
        cells = [pack(param["type"], arguments[param["name"]]) for param in manifest["params"]]
        grid = self.grid(case, config)
        maps = tensor_maps(self.driver, manifest, cells)
        scratch = self.scratch(manifest["scratch_bytes"], grid)
        if scratch:
            cells.append(scratch)
        cells += maps
        launch = function.bind(grid, manifest["block"][0], cells)
        used = {"registers": function.registers, "local_bytes": function.local_bytes,
                "shared_bytes": manifest["shared_bytes"]}
        return launch, used

    # Triton

    def triton_launch(self, case, config):
        """Triton's kernel, compiled by a launch of its own and launched like Tile's from then on."""
        compiled = case.function()[self.grid(case, config)](**self.arguments(case), **self.options(config))
        self.torch.cuda.synchronize()
        used = {"registers": compiled.n_regs, "local_bytes": 4 * compiled.n_spills,
                "shared_bytes": compiled.metadata.shared}
        return self.bind_triton(case, config, compiled, "cubin"), used, compiled

    def bind_triton(self, case, config, compiled, stage):
        """Launches of what Triton compiled, from its machine code or its PTX."""
        return self.bind_image(case, config, compiled, compiled.asm[stage])

    def bind_image(self, case, config, compiled, image):
        """Launches of `image`, made of what Triton compiled."""
        metadata = compiled.metadata
        function = Function(self.driver, image, metadata.name, metadata.shared)
        kinds = [(name, kind) for name, kind in compiled.src.signature.items() if kind != "constexpr"]
        arguments, grid = self.arguments(case), self.grid(case, config)
        cells = [pack(kind, arguments[name]) for name, kind in kinds]
        # Two kinds of scratch memory, of which no kernel here uses the second.
        cells.append(self.scratch(metadata.global_scratch_size, grid) or ctypes.c_uint64(0))
        cells.append(ctypes.c_uint64(0))
        return function.bind(grid, 32 * metadata.num_warps, cells)

    def options(self, config):
        return config.constexprs | {"num_warps": config.num_warps, "num_stages": config.num_stages}

    def triton_alike(self, case, config, compiled):
        """Triton's PTX through Tile's assembler, with the options that Triton has."""
        with tempfile.TemporaryDirectory() as folder:
            text, image = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
            text.write_text(compiled.asm["ptx"])
            command = [installed_ptxas(), "-lineinfo", "--gpu-name", self.arch, str(text), "-o", str(image)]
            status, _, errors = output_of(command)
            if status != 0:
                raise RuntimeError(last_line(errors))
            return self.bind_image(case, config, compiled, image.read_bytes())

    def triton_sm80(self, case, config, compiled):
        """Triton's code for sm_80, which this GPU's driver assembles for itself."""
        from triton.backends.compiler import GPUTarget

        options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
        old = self.triton.compile(compiled.src, target=GPUTarget("cuda", 80, 32), options=options)
        return self.bind_triton(case, config, old, "ptx")

    # Both

    def compile_ahead(self, name, part):
        """Fills the caches of both compilers, and the driver's, with a part of what `run` compiles. What
        fails here fails there again, and is told there."""
        case = self.cases.CASES[name]()
        arguments = self.arguments(case)
        for config in case.configs[part::AHEAD_PARTS]:
            with contextlib.suppress(Exception):
                self.emit(case, arguments, config)
            with contextlib.suppress(Exception):
                compiled = case.function().warmup(
                    grid=self.grid(case, config), **arguments, **self.options(config))
                if case.flops and case.sm80:
                    self.triton_sm80(case, config, compiled)
        return {"case": name, "ok": True}

    def time(self, launchers, seconds):
        """Milliseconds by launcher and round: events around each launch, a cold L2. Every second
        round goes through the launchers backwards."""
        for launch in launchers:
            for _ in range(3):
                launch()
        self.torch.cuda.synchronize()
        samples = [[] for _ in launchers]
        while sum(map(sum, samples)) < seconds * 1e3 and len(samples[0]) < MOST_ROUNDS:
            events = []
            for turn in range(20):
                for number, launch in list(enumerate(launchers))[::-1 if turn % 2 else 1]:
                    self.cache.zero_()
                    start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                    start.record()
                    launch()
                    end.record()
                    events.append((number, start, end))
            self.torch.cuda.synchronize()
            for number, start, end in events:
                samples[number].append(start.elapsed_time(end))
        return samples

    def best(self, launches):
        """The configuration of the fastest launch, by a short look at each."""
        if len(launches) == 1:
            return next(iter(launches))
        samples = self.time([launch for launch, *_ in launches.values()], 0.03 * len(launches))
        times = dict(zip(launches, map(statistics.median, samples)))
        return min(times, key=times.get)

    def results(self, case, launch):
        case.prepare()
        launch()
        self.torch.cuda.synchronize()
        return [case.arguments[name].clone() for name in case.outputs]

    def difference(self, ours, theirs):
        """Largest |ours - theirs| / max(1, |theirs|); infinite where one of them is no number."""
        worst = 0.0
        for a, b in zip(ours, theirs):
            a, b = a.double(), b.double()
            if not self.torch.equal(a.isfinite(), b.isfinite()):
                return float("inf")
            error = (a - b).abs() / b.abs().clamp(min=1)
            worst = max(worst, error.nan_to_num(0.0, posinf=0.0).max().item())
        return worst

    def launches(self, case, make):
        """What can be launched, by the number of the configuration, and what went wrong."""
        found, problems = {}, []
        for number, config in enumerate(case.configs):
            try:
                found[number] = make(number, config)
            except Exception as problem:
                problems.append(f"{config}: {str(problem).strip()[:500]}")
        return found, problems

    def keep_code(self, case, name, image, config, compiled):
        """Both sides' machine code of a case, Triton's PTX and IR, and how Tile's is compiled again."""
        flags = self.emit_flags(case, self.arguments(case), config)
        for kind, content in (("tile.cubin", image), ("triton.cubin", compiled.asm["cubin"]),
                              ("triton.ptx", compiled.asm["ptx"]), ("triton.ttgir", compiled.asm["ttgir"]),
                              ("tile.json", json.dumps(flags))):
            content = content if isinstance(content, bytes) else content.encode()
            (self.code / f"{name}.{kind}").write_bytes(content)

    def run(self, name):
        self.torch.manual_seed(0)
        self.kept.clear()
        case = self.cases.CASES[name]()
        arguments = self.arguments(case)
        emitted = [self.pool.submit(self.emit, case, arguments, config) for config in case.configs]
        theirs, triton_problems = self.launches(case, lambda _, config: self.triton_launch(case, config))
        ours, problems = self.launches(
            case, lambda number, config: self.tile_launch(case, config, emitted[number].result())
        )
        row = {"case": name, "ok": False, "problems": problems, "triton_problems": triton_problems}
        if not ours or not theirs:
            side, found = ("Tile", problems) if not ours else ("Triton", triton_problems)
            return row | {"problem": f"{side}: {found[0]}"}
        # Every configuration must be right, not only the fast one.
        expected = self.results(case, next(iter(theirs.values()))[0])
        errors = {number: self.difference(self.results(case, launch[0]), expected)
                  for number, launch in ours.items()}
        row |= {"error": max(errors.values()), "tolerance": case.tolerance}
        if case.exact:
            # Neither result is exact: both are held against a better one.
            exact = case.exact()
            row["triton_error"] = self.difference(expected, exact)
            row["error"] = max(self.difference(self.results(case, launch[0]), exact)
                               for launch in ours.values())
        tile_best, triton_best = self.best(ours), self.best(theirs)
        if self.code:
            self.keep_code(case, name, emitted[tile_best].result()[0], case.configs[tile_best],
                           theirs[triton_best][2])
        control = self.bind_triton(case, case.configs[triton_best], theirs[triton_best][2], "cubin")
        launchers = [ours[tile_best][0], theirs[triton_best][0], control]
        alike = None
        try:
            config = case.configs[triton_best]
            launchers.append(self.triton_alike(case, config, theirs[triton_best][2]))
            alike = len(launchers) - 1
        except Exception as problem:
            row["triton_alike_problem"] = str(problem).strip()[:300]
        same = triton_best in ours and triton_best != tile_best
        if same:
            launchers.append(ours[triton_best][0])
        sm80 = None
        if case.flops and case.sm80:
            try:
                config = case.configs[triton_best]
                sm80 = self.triton_sm80(case, config, theirs[triton_best][2])
                launchers.append(sm80)
            except Exception as problem:
                row["triton_sm80_problem"] = str(problem).strip()[:300]
        samples = self.time(launchers, 0.15 * len(launchers))
        times = list(map(statistics.median, samples))
        ratio, interval = median_ratio(samples[0], samples[1])
        control_ratio, control_interval = median_ratio(samples[2], samples[1])
        row |= {"tile_ms": times[0], "triton_ms": times[1], "rounds": len(samples[0]),
                "ratio": ratio, "interval": interval,
                "control_ratio": control_ratio, "control_interval": control_interval,
                "tile_config": str(case.configs[tile_best]),
                "triton_config": str(case.configs[triton_best])}
        if same:
            row["tile_ms_at_triton_config"] = times[3 + (alike is not None)]
        if alike is not None:
            row["ratio_alike"], row["interval_alike"] = median_ratio(samples[0], samples[alike])
        if sm80:
            row["triton_sm80_ms"] = times[-1]
            row["ratio_to_sm80"] = median_ratio(samples[0], samples[-1])[0]
        for side, (_, used, *_) in (("tile", ours[tile_best]), ("triton", theirs[triton_best])):
            row |= {f"{side}_{what}": value for what, value in used.items()}
        if tile_best in theirs:
            used = theirs[tile_best][1]
            row |= {f"triton_{what}_at_tile_config": value for what, value in used.items()}
        for side in ("tile", "triton"):
            row[f"{side}_gbps"] = case.moved_bytes / row[f"{side}_ms"] / 1e6
            row[f"{side}_tflops"] = case.flops / row[f"{side}_ms"] / 1e9
        # Units that add in fewer bits than the exact sum has are to be as good as Triton's use of them.
        allowed = max(case.tolerance, 1.25 * row.get("triton_error", 0.0))
        row["ok"] = row["error"] <= allowed and not problems
        if not row["ok"]:
            row["problem"] = problems[0] if problems else f"differs by {row['error']:.1e}"
        return row


def work(tile, code):
    """Runs the cases named on standard input, a line each, or compiles the part of a case whose number
    follows its name; answers with a line of JSON each."""
    # Kernels may print; answers have standard output to themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    bench = Bench(tile, code)
    names = " ".join(bench.cases.CASES)
    theirs = Path(bench.triton.__file__).parent / "backends/nvidia/bin/ptxas"
    print(f"{bench.torch.cuda.get_device_name()}, Triton {bench.triton.__version__},"
          f" torch {bench.torch.__version__}|{ptxas_version(str(theirs))}|{names}", file=answers)
    for line in sys.stdin:
        (name, *part), fatal = line.split(), False
        try:
            row = bench.compile_ahead(name, int(part[0])) if part else bench.run(name)
        except Exception as problem:
            row = {"case": name, "ok": False, "problem": f"{type(problem).__name__}: {problem}"[:500]}
        try:
            bench.torch.cuda.synchronize()
            bench.torch.cuda.empty_cache()
        except Exception as problem:
            fatal = True
            row |= {"ok": False, "problem": row.get("problem") or f"the GPU: {problem}"}
        print(json.dumps(row | {"fatal": fatal}), file=answers)
        if fatal:
            return


class Worker:
    """A process with a CUDA context, which a case may break."""

    def __init__(self, tile, code):
        command = [sys.executable, str(Path(__file__).resolve()), tile, "--work"]
        command += ["--code", str(code)] if code else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def line(self, seconds):
        """The next answer; `None` when the process has ended or hangs."""
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def ask(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        line = self.line(CASE_SECONDS)
        if line is None:
            self.end()
            return {"case": name, "ok": False, "fatal": True, "problem": "the process ended or hung"}
        return json.loads(line)

    def end(self):
        self.process.kill()
        self.process.wait()


def compile_ahead(tile, names):
    """Compiles what the cases need, in as many processes as keep the machine busy."""
    jobs = queue.SimpleQueue()
    for part, name in itertools.product(range(AHEAD_PARTS), names):
        jobs.put(f"{name} {part}")

    def take(_):
        worker = Worker(tile, None)
        ready = worker.line(300)
        with contextlib.suppress(queue.Empty):
            while ready and not worker.ask(jobs.get_nowait()).get("fatal"):
                pass
        worker.end()

    list(in_parallel(take, range(CPUS), CPUS))


def run_cases(tile, only, without, code):
    """Every case wanted, in as few processes as possible, printed as they come."""
    rows, worker, names = [], None, None
    while names is None or names:
        worker = Worker(tile, code)
        greeting = worker.line(300)
        if greeting is None:
            worker.end()
            return rows + [{"case": "start", "ok": False, "problem": "no process with a GPU starts"}]
        device, triton_ptxas, known = greeting.strip().split("|")
        if names is None:
            names = [name for name in known.split()
                     if is_wanted(name, only) and not any(text in name for text in without)]
            began = time.monotonic()
            compile_ahead(tile, names)
            print(f"ptxas: {ptxas_version(installed_ptxas())} for Tile, {triton_ptxas} for Triton")
            print(f"{device}, compiled in {time.monotonic() - began:.0f} s")
            print(HEADER)
        while names:
            row = worker.ask(names.pop(0))
            rows.append(row)
            print(case_line(row), flush=True)
            if row.pop("fatal", False):
                break
        worker.end()
    return rows


HEADER = (f"{'case':34} {'ok':4} {'error':>8} {'tile':>9} {'triton':>9} {'ratio':>6} {'interval':>13} {'':6}"
          f" {'alike':>6} {'sm_80':>6} {'registers':>9} {'local':>9} {'shared':>13}"
          f"   (GB/s, or TFLOP/s with T; tile/triton)")


def case_line(row):
    if "ratio" not in row:
        return f"{row['case']:34} FAIL {row['problem']}"
    if row["tile_tflops"]:
        rates = f"{row['tile_tflops']:8.1f}T {row['triton_tflops']:8.1f}T"
    else:
        rates = f"{row['tile_gbps']:9.1f} {row['triton_gbps']:9.1f}"
    pair = lambda what: f"{row['tile_' + what]}/{row['triton_' + what]}"
    low, high = row["interval"]
    alike = f"{row['ratio_alike']:6.3f}" if "ratio_alike" in row else f"{'':6}"
    sm80 = f"{row['ratio_to_sm80']:6.3f}" if "ratio_to_sm80" in row else f"{'':6}"
    line = (f"{row['case']:34} {'ok' if row['ok'] else 'FAIL':4} {row['error']:8.1e} {rates}"
            f" {row['ratio']:6.3f} {low:6.3f}-{high:.3f} {verdict(row):6} {alike} {sm80}"
            f" {pair('registers'):>9} {pair('local_bytes'):>9} {pair('shared_bytes'):>13}")
    if row["tile_config"] != row["triton_config"]:
        line += f"   {row['tile_config']} / {row['triton_config']}"
    return line if row["ok"] else f"{line}   {row['problem']}"


def summary(rows):
    """What the rows say together, a line for what moves memory and one for what computes."""
    timed = [row for row in rows if "ratio" in row]
    for kind, computes in (("memory-bound", False), ("products", True)):
        chosen = [row for row in timed if bool(row["tile_tflops"]) == computes]
        if not chosen:
            continue
        ratios = [row["ratio"] for row in chosen]
        within = ", ".join(f"{sum(ratio < limit + 5e-4 for ratio in ratios)} within {limit:.2f}"
                           for limit in (0.95, 1.00, 1.02, 1.05))
        print(f"{kind}: {len(chosen)} cases, {within} of Triton's time,"
              f" geometric mean {statistics.geometric_mean(ratios):.3f}, worst {max(ratios):.3f}")
        found = [verdict(row) for row in chosen]
        alike = [row["ratio_alike"] for row in chosen if "ratio_alike" in row]
        if alike:
            within = sum(ratio < 1 + 5e-4 for ratio in alike)
            print(f"  through one assembler: {within} of {len(alike)} within 1.00, geometric mean"
                  f" {statistics.geometric_mean(alike):.3f}, worst {max(alike):.3f}")
        print("  as far as the rounds can tell: "
              + ", ".join(f"{found.count(word)} {word}" for word in ("faster", "equal", "slower")))
        alike = [row for row in chosen if "triton_registers_at_tile_config" in row]
        more = [row["case"] for row in alike
                if row["tile_registers"] > 1.15 * row["triton_registers_at_tile_config"]]
        spills = [row["case"] for row in alike
                  if row["tile_local_bytes"] and not row["triton_local_bytes_at_tile_config"]]
        beyond = [row["case"] for row in chosen if row["ratio"] >= 1.0205]
        slower = [f"{row['case']} ({row['ratio']:.3f})"
                  for row in sorted(chosen, key=lambda row: -row["ratio"]) if verdict(row) == "slower"]
        for what, names in (("more than 1.02 times the time", beyond), ("slower", slower),
                            ("more than 1.15 times the registers", more),
                            ("spills where Triton has none", spills)):
            print(f"  {what}: {len(names)}{': ' if names else ''}{' '.join(names)}")


def show(step, rows, label, seconds):
    failed = [row for row in rows if not row["ok"]]
    for row in failed:
        print(f"  {label(row)}: {row['problem']}")
    print(f"{step}: {len(rows) - len(failed)} passed, {len(failed)} failed, {seconds:.0f} s", flush=True)
    return len(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tile", help="the program to compare")
    parser.add_argument("--json", help="where the figures go")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="only files and cases with this, or another such text, in their name")
    parser.add_argument("--without", action="append", default=[], metavar="TEXT",
                        help="no cases with this in their name")
    steps = ("python", "scenarios", "sanitizer", "triton")
    parser.add_argument("--skip", action="append", default=[], choices=steps)
    parser.add_argument("--code", type=Path, metavar="FOLDER",
                        help="where machine code goes, of both sides at their fastest configurations")
    parser.add_argument("--ptxas", help="the assembler that Tile takes")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    tile = str(Path(options.tile).resolve())
    # The processes that this one starts take the same.
    os.environ["TILE_PTXAS"] = options.ptxas or installed_ptxas()
    if options.code:
        options.code.mkdir(parents=True, exist_ok=True)
    if options.work:
        return work(tile, options.code)
    figures, failed = {}, 0
    for step, run, label in (
        ("python", lambda: run_python(options.only), lambda row: row["file"]),
        ("scenarios", lambda: run_scenarios(tile, options.only), lambda row: row["scenario"]),
        ("sanitizer", lambda: run_sanitizer(tile, options.only),
         lambda row: f"{row['file']} {row.get('tool', '')}"),
        ("triton", lambda: run_cases(tile, options.only, options.without, options.code),
         lambda row: row["case"]),
    ):
        if step in options.skip:
            continue
        began = time.monotonic()
        figures[step] = run()
        if step == "triton":
            summary(figures[step])
        failed += show(step, figures[step], label, time.monotonic() - began)
        if options.json:
            Path(options.json).write_text(json.dumps(figures, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
