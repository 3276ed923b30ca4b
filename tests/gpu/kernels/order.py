"""Scans, sorts and reductions along axes of every size, with the work dealt to registers, lanes and
warps in different ways."""

import triton
import triton.language as tl


# tile: x, out = randn(1, 1024, seed=1), empty(1, 1024)
# tile: sort_kernel[(1,)](x, out, ROWS=1, COLS=1024, KEEP=1024, DESCENDING=False, num_warps=4)

# tile: x, out = randn(1, 1024, seed=2), empty(1, 16)
# tile: sort_kernel[(1,)](x, out, ROWS=1, COLS=1024, KEEP=16, DESCENDING=True, num_warps=4)

# tile: x, out = randn(1, 4096, dtype=fp16, seed=3), empty(1, 1, dtype=fp16)
# tile: sort_kernel[(1,)](x, out, ROWS=1, COLS=4096, KEEP=1, DESCENDING=True, num_warps=8)

# tile: x, out = randn(1, 512, seed=4), empty(1, 256)
# tile: sort_kernel[(1,)](x, out, ROWS=1, COLS=512, KEEP=256, DESCENDING=True, num_warps=4)

# tile: x, out = randn(64, 64, seed=5), empty(64, 64)
# tile: sort_kernel[(1,)](x, out, ROWS=64, COLS=64, KEEP=64, DESCENDING=True, num_warps=4)

# tile: x, out = randn(64, 128, seed=6), empty(64, 8)
# tile: sort_kernel[(1,)](x, out, ROWS=64, COLS=128, KEEP=8, DESCENDING=True, num_warps=8)

# tile: x, out = randn(4, 8, seed=7), empty(4, 2)
# tile: sort_kernel[(1,)](x, out, ROWS=4, COLS=8, KEEP=2, DESCENDING=True, num_warps=4)

# tile: x, out = randint(-100, 100, (8, 256), dtype=i64, seed=8), empty(8, 32, dtype=i64)
# tile: sort_kernel[(1,)](x, out, ROWS=8, COLS=256, KEEP=32, DESCENDING=True, num_warps=2)

# tile: x, out = randint(-100, 100, (2, 512), dtype=i8, seed=9), empty(2, 512, dtype=i8)
# tile: sort_kernel[(1,)](x, out, ROWS=2, COLS=512, KEEP=512, DESCENDING=False, num_warps=1)
@triton.jit
def sort_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, KEEP: tl.constexpr,
                DESCENDING: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    x = tl.load(x_ptr + rows * COLS + tl.arange(0, COLS)[None, :])
    if KEEP == COLS:
        y = tl.sort(x, descending=DESCENDING)
    else:
        y = tl.topk(x, KEEP)
    tl.store(out_ptr + rows * KEEP + tl.arange(0, KEEP)[None, :], y.to(out_ptr.dtype.element_ty))


@triton.jit
def add(a, b):
    return a + b


# tile: x, out = randint(0, 9, (1, 2048), seed=1), zeros(1, 2048, dtype=i32)
# tile: scan_kernel[(1,)](x, out, ROWS=1, COLS=2048, AXIS=1, REVERSE=False, num_warps=4)

# tile: x, out = randint(0, 9, (1, 2048), seed=2), zeros(1, 2048, dtype=i32)
# tile: scan_kernel[(1,)](x, out, ROWS=1, COLS=2048, AXIS=1, REVERSE=True, num_warps=8)

# tile: x, out = randint(0, 9, (128, 64), seed=3), zeros(128, 64, dtype=i32)
# tile: scan_kernel[(1,)](x, out, ROWS=128, COLS=64, AXIS=0, REVERSE=False, num_warps=4)

# tile: x, out = randint(0, 9, (128, 64), seed=4), zeros(128, 64, dtype=i32)
# tile: scan_kernel[(1,)](x, out, ROWS=128, COLS=64, AXIS=0, REVERSE=True, num_warps=8)

# tile: x, out = randint(0, 9, (32, 128), seed=5), zeros(32, 128, dtype=i32)
# tile: scan_kernel[(1,)](x, out, ROWS=32, COLS=128, AXIS=1, REVERSE=False, num_warps=4)

# tile: x, out = randint(0, 9, (4, 16), seed=6), zeros(4, 16, dtype=i32)
# tile: scan_kernel[(1,)](x, out, ROWS=4, COLS=16, AXIS=1, REVERSE=True, num_warps=4)

