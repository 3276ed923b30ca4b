//! What there is to say about a kernel: what it is compiled for, what it takes, and how its last run
//! went.

use std::fmt::Write;

use serde_json::Value as Json;
use tile_compiler::hir::Name;
use tile_compiler::source::FileRange;
use tile_compiler::specialization::{Previewed, Specialization, preview, shown_by};

use super::Known;
use crate::compile::{KernelKey, Stage};
use crate::db::{self, Analysis, Db, Kernel, SourceFile, labels};
use crate::ide::resources;

/// Parameters of which the same is said are named up to this many.
const MAX_NAMES: usize = 8;

/// The active specialization, its origin, and what was measured.
pub(super) fn about_kernel(
    db: &dyn Db,
    file: SourceFile,
    kernel: &Kernel,
    mention: FileRange,
    known: Known<'_>,
) -> String {
    let active = kernel.active(db);
    let mut text = format!("**{}**", kernel.name);
    let labelled = kernel.specialization(db, active);
    if let Some(labelled) = &labelled {
        let named = labels::named(&labelled.spec);
        let _ = write!(text, " — `{named}` ({})", labels::origin(labelled.spec.origin));
    }
    let others = kernel.specializations.len().saturating_sub(1);
    if others > 0 {
        let _ = write!(text, " and {others} more");
    }
    if let Some(labelled) = labelled.filter(|labelled| !labelled.repairs.is_empty()) {
        let repairs = labelled.repairs.join("`, `");
        let _ =
            write!(text, "\n\nThe first guess does not compile, so it was repaired: `{repairs}`.");
    }
    let key = KernelKey { file: file.id(db), kernel: kernel.name.clone() };
    match (known.status)(&key).map(|status| status.stage) {
        Some(Stage::Ready(compiled)) => {
            if let Some(found) = &compiled.resources {
                let line = resources::hover_line(found, &compiled.wish.options.arch);
                let _ = write!(text, "\n\n{line}");
            }
        }
        Some(Stage::Failed(message)) => {
            let _ = write!(text, "\n\nIt does not compile: {message}");
        }
        Some(Stage::Unknown(message)) => {
            let _ = write!(text, "\n\nIt was not compiled: {message}");
        }
        Some(Stage::Compiling) | None => {}
    }
    if let Some(spec) = launched_at(db, kernel, mention) {
        compiled_for(db, kernel, spec, &mut text);
    }
    other_configurations(db, file, kernel, known, &mut text);
    for result in (known.runs)(&kernel.name).iter() {
        last_run(result, &mut text);
    }
    text
}

/// The specialization that the launch at `mention` asks for; elsewhere the active one.
fn launched_at<'db>(
    db: &'db dyn Db,
    kernel: &Kernel,
    mention: FileRange,
) -> Option<&'db Specialization> {
    let is_here = |spec: &&Specialization| {
        let sites = spec.launches.iter().filter_map(|launch| launch.site);
        let mut places = sites.filter_map(|site| site.place(&Analysis(db)));
        places.any(|place| place.file == mention.file && place.range.contains_range(mention.range))
    };
    let specs = || kernel.settled(db).iter().map(|labelled| &labelled.spec);
    specs().find(is_here).or_else(|| specs().nth(kernel.active(db)))
}

/// What parameters are compiled for, and in one line what compiles the kernel anew.
fn compiled_for(db: &dyn Db, kernel: &Kernel, spec: &Specialization, out: &mut String) {
    let parameters = preview(&Analysis(db), kernel.at, spec);
    if parameters.is_empty() {
        return;
    }
    let from = shown_at(db, spec).map(|from| format!(", {from}")).unwrap_or_default();
    let _ = write!(out, "\n\nCompiled for{from}:\n");
    let known = |parameter: &Previewed| {
        let assumed = if parameter.assumed { " (assumed)" } else { "" };
        Some(format!("{}{assumed}", parameter.known))
    };
    for (known, names) in by_fact(&parameters, known) {
        let _ = write!(out, "\n- {names}: {known}");
    }
    let anew = by_fact(&parameters, |parameter| {
        // It is the subject of a sentence.
        Some(parameter.anew.as_ref()?.trim_end_matches(',').to_owned())
    });
    let anew: Vec<String> =
        anew.into_iter().map(|(anew, names)| format!("{names} ({anew})")).collect();
    if !anew.is_empty() {
        let _ = write!(out, "\n\nOther arguments compile it anew: {}.", anew.join("; "));
    }
}

