"""Kernels for every operation and every type, with the operands at which types differ.

values.py runs them. `patterns` is the array from which `values` of the prelude takes operands: for
each type the pairs of `SPECIAL` numbers, and random ones, as bits.
"""

import itertools

import numpy as np

#: Differences that are the interpreter's, by what the kernel contains, with the reason.
KNOWN = [
    (r"tie_break_left=False", "of equal elements any is right"),
    (r"dtype=tl.int64|\(x\.to\(tl.u?int\d+\)\)", "NumPy converts NaN and what does not fit as the processor does; a GPU saturates"),
    (r"associative_scan\(\w+, -1", "the interpreter scans along a negative axis by the wrong neighbor"),
    (r"(?<![\w.])(min|max)\(", "the interpreter calls Python's own `min` and `max`, which choose by truth"),
    (r"isinstance\(", "in the interpreter tuples are Python's, and named tuples of their classes"),
    (r"p\.to\(tl\.u?int64\)|cast\(p, tl\.int64\)", "addresses are not the same"),
    (r"float8|bfloat16", "NumPy has no such type: the interpreter computes with the bits as integers, and converts by cutting off"),
    (r"rtz|rtne", "the interpreter rounds halves up, and small numbers to other than zero"),
    (r"mask=.*sem=", "what lanes that a mask leaves out give is undefined"),
    (r"(?s)atomic_add\(.*\nw\[", "the bits of a NaN that a sum gives are the processor's"),
    (r"= (tl\.constexpr\(1\) is 1|DTYPE is tl\.float16)$", "the interpreter asks whether two of Python's objects are one"),
    (r"\bnot \(i > 2\)|\bp and True", "the interpreter applies Python's own `not` and `and`"),
    (r"swizzle2d\(i, i, 4, 4, 2\)", "a remainder of a division by zero is undefined"),
    (r"(?s)^( *)for i in range\(.*^\1tl\.static_print\(i\)", "a loop variable has no value after its loop, where Python keeps the last"),
]

FLOATS = {"float16": (16, 5, 10), "bfloat16": (16, 8, 7), "float32": (32, 8, 23), "float64": (64, 11, 52),
          "float8e5": (8, 5, 2), "float8e4nv": (8, 4, 3)}
INTEGERS = {f"{sign}int{bits}": bits for bits in (8, 16, 32, 64) for sign in ("", "u")}
TYPES = [*INTEGERS, *FLOATS]
#: Special numbers of a type, whose pairs are the operands.
SPECIAL = 32
COUNT = SPECIAL * SPECIAL

PRELUDE = f"""
@triton.jit
def value(w, KIND: tl.constexpr, FROM: tl.constexpr, OPERAND: tl.constexpr):
    bits = tl.load(w + FROM * {2 * COUNT} + OPERAND * {COUNT} + tl.arange(0, {COUNT}))
    if KIND.primitive_bitwidth == 8:
        return bits.to(tl.int8).to(KIND, bitcast=True)
    elif KIND.primitive_bitwidth == 16:
        return bits.to(tl.int16).to(KIND, bitcast=True)
    elif KIND.primitive_bitwidth == 32:
        return bits.to(tl.int32).to(KIND, bitcast=True)
    else:
        return bits.to(KIND, bitcast=True)

"""


