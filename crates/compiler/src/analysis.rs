//! Analyses: pure functions from IR to side tables, and to findings.

use std::borrow::Cow;

use self::elements::{Elements, MAX_BOXES};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::eval::Lowering;
use crate::hir::Name;
use crate::ir::{Function, Opcode};
use crate::passes;
use crate::project::Sources;
use crate::source::FileRange;
use crate::specialization::{Caller, LaunchSite, Specialization};

mod across;
mod allowed;
mod arguments;
pub mod axis;
mod blame;
mod bounds;
mod compiled;
mod disagreement;
pub mod elements;
mod executed;
mod failing;
mod first_block;
mod flow;
mod fractions;
mod fresh;
mod gaps;
mod grid;
mod identity;
mod launches;
mod led;
mod lost;
mod masks;
mod misuse;
mod mixed;
mod narrow;
mod neutral;
mod passed;
mod perf;
mod points;
mod policy;
mod race;
mod replaced;
mod report;
pub mod resources;
pub(crate) mod roots;
mod rows;
mod sized;
mod solve;
mod steps;
mod terms;
mod trials;
mod tuned;
mod unfollowed;
mod untouched;
mod widen;
mod written;

pub use across::reconcile;
pub use blame::blame;
pub use compiled::{CompiledKernel, check_compiled};
pub use disagreement::check_results;
pub use executed::{Execute, Fault, FaultKind, Left, Trial, TrialArg, TrialBuffer};
pub use failing::check_host;
pub use launches::check_launches;
pub use policy::{Lints, settle};
pub use solve::Pause;

/// Which launch a finding belongs to, and how it says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AtLaunch {
    site: Option<LaunchSite>,
    caller: Option<Caller>,
    spot: Spot,
    /// The operand, of the operation at the first related place, whose conversion to 64 bits
    /// resolves the finding.
    widen: Option<usize>,
}

/// Where a finding is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Spot {
    /// In the kernel.
    #[default]
    Kernel,
    /// At the launch, which must change.
    Launch,
    /// At the launch's grid; the kernel has nothing to do with it.
    Grid,
    /// At the launch's argument for the parameter of this name and position.
    Argument(Name, usize),
    /// At the launch; nothing of the kernel has to do with it but what it takes.
    Call,
    /// As [`Spot::Call`], at the argument for the parameter of this name and position.
    Passed(Name, usize),
}

/// A finding of one launch, in terms of the kernel.
struct Finding {
    diagnostic: Diagnostic,
    spot: Spot,
    widen: Option<usize>,
}

impl From<Diagnostic> for Finding {
    fn from(diagnostic: Diagnostic) -> Finding {
        Finding { diagnostic, spot: Spot::Kernel, widen: None }
    }
}

impl AtLaunch {
    /// The finding with the launch, where that stands now.
    pub fn attach(&self, finding: Diagnostic, sources: &dyn Sources) -> Diagnostic {
        let finding = match self.widen {
            Some(operand) => widen::fix(sources, finding, operand),
            None => masks::settle(sources, finding),
        };
        let Some(at) = self.place(sources) else { return finding };
        let inside = finding.primary;
        let finding = match &self.spot {
            Spot::Kernel => finding.with_related(at, "in this launch"),
            Spot::Grid | Spot::Call | Spot::Passed(..) => Diagnostic { primary: at, ..finding },
            Spot::Launch | Spot::Argument(..) => Diagnostic { primary: at, ..finding }
                .with_related(inside, "this is what the kernel does"),
        };
        match self.caller.and_then(|caller| caller.place(sources)) {
            Some((name, at)) => {
                finding.with_related(at, format!("`{name}` runs it with these arguments"))
            }
            None => finding,
        }
    }

    fn place(&self, sources: &dyn Sources) -> Option<FileRange> {
        let site = self.site?;
        match &self.spot {
            Spot::Kernel | Spot::Launch | Spot::Call => site.place(sources),
            Spot::Grid => site.grid_place(sources),
            Spot::Argument(name, index) | Spot::Passed(name, index) => {
                site.argument_place(sources, name, *index).or_else(|| site.place(sources))
            }
        }
    }
}

/// Launches of one of these specializations that are searched in depth.
const LAUNCHES_SEARCHED: usize = 2;

