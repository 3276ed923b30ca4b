"""Asks an installed Triton about generated kernels, one family of rules per file.

    python tests/triton/families.py [FAMILY...] [--show]

Run it with a Python that has Triton 3.6, then with one that has 3.9. No GPU and no torch are
needed. A family's kernels are made here: calls whose arguments are replaced one at a time, and
definitions in every use. Its module begins with crates/compiler/tests/probes/generated/FAMILY.py,
and its kernels and what Triton answers are in FAMILY.txt beside it, which a Rust test reads;
probes.py says how. A comment `# differs: REASON` on a kernel is kept. Of a family's kernels a
fixed one in five is recorded; `--every 1 --in FOLDER` writes all of them somewhere else, which the
Rust test reads when TILE_PROBES names it.
"""

import argparse
import ast
import itertools
import pathlib
import zlib

import triton

import probes

FOLDER = probes.FAMILIES.parent / "generated"

NUMBERS = ["int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
           "float16", "bfloat16", "float32", "float64"]

#: Values of every kind, in place of an argument.
VALUES = ["None", "True", "0", "3", "-1", "2.5", "'abc'", "tl.float32", "x", "i", "n", "m", "f", "(1, 2)",
          "[16]", "p", "B", "add", "plain", "tl", "PAIR", "PLAIN"]


def variants(expression, values, keywords=()):
    """`expression`, a call, with each argument replaced, left out, named or added; and with each
    element of its list arguments replaced, left out or added."""
    yield expression
    call = ast.parse(expression, mode="eval").body
    function = ast.unparse(call.func)
    given = [ast.unparse(argument) for argument in call.args]
    named = [(keyword.arg, ast.unparse(keyword.value)) for keyword in call.keywords]

    def spelled(given, named):
        return f"{function}({', '.join(given + [f'{name}={value}' for name, value in named])})"

    for at, argument in enumerate(call.args):
        def replaced(value):
            return spelled(given[:at] + [value] + given[at + 1:], named)

        yield from map(replaced, values)
        if isinstance(argument, (ast.List, ast.Tuple)):
            parts = [ast.unparse(part) for part in argument.elts]
            for index in range(len(parts)):
                for value in values:
                    yield replaced(f"[{', '.join(parts[:index] + [value] + parts[index + 1:])}]")
            yield replaced(f"[{', '.join(parts[:-1])}]")
            yield replaced(f"[{', '.join([*parts, '1'])}]")
            yield replaced(f"({', '.join(parts)},)")
    for at, (name, _) in enumerate(named):
        for value in values:
            yield spelled(given, named[:at] + [(name, value)] + named[at + 1:])
    for name in keywords:
        if name not in dict(named):
            for value in values:
                yield spelled(given, [*named, (name, value)])
    for value in ["1", "None", "x"]:
        yield spelled([*given, value], named)
    if given:
        yield spelled(given[:-1], named)
    yield spelled(given, [*named, ("unknown", "1")])


def bound(setup, expressions):
    """Bodies that bind each expression and print it."""
    for expression in expressions:
        yield [*setup, f"r = {expression}", "tl.static_print(r)"]


def performed(setup, statements):
    for statement in statements:
        yield [*setup, statement, "tl.static_print('done')"]


def function(parameters, *lines, before=()):
    """A module's text, with `kernel` of these parameters."""
    body = [f"    {line}" for line in lines]
    return [*before, "@triton.jit", f"def kernel({parameters}):", *body]


#: How any value may be used, where `{0}` is an expression for it: lines.
USES = [
    ["tl.static_print({0})"], ["y = {0}", "tl.static_print(y)"], ["y: tl.constexpr = {0}", "tl.static_print(y)"],
    ["tl.static_print({0}.type)"], ["tl.static_print(same({0}))"], ["tl.static_print(pair({0}))"],
    ["tl.static_print(({0}, 1))"], ["y = ({0}, {0})", "tl.static_print(y)"], ["tl.static_print([{0}][0])"],
    ["tl.static_print(len({0}))"], ["tl.static_print({0}[0])"], ["tl.static_print({0}[1:])"],
    ["tl.static_print({0}[:, None])"], ["tl.static_print({0}[n])"],
    ["a, b2 = {0}", "tl.static_print(a, b2)"], ["a, *b2 = {0}", "tl.static_print(a, b2)"],
    ["tl.static_print({0} + 1)"], ["tl.static_print({0} + {0})"], ["tl.static_print(1 + {0})"],
    ["tl.static_print({0} * 2)"], ["tl.static_print({0} == {0})"], ["tl.static_print({0} != 1)"],
    ["tl.static_print({0} < {0})"], ["tl.static_print(-{0})"], ["tl.static_print(not {0})"],
    ["tl.static_print({0} is None)"], ["tl.static_print({0} is not None)"], ["tl.static_print({0} == None)"],
    ["tl.static_print({0} and True)"], ["tl.static_print({0} or 1)"], ["tl.static_print({0} in (1, 2))"],
    ["if {0}:", "    tl.static_print('yes')", "else:", "    tl.static_print('no')"],
    ["if n > 1:", "    y = {0}", "else:", "    y = {0}", "tl.static_print(y)"],
    ["y = {0}", "if n > 1:", "    y = {0}", "tl.static_print(y)"],
    ["y = {0} if n > 1 else {0}", "tl.static_print(y)"], ["y = {0} if B > 1 else 0", "tl.static_print(y)"],
    ["y = {0} if n > 1 else 0", "tl.static_print(y)"],
    ["y = {0}", "for k in range(n):", "    y = {0}", "tl.static_print(y)"],
    ["y = {0}", "for k in range(n):", "    y = same(y)", "tl.static_print(y)"],
    ["y = {0}", "while n > 1:", "    y = {0}", "    n -= 1", "tl.static_print(y)"],
    ["y = 0", "for k in range(n):", "    y = {0}", "tl.static_print(y)"],
    ["for y in {0}:", "    tl.static_print(y)"], ["for y in tl.static_range({0}):", "    tl.static_print(y)"],
    ["tl.static_print([y for y in {0}])"], ["tl.static_print(f'{{{0}}}')"],
    ["tl.static_print(tl.to_tensor({0}))"], ["tl.static_print(tl.constexpr({0}))"],
    ["tl.store(p, {0})"], ["tl.static_print(tl.load({0}))"], ["tl.device_print('y', {0})"],
    ["tl.static_assert({0})"], ["tl.static_print({0}.shape)"], ["tl.static_print({0}.dtype)"],
    ["tl.static_print({0}.value)"], ["tl.static_print({0}.missing)"], ["tl.static_print({0}())"],
    ["tl.static_print(min({0}, 1))"], ["tl.static_print(int({0}))"], ["tl.static_print(isinstance({0}, tl.tensor))"],
    ["tl.static_print(isinstance({0}, tl.constexpr))"], ["tl.static_print(isinstance({0}, tl.tuple))"],
    ["tl.static_print(hasattr({0}, 'x'))"], ["tl.static_print(getattr({0}, 'x'))"], ["tl.static_print(type({0}))"],
    ["tl.static_print(apart({0}))"], ["tl.static_print(twice({0}))"], ["tl.static_print(first({0}, 1))"],
    ["tl.static_print(first(*{0}))"], ["{0}"], ["return {0}"], ["y = {0}", "y += 1", "tl.static_print(y)"],
    ["del {0}"], ["{0} = 1"], ["tl.static_print(tl.where(n > 1, {0}, {0}))"], ["tl.static_print({0}.to(tl.int64))"],
    ["tl.assume({0})"], ["tl.static_print(tl.full((4,), {0}, tl.int32))"], ["tl.static_print(tl.arange(0, {0}))"],
    ["tl.static_print({0}.x, {0}.y)"], ["y = {0}", "y.x = 1", "tl.static_print(y)"],
    ["y = {0}", "y[0] = 1", "tl.static_print(y)"], ["tl.static_print(tl.cast({0}, tl.int64))"],
]


def uses(expressions, setup=()):
    for expression, lines in itertools.product(expressions, USES):
        yield [*setup, *(line.format(expression) for line in lines)]


TILES = ["i = tl.arange(0, 16)", "x = i.to(tl.float32)"]


