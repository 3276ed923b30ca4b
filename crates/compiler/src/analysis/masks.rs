//! Masks: lanes that a load leaves undefined and that matter, lanes that it fills and that a reduction
//! or an atomic addition counts all the same, masks along the wrong axis, masks that are always true.
//!
//! A load without `other` leaves lanes undefined where its mask is false. For each such load, the
//! condition under which an element of a value is undefined is followed through the kernel
//! ([`super::flow`]). The load is reported when the condition can hold at something that is seen: a store, an address, a branch.
//! So nothing is said about lanes that are stored under the same or a stronger mask, or replaced.
//! Arguments, grid and memory may be anything.

use rustc_hash::{FxHashMap, FxHashSet};

use super::elements::{Element, Elements, Index};
use super::flow::counted::{Counted, Gives};
use super::flow::held::Holds;
use super::flow::{FUEL, Flow, Followed, Fuel, Reached, mask_of, reached};
use super::identity::padded;
use super::neutral::{Neutral, combining, neutral};
use super::solve::{Outcome, Pause};
use super::terms::{AtomKind, Domain};
use super::{first_block, report};
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::ir::{AtomicOp, Attrs, Function, Inst, InstData, Opcode, Value};
use crate::passes::eliminate_common_subexpressions;
use crate::source::{FileRange, TextRange};
use crate::specialization::KnownLaunch;

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
            let lanes = undefined_lanes(&shared, &mut elements, &reached);
            let counted = counted_lanes(&shared, &mut elements, &reached);
            let added = added_lanes(&shared, &mut elements, &reached);
            let spoiled = spoiling_lanes(&shared, &mut elements, &reached);
            for finding in lanes.into_iter().chain(counted).chain(added).chain(spoiled) {
                if found.iter().all(|known| known.primary != finding.primary) {
                    found.push(finding);
                }
            }
        }
    } else {
        found.extend(undefined_lanes(&shared, &mut elements, &reached));
        found.extend(counted_lanes(&shared, &mut elements, &reached));
        found.extend(added_lanes(&shared, &mut elements, &reached));
        found.extend(spoiling_lanes(&shared, &mut elements, &reached));
    }
    found.extend(always_true(&shared, &mut elements, &reached));
    found.extend(first_block::check(&shared, launches, pause));
    found
}

fn undefined_lanes<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
) -> Vec<Diagnostic> {
    let unfilled = |inst: &Inst| {
        let data = &func.insts[*inst];
        data.opcode == Opcode::Load
            && data.operand_opt(1).is_some_and(|mask| func.constant_bits(mask).is_none())
            && data.operand_opt(2).is_none()
    };
    let loads: Vec<Inst> = func.walk().into_iter().filter(unfilled).collect();
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

/// Reductions that count lanes which a mask leaves out: sums where what `other` says does not become
/// zero, and maxima and minima where it may be beyond what others hold.
fn counted_lanes<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut fuel = Fuel::new(KERNEL_FUEL);
    for (reduction, gives) in reductions(func) {
        let seen = counted(func, elements, reached, (reduction, None), &mut fuel);
        let Some((point, counted, lane)) = seen else { continue };
        let becomes = match counted.holds {
            Holds::Number(number) => {
                format!("{}, which the load's `other` has become", number as f32)
            }
            _ => "what the load's `other` has become, which is not 0".to_owned(),
        };
        let (what, has, instead) = match gives {
            Gives::Sum => (
                "sum",
                "adds",
                "leave them out before the sum, as by `tl.where(mask, x, 0.0)`, or choose an \
                 `other` that becomes 0, such as -float('inf') before an exponential",
            ),
            Gives::Greatest => (
                "maximum",
                "has",
                "choose an `other` below all numbers, such as -float('inf'): all others may be less \
                 than this one",
            ),
            Gives::Least => (
                "minimum",
                "has",
                "choose an `other` above all numbers, such as float('inf'): all others may be \
                 greater than this one",
            ),
        };
        let message =
            format!("this {what} counts lanes that a mask leaves out: lane {lane} {has} {becomes}");
        let place = report::place(func, func.insts[counted.load].loc);
        let finding = report::finding(func, func.insts[reduction].loc, Code::CountedLanes, message)
            .with_related(place, "this load says what these lanes hold")
            .with_note(example(func, elements, &point))
            .with_note(instead);
        if found.iter().all(|known| known.primary != finding.primary) {
            found.push(finding);
        }
    }
    found
}

fn reductions(func: &Function) -> impl Iterator<Item = (Inst, Gives)> {
    func.walk().into_iter().filter_map(|inst| Some((inst, Gives::of(func, inst)?)))
}

