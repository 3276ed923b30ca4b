//! Kernels of files, what they are compiled for, and what they are then.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tile_compiler::eval::{BodyTypes, LowerResult};
use tile_compiler::hir::{Function, Name};
use tile_compiler::project::{self, ItemRef, Resolution};
use tile_compiler::source::TextRange;
use tile_compiler::specialization::{
    Config, Discovery, Flags, ShownLaunches, Specialization, bind, launched_tuning,
};

use super::anchored::{Anchored, Anchors, anchor_locations};
use super::parts::{Observed, jit_items};
use super::{
    Analysis, Database, Db, SourceFile, Workspace, folder_rules, labels, module, syntax_diagnostics,
};
use crate::packed::Packed;

/// A kernel of a file and what it is compiled for.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// Its item.
    pub(crate) at: ItemRef,
    /// Its name.
    pub(crate) name: Name,
    /// The whole definition, decorators included.
    pub(crate) range: TextRange,
    /// The name in `def name(...)`.
    pub(crate) name_range: TextRange,
    /// The function.
    pub(crate) function: Arc<Function>,
    /// What it is compiled for as first found, so [`Kernel::settled`] tells labels and values;
    /// never empty.
    pub(crate) specializations: Arc<[Labelled]>,
    /// Indices of its scenarios in [`Module::scenarios`].
    pub(crate) scenarios: Vec<usize>,
}

/// A specialization with the label that users see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labelled {
    /// Unique in the kernel.
    pub(crate) label: String,
    /// What the kernel is compiled for.
    pub(crate) spec: Specialization,
    /// Guesses that were replaced because they cannot work, each as `NAME: OLD → NEW`.
    pub(crate) repairs: Vec<String>,
}

/// The kernels of a file, in source order.
#[salsa::tracked(returns(ref), no_eq, lru = 0)]
pub(crate) fn kernels(db: &dyn Db, file: SourceFile) -> Vec<Kernel> {
    let sources = Analysis(db);
    let scenarios = scenarios(db, file);
    let mut kernels = Vec::new();
    for (index, _) in jit_items(db, file).iter().filter(|(_, entry)| *entry) {
        let at = ItemRef { file: file.id(db), index: *index };
        let Some(kernel) = project::kernel(&sources, at) else { continue };
        let owned = scenarios.iter().filter(|(_, owner)| *owner == at).map(|(index, _)| *index);
        kernels.push(Kernel {
            at,
            name: kernel.item.name.clone(),
            range: kernel.item.range,
            name_range: kernel.item.name_range,
            function: kernel.function,
            specializations: specializations(db, file, *index).clone(),
            scenarios: owned.collect(),
        });
    }
    kernels
}

/// Keeps the kernels of this many files.
pub(super) fn keep_few(db: &mut Database, files: usize) {
    kernels::set_lru_capacity(db, files);
}

/// Scenarios of a file, by index, with the kernel that each launches.
pub(crate) fn scenarios(db: &dyn Db, file: SourceFile) -> Vec<(usize, ItemRef)> {
    let sources = Analysis(db);
    let module = module(db, file);
    let mut owners = Vec::new();
    for (index, scenario) in module.scenarios.iter().enumerate() {
        let mut launches = module.launches.iter();
        let launch = launches.find(|launch| scenario.range.contains_range(launch.range));
        let Some(launch) = launch else { continue };
        if let Resolution::Jit(at) = project::launched_by(&sources, file.id(db), module, launch) {
            owners.push((index, at));
        }
    }
    owners
}

impl Kernel {
    /// Index of the specialization that counts: the user's choice, else the best known one.
    pub(crate) fn active(&self, db: &dyn Db) -> usize {
        let choices = Workspace::get(db).choices(db);
        let chosen = choices.get(&(self.at.file, self.name.clone()));
        let position =
            |label: &String| self.settled(db).iter().position(|labelled| labelled.label == *label);
        chosen.and_then(position).unwrap_or(0)
    }
}

/// The kernel called `name` of a file; the last one when several are.
pub(crate) fn kernel<'db>(db: &'db dyn Db, file: SourceFile, name: &str) -> Option<&'db Kernel> {
    kernels(db, file).iter().rfind(|kernel| &*kernel.name == name)
}

/// The kernel whose definition or scenario covers `offset`.
pub(crate) fn kernel_at(db: &dyn Db, file: SourceFile, offset: usize) -> Option<&Kernel> {
    let scenarios = &module(db, file).scenarios;
    kernels(db, file).iter().find(|kernel| {
        let in_scenario = |index: &usize| scenarios[*index].range.touches(offset);
        kernel.range.touches(offset) || kernel.scenarios.iter().any(in_scenario)
    })
}

