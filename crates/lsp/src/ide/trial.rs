//! What an edit would bring about, found before it is offered.
//!
//! Types tell whether an edit is worth a try; whether its outcome is right depends on more: where
//! names are bound, what decorators say, what callers pass. So the file is analyzed as the edit
//! would leave it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tile_compiler::analysis;
use tile_compiler::diagnostic::{Fix, Severity};
use tile_compiler::hir::{self, Module, Name};
use tile_compiler::project::{self, ArrayHead, ItemRef, Sources};
use tile_compiler::source::{FileId, TextRange};
use tile_compiler::specialization::Specialization;
use tile_compiler::syntax::{Edit, Kept, Parse, Statements};

use crate::db::{self, Analysis, Db, FolderRules, SourceFile};

/// A file as it is or as an edit would leave it, among the others as they are.
struct Version<'db> {
    db: &'db dyn Db,
    rules: &'db FolderRules,
    file: FileId,
    module: Arc<Module>,
    text: Arc<str>,
}

impl Sources for Version<'_> {
    fn module(&self, file: FileId) -> Option<Arc<Module>> {
        match file == self.file {
            true => Some(self.module.clone()),
            false => Analysis(self.db).module(file),
        }
    }

    fn text(&self, file: FileId) -> Option<Arc<str>> {
        match file == self.file {
            true => Some(self.text.clone()),
            false => Analysis(self.db).text(file),
        }
    }

    fn path(&self, file: FileId) -> String {
        Analysis(self.db).path(file)
    }

    fn import(&self, from: FileId, level: u32, path: &[Name]) -> Option<FileId> {
        Analysis(self.db).import(from, level, path)
    }

    fn array(&self, from: FileId, path: &str) -> Option<ArrayHead> {
        Analysis(self.db).array(from, path)
    }

    fn checkpoint(&self) {
        Analysis(self.db).checkpoint();
    }

    fn capability(&self) -> u32 {
        self.rules.capability
    }

    fn importers(&self, file: FileId) -> Vec<FileId> {
        Analysis(self.db).importers(file)
    }
}

/// Errors by their code: messages speak of specializations, which an edit may change.
type Errors = BTreeMap<&'static str, usize>;

/// True when `fix`, which edits `file` alone and neither adds nor takes away items, leaves it with
/// no error that it does not have already: of syntax, in the functions that it edits and those that
/// call them, or, where it edits none, in launches. It is kept, since editors ask at every place that
/// the cursor gets to.
pub(crate) fn adds_no_error(db: &dyn Db, file: SourceFile, fix: &Fix) -> bool {
    outcome(db, file, fix.clone())
}

#[salsa::tracked(returns(copy), lru = 64)]
fn outcome(db: &dyn Db, file: SourceFile, fix: Fix) -> bool {
    let Some(source) = file.text(db) else { return false };
    let (text, known) = (source.text(), db.files().parse(source));
    let Some((parse, places)) = applied(&known, file.id(db), &fix) else { return false };
    let statements = Statements::of(&parse);
    let kept = Kept::between(&Statements::of(&known).outline(), &statements.outline());
    let errors_before = db::syntax_diagnostics(db, file).len();
    let errors_after = match errors_before {
        0 => statements.diagnostics(file.id(db), &kept),
        _ => statements.diagnostics(file.id(db), &Kept::default()),
    };
    if errors_after.len() > errors_before {
        return false;
    }
    let version = |module, text: &Arc<str>| Version {
        db,
        rules: db::folder_rules(db, file),
        file: file.id(db),
        module,
        text: text.clone(),
    };
    let mut before = version(db::module(db, file).clone(), text);
    let module = hir::lower_again(&statements, &before.module, &kept);
    let mut after = version(Arc::new(module), parse.text());
    let concerned = concerned(&after, &places);
    if concerned.is_empty() {
        // Other launches are as they were.
        let is_new = |at: TextRange| places.iter().any(|place| place.contains_range(at));
        Arc::make_mut(&mut after.module).launches.retain(|launch| is_new(launch.range));
    }
    // Whether the kernel takes the same is asked first: a specialization is for what it takes.
    let lowered = |at: &ItemRef| {
        project::constexpr_params(&before, *at) == project::constexpr_params(&after, *at)
    };
    let lowered: Vec<ItemRef> = concerned.iter().copied().filter(lowered).collect();
    let new = errors(&after, &concerned, &lowered);
    // What is wrong already need not be asked for where nothing is.
    new.is_empty() || {
        if concerned.is_empty() {
            Arc::make_mut(&mut before.module).launches.clear();
        }
        let known = errors(&before, &concerned, &lowered);
        new.iter().all(|(code, count)| known.get(code).is_some_and(|known| known >= count))
    }
}

