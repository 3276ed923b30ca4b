"""A function of CUDA's device library, called by its name."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def asin_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, libdevice.asin(x), mask=mask)


# tile: n = 10_000
# tile: x, out = 2.0 * rand(n) - 1.0, empty(n)
# tile: asin_kernel[(cdiv(n, 1024),)](x, out, n, BLOCK_SIZE=1024)
# tile: assert allclose(out, asin(x), rtol=1e-5, atol=1e-6)


def asin(x: torch.Tensor) -> torch.Tensor:
    """The arc sine of each element."""
    out = torch.empty_like(x)
    n_elements = x.numel()
    asin_kernel[(triton.cdiv(n_elements, 1024),)](x, out, n_elements, BLOCK_SIZE=1024)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    x = 2 * torch.rand(98_432, device="cuda") - 1
    torch.testing.assert_close(asin(x), torch.asin(x))