/// What the kernel that is this item of a file is compiled for.
#[salsa::tracked(returns(ref))]
pub(super) fn specializations(db: &dyn Db, file: SourceFile, index: u32) -> Arc<[Labelled]> {
    let at = ItemRef { file: file.id(db), index };
    let sources = Observed::host(db, folder_rules(db, file).capability);
    let none = ShownLaunches::default();
    let launches = shown_launches(db, file).get(&index).unwrap_or(&none);
    labels::label_all(bind(&sources, at, launches, &Flags::default())).into()
}

/// What host code launches of the jit functions of a file, by their items. It takes long to find
/// out, and an edit of a kernel leaves it alone.
#[salsa::tracked(returns(ref), no_eq)]
pub(super) fn shown_launches(db: &dyn Db, file: SourceFile) -> FxHashMap<u32, ShownLaunches> {
    let sources = Observed::host(db, folder_rules(db, file).capability);
    let flags = Flags::default();
    let discovery = Discovery::new(&sources, &flags);
    let id = file.id(db);
    let launches = |index| discovery.launches(ItemRef { file: id, index });
    jit_items(db, file).iter().map(|(index, _)| (*index, launches(*index))).collect()
}

/// The autotune configurations of the kernel that is this item of a file, as values of parameters
/// and options.
#[salsa::tracked(returns(ref))]
pub(crate) fn configurations(
    db: &dyn Db,
    file: SourceFile,
    index: u32,
) -> Vec<Vec<(String, String)>> {
    let at = ItemRef { file: file.id(db), index };
    let sources = Observed::host(db, folder_rules(db, file).capability);
    let Some(kernel) = project::kernel_head(&sources, at) else { return Vec::new() };
    let none = ShownLaunches::default();
    let launches = shown_launches(db, file).get(&index).unwrap_or(&none);
    launched_tuning(&sources, &kernel, launches).configs.iter().map(Config::values).collect()
}

/// A kernel under one specialization.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    /// Tile IR, locations by `anchors`; `None` when there is an error.
    pub(crate) ir: Option<Packed<String>>,
    /// What the locations of the IR count from.
    pub(crate) anchors: Arc<Anchors>,
    /// What is wrong.
    pub(crate) found: Anchored,
    /// What it was lowered for, where a guess had to be replaced.
    pub(super) repaired: Option<Specialization>,
}

/// A kernel under one specialization, with all that lowering it gives.
#[derive(Debug, Default)]
pub(super) struct Lowering {
    pub(super) lowered: Arc<Lowered>,
    /// Values and types of its expressions.
    pub(super) types: BodyTypes,
}

/// The kernel that is this item of a file, under one specialization.
pub(super) fn lower_under(
    db: &dyn Db,
    file: SourceFile,
    item: u32,
    spec: &Specialization,
) -> Option<Lowering> {
    let mut result = lower(db, file, item, spec)?;
    let anchors = result.function.as_mut().map(|function| anchor_locations(db, function));
    let lowered = Lowered {
        ir: result.function.map(|function| Packed::new(&function.to_string())),
        anchors: Arc::new(anchors.unwrap_or_default()),
        found: Anchored::new(db, result.diagnostics),
        repaired: result.repaired,
    };
    Some(Lowering { lowered: Arc::new(lowered), types: result.types })
}

fn lower(db: &dyn Db, file: SourceFile, item: u32, spec: &Specialization) -> Option<LowerResult> {
    let rules = folder_rules(db, file);
    let sources = Observed::kernels(db, rules.capability);
    Some(rules.triton.lower_kernel(&sources, ItemRef { file: file.id(db), index: item }, spec))
}

/// What is wrong with the syntax of the function at `at`, or of one that it calls. Evaluation
/// leaves out what does not parse, so what it gives then is not what the author means.
pub(crate) fn syntax_error_in(db: &dyn Db, at: ItemRef) -> Option<String> {
    project::with_callees(&Analysis(db), at).into_iter().find_map(|at| {
        let file = db.file_of(at.file)?;
        let range = module(db, file).items.get(at.index as usize)?.range;
        let errors = syntax_diagnostics(db, file).iter();
        let mut inside = errors.filter(|error| range.touches(error.primary.range.start as usize));
        Some(inside.next()?.message.clone())
    })
}
