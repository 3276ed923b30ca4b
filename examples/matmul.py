"""Matrix multiplication, one tile of the result per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_bk,
    stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    # Programs that run side by side share rows of `a` and columns of `b`: they go down GROUP_M
    # tiles before they move one tile to the right, so that both stay in the cache.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = pid // per_group * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    tile_m = first_m + pid % per_group % group_m
    tile_n = pid % per_group // group_m

    # Rows and columns beyond the end wrap around: they are computed and never stored.
    rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    cols = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=ks[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


# tile: M, N, K = 96, 80, 72
# tile: a, b, c = randn(M, K, dtype=fp16), randn(K, N, dtype=fp16, seed=1), empty(M, N, dtype=fp16)
# tile: matmul_kernel[(cdiv(M, 32) * cdiv(N, 32),)](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
# tile: assert allclose(c, a @ b, rtol=1e-2, atol=1e-2)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product of two contiguous matrices of one dtype."""
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    block_m, block_n, block_k = 128, 256, 64
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8,
        num_warps=8, num_stages=3,
    )
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(1024, 512, device="cuda", dtype=torch.float16)
    b = torch.randn(512, 768, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(matmul(a, b), a @ b, rtol=1e-2, atol=1e-2)
