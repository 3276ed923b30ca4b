"""Kernels in the shape in which a compiler of graphs writes them."""

import triton
import triton.language as tl

from somewhere import heuristics
from . import helpers
from .helpers import libdevice, math as tl_math


@heuristics.pointwise(
    size_hints={"x": 1024},
    triton_meta={"signature": {"in_ptr0": "*fp32", "out_ptr0": "*fp32", "xnumel": "i32", "XBLOCK": "constexpr"}},
)
@triton.jit
def fused_relu_exp_0(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex % 16
    x1 = helpers.floor_divide(xindex - 512, 16)
    tmp0 = tl.load(in_ptr0 + (xindex), xmask, other=helpers.if_masked(xmask, 0.0))
    tmp1 = tl.load(in_ptr1 + (x0), xmask, eviction_policy="evict_last").to(tl.float32)
    tmp2 = tmp0 + tmp1
    tmp3 = tl.full([1], 0, tl.int32)
    tmp4 = helpers.larger(tmp3, tmp2)
    tmp5 = libdevice.tanh(tmp4)
    tmp6 = tl_math.exp(tmp5)
    tl.store(out_ptr0 + (xindex), tmp6 + x1, xmask)

# tile: n = 1000
# tile: x, y, out = randn(n), randn(16, seed=1, dtype=float16), empty(n)
# tile: fused_relu_exp_0[(cdiv(n, 256),)](x, y, out, n, XBLOCK=256)
# tile: sum01 = maximum(x.view(n // 8, 8) + y.to(float32).view(2, 8)[0:1], 0.0)
# tile: assert allclose(out[0:8], exp(2 * sigmoid(2 * sum01[0]) - 1) - 32, rtol=1e-5)


@triton.jit
def fused_softmax_1(in_ptr0, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr):
    RBLOCK: tl.constexpr = helpers.next_power(128)
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rindex = tl.arange(0, RBLOCK)[None, :]
    rmask = rindex < rnumel
    tmp0 = tl.load(in_ptr0 + (rindex + rnumel * xindex), rmask & xmask, other=0.0)
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
    tmp2 = tl.where(rmask & xmask, tmp1, float("-inf"))
    tmp3, tmp4 = helpers.largest_at(tmp2, tl.broadcast_to(rindex, [XBLOCK, RBLOCK]), 1)
    tmp5 = helpers.exp(tmp0 - tmp3[:, None], False)
    tmp6 = tl.where(rmask & xmask, tl.broadcast_to(tmp5, [XBLOCK, RBLOCK]), 0)
    tmp7 = tmp5 / tl.sum(tmp6, 1)[:, None]
    tmp8 = helpers.any(tmp2 > 1e6, 1)[:, None].to(tl.int32)
    tmp9 = helpers.largest(tmp2, 1)[:, None] - tmp3[:, None]
    tl.store(out_ptr0 + (rindex + rnumel * xindex), tmp7 + tmp8 + tmp9, rmask & xmask)
    tl.store(out_ptr1 + xindex, tmp4[:, None], xmask)

# tile: x, out, at = randn(60, 100), empty(60, 100), zeros(60, dtype=int32)
# tile: fused_softmax_1[(cdiv(60, 8),)](x, out, at, 60, 100, XBLOCK=8)
# tile: assert allclose(out, softmax(x, 1), atol=1e-6)
# tile: assert allclose(at, argmax(x, 1))


@triton.jit
def fused_var_2(in_ptr0, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    mean = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    squares = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    count = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp0 = tl.load(in_ptr0 + (rindex + rnumel * xindex), xmask & rmask, other=0.0)
        tmp1 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
        mean_next, squares_next, count_next = helpers.running_moments(tmp1, mean, squares, count, roffset == 0)
        mean = tl.where(rmask & xmask, mean_next, mean)
        squares = tl.where(rmask & xmask, squares_next, squares)
        count = tl.where(rmask & xmask, count_next, count)
    tmp2, tmp3, tmp4 = helpers.moments(mean, squares, count, 1)
    tl.store(out_ptr0 + xindex, tmp2[:, None], xmask)
    tl.store(out_ptr1 + xindex, tmp3[:, None] / tmp4[:, None], xmask)

# tile: x, m, v = randn(40, 300), empty(40), empty(40)
# tile: fused_var_2[(5,)](x, m, v, 40, 300, XBLOCK=8, RBLOCK=64)
# tile: assert allclose(m, mean(x, 1), atol=1e-5)
# tile: assert allclose(v, mean(x * x, 1) - mean(x, 1) * mean(x, 1), atol=1e-4)


@triton.jit
def _combine(a, b):
    return a + b


@triton.jit
def fused_cumsum_3(in_ptr0, out_ptr0, ws_ptr, rnumel, RBLOCK: tl.constexpr):
    rindex = tl.program_id(0) * RBLOCK + tl.arange(0, RBLOCK)[:]
    rmask = rindex < rnumel
    tmp0 = tl.load(in_ptr0 + rindex, rmask, other=0.0)
    tmp1 = tl.broadcast_to(tmp0.to(tl.float32), [RBLOCK])
    tmp2 = ws_ptr.to(tl.pointer_type(tl.uint64))
    (tmp3,) = tl.associative_scan((tmp1,), 0, _combine)
    tmp4 = tl.reduce(tmp1, 0, _combine)
    tmp5 = helpers.prefix_of_blocks(
        tmp2, tmp4, tl.program_id(0), _combine, BITS=tl.uint32, PACK=tl.uint64
    )
    tl.store(out_ptr0 + rindex, _combine(tmp5, tmp3), rmask)

# tile: n = 500
# tile: x, out, ws = rand(n), empty(n), zeros(4, dtype=uint64)
# tile: fused_cumsum_3[(4,)](x, out, ws, n, RBLOCK=128)
# tile: assert allclose(out, cumsum(x, 0), rtol=1e-4)


@triton.jit
def fused_sort_4(in_ptr0, out_ptr0, out_ptr1, xnumel, XBLOCK: tl.constexpr):
    RBLOCK: tl.constexpr = 64
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rindex = tl.arange(0, RBLOCK)[None, :]
    tmp0 = tl.load(in_ptr0 + (rindex + RBLOCK * xindex), xmask, other=0.0)
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
    tmp2 = tl.broadcast_to(rindex.to(tl.int16), [XBLOCK, RBLOCK])
    tmp3, tmp4 = helpers.sort_with_index(tmp1, tmp2, 1)
    tl.store(out_ptr0 + (rindex + RBLOCK * xindex), tmp3, xmask)
    tl.store(out_ptr1 + (rindex + RBLOCK * xindex), tmp4.to(tl.int64), xmask)

# tile: x, out, at = randn(4, 64), empty(4, 64), zeros(4, 64, dtype=int64)
# tile: fused_sort_4[(2,)](x, out, at, 4, XBLOCK=2)
# tile: assert allclose(out, sort(x))
# tile: assert allclose(at[:, 63], argmax(x, 1))


@triton.jit
def fused_bucketize_5(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tmp1 = helpers.first_above(tmp0, in_ptr1, 10, tl.int32, False, None)
    tmp2 = helpers.as_tile(tmp1)
    tl.device_assert((0 <= tmp2) & (tmp2 <= 10), "index out of bounds")
    tl.store(out_ptr0 + xindex, tmp1, xmask)

# tile: x, bounds, out = rand(100) * 10.0, arange(10).to(float32), zeros(100, dtype=int32)
# tile: fused_bucketize_5[(1,)](x, bounds, out, 100, XBLOCK=128)
# tile: assert (out.to(float32) - x >= 0.0).min()
# tile: assert (out.to(float32) - x < 1.0).min()
