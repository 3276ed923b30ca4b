"""Kernels that go through rows, records and pictures, in ways that models and their training need."""

import triton
import triton.language as tl


@triton.jit
def add_norm_quantize(x_ptr, residual_ptr, w_ptr, q_ptr, scale_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(residual_ptr + row * n_cols + cols, x, mask=mask)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x) / n_cols + eps) * w
    scale = tl.maximum(tl.max(tl.abs(y)), 1e-8) / 127.0
    q = y / scale
    q = tl.where(q >= 0, q + 0.5, q - 0.5)
    tl.store(q_ptr + row * n_cols + cols, q.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@triton.jit
def smoothed_loss(logits_ptr, target_ptr, loss_ptr, z_ptr, n_cols, smoothing, BLOCK_SIZE: tl.constexpr):
    """Cross entropy with smoothed labels in one pass, then its gradient in place."""
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * n_cols
    target = tl.load(target_ptr + row)
    top, total, plain = float("-inf"), 0.0, 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits_ptr + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(x))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new))
        plain += tl.sum(tl.where(cols < n_cols, x, 0.0))
        top = new
    lse = top + tl.log(total)
    right = tl.load(logits_ptr + target).to(tl.float32)
    loss = (1 - smoothing) * (lse - right) + smoothing * (lse - plain / n_cols)
    tl.debug_barrier()
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits_ptr + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        grad = tl.exp(x - lse) - smoothing / n_cols
        grad = tl.where(cols == target, grad - (1 - smoothing), grad)
        tl.store(logits_ptr + cols, grad, mask=cols < n_cols)
    tl.store(loss_ptr + row, loss)
    tl.store(z_ptr + row, lse)


@triton.jit
def merge_moments(mean_a, square_a, count_a, mean_b, square_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, square_a + square_b + delta * delta * count_a * share, count


@triton.jit
def moments(x_ptr, mean_ptr, var_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mean = tl.zeros((BLOCK_SIZE,), tl.float32)
    square = tl.zeros((BLOCK_SIZE,), tl.float32)
    count = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        new_count = count + mask.to(tl.float32)
        delta = tl.where(mask, x - mean, 0.0)
        mean += delta / tl.maximum(new_count, 1.0)
        square += delta * tl.where(mask, x - mean, 0.0)
        count = new_count
    m, s, c = tl.reduce((mean, square, count), 0, merge_moments)
    tl.store(mean_ptr + row, m)
    tl.store(var_ptr + row, s / c)


@triton.jit
def norm_rows(x_ptr, w_ptr, b_ptr, y_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Layer norm of several short rows at once."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, COLS)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1)[:, None] / n_cols
    centered = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, 1)[:, None] / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=cols < n_cols).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < n_cols).to(tl.float32)
    tl.store(y_ptr + rows * n_cols + cols, centered * scale * w + b, mask=mask)