def descriptors():
    values = [*VALUES, "d", "[0, 0]", "(n, n)", "[n, m]", "[f, 0]", "[i, 0]", "[0, 2**40]", "[B, C]", "v", "h"]
    setup = [*TILES, "v = tl.zeros((16, 32), tl.float32)", "d = tl.make_tensor_descriptor(p, [n, 64], [64, 1], [16, 32])"]
    rows = [*setup, "w = tl.zeros((16, 64), tl.float16)", "g = tl.make_tensor_descriptor(h, [n, 64], [64, 1], [1, 64])"]
    make = "tl.make_tensor_descriptor(p, [n, 64], [64, 1], [16, 32])"
    yield from bound(setup, variants(make, values, ["padding_option", "base", "shape"]))
    yield from bound(setup, variants("tl.make_tensor_descriptor(h, [n], [1], [64])", values))
    yield from bound(setup, variants("d.load([0, n])", values, ["offsets"]))
    yield from bound(setup, variants("tl.load_tensor_descriptor(d, [0, 0])", values))
    yield from bound(rows, variants("g.gather(i, 0)", values))
    for statement in ["d.store([0, n], v)", "tl.store_tensor_descriptor(d, [0, 0], v)", "d.atomic_add([0, 0], v)"]:
        yield from performed(setup, variants(statement, values))
    yield from performed(rows, variants("g.scatter(w, i, 0)", values))
    for name in ["load([0, 0], 1)", "store", "gather", "advance([0, 0])", "shape[0]", "shape[1]", "strides[0]", "strides[1]",
                 "shape[2]", "shape[n]", "shape[0] + 1", "strides[1] + 1", "block_shape[0]", "block_shape", "dtype", "type", "block_type",
                 "block_type.shape", "block_type.element_ty", "dtype.primitive_bitwidth", "handle", "T", "rank", "ndim",
                 "base", "padding", "element_ty", "load", "order", "layout", "numel", "nbytes_per_cta", "stride(0)", "shape[0].type",
                 "strides[0].type", "strides[1].type", "type.block_type", "type.shape", "dtype.is_floating()"]:
        for descriptor in ["d", "desc", "host"]:
            yield function("p, n, desc, host: tl.constexpr", setup[-1], f"r = {descriptor}.{name}", "tl.static_print(r)") \
                if descriptor != "host" else function("p, n, desc", "desc.store([0, 0], desc.load([0, 0]))", f"r = same(desc).{name}", "tl.static_print(r)")
    for kind, method in itertools.product(NUMBERS, ["store", "atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor"]):
        made = [f"t = tl.make_tensor_descriptor(p.to(tl.pointer_type(tl.{kind}), bitcast=True), [n, 64], [64, 1], [16, 32])"]
        for value in dict.fromkeys([kind, "float32", "int32"]):
            yield [*made, f"y = t.{method}([0, 0], tl.zeros((16, 32), tl.{value}))", "tl.static_print(y)"]
    for kind, shape in itertools.product(["int8", "float16", "float32", "float64", "float8e5", "int1"],
                                         ["[16]", "[4]", "[8, 8]", "[8, 2]", "[1, 32]", "[2, 4, 8]", "[1, 1, 1, 1, 16]", "[256, 256]",
                                          "[512, 16]", "[16, 24]", "[8, B]", "[n, 16]", "[16, 512]", "[1024]", "[]"]):
        rank = shape.count(",") + 1
        made = f"tl.make_tensor_descriptor(p.to(tl.pointer_type(tl.{kind}), bitcast=True), [{', '.join(['n'] * rank)}], [{', '.join(['64'] * (rank - 1) + ['1'])}], {shape})"
        yield [f"d = {made}", "tl.static_print(d)", f"tl.static_print(d.load([{', '.join(['0'] * rank)}]))"]
        yield [f"d = {made}", "tl.static_print(d.gather(tl.arange(0, 32), n))"]
    for count, kind, y in itertools.product([1, 4, 8, 32], ["tl.int32", "tl.int64", "tl.int16", "tl.uint32", "tl.float32"], ["0", "n", "m", "f", "None"]):
        if y == "n" or (count == 8 and kind == "tl.int32"):
            yield [*rows, f"tl.static_print(g.gather(tl.arange(0, {count}).to({kind}) if {count} > 1 else tl.zeros((1,), {kind}), {y}))"]
    yield from uses(["d"], [setup[-1]])
    yield from (function("desc, p, n, B: tl.constexpr = 64", *lines) for lines in uses(["desc"]))
    for strides in ["[64, 1]", "[m, 1]", "[n, 1]", "[64, tl.constexpr(1)]", "[64, n]", "[1, 64]", "[64, 2]", "(64, 1)", "[0, 1]", "[-64, 1]", "[f, 1]", "[True, 1]", "[64, True]", "[64, 1.0]", "d.strides", "tl.constexpr([64, 1])", "[63, 1]"]:
        yield from bound(setup, [f"tl.make_tensor_descriptor(p, [n, 64], {strides}, [16, 32])", f"tl.make_tensor_descriptor(p, d.shape, {strides}, d.block_shape)"])
    for padding in ["'zero'", "'nan'", "''", "'one'", "None", "0", "tl.constexpr('nan')", "S", "f"]:
        for kind in ["float32", "int32", "float16"]:
            yield from bound([], [f"tl.make_tensor_descriptor(p.to(tl.pointer_type(tl.{kind}), bitcast=True), [n, 64], [64, 1], [16, 32], padding_option={padding})"])
    for body in [
        ["d = make(p, n)", "tl.static_print(d, d.load([0, 0]))"],
        ["d = make(p, n)", "for k in range(n):", "    d.store([k, 0], d.load([k, 0]) + 1)", "tl.static_print(d)"],
        ["d = make(p, n)", "for k in range(n):", "    d = make(p, k)", "tl.static_print(d)"],
        ["d = make(p, n)", "if n > 1:", "    d = make(p, 3)", "tl.static_print(d)"],
        ["d = make(p, n)", "if n > 1:", "    d = make(h, 3)", "tl.static_print(d)"],
        ["d = make(p, n)", "if n > 1:", "    d = tl.make_tensor_descriptor(p, [n, 64], [64, 1], [32, 32])", "tl.static_print(d)"],
        ["d = make(p, n)", "for k in range(n):", "    d = tl.make_tensor_descriptor(p, [n, 64], [64, 1], [32, 32])", "tl.static_print(d)"],
        ["d = make(p, n)", "tl.static_print(loaded(d, 0, n))"], ["d = make(p, n)", "tl.static_print(loaded((d, d), 0, n))"],
        ["d = (make(p, n), make(h, n))", "tl.static_print(d[1].load([0, 0]))"],
        ["d = (make(p, n), make(h, n))", "for k in tl.static_range(2):", "    tl.static_print(d[k].load([0, 0]))"],
        ["d = make(p, n)", "tl.static_print(apart_load(d, n))"], ["tl.static_print(maybe_make(p, n, True))"],
        ["tl.static_print(maybe_make(p, n, False))"], ["tl.static_print(maybe_make(p, n, n))"],
        ["d = make(p, n)", "tl.static_print(isinstance(d, tl.tensor_descriptor))"],
        ["d = make(p, n)", "tl.static_print(isinstance(d, tl.core.tensor_descriptor_base))"],
        ["d = make(p, n)", "tl.static_print(isinstance(d, tl.tensor))"],
        ["if isinstance(p, tl.tensor):", "    d = make(p, n)", "else:", "    d = p", "tl.static_print(d)"],
        ["d = make(p, n)", "x = d.load([n, 0]).to(tl.float16)", "tl.static_print(tl.dot(x, x.T))"],
        ["d = make(p, n)", "x = d.load([n, 0]).T", "d.store([0, 0], x)"], ["d = make(p, n)", "d.store([0, 0], n)"],
        ["d = make(p, n)", "d.store([0, 0], 1.0)"], ["d = make(p, n)", "d.store([0, 0], None)"], ["d = make(p, n)", "d.store([0, 0], tl.zeros((1, 32), tl.float32))"],
        ["d = make(p, n)", "d.store(offsets=[0, 0], value=tl.zeros((16, 32), tl.float32))"], ["d = make(p, n)", "d.load(offsets=(0, 0))"],
        ["d = make(p, n)", "tl.static_print(tl.core.load_tensor_descriptor(d, [0, 0]))"],
        ["d = make(p, n)", "tl.static_print(tl.advance(d, [0, 16]))"], ["d = make(p, n)", "tl.static_print(tl.load(d))"],
        ["d = make(p, n)", "tl.static_print(tl.load(d, boundary_check=(0, 1)))"], ["d = make(p, n)", "tl.store(d, d.load([0, 0]))"],
        ["d = make(p, n)", "tl.static_print(d.gather([0, 1], 0))"], ["d = make(p, n)", "e = d", "tl.static_print(e.load([0, 0]))"],
        ["d = make(p, n)", "tl.static_print(d.load((n, m)))"], ["d = make(p, n)", "tl.static_print(d.load([n * m, 0]))"],
        ["d = make(p, n)", "tl.static_print(d.load([tl.program_id(0).to(tl.uint32), 0]))"], ["d = make(p, n)", "tl.static_print(d.load([b, 0]))"],
        ["d = make(p, n)", "tl.static_print(d.load([tl.program_id(0).to(tl.int8), 0]))"], ["d = make(p, n)", "tl.static_print(d.load(d.shape))"],
        ["d = make(p, n)", "tl.static_print(d.load(d.strides))"], ["d = make(p, n)", "o: tl.constexpr = (0, 0)", "tl.static_print(d.load(o))"],
        ["d = make(p, n)", "o = (0, n)", "tl.static_print(d.load(o))"], ["d = make(p, n)", "tl.static_print(d.load([0] * 2))"],
        ["d = make(p, n)", "tl.static_print(d.load([0] + [n]))"], ["d = make(p, n)", "tl.static_print(d.load(PAIR))"],
        ["d = make(p, n)", "tl.static_print(d.load(*[[0, 0]]))"], ["d = make(p, n)", "load = d.load", "tl.static_print(load([0, 0]))"],
        ["d = make(p, n)", "tl.static_print(tl.tensor_descriptor.load(d, [0, 0]))"], ["d = tl.tensor_descriptor(p, [n], [1], None)"],
    ]:
        yield body
        yield ["desc2 = 0", *body]


