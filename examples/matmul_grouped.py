"""Grouped matrix multiplication: products of different shapes in one launch, from lists of pointers."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_grouped_kernel(
    a_ptrs, b_ptrs, c_ptrs, sizes_ptr, group_size,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """The lists hold addresses of float16 matrices; `sizes_ptr` M, N and K of each product."""
    tile = tl.program_id(0)
    end = 0
    for problem in range(group_size):
        M = tl.load(sizes_ptr + problem * 3)
        N = tl.load(sizes_ptr + problem * 3 + 1)
        K = tl.load(sizes_ptr + problem * 3 + 2)
        tiles_n = tl.cdiv(N, BLOCK_N)
        first = end
        end += tl.cdiv(M, BLOCK_M) * tiles_n
        # Programs take every n-th tile of all problems together.
        while tile >= first and tile < end:
            a_ptr = tl.load(a_ptrs + problem).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_ptrs + problem).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_ptrs + problem).to(tl.pointer_type(tl.float16))
            rows = (tile - first) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
            cols = (tile - first) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
            ks = tl.arange(0, BLOCK_K)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for start in range(0, K, BLOCK_K):
                k = start + ks
                a_mask = (rows[:, None] < M) & (k[None, :] < K)
                b_mask = (k[:, None] < K) & (cols[None, :] < N)
                a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=a_mask, other=0.0)
                b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=b_mask, other=0.0)
                acc = tl.dot(a, b, acc)
            mask = (rows[:, None] < M) & (cols[None, :] < N)
            tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(tl.float16), mask=mask)
            tile += tl.num_programs(0)


# tile: a0, b0, c0 = randn(40, 48, dtype=fp16), randn(48, 24, dtype=fp16, seed=1), empty(40, 24, dtype=fp16)
# tile: a1, b1, c1 = randn(33, 20, dtype=fp16), randn(20, 70, dtype=fp16, seed=1), empty(33, 70, dtype=fp16)
# tile: a, b, c = tensor([a0.data_ptr(), a1.data_ptr()]), tensor([b0.data_ptr(), b1.data_ptr()]), tensor([c0.data_ptr(), c1.data_ptr()])
# tile: sizes = tensor([[40, 24, 48], [33, 70, 20]], dtype=i32)
# tile: matmul_grouped_kernel[(3,)](a, b, c, sizes, 2, BLOCK_M=32, BLOCK_N=32, BLOCK_K=16)
# tile: assert allclose(c0, a0.to(fp32) @ b0.to(fp32), rtol=1e-2, atol=1e-2)
# tile: assert allclose(c1, a1.to(fp32) @ b1.to(fp32), rtol=1e-2, atol=1e-2)


def matmul_grouped(pairs):
    """The products of pairs of contiguous float16 matrices, as a list."""
    results = [
        torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device) for a, b in pairs
    ]
    as_tensor = lambda values, dtype: torch.tensor(values, dtype=dtype, device="cuda")
    processors = torch.cuda.get_device_properties("cuda").multi_processor_count
    matmul_grouped_kernel[(processors,)](
        as_tensor([a.data_ptr() for a, _ in pairs], torch.int64),
        as_tensor([b.data_ptr() for _, b in pairs], torch.int64),
        as_tensor([c.data_ptr() for c in results], torch.int64),
        as_tensor([[a.shape[0], b.shape[1], a.shape[1]] for a, b in pairs], torch.int32),
        len(pairs),
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
    )
    return results


if __name__ == "__main__":
    torch.manual_seed(0)
    shapes = [(1024, 512, 256), (100, 72, 300), (8, 2048, 64)]
    pairs = [
        (
            torch.randn(m, k, device="cuda", dtype=torch.float16),
            torch.randn(k, n, device="cuda", dtype=torch.float16),
        )
        for m, n, k in shapes
    ]
    for (a, b), c in zip(pairs, matmul_grouped(pairs)):
        torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-1)
