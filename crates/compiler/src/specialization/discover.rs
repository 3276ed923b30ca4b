//! Finding what a kernel is compiled for.
//!
//! Scenarios and launches give arguments; autotune configurations multiply them; heuristics,
//! defaults and, last, the guess fill in the rest.

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::bind::Binder;
use super::flags::Flags;
use super::known::{Caller, LaunchSite};
use super::launches::{Begin, HostCode, ShownLaunches};
use super::{ArgSpec, KnownLaunch, Origin, Specialization};
use crate::host::Failure;
use crate::host::entry::assumed::Extent;
use crate::host::launch::MAX_LAUNCHES;
use crate::project::{ItemRef, Sources, kernel_head};
use crate::source::FileId;

/// At most this many specializations of one kernel are listed.
pub(crate) const MAX_SPECIALIZATIONS: usize = 64;

/// Everything that the kernel `at` is compiled for, best known first: flags, scenarios,
/// launches, autotune configurations, the guess. Empty when `at` is no jit function.
///
/// With flags there is one origin only: what is found without them, with their arguments in
/// place of what was found.
pub fn discover(sources: &dyn Sources, at: ItemRef, flags: &Flags) -> Vec<Specialization> {
    Discovery::new(sources, flags).of(at)
}

/// Finds what several kernels are compiled for: host code runs once for all of them.
pub struct Discovery<'a> {
    sources: &'a dyn Sources,
    flags: &'a Flags,
    host_code: HostCode<'a>,
}

impl<'a> Discovery<'a> {
    /// A search that has found nothing yet.
    pub fn new(sources: &'a dyn Sources, flags: &'a Flags) -> Discovery<'a> {
        Discovery { sources, flags, host_code: HostCode::new(sources) }
    }

    /// As [`discover`].
    pub fn of(&self, at: ItemRef) -> Vec<Specialization> {
        bind(self.sources, at, &self.launches(at), self.flags)
    }

    /// The exceptions that the host code of a file certainly raises, if it is about kernels.
    pub fn failures(&self, file: FileId) -> Vec<Failure> {
        self.host_code.failures(file)
    }

    /// What the same code compares after launches and finds wrong, in a run that computes all numbers with what
    /// `begin` gives it to execute launches.
    pub(crate) fn disagreements(&self, file: FileId, begin: &Begin<'_>) -> Vec<Failure> {
        self.host_code.disagreements(file, begin)
    }

    /// What host code launches of the kernel `at`.
    pub fn launches(&self, at: ItemRef) -> ShownLaunches {
        self.host_code.launches(at)
    }
}

/// The specialization for the launch at `site` that the function `by` comes to, if it is one, under sizes that are
/// assumed of the tensors that it gets; of the configuration that `spec` is for.
pub(crate) fn under_sizes(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    (Caller(by), site): (Caller, LaunchSite),
    extent: Extent,
) -> Option<Specialization> {
    let kernel = kernel_head(sources, at)?;
    let launch = HostCode::new(sources).under_sizes(at, (by, site), extent)?;
    let launches = ShownLaunches(vec![(Origin::Launch, launch)]);
    let found = Binder::new(sources, &kernel, &launches).of_launches(&launches);
    let position = |spec: &Specialization| spec.config.as_ref().map(|config| config.position);
    found.into_iter().find(|found| position(found) == position(spec))
}

/// As [`discover`], where `launches` are known to be the kernel's.
pub fn bind(
    sources: &dyn Sources,
    at: ItemRef,
    launches: &ShownLaunches,
    flags: &Flags,
) -> Vec<Specialization> {
    let Some(kernel) = kernel_head(sources, at) else { return Vec::new() };
    let binder = Binder::new(sources, &kernel, launches);
    let mut found = binder.of_launches(launches);
    if found.is_empty() {
        let is_guess = binder.tuning.stated.is_empty();
        let origin = if is_guess { Origin::Guess } else { Origin::Autotune };
        binder.specialize(origin, None, &mut found);
    }
    follow_scenario(&mut found);
    if !flags.is_empty() {
        found.iter_mut().for_each(|spec| overlay(spec, flags));
    }
    found.sort_by_key(|spec| (spec.origin, spec.assumed.len(), spec.is_doubtful()));
    let mut found = merge_equal(found);
    found.truncate(MAX_SPECIALIZATIONS);
    found
}

/// Gives arguments that a launch does not show what the first scenario gives them: element types
/// of pointers, and constants. Its author has said there what the kernel is for.
fn follow_scenario(found: &mut [Specialization]) {
    let Some(scenario) = found.iter().find(|spec| spec.origin == Origin::Scenario) else { return };
    let shown = scenario.clone();
    for spec in found.iter_mut() {
        for name in &spec.assumed {
            let (Some(arg), Some(known)) = (spec.args.get_mut(name), shown.args.get(name)) else {
                continue;
            };
            let constants = [&*arg, known].iter().all(|arg| matches!(arg, ArgSpec::Constexpr(_)));
            let pointers = is_pointer(arg) && is_pointer(known);
            if (constants || pointers) && !shown.assumed.contains(name) {
                *arg = known.clone();
            }
        }
    }
}

fn is_pointer(arg: &ArgSpec) -> bool {
    matches!(arg, ArgSpec::Runtime { signature, .. } if signature.starts_with('*'))
}

impl Specialization {
    /// Notes another launch, of as many as are looked at, whoever comes to it.
    pub(super) fn add_launch(&mut self, launch: KnownLaunch) {
        let is_same =
            |known: &KnownLaunch| *known == KnownLaunch { caller: known.caller, ..launch.clone() };
        if self.launches.len() < MAX_LAUNCHES && !self.launches.iter().any(is_same) {
            self.launches.push(launch);
        }
    }
}

/// Keeps the first of equal specializations, with the launches of all.
fn merge_equal(found: Vec<Specialization>) -> Vec<Specialization> {
    let mut merged: IndexMap<String, Specialization> = IndexMap::new();
    for spec in found {
        match merged.entry(spec.to_string()) {
            Entry::Vacant(entry) => {
                entry.insert(spec);
            }
            Entry::Occupied(mut entry) => {
                // Sizes that go with a guess prove nothing about what is known, but faults do.
                let certain = spec.computes_as_known();
                let shown = spec.launches.into_iter().filter_map(|launch| match certain {
                    true => Some(launch),
                    false => launch.faults_alone(),
                });
                shown.for_each(|launch| entry.get_mut().add_launch(launch));
            }
        }
    }
    merged.into_values().collect()
}

/// Puts the arguments of `flags` in place of what was found.
fn overlay(spec: &mut Specialization, flags: &Flags) {
    for (name, arg) in &mut spec.args {
        if let Some(given) = flags.arg(name) {
            *arg = given.clone();
            spec.assumed.retain(|assumed| assumed != name);
        }
    }
    spec.options.num_warps = flags.num_warps.unwrap_or(spec.options.num_warps);
    spec.options.num_stages = flags.num_stages.unwrap_or(spec.options.num_stages);
    spec.origin = Origin::Flags;
    // Sizes in the text belong to the arguments in the text.
    spec.launches.clear();
}