# tile: dy, x, w, dx, dw = randn(8, 304), randn(8, 304, seed=1), randn(304, seed=2), empty(8, 304), zeros(304)
# tile: norm_gradients[(8,)](dy, x, w, dx, dw, 304, 1e-6, BLOCK_SIZE=512)
# tile: scale = rsqrt(mean(x * x, 1).view(8, 1) + 1e-6)
# tile: assert allclose(dw, sum(dy * x * scale, 0), rtol=1e-4, atol=1e-4)
# tile: assert allclose(dx, (dy * w - x * scale * mean(dy * w * x * scale, 1).view(8, 1)) * scale, rtol=1e-4, atol=1e-4)
@triton.jit
def norm_gradients(dy_ptr, x_ptr, w_ptr, dx_ptr, dw_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    """Gradients of RMS normalization; what all rows give those of the weights is added up in memory."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    dy = tl.load(dy_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 0) / n_cols + eps)
    x *= scale
    tl.atomic_add(dw_ptr + cols, dy * x, mask=mask)
    dy *= w
    dx = (dy - x * (tl.sum(dy * x, 0) / n_cols)) * scale
    tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_rows(x_ptr, y_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Softmax of many short rows at once."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, COLS)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(y_ptr + rows * n_cols + cols, e / tl.sum(e, 1)[:, None], mask=mask)


@triton.jit
def column_moments(x_ptr, mean_ptr, var_ptr, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Mean and variance of columns, as batch norm takes them."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    squares = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, 0) / n_rows
    tl.store(mean_ptr + cols, mean, mask=cols < n_cols)
    tl.store(var_ptr + cols, tl.sum(squares, 0) / n_rows - mean * mean, mask=cols < n_cols)


@triton.jit
def adam(p_ptr, g_ptr, m_ptr, v_ptr, lr, beta1, beta2, eps, decay, step, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = at < n
    g = tl.load(g_ptr + at, mask=mask).to(tl.float32)
    m = tl.load(m_ptr + at, mask=mask) * beta1 + g * (1 - beta1)
    v = tl.load(v_ptr + at, mask=mask) * beta2 + g * g * (1 - beta2)
    p = tl.load(p_ptr + at, mask=mask).to(tl.float32)
    step = step.to(tl.float32)
    m_hat = m / (1 - tl.exp(step * tl.log(beta1)))
    v_hat = v / (1 - tl.exp(step * tl.log(beta2)))
    p -= lr * (m_hat / (tl.sqrt(v_hat) + eps) + decay * p)
    tl.store(p_ptr + at, p.to(p_ptr.dtype.element_ty), mask=mask)
    tl.store(m_ptr + at, m, mask=mask)
    tl.store(v_ptr + at, v, mask=mask)


@triton.jit
def rotate_pairs(x_ptr, cos_ptr, sin_ptr, y_ptr, n_heads, HALF: tl.constexpr):
    """Rotary embedding of neighbors."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    half, at = tl.arange(0, HALF), tl.arange(0, 2 * HALF)
    base = (token * n_heads + head) * 2 * HALF
    x = tl.load(x_ptr + base + at).to(tl.float32)
    a, b = tl.split(tl.reshape(x, (HALF, 2)))
    cos, sin = tl.load(cos_ptr + token * HALF + half), tl.load(sin_ptr + token * HALF + half)
    y = tl.join(a * cos - b * sin, a * sin + b * cos)
    tl.store(y_ptr + base + at, tl.reshape(y, (2 * HALF,)))


@triton.jit
def cache_rows(k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slot_ptr, width, BLOCK_SIZE: tl.constexpr):
    """Puts the keys and values of tokens where a table of slots says."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_ptr + token)
    if slot < 0:
        return
    at = tl.arange(0, BLOCK_SIZE)
    mask = at < width
    k = tl.load(k_ptr + token * width + at, mask=mask)
    v = tl.load(v_ptr + token * width + at, mask=mask)
    tl.store(k_cache_ptr + slot * width + at, k.to(k_cache_ptr.dtype.element_ty), mask=mask)
    tl.store(v_cache_ptr + slot * width + at, v.to(v_cache_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gather_columns(x_ptr, index_ptr, y_ptr, n_cols, n_out, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = at < n_out
    index = tl.load(index_ptr + row * n_out + at, mask=mask, other=0)
    tl.store(y_ptr + row * n_out + at, tl.load(x_ptr + row * n_cols + index, mask=mask), mask=mask)


@triton.jit
def scatter_add(x_ptr, index_ptr, y_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    to = tl.load(index_ptr + row)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask)
    tl.atomic_add(y_ptr + to * n_cols + cols, x, mask=mask, sem="relaxed")


@triton.jit
def scatter_max(x_ptr, index_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = at < n
    to = tl.load(index_ptr + at, mask=mask, other=0)
    tl.atomic_max(y_ptr + to, tl.load(x_ptr + at, mask=mask, other=0), mask=mask)


@triton.jit
def stencil_2d(x_ptr, y_ptr, height, width, BLOCK_Y: tl.constexpr, BLOCK_X: tl.constexpr):
    ys = tl.program_id(1) * BLOCK_Y + tl.arange(0, BLOCK_Y)[:, None]
    xs = tl.program_id(0) * BLOCK_X + tl.arange(0, BLOCK_X)[None, :]
    inside = (ys < height) & (xs < width)
    at = x_ptr + ys * width + xs
    middle = tl.load(at, mask=inside, other=0.0)
    left = tl.load(at - 1, mask=inside & (xs > 0), other=0.0)
    right = tl.load(at + 1, mask=inside & (xs + 1 < width), other=0.0)
    above = tl.load(at - width, mask=inside & (ys > 0), other=0.0)
    below = tl.load(at + width, mask=inside & (ys + 1 < height), other=0.0)
    tl.store(y_ptr + ys * width + xs, 0.5 * middle + 0.125 * (left + right + above + below), mask=inside)


@triton.jit
def stencil_3d(x_ptr, y_ptr, depth, height, width, BLOCK_SIZE: tl.constexpr):
    z, y = tl.program_id(2), tl.program_id(1)
    xs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    plane = height * width
    at = x_ptr + z.to(tl.int64) * plane + y * width + xs
    inside = xs < width
    total = -6.0 * tl.load(at, mask=inside, other=0.0)
    total += tl.load(at - 1, mask=inside & (xs > 0), other=0.0)
    total += tl.load(at + 1, mask=xs + 1 < width, other=0.0)
    total += tl.load(at - width, mask=inside & (y > 0), other=0.0)
    total += tl.load(at + width, mask=inside & (y + 1 < height), other=0.0)
    total += tl.load(at - plane, mask=inside & (z > 0), other=0.0)
    total += tl.load(at + plane, mask=inside & (z + 1 < depth), other=0.0)
    tl.store(y_ptr + z.to(tl.int64) * plane + y * width + xs, total, mask=inside)


@triton.jit
def max_pool(x_ptr, y_ptr, height, width, BLOCK_SIZE: tl.constexpr):
    """2 by 2 windows, by strided loads."""
    plane, y = tl.program_id(2).to(tl.int64), tl.program_id(1)
    xs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = xs < width // 2
    at = x_ptr + plane * height * width + 2 * y * width + 2 * xs
    low = tl.maximum(tl.load(at, mask=mask), tl.load(at + 1, mask=mask))
    high = tl.maximum(tl.load(at + width, mask=mask), tl.load(at + width + 1, mask=mask))
    tl.store(y_ptr + (plane * (height // 2) + y) * (width // 2) + xs, tl.maximum(low, high), mask=mask)


@triton.jit
def upsample(x_ptr, y_ptr, height, width, BLOCK_SIZE: tl.constexpr):
    """Twice the size, each value between its four neighbors."""
    plane, y = tl.program_id(2).to(tl.int64), tl.program_id(1)
    xs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = xs < 2 * width
    fy = tl.maximum((y.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    fx = tl.maximum((xs.to(tl.float32) + 0.5) * 0.5 - 0.5, 0.0)
    y0, x0 = fy.to(tl.int32), fx.to(tl.int32)
    y1, x1 = tl.minimum(y0 + 1, height - 1), tl.minimum(x0 + 1, width - 1)
    wy, wx = fy - y0.to(tl.float32), fx - x0.to(tl.float32)
    x_ptr += plane * height * width
    a = tl.load(x_ptr + y0 * width + x0, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + y0 * width + x1, mask=mask).to(tl.float32)
    c = tl.load(x_ptr + y1 * width + x0, mask=mask).to(tl.float32)
    d = tl.load(x_ptr + y1 * width + x1, mask=mask).to(tl.float32)
    top, bottom = a + (b - a) * wx, c + (d - c) * wx
    tl.store(y_ptr + (plane * 2 * height + y) * 2 * width + xs, top + (bottom - top) * wy, mask=mask)


@triton.jit
def permute_copy(x_ptr, y_ptr, a, b, c, stride_a, stride_b, stride_c, n, BLOCK_SIZE: tl.constexpr):
    """Any order of three axes, by division and in 64 bits."""
    at = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    k = at % c
    j = (at // c) % b
    i = at // (c * b)
    x = tl.load(x_ptr + i * stride_a + j * stride_b + k * stride_c, mask=at < n)
    tl.store(y_ptr + at, x, mask=at < n)


@triton.jit
def row_statistics(x_ptr, sum_ptr, max_ptr, norm_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0)
    tl.store(sum_ptr + row, tl.sum(x))
    tl.store(max_ptr + row, tl.max(x))
    tl.store(norm_ptr + row, tl.sqrt(tl.sum((x * x).to(tl.float64))))


@triton.jit
def random_integers(out_ptr, normal_ptr, seed, n, BLOCK_SIZE: tl.constexpr):
    at = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    a, b, c, d = tl.randint4x(seed, at)
    for part in tl.static_range(4):
        value = a if part == 0 else (b if part == 1 else (c if part == 2 else d))
        tl.store(out_ptr + part * n + at, value.to(tl.int32, bitcast=True), mask=at < n)
    tl.store(normal_ptr + at, tl.rand(seed + 1, at), mask=at < n)


@triton.jit
def crossings(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """How many signs change, whether any value is large, and the parity of all bits."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    after = tl.load(x_ptr + row * n_cols + cols + 1, mask=cols + 1 < n_cols, other=0.0)
    changes = tl.sum(((x * after) < 0).to(tl.int32))
    bits = tl.xor_sum(x.to(tl.int32, bitcast=True), axis=0)
    large = tl.max((tl.abs(x) > 3.5).to(tl.int32))
    tl.store(out_ptr + row * 3, changes)
    tl.store(out_ptr + row * 3 + 1, bits)
    tl.store(out_ptr + row * 3 + 2, large)


@triton.jit
def route(x_ptr, weight_ptr, expert_ptr, n_experts, K: tl.constexpr, EXPERTS: tl.constexpr, ROWS: tl.constexpr):
    """The K best experts of each token, one after the other, and their weights."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    experts = tl.arange(0, EXPERTS)
    x = tl.load(x_ptr + rows[:, None] * n_experts + experts[None, :],
                mask=experts[None, :] < n_experts, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 1)[:, None])
    p = e / tl.sum(e, 1)[:, None]
    for k in tl.static_range(K):
        best, at = tl.max(p, 1, return_indices=True)
        tl.store(weight_ptr + rows * K + k, best)
        tl.store(expert_ptr + rows * K + k, at)
        p = tl.where(experts[None, :] == at[:, None], -1.0, p)


# tile: x, y = randn(64), zeros(64)
# tile: shift[(1,)](x, y, 62, BLOCK=64)
# tile: assert allclose(y[1:63], x[:62])
# tile: assert y[0] == 0
# tile: assert y[63] == 0


@triton.jit
def shift(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """One comparison without a sign finds what lies before the row's start and after its end."""
    at = tl.arange(0, BLOCK)
    inside = (at - 1).to(tl.uint32) < n.to(tl.uint32)
    x = tl.load(x_ptr + at - 1, mask=inside, other=0.0)
    tl.store(y_ptr + at, x, mask=inside)
