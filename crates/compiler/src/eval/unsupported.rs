//! What kernels cannot use of Python: how it is called, and what to write instead.

use super::value::Value;
use super::{Evaluator, Mode};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// The error that kernels may not use a construct of Python; silent in host code.
    pub(super) fn unsupported(&mut self, node: &str, instead: &str, at: FileRange) -> Value {
        if self.frame().mode == Mode::Python {
            return Value::Unknown;
        }
        let what = construct(node);
        let mut diagnostic =
            Diagnostic::new(Code::UnsupportedPython, at, format!("kernels cannot use {what}"));
        if !instead.is_empty() {
            diagnostic = diagnostic.with_note(format!("instead, {instead}"));
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }
}

/// How people call a node of Python's syntax tree.
pub(super) fn construct(node: &str) -> String {
    let known = match node {
        "Break" => "`break`",
        "Continue" => "`continue`",
        "Try" | "TryStar" => "`try`",
        "Raise" => "`raise`",
        "Lambda" => "`lambda`",
        "Dict" => "dictionaries",
        "Set" => "sets",
        "DictComp" => "dictionary comprehensions",
        "SetComp" => "set comprehensions",
        "GeneratorExp" => "generator expressions",
        "ListComp" => "nested comprehensions",
        "Delete" => "`del`",
        "Global" => "`global`",
        "Nonlocal" => "`nonlocal`",
        "Import" | "ImportFrom" => "`import`",
        "ClassDef" => "class definitions",
        "FunctionDef" | "AsyncFunctionDef" => "nested function definitions",
        "Yield" | "YieldFrom" => "`yield`",
        "NamedExpr" => "`:=` before Triton 3.9",
        "Match" => "`match`",
        "Starred" => "`*` outside of a call",
        "Await" => "`await`",
        other => other,
    };
    known.to_owned()
}

/// What to write instead of a construct.
pub(super) fn alternative(node: &str) -> &'static str {
    match node {
        "Break" | "Continue" => {
            "put the rest of the body under an `if`, or use a `while` condition"
        }
        "Try" | "TryStar" | "Raise" => "use `tl.static_assert` or `tl.device_assert`",
        "GeneratorExp" | "DictComp" | "SetComp" | "ListComp" => "use a loop over `tl.static_range`",
        "Import" | "ImportFrom" => "import at module level",
        "ClassDef" | "FunctionDef" | "AsyncFunctionDef" => "define it at module level",
        "Match" => "use `if`",
        "Delete" => "leave the variable unused",
        _ => "",
    }
}
