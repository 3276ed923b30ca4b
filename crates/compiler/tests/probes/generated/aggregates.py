from triton.language.core import _aggregate as aggregate


@aggregate
class One:
    value: tl.tensor
    LIMIT = 3

    @triton.constexpr_function
    def __init__(self, value):
        self.value = value

    @triton.jit
    def plus(self, by):
        return self.value + by

    @triton.jit
    def chain(self, by):
        return One(self.value + by)

    @triton.jit
    def constant(self):
        return 3

    @triton.constexpr_function
    def known(self):
        return 4

    @triton.jit
    def twice_known(self):
        return self.known() + self.known()

    @property
    def total(self):
        return self.value

    @staticmethod
    @triton.jit
    def static_plus(a, b):
        return a + b

    @classmethod
    def class_made(cls, value):
        return cls(value)

    @triton.jit
    def recursive(self, count: tl.constexpr):
        if count == 0:
            return self.value
        else:
            return self.chain(1).recursive(count - 1)

    @triton.jit
    def early(self, n):
        if n > 1:
            return self.value
        return self.value + 1

    @triton.jit
    def replaced(self, by):
        one = self
        one = One(by + one.value)
        return one

    @triton.jit
    def nothing(self):
        self.value + 1

    @triton.jit
    def pair(self):
        return self, self.value

    @triton.jit(noinline=True)
    def apart(self, by):
        return self.value + by

    @triton.jit
    def _private(self):
        return self.value

    def host(self):
        return self.value

    @triton.jit
    def defaulted(self, by=2, times: tl.constexpr = 3):
        return self.value * by + times

    @triton.jit
    def variadic(self, *vs):
        return vs[0] + vs[1] + self.value

    @triton.jit
    def store(self, p):
        tl.store(p, self.value)


@aggregate
class Pair2:
    left: tl.tensor
    right: tl.tensor

    @triton.constexpr_function
    def __init__(self, left, right):
        self.left = left
        self.right = right


@aggregate
class Known:
    SIZE: tl.constexpr

    @triton.constexpr_function
    def __init__(self, SIZE):
        self.SIZE = tl.constexpr(SIZE)

    @triton.jit
    def tile(self):
        return tl.arange(0, self.SIZE)

    @triton.jit
    def nested(self):
        return Known(self.SIZE * 2)


@aggregate
class Empty:
    @triton.constexpr_function
    def __init__(self):
        pass


@aggregate
class Outer:
    inner: One
    scale: tl.tensor

    @triton.constexpr_function
    def __init__(self, inner, scale):
        self.inner = inner
        self.scale = scale

    @triton.jit
    def sum(self):
        return self.inner.value + self.scale

    @triton.jit
    def stepped(self):
        return Outer(self.inner.chain(1), self.scale * 2)


@aggregate
class Ops:
    value: tl.tensor

    @triton.constexpr_function
    def __init__(self, value):
        self.value = value

    @triton.jit
    def __add__(self, other):
        return self.value + 1

    @triton.jit
    def __radd__(self, other):
        return self.value + 1

    @triton.jit
    def __mul__(self, other):
        return Ops(self.value * other)

    @triton.jit
    def __getitem__(self, at):
        return self.value + at

    @triton.jit
    def __len__(self):
        return 3

    @triton.jit
    def __call__(self, x):
        return self.value + x

    @triton.jit
    def __neg__(self):
        return -self.value

    @triton.jit
    def __eq__(self, other):
        return self.value == other.value

    @triton.jit
    def __lt__(self, other):
        return self.value < other.value


class Undecorated:
    def __init__(self, value):
        self.value = value


@aggregate
class Jitted:
    value: tl.tensor

    @triton.jit
    def __init__(self, value):
        self.value = value


@aggregate
class NoInit:
    value: tl.tensor


@aggregate
class Plain:
    value: tl.tensor

    def __init__(self, value):
        self.value = value


@aggregate
class Semantic:
    value: tl.tensor

    @triton.constexpr_function
    def __init__(self, value, _semantic=None):
        self.value = value


@aggregate
class Unset:
    value: tl.tensor
    other: tl.tensor

    @triton.constexpr_function
    def __init__(self, value):
        self.value = value


@aggregate
class Extra:
    value: tl.tensor

    @triton.constexpr_function
    def __init__(self, value):
        self.value = value
        self.other = value


@aggregate
class Pointer:
    ptr: tl.tensor

    @triton.constexpr_function
    def __init__(self, ptr):
        self.ptr = ptr


@aggregate
class Typed:
    value: tl.tensor

    @triton.constexpr_function
    def __init__(self, value: tl.tensor):
        self.value = value


@aggregate
class Tupled:
    values: tl.tuple

    @triton.constexpr_function
    def __init__(self, values):
        self.values = values


@aggregate
class Dtyped:
    dtype: tl.constexpr

    @triton.constexpr_function
    def __init__(self, dtype):
        self.dtype = tl.constexpr(dtype)


@aggregate
class Flag:
    flag: tl.constexpr

    @triton.constexpr_function
    def __init__(self, flag):
        self.flag = tl.constexpr(flag)


@aggregate
class Descriptor:
    desc: tl.tensor_descriptor

    @triton.constexpr_function
    def __init__(self, desc):
        self.desc = desc

    @triton.jit
    def read(self, at):
        return self.desc.load([at, 0])


@aggregate
class Defaulted:
    value: tl.tensor
    other: tl.constexpr

    @triton.constexpr_function
    def __init__(self, value, other=3):
        self.value = value
        self.other = tl.constexpr(other)


@triton.jit
def make_one(n):
    return One(n)


@triton.jit
def value_of(one):
    return one.value


@triton.jit
def pair_one(one):
    return one, one.value


@triton.jit(noinline=True)
def apart_value(one):
    return one.value


@triton.jit
def chosen(a, b, n):
    if n > 3:
        return a
    else:
        return b


