//! The CPU executor: the reference semantics of tile IR.
//!
//! [`Kernel::compile`] turns IR at tile level into steps over dense registers, each a loop over
//! the elements of a tile that the compiler vectorizes. [`Kernel::launch`] runs the programs of a
//! grid on all cores. Results follow the operation table bit for bit where hardware is defined:
//! narrow floats round once per operation, integers wrap, conversions saturate. Where hardware is
//! approximate (`exp`, fast division) the executor is exact to within half an ulp. `f32` operands of
//! matrix products lose the digits that the kernel's input precision drops; sums are exact `f32`
//! ones in order. Results are the same on every machine and for every number of cores.
//!
//! Every active lane's address is checked against the real buffers. An access outside them is a
//! [`Finding`] with the program, lane, address and source line; the load gives zero and the store
//! is dropped. With [`Options::sanitize`] the executor also finds stores of several programs to
//! one element (programs that use atomics are taken to order their stores), loads by one program of
//! what another stores (in kernels without atomics), reads of memory that nothing wrote, and the
//! place where numbers first became a NaN that was stored.
//!
//! A grid's programs start in order, but only as many at a time as there are cores: a kernel
//! whose programs all wait for each other runs into its deadline.

mod access;
mod collective;
mod compile;
mod dot;
mod effects;
mod extern_math;
mod finding;
mod frame;
mod lanes;
mod machine;
mod memory;
pub mod number;
mod program;
mod shape;
mod simd;
mod sort;
mod trial;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use compile::CompileError;
pub use finding::{Access, Finding, FindingKind, Place};
pub use machine::Options;
pub use memory::{Buffer, BufferId, Buffers};
use thiserror::Error;
use tile_compiler::ir::{Elem, Function, Scalar};
pub use trial::Executor;

use crate::number::encode;
use compile::Compiled;
use frame::Frame;
use machine::{Machine, Stop, position};

/// A kernel that can run on the CPU.
#[derive(Debug)]
pub struct Kernel {
    name: String,
    compiled: Compiled,
    params: Vec<String>,
}

/// An argument of a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arg {
    /// An address in a buffer: [`Buffers::address`] plus bytes.
    Pointer(u64),
    /// An integer or a boolean.
    Int(i128),
    /// A float; rounded to the parameter's type.
    Float(f64),
}

impl std::fmt::Display for Arg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arg::Pointer(_) => f.write_str("a tensor"),
            Arg::Int(value) => write!(f, "{value}"),
            Arg::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// Why a launch did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// The arguments do not fit the parameters.
    #[error("{kernel}: {message}")]
    Arguments {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        message: String,
    },
    /// The launch took too long.
    #[error(
        "{0} did not finish in time; a loop may never end, or programs may wait for others that have not started"
    )]
    TimedOut(String),
    /// The launch was told to stop.
    #[error("{0} was stopped")]
    Cancelled(String),
    /// A loop's step was zero.
    #[error("{0}: a loop has the step 0")]
    ZeroStep(String),
}

/// What a launch did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunReport {
    /// How long it took.
    pub elapsed: Duration,
    /// What is wrong with the kernel, by line.
    pub findings: Vec<Finding>,
    /// What `tl.device_print` printed, by program.
    pub prints: Vec<String>,
    /// Multiplications and additions of matrix products.
    pub flops: u64,
    /// Elements that its operations went through, also of matrix products.
    pub work: u64,
    /// Whether it ended before its end, having done all [the work that it may](Options::work).
    pub out_of_work: bool,
    /// Bytes of the distinct elements read, and of those written; with [`Options::trace`].
    pub touched: Option<(u64, u64)>,
    /// For each buffer the first and last byte accessed, relative to its start, `None` if it was
    /// not accessed outside its bounds; with [`Options::probe`].
    pub extents: Vec<Option<(i64, i64)>>,
}

impl Kernel {
    /// Bytes of the registers of one program.
    pub(crate) fn registers(&self) -> usize {
        self.compiled.sizes.iter().sum()
    }

