//! Passes over tile IR, one per file, and their order.

mod canonicalize;
mod count_loops;
mod cse;
mod dce;
mod hints;
mod licm;
mod ranges;

pub use canonicalize::canonicalize;
pub(crate) use count_loops::count_loops;
pub(crate) use cse::eliminate_common_subexpressions;
pub use dce::eliminate_dead_code;
pub(crate) use hints::spread_hints;
pub(crate) use licm::hoist_loop_invariants;

use crate::ir::{Function, VerifyError, verify};

/// A pass by name, as filetests and dumps call it.
pub type Pass = (&'static str, fn(&mut Function));

/// Every pass, in the order in which [`optimize`] runs them.
pub const PIPELINE: &[Pass] = &[
    ("hints", spread_hints),
    ("canonicalize", canonicalize),
    ("cse", eliminate_common_subexpressions),
    ("licm", hoist_loop_invariants),
    ("cse", eliminate_common_subexpressions),
    ("dce", eliminate_dead_code),
];

/// The passes that analyses run before they look at a function, and code generation does not.
pub const FOR_ANALYSES: &[Pass] = &[("count_loops", count_loops)];

/// Runs the whole pipeline and checks the function after each pass.
///
/// # Errors
/// The name of the pass that broke an invariant, and which ones.
pub fn optimize(func: &mut Function) -> Result<(), (&'static str, Vec<VerifyError>)> {
    for (name, pass) in PIPELINE {
        pass(func);
        verify(func).map_err(|errors| (*name, errors))?;
    }
    Ok(())
}
