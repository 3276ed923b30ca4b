"""The share of published kernels that compile to machine code.

Finds every jit function under the given files and folders that is a kernel (it is launched, or no
other jit function calls it), compiles each under its first specialization, as found or guessed,
with `tile emit --stage cubin`, and prints the share that the assembler accepts and each failure's
reason. Needs no GPU and no Python packages; what was compiled before is taken from the journal,
so an interrupted run goes on where it stopped.

    python3 tests/gpu/corpus.py PATH_TO_TILE [--journal FILE] [--jobs N] [--arch ARCH]
        [--only TEXT] [--retry] [--at-least SHARE] PATH...

Exits with 1 when the share is below `--at-least`.
"""

import argparse
import ast
import collections
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LIMIT_SECONDS = 200


def is_jit(decorator):
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(target) in ("jit", "triton.jit")


class Names(ast.NodeVisitor):
    """Jit functions of a file, what jit functions call, and what is launched by `name[grid]`."""

    def __init__(self):
        self.jit, self.called, self.launched = [], set(), set()
        self.inside = False

    def visit_FunctionDef(self, node):
        is_jit_function = any(is_jit(decorator) for decorator in node.decorator_list)
        if is_jit_function:
            self.jit.append(node.name)
        before, self.inside = self.inside, self.inside or is_jit_function
        self.generic_visit(node)
        self.inside = before

    def visit_Call(self, node):
        if self.inside and isinstance(node.func, ast.Name):
            self.called.add(node.func.id)
        if isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):
            self.launched.add(node.func.value.id)
        self.generic_visit(node)


def kernels(paths):
    """Pairs of file and kernel name."""
    files, seen = [], {}
    for path in paths:
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    for file in files:
        try:
            tree = ast.parse(file.read_text(encoding="utf-8-sig"))
        except SyntaxError as error:
            print(f"{file} is left out: this Python does not parse it: {error}", file=sys.stderr)
            continue
        names = seen[file] = Names()
        names.visit(tree)
    called = set().union(*(names.called for names in seen.values()))
    launched = set().union(*(names.launched for names in seen.values()))
    for file, names in seen.items():
        for name in dict.fromkeys(names.jit):
            if name in launched or name not in called:
                yield file, name


def compile_one(tile, arch, file, kernel):
    """Under the first specialization; where that needs more shared memory than there is, without
    pipelining, as autotuners pass over what does not fit."""
    start = time.monotonic()
    flags = ["--arch", arch, "--triton", "3.6"]
    ok, log = emit(tile, file, kernel, flags)
    unpipelined = not ok and "out of resource: shared memory" in log
    if unpipelined:
        ok, log = emit(tile, file, kernel, [*flags, "--num-stages", "1"])
    seconds = round(time.monotonic() - start, 2)
    return {
        "file": str(file),
        "kernel": kernel,
        "ok": ok,
        "unpipelined": unpipelined,
        "seconds": seconds,
        "log": log[:4000],
    }


def emit(tile, file, kernel, flags):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernel.cubin"
        command = [tile, "emit", f"{file}::{kernel}", "--stage", "cubin", "-o", str(out), *flags]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            return False, f"no answer within {LIMIT_SECONDS} s"
        ok = done.returncode == 0 and out.is_file()
        return ok, "" if ok else (done.stderr or done.stdout)


def reason(log):
    """The first line that says what went wrong, without names and numbers that differ."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("error")), lines[0] if lines else "nothing said")
    return re.sub(r"%?\d+", "N", told)[:160]


def is_rejected(log):
    """Whether the front end rejects the kernel under this specialization, mostly a guess."""
    return re.search(r"^error\[", log, re.MULTILINE) is not None


def report(results):
    failures = collections.defaultdict(list)
    for result in results:
        if not result["ok"]:
            failures[reason(result["log"])].append(result)
    for why, group in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(group):4} {why}")
        for result in group:
            print(f"       {result['file']}::{result['kernel']} ({result['seconds']} s)")
    good = sum(result["ok"] for result in results)
    share = good / max(len(results), 1)
    unpipelined = sum(result["ok"] and result.get("unpipelined", False) for result in results)
    if unpipelined:
        print(f"{unpipelined} of them fit into shared memory only without pipelining")
    slow = sorted(results, key=lambda result: -result["seconds"])[:5]
    slowest = ", ".join(f"{result['kernel']} {result['seconds']} s" for result in slow)
    print(f"slowest: {slowest}")
    lowered = sum(result["ok"] or not is_rejected(result["log"]) for result in results)
    print(f"{good} of {len(results)} kernels compile to machine code ({share:.1%}),"
          f" {good / max(lowered, 1):.1%} of the {lowered} that the language accepts as specialized")
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tile")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--journal", type=Path, default=Path("target/corpus.jsonl"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--only", default="", help="kernels whose file or name contains this")
    parser.add_argument("--retry", action="store_true", help="compile what failed again")
    parser.add_argument("--at-least", type=float, default=0.0)
    arguments = parser.parse_args()
    done = {}
    if arguments.journal.is_file():
        for line in arguments.journal.read_text().splitlines():
            result = json.loads(line)
            done[result["file"], result["kernel"]] = result
    wanted = [
        (file, kernel)
        for file, kernel in kernels(arguments.paths)
        if arguments.only in f"{file}::{kernel}"
    ]

    def known(file, kernel):
        result = done.get((str(file), kernel))
        return result is not None and (result["ok"] or not arguments.retry)

    todo = [pair for pair in wanted if not known(*pair)]
    arguments.journal.parent.mkdir(parents=True, exist_ok=True)
    with arguments.journal.open("a") as journal, ThreadPoolExecutor(arguments.jobs) as pool:
        work = lambda pair: compile_one(arguments.tile, arguments.arch, *pair)
        for result in pool.map(work, todo):
            done[result["file"], result["kernel"]] = result
            print(json.dumps(result), file=journal, flush=True)
            print("." if result["ok"] else "F", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    share = report([done[str(file), kernel] for file, kernel in wanted])
    return 1 if share < arguments.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
