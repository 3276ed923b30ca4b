"""Two dependent kernels of which the second starts before the first has ended (Hopper and newer)."""

import torch
import triton
import triton.language as tl
from triton.language.target_info import cuda_capability_geq


@triton.jit
def scale_kernel(x_ptr, out_ptr, n_elements, factor, OVERLAP: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    if OVERLAP and cuda_capability_geq(9, 0):
        # Until here nothing depends on what the kernel before this one wrote.
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * factor, mask=mask)


# tile: n = 5000
# tile: x, once, twice = randn(n), empty(n), empty(n)
# tile: scale_kernel[(cdiv(n, 1024),)](x, once, n, 3.0, OVERLAP=False, BLOCK_SIZE=1024)
# tile: scale_kernel[(cdiv(n, 1024),)](once, twice, n, 0.5, OVERLAP=False, BLOCK_SIZE=1024)
# tile: assert allclose(twice, 1.5 * x, rtol=1e-6)


def scale_twice(x: torch.Tensor, first: float, second: float) -> torch.Tensor:
    """`x` times both factors, by two kernels that overlap where the GPU can."""
    once, twice = torch.empty_like(x), torch.empty_like(x)
    n_elements = x.numel()
    overlap = torch.cuda.get_device_capability()[0] >= 9
    grid = (triton.cdiv(n_elements, 1024),)
    options = {"OVERLAP": overlap, "BLOCK_SIZE": 1024, "launch_pdl": overlap}
    scale_kernel[grid](x, once, n_elements, first, **options)
    scale_kernel[grid](once, twice, n_elements, second, **options)
    return twice


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(98_432, device="cuda")
    torch.testing.assert_close(scale_twice(x, 3.0, 0.5), 1.5 * x)
