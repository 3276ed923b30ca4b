//! Accesses outside of buffers, offsets that overflow, and grids that leave elements untouched,
//! for a launch of which grid, numbers and buffer sizes are known.
//!
//! Each access is a search for a program, loop trips and a lane at which it happens and its offset
//! is outside of the buffer. What is found is a counter-example; where none exists the access is
//! proved.

use rustc_hash::FxHashSet;

use super::elements::{Access, Elements, Variable};
use super::report;
use super::solve::{Outcome, Pause};
use super::terms::{AtomKind, Cond, Domain, Interval, Linear, Terms, wrapped};
use super::{Finding, Spot, widen};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Inst, Opcode, Value};
use crate::specialization::{Contents, KnownArg, KnownBuffer, KnownLaunch};

/// Findings of one code and launch that are shown.
const MAX_SHOWN: usize = 3;

/// Boxes that may be looked at for one access.
const ACCESS_FUEL: u32 = 4_000;

/// Boxes that may be looked at for one launch.
const LAUNCH_FUEL: u32 = 8_000;

/// Boxes that may be looked at for elements that one launch leaves untouched.
const UNCOVERED_FUEL: u32 = 6_000;

/// Findings about the accesses of `func` under `launch`.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    accesses: &[Access],
    pause: Pause<'_>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut reported = FxHashSet::default();
    let mut fuel = LAUNCH_FUEL;
    for access in accesses {
        let Some(buffer) = buffer(func, launch, access.param) else { continue };
        if reported.contains(&func.insts[access.inst].loc) {
            continue;
        }
        let mut share = ACCESS_FUEL.min(fuel);
        let before = share;
        if let Some(point) = outside(elements, access, buffer, &mut share) {
            reported.insert(func.insts[access.inst].loc);
            found.push(describe(elements, func, launch, access, buffer, &point));
        }
        fuel -= before - share;
    }
    let mut found = first_of_each_code(found);
    let uncovered = uncovered(func, launch, elements, accesses, pause);
    found.extend(uncovered.map(|found| Finding { spot: Spot::Launch, ..Finding::from(found) }));
    found
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

/// The buffer behind a parameter, if its size is known.
pub(super) fn buffer<'l>(
    func: &Function,
    launch: &'l KnownLaunch,
    param: usize,
) -> Option<&'l KnownBuffer> {
    match launch.arg(&func.params[param].name) {
        Some(KnownArg::Buffer(buffer)) => Some(buffer),
        _ => None,
    }
}

/// The conditions under which an access happens.
pub(super) fn happens(access: &Access) -> Vec<Cond> {
    let mut conds = access.path.clone();
    conds.push(access.mask);
    conds
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
    let before = elements.terms.less(&access.offset, &Linear::default());
    for objective in [beyond, before] {
        let mut conds = happens(access);
        conds.push(objective);
        if let Outcome::Found(point) = elements.search(&conds, fuel)
            && elements.agrees(&[(&conds, &access.offset, &point)])
        {
            return Some(point);
        }
    }
    None
}

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
    let program = report::program(position(elements, point), launch.grid_rank);
    let has = report::count(buffer.elements, "element");
    let verb = report::verb(data.opcode);
    let at = lane(access, point);
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
    found.with_note(context(elements, func, access, point, &at)).into()
}

/// The position in the grid at a point.
pub(super) fn position(elements: &Elements<'_>, point: &[i128]) -> [i128; 3] {
    let mut position = [0; 3];
    for (axis, slot) in position.iter_mut().enumerate() {
        if let Some(var) = elements.variable(Variable::Program(axis as u32)) {
            *slot = point.get(var.0 as usize).copied().unwrap_or(0);
        }
    }
    position
}

/// The lane of an access at a point.
pub(super) fn lane(access: &Access, point: &[i128]) -> Vec<i128> {
    access.lanes.iter().map(|var| point.get(var.0 as usize).copied().unwrap_or(0)).collect()
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
    parts.extend(elements.random_example(&happens(access), &access.offset, point));
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
        let own = computing(func, func.insts[access.inst].operand(0));
        let value = values.iter().find(|value| own.contains(value)).or(values.first())?;
        overflows.then_some((*value, exact, bits))
    })
}

