"""Activation functions for other kernels to import, and their derivatives."""

import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def silu_derivative(x):
    s = tl.sigmoid(x)
    return s * (1 + x * (1 - s))


@triton.jit
def gelu(x):
    # 0.7071... is the root of 1/2.
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_derivative(x):
    # 0.3989... is the normal distribution's density at 0.
    density = 0.3989422804014327 * tl.exp(-0.5 * x * x)
    return 0.5 * (1 + tl.erf(x * 0.7071067811865476)) + x * density
