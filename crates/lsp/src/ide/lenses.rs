//! What stands above kernels and scenarios.

use tile_compiler::source::TextRange;
use tile_worker::ptxas;

use crate::compile::{KernelKey, NO_WORKER, Stage, Status};
use crate::db::{self, Db, Kernel, Labelled, SourceFile, labels};
use crate::ide::resources;

/// One lens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lens {
    /// Where it stands: on the first line of this.
    pub(crate) range: TextRange,
    /// What it says.
    pub(crate) title: String,
    /// What it does.
    pub(crate) action: Action,
    /// The kernel concerned.
    pub(crate) kernel: String,
}

/// What a lens does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Runs every scenario, or one, counted from 1; without scenarios, what host code launches.
    Run(Option<usize>),
    /// Times the scenarios.
    Bench,
    /// Shows the PTX.
    ShowPtx,
    /// Chooses a specialization.
    Select,
    /// Measures every specialization.
    Measure,
    /// Times the autotune configurations.
    Tune,
}

/// Which lenses are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Those that run and time.
    pub(crate) run: bool,
    /// The one that shows PTX.
    pub(crate) ir: bool,
    /// The one that shows resources.
    pub(crate) resources: bool,
    /// The one that shows the active specialization.
    pub(crate) specialization: bool,
}

/// Tells how far the compile of a kernel is.
pub(crate) type StatusOf<'a> = &'a dyn Fn(&KernelKey) -> Option<Status>;

/// The lenses of a file. `status` says how far the compiles of kernels are; there is none where no
/// workers can be had.
pub(crate) fn lenses(
    db: &dyn Db,
    file: SourceFile,
    wanted: Wanted,
    status: Option<StatusOf<'_>>,
) -> Vec<Lens> {
    let mut lenses = Vec::new();
    for kernel in db::kernels(db, file) {
        if wanted.run && kernel.can_run(db) {
            lenses.push(lens(kernel, "▶ Run", Action::Run(None)));
            lenses.push(lens(kernel, "Bench", Action::Bench));
            if kernel.can_tune(db) {
                lenses.push(lens(kernel, "Tune", Action::Tune));
            }
        }
        if wanted.ir {
            lenses.push(lens(kernel, "PTX", Action::ShowPtx));
        }
        if wanted.resources {
            let key = KernelKey { file: file.id(db), kernel: kernel.name.clone() };
            let (title, action) = match status {
                Some(status) => resources_lens(status(&key)),
                None => (not_measured(NO_WORKER), Action::Select),
            };
            lenses.push(lens(kernel, &title, action));
        }
        if wanted.specialization {
            let index = kernel.active(db);
            let active = kernel.specialization(db, index);
            lenses.extend(active.map(|active| {
                let title = specialization_title(&active, index, kernel.specializations.len());
                lens(kernel, &title, Action::Select)
            }));
        }
        if wanted.resources {
            let count = kernel.specializations.len();
            if count > 1 {
                let title = format!("Measure {count} configurations");
                lenses.push(lens(kernel, &title, Action::Measure));
            }
        }
        if wanted.run {
            scenario_lenses(db, file, kernel, &mut lenses);
        }
    }
    lenses
}

fn lens(kernel: &Kernel, title: &str, action: Action) -> Lens {
    let kernel_name = kernel.name.to_string();
    Lens { range: kernel.name_range, title: title.to_owned(), action, kernel: kernel_name }
}

/// Longest that a specialization is spelled out, in characters.
const MAX_VALUES: usize = 60;

/// `BLOCK=128 (scenario)`: what sets the specialization apart, where it comes from, whether its
/// guesses were replaced, and which one of how many it is.
fn specialization_title(active: &Labelled, index: usize, count: usize) -> String {
    let mut values = labels::values(&active.spec);
    if values.chars().count() > MAX_VALUES {
        values = values.chars().take(MAX_VALUES - 1).chain(['…']).collect();
    }
    let mut notes = vec![labels::origin(active.spec.origin).to_owned()];
    if !active.repairs.is_empty() {
        notes.push("repaired".to_owned());
    }
    if count > 1 {
        notes.push(format!("{} of {count}", index + 1));
    }
    format!("{values} ({})", notes.join(", "))
}

fn resources_lens(status: Option<Status>) -> (String, Action) {
    let before = status.as_ref().and_then(|status| status.before.clone());
    match status.map(|status| status.stage) {
        Some(Stage::Ready(compiled)) => {
            let before = before.filter(|before| before.label == compiled.wish.label);
            let before = before.as_ref().map(|before| &before.resources);
            let title = match &compiled.resources {
                Some(found) => resources::lens_title(found, &compiled.wish.options.arch, before),
                None => not_measured(ptxas::MISSING),
            };
            (title, Action::Select)
        }
        Some(Stage::Failed(_)) => ("does not compile".to_owned(), Action::ShowPtx),
        Some(Stage::Unknown(message)) => (not_measured(&message), Action::Select),
        Some(Stage::Compiling) | None => ("compiling…".to_owned(), Action::Select),
    }
}

fn not_measured(why: &str) -> String {
    format!("not measured: {why}")
}

fn scenario_lenses(db: &dyn Db, file: SourceFile, kernel: &Kernel, lenses: &mut Vec<Lens>) {
    let module = db::module(db, file);
    for (number, index) in kernel.scenarios.iter().enumerate() {
        lenses.push(Lens {
            range: module.scenarios[*index].range,
            title: "▶ Run".to_owned(),
            action: Action::Run(Some(number + 1)),
            kernel: kernel.name.to_string(),
        });
    }
}
