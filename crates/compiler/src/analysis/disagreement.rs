//! Programs that say themselves what is right: a run of the host code computes all numbers, with random ones
//! as one run may draw them and each launch executed on the CPU, and what it compares must agree. What goes
//! wrong in these launches is told as well.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::executed::{self, Execute, FaultKind, Ran, ran};
use super::failing::{HOW_SEEN, contains, finding};
use super::{blame, check_accesses};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::eval::{LowerResult, Rules};
use crate::host::{Contents, Launcher, LeftMemory, ObservedLaunch};
use crate::ir::Function;
use crate::project::{ItemRef, Sources};
use crate::source::{FileId, FileRange};
use crate::specialization::{
    Discovery, KnownArg, KnownLaunch, LaunchSite, PastLaunch, Specialization, executed_launch,
    launched,
};

/// Launches that a run executes.
const MAX_LAUNCHES: u32 = 100;

/// Elements that the operations of one launch may go through, of all launches of a run, and of all runs of a file.
const MAX_WORK_OF_ONE: u64 = 1 << 25;
const MAX_WORK: u64 = 1 << 26;
const MAX_WORK_OF_FILE: u64 = 1 << 29;

/// Numbers of which functions of PyTorch may compute others in a run, and in all runs of a file.
const MAX_EFFORT: u64 = 1 << 25;
const MAX_EFFORT_OF_FILE: u64 = 1 << 28;

/// Errors that need be none elsewhere: of what the compiler does not know, and of what other devices have.
const ELSEWHERE: &[Code] = &[Code::NotUnderstood, Code::UnsupportedDType];

/// What a run may still take, and all runs of its file together.
struct Budget<'a> {
    own: Cell<u64>,
    of_file: &'a Cell<u64>,
}

impl<'a> Budget<'a> {
    fn new(own: u64, of_file: &'a Cell<u64>) -> Budget<'a> {
        Budget { own: Cell::new(own), of_file }
    }

    fn left(&self) -> u64 {
        self.own.get().min(self.of_file.get())
    }

    /// Takes some; whether there was so much.
    fn take(&self, amount: u64) -> bool {
        let suffices = amount <= self.left();
        for rest in [&self.own, self.of_file] {
            rest.set(rest.get().saturating_sub(amount));
        }
        suffices
    }
}

/// Findings about what host code of `file` compares after launches, and is not what it must be, and about
/// launches that leave their memory, or whose programs race.
pub fn check_results(
    sources: &dyn Sources,
    rules: Rules,
    discovery: &Discovery<'_>,
    file: FileId,
    executor: &dyn Execute,
) -> Vec<Diagnostic> {
    let of_file = [Cell::new(MAX_WORK_OF_FILE), Cell::new(MAX_EFFORT_OF_FILE)];
    let begin = || Launches {
        sources,
        rules,
        discovery,
        executor,
        work: Budget::new(MAX_WORK, &of_file[0]),
        effort: Budget::new(MAX_EFFORT, &of_file[1]),
        most: Cell::new(MAX_LAUNCHES),
        lowered: RefCell::default(),
        discovered: RefCell::default(),
        file,
        faulty: RefCell::default(),
    };
    let faulty: RefCell<Vec<Diagnostic>> = RefCell::default();
    let failures = discovery.disagreements(file, &|run| {
        let launches = begin();
        run(&launches);
        faulty.borrow_mut().append(&mut launches.faulty.take());
    });
    let mut found: Vec<Diagnostic> =
        failures.iter().filter_map(|failure| finding(sources, file, failure)).collect();
    for fault in faulty.take() {
        if !found.iter().any(|known| is_same(known, &fault)) {
            found.push(fault);
        }
    }
    found
}

/// Whether two findings tell the same of one place.
fn is_same(a: &Diagnostic, b: &Diagnostic) -> bool {
    a.code == b.code && a.primary == b.primary
}

/// Whether what is wrong with a launch is told with that of a specialization that is known without a run: it is the
/// same launch, or of the same arguments.
fn is_told_of(known: &Specialization, spec: &Specialization) -> bool {
    match spec.launches.iter().find(|launch| is_faulty(launch)) {
        Some(launch) => known.launches.iter().any(|it| is_faulty(it) && it.site == launch.site),
        None => known.proves_something() && known.args == spec.args,
    }
}

/// Whether a launch has arguments that its kernel does not take.
fn is_faulty(launch: &KnownLaunch) -> bool {
    !launch.doubtful && !launch.arg_faults.is_empty()
}

/// Whether a specialization is that of a launch, and has it.
fn has_launch(known: &Specialization, launch: &PastLaunch) -> bool {
    let is_it = |known: &KnownLaunch| {
        known.site == launch.launch.site && known.grid.is_some() && !known.doubtful
    };
    known.args == launch.spec.args && known.launches.iter().any(is_it)
}

/// Executes launches, as long as the work suffices that they may take together.
struct Launches<'a, 'd> {
    sources: &'a dyn Sources,
    rules: Rules,
    discovery: &'a Discovery<'d>,
    executor: &'a dyn Execute,
    /// Elements that operations go through.
    work: Budget<'a>,
    /// Numbers that functions of PyTorch take.
    effort: Budget<'a>,
    /// How many more are executed.
    most: Cell<u32>,
    /// What was lowered so far.
    lowered: RefCell<Vec<Lowered>>,
    /// The file that runs.
    file: FileId,
    /// What kernels are launched with as is known without a run.
    discovered: RefCell<FxHashMap<ItemRef, Rc<[Specialization]>>>,
    /// What went wrong in launches.
    faulty: RefCell<Vec<Diagnostic>>,
}

/// How a run met a launch.
struct Met<'c> {
    /// The calls that lead to it, the outermost first.
    calls: &'c [FileRange],
    /// Whether it may be that only this run has tensors that lie as its own do.
    takes_order: bool,
}