def block_pointers():
    values = [*VALUES, "d", "[0, 0]", "(0, 1)", "(n, n)", "[n, m]", "[f, 0]", "[i, 0]", "v", "h", "('zero',)"]
    setup = [*TILES, "v = tl.zeros((16, 32), tl.float32)", "d = tl.make_block_ptr(p, (n, 64), (64, 1), (0, 0), (16, 32), (1, 0))"]
    flat = "tl.make_block_ptr(h, (n,), (1,), (m,), (64,), (0,))"
    yield from bound(setup, variants("tl.make_block_ptr(p, (n, 64), (64, 1), (0, 0), (16, 32), (1, 0))", values, ["order"]))
    yield from bound(setup, variants(flat, values))
    yield from bound(setup, variants("tl.advance(d, (0, n))", values, ["offsets"]))
    yield from bound(setup, variants("d.advance((0, 32))", values))
    yield from bound(setup, variants("tl.load(d, boundary_check=(0, 1), padding_option='zero')", values, ["mask", "other", "cache_modifier", "eviction_policy", "volatile"]))
    yield from performed(setup, variants("tl.store(d, v, boundary_check=(0, 1))", values, ["mask", "cache_modifier", "eviction_policy"]))
    for name in ["shape", "dtype", "type", "handle", "T", "type.element_ty", "type.element_ty.element_ty", "dtype.element_ty",
                 "dtype.element_ty.shape", "numel", "advance", "load", "shape[0]", "to(tl.int64)", "type.is_ptr()", "type.is_block()",
                 "dtype.is_ptr()", "type.scalar", "type.scalar.element_ty", "element_ty", "rank", "order", "strides", "block_shape",
                 "type.element_ty.shape", "dtype.shape", "store(v)", "type.address_space", "is_contiguous()"]:
        yield [setup[-1], f"r = d.{name}", "tl.static_print(r)"]
    for operation in ["d + 1", "d - 1", "1 + d", "d + i", "d + d", "d == d", "-d", "d[0]", "d[:, None]", "tl.load(d) + 1", "tl.load(d + 1)",
                      "tl.trans(d)", "tl.reshape(d, (32, 16))", "tl.broadcast_to(d, (16, 32))", "tl.where(n > 1, d, d)", "tl.expand_dims(d, 0)",
                      "tl.load(d)[None]", "tl.dot(tl.load(d), tl.trans(tl.load(d)))", "tl.atomic_add(d, 1.0)", "tl.atomic_add(d, v)",
                      "tl.atomic_cas(d, v, v)", "tl.multiple_of(d, 16)", "tl.max_contiguous(d, (16, 16))", "tl.advance(tl.advance(d, (16, 0)), (0, 32))",
                      "tl.load(tl.advance(d, (n, m)))", "tl.advance(p, (0, 0))", "tl.advance(p + i, (0,))", "tl.load(p + i, boundary_check=(0,))",
                      "tl.load(p, boundary_check=(0,))", "tl.load(p + i, padding_option='zero')", "tl.load(d, i > 3)", "tl.load(d, None, None, (0,))",
                      "tl.load(d, boundary_check=(0, 0))", "tl.load(d, boundary_check=(2,))", "tl.load(d, boundary_check=(-1,))", "tl.load(d, boundary_check=0)",
                      "tl.load(d, boundary_check=[0])", "tl.load(d, boundary_check=[1, 0])", "tl.load(d, boundary_check=())", "tl.load(d, boundary_check='01')",
                      "tl.load(d, padding_option='nan')", "tl.load(d, padding_option='')", "tl.load(d, padding_option='one')", "tl.load(d, boundary_check=(0,), padding_option='nan')"]:
        yield [*setup, f"r = {operation}", "tl.static_print(r)"]
    for kind, shape, order in itertools.product(NUMBERS, ["(16, 32)", "(16, 24)", "(1, 1)", "(B, C)"], ["(1, 0)", "(0, 1)"]):
        made = f"d = tl.make_block_ptr(p.to(tl.pointer_type(tl.{kind}), bitcast=True), (n, m), (m, 1), (n, 0), {shape}, {order})"
        yield [made, "tl.static_print(d, tl.load(d, boundary_check=(0, 1), padding_option='zero'))"]
        if order == "(1, 0)":
            yield [made, "tl.static_print(tl.load(d, boundary_check=(0, 1), padding_option='nan'))"]
            yield [made, "tl.store(d, tl.load(d).to(tl.float32))", "tl.static_print('done')"]
            yield [made, "tl.store(d, 0)", "tl.static_print('done')"]
    for order in ["(0, 0)", "(0, 2)", "(1,)", "(0, 1, 2)", "[1, 0]", "(-1, 0)", "None", "(n, 0)", "PAIR", "(1.0, 0.0)", "(True, False)"]:
        yield from bound([], [f"tl.make_block_ptr(p, (n, 64), (64, 1), (0, 0), (16, 32), {order})"])
    yield from uses(["d"], [setup[-1]])
    for body in [
        ["d = block(p, n)", "for k in range(n):", "    d = tl.advance(d, (0, 16))", "tl.static_print(d)"],
        ["d = block(p, n)", "for k in range(n):", "    d = d.advance((0, 16))", "tl.static_print(tl.load(d))"],
        ["d = block(p, n)", "for k in range(n):", "    d = block(h, n)", "tl.static_print(d)"],
        ["d = block(p, n)", "for k in range(n):", "    d = p", "tl.static_print(d)"],
        ["d = block(p, n)", "if n > 1:", "    d = tl.advance(d, (n, 0))", "tl.static_print(d)"],
        ["d = block(p, n)", "if n > 1:", "    d = block(h, n)", "tl.static_print(d)"],
        ["d = block(p, n)", "d = tl.make_block_ptr(p, (n, 64), (64, 1), (0, 0), (32, 32), (1, 0))", "tl.static_print(d)"],
        ["d = block(p, n)", "if n > 1:", "    d = tl.make_block_ptr(p, (n, 64), (64, 1), (0, 0), (32, 32), (1, 0))", "tl.static_print(d)"],
        ["d = block(p, n)", "tl.static_print(same(d), apart(n))"], ["d = block(p, n)", "tl.static_print(apart_block(d))"],
        ["d = (block(p, n), block(h, n))", "tl.static_print(tl.load(d[1]))"], ["d = block(p, n)", "tl.store(d, tl.load(d).to(tl.float16))"],
        ["d = block(p, n)", "tl.store(d, tl.load(d).T)"], ["d = block(p, n)", "tl.store(d, tl.zeros((1, 32), tl.float32))"],
        ["d = block(p, n)", "tl.store(d, tl.zeros((32,), tl.float32))"], ["d = block(p, n)", "tl.store(d, 1.0)"], ["d = block(p, n)", "tl.store(d, n)"],
        ["d = block(p, n)", "tl.store(d, tl.load(d), mask=True)"], ["d = block(p, n)", "tl.store(d, tl.load(d), boundary_check=(0, 1, 2))"],
        ["d = block(p, n)", "tl.static_print(tl.load(d, mask=None, other=None))"], ["d = block(p, n)", "tl.static_print(tl.load(d, other=0.0))"],
        ["d = block(p, n)", "d += 1", "tl.static_print(d)"], ["d = block(b, n)", "tl.static_print(d)"], ["d = block(n, n)", "tl.static_print(d)"],
        ["d = tl.make_block_ptr(base=p, shape=(n, 64), strides=(64, 1), offsets=(0, 0), block_shape=(16, 32), order=(1, 0))", "tl.static_print(d)"],
        ["d = tl.make_block_ptr(p + n, (n,), (1,), (0,), (B,), (0,))", "tl.static_print(tl.load(d))"], ["d = tl.make_block_ptr(p + tl.arange(0, 4), (n,), (1,), (0,), (B,), (0,))", "tl.static_print(tl.load(d))"],
        ["d = tl.make_block_ptr(p, n, 1, 0, B, 0)", "tl.static_print(tl.load(d))"], ["d = tl.make_block_ptr(p, [n], [1], [0], [B], [0])", "tl.static_print(tl.load(d))"],
        ["d = tl.make_block_ptr(p, (), (), (), (), ())", "tl.static_print(d)"], ["d = tl.make_block_ptr(p, (n, n, n), (n, n, 1), (0, 0, 0), (4, 4, 4), (2, 1, 0))", "tl.static_print(tl.load(d, boundary_check=(0, 2)))"],
    ]:
        yield body


