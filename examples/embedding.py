"""Rows of a table by index, the gradient of that, and a table that fits into registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def embedding_kernel(index_ptr, table_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    position = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    row = tl.load(index_ptr + position).to(tl.int64)
    x = tl.load(table_ptr + row * n_cols + cols, mask=mask)
    tl.store(out_ptr + position.to(tl.int64) * n_cols + cols, x, mask=mask)


# tile: rows, cols, n = 50, 300, 40
# tile: index, table, out = randint(0, rows, n, dtype=i32), randn(rows, cols), empty(n, cols)
# tile: embedding_kernel[(n, cdiv(cols, 128))](index, table, out, cols, BLOCK_SIZE=128)
# tile: hot = where(index.view(n, 1) == arange(rows).view(1, rows), 1.0, 0.0)
# tile: assert allclose(out, hot @ table, rtol=1e-6)


@triton.jit
def embedding_backward_kernel(index_ptr, dout_ptr, dtable_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    """Adds the gradients of all positions that read a row, in any order."""
    position = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    row = tl.load(index_ptr + position).to(tl.int64)
    dout = tl.load(dout_ptr + position.to(tl.int64) * n_cols + cols, mask=mask)
    tl.atomic_add(dtable_ptr + row * n_cols + cols, dout, mask=mask, sem="relaxed")


# tile: rows, cols, n = 10, 300, 40
# tile: index, dout, dtable = randint(0, rows, n, dtype=i32), randn(n, cols), zeros(rows, cols)
# tile: embedding_backward_kernel[(n, cdiv(cols, 128))](index, dout, dtable, cols, BLOCK_SIZE=128)
# tile: hot = where(index.view(n, 1) == arange(rows).view(1, rows), 1.0, 0.0)
# tile: assert allclose(dtable, hot.T @ dout, rtol=1e-4, atol=1e-5)


@triton.jit
def lookup_kernel(code_ptr, table_ptr, out_ptr, n_elements, CODES: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """Decodes numbers of a small codebook, which is loaded once."""
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    table = tl.load(table_ptr + tl.arange(0, CODES))
    code = tl.load(code_ptr + offsets, mask=mask, other=0).to(tl.int32)
    tl.store(out_ptr + offsets, tl.gather(table, code, axis=0), mask=mask)


# tile: n = 1000
# tile: code, table, out = randint(0, 16, n, dtype=u8), randn(16), empty(n)
# tile: lookup_kernel[(cdiv(n, 256),)](code, table, out, n, CODES=16, BLOCK_SIZE=256)
# tile: assert allclose(out, where(code.view(n, 1) == arange(16).view(1, 16), table, 0.0).sum(1), rtol=1e-6)


class Embedding(torch.autograd.Function):
    """Rows of a contiguous table by int32 index."""

    @staticmethod
    def forward(ctx, index, table):
        out = torch.empty((index.numel(), table.shape[1]), dtype=table.dtype, device=table.device)
        grid = (index.numel(), triton.cdiv(table.shape[1], 1024))
        embedding_kernel[grid](index, table, out, table.shape[1], BLOCK_SIZE=1024)
        ctx.save_for_backward(index)
        ctx.shape = table.shape
        return out

    @staticmethod
    def backward(ctx, dout):
        (index,) = ctx.saved_tensors
        dtable = torch.zeros(ctx.shape, dtype=dout.dtype, device=dout.device)
        grid = (index.numel(), triton.cdiv(ctx.shape[1], 1024))
        embedding_backward_kernel[grid](index, dout, dtable, ctx.shape[1], BLOCK_SIZE=1024)
        return None, dtable


if __name__ == "__main__":
    torch.manual_seed(0)
    index = torch.randint(0, 1000, (2000,), device="cuda", dtype=torch.int32)
    table = torch.randn(1000, 768, device="cuda", requires_grad=True)
    out = Embedding.apply(index, table)
    expected = torch.nn.functional.embedding(index, table)
    torch.testing.assert_close(out, expected)
    dout = torch.randn_like(out)
    ours, = torch.autograd.grad(out, table, dout)
    theirs, = torch.autograd.grad(expected, table, dout)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