/// What lowering a kernel under a specialization gave.
struct Lowered {
    kernel: ItemRef,
    spec: Specialization,
    result: Rc<LowerResult>,
}

impl Launches<'_, '_> {
    fn lowered(&self, launch: &PastLaunch) -> Rc<LowerResult> {
        let (kernel, spec) = (launch.kernel, &launch.spec);
        let mut lowered = self.lowered.borrow_mut();
        let is_known = |known: &&Lowered| known.kernel == kernel && known.spec == *spec;
        if let Some(known) = lowered.iter().find(is_known) {
            return Rc::clone(&known.result);
        }
        let result = Rc::new(self.rules.lower_kernel(self.sources, kernel, spec));
        lowered.push(Lowered { kernel, spec: spec.clone(), result: Rc::clone(&result) });
        result
    }
}

impl Launches<'_, '_> {
    /// Executes a launch.
    fn run(&self, launch: &PastLaunch, met: &Met<'_>, work: u64) -> Option<Ran> {
        let lowered = self.lowered(launch);
        let Some(func) = &lowered.function else {
            self.refuse(launch.kernel, &launch.in_launch(), &lowered, met);
            return None;
        };
        let ran = ran(func, &launch.launch, self.executor, work)?;
        // Of races of a launch one is enough.
        let race = ran.faults.iter().find(|fault| fault.kind != FaultKind::Outside);
        let outside = ran.faults.iter().filter(|fault| fault.kind == FaultKind::Outside);
        for fault in outside.chain(race) {
            let finding = executed::finding(func, &launch.launch, &launch.spec, fault);
            let site = launch.launch.site;
            let Some(placed) = self.placed(finding.clone(), site, met.calls) else { continue };
            if self.is_new(func, launch, met, &finding) {
                self.note(placed);
            }
        }
        Some(ran)
    }

    /// Tells why a kernel is not launched under a specialization, where the launch is not told of without a run.
    fn refuse(&self, kernel: ItemRef, spec: &Specialization, lowered: &LowerResult, met: &Met<'_>) {
        let is_told = |known: &Specialization| is_told_of(known, spec);
        if met.takes_order || self.without_run(kernel).iter().any(is_told) {
            return;
        }
        let found = blame(self.sources, self.rules, kernel, spec, lowered).into_iter();
        let errors = found.filter(|(found, _)| {
            let is_passed_over = spec.config.is_some() && found.code == Code::StaticAssert;
            let is_mistake = found.severity == Severity::Error && !ELSEWHERE.contains(&found.code);
            is_mistake && spec.proves(found.code) && !is_passed_over
        });
        let site = spec.launches.iter().find_map(|launch| launch.site);
        for (found, at) in errors {
            let found = at.attach(found, self.sources);
            if !self.is_always_told(&found)
                && let Some(placed) = self.placed(found, site, met.calls)
            {
                self.note(placed);
            }
        }
    }