#: Combine functions of the prelude of `combine`: how many operands each takes.
COMBINE = {1: ["identity", "wide1"], 2: ["add", "larger2", "compare", "widen", "narrow", "none", "nothing", "constant", "tupled", "single", "tile", "loads",
               "printing", "branching", "early", "looping", "defaulted", "variadic", "typed", "statics", "asserting", "calls", "recursing", "closing",
               "noinlined", "mixed", "swapped", "apart", "plain", "compile_time", "stores", "bool_and", "index", "shaped", "raises", "chooses", "keyword_only",
               "tl.maximum", "tl.add", "max", "None", "3", "x", "'add'", "tl.sum", "tl.float32", "tl.core.add", "tl.standard._sum_combine", "tl.standard._elementwise_max",
               "lambda a, b2: a + b2", "Adder", "functions", "(add,)"],
           4: ["larger", "welford2", "pairs", "triples", "only_one", "swap2", "constants2", "listed", "nested2", "starred", "mixed2", "typed2"], 6: ["welford"]}


def combine():
    def operands(count, name):
        if count <= 2:
            return ["x"]
        return ["(x, i)", "(x, x)", "(i, x)", "[x, i]"] if count == 4 else ["(x, x, x)", "(x, i, x)"]

    setup = [*TILES, "y = tl.zeros((16, 32), tl.float32)"]
    for count, names in COMBINE.items():
        for name, operand in ((name, operand) for name in names for operand in operands(count, name)):
            for call in [f"tl.reduce({operand}, 0, {name})", f"tl.associative_scan({operand}, 0, {name})", f"tl.reduce({operand}, 0, {name}, keep_dims=True)",
                         f"tl.reduce({operand.replace('x', 'y').replace('i', 'y')}, 1, {name})", f"tl.associative_scan({operand.replace('x', 'y').replace('i', 'y')}, 1, {name}, reverse=True)"]:
                yield from bound(setup, [call])
    for name in ["add", "larger2", "widen", "compare", "constant", "branching", "typed", "noinlined", "mixed", "calls"]:
        for kind in NUMBERS:
            made = [f"x = tl.zeros((4, 8), tl.{kind})"]
            yield from bound(made, [f"tl.reduce(x, 1, {name})", f"tl.associative_scan(x, 0, {name})"])
    for kind, other in itertools.product(["int1", "int32", "float16", "float32"], repeat=2):
        made = [f"x = tl.zeros((16,), tl.{kind})", f"i = tl.zeros((16,), tl.{other})"]
        for name in ["larger", "swap2", "pairs", "welford2", "constants2", "mixed2"]:
            yield from bound(made, [f"tl.reduce((x, i), 0, {name})", f"tl.associative_scan((x, i), 0, {name})"])
    values = [*VALUES, "larger", "y", "(x, i)", "(x, y)", "(x,)", "(x, 1)", "(x, n)", "()", "0", "1", "-2", "2", "(0,)", "(0, 1)"]
    for call in ["tl.reduce(x, 0, add)", "tl.reduce((x, i), 0, larger)", "tl.associative_scan(x, 0, add)", "tl.associative_scan((x, i), 0, larger)", "tl.reduce(y, 1, add, True)", "tl.reduce(y, None, add)", "tl.associative_scan(y, 1, add, False)",
                 "x.reduce(0, add)", "y.reduce(1, add, keep_dims=True)", "x.associative_scan(0, add)", "tl.map_elementwise(add, x, x)", "tl.map_elementwise(larger, x, i, x, i)", "tl.map_elementwise(identity, x)"]:
        yield from bound(setup, variants(call, values, ["keep_dims"] if ".reduce" in call else ["reverse"] if "scan" in call else ["pack"]))
    for name in [*COMBINE[1], *COMBINE[2]]:
        yield from bound(setup, [f"tl.map_elementwise({name}, x, i)", f"tl.map_elementwise({name}, x)", f"tl.map_elementwise({name}, y, y, pack=1)"])
    for pack in ["1", "2", "4", "3", "0", "n", "None", "True"]:
        yield from bound(setup, [f"tl.map_elementwise(identity, x, pack={pack})", f"tl.map_elementwise(packed, x, x, pack={pack})"])
    for body in [
        ["a, b2 = tl.reduce((x, i), 0, larger)", "tl.static_print(a, b2)"], ["a = tl.reduce((x, i), 0, larger)[1]", "tl.static_print(a)"],
        ["a, b2, c = tl.reduce((x, i), 0, larger)", "tl.static_print(a)"], ["a = tl.reduce((x,), 0, add)", "tl.static_print(a)"],
        ["a, = tl.reduce((x,), 0, add)", "tl.static_print(a)"], ["a = tl.associative_scan((x,), 0, add)", "tl.static_print(a)"],
        ["t = (x, i)", "tl.static_print(tl.reduce(t, 0, larger))"], ["t = (x, i) + (x,)", "tl.static_print(tl.reduce(t, 0, welford))"],
        ["for k in range(n):", "    x = tl.associative_scan(x, 0, add)", "tl.static_print(x)"], ["for k in range(n):", "    f = tl.reduce(x, 0, add)", "tl.static_print(f)"],
        ["tl.static_print(tl.reduce(n, 0, add))"], ["tl.static_print(tl.reduce(n, None, add))"], ["tl.static_print(tl.reduce(1.0, 0, add))"], ["tl.static_print(tl.reduce(p + i, 0, larger2))"],
        ["tl.static_print(tl.reduce(p + i, 0, only_left))"], ["tl.static_print(tl.associative_scan(p + i, 0, only_left))"], ["tl.static_print(tl.reduce((x, p + i), 0, larger))"],
        ["tl.static_print(tl.reduce((y, y), None, larger))"], ["tl.static_print(tl.reduce((y, y), (0, 1), larger))"], ["tl.static_print(tl.reduce(y, -1, add), tl.reduce(y, -2, add))"], ["tl.static_print(tl.reduce(y, 2, add))"],
        ["tl.static_print(tl.reduce(y, -3, add))"], ["tl.static_print(tl.associative_scan(y, -1, add))"], ["tl.static_print(tl.associative_scan(y, 2, add))"], ["tl.static_print(tl.associative_scan(y, None, add))"],
        ["tl.static_print(tl.reduce(y, 0, add, keep_dims=True))"], ["tl.static_print(tl.reduce(y, None, add, keep_dims=True))"], ["tl.static_print(tl.reduce((x, y), 0, larger))"], ["tl.static_print(tl.reduce((y, x), 0, larger))"],
        ["tl.static_print(tl.associative_scan((x, y), 0, larger))"], ["tl.static_print(tl.reduce((x, 1), 0, larger))"], ["tl.static_print(tl.reduce((x, n), 0, larger))"], ["tl.static_print(tl.reduce(tl.zeros((1,), tl.float32), 0, add))"],
        ["combine = add", "tl.static_print(tl.reduce(x, 0, combine))"], ["tl.static_print(by(x, add))"], ["tl.static_print(by(x, larger2))"], ["tl.static_print(by(x, None))"], ["tl.static_print(by_const(x, add))"], ["tl.static_print(tl.reduce(x, 0, add if B > 4 else larger2))"],
        ["tl.static_print(tl.reduce(x, 0, (add, larger2)[1]))"], ["tl.static_print(tl.reduce(x, tl.constexpr(0), add))"], ["tl.static_print(tl.reduce(x, axis=0, combine_fn=add))"], ["tl.static_print(tl.reduce(input=x, axis=0, combine_fn=add))"],
        ["tl.static_print(tl.reduce(input=x, combine_fn=add))"], ["tl.static_print(tl.associative_scan(input=x, axis=0, combine_fn=add, reverse=True))"], ["tl.static_print(tl.reduce(x, combine_fn=add, axis=None))"],
    ]:
        yield [*setup, *body]


