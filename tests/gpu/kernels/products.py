"""Products in every storage order of their operands, for warp groups and single warps."""

import triton
import triton.language as tl


# tile: m, n, k = 64, 64, 64
# tile: a, b = randn(m, k, dtype=fp16, seed=1), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, n, 1, M=m, N=n, K=64, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 64, 64
# tile: a, b = randn(m, k, dtype=bf16, seed=2), randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, 1, k, M=m, N=n, K=64, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 64, 64
# tile: a, b = randn(k, m, dtype=fp16, seed=3).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, n, 1, M=m, N=n, K=64, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 64, 64
# tile: a, b = randn(k, m, dtype=bf16, seed=4).T, randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, 1, k, M=m, N=n, K=64, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 256, 64
# tile: a, b = randn(m, k, dtype=fp16, seed=5), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 256, 64
# tile: a, b = randn(m, k, dtype=bf16, seed=6), randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 256, 64
# tile: a, b = randn(k, m, dtype=fp16, seed=7).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 256, 64
# tile: a, b = randn(k, m, dtype=bf16, seed=8).T, randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 32, 16
# tile: a, b = randn(m, k, dtype=fp16, seed=9), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, n, 1, M=m, N=n, K=16, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 32, 16
# tile: a, b = randn(m, k, dtype=bf16, seed=10), randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, 1, k, M=m, N=n, K=16, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 32, 16
# tile: a, b = randn(k, m, dtype=fp16, seed=11).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, n, 1, M=m, N=n, K=16, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 32, 16
# tile: a, b = randn(k, m, dtype=bf16, seed=12).T, randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, 1, k, M=m, N=n, K=16, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 128, 128
# tile: a, b = randn(m, k, dtype=fp16, seed=13), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, n, 1, M=m, N=n, K=128, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 128, 128
# tile: a, b = randn(m, k, dtype=bf16, seed=14), randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, 1, k, M=m, N=n, K=128, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 128, 128
# tile: a, b = randn(k, m, dtype=fp16, seed=15).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, n, 1, M=m, N=n, K=128, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 128, 128
# tile: a, b = randn(k, m, dtype=bf16, seed=16).T, randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, 1, k, M=m, N=n, K=128, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 16, 32
# tile: a, b = randn(m, k, dtype=fp16, seed=17), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, n, 1, M=m, N=n, K=32, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 16, 32
# tile: a, b = randn(m, k, dtype=bf16, seed=18), randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, 1, k, M=m, N=n, K=32, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 16, 32
# tile: a, b = randn(k, m, dtype=fp16, seed=19).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, n, 1, M=m, N=n, K=32, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 16, 32
# tile: a, b = randn(k, m, dtype=bf16, seed=20).T, randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, 1, k, M=m, N=n, K=32, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 16, 16, 16
# tile: a, b = randn(m, k, dtype=fp16, seed=21), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, n, 1, M=m, N=n, K=16, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 16, 16, 16
# tile: a, b = randn(m, k, dtype=bf16, seed=22), randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, k, 1, 1, k, M=m, N=n, K=16, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 16, 16, 16
# tile: a, b = randn(k, m, dtype=fp16, seed=23).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, n, 1, M=m, N=n, K=16, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 16, 16, 16
# tile: a, b = randn(k, m, dtype=bf16, seed=24).T, randn(n, k, dtype=bf16, seed=99).T
# tile: c = empty(m, n)
# tile: product_kernel[(1,)](a, b, c, 1, m, 1, k, M=m, N=n, K=16, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)
@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, stride_am, stride_ak, stride_bk, stride_bn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    """c = a b for one tile of each, with any strides."""
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak)
    b = tl.load(b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn)
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b))


