//! What is wrong with the grid of a known launch.

use rustc_hash::FxHashSet;

use super::report;
use super::{Finding, Spot};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::ir::{AtomicOp, Attrs, Function, Inst, Opcode, Value};
use crate::passes::eliminate_dead_code;
use crate::specialization::{GridFault, KnownArg, KnownLaunch};

/// How a quotient becomes an extent.
pub(super) const ROUND_UP: &str = "round up with `triton.cdiv`, or divide with `//`";

/// What is wrong with a grid that is no tuple.
pub(super) const NUMBER: &str = "a grid is a tuple: a number alone has no length";

/// What is wrong with a grid that has a quotient for an extent.
pub(super) fn fraction(axis: usize) -> String {
    format!("a grid has integers for extents, but along axis {axis} this one has a float")
}

/// What a kernel needs of its grid.
pub(super) struct Needed {
    /// The axes along which something depends on the position.
    asked: [bool; 3],
    /// Whether it writes to memory.
    writes: bool,
    /// Whether something depends on how many programs there are.
    pub(super) counts: bool,
    /// The axes along which it does.
    counted: [bool; 3],
}

impl Needed {
    /// By `func`.
    pub(super) fn by(func: &Function) -> Needed {
        // A position that nothing depends on is not asked for.
        let mut needed = func.clone();
        eliminate_dead_code(&mut needed);
        let writes = |inst: Inst| func.insts[inst].opcode.is_global_write();
        let counted = axes_of(&needed, Opcode::NumPrograms);
        Needed {
            asked: axes_asked_for(&needed),
            writes: func.walk().into_iter().any(writes),
            counts: counted.contains(&true),
            counted,
        }
    }
}

/// Findings about the grid of `launch`, of a kernel that does what `func` does.
pub(super) fn check(func: &Function, needed: &Needed, launch: &KnownLaunch) -> Vec<Finding> {
    let fault = launch.grid_fault.and_then(|fault| faulty(func, launch, fault));
    let mut found: Vec<Diagnostic> = fault.into_iter().collect();
    found.extend(unused_axis(func, needed, launch).or_else(|| counted_alone(func, needed)));
    found
        .into_iter()
        .map(|diagnostic| Finding { diagnostic, spot: Spot::Grid, widen: None })
        .collect()
}

/// A finding that stands for the kernel as a whole until it gets the launch's place.
fn finding(func: &Function, code: Code, message: String) -> Option<Diagnostic> {
    let first = *func.regions[func.body].insts.first()?;
    Some(report::finding(func, func.user_loc(func.insts[first].loc), code, message))
}

fn faulty(func: &Function, launch: &KnownLaunch, fault: GridFault) -> Option<Diagnostic> {
    match fault {
        GridFault::Number => finding(func, Code::GridShape, NUMBER.to_owned()),
        GridFault::Other { axis } => {
            let message =
                format!("a grid has integers for extents, but along axis {axis} this one has none");
            finding(func, Code::GridShape, message)
        }
        GridFault::Fraction { axis } => {
            let found = finding(func, Code::GridShape, fraction(axis))?;
            Some(found.with_note(ROUND_UP))
        }
        // Where there is nothing to compute on, nothing is meant to run.
        GridFault::Empty { axis } if has_elements(func, launch) => {
            let message = format!("no program runs: along axis {axis} the grid has none");
            let found = finding(func, Code::GridShape, message)?;
            let found = Diagnostic { severity: Severity::Warning, ..found };
            Some(found.with_note("round up with `triton.cdiv`, so that a part of a block counts"))
        }
        GridFault::Empty { .. } => None,
        GridFault::TooLarge { axis, extent, most } => {
            let message = format!(
                "a grid has at most {most} programs along axis {axis}, but this one has {extent}"
            );
            let found = finding(func, Code::GridShape, message)?;
            Some(match axis {
                0 => found,
                _ => found.with_note("axis 0 takes 2147483647: put the longest extent there"),
            })
        }
    }
}

