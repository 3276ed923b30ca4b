//! Masks: lanes that a load leaves undefined and that matter, lanes that it fills and that a reduction
//! or an atomic addition counts all the same, masks along the wrong axis, masks that are always true.
//!
//! A load without `other` leaves lanes undefined where its mask is false. For each such load, the
//! condition under which an element of a value is undefined is followed through the kernel
//! ([`super::flow`]). The load is reported when the condition can hold at something that is seen: a store, an address, a branch.
//! So nothing is said about lanes that are stored under the same or a stronger mask, or replaced.
//! Arguments, grid and memory may be anything.

use rustc_hash::FxHashSet;

use self::axes::wrong_axes;
use self::counted::{counted, reductions};
use super::elements::{Element, Elements, Index};
use super::flow::{FUEL, Flow, Followed, Fuel, Reached, mask_of, reached};
use super::neutral::{Neutral, combining, neutral};
use super::solve::{Outcome, Pause};
use super::terms::{AtomKind, Domain};
use super::{first_block, report};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Inst, Opcode};
use crate::passes::eliminate_common_subexpressions;
use crate::specialization::KnownLaunch;

mod axes;
mod counted;
mod other;

pub(super) use other::settle;

/// Boxes that may be looked at before a mask is taken not to be always true.
const QUICK_FUEL: u32 = 24;

/// Numbers that an example names.
const MAX_SHOWN: usize = 4;

/// Boxes that may be looked at for one kernel.
const KERNEL_FUEL: u32 = 3_000;

/// Findings about the masks of `func`.
///
/// Where the grids of all `launches` are known, undefined lanes must matter in one of them.
pub(super) fn check(
    func: &Function,
    launches: &[KnownLaunch],
    pause: Pause<'_>,
) -> Vec<Diagnostic> {
    let has_mask = |inst: &Inst| mask_of(&func.insts[*inst]).is_some();
    if !func.walk().iter().any(has_mask) {
        return Vec::new();
    }
    let mut found = wrong_axes(func);
    // Equal computations become one value, so that what they have in common is seen.
    let mut shared = func.clone();
    eliminate_common_subexpressions(&mut shared);
    let mut elements = Elements::of_any_launch(&shared, pause);
    let reached = reached(&shared, &mut elements);
    let known = !launches.is_empty() && launches.iter().all(|launch| launch.grid.is_some());
    if known {
        for launch in launches {
            let mut elements = Elements::of_open_launch(&shared, launch, pause);
            let reached = self::reached(&shared, &mut elements);
            let lanes =
                undefined_lanes(&shared, &mut elements, &reached, unfilled(&shared).collect());
            let counted = counted::check(&shared, &mut elements, &reached);
            for finding in lanes.into_iter().chain(counted) {
                if found.iter().all(|known| known.primary != finding.primary) {
                    found.push(finding);
                }
            }
        }
    } else {
        elements.expect_usual_launches(true);
        found.extend(undefined_lanes(
            &shared,
            &mut elements,
            &reached,
            unfilled(&shared).collect(),
        ));
        found.extend(counted::check(&shared, &mut elements, &reached));
        elements.expect_usual_launches(false);
    }
    found.extend(always_true(&shared, &mut elements, &reached));
    found.extend(first_block::check(&shared, launches, pause));
    found
}

/// Findings that hold whatever the grid is: masks along the wrong axis, and undefined lanes that reach
/// what combines lanes of one program. Which of them are stored, or decide what a program
/// does, depends on the programs that there are.
pub(super) fn check_any_grid(func: &Function, pause: Pause<'_>) -> Vec<Diagnostic> {
    let mut found = wrong_axes(func);
    if !unfilled(func).any(|load| combining(func, load).is_some()) {
        return found;
    }
    let mut shared = func.clone();
    eliminate_common_subexpressions(&mut shared);
    let combined = |load: &Inst| combining(&shared, *load).is_some();
    let loads: Vec<Inst> = unfilled(&shared).filter(combined).collect();
    let mut elements = Elements::of_any_launch(&shared, pause);
    let reached = reached(&shared, &mut elements);
    elements.expect_usual_launches(true);
    found.extend(undefined_lanes(&shared, &mut elements, &reached, loads));
    found
}

/// Loads with a mask and nothing to fill the lanes that it leaves out.
fn unfilled(func: &Function) -> impl Iterator<Item = Inst> {
    func.walk().into_iter().filter(|inst| {
        let data = &func.insts[*inst];
        data.opcode == Opcode::Load
            && data.operand_opt(1).is_some_and(|mask| func.constant_bits(mask).is_none())
            && data.operand_opt(2).is_none()
    })
}

