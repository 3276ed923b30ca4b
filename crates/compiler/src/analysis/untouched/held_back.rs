//! Elements that a program of the grid reaches and that its mask keeps it from storing, so that nobody
//! stores them.

use super::{Reaching, WRITE_FUEL, depends, is_left_out, may_reach};
use crate::analysis::elements::{Access, Elements, Variable};
use crate::analysis::solve::Outcome;
use crate::analysis::terms::{Cond, CondKind, Domain, Linear};
use crate::specialization::KnownBuffer;

/// An element that nobody stores, and the point at which `store` would if one comparison of its mask held.
///
/// The comparison is of lanes along one axis with what is the same for all of them: it is meant to say where
/// the tensor ends. One of lanes along two axes leaves out a part on purpose, as the half above a diagonal.
pub(super) fn find(
    (func, launch, elements, accesses): Reaching<'_, '_>,
    store: &Access,
    buffer: &KnownBuffer,
    fuel: &mut u32,
) -> Option<(Vec<i128>, i128)> {
    let size = buffer.elements;
    let mut compared = Vec::new();
    conjuncts(elements, store.mask, &mut compared);
    let bounds: Vec<Cond> =
        compared.iter().copied().filter(|cond| is_bound(elements, *cond)).collect();
    for bound in bounds {
        let kept = compared.iter().filter(|cond| **cond != bound);
        let mut conds: Vec<Cond> = store.path.iter().chain(kept).copied().collect();
        conds.push(elements.terms.not(bound));
        conds.push(elements.terms.at_most(&Linear::default(), &store.offset));
        conds.push(elements.terms.less(&store.offset, &Linear::constant(size)));
        // The first one left out is next to what is stored; where rows overlap, the last one is.
        for least in [0, size / 2, size - 1] {
            let mut conds = conds.clone();
            conds.push(elements.terms.at_most(&Linear::constant(least), &store.offset));
            let Outcome::Found(point) = elements.search(&conds, fuel) else { break };
            let element = Domain::at(&elements.terms, &point).value(&store.offset)?;
            let mut fuel = WRITE_FUEL;
            if !buffer.contents.is_written_at(element)
                && !may_reach((func, launch, &mut *elements, accesses), store, element, &mut fuel)
                && !is_left_out((func, launch, &mut *elements, accesses), store, element, &mut fuel)
            {
                return Some((point, element));
            }
        }
    }
    None
}

/// The conditions that a mask is the conjunction of.
fn conjuncts(elements: &Elements<'_>, cond: Cond, found: &mut Vec<Cond>) {
    match *elements.terms.cond(cond) {
        CondKind::And(a, b) => [a, b].into_iter().for_each(|part| conjuncts(elements, part, found)),
        _ => found.push(cond),
    }
}

/// Whether a condition compares lanes along one axis.
fn is_bound(elements: &Elements<'_>, cond: Cond) -> bool {
    let lanes = elements.variables().filter(|(variable, _)| {
        matches!(variable, Variable::Lane(..)) && depends(elements, cond, *variable)
    });
    matches!(elements.terms.cond(cond), CondKind::AtMostZero(_)) && lanes.count() == 1
}
