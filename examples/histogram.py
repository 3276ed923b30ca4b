"""A histogram: counted per block in registers, then added to the bins atomically."""

import torch
import triton
import triton.language as tl


@triton.jit
def histogram_kernel(x_ptr, bins_ptr, n_elements, BINS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """Adds the counts of integers from 0 to BINS - 1 to the bins."""
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    counts = tl.histogram(x, BINS, mask=mask)
    tl.atomic_add(bins_ptr + tl.arange(0, BINS), counts, sem="relaxed")


# tile: n = 5000
# tile: x, bins = randint(0, 64, n, dtype=i32), zeros(64, dtype=i32)
# tile: histogram_kernel[(cdiv(n, 1024),)](x, bins, n, BINS=64, BLOCK_SIZE=1024)
# tile: assert allclose(bins, sum(x.view(n, 1) == arange(64).view(1, 64), 0), rtol=0, atol=0)


def histogram(x: torch.Tensor, n_bins: int) -> torch.Tensor:
    """How often each integer below `n_bins`, a power of two, occurs in `x`."""
    bins = torch.zeros(n_bins, dtype=torch.int32, device=x.device)
    n_elements = x.numel()
    grid = (triton.cdiv(n_elements, 2048),)
    histogram_kernel[grid](x, bins, n_elements, BINS=n_bins, BLOCK_SIZE=2048)
    return bins


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randint(0, 256, (100_000,), device="cuda", dtype=torch.int32)
    expected = torch.bincount(x, minlength=256).to(torch.int32)
    torch.testing.assert_close(histogram(x, 256), expected)