/// The text after `fix`, and where the new pieces stand in it; `None` when it edits other files.
fn applied(before: &Parse, file: FileId, fix: &Fix) -> Option<(Parse, Vec<TextRange>)> {
    let mut edits: Vec<_> = fix.edits.iter().collect();
    edits.sort_by_key(|edit| edit.at.range);
    let (mut after, mut places) = (before.clone(), Vec::new());
    // From the end, so that places before an edit are as they were.
    for edit in edits.into_iter().rev() {
        let at = edit.at.range.as_usize();
        if edit.at.file != file {
            return None;
        }
        let mut text = String::with_capacity(after.text().len() + edit.text.len());
        text.push_str(after.text().get(..at.start)?);
        text.push_str(&edit.text);
        text.push_str(after.text().get(at.end..)?);
        let old = edit.at.range;
        let moved = edit.text.len() as i64 - old.len() as i64;
        for place in &mut places {
            *place = moved_by(*place, moved);
        }
        places.push(TextRange::new(at.start, at.start + edit.text.len()));
        after = after.edit(&Edit { old, new_len: edit.text.len() }, text);
    }
    Some((after, places))
}

fn moved_by(place: TextRange, by: i64) -> TextRange {
    let moved = |at: u32| (i64::from(at) + by) as usize;
    TextRange::new(moved(place.start), moved(place.end))
}

/// What is wrong with `functions`, in general and, as far as they are kernels of `lowered`, for the
/// specialization that they are looked at under; with launches where there are none.
fn errors(version: &Version<'_>, functions: &[ItemRef], lowered: &[ItemRef]) -> Errors {
    let rules = version.rules.triton;
    let kernels = project::kernels(version, version.file);
    let mut found = match functions {
        [] => analysis::check_launches(version, version.file),
        _ => Vec::new(),
    };
    for at in functions {
        let is_kernel = kernels.contains(at);
        let inferred = rules.infer_function(version, *at, is_kernel);
        found.extend(inferred.into_iter().flat_map(|inferred| inferred.diagnostics));
        if let Some(spec) = active(version.db, *at).filter(|_| is_kernel && lowered.contains(at)) {
            let (_, result) = rules.lowering(version, *at).check(&spec);
            let proved = result.diagnostics.into_iter().filter(|found| spec.proves(found.code));
            found.extend(proved);
        }
    }
    let mut errors = Errors::new();
    for error in found.iter().filter(|found| found.severity == Severity::Error) {
        *errors.entry(error.code.name()).or_default() += 1;
    }
    errors
}

/// The jit functions that hold one of `places`, and those of the file that call them.
fn concerned(edited: &Version<'_>, places: &[TextRange]) -> Vec<ItemRef> {
    let all = project::jit_functions(edited, edited.file);
    let holds = |at: &ItemRef| {
        let range = edited.module.items[at.index as usize].range;
        places.iter().any(|place| range.contains_range(*place))
    };
    let mut found: Vec<ItemRef> = all.iter().copied().filter(holds).collect();
    if found.is_empty() {
        return found;
    }
    let calls: Vec<_> =
        all.iter().map(|at| (*at, project::called_from_jit(edited, &[*at]))).collect();
    let mut next = 0;
    while let Some(callee) = found.get(next).copied() {
        let callers = calls.iter().filter(|(_, called)| called.contains(&callee));
        let new: Vec<ItemRef> =
            callers.map(|(at, _)| *at).filter(|at| !found.contains(at)).collect();
        found.extend(new);
        next += 1;
    }
    found
}

/// What the kernel that is this item is looked at as compiled for.
fn active(db: &dyn Db, at: ItemRef) -> Option<Specialization> {
    let file = db.file_of(at.file)?;
    let kernel = db::kernels(db, file).iter().find(|kernel| kernel.at == at)?;
    Some(kernel.specialization(db, kernel.active(db))?.spec)
}
