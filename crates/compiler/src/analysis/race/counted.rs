//! Stores that meet, found by looking at one point after another, and elements that get nothing
//! since others get two values.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Apart, Collision, Other, Part, used_by};
use crate::analysis::arguments::{buffer, in_one_unit, may_share};
use crate::analysis::elements::{Access, Elements, Variable};
use crate::analysis::identity::Origins;
use crate::analysis::points::Points;
use crate::analysis::report;
use crate::analysis::solve::Outcome;
use crate::analysis::terms::{Linear, Var};
use crate::diagnostic::{Code, Diagnostic};
use crate::host::Contents;
use crate::ir::{Function, Inst, Opcode};
use crate::specialization::KnownLaunch;

use super::Pair;

/// Points of one access that are looked at for a pair, when these are all.
const MAX_POINTS: i128 = 1 << 15;

/// Points of one access that are looked at for a pair, when there are more.
const FIRST_POINTS: i128 = 1 << 12;

/// Points of one store that are counted.
const MAX_COUNTED: i128 = 1 << 17;

/// Pairs of points of which it is found out whether they count.
const MAX_MEETINGS: usize = 12;

/// Values of some of the variables at a point.
type Values = SmallVec<[i128; 4]>;

/// As [`collision`](super::collision), where what is known of both accesses depends on programs,
/// loops and lanes alone.
pub(super) fn collision<'f>(
    elements: &mut Elements<'f>,
    part: &Part<'_>,
    other: &Other,
    (first, second): (&Access, &Access),
    mut counts: impl FnMut(&mut Elements<'f>, &Pair) -> bool,
) -> Collision {
    let points = |elements: &Elements<'f>, access| {
        Points::of(elements, access, part.programs, &part.within, (MAX_POINTS, FIRST_POINTS))
    };
    let Some(of_first) = points(elements, first) else { return Collision::Unknown };
    let of_second = match first.is_same(second) {
        true => None,
        false => match points(elements, second) {
            Some(of_second) => Some(of_second),
            None => return Collision::Unknown,
        },
    };
    let of_second = of_second.as_ref().unwrap_or(&of_first);
    let meetings = meetings(elements, part, first, (&of_first, of_second));
    let complete = of_first.is_complete() && of_second.is_complete();
    if meetings.is_empty() {
        return if complete { Collision::Never } else { Collision::Unknown };
    }
    let used = used_by(&elements.terms, (first, second));
    let apart = meetings.len().div_ceil(MAX_MEETINGS);
    for (one, two) in meetings.into_iter().step_by(apart) {
        let one = of_first.whole(elements, one, other.plain);
        let mut pair = (one, of_second.whole(elements, two, other.plain));
        elements.tell_apart(&used, &mut pair);
        if counts(elements, &pair) {
            return Collision::Counts(pair);
        }
    }
    Collision::Passed
}

/// Pairs of points that access one element, by their numbers.
fn meetings(
    elements: &Elements<'_>,
    part: &Part<'_>,
    access: &Access,
    (first, second): (&Points, &Points),
) -> Vec<(i128, i128)> {
    let position = |programs: &dyn Fn(usize) -> bool| -> Vec<Var> {
        let axes = (0..3).filter(|axis| programs(*axis));
        axes.filter_map(|axis| elements.variable(Variable::Program(axis as u32))).collect()
    };
    // What is the same at both points, and what differs.
    let (same, different) = match part.apart {
        Apart::Programs => {
            (position(&|axis| !part.asked[axis]), position(&|axis| part.asked[axis]))
        }
        Apart::Lanes => {
            let trips = access.loops.iter().map(|inst| elements.variable(Variable::Trip(*inst)));
            let same = position(&|_| true).into_iter().chain(trips.flatten());
            (same.collect(), access.lanes.clone())
        }
    };
    let values = |points: &Points, number: i128, wanted: &[Var]| -> Values {
        let of_all = points.values(number).filter(|(var, _)| wanted.contains(var));
        of_all.map(|(_, value)| value).collect()
    };
    let shared = shared(first, second);
    let is_shared = |(_, element): &&(i128, i128)| shared.contains(element);
    let mut known: FxHashMap<(i128, Values), (i128, Values)> = FxHashMap::default();
    for &(number, element) in first.found.iter().filter(is_shared) {
        let at = (element, values(first, number, &same));
        known.entry(at).or_insert_with(|| (number, values(first, number, &different)));
    }
    let meets = |&(number, element): &(i128, i128)| {
        let (known, apart) = known.get(&(element, values(second, number, &same)))?;
        (values(second, number, &different) != *apart).then_some((*known, number))
    };
    second.found.iter().filter(is_shared).filter_map(meets).collect()
}

