//! Results that a launch stores to a copy which nothing holds: `out.float()` in the place of an output.

use super::arguments::buffer;
use super::elements::Access;
use super::report;
use super::unfollowed::Unfollowed;
use super::{Finding, Spot};
use crate::diagnostic::Code;
use crate::ir::{Function, Opcode};
use crate::specialization::KnownLaunch;

/// The first such argument: the kernel stores to its memory, and reads nothing of it.
pub(super) fn check(func: &Function, launch: &KnownLaunch, accesses: &[Access]) -> Option<Finding> {
    let is_read = Unfollowed::of(func, launch, accesses, |opcode| {
        matches!(opcode, Opcode::Load | Opcode::AtomicCas | Opcode::AtomicRmw | Opcode::InlineAsm)
    });
    let of = |access: &Access| func.insts[access.inst].opcode;
    let (lost, position) = accesses.iter().find_map(|access| {
        let mut same_memory = accesses.iter().filter(|other| other.param == access.param);
        let is_lost =
            !is_read.may_reach(access.param) && same_memory.all(|other| of(other) == Opcode::Store);
        let converted = buffer(func, launch, access.param).and_then(|buffer| buffer.converted);
        Some((access, converted.filter(|_| is_lost)?))
    })?;
    let name = &func.params[lost.param].name;
    let message = format!(
        "what is stored to `{name}` is lost: a conversion makes a copy, which nothing holds"
    );
    let loc = func.insts[lost.inst].loc;
    let found = report::finding(func, loc, Code::LostResult, message)
        .with_note("pass a tensor of the type that the kernel is to store, and use that one");
    Some(Finding { spot: Spot::Argument(name.clone(), position), ..found.into() })
}
