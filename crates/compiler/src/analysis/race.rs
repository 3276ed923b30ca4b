//! Two programs that store to one address without an atomic operation, or one that reads what
//! another stores, for a known launch.
//!
//! The second program's variables are the first one's plus a difference, so that offsets that are
//! linear cancel. Stores of equal values are left alone where programs have one tile: many kernels write
//! a row's statistics from every program of the row. Whether values are equal is decided by what they are
//! computed from.

use rustc_hash::{FxHashMap, FxHashSet};

use super::arguments::{buffer, is_same_memory};
use super::elements::{Access, Elements, Variable};
use super::grid;
use super::identity::Origins;
use super::report;
use super::solve::Outcome;
use super::terms::{
    Atom, AtomKind, Cond, Domain, Interval, Linear, Substitution, Terms, Var, note_var,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{AtomicOp, Attrs, Function, Inst, Opcode};
use crate::specialization::KnownLaunch;

mod counted;
mod idle;
mod locks;
mod overlap;
mod reads;
mod slices;
mod unread;

/// Boxes that may be looked at for one pair of accesses before points are looked at one by one.
const FIRST_FUEL: u32 = 500;

/// Boxes that may be looked at for one pair of accesses.
const PAIR_FUEL: u32 = 4_000;

/// Boxes that may be looked at for one lane of the first of them.
const LANE_FUEL: u32 = 500;

/// Pairs of accesses of one kind that are looked at in one kernel.
const MAX_PAIRS: usize = 32;

/// Masks of loads at whose edges two stored values are compared.
const MAX_EDGES: usize = 3;

/// Threads of a warp, whose stores are in the order of the kernel.
const WARP: u32 = 32;

/// Findings about the stores of `func` under `launch`.
pub(super) fn check<'f>(
    func: &'f Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'f>,
    accesses: &[Access],
) -> Vec<Diagnostic> {
    if launch.grid.is_none() {
        return Vec::new();
    }
    let programs = [0, 1, 2].map(|axis| elements.program(axis));
    let asked = grid::axes_asked_for(func);
    let waits = synchronization(func);
    let stores: Vec<&Access> = accesses
        .iter()
        .filter(|access| func.insts[access.inst].opcode == Opcode::Store)
        .filter(|access| is_ever_known(&elements.terms, &access.offset))
        .filter(|access| is_before(func, access, waits))
        .collect();
    let pairs = pairs(func, launch, &stores);
    let mut other = Other::new(&mut elements.terms);
    let mut found = Vec::new();
    // Stores to elements that others store the same to, or other stores.
    let mut repeated: Vec<&Access> = Vec::new();
    let mut reported = FxHashSet::default();
    for (first, second) in pairs {
        // Copies of an unrolled loop stand at one place.
        let locs = (func.insts[first.inst].loc, func.insts[second.inst].loc);
        if reported.contains(&locs) {
            continue;
        }
        let within = within(func, launch, elements, first);
        let part = Part { programs: &programs, asked, apart: Apart::Programs, within };
        let lanes = Part { apart: Apart::Lanes, within: part.within.clone(), ..part };
        let mut met = race(func, elements, part, &mut other, (first, second));
        // What programs do in any order is the greater mistake.
        let same = first.inst == second.inst;
        let apart = same || is_unordered(func, first, second);
        if apart && !first.lanes.is_empty() && !matches!(met, Collision::Counts(_)) {
            let among_lanes = race(func, elements, lanes, &mut other, (first, second));
            met = met.or(among_lanes);
        }
        match met {
            Collision::Counts(pair) => {
                reported.insert(locs);
                let met = describe(func, launch, elements, first, second, &pair);
                found.push(met.with_note(advice(elements, launch, &pair)));
            }
            Collision::Overlaps(pair) => {
                reported.insert(locs);
                let met = describe(func, launch, elements, first, second, &pair);
                let note = overlap::note(elements, launch, (first, "stores"), &pair);
                found.push(met.with_note(note).with_note("the values may be the same"));
            }
            Collision::Passed if same => repeated.push(first),
            _ if !same && first.param == second.param => repeated.push(first),
            _ => {}
        }
    }
    if let Some(axis) = idle::axis(&programs, asked) {
        let updated = |store: &&Access| idle::updated(func, launch, elements, axis, store);
        found.extend(stores.iter().filter_map(updated));
        repeated.extend(&stores);
    }
    let mut seen = FxHashSet::default();
    repeated.retain(|store| seen.insert(store.param));
    for store in repeated {
        found.extend(counted::left_out(func, launch, elements, &programs, (store, accesses)));
    }
    for store in accesses {
        let is_unknown = !elements.terms.is_known(&store.offset);
        let is_found =
            |known: &Diagnostic| known.primary == report::place(func, func.insts[store.inst].loc);
        if is_unknown && is_before(func, store, waits) && !found.iter().any(is_found) {
            found.extend(counted::crowded(func, launch, elements, (&programs, asked), store));
        }
    }
    found.extend(reads::check(func, launch, elements, (&programs, &mut other), accesses));
    found.extend(locks::check(func, launch, elements, (&programs, asked, &mut other), accesses));
    found.extend(unread::check(func, launch, elements, &programs, accesses));
    found.extend(slices::check(func, launch, elements, &programs, accesses));
    found
}

