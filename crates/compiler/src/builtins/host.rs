//! Python builtins that kernels may use, Python's `math`, Triton's host functions.

use super::{Builtin, PYTHON, PYTHON_MATH, Rule, TRITON};

const fn math(name: &'static str, signature: &'static str, doc: &'static str) -> Builtin {
    Builtin::new(PYTHON_MATH, name, signature, Rule::PythonMath, doc)
}

pub(super) const ROWS: &[Builtin] = &[
    Builtin::new(PYTHON, "len", "obj", Rule::PythonLen, "Length of a tuple or string, or the first extent of a tile, at compile time."),
    Builtin::new(PYTHON, "int", "x=0", Rule::PythonInt, "Converts a compile-time value to an integer."),
    Builtin::new(PYTHON, "float", "x=0.0", Rule::PythonFloat, "Converts a compile-time value to a float: `float('-inf')`."),
    Builtin::new(PYTHON, "range", "arg1, arg2=None, step=None", Rule::PythonRange, "Iterates at run time, also when the bounds are constants."),
    Builtin::new(PYTHON, "list", "iterable=()", Rule::PythonList, "A tuple of the elements."),
    Builtin::new(PYTHON, "isinstance", "obj, cls", Rule::PythonIsInstance, "Tests the class of a value at compile time."),
    Builtin::new(PYTHON, "getattr", "obj, name, default=None", Rule::PythonGetAttr, "An attribute by its name, at compile time."),
    Builtin::new(PYTHON, "hasattr", "obj, name", Rule::PythonHasAttr, "Whether there is an attribute, at compile time."),
    Builtin::new(PYTHON, "print", "prefix: constexpr, *args, hex: constexpr = False", Rule::DevicePrint,
        "Prints at run time, as `tl.device_print` does. The first argument is a string literal."),
    Builtin::new(PYTHON, "min", "*args", Rule::PythonExtremum { max: false }, "Minimum of two or more numbers; a constexpr when all are."),
    Builtin::new(PYTHON, "max", "*args", Rule::PythonExtremum { max: true }, "Maximum of two or more numbers; a constexpr when all are."),
    Builtin::new(TRITON, "cdiv", "x: constexpr, y: constexpr", Rule::HostCDiv, "`x / y` rounded up, for host code and compile-time numbers; in kernels use `tl.cdiv`."),
    Builtin::new(TRITON, "next_power_of_2", "n: constexpr", Rule::HostNextPowerOf2, "The smallest power of two not below `n`, for host code and compile-time numbers."),
    Builtin::new(TRITON, "jit", "fn=None, *, version=None, repr=None, launch_metadata=None, do_not_specialize=None, do_not_specialize_on_alignment=None, debug=None, noinline=None", Rule::Opaque, "Decorator: compiles the function as a kernel or device function."),
    Builtin::new(TRITON, "autotune", "configs, key, prune_configs_by=None, reset_to_zero=None, restore_value=None, pre_hook=None, post_hook=None, warmup=None, rep=None, use_cuda_graph=False, do_bench=None, cache_results=False", Rule::Opaque, "Decorator: measures configurations and keeps the fastest."),
    Builtin::new(TRITON, "heuristics", "values", Rule::Opaque, "Decorator: computes constexpr arguments from the others."),
    Builtin::new(TRITON, "Config", "kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None, ir_override=None", Rule::Opaque, "A configuration for `triton.autotune`."),
    Builtin::new(TRITON, "constexpr_function", "fn", Rule::Opaque, "Decorator: lets kernels call the function at compile time."),
    Builtin::new(TRITON, "must_use_result", "fn", Rule::Opaque, "Decorator: the result of the function may not be dropped."),
    Builtin::new(TRITON, "reinterpret", "tensor, dtype", Rule::Opaque, "Host: views a tensor's memory as another type."),
    Builtin::new(TRITON, "set_allocator", "allocator", Rule::Opaque, "Host: sets the allocator of scratch memory."),
    math("ceil", "x", "Smallest integer not below, at compile time."),
    math("floor", "x", "Largest integer not above, at compile time."),
    math("trunc", "x", "Integer part, at compile time."),
    math("sqrt", "x", "Square root, at compile time."),
    math("log", "x, base=None", "Logarithm, at compile time."),
    math("log2", "x", "Base-2 logarithm, at compile time."),
    math("log10", "x", "Base-10 logarithm, at compile time."),
    math("log1p", "x", "`log(1 + x)`, at compile time."),
    math("exp", "x", "Natural exponential, at compile time."),
    math("exp2", "x", "Base-2 exponential, at compile time."),
    math("pow", "x, y", "Power, at compile time."),
    math("sin", "x", "Sine, at compile time."),
    math("cos", "x", "Cosine, at compile time."),
    math("tan", "x", "Tangent, at compile time."),
    math("tanh", "x", "Hyperbolic tangent, at compile time."),
    math("fabs", "x", "Absolute value, at compile time."),
    math("isnan", "x", "Whether it is NaN, at compile time."),
    math("isinf", "x", "Whether it is infinite, at compile time."),
    math("gcd", "a, b", "Greatest common divisor, at compile time."),
    math("prod", "iterable", "Product of a tuple, at compile time."),
];
