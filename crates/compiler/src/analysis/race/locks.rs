//! Stores of programs that wait for each other, but at different addresses: each lock is taken by itself,
//! and what several of them guard is guarded by none.

use super::{
    Access, Apart, Collision, Elements, Function, KnownLaunch, Linear, Opcode, Other, Outcome,
    Part, describe, is_before, is_ever_known, pairs, race, synchronization, synchronizes, within,
};
use crate::diagnostic::Diagnostic;

/// Boxes that may be looked at to tell whether programs come to each other's locks by a chain of others.
const CHAIN_FUEL: u32 = 500;

/// Findings about stores behind the first operation by which programs may wait for each other.
pub(super) fn check<'f>(
    func: &'f Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'f>,
    (programs, asked, other): (&[Linear; 3], [bool; 3], &mut Other),
    accesses: &[Access],
) -> Vec<Diagnostic> {
    let waits = synchronization(func);
    if waits.is_none() {
        return Vec::new();
    }
    let Some(lock) = lock(func, elements, (programs, other), accesses) else { return Vec::new() };
    let stores: Vec<&Access> = accesses
        .iter()
        .filter(|access| func.insts[access.inst].opcode == Opcode::Store)
        .filter(|access| is_ever_known(&elements.terms, &access.offset))
        .filter(|access| !is_before(func, access, waits))
        .collect();
    let moved = other.moved.term(&mut elements.terms, &lock);
    let same = elements.terms.equal(&lock, &moved);
    let apart = elements.terms.not(same);
    let mut found: Vec<Diagnostic> = Vec::new();
    for (first, second) in pairs(func, launch, &stores) {
        let mut within = within(func, launch, elements, first);
        within.push(apart);
        let part = Part { programs, asked, apart: Apart::Programs, within };
        if let Collision::Counts(pair) = race(func, elements, part, other, (first, second)) {
            let race = describe(func, launch, elements, first, second, &pair);
            if found.iter().all(|known| known.primary != race.primary) {
                found.push(race.with_note("the two programs wait at different addresses"));
            }
        }
    }
    found
}

/// Where a program waits, and lets others go on, but for constants. `None` where that is not known, or where
/// one program may come to another's place by what it does at a further one: then there may be an order.
fn lock(
    func: &Function,
    elements: &mut Elements<'_>,
    (programs, other): (&[Linear; 3], &mut Other),
    accesses: &[Access],
) -> Option<Linear> {
    let orders = |opcode| matches!(opcode, Opcode::AtomicCas | Opcode::AtomicRmw);
    let walk = func.walk();
    // Atomics in a loop that waits count themselves.
    let waits = |inst| match func.insts[inst].opcode {
        Opcode::While => func.rereads(inst) && func.any_within(inst, |kind| kind == Opcode::Load),
        opcode => orders(opcode) || synchronizes(func, inst),
    };
    let every = walk.iter().filter(|inst| waits(**inst));
    let locks: Vec<&Access> =
        accesses.iter().filter(|access| orders(func.insts[access.inst].opcode)).collect();
    let first = *locks.first()?;
    let is_followed = |inst| locks.iter().any(|lock| lock.inst == inst);
    if !every.copied().all(is_followed) || !elements.terms.is_known(&first.offset) {
        return None;
    }
    let mut distances = Vec::new();
    for lock in &locks {
        let distance = lock.offset.minus(&first.offset)?.as_constant()?;
        if lock.param != first.param {
            return None;
        }
        distances.push(distance);
    }
    let moved = other.moved.term(&mut elements.terms, &first.offset);
    for one in &distances {
        for two in distances.iter().filter(|two| *two != one) {
            let mut conds = other.in_range(&elements.terms, (first, first), programs);
            let meets = elements.terms.equal(&first.offset.offset(*one), &moved.offset(*two));
            conds.push(meets);
            if elements.search(&conds, &mut { CHAIN_FUEL }) != Outcome::Never {
                return None;
            }
        }
    }
    Some(first.offset.clone())
}