def named_tuples():
    yield from uses(["Point(n, f)", "Point(1, 2)", "Point(x=n, y=2)", "Mixed(n, 'abc')", "Old(n, f)", "Nested(Point(n, 1), f)", "POINT", "Defaults(n)"])
    yield from bound(TILES, variants("Point(n, f)", [*VALUES, "Point(1, 2)"], ["x", "y"]))
    yield from bound(TILES, variants("Old(n, f)", VALUES))
    yield from bound(TILES, variants("Defaults(n)", VALUES, ["y"]))
    for expression in ["t.x", "t.y", "t.z", "t[0]", "t[1]", "t[2]", "t[-1]", "t[0:1]", "t[0:1].x", "t.x + t.y", "t + t", "(t + t)[2]", "(t + t).x", "t * 2", "t == t", "t == (n, f)",
                       "len(t)", "t._fields", "t._replace(x=1)", "t._replace(x=1).x", "t._asdict()", "t.count(1)", "t.index(n)", "Point(*t)", "Point(*t).x", "Point._make(t)", "sum_of(t)", "sum_of((n, f))", "swap(t)", "swap(t).x",
                       "made(n, f)", "made(n, f).x", "t.type", "t.x.type", "same(t).y", "pair(t)[0].x", "(t, t)[1].x", "apart_sum(t)", "t.norm()", "Methods(n, f).norm()", "Methods(n, f).total", "Methods(n, f).x", "Point.x", "Point", "Point._fields",
                       "hasattr(t, 'x')", "hasattr(t, 'z')", "getattr(t, 'x')", "isinstance(t, Point)", "isinstance(t, tuple)", "isinstance(t, tl.tuple)", "[v for v in t]", "(*t, 1)", "t[n]", "t[tl.constexpr(1)]", "t is None", "not t", "t.x is t.x",
                       "min(t)", "max(*t)", "first(*t)", "scaled(*t)", "tl.full((4,), t.x, tl.int32)", "t.x.to(tl.float32)", "tl.arange(0, Point(16, 1).x)", "tl.zeros(Point(16, 16), tl.float32)", "tl.zeros((Point(16, 1).x,), tl.float32)", "generic(t, Point(1, 2))"]:
        yield ["t = Point(n, f)", f"r = {expression}", "tl.static_print(r)"]
        yield ["t = Nested(Point(n, f), 1)", f"r = {expression.replace('t.x', 't.x.x')}", "tl.static_print(r)"]
        yield ["t: tl.constexpr = Point(1, 2)", f"r = {expression}", "tl.static_print(r)"]
    for type_, other in itertools.product(["Point(n, f)", "Point(f, n)", "Old(n, f)", "(n, f)", "Point(1, 2)", "Nested(Point(n, f), f)"], repeat=2):
        yield [f"t = {type_}", "if n > 1:", f"    t = {other}", "tl.static_print(t)"]
        yield [f"t = {type_}", "for k in range(n):", f"    t = {other}", "tl.static_print(t, t[0])"]
        yield [f"t = {type_} if n > 1 else {other}", "tl.static_print(t)"]
        yield [f"t = chosen({type_}, {other}, n)", "tl.static_print(t)"]
    for body in [
        ["t = Point(n, f)", "for k in range(n):", "    t = Point(t.x + 1, t.y * 2)", "tl.static_print(t, t.x)"], ["t = Point(n, f)", "for k in range(n):", "    t.x += 1", "tl.static_print(t)"],
        ["t = Point(n, f)", "t.x = 1", "tl.static_print(t.x)"], ["t = Point(n, f)", "t[0] = 1", "tl.static_print(t)"], ["t = Point(n, f)", "t[0] = f", "tl.static_print(t, t.x)"], ["a, c = Point(n, f)", "tl.static_print(a, c)"],
        ["t = Nested(Point(n, f), 1)", "(a, c), d = t", "tl.static_print(a, c, d)"], ["t = Nested(Point(n, f), 1)", "a, c = t", "tl.static_print(a.x, a[1], c)"], ["a, c, d = Point(n, f)", "tl.static_print(a)"], ["for v in Point(n, f):", "    tl.static_print(v)"],
        ["t = Point(tl.arange(0, 4), p + tl.arange(0, 4))", "tl.store(t.y, t.x)", "tl.static_print(t)"], ["t = Point(x=n)", "tl.static_print(t)"], ["t = Point()", "tl.static_print(t)"], ["t = Point(n, f, 1)", "tl.static_print(t)"],
        ["t = Point(n, z=1)", "tl.static_print(t)"], ["t = Point(n, x=1)", "tl.static_print(t)"], ["t = Point(None, None)", "tl.static_print(t.x is None)", "tl.static_print(t)"], ["t = Point(add, tl.float32)", "tl.static_print(t.x(1, 2), t.y)"],
        ["t = Point(B, C)", "tl.static_print(tl.zeros((t.x, t.y), tl.float32))"], ["tl.static_print(tl.zeros((Point(B, C).x,), tl.float32))"], ["tl.static_print(tl.zeros(Point(B, C), tl.float32))"], ["t: tl.constexpr = Point(B, C)", "tl.static_print(tl.zeros((t.x, t.y), tl.float32))"],
        ["t: tl.constexpr = Point(B, C)", "tl.static_print(tl.zeros(t, tl.float32), t.x)"], ["t = Point(Point(n, f), 1)", "tl.static_print(t.x.y)"], ["tl.static_print(POINT.x, POINT[1], POINT)"], ["tl.static_print(tl.arange(0, POINT.x))"], ["tl.static_print(PLAIN_POINT.x)"],
    ]:
        yield body
    for parameters, line in itertools.product(["t", "t: tl.constexpr", "t: Point", "t: tl.tuple", "*t", "t, u=POINT", "t, u=PLAIN_POINT"], ["t", "t.x", "t[0]", "t[1] + 1", "Point(*t)", "len(t)", "t + t"]):
        for argument in ["Point(n, f)", "Point(1, 2)", "(n, f)", "Point(B, None)"]:
            yield ["@triton.jit", f"def g({parameters}):", f"    return {line}", *function("n, f, B: tl.constexpr", f"r = g({argument})", "tl.static_print(r)")]