/// What is said of parameters, once each, with their names; in the order of the first of them.
fn by_fact(
    parameters: &[Previewed],
    fact: impl Fn(&Previewed) -> Option<String>,
) -> Vec<(String, String)> {
    let mut facts: Vec<(String, Vec<&Name>)> = Vec::new();
    for parameter in parameters {
        let Some(fact) = fact(parameter) else { continue };
        match facts.iter_mut().find(|(known, _)| *known == fact) {
            Some((_, names)) => names.push(&parameter.name),
            None => facts.push((fact, vec![&parameter.name])),
        }
    }
    let listed = |names: Vec<&Name>| {
        let shown = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`"));
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if let Some(more) = names.len().checked_sub(MAX_NAMES).filter(|more| *more > 0) {
            let _ = write!(text, " and {more} more");
        }
        text
    };
    facts.into_iter().map(|(fact, names)| (fact, listed(names))).collect()
}

/// What a kernel is compiled for of the parameter `name`, and what compiles it anew.
pub(super) fn parameter(
    db: &dyn Db,
    file: SourceFile,
    kernel: &str,
    name: &Name,
) -> Option<String> {
    let kernel = db::kernel(db, file, kernel)?;
    let spec = &kernel.settled(db).get(kernel.active(db))?.spec;
    let parameters = preview(&Analysis(db), kernel.at, spec);
    let found = parameters.iter().find(|found| found.name == *name)?;
    let from = shown_at(db, spec).filter(|_| !found.assumed);
    let from = from.unwrap_or_else(|| "assumed".to_owned());
    let anew = found.anew.as_ref().map(|anew| format!("; {anew} compiles anew"));
    Some(format!("\n\nCompiled for: {} ({from}){}.", found.known, anew.unwrap_or_default()))
}

/// Where the arguments of a specialization stand: `from the launch in line 12`.
fn shown_at(db: &dyn Db, spec: &Specialization) -> Option<String> {
    let site = shown_by(spec)?;
    let at = site.place(&Analysis(db))?;
    let line = db::line_index(db, db.file_of(at.file)?).line(at.range.start) + 1;
    let what = if site.is_in_scenario(&Analysis(db)) { "scenario" } else { "launch" };
    Some(format!("from the {what} in line {line}"))
}

/// What the specializations besides the active one take, as far as they are compiled as they
/// stand.
fn other_configurations(
    db: &dyn Db,
    file: SourceFile,
    kernel: &Kernel,
    known: Known<'_>,
    out: &mut String,
) {
    let key = KernelKey { file: file.id(db), kernel: kernel.name.clone() };
    let measured = (known.measured)(&key);
    let active = kernel.active(db);
    let mut rows = String::new();
    for (index, labelled) in kernel.settled(db).iter().enumerate() {
        let Some(found) = measured.get(&labelled.label).filter(|_| index != active) else {
            continue;
        };
        let now = &db::lowered(db, file, kernel.at.index, index).ir;
        if now.as_ref() == Some(&found.ir) {
            let title = resources::lens_title(&found.resources, &found.arch, None);
            let _ = write!(rows, "\n- `{}`: {title}", labelled.label);
        }
    }
    if !rows.is_empty() {
        let _ = write!(out, "\n\nOther configurations:\n{rows}");
    }
}

/// What came out of a run: a line, and one for each tensor.
fn last_run(result: &Json, out: &mut String) {
    let verdict = if result["ok"] == true { "well" } else { "with findings" };
    let device = result["device"].as_str().unwrap_or_default();
    let _ = write!(out, "\n\nLast run on {device} ended {verdict}");
    if let Some(ms) = result["ms"].as_f64() {
        let _ = write!(out, " in {ms:.4} ms");
    }
    out.push('.');
    for (index, (name, output)) in result["outputs"].as_object().into_iter().flatten().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        let _ = write!(out, "{gap}\n- `{name}`: {}", tensor(output));
    }
}

/// A tensor in numbers.
pub(super) fn tensor(output: &Json) -> String {
    let dtype = output["dtype"].as_str().unwrap_or_default();
    let mut text = format!("{dtype} {}", output["shape"]);
    for name in ["min", "max", "mean"] {
        let _ = write!(text, ", {name} {}", output[name]);
    }
    if output["nan"].as_u64().is_some_and(|count| count > 0) {
        let _ = write!(text, ", {} NaN", output["nan"]);
    }
    text
}
