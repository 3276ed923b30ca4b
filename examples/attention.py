"""Flash attention, forward: softmax(q k^T) v with no row of the scores ever in memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    acc, total, top, q, k_ptrs, v_ptrs, stride_n, first, last, rows, n_ctx, scale,
    BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):
    """Takes the keys from `first` to `last` into the running sums; MASKED: only up to each row."""
    cols = tl.arange(0, BLOCK_N)
    for start in range(first, last, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        inside = start + cols < n_ctx
        k = tl.load(k_ptrs + start * stride_n, mask=inside[None, :], other=0.0)
        scores = tl.dot(q, k) * scale
        if MASKED:
            scores = tl.where(rows[:, None] >= start + cols[None, :], scores, -float("inf"))
        else:
            scores = tl.where(inside[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptrs + start * stride_n, mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        top = higher
    return acc, total, top


@triton.jit
def attention_forward(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale, stride_h, stride_n, n_ctx,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):
    head = tl.program_id(1)
    base = head.to(tl.int64) * stride_h
    first_row = tl.program_id(0) * BLOCK_M
    rows = first_row + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    cols = tl.arange(0, BLOCK_N)

    q_offsets = base + rows[:, None] * stride_n + dims[None, :]
    q = tl.load(q_ptr + q_offsets, mask=rows[:, None] < n_ctx, other=0.0)
    k_ptrs = k_ptr + base + cols[None, :] * stride_n + dims[:, None]
    v_ptrs = v_ptr + base + cols[:, None] * stride_n + dims[None, :]
    # exp2 is what the hardware has: exp(x) is exp2(x / ln 2).
    scale = scale * 1.4426950408889634

    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    if CAUSAL:
        # Keys before the block of rows need no mask; those beside it do.
        acc, total, top = attend(
            acc, total, top, q, k_ptrs, v_ptrs, stride_n, 0, first_row, rows, n_ctx, scale,
            BLOCK_N, False,
        )
        acc, total, top = attend(
            acc, total, top, q, k_ptrs, v_ptrs, stride_n, first_row,
            min(first_row + BLOCK_M, n_ctx), rows, n_ctx, scale, BLOCK_N, True,
        )
    else:
        acc, total, top = attend(
            acc, total, top, q, k_ptrs, v_ptrs, stride_n, 0, n_ctx, rows, n_ctx, scale,
            BLOCK_N, False,
        )
    out = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + q_offsets, out, mask=rows[:, None] < n_ctx)
    tl.store(lse_ptr + head * n_ctx + rows, top + tl.log2(total), mask=rows < n_ctx)


# tile: heads, n, d = 2, 100, 32
# tile: q, k, v = randn(heads, n, d, dtype=fp16), randn(heads, n, d, dtype=fp16, seed=1), randn(heads, n, d, dtype=fp16, seed=2)
# tile: out, lse = empty(heads, n, d, dtype=fp16), empty(heads, n)
# tile: attention_forward[(cdiv(n, 32), heads)](q, k, v, out, lse, 0.125, n * d, d, n, HEAD_DIM=d, BLOCK_M=32, BLOCK_N=16, CAUSAL=False)
# tile: scores = 0.125 * (q.to(fp32) @ k.to(fp32).transpose(1, 2))
# tile: assert allclose(out, softmax(scores, 2) @ v.to(fp32), rtol=1e-2, atol=1e-2)
# tile: assert allclose(lse, log2(exp(scores).sum(2)), rtol=1e-3, atol=1e-3)


# tile: heads, n, d = 2, 100, 32
# tile: q, k, v = randn(heads, n, d, dtype=fp16), randn(heads, n, d, dtype=fp16, seed=1), randn(heads, n, d, dtype=fp16, seed=2)
# tile: out, lse = empty(heads, n, d, dtype=fp16), empty(heads, n)
# tile: attention_forward[(cdiv(n, 32), heads)](q, k, v, out, lse, 0.125, n * d, d, n, HEAD_DIM=d, BLOCK_M=32, BLOCK_N=16, CAUSAL=True)
# tile: scores = 0.125 * (q.to(fp32) @ k.to(fp32).transpose(1, 2))
# tile: seen = where(arange(n).view(n, 1) >= arange(n).view(1, n), scores, -1e30)
# tile: assert allclose(out, softmax(seen, 2) @ v.to(fp32), rtol=1e-2, atol=1e-2)


def attention(q, k, v, causal: bool, scale: float):
    """Attention over contiguous [batch, heads, tokens, dims]; also the base-2 log of the sums."""
    batch, heads, n_ctx, head_dim = q.shape
    out = torch.empty_like(q)
    lse = torch.empty((batch, heads, n_ctx), dtype=torch.float32, device=q.device)
    grid = lambda meta: (triton.cdiv(n_ctx, meta["BLOCK_M"]), batch * heads)
    attention_forward[grid](
        q, k, v, out, lse, scale, q.stride(1), q.stride(2), n_ctx,
        HEAD_DIM=head_dim, BLOCK_M=128, BLOCK_N=64, CAUSAL=causal, num_warps=8, num_stages=3,
    )
    return out, lse


if __name__ == "__main__":
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 1000, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    for causal in (False, True):
        out, _ = attention(q, k, v, causal, 0.125)
        expected = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, scale=0.125
        )
        torch.testing.assert_close(out, expected, rtol=1e-2, atol=1e-2)
