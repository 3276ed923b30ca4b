//! Launches that checks execute.

use tile_compiler::analysis::{Execute, Fault, Trial, TrialArg};
use tile_compiler::ir::Function;

use crate::number::encode;
use crate::{Arg, BufferId, Buffers, FindingKind, Kernel, Options};

/// The executor, for checks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Executor;

impl Execute for Executor {
    fn faults(&self, func: &Function, trial: &Trial) -> Vec<Fault> {
        // What only a GPU has is not executed.
        let Ok(kernel) = Kernel::compile(func) else { return Vec::new() };
        let mut buffers = Buffers::new();
        let ids: Vec<BufferId> = trial
            .buffers
            .iter()
            .map(|buffer| {
                let size = buffer.scalar.bytes() as usize;
                let bits = buffer.numbers.iter().map(|number| encode(buffer.scalar, *number));
                let bytes: Vec<u8> =
                    bits.flat_map(|bits| bits.to_le_bytes().into_iter().take(size)).collect();
                buffers.add(&*buffer.name, buffer.scalar, &bytes)
            })
            .collect();
        let arg = |arg: &TrialArg| match *arg {
            TrialArg::Int(number) => Arg::Int(number),
            TrialArg::Float(number) => Arg::Float(number),
            TrialArg::Address { buffer, element } => {
                let size = u64::from(trial.buffers[buffer].scalar.bytes());
                Arg::Pointer(buffers.address(ids[buffer]) + element * size)
            }
        };
        let args: Vec<Arg> = trial.args.iter().map(arg).collect();
        let options = Options { sanitize: true, work: Some(trial.work), ..Options::default() };
        let Ok(report) = kernel.launch(&mut buffers, &args, trial.grid, &options) else {
            return Vec::new();
        };
        let faults = report.findings.into_iter().filter_map(|finding| {
            let is_outside = match finding.kind {
                FindingKind::OutOfBounds => true,
                FindingKind::Race if finding.both_store => false,
                _ => return None,
            };
            let (loc, program, message) = (finding.loc, finding.program, finding.message);
            Some(Fault { is_outside, loc, program, message })
        });
        faults.collect()
    }
}
