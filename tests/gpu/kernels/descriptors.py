"""Products of what descriptors bring: tensors that tiles reach beyond, in every swizzle and storage order."""

import triton
import triton.language as tl


# tile: m, n, k = 200, 184, 136
# tile: a, b = randn(m, k, dtype=fp16, seed=1), randn(n, k, dtype=fp16, seed=2)
# tile: c = empty(m, n)
# tile: persistent_kernel[(3,)](a, b, c, m, n, k, M=64, N=64, K=64, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=2e-2)

# tile: m, n, k = 200, 184, 136
# tile: a, b = randn(m, k, dtype=bf16, seed=3), randn(n, k, dtype=bf16, seed=4)
# tile: c = empty(m, n)
# tile: persistent_kernel[(2,)](a, b, c, m, n, k, M=128, N=32, K=32, num_warps=4, num_stages=4)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=2e-2)

# tile: m, n, k = 200, 184, 136
# tile: a, b = randn(m, k, dtype=fp16, seed=5), randn(n, k, dtype=fp16, seed=6)
# tile: c = empty(m, n)
# tile: persistent_kernel[(2,)](a, b, c, m, n, k, M=128, N=128, K=16, num_warps=8, num_stages=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=2e-2)

# tile: m, n, k = 300, 512, 264
# tile: a, b = randn(m, k, dtype=fp16, seed=7), randn(n, k, dtype=fp16, seed=8)
# tile: c = empty(m, n)
# tile: persistent_kernel[(1,)](a, b, c, m, n, k, M=128, N=256, K=128, num_warps=8, num_stages=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=3e-2)

# tile: m, n, k = 100, 72, 100
# tile: a, b = randn(m, k, seed=9), randn(n, k, seed=10)
# tile: c = empty(m, n)
# tile: persistent_kernel[(2,)](a, b, c, m, n, k, M=64, N=64, K=32, num_warps=4, num_stages=3)
# tile: assert allclose(c, a @ b.T, rtol=1e-2, atol=5e-2)

# tile: m, n, k = 100, 80, 112
# tile: a, b = randn(m, k, seed=11).to(fp8e5), randn(n, k, seed=12).to(fp8e5)
# tile: c = empty(m, n)
# tile: persistent_kernel[(2,)](a, b, c, m, n, k, M=64, N=64, K=64, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=5e-1)

