//! How analyses of IR report what they find in terms of the source.

use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Loc, Opcode};
use crate::source::FileRange;

/// A finding at `loc`: the user's own call first, the lines inside inlined helpers as related
/// places.
pub(super) fn finding(
    func: &Function,
    loc: Loc,
    code: Code,
    message: impl Into<String>,
) -> Diagnostic {
    let frames = func.frames(loc);
    let first = frames.first().copied().unwrap_or(loc);
    let mut diagnostic = Diagnostic::new(code, func.locs[first].at, message);
    for &inner in frames.iter().skip(1) {
        let data = &func.locs[inner];
        let message = format!("inside the inlined function `{}`", data.function);
        diagnostic = diagnostic.with_related(data.at, message);
    }
    diagnostic.kernel = Some(func.name.to_string());
    diagnostic
}

/// Where the user must look for `loc`.
pub(super) fn place(func: &Function, loc: Loc) -> FileRange {
    func.locs[func.user_loc(loc)].at
}

/// The verb for what an operation does to an element, and the past participle.
pub(super) fn verb(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::Load => "reads",
        Opcode::Store => "writes",
        _ => "updates",
    }
}

/// `1 element`, `2 elements`.
pub(super) fn count(number: i128, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A position in the grid as the user wrote the grid: a number for one axis, else a tuple.
pub(super) fn program(position: [i128; 3], rank: usize) -> String {
    match rank {
        0 | 1 => position[0].to_string(),
        _ => tuple(&position[..rank.min(3)]),
    }
}

/// `(1, 2)`; one element has no trailing comma.
pub(super) fn tuple(values: &[i128]) -> String {
    let values: Vec<String> = values.iter().map(i128::to_string).collect();
    format!("({})", values.join(", "))
}

/// The name that a source variable gives to a value, if one does.
pub(super) fn name(func: &Function, value: crate::ir::Value) -> Option<Arc<str>> {
    func.values[value].name.clone()
}