/// A point of each of two programs.
type Pair = (Vec<i128>, Vec<i128>);

/// What two accesses that collide differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
    /// The programs.
    Programs,
    /// The lanes, in one program and one trip of each loop.
    Lanes,
}

/// What is known of two programs that store different values to one element, or of whose tiles one lies
/// partly over the other.
///
/// Values may be equal at the edges, where masks replace them, and differ elsewhere: collisions are
/// looked for among all programs, among later ones, among later elements and lanes, and at the edges.
/// Where a search gives up, points are looked at one after another.
fn race<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    all: Part<'_>,
    other: &mut Other,
    stores: (&Access, &Access),
) -> Collision {
    let mut fuel = FIRST_FUEL;
    let mut met = Collision::Unknown;
    let mut overlapping = None;
    // Rows of larger tiles may be meant to lie between those of others.
    let is_row = stores.0.inst == stores.1.inst && stores.0.lanes.len() == 1;
    let mut parts = parts(elements, all.programs, stores.0);
    for edge in edges(func, elements, stores.0) {
        let of_second = other.moved.cond(&mut elements.terms, edge);
        parts.extend([vec![edge], vec![of_second]]);
    }
    for part in parts {
        let within = all.within.iter().chain(&part).copied().collect();
        let mut differ = |elements: &mut Elements<'f>, pair: &Pair| {
            let (one, two) = ((stores.0, &*pair.0), (stores.1, &*pair.1));
            let same = match all.apart {
                Apart::Programs => Origins::same(func, elements, one, two),
                // Lanes that update an element in place read it before any of them stores.
                Apart::Lanes => Origins::equal(func, elements, one, two),
            };
            if is_row && overlapping.is_none() && overlap::shift(elements, stores.0, pair).is_some()
            {
                overlapping = Some(pair.clone());
            }
            same == Some(false)
        };
        let among = Part { within, ..all.clone() };
        let mut here = collision(elements, &among, other, stores, (&mut fuel, &mut differ));
        if part.is_empty() {
            if matches!(here, Collision::Unknown) {
                here = counted::collision(elements, &among, other, stores, &mut differ);
            }
            if matches!(here, Collision::Never | Collision::Unknown) {
                return here;
            }
            fuel = PAIR_FUEL;
        }
        met = here.or(met);
        if matches!(met, Collision::Counts(_)) {
            break;
        }
    }
    overlapping.map_or(Collision::Unknown, Collision::Overlaps).or(met)
}

/// What a search for two accesses to one element found.
enum Collision {
    /// A pair that counts.
    Counts(Pair),
    /// A pair that does not count, of two tiles of which one lies partly over the other.
    Overlaps(Pair),
    /// Pairs that do not count.
    Passed,
    /// No pair.
    Never,
    /// The search gave up.
    Unknown,
}

