//! What there is to say about a place in the source.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value as Json;
use tile_compiler::artifact::{Frame, Listing};
use tile_compiler::builtins::{self, Builtin, ParameterKind, attributes, scenario_function};
use tile_compiler::eval::BodyTypes;
use tile_compiler::eval::dtype::DType;
use tile_compiler::eval::value::{Tensor, Value};
use tile_compiler::hir::{ArgKind, Expr, ExprId, Function, ItemKind, Name, Stmt};
use tile_compiler::project::{self, ItemRef, Resolution};
use tile_compiler::source::{FileId, FileRange, TextRange};
use tile_compiler::specialization::{Previewed, Specialization, TritonVersion, preview, shown_by};

use crate::compile::{Compiled, KernelKey, MeasuredByLabel, Stage, Status};
use crate::db::{self, Analysis, Db, Kernel, SourceFile, labels, version};
use crate::ide::signature::parameter_text;
use crate::ide::symbol::{Semantics, Symbol};
use crate::ide::tree::{ancestors, identifier_at, range};
use crate::ide::{faded, installed, resources};

/// At most this many lines of PTX are shown.
const MAX_PTX_LINES: usize = 16;

/// What a hover shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Info {
    /// Text in Markdown.
    pub(crate) markdown: String,
    /// What it is about.
    pub(crate) range: TextRange,
}

/// What is known of kernels beyond their text.
#[derive(Clone, Copy)]
pub(crate) struct Known<'s> {
    /// Of a kernel's compile.
    pub(crate) status: &'s dyn Fn(&KernelKey) -> Option<Status>,
    /// Of the specializations that were compiled.
    pub(crate) measured: &'s dyn Fn(&KernelKey) -> MeasuredByLabel,
    /// Results of the last run of the kernel called this, as the command line prints them.
    pub(crate) runs: &'s dyn Fn(&str) -> Arc<[Json]>,
}

/// What there is to say about `offset`.
pub(crate) fn hover(
    db: &dyn Db,
    file: SourceFile,
    offset: usize,
    known: Known<'_>,
) -> Option<Info> {
    let semantics = Semantics::new(db, file)?;
    let mut parts = Vec::new();
    let mut range = None;
    if let Some((symbol, at)) = semantics.symbol_at(offset) {
        parts.extend(match symbol {
            Symbol::Builtin(builtin) => {
                let receiver = semantics.receiver_at(offset);
                Some(about_builtin(builtin, receiver, version(db, file)))
            }
            symbol => about(db, file, &symbol, at, known),
        });
        range = Some(at);
    }
    if let Some((text, at)) = expression(db, &semantics, offset)
        && parts.is_empty()
    {
        parts.push(text);
        range = Some(at);
    }
    if parts.is_empty()
        && let Some((text, at)) = attribute(db, &semantics, offset)
    {
        parts.push(text);
        range = Some(at);
    }
    if parts.is_empty()
        && let Some((text, at)) = scenario_call(db, &semantics, offset)
    {
        parts.push(text);
        range = Some(at);
    }
    if !parts.is_empty() {
        parts.extend(faded::left_out_at(db, file, offset));
    }
    parts.extend(layout(db, &semantics, offset, known));
    parts.extend(last_value(db, &semantics, offset, known));
    parts.extend(ptx_of_line(db, file, offset, known));
    if parts.is_empty() {
        return None;
    }
    let range = range.unwrap_or_else(|| line_of(db, file, offset));
    Some(Info { markdown: parts.join("\n\n---\n\n"), range })
}

fn line_of(db: &dyn Db, file: SourceFile, offset: usize) -> TextRange {
    let lines = db::line_index(db, file);
    let line = lines.line(offset as u32);
    TextRange { start: lines.line_start(line), end: lines.line_start(line + 1) }
}

