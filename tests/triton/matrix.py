"""Turns a matrix of result types into a kernel with one line per cell.

    ```matrix y=()
    x + y
    x - y

    x \\ y : i8   fp16
    i8    : i8   fp16
    2**31 : r    fp16
    fp8e5 : !/fp32 fp16
    ! = type/operand
    r = type/integer-range
    ```

Above the table stand expressions in `x` and `y`; rows give `x`, columns `y`. Where there are none,
the rows are expressions in `y`. An operand is a type in Triton's spelling (a tile of four zeros;
`x=()` and `y=16x32` in the fence give another shape, `()` a run-time scalar; `y=dtype` is the type
itself), `*` and a type (a
tile of four pointers), or anything else, which is put in place. A cell is the type of the result's
elements, `ok` where there is nothing to look at, or a mark that the legend explains: the code of
the error, after `launch` where it takes a specialization. `a/b` is `a` in Triton 3.6 and `b` in 3.9. A module's text may stand first; it ends
with a line `---`.

crates/compiler/tests/language/matrix.rs has the same rules.
"""

import re

DTYPES = {
    **{f"i{bits}": f"int{bits}" for bits in (1, 8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"fp{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"fp8{kind}": f"float8{kind}" for kind in ("e5", "e4nv", "e4b15", "e4b8", "e5b16")},
    "bf16": "bfloat16",
}
#: The spelling of types in `reveals`, where it differs from cells.
REVEALED = {cell: name for cell, name in DTYPES.items() if cell[0] in "iu"}


def operand(text, shape):
    """The expression of an operand of the table."""
    if text in DTYPES:
        shape = shape or "4"
        if shape == "dtype":
            return f"tl.{DTYPES[text]}"
        extents = "" if shape == "()" else ", ".join(shape.split("x")) + ","
        return f"tl.zeros(({extents}), tl.{DTYPES[text]})"
    if text.startswith("*") and text[1:] in DTYPES:
        pointer = f"tl.pointer_type(tl.{DTYPES[text[1:]]})"
        return f"(x_ptr.to({pointer}, bitcast=True) + tl.arange(0, 4))"
    return f"({text})"


def parse(text):
    """`(module, expressions, columns, rows, marks)` of a matrix; rows are `(label, cells)`."""
    module, _, table = text.rpartition("---\n")
    marks, expressions, rows = {}, [], []
    for line in table.splitlines():
        if mark := re.fullmatch(r"(\S+) = (launch )?(\w+/[\w-]+)", line):
            marks[mark[1]] = f"{mark[2] or ''}error: {mark[3]}"
        elif " : " in line:
            label, _, cells = line.rpartition(" : ")
            rows.append((label.strip(), cells.split()))
        elif line.strip():
            expressions.append(line.strip())
    (_, columns), *rows = rows
    return module, expressions, columns, rows, marks


def lines(info, text, version):
    """A statement with a comment for each cell."""
    words = dict(word.split("=") for word in info.split() if "=" in word)
    _, expressions, columns, rows, marks = parse(text)
    for expression in expressions or [None]:
        for label, cells in rows:
            if len(cells) != len(columns):
                raise ValueError(f"`{label}` has {len(cells)} cells for {len(columns)} columns")
            for column, cell in zip(columns, cells):
                old, slash, new = cell.partition("/")
                cell = new if slash and version == "3.9" else old
                operands = {"y": operand(column, words.get("y"))}
                if expression:
                    operands["x"] = operand(label, words.get("x"))
                line = re.sub(r"\b[xy]\b", lambda at: operands.get(at[0], at[0]),
                              expression or label)
                if cell == "ok":
                    yield line
                elif cell in marks:
                    yield f"z = {line}  # {marks[cell]}"
                else:
                    yield f"z = {line}  # reveals: {REVEALED.get(cell, cell)}"


def block(info, text, version):
    """The matrix as a block of Python: a body, or a module."""
    body = list(lines(info, text, version))
    if not (module := parse(text)[0]):
        return "".join(f"{line}\n" for line in body)
    head = "\n@triton.jit\ndef kernel(x_ptr, n):\n"
    return module + head + "".join(f"    {line}\n" for line in body)
