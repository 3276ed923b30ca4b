"""Rotary position embedding: pairs of elements rotated by angles that grow with the position."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    x_ptr, out_ptr, cos_ptr, sin_ptr, n_tokens, n_heads, HALF: tl.constexpr, BACKWARD: tl.constexpr
):
    """Rotates x[token, head, i] with x[token, head, i + HALF]; backward, the other way round."""
    token = tl.program_id(0)
    head = tl.program_id(1)
    pair = tl.arange(0, HALF)
    position = token % n_tokens
    cos = tl.load(cos_ptr + position * HALF + pair)
    sin = tl.load(sin_ptr + position * HALF + pair)
    if BACKWARD:
        sin = -sin
    base = (token * n_heads + head) * 2 * HALF
    left = tl.load(x_ptr + base + pair).to(tl.float32)
    right = tl.load(x_ptr + base + HALF + pair).to(tl.float32)
    dtype = out_ptr.dtype.element_ty
    tl.store(out_ptr + base + pair, (left * cos - right * sin).to(dtype))
    tl.store(out_ptr + base + HALF + pair, (right * cos + left * sin).to(dtype))


# tile: tokens, heads, half = 20, 4, 32
# tile: x, out, back = randn(tokens, heads, 2 * half), empty(tokens, heads, 2 * half), empty(tokens, heads, 2 * half)
# tile: angle = arange(tokens).view(tokens, 1) * exp(-arange(half) / half * log(10000.0))
# tile: c, s = cos(angle), sin(angle)
# tile: rope_kernel[(tokens, heads)](x, out, c, s, tokens, heads, HALF=half, BACKWARD=False)
# tile: rope_kernel[(tokens, heads)](out, back, c, s, tokens, heads, HALF=half, BACKWARD=True)
# tile: left, right, c3, s3 = x[:, :, :half], x[:, :, half:], c.view(tokens, 1, half), s.view(tokens, 1, half)
# tile: assert allclose(out[:, :, :half], left * c3 - right * s3, rtol=1e-5, atol=1e-5)
# tile: assert allclose(out[:, :, half:], right * c3 + left * s3, rtol=1e-5, atol=1e-5)
# tile: assert allclose(back, x, rtol=1e-5, atol=1e-5)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, backward: bool = False):
    """Rotates contiguous [batch, tokens, heads, dims] by the angles' [tokens, dims / 2]."""
    batch, n_tokens, n_heads, dims = x.shape
    out = torch.empty_like(x)
    rope_kernel[(batch * n_tokens, n_heads)](
        x, out, cos, sin, n_tokens, n_heads, HALF=dims // 2, BACKWARD=backward, num_warps=1
    )
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(2, 100, 8, 128, device="cuda")
    angle = torch.outer(torch.arange(100.0), 10000 ** (-torch.arange(64.0) / 64)).cuda()
    cos, sin = angle.cos(), angle.sin()
    left, right = x.chunk(2, dim=-1)
    c, s = cos[:, None, :], sin[:, None, :]
    expected = torch.cat([left * c - right * s, right * c + left * s], dim=-1)
    torch.testing.assert_close(rope(x, cos, sin), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(rope(expected, cos, sin, backward=True), x, rtol=1e-4, atol=1e-4)
