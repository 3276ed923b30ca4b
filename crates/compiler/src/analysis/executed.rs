//! Launches that are executed: where numbers in memory decide where a kernel reads and writes, and host
//! code shows those numbers, or where it computes that in a way which no analysis follows, as by a square root,
//! running it tells more than any analysis.
//!
//! What decides nothing may be anything: it is filled with numbers that no two elements share, so that
//! stores of different elements differ.

use std::cell::OnceCell;

use cranelift_entity::EntitySet;

use super::elements::{Access, Elements};
use super::flow::mask_of;
use super::report;
use super::roots::Roots;
use super::solve::Pause;
use super::written::leading_to;
use super::{AtLaunch, Spot};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::eval::Lowering;
use crate::host::Contents;
use crate::ir::{Elem, Function, Inst, Loc, Opcode, Scalar, Value};
use crate::specialization::{KnownArg, KnownBuffer, KnownLaunch, Specialization};

mod past;

pub(super) use past::{Ran, ran};

/// Launches of one specialization that are executed.
const MAX_TRIALS: usize = 2;

/// How large a launch may be that is executed.
#[derive(Clone, Copy)]
struct Limits {
    /// Elements of all its buffers.
    elements: i128,
    /// Elements that its operations may go through.
    work: u64,
}

/// Those of a launch of which not all numbers are known; what comes later is not seen.
const LIMITS: Limits = Limits { elements: 1 << 20, work: 8 << 20 };

/// Executes kernels.
pub trait Execute {
    /// What a launch leaves in memory.
    fn left(&self, func: &Function, trial: &Trial) -> Left;

    /// The same, with what goes wrong in it, as far as its work allows to see.
    fn left_with_faults(&self, func: &Function, trial: &Trial) -> (Left, Vec<Fault>);

    /// What goes wrong in a launch.
    fn faults(&self, func: &Function, trial: &Trial) -> Vec<Fault> {
        self.left_with_faults(func, trial).1
    }
}

/// What a launch leaves.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// What each buffer holds then; `None` where its work did not suffice, or it leaves a buffer.
    pub memory: Option<Vec<Vec<f64>>>,
    /// Elements that its operations went through.
    pub work: u64,
}

/// A launch with all that it needs.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Extents of the grid.
    pub grid: [u32; 3],
    /// Arguments by position.
    pub args: Vec<TrialArg>,
    /// Memory.
    pub buffers: Vec<TrialBuffer>,
    /// How many elements operations may go through.
    pub work: u64,
}

/// An argument of a [`Trial`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrialArg {
    /// An integer or a truth value.
    Int(i128),
    /// A float.
    Float(f64),
    /// An element of a buffer, by the buffer's number.
    Address {
        /// The buffer.
        buffer: usize,
        /// The element.
        element: u64,
    },
}

/// Memory of a [`Trial`].
#[derive(Debug, Clone)]
pub struct TrialBuffer {
    /// The argument that points to it.
    pub name: String,
    /// The type of its elements.
    pub scalar: Scalar,
    /// What it holds.
    pub numbers: Vec<f64>,
}

/// What goes wrong in a [`Trial`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside of a buffer.
    Outside,
    /// Two programs store to one element, or two lanes of a store do.
    Stores,
    /// A program reads what another one stores, and what the launch leaves depends on their order.
    Reads,
}

/// Something that goes wrong in a [`Trial`].
#[derive(Debug, Clone)]
pub struct Fault {
    /// What it is.
    pub kind: FaultKind,
    /// Where.
    pub loc: Loc,
    /// The first program that shows it.
    pub program: [u32; 3],
    /// What, in words.
    pub message: String,
}

