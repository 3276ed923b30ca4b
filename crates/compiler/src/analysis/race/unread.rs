//! Tensors of which programs read little since what one reads lies partly over what others read, or the rows of
//! a tile over each other: the step between programs, or between rows, is not that of the tensor.
//!
//! Windows that overlap, as those of a convolution, read all of a tensor but what is left at its end, and
//! programs that read the same tile are meant to.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Pair, overlap, programs_of};
use crate::analysis::arguments::{buffer, is_alone};
use crate::analysis::elements::{Access, Elements};
use crate::analysis::points::Points;
use crate::analysis::report;
use crate::analysis::terms::{AtomKind, Linear, Var};
use crate::analysis::unfollowed::Unfollowed;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Opcode};
use crate::specialization::KnownLaunch;

/// Points of one load among which lanes are looked for that read the same.
const MAX_MEETING: usize = 1 << 12;

/// Points of one load that are looked at.
const MAX_POINTS: i128 = 1 << 15;

/// Findings about the tensors that `func` only reads, each at addresses that are all known.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    programs: &[Linear; 3],
    accesses: &[Access],
) -> Vec<Diagnostic> {
    let unfollowed = Unfollowed::of(func, launch, accesses, Opcode::is_global_access);
    let mut params: Vec<usize> = accesses.iter().map(|access| access.param).collect();
    params.sort_unstable();
    params.dedup();
    let of_param = |param: usize| {
        let own: Vec<&Access> = accesses.iter().filter(|access| access.param == param).collect();
        let buffer = buffer(func, launch, param).filter(|buffer| is_alone(launch, buffer))?;
        let is_load = |access: &&Access| func.insts[access.inst].opcode == Opcode::Load;
        let sizes = buffer.sizes.as_deref()?;
        let long = sizes.iter().filter(|size| **size > 1).count();
        let has_rows = long > 1 && own.iter().any(|access| rows_overlap(elements, access));
        let meets = || own.iter().any(|access| may_overlap(elements, programs, access));
        if unfollowed.may_reach(param) || !own.iter().all(is_load) || !(has_rows || meets()) {
            return None;
        }
        of_tensor(func, launch, elements, programs, (&own, sizes.iter().product(), has_rows))
    };
    params.into_iter().filter_map(of_param).collect()
}

/// Whether what two neighbors read, along an axis, may lie partly over each other: they are less far apart
/// than their lanes reach.
fn may_overlap(elements: &Elements<'_>, programs: &[Linear; 3], access: &Access) -> bool {
    let of_lane = |(atom, factor): &(_, i128)| match elements.terms.atom(*atom) {
        AtomKind::Var(var) if access.lanes.contains(var) => {
            let range = elements.terms.var_ranges()[var.0 as usize];
            factor.abs().saturating_mul(range.hi - range.lo)
        }
        _ => 0,
    };
    let reach: i128 = access.offset.terms.iter().map(of_lane).sum();
    let first: Vec<i128> = elements.terms.var_ranges().iter().map(|range| range.lo).collect();
    let mut apart = programs.iter().filter_map(|program| {
        let [(atom, _)] = program.terms[..] else { return None };
        let AtomKind::Var(var) = elements.terms.atom(atom) else { return None };
        let mut next = first.clone();
        *next.get_mut(var.0 as usize)? += 1;
        overlap::shift(elements, access, &(first.clone(), next))
    });
    apart.any(|shift| shift.abs() <= reach)
}

/// The lanes along an axis of a tile that move what is accessed forwards: by how much, and how many there are.
fn steps(elements: &Elements<'_>, access: &Access) -> Vec<(Var, i128, i128)> {
    let step = |(atom, factor): &(_, i128)| match elements.terms.atom(*atom) {
        AtomKind::Var(var) if access.lanes.contains(var) && *factor > 0 => {
            let range = elements.terms.var_ranges()[var.0 as usize];
            Some((*var, *factor, range.hi - range.lo + 1))
        }
        _ => None,
    };
    access.offset.terms.iter().filter_map(step).collect()
}

/// Whether the rows of a tile begin before the ones ahead of them end.
fn rows_overlap(elements: &Elements<'_>, access: &Access) -> bool {
    let steps = steps(elements, access);
    let is_over = |(of_row, row, _): &(Var, i128, i128)| {
        steps.iter().any(|(var, step, count)| {
            var != of_row && row >= step && *row <= step.saturating_mul(count - 1)
        })
    };
    access.offset.terms.iter().all(|(atom, _)| overlap::moves_lanes_alike(elements, *atom))
        && steps.iter().any(is_over)
}

