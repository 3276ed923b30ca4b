"""Kernels that others published, run as their packages launch them, each repeated by Tile.

    python3 tests/gpu/published.py PATH_TO_TILE [--packages FOLDER] [--programs FOLDER] [--only TEXT] [--jobs N] [--rounds N]
        [--seconds N] [--large] [--json FILE]

FOLDER holds `liger_kernel`, `fla` and, if it is to be run, `flag_gems` with what it imports, unpacked from the
wheels `liger-kernel`, `fla-core` and `flag_gems` (whose generated kernels are kept there too). Every
operation runs forward and backward on random inputs in a process of its own, and shadow.py repeats each
of its launches with Tile's code. Inputs of fla's operations have the shapes that their docstrings give,
those of liger's are listed in LIGER and those of flag_gems in gems.py; `--large` makes them long enough to
keep a GPU busy, but for liger's. Below `--programs` each `main.py` is run as a program, with what lies beside
it, and elsewhere each file that launches kernels, as those of TritonBench, which end with tests of their own. With
`--rounds`, both are timed in turns. Ends with how many launches gave the same; exits with 1 when one did
not or was not compiled.
"""

import argparse
import ast
import importlib
import inspect
import json
import math
import os
import re
import runpy
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import gems

#: What the letters of fla's docstrings stand for.
EXTENTS = {"B": 2, "N": 2, "T": 256, "TQ": 256, "H": 2, "HQ": 32, "HV": 2, "G": 2, "HI": 2, "DI": 64, "K": 64,
           "V": 64, "D": 64, "M": 64, "S": 4, "L": 9, "1": 1}
#: What differs for a GPU that is to be busy.
LARGE = {"B": 4, "T": 2048, "H": 8, "HV": 8, "G": 8, "TQ": 2048, "L": 12, "N": 4}
#: Shapes of operations whose docstrings give none.
SHAPES = {"q": "B, T, H, K", "k": "B, T, H, K", "v": "B, T, H, V", "beta": "B, T, H", "g": "B, T, H",
          "x": "B, T, D", "gv": "B, T, H, V", "p": "B, T, H, K", "eta": "B, T, H", "log_alpha": "B, T, H",
          "log_mu": "B, T, H", "delta": "B, T, H", "readout": "B, T, H", "r": "B, T, H, K"}
#: Shapes that checks in the code ask for and docstrings do not give.
CORRECTIONS = {"chunk_mesa_net": {"lamb": "H, K"}}
#: Arguments that make an operation do more.
CHOICES = {"output_final_state": True, "use_qk_l2norm_in_kernel": True, "layer_idx": 1, "num_layers": 4,
           "block_size": 32, "num_householder": 1, "chunk_size": 64}


def fla_operations(folder):
    """Names of the operations that `fla.ops` exports."""
    text = (folder / "fla/ops/__init__.py").read_text()
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    return [f"fla.{node.module}.{alias.name}" for node in imports for alias in node.names]


def documented_shapes(function):
    """Shapes by parameter, as a docstring of fla's gives them."""
    doc = inspect.getdoc(function) or ""
    entry = re.compile(r"^\s*(\w+) \([^)]*Tensor[^)]*\):?(.*?)(?=^\s*\w+ \(|^\w|\Z)", re.M | re.S)
    found = {}
    for name, text in entry.findall(doc):
        shape = re.search(r"`[\[(]([A-Z1][A-Z1, ]*)[\])]`", text)
        if shape and name not in found:
            found[name] = shape[1]
    return found


def run_fla(name, dtype):
    """Calls one operation of fla on random inputs, and its backward pass."""
    import torch
    import torch.nn.functional as F

    _, package, operation = name.split(".")
    function = getattr(importlib.import_module(f"fla.ops.{package}"), operation)
    shapes = {**SHAPES, **documented_shapes(function), **CORRECTIONS.get(operation, {})}
    torch.manual_seed(0)
    arguments = {}
    for parameter in inspect.signature(function).parameters.values():
        required = parameter.default is inspect.Parameter.empty
        if parameter.name in CHOICES and parameter.name not in shapes:
            arguments[parameter.name] = CHOICES[parameter.name]
        elif parameter.name in shapes and (required or parameter.name in ("g", "gk", "beta", "initial_state")):
            extents = [EXTENTS[letter.strip()] for letter in shapes[parameter.name].split(",")]
            value = torch.randn(*extents, device="cuda")
            if parameter.name.startswith(("g", "log_", "w")):
                value = F.logsigmoid(value)
            elif parameter.name.startswith(("beta", "eta", "delta", "b")):
                value = value.sigmoid()
            elif parameter.name in ("k", "p", "kk", "a"):
                value = F.normalize(value, dim=-1)
            kept = torch.float32 if parameter.name in ("initial_state", "A_log") else dtype
            arguments[parameter.name] = value.to(kept).requires_grad_()
    outputs = function(**arguments)
    backward(outputs)


