"""Compares the fixtures of tests/language with an installed Triton.

    python tests/triton/verify.py [CHAPTER...] [--show] [--all]

Run it with a Python that has Triton 3.6, then with one that has 3.9. Fixtures that are recorded
already are left out unless `--all` is given or their chapters are named. No GPU and no torch are
needed: only Triton's front end runs, for compute capability 9.0. Every fixture that holds for
that version is compiled once without its lines of errors (it must be accepted, and the types and
prints must be those stated) and once per line of error with the other such lines left out (it
must be rejected on that line, or on the statement around it). What agrees is recorded in
tests/language/verified.tsv, which the Rust test reads: a fixture that is not there was not
verified. Under Triton 3.6 the table of raise sites (tests/triton/raise_sites.tsv) is renewed too:
a line of error shows the site that refused it.
"""

import ast
import importlib.util
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import contextlib
import warnings

import triton
import triton.language as tl

import fixtures as fx
import sites as st
from front_end import lower

VERSION = ".".join(triton.__version__.split(".")[:2])
RECORD = fx.CHAPTERS / "verified.tsv"
TABLE = pathlib.Path(__file__).resolve().parent / "raise_sites.tsv"
REVEALED = {}
SITES = st.sites()


def type_text(value):
    """The type of a value as fixtures spell it."""
    core = tl.core
    if isinstance(value, core.constexpr):
        value = value.value
        if isinstance(value, core.dtype):
            return "constexpr dtype"
        if isinstance(value, (bool, int, float, str, type(None))):
            return "constexpr " + ("None" if value is None else type(value).__name__)
        return type_text(value)
    if isinstance(value, core.dtype):
        return "constexpr dtype"
    if value is None or isinstance(value, (bool, int, float, str)):
        return "constexpr " + ("None" if value is None else type(value).__name__)
    if isinstance(value, core.tensor):
        return tile_text(value.type)
    if isinstance(value, core.tuple):
        fields = value.type.fields
        name = "tuple" if not any(fields or []) else "named"
        return f"{name}<{', '.join(type_text(v) for v in value.values)}>"
    if isinstance(value, core.tensor_descriptor_base):
        return f"descriptor<{extents(value.block_type)}>"
    return type(value).__name__


def extents(ty):
    return " x ".join([*(str(tl.core._unwrap_if_constexpr(d)) for d in ty.shape), str(ty.scalar)])


def tile_text(ty):
    """The type of a tensor as fixtures spell it."""
    if ty.is_ptr() and ty.element_ty.is_block():
        return f"block_ptr<{extents(ty.element_ty)}>"
    return f"tile<{extents(ty)}>" if ty.is_block() else str(ty)


def reveal(line, value, _semantic=None):
    REVEALED[int(tl.core._unwrap_if_constexpr(line))] = type_text(value)


reveal = tl.core.builtin(reveal)
reveal.__module__ = "triton.language.core"


