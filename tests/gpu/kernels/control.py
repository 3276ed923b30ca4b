"""Products below branches and loops, long ones on few threads, and scalars that come out of tiles."""

import triton
import triton.language as tl


# tile: a, b = randn(64, 96, dtype=fp16, seed=1), randn(96, 64, dtype=fp16, seed=2)
# tile: sums, out = zeros(64), empty(64, 64)
# tile: twice_or_sums[(1,)](a, b, sums, out, 96, 1)
# tile: assert allclose(out, 2 * (a @ b), rtol=1e-2, atol=1e-2)

# tile: a, b = randn(64, 96, dtype=fp16, seed=3), randn(96, 64, dtype=fp16, seed=4)
# tile: sums, out = zeros(64), empty(64, 64)
# tile: twice_or_sums[(1,)](a, b, sums, out, 96, 0)
# tile: assert allclose(out, a @ b, rtol=1e-2, atol=1e-2)
# tile: assert allclose(sums, (a @ b).sum(0), rtol=1e-2, atol=1e-1)


@triton.jit
def twice_or_sums(a_ptr, b_ptr, sums_ptr, out_ptr, K, twice):
    at, ks = tl.arange(0, 64), tl.arange(0, 32)
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, K, 32):
        a = tl.load(a_ptr + at[:, None] * K + k + ks[None, :])
        b = tl.load(b_ptr + (k + ks[:, None]) * 64 + at[None, :])
        acc = tl.dot(a, b, acc)
    if twice > 0:
        for k in range(0, K, 32):
            a = tl.load(a_ptr + at[:, None] * K + k + ks[None, :])
            b = tl.load(b_ptr + (k + ks[:, None]) * 64 + at[None, :])
            acc = tl.dot(a, b, acc)
    else:
        tl.store(sums_ptr + at, tl.sum(acc, 0))
    tl.store(out_ptr + at[:, None] * 64 + at[None, :], acc)


# tile: pairs, out = randint(0, 100, (64, 2), dtype=i64), empty(64, dtype=i64)
# tile: number_of_pair[(64,)](pairs, out)
# tile: assert allclose(out, pairs[:, 0] * 100 + pairs[:, 1])


@triton.jit
def number_of_pair(pairs_ptr, out_ptr):
    program = tl.program_id(0)
    high, low = tl.split(tl.load(pairs_ptr + 2 * program + tl.arange(0, 2)))
    tl.store(out_ptr + program, high * 100 + low)


# tile: a, b, out = randn(64, 64, seed=5), randn(64, 64, seed=6), empty(64, 64)
# tile: powers[(1,)](a, b, out, num_warps=1)
# tile: assert allclose(out, a @ b @ b, rtol=1e-4, atol=1e-3)

# tile: a, b, out = randn(64, 64, seed=7), randn(64, 64, seed=8), empty(64, 64)
# tile: powers[(1,)](a, b, out, num_warps=2)
# tile: assert allclose(out, a @ b @ b, rtol=1e-4, atol=1e-3)


@triton.jit
def powers(a_ptr, b_ptr, out_ptr):
    at = tl.arange(0, 64)
    places = at[:, None] * 64 + at[None, :]
    a, b = tl.load(a_ptr + places), tl.load(b_ptr + places)
    once = tl.dot(a, b, input_precision="ieee")
    tl.store(out_ptr + places, tl.dot(once, b, input_precision="ieee"))


# tile: a, b = randn(64, 128, dtype=fp64, seed=9), randn(128, 64, dtype=fp64, seed=10)
# tile: out = empty(64, 64, dtype=fp64)
# tile: doubles[(1,)](a, b, out, num_warps=2)
# tile: assert allclose(out, a @ b)


@triton.jit
def doubles(a_ptr, b_ptr, out_ptr):
    at, ks = tl.arange(0, 64), tl.arange(0, 128)
    a = tl.load(a_ptr + at[:, None] * 128 + ks[None, :])
    b = tl.load(b_ptr + ks[:, None] * 64 + at[None, :])
    tl.store(out_ptr + at[:, None] * 64 + at[None, :], tl.dot(a, b))


# tile: a, b, out = randn(64, 64, seed=11) / 8, randn(64, 64, seed=12) / 8, empty(64, 64)
# tile: sixth_power[(1,)](a, b, out, num_warps=2)
# tile: assert allclose(out, a @ b @ b @ b @ b @ b @ b, rtol=1e-4, atol=1e-3)


@triton.jit
def sixth_power(a_ptr, b_ptr, out_ptr):
    at = tl.arange(0, 64)
    places = at[:, None] * 64 + at[None, :]
    product, b = tl.load(a_ptr + places), tl.load(b_ptr + places)
    for _ in tl.static_range(6):
        product = tl.dot(product, b, input_precision="ieee")
    tl.store(out_ptr + places, product)
