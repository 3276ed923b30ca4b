"""Gated linear units, SwiGLU and GEGLU, forward and backward; the activations are in another file."""

import activations
import torch
import triton
import triton.language as tl
from activations import gelu, silu


@triton.jit
def gated_forward(gate_ptr, up_ptr, out_ptr, n_elements, ACTIVATION: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask)
    out = ACTIVATION(gate).to(up.dtype) * up
    tl.store(out_ptr + offsets, out, mask=mask)


# tile: n = 5000
# tile: gate, up, out = randn(n), randn(n, seed=1), empty(n)
# tile: gated_forward[(cdiv(n, 1024),)](gate, up, out, n, ACTIVATION=silu, BLOCK_SIZE=1024)
# tile: assert allclose(out, gate * sigmoid(gate) * up, rtol=1e-4, atol=1e-5)
# tile: gated_forward[(cdiv(n, 1024),)](gate, up, out, n, ACTIVATION=gelu, BLOCK_SIZE=1024)
# tile: assert allclose(out, 0.5 * gate * (1.0 + erf(gate / sqrt(2.0))) * up, rtol=1e-4, atol=1e-5)


@triton.jit
def gated_backward(
    gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, n_elements,
    GELU: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    dout = tl.load(dout_ptr + offsets, mask=mask).to(tl.float32)
    if GELU:
        value, slope = activations.gelu(gate), activations.gelu_derivative(gate)
    else:
        value, slope = activations.silu(gate), activations.silu_derivative(gate)
    tl.store(dup_ptr + offsets, dout * value, mask=mask)
    tl.store(dgate_ptr + offsets, dout * up * slope, mask=mask)


# tile: n = 5000
# tile: gate, up, dout = randn(n), randn(n, seed=1), randn(n, seed=2)
# tile: dgate, dup, s = empty(n), empty(n), sigmoid(gate)
# tile: gated_backward[(cdiv(n, 1024),)](gate, up, dout, dgate, dup, n, GELU=False, BLOCK_SIZE=1024)
# tile: assert allclose(dup, dout * gate * s, rtol=1e-4, atol=1e-5)
# tile: assert allclose(dgate, dout * up * s * (1.0 + gate * (1.0 - s)), rtol=1e-4, atol=1e-5)
# tile: gated_backward[(cdiv(n, 1024),)](gate, up, dout, dgate, dup, n, GELU=True, BLOCK_SIZE=1024)
# tile: cdf, density = 0.5 * (1.0 + erf(gate / sqrt(2.0))), exp(-0.5 * gate * gate) / sqrt(2.0 * 3.141592653589793)
# tile: assert allclose(dup, dout * gate * cdf, rtol=1e-4, atol=1e-5)
# tile: assert allclose(dgate, dout * up * (cdf + gate * density), rtol=1e-4, atol=1e-5)


class Gated(torch.autograd.Function):
    """activation(gate) * up, with GELU or SiLU as the activation."""

    @staticmethod
    def forward(ctx, gate, up, use_gelu):
        out = torch.empty_like(gate)
        n_elements = gate.numel()
        gated_forward[(triton.cdiv(n_elements, 1024),)](
            gate, up, out, n_elements, ACTIVATION=gelu if use_gelu else silu, BLOCK_SIZE=1024
        )
        ctx.save_for_backward(gate, up)
        ctx.use_gelu = use_gelu
        return out

    @staticmethod
    def backward(ctx, dout):
        gate, up = ctx.saved_tensors
        dgate, dup = torch.empty_like(gate), torch.empty_like(up)
        n_elements = gate.numel()
        gated_backward[(triton.cdiv(n_elements, 1024),)](
            gate, up, dout.contiguous(), dgate, dup, n_elements,
            GELU=ctx.use_gelu, BLOCK_SIZE=1024,
        )
        return dgate, dup, None


if __name__ == "__main__":
    torch.manual_seed(0)
    gate = torch.randn(300, 1000, device="cuda", requires_grad=True)
    up = torch.randn(300, 1000, device="cuda", requires_grad=True)
    dout = torch.randn_like(gate)
    for use_gelu in (False, True):
        activation = torch.nn.functional.gelu if use_gelu else torch.nn.functional.silu
        out, expected = Gated.apply(gate, up, use_gelu), activation(gate) * up
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
        ours = torch.autograd.grad(out, (gate, up), dout)
        theirs = torch.autograd.grad(expected, (gate, up), dout)
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
