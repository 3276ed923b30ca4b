import collections
import typing


class Point(typing.NamedTuple):
    x: tl.tensor
    y: tl.tensor


Old = collections.namedtuple("Old", ["x", "y"])
Mixed = typing.NamedTuple("Mixed", [("x", tl.tensor), ("y", str)])


class Nested(typing.NamedTuple):
    x: Point
    y: tl.tensor


class Defaults(typing.NamedTuple):
    x: tl.tensor
    y: int = 3


class Methods(typing.NamedTuple):
    x: tl.tensor
    y: tl.tensor

    @property
    def total(self):
        return self.x

    @triton.jit
    def norm(self):
        return self.x + self.y


POINT = tl.constexpr(Point(2, 3))
PLAIN_POINT = Point(2, 3)


@triton.jit
def sum_of(t):
    return t.x + t.y


@triton.jit
def swap(t):
    return Point(t.y, t.x)


@triton.jit
def made(x, y):
    return Point(x, y)


@triton.jit(noinline=True)
def apart_sum(t):
    return t.x + t.y


@triton.jit
def chosen(t, u, n):
    if n > 3:
        return t
    else:
        return u


@triton.jit
def generic(t, u: tl.constexpr):
    return t.x + u.x