/// The values that `value` is computed from, and itself.
fn computing(func: &Function, value: Value) -> FxHashSet<Value> {
    let mut found = FxHashSet::default();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        if found.insert(value)
            && let Some(data) = func.def(value)
        {
            pending.extend(data.uses());
        }
    }
    found
}

/// Buffers of which a larger grid or a larger block would write elements that these leave
/// untouched.
fn uncovered(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    accesses: &[Access],
    pause: Pause<'_>,
) -> Option<Diagnostic> {
    let grid = launch.grid?;
    let extents = grid[..launch.grid_rank.clamp(1, 3)].iter().map(|extent| i128::from(*extent));
    let extents: Vec<i128> = extents.collect();
    let written = |inst: &Inst| func.insts[*inst].opcode != Opcode::Load;
    let writes = func.walk().into_iter().filter(|inst| {
        let opcode = func.insts[*inst].opcode;
        matches!(opcode, Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::InlineAsm)
    });
    // A write whose address is not known may be anywhere.
    let known = accesses.iter().filter(|access| written(&access.inst)).count();
    if writes.count() != known {
        return None;
    }
    let mut fuel = UNCOVERED_FUEL;
    for access in accesses.iter().filter(|access| func.insts[access.inst].opcode == Opcode::Store) {
        let Some(buffer) = buffer(func, launch, access.param) else {
            continue;
        };
        // What held something before may be meant to keep it, unless it is updated as far as a mask
        // says.
        let updates = buffer.contents != Contents::Uninitialized;
        if updates && !is_read_first(func, accesses, access) {
            continue;
        }
        let programs = (0..3).zip(grid).map(|(axis, extent)| (Variable::Program(axis), extent));
        let lanes = masked_lanes(func, access).into_iter().filter(|_| !updates);
        for (variable, extent) in programs.chain(lanes) {
            let known = (&mut *elements, accesses);
            let by_mask = updates || matches!(variable, Variable::Lane(..));
            let along = Along { variable, extent, by_mask };
            let missed = missed(func, launch, known, access, along, (&mut fuel, pause));
            let Some((position, element)) = missed else { continue };
            let what = format!(
                "writes element {element} of `{}`, which has {}",
                elements.param_name(access.param),
                report::count(buffer.elements, "element")
            );
            let (message, note) = match variable {
                Variable::Program(axis) => (
                    format!(
                        "no program of the grid {} {what}; program {} would",
                        report::tuple(&extents),
                        report::program(position, launch.grid_rank.max(axis as usize + 1))
                    ),
                    why_uncovered(launch, buffer),
                ),
                _ => (
                    format!(
                        "no program {what}: the mask lets more lanes store than the {extent} of this \
                         block"
                    ),
                    "make the block as long as what the mask allows, or loop over blocks",
                ),
            };
            let loc = func.insts[access.inst].loc;
            return Some(report::finding(func, loc, Code::Uncovered, message).with_note(note));
        }
    }
    None
}

/// Whether a kernel reads each element that an access stores to.
fn is_read_first(func: &Function, accesses: &[Access], store: &Access) -> bool {
    accesses.iter().any(|load| {
        func.insts[load.inst].opcode == Opcode::Load
            && (load.param, &load.offset, load.mask) == (store.param, &store.offset, store.mask)
    })
}

/// An axis along which a launch may have too few programs or lanes.
#[derive(Clone, Copy)]
struct Along {
    variable: Variable,
    /// How many there are.
    extent: u32,
    /// Whether the mask must say how many there should be.
    by_mask: bool,
}

/// The lanes of a masked store along each axis, and how many they are. None where tiles change
/// their shape: lanes beyond the last one would not be what a longer block has there.
fn masked_lanes(func: &Function, access: &Access) -> Vec<(Variable, u32)> {
    let reshapes = |inst: &Inst| {
        use Opcode::{Cat, Gather, Join, Reshape, Split};
        matches!(func.insts[*inst].opcode, Cat | Gather | Join | Reshape | Split)
    };
    let store = &func.insts[access.inst];
    if store.operand_opt(2).is_none() || func.walk().iter().any(reshapes) {
        return Vec::new();
    }
    let shape = func.ty(store.operand(0)).shape().iter().enumerate();
    shape.map(|(axis, &extent)| (Variable::Lane(axis as u32, extent), extent)).collect()
}

