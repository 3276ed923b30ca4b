"""Kernels that serve models, as model code has them: one token at a time, by tables, in chunks."""

import triton
import triton.language as tl


@triton.jit
def gemv(a_ptr, x_ptr, y_ptr, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        a = tl.load(a_ptr + rows[:, None] * n_cols + cols[None, :], mask=cols[None, :] < n_cols,
                    other=0.0).to(tl.float32)
        total += a * x[None, :]
    tl.store(y_ptr + rows, tl.sum(total, axis=1))


@triton.jit
def paged_attention(q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, out_ptr, scale, n_heads, max_pages,
                    GROUP: tl.constexpr, PAGE: tl.constexpr, DIM: tl.constexpr):
    """The query heads of one group, of one sequence, over the pages that a table names."""
    sequence, kv_head = tl.program_id(0), tl.program_id(1)
    heads, dims = tl.arange(0, GROUP), tl.arange(0, DIM)
    at = (sequence * n_heads * GROUP + kv_head * GROUP + heads[:, None]) * DIM + dims[None, :]
    q = tl.load(q_ptr + at)
    length = tl.load(length_ptr + sequence)
    top = tl.full((GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    acc = tl.zeros((GROUP, DIM), tl.float32)
    in_page = tl.arange(0, PAGE)
    for page in range(0, tl.cdiv(length, PAGE)):
        block = tl.load(table_ptr + sequence * max_pages + page).to(tl.int64)
        token = (block * PAGE + in_page) * n_heads + kv_head
        k = tl.load(k_ptr + token[None, :] * DIM + dims[:, None])
        s = tl.dot(q, k) * scale
        s = tl.where((page * PAGE + in_page)[None, :] < length, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        p, keep = tl.exp(s - new[:, None]), tl.exp(top - new)
        total = total * keep + tl.sum(p, axis=1)
        v = tl.load(v_ptr + token[:, None] * DIM + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None])
        top = new
    tl.store(out_ptr + at, acc / total[:, None])


@triton.jit
def causal_conv(x_ptr, w_ptr, bias_ptr, y_ptr, length, channels, WIDTH: tl.constexpr,
                BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
    """Each channel with a filter of its own over the last WIDTH steps, then SiLU."""
    base = tl.program_id(2).to(tl.int64) * length * channels
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    acc = tl.zeros((BLOCK_T, BLOCK_C), tl.float32)
    acc += tl.load(bias_ptr + c, mask=inside, other=0.0).to(tl.float32)[None, :]
    for tap in tl.static_range(WIDTH):
        step = t - (WIDTH - 1 - tap)
        mask = ((step >= 0) & (step < length))[:, None] & inside[None, :]
        x = tl.load(x_ptr + base + step[:, None] * channels + c[None, :], mask=mask, other=0.0)
        w = tl.load(w_ptr + c * WIDTH + tap, mask=inside, other=0.0)
        acc += x.to(tl.float32) * w.to(tl.float32)[None, :]
    acc = acc * tl.sigmoid(acc)
    tl.store(y_ptr + base + t[:, None] * channels + c[None, :], acc,
             mask=(t < length)[:, None] & inside[None, :])


@triton.jit
def chunked_attention(q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, length, K: tl.constexpr, V: tl.constexpr,
                      BLOCK_V: tl.constexpr, CHUNK: tl.constexpr):
    """Linear attention with a decay at each step: a state of K by V goes from chunk to chunk."""
    head = tl.program_id(1).to(tl.int64)
    t, k, v = tl.arange(0, CHUNK), tl.arange(0, K), tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    state = tl.zeros((K, BLOCK_V), tl.float32)
    for start in range(0, length, CHUNK):
        rows = head * length + start + t
        q = tl.load(q_ptr + rows[:, None] * K + k[None, :])
        keys = tl.load(k_ptr + rows[:, None] * K + k[None, :])
        values = tl.load(v_ptr + rows[:, None] * V + v[None, :])
        g = tl.cumsum(tl.load(g_ptr + rows), axis=0)
        last = tl.sum(tl.where(t == CHUNK - 1, g, 0.0), axis=0)
        s = tl.dot(q, tl.trans(keys)) * tl.exp(g[:, None] - g[None, :])
        s = tl.where(t[:, None] >= t[None, :], s, 0.0)
        o = tl.dot(q, state.to(q.dtype)) * tl.exp(g)[:, None]
        o = tl.dot(s.to(values.dtype), values, o)
        tl.store(o_ptr + rows[:, None] * V + v[None, :], o)
        decayed = (keys * tl.exp(last - g)[:, None]).to(keys.dtype)
        state = tl.dot(tl.trans(decayed), values, state * tl.exp(last))


@triton.jit
def expert_products(x_ptr, w_ptr, y_ptr, token_ptr, expert_ptr, n_tokens, N, K, BLOCK_M: tl.constexpr,
                    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Rows are gathered by expert: block m of the sorted tokens meets the weights of its expert."""
    m, n = tl.program_id(0), tl.program_id(1)
    tokens = tl.load(token_ptr + m * BLOCK_M + tl.arange(0, BLOCK_M))
    expert = tl.load(expert_ptr + m).to(tl.int64)
    mask = tokens < n_tokens
    cols = n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + tokens[:, None] * K + ks[None, :]
    w_ptrs = w_ptr + expert * N * K + cols[None, :] * K + ks[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=mask[:, None] & (ks[None, :] < K - start), other=0.0)
        w = tl.load(w_ptrs, mask=ks[:, None] < K - start, other=0.0)
        acc += tl.dot(x, w)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    tl.store(y_ptr + tokens[:, None] * N + cols[None, :], acc, mask=mask[:, None])