def load(source):
    """The module of `source`, from a file, as Triton needs it."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "fixture.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("fixture", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["fixture"] = module
        module.reveal = reveal
        spec.loader.exec_module(module)
        return module


def compile_kernel(source, arguments):
    """Runs the front end over `kernel` of `source`."""
    import inspect

    kernel = load(source).kernel
    while not hasattr(kernel, "arg_names"):
        kernel = kernel.fn
    signature, constants = {}, {}
    for param in kernel.params:
        name, given = param.name, arguments.get(param.name)
        if param.is_constexpr or (given is not None and not re.match(r"[*a-z(]", given)):
            signature[name] = "constexpr"
            if given is not None:
                constants[name] = ast.literal_eval(given)
            elif param.default is not inspect.Parameter.empty:
                constants[name] = param.default
        else:
            signature[name] = given or param.annotation_type or "i32"
    lower(kernel, signature, constants)


def chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def site_of(error, known):
    """The site that refused, by the innermost frame of the innermost error."""
    errors = list(chain(error))
    for inner in reversed(errors):
        node = getattr(inner, "node", None)
        if type(inner).__name__ == "CompileTimeAssertionFailure" and node is not None:
            text = ast.unparse(node)
            head = inner.src.split("(")[0].split()[-1]
            named = [s for s in known if s.kind == "static_assert" and s.text == text]
            named.sort(key=lambda s: s.name.partition("#")[0].split(".")[-1] != head)
            if named:
                return named[0].name
    frames, trace = [], errors[-1].__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    file, line = frames[-1] if frames else ("", 0)
    for site in known:
        if file.endswith(f"triton/{site.file}") and site.line <= line <= site.end:
            return site.name
    return "-"


def attempt(source, arguments):
    """What Triton makes of `source`."""
    REVEALED.clear()
    printed = io.StringIO()
    result = {"line": 0}
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile_kernel(source, arguments)
        return {"types": REVEALED, "prints": printed.getvalue().splitlines()}
    except BaseException as error:
        result["error"] = f"{type(error).__name__}: {error}"
        root = list(chain(error))[-1]
        result["cause"] = f"{type(root).__name__}: {root}".strip().splitlines()[-1][:160]
        node, src = getattr(error, "node", None), getattr(error, "src", None)
        # Some errors of calls come with the text of what is called.
        known = src is not None and src.splitlines()[0] in source.splitlines()
        if node is not None and known and hasattr(node, "lineno"):
            result["line"] = place_of(source, src, node)
        result["site"] = site_of(error, SITES)
    return result


def outcomes(sources, arguments):
    """What Triton makes of each of `sources`: compiled in a child, since some kernels abort it."""
    found = []
    while len(found) < len(sources):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(read)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            for source in sources[len(found):]:
                os.write(write, (json.dumps(attempt(source, arguments)) + "\n").encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            found += [json.loads(line) for line in pipe]
        _, status = os.wait()
        if len(found) < len(sources):
            cause = f"aborted with status {status}"
            found.append({"error": cause, "cause": "abort", "site": "-", "line": 0})
    return found


def place_of(source, src, node):
    """The line of `node` in `source`, when `src` is the text of the kernel; else 0: unknown."""
    rows = source.splitlines()
    kernel = [at for at, row in enumerate(rows) if row.strip().startswith("def kernel(")]
    first = rows.index(src.splitlines()[0])
    return first + node.lineno if kernel and first == kernel[-1] else 0


def encloses(tree, outer_line, line):
    """True when the statement at `outer_line` spans `line`."""
    return any(s.lineno <= outer_line <= s.end_lineno and s.lineno <= line <= s.end_lineno
               for s in fx.statements(tree) if not isinstance(s, ast.FunctionDef))


def check(fixture, show):
    """Problems of one fixture, and `(statement, code, site)` of its errors."""
    source, offset = fixture.module()
    stated = fixture.expectations()
    refused = [(line, what) for line, kind, what in stated if kind.endswith("error")]
    types = [(line, what) for line, kind, what in stated if kind == "reveals"]
    prints = [what for _, kind, what in stated if kind == "prints"]
    error_lines = sorted({line + offset for line, _ in refused})
    problems, shown = [], []

    def place(line):
        if fixture.is_matrix:
            return f"{fixture.chapter}:{fixture.line}: {fixture.text.splitlines()[line - 1]}"
        return f"{fixture.chapter}:{fixture.line + line}"

    if fixture.is_matrix:
        good = fixture.accepted(error_lines)
        bad = [fixture.alone(line) for line in error_lines]
    else:
        good = fx.without(source, error_lines)
        good = fx.with_reveals(good, [line + offset for line, _ in types])
        bad = [fx.without(source, [other for other in error_lines if other != line])
               for line in error_lines]
    found, *rejected = outcomes([good, *bad], fixture.arguments)
    if error_lines and "def kernel(" not in good:
        pass
    elif "error" in found:
        at = found["line"] - offset
        problems.append(f"{place(max(at, 0))}: Triton rejects: {found['cause']} [{found['site']}]")
    else:
        for line, what in types:
            have = found["types"].get(str(line + offset), "nothing")
            if fixture.is_matrix:
                have = re.sub(r"^tile<.* x (.*)>$", r"\1", have)
            if not re.fullmatch(fx.expected_type(what, fixture.arguments), have):
                problems.append(f"{place(line)}: Triton reveals {have}, not {what}")
        if found["prints"] != prints:
            problems.append(f"{place(0)}: Triton prints {found['prints']}, not {prints}")
    rows = fixture.text.splitlines()
    for line, found in zip(error_lines, rejected):
        code = next(what for at, what in refused if at + offset == line)
        if "error" not in found:
            problems.append(f"{place(line - offset)}: Triton accepts ({code})")
            continue
        if fixture.is_matrix:
            continue
        statement = rows[line - offset - 1].partition("  # ")[0].strip()
        shown.append((fixture.chapter, statement, code, found["site"]))
        if show:
            print(f"{place(line - offset)}: {code}: {found['cause']} [{found['site']}]")
        at = found["line"]
        if at and not (at == line or encloses(ast.parse(source), line, at)):
            problems.append(f"{place(line - offset)}: Triton rejects line {at - offset}: {found['cause']}")
    return problems, shown


def update(path, header, rows, keep):
    """Rewrites the rows of a table that this run computed; others are kept if `keep` says so."""
    old = path.read_text().splitlines()[1:] if path.exists() else []
    lines = {line for line in old if keep(line.split("\t"))} | {"\t".join(row) for row in rows}
    path.write_text("\n".join([header, *sorted(lines)]) + "\n")


def main():
    chosen = [word for word in sys.argv[1:] if not word.startswith("-")]
    show = "--show" in sys.argv
    everything = list(fx.fixtures(VERSION))
    current = {(it.chapter, it.key()) for it in everything if not it.ours}
    recorded = RECORD.read_text().splitlines() if RECORD.exists() else []
    recorded = {tuple(row.split("\t")) for row in recorded}
    verified, shown, failed = [], [], 0
    for fixture in everything:
        if fixture.ours or VERSION not in fixture.versions:
            continue
        if chosen and fixture.chapter.removesuffix(".md") not in chosen:
            continue
        row = (fixture.chapter, fixture.key(), triton.__version__)
        if row in recorded and not chosen and "--all" not in sys.argv:
            verified.append(row)
            continue
        problems, sites = check(fixture, show)
        shown += sites
        for problem in problems:
            print(problem)
        if problems:
            failed += 1
        else:
            verified.append(row)
    others = lambda row: not row[2].startswith(VERSION) or chosen and row[0][:-3] not in chosen
    update(RECORD, "chapter\tfixture\ttriton", verified,
           lambda row: tuple(row[:2]) in current and others(row))
    if VERSION == st.VERSION:
        texts = {f.chapter: "" for f in everything}
        for fixture in everything:
            texts[fixture.chapter] += fixture.text
        st.update(TABLE, SITES, shown, texts)
    print(f"Triton {triton.__version__}: {len(verified)} fixtures agree, {failed} do not")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
