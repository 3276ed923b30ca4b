"""Quantization of rows to 8 bits, as integers or floats, and a product of what was quantized."""

import torch
import triton
import triton.language as tl


@triton.jit
def quantize_int8_kernel(x_ptr, q_ptr, scale_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-8) / 127.0
    # Rounds to the nearest, halves away from zero; the conversion itself cuts off.
    y = x / scale
    q = tl.where(y >= 0, y + 0.5, y - 0.5).to(tl.int8)
    tl.store(q_ptr + row * n_cols + cols, q, mask=mask)
    tl.store(scale_ptr + row, scale)


# tile: M, N = 12, 300
# tile: x, q, scale = randn(M, N), empty(M, N, dtype=i8), empty(M)
# tile: quantize_int8_kernel[(M,)](x, q, scale, N, BLOCK_SIZE=512)
# tile: assert allclose(scale, max(abs(x), 1) / 127.0, rtol=1e-6)
# tile: assert allclose(q.to(fp32) * scale.view(M, 1), x, rtol=0, atol=0.02)
# tile: assert max(abs(q.to(fp32))) == 127.0


@triton.jit
def quantize_fp8_kernel(x_ptr, q_ptr, scale_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    # 57,344 is the largest number of float8e5.
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-8) / 57344.0
    tl.store(q_ptr + row * n_cols + cols, (x / scale).to(q_ptr.dtype.element_ty), mask=mask)
    tl.store(scale_ptr + row, scale)


# tile: M, N = 12, 300
# tile: x, q, scale = randn(M, N), empty(M, N, dtype=fp8e5), empty(M)
# tile: quantize_fp8_kernel[(M,)](x, q, scale, N, BLOCK_SIZE=512)
# tile: assert allclose(q.to(fp32) * scale.view(M, 1), x, rtol=0.13, atol=1e-4)


@triton.jit
def matmul_int8_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """c = a b^T of int8 matrices [M, K] and [N, K], exact in int32, then scaled by row and column."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=a_mask, other=0)
        b = tl.load(b_ptr + cols[None, :] * K + ks[:, None], mask=b_mask, other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    a_scale = tl.load(a_scale_ptr + rows, mask=rows < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + cols, mask=cols < N, other=0.0)
    c = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], c, mask=mask)


# tile: M, N, K = 40, 50, 100
# tile: a, b, c = randint(-127, 128, M, K, dtype=i8), randint(-127, 128, N, K, dtype=i8, seed=1), empty(M, N)
# tile: a_scale, b_scale = rand(M), rand(N, seed=1)
# tile: matmul_int8_kernel[(cdiv(M, 32), cdiv(N, 32))](a, b, a_scale, b_scale, c, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
# tile: assert allclose(c, (a.to(fp32) @ b.to(fp32).T) * a_scale.view(M, 1) * b_scale.view(1, N), rtol=1e-5, atol=1e-4)


def quantize(x: torch.Tensor, dtype: torch.dtype = torch.int8):
    """Rows of a contiguous matrix as int8 or float8_e5m2, and what to multiply each row with."""
    n_rows, n_cols = x.shape
    q = torch.empty((n_rows, n_cols), dtype=dtype, device=x.device)
    scale = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    kernel = quantize_int8_kernel if dtype == torch.int8 else quantize_fp8_kernel
    kernel[(n_rows,)](x, q, scale, n_cols, BLOCK_SIZE=triton.next_power_of_2(n_cols))
    return q, scale


def matmul_int8(a, a_scale, b, b_scale):
    """a b^T of quantized matrices."""
    (M, K), (N, _) = a.shape, b.shape
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    matmul_int8_kernel[(triton.cdiv(M, 128), triton.cdiv(N, 128))](
        a, b, a_scale, b_scale, c, M, N, K, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8
    )
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(300, 1000, device="cuda")
    b = torch.randn(200, 1000, device="cuda")
    for dtype, tolerance in ((torch.int8, 0.02), (torch.float8_e5m2, 0.3)):
        q, scale = quantize(a, dtype)
        torch.testing.assert_close(q.float() * scale[:, None], a, rtol=0.13, atol=tolerance)
    result = matmul_int8(*quantize(a), *quantize(b))
    torch.testing.assert_close(result, a @ b.T, rtol=0.1, atol=2.0)
