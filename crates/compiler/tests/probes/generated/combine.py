

@triton.jit
def identity(a):
    return a


@triton.jit
def wide1(a):
    return a.to(tl.float64)


@triton.jit
def larger2(a, b):
    return tl.maximum(a, b)


@triton.jit
def only_left(a, b):
    return a


@triton.jit
def compare(a, b):
    return a > b


@triton.jit
def widen(a, b):
    return (a + b).to(tl.float64)


@triton.jit
def narrow(a, b):
    return (a + b).to(tl.int8)


@triton.jit
def none(a, b):
    return None


@triton.jit
def nothing(a, b):
    a + b


@triton.jit
def constant(a, b):
    return 1


@triton.jit
def constants2(a, i, b, j):
    return 1, 2


@triton.jit
def tupled(a, b):
    return a, b


@triton.jit
def single(a, b):
    return (a + b,)


@triton.jit
def tile(a, b):
    return a + tl.arange(0, 4)


@triton.jit
def loads(a, b):
    return a + tl.program_id(0)


@triton.jit
def printing(a, b):
    tl.static_print(a, b)
    return a + b


@triton.jit
def branching(a, b):
    if a > b:
        c = a
    else:
        c = b
    return c


@triton.jit
def early(a, b):
    if a > b:
        return a
    return b


@triton.jit
def looping(a, b):
    for _ in range(3):
        a += b
    return a


@triton.jit
def defaulted(a, b, c=1):
    return a + b + c


@triton.jit
def variadic(*ab):
    return ab[0] + ab[1]


@triton.jit
def keyword_only(a, b, *, c=1):
    return a + b + c


@triton.jit
def typed(a, b):
    return a + b.to(a.dtype)


@triton.jit
def typed2(a, i, b, j):
    return (a + b).to(a.dtype), (i + j).to(i.dtype)


@triton.jit
def statics(a: tl.constexpr, b):
    return a + b


@triton.jit
def asserting(a, b):
    tl.static_assert(a.dtype == b.dtype)
    tl.device_assert(a >= b)
    return a + b


@triton.jit
def calls(a, b):
    return larger2(add(a, b), b)


@triton.jit
def recursing(a, b):
    return recursing(a, b)


@triton.jit
def closing(a, b):
    return a + b * FOUR


@triton.jit(noinline=True)
def noinlined(a, b):
    return a + b


@triton.jit
def mixed(a, b):
    return a * 0.5 + b


@triton.jit
def mixed2(a, i, b, j):
    return a + j, i + b


@triton.jit
def swapped(a, b):
    return b, a


@triton.jit
def swap2(a, i, b, j):
    return j, b


@triton.constexpr_function
def compile_time(a, b):
    return a


@triton.jit
def stores(a, b):
    tl.device_print("a", a)
    return a + b


@triton.jit
def bool_and(a, b):
    return a and b


@triton.jit
def index(a, b):
    return a[0] + b


@triton.jit
def shaped(a, b):
    return tl.full((), 1, tl.float32) + a.numel


@triton.jit
def raises(a, b):
    tl.static_assert(False)
    return a


@triton.jit
def chooses(a, b):
    return a if a > b else b


@triton.jit
def welford2(a, i, b, j):
    return a + b, i + j


@triton.jit
def pairs(a, i, b, j):
    return (a + b, i + j)


@triton.jit
def listed(a, i, b, j):
    return [a + b, i + j]


@triton.jit
def nested2(a, i, b, j):
    return (a + b, (i + j,))


@triton.jit
def starred(*all):
    return all[0] + all[2], all[1] + all[3]


@triton.jit
def triples(a, i, b, j):
    return a + b, i + j, i


@triton.jit
def only_one(a, i, b, j):
    return a + b


@triton.jit
def welford(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    delta = mean_2 - mean_1
    weight = weight_1 + weight_2
    ratio = tl.where(weight == 0.0, 0.0, weight_2 / weight)
    return mean_1 + delta * ratio, m2_1 + m2_2 + delta * delta * weight_1 * ratio, weight


@triton.jit
def packed(a0, a1, b0, b1):
    return a0 + b0, a1 + b1


@triton.jit
def by(x, combine):
    return tl.reduce(x, 0, combine)


@triton.jit
def by_const(x, combine: tl.constexpr):
    return tl.reduce(x, 0, combine)


class Adder:
    def __call__(self, a, b):
        return a


functions = [add]


