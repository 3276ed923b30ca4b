

@triton.jit
def block(p, n):
    return tl.make_block_ptr(p, (n, 64), (64, 1), (0, 0), (16, 32), (1, 0))


@triton.jit(noinline=True)
def apart_block(d):
    return tl.load(d)