# tile: m, n, k = 64, 64, 200
# tile: a, b = randn(m, k, dtype=fp16, seed=25), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=32, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 64, 200
# tile: a, b = randn(m, k, dtype=fp16, seed=26), randn(n, k, dtype=fp16, seed=99).T
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, k, 1, 1, k, M=m, N=n, K=32, num_warps=4, num_stages=4)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 64, 200
# tile: a, b = randn(k, m, dtype=fp16, seed=27).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, 1, m, n, 1, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 64, 64, 200
# tile: a, b = randn(k, m, dtype=fp16, seed=28).T, randn(n, k, dtype=fp16, seed=99).T
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, 1, m, 1, k, M=m, N=n, K=32, num_warps=4, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 128, 264
# tile: a, b = randn(m, k, dtype=fp16, seed=29), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=4)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 128, 264
# tile: a, b = randn(m, k, dtype=fp16, seed=30), randn(n, k, dtype=fp16, seed=99).T
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, k, 1, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 128, 264
# tile: a, b = randn(k, m, dtype=fp16, seed=31).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, 1, m, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 128, 264
# tile: a, b = randn(k, m, dtype=fp16, seed=32).T, randn(n, k, dtype=fp16, seed=99).T
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, 1, m, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=4)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 256, 64, 512
# tile: a, b = randn(m, k, dtype=fp16, seed=33), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 256, 64, 512
# tile: a, b = randn(m, k, dtype=fp16, seed=34), randn(n, k, dtype=fp16, seed=99).T
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, k, 1, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 256, 64, 512
# tile: a, b = randn(k, m, dtype=fp16, seed=35).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, 1, m, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=4)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 256, 64, 512
# tile: a, b = randn(k, m, dtype=fp16, seed=36).T, randn(n, k, dtype=fp16, seed=99).T
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, 1, m, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 256, 320
# tile: a, b = randn(m, k, dtype=fp16, seed=37), randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 256, 320
# tile: a, b = randn(m, k, dtype=fp16, seed=38), randn(n, k, dtype=fp16, seed=99).T
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, k, 1, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=4)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 256, 320
# tile: a, b = randn(k, m, dtype=fp16, seed=39).T, randn(k, n, dtype=fp16, seed=99)
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, 1, m, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)

