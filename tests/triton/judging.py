"""What a change does to a program, by running the program with it and without."""

import ast
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np

from breakages import statement_lines, with_change
from watched import pretend, watched_run


def in_child(folder, undefined, seconds, is_traced=False):
    """What `watched_run` finds in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(silent, stream)
            with open(writing, "wb") as answer:
                answer.write(pickle.dumps(watched_run(folder, undefined, seconds, is_traced)))
        finally:
            os._exit(0)
    os.close(writing)
    answer = read_all(reading, seconds + 10)
    if not answer:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if answer:
        return pickle.loads(answer)
    if os.WIFEXITED(status):
        raise RuntimeError(f"{folder}: what the program did cannot be told")
    # What ends the process otherwise is Triton's compiler.
    end = "time" if os.WTERMSIG(status) == signal.SIGKILL else "compile"
    return types.SimpleNamespace(end=end, said=f"the process ends by signal {os.WTERMSIG(status)}", left={}, launches=[],
                                 bounds=[], races=[], overlaps=[], lines=set())


def read_all(reading, seconds):
    """What a pipe holds till its end, or nothing when it does not end in time."""
    until, parts = time.monotonic() + seconds, []
    with open(reading, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0, until - time.monotonic()))[0]:
            part = pipe.read(1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
    return b""


def verdict(original, changed):
    """What a change does, and a word on where."""
    if changed.end == "compile":
        return "compile", changed.said
    if changed.bounds:
        return "bounds", where(changed.bounds[0])
    known = {(race["kernel"], race["what"], race["tensor"]) for race in original.races}
    races = [race for race in changed.races if (race["kernel"], race["what"], race["tensor"]) not in known]
    if races:
        return "race", where(races[0])
    missing = unwritten(original, changed)
    if missing:
        return "unwritten", missing
    if changed.end != "ok":
        return ("values" if changed.end == "values" else "raises"), changed.said
    other = differs(original, changed)
    if other:
        return "values", other
    overlaps = set(changed.overlaps) - set(original.overlaps)
    return "equal", f"programs of {', '.join(overlaps)} store the same" if overlaps else ""


def where(fault):
    return f"{fault['what']} of {fault['tensor']} in {fault['kernel']} at {fault['line']}"


def unwritten(original, changed):
    """The tensor that a launch leaves elements of as they were, though it wrote them without the change."""
    for (kernel, wrote), (other, writes) in zip(original.launches, changed.launches):
        if kernel != other:
            break
        for name, (size, bits, _) in wrote.items():
            now_size, now_bits, _ = writes.get(name, (size, np.zeros_like(bits), None))
            if size == now_size and np.any(bits & ~now_bits):
                return f"{name} in {kernel}"
    return None


def differs(original, changed):
    """What differs in the tensors that the program leaves in global variables, or else in those that launches write."""
    for before, after in ((original.left, changed.left), (written(original), written(changed))):
        for name in before.keys() | after.keys():
            if name not in before or name not in after or not close(before[name], after[name]):
                return name
    return None


def written(run):
    """What tensors hold after the launches that write them; of numbers only the values count."""
    found = {f"{name} after launch {index}, of {kernel}": content for index, (kernel, wrote) in enumerate(run.launches)
             for name, (_, _, content) in wrote.items()}
    return {name: content if content.dtype.kind == "c" else content.astype(np.float64) for name, content in found.items()}


def close(before, after):
    """Whether arrays are the same, floating-point numbers to a thousandth of the largest."""
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    if before.dtype.kind not in "fc":
        return bool(np.array_equal(before, after))
    finite = np.abs(before[np.isfinite(before)])
    return bool(np.allclose(before, after, rtol=1e-2, atol=1e-3 * finite.max() if finite.size else 0, equal_nan=True))


def reference(folder, seconds):
    """The run of the program as it is, the lines that run, and what lanes without a value hold: garbage, unless the program
    then differs."""
    garbage = in_child(folder, "garbage", seconds)
    zero = in_child(folder, "zero", 10 * seconds, is_traced=True)
    if garbage.end == zero.end and not garbage.bounds and not differs(zero, garbage):
        return garbage, zero.lines, "garbage"
    return zero, zero.lines, "zero"


def is_reached(folder, change, lines):
    """Whether the statement that a change is in runs without it."""
    tree = ast.parse((folder / change["file"]).read_text(encoding="utf-8"))
    return any((change["file"], line) in lines for line in statement_lines(tree, change["line"]))


def judge(folder, changes, seconds, most):
    """Rows for the program and for each change, until so many are of what runs: the verdict, a word on it, the time."""
    sys.dont_write_bytecode = True
    pretend()
    begun = time.monotonic()
    original, lines, undefined = reference(folder, seconds)
    took = round(time.monotonic() - begun, 2)
    clean = original.end == "ok" and not original.bounds and bool(original.launches)
    detail = original.said or "; ".join(map(where, original.bounds[:3])) or f"{len(original.launches)} launches"
    yield {"id": None, "verdict": "clean" if clean else "not clean", "detail": detail, "undefined": undefined,
           "races": sorted({where(race) for race in original.races}), "seconds": took}
    for change in changes if clean else ():
        if most == 0:
            break
        begun = time.monotonic()
        kind, detail = "unreached", ""
        if is_reached(folder, change, lines):
            most -= 1
            with tempfile.TemporaryDirectory() as parent:
                copy = Path(parent).resolve() / folder.name
                with_change(folder, change, copy)
                kind, detail = verdict(original, in_child(copy, undefined, seconds))
                if kind == "equal" and undefined == "garbage":
                    # What garbage hides, such as a comparison that is false for NaN.
                    kind, detail = verdict(original, in_child(copy, "zero", seconds))
            if kind == "equal" and change["family"] == "name":
                # A name that is not there is not looked up: it is in a part of the statement that does not run.
                kind = "unreached"
        yield {"id": change["id"], "family": change["family"], "operator": change["operator"], "file": change["file"],
               "line": change["line"], "verdict": kind, "detail": detail, "seconds": round(time.monotonic() - begun, 2)}
