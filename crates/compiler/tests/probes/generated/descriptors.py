

@triton.jit
def make(p, n):
    return tl.make_tensor_descriptor(p, [n, 64], [64, 1], [16, 32])


@triton.jit
def loaded(d, i, n):
    return d.load([i, n])


@triton.jit(noinline=True)
def apart_load(d, n):
    return d.load([n, 0])


@triton.jit
def maybe_make(p, n, described: tl.constexpr):
    if described:
        d = make(p, n)
    else:
        d = p
    return d


