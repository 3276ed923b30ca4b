//! Exceptions that host code raises whenever it runs.

use super::misuse::{instead, misuse_text};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::Launch;
use crate::project::Sources;
use crate::source::{FileId, FileRange};
use crate::specialization::{Compared, Discovery, Exception, Failure};

/// Findings about exceptions that the host code of `file` certainly raises.
pub fn check_host(
    sources: &dyn Sources,
    discovery: &Discovery<'_>,
    file: FileId,
) -> Vec<Diagnostic> {
    let failures = discovery.failures(file).into_iter();
    let told = failures.filter(|failure| !is_of_launch(sources, failure));
    told.filter_map(|failure| finding(sources, file, &failure)).collect()
}

/// Whether a launch is given what is not there, which is told of the launch.
fn is_of_launch(sources: &dyn Sources, failure: &Failure) -> bool {
    let Some(module) = sources.module(failure.at.file) else { return false };
    let holds = |launch: &Launch| launch.range.contains_range(failure.at.range);
    matches!(failure.exception, Exception::Misuse(_)) && module.launches.iter().any(holds)
}

/// The finding about an exception, in the file that runs.
fn finding(sources: &dyn Sources, file: FileId, failure: &Failure) -> Option<Diagnostic> {
    let message = match &failure.exception {
        Exception::Assertion(compared) => {
            format!("this assertion does not hold{}", values(sources, compared))
        }
        Exception::Condition(compared) => {
            format!("this condition leads to a `raise`{}", values(sources, compared))
        }
        Exception::Misuse(misuse) => misuse_text(misuse),
    };
    let calls = failure.calls.iter().rev();
    let places = [failure.at].into_iter().chain(calls.copied());
    let shown = places.clone().find(|place| place.file == file)?;
    let mut found = Diagnostic::new(Code::Raises, shown, message);
    let mut last = shown;
    for place in places {
        if !contains(place, last) && !contains(last, place) {
            let text =
                if place == failure.at { "this raises the exception" } else { "in this call" };
            found = found.with_related(place, text);
        }
        last = place;
    }
    if let Exception::Misuse(misuse) = &failure.exception {
        found.notes.extend(instead(misuse));
    }
    Some(found)
}

fn contains(a: FileRange, b: FileRange) -> bool {
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
