import typing


class Point(typing.NamedTuple):
    x: tl.tensor
    y: tl.tensor


@triton.jit(noinline=True)
def same_(v):
    return v


@triton.jit(noinline=True)
def plus(v):
    return v + 1


@triton.jit(noinline=True)
def none(v):
    return None


@triton.jit(noinline=True)
def nothing(v):
    v


@triton.jit(noinline=True)
def pair_(v):
    return v, v + 1


@triton.jit(noinline=True)
def nested(v):
    return (v, (v, v))


@triton.jit(noinline=True)
def constant(v):
    return 3


@triton.jit(noinline=True)
def tuple_constant(v):
    return 3, v


@triton.jit(noinline=True)
def stores(v):
    tl.store(v, 1)


@triton.jit(noinline=True)
def branching(v):
    if v > 1:
        w = v
    else:
        w = v + 1
    return w


@triton.jit(noinline=True)
def early(v):
    if v > 1:
        return v
    return v + 1


@triton.jit(noinline=True)
def looping(v):
    w = v
    for _ in range(3):
        w += v
    return w


@triton.jit(noinline=True)
def recursing(v):
    return recursing(v)


@triton.jit(noinline=True)
def prints(v):
    tl.static_print(v)
    return v


@triton.jit(noinline=True)
def const(B: tl.constexpr):
    return tl.zeros((B,), tl.float32)


@triton.jit(noinline=True)
def default(v, by=2):
    return v * by


@triton.jit(noinline=True)
def const_default(v, K: tl.constexpr = 2):
    return v * K


@triton.jit(noinline=True)
def ranged(n: tl.constexpr):
    return tl.arange(0, n)


@triton.jit(noinline=True)
def variadic(*vs):
    return vs[0]


@triton.jit(noinline=True)
def typed(v: tl.float32):
    return v


@triton.jit(noinline=True)
def typed_int(v: int):
    return v


@triton.jit(noinline=True)
def calls(v):
    return plus(plus(v))


@triton.jit(noinline=True)
def calls_inline(v):
    return same(v)


@triton.jit(noinline=True)
def asserts(v):
    tl.static_assert(v is not None)
    return v


@triton.jit(noinline=True)
def only_left(v, w=None):
    return v


@triton.jit(noinline=True)
def mixed(v):
    if v > 1:
        return 1.0
    return 1


@triton.jit(noinline=True)
def types(v):
    return v.dtype


@triton.jit(noinline=True)
def shape(v):
    return v.shape


@triton.jit(noinline=True)
def text(v):
    return "text"


@triton.jit(noinline=True)
def function_(v):
    return add


@triton.jit(noinline=True)
def first_of(v):
    return v[0]


@triton.jit(noinline=True)
def unused(v, w: tl.constexpr = 1):
    return tl.program_id(0)


@triton.jit(noinline=True)
def two(left, right):
    return left + right


@triton.jit
def applied(f, v):
    return f(v)


