//! Numbers that do not fit the elements of the buffer that they are stored to, for a known launch.
//!
//! A store converts what is stored to the type of the buffer's elements, which drops the upper bits
//! of a wider integer without a word. It is reported where a search finds a program and a lane that
//! stores a number which the elements cannot hold. Conversions that the kernel spells out are meant.

use super::Finding;
use super::elements::{Access, Element, Elements};
use super::report;
use super::solve::Outcome;
use super::terms::{Domain, Interval, Linear};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Opcode, Value};
use crate::specialization::KnownLaunch;

/// Boxes that may be looked at for one store.
const FUEL: u32 = 1_000;

/// Findings about the stores of `func` under `launch`.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    accesses: &[Access],
) -> Vec<Finding> {
    let found = accesses.iter().filter_map(|access| {
        let (stored, wide) = narrowed(func, access.inst)?;
        lossy(func, launch, elements, access, (stored, wide))
    });
    found.map(Finding::from).collect()
}

/// What a store converts to fewer bits, after and before.
fn narrowed(func: &Function, inst: crate::ir::Inst) -> Option<(Value, Value)> {
    let store = &func.insts[inst];
    if store.opcode != Opcode::Store {
        return None;
    }
    let stored = store.operand(1);
    let conversion = func.def(stored)?;
    // A conversion that is spelled out has a place of its own.
    let implicit = conversion.opcode == Opcode::Trunc && conversion.loc == store.loc;
    let bits = func.ty(stored).number().map_or(1, |number| number.bits());
    (implicit && bits > 1).then(|| (stored, conversion.operand(0)))
}

fn lossy(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    access: &Access,
    (stored, wide): (Value, Value),
) -> Option<Diagnostic> {
    let bits = func.ty(stored).number()?.bits();
    let (Element::Int(term), _) = elements.lane(wide) else { return None };
    if !elements.terms.is_known(&term) {
        return None;
    }
    let fits = elements_range(&func.params[access.param].signature, bits);
    let above = elements.terms.less(&Linear::constant(fits.hi), &term);
    let below = elements.terms.less(&term, &Linear::constant(fits.lo));
    let mut fuel = FUEL;
    let point = [above, below].into_iter().find_map(|cond| {
        let mut conds = access.happens();
        conds.push(cond);
        match elements.search(&conds, &mut fuel) {
            Outcome::Found(point) => Some(point),
            _ => None,
        }
    })?;
    let value = Domain::at(&elements.terms, &point).value(&term)?;
    let program = report::program(elements.position(&point), launch.grid_rank);
    let name = elements.param_name(access.param);
    let message = format!(
        "program {program} stores {value} to `{name}`, whose elements of {bits} bits cannot hold it"
    );
    let loc = func.insts[access.inst].loc;
    let found = report::finding(func, loc, Code::LossyStore, message);
    Some(found.with_note(
        "a store drops the upper bits: pass a buffer of wider elements, or convert where that is \
         meant",
    ))
}

/// The numbers that elements of this many bits are taken for. An unsigned element may be meant to
/// hold a negative number's bits.
fn elements_range(signature: &str, bits: u32) -> Interval {
    let signed = Interval::signed(bits);
    match signature.trim_start_matches(['*', 'k']).starts_with('u') {
        true => Interval::new(signed.lo, signed.hi * 2 + 1),
        false => signed,
    }
}
