//! Arguments with which a kernel does not compile although it does with others: the mistake is the
//! launch's.

use super::{AtLaunch, Spot, passed};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::eval::{Culprit, LowerResult, Rules};
use crate::project::{self, ItemRef, Sources};
use crate::specialization::{ArgSpec, ConstArg, Specialization};

/// What lowering the kernel at `at` under `spec` found, each finding with the
/// launch to which it belongs. An error that the kind of one argument alone causes, a number where
/// there should be an address or a float where there should be an integer, is one of the launches
/// that pass it. Where only the width or the element type differs, the kernel's author may as well
/// have forgotten a conversion: then the error stays where it is.
pub fn blame(
    sources: &dyn Sources,
    rules: Rules,
    at: ItemRef,
    spec: &Specialization,
    lowered: &LowerResult,
) -> Vec<(Diagnostic, AtLaunch)> {
    let passed = passed::check(sources, at, spec);
    if !passed.is_empty() {
        return passed;
    }
    let plain = || {
        let found = lowered.diagnostics.iter().cloned();
        found.map(|found| (found, AtLaunch::default())).collect()
    };
    let Some(error) = first_error(lowered).filter(|_| spec.is_certain()) else { return plain() };
    let sites: Vec<_> = spec.launches.iter().filter_map(|launch| launch.site).collect();
    if sites.is_empty() {
        return plain();
    }
    let culprit = rules.culprit(sources, at, spec, lowered);
    let Some(culprit) = culprit.filter(|culprit| is_other_kind(culprit, error)) else {
        return plain();
    };
    let Some(function) = project::function(sources, at) else { return plain() };
    let index = function.params.iter().position(|param| param.name == culprit.name);
    let Some(index) = index else { return plain() };
    let kernel = &*function.name;
    let Culprit { name, given, works } = culprit;
    let [given, works] = [given, works].map(|arg| plain_text(&arg));
    let message = format!(
        "`{name}` is passed as `{given}`, with which `{kernel}` does not compile; with `{works}` it would"
    );
    let mut found = Diagnostic::new(Code::ArgumentType, error.primary, message);
    found.kernel = Some(kernel.to_owned());
    found.specialization = error.specialization.clone();
    let found = found.with_note(format!("with `{given}`, it says: {}", error.message));
    let at = |site| AtLaunch {
        site: Some(site),
        caller: None,
        spot: Spot::Argument(name.clone(), index),
        widen: None,
    };
    let others = lowered.diagnostics.iter().filter(|found| found.severity != Severity::Error);
    let others = others.map(|found| (found.clone(), AtLaunch::default()));
    sites.into_iter().map(|site| (found.clone(), at(site))).chain(others).collect()
}

/// An argument without what is known of its divisors.
fn plain_text(arg: &ArgSpec) -> String {
    match arg {
        ArgSpec::Runtime { signature, .. } => signature.to_string(),
        arg => arg.to_string(),
    }
}

/// What an argument is, whatever its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgKind {
    Pointer,
    Descriptor,
    Integer,
    Float,
    Other,
}

fn kind(arg: &ArgSpec) -> ArgKind {
    match arg {
        ArgSpec::Runtime { signature, .. } => match signature.as_bytes() {
            [b'*', ..] => ArgKind::Pointer,
            [b'i' | b'u', ..] => ArgKind::Integer,
            [b'f' | b'b', ..] => ArgKind::Float,
            _ => ArgKind::Descriptor,
        },
        ArgSpec::Constexpr(ConstArg::Int(_) | ConstArg::Bool(_)) => ArgKind::Integer,
        ArgSpec::Constexpr(ConstArg::Float(_)) => ArgKind::Float,
        ArgSpec::Constexpr(_) | ArgSpec::Tuple(_) => ArgKind::Other,
    }
}

/// Whether an argument is of another kind than what would do. An address that cannot be stored as a
/// number is one that the kernel forgot to load from, and an integer does for a float.
fn is_other_kind(culprit: &Culprit, error: &Diagnostic) -> bool {
    let (given, works) = (kind(&culprit.given), kind(&culprit.works));
    let unloaded = given == ArgKind::Pointer && error.code == Code::BadCast;
    let widened = (given, works) == (ArgKind::Integer, ArgKind::Float);
    given != works && !unloaded && !widened
}

/// The first error, unless it is this compiler that does not understand the kernel.
fn first_error(lowered: &LowerResult) -> Option<&Diagnostic> {
    let foreign = |found: &&Diagnostic| found.code == Code::NotUnderstood;
    if lowered.function.is_some() || lowered.diagnostics.iter().any(|found| foreign(&found)) {
        return None;
    }
    lowered.diagnostics.iter().find(|found| found.severity == Severity::Error)
}