fn about(
    db: &dyn Db,
    file: SourceFile,
    symbol: &Symbol,
    at: TextRange,
    known: Known<'_>,
) -> Option<String> {
    match symbol {
        Symbol::Builtin(builtin) => Some(about_builtin(builtin, None, version(db, file))),
        Symbol::BuiltinParameter(builtin, name) => {
            about_builtin_parameter(builtin, name, version(db, file))
        }
        Symbol::Local(function, name) => about_local(db, file, *function, name, at),
        Symbol::Item(item) => {
            let mention = FileRange { file: file.id(db), range: at };
            about_item(db, *item, mention, known)
        }
        Symbol::File(id) => {
            let path = db.file_of(*id)?.path(db).display().to_string();
            Some(format!("module `{path}`"))
        }
        Symbol::Module(path) => Some(about_module(db, file, path)),
        Symbol::Variable(..) => None,
    }
}

/// A module of the language: what it is for, whose version of it counts and where that lies.
fn about_module(db: &dyn Db, file: SourceFile, path: &str) -> String {
    let dot = if path.is_empty() { "" } else { "." };
    let name = format!("{}{dot}{path}", builtins::TRITON);
    let mut text = format!("```python\nmodule {name}\n```");
    let doc = builtins::module_doc(&name);
    if let Some((about, _)) = doc {
        let _ = write!(text, "\n\n{about}");
    }
    let version = version(db, file);
    let members = builtins::members(&name).into_iter();
    match members.filter(|member| member.exists_in(version)).count() {
        0 => {}
        number => {
            let _ = write!(text, "\n\n{number} members are known, as Triton {version} has them.");
        }
    }
    let installed = installed::module(db, file, path).and_then(|at| db.file_of(at.file));
    match installed {
        Some(source) => {
            let _ = write!(text, " Installed as `{}`.", source.path(db).display());
        }
        None => text.push_str(" Triton is not installed in this environment."),
    }
    if let Some((_, link)) = doc {
        let _ = write!(text, "\n\n[Documentation]({link})");
    }
    text
}

/// The signature and the documentation of a member of the language, or of a method of `receiver`.
pub(crate) fn about_builtin(
    builtin: &'static Builtin,
    receiver: Option<&str>,
    version: TritonVersion,
) -> String {
    let head = builtin.call_text(receiver, version);
    let mut text = format!("```python\n{head}\n```\n\n{}", builtin.doc.trim());
    if let Some(instead) = builtin.deprecated {
        let _ = write!(text, "\n\n**Deprecated.** {instead}");
    }
    if !builtin.exists_in(version) {
        let _ = write!(text, "\n\nTriton {version} does not have it.");
    }
    text
}

fn about_builtin_parameter(
    builtin: &'static Builtin,
    name: &str,
    version: TritonVersion,
) -> Option<String> {
    let parameter = builtin.parameters(version).iter().find(|parameter| parameter.name == name)?;
    let mut text = format!("```python\n{name}");
    if parameter.constexpr {
        text.push_str(": constexpr");
    }
    if let Some(default) = parameter.default {
        let _ = write!(text, " = {default}");
    }
    let kind = match parameter.kind {
        ParameterKind::KeywordOnly => "keyword-only parameter",
        _ => "parameter",
    };
    let _ = write!(text, "\n```\n\n{kind} of `{}`", builtin.display_name());
    for choice in builtin.choices(name, version) {
        let _ = write!(text, "\n- `\"{}\"`: {}", choice.text, choice.doc);
    }
    Some(text)
}

/// A variable or parameter: its type here, and its value under the active specialization.
fn about_local(
    db: &dyn Db,
    file: SourceFile,
    at: ItemRef,
    name: &Name,
    range: TextRange,
) -> Option<String> {
    let item = project::item(&Analysis(db), at)?;
    let ItemKind::Function(function) = &item.kind else { return None };
    let home = db.file_of(at.file)?;
    let inferred = db::types(db, home, at.index)?;
    let expr = (home == file).then(|| expr_in(function, range)).flatten();
    let exact = exact_types(db, home, &item.name);
    let text = |types: &BodyTypes| match expr {
        Some(expr) => types.type_text(expr),
        None => types.param_text(name),
    };
    let general = text(inferred);
    let special = exact.and_then(text);
    let ty = special.clone().or(general.clone()).unwrap_or_else(|| "?".to_owned());
    let mut out = format!("```python\n{name}: {ty}");
    let value = expr.and_then(|expr| {
        exact.and_then(|types| types.const_text(expr)).or_else(|| inferred.const_text(expr))
    });
    if let Some(value) = value.filter(|value| value != &**name) {
        let _ = write!(out, " = {value}");
    }
    out.push_str("\n```");
    if let (Some(general), Some(special)) = (general, special)
        && general != special
        && general != "?"
    {
        let _ = write!(out, "\n\nFor every specialization: `{general}`.");
    }
    if let Some(expr) = expr {
        reasons(inferred, expr, &mut out);
    }
    if function.params.iter().any(|param| param.name == *name) {
        out.push_str(&parameter(db, home, &item.name, name).unwrap_or_default());
    }
    Some(out)
}