def backward(outputs):
    """The backward pass of whatever has one."""
    import torch

    flat = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    flat = [value for value in flat if isinstance(value, torch.Tensor) and value.requires_grad]
    if flat:
        torch.autograd.backward(flat, [torch.randn_like(value) for value in flat])


def tensor(*shape, dtype=None, scale=1.0):
    import torch

    return (torch.randn(shape, device="cuda") * scale).to(dtype or torch.float32).requires_grad_()


def labels(rows, classes):
    import torch

    made = torch.randint(0, classes, (rows,), device="cuda")
    made[::7] = -100
    return made


def tables(tokens, width, dtype):
    """Cosines and sines of rotary embeddings."""
    angles = tensor(1, tokens, width).detach()
    return angles.cos().to(dtype), angles.sin().to(dtype)


#: Operations of liger, as functions of a dtype.
LIGER = {
    "RMSNorm": lambda t: (tensor(64, 1000, dtype=t), tensor(1000, dtype=t), 1e-6),
    "LayerNorm": lambda t: (tensor(64, 1000, dtype=t), tensor(1000, dtype=t), tensor(1000, dtype=t), 1e-6),
    "FusedAddRMSNorm": lambda t: (tensor(64, 1000, dtype=t), tensor(64, 1000, dtype=t), tensor(1000, dtype=t), 1e-6),
    "ModulatedRMSNorm": lambda t: (tensor(2, 32, 512, dtype=t), tensor(512, dtype=t), tensor(2, 512, dtype=t),
                                   tensor(2, 512, dtype=t), 1e-6),
    "PolyNorm": lambda t: (tensor(64, 512, dtype=t), tensor(3, dtype=t), tensor(dtype=t)),
    "GroupNorm": lambda t: (tensor(4, 32, 16, 16, dtype=t), tensor(32, dtype=t), tensor(32, dtype=t), 32, 8, 1e-6),
    "DyT": lambda t: (tensor(64, 512, dtype=t), tensor(1, dtype=t), tensor(512, dtype=t), tensor(512, dtype=t)),
    "SiLUMul": lambda t: (tensor(64, 1000, dtype=t), tensor(64, 1000, dtype=t)),
    "FusedGateUpSiLUMul": lambda t: (tensor(64, 1024, dtype=t),),
    "GELUMul": lambda t: (tensor(64, 1000, dtype=t), tensor(64, 1000, dtype=t)),
    "ReLUSquared": lambda t: (tensor(64, 1000, dtype=t),),
    "Softmax": lambda t: (tensor(64, 1000, dtype=t),),
    "Sparsemax": lambda t: (tensor(64, 1000, dtype=t), -1),
    "CrossEntropy": lambda t: (tensor(64, 5000, dtype=t), labels(64, 5000), None),
    "FusedLinearCrossEntropy": lambda t: (tensor(64, 256, dtype=t), tensor(1000, 256, dtype=t, scale=0.1), labels(64, 1000)),
    "JSD": lambda t: (tensor(64, 1000, dtype=t).log_softmax(-1), tensor(64, 1000, dtype=t).log_softmax(-1)),
    "KLDivLoss": lambda t: (tensor(64, 1000, dtype=t).log_softmax(-1), tensor(64, 1000, dtype=t).softmax(-1)),
    "TVDLoss": lambda t: (tensor(64, 1000, dtype=t).softmax(-1), tensor(64, 1000, dtype=t).softmax(-1)),
    "FusedLinearJSD": lambda t: (tensor(64, 128, dtype=t), tensor(512, 128, dtype=t, scale=0.1), tensor(64, 256, dtype=t),
                                 tensor(512, 256, dtype=t, scale=0.1)),
    "Rope": lambda t: (tensor(2, 8, 128, 64, dtype=t), tensor(2, 2, 128, 64, dtype=t), *tables(128, 64, t)),
    "Embedding": lambda t: (tensor(500, 96, dtype=t), labels(64, 500).clamp(min=0)),
    "FusedNeighborhoodAttention": lambda t: tuple(tensor(2, 4, 128, 32, dtype=t) for _ in range(3)),
    "MultiTokenAttention": lambda t: (tensor(2, 4, 64, 64, dtype=t), tensor(4, 4, 3, 3, dtype=t), None, 1, 1),
    "AttnRes": lambda t: (tensor(4, 64, 256, dtype=t), tensor(256, dtype=t), tensor(256, dtype=t), 1e-6),
    "FusedMoE": lambda t: experts(t),
}


def experts(dtype):
    """Tokens, the weights of eight experts, and two experts for each token."""
    import torch

    weights, chosen = torch.rand(64, 8, device="cuda").topk(2)
    return (tensor(64, 128, dtype=dtype), tensor(8, 512, 128, dtype=dtype, scale=0.1),
            tensor(8, 128, 256, dtype=dtype, scale=0.1), chosen, weights.to(dtype))


