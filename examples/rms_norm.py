"""RMS normalization, forward and backward."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_forward(
    x_ptr, y_ptr, w_ptr, rstd_ptr, row_stride, n_cols, eps, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(rstd_ptr + row, rstd)
    tl.store(y_ptr + row * row_stride + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


# tile: M, N, eps = 16, 300, 1e-6
# tile: x, w, y, rstd = randn(M, N, dtype=bf16), rand(N, seed=1), empty(M, N, dtype=bf16), empty(M)
# tile: rms_norm_forward[(M,)](x, y, w, rstd, x.stride(0), N, eps, BLOCK_SIZE=next_power_of_2(N))
# tile: wide = x.to(fp32)
# tile: assert allclose(rstd, rsqrt((wide * wide).mean(1) + eps), rtol=1e-5)
# tile: assert allclose(y, wide * rstd.view(M, 1) * w, rtol=1e-2, atol=1e-2)


@triton.jit
def rms_norm_backward(
    dy_ptr, dx_ptr, dw_ptr, x_ptr, w_ptr, rstd_ptr, row_stride, n_rows, n_cols, rows_per_program,
    BLOCK_SIZE: tl.constexpr,
):
    """Gradients of some rows; each program sums its share of the weight's gradient in registers."""
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_SIZE,), tl.float32)
    first = program * rows_per_program
    for row in range(first, min(first + rows_per_program, n_rows)):
        offsets = row.to(tl.int64) * row_stride + cols
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        x_hat = x * rstd
        wdy = w * dy
        dx = (wdy - x_hat * (tl.sum(x_hat * wdy, axis=0) / n_cols)) * rstd
        tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * x_hat
    tl.store(dw_ptr + program * n_cols + cols, dw, mask=mask)


# tile: M, N, programs = 22, 300, 4
# tile: x, dy, w = randn(M, N), randn(M, N, seed=1), rand(N, seed=2)
# tile: dx, dw, rstd = empty(M, N), empty(programs, N), rsqrt((x * x).mean(1) + 1e-6)
# tile: rms_norm_backward[(programs,)](dy, dx, dw, x, w, rstd, x.stride(0), M, N, cdiv(M, programs), BLOCK_SIZE=next_power_of_2(N))
# tile: x_hat, wdy = x * rstd.view(M, 1), w * dy
# tile: assert allclose(dx, (wdy - x_hat * (x_hat * wdy).mean(1, keepdim=True)) * rstd.view(M, 1), rtol=1e-4, atol=1e-5)
# tile: assert allclose(dw.sum(0), (dy * x_hat).sum(0), rtol=1e-4, atol=1e-4)


class RMSNorm(torch.autograd.Function):
    """RMS normalization of the rows of a matrix."""

    @staticmethod
    def forward(ctx, x, weight, eps):
        M, N = x.shape
        y = torch.empty_like(x)
        rstd = torch.empty(M, dtype=torch.float32, device=x.device)
        block_size = triton.next_power_of_2(N)
        rms_norm_forward[(M,)](
            x, y, weight, rstd, x.stride(0), N, eps, BLOCK_SIZE=block_size, num_warps=8
        )
        ctx.save_for_backward(x, weight, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensors
        M, N = x.shape
        programs = torch.cuda.get_device_properties(x.device).multi_processor_count
        dx = torch.empty_like(x)
        dw = torch.empty((programs, N), dtype=torch.float32, device=x.device)
        rms_norm_backward[(programs,)](
            dy, dx, dw, x, weight, rstd, x.stride(0), M, N, triton.cdiv(M, programs),
            BLOCK_SIZE=triton.next_power_of_2(N), num_warps=8,
        )
        return dx, dw.sum(dim=0).to(weight.dtype), None


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(1000, 2000, device="cuda", requires_grad=True)
    weight = torch.rand(2000, device="cuda", requires_grad=True)
    dy = torch.randn_like(x)
    y = RMSNorm.apply(x, weight, 1e-6)
    ours = torch.autograd.grad(y, (x, weight), dy)
    expected = torch.nn.functional.rms_norm(x, (2000,), weight, 1e-6)
    theirs = torch.autograd.grad(expected, (x, weight), dy)
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4)
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
