"""Exponentials that are no normal numbers, numbers rounded to 16 bits that are used as they are stored, and all
numbers of 8 bits made wider."""

import triton
import triton.language as tl


# tile: n = 4000
# tile: x, out = rand(n) * 14 - 94, empty(n)
# tile: small_exponentials[(cdiv(n, 256),)](x, out, n, BLOCK=256)
# tile: assert allclose(out, exp(x + 60), rtol=0.001)
@triton.jit
def small_exponentials(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    # By exp(60), to compare numbers that are normal.
    tl.store(out_ptr + offsets, tl.exp(x) * 1.1420073898156842e26, mask=mask)


# tile: n = 3000
# tile: x, halves, rest = randn(n), empty(n, dtype=bf16), empty(n)
# tile: rounded[(cdiv(n, 512),)](x, halves, rest, n, BLOCK=512)

# tile: n = 3000
# tile: x, halves, rest = randn(n), empty(n, dtype=fp16), empty(n)
# tile: rounded[(cdiv(n, 512),)](x, halves, rest, n, BLOCK=512)
@triton.jit
def rounded(x_ptr, halves_ptr, rest_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    halves = x.to(halves_ptr.dtype.element_ty)
    tl.store(halves_ptr + offsets, halves, mask=mask)
    tl.store(rest_ptr + offsets, x - halves.to(tl.float32), mask=mask)


# tile: x, halves, singles = arange(0, 256).to(u8), empty(256, dtype=fp16), empty(256)
# tile: widened[(1,)](x, halves, singles, FP8="fp8e5", BLOCK=256, num_warps=1)

# tile: x, halves, singles = arange(0, 256).to(u8), empty(256, dtype=fp16), empty(256)
# tile: widened[(1,)](x, halves, singles, FP8="fp8e4nv", BLOCK=256, num_warps=1)
@triton.jit
def widened(x_ptr, halves_ptr, singles_ptr, FP8: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    if FP8 == "fp8e5":
        x = x.to(tl.float8e5, bitcast=True)
    else:
        x = x.to(tl.float8e4nv, bitcast=True)
    tl.store(halves_ptr + at, x.to(tl.float16))
    tl.store(singles_ptr + at, x.to(tl.float32))