fn undefined_lanes<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
    loads: Vec<Inst>,
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut reported = FxHashSet::default();
    let mut fuel = Fuel::new(KERNEL_FUEL);
    for load in loads {
        if reported.contains(&func.insts[load].loc) {
            continue;
        }
        let mut flow = Flow::new(func, elements, (load, Followed::Masked), &mut fuel);
        let seen = reached.iter().find_map(|reached| Some((reached.inst, flow.witness(reached)?)));
        if let Some((sink, point)) = seen {
            reported.insert(func.insts[load].loc);
            let example = example(func, elements, &point);
            let other = neutral(func, combining(func, load), func.insts[load].result());
            let other = other.filter(|other| {
                let filled = Some((load, other.number()));
                let mut counts = reductions(func).filter_map(|(reduction, _)| {
                    let of = (reduction, filled);
                    counted(func, elements, reached, of, &mut Fuel::new(KERNEL_FUEL))
                });
                counts.all(|(_, counted, _)| counted.load != load)
            });
            found.push(describe(func, (load, sink), other, &example));
        }
    }
    found
}

/// The integers that a kernel gets and the position in the grid at a point where an undefined lane
/// is seen.
fn example(func: &Function, elements: &mut Elements<'_>, point: &[i128]) -> String {
    let mut numbers = Vec::new();
    for (at, param) in func.params.iter().enumerate() {
        let Some(&value) = func.regions[func.body].args.get(at) else { continue };
        if let Element::Int(term) = elements.element(value, &Index::new()) {
            let padded = elements.terms.padded(point);
            let used = elements.terms.range(&term).constant().is_some()
                || term.terms.iter().any(|(atom, _)| match elements.terms.atom(*atom) {
                    AtomKind::Var(var) => (var.0 as usize) < point.len(),
                    _ => false,
                });
            let number = Domain::at(&elements.terms, &padded).value(&term);
            if let Some(number) = number.filter(|_| used) {
                numbers.push(format!("`{}` = {number}", param.name));
            }
        }
    }
    let program = report::program(elements.position(point), 1);
    numbers.truncate(MAX_SHOWN);
    match numbers.is_empty() {
        true => format!("so it is in program {program}"),
        false => format!("so it is in program {program} where {}", numbers.join(", ")),
    }
}

fn describe(
    func: &Function,
    (load, sink): (Inst, Inst),
    other: Option<Neutral>,
    example: &str,
) -> Diagnostic {
    let combining = combining(func, load);
    let (at, what) = match combining.map(|it| it.inst) {
        Some(inst) if func.insts[inst].opcode == Opcode::Dot => (inst, "a matrix product"),
        Some(inst) if func.insts[inst].opcode == Opcode::Scan => (inst, "a scan"),
        Some(inst) if func.insts[inst].opcode == Opcode::Sort => (inst, "a sort"),
        Some(inst) => (inst, "a reduction"),
        None => (
            sink,
            match func.insts[sink].opcode {
                Opcode::Load => "an address or mask",
                Opcode::If | Opcode::Condition | Opcode::For => "a condition",
                _ => "memory, under a weaker mask",
            },
        ),
    };
    let stores = combining.is_none() && func.insts[sink].opcode == Opcode::Store;
    let data = &func.insts[load];
    let message =
        format!("lanes of this load whose mask is false are undefined, and they reach {what}");
    let mut found = report::finding(func, data.loc, Code::UndefinedLanes, message);
    let place = report::place(func, func.insts[at].loc);
    if place != found.primary {
        found = found.with_related(
            place,
            match stores {
                true => "this store writes lanes that the load skipped".to_owned(),
                false => format!("{what}, which sees them"),
            },
        );
    }
    if func.frames(data.loc).len() == 1
        && let Some(value) = other.map(Neutral::text)
    {
        found = other::give(found, value);
    }
    found.with_note(example).with_note(match (combining, stores) {
        (Some(_), _) => {
            "choose an `other` that does not change the result, such as 0.0 for a sum or \
             -float('inf') for a maximum"
        }
        (None, true) => "let the store's mask leave out what the load's does, or choose an `other`",
        (None, false) => "choose an `other`, so that these lanes have a value",
    })
}

/// Masks that hold in every lane of every launch.
fn always_true(
    func: &Function,
    elements: &mut Elements<'_>,
    reached: &[Reached],
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut fuel = KERNEL_FUEL;
    for reached in reached {
        let data = &func.insts[reached.inst];
        let Some(mask) = mask_of(data).filter(|mask| func.constant_bits(*mask).is_none()) else {
            continue;
        };
        let index = elements.lanes(func.ty(mask).shape()).0;
        let mask = elements.truth(mask, &index);
        let mut conds = reached.path.clone();
        let not = elements.terms.not(mask);
        conds.push(not);
        // Nearly every mask is false somewhere in a small launch.
        let small = elements.small_ranges();
        let outcome = elements.search_within(small, &conds, &mut { QUICK_FUEL });
        if !matches!(outcome, Outcome::Never) {
            continue;
        }
        let mut share = FUEL.min(fuel);
        let before = share;
        let outcome = elements.search(&conds, &mut share);
        fuel -= before - share;
        if outcome == Outcome::Never {
            let message = "this mask is true in every lane, whatever the arguments are";
            let finding = report::finding(func, data.loc, Code::MaskAlwaysTrue, message);
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found
}
