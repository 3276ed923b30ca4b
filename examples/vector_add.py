"""Add two vectors, the hello world of tile kernels."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    # The last program owns fewer than BLOCK_SIZE elements.
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


# tile: n = 98_432
# tile: x, y, out = randn(n), randn(n, seed=1), empty(n)
# tile: add_kernel[(cdiv(n, 1024),)](x, y, out, n, BLOCK_SIZE=1024)
# tile: assert allclose(out, x + y)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The element-wise sum of two tensors of one shape on one GPU."""
    out = torch.empty_like(x)
    n_elements = out.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    add_kernel[grid](x, y, out, n_elements, BLOCK_SIZE=1024)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.rand(98_432, device="cuda")
    y = torch.rand(98_432, device="cuda")
    torch.testing.assert_close(add(x, y), x + y)
