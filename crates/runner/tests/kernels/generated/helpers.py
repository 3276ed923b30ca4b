"""Device functions that generated kernels call."""

import math as pymath

from .compat import _log2, libdevice, math, tl, triton

LOG2_E: tl.constexpr = tl.constexpr(pymath.log2(pymath.e))


@triton.jit
def as_tile(x):
    return x + tl.zeros((1,), tl.int1)


@triton.jit
def holds_floats(x):
    return as_tile(x).dtype.is_floating()


@triton.jit
def floor_divide(a, b):
    quotient = a // b
    inexact = (a % b != 0) & ((a < 0) != (b < 0))
    return tl.where(inexact, quotient - 1, quotient)


@triton.jit
def larger(a, b):
    takes_a = a > b
    if holds_floats(a):
        takes_a |= a != a
    return tl.where(takes_a, a, b)


@triton.jit
def largest(x, axis):
    return tl.reduce(x, axis, larger)


@triton.jit
def _larger_at(a, at_a, b, at_b):
    takes_a = (a > b) | ((a == b) & (at_a < at_b))
    if holds_floats(a):
        takes_a |= (a != a) & (b == b)
    return tl.where(takes_a, a, b), tl.where(takes_a, at_a, at_b)


@triton.jit
def largest_at(x, index, axis):
    return tl.reduce((x, index), axis, _larger_at)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def any(x, axis):
    return tl.reduce(x, axis, _either)


@triton.jit
def exp(x, FAST: tl.constexpr):
    if FAST:
        return math.exp2(x * LOG2_E)
    else:
        return libdevice.exp(x)


@triton.jit
def running_moments(x, mean, squares, count, first):
    if first:
        next_count = tl.full(count.shape, 1, count.dtype)
        next_mean = x
        next_squares = tl.zeros_like(squares)
    else:
        distance = x - mean
        next_count = count + 1
        next_mean = mean + distance / next_count
        next_squares = squares + distance * (x - next_mean)
    return next_mean, next_squares, next_count


