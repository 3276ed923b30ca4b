"""Product with weights of four bits: eight to a word along K, scales and zeros by groups of rows."""

import triton
import triton.language as tl


@triton.jit
def unpack(words, k, scale, zero):
    weights = (words >> (k % 8 * 4)[:, None]) & 0xF
    return (weights - zero[None, :].to(tl.int32)).to(scale.dtype) * scale[None, :]


@triton.jit
def dequantize_int4_kernel(
    b_ptr, scale_ptr, zero_ptr, out_ptr, N,
    GROUP: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
):
    k = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = n < N
    words = tl.load(b_ptr + (k // 8)[:, None] * N + n[None, :], mask=mask[None, :], other=0)
    group = tl.program_id(0) * BLOCK_K // GROUP
    scale = tl.load(scale_ptr + group * N + n, mask=mask, other=0.0)
    zero = tl.load(zero_ptr + group * N + n, mask=mask, other=0)
    tl.store(out_ptr + k[:, None] * N + n[None, :], unpack(words, k, scale, zero), mask=mask[None, :])


@triton.jit
def matmul_int4_kernel(
    a_ptr, b_ptr, scale_ptr, zero_ptr, c_ptr, M, N, K,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    in_rows, in_cols = rows[:, None] < M, cols < N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + ks
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=in_rows, other=0.0)
        words = tl.load(b_ptr + (k // 8)[:, None] * N + cols[None, :], mask=in_cols[None, :], other=0)
        group = start // GROUP
        scale = tl.load(scale_ptr + group * N + cols, mask=in_cols, other=0.0)
        zero = tl.load(zero_ptr + group * N + cols, mask=in_cols, other=0)
        acc = tl.dot(a, unpack(words, k, scale, zero).to(a.dtype), acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=in_rows & in_cols[None, :])


# tile: M, N, K, group = 40, 200, 256, 128
# tile: a = randn(M, K, dtype=fp16)
# tile: b = randint(0, 2147483647, K // 8, N, dtype=int32)
# tile: scale, zero = rand(K // group, N, seed=1, dtype=fp16), randint(0, 16, K // group, N, seed=2, dtype=int8)
# tile: dense, c = empty(K, N, dtype=fp16), empty(M, N, dtype=fp16)
# tile: dequantize_int4_kernel[(K // 64, cdiv(N, 64))](b, scale, zero, dense, N, GROUP=group, BLOCK_K=64, BLOCK_N=64)
# tile: matmul_int4_kernel[(cdiv(M, 32), cdiv(N, 64))](a, b, scale, zero, c, M, N, K, GROUP=group, BLOCK_M=32, BLOCK_N=64, BLOCK_K=64)
# tile: assert allclose(dense[0], ((b[0] - b[0] // 16 * 16).to(fp32) - zero[0].to(fp32)) * scale[0].to(fp32), rtol=1e-3)
# tile: assert allclose(c, a.to(fp32) @ dense.to(fp32), rtol=1e-2, atol=1e-1)
