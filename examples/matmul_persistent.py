"""Persistent matrix multiplication: as many programs as processors, each computes many tiles."""

import torch
import triton
import triton.language as tl


@triton.jit
def place(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of the tile with that number, in groups of GROUP_M rows."""
    per_group = GROUP_M * tiles_n
    first_m = tile // per_group * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    return first_m + tile % group_m, tile % per_group // group_m


@triton.jit
def matmul_persistent_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = a b^T: both `a` and `b` have K as their contiguous dimension."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        tile_m, tile_n = place(tile, tiles_m, tiles_n, GROUP_M)
        rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        # Rows past the end read row 0, in place of a mask: they are never stored.
        a_rows = tl.max_contiguous(tl.multiple_of(tl.where(rows < M, rows, 0), BLOCK_M), BLOCK_M)
        b_rows = tl.max_contiguous(tl.multiple_of(tl.where(cols < N, cols, 0), BLOCK_N), BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(tl.cdiv(K, BLOCK_K)):
            k = step * BLOCK_K + ks
            a = tl.load(a_ptr + a_rows[:, None] * stride_am + k[None, :], mask=k[None, :] < K, other=0.0)
            b = tl.load(b_ptr + b_rows[:, None] * stride_bn + k[None, :], mask=k[None, :] < K, other=0.0)
            acc = tl.dot(a, b.T, acc)
        c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :]
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


# tile: M, N, K = 100, 90, 72
# tile: a, b, c = randn(M, K, dtype=fp16), randn(N, K, dtype=fp16, seed=1), empty(M, N, dtype=fp16)
# tile: matmul_persistent_kernel[(5,)](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=1e-2)


def matmul_persistent(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a b^T for contiguous matrices [M, K] and [N, K]."""
    M, K = a.shape
    N, _ = b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    processors = torch.cuda.get_device_properties(a.device).multi_processor_count
    block_m, block_n = 128, 128
    tiles = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
    matmul_persistent_kernel[(min(processors, tiles),)](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3,
    )
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(1000, 512, device="cuda", dtype=torch.float16)
    b = torch.randn(768, 512, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(matmul_persistent(a, b), a @ b.T, rtol=1e-2, atol=1e-1)
