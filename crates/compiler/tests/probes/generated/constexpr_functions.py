import enum
import functools
import math
import typing

HIDDEN = 5


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Size(typing.NamedTuple):
    rows: int
    columns: int


@triton.constexpr_function
def identity(v):
    return v


@triton.constexpr_function
def log2(v):
    return v.bit_length() - 1


@triton.constexpr_function
def kind(v):
    return type(v).__name__


@triton.constexpr_function
def described(v):
    return f"<{v}>"


@triton.constexpr_function
def pick(v):
    return tl.float16 if v == 3 else tl.float32


@triton.constexpr_function
def pick_type(v):
    return {8: tl.int8, 16: tl.int16}.get(v, tl.int64)


@triton.constexpr_function
def pair_of(v):
    return v, v


@triton.constexpr_function
def listed(v):
    return [v, v]


@triton.constexpr_function
def dictionary(v):
    return {"a": v}


@triton.constexpr_function
def text(v):
    return "text" + str(v)


@triton.constexpr_function
def bits(v):
    return v.primitive_bitwidth


@triton.constexpr_function
def raises(v):
    raise ValueError("no")


@triton.constexpr_function
def nothing(v):
    v


@triton.constexpr_function
def numpy_like(v):
    return math.ceil(v / 2)


@triton.constexpr_function
def closing(v):
    return v + HIDDEN


@triton.constexpr_function
def loops(v):
    total = 0
    for i in range(v):
        if i % 2:
            continue
        total += i
    while total > 100:
        total //= 2
        break
    return total


@triton.constexpr_function
def asserts(v):
    assert v == 3, "three"
    return v


@triton.constexpr_function
def calls(v):
    return twice(v) + plain(v)


@triton.constexpr_function
def recursive(v):
    return 1 if v <= 1 else v * recursive(v - 1)


@functools.lru_cache
def cached(v):
    return v + 1


@triton.constexpr_function
def wrapped(v):
    return cached(v)


@triton.constexpr_function
def default(v, by=2):
    return v * by


@triton.constexpr_function
def variadic(*vs):
    return len(vs)


@triton.constexpr_function
def named(**vs):
    return sorted(vs)


@triton.constexpr_function
def member(v):
    return v in (1, 2, 3, "abc", tl.float32)


@triton.constexpr_function
def checks(v):
    return isinstance(v, int)


@triton.constexpr_function
def types(v):
    return isinstance(v, tl.constexpr), isinstance(v, tl.tensor), isinstance(v, tuple), isinstance(v, tl.dtype)


@triton.constexpr_function
def made(v):
    return Size(v, v)


@triton.constexpr_function
def joined(v):
    return ", ".join(str(w) for w in (v, v))


@triton.constexpr_function
def formatted(v):
    return "%s-%s" % (v, "x")


@triton.constexpr_function
def sorted_(v):
    return tuple(sorted([3, v, 1]))


@triton.constexpr_function
def summed(v):
    return sum([v, v]) + min(v, 2) + max(1, v) + abs(-v)


@triton.constexpr_function
def maximum(v):
    return max(v)


@triton.constexpr_function
def is_power(v):
    return v > 0 and v & (v - 1) == 0


@triton.constexpr_function
def tensor_of(v):
    return tl.arange(0, v)


@triton.constexpr_function
def unwrap(v):
    return v.value


@triton.constexpr_function
def walrus(v):
    return (w := v) and w


@triton.constexpr_function
def tries(v):
    try:
        return v + 1
    except TypeError:
        return 0


@triton.constexpr_function
def comprehension(v):
    return tuple(w * 2 for w in range(v) if w != 1)


@triton.constexpr_function
def generator(v):
    return any(w == v for w in range(5)), all([v, v])


@triton.constexpr_function
def sets(v):
    return len({v, v}), {v: 1}[v]


@triton.constexpr_function
def slices(v):
    return v[::-1], v[0], v[-1:]


@triton.constexpr_function
def chained(v):
    return 0 < v < 5, v is not None


@triton.constexpr_function
def matches(v):
    match v:
        case 3:
            return "three"
        case _:
            return "other"


@triton.constexpr_function
def conditional(v):
    if v is None:
        return 0
    elif isinstance(v, str):
        return len(v)
    return v


@triton.constexpr_function
def global_(v):
    return FOUR + v


@triton.constexpr_function
def module_(v):
    return tl.float32 if v else tl.core.float16


@triton.constexpr_function
def two(left, right):
    return left - right


@triton.constexpr_function
def math_function(v):
    return math.sqrt(v)


@triton.jit
def jit_calls(v):
    return twice(v) + 1


@triton.jit
def applied(f, v):
    return f(v)


class Holder:
    @staticmethod
    @triton.constexpr_function
    def method(v):
        return v + 1

    @triton.constexpr_function
    def method2(self, v):
        return v + 2


HOLDER = tl.constexpr(Holder())


@triton.constexpr_function
def with_semantic(v, _semantic=None):
    return v, _semantic is None


