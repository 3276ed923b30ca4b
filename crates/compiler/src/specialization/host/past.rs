//! Which launches left memory as it is: what it holds follows from running them in order.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::launch::ObservedLaunch;
use super::value::Value;
use super::{Host, may_lead};
use crate::hir::Name;
use crate::project::Resolution;

/// Launches of one run that are kept; what later ones leave is not known.
const MAX_LAUNCHES: usize = 24;

/// By allocation the launch that left it as it is, by its position among others.
type Left = Vec<(u32, usize)>;

/// A launch that was met before, with what left the memory that it was given.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::specialization) struct Earlier {
    /// The launch, without what was before.
    pub(in crate::specialization) launch: Arc<ObservedLaunch>,
    /// By which of those before.
    pub(in crate::specialization) left: Left,
}

/// The launches from which it follows what memory holds that a launch is given, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::specialization) struct Before {
    /// The launches.
    pub(in crate::specialization) launches: Vec<Earlier>,
    /// By which of them.
    pub(in crate::specialization) left: Left,
}

/// The launches met so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Past {
    launches: Vec<Earlier>,
    /// By allocation the launch that wrote to it last, if nothing else may have since.
    left: FxHashMap<u32, usize>,
}

impl Past {
    /// Something else may have written to these allocations.
    pub(super) fn forget(&mut self, allocations: &[u32]) {
        allocations.iter().for_each(|id| {
            self.left.remove(id);
        });
    }

    /// Notes a launch that certainly happens, and writes to no others than these allocations.
    fn push(&mut self, launch: &ObservedLaunch, allocations: &[u32]) {
        if self.launches.len() == MAX_LAUNCHES {
            return self.forget(allocations);
        }
        let left = self.left_of(&launch.args);
        let launch = ObservedLaunch { before: Arc::default(), ..launch.clone() };
        self.launches.push(Earlier { launch: Arc::new(launch), left });
        let at = self.launches.len() - 1;
        self.left.extend(allocations.iter().map(|id| (*id, at)));
    }

    fn left_of(&self, args: &[(Option<Name>, Value)]) -> Left {
        let ids = args.iter().flat_map(|(_, value)| value.allocations());
        ids.filter_map(|id| Some((id, *self.left.get(&id)?))).collect()
    }

    /// What was before a launch with these arguments, if launches left memory that may decide what a
    /// kernel does.
    fn before(&self, args: &[(Option<Name>, Value)]) -> Before {
        let leads = |(_, value): &(Option<Name>, Value)| {
            let Value::Tensor(tensor) = value else { return false };
            let is_left = || tensor.allocation().is_some_and(|id| self.left.contains_key(&id));
            tensor.dtype.as_deref().is_some_and(may_lead) && is_left()
        };
        if !args.iter().any(leads) {
            return Before::default();
        }
        let left = self.left_of(args);
        let mut wanted: Vec<usize> = Vec::new();
        let mut pending: Vec<usize> = left.iter().map(|(_, at)| *at).collect();
        while let Some(at) = pending.pop() {
            if !wanted.contains(&at) {
                wanted.push(at);
                pending.extend(self.launches[at].left.iter().map(|(_, at)| *at));
            }
        }
        wanted.sort_unstable();
        let numbered = |left: &Left| -> Left {
            let place = |at: &usize| wanted.binary_search(at).ok();
            left.iter().filter_map(|(id, at)| Some((*id, place(at)?))).collect()
        };
        let launches = wanted.iter().map(|at| {
            let Earlier { launch, left } = &self.launches[*at];
            Earlier { launch: Arc::clone(launch), left: numbered(left) }
        });
        Before { left: numbered(&left), launches: launches.collect() }
    }
}

impl Host<'_> {
    /// What was before a launch with these arguments.
    pub(super) fn before(&self, args: &[(Option<Name>, Value)]) -> Arc<Before> {
        Arc::new(self.past.before(args))
    }

    /// Notes that a launch may have written to these allocations: `one` where it is not one of several.
    pub(super) fn note_launch(&mut self, one: Option<&ObservedLaunch>, allocations: &[u32]) {
        let is_of_kernel =
            |launch: &ObservedLaunch| matches!(launch.kernel, Value::Named(Resolution::Jit(_)));
        let is_certain =
            |launch: &&ObservedLaunch| launch.complete && !launch.doubtful && is_of_kernel(launch);
        match one.filter(is_certain).filter(|_| self.doubt.is_sure()) {
            Some(launch) => self.past.push(launch, allocations),
            None => self.past.forget(allocations),
        }
    }
}
