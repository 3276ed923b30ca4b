//! Accesses outside of buffers and offsets that overflow, for a launch of which grid, numbers and
//! buffer sizes are known.
//!
//! Each access is a search for a program, loop trips and a lane at which it happens and its offset
//! is outside of the buffer. What is found is a counter-example; where none exists the access is
//! proved.

use rustc_hash::FxHashSet;

use super::arguments::buffer;
use super::elements::{Access, Elements, Variable};
use super::report;
use super::solve::Outcome;
use super::terms::{AtomKind, Domain, Linear, wrapped};
use super::{Finding, widen};
use crate::diagnostic::Code;
use crate::ir::{Function, Inst, Opcode, Value};
use crate::specialization::{KnownBuffer, KnownLaunch};

/// Findings of one code and launch that are shown.
const MAX_SHOWN: usize = 3;

/// Of the boxes that all searches about a launch may look at, the part for one access.
const OF_ACCESS: u32 = 6;

/// The same for all of them.
const OF_LAUNCH: u32 = 3;

/// Findings about accesses of `func` under `launch` that leave their buffers.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    accesses: &[Access],
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut reported = FxHashSet::default();
    let mut fuel = elements.allowed() / OF_LAUNCH;
    for access in accesses {
        let Some(buffer) = buffer(func, launch, access.param) else { continue };
        if reported.contains(&func.insts[access.inst].loc) {
            continue;
        }
        let mut share = fuel.min(elements.allowed() / OF_ACCESS);
        let before = share;
        if let Some(point) = outside(elements, access, buffer, &mut share) {
            reported.insert(func.insts[access.inst].loc);
            found.push(describe(elements, func, launch, access, buffer, &point));
        }
        fuel -= before - share;
    }
    first_of_each_code(found)
}

/// The first findings of each code; one mistake, as a wrong stride, puts many accesses outside. The
/// last that stays says how many there are more.
fn first_of_each_code(found: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    let mut more: Vec<(Code, usize)> = Vec::new();
    for finding in found {
        let code = finding.diagnostic.code;
        match kept.iter().filter(|known| known.diagnostic.code == code).count() {
            MAX_SHOWN => match more.iter_mut().find(|(of, _)| *of == code) {
                Some((_, count)) => *count += 1,
                None => more.push((code, 1)),
            },
            _ => kept.push(finding),
        }
    }
    for (code, count) in more {
        let last = kept.iter_mut().rev().find(|known| known.diagnostic.code == code);
        if let Some(Finding { diagnostic, .. }) = last {
            let others = if count == 1 { "access" } else { "accesses" };
            diagnostic.notes.push(format!("and {count} more {others} of this launch"));
        }
    }
    kept
}

/// A point at which the access happens outside of the buffer.
fn outside(
    elements: &mut Elements<'_>,
    access: &Access,
    buffer: &KnownBuffer,
    fuel: &mut u32,
) -> Option<Vec<i128>> {
    let size = Linear::constant(buffer.elements);
    let beyond = elements.terms.at_most(&size, &access.offset);
    let before = elements.terms.less(&access.offset, &Linear::constant(-buffer.before));
    for objective in [beyond, before] {
        let mut conds = access.happens();
        conds.push(objective);
        if let Outcome::Found(point) = elements.search(&conds, fuel)
            && elements.agrees(&[(&conds, &access.offset, &point)])
        {
            return Some(point);
        }
    }
    None
}

/// Why a buffer is smaller than the tensor.
const EXPANDED: &str = "the tensor is expanded, as the gradient of a sum is: along axes with a stride \
    of 0 all its elements are one in memory; `.contiguous()` copies them";