def constexpr_functions():
    arguments = ["3", "B", "n", "f", "x", "None", "True", "'abc'", "tl.float16", "(1, 2)", "[1, 2]", "(n, 1)", "PAIR", "FOUR", "PLAIN", "DTYPE", "2.5", "-1", "p", "add", "tl", "x.dtype", "x.shape", "n.dtype", "x.shape[0]", "Color.RED", "lambda v: v", "Size(1, 2)", "1 + 2", "B // 2", "B == 64", "()"]
    names = ["identity", "twice", "log2", "kind", "described", "pick", "pair_of", "listed", "dictionary", "text", "bits", "raises", "nothing", "numpy_like", "closing", "loops", "asserts", "calls", "recursive", "wrapped", "default", "variadic", "named",
             "member", "checks", "types", "made", "joined", "formatted", "sorted_", "summed", "maximum", "is_power", "tensor_of", "unwrap", "walrus", "tries", "comprehension", "generator", "sets", "slices", "chained", "matches", "conditional", "global_", "module_"]
    for name, argument in itertools.product(names, arguments):
        if argument in ("3", "B", "n", "(1, 2)", "x.dtype", "'abc'", "None", "f", "FOUR", "x.shape") or names.index(name) < 6:
            yield [*TILES, f"r: tl.constexpr = {name}({argument})", "tl.static_print(r)"]
            yield [*TILES, f"tl.static_print({name}({argument}))"]
    yield from uses(["identity(3)", "pair_of(3)", "listed(3)", "text(3)", "nothing(3)", "kind(B)", "dictionary(3)", "made(2)"])
    for body in [
        ["tl.static_print(two(1, 2), two(1, right=2), two(left=1, right=2))"], ["tl.static_print(two(1))"], ["tl.static_print(two(1, 2, 3))"], ["tl.static_print(two(1, wrong=2))"], ["tl.static_print(two(n, 1))"], ["tl.static_print(two(1, n))"],
        ["tl.static_print(default(1), default(1, 2), default(1, by=5))"], ["tl.static_print(variadic(1, 2, 3), variadic())"], ["tl.static_print(named(a=1, c=2), named())"], ["tl.static_print(two(*(1, 2)))"], ["tl.static_print(two(*PAIR))"],
        ["tl.static_print(tl.arange(0, identity(16)))"], ["tl.static_print(tl.arange(0, twice(B)))"], ["tl.static_print(tl.zeros((twice(4), B), tl.float32))"], ["tl.static_print(tl.zeros(pair_of(4), tl.float32))"], ["tl.static_print(tl.zeros(listed(4), tl.float32))"],
        ["for k in range(twice(2)):", "    tl.static_print(k)"], ["for k in tl.static_range(twice(1)):", "    tl.static_print(k, twice(k))"], ["for k in range(n):", "    tl.static_print(twice(k))"], ["if twice(B) == 128:", "    tl.static_print('yes')", "else:", "    tl.static_print('no')"],
        ["if is_power(B):", "    tl.static_print('yes')"], ["if is_power(n):", "    tl.static_print('yes')"], ["a, c = pair_of(3)", "tl.static_print(a, c)"], ["a = twice(3)", "tl.static_print(a, a + 1)"], ["a = twice(3)", "tl.static_print(tl.arange(0, a))"],
        ["a: tl.constexpr = twice(4)", "tl.static_print(tl.arange(0, a))"], ["tl.static_print(twice(twice(3)))"], ["tl.static_print(jit_calls(3), jit_calls(B))"], ["tl.static_print(jit_calls(n))"], ["tl.static_print(twice(3) + n)"], ["tl.static_print(twice(3) + twice(3))"], ["tl.static_print(n + twice(3.5))"],
        ["tl.static_assert(is_power(B))"], ["tl.static_assert(is_power(B - 1))"], ["tl.static_assert(is_power(B - 1), text(3))"], ["tl.static_print(tl.full((4,), twice(3), tl.int8))"], ["x = tl.zeros((4,), pick_type(16))", "tl.static_print(x)"], ["x = tl.zeros((4,), pick_type(B))", "tl.static_print(x)"],
        ["x = tl.zeros((4,), pick_type(n))", "tl.static_print(x)"], ["f2 = twice", "tl.static_print(f2(3))"], ["tl.static_print(applied(twice, 3))"], ["tl.static_print(applied(twice, n))"], ["tl.static_print(applied(plain, 3))"], ["tl.static_print(plain(3))"], ["tl.static_print(plain(n))"],
        ["tl.static_print(math_function(4.0))"], ["tl.static_print(math.sqrt(4.0))"], ["tl.static_print(triton.cdiv(B, 3), triton.next_power_of_2(B + 1))"], ["tl.static_print(triton.cdiv(n, 3))"], ["tl.static_print(triton.next_power_of_2(n))"], ["x: tl.constexpr = triton.next_power_of_2(100)", "tl.static_print(tl.arange(0, x))"],
        ["tl.static_print(Holder.method(3))"], ["tl.static_print(Holder().method2(3))"], ["tl.static_print(HOLDER.method2(3))"], ["tl.static_print(twice(x=3))"], ["tl.static_print(twice(v=3))"], ["tl.static_print(twice.fn(3))"], ["tl.static_print(twice.__name__)"], ["tl.static_print(twice)"], ["tl.static_print(twice == twice)"], ["tl.static_print(with_semantic(3))"],
    ]:
        yield body


def apart():
    """Functions that are not inlined."""
    arguments = ["n", "m", "f", "b", "x", "i", "p", "p + i", "3", "2.5", "True", "None", "'abc'", "tl.float32", "(n, f)", "(1, 2)", "[n, f]", "(x, i)", "B", "add", "Point(n, f)", "tl", "PAIR", "d", "k2", "()", "(n, None)", "(B, n)"]
    names = ["same_", "plus", "none", "nothing", "pair_", "nested", "constant", "tuple_constant", "stores", "branching", "early", "looping", "recursing", "prints", "const", "default", "const_default", "variadic", "typed", "typed_int", "calls", "calls_inline", "asserts", "only_left", "mixed", "types", "shape", "text", "function_", "first_of", "unused"]
    setup = [*TILES, "d = tl.make_tensor_descriptor(p, [n, 64], [64, 1], [16, 32])", "k2 = n > 1"]
    for name, argument in itertools.product(names, arguments):
        yield [*setup, f"r = {name}({argument})", "tl.static_print(r)"]
    for body in [
        ["tl.static_print(two(n, f), two(n, right=f), two(right=n, left=f))"], ["tl.static_print(two(n))"], ["tl.static_print(two(n, f, 1))"], ["tl.static_print(two(n, wrong=1))"], ["tl.static_print(two(*(n, f)))"], ["tl.static_print(two(*(n, f), 1))"], ["tl.static_print(two(1, 2), two(1, n), two(n, 1.5))"],
        ["a, c = pair_(n)", "tl.static_print(a, c)"], ["a, c = pair_(x)", "tl.static_print(a, c)"], ["a, c, e = pair_(n)", "tl.static_print(a)"], ["for k in range(n):", "    n = plus(n)", "tl.static_print(n)"], ["for k in range(n):", "    x = plus(x)", "tl.static_print(x)"], ["for k in range(n):", "    n = plus(f)", "tl.static_print(n)"],
        ["if plus(n) > 3:", "    n = plus(n)", "tl.static_print(n)"], ["y = plus(n) if n > 1 else plus(3)", "tl.static_print(y)"], ["y = plus(n) if n > 1 else plus(f)", "tl.static_print(y)"], ["tl.static_print(tl.arange(0, plus(15)))"], ["tl.static_print(tl.reduce(x, 0, two))"], ["tl.static_print(tl.associative_scan(x, 0, two))"],
        ["tl.static_print(tl.map_elementwise(plus, x))"], ["tl.static_print(applied(plus, n))"], ["tl.static_print(applied(plus, x))"], ["g = plus", "tl.static_print(g(n))"], ["stores(p)", "nothing(n)", "tl.static_print('done')"], ["tl.static_print(plus(plus(x)))"], ["plus(n, debug=True)"], ["tl.static_print(plus(n).type, plus(x).shape)"],
        ["y = x", "y = plus(y)", "tl.static_print(y.dtype)"], ["tl.static_print(const(B), const(3))"], ["tl.static_print(const(n))"], ["tl.static_print(const(B=3))"], ["tl.static_print(const_default(n), const_default(n, 4), const_default(n, B), const_default(n, K=8))"], ["tl.static_print(const_default(n, n))"], ["tl.static_print(ranged(16), ranged(B))"], ["tl.static_print(ranged(n))"], ["tl.static_print(ranged(15))"],
        ["y = (n, f)", "for k in range(n):", "    y = same_(y)", "tl.static_print(y)"], ["y = same_(same_)", "tl.static_print(y)"], ["tl.static_print(plus(n) + plus(x))"], ["tl.static_print(plus.fn(n))"], ["plus = n", "tl.static_print(plus)"], ["tl.static_print(plus(*PAIR))"], ["tl.static_print(plus(FOUR), plus(PLAIN))"],
    ]:
        yield [*setup, *body]


