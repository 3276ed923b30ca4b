"""Dropout that stores no mask: the seed and an element's place give its random number again."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    # What is kept is scaled so that the mean stays.
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


# tile: n, p = 10_000, 0.25
# tile: x, out, again, other = randn(n), empty(n), empty(n), empty(n)
# tile: dropout_kernel[(cdiv(n, 1024),)](x, out, n, p, 123, BLOCK_SIZE=1024)
# tile: dropout_kernel[(cdiv(n, 256),)](x, again, n, p, 123, BLOCK_SIZE=256)
# tile: dropout_kernel[(cdiv(n, 1024),)](x, other, n, p, 512, BLOCK_SIZE=1024)
# tile: assert allclose(out, where(out == 0.0, 0.0, x / (1 - p)), rtol=1e-6)
# tile: assert abs(mean(out == 0.0) - p) < 0.02
# tile: assert allclose(again, out, rtol=0, atol=0)
# tile: assert mean((out == 0.0) == (other == 0.0)) < 0.7


@triton.jit
def random_kernel(bits_ptr, uniform_ptr, normal_ptr, seed, BLOCK_SIZE: tl.constexpr):
    """The three kinds of random numbers, from one counter per element."""
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(bits_ptr + offsets, tl.randint(seed, offsets).to(tl.int32, bitcast=True))
    tl.store(uniform_ptr + offsets, tl.rand(seed, offsets))
    tl.store(normal_ptr + offsets, tl.randn(seed, offsets))


# tile: n = 8192
# tile: bits, uniform, normal = empty(n, dtype=i32), empty(n), empty(n)
# tile: random_kernel[(8,)](bits, uniform, normal, 42, BLOCK_SIZE=1024)
# tile: assert uniform.min() >= 0.0 and uniform.max() < 1.0
# tile: assert abs(uniform.mean() - 0.5) < 0.02 and abs(uniform.var() - 1 / 12) < 0.01
# tile: assert abs(normal.mean()) < 0.05 and abs(normal.var() - 1.0) < 0.05
# tile: assert allclose(uniform, where(bits < 0, -1 - bits, bits) * 4.6566127342e-10, rtol=1e-6)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """`x` with each element zero with probability `p`; the same seed drops the same elements."""
    out = torch.empty_like(x)
    n_elements = x.numel()
    dropout_kernel[(triton.cdiv(n_elements, 1024),)](x, out, n_elements, p, seed, BLOCK_SIZE=1024)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(100_000, device="cuda")
    out = dropout(x, 0.5, seed=123)
    torch.testing.assert_close(out, dropout(x, 0.5, seed=123))
    torch.testing.assert_close(out, torch.where(out == 0, 0, 2 * x))
    assert abs((out == 0).float().mean().item() - 0.5) < 0.01