    /// What a kernel is launched with as is known without a run.
    fn without_run(&self, kernel: ItemRef) -> Rc<[Specialization]> {
        let mut discovered = self.discovered.borrow_mut();
        let known = discovered.entry(kernel).or_insert_with(|| self.discovery.of(kernel).into());
        Rc::clone(known)
    }

    /// Whether a finding holds whatever a kernel is launched with: it is told where it is then.
    fn is_always_told(&self, finding: &Diagnostic) -> bool {
        let file = self.rules.infer_file(self.sources, finding.primary.file);
        let mut told = file.kernels.iter().flat_map(|kernel| &kernel.diagnostics);
        told.any(|told| is_same(told, finding))
    }

    fn note(&self, finding: Diagnostic) {
        let mut faulty = self.faulty.borrow_mut();
        if !faulty.iter().any(|known| is_same(known, &finding)) {
            faulty.push(finding);
        }
    }

    /// Whether only the run shows a finding of a launch: one that is known without a run is analysed without
    /// numbers as well, and what that tells is shown where the kernel is. Of others nothing is shown where it may
    /// follow from how the run's tensors lie.
    fn is_new(
        &self,
        func: &Function,
        launch: &PastLaunch,
        met: &Met<'_>,
        finding: &Diagnostic,
    ) -> bool {
        if !self.without_run(launch.kernel).iter().any(|known| has_launch(known, launch)) {
            return !met.takes_order;
        }
        let mut known = launch.launch.clone();
        for (_, arg) in &mut known.args {
            if let KnownArg::Buffer(buffer) = arg {
                buffer.contents = Contents::Unknown;
            }
        }
        let spec = Specialization { launches: vec![known], ..launch.spec.clone() };
        let pause = || self.sources.checkpoint();
        let told = check_accesses(func, &spec, &pause);
        !told.iter().any(|(told, _)| is_same(told, finding))
    }

    /// A finding in a kernel, in the file that runs: at what leads to the launch there, where the kernel is in
    /// another one.
    fn placed(
        &self,
        finding: Diagnostic,
        site: Option<LaunchSite>,
        calls: &[FileRange],
    ) -> Option<Diagnostic> {
        let site = site.and_then(|site| site.place(self.sources));
        let finding = finding.with_note(HOW_SEEN);
        if finding.primary.file == self.file {
            return Some(match site.filter(|site| !contains(*site, finding.primary)) {
                Some(site) => finding.with_related(site, "in this launch"),
                None => finding,
            });
        }
        let mut places = site.into_iter().chain(calls.iter().rev().copied());
        let primary = places.find(|place| place.file == self.file)?;
        let inside = finding.primary;
        let finding = Diagnostic { primary, ..finding };
        Some(finding.with_related(inside, "this is what the kernel does"))
    }
}

impl Launcher for Launches<'_, '_> {
    fn left(&self, launch: &ObservedLaunch, calls: &[FileRange]) -> Vec<LeftMemory> {
        self.sources.checkpoint();
        self.most.set(self.most.get().saturating_sub(1));
        if self.most.get() == 0 {
            return Vec::new();
        }
        let work = self.work.left().min(MAX_WORK_OF_ONE);
        let met = Met { calls, takes_order: launch.takes_order };
        let ran = launched(self.sources, launch).and_then(|(kernel, spec)| {
            if spec.launches.iter().any(is_faulty) {
                self.refuse(kernel, &spec, &LowerResult::default(), &met);
            }
            let launch = executed_launch(self.sources, launch, (kernel, spec))?;
            self.run(&launch, &met, work)
        });
        let ran = ran.unwrap_or_default();
        self.work.take(ran.work);
        ran.memory
    }

    fn allows(&self, effort: u64) -> bool {
        self.effort.take(effort)
    }
}
