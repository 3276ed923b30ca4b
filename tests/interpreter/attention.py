"""Flash attention, forward: one block of queries per program, keys and values streamed past it."""

import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    n_ctx,
    stride_head,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * stride_head
    rows = start_m + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)

    q_mask = rows[:, None] < n_ctx
    q = tl.load(q_ptr + head + rows[:, None] * HEAD_DIM + dims[None, :], mask=q_mask, other=0.0)
    # exp2 is cheaper than exp: the scale takes the factor log2(e) once for all.
    scale *= 1.44269504
    maximum = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)

    end = tl.minimum(start_m + BLOCK_M, n_ctx) if CAUSAL else n_ctx
    for start_n in range(0, end, BLOCK_N):
        keys = start_n + cols
        k = tl.load(
            k_ptr + head + keys[None, :] * HEAD_DIM + dims[:, None],
            mask=keys[None, :] < n_ctx,
            other=0.0,
        )
        scores = tl.dot(q, k) * scale
        visible = keys[None, :] < n_ctx
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        larger = tl.maximum(maximum, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(maximum - larger)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(
            v_ptr + head + keys[:, None] * HEAD_DIM + dims[None, :],
            mask=keys[:, None] < n_ctx,
            other=0.0,
        )
        acc = acc * shrink[:, None]
        acc = tl.dot(weights.to(v.dtype), v, acc)
        maximum = larger
    out = acc / total[:, None]
    tl.store(
        out_ptr + head + rows[:, None] * HEAD_DIM + dims[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=q_mask,
    )
