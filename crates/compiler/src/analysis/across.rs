//! Findings under several specializations of one kernel, held against each other.

use crate::diagnostic::{Code, Diagnostic};
use crate::hir::Name;
use crate::source::FileRange;
use crate::specialization::{ArgSpec, CHECKED_CLOSELY, KnownLaunch, Specialization};

/// Drops findings that other specializations gainsay. `found[i]` is what was found under `specs[i]`, all
/// of them of one kernel.
pub fn reconcile(specs: &[&Specialization], found: &mut [Vec<Diagnostic>]) {
    pass_over(specs, found);
    keep_spare(specs, found);
    keep_needed_masks(found);
}

/// Drops elements that a configuration of a tuner leaves untouched, where another one has more programs, which reach
/// all: memory has room for as many.
fn keep_spare(specs: &[&Specialization], found: &mut [Vec<Diagnostic>]) {
    let is_left = |finding: &Diagnostic| finding.code == Code::Uncovered;
    let told: Vec<Vec<FileRange>> = found
        .iter()
        .map(|found| found.iter().filter(|it| is_left(it)).map(|it| it.primary).collect())
        .collect();
    for (spec, found) in specs.iter().zip(found).filter(|(spec, _)| spec.config.is_some()) {
        let reaches = |(other, told): (&&Specialization, &Vec<FileRange>), at: &FileRange| {
            other.config.is_some()
                && share_a_launch(other, spec)
                && has_more_programs(other, spec)
                && !told.contains(at)
        };
        let others = || specs.iter().zip(&told).take(CHECKED_CLOSELY);
        found.retain(|it| !is_left(it) || !others().any(|other| reaches(other, &it.primary)));
    }
}

/// Whether a launch of one place has more programs along an axis under one configuration than under the other.
fn has_more_programs(more: &Specialization, fewer: &Specialization) -> bool {
    let is_longer = |a: &KnownLaunch, b: &KnownLaunch| match (a.grid, b.grid) {
        (Some(a), Some(b)) => a.iter().zip(b).any(|(a, b)| *a > b),
        _ => false,
    };
    more.launches.iter().any(|a| fewer.launches.iter().any(|b| a.site == b.site && is_longer(a, b)))
}

/// A mask that is always true for some specializations is there for the others.
fn keep_needed_masks(found: &mut [Vec<Diagnostic>]) {
    let holds = |finding: &Diagnostic| finding.code == Code::MaskAlwaysTrue;
    let checked = found.iter().take(CHECKED_CLOSELY);
    let always: Vec<Vec<_>> = checked
        .map(|found| found.iter().filter(|it| holds(it)).map(|it| it.primary).collect())
        .collect();
    for found in found {
        found.retain(|it| !holds(it) || always.iter().all(|always| always.contains(&it.primary)));
    }
}

/// Drops failed assertions of configurations that Triton's tuner passes over, because another
/// configuration of the same launch keeps them.
fn pass_over(specs: &[&Specialization], found: &mut [Vec<Diagnostic>]) {
    let fails = |found: &Vec<Diagnostic>| found.iter().any(|it| it.code == Code::StaticAssert);
    let kept: Vec<&Specialization> = specs
        .iter()
        .zip(&*found)
        .filter(|(spec, found)| spec.config.is_some() && !fails(found))
        .map(|(spec, _)| *spec)
        .collect();
    for (spec, found) in specs.iter().zip(found) {
        if spec.config.is_some() && kept.iter().any(|kept| share_a_launch(kept, spec)) {
            found.retain(|finding| finding.code != Code::StaticAssert);
        }
    }
}

/// True for configurations of one launch, which a tuner chooses from.
fn share_a_launch(a: &Specialization, b: &Specialization) -> bool {
    let follows = |name: &Name| {
        let mut configs = [a, b].into_iter().filter_map(|spec| spec.config.as_ref());
        configs.any(|config| config.sets.contains(name))
    };
    // A hook gives descriptors the blocks of the configuration.
    let is_descriptor = |arg: &ArgSpec| matches!(arg, ArgSpec::Runtime { signature, .. } if signature.starts_with("tensordesc"));
    let mut given = a.args.iter().filter(|(name, arg)| !follows(name) && !is_descriptor(arg));
    // The same place launches with other arguments as well.
    if !given.all(|(name, arg)| b.args.get(name) == Some(arg)) {
        return false;
    }
    let mut of_a = a.launches.iter().map(|launch| launch.site);
    a.launches.is_empty() && b.launches.is_empty()
        || of_a.any(|site| b.launches.iter().any(|launch| launch.site == site))
}