/// Boxes that searches about any other launch may look at: those differ in sizes, by which what is hard to
/// find is hardly ever right or wrong.
const FEW_BOXES: u32 = 2_000;

/// What is provably wrong with `func`, the tile IR of a kernel under `spec`: its masks whatever the
/// arguments are, and its accesses in the launches that the source shows.
///
/// Hints about what it costs are for a GPU of the given compute capability. `pause` is called now
/// and then and may unwind.
pub fn check(
    func: &Function,
    spec: &Specialization,
    capability: u32,
    pause: Pause<'_>,
) -> Vec<(Diagnostic, AtLaunch)> {
    let func = &*prepared(func);
    let mut found = accesses_of(func, spec, LAUNCHES_SEARCHED, pause);
    let everywhere =
        check_masks(func, spec, pause).into_iter().chain(check_costs(func, spec, capability));
    found.extend(everywhere.map(|finding| (finding, AtLaunch::default())));
    found
}

/// The part of [`check`] about costs, which takes no launch.
fn check_costs(func: &Function, spec: &Specialization, capability: u32) -> Vec<Diagnostic> {
    let mut found = perf::check(func, capability);
    let label = spec.to_string();
    for finding in &mut found {
        finding.specialization = Some(label.clone());
    }
    found
}

/// The part of [`check`] about masks and axes, which takes no launch.
fn check_masks(func: &Function, spec: &Specialization, pause: Pause<'_>) -> Vec<Diagnostic> {
    let mut found = rows::check(func);
    found.extend(mixed::check(func, &spec.launches));
    found.extend(masks::check(func, &spec.launches, pause));
    let label = spec.to_string();
    for finding in &mut found {
        finding.specialization = Some(label.clone());
    }
    found
}

/// The part of [`check`] about known launches: accesses, and what the grid and the types of
/// arguments make of them.
pub fn check_accesses(
    func: &Function,
    spec: &Specialization,
    pause: Pause<'_>,
) -> Vec<(Diagnostic, AtLaunch)> {
    accesses_of(&prepared(func), spec, LAUNCHES_SEARCHED, pause)
}

/// The function as analyses look at it.
fn prepared(func: &Function) -> Cow<'_, Function> {
    let counts = func.insts.values().any(|inst| inst.opcode == Opcode::While);
    let mut func = Cow::Borrowed(func);
    for (_, pass) in passes::FOR_ANALYSES.iter().filter(|_| counts) {
        pass(func.to_mut());
    }
    func
}

/// As [`check_accesses`], where so many of the launches are searched in depth.
fn accesses_of(
    func: &Function,
    spec: &Specialization,
    searched: usize,
    pause: Pause<'_>,
) -> Vec<(Diagnostic, AtLaunch)> {
    let mut found: Vec<(Diagnostic, AtLaunch)> = Vec::new();
    let needed = grid::Needed::by(func);
    for (number, launch) in spec.launches.iter().enumerate() {
        let boxes = if number < searched { MAX_BOXES } else { FEW_BOXES };
        let mut here = grid::check(func, &needed, launch);
        let launches = (launch, &*spec.launches);
        if launch.grid.is_some() {
            let mut elements = Elements::of_launch(func, launch, pause).searching(boxes);
            let accesses = elements.accesses();
            here.extend(bounds::check(func, launch, &mut elements, &accesses));
            let is_tuned = spec.config.is_some();
            let reached = (&mut elements, &*accesses);
            let untouched = untouched::check(func, launches, is_tuned, reached, pause);
            here.extend(untouched.or_else(|| untouched::check_led(func, launches, boxes, pause)));
            here.extend(narrow::check(func, launch, &mut elements, &accesses));
            here.extend(fractions::check(func, launch, &elements, &accesses));
            here.extend(lost::check(func, launch, &accesses));
            let steps = steps::check(func, launch, &mut elements, &accesses);
            here.extend(steps.into_iter().map(Finding::from));
            let races = race::check(func, launch, &mut elements, &accesses);
            here.extend(races.into_iter().map(Finding::from));
            if here.iter().all(|found| found.diagnostic.code != Code::Uncovered) {
                let fresh = fresh::check(func, launch, spec, (&mut elements, &accesses));
                let fresh =
                    fresh.or_else(|| gaps::check(func, launch, spec, (&elements, &accesses)));
                here.extend(fresh.map(|found| Finding { spot: Spot::Launch, ..found.into() }));
            }
            let repeated = tuned::repeated(func, launch, spec, (&mut elements, &accesses));
            here.extend(repeated.map(|found| Finding { spot: Spot::Launch, ..found.into() }));
            let costs = perf::check_launch(func, launch, &mut elements, &accesses);
            here.extend(costs.into_iter().map(Finding::from));
        } else if !needed.counts
            && let Some(least) = launch.of_least_grid()
        {
            let mut elements = Elements::of_launch(func, &least, pause).searching(boxes);
            let accesses = elements.accesses();
            here.extend(bounds::check(func, &least, &mut elements, &accesses));
            let races = race::check(func, &least, &mut elements, &accesses);
            here.extend(races.into_iter().map(Finding::from));
            here.extend(untouched::check_led(func, launches, boxes, pause));
        }
        for Finding { mut diagnostic, spot, widen } in here {
            if launch.drawn {
                diagnostic = of_one_draw(diagnostic);
            }
            let at = AtLaunch { site: launch.site, caller: launch.caller, spot, widen };
            let known = found.iter().any(|(known, known_at)| {
                let same_launch = at.spot != Spot::Grid || known_at.site == at.site;
                same_launch && known.primary == diagnostic.primary && known.code == diagnostic.code
            });
            if !known {
                found.push((diagnostic, at));
            }
        }
    }
    let label = spec.to_string();
    for (finding, _) in found.iter_mut().filter(|(_, at)| at.spot != Spot::Grid) {
        finding.specialization = Some(label.clone());
    }
    found
}