/// Findings about launches under `spec` that are executed.
pub(super) fn check(
    func: &Function,
    spec: &Specialization,
    lowering: &Lowering<'_>,
    executor: &dyn Execute,
) -> Vec<(Diagnostic, AtLaunch)> {
    let pause = || lowering.sources().checkpoint();
    let is_known = |launch: &KnownLaunch| {
        let mut params = func.params.iter();
        launch.grid.is_some() && params.all(|param| launch.arg(&param.name).is_some())
    };
    if !spec.launches.iter().any(is_known) {
        return Vec::new();
    }
    let Some(deciding) = reads_leading_to(func, deciders(func)) else { return Vec::new() };
    let is_open =
        |launch: &&KnownLaunch| !deciding.is_empty() || !is_followed(func, launch, &pause);
    let trials = spec.launches.iter().filter(is_open).filter_map(|launch| {
        let left = OnceCell::new();
        let numbers = |buffer: &KnownBuffer, scalar| {
            let find = || past::left(launch, lowering, executor);
            buffer.numbers().or_else(|| left.get_or_init(find).numbers(buffer, scalar))
        };
        let trial = trial((func, launch), &deciding, &numbers, LIMITS)?;
        Some((launch, trial))
    });
    let mut found = Vec::new();
    for (launch, trial) in trials.take(MAX_TRIALS) {
        let faults = executor.faults(func, &trial).into_iter();
        let is_shown = deciding.iter().all(|position| is_shown(func, launch, *position));
        for fault in faults.filter(|fault| fault.kind == FaultKind::Outside || is_shown) {
            let at = AtLaunch {
                site: launch.site,
                caller: launch.caller,
                spot: Spot::Kernel,
                widen: None,
            };
            let how = how_seen(launch, &deciding);
            found.push((finding(func, launch, spec, &fault).with_note(how), at));
        }
    }
    found
}

/// Whether host code shows the numbers that decide in the memory of a parameter: places that follow from a
/// few random floats may well be different ones.
fn is_shown(func: &Function, launch: &KnownLaunch, position: usize) -> bool {
    let param = &func.params[position];
    let pointee = param.signature.trim_start_matches(['*', 'k']);
    let is_float = pointee.starts_with("fp") || pointee.starts_with("bf");
    let is_listed = || match launch.arg(&param.name) {
        Some(KnownArg::Buffer(buffer)) => {
            matches!(buffer.contents, Contents::Progression { .. } | Contents::Floats(_))
        }
        _ => false,
    };
    !is_float || !launch.drawn && is_listed()
}

/// How a launch was executed in which numbers in the memory of the parameters at `deciding` decide.
fn how_seen(launch: &KnownLaunch, deciding: &[usize]) -> &'static str {
    match launch.past {
        _ if deciding.is_empty() => "seen by executing the launch on the CPU",
        None => {
            "seen by executing the launch on the CPU, with the numbers that host code puts into memory"
        }
        Some(_) => {
            "seen by executing the launch on the CPU, after those that put numbers into its memory"
        }
    }
}

/// The finding about what goes wrong in a launch, in the kernel.
pub(super) fn finding(
    func: &Function,
    launch: &KnownLaunch,
    spec: &Specialization,
    fault: &Fault,
) -> Diagnostic {
    let program = report::program(fault.program.map(i128::from), launch.grid_rank);
    let message = fault.message.clone();
    let (code, message) = match fault.kind {
        FaultKind::Outside => (Code::OutOfBounds, format!("program {program}: {message}")),
        FaultKind::Stores => (Code::Race, message),
        FaultKind::Reads => (Code::ReadRace, message),
    };
    let found = report::finding(func, fault.loc, code, message);
    Diagnostic { severity: Severity::Warning, specialization: Some(spec.to_string()), ..found }
}

/// Whether it is known of each access of a launch where it is and when it happens.
fn is_followed(func: &Function, launch: &KnownLaunch, pause: Pause<'_>) -> bool {
    let mut elements = Elements::of_launch(func, launch, pause);
    let accesses = elements.accesses();
    let terms = &elements.terms;
    let is_known = |access: &Access| {
        let mut conds = access.happens().into_iter();
        terms.is_known(&access.offset) && conds.all(|cond| !terms.has_unknown_cond(cond))
    };
    let stays_open = |inst: Inst| {
        let is_access = matches!(
            func.insts[inst].opcode,
            Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas
        );
        is_access && !accesses.iter().any(|access| access.inst == inst)
    };
    accesses.iter().all(is_known) && !func.walk().into_iter().any(stays_open)
}