/// Atomic additions of a constant at places that are read, where lanes which the read's mask leaves
/// out are counted at place 0: that is what its `other` says.
fn added_lanes<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut fuel = Fuel::new(KERNEL_FUEL);
    let adds = |reached: &&Reached| counts(func, &func.insts[reached.inst]);
    for addition in reached.iter().filter(adds) {
        let data = &func.insts[addition.inst];
        for load in func.walk().into_iter().filter(|inst| fills_with_zero(func, *inst)) {
            let mut flow = Flow::new(func, elements, (load, Followed::Masked), &mut fuel);
            let Some(point) = flow.address_witness(addition) else { continue };
            let message = "this addition counts lanes that a mask leaves out, at the place that the load's \
                 `other` says";
            let place = report::place(func, func.insts[load].loc);
            found.push(
                report::finding(func, data.loc, Code::CountedLanes, message)
                    .with_related(place, "this load says where these lanes count: at 0")
                    .with_note(example(func, elements, &point))
                    .with_note("give the addition the mask of the load"),
            );
            break;
        }
    }
    found
}

/// Loads that give NaN where their masks are false, where a sum or a product of matrices takes that.
fn spoiling_lanes<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut fuel = Fuel::new(KERNEL_FUEL);
    for load in func.walk().into_iter().filter(|inst| fills_with_nan(func, *inst)) {
        let Some(taking) = combining(func, load).map(|combining| combining.inst) else { continue };
        let what = match (func.insts[taking].opcode, Gives::of(func, taking)) {
            (Opcode::Dot, _) => "a matrix product",
            (_, Some(Gives::Sum)) => "a sum",
            _ => continue,
        };
        let mut flow = Flow::new(func, elements, (load, Followed::Masked), &mut fuel);
        let Some(point) = reached.iter().find_map(|reached| flow.witness(reached)) else {
            continue;
        };
        let message =
            format!("lanes of this load whose mask is false are NaN, and they reach {what}");
        let place = report::place(func, func.insts[taking].loc);
        found.push(
            report::finding(func, func.insts[load].loc, Code::CountedLanes, message)
                .with_related(place, format!("{what}, which becomes NaN"))
                .with_note(example(func, elements, &point))
                .with_note("choose 0 for these lanes, or leave them out with `tl.where`"),
        );
    }
    found
}

/// Whether a load has a mask and gives NaN where that is false.
fn fills_with_nan(func: &Function, load: Inst) -> bool {
    let data = &func.insts[load];
    let other = data.operand_opt(2).filter(|_| data.opcode == Opcode::Load);
    let bits = other.and_then(|other| func.constant_bits(other).zip(func.ty(other).number()));
    bits.is_some_and(|(bits, number)| number.is_float() && Holds::constant(number, bits).is_nan())
}

/// Whether an operation adds a constant that is not 0 to memory.
fn counts(func: &Function, data: &InstData) -> bool {
    let adds = match &data.attrs {
        Attrs::Atomic(atomic) => matches!(atomic.op, AtomicOp::Add | AtomicOp::FAdd),
        _ => false,
    };
    let bits = data.operand_opt(1).and_then(|value| converted_bits(func, value));
    adds && bits.is_some_and(|bits| bits != 0)
}

/// The bits of a constant before conversions, which leave 0 what it is and make it of nothing else that
/// anybody adds.
fn converted_bits(func: &Function, value: Value) -> Option<u64> {
    use Opcode::{Broadcast, ExpandDims, ExtS, ExtU, FExt, FTrunc, SToF, Splat, Trunc, UToF};
    match func.def(value)?.opcode {
        Broadcast | ExpandDims | ExtS | ExtU | FExt | FTrunc | SToF | Splat | Trunc | UToF => {
            converted_bits(func, func.def(value)?.operand(0))
        }
        _ => func.constant_bits(value),
    }
}

/// Whether a load has a mask and gives an integer 0 where that is false.
fn fills_with_zero(func: &Function, load: Inst) -> bool {
    let data = &func.insts[load];
    data.opcode == Opcode::Load
        && data.operand_opt(1).is_some_and(|mask| func.constant_bits(mask).is_none())
        && data.operand_opt(2).and_then(|other| converted_bits(func, other)) == Some(0)
        && func.ty(data.result()).elem().is_some_and(|elem| !elem.is_float() && !elem.is_ptr())
}

/// A point at which a reduction counts a lane that a mask leaves out, that lane, and which it is along the
/// axis, where the lanes of a load that has no `other` are `filled` with a number.
fn counted<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
    (reduction, filled): (Inst, Option<(Inst, f64)>),
    fuel: &mut Fuel,
) -> Option<(Vec<i128>, Counted, i128)> {
    let mut flow = Flow::new(func, elements, (reduction, Followed::Counted), fuel);
    flow.filled = filled;
    let point = reached.iter().find_map(|reached| flow.witness(reached))?;
    let left_out = std::mem::take(&mut flow.left_out);
    let whole = padded(&elements.terms, &point);
    let mut domain = Domain::at(&elements.terms, &whole);
    let counted = left_out.into_iter().find(|it| domain.truth(it.cond) == Some(true))?;
    let lane = domain.value(&counted.lane)?;
    Some((point, counted, lane))
}

