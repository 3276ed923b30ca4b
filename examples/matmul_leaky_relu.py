"""Matrix multiplication with an activation while the tile is in registers, and autotuned blocks."""

import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


def config(block_m, block_n, block_k, num_stages, num_warps):
    blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8}
    return triton.Config(blocks, num_stages=num_stages, num_warps=num_warps)


@triton.autotune(
    configs=[
        config(128, 256, 64, 3, 8),
        config(128, 128, 64, 4, 4),
        config(128, 64, 32, 4, 4),
        config(64, 64, 32, 5, 4),
        config(32, 64, 32, 5, 2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * tiles_n)
    first_m = group * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    tile_m = first_m + pid % (GROUP_M * tiles_n) % group_m
    tile_n = pid % (GROUP_M * tiles_n) // group_m

    # What the compiler may rely on: no offset is negative.
    tl.assume(tile_m >= 0)
    tl.assume(tile_n >= 0)
    rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    cols = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=ks[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        acc = leaky_relu(acc)

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


# tile: M, N, K = 150, 130, 70
# tile: a, b, c = randn(M, K, dtype=fp16), randn(K, N, dtype=fp16, seed=1), empty(M, N, dtype=fp16)
# tile: matmul_kernel[lambda meta: (cdiv(M, meta["BLOCK_M"]) * cdiv(N, meta["BLOCK_N"]),)](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), ACTIVATION="leaky_relu")
# tile: product = a.to(fp32) @ b.to(fp32)
# tile: assert allclose(c, where(product >= 0, product, 0.01 * product), rtol=1e-2, atol=1e-2)


# tile: M, N, K = 64, 96, 80
# tile: a, b, c = randn(M, K, dtype=fp16), randn(N, K, dtype=fp16, seed=1).T, empty(M, N, dtype=fp16)
# tile: matmul_kernel[lambda meta: (cdiv(M, meta["BLOCK_M"]) * cdiv(N, meta["BLOCK_N"]),)](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), ACTIVATION="")
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32), rtol=1e-2, atol=1e-2)


def matmul(a: torch.Tensor, b: torch.Tensor, activation: str = "") -> torch.Tensor:
    """The product of two matrices of any strides, through "leaky_relu" or nothing."""
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)
    matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        ACTIVATION=activation,
    )
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(512, 512, device="cuda", dtype=torch.float16)
    b = torch.randn(512, 512, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(matmul(a, b.T), a @ b.T, rtol=1e-2, atol=1e-1)
    expected = torch.nn.functional.leaky_relu(a @ b, 0.01)
    torch.testing.assert_close(matmul(a, b, "leaky_relu"), expected, rtol=1e-2, atol=1e-1)
