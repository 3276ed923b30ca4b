"""Compiles kernels with the installed Triton. Reads one JSON request a line, answers with one.

Request: {"file", "kernel", "signature": {NAME: TYPE}, "constexprs": {NAME: VALUE},
          "divisible": [NAME], "capability", "num_warps", "num_stages"}
Answer:  {"version", "ptx", "shared_bytes", "ms"} or {"error"}
"""

import importlib.machinery
import importlib.util
import json
import os
import sys
import time


def load(path, modules={}):
    if path not in modules:
        import triton
        import triton.language

        # As for a program: what lies beside the file can be imported.
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        loader = importlib.machinery.SourceFileLoader("compared", path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compared", loader))
        if path.endswith(".tile"):
            module.triton, module.tl = triton, triton.language
        loader.exec_module(module)
        modules[path] = module
    return modules[path]


def value(spelled, module):
    kind, plain = spelled
    if kind == "dtype":
        import triton.language as tl

        return tl.dtype(plain)
    if kind == "torch":
        import torch

        return getattr(torch, plain)
    if kind == "function":
        return getattr(module, plain)
    if kind == "member":
        return getattr(getattr(module, plain[0]), plain[1])
    if kind == "tuple":
        return tuple(value(item, module) for item in plain)
    return plain


def compile(request):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module = load(request["file"])
    function = getattr(module, request["kernel"])
    while not isinstance(function, triton.JITFunction):
        function = function.fn
    names = function.arg_names
    signature = dict(request["signature"])
    signature.update({name: "constexpr" for name in request["constexprs"]})
    signature = {name: signature[name] for name in names}
    constants = {
        (names.index(name),): value(spelled, module)
        for name, spelled in request["constexprs"].items()
    }
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in request["divisible"]}
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)
    options = {"num_warps": request["num_warps"], "num_stages": request["num_stages"]}
    start = time.perf_counter()
    kernel = triton.compile(source, GPUTarget("cuda", request["capability"], 32), options)
    return {
        "version": triton.__version__,
        "ptx": kernel.asm["ptx"],
        "shared_bytes": kernel.metadata.shared,
        "ms": (time.perf_counter() - start) * 1e3,
    }


for line in sys.stdin:
    try:
        answer = compile(json.loads(line))
    except ModuleNotFoundError as error:
        answer = {"error": f"{sys.executable} has no module {error.name}"}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
