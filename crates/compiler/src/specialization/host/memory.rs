//! Which memory tensors are in, and what may have been written to it.

use super::arguments::Args;
use super::value::{Storage, Tensor, Value};
use super::{Frame, Host, views};
use crate::builtins::TORCH;
use crate::hir::{Expr, ExprId};
use crate::project::Resolution;
use crate::specialization::contents::Contents;

impl Host<'_> {
    /// Gives a tensor that a constructor made memory of its own, which holds `contents`.
    pub(super) fn allocate(&mut self, value: Value, contents: Contents) -> Value {
        let Value::Tensor(tensor) = value else { return value };
        self.allocations += 1;
        let id = self.allocations;
        let storage = views::span(&tensor).map(|elements| {
            Box::new(Storage { id: Some(id), output: None, elements, before: 0, contents })
        });
        Value::Tensor(Tensor { storage, ..tensor })
    }

    /// Notes that host code may have written these allocations, now or in between launches.
    pub(super) fn note_written(&mut self, frame: &mut Frame, allocations: &[u32]) {
        if allocations.is_empty() {
            return;
        }
        note_writes(frame, allocations);
        let args = self.launches.iter_mut().flat_map(|launch| &mut launch.args);
        args.for_each(|(_, value)| value.note_writes(&|id| allocations.contains(&id)));
    }

    /// Notes that a part of a tensor is at hand that does not begin where the tensor does: what is
    /// written through it is not seen to be in the same memory.
    pub(super) fn note_part(&mut self, frame: &mut Frame, whole: &Value, part: &Value) {
        let Value::Tensor(tensor) = whole else { return };
        let Some(id) = tensor.allocation().filter(|_| part.allocations().is_empty()) else {
            return;
        };
        let args = self.launches.iter_mut().flat_map(|launch| &mut launch.args);
        let held = args.map(|(_, value)| value).chain(frame.variables.values_mut());
        held.for_each(|value| value.note_part(id));
    }

    /// Notes that what a variable holds may have been written, also in between launches.
    pub(super) fn note_write(&mut self, frame: &mut Frame, object: ExprId) {
        let allocations = note_write_of(frame, object);
        self.note_written(frame, &allocations);
    }
}

/// The allocations that a call may write of which nothing more is known: those given to PyTorch to
/// write to, and those given to functions that are not known.
pub(super) fn may_write(callee: &Value, receiver: Option<&Value>, args: &Args<'_>) -> Vec<u32> {
    let all = || args.0.iter().flat_map(|(_, value)| value.allocations()).collect();
    match callee {
        Value::Named(Resolution::External(path)) => match path.as_slice() {
            [torch, name] if &**torch == TORCH && !name.ends_with('_') => {
                args.keyword("out").map(Value::allocations).unwrap_or_default()
            }
            [torch, module, ..] if &**torch == TORCH && &**module == "testing" => Vec::new(),
            _ => all(),
        },
        Value::Unknown if !matches!(receiver, Some(Value::Tensor(_))) => all(),
        Value::OneOf(callees) => {
            callees.iter().flat_map(|callee| may_write(callee, receiver, args)).collect()
        }
        _ => Vec::new(),
    }
}

/// Notes that what a variable holds may have been written; its allocations.
fn note_write_of(frame: &mut Frame, object: ExprId) -> Vec<u32> {
    let Expr::Name(name) = &frame.code.body().exprs[object] else { return Vec::new() };
    let name = name.clone();
    let Some(value) = frame.variables.get_mut(&name) else { return Vec::new() };
    if let Value::Tensor(tensor) = value {
        tensor.note_write();
    }
    value.allocations()
}

/// Notes that what any variable holds of these allocations may have been written.
fn note_writes(frame: &mut Frame, allocations: &[u32]) {
    if allocations.is_empty() {
        return;
    }
    frame
        .variables
        .values_mut()
        .for_each(|value| value.note_writes(&|id| allocations.contains(&id)));
}