def run_liger(name, dtype):
    import liger_kernel.ops
    import torch

    torch.manual_seed(0)
    function = getattr(liger_kernel.ops, f"Liger{name.removeprefix('liger.')}Function")
    backward(function.apply(*LIGER[name.removeprefix("liger.")](dtype)))


def work(options):
    """Runs one operation in this process and prints its records."""
    if options.packages:
        sys.path.insert(0, str(options.packages))
        os.environ["FLAGGEMS_CACHE_DIR"] = str(options.packages / f"generated.{options.work}")
    import torch

    from shadow import Shadow

    name = options.work
    shadow = Shadow(options.tile, options.rounds)
    shadow.install()
    problem, dtype = None, getattr(torch, options.dtype)
    try:
        match name.split("."):
            case "fla", *_:
                run_fla(name, dtype)
            case "liger", *_:
                run_liger(name, dtype)
            case "gems", group:
                gems.run(group, dtype, options.large)
            case _:
                sys.path.insert(0, str(Path(name).parent))
                sys.argv = [name]
                runpy.run_path(name, run_name="__main__")
        torch.cuda.synchronize()
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error).strip()[:3000]}"
    print("ROWS " + json.dumps({"problem": problem, "rows": shadow.rows}), flush=True)


def ask(options, job):
    """One operation in a process of its own."""
    name, dtype = job
    command = [sys.executable, __file__, options.tile, "--work", name, "--dtype", dtype, "--rounds", str(options.rounds),
               *["--large"] * options.large]
    command += ["--packages", str(options.packages)] * bool(options.packages)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds)
        lines = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")]
        made = json.loads(lines[0][5:]) if lines else {"problem": (done.stderr.strip().splitlines() or ["died"])[-1], "rows": []}
    except subprocess.TimeoutExpired:
        made = {"problem": f"no end after {options.seconds} s", "rows": []}
    return {"operation": name, "dtype": dtype, **made}


def operations(packages):
    names = [f"liger.{name}" for name in LIGER] + fla_operations(packages)
    if (packages / "flag_gems").exists():
        names += [f"gems.{group}" for group in gems.CALLS]
    return names


def programs(folder):
    """Files that are programs: each `main.py`, and those that launch kernels where none is beside or above them."""
    files = sorted(folder.rglob("*.py")) if folder else []
    whole = {file.parent for file in files if file.name == "main.py"}
    alone = [file for file in files if whole.isdisjoint(file.parents) and "triton.jit" in file.read_text(errors="ignore")]
    return sorted(folder / "main.py" for folder in whole) + alone


def report(made):
    rows = made["rows"]
    same = sum(row.get("ok", False) for row in rows)
    print(f"{made['operation']}.{made['dtype']}: {same} of {len(rows)} launches the same"
          + (f"; the operation: {made['problem']}" if made["problem"] else ""), flush=True)
    for row in rows:
        what = row.get("problem") or row.get("skipped")
        if not what and not row.get("ok"):
            what = "{distance:.2e} apart, {tolerance:.1e} allowed, {dtype}".format(**row)
        if what:
            print(f"    {row['kernel']}: {what}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tile")
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=280, help="time for one operation or program")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--work")
    parser.add_argument("--dtype")
    parser.add_argument("--dtypes", default="bfloat16,float32")
    options = parser.parse_args()
    if options.work:
        if options.large:
            EXTENTS.update(LARGE)
        work(options)
        return
    names = operations(options.packages) if options.packages else []
    jobs = [(name, dtype) for dtype in options.dtypes.split(",") for name in names]
    # Programs make their own inputs.
    jobs += [(str(path), "float32") for path in programs(options.programs)]
    jobs = [(name, dtype) for name, dtype in jobs if options.only in name]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = []
        for asked in as_completed([pool.submit(ask, options, job) for job in jobs]):
            made = asked.result()
            report(made)
            results.append(made)
            # What was found stays when the rest takes too long.
            if options.json:
                options.json.write_text(json.dumps(results))
    rows = [row for made in results for row in made["rows"]]
    same = [row for row in rows if row.get("ok")]
    failed = [row for row in rows if not row.get("ok") and not row.get("skipped")]
    slower = sorted((row["ratio"], row["kernel"]) for row in same if row.get("ratio"))
    for ratio, kernel in slower[-15:]:
        print(f"    {ratio:.2f} of Triton's time: {kernel}")
    if slower:
        middle = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in slower))
        print(f"geometric mean of {len(slower)} ratios {middle:.3f}; "
              f"{sum(ratio <= 1.02 for ratio, _ in slower)} at most 1.02")
    print(f"{len(rows)} launches of {len(results)} operations: {len(same)} the same "
          f"({len({row['kernel'] for row in same})} kernels; {sum(not row['changed'] for row in same)} launches "
          f"change nothing), {len(failed)} not, {sum('skipped' in row for row in rows)} not comparable; "
          f"{sum(bool(made['problem']) for made in results)} operations stopped of themselves")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
