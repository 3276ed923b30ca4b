"""Triton's front end, from a kernel to verified IR, for the architecture that tests are for."""

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

TARGET = GPUTarget("cuda", 90, 32)


def lower(kernel, signature, constants):
    """Makes the IR of `kernel` for argument types by name and values of compile-time parameters.

    Raises what Triton raises, and RuntimeError where the IR that it makes is not well formed.
    """
    from triton._C.libtriton import ir

    source = ASTSource(kernel, signature, constants)
    backend = make_backend(TARGET)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    modules = backend.get_module_map()
    module = source.make_ir(TARGET, options, functions, modules, context)
    if module is not None and not module.verify():
        raise RuntimeError("ill-formed IR")