# tile: x, out = randint(0, 9, (1, 8192), seed=7), zeros(1, 8192, dtype=i32)
# tile: scan_kernel[(1,)](x, out, ROWS=1, COLS=8192, AXIS=1, REVERSE=False, num_warps=16)
@triton.jit
def scan_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, AXIS: tl.constexpr,
                REVERSE: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    y = tl.associative_scan(tl.load(x_ptr + at), AXIS, add, reverse=REVERSE)
    tl.store(out_ptr + at, y.to(tl.int32))


@triton.jit
def follow(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


# tile: a, b, out = rand(16, 256, seed=1), randn(16, 256, seed=2), empty(16, 256)
# tile: recurrence_kernel[(1,)](a, b, out, ROWS=16, COLS=256, REVERSE=False, num_warps=4)

# tile: a, b, out = rand(2, 1024, seed=3), randn(2, 1024, seed=4), empty(2, 1024)
# tile: recurrence_kernel[(1,)](a, b, out, ROWS=2, COLS=1024, REVERSE=True, num_warps=4)

# tile: a, b, out = rand(1, 32, seed=5), randn(1, 32, seed=6), empty(1, 32)
# tile: recurrence_kernel[(1,)](a, b, out, ROWS=1, COLS=32, REVERSE=False, num_warps=2)
@triton.jit
def recurrence_kernel(a_ptr, b_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr,
                      REVERSE: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    pair = (tl.load(a_ptr + at), tl.load(b_ptr + at))
    _, h = tl.associative_scan(pair, 1, follow, reverse=REVERSE)
    tl.store(out_ptr + at, h)


# tile: x, out, at = randn(1, 4096, seed=1), empty(1), empty(1, dtype=i32)
# tile: reduce_kernel[(1,)](x, out, at, ROWS=1, COLS=4096, num_warps=16)

# tile: x, out, at = randn(1, 4096, seed=2), empty(1), empty(1, dtype=i32)
# tile: reduce_kernel[(1,)](x, out, at, ROWS=1, COLS=4096, num_warps=32)

# tile: x, out, at = randn(16, 512, seed=3), empty(16), empty(16, dtype=i32)
# tile: reduce_kernel[(1,)](x, out, at, ROWS=16, COLS=512, num_warps=16)

# tile: x, out, at = randn(128, 8, seed=4), empty(128), empty(128, dtype=i32)
# tile: reduce_kernel[(1,)](x, out, at, ROWS=128, COLS=8, num_warps=4)
@triton.jit
def reduce_kernel(x_ptr, out_ptr, at_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    x = tl.load(x_ptr + rows[:, None] * COLS + tl.arange(0, COLS)[None, :])
    tl.store(out_ptr + rows, tl.sum(x, 1))
    tl.store(at_ptr + rows, tl.argmax(x, 1))


# tile: out = empty(16, 64, dtype=i32)
# tile: joined_kernel[(1,)](out, 1024)
# tile: assert allclose(out.to(fp32), arange(1024).reshape(16, 64).to(fp32))

# tile: out = zeros(16, 64, dtype=i32)
# tile: joined_kernel[(1,)](out, 1000, num_warps=8)
@triton.jit
def joined_kernel(out_ptr, n):
    """Numbers from 0, of which neighbors along a row come from four tiles and are written one by one."""
    at = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 16)[None, :] * 4
    rows = tl.reshape(tl.join(tl.join(at, at + 2), tl.join(at + 1, at + 3)), (16, 64))
    places = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out_ptr + places, rows, mask=places < n)


# tile: x, out = randn(8, 64), empty(8, 64)
# tile: turned_kernel[(1,)](x, out, ROWS=8, COLUMNS=64, num_warps=4)
# tile: assert allclose(out.sum(1), x.sum(1), rtol=1e-4, atol=1e-4)

# tile: x, out = randn(4, 512, dtype=fp16), empty(4, 512, dtype=fp16)
# tile: turned_kernel[(1,)](x, out, ROWS=4, COLUMNS=512, num_warps=8)

# tile: x, out = randint(0, 100, (16, 32), dtype=i8), empty(16, 32, dtype=i8)
# tile: turned_kernel[(1,)](x, out, ROWS=16, COLUMNS=32, num_warps=1)

# tile: x, out = randint(0, 100, (64, 4), dtype=i64), empty(64, 4, dtype=i64)
# tile: turned_kernel[(1,)](x, out, ROWS=64, COLUMNS=4, num_warps=2)
@triton.jit
def turned_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows backwards, which warps hold whole or in parts."""
    places = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + places, tl.flip(tl.load(x_ptr + places), 1))
