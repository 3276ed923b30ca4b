"""Flash attention, backward: scores are computed again from q, k and the logarithms of the sums."""

import torch
import triton
import triton.language as tl
from attention import attention


@triton.jit
def attention_delta(out_ptr, dout_ptr, delta_ptr, n_rows, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr):
    """The inner product of each row of `out` with its gradient."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets = rows[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    mask = rows[:, None] < n_rows
    out = tl.load(out_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(out * dout, axis=1), mask=rows < n_rows)


# tile: n, d = 100, 32
# tile: out, dout, delta = randn(n, d, dtype=fp16), randn(n, d, dtype=fp16, seed=1), empty(n)
# tile: attention_delta[(cdiv(n, 64),)](out, dout, delta, n, HEAD_DIM=d, BLOCK_M=64)
# tile: assert allclose(delta, (out.to(fp32) * dout.to(fp32)).sum(1), rtol=1e-4, atol=1e-4)


@triton.jit
def attention_backward_kv(
    q_ptr, k_ptr, v_ptr, dout_ptr, dk_ptr, dv_ptr, lse_ptr, delta_ptr, scale, n_ctx,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):
    """Gradients of BLOCK_N keys and values, over all rows of queries that see them."""
    head = tl.program_id(1).to(tl.int64)
    first_col = tl.program_id(0) * BLOCK_N
    cols = first_col + tl.arange(0, BLOCK_N)
    rows = tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    base = head * n_ctx * HEAD_DIM
    kv_offsets = base + cols[:, None] * HEAD_DIM + dims[None, :]
    k = tl.load(k_ptr + kv_offsets, mask=cols[:, None] < n_ctx, other=0.0)
    v = tl.load(v_ptr + kv_offsets, mask=cols[:, None] < n_ctx, other=0.0)
    dk = tl.zeros((BLOCK_N, HEAD_DIM), tl.float32)
    dv = tl.zeros((BLOCK_N, HEAD_DIM), tl.float32)
    first_row = first_col // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start in range(first_row, n_ctx, BLOCK_M):
        here = start + rows
        mask = here < n_ctx
        offsets = base + here[:, None] * HEAD_DIM + dims[None, :]
        q = tl.load(q_ptr + offsets, mask=mask[:, None], other=0.0)
        dout = tl.load(dout_ptr + offsets, mask=mask[:, None], other=0.0)
        lse = tl.load(lse_ptr + head * n_ctx + here, mask=mask, other=0.0)
        delta = tl.load(delta_ptr + head * n_ctx + here, mask=mask, other=0.0)
        # Transposed: a row for each key.
        p = tl.exp2(tl.dot(k, q.T) * (scale * 1.4426950408889634) - lse[None, :])
        if CAUSAL:
            p = tl.where(here[None, :] >= cols[:, None], p, 0.0)
        p = tl.where(mask[None, :], p, 0.0)
        dv = tl.dot(p.to(dout.dtype), dout, dv)
        dp = tl.dot(v, dout.T)
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    tl.store(dk_ptr + kv_offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=cols[:, None] < n_ctx)
    tl.store(dv_ptr + kv_offsets, dv.to(dv_ptr.dtype.element_ty), mask=cols[:, None] < n_ctx)


# tile: heads, n, d, scale = 2, 70, 32, 0.2
# tile: q, k, v = randn(heads, n, d, dtype=fp16), randn(heads, n, d, dtype=fp16, seed=1), randn(heads, n, d, dtype=fp16, seed=2)
# tile: dout, dk, dv = randn(heads, n, d, dtype=fp16, seed=3), empty(heads, n, d, dtype=fp16), empty(heads, n, d, dtype=fp16)
# tile: scores = scale * (q.to(fp32) @ k.to(fp32).transpose(1, 2))
# tile: p, dp = softmax(scores, 2), dout.to(fp32) @ v.to(fp32).transpose(1, 2)
# tile: delta, lse = (p * dp).sum(2), log2(exp(scores).sum(2))
# tile: attention_backward_kv[(cdiv(n, 32), heads)](q, k, v, dout, dk, dv, lse, delta, scale, n, HEAD_DIM=d, BLOCK_M=16, BLOCK_N=32, CAUSAL=False)
# tile: ds = p * (dp - delta.view(heads, n, 1))
# tile: assert allclose(dv, p.transpose(1, 2) @ dout.to(fp32), rtol=2e-2, atol=2e-2)
# tile: assert allclose(dk, scale * (ds.transpose(1, 2) @ q.to(fp32)), rtol=2e-2, atol=2e-2)


# tile: heads, n, d, scale = 2, 70, 32, 0.2
# tile: q, k, v = randn(heads, n, d, dtype=fp16), randn(heads, n, d, dtype=fp16, seed=1), randn(heads, n, d, dtype=fp16, seed=2)
# tile: dout, dk, dv = randn(heads, n, d, dtype=fp16, seed=3), empty(heads, n, d, dtype=fp16), empty(heads, n, d, dtype=fp16)
# tile: scores = where(arange(n).view(n, 1) >= arange(n).view(1, n), scale * (q.to(fp32) @ k.to(fp32).transpose(1, 2)), -1e30)
# tile: p, dp = softmax(scores, 2), dout.to(fp32) @ v.to(fp32).transpose(1, 2)
# tile: delta, lse = (p * dp).sum(2), log2(exp(scores).sum(2))
# tile: attention_backward_kv[(cdiv(n, 32), heads)](q, k, v, dout, dk, dv, lse, delta, scale, n, HEAD_DIM=d, BLOCK_M=16, BLOCK_N=32, CAUSAL=True)
# tile: ds = p * (dp - delta.view(heads, n, 1))
# tile: assert allclose(dv, p.transpose(1, 2) @ dout.to(fp32), rtol=2e-2, atol=2e-2)
# tile: assert allclose(dk, scale * (ds.transpose(1, 2) @ q.to(fp32)), rtol=2e-2, atol=2e-2)


@triton.jit
def attention_backward_q(
    q_ptr, k_ptr, v_ptr, dout_ptr, dq_ptr, lse_ptr, delta_ptr, scale, n_ctx,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):
    """Gradients of BLOCK_M queries, over all keys that they see."""
    head = tl.program_id(1).to(tl.int64)
    first_row = tl.program_id(0) * BLOCK_M
    rows = first_row + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    base = head * n_ctx * HEAD_DIM
    offsets = base + rows[:, None] * HEAD_DIM + dims[None, :]
    mask = rows < n_ctx
    q = tl.load(q_ptr + offsets, mask=mask[:, None], other=0.0)
    dout = tl.load(dout_ptr + offsets, mask=mask[:, None], other=0.0)
    lse = tl.load(lse_ptr + head * n_ctx + rows, mask=mask, other=0.0)
    delta = tl.load(delta_ptr + head * n_ctx + rows, mask=mask, other=0.0)
    dq = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    last = min(first_row + BLOCK_M, n_ctx) if CAUSAL else n_ctx
    for start in range(0, last, BLOCK_N):
        here = start + cols
        kv_offsets = base + here[:, None] * HEAD_DIM + dims[None, :]
        k = tl.load(k_ptr + kv_offsets, mask=here[:, None] < n_ctx, other=0.0)
        v = tl.load(v_ptr + kv_offsets, mask=here[:, None] < n_ctx, other=0.0)
        p = tl.exp2(tl.dot(q, k.T) * (scale * 1.4426950408889634) - lse[:, None])
        if CAUSAL:
            p = tl.where(rows[:, None] >= here[None, :], p, 0.0)
        ds = p * (tl.dot(dout, v.T) - delta[:, None])
        # Keys past the end are zero, whatever their share is.
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + offsets, (dq * scale).to(dq_ptr.dtype.element_ty), mask=mask[:, None])


# tile: heads, n, d, scale = 2, 70, 32, 0.2
# tile: q, k, v = randn(heads, n, d, dtype=fp16), randn(heads, n, d, dtype=fp16, seed=1), randn(heads, n, d, dtype=fp16, seed=2)
# tile: dout, dq = randn(heads, n, d, dtype=fp16, seed=3), empty(heads, n, d, dtype=fp16)
# tile: scores = scale * (q.to(fp32) @ k.to(fp32).transpose(1, 2))
# tile: p, dp = softmax(scores, 2), dout.to(fp32) @ v.to(fp32).transpose(1, 2)
# tile: delta, lse = (p * dp).sum(2), log2(exp(scores).sum(2))
# tile: attention_backward_q[(cdiv(n, 32), heads)](q, k, v, dout, dq, lse, delta, scale, n, HEAD_DIM=d, BLOCK_M=32, BLOCK_N=16, CAUSAL=False)
# tile: assert allclose(dq, scale * ((p * (dp - delta.view(heads, n, 1))) @ k.to(fp32)), rtol=2e-2, atol=2e-2)


# tile: heads, n, d, scale = 2, 70, 32, 0.2
# tile: q, k, v = randn(heads, n, d, dtype=fp16), randn(heads, n, d, dtype=fp16, seed=1), randn(heads, n, d, dtype=fp16, seed=2)
# tile: dout, dq = randn(heads, n, d, dtype=fp16, seed=3), empty(heads, n, d, dtype=fp16)
# tile: scores = where(arange(n).view(n, 1) >= arange(n).view(1, n), scale * (q.to(fp32) @ k.to(fp32).transpose(1, 2)), -1e30)
# tile: p, dp = softmax(scores, 2), dout.to(fp32) @ v.to(fp32).transpose(1, 2)
# tile: delta, lse = (p * dp).sum(2), log2(exp(scores).sum(2))
# tile: attention_backward_q[(cdiv(n, 32), heads)](q, k, v, dout, dq, lse, delta, scale, n, HEAD_DIM=d, BLOCK_M=32, BLOCK_N=16, CAUSAL=True)
# tile: assert allclose(dq, scale * ((p * (dp - delta.view(heads, n, 1))) @ k.to(fp32)), rtol=2e-2, atol=2e-2)


class Attention(torch.autograd.Function):
    """Attention over contiguous [batch, heads, tokens, dims] tensors."""

    @staticmethod
    def forward(ctx, q, k, v, causal, scale):
        out, lse = attention(q, k, v, causal, scale)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal, ctx.scale = causal, scale
        return out

    @staticmethod
    def backward(ctx, dout):
        q, k, v, out, lse = ctx.saved_tensors
        batch, heads, n_ctx, d = q.shape
        dout = dout.contiguous()
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        delta = torch.empty_like(lse)
        n_rows = batch * heads * n_ctx
        attention_delta[(triton.cdiv(n_rows, 128),)](out, dout, delta, n_rows, HEAD_DIM=d, BLOCK_M=128)
        attention_backward_kv[(triton.cdiv(n_ctx, 64), batch * heads)](
            q, k, v, dout, dk, dv, lse, delta, ctx.scale, n_ctx,
            HEAD_DIM=d, BLOCK_M=64, BLOCK_N=64, CAUSAL=ctx.causal, num_warps=4, num_stages=2,
        )
        attention_backward_q[(triton.cdiv(n_ctx, 64), batch * heads)](
            q, k, v, dout, dq, lse, delta, ctx.scale, n_ctx,
            HEAD_DIM=d, BLOCK_M=64, BLOCK_N=64, CAUSAL=ctx.causal, num_warps=4, num_stages=2,
        )
        return dq, dk, dv, None, None


if __name__ == "__main__":
    torch.manual_seed(0)
    shape = (2, 4, 1000, 64)
    q, k, v = (
        torch.randn(shape, device="cuda", dtype=torch.float16, requires_grad=True)
        for _ in range(3)
    )
    dout = torch.randn(shape, device="cuda", dtype=torch.float16)
    for causal in (False, True):
        ours = torch.autograd.grad(Attention.apply(q, k, v, causal, 0.125), (q, k, v), dout)
        expected = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal, scale=0.125
        )
        theirs = torch.autograd.grad(expected, (q, k, v), dout)
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2)
