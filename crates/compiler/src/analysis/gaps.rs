//! Elements between those that programs update in place, or read, which no program updates or reads: programs are
//! farther apart than what each of them takes is long.
//!
//! Much is taken in part on purpose, as some columns of each row. Here the mask compares the position itself with the
//! number of all elements, so the kernel is meant to go through all of them.

use rustc_hash::FxHashSet;

use super::arguments::{buffer, is_alone, passed};
use super::elements::{Access, Elements};
use super::flow::mask_of;
use super::points::Points;
use super::report;
use super::terms::{AtomKind, Linear, Var};
use super::unfollowed::Unfollowed;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Opcode, Value};
use crate::specialization::{ArgSpec, ConstArg, KnownArg, KnownLaunch, Specialization};

/// Points of one access that are looked at.
const MAX_POINTS: i128 = 1 << 15;

/// Numbers that may be which of a few launches, each of a part, a launch is.
const TURNS: std::ops::Range<i128> = 0..4;

/// The finding about a tensor that `launch` updates or reads with gaps.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    spec: &Specialization,
    (elements, accesses): (&Elements<'_>, &[Access]),
) -> Option<Diagnostic> {
    let unfollowed = Unfollowed::of(func, launch, accesses, Opcode::is_global_access);
    let of =
        |opcode: Opcode| accesses.iter().filter(move |it| func.insts[it.inst].opcode == opcode);
    // What is updated tells more than what is read for that.
    of(Opcode::Store).chain(of(Opcode::Load)).find_map(|access| {
        let of_tensor = buffer(func, launch, access.param)?;
        let opcode = func.insts[access.inst].opcode;
        let of_param = || accesses.iter().filter(|other| other.param == access.param);
        let is_same = |other: &&Access| func.insts[other.inst].opcode == opcode;
        let is_only_read = || of_param().all(|other| is_same(&other));
        let is_meant = match opcode {
            Opcode::Load => is_only_read(),
            Opcode::Store => !of_tensor.contents.is_new(),
            _ => false,
        };
        let goes_through = is_meant
            && !unfollowed.may_reach(access.param)
            && is_alone(launch, of_tensor)
            && of_tensor.before == 0
            && moves_by_lane(elements, access)
            && is_bounded_by(func, (launch, spec), access, of_tensor.elements);
        let alike: Vec<&Access> = of_param().filter(is_same).collect();
        goes_through.then(|| gap(func, elements, (access, &alike), of_tensor.elements))?
    })
}

/// Whether an access is of one element after another, from a position that the program and loops give.
fn moves_by_lane(elements: &Elements<'_>, access: &Access) -> bool {
    let [lane] = access.lanes[..] else { return false };
    let var = |(atom, factor): &(_, i128)| match elements.terms.atom(*atom) {
        AtomKind::Var(var) => Some((*var, *factor)),
        _ => None,
    };
    let terms: Option<Vec<(Var, i128)>> = access.offset.terms.iter().map(var).collect();
    terms.is_some_and(|terms| terms.len() > 1 && terms.contains(&(lane, 1)))
}

/// Whether the mask of an access compares its position with an argument that is the number of all elements, and no
/// other integer that the launch passes has to do with where it is.
fn is_bounded_by(
    func: &Function,
    (launch, spec): (&KnownLaunch, &Specialization),
    access: &Access,
    count: i128,
) -> bool {
    let data = &func.insts[access.inst];
    let Some(mask) = mask_of(data) else { return false };
    // Another condition may leave out what is not meant.
    let is_comparison = func.def(mask).is_some_and(|made| made.opcode == Opcode::Cmp);
    let computed = func.computing(mask);
    let mut counts = passed(func, launch, count);
    let of_address = func.computing(data.operand(0));
    let is_position = |value: &&Value| {
        let made = func.def(**value).map(|made| made.opcode);
        matches!(made, Some(Opcode::ProgramId | Opcode::Arange))
    };
    let compares = of_address.iter().filter(is_position).all(|value| computed.contains(value));
    let params = func.params.iter().zip(&func.regions[func.body].args);
    let is_number = |name: &str| matches!(launch.arg(name), Some(KnownArg::Int(_)));
    let shifts = params
        .filter(|(param, _)| is_number(&param.name))
        .any(|(_, value)| of_address.contains(value));
    let is_constant = |arg: &ArgSpec| matches!(arg, ArgSpec::Constexpr(ConstArg::Int(number)) if *number == count);
    let counts_as_constant = || {
        let mut constants = computed.iter().filter_map(|value| func.constant_bits(*value));
        spec.args.values().any(is_constant) && constants.any(|bits| i128::from(bits) == count)
    };
    // Constants are part of the code: a small one may be which of several blocks in turn a launch is for.
    let is_turn = |arg: &ArgSpec| matches!(arg, ArgSpec::Constexpr(ConstArg::Int(turn)) if TURNS.contains(turn));
    let may_take_turns = spec.args.values().any(is_turn);
    is_comparison
        && compares
        && (counts.any(|count| computed.contains(&count)) || counts_as_constant())
        && !shifts
        && !may_take_turns
}

/// The first element that is left out between those of `alike`, of which one is `access`.
fn gap(
    func: &Function,
    elements: &Elements<'_>,
    (access, alike): (&Access, &[&Access]),
    count: i128,
) -> Option<Diagnostic> {
    let standing: [Linear; 3] = Default::default();
    let mut taken = FxHashSet::default();
    for access in alike {
        let points = Points::of(elements, access, &standing, &[], (MAX_POINTS, 0))?;
        taken.extend(points.found.iter().map(|(_, element)| *element));
        if !points.is_complete() {
            return None;
        }
    }
    let last = taken.iter().copied().max().filter(|last| *last < count)?;
    let first = taken.iter().copied().min()?;
    let missed = (first..last).find(|element| !taken.contains(element))?;
    let next = (missed..=last).find(|element| taken.contains(element))?;
    let opcode = func.insts[access.inst].opcode;
    let (verb, code, done) = match opcode {
        Opcode::Load => (report::verb(opcode), Code::Unread, "read"),
        _ => (report::verb(opcode), Code::Uncovered, "written"),
    };
    let name = elements.param_name(access.param);
    let has = report::count(count, "element");
    let message = format!(
        "no program {verb} element {missed} of `{name}`, which has {has}, though element {next} behind it is {done}"
    );
    let found = report::finding(func, func.insts[access.inst].loc, code, message);
    Some(
        found
            .with_note("programs are farther apart than the block that each of them takes is long"),
    )
}
