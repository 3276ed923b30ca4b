"""Triton's front end, from a kernel to verified IR, for the architecture that tests are for."""

import json
import os
import re

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

TARGET = GPUTarget("cuda", 90, 32)


def lower(kernel, signature, constants):
    """Makes the IR of `kernel` for argument types by name and values of compile-time parameters.

    Raises what Triton raises, and RuntimeError where the IR that it makes is not well formed, or
    is of a kernel that returns something.
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
    # The back end refuses these, without saying why.
    if module is not None and re.search(r"tt\.func public [^{]*\) -> ", str(module)):
        raise RuntimeError("a kernel returns nothing")


def in_children(count, answer, aborted):
    """What `answer` says of each number below `count`, as JSON holds it, in order. It runs in
    children, since some kernels abort Triton or never end: their answer is `aborted`."""
    found = []
    while len(found) < count:
        read, write = os.pipe()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            for index in range(len(found), count):
                os.write(write, (json.dumps(answer(index)) + "\n").encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            found += [json.loads(line) for line in pipe]
        os.wait()
        if len(found) < count:
            found.append(aborted)
    return found
