"""Cumulative sums of rows of any length, and a scan with an operation of one's own."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * row_stride + cols, mask=cols < n_cols, other=0.0)
        tl.store(out_ptr + row * row_stride + cols, carry + tl.cumsum(x, axis=0), mask=cols < n_cols)
        carry += tl.sum(x, axis=0)


# tile: rows, cols = 5, 1000
# tile: x, out = randn(rows, cols), empty(rows, cols)
# tile: cumsum_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK_SIZE=256)
# tile: assert allclose(out, cumsum(x, 1), rtol=1e-4, atol=1e-4)


@triton.jit
def decay_step(a_left, b_left, a_right, b_right):
    """Two steps of h = a h + b as one."""
    return a_left * a_right, b_left * a_right + b_right


@triton.jit
def decay_kernel(a_ptr, b_ptr, h_ptr, row_stride, BLOCK_SIZE: tl.constexpr):
    """The states of the linear recurrence h[t] = a[t] h[t - 1] + b[t], all in one scan."""
    row = tl.program_id(0)
    offsets = row * row_stride + tl.arange(0, BLOCK_SIZE)
    a = tl.load(a_ptr + offsets)
    b = tl.load(b_ptr + offsets)
    _, h = tl.associative_scan((a, b), 0, decay_step)
    tl.store(h_ptr + offsets, h)


# tile: rows, cols = 6, 128
# tile: a, b, h = full(rows, cols, 0.5), randn(rows, cols), empty(rows, cols)
# tile: decay_kernel[(rows,)](a, b, h, cols, BLOCK_SIZE=cols)
# tile: age = arange(cols).view(cols, 1) - arange(cols).view(1, cols)
# tile: assert allclose(h, b @ where(age >= 0.0, exp2(-age), 0.0).T, rtol=1e-4, atol=1e-5)


def cumsum(x: torch.Tensor) -> torch.Tensor:
    """Cumulative sums along the rows of a contiguous float32 matrix."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    cumsum_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK_SIZE=1024)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(100, 5000, device="cuda")
    torch.testing.assert_close(cumsum(x), torch.cumsum(x, dim=1), rtol=1e-3, atol=1e-3)
