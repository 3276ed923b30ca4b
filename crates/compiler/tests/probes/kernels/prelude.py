import triton
import triton.language as tl
from triton.language.extra import libdevice

FOUR = tl.constexpr(4)
PLAIN = 4
TEXT = tl.constexpr("abc")
PAIR = tl.constexpr((2, 3))
DTYPE = tl.constexpr(tl.float16)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def larger(a, i, b, j):
    take = a > b
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def half(a):
    return a * 0.5


@triton.jit
def same(x):
    return x


@triton.jit
def pair(x):
    return x, x + 1


@triton.jit
def scaled(x, by=2, plus: tl.constexpr = 1):
    return x * by + plus


@triton.jit
def first(*xs):
    return xs[0]


@triton.jit(noinline=True)
def apart(x):
    return x + 1


@triton.constexpr_function
def twice(x):
    return x * 2


def plain(x):
    return x


