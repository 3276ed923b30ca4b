"""Enumerates the places where an installed Triton refuses a kernel.

A site is a `raise`, an `assert` or a `static_assert` of Triton's Python sources. Its name is
`module.function#k`, the k-th one of that function. Nothing of Triton's text is kept.
"""

import ast
import hashlib
import pathlib
from dataclasses import dataclass

#: The version whose sites the table lists.
VERSION = "3.6"
FILES = (
    "language/core.py",
    "language/semantic.py",
    "language/standard.py",
    "language/math.py",
    "language/random.py",
    "language/target_info.py",
    "language/extra/libdevice.py",
    "compiler/code_generator.py",
    "compiler/compiler.py",
    "runtime/jit.py",
    "_utils.py",
)


@dataclass
class Site:
    """One refusal."""

    name: str
    kind: str
    file: str
    line: int
    end: int
    text: str


def package():
    """Where Triton is installed."""
    import triton

    return pathlib.Path(triton.__file__).resolve().parent


def kind_of(node):
    """What makes `node` a site, if it is one."""
    if isinstance(node, ast.Raise):
        return "raise"
    if isinstance(node, ast.Assert):
        return "assert"
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("static_assert"):
        return "static_assert"
    return None


def sites_of(root, name):
    """The sites of one file, in the order of its text."""
    module = pathlib.PurePath(name).stem
    counts, found = {}, []

    def walk(node, path):
        for child in ast.iter_child_nodes(node):
            inner = path
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner = path + [child.name]
            kind = kind_of(child)
            if kind:
                where = ".".join([module, *path])
                counts[where] = counts.get(where, 0) + 1
                site = f"{where}#{counts[where]}"
                text = ast.unparse(child)
                found.append(Site(site, kind, name, child.lineno, child.end_lineno, text))
            walk(child, inner)

    walk(ast.parse((root / name).read_text()), [])
    return found


def sites():
    """Every site of the installed Triton."""
    root = package()
    return [site for name in FILES if (root / name).exists() for site in sites_of(root, name)]


HEADER = "site\tkind\tdigest\tcode\tchapter\tstatement\tnote"


def update(path, known, shown, texts):
    """Renews the table: every site of the installed Triton, with the first fixture that shows it.

    `shown` are `(chapter, statement, code, site)` of the fixtures compared now, `texts` all
    chapters. Notes are written by hand, for sites that no kernel reaches, and stay; so do rows
    whose statement its chapter still has.
    """
    old = {}
    if path.exists():
        for line in path.read_text().splitlines()[1:]:
            row = line.split("\t")
            old[row[0]] = row
    fixtures = {}
    for chapter, statement, code, site in shown:
        fixtures.setdefault(site, (code, chapter, statement))
    rows = []
    for site in known:
        digest = hashlib.sha256(site.text.encode()).hexdigest()[:8]
        *_, code, chapter, statement, note = old.get(site.name, [""] * 7)
        stands = chapter and any(
            line.strip().partition("  # ")[0] == statement and line.endswith(f"error: {code}")
            for line in texts.get(chapter, "").splitlines()
        )
        if not stands:
            code, chapter, statement = fixtures.get(site.name, ("", "", ""))
        rows.append((site.name, site.kind, digest, code, chapter, statement, note))
    path.write_text("\n".join([HEADER, *("\t".join(row) for row in rows)]) + "\n")
