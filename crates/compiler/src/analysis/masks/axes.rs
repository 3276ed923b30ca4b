//! Masks along the wrong axis.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::flow::mask_of;
use crate::analysis::report;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Attrs, Function, Opcode, Value};

/// Masks that hold along an axis on which the addresses do not use what the mask compares.
pub(super) fn wrong_axes(func: &Function) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for inst in func.walk() {
        let data = &func.insts[inst];
        let Some(mask) = mask_of(data) else { continue };
        if func.ty(mask).shape().len() < 2 {
            continue;
        }
        let (used, masked) = (axes(func, data.operand(0)), axes(func, mask));
        let wrong = masked.iter().filter_map(|(value, axes)| {
            let [axis] = axes.as_slice() else { return None };
            let of_address = used.get(value)?;
            let elsewhere = !of_address.contains(axis);
            (elsewhere && of_address.len() == 1).then_some((*value, *axis, of_address[0]))
        });
        let named = wrong.map(|wrong| (report::name(func, wrong.0), wrong));
        let first = named.min_by_key(|(name, (value, ..))| (name.is_none(), *value));
        let Some((name, (_, axis, right))) = first else { continue };
        let name = name.unwrap_or_else(|| "an index".into());
        let message = format!(
            "the mask compares `{name}` along axis {axis}, but the addresses use it along axis {right}"
        );
        found.push(report::finding(func, data.loc, Code::MaskAxis, message));
    }
    found
}

/// One-dimensional values that a value is computed from, with the axes that they run along.
fn axes(func: &Function, value: Value) -> FxHashMap<Value, Vec<usize>> {
    let mut found: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let Some(data) = func.def(value).filter(|_| seen.insert(value)) else { continue };
        let elementwise = data.regions.is_empty() && data.opcode.is_pure();
        match (data.opcode, &data.attrs) {
            (Opcode::ExpandDims, _) => {
                let expanded = expanded(func, value);
                for (made, axis) in expanded.into_iter().flat_map(|(base, axis)| {
                    made_of(func, base).into_iter().map(move |made| (made, axis))
                }) {
                    let known = found.entry(made).or_default();
                    if !known.contains(&axis) {
                        known.push(axis);
                    }
                }
            }
            (
                Opcode::Reshape | Opcode::Permute | Opcode::Join | Opcode::Cat | Opcode::Gather,
                _,
            ) => {}
            _ if elementwise => pending.extend(data.uses()),
            _ => {}
        }
    }
    found
}

/// A one-dimensional value and those that it is computed from lane by lane: what compares them first
/// runs along their axis as well. Positions from 0 on are those of several indices.
fn made_of(func: &Function, base: Value) -> Vec<Value> {
    let mut found = vec![base];
    let mut at = 0;
    while let Some(&value) = found.get(at) {
        at += 1;
        let Some(data) = func.def(value) else { continue };
        let moves = matches!(data.opcode, Opcode::Cat | Opcode::Gather | Opcode::Reshape);
        if moves || !data.regions.is_empty() || !data.opcode.is_pure() {
            continue;
        }
        for used in data.uses() {
            let is_like = func.ty(used).shape() == func.ty(base).shape();
            let is_index = func.constant_bits(used).is_none()
                && func
                    .def(used)
                    .is_none_or(|data| !matches!(data.opcode, Opcode::Splat | Opcode::Arange));
            if is_like && is_index && !found.contains(&used) {
                found.push(used);
            }
        }
    }
    found
}

/// The one-dimensional value that a chain of `expand_dims` starts from, and the axis that it is
/// along in the end.
fn expanded(func: &Function, value: Value) -> Option<(Value, usize)> {
    let data = func.def(value)?;
    let Attrs::Axis(inserted) = &data.attrs else { return None };
    let source = data.operand(0);
    match func.ty(source).shape().len() {
        1 => Some((source, usize::from(inserted.axis == 0))),
        _ => {
            let (base, axis) = expanded(func, source)?;
            Some((base, axis + usize::from(inserted.axis as usize <= axis)))
        }
    }
}