impl Collision {
    /// What two searches show together.
    fn or(self, other: Collision) -> Collision {
        match (self, other) {
            (counts @ Collision::Counts(_), _) | (_, counts @ Collision::Counts(_)) => counts,
            (overlaps @ Collision::Overlaps(_), _) | (_, overlaps @ Collision::Overlaps(_)) => {
                overlaps
            }
            (Collision::Passed, _) | (_, Collision::Passed) => Collision::Passed,
            (Collision::Unknown, _) | (_, Collision::Unknown) => Collision::Unknown,
            (Collision::Never, Collision::Never) => Collision::Never,
        }
    }
}

/// Programs of a launch among which two are looked for.
#[derive(Clone)]
struct Part<'p> {
    /// The position in the grid along each axis.
    programs: &'p [Linear; 3],
    /// The axes along which the kernel asks for its position: programs that differ along others
    /// alone do the same, so that the last to store there stores what all of them do.
    asked: [bool; 3],
    /// What the two differ in.
    apart: Apart,
    /// Conditions on the first access, or on the second with what is another's.
    within: Vec<Cond>,
}

/// The conditions that an access is inside of its buffer, as far as its size is known: what is
/// outside is another mistake.
fn within(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    access: &Access,
) -> Vec<Cond> {
    let Some(buffer) = buffer(func, launch, access.param) else { return Vec::new() };
    let size = Linear::constant(buffer.elements);
    let start = elements.terms.at_most(&Linear::default(), &access.offset);
    vec![start, elements.terms.less(&access.offset, &size)]
}

/// Parts of a launch by the conditions on the first access.
fn parts(elements: &mut Elements<'_>, programs: &[Linear; 3], access: &Access) -> Vec<Vec<Cond>> {
    let terms = &mut elements.terms;
    let lanes: Vec<Linear> = access.lanes.iter().map(|lane| terms.var_term(*lane)).collect();
    let mut later = |term: &Linear, times: u32| {
        let all = terms.range(term);
        let middle = |lo: i128| lo.saturating_add(all.hi).div_euclid(2);
        let from = (0..times).fold(all.lo, |lo, _| middle(lo));
        terms.at_most(&Linear::constant(from), term)
    };
    let later_programs = programs.iter().map(|program| later(program, 1)).collect();
    let mut parts = vec![Vec::new(), later_programs, vec![later(&access.offset, 1)]];
    for lane in &lanes {
        parts.extend([1, 2].map(|times| vec![later(lane, times)]));
    }
    parts
}

/// The conditions that a mask leaves out what a store stores the like of, lane by lane.
fn edges<'f>(func: &'f Function, elements: &mut Elements<'f>, store: &Access) -> Vec<Cond> {
    let data = &func.insts[store.inst];
    let shape = func.ty(data.operand(0)).shape();
    let index = elements.lanes(shape).0;
    let mut found = Vec::new();
    let mut open = vec![data.operand(1)];
    let mut seen = FxHashSet::default();
    while let Some(value) = open.pop() {
        let Some(data) = func.def(value) else { continue };
        if !seen.insert(value) || func.ty(value).shape() != shape || found.len() == MAX_EDGES {
            continue;
        }
        match (data.opcode, data.operand_opt(1)) {
            (Opcode::Load, Some(mask)) => {
                let mask = elements.truth(mask, &index);
                found.push(elements.terms.not(mask));
            }
            _ if data.regions.is_empty() && data.opcode.is_pure() => open.extend(data.uses()),
            _ => {}
        }
    }
    found
}

/// The first operation by which programs may wait for each other: what comes after it may be in
/// order.
fn synchronization(func: &Function) -> Option<usize> {
    func.walk().into_iter().position(|inst| synchronizes(func, inst))
}

/// Whether programs may wait for each other by an operation: one that locks or lets go on, or a loop that asks the same
/// place of memory again and again.
fn synchronizes(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    match (data.opcode, &data.attrs) {
        (Opcode::AtomicCas | Opcode::InlineAsm, _) => true,
        (Opcode::AtomicRmw, Attrs::Atomic(atomic)) => atomic.op == AtomicOp::Exchange,
        (Opcode::Load, Attrs::LoadHints(hints)) => hints.volatile,
        (Opcode::While, _) => func.rereads(inst),
        _ => false,
    }
}

