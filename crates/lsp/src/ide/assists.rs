//! Edits that nobody needs and somebody may want: an annotation, a mask, a scenario.

use std::fmt::Write;

use tile_compiler::diagnostic::{Diagnostic, Fix, TextEdit};
use tile_compiler::eval::dtype::DType;
use tile_compiler::eval::value::Value;
use tile_compiler::eval::{BodyTypes, ValueClass};
use tile_compiler::hir::{Arg, ArgKind, BinaryOp, Expr, ExprId, Function, ItemKind, Stmt};
use tile_compiler::source::{FileRange, TextRange};
use tile_compiler::specialization::ArgSpec;

use crate::db::{self, Db, Kernel, SourceFile};
use crate::ide::diagnostics::diagnostics;

/// Elements of the tensors of a scenario that is made up: enough for any small grid.
const SCENARIO_ELEMENTS: u32 = 1 << 20;

/// What a scenario that is made up passes for integers.
const SCENARIO_NUMBER: u32 = 1024;

/// The edits that are offered at `offset`.
pub(crate) fn assists(db: &dyn Db, file: SourceFile, offset: usize) -> Vec<Fix> {
    let module = db::module(db, file);
    let mut found = Vec::new();
    for (index, _) in db::parts::jit_items(db, file) {
        let item = &module.items[*index as usize];
        let ItemKind::Function(function) = &item.kind else { continue };
        if !item.range.touches(offset) {
            continue;
        }
        found.extend(annotate(db, file, function, offset));
        if let Some(types) = db::types(db, file, *index) {
            found.extend(mask(db, file, function, types, offset));
        }
    }
    if let Some(kernel) = db::kernel_at(db, file, offset).filter(|found| found.scenarios.is_empty())
    {
        found.extend(scenario(db, file, kernel));
    }
    found
}

fn insert(db: &dyn Db, file: SourceFile, offset: u32, text: impl Into<String>) -> TextEdit {
    let range = TextRange::empty(offset as usize);
    TextEdit { at: FileRange { file: file.id(db), range }, text: text.into() }
}

/// What the file calls `triton.language`.
fn language(db: &dyn Db, file: SourceFile) -> String {
    let mut items = db::module(db, file).items.iter();
    let imported = items.find(|item| match &item.kind {
        ItemKind::Import { path } => path.iter().map(|part| &**part).eq(["triton", "language"]),
        ItemKind::ImportFrom { path, member, .. } => {
            path.iter().map(|part| &**part).eq(["triton"]) && &**member == "language"
        }
        _ => false,
    });
    imported.map_or("tl".to_owned(), |item| item.name.to_string())
}

/// `: tl.constexpr` after the parameter at `offset`.
fn annotate(db: &dyn Db, file: SourceFile, function: &Function, offset: usize) -> Option<Fix> {
    let mut params = function.params.iter();
    let param = params.find(|param| param.annotation.is_none() && param.range.touches(offset))?;
    let annotation = format!("{}.constexpr", language(db, file));
    Some(Fix {
        title: format!("Annotate `{}` with `{annotation}`", param.name),
        edits: vec![insert(db, file, param.range.end, format!(": {annotation}"))],
    })
}

/// `mask=..., other=...` for the load or store around `offset` that has none.
fn mask(
    db: &dyn Db,
    file: SourceFile,
    function: &Function,
    types: &BodyTypes,
    offset: usize,
) -> Option<Fix> {
    let calls = function.body.exprs.iter().filter_map(|(expr, data)| match data {
        Expr::Call { callee, args } if function.map.exprs[expr].touches(offset) => {
            Some((expr, *callee, args))
        }
        _ => None,
    });
    let (call, callee, args) = calls.min_by_key(|(expr, ..)| function.map.exprs[*expr].len())?;
    let Some(Value::Builtin(builtin)) = types.value(callee) else { return None };
    // The mask of a load comes second, that of a store third.
    let before_mask = match builtin.name {
        "load" => 1,
        "store" => 2,
        _ => return None,
    };
    let named =
        args.iter().any(|arg| matches!(&arg.kind, ArgKind::Keyword(name) if &**name == "mask"));
    if named || args.len() > before_mask {
        return None;
    }
    let condition = condition(function, types, args, function.map.exprs[call])?;
    let loads = builtin.name == "load";
    let text = format!(", mask={condition}{}", if loads { ", other=0.0" } else { "" });
    let end = function.map.exprs[call].end.checked_sub(1)?;
    let title = if loads { "Add mask and other" } else { "Add mask" };
    Some(Fix { title: title.to_owned(), edits: vec![insert(db, file, end, text)] })
}

/// A mask that was computed before, else a comparison of the offsets with a length.
fn condition(
    function: &Function,
    types: &BodyTypes,
    args: &[Arg],
    call: TextRange,
) -> Option<String> {
    let assigned = function.body.stmts.values().filter_map(|stmt| match stmt {
        Stmt::Assign { targets, .. } => targets.first().copied(),
        _ => None,
    });
    let names = assigned.filter_map(|target| match &function.body.exprs[target] {
        Expr::Name(name) if function.map.exprs[target].end < call.start => Some(name.clone()),
        _ => None,
    });
    let is_mask = |name: &&str| name.to_lowercase().contains("mask");
    let names: Vec<_> = names.collect();
    if let Some(mask) = names.iter().rev().map(|name| &**name).find(is_mask) {
        return Some(mask.to_owned());
    }
    let offsets = offsets(function, types, args.first()?.value)?;
    let lengths = function.params.iter().filter(|param| {
        let name = param.name.to_lowercase();
        let is_length = name.starts_with('n') || name.contains("size") || name.contains("len");
        is_length && types.param_class(&param.name) == Some(ValueClass::Scalar)
    });
    let length = lengths.map(|param| param.name.clone()).next()?;
    Some(format!("{offsets} < {length}"))
}

