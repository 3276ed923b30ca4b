//! What earlier launches leave in memory, found by executing them in order.

use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Execute, Fault, FaultKind, Limits, Trial, TrialArg, TrialBuffer, deciders, reads_leading_to,
    trial,
};
use crate::analysis::roots::Roots;
use crate::analysis::written::written_params;
use crate::eval::Lowering;
use crate::eval::dtype::DType;
use crate::host::{Contents, LeftMemory, MadeMemory, Making};
use crate::ir::{Elem, Function, Opcode, Scalar, Value};
use crate::specialization::{Happened, KnownArg, KnownBuffer, KnownLaunch, PastLaunch, PastStep};

/// Those of an earlier launch; where it is larger, nothing is known of what it leaves.
const LIMITS_OF_EARLIER: Limits = Limits { elements: 1 << 20, work: 1 << 20 };

/// What an element of a launch's memory counts for, whatever operations do.
const WORK_OF_ELEMENT: u64 = 8;

/// Elements of all buffers of a launch of which all numbers are known.
const MAX_KNOWN: i128 = 1 << 21;

/// Memory as launches left it, by allocation.
#[derive(Debug, Default)]
pub(super) struct Memory(FxHashMap<u32, TrialBuffer>);

impl Memory {
    /// The numbers of a buffer whose elements are of this type, where all of them are known.
    pub(super) fn numbers(&self, buffer: &KnownBuffer, scalar: Scalar) -> Option<Vec<f64>> {
        let memory = self.0.get(&buffer.id?).filter(|memory| memory.scalar == scalar)?;
        let numbers = memory.numbers.get(usize::try_from(buffer.before).ok()?..)?;
        (numbers.len() as i128 == buffer.elements).then(|| numbers.to_vec())
    }
}

/// What those before `launch` left in its memory.
pub(super) fn left(
    launch: &KnownLaunch,
    lowering: &Lowering<'_>,
    executor: &dyn Execute,
) -> Memory {
    let Some(past) = &launch.past else { return Memory::default() };
    let mut done: Vec<Memory> = Vec::new();
    for PastStep { what, left } in &past.steps {
        let given = gathered(left, &done);
        let left = match what {
            Happened::Launch(earlier) => after(earlier, &given, lowering, executor),
            Happened::Made(making) => made(making, &given),
        };
        done.push(left.unwrap_or_default());
    }
    gathered(&past.left, &done)
}

/// What host code makes of what it is `given`.
fn made(making: &Making, given: &Memory) -> Option<Memory> {
    let numbers = |id| Some(given.0.get(&id)?.numbers.clone());
    let made = making.made(&numbers)?.into_iter().map(|MadeMemory { id, dtype, numbers }| {
        let (name, scalar) = (String::new(), DType::from_signature(&dtype)?.scalar()?);
        Some((id, TrialBuffer { name, scalar, numbers }))
    });
    Some(Memory(made.collect::<Option<_>>()?))
}

/// The memory of each allocation, from the launch that left it.
fn gathered(left: &[(u32, usize)], done: &[Memory]) -> Memory {
    let memory = |(id, at): &(u32, usize)| Some((*id, done.get(*at)?.0.get(id)?.clone()));
    Memory(left.iter().filter_map(memory).collect())
}