/// True when a store comes before all synchronization, in every trip of the loops around it.
fn is_before(func: &Function, store: &Access, synchronization: Option<usize>) -> bool {
    let Some(first) = synchronization else { return true };
    let order = func.walk();
    let position = |inst| order.iter().position(|other| *other == inst).unwrap_or(usize::MAX);
    let outermost = store.loops.first().copied();
    let end = outermost
        .map_or(position(store.inst) + 1, |outer| position(outer) + func.walk_inst(outer).len());
    end <= first
}

/// Whether lanes of two stores, in one program and one trip of each loop, come in any order: they are
/// too many for one warp, and no barrier is between them.
fn is_unordered(func: &Function, first: &Access, second: &Access) -> bool {
    let order = func.walk();
    let position = |inst| order.iter().position(|other| *other == inst).unwrap_or(order.len());
    let (from, to) = (position(first.inst), position(second.inst));
    let between = order.get(from.min(to)..from.max(to)).unwrap_or_default();
    let lanes: u32 = func.ty(func.insts[first.inst].operand(0)).shape().iter().product();
    lanes > WARP
        && func.options.num_warps > 1
        && first.lanes == second.lanes
        && first.loops == second.loops
        && between.iter().all(|inst| func.insts[*inst].opcode != Opcode::Barrier)
}

/// Whether a term may be known at some point: where it is chosen from a list, some is.
fn is_ever_known(terms: &Terms, term: &Linear) -> bool {
    term.terms.iter().all(|(atom, _)| match terms.atom(*atom) {
        AtomKind::Var(_) => true,
        AtomKind::Unknown(_) => false,
        AtomKind::Binary(_, a, b) => is_ever_known(terms, a) && is_ever_known(terms, b),
        AtomKind::Wrap(_, inner) => is_ever_known(terms, inner),
        AtomKind::Choose(_, a, b) => is_ever_known(terms, a) || is_ever_known(terms, b),
    })
}

/// Pairs of stores that may be to one buffer, each with itself first.
fn pairs<'a>(
    func: &Function,
    launch: &KnownLaunch,
    stores: &[&'a Access],
) -> Vec<(&'a Access, &'a Access)> {
    let mut pairs: Vec<(&Access, &Access)> = stores.iter().map(|store| (*store, *store)).collect();
    for (at, first) in stores.iter().enumerate() {
        for second in &stores[at + 1..] {
            if is_same_memory(func, launch, first.param, second.param) {
                pairs.push((first, second));
            }
        }
    }
    pairs.truncate(MAX_PAIRS);
    pairs
}

