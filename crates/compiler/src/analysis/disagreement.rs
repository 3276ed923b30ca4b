//! Programs that say themselves what is right: a run of the host code computes all numbers, with random ones
//! as one run may draw them and each launch executed on the CPU, and what it compares must agree.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::executed::{Execute, left_by};
use super::failing::finding;
use crate::diagnostic::Diagnostic;
use crate::eval::Rules;
use crate::host::{Launcher, LeftMemory, ObservedLaunch};
use crate::ir::Function;
use crate::project::{ItemRef, Sources};
use crate::source::FileId;
use crate::specialization::{Discovery, PastLaunch, Specialization, executed_launch};

/// Launches that a run executes.
const MAX_LAUNCHES: u32 = 100;

/// Elements that the operations of all launches of a run may go through.
const MAX_WORK: u64 = 1 << 26;

/// The same of one launch.
const MAX_WORK_OF_ONE: u64 = 1 << 25;

/// Findings about what host code of `file` compares after launches, and is not what it must be.
pub fn check_results(
    sources: &dyn Sources,
    rules: Rules,
    discovery: &Discovery<'_>,
    file: FileId,
    executor: &dyn Execute,
) -> Vec<Diagnostic> {
    let begin = || Launches {
        sources,
        rules,
        executor,
        rest: Cell::new(MAX_WORK),
        most: Cell::new(MAX_LAUNCHES),
        lowered: RefCell::default(),
    };
    let failures = discovery.disagreements(file, &|run| run(&begin())).into_iter();
    failures.filter_map(|failure| finding(sources, file, &failure)).collect()
}

/// Executes launches, as long as the work suffices that they may take together.
struct Launches<'a> {
    sources: &'a dyn Sources,
    rules: Rules,
    executor: &'a dyn Execute,
    rest: Cell<u64>,
    /// How many more are executed.
    most: Cell<u32>,
    /// What was lowered so far.
    lowered: RefCell<Vec<Lowered>>,
}

/// What a kernel is lowered to under a specialization; `None` where it has an error.
struct Lowered {
    kernel: ItemRef,
    spec: Specialization,
    function: Option<Rc<Function>>,
}

impl Launches<'_> {
    fn function(&self, launch: &PastLaunch) -> Option<Rc<Function>> {
        let (kernel, spec) = (launch.kernel, &launch.spec);
        let mut lowered = self.lowered.borrow_mut();
        let is_known = |known: &&Lowered| known.kernel == kernel && known.spec == *spec;
        if let Some(known) = lowered.iter().find(is_known) {
            return known.function.clone();
        }
        let function =
            self.rules.lowering(self.sources, kernel).of_other(kernel, spec).map(Rc::new);
        lowered.push(Lowered { kernel, spec: spec.clone(), function: function.clone() });
        function
    }
}

impl Launcher for Launches<'_> {
    fn left(&self, launch: &ObservedLaunch) -> Vec<LeftMemory> {
        self.sources.checkpoint();
        self.most.set(self.most.get().saturating_sub(1));
        if self.most.get() == 0 {
            return Vec::new();
        }
        let work = self.rest.get().min(MAX_WORK_OF_ONE);
        let left = executed_launch(self.sources, launch).and_then(|launch| {
            let func = self.function(&launch)?;
            left_by(&func, &launch.launch, self.executor, work)
        });
        let (left, done) = left.unwrap_or_default();
        self.rest.set(self.rest.get().saturating_sub(done));
        left
    }
}
