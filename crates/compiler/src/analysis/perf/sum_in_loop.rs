//! Sums of whole tiles in each trip of a loop, in launches of few programs.
//!
//! To sum a tile to one number its threads exchange values and wait for each other. Where many
//! programs run beside each other, others fill that time; where each multiprocessor has but one, a
//! loop that carries the tile and sums it once is faster.

use crate::analysis::elements::{Access, Elements};
use crate::analysis::report::{finding, place};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Function, Inst, InstData, Opcode, Region, Value};
use crate::specialization::KnownLaunch;

/// Multiprocessors of an H200, on which this was measured.
const MULTIPROCESSORS: u64 = 132;

/// Trips from which on the sum after the loop costs little beside those in it.
const LEAST_TRIPS: i128 = 16;

/// A hint for each number that a loop sums tiles to, in a launch of few programs.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    accesses: &[Access],
) -> Vec<Diagnostic> {
    let programs = launch.grid.map(|grid| grid.iter().map(|extent| u64::from(*extent)).product());
    let Some(programs) = programs.filter(|programs: &u64| *programs <= MULTIPROCESSORS) else {
        return Vec::new();
    };
    let loops = func.walk().into_iter().filter(|inst| func.insts[*inst].opcode == Opcode::For);
    let mut found = Vec::new();
    for inst in loops {
        let reads = |access: &Access| access.loops.last() == Some(&inst);
        if !accesses.iter().any(reads) || !runs_often(elements, func, inst) {
            continue;
        }
        let region = func.insts[inst].regions[0];
        let carried = 1..func.regions[region].args.len();
        let sums = carried.filter_map(|at| summed(func, region, at));
        found.extend(sums.map(|(sum, reduction)| describe(func, programs, sum, reduction)));
    }
    found
}

fn runs_often(elements: &mut Elements<'_>, func: &Function, inst: Inst) -> bool {
    let Some(step) = elements.step(&func.insts[inst]) else { return false };
    let trips = elements.trips(inst, step);
    elements.terms.range(&trips).lo >= LEAST_TRIPS
}

/// The addition by which a loop adds the sum of a tile to what it carries as its argument `at`, and
/// that sum.
fn summed(func: &Function, region: Region, at: usize) -> Option<(&InstData, &InstData)> {
    let carried = func.regions[region].args[at];
    let sum = func.def(func.terminator(region)?.operand_opt(at - 1)?)?;
    let is_sum = matches!(sum.opcode, Opcode::Add | Opcode::FAdd);
    if !is_sum || func.ty(carried).is_tile() {
        return None;
    }
    let operands = [sum.operand(0), sum.operand(1)];
    let added = operands.into_iter().find(|operand| *operand != carried)?;
    let reduction = func.def(added).filter(|data| data.opcode == Opcode::Reduce)?;
    let inside = func.walk_from(region);
    let once = |value: Value| {
        let uses = inside.iter().flat_map(|inst| func.insts[*inst].uses().collect::<Vec<_>>());
        uses.filter(|used| *used == value).count() == 1
    };
    // Whoever else reads the running sum needs it in each trip.
    let plain = operands.contains(&carried) && once(carried) && once(added);
    (plain && adds(func, reduction, sum.opcode)).then_some((sum, reduction))
}

/// Whether a reduction inside the loop combines one tile by this operation alone.
fn adds(func: &Function, reduction: &InstData, opcode: Opcode) -> bool {
    let Some(&region) = reduction.regions.first() else { return false };
    let combined = func.terminator(region).and_then(|end| func.def(end.operand_opt(0)?));
    let args = &func.regions[region].args;
    reduction.results.len() == 1
        && combined.is_some_and(|data| {
            data.opcode == opcode && data.uses().all(|value| args.contains(&value))
        })
}

fn describe(func: &Function, programs: u64, sum: &InstData, reduction: &InstData) -> Diagnostic {
    let message = format!(
        "each trip sums a whole tile to one number, for which its threads wait: of {programs} \
         programs there is one at most on each multiprocessor, and none fills that time"
    );
    let found = finding(func, sum.loc, Code::SumInLoop, message);
    let at = place(func, reduction.loc);
    let found = match at == found.primary {
        true => found,
        false => found.with_related(at, "the tile is summed here"),
    };
    found.with_note("carry the tile through the loop, and sum it once after")
}