# tile: m, n, k = 64, 64, 0
# tile: a, b = randn(m, 16, dtype=fp16, seed=1), randn(n, 16, dtype=fp16, seed=2)
# tile: c = empty(m, n)
# tile: persistent_kernel[(1,)](a, b, c, m, n, k, M=64, N=64, K=64, num_warps=4, num_stages=3)
# tile: assert allclose(c, zeros(m, n))
@triton.jit
def persistent_kernel(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a b^T, a tile after the other."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[n, k], strides=[k, 1], block_shape=[N, K])
    c = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    across = tl.cdiv(n, N)
    for tile in range(tl.program_id(0), tl.cdiv(m, M) * across, tl.num_programs(0)):
        row, column = tile // across * M, tile % across * N
        total = tl.zeros((M, N), dtype=tl.float32)
        for at in range(0, k, K):
            total = tl.dot(a.load([row, at]), b.load([column, at]).T, total)
        c.store([row, column], total)


# tile: n, k = 96, 200
# tile: a, b = randn(k, 64, dtype=fp16, seed=1), randn(k, n, dtype=fp16, seed=2)
# tile: c = empty(64, 128)
# tile: transposed_kernel[(1,)](a, b, c, n, k, -24, N=128, K=64, num_warps=4, num_stages=3)
# tile: assert allclose(c[:, 24:120], a.to(fp32).T @ b.to(fp32), rtol=1e-2, atol=2e-2)
# tile: assert allclose(c[:, :24], zeros(64, 24))

# tile: n, k = 96, 200
# tile: a, b = randn(k, 64, dtype=fp16, seed=1), randn(k, n, dtype=fp16, seed=2)
# tile: c = empty(64, 128)
# tile: transposed_kernel[(1,)](a, b, c, n, k, -8, N=128, K=32, num_warps=8, num_stages=4)
# tile: assert allclose(c[:, 8:104], a.to(fp32).T @ b.to(fp32), rtol=1e-2, atol=2e-2)
@triton.jit
def transposed_kernel(a_ptr, b_ptr, c_ptr, n, k, first, N: tl.constexpr, K: tl.constexpr):
    """c = a^T b, of which the columns begin before those of b."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[k, 64], strides=[64, 1], block_shape=[K, 64])
    b = tl.make_tensor_descriptor(b_ptr, shape=[k, n], strides=[n, 1], block_shape=[K, N])
    total = tl.zeros((64, N), dtype=tl.float32)
    for at in range(0, k, K):
        total = tl.dot(a.load([at, 0]).T, b.load([at, first]), total)
    at = tl.arange(0, 64)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c_ptr + at, total)


# tile: m, n, k = 100, 64, 200
# tile: a, b = randn(m, k, dtype=fp16, seed=1), randn(k, n, dtype=fp16, seed=2)
# tile: c = empty(128, n)
# tile: mixed_kernel[(2,)](a, b, c, m, n, k, M=64, N=64, K=32, num_warps=4, num_stages=3)
# tile: assert allclose(c[:100], a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)
@triton.jit
def mixed_kernel(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a b, where a comes by a descriptor and b by pointers."""
    row = tl.program_id(0) * M
    a = tl.make_tensor_descriptor(a_ptr, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    steps, columns = tl.arange(0, K), tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for at in range(0, k, K):
        inside = (at + steps < k)[:, None]
        b = tl.load(b_ptr + (at + steps)[:, None] * n + columns[None, :], mask=inside, other=0.0)
        total = tl.dot(a.load([row, at]), b, total)
    tl.store(c_ptr + (row + tl.arange(0, M))[:, None] * n + columns[None, :], total)


# tile: n, heads = 200, 2
# tile: q, k = randn(heads * n, 64, dtype=fp16, seed=1), randn(heads * n, 64, dtype=fp16, seed=2)
# tile: v, out = randn(heads * n, 64, dtype=fp16, seed=3), empty(256, 64)
# tile: attention_kernel[(4,)](q, k, v, out, heads, n, M=64, N=64, D=64, num_warps=4, num_stages=3)
# tile: assert allclose(out, softmax(q[:256].to(fp32) @ k[:192].to(fp32).T * 0.125) @ v[:192].to(fp32), rtol=2e-2, atol=1e-2)
@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, heads, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Attention over the whole tiles of one head, twice: an online softmax in two loops."""
    rows = heads * n
    q = tl.make_tensor_descriptor(q_ptr, shape=[rows, D], strides=[D, 1], block_shape=[M, D])
    k = tl.make_tensor_descriptor(k_ptr, shape=[rows, D], strides=[D, 1], block_shape=[N, D])
    v = tl.make_tensor_descriptor(v_ptr, shape=[rows, D], strides=[D, 1], block_shape=[N, D])
    row = tl.program_id(0) * M
    queries = q.load([row, 0])
    most = tl.full((M,), float("-inf"), dtype=tl.float32)
    weight, total = tl.zeros((M,), dtype=tl.float32), tl.zeros((M, D), dtype=tl.float32)
    half = n // N // 2 * N
    for part in tl.static_range(2):
        first = half if part else 0
        last = n // N * N if part else half
        for at in range(first, last, N):
            scores = tl.dot(queries, k.load([at, 0]).T) * 0.125
            now = tl.maximum(most, tl.max(scores, 1))
            p = tl.exp(scores - now[:, None])
            change = tl.exp(most - now)
            weight = weight * change + tl.sum(p, 1)
            total = tl.dot(p.to(tl.float16), v.load([at, 0]), total * change[:, None])
            most = now
    at = (row + tl.arange(0, M))[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(out_ptr + at, total / weight[:, None])
