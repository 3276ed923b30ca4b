//! Exceptions that host code raises whenever it runs.

use super::launches::tells_keyword;
use super::misuse::{difference_text, instead, misuse_text};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::Launch;
use crate::host::{Compared, Exception, Failure, Mismatch, Misuse};
use crate::project::{Resolution, Sources, launched_by};
use crate::source::{FileId, FileRange};
use crate::specialization::{ArgFault, Discovery, LaunchSite};

/// Findings about exceptions that the host code of `file` certainly raises.
pub fn check_host(
    sources: &dyn Sources,
    discovery: &Discovery<'_>,
    file: FileId,
) -> Vec<Diagnostic> {
    let failures = discovery.failures(file).into_iter();
    let told = failures.filter(|failure| !is_told_of_launch(sources, discovery, failure));
    told.filter_map(|failure| finding(sources, file, &failure)).collect()
}

/// How it is seen that a comparison does not hold.
pub(super) const HOW_SEEN: &str =
    "seen by running this code on the CPU, with random numbers as one run may draw them";

/// Whether a launch is given what is not there, and that is told of the launch.
fn is_told_of_launch(sources: &dyn Sources, discovery: &Discovery<'_>, failure: &Failure) -> bool {
    let Some(module) = sources.module(failure.at.file) else { return false };
    let holds = |launch: &Launch| launch.range.contains_range(failure.at.range);
    let is_misuse = matches!(failure.exception, Exception::Misuse(_));
    let Some(index) = module.launches.iter().position(holds).filter(|_| is_misuse) else {
        return false;
    };
    let launch = &module.launches[index];
    let kernel = launched_by(sources, failure.at.file, &module, launch);
    let Resolution::Jit(kernel) = kernel else { return false };
    let site = LaunchSite { file: failure.at.file, index: index as u32 };
    let is_told =
        |fault: &ArgFault| matches!(fault, ArgFault::Misuse(..) | ArgFault::GridMisuse(_));
    let specs = discovery.of(kernel);
    let mut launches = specs.iter().flat_map(|spec| &spec.launches);
    launches.any(|launch| launch.site == Some(site) && launch.arg_faults.iter().any(is_told))
}

/// The finding about an exception, in the file that runs.
pub(super) fn finding(
    sources: &dyn Sources,
    file: FileId,
    failure: &Failure,
) -> Option<Diagnostic> {
    if let Exception::Misuse(Misuse::Arguments { fault: Mismatch::NoParameter(_), .. }) =
        &failure.exception
        && tells_keyword(sources, failure.at)
    {
        return None;
    }
    if is_one_of_several(sources, failure) {
        return None;
    }
    let message = match &failure.exception {
        Exception::Assertion(compared) => {
            format!("this assertion does not hold{}", values(sources, compared))
        }
        Exception::Condition(compared) => {
            format!("this condition leads to a `raise`{}", values(sources, compared))
        }
        Exception::Disagreement(compared, difference) => {
            let difference = difference.as_deref().map(difference_text);
            match difference {
                Some(difference) => {
                    format!("what kernels leave is not what it must be: {difference}")
                }
                None => {
                    format!(
                        "what kernels leave is not what it must be{}",
                        values(sources, compared)
                    )
                }
            }
        }
        Exception::Misuse(misuse) => misuse_text(misuse),
    };
    let calls = failure.calls.iter().rev();
    let places = [failure.at].into_iter().chain(calls.copied());
    let shown = places.clone().find(|place| place.file == file)?;
    let is_disagreement = matches!(failure.exception, Exception::Disagreement(..));
    let code = if is_disagreement { Code::WrongResult } else { Code::Raises };
    let mut found = Diagnostic::new(code, shown, message);
    let mut last = shown;
    for place in places {
        if !contains(place, last) && !contains(last, place) {
            let text =
                if place == failure.at { "this raises the exception" } else { "in this call" };
            found = found.with_related(place, text);
        }
        last = place;
    }
    if !failure.case.is_empty() {
        let values = failure.case.iter().map(|(name, value)| format!("`{name}` = {value}"));
        found.notes.push(format!("in its run with {}", values.collect::<Vec<_>>().join(", ")));
    }
    if is_disagreement {
        found.notes.push(HOW_SEEN.to_owned());
    }
    if let Exception::Misuse(misuse) = &failure.exception {
        found.notes.extend(instead(misuse));
    }
    Some(found)
}

/// Whether a call is refused by one of several functions that branches of its file bind to the name.
fn is_one_of_several(sources: &dyn Sources, failure: &Failure) -> bool {
    let Exception::Misuse(Misuse::Arguments { .. } | Misuse::ArgumentCount { .. }) =
        failure.exception
    else {
        return false;
    };
    let file = failure.at.file;
    let (Some(text), Some(module)) = (sources.text(file), sources.module(file)) else {
        return false;
    };
    let call = text.get(failure.at.range.start as usize..).unwrap_or_default();
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name = call.find(|letter| !is_part(letter)).map_or(call, |end| &call[..end]);
    module.binds_again(name)
}

/// Whether a range holds another.
pub(super) fn contains(a: FileRange, b: FileRange) -> bool {
    a.file == b.file && a.range.contains_range(b.range)
}

/// What the sides of a comparison are.
fn values(sources: &dyn Sources, compared: &[Compared]) -> String {
    let side = |Compared { at, value }: &Compared| {
        let text = sources.text(at.file)?;
        let side = text.get(at.range.start as usize..at.range.end as usize)?;
        (!side.contains('\n')).then(|| format!("`{side}` is {value}"))
    };
    let sides: Vec<String> = compared.iter().filter_map(side).collect();
    match sides.as_slice() {
        [] => String::new(),
        sides => format!(": {}", sides.join(", ")),
    }
}
