//! Marks of Triton's profiler in kernels, which compute nothing.

use super::{Builtin, PROFILER, Rule};

pub(super) const ROWS: &[Builtin] = &[
    Builtin::new(
        PROFILER,
        "scope",
        "name: constexpr",
        Rule::ProfilerMark,
        "Profiles what is done inside of `with scope(name):` under that name.",
    ),
    Builtin::new(
        PROFILER,
        "enter_scope",
        "name: constexpr",
        Rule::ProfilerMark,
        "Starts what is profiled under `name`, up to `exit_scope`.",
    ),
    Builtin::new(
        PROFILER,
        "exit_scope",
        "name: constexpr",
        Rule::ProfilerMark,
        "Ends what `enter_scope` started.",
    ),
];
