//! What there is to say about a place in the source.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value as Json;
use tile_compiler::builtins::{
    self, Builtin, ParameterKind, TritonVersion, attributes, scenario_function,
};
use tile_compiler::eval::BodyTypes;
use tile_compiler::eval::dtype::DType;
use tile_compiler::eval::value::{Tensor, Value};
use tile_compiler::hir::{ExprId, Function, ItemKind, Name};
use tile_compiler::project::{self, ItemRef, Resolution};
use tile_compiler::source::{FileRange, TextRange};

use crate::compile::{KernelKey, MeasuredByLabel, Status};
use crate::db::{self, Analysis, Db, SourceFile, version};
use crate::ide::signature::parameter_text;
use crate::ide::symbol::{Semantics, Symbol};
use crate::ide::tree::{ancestors, identifier_at, range};
use crate::ide::{faded, installed};

mod compiled;
mod kernel;

use compiled::{last_value, layout, ptx_of_line};
use kernel::{about_kernel, parameter};

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
    Some(db::exact_types(db, file, kernel.at.index, kernel.active(db)))
}

/// The expression that stands exactly at `range`.
fn expr_in(function: &Function, range: TextRange) -> Option<ExprId> {
    function.body.exprs.keys().find(|expr| function.map.exprs[*expr] == range)
}

/// The smallest expression around `offset`.
fn smallest_expr(function: &Function, offset: usize) -> Option<ExprId> {
    let covering = function.body.exprs.keys().filter(|expr| {
        let range = function.map.exprs[*expr];
        !range.is_empty() && range.touches(offset)
    });
    covering.min_by_key(|expr| function.map.exprs[*expr].len())
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
    let expr = smallest_expr(function, offset)?;
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
