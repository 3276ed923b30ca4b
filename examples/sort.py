"""Sorted rows, and the largest elements of rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def sort_kernel(x_ptr, out_ptr, n_cols, DESCENDING: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    # What is not there must end up behind everything else.
    last = -float("inf") if DESCENDING else float("inf")
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=last)
    tl.store(out_ptr + row * n_cols + cols, tl.sort(x, descending=DESCENDING), mask=cols < n_cols)


# tile: rows, cols = 3, 200
# tile: x, up, down = randn(rows, cols), empty(rows, cols), empty(rows, cols)
# tile: sort_kernel[(rows,)](x, up, cols, DESCENDING=False, BLOCK_SIZE=256)
# tile: sort_kernel[(rows,)](x, down, cols, DESCENDING=True, BLOCK_SIZE=256)
# tile: assert allclose(up, sort(x), rtol=0, atol=0)
# tile: assert allclose(down, -sort(-x), rtol=0, atol=0)


@triton.jit
def topk_kernel(x_ptr, out_ptr, n_cols, K: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    tl.store(out_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


# tile: rows, cols, k = 4, 100, 8
# tile: x, out = randn(rows, cols), empty(rows, k)
# tile: topk_kernel[(rows,)](x, out, cols, K=k, BLOCK_SIZE=128)
# tile: assert allclose(out, -sort(-x)[:, :k], rtol=0, atol=0)


def sort_rows(x: torch.Tensor, descending: bool = False) -> torch.Tensor:
    """Each row of a contiguous matrix in order."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    sort_kernel[(n_rows,)](
        x, out, n_cols, DESCENDING=descending, BLOCK_SIZE=triton.next_power_of_2(n_cols)
    )
    return out


def topk(x: torch.Tensor, k: int) -> torch.Tensor:
    """The k largest elements of each row of a contiguous matrix, largest first; k a power of two."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, k), dtype=x.dtype, device=x.device)
    topk_kernel[(n_rows,)](x, out, n_cols, K=k, BLOCK_SIZE=triton.next_power_of_2(n_cols))
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(64, 900, device="cuda")
    torch.testing.assert_close(sort_rows(x), x.sort(dim=1).values)
    torch.testing.assert_close(sort_rows(x, True), x.sort(dim=1, descending=True).values)
    torch.testing.assert_close(topk(x, 16), x.topk(16, dim=1).values)
