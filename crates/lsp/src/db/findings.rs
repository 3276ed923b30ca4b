//! What is wrong with files, and what inference found on the way.

use tile_compiler::analysis::{self, AtLaunch, settle};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::eval::{self, BodyTypes};
use tile_compiler::project::ItemRef;
use tile_compiler::specialization::{
    CHECKED_CLOSELY, Discovery, Flags, Specialization, worth_checking,
};
use tile_executor::Executor;

use super::anchored::Anchored;
use super::kernel::specializations;
use super::parts::{Observed, jit_items};
use super::{
    Analysis, Db, Labelled, SourceFile, folder_rules, kernels, line_index, module,
    syntax_diagnostics,
};

/// What is found in a file without a specialization: fast enough for every keystroke.
#[salsa::tracked(returns(ref))]
fn general_diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let functions = jit_items(db, file).iter();
    let mut inferred: Vec<Vec<Diagnostic>> =
        functions.map(|(at, entry)| certain(db, file, *at, *entry).place(db)).collect();
    eval::drop_repeated(&mut inferred.iter_mut().collect::<Vec<_>>());
    let mut found = syntax_diagnostics(db, file).to_vec();
    found.extend(inferred.into_iter().flatten());
    found
}

/// What is found in a file under the specializations that are known. A guess yields nothing.
/// This takes a while, so it is not waited for; see [`diagnostics`].
#[salsa::tracked(returns(ref))]
pub(crate) fn exact_diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let mut found = analysis::check_launches(&Analysis(db), file.id(db));
    found.extend(of_host_code(db, file).place(db));
    for kernel in kernels(db, file) {
        let specs: Vec<&Specialization> =
            kernel.specializations.iter().map(|labelled| &labelled.spec).collect();
        let (mut known, mut proved) = (Vec::new(), Vec::new());
        for (number, index) in worth_checking(&specs).into_iter().enumerate() {
            let masks = number < CHECKED_CLOSELY;
            let checked = checked(db, file, kernel.at.index, index, masks);
            let launches = checked.launches.iter();
            let placed = checked.found.place(db).into_iter().zip(launches);
            let placed = placed.map(|(found, launch)| launch.attach(found, &Analysis(db)));
            known.push(specs[index]);
            proved.push(placed.collect::<Vec<_>>());
        }
        analysis::reconcile(&known, &mut proved);
        found.extend(proved.into_iter().flatten());
    }
    found.extend(of_results(db, file).place(db));
    found
}

/// What running the host code of a file finds, which takes long: an edit of a kernel leaves it alone.
#[salsa::tracked(returns(ref))]
fn of_host_code(db: &dyn Db, file: SourceFile) -> Anchored {
    let sources = Observed::host(db, folder_rules(db, file).capability);
    let flags = Flags::default();
    let discovery = Discovery::new(&sources, &flags);
    Anchored::new(db, analysis::check_host(&sources, &discovery, file.id(db)))
}

/// What host code of a file compares with what kernels leave, and is not what it must be: that depends on the
/// kernels as well.
#[salsa::tracked(returns(ref))]
fn of_results(db: &dyn Db, file: SourceFile) -> Anchored {
    let rules = folder_rules(db, file);
    let sources = Observed::host(db, rules.capability);
    let flags = Flags::default();
    let discovery = Discovery::new(&sources, &flags);
    let (triton, file) = (rules.triton, file.id(db));
    Anchored::new(db, analysis::check_results(&sources, triton, &discovery, file, &Executor))
}

/// Every finding in a file, in order. `exact` is what is known of its specializations, perhaps
/// from a moment ago.
pub(crate) fn diagnostics(db: &dyn Db, file: SourceFile, exact: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut found = general_diagnostics(db, file).clone();
    found.extend(exact.iter().cloned());
    let lints = &folder_rules(db, file).lints;
    let text = file.text(db).as_ref().map_or("", |text| text.text());
    settle(&mut found, file.id(db), module(db, file), (line_index(db, file), text), lints);
    // What stands in another file is shown there.
    found.retain(|diagnostic| diagnostic.primary.file == file.id(db));
    found
}

/// What holds for a jit function under every specialization.
#[derive(Debug, Default)]
pub(crate) struct Inferred {
    /// Values and types of its expressions.
    pub(crate) types: BodyTypes,
    /// What is certainly wrong.
    found: Anchored,
}

/// What holds for the jit function that is this item of a file. `entry` says that it is a kernel.
#[salsa::tracked(returns(ref), no_eq, lru = 24)]
fn inferred(db: &dyn Db, file: SourceFile, index: u32, entry: bool) -> Inferred {
    let at = ItemRef { file: file.id(db), index };
    let rules = folder_rules(db, file);
    match rules.triton.infer_function(&Observed::kernels(db, rules.capability), at, entry) {
        Some(found) => Inferred { types: found.types, found: Anchored::new(db, found.diagnostics) },
        None => Inferred::default(),
    }
}

/// What is certainly wrong with the jit function that is this item of a file. It is kept where the
/// types, which are large, are not.
#[salsa::tracked(returns(ref))]
fn certain(db: &dyn Db, file: SourceFile, index: u32, entry: bool) -> Anchored {
    inferred(db, file, index, entry).found.clone()
}

/// What inference found in the jit function that is this item of a file.
pub(crate) fn types(db: &dyn Db, file: SourceFile, index: u32) -> Option<&BodyTypes> {
    let (_, entry) = jit_items(db, file).iter().find(|(item, _)| *item == index)?;
    Some(&inferred(db, file, index, *entry).types)
}

/// What is wrong with a kernel under one specialization.
#[derive(Debug, PartialEq, Eq, Default)]
struct Checked {
    /// What stops the kernel from compiling, and what analyses of it find.
    found: Anchored,
    /// The launch that each finding belongs to.
    launches: Vec<AtLaunch>,
}

/// As [`lowered`], for those who ask only what is wrong, under a specialization as it was found
/// first. `masks` says whether masks and costs are looked at.
#[salsa::tracked(returns(ref))]
fn checked(db: &dyn Db, file: SourceFile, item: u32, index: usize, masks: bool) -> Checked {
    let Some(Labelled { spec, .. }) = specializations(db, file, item).get(index) else {
        return Checked::default();
    };
    let rules = folder_rules(db, file);
    let sources = Observed::kernels(db, rules.capability);
    let at = ItemRef { file: file.id(db), index: item };
    let mut lowering = rules.triton.lowering(&sources, at);
    let found = analysis::check_specialization(&mut lowering, spec, masks, &Executor);
    let (found, launches): (Vec<Diagnostic>, _) = found.into_iter().unzip();
    Checked { found: Anchored::new(db, found), launches }
}