/// Two lanes of one program that are apart along two axes of the tile and read the same element.
fn lanes_meeting(
    elements: &Elements<'_>,
    load: &Access,
    points: &Points,
) -> Option<([Vec<i128>; 2], i128)> {
    let moving: Vec<Var> = steps(elements, load).into_iter().map(|(var, ..)| var).collect();
    let mut first: FxHashMap<i128, i128> = FxHashMap::default();
    let meets = |(number, element): &(i128, i128)| {
        let before = *first.entry(*element).or_insert(*number);
        if before == *number {
            return None;
        }
        let (one, other) = (points.values(before), points.values(*number));
        let apart: Vec<Var> =
            one.zip(other).filter(|(a, b)| a.1 != b.1).map(|(a, _)| a.0).collect();
        let is_row = apart.len() > 1 && apart.iter().all(|var| moving.contains(var));
        let at = |number: i128| {
            let lane = |lane: &Var| points.values(number).find(|(var, _)| var == lane);
            load.lanes.iter().map(|var| lane(var).map_or(0, |(_, at)| at)).collect()
        };
        is_row.then(|| ([at(before), at(*number)], *element))
    };
    points.found.iter().take(MAX_MEETING).find_map(meets)
}

/// What is found of one tensor that has so many elements; rows of tiles of it may overlap.
fn of_tensor(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    programs: &[Linear; 3],
    (loads, size, has_rows): (&[&Access], i128, bool),
) -> Option<Diagnostic> {
    let points = |load: &&Access| {
        let points = Points::of(elements, load, programs, &[], (MAX_POINTS, 0))?;
        points.bounded.then_some(points)
    };
    let all: Vec<Points> = loads.iter().map(points).collect::<Option<_>>()?;
    let read: FxHashSet<i128> =
        all.iter().flat_map(may_happen).map(|(_, element)| element).collect();
    // What is outside of the tensor is another mistake.
    let is_inside = read.iter().all(|element| (0..size).contains(element));
    let unread = size - read.len() as i128;
    if !is_inside || unread * 2 <= size {
        return None;
    }
    let size = report::count(size, "element");
    let each = || loads.iter().copied().zip(&all);
    let Some((load, (pair, element))) =
        each().find_map(|(load, points)| Some((load, meeting(elements, load, points)?)))
    else {
        let rows = |(load, points)| Some((load, lanes_meeting(elements, load, points)?));
        let (load, ([a, b], element)) = each().filter(|_| has_rows).find_map(rows)?;
        let (name, [a, b]) = (elements.param_name(load.param), [a, b].map(|at| report::tuple(&at)));
        let message = format!(
            "lanes {a} and {b} of one tile both read element {element} of `{name}`, and of its {size} no \
             program reads {unread}"
        );
        let found = report::finding(func, func.insts[load.inst].loc, Code::Unread, message);
        return Some(found.with_note("the step between its rows is less than their length"));
    };
    let [a, b] = programs_of(elements, launch, &pair);
    let name = elements.param_name(load.param);
    // What memory decides may be so.
    let read = if all.iter().all(Points::is_complete) { "both read" } else { "may both read" };
    let message = format!(
        "programs {a} and {b} {read} element {element} of `{name}`, and of its {size} no program reads \
         {unread}"
    );
    let found = report::finding(func, func.insts[load.inst].loc, Code::Unread, message);
    Some(found.with_note(overlap::note(elements, launch, (load, "reads"), &pair)))
}

/// The points at which a load happens or memory may make it happen, each with the element that it reads there.
fn may_happen(points: &Points) -> impl Iterator<Item = (i128, i128)> + '_ {
    points.found.iter().chain(&points.possible).copied()
}

/// Two programs of which one reads partly what the other does, and an element that both read.
fn meeting(elements: &Elements<'_>, load: &Access, points: &Points) -> Option<(Pair, i128)> {
    let vars = elements.terms.var_ranges().len();
    let mut first: FxHashMap<i128, i128> = FxHashMap::default();
    may_happen(points).find_map(|(number, element)| {
        let before = *first.entry(element).or_insert(number);
        if before == number {
            return None;
        }
        let pair = (points.whole(elements, before, vars), points.whole(elements, number, vars));
        overlap::shift(elements, load, &pair).map(|_| (pair, element))
    })
}
