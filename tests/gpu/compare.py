"""Tile beside Triton on one GPU: the same kernels, the same inputs, in one process.

Each case is compiled twice, by the installed Triton and by `tile emit --stage cubin`, run on the
same tensors, compared, and timed by the same loop in turn. Prints one row per case and a summary;
exits with 1 when a result differs or a cubin does not load.

    python3 tests/gpu/compare.py PATH_TO_TILE [--json FILE] [--only NAME]
"""

import argparse
import ctypes
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import triton

ROOT = Path(__file__).resolve().parents[2]
CUDA = ctypes.CDLL("libcuda.so.1")


def check(result, what):
    if result != 0:
        text = ctypes.c_char_p()
        CUDA.cuGetErrorString(result, ctypes.byref(text))
        raise RuntimeError(f"{what}: {text.value.decode() if text.value else result}")


class TileKernel:
    """A cubin with its manifest, launched through the CUDA driver alone."""

    def __init__(self, tile, source, kernel, flags):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "kernel.cubin"
            command = [tile, "emit", f"{source}::{kernel}", "--stage", "cubin", "-o", str(out)]
            done = subprocess.run(command + flags, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip() or done.stdout.strip())
            self.image = out.read_bytes()
            self.manifest = json.loads(Path(f"{out}.json").read_text())
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        check(CUDA.cuModuleLoadData(ctypes.byref(module), self.image), "cuModuleLoadData")
        entry = self.manifest["entry"].encode()
        check(CUDA.cuModuleGetFunction(ctypes.byref(function), module, entry), "cuModuleGetFunction")
        self.function = function
        shared = self.manifest["shared_bytes"]
        if shared > 48 * 1024:
            check(CUDA.cuFuncSetAttribute(function, 8, shared), "cuFuncSetAttribute")

    def attribute(self, number):
        value = ctypes.c_int()
        check(CUDA.cuFuncGetAttribute(ctypes.byref(value), number, self.function), "cuFuncGetAttribute")
        return value.value

    @property
    def registers(self):
        return self.attribute(4)

    @property
    def local_bytes(self):
        return self.attribute(3)

    def bind(self, grid, arguments):
        """A callable that launches on torch's stream; `arguments` by parameter name."""
        cells = [pack(param["type"], arguments[param["name"]]) for param in self.manifest["params"]]
        pointers = (ctypes.c_void_p * len(cells))(*[ctypes.addressof(cell) for cell in cells])
        grid = tuple(grid) + (1,) * (3 - len(grid))
        block = self.manifest["block"]

        def launch():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            result = CUDA.cuLaunchKernel(
                self.function, *grid, *block, self.manifest["shared_bytes"], stream, pointers, None
            )
            check(result, "cuLaunchKernel")

        launch.keep = (cells, pointers)
        return launch


def pack(kind, value):
    if kind.startswith("*"):
        return ctypes.c_uint64(value.data_ptr())
    types = {
        "i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
        "i64": ctypes.c_int64, "u1": ctypes.c_uint8, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16,
        "u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "fp32": ctypes.c_float,
        "fp64": ctypes.c_double,
    }
    return types[kind](value)


class Case:
    """One kernel, one specialization, one set of inputs."""

    def __init__(self, name, file, kernel, grid, arguments, constexprs, outputs, moved_bytes,
                 num_warps=4, num_stages=3, tolerance=0.0, flops=0):
        self.name, self.file, self.kernel, self.grid = name, ROOT / "examples" / file, kernel, grid
        self.arguments, self.constexprs, self.outputs = arguments, constexprs, outputs
        self.moved_bytes, self.tolerance, self.flops = moved_bytes, tolerance, flops
        self.num_warps, self.num_stages = num_warps, num_stages

    def flags(self):
        flags = ["--arch", arch(), "--num-warps", str(self.num_warps)]
        flags += ["--num-stages", str(self.num_stages)]
        for name, value in self.arguments.items():
            flags += ["--type", f"{name}={signature(value)}"]
        for name, value in self.constexprs.items():
            flags += ["--set", f"{name}={value}"]
        return flags

    def triton_launcher(self):
        kernel = getattr(load_module(self.file), self.kernel)

        def launch():
            return kernel[self.grid](
                **self.arguments, **self.constexprs,
                num_warps=self.num_warps, num_stages=self.num_stages,
            )

        return launch


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arch():
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


DTYPES = {
    torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.bool: "i1",
    torch.int32: "i32", torch.int64: "i64", torch.int8: "i8", torch.uint8: "u8",
}