/// The name of the offsets that are added to a pointer.
fn offsets(function: &Function, types: &BodyTypes, pointer: ExprId) -> Option<String> {
    match &function.body.exprs[pointer] {
        Expr::Binary { op: BinaryOp::Add, lhs, rhs } => {
            offsets(function, types, *rhs).or_else(|| offsets(function, types, *lhs))
        }
        Expr::Name(name) if types.class(pointer) == Some(ValueClass::Tile) => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// A scenario after a kernel that has none: its active specialization with made-up tensors.
fn scenario(db: &dyn Db, file: SourceFile, kernel: &Kernel) -> Option<Fix> {
    let spec = kernel.specialization(db, kernel.active(db))?.spec;
    let (mut names, mut values, mut args) = (Vec::new(), Vec::new(), Vec::new());
    for (name, arg) in &spec.args {
        let value = match arg {
            ArgSpec::Constexpr(value) => {
                args.push(format!("{name}={value}"));
                continue;
            }
            ArgSpec::Runtime { signature, .. } => argument(name, signature)?,
            ArgSpec::Tuple(_) => return None,
        };
        names.push(name.to_string());
        values.push(value);
        args.push(name.to_string());
    }
    // Arguments by position come first.
    args.sort_by_key(|arg| arg.contains('='));
    let mut text = String::from("\n\n");
    for (name, value) in names.iter().zip(&values) {
        let _ = writeln!(text, "# tile: {name} = {value}");
    }
    let _ = write!(text, "# tile: {}[(1,)]({})", kernel.name, args.join(", "));
    let end = kernel.range.end;
    Some(Fix {
        title: format!("Add a scenario that launches `{}`", kernel.name),
        edits: vec![insert(db, file, end, text)],
    })
}

/// A value for a parameter of this type.
fn argument(name: &str, signature: &str) -> Option<String> {
    let Some(element) = signature.strip_prefix('*') else {
        let is_float = signature.starts_with("fp") || signature.starts_with("bf");
        return (!signature.starts_with("tensordesc"))
            .then(|| if is_float { "1.0".to_owned() } else { SCENARIO_NUMBER.to_string() });
    };
    let dtype = DType::from_signature(element.trim_start_matches('k'))?;
    let member = dtype.member();
    let suffix = if member == "float32" { String::new() } else { format!(", dtype={member}") };
    let is_output = name.starts_with("out") || name.contains("_out") || name.starts_with("o_");
    Some(match () {
        () if is_output => format!("empty({SCENARIO_ELEMENTS}{suffix})"),
        () if member.contains("int") => format!("randint(0, 8, {SCENARIO_ELEMENTS}{suffix})"),
        () => format!("randn({SCENARIO_ELEMENTS}{suffix})"),
    })
}

/// Puts the fastest configuration that tuning found in front of the kernel's others, where runs and
/// views start; a launch must not name values that are tuned. `None` where the configurations are
/// not written as a list.
pub(crate) fn apply_fastest(
    db: &dyn Db,
    file: SourceFile,
    kernel: &Kernel,
    values: &[(String, String)],
) -> Option<Fix> {
    let all = db::configurations(db, file, kernel.at.index);
    let fastest = all.iter().position(|known| known == values).filter(|index| *index > 0)?;
    let listed = configuration_list(&kernel.function).filter(|items| items.len() == all.len())?;
    let places = [listed[0], listed[fastest]].map(|item| kernel.function.map.exprs[item]);
    let text = file.text(db).as_ref()?.text();
    let id = file.id(db);
    let swap = |to: TextRange, from: TextRange| -> Option<TextEdit> {
        let text = text.get(from.as_usize())?.to_owned();
        Some(TextEdit { at: FileRange { file: id, range: to }, text })
    };
    let edits = vec![swap(places[0], places[1])?, swap(places[1], places[0])?];
    let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let title = format!("Apply the fastest configuration, {}", pairs.join(" "));
    Some(Fix { title, edits })
}

/// The items of the list that `@triton.autotune(configs=[...])` is given.
fn configuration_list(function: &Function) -> Option<&[ExprId]> {
    let body = &function.body;
    function.decorators.iter().find_map(|decorator| {
        let Expr::Call { args, .. } = &body.exprs[*decorator] else { return None };
        let named =
            |arg: &&Arg| matches!(&arg.kind, ArgKind::Keyword(name) if &**name == "configs");
        let first = args.first().filter(|arg| arg.kind == ArgKind::Positional);
        match &body.exprs[args.iter().find(named).or(first)?.value] {
            Expr::List(items) => Some(items.as_slice()),
            _ => None,
        }
    })
}

/// The best fix of every finding in a file, as far as they do not get in each other's way.
pub(crate) fn fix_all(db: &dyn Db, file: SourceFile, exact: &[Diagnostic]) -> Option<Fix> {
    let mut edits: Vec<TextEdit> = Vec::new();
    let overlaps = |edits: &[TextEdit], new: &TextEdit| {
        edits.iter().any(|old| {
            let (a, b) = (old.at.range, new.at.range);
            old.at.file == new.at.file && a.start <= b.end && b.start <= a.end
        })
    };
    for finding in diagnostics(db, file, exact) {
        let Some(fix) = finding.fixes.first() else { continue };
        if !fix.edits.iter().any(|edit| overlaps(&edits, edit)) {
            edits.extend(fix.edits.iter().cloned());
        }
    }
    let title = "Fix all that Tile can fix".to_owned();
    (!edits.is_empty()).then_some(Fix { title, edits })
}
