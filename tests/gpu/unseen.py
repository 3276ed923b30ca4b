"""Kernels that nobody here wrote, under Tile and under Triton on one GPU, on the same memory.

For every kernel below the given folders, `tile run --arg auto` chooses arguments and a grid, and runs it
on the CPU: only kernels that do no harm there go on. Triton compiles it and runs it on the GPU, and
shadow.py repeats that launch with Tile's code and compares what both leave in memory. What the files
import may be missing, since nothing but jit functions runs.

    python3 tests/gpu/unseen.py PATH_TO_TILE FOLDER... [--only TEXT] [--jobs N] [--seconds N]
        [--rounds N] [--json FILE]

Prints a line per kernel with its verdict, and the counts at the end. Exits with 1 when a result differs, or
when Tile does not compile what Triton compiles.
"""

import argparse
import ast
import collections
import functools
import json
import multiprocessing
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "triton"))

import torch

import corpus
import modules
from modules import Refused
from shadow import Shadow

DTYPES = {
    "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64, "i1": torch.bool,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
    "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "fp8e5": torch.float8_e5m2,
    "fp8e4nv": torch.float8_e4m3fn,
}

#: Differences that follow from the kernels, by name, with the reason.
KNOWN = {
    "_pack_topk_routes_sort_kernel": "places follow from the order of atomics",
    "route_assign_kernel": "places follow from the order of atomics",
    "_jacobi_cyclic_kernel": "rows overlap with the sizes chosen, and no barrier is between them",
    "_extract_mxfp_components_kernel": "shifts by more bits than there are, with the sizes chosen",
}


def tensor(call):
    """The tensor that a scenario's expression describes, with numbers of our own."""
    options = {kw.arg: kw.value for kw in call.keywords}
    numbers = [ast.literal_eval(arg) for arg in call.args]
    dtype = DTYPES.get(options["dtype"].id if "dtype" in options else "fp32")
    if dtype is None:
        raise Refused(f"PyTorch has no {options['dtype'].id}")
    match call.func.id:
        case "randint":
            low, high, *shape = numbers
            return torch.randint(low, high, shape, device="cuda").to(dtype)
        case "arange":
            return torch.arange(*numbers, device="cuda").to(dtype)
        case "rand" | "randn" | "empty" | "zeros":
            if dtype.is_floating_point:
                return torch.rand(numbers, device="cuda").to(dtype)
            return torch.zeros(numbers, device="cuda", dtype=dtype)
    raise Refused(f"arguments are made by {call.func.id}")


def argument(name, expression):
    """What an expression says, as Triton takes it."""
    if isinstance(expression, ast.Call):
        return tensor(expression)
    if isinstance(expression, ast.Name) and expression.id in DTYPES:
        return modules.language_type(expression.id)
    try:
        return ast.literal_eval(expression)
    except ValueError:
        raise Refused(f"{name} is {ast.unparse(expression)}") from None


def cause(error):
    """The last line of what first went wrong."""
    while error.__cause__:
        error = error.__cause__
    said = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {said[-1][:160]}"


def compare(options, root, file, name):
    """The verdict on one kernel: its kind, what there is to say, and the ratio of the times if it was taken."""
    try:
        grid, expressions = modules.chosen(options.tile, file, name)
        torch.manual_seed(0)
        arguments = {param: argument(param, expression) for param, expression in expressions.items()}
        kernel = modules.jit_function(root, file, name, {}, lambda module: None)
    except Refused as why:
        return "skipped", str(why), None
    except Exception as error:
        return "skipped", cause(error), None
    shadow = Shadow(options.tile, options.rounds)
    shadow.install()
    try:
        kernel[grid](**arguments)
        torch.cuda.synchronize()
    except Exception as error:
        return "skipped", f"Triton: {cause(error)}", None
    row = shadow.rows[0]
    if "skipped" in row:
        return "skipped", row["skipped"], None
    if "problem" in row:
        return "fails", row["problem"], None
    if not row["ok"]:
        apart = "{distance:.2e} apart, {tolerance:.1e} allowed, {dtype}".format(**row)
        return ("known", f"{KNOWN[name]} ({apart})", None) if name in KNOWN else ("differs", apart, None)
    return ("same" if row["changed"] else "unchanged"), f"grid {grid}", row.get("ratio")


def answer(options, job):
    """The verdict of a process of its own, which may break its GPU context."""
    root, file, name = job
    verdict = modules.in_a_child(functools.partial(compare, options, root, file, name), options.seconds)
    return [f"{root.name}/{file.relative_to(root)}::{name}", *verdict]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tile", help="the built `tile`")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="kernels whose file or name contains this")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=60, help="time for one kernel")
    parser.add_argument("--rounds", type=int, default=0, help="of times of each kernel")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    roots = [folder.resolve() for folder in options.folders]
    jobs = [(root, file, name) for root in roots for file, name in corpus.kernels([root])
            if options.only in f"{file}::{name}"]
    counts, made = collections.Counter(), []
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for place, kind, what, *ratio in pool.imap_unordered(functools.partial(answer, options), jobs):
            counts[kind] += 1
            made.append([place, kind, what, *ratio])
            print(f"{kind:9} {place}: {what}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(made))
    print(f"{len(jobs)} kernels of {len(roots)} folders: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    sys.exit(counts["differs"] + counts["fails"] > 0)


if __name__ == "__main__":
    main()
