"""Binds what the helpers need of Triton, whichever version of it is installed, or none."""

try:
    import triton
except ImportError:
    triton = None

if triton is not None:
    import triton.language as tl

    try:
        from triton.language.extra import libdevice

        libdevice = tl.extra.libdevice
        math = tl.math
    except ImportError:
        if hasattr(tl.extra, "cuda"):
            libdevice = tl.extra.cuda.libdevice
            math = tl.math
        else:
            libdevice = tl.math
            math = tl

    try:
        from triton.language.standard import _log2
    except ImportError:

        def _log2(n):
            raise NotImplementedError
else:

    def _missing(*args, **kwargs):
        raise RuntimeError("needs Triton")

    libdevice = None
    math = None
    _log2 = _missing

    class triton:
        @staticmethod
        def jit(function):
            return _missing

    class tl:
        tensor = object
        dtype = object

        @staticmethod
        def constexpr(value):
            return value
