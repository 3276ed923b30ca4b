//! Two programs that store to one address without an atomic operation, or one that reads what
//! another stores, for a known launch.
//!
//! The second program's variables are the first one's plus a difference, so that offsets that are
//! linear cancel. Stores of equal values are left alone: many kernels write a row's statistics from
//! every program of the row. Whether values are equal is decided by what they are computed from.

use rustc_hash::{FxHashMap, FxHashSet};

use super::bounds::{buffer, happens, is_known, position};
use super::elements::{Access, Elements};
use super::grid;
use super::identity::{Origins, padded};
use super::report;
use super::solve::Outcome;
use super::terms::{Atom, AtomKind, Cond, Domain, Interval, Linear, Substitution, Terms, Var};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Opcode};
use crate::specialization::KnownLaunch;

mod reads;

/// Boxes that may be looked at for one pair of accesses.
const PAIR_FUEL: u32 = 4_000;

/// Pairs of accesses of one kind that are looked at in one kernel.
const MAX_PAIRS: usize = 32;

/// Findings about the stores of `func` under `launch`.
pub(super) fn check<'f>(
    func: &'f Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'f>,
    accesses: &[Access],
) -> Vec<Diagnostic> {
    let Some(grid) = launch.grid else { return Vec::new() };
    if grid.iter().all(|extent| *extent == 1) {
        return Vec::new();
    }
    let programs = [0, 1, 2].map(|axis| elements.program(axis));
    let asked = grid::axes_asked_for(func);
    let waits = synchronization(func);
    let stores: Vec<&Access> = accesses
        .iter()
        .filter(|access| func.insts[access.inst].opcode == Opcode::Store)
        .filter(|access| is_known(&elements.terms, &access.offset))
        .filter(|access| is_before(func, access, waits))
        .collect();
    if stores.is_empty() {
        return Vec::new();
    }
    let pairs = pairs(func, launch, &stores);
    let mut other = Other::new(&mut elements.terms);
    let mut found = Vec::new();
    let mut reported = FxHashSet::default();
    for (first, second) in pairs {
        let locs = (func.insts[first.inst].loc, func.insts[second.inst].loc);
        if !reported.insert(locs) {
            continue;
        }
        let part =
            Part { programs: &programs, asked, within: within(func, launch, elements, first) };
        if let Some(pair) = race(func, elements, part, &mut other, (first, second)) {
            found.push(describe(func, launch, elements, first, second, &pair));
        }
    }
    found.extend(reads::check(func, launch, elements, (&programs, &mut other), accesses));
    found
}

/// A point of each of two programs.
type Pair = (Vec<i128>, Vec<i128>);

/// The points of two programs that store different values to one element.
///
/// Values may be equal at the edges, where masks replace them, and differ elsewhere: collisions are
/// looked for among all programs, among later ones, and among later elements.
fn race<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    all: Part<'_>,
    other: &mut Other,
    stores: (&Access, &Access),
) -> Option<Pair> {
    let mut fuel = PAIR_FUEL;
    for part in parts(&mut elements.terms, all.programs, stores.0) {
        let within = all.within.iter().chain(&part).copied().collect();
        let part = Part { within, ..all };
        let pair = collision(elements, &part, other, stores, &mut fuel)?;
        let same = Origins::same(func, elements, (stores.0, &pair.0), (stores.1, &pair.1));
        if same == Some(false) {
            return Some(pair);
        }
    }
    None
}

/// Programs of a launch among which two are looked for.
struct Part<'p> {
    /// The position in the grid along each axis.
    programs: &'p [Linear; 3],
    /// The axes along which the kernel asks for its position: programs that differ along others
    /// alone do the same, so that the last to store there stores what all of them do.
    asked: [bool; 3],
    /// Conditions on the first access.
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
fn parts(terms: &mut Terms, programs: &[Linear; 3], access: &Access) -> [Vec<Cond>; 3] {
    let mut later = |term: &Linear| {
        let all = terms.range(term);
        let middle = all.lo.saturating_add(all.hi) / 2;
        terms.at_most(&Linear::constant(middle), term)
    };
    let later_programs = programs.iter().map(&mut later).collect();
    [Vec::new(), later_programs, vec![later(&access.offset)]]
}

/// The first operation by which programs may wait for each other: what comes after it may be in
/// order.
fn synchronization(func: &Function) -> Option<usize> {
    func.walk().iter().position(|inst| {
        let data = &func.insts[*inst];
        let exchange = matches!(&data.attrs, crate::ir::Attrs::Atomic(atomic)
            if atomic.op == crate::ir::AtomicOp::Exchange);
        data.opcode == Opcode::AtomicCas || exchange || data.opcode == Opcode::InlineAsm
    })
}