/// The points of two programs at which both accesses are to one element, within a part of the launch,
/// and which count.
fn collision<'f>(
    elements: &mut Elements<'f>,
    part: &Part<'_>,
    other: &mut Other,
    (first, second): (&Access, &Access),
    (fuel, mut counts): (&mut u32, impl FnMut(&mut Elements<'f>, &Pair) -> bool),
) -> Collision {
    let mut found = Collision::Never;
    let terms = &mut elements.terms;
    let mut both = first.happens();
    both.extend(&part.within);
    both.extend(second.happens().into_iter().map(|cond| other.moved.cond(terms, cond)));
    let offset = other.moved.term(terms, &second.offset);
    both.push(terms.equal(&first.offset, &offset));
    both.extend(other.in_range(terms, (first, second), part.programs));
    both.extend(other.same_reads(elements, (first, second)));
    // What is the same in both, and what the first differs in.
    let (same, different) = match part.apart {
        Apart::Programs => {
            let several = |(program, _): &(Linear, bool)| program.as_constant().is_none();
            let axes = part.programs.iter().cloned().zip(part.asked).filter(several);
            let (asked, others): (Vec<_>, Vec<_>) = axes.partition(|(_, asked)| *asked);
            let plain = |axes: Vec<(Linear, bool)>| axes.into_iter().map(|(program, _)| program);
            (plain(others).collect::<Vec<_>>(), plain(asked).collect::<Vec<_>>())
        }
        Apart::Lanes => {
            let trips = first.loops.iter().map(|inst| elements.variable(Variable::Trip(*inst)));
            let trips: Vec<Var> = trips.flatten().collect();
            let mut term = |var: &Var| elements.terms.var_term(*var);
            let trips = trips.iter().map(&mut term).collect::<Vec<_>>();
            let lanes = first.lanes.iter().map(&mut term).collect();
            (part.programs.iter().cloned().chain(trips).collect(), lanes)
        }
    };
    for term in &same {
        let terms = &mut elements.terms;
        let moved = other.moved.term(terms, term);
        both.push(terms.equal(term, &moved));
    }
    let mut equal_so_far = Vec::new();
    for program in &different {
        let terms = &mut elements.terms;
        let moved = other.moved.term(terms, program);
        // Two different accesses may collide in either order.
        let before = [terms.less(program, &moved), terms.less(&moved, program)];
        let orders = if first.is_same(second) { 1 } else { 2 };
        for (order, distance) in before[..orders].iter().zip([1, -1]) {
            let mut conds = equal_so_far.clone();
            conds.push(*order);
            conds.extend(&both);
            let mut outcome = elements.search(&conds, fuel);
            if outcome == Outcome::Unknown {
                // Neighbors, and the first lane of one of them, stand for all.
                let next = elements.terms.equal(&moved, &program.offset(distance));
                conds.push(next);
                conds.extend(first_lanes(&mut elements.terms, first));
                outcome = elements.search(&conds, &mut { LANE_FUEL });
                if outcome == Outcome::Never {
                    outcome = Outcome::Unknown;
                }
            }
            if outcome == Outcome::Unknown && matches!(found, Collision::Never) {
                found = Collision::Unknown;
            }
            if let Outcome::Found(point) = outcome {
                let mut pair = other.points(&elements.terms, &point);
                let (one, two) = (first.happens(), second.happens());
                let example = [(&*one, &first.offset, &*pair.0), (&*two, &second.offset, &*pair.1)];
                // What is not known is not the same for both.
                let known = example.iter().all(|(_, offset, point)| {
                    let whole = elements.terms.padded(point);
                    Domain::at(&elements.terms, &whole).value(offset).is_some()
                });
                if !known || !elements.agrees(&example) {
                    if !known && matches!(found, Collision::Never) {
                        found = Collision::Unknown;
                    }
                    continue;
                }
                elements.tell_apart(&used_by(&elements.terms, (first, second)), &mut pair);
                if counts(elements, &pair) {
                    return Collision::Counts(pair);
                }
                found = Collision::Passed;
            }
        }
        equal_so_far.push(elements.terms.equal(program, &moved));
    }
    found
}

/// The conditions that an access is its first lane's.
fn first_lanes(terms: &mut Terms, access: &Access) -> Vec<Cond> {
    let first = |lane: &Var| {
        let lane = terms.var_term(*lane);
        terms.at_most(&lane, &Linear::default())
    };
    access.lanes.iter().map(first).collect()
}

/// Another program: its variables are the first one's plus differences, variables of their own.
struct Other {
    /// How many variables the first program has.
    plain: usize,
    moved: Substitution,
    /// By variable, the conditions that its other value is within its range.
    in_range: Vec<(Var, [Cond; 2])>,
}

impl Other {
    /// Beside the program of every variable of `terms`.
    fn new(terms: &mut Terms) -> Other {
        let plain = terms.var_ranges().len();
        let mut vars = FxHashMap::default();
        let mut in_range = Vec::new();
        for index in 0..plain {
            let range = terms.var_ranges()[index];
            let width = range.hi - range.lo;
            if width == 0 {
                continue;
            }
            let difference = terms.var(Interval::new(-width, width));
            let difference = terms.var_term(difference);
            let var = Var(index as u32);
            let Some(moved) = terms.var_term(var).plus(&difference) else { continue };
            let low = terms.at_most(&Linear::constant(range.lo), &moved);
            let high = terms.at_most(&moved, &Linear::constant(range.hi));
            in_range.push((var, [low, high]));
            vars.insert(var, moved);
        }
        Other { plain, moved: Substitution::new(vars), in_range }
    }

    /// The conditions that the variables which matter to two accesses are within their ranges.
    fn in_range(
        &self,
        terms: &Terms,
        accesses: (&Access, &Access),
        programs: &[Linear; 3],
    ) -> Vec<Cond> {
        let mut used = used_by(terms, accesses);
        for program in programs {
            terms.visit(program, &mut |_, kind| note_var(kind, &mut used));
        }
        let matter = self.in_range.iter().filter(|(var, _)| used.contains(var));
        matter.flat_map(|(_, conds)| *conds).collect()
    }

    /// The conditions that both programs read the same random number at one place.
    fn same_reads(
        &mut self,
        elements: &mut Elements<'_>,
        accesses: (&Access, &Access),
    ) -> Vec<Cond> {
        let used = used_by(&elements.terms, accesses);
        let same = elements.same_reads(&mut self.moved).into_iter();
        same.filter(|(var, _)| used.contains(var)).map(|(_, cond)| cond).collect()
    }

    /// The points of both programs at a point that was found.
    fn points(&self, terms: &Terms, point: &[i128]) -> Pair {
        let mut domain = Domain::at(terms, point);
        let second = (0..self.plain).map(|var| match self.moved.of_var(Var(var as u32)) {
            Some(term) => domain.value(term).unwrap_or_default(),
            None => point[var],
        });
        let second = second.collect();
        (point[..self.plain].to_vec(), second)
    }
}

/// The variables that two accesses depend on.
fn used_by(terms: &Terms, (first, second): (&Access, &Access)) -> FxHashSet<Var> {
    let mut used = FxHashSet::default();
    let mut note = |_: Atom, kind: &AtomKind| note_var(kind, &mut used);
    for access in [first, second] {
        access.happens().into_iter().for_each(|cond| terms.visit_cond(cond, &mut note));
        terms.visit(&access.offset, &mut note);
    }
    used
}

fn describe(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    first: &Access,
    second: &Access,
    pair: &Pair,
) -> Diagnostic {
    let mut domain = Domain::at(&elements.terms, &elements.terms.padded(&pair.0));
    let element = domain.value(&first.offset).unwrap_or_default();
    let name = elements.param_name(first.param);
    let [a, b] = programs_of(elements, launch, pair);
    let lanes = [&pair.0, &pair.1].map(|point| format!("{:?}", first.lane(point)));
    let both = match a == b {
        true => format!("lanes {} and {} of program {a}", lanes[0], lanes[1]),
        false => format!("programs {a} and {b}"),
    };
    let message =
        format!("{both} both store to element {element} of `{name}`, and nothing orders them");
    let loc = func.insts[first.inst].loc;
    let mut found = report::finding(func, loc, Code::Race, message);
    if first.inst != second.inst {
        let other = report::place(func, func.insts[second.inst].loc);
        let other_is = if a == b { "the other lane" } else { "the other program" };
        found = found.with_related(other, format!("{other_is} stores here"));
    }
    if let Some(example) = elements.random_example(&first.happens(), &first.offset, &pair.0) {
        found = found.with_note(example);
    }
    found
}

/// What helps against a pair that stores different values.
fn advice(elements: &Elements<'_>, launch: &KnownLaunch, pair: &Pair) -> &'static str {
    let [a, b] = programs_of(elements, launch, pair);
    match a == b {
        true => {
            "what ends up there depends on which lane is last: give each lane an element of its own"
        }
        false => {
            "what ends up there depends on which program is last: give each program elements of its \
             own, or combine with `tl.atomic_add` or another atomic"
        }
    }
}

/// The two programs of a pair, as the launch's grid numbers them.
fn programs_of(elements: &Elements<'_>, launch: &KnownLaunch, pair: &Pair) -> [String; 2] {
    let rank = launch.grid_rank.max(rank(elements, pair));
    [&pair.0, &pair.1].map(|point| report::program(elements.position(point), rank))
}

/// Axes of the grid along which the programs of a pair differ, counted from the first.
fn rank(elements: &Elements<'_>, pair: &Pair) -> usize {
    let (a, b) = (elements.position(&pair.0), elements.position(&pair.1));
    (0..3).rev().find(|axis| a[*axis] != b[*axis]).map_or(1, |axis| axis + 1)
}
