//! Arguments with which no kernel is launched, where only running the host code shows them.

use super::misuse::{instead, misuse_text};
use super::{AtLaunch, Spot};
use crate::builtins::LAUNCH_OPTIONS;
use crate::diagnostic::{Code, Diagnostic, Severity, suggest_in_any_case};
use crate::host::Misuse;
use crate::ir::no_power_of_two;
use crate::project::{ItemRef, Sources, kernel};
use crate::source::FileRange;
use crate::specialization::{ArgFault, KnownLaunch, Specialization};

/// Findings about what the launches under `spec` pass to the kernel at `at`.
pub(super) fn check(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
) -> Vec<(Diagnostic, AtLaunch)> {
    if spec.launches.iter().all(|launch| launch.arg_faults.is_empty()) {
        return Vec::new();
    }
    let Some(kernel) = kernel(sources, at) else { return Vec::new() };
    let defined = FileRange { file: at.file, range: kernel.item.name_range };
    let params = &kernel.function.params;
    let passed = |param: &str| {
        let index = params.iter().position(|known| *known.name == *param);
        Spot::Passed(param.into(), index.unwrap_or(usize::MAX))
    };
    let finding = |launch: &KnownLaunch, fault: &ArgFault| {
        let name = &kernel.function.name;
        let (code, message, spot) = match fault {
            ArgFault::Missing(missing) => {
                (Code::MissingLaunchArgument, missing_text(name, missing), Spot::Call)
            }
            ArgFault::Surplus { given } => {
                (Code::SurplusArgument, surplus_text(name, params.len(), *given), Spot::Call)
            }
            ArgFault::Repeated(param) => {
                (Code::RepeatedArgument, repeated_text(param), passed(param))
            }
            ArgFault::Unknown(keyword) => {
                (Code::UnknownArgument, unknown_text(name, keyword), passed(keyword))
            }
            ArgFault::Untyped(param, what) => {
                let message = format!("`{param}` is given {what}, which a launch does not take");
                (Code::ArgumentType, message, passed(param))
            }
            ArgFault::NoNumber(param, what) => {
                let message =
                    format!("`{param}` is a number by its annotation, but is given {what}");
                (Code::ArgumentType, message, passed(param))
            }
            ArgFault::TensorExtent(param) => {
                let message = format!("`{param}` is an extent of tiles, but is given a tensor");
                (Code::ArgumentType, message, passed(param))
            }
            ArgFault::TensorNumber(param) => {
                let message = format!("`{param}` is a compile-time number, but is given a tensor");
                (Code::ArgumentType, message, passed(param))
            }
            ArgFault::Elements(param, dtype) => {
                let message = format!(
                    "`{param}` is given a tensor of `torch.{dtype}`, for which Triton has no type"
                );
                (Code::ArgumentType, message, passed(param))
            }
            ArgFault::Misuse(param, misuse) => {
                let message = taken_text(&format!("`{param}` is given"), misuse);
                (Code::ArgumentType, message, passed(param))
            }
            ArgFault::Heuristic(param, misuse) => {
                let what = misuse_text(misuse);
                let message = format!("the heuristic for `{param}` raises an exception: {what}");
                (Code::ArgumentType, message, Spot::Call)
            }
            ArgFault::GridMisuse(misuse) => {
                (Code::GridShape, taken_text("the grid is computed from", misuse), Spot::Grid)
            }
            ArgFault::Warps(warps) => {
                let message = no_power_of_two("num_warps", *warps).unwrap_or_default();
                (Code::WarpCount, message, passed("num_warps"))
            }
        };
        let mut found = Diagnostic::new(code, defined, message)
            .with_related(defined, "the kernel is defined here");
        if let ArgFault::Untyped(param, what) = fault {
            found =
                found.with_note(format!("{what} is a compile-time value: `{param}: tl.constexpr`"));
        }
        if let ArgFault::Elements(..) = fault {
            found = found.with_note("`torch.view_as_real` shows both parts as numbers");
        }
        if let ArgFault::Misuse(_, misuse) | ArgFault::GridMisuse(misuse) = fault {
            found.notes.extend(instead(misuse));
        }
        if let ArgFault::Unknown(keyword) = fault
            && similar(keyword, params.iter().map(|param| &*param.name)).is_none()
        {
            found.severity = Severity::Warning;
        }
        found.kernel = Some(name.to_string());
        (found, AtLaunch { site: launch.site, caller: launch.caller, spot, widen: None })
    };
    let faults = spec
        .launches
        .iter()
        .flat_map(|launch| launch.arg_faults.iter().map(move |fault| (launch, fault)));
    faults.map(|(launch, fault)| finding(launch, fault)).collect()
}

/// That `what` takes a value that a tensor or a tuple does not have.
fn taken_text(what: &str, misuse: &Misuse) -> String {
    format!("{what} what is not there: {}", misuse_text(misuse))
}

/// That a launch of `kernel` lacks arguments for these parameters.
pub(super) fn missing_text(kernel: &str, missing: &[impl AsRef<str>]) -> String {
    let names: Vec<String> = missing.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    let many = if names.len() == 1 { "argument" } else { "arguments" };
    format!("this launch of `{kernel}` lacks the {many} {}", names.join(", "))
}

/// That `kernel` has no parameter of the name of a keyword.
pub(super) fn unknown_text(kernel: &str, keyword: &str) -> String {
    format!("`{kernel}` has no parameter `{keyword}`")
}

/// The parameter or option that the keyword of a launch may be meant for. What is like none may be an option of a
/// back end or a version that is not known here.
pub(super) fn similar<'n>(keyword: &str, params: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    suggest_in_any_case(keyword, params.chain(LAUNCH_OPTIONS[..4].iter().copied()))
}

/// That a parameter is given by name although it is given already, by position or by name.
pub(super) fn repeated_text(param: &str) -> String {
    format!("`{param}` is given more than once")
}

/// That a launch of `kernel` has too many arguments by position.
pub(super) fn surplus_text(kernel: &str, takes: usize, given: usize) -> String {
    format!("`{kernel}` takes {takes} arguments by position, but this launch gives {given}")
}