/// Whether all tensors of a launch are known to have elements.
fn has_elements(func: &Function, launch: &KnownLaunch) -> bool {
    let mut pointers =
        func.params.iter().filter(|param| param.signature.starts_with('*')).peekable();
    let is_filled = |name: &str| match launch.arg(name) {
        Some(KnownArg::Buffer(buffer)) => buffer.elements > 0,
        _ => false,
    };
    pointers.peek().is_some() && pointers.all(|param| is_filled(&param.name))
}

/// The axes along which a kernel asks for its position in the grid.
pub(super) fn axes_asked_for(func: &Function) -> [bool; 3] {
    axes_of(func, Opcode::ProgramId)
}

/// The axes along which a kernel asks so. Inline assembly may do it by itself, along all of them.
fn axes_of(func: &Function, asks: Opcode) -> [bool; 3] {
    let mut asked = [false; 3];
    for inst in func.walk() {
        let data = &func.insts[inst];
        match (data.opcode, &data.attrs) {
            (opcode, Attrs::Axis(axis)) if opcode == asks => {
                if let Some(asked) = asked.get_mut(axis.axis as usize) {
                    *asked = true;
                }
            }
            (Opcode::InlineAsm, _) => asked = [true; 3],
            _ => {}
        }
    }
    asked
}

/// An axis with several programs of which the kernel does not ask which one it is, so that all of
/// them do the same.
fn unused_axis(func: &Function, needed: &Needed, launch: &KnownLaunch) -> Option<Diagnostic> {
    let grid = launch.grid.unwrap_or([1; 3]);
    let has_several = |axis: &usize| grid[*axis] > 1 || launch.open_axes[*axis];
    let axis = (0..3).find(|axis| needed.writes && !needed.asked[*axis] && has_several(axis))?;
    let programs = match grid[axis] {
        1 => "all programs".to_owned(),
        several => format!("the {several} programs"),
    };
    let message = format!(
        "`{}` never asks for its position along axis {axis}, so {programs} along it do the same",
        func.name,
    );
    let found = finding(func, Code::UnusedAxis, message)?;
    let is_atomic = |inst: Inst| func.insts[inst].opcode.is_atomic();
    Some(match (adds(func), func.walk().into_iter().any(is_atomic)) {
        (true, _) => found.with_note("each of them adds to memory what all the others add"),
        // They may share work by turns, or take turns.
        (false, true) => Diagnostic { severity: Severity::Hint, ..found },
        (false, false) => found,
    })
}

/// An axis along which the kernel asks how many programs there are, though not which one it is, while along another it
/// asks for that alone.
fn counted_alone(func: &Function, needed: &Needed) -> Option<Diagnostic> {
    let counts = |axis: &usize| needed.counted[*axis];
    let is_asked_alone = |axis: usize| needed.asked[axis] && !needed.counted[axis];
    let axis = (0..3).find(|axis| counts(axis) && !needed.asked[*axis])?;
    let other = (0..3).find(|axis| is_asked_alone(*axis))?;
    let message = format!(
        "`{}` asks how many programs there are along axis {axis}, but for its position along axis {other} alone",
        func.name,
    );
    finding(func, Code::UnusedAxis, message)
}

/// Whether a kernel adds to memory by atomic operations, none of which tells it what to do.
fn adds(func: &Function) -> bool {
    let is_addition = |attrs: &Attrs| match attrs {
        Attrs::Atomic(atomic) => matches!(atomic.op, AtomicOp::Add | AtomicOp::FAdd),
        _ => false,
    };
    let insts = func.walk();
    let used: FxHashSet<Value> = insts.iter().flat_map(|inst| func.insts[*inst].uses()).collect();
    let atomics = insts.iter().map(|inst| &func.insts[*inst]);
    let mut atomics = atomics.filter(|data| data.opcode.is_atomic()).peekable();
    atomics.peek().is_some()
        && atomics.all(|data| {
            is_addition(&data.attrs) && !data.results.iter().any(|result| used.contains(result))
        })
}