/// True when a store comes before all synchronization, in every trip of the loops around it.
fn is_before(func: &Function, store: &Access, synchronization: Option<usize>) -> bool {
    let Some(first) = synchronization else { return true };
    let order = func.walk();
    let position = |inst| order.iter().position(|other| *other == inst).unwrap_or(usize::MAX);
    let outermost = store.loops.first().copied();
    let end = outermost.map_or(position(store.inst), |outer| {
        let inside: usize =
            func.insts[outer].regions.iter().map(|region| func.walk_from(*region).len()).sum();
        position(outer) + inside
    });
    end < first
}

/// Whether two parameters are certainly in one buffer.
fn is_same_memory(func: &Function, launch: &KnownLaunch, a: usize, b: usize) -> bool {
    let storage = |param: usize| buffer(func, launch, param).and_then(|buffer| buffer.id);
    a == b || storage(a).is_some_and(|id| Some(id) == storage(b))
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

/// The points of two programs at which both accesses are to one element, within a part of the launch.
fn collision(
    elements: &mut Elements<'_>,
    part: &Part<'_>,
    other: &mut Other,
    (first, second): (&Access, &Access),
    fuel: &mut u32,
) -> Option<Pair> {
    let terms = &mut elements.terms;
    let mut both = happens(first);
    both.extend(&part.within);
    both.extend(happens(second).into_iter().map(|cond| other.moved.cond(terms, cond)));
    let offset = other.moved.term(terms, &second.offset);
    both.push(terms.equal(&first.offset, &offset));
    both.extend(other.in_range(terms, (first, second), part.programs));
    let several = |(program, _): &(&Linear, bool)| program.as_constant().is_none();
    let axes: Vec<_> = part.programs.iter().zip(part.asked).filter(several).collect();
    for (program, _) in axes.iter().filter(|(_, asked)| !asked) {
        let terms = &mut elements.terms;
        let moved = other.moved.term(terms, program);
        both.push(terms.equal(program, &moved));
    }
    let mut equal_so_far = Vec::new();
    for (program, _) in axes.into_iter().filter(|(_, asked)| *asked) {
        let terms = &mut elements.terms;
        let moved = other.moved.term(terms, program);
        // Two different accesses may collide in either order.
        let before = [terms.less(program, &moved), terms.less(&moved, program)];
        let orders = if first.inst == second.inst { 1 } else { 2 };
        for order in &before[..orders] {
            let mut conds = equal_so_far.clone();
            conds.push(*order);
            conds.extend(&both);
            if let Outcome::Found(point) = elements.search(&conds, fuel) {
                return Some(other.points(&elements.terms, &point));
            }
        }
        equal_so_far.push(elements.terms.equal(program, &moved));
    }
    None
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
        (first, second): (&Access, &Access),
        programs: &[Linear; 3],
    ) -> Vec<Cond> {
        let mut used = FxHashSet::default();
        let mut note = |_: Atom, kind: &AtomKind| {
            if let AtomKind::Var(var) = kind {
                used.insert(*var);
            }
        };
        for access in [first, second] {
            happens(access).into_iter().for_each(|cond| terms.visit_cond(cond, &mut note));
            terms.visit(&access.offset, &mut note);
        }
        programs.iter().for_each(|program| terms.visit(program, &mut note));
        let matter = self.in_range.iter().filter(|(var, _)| used.contains(var));
        matter.flat_map(|(_, conds)| *conds).collect()
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

fn describe(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    first: &Access,
    second: &Access,
    pair: &Pair,
) -> Diagnostic {
    let mut domain = Domain::at(&elements.terms, &padded(&elements.terms, &pair.0));
    let element = domain.value(&first.offset).unwrap_or_default();
    let name = elements.param_name(first.param);
    let [a, b] = programs_of(elements, launch, pair);
    let message = format!(
        "programs {a} and {b} both store to element {element} of `{name}`, and nothing orders them"
    );
    let loc = func.insts[first.inst].loc;
    let mut found = report::finding(func, loc, Code::Race, message);
    if first.inst != second.inst {
        let other = report::place(func, func.insts[second.inst].loc);
        found = found.with_related(other, format!("program {b} stores here"));
    }
    found.with_note(
        "what ends up there depends on which program is last: give each program elements of its \
         own, or combine with `tl.atomic_add` or another atomic",
    )
}

/// The two programs of a pair, as the launch's grid numbers them.
fn programs_of(elements: &Elements<'_>, launch: &KnownLaunch, pair: &Pair) -> [String; 2] {
    let rank = launch.grid_rank.max(rank(elements, pair));
    [&pair.0, &pair.1].map(|point| report::program(position(elements, point), rank))
}

/// Axes of the grid along which the programs of a pair differ, counted from the first.
fn rank(elements: &Elements<'_>, pair: &Pair) -> usize {
    let (a, b) = (position(elements, &pair.0), position(elements, &pair.1));
    (0..3).rev().find(|axis| a[*axis] != b[*axis]).map_or(1, |axis| axis + 1)
}