    /// Prepares a kernel.
    ///
    /// # Errors
    /// When the IR is not verified IR at tile level, or uses what only a GPU has.
    pub fn compile(func: &Function) -> Result<Kernel, CompileError> {
        let compiled = compile::compile(func)?;
        let params = func.params.iter().map(|param| param.name.to_string()).collect();
        Ok(Kernel { name: func.name.to_string(), compiled, params })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs every program of the grid.
    ///
    /// # Errors
    /// When the arguments do not fit, or the launch did not run to its end. A kernel that is
    /// wrong is no error: see [`RunReport::findings`].
    pub fn launch(
        &self,
        buffers: &mut Buffers,
        args: &[Arg],
        grid: [u32; 3],
        options: &Options,
    ) -> Result<RunReport, RunError> {
        let args = self.bind(args)?;
        if options.sanitize || options.trace {
            buffers.start_recording();
        }
        let started = Instant::now();
        let machine = Machine::new(buffers, options, grid, &self.compiled);
        let frames = self.run_grid(&machine, &args);
        let elapsed = started.elapsed();
        self.check(&machine)?;
        let mut prints: Vec<(u64, String)> = Vec::new();
        let (mut flops, mut work) = (0, 0);
        for frame in frames {
            work += frame.work();
            flops += frame.flops;
            prints.extend(frame.prints);
        }
        prints.sort_by_key(|(program, _)| *program);
        Ok(RunReport {
            elapsed,
            findings: machine.log.finish(&self.compiled.places),
            prints: prints.into_iter().map(|(_, line)| line).collect(),
            flops,
            work,
            out_of_work: machine.worked.load(Ordering::Relaxed),
            touched: options.trace.then(|| machine.buffers.recorded_bytes()),
            extents: machine.extents.iter().map(extent).collect(),
        })
    }

    fn run_grid(&self, machine: &Machine, args: &[u64]) -> Vec<Frame> {
        let programs: u64 = machine.grid.iter().map(|&extent| u64::from(extent)).product();
        let next = AtomicU64::new(0);
        let workers = match machine.options.work {
            Some(_) => programs.min(1),
            None => programs.min(rayon::current_num_threads() as u64),
        };
        let mut frames: Vec<Option<Frame>> = (0..workers).map(|_| None).collect();
        let (first, others) = match frames.split_first_mut() {
            Some((first, others)) => (first, others),
            None => return Vec::new(),
        };
        let work = |frame: &mut Option<Frame>| {
            *frame = Some(self.run_programs(machine, args, &next, programs));
        };
        rayon::scope(|scope| {
            for frame in others {
                scope.spawn(move |_| work(frame));
            }
            work(first);
        });
        frames.into_iter().flatten().collect()
    }

    /// Runs programs until none is left.
    fn run_programs(
        &self,
        machine: &Machine,
        args: &[u64],
        next: &AtomicU64,
        programs: u64,
    ) -> Frame {
        let mut frame = Frame::new(&self.compiled.sizes);
        for (&(slot, _), &bits) in self.compiled.params.iter().zip(args) {
            frame.set_scalar(slot, bits);
        }
        if self.compiled.prologue.run(&mut frame, machine).is_err() {
            return frame;
        }
        loop {
            let started = next.fetch_add(1, Ordering::Relaxed);
            if started >= programs
                || machine.check_time().is_err()
                || machine.tick(&mut frame).is_err()
            {
                return frame;
            }
            let linear = match machine.options.backwards {
                true => programs - 1 - started,
                false => started,
            };
            frame.linear = linear;
            frame.program = position(linear, machine.grid);
            frame.nan_birth = None;
            frame.synchronized = false;
            if self.compiled.body.run(&mut frame, machine) == Err(Stop::Launch) {
                return frame;
            }
        }
    }

    fn check(&self, machine: &Machine) -> Result<(), RunError> {
        let name = self.name.clone();
        if machine.zero_step.load(Ordering::Relaxed) {
            Err(RunError::ZeroStep(name))
        } else if machine.timed_out.load(Ordering::Relaxed) {
            Err(RunError::TimedOut(name))
        } else if machine.worked.load(Ordering::Relaxed) {
            Ok(())
        } else if machine.stopped.load(Ordering::Relaxed) {
            Err(RunError::Cancelled(name))
        } else {
            Ok(())
        }
    }

    /// The bits of each argument as its parameter's type.
    fn bind(&self, args: &[Arg]) -> Result<Vec<u64>, RunError> {
        let params = &self.compiled.params;
        let error = |message| RunError::Arguments { kernel: self.name.clone(), message };
        if args.len() != params.len() {
            let message = format!("takes {} arguments, got {}", params.len(), args.len());
            return Err(error(message));
        }
        let bits = args.iter().zip(params).zip(&self.params).map(|((&arg, &(_, elem)), name)| {
            argument_bits(arg, elem)
                .ok_or_else(|| error(format!("argument `{name}` is {arg}, which is no {elem}")))
        });
        bits.collect()
    }
}

/// The bits of an argument as a parameter's type, if it fits.
pub fn argument_bits(arg: Arg, elem: Elem) -> Option<u64> {
    match (arg, elem) {
        (Arg::Pointer(address), Elem::Ptr(_) | Elem::PtrPtr(_)) => Some(address),
        (Arg::Int(value), Elem::Scalar(Scalar::I1)) => Some(u64::from(value != 0)),
        (Arg::Int(value), Elem::Scalar(scalar)) if scalar.is_int() => {
            let half = 1i128 << (scalar.bits() - 1);
            let fits = (-half..2 * half).contains(&value);
            let mask = u64::MAX >> (64 - scalar.bits());
            fits.then_some(value as u64 & mask)
        }
        (Arg::Int(value), Elem::Scalar(scalar)) => Some(encode(scalar, value as f64)),
        (Arg::Float(value), Elem::Scalar(scalar)) if scalar.is_float() => {
            Some(encode(scalar, value))
        }
        _ => None,
    }
}

fn extent(
    (first, last): &(std::sync::atomic::AtomicI64, std::sync::atomic::AtomicI64),
) -> Option<(i64, i64)> {
    let (first, last) = (first.load(Ordering::Relaxed), last.load(Ordering::Relaxed));
    (first <= last).then_some((first, last))
}