/// The integers that a kernel gets and the position in the grid at a point where an undefined lane
/// is seen.
fn example(func: &Function, elements: &mut Elements<'_>, point: &[i128]) -> String {
    let mut numbers = Vec::new();
    for (at, param) in func.params.iter().enumerate() {
        let Some(&value) = func.regions[func.body].args.get(at) else { continue };
        if let Element::Int(term) = elements.element(value, &Index::new()) {
            let padded = padded(&elements.terms, point);
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
    let program = report::program(super::bounds::position(elements, point), 1);
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
        let range = found.primary.range;
        let end = range.end.saturating_sub(1).max(range.start) as usize;
        let at = FileRange { file: found.primary.file, range: TextRange::empty(end) };
        let edit = TextEdit { at, text: format!(", other={value}") };
        found = found.with_fix(format!("give these lanes a value: `other={value}`"), vec![edit]);
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

/// Masks that hold along an axis on which the addresses do not use what the mask compares.
fn wrong_axes(func: &Function) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for inst in func.walk() {
        let data = &func.insts[inst];
        let Some(mask) = mask_of(data) else { continue };
        if func.ty(mask).shape().len() < 2 {
            continue;
        }
        let (used, masked) = (axes(func, data.operand(0)), axes(func, mask));
        let wrong = masked.iter().filter_map(|(value, axes)| {
            let [axis] = axes.as_slice() else { return None };
            let of_address = used.get(value)?;
            let elsewhere = !of_address.contains(axis);
            (elsewhere && of_address.len() == 1).then_some((*value, *axis, of_address[0]))
        });
        let named = wrong.map(|wrong| (report::name(func, wrong.0), wrong));
        let first = named.min_by_key(|(name, (value, ..))| (name.is_none(), *value));
        let Some((name, (_, axis, right))) = first else { continue };
        let name = name.unwrap_or_else(|| "an index".into());
        let message = format!(
            "the mask compares `{name}` along axis {axis}, but the addresses use it along axis {right}"
        );
        found.push(report::finding(func, data.loc, Code::MaskAxis, message));
    }
    found
}

/// One-dimensional values that a value is computed from, with the axes that they run along.
fn axes(func: &Function, value: Value) -> FxHashMap<Value, Vec<usize>> {
    let mut found: FxHashMap<Value, Vec<usize>> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let Some(data) = func.def(value).filter(|_| seen.insert(value)) else { continue };
        let elementwise = data.regions.is_empty() && data.opcode.is_pure();
        match (data.opcode, &data.attrs) {
            (Opcode::ExpandDims, _) => {
                let expanded = expanded(func, value);
                for (made, axis) in expanded.into_iter().flat_map(|(base, axis)| {
                    made_of(func, base).into_iter().map(move |made| (made, axis))
                }) {
                    let known = found.entry(made).or_default();
                    if !known.contains(&axis) {
                        known.push(axis);
                    }
                }
            }
            (
                Opcode::Reshape | Opcode::Permute | Opcode::Join | Opcode::Cat | Opcode::Gather,
                _,
            ) => {}
            _ if elementwise => pending.extend(data.uses()),
            _ => {}
        }
    }
    found
}

/// A one-dimensional value and those that it is computed from lane by lane: what compares them first
/// runs along their axis as well. Positions from 0 on are those of several indices.
fn made_of(func: &Function, base: Value) -> Vec<Value> {
    let mut found = vec![base];
    let mut at = 0;
    while let Some(&value) = found.get(at) {
        at += 1;
        let Some(data) = func.def(value) else { continue };
        let moves = matches!(data.opcode, Opcode::Cat | Opcode::Gather | Opcode::Reshape);
        if moves || !data.regions.is_empty() || !data.opcode.is_pure() {
            continue;
        }
        for used in data.uses() {
            let is_like = func.ty(used).shape() == func.ty(base).shape();
            let is_index = func.constant_bits(used).is_none()
                && func
                    .def(used)
                    .is_none_or(|data| !matches!(data.opcode, Opcode::Splat | Opcode::Arange));
            if is_like && is_index && !found.contains(&used) {
                found.push(used);
            }
        }
    }
    found
}

/// The one-dimensional value that a chain of `expand_dims` starts from, and the axis that it is
/// along in the end.
fn expanded(func: &Function, value: Value) -> Option<(Value, usize)> {
    let data = func.def(value)?;
    let Attrs::Axis(inserted) = &data.attrs else { return None };
    let source = data.operand(0);
    match func.ty(source).shape().len() {
        1 => Some((source, usize::from(inserted.axis == 0))),
        _ => {
            let (base, axis) = expanded(func, source)?;
            Some((base, axis + usize::from(inserted.axis as usize <= axis)))
        }
    }
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
