"""Layer normalization, forward and backward, with gradients of weight and bias summed in two stages."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_forward(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, N, eps, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    cols = tl.arange(0, BLOCK_SIZE)

    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, N, BLOCK_SIZE):
        total += tl.load(x_ptr + start + cols, mask=start + cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N

    # The mean is subtracted before squaring: large means would cancel otherwise.
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, N, BLOCK_SIZE):
        mask = start + cols < N
        x = tl.load(x_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        centered = tl.where(mask, x - mean, 0.0)
        total += centered * centered
    rstd = 1 / tl.sqrt(tl.sum(total, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, N, BLOCK_SIZE):
        mask = start + cols < N
        w = tl.load(w_ptr + start + cols, mask=mask)
        b = tl.load(b_ptr + start + cols, mask=mask)
        x = tl.load(x_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + start + cols, (x - mean) * rstd * w + b, mask=mask)


# tile: M, N, eps = 16, 700, 1e-5
# tile: x, y, w, b = randn(M, N) * 2.0 + 0.5, empty(M, N), rand(N, seed=1), rand(N, seed=2)
# tile: mean, rstd = empty(M), empty(M)
# tile: layer_norm_forward[(M,)](x, y, w, b, mean, rstd, x.stride(0), N, eps, BLOCK_SIZE=256)
# tile: center = x - x.mean(1, keepdim=True)
# tile: expected = center * rsqrt((center * center).mean(1, keepdim=True) + eps) * w + b
# tile: assert allclose(y, expected, rtol=1e-4, atol=1e-5)
# tile: assert allclose(mean, x.mean(1), rtol=1e-4, atol=1e-6)


@triton.jit
def layer_norm_backward_dx(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, lock_ptr, stride, N,
    GROUP_SIZE: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    """The gradient of one row of `x`, and its share of those of weight and bias.

    Rows are dealt over GROUP_SIZE buffers of partial sums. A lock guards each: 0 or 1 for taken,
    and beside it whether the buffer was ever written.
    """
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)

    x_hat = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    along = tl.sum(x_hat * wdy, axis=0) / N
    level = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + row * stride + cols, (wdy - (x_hat * along + level)) * rstd, mask=mask)

    group = row % GROUP_SIZE
    lock = lock_ptr + group
    written = lock_ptr + GROUP_SIZE + group
    dw_ptrs = dw_ptr + group * N + cols
    db_ptrs = db_ptr + group * N + cols
    dw = dy * x_hat
    db = dy
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(written) == 0:
        tl.atomic_xchg(written, 1)
    else:
        dw += tl.load(dw_ptrs, mask=mask)
        db += tl.load(db_ptrs, mask=mask)
    tl.store(dw_ptrs, dw, mask=mask)
    tl.store(db_ptrs, db, mask=mask)
    # Every lane's sums must be in memory before another program may take the lock.
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


# tile: M, N, groups = 24, 200, 4
# tile: x, dy, w = randn(M, N), randn(M, N, seed=1), rand(N, seed=2)
# tile: mean, rstd = x.mean(1), 1.0 / sqrt(((x - x.mean(1, keepdim=True)) ** 2).mean(1) + 1e-5)
# tile: dx, dw, db, locks = empty(M, N), empty(groups, N), empty(groups, N), zeros(2 * groups, dtype=i32)
# tile: layer_norm_backward_dx[(M,)](dx, dy, dw, db, x, w, mean, rstd, locks, x.stride(0), N, GROUP_SIZE=groups, BLOCK_SIZE=256)
# tile: x_hat, wdy = (x - mean.view(M, 1)) * rstd.view(M, 1), w * dy
# tile: expected = (wdy - x_hat * (x_hat * wdy).mean(1, keepdim=True) - wdy.mean(1, keepdim=True)) * rstd.view(M, 1)
# tile: assert allclose(dx, expected, rtol=1e-4, atol=1e-5)
# tile: assert allclose(dw.sum(0), (dy * x_hat).sum(0), rtol=1e-4, atol=1e-4)
# tile: assert allclose(db.sum(0), dy.sum(0), rtol=1e-4, atol=1e-4)


@triton.jit
def layer_norm_backward_wb(
    dw_part_ptr, db_part_ptr, dw_ptr, db_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """The second stage: sums the M partial gradients of weight and bias."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offsets = rows[:, None] * N + cols[None, :]
        dw += tl.load(dw_part_ptr + offsets, mask=mask, other=0.0)
        db += tl.load(db_part_ptr + offsets, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(db_ptr + cols, tl.sum(db, axis=0), mask=cols < N)


# tile: M, N = 50, 200
# tile: dw_part, db_part, dw, db = randn(M, N), randn(M, N, seed=1), empty(N), empty(N)
# tile: layer_norm_backward_wb[(cdiv(N, 64),)](dw_part, db_part, dw, db, M, N, BLOCK_M=16, BLOCK_N=64)
# tile: assert allclose(dw, dw_part.sum(0), rtol=1e-4, atol=1e-5)
# tile: assert allclose(db, db_part.sum(0), rtol=1e-4, atol=1e-5)


class LayerNorm(torch.autograd.Function):
    """Layer normalization of the rows of a matrix of at most 65,536 columns."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        M, N = x.shape
        y = torch.empty_like(x)
        mean = torch.empty(M, dtype=torch.float32, device=x.device)
        rstd = torch.empty(M, dtype=torch.float32, device=x.device)
        block_size = min(triton.next_power_of_2(N), 4096)
        layer_norm_forward[(M,)](
            x, y, weight, bias, mean, rstd, x.stride(0), N, eps,
            BLOCK_SIZE=block_size, num_warps=8,
        )
        ctx.save_for_backward(x, weight, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        M, N = x.shape
        groups = 96
        locks = torch.zeros(2 * groups, dtype=torch.int32, device=x.device)
        dw_part = torch.zeros((groups, N), dtype=torch.float32, device=x.device)
        db_part = torch.zeros((groups, N), dtype=torch.float32, device=x.device)
        dx, dw, db = torch.empty_like(dy), torch.empty_like(weight), torch.empty_like(weight)
        layer_norm_backward_dx[(M,)](
            dx, dy, dw_part, db_part, x, weight, mean, rstd, locks, x.stride(0), N,
            GROUP_SIZE=groups, BLOCK_SIZE=triton.next_power_of_2(N), num_warps=8,
        )
        layer_norm_backward_wb[(triton.cdiv(N, 128),)](
            dw_part, db_part, dw, db, groups, N, BLOCK_M=32, BLOCK_N=128
        )
        return dx, dw, db, None


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(1151, 2000, device="cuda", requires_grad=True)
    weight = torch.rand(2000, device="cuda", requires_grad=True)
    bias = torch.rand(2000, device="cuda", requires_grad=True)
    dy = torch.randn_like(x)
    y = LayerNorm.apply(x, weight, bias, 1e-5)
    ours = torch.autograd.grad(y, (x, weight, bias), dy)
    expected = torch.nn.functional.layer_norm(x, (2000,), weight, bias, 1e-5)
    theirs = torch.autograd.grad(expected, (x, weight, bias), dy)
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4)
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