def signature(value):
    """Triton's own specialization rules, spelled for `--type`."""
    if isinstance(value, torch.Tensor):
        return f"*{DTYPES[value.dtype]}" + (":16" if value.data_ptr() % 16 == 0 else "")
    if isinstance(value, float):
        return "fp32"
    if value == 1:
        return "i32:1"
    kind = "i32" if -2**31 <= value < 2**31 else "i64"
    return kind + (":16" if value % 16 == 0 else "")


def cases():
    torch.manual_seed(0)
    cuda = {"device": "cuda"}

    def add(n, block):
        x, y, out = torch.randn(n, **cuda), torch.randn(n, **cuda), torch.empty(n, **cuda)
        arguments = {"x_ptr": x, "y_ptr": y, "out_ptr": out, "n_elements": n}
        return Case(f"add.f32.B{block}.n{n}", "vector_add.py", "add_kernel",
                    (triton.cdiv(n, block),), arguments, {"BLOCK_SIZE": block}, ["out_ptr"], 12 * n)

    def giou(n, dtype):
        low = torch.rand(n, 2, **cuda) * 3
        preds = torch.cat([low, low + 0.1 + torch.rand(n, 2, **cuda)], 1).to(dtype)
        low = torch.rand(n, 2, **cuda) * 3
        targets = torch.cat([low, low + 0.1 + torch.rand(n, 2, **cuda)], 1)
        targets = (targets * (torch.rand(n, 1, **cuda) < 0.8)).to(dtype)
        output = torch.empty(n, dtype=dtype, **cuda)
        valid = torch.empty(n, dtype=torch.bool, **cuda)
        arguments = {"preds_ptr": preds, "targets_ptr": targets, "output_ptr": output,
                     "valid_ptr": valid, "n_boxes": n}
        moved = n * (9 * preds.element_size() + 1)
        # Fused multiply-adds differ; of bf16, 1.6e-2 is two units in the last place at 1.
        tolerance = 1e-4 if dtype == torch.float32 else 1.6e-2
        return Case(f"giou.{DTYPES[dtype]}.n{n}", "giou.py", "giou_kernel",
                    (triton.cdiv(n, 1024),), arguments, {"BLOCK_SIZE": 1024},
                    ["output_ptr", "valid_ptr"], moved, tolerance=tolerance)

    def softmax(rows, cols, dtype, warps):
        x = torch.randn(rows, cols, **cuda).to(dtype)
        out = torch.empty_like(x)
        arguments = {"out_ptr": out, "in_ptr": x, "in_row_stride": cols, "out_row_stride": cols,
                     "n_cols": cols}
        return Case(f"softmax.{DTYPES[dtype]}.{rows}x{cols}.w{warps}", "softmax.py",
                    "softmax_kernel", (rows,), arguments,
                    {"BLOCK_SIZE": triton.next_power_of_2(cols)}, ["out_ptr"],
                    2 * x.numel() * x.element_size(), num_warps=warps, tolerance=1e-5)

    def matmul(n, dtype, blocks, warps, stages, tolerance):
        a, b = (torch.randn(n, n, **cuda).to(dtype) for _ in range(2))
        c = torch.empty_like(a)
        arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": n, "N": n, "K": n,
                     "stride_am": n, "stride_bk": n, "stride_cm": n}
        block_m, block_n, block_k = blocks
        constexprs = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8}
        grid = (triton.cdiv(n, block_m) * triton.cdiv(n, block_n),)
        shape = "x".join(map(str, blocks))
        return Case(f"matmul.{DTYPES[dtype]}.{n}.{shape}.w{warps}.s{stages}", "matmul.py",
                    "matmul_kernel", grid, arguments, constexprs, ["c_ptr"],
                    3 * a.numel() * a.element_size(), num_warps=warps, num_stages=stages,
                    tolerance=tolerance, flops=2 * n**3)

    return [
        # Small ones first: odd sizes wrap and mask, one stage has no pipeline.
        lambda: matmul(1000, torch.float16, (64, 64, 32), 4, 3, 4e-3),
        lambda: matmul(1000, torch.float32, (64, 64, 32), 4, 1, 5e-2),
        lambda: matmul(1024, torch.bfloat16, (128, 128, 64), 8, 4, 2e-2),
        lambda: matmul(4096, torch.float16, (128, 256, 64), 8, 3, 4e-3),
        lambda: matmul(4096, torch.float16, (128, 128, 64), 4, 3, 4e-3),
        lambda: matmul(4096, torch.bfloat16, (128, 256, 64), 8, 3, 2e-2),
        lambda: matmul(4096, torch.float32, (128, 128, 32), 8, 3, 5e-2),
        lambda: add(98_432, 1024),
        lambda: add(2**26, 1024),
        lambda: add(2**26 - 3, 1024),
        lambda: add(2**26, 4096),
        lambda: giou(2**22, torch.float32),
        lambda: giou(2**22, torch.bfloat16),
        lambda: giou(1_000_003, torch.float32),
        *[lambda w=w: softmax(8192, 4096, torch.float32, w) for w in (4, 8, 16)],
        *[lambda w=w: softmax(8192, 7881, torch.float32, w) for w in (4, 8, 16)],
        *[lambda w=w: softmax(8192, 4096, torch.float16, w) for w in (4, 8)],
        lambda: softmax(1823, 781, torch.float32, 4),
    ]


