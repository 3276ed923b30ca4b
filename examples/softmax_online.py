"""Softmax of rows that do not fit into registers: the maximum and the sum are kept as blocks pass."""

import torch
import triton
import triton.language as tl


@triton.jit
def online_softmax_kernel(out_ptr, in_ptr, row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    in_ptr += row * row_stride
    out_ptr += row * row_stride

    # Each lane has a maximum and a sum of its own, so that the loop needs no communication.
    top = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        x = tl.load(in_ptr + start + cols, mask=start + cols < n_cols, other=-float("inf"))
        x = x.to(tl.float32)
        higher = tl.maximum(top, x)
        # A lane that has seen nothing yet would compute inf - inf.
        scale = tl.where(higher == -float("inf"), 0.0, tl.exp(top - higher))
        total = total * scale + tl.where(higher == -float("inf"), 0.0, tl.exp(x - higher))
        top = higher
    row_top = tl.max(top, axis=0)
    row_total = tl.sum(total * tl.exp(top - row_top), axis=0)

    for start in range(0, n_cols, BLOCK_SIZE):
        mask = start + cols < n_cols
        x = tl.load(in_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        y = tl.exp(x - row_top) / row_total
        tl.store(out_ptr + start + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


# tile: rows, cols = 8, 5000
# tile: x, out = randn(rows, cols), empty(rows, cols)
# tile: online_softmax_kernel[(rows,)](out, x, x.stride(0), cols, BLOCK_SIZE=1024)
# tile: assert allclose(out, softmax(x, 1), rtol=1e-4, atol=1e-6)


# tile: rows, cols = 4, 700
# tile: x, out = randn(rows, cols, dtype=fp16), empty(rows, cols, dtype=fp16)
# tile: online_softmax_kernel[(rows,)](out, x, x.stride(0), cols, BLOCK_SIZE=1024)
# tile: assert allclose(out, softmax(x.to(fp32), 1), rtol=2e-3, atol=1e-5)


def online_softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension of a contiguous matrix of any width."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    online_softmax_kernel[(n_rows,)](out, x, x.stride(0), n_cols, BLOCK_SIZE=2048, num_warps=8)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(64, 50_257, device="cuda")
    torch.testing.assert_close(online_softmax(x), torch.softmax(x, dim=-1))
