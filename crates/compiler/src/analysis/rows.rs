//! Results of reductions that are combined with the tile that they come from along another axis.
//!
//! A tile of as many rows as columns takes a number for each row as if it were one for each column: a
//! value of fewer axes is broadcast along the outer ones. With other extents that is an error.

use rustc_hash::FxHashSet;

use super::report;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Attrs, Function, InstData, Opcode, Value};

/// Findings about operations of `func` whose operands are a square tile and what a reduction along its
/// rows gives, which nothing but the operation itself expands.
pub(super) fn check(func: &Function) -> Vec<Diagnostic> {
    let insts = func.walk().into_iter().map(|inst| &func.insts[inst]);
    let mut found: Vec<Diagnostic> = insts.filter_map(|data| combined(func, data)).collect();
    found.dedup();
    found
}

fn combined(func: &Function, data: &InstData) -> Option<Diagnostic> {
    if !data.opcode.is_pure() || !data.regions.is_empty() {
        return None;
    }
    let operands: Vec<Value> = data.uses().collect();
    let &[a, b] = operands.as_slice() else { return None };
    let (tile, row) =
        [(a, b), (b, a)].into_iter().find(|(_, row)| is_expanded(func, data, *row))?;
    let base = func.def(func.def(row)?.operand(0))?.operand(0);
    let reduction = alike(func, base).into_iter().find_map(|value| {
        let data = func.def(value)?;
        let is_along_rows = matches!(&data.attrs, Attrs::Axis(axis) if axis.axis == 1);
        (data.opcode == Opcode::Reduce && is_along_rows).then_some(data)
    })?;
    let source = reduction.operand(0);
    let shape = func.ty(tile).shape();
    let is_square = shape.len() == 2 && shape[0] == shape[1] && shape[0] > 1;
    let own = alike(func, tile);
    let mut shared = alike(func, source).into_iter().filter(|value| own.contains(value));
    if !is_square || !shared.any(|value| differs_by_lane(func, value)) {
        return None;
    }
    let name =
        report::name(func, base).map_or_else(|| "this".to_owned(), |name| format!("`{name}`"));
    let message = format!(
        "{name} has a number for each row of the tile that it comes from, but is combined with it as a \
         row: lane [i, j] meets the number of row j"
    );
    let found = report::finding(func, data.loc, Code::ReducedAxis, message)
        .with_related(report::place(func, reduction.loc), "the reduction along the rows")
        .with_note("`[:, None]` or `keep_dims=True` makes a column of it");
    Some(found)
}

/// Whether an operation expands the outer axis of a value by itself.
fn is_expanded(func: &Function, data: &InstData, value: Value) -> bool {
    let expansion = |value: Value, opcode: Opcode| {
        func.def(value).filter(|made| made.opcode == opcode && made.loc == data.loc)
    };
    let broadcast = expansion(value, Opcode::Broadcast);
    broadcast.and_then(|made| expansion(made.operand(0), Opcode::ExpandDims)).is_some_and(|made| {
        matches!(&made.attrs, Attrs::Axis(axis) if axis.axis == 0)
            && func.ty(made.operand(0)).shape().len() == 1
    })
}

/// A value and those of its shape that it is made of lane by lane.
fn alike(func: &Function, value: Value) -> FxHashSet<Value> {
    let shape = func.ty(value).shape();
    let mut found = FxHashSet::default();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        if func.ty(value).shape() != shape || !found.insert(value) {
            continue;
        }
        if let Some(data) = func.def(value)
            && data.opcode.is_pure()
            && data.regions.is_empty()
        {
            pending.extend(data.uses());
        }
    }
    found
}

/// Whether a value is more than a number or an index in every lane.
fn differs_by_lane(func: &Function, value: Value) -> bool {
    use Opcode::{Broadcast, Constant, ExpandDims, Splat};
    let is_same =
        |data: &InstData| matches!(data.opcode, Broadcast | Constant | ExpandDims | Splat);
    !func.def(value).is_some_and(is_same)
}