@triton.jit
def _join_moments(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    distance = mean_b - mean_a
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    squares = squares_a + squares_b + distance * distance * count_a * share
    return mean_a + distance * share, squares, count


@triton.jit
def moments(mean, squares, count, axis):
    return tl.reduce((mean, squares, count), axis, _join_moments)


@triton.jit
def first_above(values, bounds_ptr, COUNT: int, index_type: tl.dtype, right: "bool", order_ptr):
    low = tl.zeros(values.shape, dtype=index_type)
    high = tl.full(values.shape, COUNT, dtype=index_type)
    span = COUNT + 1
    while span > 1:
        middle = (high + low) // 2
        inside = (middle < COUNT).logical_and(middle >= 0)
        at = middle if order_ptr is None else tl.load(order_ptr + middle, mask=inside, other=0)
        bound = tl.load(bounds_ptr + at, mask=inside, other=0)
        if right:
            above = values >= bound
        else:
            above = values > bound
        low = tl.where(above & inside, middle + 1, low)
        high = tl.where(above, high, middle)
        span = (span + 1) // 2
    return low


@triton.jit
def pack(value, flag, BITS: tl.constexpr, PACK: tl.constexpr):
    BITS = tl.core._unwrap_if_constexpr(BITS)
    raw = value.to(BITS, bitcast=True).to(PACK)
    return flag.to(PACK) | (raw << BITS.primitive_bitwidth)


@triton.jit
def unpack(packed, TYPE, BITS):
    TYPE = tl.core._unwrap_if_constexpr(TYPE)
    BITS = tl.core._unwrap_if_constexpr(BITS)
    return (packed >> BITS.primitive_bitwidth).to(BITS).to(TYPE, bitcast=True)


@triton.jit
def prefix_of_blocks(scratch, total, block, combine, BITS: tl.constexpr, PACK: tl.constexpr):
    """What the blocks before this one hold together; each publishes its own part first."""
    TYPE = total.dtype
    if block > 0:
        own = pack(total, tl.full(total.shape, 1, BITS), BITS, PACK)
        tl.atomic_xchg(scratch + block, own, sem="relaxed")
    prefix = tl.zeros([], TYPE)
    found = False
    target = block - 1
    while target >= 0:
        flag = tl.full([], 0, BITS)
        packed = tl.full([], 0, PACK)
        while flag == 0:
            packed = tl.atomic_add(scratch + target, 0, sem="relaxed")
            flag = packed.to(BITS)
        part = unpack(packed, TYPE, BITS)
        if found:
            prefix = combine(part, prefix)
        else:
            prefix = part
            found = True
        if flag == 2:
            target = -1
        else:
            target = target - 1
    if found:
        inclusive = combine(prefix, total)
    else:
        inclusive = total
    packed = pack(inclusive, tl.full([], 2, BITS), BITS, PACK)
    tl.atomic_xchg(scratch + block, packed, sem="relaxed")
    return prefix


@triton.jit
def _exchange(x, index, flip, AXIS: tl.constexpr, COUNT: tl.constexpr):
    outer: tl.constexpr = x.numel >> COUNT
    shape: tl.constexpr = [outer * 2**AXIS, 2, 2 ** (COUNT - AXIS - 1)]
    integer = tl.core.get_int_dtype(bitwidth=x.dtype.primitive_bitwidth, signed=True)
    bits = tl.reshape(x.to(integer, bitcast=True), shape)
    is_right = tl.arange(0, 2)[None, :, None].to(integer)
    is_left = (1 - is_right).to(integer)
    left = tl.broadcast_to(tl.sum(bits * is_left, 1).to(integer)[:, None, :], shape)
    right = tl.broadcast_to(tl.sum(bits * is_right, 1).to(integer)[:, None, :], shape)
    left_x = tl.reshape(left, x.shape).to(x.dtype, bitcast=True)
    right_x = tl.reshape(right, x.shape).to(x.dtype, bitcast=True)
    places = tl.reshape(index, shape)
    left_at = tl.reshape(
        tl.broadcast_to(tl.sum(places * is_left.to(places.dtype), 1)[:, None, :], shape), x.shape
    )
    right_at = tl.reshape(
        tl.broadcast_to(tl.sum(places * is_right.to(places.dtype), 1)[:, None, :], shape), x.shape
    )
    swaps = left_x > right_x
    if holds_floats(left_x):
        swaps = swaps | (left_x != left_x)
    swaps = (swaps ^ flip).to(tl.int1)
    both = tl.reshape(left, x.shape) ^ tl.reshape(right, x.shape)
    chosen = x.to(integer, bitcast=True) ^ tl.where(swaps, both, tl.zeros_like(both))
    new_index = index ^ tl.where(swaps, left_at ^ right_at, tl.zeros_like(index))
    return chosen.to(x.dtype, bitcast=True), new_index


@triton.jit
def _alternating(x, STAGE: tl.constexpr, COUNT: tl.constexpr):
    outer: tl.constexpr = x.numel >> COUNT
    shape: tl.constexpr = [outer * 2 ** (COUNT - 1 - STAGE), 2, 2**STAGE]
    return tl.reshape(tl.broadcast_to(tl.arange(0, 2)[None, :, None], shape), x.shape)


@triton.jit
def sort_with_index(x, index, dim: tl.constexpr = None):
    x, index = tl.broadcast(x, index)
    axis: tl.constexpr = len(x.shape) - 1 if dim is None else dim
    tl.static_assert(axis == len(x.shape) - 1, "sorts the last axis only")
    count: tl.constexpr = _log2(x.shape[axis])
    for stage in tl.static_range(1, count + 1):
        if stage < count:
            flip = _alternating(x, stage, count)
        else:
            flip = False
        for step in tl.static_range(stage):
            x, index = _exchange(x, index, flip, step + (count - stage), count)
    return x, index


def builtin(function):
    """Marks a function that Triton runs while it compiles."""

    def wrapper(*args, _semantic, **kwargs):
        return function(*args, **kwargs)

    wrapper.__triton_builtin__ = True
    return wrapper


@builtin
def next_power(n: tl.constexpr, *, _semantic=None) -> tl.constexpr:
    assert isinstance(n, tl.constexpr)
    return tl.constexpr(triton.next_power_of_2(n.value))


@builtin
def if_masked(mask, value, *, _semantic=None):
    if isinstance(mask, tl.constexpr) and mask.value is None:
        return tl.constexpr(None)
    return value
