"""Kernels that go along sequences: scans, sorts, attention of unusual shapes, and chains of products."""

import triton
import triton.language as tl


@triton.jit
def selective_scan(u_ptr, delta_ptr, a_ptr, b_ptr, c_ptr, d_ptr, y_ptr, length, dim,
                   STATE: tl.constexpr, BLOCK_D: tl.constexpr):
    """A state of STATE numbers for each channel, step by step."""
    batch = tl.program_id(1).to(tl.int64)
    channels = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    states = tl.arange(0, STATE)
    a = tl.load(a_ptr + channels[:, None] * STATE + states[None, :])
    d = tl.load(d_ptr + channels)
    h = tl.zeros((BLOCK_D, STATE), tl.float32)
    for t in range(length):
        row = batch * length + t
        delta = tl.load(delta_ptr + row * dim + channels).to(tl.float32)
        delta = tl.where(delta > 20.0, delta, tl.log(1.0 + tl.exp(delta)))
        u = tl.load(u_ptr + row * dim + channels).to(tl.float32)
        b = tl.load(b_ptr + row * STATE + states).to(tl.float32)
        c = tl.load(c_ptr + row * STATE + states).to(tl.float32)
        h = h * tl.exp(delta[:, None] * a) + (delta * u)[:, None] * b[None, :]
        y = tl.sum(h * c[None, :], axis=1) + d * u
        tl.store(y_ptr + row * dim + channels, y)


