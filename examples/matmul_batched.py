"""Batched matrix multiplication: several small products per program, in one three-dimensional dot."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_batched_kernel(
    a_ptr, b_ptr, c_ptr, n_batch, M, N, K,
    BLOCK_B: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    batch = tl.program_id(2) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None, None]
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_B, BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + batch * M * K + rows[None, :, None] * K + ks[None, None, :]
        b_ptrs = b_ptr + batch * K * N + ks[None, :, None] * N + cols[None, None, :]
        inside = batch < n_batch
        a_mask = inside & (rows[None, :, None] < M) & (ks[None, None, :] < K)
        b_mask = inside & (ks[None, :, None] < K) & (cols[None, None, :] < N)
        a = tl.load(a_ptrs, mask=a_mask, other=0.0)
        b = tl.load(b_ptrs, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + batch * M * N + rows[None, :, None] * N + cols[None, None, :]
    mask = (batch < n_batch) & (rows[None, :, None] < M) & (cols[None, None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


# tile: B, M, N, K = 5, 20, 36, 40
# tile: a, b, c = randn(B, M, K, dtype=fp16), randn(B, K, N, dtype=fp16, seed=1), empty(B, M, N, dtype=fp16)
# tile: matmul_batched_kernel[(cdiv(N, 16), cdiv(M, 16), cdiv(B, 4))](a, b, c, B, M, N, K, BLOCK_B=4, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=1e-2)


def matmul_batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The products of contiguous [B, M, K] and [B, K, N]."""
    B, M, K = a.shape
    N = b.shape[2]
    c = torch.empty((B, M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(N, 32), triton.cdiv(M, 32), triton.cdiv(B, 4))
    matmul_batched_kernel[grid](
        a, b, c, B, M, N, K, BLOCK_B=4, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32
    )
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(33, 48, 64, device="cuda", dtype=torch.float16)
    b = torch.randn(33, 64, 40, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(matmul_batched(a, b), a @ b, rtol=1e-2, atol=1e-1)
