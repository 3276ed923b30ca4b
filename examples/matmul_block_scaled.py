"""Block-scaled matrix multiplication: 8-bit elements, and a power of two for each 32 of them."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_block_scaled_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """c = a b^T of [M, K] and [N, K] in e4m3; scales are [M, K / 32] and [N, K / 32] in e8m0."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    groups = tl.arange(0, BLOCK_K // 32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + ks
        g = start // 32 + groups
        a_mask = (rows[:, None] < M) & (k[None, :] < K)
        b_mask = (cols[None, :] < N) & (k[:, None] < K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + cols[None, :] * K + k[:, None], mask=b_mask, other=0.0)
        a_scale_mask = (rows[:, None] < M) & (g[None, :] < K // 32)
        b_scale_mask = (cols[:, None] < N) & (g[None, :] < K // 32)
        a_scale = tl.load(a_scale_ptr + rows[:, None] * (K // 32) + g[None, :], mask=a_scale_mask, other=0)
        b_scale = tl.load(b_scale_ptr + cols[:, None] * (K // 32) + g[None, :], mask=b_scale_mask, other=0)
        acc = tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, "e4m3", acc)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


# tile: M, N, K = 40, 50, 192
# tile: a, b, c = randn(M, K).to(fp8e4nv), randn(N, K, seed=1).to(fp8e4nv), empty(M, N)
# tile: a_scale, b_scale = randint(125, 130, M, K // 32, dtype=u8), randint(125, 130, N, K // 32, dtype=u8, seed=1)
# tile: matmul_block_scaled_kernel[(cdiv(M, 32), cdiv(N, 32))](a, a_scale, b, b_scale, c, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64)
# tile: wide_a = a.to(fp32).view(M, K // 32, 32) * exp2(a_scale.to(fp32) - 127.0).view(M, K // 32, 1)
# tile: wide_b = b.to(fp32).view(N, K // 32, 32) * exp2(b_scale.to(fp32) - 127.0).view(N, K // 32, 1)
# tile: assert allclose(c, wide_a.view(M, K) @ wide_b.view(N, K).T, rtol=1e-3, atol=1e-2)


def matmul_block_scaled(a, a_scale, b, b_scale):
    """a b^T in float32 of two contiguous e4m3 matrices with e8m0 scales in uint8."""
    M, K = a.shape
    N, _ = b.shape
    c = torch.empty((M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 128), triton.cdiv(N, 128))
    matmul_block_scaled_kernel[grid](
        a, a_scale, b, b_scale, c, M, N, K, BLOCK_M=128, BLOCK_N=128, BLOCK_K=128, num_warps=8
    )
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(512, 1024, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(256, 1024, device="cuda").to(torch.float8_e4m3fn)
    a_scale = torch.randint(125, 130, (512, 32), device="cuda", dtype=torch.uint8)
    b_scale = torch.randint(125, 130, (256, 32), device="cuda", dtype=torch.uint8)
    widen = lambda x, scale: x.float() * torch.exp2(scale.float() - 127).repeat_interleave(32, dim=1)
    expected = widen(a, a_scale) @ widen(b, b_scale).T
    torch.testing.assert_close(matmul_block_scaled(a, a_scale, b, b_scale), expected, rtol=1e-2, atol=1.0)
