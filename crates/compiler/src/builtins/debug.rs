//! Hints to the compiler, assertions, printing.

use super::{Builtin, Rule};

pub(super) const ROWS: &[Builtin] = &[
    Builtin::tl(
        "multiple_of",
        "input, values: constexpr",
        Rule::MultipleOf,
        "Promises that the values (the first of each run, per axis) are multiples of `values`. Gives `input`.",
    ),
    Builtin::tl(
        "max_contiguous",
        "input, values: constexpr",
        Rule::MaxContiguous,
        "Promises that runs of `values` elements per axis are contiguous. Gives `input`.",
    ),
    Builtin::tl(
        "max_constancy",
        "input, values: constexpr",
        Rule::MaxConstancy,
        "Promises that runs of `values` elements per axis are equal. Gives `input`.",
    ),
    Builtin::tl("assume", "cond", Rule::Assume, "Promises that the scalar condition holds."),
    Builtin::tl(
        "debug_barrier",
        "",
        Rule::DebugBarrier,
        "Makes all threads of the program wait for each other.",
    ),
    Builtin::tl(
        "device_print",
        "prefix: constexpr, *args, hex: constexpr = False",
        Rule::DevicePrint,
        "Prints `prefix` and the values at run time, one line per element. The prefix is a string literal.",
    ),
    Builtin::tl(
        "device_assert",
        "cond, msg: constexpr = '', mask=None",
        Rule::DeviceAssert,
        "Stops the program when the condition is false. Compiled only in debug mode (`TRITON_DEBUG=1`).",
    ),
];