fn describe(
    elements: &Elements<'_>,
    func: &Function,
    launch: &KnownLaunch,
    access: &Access,
    buffer: &KnownBuffer,
    point: &[i128],
) -> Finding {
    let data = &func.insts[access.inst];
    let mut domain = Domain::at(&elements.terms, point);
    let offset = domain.value(&access.offset).unwrap_or_default();
    let name = elements.param_name(access.param);
    let program = report::program(elements.position(point), launch.grid_rank);
    let has = report::count(buffer.elements, "element");
    let verb = report::verb(data.opcode);
    let at = access.lane(point);
    if let Some((value, exact, bits)) = overflow(elements, func, access, point) {
        let message = format!(
            "program {program} {verb} `{name}` at an offset that overflows {bits} bits: \
             {exact} became {}",
            wrapped(bits, exact)
        );
        let mut found = report::finding(func, data.loc, Code::IndexOverflow, message);
        if let Some(place) = func.def(value).map(|def| report::place(func, def.loc)) {
            found = found.with_related(place, format!("this is computed in {bits} bits"));
        }
        let found = found.with_note(format!(
            "{}; element {offset} is not in the buffer, which has {has}",
            context(elements, func, access, point, &at)
        ));
        let found = found.with_note("convert one of the operands to 64 bits: `.to(tl.int64)`");
        return Finding { widen: widen::operand(func, value), ..Finding::from(found) };
    }
    let where_ = if offset < 0 { "before its start" } else { "past its end" };
    let message = format!(
        "program {program} {verb} element {offset} of `{name}`, {where_}: the buffer has {has}"
    );
    let found = report::finding(func, data.loc, Code::OutOfBounds, message);
    let found = found.with_note(context(elements, func, access, point, &at));
    match buffer.is_expanded {
        true => found.with_note(EXPANDED).into(),
        false => found.into(),
    }
}

/// Lane and loop indices in words.
fn context(
    elements: &Elements<'_>,
    func: &Function,
    access: &Access,
    point: &[i128],
    lane: &[i128],
) -> String {
    let mut parts = Vec::new();
    if !lane.is_empty() {
        let index: Vec<String> = lane.iter().map(i128::to_string).collect();
        parts.push(format!("this is element [{}] of the tile", index.join(", ")));
    }
    for &inst in &access.loops {
        parts.extend(loop_index(elements, func, inst, point));
    }
    parts.extend(elements.random_example(&access.happens(), &access.offset, point));
    if parts.is_empty() {
        "the kernel reads and writes one element here".into()
    } else {
        parts.join(", ")
    }
}

/// `k = 64` for a loop's index at a point.
fn loop_index(
    elements: &Elements<'_>,
    func: &Function,
    inst: Inst,
    point: &[i128],
) -> Option<String> {
    let data = &func.insts[inst];
    if data.opcode != Opcode::For {
        return None;
    }
    let index = *func.regions[data.regions[0]].args.first()?;
    let var = elements.variable(Variable::Trip(inst))?;
    let trip = point.get(var.0 as usize)?;
    let bound =
        |slot: usize| func.constant_bits(data.operand(slot)).map(|bits| bits as i64 as i128);
    let name = report::name(func, index);
    Some(match (bound(0), bound(2), name) {
        (Some(lower), Some(step), Some(name)) => format!("`{name}` is {}", lower + step * trip),
        _ => format!("in trip {trip} of the loop"),
    })
}

/// The innermost integer of an offset that wraps around at a point: its value, what it would be
/// exactly, and its width.
fn overflow(
    elements: &Elements<'_>,
    func: &Function,
    access: &Access,
    point: &[i128],
) -> Option<(Value, i128, u32)> {
    let mut wraps = Vec::new();
    elements.terms.visit(&access.offset, &mut |_, kind| {
        if let AtomKind::Wrap(bits, inner) = kind {
            wraps.push((*bits, inner.clone()));
        }
    });
    let mut domain = Domain::at(&elements.terms, point);
    // Inner terms are met after those around them.
    wraps.into_iter().rev().find_map(|(bits, inner)| {
        let exact = domain.value(&inner)?;
        let overflows = exact != wrapped(bits, exact);
        let values = elements.wrapping_values(bits, &inner);
        // The same sum may be written out for several accesses.
        let own = func.computing(func.insts[access.inst].operand(0));
        let value = values.iter().find(|value| own.contains(value)).or(values.first())?;
        overflows.then_some((*value, exact, bits))
    })
}
