//! Masks that only the first block passes: what counts on from block to block is compared with the
//! length of one.

use rustc_hash::FxHashSet;

use super::bounds::buffer;
use super::elements::{Access, Element, Elements, Variable};
use super::flow::{FUEL, mask_of};
use super::report;
use super::solve::{Outcome, Pause};
use super::terms::{AtomKind, Cond, CondKind, Linear};
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
        for &(comparison, operand, access) in &compared {
            let Some(first) = only_first(func, &mut elements, comparison) else { continue };
            let mut here = accesses.iter().filter(|here| here.inst == access);
            let has_more = |here: &Access| {
                let buffer = buffer(func, launch, here.param);
                buffer.is_some_and(|it| is_left(&mut elements, here, first, it.elements))
            };
            if !here.any(has_more) {
                continue;
            }
            let finding = describe(func, (comparison, operand, access), first);
            if found.iter().all(|known| known.primary != finding.primary) {
                found.push(finding);
            }
        }
    }
    found
}

/// Comparisons with a constant that masks are true only with: each with what is compared and the
/// access.
fn comparisons(func: &Function) -> Vec<(Inst, Value, Inst)> {
    use Opcode::{And, Broadcast, Cmp, ExpandDims, Splat};
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    for access in func.walk() {
        let mut pending: Vec<Value> = mask_of(&func.insts[access]).into_iter().collect();
        while let Some(value) = pending.pop() {
            let ValueDef::Result(inst, _) = func.values[value].def else { continue };
            let data = &func.insts[inst];
            match data.opcode {
                And | Splat | Broadcast | ExpandDims => pending.extend(data.uses()),
                Cmp if seen.insert(inst) => {
                    let (a, b) = (data.operand(0), data.operand(1));
                    match (func.constant_bits(a).is_some(), func.constant_bits(b).is_some()) {
                        (false, true) => found.push((inst, a, access)),
                        (true, false) => found.push((inst, b, access)),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// What counts blocks, where a comparison is true in all lanes of the first and in none of the
/// others.
fn only_first(func: &Function, elements: &mut Elements<'_>, comparison: Inst) -> Option<Variable> {
    let result = func.insts[comparison].result();
    let index = elements.lanes(func.ty(result).shape()).0;
    let Element::Bool(cond) = elements.element(result, &index) else { return None };
    let term = at_most_zero(elements, cond)?;
    let mut counts = None;
    // The range of all but the count.
    let (mut least, mut most) = (term.constant, term.constant);
    let mut varies = false;
    for (atom, factor) in &term.terms {
        let range = elements.terms.range(&Linear::atom(*atom));
        let AtomKind::Var(var) = *elements.terms.atom(*atom) else { return None };
        let variable = elements.variables().find(|(_, known)| *known == var);
        match variable.map(|(variable, _)| variable) {
            Some(variable @ (Variable::Program(_) | Variable::Trip(_))) if counts.is_none() => {
                if *factor <= 0 || range.lo != 0 || range.hi < 1 {
                    return None;
                }
                counts = Some((variable, *factor));
            }
            Some(Variable::Lane(..)) => {
                varies = true;
                let ends = [range.lo * factor, range.hi * factor];
                least += ends[0].min(ends[1]);
                most += ends[0].max(ends[1]);
            }
            _ => return None,
        }
    }
    let (variable, step) = counts?;
    (varies && most <= 0 && least + step > 0).then_some(variable)
}

/// Whether an access would come to one of so many elements in a later block than the first, which
/// may be there for programs and trips that have none.
fn is_left(elements: &mut Elements<'_>, access: &Access, counts: Variable, size: i128) -> bool {
    let Some(var) = elements.variable(counts) else { return false };
    let count = elements.terms.var_term(var);
    let mut conds = access.path.clone();
    conds.push(elements.terms.less(&Linear::default(), &count));
    conds.push(elements.terms.at_most(&Linear::default(), &access.offset));
    conds.push(elements.terms.less(&access.offset, &Linear::constant(size)));
    matches!(elements.search(&conds, &mut { FUEL }), Outcome::Found(_))
}

fn at_most_zero(elements: &Elements<'_>, cond: Cond) -> Option<Linear> {
    match elements.terms.cond(cond) {
        CondKind::AtMostZero(term) => Some(term.clone()),
        _ => None,
    }
}

fn describe(
    func: &Function,
    (comparison, operand, access): (Inst, Value, Inst),
    first: Variable,
) -> Diagnostic {
    let name = report::name(func, operand);
    let name = name.map_or_else(|| "an index".to_owned(), |name| format!("`{name}`"));
    let others = match first {
        Variable::Program(axis) => format!("of every program but the first along axis {axis}"),
        _ => "in every trip of the loop but the first".to_owned(),
    };
    let message = format!(
        "this mask compares {name} with the end of the first block, so it is false in all lanes {others}"
    );
    let loc = func.insts[comparison].loc;
    let found = report::finding(func, loc, Code::MaskFirstBlock, message);
    let place = report::place(func, func.insts[access].loc);
    let does = report::verb(func.insts[access].opcode);
    found
        .with_related(place, format!("this {does} nothing there"))
        .with_note("compare it with the number of elements along this axis")
}
