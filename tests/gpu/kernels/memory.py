"""Kernels that move memory, as model code has them: timed beside Triton, tuned for nothing."""

import triton
import triton.language as tl


@triton.jit
def add_rms_norm(x_ptr, residual_ptr, w_ptr, y_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    s = x + tl.load(residual_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(residual_ptr + row * n_cols + cols, s, mask=mask)
    wide = s.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    tl.store(y_ptr + row * n_cols + cols, (wide * scale).to(w.dtype) * w, mask=mask)


@triton.jit
def group_norm(x_ptr, y_ptr, w_ptr, b_ptr, group_size, n_groups, per_channel, eps,
               BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * group_size
    group = tl.program_id(0) % n_groups
    total, squares = 0.0, 0.0
    for at in range(0, group_size, BLOCK_SIZE):
        cols = at + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + start + cols, mask=cols < group_size, other=0.0).to(tl.float32)
        total += tl.sum(x)
        squares += tl.sum(x * x)
    mean = total / group_size
    scale = tl.rsqrt(squares / group_size - mean * mean + eps)
    for at in range(0, group_size, BLOCK_SIZE):
        cols = at + tl.arange(0, BLOCK_SIZE)
        mask = cols < group_size
        channel = group * (group_size // per_channel) + cols // per_channel
        x = tl.load(x_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        w, b = tl.load(w_ptr + channel, mask=mask), tl.load(b_ptr + channel, mask=mask)
        tl.store(y_ptr + start + cols, (x - mean) * scale * w + b, mask=mask)


@triton.jit
def softcap_rows(x_ptr, y_ptr, n_cols, cap, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols).to(tl.float32) / cap
    tanh = 2 * tl.sigmoid(2 * x) - 1
    tl.store(y_ptr + row * n_cols + cols, cap * tanh, mask=cols < n_cols)


@triton.jit
def packed_swiglu(x_ptr, y_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    gate = tl.load(x_ptr + row * 2 * n_cols + cols, mask=mask).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * n_cols + n_cols + cols, mask=mask).to(tl.float32)
    tl.store(y_ptr + row * n_cols + cols, gate * tl.sigmoid(gate) * up, mask=mask)


@triton.jit
def rope_pairs(x_ptr, cos_ptr, sin_ptr, n_heads, HALF: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.arange(0, HEADS)[:, None]
    at = tl.arange(0, HALF)[None, :]
    mask = heads < n_heads
    cos, sin = tl.load(cos_ptr + token * HALF + at), tl.load(sin_ptr + token * HALF + at)
    first = x_ptr + (token * n_heads + heads) * 2 * HALF + at
    a = tl.load(first, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(first + HALF, mask=mask, other=0.0).to(tl.float32)
    tl.store(first, a * cos - b * sin, mask=mask)
    tl.store(first + HALF, b * cos + a * sin, mask=mask)


@triton.jit
def quantize_groups(x_ptr, q_ptr, scale_ptr, GROUP: tl.constexpr, GROUPS: tl.constexpr):
    first = tl.program_id(0) * GROUPS
    groups = first + tl.arange(0, GROUPS)[:, None]
    at = groups * GROUP + tl.arange(0, GROUP)[None, :]
    x = tl.load(x_ptr + at).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=1) / 448.0, 1e-10)
    tl.store(q_ptr + at, (x / scale[:, None]).to(q_ptr.dtype.element_ty))
    tl.store(scale_ptr + first + tl.arange(0, GROUPS), scale)


@triton.jit
def dequantize(q_ptr, scale_ptr, y_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    q = tl.load(q_ptr + row * n_cols + cols, mask=mask)
    y = q.to(tl.float32) * tl.load(scale_ptr + row)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


# Whole blocks and, at the end of rows, parts of blocks; then so many that they are written in bulk.
# tile: q, scale, y = randint(-127, 128, (3, 2064), dtype=i8), randn(3), empty(3, 2064)
# tile: dequantize[(3, 3)](q, scale, y, 2064, BLOCK_SIZE=1024)
# tile: assert allclose(y, q.to(fp32) * scale.view(3, 1), rtol=1e-6)
#
# tile: q, scale, y = randint(-127, 128, (4100, 2064), dtype=i8), randn(4100), empty(4100, 2064)
# tile: dequantize[(4100, 3)](q, scale, y, 2064, BLOCK_SIZE=1024)
# tile: assert allclose(y, q.to(fp32) * scale.view(4100, 1), rtol=1e-6)


@triton.jit
def unpack_int4(q_ptr, scale_ptr, y_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    q = tl.load(q_ptr + row * n_cols + cols)
    pair = tl.join(q & 15, q >> 4).to(tl.float32) - 8.0
    y = tl.reshape(pair, (2 * BLOCK_SIZE,)) * tl.load(scale_ptr + row)
    both = 2 * tl.program_id(1) * BLOCK_SIZE + tl.arange(0, 2 * BLOCK_SIZE)
    tl.store(y_ptr + row * 2 * n_cols + both, y.to(y_ptr.dtype.element_ty))


@triton.jit
def transpose(x_ptr, y_ptr, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=inside)
    tl.store(y_ptr + cols[:, None] * n_rows + rows[None, :], x.T, mask=inside.T)


@triton.jit
def strided_copy(x_ptr, y_ptr, n, stride, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + at, tl.load(x_ptr + at * stride, mask=at < n), mask=at < n)


@triton.jit
def masked_mean(x_ptr, length_ptr, out_ptr, n_rows, n_cols, BLOCK_M: tl.constexpr,
                BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    batch = tl.program_id(1)
    length = tl.load(length_ptr + batch)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, length, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        x = tl.load(x_ptr + (batch * n_rows + rows[:, None]) * n_cols + cols[None, :],
                    mask=rows[:, None] < length, other=0.0)
        total += tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + batch * n_cols + cols, total / length)


@triton.jit
def divergence(p_ptr, q_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        p = tl.load(p_ptr + row * n_cols + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        q = tl.load(q_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        weight = tl.exp(p)
        total += tl.where(weight > 0, weight * (p - q), 0.0)
    tl.store(out_ptr + row, tl.sum(total))


@triton.jit
def row_argmax(x_ptr, value_ptr, index_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=float("-inf"))
    value, index = tl.max(x, axis=0, return_indices=True)
    tl.store(value_ptr + row, value)
    tl.store(index_ptr + row, index)


@triton.jit
def gated_scan(g_ptr, x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * n_cols + cols[None, :]
    g = tl.cumsum(tl.load(g_ptr + at).to(tl.float32), axis=0)
    x = tl.load(x_ptr + at).to(tl.float32)
    tl.store(out_ptr + at, x * tl.exp(g))