def time_in_turn(launchers, seconds=0.4):
    """Median milliseconds of each launcher: events around each launch, cold L2, taken in turn."""
    cache = torch.empty(256 * 2**20, dtype=torch.int8, device="cuda")
    for launch in launchers:
        for _ in range(5):
            launch()
    torch.cuda.synchronize()
    samples = [[] for _ in launchers]
    rounds = 30
    while sum(map(sum, samples)) < seconds * 1e3 and len(samples[0]) < 500:
        events = []
        for _ in range(rounds):
            for number, launch in enumerate(launchers):
                cache.zero_()
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                launch()
                end.record()
                events.append((number, start, end))
        torch.cuda.synchronize()
        for number, start, end in events:
            samples[number].append(start.elapsed_time(end))
    return [statistics.median(sample) for sample in samples]


def outputs_of(case, launch):
    for name in case.outputs:
        tensor = case.arguments[name]
        tensor.view(torch.uint8).fill_(0xFF if tensor.dtype != torch.bool else 1)
    launch()
    torch.cuda.synchronize()
    return [case.arguments[name].clone() for name in case.outputs]


def difference(ours, theirs):
    """Largest |ours - theirs| / max(1, |theirs|); infinite where only one of them is a number."""
    worst = 0.0
    for a, b in zip(ours, theirs):
        a, b = a.double(), b.double()
        if not torch.equal(a.isfinite(), b.isfinite()):
            return float("inf")
        error = (a - b).abs() / b.abs().clamp(min=1)
        worst = max(worst, error.nan_to_num(0.0).max().item())
    return worst


def run_case(case, tile):
    triton_launch = case.triton_launcher()
    compiled = triton_launch()
    kernel = TileKernel(tile, case.file, case.kernel, case.flags())
    tile_launch = kernel.bind(case.grid, case.arguments)
    error = difference(outputs_of(case, tile_launch), outputs_of(case, triton_launch))
    ours, theirs = time_in_turn([tile_launch, triton_launch])
    return {
        "case": case.name, "error": error, "ok": error <= case.tolerance,
        "tile_ms": ours, "triton_ms": theirs, "ratio": ours / theirs,
        "tile_gbps": case.moved_bytes / ours / 1e6, "triton_gbps": case.moved_bytes / theirs / 1e6,
        "tile_registers": kernel.registers, "triton_registers": compiled.n_regs,
        "tile_tflops": case.flops / ours / 1e9, "triton_tflops": case.flops / theirs / 1e9,
        "tile_local_bytes": kernel.local_bytes, "triton_spills": compiled.n_spills,
        "tile_shared": kernel.manifest["shared_bytes"], "triton_shared": compiled.metadata.shared,
    }


def rates(row):
    """Both rates: in TFLOP/s (marked) for what computes, in GB/s for what moves bytes."""
    if row["tile_tflops"]:
        return f"{row['tile_tflops']:8.1f}T {row['triton_tflops']:8.1f}T"
    return f"{row['tile_gbps']:9.1f} {row['triton_gbps']:9.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tile")
    parser.add_argument("--json")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, torch {torch.__version__}")
    print(f"{'case':34} {'ok':4} {'error':>8} {'tile':>9} {'triton':>9} {'ratio':>6}"
          f" {'regs':>9} {'local':>7} {'shared':>12}   (GB/s or T: TFLOP/s, tile/triton)")
    rows, failed = [], 0
    for make in cases():
        case = make()
        if options.only not in case.name:
            continue
        try:
            row = run_case(case, options.tile)
        except Exception as problem:  # One case that fails must not hide the others.
            failed += 1
            print(f"{case.name:34} FAIL {problem}")
            rows.append({"case": case.name, "ok": False, "problem": str(problem)})
            continue
        failed += not row["ok"]
        rows.append(row)
        print(f"{row['case']:34} {'ok' if row['ok'] else 'FAIL':4} {row['error']:8.1e}"
              f" {rates(row)} {row['ratio']:6.3f}"
              f" {row['tile_registers']:4}/{row['triton_registers']:<4}"
              f" {row['tile_local_bytes']:3}/{row['triton_spills']:<3}"
              f" {row['tile_shared']:5}/{row['triton_shared']:<5}", flush=True)
        torch.cuda.empty_cache()
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    print(f"{len(rows) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