@triton.jit
def follow(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def gated_recurrence(a_ptr, x_ptr, h_ptr, length, dim, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    """A linear recurrence along time, a block of steps at a time by an associative scan."""
    batch = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    carry = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, length, BLOCK_T):
        rows = batch * length + start + tl.arange(0, BLOCK_T)
        at = rows[:, None] * dim + cols[None, :]
        a = tl.load(a_ptr + at).to(tl.float32)
        x = tl.load(x_ptr + at).to(tl.float32)
        decay, h = tl.associative_scan((a, x), 0, follow)
        h += decay * carry[None, :]
        tl.store(h_ptr + at, h)
        last = tl.arange(0, BLOCK_T) == BLOCK_T - 1
        carry = tl.sum(tl.where(last[:, None], h, 0.0), axis=0)


@triton.jit
def within(flag_a, value_a, flag_b, value_b):
    return flag_a | flag_b, tl.where(flag_b != 0, value_b, value_a + value_b)


@triton.jit
def segment_sums(x_ptr, start_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """Running sums that begin anew at each flag."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    flag = tl.load(start_ptr + row * n_cols + cols, mask=mask, other=0).to(tl.int32)
    _, y = tl.associative_scan((flag, x), 0, within)
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


@triton.jit
def argsort(x_ptr, value_ptr, index_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """Pairs of a number and its place, sorted as integers of 64 bits."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=float("inf"))
    bits = x.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    pair = tl.sort((key << 32) | cols.to(tl.int64))
    bits = (pair >> 32).to(tl.int32)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    tl.store(value_ptr + row * n_cols + cols, bits.to(tl.float32, bitcast=True), mask=cols < n_cols)
    tl.store(index_ptr + row * n_cols + cols, (pair & 0xFFFFFFFF).to(tl.int32), mask=cols < n_cols)


@triton.jit
def top_p(x_ptr, bound_ptr, count_ptr, n_cols, p, BLOCK_SIZE: tl.constexpr):
    """The least probability among those that make up `p`, and how many there are."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    sorted_p = tl.sort(e / tl.sum(e), descending=True)
    before = tl.cumsum(sorted_p, 0) - sorted_p
    kept = before < p
    tl.store(bound_ptr + row, tl.min(tl.where(kept, sorted_p, 2.0)))
    tl.store(count_ptr + row, tl.sum(kept.to(tl.int32)))


@triton.jit
def pick(x_ptr, noise_ptr, out_ptr, n_cols, temperature, BLOCK_SIZE: tl.constexpr):
    """A sample by the Gumbel trick, over a row in parts."""
    row = tl.program_id(0).to(tl.int64)
    best, at = float("-inf"), 0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=float("-inf")).to(tl.float32)
        u = tl.load(noise_ptr + row * n_cols + cols, mask=mask, other=0.5)
        value, index = tl.max(x / temperature - tl.log(-tl.log(u)), axis=0, return_indices=True)
        at = tl.where(value > best, start + index, at)
        best = tl.maximum(best, value)
    tl.store(out_ptr + row, at)


@triton.jit
def batched_gemv(a_ptr, x_ptr, y_ptr, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + batch * n_cols + cols).to(tl.float32)
        a = tl.load(a_ptr + (batch * n_rows + rows[:, None]) * n_cols + cols[None, :]).to(tl.float32)
        total += tl.sum(a * x[None, :], axis=1)
    tl.store(y_ptr + batch * n_rows + rows, total)


@triton.jit
def vector_matrix(x_ptr, w_ptr, y_ptr, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A vector times a matrix stored by rows: sums run down the columns."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        x = tl.load(x_ptr + rows).to(tl.float32)
        w = tl.load(w_ptr + rows[:, None] * n_cols + cols[None, :]).to(tl.float32)
        total += tl.sum(x[:, None] * w, axis=0)
    tl.store(y_ptr + cols, total)


@triton.jit
def varlen_attention(q_ptr, k_ptr, v_ptr, out_ptr, starts_ptr, scale, n_heads, cap, window,
                     DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Causal attention within packed sequences, over a window, with capped scores."""
    sequence, head = tl.program_id(1), tl.program_id(2)
    first = tl.load(starts_ptr + sequence)
    length = tl.load(starts_ptr + sequence + 1) - first
    m = tl.program_id(0) * BLOCK_M
    if m >= length:
        return
    rows, dims = m + tl.arange(0, BLOCK_M), tl.arange(0, DIM)
    stride = n_heads * DIM
    base = first.to(tl.int64) * stride + head * DIM
    q = tl.load(q_ptr + base + rows[:, None] * stride + dims[None, :], mask=rows[:, None] < length, other=0.0)
    top = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    low = tl.maximum(m - window, 0) // BLOCK_N * BLOCK_N
    for n in range(low, tl.minimum(m + BLOCK_M, length), BLOCK_N):
        cols = n + tl.arange(0, BLOCK_N)
        inside = cols < length
        k = tl.load(k_ptr + base + cols[None, :] * stride + dims[:, None], mask=inside[None, :], other=0.0)
        s = tl.dot(q, k) * (scale / cap)
        s = cap * (2 * tl.sigmoid(2 * s) - 1)
        near = (cols[None, :] <= rows[:, None]) & (cols[None, :] > rows[:, None] - window)
        s = tl.where(near & inside[None, :], s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p, keep = tl.exp(s - new[:, None]), tl.exp(top - new)
        total = total * keep + tl.sum(p, 1)
        v = tl.load(v_ptr + base + cols[:, None] * stride + dims[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None])
        top = new
    tl.store(out_ptr + base + rows[:, None] * stride + dims[None, :], acc / total[:, None],
             mask=rows[:, None] < length)


@triton.jit
def sparse_attention(q_ptr, k_ptr, v_ptr, out_ptr, count_ptr, block_ptr, scale, n_ctx, most,
                     DIM: tl.constexpr, BLOCK: tl.constexpr):
    """Each block of queries meets the blocks of keys that a table names."""
    m, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows, dims = tl.arange(0, BLOCK), tl.arange(0, DIM)
    base = head * n_ctx * DIM
    at = base + (m * BLOCK + rows)[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + at)
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, DIM), tl.float32)
    for index in range(tl.load(count_ptr + m)):
        n = tl.load(block_ptr + m * most + index)
        cols = n * BLOCK + rows
        k = tl.load(k_ptr + base + cols[:, None] * DIM + dims[None, :])
        s = tl.dot(q, k.T) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p, keep = tl.exp(s - new[:, None]), tl.exp(top - new)
        total = total * keep + tl.sum(p, 1)
        v = tl.load(v_ptr + base + cols[:, None] * DIM + dims[None, :])
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    tl.store(out_ptr + at, acc / total[:, None])


@triton.jit
def split_decode(q_ptr, k_ptr, v_ptr, part_ptr, lse_ptr, scale, length, n_kv, SPLIT: tl.constexpr,
                 GROUP: tl.constexpr, DIM: tl.constexpr, BLOCK_N: tl.constexpr):
    """One token's attention over a part of the keys."""
    batch, kv, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, dims = tl.arange(0, GROUP), tl.arange(0, DIM)
    row = (batch * n_kv + kv) * GROUP + heads
    q = tl.load(q_ptr + row[:, None] * DIM + dims[None, :])
    top = tl.full((GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    acc = tl.zeros((GROUP, DIM), tl.float32)
    size = tl.cdiv(length, SPLIT)
    base = (batch * n_kv + kv).to(tl.int64) * length * DIM
    for n in range(part * size, tl.minimum((part + 1) * size, length), BLOCK_N):
        cols = n + tl.arange(0, BLOCK_N)
        inside = cols < length
        k = tl.load(k_ptr + base + cols[None, :] * DIM + dims[:, None], mask=inside[None, :], other=0.0)
        s = tl.where(inside[None, :], tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p, keep = tl.exp(s - new[:, None]), tl.exp(top - new)
        total = total * keep + tl.sum(p, 1)
        v = tl.load(v_ptr + base + cols[:, None] * DIM + dims[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None])
        top = new
    out = row * SPLIT + part
    tl.store(part_ptr + out[:, None] * DIM + dims[None, :], acc / total[:, None])
    tl.store(lse_ptr + out, top + tl.log(total))


@triton.jit
def chunk_states(k_ptr, v_ptr, g_ptr, h_ptr, length, K: tl.constexpr, V: tl.constexpr,
                 BLOCK_V: tl.constexpr, CHUNK: tl.constexpr):
    """The state of linear attention before each chunk, all of which are kept."""
    head = tl.program_id(1).to(tl.int64)
    t, k, v = tl.arange(0, CHUNK), tl.arange(0, K), tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    state = tl.zeros((K, BLOCK_V), tl.float32)
    for chunk in range(length // CHUNK):
        at = (head * (length // CHUNK) + chunk) * K * V
        tl.store(h_ptr + at + k[:, None] * V + v[None, :], state.to(h_ptr.dtype.element_ty))
        rows = head * length + chunk * CHUNK + t
        keys = tl.load(k_ptr + rows[None, :] * K + k[:, None])
        values = tl.load(v_ptr + rows[:, None] * V + v[None, :])
        g = tl.load(g_ptr + rows)
        last = tl.load(g_ptr + head * length + chunk * CHUNK + CHUNK - 1)
        values = (values * tl.exp(last - g)[:, None]).to(keys.dtype)
        state = state * tl.exp(last) + tl.dot(keys, values)


# tile: q, k, peaks = randn(2, 128, 64, dtype=fp16), randn(2, 128, 64, dtype=fp16, seed=1), empty(2, 4, 128)
# tile: block_peaks[(2, 2)](q, k, peaks, 128, DIM=64, BLOCK_M=64, BLOCK_N=32)
# tile: first = q[0].to(fp32) @ k[0, 32:64].to(fp32).T
# tile: assert allclose(peaks[0, 1], max(first, 1), rtol=1e-3, atol=1e-2)
@triton.jit
def block_peaks(q_ptr, k_ptr, peak_ptr, length, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The largest score of each query in each block of keys, by which sparse attention chooses blocks."""
    head = tl.program_id(1).to(tl.int64) * length
    m, n, d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, DIM)
    q = tl.load(q_ptr + (head + m)[:, None] * DIM + d[None, :])
    keys = k_ptr + (head + n)[:, None] * DIM + d[None, :]
    peaks = peak_ptr + head * (length // BLOCK_N) + m
    for _ in range(length // BLOCK_N):
        k = tl.load(keys)
        tl.store(peaks, tl.max(tl.dot(q, tl.trans(k)), 1))
        keys += BLOCK_N * DIM
        peaks += length


@triton.jit
def chunk_backward(q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, dk_ptr, dv_ptr, length, K: tl.constexpr,
                   V: tl.constexpr, CHUNK: tl.constexpr):
    """The gradients of linear attention, the parts within chunks, a chunk at a time."""
    head = tl.program_id(1).to(tl.int64)
    t, k, v = tl.arange(0, CHUNK), tl.arange(0, K), tl.arange(0, V)
    rows = head * length + tl.program_id(0) * CHUNK + t
    at_k, at_v = rows[:, None] * K + k[None, :], rows[:, None] * V + v[None, :]
    q, keys = tl.load(q_ptr + at_k), tl.load(k_ptr + at_k)
    values, do = tl.load(v_ptr + at_v), tl.load(do_ptr + at_v)
    causal = t[:, None] >= t[None, :]
    s = tl.where(causal, tl.dot(q, tl.trans(keys)), 0.0).to(q.dtype)
    ds = tl.where(causal, tl.dot(do, tl.trans(values)), 0.0).to(q.dtype)
    tl.store(dq_ptr + at_k, tl.dot(ds, keys).to(q.dtype))
    tl.store(dk_ptr + at_k, tl.dot(tl.trans(ds), q).to(q.dtype))
    tl.store(dv_ptr + at_v, tl.dot(tl.trans(s), do).to(q.dtype))


@triton.jit
def scaled_blocks(a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K, GROUP: tl.constexpr,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Bytes, with a scale for each row and group of A and for each square of B."""
    m, n = tl.program_id(0), tl.program_id(1)
    rows, cols = m * BLOCK_M + tl.arange(0, BLOCK_M), n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + cols[None, :] * K + ks[:, None]
    groups = K // GROUP
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K // BLOCK_K):
        a, b = tl.load(a_ptrs), tl.load(b_ptrs)
        group = k * BLOCK_K // GROUP
        a_scale = tl.load(a_scale_ptr + rows * groups + group)
        b_scale = tl.load(b_scale_ptr + cols // GROUP * groups + group)
        acc += tl.dot(a, b).to(tl.float32) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def gated_products(x_ptr, gate_ptr, up_ptr, y_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                   BLOCK_K: tl.constexpr):
    """Two products of one left operand, one of them through SiLU."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + rows[:, None] * K + start + ks[None, :])
        at = cols[None, :] * K + start + ks[:, None]
        gate = tl.dot(x, tl.load(gate_ptr + at), gate)
        up = tl.dot(x, tl.load(up_ptr + at), up)
    y = gate * tl.sigmoid(gate) * up
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y.to(y_ptr.dtype.element_ty))


@triton.jit
def biased_product(a_ptr, b_ptr, bias_ptr, residual_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk,
                   stride_bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """With a bias, GELU and what came before added, every size masked."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (start + ks[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(start + ks[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    acc += tl.load(bias_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)[None, :]
    acc = 0.5 * acc * (1 + tl.erf(acc * 0.7071067811865476))
    acc += tl.load(residual_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def convolution(x_ptr, w_ptr, y_ptr, height, width, C, N, SIDE: tl.constexpr, BLOCK_M: tl.constexpr,
                BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A picture by channels-last filters, as one product over taps and channels."""
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    image = pixel // (height * width)
    y, x = pixel // width % height, pixel % width
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    steps = C // BLOCK_K
    for step in range(SIDE * SIDE * steps):
        tap, ks = step // steps, step % steps * BLOCK_K + tl.arange(0, BLOCK_K)
        yy, xx = y + tap // SIDE - SIDE // 2, x + tap % SIDE - SIDE // 2
        inside = (yy >= 0) & (yy < height) & (xx >= 0) & (xx < width)
        at = ((image * height + yy) * width + xx) * C
        a = tl.load(x_ptr + at[:, None] + ks[None, :], mask=inside[:, None], other=0.0)
        b = tl.load(w_ptr + (tap * C + ks)[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(y_ptr + pixel[:, None] * N + cols[None, :], acc.to(y_ptr.dtype.element_ty))


@triton.jit
def exact_product(a_ptr, b_ptr, c_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Products of a batch in full single precision, which matrix units do not have."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols, ks = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    b_ptr += tl.program_id(2) * K * N
    rows += tl.program_id(2) * tl.num_programs(0) * BLOCK_M
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + start + ks[None, :])
        b = tl.load(b_ptr + (start + ks)[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)


@triton.jit
def low_rank(x_ptr, down_ptr, up_ptr, index_ptr, y_ptr, N, K, RANK: tl.constexpr, BLOCK_M: tl.constexpr,
             BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Adapters of low rank: each block of rows has one, the result is added in place."""
    m, n = tl.program_id(0), tl.program_id(1)
    adapter = tl.load(index_ptr + m).to(tl.int64)
    rows, cols = m * BLOCK_M + tl.arange(0, BLOCK_M), n * BLOCK_N + tl.arange(0, BLOCK_N)
    ranks, ks = tl.arange(0, RANK), tl.arange(0, BLOCK_K)
    small = tl.zeros((BLOCK_M, RANK), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + rows[:, None] * K + start + ks[None, :])
        down = tl.load(down_ptr + (adapter * RANK + ranks[None, :]) * K + start + ks[:, None])
        small = tl.dot(x, down, small)
    up = tl.load(up_ptr + (adapter * N + cols[None, :]) * RANK + ranks[:, None])
    y = tl.dot(small.to(up.dtype), up)
    at = y_ptr + rows[:, None] * N + cols[None, :]
    tl.store(at, (tl.load(at).to(tl.float32) + y).to(y_ptr.dtype.element_ty))
