//! Which argument stands in the way of a kernel that lowers otherwise.

use super::kernel::{LowerResult, try_lowering};
use super::repair::mentioned;
use crate::builtins::TritonVersion;
use crate::diagnostic::Severity;
use crate::hir::Name;
use crate::project::{self, ItemRef, Sources};
use crate::specialization::{ArgSpec, ConstArg, Specialization, alternatives};

/// Lowerings tried for one failure.
const MAX_TRIALS: usize = 12;

/// An argument with which a kernel does not lower, and one with which it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    /// The parameter.
    pub name: Name,
    /// What is passed.
    pub given: ArgSpec,
    /// What may be passed in its place.
    pub works: ArgSpec,
}

/// Looks for an argument of `spec` that is to blame for `failed`: the kernel `at` lowers when it
/// alone has another type.
pub(super) fn culprit(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    failed: &LowerResult,
    version: TritonVersion,
) -> Option<Culprit> {
    let function = project::function(sources, at)?;
    let error = failed.diagnostics.iter().find(|found| found.severity == Severity::Error)?;
    let trials = mentioned(&function, error.primary).into_iter().flat_map(|name| {
        let others = others(sources, at, spec, &name);
        others.into_iter().map(move |works| (name.clone(), works))
    });
    for (name, works) in trials.take(MAX_TRIALS) {
        let given = spec.args.get(&name)?.clone();
        let mut candidate = spec.clone();
        candidate.args.insert(name.clone(), works.clone());
        if try_lowering(sources, at, &candidate, version).function.is_some() {
            return Some(Culprit { name, given, works });
        }
    }
    None
}

/// Arguments of another kind than what `spec` has for `name`, most likely first.
fn others(sources: &dyn Sources, at: ItemRef, spec: &Specialization, name: &Name) -> Vec<ArgSpec> {
    let is_runtime = |arg: &ArgSpec| matches!(arg, ArgSpec::Runtime { .. });
    match spec.args.get(name) {
        Some(ArgSpec::Runtime { .. } | ArgSpec::Constexpr(ConstArg::None)) => {
            let mut found = alternatives(sources, at, spec, name);
            found.retain(is_runtime);
            found
        }
        // An integer that a division made a float.
        Some(ArgSpec::Constexpr(ConstArg::Float(bits))) => {
            let value = f64::from_bits(*bits);
            let whole = value.fract() == 0.0 && value.abs() < 1e15;
            whole.then_some(ArgSpec::Constexpr(ConstArg::Int(value as i128))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