/// What a launch leaves in the memory that it may write to, as far as that follows from what is known of
/// what it is `given`.
fn after(
    earlier: &PastLaunch,
    given: &Memory,
    lowering: &Lowering<'_>,
    executor: &dyn Execute,
) -> Option<Memory> {
    let func = lowering.of_other(earlier.kernel, &earlier.spec)?;
    let launch = &earlier.launch;
    let known =
        |buffer: &KnownBuffer, scalar| buffer.numbers().or_else(|| given.numbers(buffer, scalar));
    // Nothing follows from what nobody wrote, unless it is a mistake of that kernel.
    let begun = |buffer: &KnownBuffer, scalar| {
        let fresh = || Some(vec![0.0; usize::try_from(buffer.elements).ok()?]);
        known(buffer, scalar)
            .or_else(|| fresh().filter(|_| buffer.contents == Contents::Uninitialized))
    };
    let with = |numbers: &dyn Fn(&KnownBuffer, Scalar) -> Option<Vec<f64>>| -> Vec<usize> {
        let buffers = buffers(&func, launch);
        let with = buffers.filter(|(_, buffer, scalar)| numbers(buffer, *scalar).is_some());
        with.map(|(position, ..)| position).collect()
    };
    let (known_at, begun_at) = (with(&known), with(&begun));
    let are_known = |read: &Vec<usize>| read.iter().all(|position| known_at.contains(position));
    reads_leading_to(&func, deciders(&func)).filter(are_known)?;
    let trial = trial((&func, launch), &begun_at, &begun, LIMITS_OF_EARLIER)?;
    let numbers = executor.left(&func, &trial).memory?;
    let written = written_params(&func)?;
    let is_told = |position: usize| match written.contains(&position) {
        true => {
            let stored = stored_by(&func, position).and_then(|it| reads_leading_to(&func, it));
            begun_at.contains(&position) && stored.is_some_and(|read| are_known(&read))
        }
        false => known_at.contains(&position),
    };
    Some(told(&func, launch, &trial, &numbers, &is_told))
}

/// What a launch did that was executed with the numbers that its memory holds.
#[derive(Debug, Default)]
pub(in crate::analysis) struct Ran {
    /// What it leaves in memory of which all is known that leads to it.
    pub(in crate::analysis) memory: Vec<LeftMemory>,
    /// How many elements its operations went through.
    pub(in crate::analysis) work: u64,
    /// What goes wrong in it.
    pub(in crate::analysis) faults: Vec<Fault>,
}

/// Executes a launch where all is known that decides where it reads and writes, with at most so much `work`. What
/// nobody wrote is 0, as new memory of a GPU mostly is.
pub(in crate::analysis) fn ran(
    func: &Function,
    launch: &KnownLaunch,
    executor: &dyn Execute,
    work: u64,
) -> Option<Ran> {
    let fits = |scalar: Scalar, numbers: &[f64]| {
        let all = f64::from(8 * scalar.bytes()).exp2();
        !scalar.is_int() || numbers.iter().all(|number| (-all / 2.0..all).contains(number))
    };
    let known = |buffer: &KnownBuffer, scalar: Scalar| match &buffer.contents {
        Contents::Uninitialized => Some(vec![0.0; usize::try_from(buffer.elements).ok()?]),
        Contents::Progression { .. } | Contents::Listed(_) | Contents::Floats(_) => {
            buffer.numbers().filter(|numbers| fits(scalar, numbers))
        }
        _ => None,
    };
    let with = buffers(func, launch).filter(|(_, buffer, scalar)| known(buffer, *scalar).is_some());
    let known_at: Vec<usize> = with.map(|(position, ..)| position).collect();
    let are_known = |read: &Vec<usize>| read.iter().all(|position| known_at.contains(position));
    reads_leading_to(func, deciders(func)).filter(are_known)?;
    let limits = Limits { elements: MAX_KNOWN, work };
    let trial = trial((func, launch), &known_at, &known, limits)?;
    let (left, mut faults) = executor.left_with_faults(func, &trial);
    // Whether two stores differ depends on what is stored.
    let all_known = buffers(func, launch).all(|(position, ..)| known_at.contains(&position));
    faults.retain(|fault| all_known || fault.kind == FaultKind::Outside);
    // Its memory is gone through before and after it, too.
    let elements: usize = trial.buffers.iter().map(|buffer| buffer.numbers.len()).sum();
    let work = left.work.saturating_add(elements as u64 * WORK_OF_ELEMENT);
    let ran = Ran { memory: Vec::new(), work, faults };
    let Some(numbers) = left.memory else { return Some(ran) };
    let written = written_params(func)?;
    let is_told = |position: usize| {
        let stored = || stored_by(func, position).and_then(|it| reads_leading_to(func, it));
        known_at.contains(&position)
            && (!written.contains(&position) || stored().is_some_and(|read| are_known(&read)))
    };
    let first = |id: u32| {
        let of = buffers(func, launch).filter(|(_, buffer, _)| buffer.id == Some(id));
        of.map(|(_, buffer, _)| buffer.before).min()
    };
    let memory = told(func, launch, &trial, &numbers, &is_told).0.into_iter();
    let is_unsigned = |id: u32| {
        let of = buffers(func, launch).filter(|(_, buffer, _)| buffer.id == Some(id));
        of.map(|(position, ..)| &func.params[position].signature)
            .any(|signature| signature.trim_start_matches(['*', 'k']).starts_with('u'))
    };
    let memory = memory.filter_map(|(id, left)| {
        let from = usize::try_from(first(id)?).ok()?;
        // Memory is read as signed.
        let below_zero = match is_unsigned(id) {
            true => f64::from(8 * left.scalar.bytes()).exp2(),
            false => 0.0,
        };
        let number = |number: &f64| if *number < 0.0 { number + below_zero } else { *number };
        let numbers = left.numbers.get(from..)?.iter().map(number).collect();
        Some(LeftMemory { id, from, is_whole: left.scalar.is_int(), numbers })
    });
    Some(Ran { memory: memory.collect(), ..ran })
}

