//! Lanes that a mask leaves out and that a reduction, an atomic addition or a matrix product counts all
//! the same.

use super::{KERNEL_FUEL, example};
use crate::analysis::elements::Elements;
use crate::analysis::flow::counted::Counted;
use crate::analysis::flow::gives::Gives;
use crate::analysis::flow::held::Holds;
use crate::analysis::flow::{Flow, Followed, Fuel, Reached};
use crate::analysis::neutral::combining;
use crate::analysis::report;
use crate::analysis::terms::Domain;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{AtomicOp, Attrs, Function, Inst, InstData, Opcode, Value};

/// Reductions, atomic additions and matrix products that count lanes which a mask leaves out.
pub(super) fn check<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
) -> Vec<Diagnostic> {
    let rules = [counted_lanes, added_lanes, spoiling_lanes];
    let found = rules.map(|rule| rule(func, &mut *elements, reached, &mut Fuel::new(KERNEL_FUEL)));
    found.concat()
}

/// Reductions that count lanes which a mask leaves out: sums where what `other` says does not become
/// zero, and maxima and minima where it may be beyond what others hold.
fn counted_lanes<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
    fuel: &mut Fuel,
) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for (reduction, gives) in reductions(func) {
        let seen = counted(func, elements, reached, (reduction, None), fuel);
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

pub(super) fn reductions(func: &Function) -> impl Iterator<Item = (Inst, Gives)> {
    func.walk().into_iter().filter_map(|inst| Some((inst, Gives::of(func, inst)?)))
}

/// Atomic additions of a constant at places that are read, where lanes which the read's mask leaves
/// out are counted at place 0: that is what its `other` says.
fn added_lanes<'f>(
    func: &'f Function,
    elements: &mut Elements<'f>,
    reached: &[Reached],
    fuel: &mut Fuel,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let adds = |reached: &&Reached| counts(func, &func.insts[reached.inst]);
    for addition in reached.iter().filter(adds) {
        let data = &func.insts[addition.inst];
        for load in func.walk().into_iter().filter(|inst| fills_with_zero(func, *inst)) {
            let mut flow = Flow::new(func, elements, (load, Followed::Masked), fuel);
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
    fuel: &mut Fuel,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for load in func.walk().into_iter().filter(|inst| fills_with_nan(func, *inst)) {
        let Some(taking) = combining(func, load).map(|combining| combining.inst) else { continue };
        let what = match (func.insts[taking].opcode, Gives::of(func, taking)) {
            (Opcode::Dot, _) => "a matrix product",
            (_, Some(Gives::Sum)) => "a sum",
            _ => continue,
        };
        let mut flow = Flow::new(func, elements, (load, Followed::Masked), fuel);
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
pub(super) fn counted<'f>(
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
    let whole = elements.terms.padded(&point);
    let mut domain = Domain::at(&elements.terms, &whole);
    let counted = left_out.into_iter().find(|it| domain.truth(it.cond) == Some(true))?;
    let lane = domain.value(&counted.lane)?;
    Some((point, counted, lane))
}
