"""Registers, spills and shared memory of kernels, ours and Triton's, from one assembler; without a GPU.

    cargo build -p tile
    python tests/triton/registers.py target/debug/tile ROOT FILE... [--only NAME] [--all]

For each kernel of the FILEs, modules below ROOT, and each of its specializations that `tile info`
finds, Triton compiles the same source for the same specialization: for sm_90a, where it may use
warp-group products and bulk tensor copies, and for sm_80, where it may not. The ptxas that
TILE_PTXAS names, the one that Tile takes too, assembles all of them for sm_90a. Prints
those that take more than 1.15 times Triton's registers or spill where Triton does not, with --all
each of them, and the counts at the end, with the reasons of those that could not be compared. Where
Triton's code spills more than Tile's, its registers are those that were left, and say nothing: such
kernels are counted apart. What takes more shared memory than there is never runs, and is left out.
Run it with a Python that has Triton 3.6; PyTorch and what else the files import may be missing.
Triton's own tutorials are such files:

    python tests/triton/registers.py target/debug/tile CHECKOUT CHECKOUT/python/tutorials/*.py
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import modules
from modules import Refused

ARCH, TARGETS = "sm_90a", (90, 80)
#: Bytes of shared memory that a program may take there.
SHARED = 232448
#: The share of Triton's registers that still counts as as many.
MARGIN = 1.15
#: Parts of a specialization that are no parameters.
OPTIONS = ("num_warps", "num_stages")


def specializations(tile, file):
    """What `tile info` says of each kernel and specialization of `file`."""
    command = [tile, "info", str(file), "--format", "json", "--arch", ARCH, "--triton", "3.6"]
    done = subprocess.run(command, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def source(kernel, specialization):
    """What Triton is to compile: `kernel` with these types and values of its parameters."""
    from triton.compiler import ASTSource

    signature, constants, attributes = {}, {}, {}
    for at, parameter in enumerate(kernel.params):
        value = specialization[parameter.name]
        if parameter.is_constexpr or not isinstance(value, str):
            signature[parameter.name], constants[parameter.name] = "constexpr", value
            continue
        signature[parameter.name], _, divisor = value.partition(":")
        if divisor:
            attributes[(at,)] = [["tt.divisibility", int(divisor)]]
    return ASTSource(kernel, signature, constants, attributes)


def assembled(ptx):
    """Registers of a thread and bytes that it spills, by ptxas."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as text:
        text.write(ptx)
        text.flush()
        command = [os.environ["TILE_PTXAS"], "-v", "--gpu-name", ARCH, text.name, "-o", "/dev/null"]
        said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode != 0:
        raise Refused(f"ptxas: {said.stderr.strip()[:100]}")
    return {"registers": int(re.search(r"Used (\d+) registers", said.stderr)[1]),
            "spills": sum(int(size) for size in re.findall(r"(\d+) bytes spill", said.stderr))}


def compiled(root, file, row, capability):
    """What Triton's code of a kernel takes, for a device of `capability`."""
    import triton
    from triton.backends.compiler import GPUTarget

    kernel = modules.jit_function(root, file, row["kernel"], {}, lambda module: None)
    specialization = row["specialization"]
    options = {name: specialization[name] for name in OPTIONS}
    made = triton.compile(source(kernel, specialization), GPUTarget("cuda", capability, 32), options)
    if made.metadata.shared > SHARED:
        raise Refused("takes more shared memory than there is")
    return assembled(made.asm["ptx"]) | {"shared": made.metadata.shared}


def compare(root, file, row, seconds):
    """What Triton's code takes, by capability, and why where it could not be made."""
    def answer(capability):
        try:
            return compiled(root, file, row, capability)
        except Exception as error:
            return ["skipped", f"{type(error).__name__}: {error}".splitlines()[0][:100]]

    return {it: modules.in_a_child(lambda it=it: answer(it), seconds) for it in TARGETS}


def ours(row):
    return {"registers": row["registers"], "spills": row["spill_load_bytes"] + row["spill_store_bytes"],
            "shared": row["shared_bytes"]}


def verdicts(tile, triton):
    """What counts of a kernel."""
    keeps_fewer = triton["spills"] > tile["spills"]
    return {"fewer spills": keeps_fewer,
            "registers": not keeps_fewer and tile["registers"] > MARGIN * triton["registers"],
            "spills": tile["spills"] > 0 and triton["spills"] == 0}


def is_worse(tile, triton):
    found = verdicts(tile, triton)
    return found["registers"] or found["spills"]


def described(it):
    return f"{it['registers']}r {it['spills']}sp {it['shared']}sh" if isinstance(it, dict) else it[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tile", type=Path)
    parser.add_argument("root", type=Path)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    if "TILE_PTXAS" not in os.environ:
        parser.error("TILE_PTXAS must name the ptxas that assembles both")
    rows = [(file.resolve(), row) for file in arguments.files for row in specializations(arguments.tile, file)
            if arguments.only in row["kernel"]]
    counts = {it: collections.Counter() for it in TARGETS}
    reasons = {it: collections.Counter() for it in TARGETS}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda it: compare(arguments.root.resolve(), *it, arguments.seconds), rows)
        for (file, row), answer in zip(rows, answers):
            mine = ours(row)
            for capability, theirs in answer.items():
                if isinstance(theirs, dict):
                    counts[capability].update(["compared", *(what for what, holds in verdicts(mine, theirs).items() if holds)])
                else:
                    reasons[capability][theirs[1]] += 1
            if arguments.all or any(isinstance(it, dict) and is_worse(mine, it) for it in answer.values()):
                values = {k: v for k, v in row["specialization"].items() if not isinstance(v, str)}
                print(f"{file.name}::{row['kernel']} {values}\n    tile {described(mine)}, " +
                      ", ".join(f"Triton sm_{it} {described(theirs)}" for it, theirs in answer.items()), flush=True)
    for capability, found in counts.items():
        print(f"Triton for sm_{capability}: {found['compared']} compared, {found['registers']} with more than"
              f" {MARGIN} times its registers, {found['spills']} spill where it does not,"
              f" {found['fewer spills']} spill less than it; {reasons[capability].total()} skipped")
        for reason, count in reasons[capability].most_common():
            print(f"    {count} skipped: {reason}")


if __name__ == "__main__":
    main()