/// The parameters in whose memory there are numbers that lead to `ends`, by position; `None` where it is
/// not known which.
fn reads_leading_to(func: &Function, ends: EntitySet<Value>) -> Option<Vec<usize>> {
    let roots = Roots::of(func);
    let leading = leading_to(func, ends);
    let mut params = Vec::new();
    for inst in func.walk() {
        let data = &func.insts[inst];
        let leads = || data.results.iter().any(|result| leading.contains(*result));
        let reads = matches!(data.opcode, Opcode::Load | Opcode::AtomicRmw | Opcode::AtomicCas);
        if reads && leads() {
            params.extend(roots.params(data.operand(0))?);
        }
    }
    params.sort_unstable();
    params.dedup();
    Some(params)
}

/// Values that say where memory is accessed, which branch is taken, and how long loops are.
fn deciders(func: &Function) -> EntitySet<Value> {
    let mut found = EntitySet::with_capacity(func.values.len());
    for inst in func.walk() {
        let data = &func.insts[inst];
        match data.opcode {
            Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas => {
                found.insert(data.operand(0));
                found.extend(mask_of(data));
            }
            Opcode::If => {
                found.insert(data.operand(0));
            }
            Opcode::For => found.extend(data.uses().take(3)),
            Opcode::While => {
                let end = data.regions.first().and_then(|region| func.terminator(*region));
                found.extend(end.and_then(|end| end.uses().next()));
            }
            _ => {}
        }
    }
    found
}

/// A launch as it is executed, where enough of it is known: what its buffers hold that are at the
/// positions `deciding`, which `numbers` tells.
fn trial(
    (func, launch): (&Function, &KnownLaunch),
    deciding: &[usize],
    numbers: &dyn Fn(&KnownBuffer, Scalar) -> Option<Vec<f64>>,
    limits: Limits,
) -> Option<Trial> {
    let grid = launch.grid.filter(|_| !launch.doubtful && launch.arg_faults.is_empty())?;
    let mut trial = Trial { grid, args: Vec::new(), buffers: Vec::new(), work: limits.work };
    let mut numbered: Vec<(u32, usize)> = Vec::new();
    let mut rest = limits.elements;
    let body = &func.regions[func.body].args;
    for (position, (param, value)) in func.params.iter().zip(body).enumerate() {
        let arg = match launch.arg(&param.name)? {
            KnownArg::Int(number) => TrialArg::Int(*number),
            KnownArg::Float(bits) => TrialArg::Float(f64::from_bits(*bits)),
            KnownArg::Buffer(buffer) => {
                let Some(Elem::Ptr(scalar)) = func.ty(*value).elem() else { return None };
                let known =
                    buffer.id.and_then(|id| numbered.iter().find(|(known, _)| *known == id));
                let at = match known {
                    Some((_, at)) => *at,
                    None => {
                        let at = trial.buffers.len();
                        numbered.extend(buffer.id.map(|id| (id, at)));
                        rest = rest.checked_sub(buffer.before.checked_add(buffer.elements)?)?;
                        (rest >= 0).then_some(())?;
                        trial.buffers.push(memory(&param.name, scalar, buffer)?);
                        at
                    }
                };
                let memory = &mut trial.buffers[at];
                let element = usize::try_from(buffer.before).ok()?;
                let ends_there = memory.numbers.len() as i128 == buffer.before + buffer.elements;
                if memory.scalar != scalar || !ends_there {
                    return None;
                }
                if deciding.contains(&position) {
                    memory.numbers[element..].copy_from_slice(&numbers(buffer, scalar)?);
                }
                TrialArg::Address { buffer: at, element: element as u64 }
            }
        };
        trial.args.push(arg);
    }
    Some(trial)
}

/// Memory that holds something.
fn memory(name: &str, scalar: Scalar, buffer: &KnownBuffer) -> Option<TrialBuffer> {
    let elements = usize::try_from(buffer.before.checked_add(buffer.elements)?).ok()?;
    // Different in each element, and in every format of floats; not in order.
    let number = |at: usize| match scalar.is_int() {
        true => ((at * 7 + 3) % 97) as f64,
        false => ((at * 37 + 11) % 113) as f64 / 64.0 - 0.75,
    };
    Some(TrialBuffer {
        name: name.to_owned(),
        scalar,
        numbers: (0..elements).map(number).collect(),
    })
}
