"""Persistent matrix multiplication with tensor descriptors: shapes in one place, no masks."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_descriptor_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = a b^T: both `a` and `b` have K as their contiguous dimension."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    # The result leaves in two halves, each of which needs half the registers and shared memory.
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N // 2])
    dtype = c_ptr.dtype.element_ty
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    per_group = GROUP_M * tiles_n
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        first_m = tile // per_group * GROUP_M
        group_m = min(tiles_m - first_m, GROUP_M)
        row = (first_m + tile % group_m) * BLOCK_M
        col = tile % per_group // group_m * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a.load([row, k]), b.load([col, k]).T, acc)
        halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        c.store([row, col], left.to(dtype))
        c.store([row, col + BLOCK_N // 2], right.to(dtype))


# tile: M, N, K = 100, 80, 72
# tile: a, b, c = randn(M, K, dtype=fp16), randn(N, K, dtype=fp16, seed=1), empty(M, N, dtype=fp16)
# tile: matmul_descriptor_kernel[(5,)](a, b, c, M, N, K, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
# tile: assert allclose(c, a.to(fp32) @ b.to(fp32).T, rtol=1e-2, atol=1e-2)


def matmul_descriptor(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a b^T for contiguous matrices [M, K] and [N, K] whose rows are multiples of 16 bytes."""
    M, K = a.shape
    N, _ = b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    # Descriptors that a kernel makes live in memory that Triton asks for at the launch.
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    processors = torch.cuda.get_device_properties(a.device).multi_processor_count
    block_m, block_n = 128, 128
    tiles = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
    matmul_descriptor_kernel[(min(processors, tiles),)](
        a, b, c, M, N, K,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=3,
    )
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    a = torch.randn(1000, 512, device="cuda", dtype=torch.float16)
    b = torch.randn(768, 512, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(matmul_descriptor(a, b), a @ b.T, rtol=1e-2, atol=1e-1)
