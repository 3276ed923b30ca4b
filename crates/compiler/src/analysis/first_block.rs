//! Masks that only the first block passes: what counts on from block to block is compared with the
//! length of one, or with a number that ends before the second, so that all programs but the first
//! store nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use super::arguments::buffer;
use super::elements::{Access, Element, Elements, Variable};
use super::flow::{FUEL, mask_of};
use super::report;
use super::solve::{Outcome, Pause};
use super::terms::{AtomKind, Cond, CondKind, Domain, Linear, Var};
use super::untouched::may_reach;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Inst, Opcode, Value, ValueDef};
use crate::specialization::KnownLaunch;

/// Findings about comparisons with constants in the masks of `func`, for launches of several blocks.
pub(super) fn check(
    func: &Function,
    launches: &[KnownLaunch],
    pause: Pause<'_>,
) -> Vec<Diagnostic> {
    let compared = comparisons(func);
    let mut found: Vec<Diagnostic> = Vec::new();
    for launch in launches.iter().filter(|launch| launch.grid.is_some()) {
        if compared.is_empty() {
            break;
        }
        let mut elements = Elements::of_open_launch(func, launch, pause);
        let accesses = elements.accesses();
        for &Compared { comparison, index, access, constant } in &compared {
            let Some((count, whole)) = only_first(func, &mut elements, comparison) else {
                continue;
            };
            let mut here = accesses.iter().filter(|here| here.inst == access);
            let has_more = |here: &Access| {
                let Some(buffer) = buffer(func, launch, here.param) else { return false };
                let left =
                    |elements: &mut Elements<'_>| left(elements, here, &count, buffer.elements);
                if constant && whole {
                    return left(&mut elements).is_some();
                }
                // A number may be meant to end where it does. Programs that store nothing are not, where
                // nobody else stores what they would.
                buffer.contents.is_new()
                    && func.insts[access].opcode == Opcode::Store
                    && stores_nothing(func, &mut elements, &accesses, &count)
                    && left(&mut elements).is_some_and(|element| {
                        let reaches = (func, launch, &mut elements, accesses.as_slice());
                        !buffer.contents.is_written_at(element)
                            && !may_reach(reaches, here, element, &mut { FUEL })
                    })
            };
            if !here.any(has_more) {
                continue;
            }
            let finding = describe(func, (comparison, index, access), (&count, constant));
            if found.iter().all(|known| known.primary != finding.primary) {
                found.push(finding);
            }
        }
    }
    found
}

/// A comparison that the mask of an access is true only with.
struct Compared {
    comparison: Inst,
    /// What is compared.
    index: Value,
    access: Inst,
    /// Whether it is compared with a constant.
    constant: bool,
}

/// Comparisons that masks are true only with: of stores all, of others those with constants.
fn comparisons(func: &Function) -> Vec<Compared> {
    use Opcode::{And, Broadcast, Cmp, ExpandDims, Splat};
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    for access in func.walk() {
        let stores = func.insts[access].opcode == Opcode::Store;
        let mut pending: Vec<Value> = mask_of(&func.insts[access]).into_iter().collect();
        while let Some(value) = pending.pop() {
            let ValueDef::Result(inst, _) = func.values[value].def else { continue };
            let data = &func.insts[inst];
            match data.opcode {
                And | Splat | Broadcast | ExpandDims => pending.extend(data.uses()),
                Cmp if seen.insert((inst, stores)) => {
                    let (a, b) = (data.operand(0), data.operand(1));
                    let is_constant = |value| func.constant_bits(value).is_some();
                    // No block ends at 0: that is where the first one begins.
                    if [a, b].into_iter().any(|side| func.constant_bits(side) == Some(0)) {
                        continue;
                    }
                    let (index, constant) = match (is_constant(a), is_constant(b)) {
                        (false, true) => (a, true),
                        (true, false) => (b, true),
                        (true, true) => continue,
                        (false, false) if !stores => continue,
                        (false, false) => (a, false),
                    };
                    found.push(Compared { comparison: inst, index, access, constant });
                }
                _ => {}
            }
        }
    }
    found
}

/// What counts on from block to block: a sum of positions and trips, each times what is between two of
/// its blocks.
struct Count {
    term: Linear,
    /// The one position or trip that it is, if no more.
    variable: Option<Variable>,
    /// Whether trips of loops are in it.
    trips: bool,
}

