"""Cross entropy of logits and class numbers; the gradient takes the place of the logits."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_forward(
    logits_ptr, target_ptr, loss_ptr, lse_ptr, row_stride, n_cols, IGNORE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    logits_ptr += row * row_stride
    # The maximum so far, and the sum of exponentials relative to it.
    top = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(logits_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    lse = top + tl.log(total)
    loss = 0.0
    if target != IGNORE:
        loss = lse - tl.load(logits_ptr + target).to(tl.float32)
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)


# tile: rows, cols = 12, 2500
# tile: logits, loss, lse = 3.0 * randn(rows, cols), empty(rows), empty(rows)
# tile: target = where(arange(rows) == 3, -100, randint(0, cols, rows, dtype=i64)).to(i64)
# tile: cross_entropy_forward[(rows,)](logits, target, loss, lse, logits.stride(0), cols, IGNORE=-100, BLOCK_SIZE=1024)
# tile: expected = log(exp(logits).sum(1))
# tile: picked = where(arange(cols).view(1, cols) == target.view(rows, 1), logits, 0.0).sum(1)
# tile: assert allclose(lse, expected, rtol=1e-5, atol=1e-5)
# tile: assert allclose(loss, where(target == -100, 0.0, expected - picked), rtol=1e-4, atol=1e-4)


@triton.jit
def cross_entropy_backward(
    logits_ptr, target_ptr, dloss_ptr, lse_ptr, row_stride, n_cols, IGNORE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    """Writes the gradient over the logits, of which nothing else needs the memory any more."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    target = tl.load(target_ptr + row)
    dloss = tl.load(dloss_ptr + row)
    lse = tl.load(lse_ptr + row)
    ptrs = logits_ptr + row * row_stride + cols
    x = tl.load(ptrs, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
    probability = tl.exp(x - lse)
    gradient = dloss * tl.where(cols == target, probability - 1.0, probability)
    gradient = tl.where(target == IGNORE, 0.0, gradient)
    tl.store(ptrs, gradient.to(logits_ptr.dtype.element_ty), mask=cols < n_cols)


# tile: rows, cols = 6, 1500
# tile: given, dloss = randn(rows, cols), rand(rows, seed=1)
# tile: logits, lse = given + 0.0, log(exp(given).sum(1))
# tile: target = where(arange(rows) == 3, -100, randint(0, cols, rows, dtype=i64)).to(i64)
# tile: cross_entropy_backward[(rows, cdiv(cols, 512))](logits, target, dloss, lse, logits.stride(0), cols, IGNORE=-100, BLOCK_SIZE=512)
# tile: hot = where(arange(cols).view(1, cols) == target.view(rows, 1), 1.0, 0.0)
# tile: scale = where(target == -100, 0.0, dloss).view(rows, 1)
# tile: assert allclose(logits, scale * (softmax(given, 1) - hot), rtol=1e-4, atol=1e-6)


class CrossEntropy(torch.autograd.Function):
    """Loss of each row; rows whose target is -100 have none."""

    @staticmethod
    def forward(ctx, logits, target):
        n_rows, n_cols = logits.shape
        loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
        lse = torch.empty_like(loss)
        cross_entropy_forward[(n_rows,)](
            logits, target, loss, lse, logits.stride(0), n_cols,
            IGNORE=-100, BLOCK_SIZE=4096, num_warps=8,
        )
        ctx.save_for_backward(logits, target, lse)
        return loss

    @staticmethod
    def backward(ctx, dloss):
        logits, target, lse = ctx.saved_tensors
        n_rows, n_cols = logits.shape
        grid = lambda meta: (n_rows, triton.cdiv(n_cols, meta["BLOCK_SIZE"]))
        cross_entropy_backward[grid](
            logits, target, dloss, lse, logits.stride(0), n_cols,
            IGNORE=-100, BLOCK_SIZE=4096, num_warps=8,
        )
        return logits, None


if __name__ == "__main__":
    torch.manual_seed(0)
    logits = torch.randn(128, 32_000, device="cuda")
    target = torch.randint(0, 32_000, (128,), device="cuda")
    target[5] = -100
    dloss = torch.rand(128, device="cuda")
    leaf = logits.clone().requires_grad_()
    expected = torch.nn.functional.cross_entropy(leaf, target, reduction="none")
    expected.backward(dloss)
    ours = logits.clone().requires_grad_()
    loss = CrossEntropy.apply(ours, target)
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)
    loss.backward(dloss)
    torch.testing.assert_close(ours.grad, leaf.grad, rtol=1e-3, atol=1e-5)