# tile: m, n, k = 128, 256, 320
# tile: a, b = randn(k, m, dtype=fp16, seed=40).T, randn(n, k, dtype=fp16, seed=99).T
# tile: c = empty(m, n)
# tile: loop_kernel[(1,)](a, b, c, k, 1, m, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=2e-2)
@triton.jit
def loop_kernel(
    a_ptr, b_ptr, c_ptr, depth, stride_am, stride_ak, stride_bk, stride_bn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    """The same with a loop along the inner axis, which is pipelined."""
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, depth, K):
        inside = start + k < depth
        a = tl.load(
            a_ptr + m[:, None] * stride_am + (start + k)[None, :] * stride_ak,
            mask=inside[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + (start + k)[:, None] * stride_bk + n[None, :] * stride_bn,
            mask=inside[:, None], other=0.0,
        )
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


# tile: m, n, d = 64, 256, 64
# tile: q, k, v = randn(m, d, dtype=bf16), randn(n, d, dtype=bf16, seed=1), randn(n, d, dtype=bf16, seed=2)
# tile: o = empty(m, d)
# tile: chain_kernel[(1,)](q, k, v, o, n, M=m, N=64, D=d, num_warps=4, num_stages=3)
# tile: s = q.to(fp32) @ k.to(fp32).T
# tile: p = (s * s).to(bf16).to(fp32)
# tile: assert allclose(o, p @ v.to(fp32), rtol=2e-2, atol=30.0)

# tile: m, n, d = 128, 256, 64
# tile: q, k, v = randn(m, d, dtype=bf16), randn(n, d, dtype=bf16, seed=1), randn(n, d, dtype=bf16, seed=2)
# tile: o = empty(m, d)
# tile: chain_kernel[(1,)](q, k, v, o, n, M=m, N=64, D=d, num_warps=8, num_stages=2)
# tile: s = q.to(fp32) @ k.to(fp32).T
# tile: p = (s * s).to(bf16).to(fp32)
# tile: assert allclose(o, p @ v.to(fp32), rtol=2e-2, atol=30.0)

# tile: m, n, d = 64, 128, 128
# tile: q, k, v = randn(m, d, dtype=bf16), randn(n, d, dtype=bf16, seed=1), randn(n, d, dtype=bf16, seed=2)
# tile: o = empty(m, d)
# tile: chain_kernel[(1,)](q, k, v, o, n, M=m, N=32, D=d, num_warps=8, num_stages=3)
# tile: s = q.to(fp32) @ k.to(fp32).T
# tile: p = (s * s).to(bf16).to(fp32)
# tile: assert allclose(o, p @ v.to(fp32), rtol=2e-2, atol=30.0)

# tile: m, n, d = 128, 256, 128
# tile: q, k, v = randn(m, d, dtype=bf16), randn(n, d, dtype=bf16, seed=1), randn(n, d, dtype=bf16, seed=2)
# tile: o = empty(m, d)
# tile: chain_kernel[(1,)](q, k, v, o, n, M=m, N=64, D=d, num_warps=4, num_stages=2)
# tile: s = q.to(fp32) @ k.to(fp32).T
# tile: p = (s * s).to(bf16).to(fp32)
# tile: assert allclose(o, p @ v.to(fp32), rtol=2e-2, atol=30.0)
@triton.jit
def chain_kernel(q_ptr, k_ptr, v_ptr, o_ptr, n_keys, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Sums of (q kᵀ)² v: the result of one product is an operand of the next."""
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    acc = tl.zeros((M, D), dtype=tl.float32)
    for start in range(0, n_keys, N):
        k = tl.load(k_ptr + (start + n)[:, None] * D + d[None, :])
        v = tl.load(v_ptr + (start + n)[:, None] * D + d[None, :])
        s = tl.dot(q, k.T)
        p = (s * s).to(q.dtype)
        acc = tl.dot(p, v, acc)
    tl.store(o_ptr + m[:, None] * D + d[None, :], acc)


# tile: m, n, k = 64, 64, 256
# tile: a, b = randint(-8, 8, m, k, dtype=int8, seed=0), randint(-8, 8, n, k, dtype=int8, seed=77)
# tile: c = empty(m, n, dtype=int32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.0)

# tile: m, n, k = 128, 128, 512
# tile: a, b = randint(-8, 8, m, k, dtype=int8, seed=1), randint(-8, 8, n, k, dtype=int8, seed=77)
# tile: c = empty(m, n, dtype=int32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.0)

# tile: m, n, k = 128, 256, 512
# tile: a, b = randint(-8, 8, m, k, dtype=int8, seed=2), randint(-8, 8, n, k, dtype=int8, seed=77)
# tile: c = empty(m, n, dtype=int32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=128, num_warps=8, num_stages=4)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.0)

# tile: m, n, k = 64, 64, 256
# tile: a, b = randn(m, k, dtype=fp8e5, seed=3), randn(n, k, dtype=fp8e5, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 128, 512
# tile: a, b = randn(m, k, dtype=fp8e5, seed=4), randn(n, k, dtype=fp8e5, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 256, 512
# tile: a, b = randn(m, k, dtype=fp8e5, seed=5), randn(n, k, dtype=fp8e5, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=128, num_warps=8, num_stages=4)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)

# tile: m, n, k = 64, 64, 256
# tile: a, b = randn(m, k, dtype=fp8e4nv, seed=6), randn(n, k, dtype=fp8e4nv, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 128, 512
# tile: a, b = randn(m, k, dtype=fp8e4nv, seed=7), randn(n, k, dtype=fp8e4nv, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 256, 512
# tile: a, b = randn(m, k, dtype=fp8e4nv, seed=8), randn(n, k, dtype=fp8e4nv, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=128, num_warps=8, num_stages=4)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)

# tile: m, n, k = 64, 64, 256
# tile: a, b = randn(m, k, dtype=fp32, seed=9), randn(n, k, dtype=fp32, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 128, 512
# tile: a, b = randn(m, k, dtype=fp32, seed=10), randn(n, k, dtype=fp32, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 256, 512
# tile: a, b = randn(m, k, dtype=fp32, seed=11), randn(n, k, dtype=fp32, seed=77)
# tile: c = empty(m, n, dtype=fp32)
# tile: transposed_kernel[(1,)](a, b, c, k, M=m, N=n, K=32, num_warps=8, num_stages=4)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=0.3)
@triton.jit
def transposed_kernel(a_ptr, b_ptr, c_ptr, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a bᵀ, with the inner axis last in memory in both: the order that units take of any type."""
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    acc = tl.zeros((M, N), dtype=c_ptr.dtype.element_ty)
    for start in range(0, depth, K):
        a = tl.load(a_ptr + m[:, None] * depth + (start + k)[None, :])
        b = tl.load(b_ptr + n[:, None] * depth + (start + k)[None, :])
        acc = tl.dot(a, b.T, acc, out_dtype=c_ptr.dtype.element_ty)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


# tile: m, n, k = 64, 64, 256
# tile: a, b = randint(-8, 8, m, k, dtype=int8, seed=0), randint(-8, 8, k, n, dtype=int8, seed=77)
# tile: c = empty(m, n, dtype=int32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.0)

# tile: m, n, k = 128, 128, 512
# tile: a, b = randint(-8, 8, m, k, dtype=int8, seed=1), randint(-8, 8, k, n, dtype=int8, seed=78)
# tile: c = empty(m, n, dtype=int32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.0)

# tile: m, n, k = 128, 256, 512
# tile: a, b = randint(-8, 8, m, k, dtype=int8, seed=2), randint(-8, 8, k, n, dtype=int8, seed=79)
# tile: c = empty(m, n, dtype=int32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=128, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.0)

# tile: m, n, k = 64, 128, 256
# tile: a, b = randint(-8, 8, k, m, dtype=int8, seed=3).T, randint(-8, 8, k, n, dtype=int8, seed=80)
# tile: c = empty(m, n, dtype=int32)
# tile: any_order_kernel[(1,)](a, b, c, k, 1, m, n, 1, M=m, N=n, K=64, num_warps=4, num_stages=1)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.0)

# tile: m, n, k = 128, 64, 256
# tile: a, b = randint(-8, 8, k, m, dtype=int8, seed=4).T, randint(-8, 8, n, k, dtype=int8, seed=81).T
# tile: c = empty(m, n, dtype=int32)
# tile: any_order_kernel[(1,)](a, b, c, k, 1, m, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.0)

# tile: m, n, k = 64, 64, 256
# tile: a, b = randn(m, k, dtype=fp8e5, seed=5), randn(k, n, dtype=fp8e5, seed=82)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 128, 512
# tile: a, b = randn(m, k, dtype=fp8e5, seed=6), randn(k, n, dtype=fp8e5, seed=83)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 256, 512
# tile: a, b = randn(m, k, dtype=fp8e5, seed=7), randn(k, n, dtype=fp8e5, seed=84)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=128, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 64, 128, 256
# tile: a, b = randn(k, m, dtype=fp8e5, seed=8).T, randn(k, n, dtype=fp8e5, seed=85)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, 1, m, n, 1, M=m, N=n, K=64, num_warps=4, num_stages=1)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 64, 256
# tile: a, b = randn(k, m, dtype=fp8e5, seed=9).T, randn(n, k, dtype=fp8e5, seed=86).T
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, 1, m, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 64, 64, 256
# tile: a, b = randn(m, k, dtype=fp8e4nv, seed=10), randn(k, n, dtype=fp8e4nv, seed=87)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 128, 512
# tile: a, b = randn(m, k, dtype=fp8e4nv, seed=11), randn(k, n, dtype=fp8e4nv, seed=88)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 256, 512
# tile: a, b = randn(m, k, dtype=fp8e4nv, seed=12), randn(k, n, dtype=fp8e4nv, seed=89)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=128, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 64, 128, 256
# tile: a, b = randn(k, m, dtype=fp8e4nv, seed=13).T, randn(k, n, dtype=fp8e4nv, seed=90)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, 1, m, n, 1, M=m, N=n, K=64, num_warps=4, num_stages=1)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 64, 256
# tile: a, b = randn(k, m, dtype=fp8e4nv, seed=14).T, randn(n, k, dtype=fp8e4nv, seed=91).T
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, 1, m, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 64, 64, 256
# tile: a, b = randn(m, k, dtype=fp32, seed=15), randn(k, n, dtype=fp32, seed=92)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 128, 512
# tile: a, b = randn(m, k, dtype=fp32, seed=16), randn(k, n, dtype=fp32, seed=93)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 256, 512
# tile: a, b = randn(m, k, dtype=fp32, seed=17), randn(k, n, dtype=fp32, seed=94)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, k, 1, n, 1, M=m, N=n, K=32, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 64, 128, 256
# tile: a, b = randn(k, m, dtype=fp32, seed=18).T, randn(k, n, dtype=fp32, seed=95)
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, 1, m, n, 1, M=m, N=n, K=64, num_warps=4, num_stages=1)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)