/// What counts blocks, where a comparison is true in some lanes of the first and in none of the
/// others, and whether it is true in all of the first.
fn only_first(
    func: &Function,
    elements: &mut Elements<'_>,
    comparison: Inst,
) -> Option<(Count, bool)> {
    let result = func.insts[comparison].result();
    let (index, lanes) = elements.lanes(func.ty(result).shape());
    let Element::Bool(cond) = elements.element(result, &index) else { return None };
    let term = at_most_zero(elements, cond)?;
    let mut count = Linear::default();
    // The range of all but the count, and what a block adds at least.
    let (mut least, mut most) = (term.constant, term.constant);
    let mut step = i128::MAX;
    let (mut varies, mut trips) = (false, false);
    for (atom, factor) in &term.terms {
        let alone = Linear::atom(*atom);
        let range = elements.terms.range(&alone);
        if matches!(elements.terms.atom(*atom), AtomKind::Var(var) if lanes.contains(var)) {
            varies = true;
            let ends = [range.lo * factor, range.hi * factor];
            least += ends[0].min(ends[1]);
            most += ends[0].max(ends[1]);
        } else if *factor > 0 && range.lo == 0 && range.hi >= 1 {
            trips |= has_trips(elements, &alone)?;
            step = step.min(*factor);
            count = count.plus(&alone.scaled(*factor)?)?;
        } else {
            return None;
        }
    }
    let counts = !count.terms.is_empty() && varies && least <= 0 && least + step > 0;
    let variable = of_one_variable(elements, &count);
    counts.then_some((Count { term: count, variable, trips }, most <= 0))
}

/// Whether a term has trips of loops in it; `None` where it is made of more than those and positions in
/// the grid.
fn has_trips(elements: &Elements<'_>, term: &Linear) -> Option<bool> {
    let counted: FxHashMap<Var, bool> = elements
        .variables()
        .filter(|(variable, _)| !matches!(variable, Variable::Lane(..)))
        .map(|(variable, var)| (var, matches!(variable, Variable::Trip(_))))
        .collect();
    let mut trips = Some(false);
    elements.terms.visit(term, &mut |_, kind| {
        let has = match kind {
            AtomKind::Var(var) => counted.get(var).copied(),
            AtomKind::Unknown(_) => None,
            _ => Some(false),
        };
        trips = trips.zip(has).map(|(trips, has)| trips || has);
    });
    trips
}

/// The variable that a term is some times.
fn of_one_variable(elements: &Elements<'_>, term: &Linear) -> Option<Variable> {
    let [(atom, _)] = &*term.terms else { return None };
    let AtomKind::Var(var) = elements.terms.atom(*atom) else { return None };
    elements.variables().find(|(_, known)| known == var).map(|(variable, _)| variable)
}

/// Whether programs but those of the first block certainly store nothing at all.
fn stores_nothing(
    func: &Function,
    elements: &mut Elements<'_>,
    accesses: &[Access],
    count: &Count,
) -> bool {
    if count.trips {
        return false;
    }
    let later = elements.terms.less(&Linear::default(), &count.term);
    let writes = |inst: &Inst| {
        let opcode = func.insts[*inst].opcode;
        opcode.is_global_write() || opcode == Opcode::InlineAsm
    };
    func.walk().iter().filter(|inst| writes(inst)).all(|inst| {
        let mut here = accesses.iter().filter(|access| access.inst == *inst).peekable();
        here.peek().is_some()
            && here.all(|access| {
                let conds: Vec<Cond> = access.happens().into_iter().chain([later]).collect();
                !access.may_be_elsewhere(func)
                    && elements.search(&conds, &mut { FUEL }) == Outcome::Never
            })
    })
}

/// One of so many elements to which an access would come in a later block than the first, which may
/// be there for programs and trips that have none.
fn left(elements: &mut Elements<'_>, access: &Access, count: &Count, size: i128) -> Option<i128> {
    let mut conds = access.path.clone();
    conds.push(elements.terms.less(&Linear::default(), &count.term));
    conds.push(elements.terms.at_most(&Linear::default(), &access.offset));
    conds.push(elements.terms.less(&access.offset, &Linear::constant(size)));
    let Outcome::Found(point) = elements.search(&conds, &mut { FUEL }) else { return None };
    Domain::at(&elements.terms, &elements.terms.padded(&point)).value(&access.offset)
}

fn at_most_zero(elements: &Elements<'_>, cond: Cond) -> Option<Linear> {
    match elements.terms.cond(cond) {
        CondKind::AtMostZero(term) => Some(term.clone()),
        _ => None,
    }
}

fn describe(
    func: &Function,
    (comparison, index, access): (Inst, Value, Inst),
    (count, constant): (&Count, bool),
) -> Diagnostic {
    let name = report::name(func, index);
    let name = name.map_or_else(|| "an index".to_owned(), |name| format!("`{name}`"));
    let others = match count.variable {
        Some(Variable::Program(axis)) => {
            format!("of every program but the first along axis {axis}")
        }
        Some(_) => "in every trip of the loop but the first".to_owned(),
        None => "behind the first block".to_owned(),
    };
    let end =
        if constant { "the end of the first block" } else { "a number within the first block" };
    let message =
        format!("this mask compares {name} with {end}, so it is false in all lanes {others}");
    let loc = func.insts[comparison].loc;
    let found = report::finding(func, loc, Code::MaskFirstBlock, message);
    let place = report::place(func, func.insts[access].loc);
    let does = report::verb(func.insts[access].opcode);
    found
        .with_related(place, format!("this {does} nothing there"))
        .with_note("compare it with the number of elements along this axis")
}