/// What a kernel is compiled for of the parameter `name`, and what compiles it anew.
fn parameter(db: &dyn Db, file: SourceFile, kernel: &str, name: &Name) -> Option<String> {
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

/// Why a number is not known at compile time, which matters where one is asked for.
fn reasons(types: &BodyTypes, expr: ExprId, out: &mut String) {
    let is_scalar = types.value(expr).and_then(Value::as_tensor).is_some_and(Tensor::is_scalar);
    if is_scalar && let Some(reason) = types.reasons(expr).first() {
        let _ = write!(out, "\n\nKnown at run time only: {}.", reason.message);
    }
}

/// What a kernel's active specialization gives.
pub(crate) fn exact_types<'db>(
    db: &'db dyn Db,
    file: SourceFile,
    kernel: &str,
) -> Option<&'db BodyTypes> {
    let kernel = db::kernel(db, file, kernel)?;
    let lowered = db::lowered(db, file, kernel.at.index, kernel.active(db));
    Some(&lowered.types)
}

/// The expression that stands exactly at `range`.
fn expr_in(function: &Function, range: TextRange) -> Option<ExprId> {
    function.body.exprs.keys().find(|expr| function.map.exprs[*expr] == range)
}

/// The smallest expression around `offset` whose type is known.
fn expression(
    db: &dyn Db,
    semantics: &Semantics<'_>,
    offset: usize,
) -> Option<(String, TextRange)> {
    let (at, function) = semantics.functions_around(offset).into_iter().next()?;
    let item = project::item(&Analysis(db), at)?;
    let file = db.file_of(at.file)?;
    let inferred = db::types(db, file, at.index)?;
    let exact = exact_types(db, file, &item.name);
    let covering = function.body.exprs.keys().filter(|expr| {
        let range = function.map.exprs[*expr];
        !range.is_empty() && range.touches(offset)
    });
    let expr = covering.min_by_key(|expr| function.map.exprs[*expr].len())?;
    let special = exact.and_then(|types| types.type_text(expr));
    let ty = special.or_else(|| inferred.type_text(expr))?;
    let value =
        exact.and_then(|types| types.const_text(expr)).or_else(|| inferred.const_text(expr));
    let value = value.map(|value| format!(" = {value}")).unwrap_or_default();
    let mut text = format!("```python\n{ty}{value}\n```");
    reasons(inferred, expr, &mut text);
    Some((text, function.map.exprs[expr]))
}

/// The attribute or element type of the language at `offset` of a kernel, where evaluation does not
/// tell what it is: it may not get there, or not know the value before the dot.
fn attribute(db: &dyn Db, semantics: &Semantics<'_>, offset: usize) -> Option<(String, TextRange)> {
    let (at, _) = semantics.functions_around(offset).into_iter().next()?;
    let jit = db::parts::jit_items(db, semantics.file);
    let node = identifier_at(semantics.root(), offset)?;
    let word = semantics.text_of(node);
    jit.iter().find(|(index, _)| *index == at.index)?;
    let text = match semantics.receiver_at(offset) {
        Some(receiver) => {
            let mut known = attributes::OF_TENSORS.iter().chain(attributes::documented_of_types());
            let found = known.find(|attribute| attribute.name == word)?;
            format!("```python\n{receiver}.{word}\n```\n\nIt is {}.", found.doc)
        }
        None => {
            let around = ancestors(semantics.root(), node);
            let (attribute, outer) = around.split_last()?;
            let module = attribute.child_by_field_name("object")?;
            let found = semantics.module_of(outer, module)?;
            let is_language =
                matches!(found, Resolution::TritonModule(path) if &*path == "language");
            let dtype = DType::from_member(word).filter(|_| is_language)?;
            let written = semantics.text_of(*attribute);
            format!("```python\n{written}: dtype\n```\n\nAn element type of {} bits.", dtype.bits())
        }
    };
    Some((text, range(node)))
}

