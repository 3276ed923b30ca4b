//! What is wrong with a launch of which nobody shows sizes, under sizes that are assumed.
//!
//! The function that launches is run with tensors whose axes are all of one length. Programs that write to one
//! place are told of where there are several of them, also where one of the tensors is larger than the others;
//! accesses past the end of memory, where they are with short axes as well.

use super::elements::Elements;
use super::{AtLaunch, FEW_BOXES, Finding, bounds, prepared, race};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::eval::Lowering;
use crate::host::entry::assumed::Extent;
use crate::specialization::{Caller, KnownLaunch, LaunchSite, Specialization, under_sizes};

/// Tensors of which each is taken to be larger than the others once.
const LARGER: usize = 3;

/// Findings about a launch under `spec` that no assumed sizes leave out.
pub(super) fn check(
    spec: &Specialization,
    lowering: &mut Lowering<'_>,
) -> Vec<(Diagnostic, AtLaunch)> {
    let open =
        spec.launches.iter().find_map(|launch| Some((launch, launch.open_sizes?, launch.site?)));
    let Some((launch, by, site)) = open else { return Vec::new() };
    let mut under = |extent| found_under(spec, (by, site), extent, lowering);
    let Some((assumed, mut found)) = under(Extent::Long) else { return Vec::new() };
    if found.iter().any(|finding| finding.diagnostic.code == Code::OutOfBounds) {
        let short = under(Extent::Short).map(|(_, found)| found).unwrap_or_default();
        found.retain(|finding| finding.diagnostic.code == Code::Race || is_among(&short, finding));
    }
    for position in 0..LARGER {
        if !found.is_empty()
            && let Some((_, others)) = under(Extent::LongWithLonger(position))
        {
            found.retain(|finding| is_among(&others, finding));
        }
    }
    found.into_iter().map(|finding| assuming(finding, &assumed, launch)).collect()
}

fn is_among(found: &[Finding], wanted: &Finding) -> bool {
    found.iter().any(|known| {
        known.diagnostic.code == wanted.diagnostic.code
            && known.diagnostic.primary == wanted.diagnostic.primary
    })
}

/// What is assumed, and what is found under it; `None` where the kernel or the grid does not follow from it.
fn found_under(
    spec: &Specialization,
    launched: (Caller, LaunchSite),
    extent: Extent,
    lowering: &mut Lowering<'_>,
) -> Option<(String, Vec<Finding>)> {
    let sources = lowering.sources();
    let sized = under_sizes(sources, lowering.at(), spec, launched, extent)?;
    let launch = sized.launches.first().filter(|launch| launch.grid.is_some())?;
    let (used, lowered) = lowering.check(&sized);
    let func = lowered.function.filter(|_| used.args == sized.args)?;
    let func = prepared(&func);
    let pause = || sources.checkpoint();
    let mut elements = Elements::of_launch(&func, launch, &pause).searching(FEW_BOXES);
    let accesses = elements.accesses();
    let mut found = bounds::check(&func, launch, &mut elements, &accesses);
    let races = race::check(&func, launch, &mut elements, &accesses);
    found.extend(races.into_iter().map(Finding::from));
    found.retain(|Finding { diagnostic, .. }| {
        matches!(diagnostic.code, Code::OutOfBounds | Code::Race) && sized.proves(diagnostic.code)
    });
    Some((launch.assumed.as_deref()?.into(), found))
}

/// A finding with what it assumes.
fn assuming(finding: Finding, assumed: &str, launch: &KnownLaunch) -> (Diagnostic, AtLaunch) {
    let Finding { diagnostic, spot, widen } = finding;
    let note = format!("nothing shows sizes here; contiguous tensors are assumed: {assumed}");
    let diagnostic = Diagnostic { severity: Severity::Warning, ..diagnostic }.with_note(note);
    (diagnostic, AtLaunch { site: launch.site, caller: launch.caller, spot, widen })
}
