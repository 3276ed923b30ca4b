"""What `tile check` says of whole programs, beside what Triton does when they run; without a GPU.

    python tests/triton/programs.py PATH_TO_TILE FOLDER [--jobs N] [--seconds N] [--json FILE]

Runs every program below FOLDER with tensors of the CPU in place of those of a GPU. A launch goes as far as
Triton's front end, for the types and values that it passes, and computes nothing: what Triton refuses at a launch,
or before it, ends the program. Prints how many programs Triton refuses and in how many of them `tile check` finds an
error, each that it passes over, and each that ran to its end in which `tile check` finds an error: there the kernel
or the launch may be one that does not run. What is said of memory does not count, as nothing is computed.
Run it with a Python that has Triton 3.6 and PyTorch.
"""

import argparse
import collections
import json
import os
import runpy
import signal
import subprocess
import sys
import traceback
import types
from pathlib import Path

import torch
import triton
import triton.runtime.jit
import triton.testing
from torch.overrides import TorchFunctionMode
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

TARGET = GPUTarget("cuda", 90, 32)
#: Where Triton's own code lies.
TRITON = f"{Path(triton.__file__).parent}{os.sep}"
#: What depends on what kernels compute.
OF_MEMORY = ("bounds/", "race/", "mask/undefined")


def on_cpu(device):
    """The device in place of `device`."""
    kind = device.type if isinstance(device, torch.device) else device
    is_gpu = isinstance(kind, str) and kind.startswith("cuda") or type(kind) is int
    return torch.device("cpu") if is_gpu else device


class OnCpu(TorchFunctionMode):
    """Makes tensors on the CPU whatever device is asked for."""

    def __torch_function__(self, function, kinds, args=(), named=None):
        named = dict(named or {})
        if "device" in named:
            named["device"] = on_cpu(named["device"])
        if getattr(function, "__name__", "") == "to":
            args = tuple(on_cpu(arg) if isinstance(arg, (str, torch.device)) else arg for arg in args)
        named.pop("pin_memory", None)
        return function(*args, **named)


class Anything:
    """A stream, an event, a context or a compiled kernel: whatever is asked of it does nothing."""

    n_regs, n_spills, shared, cuda_stream = 32, 0, 0, 0
    metadata = types.SimpleNamespace(shared=0, num_warps=4, num_ctas=1, num_stages=3, name="", target=TARGET)
    asm = collections.defaultdict(str)

    def __init__(self, *args, **named):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return False

    def result(self):
        return self

    def __getattr__(self, name):
        if name == "elapsed_time":
            return lambda *args: 1.0
        return lambda *args, **named: None


class Driver:
    """A driver of one GPU that is not there."""

    def get_current_target(self):
        return TARGET

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_device_interface(self):
        return torch.cuda

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_benchmarker(self):
        return lambda run, *args, **named: (run(), [1.0, 1.0, 1.0])[1]

    def get_empty_cache_for_benchmark(self):
        return torch.empty(1)

    def clear_cache(self, cache):
        pass


def front_end(self, key, signature, device, constants, options, attributes, warmup):
    """In place of `JITFunction._do_compile`: compiles to verified IR."""
    context = ir.context()
    ir.load_dialects(context)
    backend = make_backend(TARGET)
    backend.load_dialects(context)
    source = self.ASTSource(self, signature, constants, attributes)
    codegen = backend.get_codegen_implementation(options)
    if not source.make_ir(TARGET, options, codegen, backend.get_module_map(), context).verify():
        raise RuntimeError("the module does not verify")
    kernel = self.device_caches[device][0][key] = Anything()
    return kernel