def special(kind):
    """The bits of the special numbers of a type."""
    rng = np.random.default_rng(TYPES.index(kind))
    if kind in INTEGERS:
        bits = INTEGERS[kind]
        edges = [0, 1, 2, 3, 5, 7, bits - 1, bits, bits // 2, 100, -1, -2, -3, -5, -7, -100]
        edges += [1 << bits - 1, (1 << bits - 1) - 1, (1 << bits - 1) + 1, (1 << bits) - 2]
        found = edges + [int(number) for number in rng.integers(-(1 << 31), 1 << 31, SPECIAL - len(edges))]
        return [number % (1 << bits) for number in found]
    bits, exponent, mantissa = FLOATS[kind]
    top, one = ((1 << exponent) - 1) << mantissa, ((1 << exponent - 1) - 1) << mantissa
    if kind == "float8e4nv":
        positive = [0, 1, 7, 8, one, one + 1, one + 8, one - 8, 0x7E, 0x7F, 0x7D, one + 12]
    else:
        positive = [0, 1, (1 << mantissa) - 1, 1 << mantissa, one, one + 1, one + (1 << mantissa), one - (1 << mantissa),
                    top, top - 1, top | 1 << mantissa - 1, one + (3 << mantissa - 1)]
    random = [int(number) for number in rng.integers(one - (min(4, exponent) << mantissa), one + (min(6, exponent) << mantissa), SPECIAL - 2 * len(positive))]
    negative = [number | 1 << bits - 1 for number in positive]
    return positive + negative + [number | (at % 2) << bits - 1 for at, number in enumerate(random)]


def patterns():
    """Both operands of every pair of special numbers, for every type in turn."""
    rows = []
    for kind in TYPES:
        bits = np.array(special(kind), np.uint64)
        rows += [np.repeat(bits, SPECIAL), np.tile(bits, SPECIAL)]
    return np.concatenate(rows).astype(np.uint64).view(np.int64)


def decoded(kind, bits):
    """The numbers of a type that NumPy lacks, as `float32`."""
    bits = bits.astype(np.int64)
    if kind == "bf16":
        return ((bits & 0xFFFF) << 16).astype(np.uint32).view(np.float32)
    if kind == "fp8e5":
        return ((bits & 0xFF) << 8).astype(np.uint16).view(np.float16).astype(np.float32)
    sign, exponent, mantissa = bits >> 7 & 1, bits >> 3 & 15, bits & 7
    size = np.where(exponent == 0, mantissa * 2.0 ** -9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    size = np.where((exponent == 15) & (mantissa == 7), np.nan, size)
    return np.where(sign == 1, -size, size).astype(np.float32)


def of(kind, *expressions, second=None):
    """Kernels that keep expressions of `x` and `y`, operands of a type."""
    second = second or kind
    for expression in expressions:
        yield [f"x = value(w, tl.{kind}, {TYPES.index(kind)}, 0)",
               f"y = value(w, tl.{second}, {TYPES.index(second)}, 1)",
               f"tl.static_print({expression})"]


UNARY = ["-x", "tl.abs(x)"]
BINARY = ["x + y", "x - y", "x * y", "x < y", "x <= y", "x > y", "x >= y", "x == y", "x != y",
          "tl.minimum(x, y)", "tl.maximum(x, y)", "tl.where(x > y, x, y)"]
INTEGRAL = ["x // tl.where(y == 0, 1, y)", "x % tl.where(y == 0, 1, y)", "x / y", "x & y", "x | y", "x ^ y", "~x", "x << (y & 7)", "x >> (y & 7)", "tl.cdiv(x, tl.where(y == 0, 1, y))"]
FLOATING = ["x / y", "x % y", "tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)",
            "tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)", "tl.clamp(x, -y, y)", "tl.clamp(x, tl.minimum(x, y), tl.maximum(x, y))",
            "tl.clamp(x, -1.0, 1.5)", "tl.clamp(x, -1.0, 1.5, propagate_nan=tl.PropagateNan.ALL)",
            "tl.exp(x)", "tl.floor(x)", "tl.ceil(x)", "tl.sqrt(x)", "tl.rsqrt(x)", "tl.sqrt_rn(x)", "tl.div_rn(x, y)", "tl.fdiv(x, y)",
            "tl.exp2(x)", "tl.log(x)", "tl.log2(x)", "tl.sin(x)", "tl.cos(x)", "tl.erf(x)", "tl.sigmoid(x)", "tl.fma(x, y, x)"]
ROWS = ["tl.sum(x, 1)", "tl.max(x, 1)", "tl.min(x, 1)", "tl.argmax(x, 1)", "tl.argmin(x, 1)", "tl.max(x, 1, return_indices=True)",
        "tl.min(x, 1, return_indices=True)", "tl.max(x)", "tl.min(x)", "tl.sum(x)", "tl.argmax(x, 0)", "tl.argmin(x, 0)",
        "tl.cumsum(x, 1)", "tl.cumsum(x, 0, reverse=True)", "tl.cumprod(x, 1)", "tl.sort(x)", "tl.sort(x, descending=True)", "tl.sort(x, 1, True)",
        "tl.bitonic_merge(x)", "tl.bitonic_merge(x, descending=True)",
        "tl.flip(x)", "tl.flip(x, 0)", "tl.topk(x, 4)", "tl.topk(x, 8, 1)", "tl.topk(x, 1)", "tl.topk(x, 32)", "tl.topk(x, 4, descending=False)", "tl.reduce(x, 1, add)", "tl.associative_scan(x, 1, add)",
        "tl.associative_scan(x, 0, add, reverse=True)", "tl.trans(x)", "tl.reshape(x, (16, 64))", "tl.permute(x, (1, 0))",
        "tl.join(x, x)", "tl.split(tl.reshape(x, (32, 16, 2)))", "tl.interleave(x, x)", "tl.cat(x, x, dim=0)",
        "tl.gather(x, (x == x).to(tl.int32) + 3, 1)", "tl.gather(x, (x == x).to(tl.int32) + 3, 0)", "tl.reduce(x, 0, tl.standard._elementwise_max)",
        "tl.expand_dims(x, 1)", "tl.broadcast_to(x[:, None, :], (32, 2, 32))", "tl.softmax(x)", "tl.softmax(x, 1)",
        "tl.argmax(x, 1, tie_break_left=False)", "tl.argmin(x, 1, tie_break_left=False)", "tl.max(x, 1, keep_dims=True)", "tl.sum(x, 0, dtype=tl.int64)",
        "tl.sum(x, 0, dtype=tl.float32)", "tl.cumsum(x, 0, dtype=tl.float32)", "tl.xor_sum(x, 1)", "tl.reduce_or(x, 1)", "tl.max(x, 1, return_indices=True, return_indices_tie_break_left=False)"]


def conversions():
    """Every conversion, with both roundings, and every reinterpretation of bits."""
    for source, target in itertools.product(TYPES, [*TYPES, "int1"]):
        yield from of(source, f"x.to(tl.{target})")
        if source in FLOATS and target in INTEGERS and source != "bfloat16" and "float8" not in source:
            low = 0 if target.startswith("u") else -100
            yield from of(source, f"tl.where((x > {low}) & (x < 100), x, 1.5).to(tl.{target})")
    for source, target in itertools.product(FLOATS, FLOATS):
        if FLOATS[target][0] < FLOATS[source][0]:
            yield from of(source, f"x.to(tl.{target}, fp_downcast_rounding='rtne')", f"x.to(tl.{target}, fp_downcast_rounding='rtz')")
    for source, target in itertools.product(TYPES, TYPES):
        if source != target and (FLOATS.get(source, [INTEGERS.get(source)])[0]) == (FLOATS.get(target, [INTEGERS.get(target)])[0]):
            yield from of(source, f"x.to(tl.{target}, bitcast=True)")


def atomics():
    """What atomics return and leave, on tiles, under masks and on scalars."""
    for kind, operation in itertools.product(["int32", "uint32", "int64", "uint64", "float32", "float16", "float64", "bfloat16"],
                                             ["add", "max", "min", "and", "or", "xor", "xchg", "cas"]):
        old = "x, y" if operation == "cas" else "y"
        pointer = f"(w + {2 * COUNT * TYPES.index(kind)}).to(tl.pointer_type(tl.{kind}), bitcast=True)"
        for extra in ["", ", mask=tl.arange(0, 1024) % 3 != 0"]:
            if operation != "cas" or not extra:
                yield [*next(of(kind, "x"))[:2], f"a = {pointer} + tl.arange(0, {COUNT})",
                       f"old = tl.atomic_{operation}(a, {old}{extra})",
                       f"tl.static_print({'tl.where(tl.arange(0, 1024) % 3 != 0, old, x)' if extra else 'old'}, tl.load(a))"]
        scalar = "y_, y_ + 1" if operation == "cas" else "y_"
        yield [*next(of(kind, "x"))[:2], f"a = {pointer}", "y_ = tl.sum(tl.where(tl.arange(0, 1024) == 7, y, 0).to(y.dtype)).to(y.dtype)",
               f"tl.static_print(tl.atomic_{operation}(a, {scalar}), tl.load(a))"]


def kernels():
    """Kernels, as lines of a module."""
    for lines in bodies():
        yield ["@triton.jit", "def kernel(w, p, q, h, n, m, f):", *(f"    {line}" for line in lines)]


def bodies():
    """The lines of each kernel."""
    for kind in TYPES:
        if kind.startswith("float8"):
            continue
        yield from of(kind, *BINARY, *UNARY)
        if kind in INTEGERS:
            yield from of(kind, *INTEGRAL)
            if INTEGERS[kind] >= 32:
                yield from of(kind, "tl.umulhi(x, y)")
        else:
            yield from of(kind, *FLOATING)
        for row in ROWS:
            operand, _, last = next(of(kind, row))
            square = "x = tl.reshape(x, (32, 32))"
            yield [operand, square, last]
            if kind in FLOATS:
                yield [operand, square + ".T", "x = tl.where(x == x, x, 0.0).to(x.dtype)", last]
                yield [operand, square + ".T", last]
    for first, second in itertools.product(TYPES, TYPES):
        if first != second and "float8" not in first + second:
            yield from of(first, "x + y", "x < y", "tl.where(x > 0, x, y)", second=second)
    yield from conversions()
    yield from atomics()
    yield from others()


def others():
    """Products, histograms, random numbers, memory beyond its bounds, and the device library."""
    for kind, precision in itertools.product(["float16", "bfloat16", "float32", "int8", "float8e5", "float8e4nv", "float64"], ["None", "'ieee'", "'tf32'", "'tf32x3'"]):
        if precision == "None" or kind == "float32":
            setup = [f"a = ((tl.arange(0, 16)[:, None] * 7 + tl.arange(0, 32)[None, :] * 3) % 13 - 6).to(tl.{kind})",
                     f"c = ((tl.arange(0, 32)[:, None] * 5 + tl.arange(0, 16)[None, :] * 11) % 17 - 8).to(tl.{kind})"]
            yield [*setup, f"tl.static_print(tl.dot(a, c, input_precision={precision}))"]
            if kind not in ("int8", "float64"):
                yield [*setup, f"tl.static_print(tl.dot(a, c, acc=tl.full((16, 16), 0.5, tl.float32), input_precision={precision}))",
                       "tl.static_print(tl.dot(a, c, out_dtype=tl.float16))" if kind == "float16" else "tl.static_print(a)"]
    for bins in (8, 16, 64):
        yield [f"x = (tl.arange(0, 256) * 7) % {bins}", f"tl.static_print(tl.histogram(x, {bins}))", f"tl.static_print(tl.histogram(x, {bins}, mask=x > 2))",
               f"tl.static_print(tl.histogram(x, {bins}, mask=x < 0))"]
    offsets = "tl.arange(0, 64)"
    for seed in ["n", "7", "2**40", "-1", "m"]:
        yield [f"o = {offsets}", f"tl.static_print(tl.rand({seed}, o))", f"tl.static_print(tl.randint({seed}, o))", f"tl.static_print(tl.randn({seed}, o))"]
        yield [f"o = {offsets}", f"tl.static_print(tl.rand4x({seed}, o))", f"tl.static_print(tl.randint4x({seed}, o))", f"tl.static_print(tl.randn4x({seed}, o))"]
        yield [f"o = {offsets}", f"tl.static_print(tl.rand({seed}, o, n_rounds=4))", f"tl.static_print(tl.rand({seed}, o.to(tl.int64)))", f"tl.static_print(tl.rand({seed}, n))"]
    yield [f"o = {offsets}", "a, c, d, e = tl.philox(n, o, o + 1, o + 2, o + 3)", "tl.static_print(a)", "tl.static_print(c)", "tl.static_print(d)", "tl.static_print(e)"]
    yield [f"o = {offsets}", "a, c, d, e = tl.philox(n, o.to(tl.uint64), o.to(tl.uint64), o.to(tl.uint64), o.to(tl.uint64))", "tl.static_print(a)", "tl.static_print(c)", "tl.static_print(d)"]
    yield [f"o = {offsets}", "tl.static_print(tl.uint_to_uniform_float((o * 987654321).to(tl.uint32)))", "tl.static_print(tl.uint_to_uniform_float(o * 987654321))"]
    yield ["i, j = tl.swizzle2d(tl.arange(0, 32), tl.arange(0, 32), 8, 4, 3)", "tl.static_print(i)", "tl.static_print(j)"]
    for padding, kind, check in itertools.product(["''", "'zero'", "'nan'"], ["float32", "float16", "int32"], ["(0,)", "(1,)", "(0, 1)", "()"]):
        for at in ["[0, 0]", "[8, 24]", "[-4, 16]", "[30, -8]"]:
            if kind == "int32" and padding == "'nan'":
                continue
            base = {"float32": "p", "float16": "h", "int32": "q"}[kind]
            yield [f"b = tl.make_block_ptr({base} + 4096, [29, 37], [64, 1], {at}, [16, 32], [1, 0])",
                   f"tl.static_print(tl.load(b, boundary_check={check}, padding_option={padding}))",
                   "b = tl.advance(b, [7, -3])", f"tl.static_print(tl.load(b, boundary_check={check}, padding_option={padding}))",
                   f"tl.store(b, tl.full((16, 32), 3, tl.{kind}), boundary_check={check})"]
    for padding, at, base in itertools.product(["zero", "nan"], ["[0, 0]", "[8, 24]", "[-4, 16]", "[30, -8]", "[100, 0]"], ["p", "h"]):
        yield [f"d = tl.make_tensor_descriptor({base} + 4096, [29, 37], [64, 1], [16, 32], padding_option='{padding}')",
               f"tl.static_print(d.load({at}))", f"d.store({at}, d.load([0, 0]) + 1)"]
        yield [f"d = tl.make_tensor_descriptor({base} + 4096, [29, 64], [64, 1], [1, 32], padding_option='{padding}')",
               f"tl.static_print(d.gather(tl.arange(0, 32) * 3 - 4, {at[1:].split(',')[0]} * 8))"]
    for function in ["sqrt", "rsqrt", "cbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
                     "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv", "lgamma", "tgamma", "floor", "ceil", "trunc", "rint", "round", "nearbyint",
                     "abs", "isnan", "isinf", "signbit", "isfinited", "finitef", "j0", "j1", "y0", "normcdf", "sinpi", "cospi", "rcbrt", "ilogb", "logb", "float_as_int"]:
        for kind in ["float32", "float64"]:
            yield from of(kind, f"libdevice.{function}(x)")
    for function in ["pow", "fmod", "atan2", "hypot", "copysign", "fdim", "nextafter", "remainder", "div_rn", "div_rz", "add_rn", "mul_rz", "ldexp"]:
        for kind in ["float32", "float64"]:
            yield from of(kind, f"libdevice.{function}(x, y)")
