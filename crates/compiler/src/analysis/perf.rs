//! Costs that can be proved and avoided, as hints. Each code of the family stands for a loss that
//! was measured; its explanation says how much.
//!
//! [`check`] needs nothing but tile IR, [`check_launch`] what a launch shows of numbers.
//!
//! Conflicts of the banks of shared memory are not among them: layouts of shared memory are derived
//! so that none remain. Nor are most tiles that change threads on their way: `docs/hints.md`
//! lists what changes of the source against them gained.

use super::elements::{Access, Elements};
use crate::diagnostic::Diagnostic;
use crate::ir::Function;
use crate::specialization::KnownLaunch;

mod access;
mod atomics;
mod float64;
mod operand;
mod product;
mod sum_in_loop;

/// Hints about `func`, a function of tile level, on a GPU of this compute capability.
pub(super) fn check(func: &Function, capability: u32) -> Vec<Diagnostic> {
    let mut found = product::check(func, capability);
    found.extend(float64::check(func));
    found.extend(atomics::check(func));
    found.extend(operand::check(func, capability));
    found
}

/// Hints about how `func` accesses memory in a launch, by its elements and accesses there.
pub(super) fn check_launch(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    accesses: &[Access],
) -> Vec<Diagnostic> {
    let mut found = access::check(func, elements, accesses);
    found.extend(sum_in_loop::check(func, launch, elements, accesses));
    found
}