fn about_item(db: &dyn Db, at: ItemRef, mention: FileRange, known: Known<'_>) -> Option<String> {
    let item = project::item(&Analysis(db), at)?;
    let file = db.file_of(at.file)?;
    match &item.kind {
        ItemKind::Function(function) => {
            let kernel = db::kernels(db, file).iter().find(|kernel| kernel.at == at);
            let mut text = match kernel {
                Some(kernel) => about_kernel(db, file, kernel, mention, known),
                None => signature(function),
            };
            if let Some(doc) = &function.doc {
                let _ = write!(text, "\n\n{doc}");
            }
            Some(text)
        }
        ItemKind::Class(class) => Some(format!("```python\nclass {}\n```", class.name)),
        ItemKind::Assign { body, value, .. } => {
            let value = tile_compiler::hir::pretty::expr(body, *value);
            Some(format!("```python\n{} = {value}\n```", item.name))
        }
        _ => None,
    }
}

fn signature(function: &Function) -> String {
    let params = function.params.iter().map(|param| parameter_text(function, param));
    let params: Vec<String> = params.collect();
    format!("```python\ndef {}({})\n```", function.name, params.join(", "))
}

/// The active specialization, its origin, and what was measured.
fn about_kernel(
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
            if let Some(found) = &compiled.artifact.resources {
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

/// Parameters of which the same is said are named up to this many.
const MAX_NAMES: usize = 8;

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
fn tensor(output: &Json) -> String {
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

/// What a function of scenarios does whose name stands at `offset`.
fn scenario_call(
    db: &dyn Db,
    semantics: &Semantics<'_>,
    offset: usize,
) -> Option<(String, TextRange)> {
    let scenarios = &db::module(db, semantics.file).scenarios;
    scenarios.iter().find(|scenario| scenario.range.touches(offset))?;
    let node = identifier_at(semantics.root(), offset)?;
    let function = scenario_function(semantics.text_of(node))?;
    let text =
        format!("```python\n{}({})\n```\n\n{}", function.name, function.signature, function.doc);
    Some((text, range(node)))
}

/// How the tile at `offset` lies in registers, if its kernel is compiled as it stands.
fn layout(
    db: &dyn Db,
    semantics: &Semantics<'_>,
    offset: usize,
    known: Known<'_>,
) -> Option<String> {
    let (at, function) = semantics.functions_around(offset).into_iter().next()?;
    let covering = function.body.exprs.keys().filter(|expr| {
        let range = function.map.exprs[*expr];
        !range.is_empty() && range.touches(offset)
    });
    let expr = covering.min_by_key(|expr| function.map.exprs[*expr].len())?;
    let range = function.map.exprs[assigned(function, expr).unwrap_or(expr)];
    let place = FileRange { file: at.file, range };
    for kernel in db::kernels(db, semantics.file) {
        let key = KernelKey { file: at.file, kernel: kernel.name.clone() };
        let Some(Status { stage: Stage::Ready(compiled), .. }) = (known.status)(&key) else {
            continue;
        };
        let kept = compiled.wish.anchors.kept(db, place);
        if let Some(text) = kept.and_then(|kept| compiled.layouts().at(kept)) {
            return Some(format!("Layout on {}: {text}", compiled.wish.options.arch));
        }
    }
    None
}

/// What a name stands for: what was assigned to it last before.
fn assigned(function: &Function, name: ExprId) -> Option<ExprId> {
    let body = &function.body;
    let Expr::Name(wanted) = &body.exprs[name] else { return None };
    let at = function.map.exprs[name];
    let assigns = body.stmts.values().filter_map(|stmt| match stmt {
        Stmt::Assign { targets, value } => Some((targets, *value)),
        _ => None,
    });
    let named = assigns.filter(|(targets, _)| {
        targets.iter().any(|target| {
            matches!(&body.exprs[*target], Expr::Name(found) if found == wanted)
                && function.map.exprs[*target].start <= at.start
        })
    });
    named.map(|(_, value)| value).max_by_key(|value| function.map.exprs[*value].start)
}

/// What the last run left in the variable of a scenario that stands at `offset`, or in the
/// argument that a scenario passes to the kernel's parameter there.
fn last_value(
    db: &dyn Db,
    semantics: &Semantics<'_>,
    offset: usize,
    known: Known<'_>,
) -> Option<String> {
    let scenarios = &db::module(db, semantics.file).scenarios;
    let kernel = db::kernel_at(db, semantics.file, offset)?;
    let word = semantics.text_of(identifier_at(semantics.root(), offset)?);
    let runs = (known.runs)(&kernel.name);
    let in_scenario = scenarios.iter().any(|scenario| scenario.range.touches(offset));
    let variable =
        if in_scenario { Name::from(word) } else { argument(db, semantics.file, kernel, word)? };
    let output = runs.iter().find_map(|result| result["outputs"].get(&*variable))?;
    Some(format!("`{variable}` after the last run: {}", tensor(output)))
}

/// The variable that the kernel's first scenario passes to its parameter `name`.
fn argument(db: &dyn Db, file: SourceFile, kernel: &Kernel, name: &str) -> Option<Name> {
    let module = db::module(db, file);
    let scenario = &module.scenarios[*kernel.scenarios.first()?];
    let mut launches = module.launches.iter();
    let launch = launches.find(|launch| scenario.range.contains_range(launch.range))?;
    let index = kernel.function.params.iter().position(|param| &*param.name == name)?;
    let passed = launch.args.iter().enumerate().find(|(at, arg)| match &arg.kind {
        ArgKind::Positional => *at == index,
        ArgKind::Keyword(keyword) => &**keyword == name,
        ArgKind::Star | ArgKind::DoubleStar => false,
    });
    match &launch.body.exprs[passed?.1.value] {
        Expr::Name(variable) => Some(variable.clone()),
        _ => None,
    }
}

/// The PTX that the line at `offset` became, if its kernel is compiled as it stands.
fn ptx_of_line(db: &dyn Db, file: SourceFile, offset: usize, known: Known<'_>) -> Option<String> {
    let line = db::line_index(db, file).line(offset as u32) + 1;
    let around = |kernel: &&Kernel| kernel.range.touches(offset);
    let inside = db::kernels(db, file).iter().filter(around);
    // A helper's line became part of the kernels that call it; the first that has it is shown.
    let kernels = inside.chain(db::kernels(db, file).iter().filter(|kernel| !around(kernel)));
    for kernel in kernels {
        let key = KernelKey { file: file.id(db), kernel: kernel.name.clone() };
        if let Some(Status { stage: Stage::Ready(compiled), .. }) = (known.status)(&key)
            && let Some(text) = ptx_lines(db, &compiled, (file.id(db), line))
        {
            return Some(text);
        }
    }
    None
}

fn ptx_lines(db: &dyn Db, compiled: &Compiled, line: (FileId, u32)) -> Option<String> {
    let anchors = &compiled.wish.anchors;
    let is_line = |frame: &Frame| anchors.find_line(db, frame.file, frame.line) == Some(line);
    let artifact = &compiled.artifact;
    let listing = Listing::ptx(&artifact.ptx, &artifact.line_map);
    let runs = listing.line_map.runs.iter();
    let of_line = runs.filter(|run| run.frames.iter().any(is_line));
    let lines: Vec<&str> = listing.text.lines().collect();
    let became: Vec<&str> = of_line
        .flat_map(|run| lines.get(run.start as usize..run.end as usize).unwrap_or_default())
        .map(|line| line.trim())
        .collect();
    if became.is_empty() {
        return None;
    }
    let shown = became.iter().take(MAX_PTX_LINES).copied().collect::<Vec<_>>().join("\n");
    let more = became.len().saturating_sub(MAX_PTX_LINES);
    let more = if more > 0 { format!("\n// and {more} more") } else { String::new() };
    Some(format!("```ptx\n{shown}{more}\n```"))
}
