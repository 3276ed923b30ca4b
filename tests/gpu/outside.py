"""What `tile check` says of accesses outside of buffers, beside what compute-sanitizer's memcheck finds.

Every file of the given folders that launches kernels when it runs is checked, and run under memcheck: with each tensor
in an allocation of its own, and with padding between them, so that memory beyond a tensor is nobody's.

    python3 tests/gpu/outside.py PATH_TO_TILE FOLDER... [--jobs N] [--seconds N] [--padding BYTES] [--json FILE]

Prints a line per file in which either finds something: `both`, `check` alone (with what became of the run: memcheck
sees nothing of a launch that does not come, and random numbers may be kind), or `memcheck` alone. Exits with 1 when
memcheck alone finds something.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CODES = ["bounds/out-of-bounds", "bounds/overflow"]
#: How memcheck begins a report, and where it names the line.
INVALID = re.compile(r"=+ Invalid __\w+__ (?:read|write|atomic)")
PLACE = re.compile(r"=+\s+at .* in \S*?([^/\s]+\.py):(\d+)")
#: How many reports of a file are printed: the rest say the same.
REPORTS = 20


def checked(tile, folders):
    """By file, the lines in which `tile check` finds accesses outside of buffers."""
    command = [tile, "check", "--no-cache", "--format", "json", *folders]
    output = subprocess.run(command, capture_output=True, text=True).stdout
    lines = collections.defaultdict(set)
    for line in output.splitlines():
        found = json.loads(line)
        if found.get("code") in CODES:
            lines[Path(found["file"]).resolve()].add(found["range"]["start"]["line"])
    return lines


def watched(file, options):
    """The lines in which memcheck finds accesses outside, and how the run ended."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PYTORCH_NO_CUDA_MEMORY_CACHING="1", TRITON_CACHE_DIR=folder, OMP_NUM_THREADS="1")
        command = ["compute-sanitizer", "--padding", str(options.padding), "--print-limit", str(REPORTS)]
        command += [sys.executable, str(file)]
        try:
            run = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=options.seconds, cwd=folder
            )
        except subprocess.TimeoutExpired:
            return set(), False, f"no end in {options.seconds} s"
    lines = {int(number) for _, number in PLACE.findall(run.stdout)}
    said = [line for line in run.stderr.splitlines() if line.strip()]
    ended = "runs to its end" if run.returncode == 0 else f"fails: {said[-1][:100] if said else run.returncode}"
    return lines, bool(INVALID.search(run.stdout)), ended


def programs(folders):
    """Files below the folders that have kernels."""
    files = (file for folder in folders for file in sorted(Path(folder).rglob("*.py")))
    return [file.resolve() for file in files if "triton.jit" in file.read_text(errors="ignore")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tile")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--padding", type=int, default=65536)
    parser.add_argument("--json")
    options = parser.parse_args()
    files, known = programs(options.folders), checked(options.tile, options.folders)
    counts, table = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for file, (lines, invalid, ended) in zip(files, pool.map(lambda file: watched(file, options), files)):
            own = known.get(file, set())
            verdict = {(True, True): "both", (True, False): "check", (False, True): "memcheck"}.get((bool(own), invalid))
            counts[verdict or "neither"] += 1
            table.append({"file": file.name, "check": sorted(own), "memcheck": sorted(lines), "run": ended})
            if verdict:
                print(f"{verdict:9} {file.name:40} check {sorted(own)} memcheck {sorted(lines)}; {ended}", flush=True)
    print(f"{len(files)} files: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    if options.json:
        Path(options.json).write_text(json.dumps(table, indent=1))
    return 1 if counts["memcheck"] else 0


if __name__ == "__main__":
    sys.exit(main())
