//! Arguments with which no kernel is launched, where only running the host code shows them.

use super::{AtLaunch, Spot};
use crate::diagnostic::{Code, Diagnostic};
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
    let finding = |launch: &KnownLaunch, fault: &ArgFault| {
        let name = &kernel.function.name;
        let (code, message, spot) = match fault {
            ArgFault::Missing(missing) => {
                (Code::MissingLaunchArgument, missing_text(name, missing), Spot::Call)
            }
            ArgFault::Surplus { given } => {
                (Code::SurplusArgument, surplus_text(name, params.len(), *given), Spot::Call)
            }
            ArgFault::Text(param) => {
                let message = format!("`{param}` is given a string, which a launch does not take");
                let index = params.iter().position(|known| known.name == *param);
                let spot = Spot::Passed(param.clone(), index.unwrap_or(usize::MAX));
                (Code::ArgumentType, message, spot)
            }
        };
        let mut found = Diagnostic::new(code, defined, message)
            .with_related(defined, "the kernel is defined here");
        if let ArgFault::Text(param) = fault {
            found = found
                .with_note(format!("strings are compile-time values: `{param}: tl.constexpr`"));
        }
        found.kernel = Some(name.to_string());
        (found, AtLaunch { site: launch.site, spot, widen: None })
    };
    let faults = spec
        .launches
        .iter()
        .flat_map(|launch| launch.arg_faults.iter().map(move |fault| (launch, fault)));
    faults.map(|(launch, fault)| finding(launch, fault)).collect()
}

/// That a launch of `kernel` lacks arguments for these parameters.
pub(super) fn missing_text(kernel: &str, missing: &[impl AsRef<str>]) -> String {
    let names: Vec<String> = missing.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    let many = if names.len() == 1 { "argument" } else { "arguments" };
    format!("this launch of `{kernel}` lacks the {many} {}", names.join(", "))
}

/// That a launch of `kernel` has too many arguments by position.
pub(super) fn surplus_text(kernel: &str, takes: usize, given: usize) -> String {
    format!("`{kernel}` takes {takes} arguments by position, but this launch gives {given}")
}
