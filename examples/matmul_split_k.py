"""Split-K matrix multiplication: several programs share one tile's K and add to it atomically."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):
    """Adds a b to `c`, which the caller has set to zero."""
    tile = tl.program_id(0)
    share = tl.program_id(1)
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(share * BLOCK_K, K, BLOCK_K * SPLIT_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (cols[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_am + ks[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * stride_bk + cols[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    # Nothing waits for these sums within the kernel, so no order is needed.
    tl.atomic_add(c_ptrs, acc, mask=mask, sem="relaxed")


# tile: M, N, K = 40, 50, 300
# tile: a, b, c = randn(M, K, dtype=fp16), randn(K, N, dtype=fp16, seed=1), zeros(M, N)
# tile: matmul_split_k_kernel[(cdiv(M, 32) * cdiv(N, 32), 4)](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, SPLIT_K=4)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-3, atol=1e-3)


def matmul_split_k(a: torch.Tensor, b: torch.Tensor, split_k: int = 8) -> torch.Tensor:
    """The product in float32 of two contiguous matrices with a long K."""
    M, K = a.shape
    _, N = b.shape
    c = torch.zeros((M, N), dtype=torch.float32, device=a.device)
    grid = lambda meta: (
        triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),
        meta["SPLIT_K"],
    )
    matmul_split_k_kernel[grid](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, SPLIT_K=split_k, num_warps=4, num_stages=3,
    )
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(64, 16_384, device="cuda", dtype=torch.float16)
    b = torch.randn(16_384, 128, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(matmul_split_k(a, b), a.float() @ b.float(), rtol=1e-2, atol=1e-1)
