//! Methods of Python's strings and integers that run at compile time.

use super::{Builtin, Rule};

/// Methods of strings.
pub(crate) const STRING: &str = "str";
/// Methods of integers.
pub(crate) const INTEGER: &str = "int";

const fn string(name: &'static str, signature: &'static str, doc: &'static str) -> Builtin {
    Builtin::new(STRING, name, signature, Rule::PythonString, doc)
}

pub(super) const ROWS: &[Builtin] = &[
    string("capitalize", "self", "The text with its first letter in upper case alone."),
    string("count", "self, sub", "How often the text `sub` occurs, at compile time."),
    string("endswith", "self, suffix", "Whether the text ends so, at compile time."),
    string("find", "self, sub", "Where the text `sub` begins, or -1, at compile time."),
    string(
        "format",
        "self, *args",
        "The text with the arguments in the places of `{}`, `{0}` and `{name}`, at compile time.",
    ),
    string("isalnum", "self", "Whether the text is all letters and digits, at compile time."),
    string("isalpha", "self", "Whether the text is all letters, at compile time."),
    string("isdigit", "self", "Whether the text is all digits, at compile time."),
    string("isspace", "self", "Whether the text is all white space, at compile time."),
    string("join", "self, parts", "The texts of a list with the text between them."),
    string("lower", "self", "The text in lower case."),
    string("lstrip", "self, chars=None", "The text without white space before it."),
    string("removeprefix", "self, prefix", "The text without `prefix` before it."),
    string("removesuffix", "self, suffix", "The text without `suffix` behind it."),
    string("replace", "self, old, new", "The text with `new` for each `old`."),
    string("rstrip", "self, chars=None", "The text without white space after it."),
    string("split", "self, sep=None", "The parts of the text between `sep`, as a list."),
    string("splitlines", "self", "The lines of the text, as a list."),
    string("startswith", "self, prefix", "Whether the text begins so, at compile time."),
    string("strip", "self, chars=None", "The text without white space around it."),
    string("upper", "self", "The text in upper case."),
    Builtin::new(
        INTEGER,
        "bit_length",
        "self",
        Rule::PythonBitLength,
        "How many bits a compile-time integer needs.",
    ),
];
