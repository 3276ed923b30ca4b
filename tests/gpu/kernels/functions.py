"""Functions of numbers of 64 bits, which call CUDA's libdevice where PTX has no instruction, and of 32 bits,
which the compiler writes out."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


# tile: x, out = rand(1000, dtype=fp64, seed=0) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=0, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=1) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=1, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=2) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=2, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=3) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=3, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=4) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=4, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=5) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=5, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=6) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=6, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=7) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=7, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=8) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=8, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=9) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=9, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=10) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=10, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=11) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=11, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=12) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=12, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=13) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=13, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=14) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=14, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=15) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=15, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=16) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=16, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=17) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=17, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=18) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=18, BLOCK=128)

# tile: x, out = rand(1000, dtype=fp64, seed=19) * 3 + 0.1, empty(1000, dtype=fp64)
# tile: functions[(8,)](x, out, 1000, FUNCTION=19, BLOCK=128)


@triton.jit
def functions(x_ptr, out_ptr, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1.0)
    if FUNCTION == 0:
        y = tl.exp(x)
    elif FUNCTION == 1:
        y = tl.exp2(x)
    elif FUNCTION == 2:
        y = tl.log(x)
    elif FUNCTION == 3:
        y = tl.log2(x)
    elif FUNCTION == 4:
        y = tl.sin(x)
    elif FUNCTION == 5:
        y = tl.cos(x)
    elif FUNCTION == 6:
        y = tl.sqrt(x)
    elif FUNCTION == 7:
        y = tl.rsqrt(x)
    elif FUNCTION == 8:
        y = tl.erf(x)
    elif FUNCTION == 9:
        y = tl.floor(x)
    elif FUNCTION == 10:
        y = libdevice.tanh(x)
    elif FUNCTION == 11:
        y = libdevice.pow(x, x)
    elif FUNCTION == 12:
        y = libdevice.atan2(x, x * x)
    elif FUNCTION == 13:
        y = libdevice.log1p(x)
    elif FUNCTION == 14:
        y = libdevice.expm1(x)
    elif FUNCTION == 15:
        y = libdevice.asin(x / 4)
    elif FUNCTION == 16:
        y = libdevice.cosh(x)
    elif FUNCTION == 17:
        y = libdevice.rint(x)
    elif FUNCTION == 18:
        y = libdevice.fmod(x, x * x)
    elif FUNCTION == 19:
        y = tl.fma(x, x, x)
    tl.store(out_ptr + at, y, mask=at < n)


# tile: x, out = randn(4000, seed=1) * 30, empty(4000, 11)
# tile: functions_32[(8,)](x, out, 4000, BLOCK=512)

# tile: x, out = randn(4000, seed=2), empty(4000, 11)
# tile: functions_32[(8,)](x, out, 4000, BLOCK=512)


@triton.jit
def functions_32(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A row of results for each number, none of them larger than a few hundred."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1.0)
    out = out_ptr + at * 11
    positive = tl.abs(x) + 1e-3
    tl.store(out, libdevice.exp(tl.minimum(x, 5.0)), mask=at < n)
    tl.store(out + 1, libdevice.expm1(tl.minimum(x, 5.0)), mask=at < n)
    tl.store(out + 2, libdevice.tanh(x), mask=at < n)
    tl.store(out + 3, libdevice.log1p(positive), mask=at < n)
    tl.store(out + 4, libdevice.log10(positive), mask=at < n)
    tl.store(out + 5, tl.log2(positive), mask=at < n)
    tl.store(out + 6, tl.sin(x), mask=at < n)
    tl.store(out + 7, tl.cos(x), mask=at < n)
    # Between its poles.
    tl.store(out + 8, libdevice.tan(tl.sin(x)), mask=at < n)
    tl.store(out + 9, libdevice.round(x), mask=at < n)
    tl.store(out + 10, libdevice.round(0.49999997 + tl.floor(x)), mask=at < n)