def aggregates():
    """Classes under `_aggregate`, in definitions, constructions and uses."""
    yield from uses(["One(n)", "Pair2(n, f)", "Known(4)", "Empty()", "Outer(One(n), f)", "Ops(n)"])
    setup = [*TILES, "one = One(n)"]
    yield from bound(setup, variants("One(n)", [*VALUES, "one", "(n, f)", "x.dtype"], ["value"]))
    yield from bound(setup, variants("Pair2(n, f)", [*VALUES, "one"], ["left", "right"]))
    yield from bound(setup, variants("Known(4)", [*VALUES, "one"]))
    yield from bound(setup, variants("Outer(one, f)", [*VALUES, "one", "Pair2(n, f)"]))
    yield from bound(setup, variants("one.plus(1)", [*VALUES, "one"], ["by"]))
    yield from bound(setup, variants("one.static_plus(1, 2)", VALUES))
    for expression in ["o.value", "o.left", "o.plus(1)", "o.plus(o.value)", "o.chain(2).value", "o.constant()", "o.known()", "o.known() + 1", "tl.arange(0, o.known())", "o.missing", "o.missing()", "o.total", "o.LIMIT", "One.LIMIT", "One.static_plus(1, 2)", "o.static_plus(1, 2)",
                       "o.class_made(n)", "One.class_made(n)", "o.value.type", "o.type", "o.__class__", "One", "One.plus(o, 1)", "o.plus", "o == o", "o is o", "hasattr(o, 'value')", "hasattr(o, 'missing')", "isinstance(o, One)", "isinstance(o, Pair2)", "isinstance(o, tl.tensor)", "getattr(o, 'value')",
                       "o.recursive(3)", "o.early(n)", "o.replaced(1).value", "o.nothing()", "o.pair()", "o.pair()[1]", "(o, o)[1].value", "[o][0].plus(1)", "same(o).value", "pair_one(o)", "value_of(o)", "value_of(n)", "apart_value(o)", "value_of(one=o)", "o.apart(1)", "o._private()", "o.value.plus(1)",
                       "One(o.value).plus(1)", "One(value=o.value)", "One(*(n,))", "One(o).value.value", "One(One(n).value)", "o.host()", "o.twice_known()", "o.__init__(n)", "o.defaulted()", "o.defaulted(5)", "o.variadic(1, 2)", "tl.reduce(x, 0, o.static_plus)", "o.value[:, None]", "tl.load(o)", "tl.where(n > 1, o, o)", "o.__dict__", "Undecorated(n)", "Undecorated(n).value",
                       "Jitted(n)", "Jitted(n).value", "NoInit(n)", "NoInit(n).value", "NoInit(value=n).value", "Plain(n).value", "Semantic(n).value", "Unset(n)", "Unset(n).value", "Extra(n)", "Typed(n).value", "Typed(1).value", "Typed(tl.float32).value", "Pointer(p).ptr", "Pointer(n).ptr",
                       "Tupled((n, f)).values", "Tupled((n, f)).values[1]", "Tupled(n).values", "Dtyped(tl.float16).dtype", "tl.zeros((4,), Dtyped(tl.float16).dtype)", "Flag(True).flag", "Flag(n > 1).flag", "Descriptor(tl.make_tensor_descriptor(p, [n, 64], [64, 1], [16, 32])).desc", "Descriptor(tl.make_tensor_descriptor(p, [n, 64], [64, 1], [16, 32])).read(0)",
                       "Defaulted(n).value", "Defaulted(n).other", "Defaulted().value", "Known(4).SIZE", "Known(4).SIZE + 1", "tl.arange(0, Known(4).SIZE)", "Known(4).tile()", "Known(B).tile()", "Known(n).tile()", "Known(4).nested().SIZE", "Known(SIZE=4).SIZE", "Outer(o, f).inner.value", "Outer(o, f).inner.plus(1)", "Outer(o, f).sum()", "Outer(Outer(o, f), f)",
                       "Ops(n) + 1", "Ops(n) + Ops(n)", "1 + Ops(n)", "Ops(n)[0]", "len(Ops(n))", "Ops(n)(1)", "-Ops(n)", "Ops(n) == Ops(n)", "Ops(n) < Ops(n)", "Ops(n).value", "Ops(n) - 1", "Ops(n) * 2", "2 * Ops(n)", "Ops(n) @ Ops(n)", "~Ops(n)", "bool(Ops(n))", "Ops(n) and True", "Ops(n) if Ops(n) else 1"]:
        yield [*setup, "o = One(n)", f"r = {expression}", "tl.static_print(r)"]
    for body in [
        ["o = One(n)", "o.value = f", "tl.static_print(o.value)"], ["o = One(n)", "o.value += 1", "tl.static_print(o.value)"], ["o = One(n)", "o.other = 1"], ["o = One(n)", "for k in range(n):", "    o = One(o.value + 1)", "tl.static_print(o.value)"], ["o = One(n)", "for k in range(n):", "    o = One(f)", "tl.static_print(o.value)"],
        ["o = One(n)", "for k in range(n):", "    o = Pair2(n, f)", "tl.static_print(o)"], ["o = One(n)", "if n > 1:", "    o = One(n + 1)", "tl.static_print(o.value)"], ["o = One(n)", "if n > 1:", "    o = One(f)", "tl.static_print(o.value)"], ["o = One(n)", "if n > 1:", "    o = n", "tl.static_print(o)"], ["o = One(n) if n > 1 else One(3)", "tl.static_print(o)"],
        ["o = One(n) if n > 1 else One(n + 1)", "tl.static_print(o.value)"], ["o = One(n) if B > 1 else 0", "tl.static_print(o.value)"], ["o = Known(4)", "for k in range(n):", "    o = Known(4)", "tl.static_print(o.SIZE)"], ["o = Known(4)", "for k in range(n):", "    o = Known(8)", "tl.static_print(o.SIZE)"], ["o = Known(4)", "if n > 1:", "    o = Known(8)", "tl.static_print(o.SIZE)"],
        ["o = Known(4)", "if n > 1:", "    o = Known(4)", "tl.static_print(o.SIZE)"], ["o = Known(4)", "o = Known(8)", "tl.static_print(o.SIZE)"], ["o = Outer(One(n), f)", "for k in range(n):", "    o = Outer(One(o.inner.value + 1), o.scale)", "tl.static_print(o.inner.value)"], ["o = Outer(One(n), f)", "for k in range(n):", "    o = o.stepped()", "tl.static_print(o.inner.value)"],
        ["o = One(n)", "for k in range(n):", "    o = o.chain(k)", "tl.static_print(o.value)"], ["o = One(n)", "while o.value > 1:", "    o = One(o.value - 1)", "tl.static_print(o.value)"], ["o = One(n)", "tl.store(p, o.value)", "tl.static_print('done')"], ["o = One(n)", "o.store(p)", "tl.static_print('done')"], ["a, c = One(n)"], ["for v in One(n):", "    tl.static_print(v)"], ["o = One(n)", "k, o2 = n, o", "tl.static_print(o2.value)"],
        ["o = (One(n), 1)", "if n > 1:", "    o = (One(n + 1), 2)", "tl.static_print(o[0].value)"], ["o = One(n)", "if n > 1:", "    return", "tl.static_print(o.value)"], ["tl.static_print(chosen(One(n), One(3), n).value)"], ["tl.static_print(chosen(One(n), One(n + 3), n).value)"], ["tl.static_print(make_one(n).value)"], ["tl.static_print(make_one(n, 4))"], ["o = One(x)", "tl.static_print(o.value, tl.sum(o.value))"],
        ["o: tl.constexpr = One(n)", "tl.static_print(o)"], ["o: tl.constexpr = Known(4)", "tl.static_print(o.SIZE)"], ["o = aggregate_replace(One(n), value=f)", "tl.static_print(o.value)"], ["o = tl.core.aggregate_replace(One(n), value=f)", "tl.static_print(o.value)"], ["o = triton.language.core.aggregate_replace(One(n), wrong=f)", "tl.static_print(o.value)"],
    ]:
        yield [*setup, *body]
    fields = ["tl.tensor", "tl.constexpr", "tl.tuple", "tl.dtype", "tl.core.base_value", "int", "object", "tl.int32", "tl.pointer_type", "str", "'tl.tensor'", "tl.tensor | tl.constexpr", "tl.core.tensor_descriptor", "tl.core.tensor_descriptor_base", "None", "tl.tensor_descriptor"]
    initial = ["value", "tl.constexpr(value)", "1", "None", "(value, value)"]
    for field, value in itertools.product(fields, initial):
        definition = ["@aggregate", "class C:", f"    field: {field}", "    @triton.constexpr_function", "    def __init__(self, value):", f"        self.field = {value}"]
        for argument in ["n", "4", "(n, f)", "tl.float16"]:
            yield function("n, f", f"r = C({argument}).field", "tl.static_print(r)", before=definition)
    members = {
        "jit method": ["    @triton.jit", "    def get(self):", "        return self.value + 1"], "plain method": ["    def get(self):", "        return self.value"], "constexpr method": ["    @triton.constexpr_function", "    def get(self):", "        return 3"],
        "property": ["    @property", "    def get(self):", "        return self.value"], "static": ["    @staticmethod", "    @triton.jit", "    def get(v):", "        return v + 1"], "static plain": ["    @staticmethod", "    def get(v):", "        return v"], "class": ["    @classmethod", "    def get(cls):", "        return 3"],
        "jit static": ["    @triton.jit", "    @staticmethod", "    def get(v):", "        return v + 1"], "constant": ["    get = 3"], "constexpr": ["    get = tl.constexpr(3)"], "noinline": ["    @triton.jit(noinline=True)", "    def get(self):", "        return self.value + 1"], "const static": ["    @staticmethod", "    @triton.constexpr_function", "    def get(v):", "        return v + 1"],
        "builtin": ["    @tl.core.builtin", "    def get(self, _semantic=None):", "        return self.value"], "field default": ["    get: tl.constexpr = tl.constexpr(3)"], "two args": ["    @triton.jit", "    def get(self, by, times: tl.constexpr = 2):", "        return self.value * by + times"], "jit property": ["    @property", "    @triton.jit", "    def get(self):", "        return self.value"],
        "none": [], "lambda": ["    get = lambda self: 3"], "nested class": ["    class get:", "        pass"], "calls": ["    @triton.jit", "    def get(self):", "        return self.inner() + 1", "    @triton.jit", "    def inner(self):", "        return self.value"], "sets": ["    @triton.jit", "    def get(self):", "        self.value = 1", "        return self.value"],
    }
    for lines, access in itertools.product(members.values(), ["C(n).get", "C(n).get()", "C(n).get(1)", "C.get", "C.get(1)", "C.get()", "C(n).get(2, 3)", "C.get(C(n))", "C(n).get(by=n)"]):
        definition = ["@aggregate", "class C:", "    value: tl.tensor", "    @triton.constexpr_function", "    def __init__(self, value):", "        self.value = value", *lines]
        yield function("n, f", f"r = {access}", "tl.static_print(r)", before=definition)
    inits = {
        "plain": ["    def __init__(self, value):", "        self.value = value"], "jit": ["    @triton.jit", "    def __init__(self, value):", "        self.value = value"], "none": [], "builtin": ["    @tl.core.builtin", "    def __init__(self, value, _semantic=None):", "        self.value = value"], "no field": ["    @triton.constexpr_function", "    def __init__(self, value):", "        pass"],
        "semantic": ["    @triton.constexpr_function", "    def __init__(self, value, _semantic=None):", "        self.value = value"], "default": ["    @triton.constexpr_function", "    def __init__(self, value=None):", "        self.value = value if value is not None else tl.constexpr(1)"], "keyword": ["    @triton.constexpr_function", "    def __init__(self, *, value):", "        self.value = value"],
        "varargs": ["    @triton.constexpr_function", "    def __init__(self, *value):", "        self.value = value[0]"], "kwargs": ["    @triton.constexpr_function", "    def __init__(self, **values):", "        self.value = values['value']"], "if": ["    @triton.constexpr_function", "    def __init__(self, value):", "        if isinstance(value, tl.tensor):", "            self.value = value", "        else:", "            self.value = tl.constexpr(value)"],
        "assert": ["    @triton.constexpr_function", "    def __init__(self, value):", "        assert isinstance(value, tl.tensor)", "        self.value = value"], "extra": ["    @triton.constexpr_function", "    def __init__(self, value):", "        self.value = value", "        self.other = value"], "loop": ["    @triton.constexpr_function", "    def __init__(self, value):", "        for _ in range(2):", "            self.value = value"],
        "annotated": ["    @triton.constexpr_function", "    def __init__(self, value: tl.constexpr):", "        self.value = value"], "two": ["    @triton.constexpr_function", "    def __init__(self, value, other=3):", "        self.value = value"], "local": ["    @triton.constexpr_function", "    def __init__(self, value):", "        v = value", "        self.value = v"], "arithmetic": ["    @triton.constexpr_function", "    def __init__(self, value):", "        self.value = value + 1"],
        "return": ["    @triton.constexpr_function", "    def __init__(self, value):", "        self.value = value", "        return self"], "type": ["    @triton.constexpr_function", "    def __init__(self, value):", "        self.value = tl.constexpr(value.dtype)"],
    }
    for lines, construction in itertools.product(inits.values(), ["C(n)", "C(value=n)", "C(4)", "C()", "C(n, 4)", "C(tl.arange(0, 4))"]):
        for field in ["tl.tensor", "tl.constexpr"]:
            definition = ["@aggregate", "class C:", f"    value: {field}", *lines]
            yield function("n, f", f"r = {construction}.value", "tl.static_print(r)", before=definition)


