//! Costs that can be proved and avoided, as hints. Each code of the family stands for a loss that
//! was measured; its explanation says how much.
//!
//! [`check`] needs nothing but tile IR, [`check_launch`] what a launch shows of numbers.
//!
//! Conflicts of the banks of shared memory and tiles that go through shared memory to change threads
//! are not among them: both follow from the choice of layouts, and no change of the source that an
//! author could make against them has been measured.

use super::elements::{Access, Elements};
use crate::diagnostic::Diagnostic;
use crate::ir::Function;

mod access;
mod float64;
mod product;

/// Hints about `func`, a function of tile level, on a GPU of this compute capability.
pub(super) fn check(func: &Function, capability: u32) -> Vec<Diagnostic> {
    let mut found = product::check(func, capability);
    found.extend(float64::check(func));
    found
}

/// Hints about how `func` accesses memory in a launch, by its elements and accesses there.
pub(super) fn check_launch(
    func: &Function,
    elements: &mut Elements<'_>,
    accesses: &[Access],
) -> Vec<Diagnostic> {
    access::check(func, elements, accesses)
}