# tile: m, n, k = 128, 64, 256
# tile: a, b = randn(k, m, dtype=fp32, seed=19).T, randn(n, k, dtype=fp32, seed=96).T
# tile: c = empty(m, n, dtype=fp32)
# tile: any_order_kernel[(1,)](a, b, c, k, 1, m, 1, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c.to(fp32), a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=0.3)
@triton.jit
def any_order_kernel(
    a_ptr, b_ptr, c_ptr, depth, stride_am, stride_ak, stride_bk, stride_bn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    """c = a b of types that units take along the inner axis alone, in any storage order."""
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    acc = tl.zeros((M, N), dtype=c_ptr.dtype.element_ty)
    for start in range(0, depth, K):
        a = tl.load(a_ptr + m[:, None] * stride_am + (start + k)[None, :] * stride_ak)
        b = tl.load(b_ptr + (start + k)[:, None] * stride_bk + n[None, :] * stride_bn)
        acc = tl.dot(a, b, acc, out_dtype=c_ptr.dtype.element_ty)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


# tile: m, n, k = 64, 64, 256
# tile: a, b = randn(m, k, dtype=fp16, seed=200), randn(k, n, dtype=fp16, seed=210)
# tile: d, e = randn(m, k, dtype=fp16, seed=220), randn(k, n, dtype=fp16, seed=230)
# tile: c, f = empty(m, n), empty(m, n)
# tile: sums_kernel[(1,)](a, b, d, e, c, f, k, M=m, N=n, K=32, num_warps=4, num_stages=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32) + d.to(fp32) @ e.to(fp32), rtol=1e-2, atol=4e-2)
# tile: assert allclose(f, a.to(fp32) @ e.to(fp32), rtol=1e-2, atol=4e-2)

# tile: m, n, k = 128, 64, 256
# tile: a, b = randn(m, k, dtype=fp16, seed=201), randn(k, n, dtype=fp16, seed=211)
# tile: d, e = randn(m, k, dtype=fp16, seed=221), randn(k, n, dtype=fp16, seed=231)
# tile: c, f = empty(m, n), empty(m, n)
# tile: sums_kernel[(1,)](a, b, d, e, c, f, k, M=m, N=n, K=64, num_warps=8, num_stages=3)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32) + d.to(fp32) @ e.to(fp32), rtol=1e-2, atol=4e-2)
# tile: assert allclose(f, a.to(fp32) @ e.to(fp32), rtol=1e-2, atol=4e-2)

# tile: m, n, k = 128, 128, 192
# tile: a, b = randn(m, k, dtype=fp16, seed=202), randn(k, n, dtype=fp16, seed=212)
# tile: d, e = randn(m, k, dtype=fp16, seed=222), randn(k, n, dtype=fp16, seed=232)
# tile: c, f = empty(m, n), empty(m, n)
# tile: sums_kernel[(1,)](a, b, d, e, c, f, k, M=m, N=n, K=32, num_warps=4, num_stages=4)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32) + d.to(fp32) @ e.to(fp32), rtol=1e-2, atol=4e-2)
# tile: assert allclose(f, a.to(fp32) @ e.to(fp32), rtol=1e-2, atol=4e-2)
@triton.jit
def sums_kernel(a_ptr, b_ptr, d_ptr, e_ptr, c_ptr, f_ptr, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a b + d e and f = a e: products that add to one sum, and one beside them."""
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    acc = tl.zeros((M, N), dtype=tl.float32)
    other = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, depth, K):
        left = m[:, None] * depth + (start + k)[None, :]
        right = (start + k)[:, None] * N + n[None, :]
        a = tl.load(a_ptr + left)
        e = tl.load(e_ptr + right)
        acc = tl.dot(a, tl.load(b_ptr + right), acc)
        other = tl.dot(a, e, other)
        acc = tl.dot(tl.load(d_ptr + left), e, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)
    tl.store(f_ptr + m[:, None] * N + n[None, :], other)


# tile: t = 70
# tile: q, g = randn(t, 64, dtype=bf16), randn(t, 64, dtype=bf16, seed=1)
# tile: k, v = randn(64, 64, dtype=bf16, seed=2), randn(64, 64, dtype=bf16, seed=3)
# tile: out = empty(2, 64, 64, dtype=bf16)
# tile: held_kernel[(1,)](q, g, k, v, out, t, BT=32, D=64, num_warps=2, num_stages=1)
@triton.jit
def held_kernel(q_ptr, g_ptr, k_ptr, v_ptr, out_ptr, t, BT: tl.constexpr, D: tl.constexpr):
    """The gradients of k and v in attention: operands from before the loop, and sums that fill the registers."""
    along = tl.arange(0, D)
    square = along[:, None] * D + along[None, :]
    k = tl.load(k_ptr + square)
    v = tl.load(v_ptr + square)
    by_g = tl.zeros((D, D), tl.float32)
    by_q = tl.zeros((D, D), tl.float32)
    for start in range(0, t, BT):
        row = start + tl.arange(0, BT)
        place = row[:, None] * D + along[None, :]
        q = tl.load(q_ptr + place, mask=row[:, None] < t, other=0.0)
        g = tl.load(g_ptr + place, mask=row[:, None] < t, other=0.0)
        weight = 1 / (1 + tl.exp2(tl.dot(k, tl.trans(q))))
        # Small, so that a number that is rounded the other way shows in nothing.
        change = tl.dot(v, tl.trans(g)) * weight * 0.01
        by_g = tl.dot(weight.to(tl.bfloat16), g, by_g)
        by_q = tl.dot(change.to(tl.bfloat16), q, by_q)
    tl.store(out_ptr + square, by_g)
    tl.store(out_ptr + D * D + square, by_q)