/// Whether the grid or the buffer is at fault, as far as the launch tells.
fn why_uncovered(launch: &KnownLaunch, buffer: &KnownBuffer) -> &'static str {
    let told = launch.args.iter().any(|(_, arg)| *arg == KnownArg::Int(buffer.elements));
    match told {
        true => "the launch passes the number of elements as well: the grid is too short",
        false => "the grid is too short, or the buffer has more elements than the launch is for",
    }
}

/// An element that a program beyond the grid or a lane beyond the block would write, and none
/// within them does.
fn missed(
    func: &Function,
    launch: &KnownLaunch,
    (elements, accesses): (&mut Elements<'_>, &[Access]),
    access: &Access,
    Along { variable, extent, by_mask }: Along,
    (fuel, pause): (&mut u32, Pause<'_>),
) -> Option<([i128; 3], i128)> {
    let size = buffer(func, launch, access.param)?.elements;
    let mut wide = Elements::of_launch(func, launch, pause);
    let most = i128::from(extent).saturating_mul(16).saturating_add(4096);
    let further =
        wide.variable_term(variable, Interval::new(0, most.min(i128::from(i32::MAX) - 1)));
    let same = wide.accesses().into_iter().find(|wide| wide.inst == access.inst)?;
    if by_mask && !depends(&wide, same.mask, variable) {
        return None;
    }
    let beyond = wide.terms.at_most(&Linear::constant(i128::from(extent)), &further);
    let start = wide.terms.at_most(&Linear::default(), &same.offset);
    let end = wide.terms.less(&same.offset, &Linear::constant(size));
    // Where programs overlap, the first element beyond them is one that the last of them writes.
    for least in [0, size / 2, size - 1] {
        let mut conds = happens(&same);
        let far = wide.terms.at_most(&Linear::constant(least), &same.offset);
        conds.extend([start, end, beyond, far]);
        let mut share = ACCESS_FUEL.min(*fuel);
        let before = share;
        let outcome = wide.search(&conds, &mut share);
        *fuel -= before - share;
        // Elements further on are fewer: what is not found among all is not found among them.
        let Outcome::Found(point) = outcome else { return None };
        let element = Domain::at(&wide.terms, &point).value(&same.offset)?;
        let mut share = ACCESS_FUEL;
        let at = (access.param, element);
        if !may_write(func, launch, (&mut *elements, accesses), at, &mut share) {
            return Some((position(&wide, &point), element));
        }
    }
    None
}

/// Whether any access of the launch may write an element of a parameter's buffer.
fn may_write(
    func: &Function,
    launch: &KnownLaunch,
    (elements, accesses): (&mut Elements<'_>, &[Access]),
    (param, element): (usize, i128),
    fuel: &mut u32,
) -> bool {
    let storage = |param: usize| buffer(func, launch, param).and_then(|buffer| buffer.id);
    accesses.iter().any(|other| {
        let same_memory = other.param == param
            || storage(other.param).is_none()
            || storage(other.param) == storage(param);
        if func.insts[other.inst].opcode == Opcode::Load || !same_memory {
            return false;
        }
        if other.may_be_elsewhere(func) {
            return true;
        }
        let mut conds = happens(other);
        let writes = elements.terms.equal(&other.offset, &Linear::constant(element));
        conds.push(writes);
        elements.search(&conds, fuel) != Outcome::Never
    })
}

/// True when a condition depends on a variable.
fn depends(elements: &Elements<'_>, cond: Cond, variable: Variable) -> bool {
    let wanted = elements.variable(variable);
    let mut depends = false;
    elements.terms.visit_cond(cond, &mut |_, kind| {
        depends |= matches!(kind, AtomKind::Var(var) if Some(*var) == wanted);
    });
    depends
}

/// True when a condition or term depends on nothing unknown.
pub(super) fn is_known(terms: &Terms, term: &Linear) -> bool {
    let mut known = true;
    terms.visit(term, &mut |_, kind| known &= !matches!(kind, AtomKind::Unknown(_)));
    known
}
