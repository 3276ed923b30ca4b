//! Loops over a tensor that do not go on by as much as they read in each trip: they leave elements out, or
//! count elements twice.
//!
//! A loop visits the positions `0..n` where the mask of a load is `step * trip + lane < n` and there are just as
//! many trips as `n` positions need by that step. Halos and windows, which are meant to overlap, count nothing
//! twice: what the loop sums up, or changes in place, is asked for. Elements that another load of the loop may read
//! are not left out.

use rustc_hash::FxHashSet;

use super::arguments::{buffer, is_alone};
use super::elements::{Access, Elements, Variable};
use super::flow::gives::Gives;
use super::neutral::combines;
use super::report;
use super::solve::Outcome;
use super::terms::{Atom, AtomKind, Cond, CondKind, Interval, Linear, Var};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Inst, InstData, Opcode, Value};
use crate::specialization::KnownLaunch;

/// Boxes that may be looked at for one point.
const FUEL: u32 = 1_000;

/// Findings about the loads of `func` in its loops, one for each loop and axis at most.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    accesses: &[Access],
) -> Vec<Diagnostic> {
    let mut found: Vec<(Inst, Diagnostic)> = Vec::new();
    for load in accesses.iter().filter(|access| func.insts[access.inst].opcode == Opcode::Load) {
        let Some(walk) = Walk::of(func, elements, load) else { continue };
        if found.iter().any(|(known, _)| *known == walk.inst) {
            continue;
        }
        let finding = match walk.step < walk.extent {
            true => twice(func, elements, (load, accesses), &walk),
            false => left_out(func, launch, elements, (load, accesses), &walk),
        };
        found.extend(finding.map(|finding| (walk.inst, finding)));
    }
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// A loop whose trips read a tile each along positions below a bound.
struct Walk {
    inst: Inst,
    trip: Var,
    lane: Var,
    /// Positions that it goes on by in a trip.
    step: i128,
    /// Lanes of the tile along the axis.
    extent: i128,
    /// Positions in all.
    bound: i128,
}

impl Walk {
    /// The innermost loop around a load, where it goes on by another number of positions than the load has
    /// lanes.
    fn of(func: &Function, elements: &mut Elements<'_>, load: &Access) -> Option<Walk> {
        let inst = *load.loops.last()?;
        let data = &func.insts[inst];
        if data.opcode != Opcode::For {
            return None;
        }
        let step = elements.step(data)?;
        let trips = elements.trips(inst, step).as_constant()?;
        let trip = elements.variable(Variable::Trip(inst))?;
        let of_trip = elements.terms.var_atom(trip)?;
        let mut conds = Vec::new();
        conjuncts(elements, load.mask, &mut conds);
        conds.iter().find_map(|position| {
            let (step, lane, bound) = bounded(elements, load, of_trip, position)?;
            let of_lane = elements.terms.var_atom(lane)?;
            let range = elements.terms.var_ranges()[lane.0 as usize];
            let extent = range.hi + 1;
            let scale = load.offset.factor(of_lane);
            let moves = scale != 0 && load.offset.factor(of_trip) == step.checked_mul(scale)?;
            let covers = (bound + step - 1) / step == trips && bound > step.min(extent);
            (moves && covers && step != extent && extent > 1).then_some(Walk {
                inst,
                trip,
                lane,
                step,
                extent,
                bound,
            })
        })
    }
}

/// The conditions of which all must hold for a condition to.
fn conjuncts(elements: &Elements<'_>, cond: Cond, found: &mut Vec<Linear>) {
    match elements.terms.cond(cond) {
        CondKind::And(a, b) => {
            let (a, b) = (*a, *b);
            conjuncts(elements, a, found);
            conjuncts(elements, b, found);
        }
        CondKind::AtMostZero(term) => found.push(term.clone()),
        _ => {}
    }
}

/// The step, the lane and the bound of `step * trip + lane < bound`, where that is what a term says that is at
/// most 0.
fn bounded(
    elements: &Elements<'_>,
    load: &Access,
    trip: Atom,
    term: &Linear,
) -> Option<(i128, Var, i128)> {
    let [(one, _), (two, _)] = term.terms[..] else { return None };
    let other = if one == trip { two } else { one };
    let AtomKind::Var(lane) = elements.terms.atom(other) else { return None };
    let step = term.factor(trip);
    let is_position = step > 0 && term.factor(other) == 1 && load.lanes.contains(lane);
    is_position.then_some((step, *lane, 1 - term.constant))
}

/// What is found of a loop whose trips read partly the same and add that up or change it.
fn twice(
    func: &Function,
    elements: &Elements<'_>,
    (load, accesses): (&Access, &[Access]),
    walk: &Walk,
) -> Option<Diagnostic> {
    let changes = accesses.iter().find(|other| {
        let is_there = other.param == load.param && other.offset == load.offset;
        is_there && other.writes(func) && other.loops.contains(&walk.inst)
    });
    let (seen, does) = match (summed(func, load.inst, walk.inst), changes) {
        (Some(sum), _) => (sum, "which counts it twice"),
        (None, Some(change)) => (change.inst, "which changes it twice"),
        (None, None) => return None,
    };
    let happens = |trip: i128, lane: i128| {
        let mut ranges = elements.terms.var_ranges().to_vec();
        ranges[walk.trip.0 as usize] = Interval::point(trip);
        ranges[walk.lane.0 as usize] = Interval::point(lane);
        let search = |conds: &[Cond]| elements.search_within(ranges.clone(), conds, &mut { FUEL });
        // What memory decides may be so.
        matches!(search(&[load.mask]), Outcome::Found(_))
            && !matches!(search(&load.happens()), Outcome::Never)
    };
    if !happens(0, walk.step) || !happens(1, 0) {
        return None;
    }
    let message = format!(
        "the loop goes on by {} in each trip and this load reads {} lanes: position {} of {} is read in \
         trips 0 and 1",
        walk.step, walk.extent, walk.step, walk.bound
    );
    let found = report::finding(func, func.insts[load.inst].loc, Code::LoopStep, message)
        .with_related(report::place(func, func.insts[seen].loc), does)
        .with_note("let the loop go on by as much as the block is wide");
    Some(found)
}

/// What is found of a loop whose trips leave elements of a tensor out that nothing else reads.
fn left_out(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    (load, accesses): (&Access, &[Access]),
    walk: &Walk,
) -> Option<Diagnostic> {
    let is_same = |other: &Access| other.offset == load.offset && other.mask == load.mask;
    let other = accesses.iter().any(|other| {
        other.param == load.param && other.loops.contains(&walk.inst) && !is_same(other)
    });
    let is_shared = buffer(func, launch, load.param).is_some_and(|it| !is_alone(launch, it));
    if other || is_shared {
        return None;
    }
    let name = elements.param_name(load.param);
    let message = format!(
        "the loop goes on by {} in each trip and this load of `{name}` reads {} lanes: position {} of {} is \
         left out",
        walk.step, walk.extent, walk.extent, walk.bound
    );
    let found = report::finding(func, func.insts[load.inst].loc, Code::LoopStep, message)
        .with_note("let the loop go on by as much as the block is wide");
    Some(found)
}

/// A sum of what `load` reads, or a matrix product, that all trips of a loop add to.
fn summed(func: &Function, load: Inst, walk: Inst) -> Option<Inst> {
    let inside = func.walk_inst(walk);
    let end = func.terminator(*func.insts[walk].regions.first()?)?;
    let adds = |inst: &Inst| {
        func.insts[*inst].opcode == Opcode::Dot || Gives::of(func, *inst) == Some(Gives::Sum)
    };
    let carries = |inst: &Inst| {
        let (made, _) = flow(func, &func.insts[*inst].results, |_| false);
        !inside.contains(inst) || end.uses().any(|value| made.contains(&value))
    };
    combining(func, load).into_iter().filter(adds).find(carries)
}

/// The operations that combine lanes of what `load` reads, first of all.
fn combining(func: &Function, load: Inst) -> Vec<Inst> {
    flow(func, &func.insts[load].results, combines).1
}

/// What is made of values, and the operations at which that is not followed any further.
fn flow(
    func: &Function,
    from: &[Value],
    ends: impl Fn(Opcode) -> bool,
) -> (FxHashSet<Value>, Vec<Inst>) {
    let mut made: FxHashSet<Value> = from.iter().copied().collect();
    let mut ended = Vec::new();
    let order = func.walk();
    // What a loop yields is known after its body.
    for _ in 0..2 {
        for &inst in &order {
            let data = &func.insts[inst];
            let takes = data.uses().any(|value| made.contains(&value));
            if takes && ends(data.opcode) {
                if !ended.contains(&inst) {
                    ended.push(inst);
                }
            } else if takes && data.regions.is_empty() {
                made.extend(&data.results);
            }
            if !ends(data.opcode) {
                hand_on(func, data, &mut made);
            }
        }
    }
    (made, ended)
}

/// Hands what is made to the arguments and the results of an operation with regions.
fn hand_on(func: &Function, data: &InstData, made: &mut FxHashSet<Value>) {
    let is_for = data.opcode == Opcode::For;
    for region in &data.regions {
        let Some(end) = func.terminator(*region) else { continue };
        let args = &func.regions[*region].args;
        for (at, (value, result)) in end.uses().zip(&data.results).enumerate() {
            let starts = data.operand_opt(3 + at).filter(|_| is_for);
            let is_made = made.contains(&value) || starts.is_some_and(|it| made.contains(&it));
            if is_made {
                made.insert(*result);
                made.extend(args.get(at + 1).filter(|_| is_for));
            }
        }
    }
}
