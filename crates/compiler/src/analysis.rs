//! Analyses: pure functions from IR to side tables, and to findings.

use crate::diagnostic::{Code, Diagnostic};
use crate::ir::Function;
use crate::project::Sources;
use crate::specialization::{LaunchSite, Specialization};

pub mod axis;
mod bounds;
pub mod elements;
mod identity;
mod launches;
mod masks;
mod race;
mod report;
pub mod solve;
pub mod terms;

pub use launches::check_launches;

/// Which launch a finding belongs to, and how it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtLaunch {
    site: Option<LaunchSite>,
    /// The launch is what must change.
    primary: bool,
}

impl AtLaunch {
    /// The finding with the launch, where that stands now.
    pub fn attach(self, finding: Diagnostic, sources: &dyn Sources) -> Diagnostic {
        let Some(at) = self.site.and_then(|site| site.place(sources)) else { return finding };
        if !self.primary {
            return finding.with_related(at, "in this launch");
        }
        let inside = finding.primary;
        Diagnostic { primary: at, ..finding }.with_related(inside, "this is what the kernel does")
    }
}

/// What is provably wrong with `func`, the tile IR of a kernel under `spec`: its masks whatever the
/// arguments are, and its accesses in the launches that the source shows.
pub fn check(func: &Function, spec: &Specialization) -> Vec<(Diagnostic, AtLaunch)> {
    let mut found = check_accesses(func, spec);
    found.extend(check_masks(func, spec).into_iter().map(|mask| (mask, AtLaunch::default())));
    found
}

/// The part of [`check`] about masks, which takes no launch.
pub fn check_masks(func: &Function, spec: &Specialization) -> Vec<Diagnostic> {
    let mut found = masks::check(func);
    let label = spec.to_string();
    for finding in &mut found {
        finding.specialization = Some(label.clone());
    }
    found
}

/// The part of [`check`] about accesses in known launches.
pub fn check_accesses(func: &Function, spec: &Specialization) -> Vec<(Diagnostic, AtLaunch)> {
    let mut found: Vec<(Diagnostic, AtLaunch)> = Vec::new();
    for launch in &spec.launches {
        let here = bounds::check(func, launch).into_iter().chain(race::check(func, launch));
        for finding in here {
            let known = found
                .iter()
                .any(|(known, _)| known.primary == finding.primary && known.code == finding.code);
            let primary = finding.code == Code::Uncovered;
            if !known {
                found.push((finding, AtLaunch { site: launch.site, primary }));
            }
        }
    }
    let label = spec.to_string();
    for (finding, _) in &mut found {
        finding.specialization = Some(label.clone());
    }
    found
}

/// As [`check`], with the launches in their places. `masks` says whether masks are looked at.
pub fn check_in(
    sources: &dyn Sources,
    func: &Function,
    spec: &Specialization,
    masks: bool,
) -> Vec<Diagnostic> {
    let found = if masks { check(func, spec) } else { check_accesses(func, spec) };
    found.into_iter().map(|(finding, launch)| launch.attach(finding, sources)).collect()
}
