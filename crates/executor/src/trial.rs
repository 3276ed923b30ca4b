//! Launches that checks execute.

use tile_compiler::analysis::{Execute, Fault, FaultKind, Left, Trial, TrialArg};
use tile_compiler::ir::{Function, Scalar};

use crate::number::{decode, encode};
use crate::{Arg, BufferId, Buffers, FindingKind, Kernel, Options, RunReport};

/// The executor, for checks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Executor;

impl Execute for Executor {
    fn left(&self, func: &Function, trial: &Trial) -> Left {
        self.ran(func, trial, Options::default()).0
    }

    fn left_with_faults(&self, func: &Function, trial: &Trial) -> (Left, Vec<Fault>) {
        let (left, report) =
            self.ran(func, trial, Options { sanitize: true, ..Options::default() });
        (left, report.map(|report| faults(func, trial, report)).unwrap_or_default())
    }
}

impl Executor {
    /// What a launch leaves, and what there is to say of it.
    fn ran(&self, func: &Function, trial: &Trial, options: Options) -> (Left, Option<RunReport>) {
        let Some(done) = run(func, trial, options) else { return (Left::default(), None) };
        let memory = done.bytes().map(|left| {
            let buffers = trial.buffers.iter().zip(&left);
            buffers.map(|(buffer, bytes)| numbers(buffer.scalar, bytes)).collect()
        });
        (Left { memory, work: done.report.work }, Some(done.report))
    }
}

/// What goes wrong in a launch that was sanitized.
fn faults(func: &Function, trial: &Trial, report: RunReport) -> Vec<Fault> {
    let faults = report.findings.into_iter().filter_map(|finding| {
        let kind = match finding.kind {
            FindingKind::OutOfBounds => FaultKind::Outside,
            FindingKind::Race if finding.both_store => FaultKind::Stores,
            FindingKind::Race => FaultKind::Reads,
            _ => return None,
        };
        let (loc, program, message) = (finding.loc, finding.program, finding.message);
        Some(Fault { kind, loc, program, message })
    });
    let mut faults: Vec<Fault> = faults.collect();
    // Many a program reads what it then makes nothing of.
    if faults.iter().any(|fault| fault.kind == FaultKind::Reads) && !depends_on_order(func, trial) {
        faults.retain(|fault| fault.kind != FaultKind::Reads);
    }
    faults
}

/// Whether a launch leaves something else where its programs run from the last to the first. Only those of
/// which one reads or stores what another one stores see their order.
fn depends_on_order(func: &Function, trial: &Trial) -> bool {
    let in_order = |backwards| bytes_left(func, trial, Options { backwards, ..Options::default() });
    match (in_order(false), in_order(true)) {
        (Some(forwards), Some(backwards)) => forwards != backwards,
        _ => false,
    }
}

/// The bytes of each buffer after a launch; `None` where its work did not suffice, or it leaves a buffer.
fn bytes_left(func: &Function, trial: &Trial, options: Options) -> Option<Vec<Vec<u8>>> {
    run(func, trial, options)?.bytes()
}

/// A launch that ended.
struct Done {
    buffers: Buffers,
    ids: Vec<BufferId>,
    report: RunReport,
}

impl Done {
    /// The bytes of each buffer; `None` where its work did not suffice, or it leaves a buffer.
    fn bytes(&self) -> Option<Vec<Vec<u8>>> {
        let is_outside = |kind: &FindingKind| matches!(kind, FindingKind::OutOfBounds);
        let is_whole = !self.report.out_of_work
            && !self.report.findings.iter().any(|finding| is_outside(&finding.kind));
        is_whole.then(|| self.ids.iter().map(|id| self.buffers.bytes(*id)).collect())
    }
}

/// Bytes of the registers of one program; what needs more takes too long for a check.
const MAX_REGISTERS: usize = 1 << 27;

/// Runs a launch; `None` where it needs what only a GPU has, or does not end.
fn run(func: &Function, trial: &Trial, options: Options) -> Option<Done> {
    let kernel = Kernel::compile(func).ok().filter(|kernel| kernel.registers() <= MAX_REGISTERS)?;
    let mut buffers = Buffers::new();
    let added = trial.buffers.iter().map(|buffer| {
        let size = buffer.scalar.bytes() as usize;
        let mut bytes = Vec::with_capacity(buffer.numbers.len() * size);
        for number in &buffer.numbers {
            bytes.extend_from_slice(&encode(buffer.scalar, *number).to_le_bytes()[..size]);
        }
        buffers.add(&*buffer.name, buffer.scalar, &bytes)
    });
    let ids: Vec<BufferId> = added.collect();
    let arg = |arg: &TrialArg| match *arg {
        TrialArg::Int(number) => Arg::Int(number),
        TrialArg::Float(number) => Arg::Float(number),
        TrialArg::Address { buffer, element } => {
            let size = u64::from(trial.buffers[buffer].scalar.bytes());
            Arg::Pointer(buffers.address(ids[buffer]) + element * size)
        }
    };
    let args: Vec<Arg> = trial.args.iter().map(arg).collect();
    let options = Options { work: Some(trial.work), ..options };
    let report = kernel.launch(&mut buffers, &args, trial.grid, &options).ok()?;
    Some(Done { buffers, ids, report })
}

/// The numbers that bytes are.
fn numbers(scalar: Scalar, bytes: &[u8]) -> Vec<f64> {
    let number = |bytes: &[u8]| {
        let mut bits = [0; 8];
        bits[..bytes.len()].copy_from_slice(bytes);
        decode(scalar, u64::from_le_bytes(bits))
    };
    bytes.chunks_exact(scalar.bytes() as usize).map(number).collect()
}