def pretend():
    """Puts all of that in place of a GPU."""
    properties = types.SimpleNamespace(name="NVIDIA H100", major=9, minor=0, multi_processor_count=132,
                                       total_memory=80 << 30, warp_size=32)
    gpu = {"is_available": True, "current_device": 0, "device_count": 1, "get_device_capability": (9, 0),
           "get_device_name": "NVIDIA H100", "get_device_properties": properties, "synchronize": None,
           "set_device": None, "empty_cache": None, "manual_seed": None, "is_bf16_supported": True,
           "current_stream": Anything(), "default_stream": Anything(), "memory_allocated": 0,
           "max_memory_allocated": 0, "reset_peak_memory_stats": None, "_lazy_init": None}
    for name, value in gpu.items():
        setattr(torch.cuda, name, lambda *args, value=value, **named: value)
    for name in ("Event", "Stream", "stream", "device"):
        setattr(torch.cuda, name, Anything)
    torch.Tensor.cuda = lambda self, *args, **named: self
    torch.Tensor.is_cuda = property(lambda self: True)
    triton.runtime.driver.set_active(Driver())
    triton.testing.do_bench = lambda run, *args, **named: (run(), 1.0)[1]
    triton.runtime.jit.JITFunction._do_compile = front_end


def ran(program, seconds):
    """How `program` ended: `ok`, `triton` with what Triton said, or `host` with what else was raised."""
    signal.alarm(seconds)
    torch.set_num_threads(1)
    sys.argv = [str(program)]
    sys.path.insert(0, str(program.parent))
    try:
        with OnCpu():
            runpy.run_path(str(program), run_name="__main__")
    except SystemExit as raised:
        return ["host", f"exit {raised.code}"] if raised.code else ["ok", ""]
    except BaseException as raised:
        frames = traceback.extract_tb(raised.__traceback__)
        is_tritons = not isinstance(raised, ImportError) and any(TRITON in frame.filename for frame in frames)
        said = f"{type(raised).__name__}: {raised}".strip().splitlines()
        return ["triton" if is_tritons else "host", said[-1][:200]]
    return ["ok", ""]


def run_all(programs, jobs, seconds):
    """How each program ended, each in a process of its own."""
    left, running, ended = list(reversed(programs)), {}, {}
    while left or running:
        while left and len(running) < jobs:
            program = left.pop()
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                silent = os.open(os.devnull, os.O_RDWR)
                for stream in range(3):
                    os.dup2(silent, stream)
                os.write(writing, json.dumps(ran(program, seconds)).encode())
                os._exit(0)
            os.close(writing)
            running[child] = program, reading
        child, _ = os.wait()
        program, reading = running.pop(child)
        with open(reading, encoding="utf-8") as answer:
            ended[program] = json.loads(answer.read() or '["died", ""]')
    return ended


def errors(tile, folder):
    """The codes of the errors that count, by program."""
    command = [str(tile), "check", "--no-cache", "--format", "json", "."]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout
    found = collections.defaultdict(set)
    for row in map(json.loads, said.splitlines()):
        if row.get("severity") == "error" and not row["code"].startswith(OF_MEMORY):
            found[folder / row["file"]].add(row["code"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tile", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=30, help="for each program")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    found = errors(arguments.tile.resolve(), folder)
    pretend()
    ended = run_all(sorted(folder.rglob("*.py")), arguments.jobs, arguments.seconds)
    counts = collections.Counter((end, bool(found[program])) for program, (end, _) in ended.items())
    for program, (end, said) in sorted(ended.items()):
        if end == "triton" and not found[program]:
            print(f"passed over: {program.relative_to(folder)}: {said}")
        elif end == "ok" and found[program]:
            print(f"ran to its end: {program.relative_to(folder)}: {' '.join(sorted(found[program]))}")
    refused = counts["triton", True] + counts["triton", False]
    print(f"{len(ended)} programs: Triton refuses {refused}, `tile check` finds an error in"
          f" {counts['triton', True]} of them; {counts['ok', True] + counts['ok', False]} ran to their ends, it finds one in {counts['ok', True]}")
    if arguments.json:
        rows = {str(program.relative_to(folder)): end + sorted(found[program]) for program, end in ended.items()}
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
