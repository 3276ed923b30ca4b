//! What is known of integers of which a kernel takes the greatest or the least: none is beyond it.

use rustc_hash::FxHashMap;

use super::{Element, Elements, Index};
use crate::analysis::flow::gives::combines_by;
use crate::ir::{Attrs, Function, Opcode, Value};

/// A reduction to the greatest or the least along an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extreme {
    result: Value,
    axis: usize,
    is_greatest: bool,
}

/// The reductions to extremes of integers, by what they reduce.
pub(super) fn extremes(func: &Function) -> FxHashMap<Value, Vec<Extreme>> {
    let mut found: FxHashMap<Value, Vec<Extreme>> = FxHashMap::default();
    for inst in func.walk() {
        let data = &func.insts[inst];
        let (Opcode::Reduce, Attrs::Axis(axis), [result]) =
            (data.opcode, &data.attrs, &data.results[..])
        else {
            continue;
        };
        let by = |opcode| combines_by(func, data, &[opcode]);
        let is_greatest = by(Opcode::MaxS);
        if is_greatest || by(Opcode::MinS) {
            let extreme = Extreme { result: *result, axis: axis.axis as usize, is_greatest };
            found.entry(data.operand(0)).or_default().push(extreme);
        }
    }
    found
}

impl Elements<'_> {
    /// Notes, of an element that was worked out, that no extreme of it and its neighbors is beyond it.
    pub(super) fn note_extremes(&mut self, value: Value, index: &Index, element: &Element) {
        let Element::Int(number) = element else { return };
        for extreme in self.extremes.get(&value).cloned().unwrap_or_default() {
            let mut reduced = index.clone();
            if extreme.axis >= reduced.len() {
                continue;
            }
            reduced.remove(extreme.axis);
            let Element::Int(end) = self.element(extreme.result, &reduced) else { continue };
            let fact = match extreme.is_greatest {
                true => self.terms.at_most(number, &end),
                false => self.terms.at_most(&end, number),
            };
            self.facts.push(fact);
        }
    }
}
