"""Reads the literate fixtures of tests/language and turns them into kernels for Triton.

The rules are those of crates/compiler/tests/language.rs: a Python block is a kernel's body, or a
module when it has a `def`. The words of its fence say for which version of Triton it holds and
what its arguments are compiled for; comments state what is found on their line. A matrix states
one line per cell (matrix.py).
"""

import ast
import pathlib
import re
from dataclasses import dataclass, field

import matrix as mx

CHAPTERS = pathlib.Path(__file__).resolve().parent.parent / "language"
VERSIONS = ("3.6", "3.9")
#: What the arguments of a body are compiled for, unless the fence says otherwise.
ARGUMENTS = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "64", "WIDE": "32"}
PRELUDE = (
    "import triton\n"
    "import triton.language as tl\n"
    "from triton.language.extra import libdevice\n"
)
HEADER = (
    "@triton.jit\n"
    "def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):\n"
)
KINDS = ("error: ", "launch error: ", "warning: ", "reveals: ", "prints: ")


@dataclass
class Fixture:
    """One Python block of a chapter, or a matrix for one version of Triton."""

    chapter: str
    #: Line of the fence, from 1.
    line: int
    info: str
    text: str
    versions: list = field(default_factory=list)
    arguments: dict = field(default_factory=dict)
    #: The block shows a rule that is not Triton's, or not visible to its front end.
    ours: bool = False
    #: The text of the block, when `text` is made from it.
    table: str = ""

    def __post_init__(self):
        self.versions = [word for word in self.info.split() if word in VERSIONS] or list(VERSIONS)
        self.ours = not {"ours", "open"}.isdisjoint(self.info.split())
        self.arguments = dict(ARGUMENTS)
        for word in self.info.split():
            name, equals, value = word.partition("=")
            if equals:
                self.arguments[name] = value

    @property
    def is_module(self):
        return "def " in self.text

    @property
    def is_matrix(self):
        return bool(self.table)

    def alone(self, line):
        """The module of a matrix with one line of the kernel's body; it keeps its place."""
        rows = self.module()[0].splitlines()
        first = next(at for at, row in enumerate(rows) if row.startswith("def kernel("))
        kept = (row if at <= first or at + 1 == line else "" for at, row in enumerate(rows))
        return "\n".join(kept) + "\n"

    def accepted(self, refused):
        """The module of a matrix without the lines `refused`, which reveals its results."""
        rows = self.module()[0].splitlines()
        for line in refused:
            rows[line - 1] = ""
        for at, row in enumerate(rows):
            if row.startswith("    z = ") and "  # reveals: " in row:
                rows[at] = row.replace("  # ", f"; reveal({at + 1}, z)  # ", 1)
        return "\n".join(rows) + "\n"

    def key(self):
        """A hash of the fence and the text (64-bit FNV-1a), as the Rust test computes it."""
        value = 0xCBF29CE484222325
        for byte in f"{self.info}\n{self.table or self.text}".encode():
            value = (value ^ byte) * 0x100000001B3 % (1 << 64)
        return f"{value:016x}"

    def expectations(self):
        """`(line, kind, what)` with lines of the block from 1."""
        found = []
        for at, line in enumerate(self.text.splitlines(), 1):
            _, _, comment = line.partition("# ")
            for kind in KINDS:
                if comment.startswith(kind):
                    found.append((at, kind.rstrip(": "), comment[len(kind):].strip()))
        return found

    def module(self):
        """The block as a module, and the number of lines before its first one."""
        if self.is_module:
            return PRELUDE + self.text, PRELUDE.count("\n")
        body = "".join(f"    {line}\n" for line in self.text.splitlines())
        return PRELUDE + HEADER + body + "    tl.store(y_ptr, 0.0)\n", PRELUDE.count("\n") + 2


def fixtures(version):
    """Every Python block and every matrix of every chapter, as they hold for `version`."""
    for path in sorted(CHAPTERS.glob("*.md")):
        open_at, kind, info, lines = None, "", "", []
        for at, line in enumerate(path.read_text().splitlines(), 1):
            if open_at is None and line.startswith(("```python", "```matrix")):
                open_at, kind, info, lines = at, line[3:9], line[9:].strip(), []
            elif open_at is not None and line.startswith("```"):
                text = "".join(f"{line}\n" for line in lines)
                if kind == "matrix":
                    made = mx.block(info, text, version)
                    yield Fixture(path.name, open_at, info, made, table=text)
                else:
                    yield Fixture(path.name, open_at, info, text)
                open_at = None
            elif open_at is not None:
                lines.append(line)


def statements(tree):
    """Every statement with the list that holds it."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            held = getattr(node, name, None)
            if isinstance(held, list):
                for statement in held:
                    if isinstance(statement, ast.stmt):
                        yield statement


def statement_at(tree, line):
    """The outermost statement that begins on `line`, else the innermost that spans it."""
    starting = [s for s in statements(tree) if s.lineno == line]
    if starting:
        return max(starting, key=lambda s: s.end_lineno)
    spanning = [s for s in statements(tree) if s.lineno <= line <= s.end_lineno]
    return min(spanning, key=lambda s: s.end_lineno - s.lineno) if spanning else None


def without(source, lines):
    """`source` with the statements at `lines` replaced by `pass`; other lines keep their place."""
    tree = ast.parse(source)
    rows = source.splitlines()
    for line in lines:
        statement = statement_at(tree, line)
        if statement is None:
            continue
        first = statement.lineno - 1
        if getattr(statement, "decorator_list", None):
            first = statement.decorator_list[0].lineno - 1
        indent = re.match(r"\s*", rows[first])[0]
        rows[first] = indent + "pass"
        for row in range(first + 1, statement.end_lineno):
            rows[row] = ""
    return "\n".join(rows) + "\n"


def with_reveals(source, lines):
    """`source` that calls `reveal(line, variable)` after each assignment at `lines`."""
    tree = ast.parse(source)
    rows = source.splitlines()
    for line in lines:
        statement = statement_at(tree, line)
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]
        elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
            target = statement.target
        else:
            continue
        if isinstance(target, ast.Name):
            row = statement.end_lineno - 1
            code, end = rows[row], statement.end_col_offset
            end = len(code.encode()[:end].decode())
            rows[row] = f"{code[:end]}; reveal({line}, {target.id}){code[end:]}"
    return "\n".join(rows) + "\n"


def expected_type(text, arguments):
    """A type as a regular expression, with the extents computed from the arguments."""
    values = {name: int(value) for name, value in arguments.items() if value.lstrip("-").isdigit()}
    parts = []
    for part in re.split(r"( x |[<>,])", text):
        bare = part.strip()
        if bare == "?":
            parts.append(r".+")
        elif re.search(r"[A-Z]{2}", bare) or re.search(r"[*/]", bare):
            parts.append(re.escape(part.replace(bare, str(eval(bare, {}, values)))))
        else:
            parts.append(re.escape(part))
    return "".join(parts)
