//! Functions of the language that host code calls.

use super::pieces::{Host, Piece};
use crate::builtins::{self, LANGUAGE, MATH, TORCH, TRITON, torch};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::ExprId;
use crate::project::Resolution;
use crate::source::FileRange;

/// Calls of the language's functions in a piece that certainly runs on the host: it launches, or it
/// belongs to the module itself.
pub(super) fn check(host: &Host<'_>, piece: &Piece<'_>) -> Vec<Diagnostic> {
    if !piece.path.is_empty() && !host.launching.contains(&piece.path) {
        return Vec::new();
    }
    piece.calls().filter_map(|(callee, _)| call(host, piece, callee)).collect()
}

fn call(host: &Host<'_>, piece: &Piece<'_>, callee: ExprId) -> Option<Diagnostic> {
    let Resolution::Triton(path) = host.meaning(piece, callee) else { return None };
    let path = path.strip_prefix("language.")?;
    let function = match path.strip_prefix("math.") {
        Some(name) => builtins::member(MATH, name)?,
        None => builtins::member(LANGUAGE, path)?,
    };
    if !function.needs_kernel() {
        return None;
    }
    let name = function.name;
    let at = FileRange { file: host.file, range: piece.map.exprs[callee] };
    let message = format!("`tl.{path}` is compiled with kernels; host code cannot call it");
    let found = Diagnostic::new(Code::DeviceFunction, at, message);
    let is_of_torch = || torch::members(TORCH).is_some_and(|members| members.contains(name));
    Some(if builtins::member(TRITON, name).is_some() {
        found.with_suggestion(&format!("triton.{name}"))
    } else if is_of_torch() {
        found.with_note(format!("for tensors of the host there is `torch.{name}`"))
    } else {
        found
    })
}