/// A finding of a launch that other random numbers, or another machine, would have otherwise.
fn of_one_draw(finding: Diagnostic) -> Diagnostic {
    const ONE_DRAW: &str =
        "host code draws random numbers or asks about the machine: one such run leads to this";
    if finding.notes.iter().any(|note| note == ONE_DRAW) {
        return finding;
    }
    let severity = match finding.severity {
        Severity::Error => Severity::Warning,
        severity => severity,
    };
    Diagnostic { severity, ..finding }.with_note(ONE_DRAW)
}

/// What is provably wrong with the kernel of `lowering` under `spec`: what stops it from compiling,
/// and what analyses of it find. `masks` says whether masks and costs are looked at, and launches are
/// executed.
pub fn check_specialization(
    lowering: &mut Lowering<'_>,
    spec: &Specialization,
    masks: bool,
    executor: &dyn Execute,
) -> Vec<(Diagnostic, AtLaunch)> {
    let mut found = Vec::new();
    if spec.proves_something() {
        found = check_lowered(lowering, spec, masks, executor);
    }
    if masks && spec.is_tried() {
        found.extend(trials::check(lowering, spec));
    }
    found.retain(|(finding, _)| spec.proves(finding.code));
    if masks && !has_wrong_accesses(&found) {
        found.extend(sized::check(spec, lowering));
    }
    let is_drawn = !spec.launches.is_empty() && spec.launches.iter().all(|launch| launch.drawn);
    match is_drawn {
        true => found.into_iter().map(|(finding, at)| (of_one_draw(finding), at)).collect(),
        false => found,
    }
}

/// Whether a finding is about where the programs of a launch read and write.
fn has_wrong_accesses(found: &[(Diagnostic, AtLaunch)]) -> bool {
    found
        .iter()
        .any(|(finding, _)| matches!(finding.code, Code::OutOfBounds | Code::Race | Code::ReadRace))
}

fn check_lowered(
    lowering: &mut Lowering<'_>,
    spec: &Specialization,
    masks: bool,
    executor: &dyn Execute,
) -> Vec<(Diagnostic, AtLaunch)> {
    let (used, lowered) = lowering.check(spec);
    let sources = lowering.sources();
    let mut found = blame(sources, lowering.rules(), lowering.at(), spec, &lowered);
    // Of arguments other than those of the launch nothing is proved.
    let Some(func) = lowered.function.filter(|_| used.args == spec.args) else { return found };
    let pause = || sources.checkpoint();
    found.extend(match masks {
        true => check(&func, spec, sources.capability(), &pause),
        false => accesses_of(&prepared(&func), spec, 0, &pause),
    });
    if masks && !has_wrong_accesses(&found) {
        found.extend(executed::check(&func, spec, lowering, executor));
    }
    found
}