/// What the buffers of a launch hold after it that has these `numbers`: those of which that is told for each
/// parameter in them.
fn told(
    func: &Function,
    launch: &KnownLaunch,
    trial: &Trial,
    numbers: &[Vec<f64>],
    is_told: &dyn Fn(usize) -> bool,
) -> Memory {
    let buffer_at = |position: usize| match trial.args.get(position) {
        Some(TrialArg::Address { buffer, .. }) => Some(*buffer),
        _ => None,
    };
    let open = buffers(func, launch).filter(|(position, ..)| !is_told(*position));
    let open: FxHashSet<usize> = open.filter_map(|(position, ..)| buffer_at(position)).collect();
    let left = buffers(func, launch).filter_map(|(position, buffer, scalar)| {
        let at = buffer_at(position).filter(|at| !open.contains(at))?;
        let name = trial.buffers[at].name.clone();
        Some((buffer.id?, TrialBuffer { name, scalar, numbers: numbers[at].clone() }))
    });
    Memory(left.collect())
}

/// The buffers that a launch is given, by position, with the types of their elements.
fn buffers<'a>(
    func: &'a Function,
    launch: &'a KnownLaunch,
) -> impl Iterator<Item = (usize, &'a KnownBuffer, Scalar)> {
    let values = func.regions[func.body].args.iter();
    let params = func.params.iter().zip(values).enumerate();
    params.filter_map(|(position, (param, value))| {
        let Some(Elem::Ptr(scalar)) = func.ty(*value).elem() else { return None };
        match launch.arg(&param.name)? {
            KnownArg::Buffer(buffer) => Some((position, buffer, scalar)),
            _ => None,
        }
    })
}

/// The values that are written to the memory of the parameter at `position`; `None` where it is not known
/// to whose memory something is written.
fn stored_by(func: &Function, position: usize) -> Option<EntitySet<Value>> {
    let roots = Roots::of(func);
    let mut stored = EntitySet::with_capacity(func.values.len());
    for inst in func.walk() {
        let data = &func.insts[inst];
        let values = match data.opcode {
            Opcode::Store | Opcode::AtomicRmw => 1..2,
            Opcode::AtomicCas => 1..3,
            opcode if opcode.is_global_write() => return None,
            _ => continue,
        };
        if roots.params(data.operand(0))?.contains(&position) {
            stored.extend(values.map(|at| data.operand(at)));
        }
    }
    Some(stored)
}
