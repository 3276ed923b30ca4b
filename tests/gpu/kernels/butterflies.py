"""Sums and differences of elements far apart, which lanes and warps hold: pairs are split and joined again."""

import triton
import triton.language as tl


@triton.jit
def butterfly(x, N: tl.constexpr, STEP: tl.constexpr):
    pairs = tl.permute(tl.reshape(x, (N // (2 * STEP), 2, STEP)), (0, 2, 1))
    low, high = tl.split(pairs)
    pairs = tl.join(low + high, low - high)
    return tl.reshape(tl.permute(pairs, (0, 2, 1)), (N,))


# tile: x, out = randn(256), empty(256)
# tile: twice_kernel[(1,)](x, out, N=256, num_warps=1)
# tile: assert allclose(out, x * 256, rtol=1e-4, atol=1e-3)

# tile: x, out = randn(256), empty(256)
# tile: twice_kernel[(1,)](x, out, N=256, num_warps=4)
# tile: assert allclose(out, x * 256, rtol=1e-4, atol=1e-3)

# tile: x, out = randn(256, dtype=fp16), empty(256, dtype=fp16)
# tile: twice_kernel[(1,)](x, out, N=256, num_warps=1)
# tile: assert allclose(out.to(fp32), x.to(fp32) * 256, rtol=2e-2, atol=2)
@triton.jit
def twice_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """The Walsh-Hadamard transform twice, which gives its argument times N."""
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    for _ in tl.static_range(2):
        x = butterfly(x, N, 1)
        x = butterfly(x, N, 2)
        x = butterfly(x, N, 4)
        x = butterfly(x, N, 8)
        x = butterfly(x, N, 16)
        x = butterfly(x, N, 32)
        x = butterfly(x, N, 64)
        x = butterfly(x, N, 128)
    tl.store(out_ptr + at, x)
