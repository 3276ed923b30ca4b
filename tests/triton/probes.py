"""Asks an installed Triton about small kernels, one family of rules per file.

    python tests/triton/probes.py [FAMILY...] [--show] [--in FOLDER]

Run it with a Python that has Triton 3.6, then with one that has 3.9. No GPU and no torch are
needed: only Triton's front end runs, for compute capability 9.0. The kernels are the paragraphs
of crates/compiler/tests/probes/kernels/*.txt: the body of `kernel` below, or a module with such a
function. What Triton prints at compile time, or `!` where it refuses, becomes the last lines of
the paragraph: `#> TEXT`, or `#3.6> TEXT` and `#3.9> TEXT` where the versions differ. A Rust test
reads them. `--show` prints what Triton said of those that it refuses; `--in` names another folder
of families, which the Rust test reads when TILE_PROBES names it.
"""

import argparse
import contextlib
import importlib.util
import inspect
import io
import pathlib
import re
import signal
import sys
import tempfile
import warnings

import triton

from front_end import in_children, lower

VERSION = ".".join(triton.__version__.split(".")[:2])
VERSIONS = ("3.6", "3.9")
FAMILIES = pathlib.Path(__file__).resolve().parents[2] / "crates/compiler/tests/probes/kernels"
PRELUDE = (FAMILIES / "prelude.py").read_text()
#: What parameters are compiled for, by name; others take their defaults, or are an `i32`.
ARGUMENTS = {"p": "*fp32", "q": "*i32", "h": "*fp16", "n": "i32", "m": "i64", "f": "fp32",
             "b": "i1", "desc": "tensordesc<fp32[16, 32]>", "B": 64, "C": 16, "N": None, "S": "text"}
#: Seconds after which Triton is taken to never answer.
LIMIT = 10
HEADER = "@triton.jit\ndef kernel(p, q, h, n, m, f, b, B: tl.constexpr, C: tl.constexpr):\n"


def paragraphs(text):
    """`(lines of the kernel, answers by version)` of a family."""
    for paragraph in text.strip("\n").split("\n\n"):
        lines, answers = [], {}
        for line in paragraph.splitlines():
            head, found, said = line.partition(">")
            if found and head in ("#", *(f"#{version}" for version in VERSIONS)):
                for version in [head[1:]] if head[1:] else VERSIONS:
                    answers[version] = said.strip()
            else:
                lines.append(line)
        yield lines, answers


def recorded(answers):
    """The last lines of a paragraph, from answers by version."""
    both = {answers.get(version) for version in VERSIONS}
    if len(both) == 1:
        return [f"#> {answers[VERSION]}".rstrip()]
    return [f"#{version}> {answers[version]}".rstrip() for version in VERSIONS if version in answers]


def module_of(lines, prelude=PRELUDE):
    if any("def kernel(" in line for line in lines):
        return prelude + "\n".join(lines) + "\n"
    return prelude + HEADER + "".join(f"    {line}\n" for line in lines)


def compile_kernel(path, source):
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    kernel = module.kernel
    signature, constants = {}, {}
    for parameter in kernel.params:
        name = parameter.name
        given = ARGUMENTS.get(name, "i32")
        if parameter.is_constexpr:
            signature[name] = "constexpr"
            default = parameter.default
            constants[name] = given if default is inspect.Parameter.empty else default
        else:
            signature[name] = parameter.annotation_type or given
    lower(kernel, signature, constants)


def answer(path, source):
    """What Triton prints, or None, and what it says where it refuses."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile_kernel(path, source)
    except BaseException as error:
        causes = [error]
        while causes[-1] is not None:
            causes.append(causes[-1].__cause__ or causes[-1].__context__)
        return None, f"{type(causes[-2]).__name__}: {causes[-2]}".strip()
    # Objects print where they are in memory, and modules of probes are numbered.
    text = re.sub(r"<?probe\d+\.(\w+)( object at 0x\w+>)?", r"\1", printed.getvalue())
    return " ".join(text.split()), ""


def answers(sources):
    """Answers in order."""
    with tempfile.TemporaryDirectory() as folder:
        def answer_to(index):
            signal.alarm(LIMIT)
            return answer(pathlib.Path(folder) / f"probe{index}.py", sources[index])

        return in_children(len(sources), answer_to, (None, "aborted, or never ended"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*")
    parser.add_argument("--show", action="store_true", help="print why Triton refuses")
    parser.add_argument("--in", dest="folder", type=pathlib.Path, default=FAMILIES)
    options = parser.parse_args()
    count = 0
    for path in sorted(options.folder.glob("*.txt")):
        if options.family and path.stem not in options.family:
            continue
        probes = list(paragraphs(path.read_text()))
        said = answers([module_of(lines) for lines, _ in probes])
        texts = []
        for (lines, known), (printed, cause) in zip(probes, said):
            known[VERSION] = "!" if printed is None else printed
            if options.show and printed is None:
                body = [line for line in lines if "def kernel(" not in line]
                print(f"{path.stem}: {' | '.join(body)[:150]}\n    {cause.splitlines()[-1][:200]}")
            texts.append("\n".join([*lines, *recorded(known)]))
        path.write_text("\n\n".join(texts) + "\n")
        count += len(probes)
    print(f"Triton {triton.__version__}: {count} kernels")


if __name__ == "__main__":
    main()