GENERATORS = {"descriptors": descriptors, "block_pointers": block_pointers, "combine": combine, "named_tuples": named_tuples,
              "constexpr_functions": constexpr_functions, "apart": apart, "aggregates": aggregates}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*")
    parser.add_argument("--show", action="store_true", help="print why Triton refuses")
    parser.add_argument("--every", type=int, default=5, help="record one kernel in so many")
    parser.add_argument("--in", dest="folder", type=pathlib.Path, default=FOLDER)
    options = parser.parse_args()
    for family, generate in GENERATORS.items():
        if options.family and family not in options.family:
            continue
        path = options.folder / f"{family}.txt"
        own = (FOLDER / f"{family}.py").read_text()
        path.with_suffix(".py").write_text(own)
        prelude = probes.PRELUDE + own
        kernels = dict.fromkeys(tuple(lines) for lines in generate())
        kernels = [lines for lines in kernels
                   if zlib.crc32("\n".join(lines).encode()) % options.every == 0]
        known, notes = {}, {}
        for lines, said in probes.paragraphs(path.read_text()) if path.exists() else []:
            code = tuple(line for line in lines if not line.startswith("# differs: "))
            known[code] = said
            notes[code] = [line for line in lines if line.startswith("# differs: ")]
        said = probes.answers([probes.module_of(lines, prelude) for lines in kernels])
        texts = []
        for lines, (printed, cause) in zip(kernels, said):
            answers = {**known.get(lines, {}), probes.VERSION: "!" if printed is None else printed}
            if options.show and printed is None:
                print(f"{family}: {' | '.join(lines)[:150]}\n    {(cause.splitlines() or [''])[-1][:200]}")
            texts.append("\n".join([*lines, *notes.get(lines, []), *probes.recorded(answers)]))
        path.write_text("\n\n".join(texts) + "\n")
        print(f"Triton {triton.__version__}: {family}, {len(kernels)} kernels", flush=True)


if __name__ == "__main__":
    main()