/// Elements at several points: most have none, for which values need not be compared.
fn shared(first: &Points, second: &Points) -> FxHashSet<i128> {
    let of_second = second.found.iter().map(|(_, element)| *element);
    let mut known = FxHashSet::default();
    if std::ptr::eq(first, second) {
        return of_second.filter(|element| !known.insert(*element)).collect();
    }
    known.extend(first.found.iter().map(|(_, element)| *element));
    of_second.filter(|element| known.contains(element)).collect()
}

/// A buffer to which as many values are stored as it has elements, of which some get several values
/// and others none. `store` is one of the stores.
pub(super) fn left_out(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    programs: &[Linear; 3],
    (store, accesses): (&Access, &[Access]),
) -> Option<Diagnostic> {
    let buffer = buffer(func, launch, store.param)?;
    if buffer.contents != Contents::Uninitialized {
        return None;
    }
    let is_write = |inst: &Inst| {
        let opcode = func.insts[*inst].opcode;
        opcode.is_global_write() || opcode == Opcode::InlineAsm
    };
    let writes: Vec<&Access> = accesses.iter().filter(|access| is_write(&access.inst)).collect();
    // A write whose address is not known may be anywhere.
    if func.walk().iter().filter(|inst| is_write(inst)).count() != writes.len() {
        return None;
    }
    if buffer.elements > MAX_COUNTED * writes.len() as i128 {
        return None;
    }
    let mut left = buffer.elements;
    let mut written = vec![false; buffer.elements as usize];
    for write in writes {
        if !may_share(func, launch, write.param, store.param) {
            continue;
        }
        if !in_one_unit(func, write.param, store.param) {
            return None;
        }
        let points = Points::of(elements, write, programs, &[], (MAX_COUNTED, 0))?;
        left -= points.found.len() as i128;
        if !points.is_complete() || left < 0 {
            return None;
        }
        for (_, element) in &points.found {
            // What lies outside of the buffer is another mistake.
            if let Some(written) = usize::try_from(*element).ok().and_then(|at| written.get_mut(at))
            {
                *written = true;
            }
        }
    }
    if left > 0 {
        return None;
    }
    let missed = written.iter().position(|written| !written)?;
    let name = elements.param_name(store.param);
    let message = format!(
        "as many values are stored to `{name}` as it has elements, but element {missed} gets none"
    );
    let found = report::finding(func, func.insts[store.inst].loc, Code::Uncovered, message);
    let has = report::count(buffer.elements, "element");
    let count = written.iter().filter(|written| **written).count();
    let note = format!("of {has}, {count} are written, some of them several times");
    Some(found.with_note(note))
}

/// More lanes than there are elements, each of which reads an element, changes it and stores it back:
/// wherever their elements are, two update the same one.
pub(super) fn crowded<'f>(
    func: &'f Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'f>,
    (programs, asked): (&[Linear; 3], [bool; 3]),
    store: &Access,
) -> Option<Diagnostic> {
    if func.insts[store.inst].opcode != Opcode::Store || !store.loops.is_empty() {
        return None;
    }
    let range = elements.terms.range(&store.offset);
    let places = range.hi.saturating_sub(range.lo).saturating_add(1);
    // What is outside of the buffer is another mistake.
    let size = buffer(func, launch, store.param).map(|buffer| buffer.elements);
    let places = size.map_or(places, |size| places.min(size));
    if places > MAX_COUNTED {
        return None;
    }
    // Programs that differ along axes that the kernel does not ask for do the same.
    let terms = &mut elements.terms;
    let first = |program: &Linear| terms.at_most(program, &Linear::default());
    let unasked = programs.iter().zip(asked).filter(|(_, asked)| !asked);
    let within: Vec<_> = unasked.map(|(program, _)| program).map(first).collect();
    let anywhere = Access { offset: Linear::default(), ..store.clone() };
    let points = Points::of(elements, &anywhere, programs, &within, (MAX_COUNTED, 0))?;
    let lanes = points.found.len() as i128;
    if lanes <= places {
        return None;
    }
    let mut fuel = super::FIRST_FUEL;
    let Outcome::Found(point) = elements.search(&store.happens(), &mut fuel) else { return None };
    let point = elements.terms.padded(&point);
    if !Origins::is_updated(func, elements, (store, &point)) {
        return None;
    }
    let name = elements.param_name(store.param);
    let message = format!(
        "{} of this launch update {} of `{name}`, so that two update the same one, and nothing \
         orders them",
        report::count(lanes, "lane"),
        report::count(places, "element")
    );
    let found = report::finding(func, func.insts[store.inst].loc, Code::Race, message);
    Some(found.with_note(
        "each reads the element before the other has stored it, so that one update is lost: use \
         `tl.atomic_add` or another atomic",
    ))
}
