//! Edits that nobody needs and somebody may want: an annotation, a mask, a scenario.

use tile_compiler::diagnostic::{Diagnostic, Fix, TextEdit};
use tile_compiler::eval::ValueClass;
use tile_compiler::hir::{Arg, ArgKind, Expr, ExprId, Function, ItemKind, ParamKind};
use tile_compiler::source::{FileRange, TextRange};
use tile_compiler::specialization::ArgSpec;

use crate::db::{self, Db, Kernel, SourceFile};
use crate::ide::diagnostics::diagnostics;
use crate::ide::trial::adds_no_error;

mod mask;
mod scenario;
#[cfg(test)]
mod tests;

/// The edits that are offered at `offset`: each leaves the file without an error that it does not
/// have already.
pub(crate) fn assists(db: &dyn Db, file: SourceFile, offset: usize) -> Vec<Fix> {
    let module = db::module(db, file);
    let mut found = Vec::new();
    for (index, _) in db::parts::jit_items(db, file) {
        let item = &module.items[*index as usize];
        let ItemKind::Function(function) = &item.kind else { continue };
        if !item.range.touches(offset) {
            continue;
        }
        found.extend(annotate(db, file, *index, function, offset));
        if let Some(types) = db::types(db, file, *index) {
            found.extend(mask::mask(db, file, function, types, offset));
        }
    }
    if let Some(kernel) = db::kernel_at(db, file, offset).filter(|found| found.scenarios.is_empty())
    {
        found.extend(scenario::scenario(db, file, kernel.at.index));
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
        ItemKind::Import { path, .. } => path.iter().map(|part| &**part).eq(["triton", "language"]),
        ItemKind::ImportFrom { path, member, .. } => {
            path.iter().map(|part| &**part).eq(["triton"]) && &**member == "language"
        }
        _ => false,
    });
    imported.map_or("tl".to_owned(), |item| item.name.to_string())
}

/// `: tl.constexpr` after the parameter at `offset`, unless it is known to be given a pointer, a
/// tile or a descriptor.
fn annotate(
    db: &dyn Db,
    file: SourceFile,
    index: u32,
    function: &Function,
    offset: usize,
) -> Option<Fix> {
    let mut params = function.params.iter();
    let param = params.find(|param| param.annotation.is_none() && param.range.touches(offset))?;
    let class = db::types(db, file, index).and_then(|types| types.param_class(&param.name));
    let is_memory = matches!(class, Some(ValueClass::Pointer | ValueClass::Tile));
    let is_many = matches!(param.kind, ParamKind::VarArgs | ParamKind::KwArgs);
    if is_memory || is_many || is_passed_memory(db, file, index, &param.name) {
        return None;
    }
    let annotation = format!("{}.constexpr", language(db, file));
    let fix = Fix {
        title: format!("Annotate `{}` with `{annotation}`", param.name),
        edits: vec![insert(db, file, param.range.end, format!(": {annotation}"))],
    };
    adds_no_error(db, file, &fix).then_some(fix)
}

/// Whether the kernel that is this item is compiled for a pointer or a descriptor in this place.
fn is_passed_memory(db: &dyn Db, file: SourceFile, index: u32, name: &str) -> bool {
    let mut kernels = db::kernels(db, file).iter();
    let kernel = kernels.find(|kernel| kernel.at.index == index);
    let active = kernel.and_then(|kernel| kernel.specializations.get(kernel.active(db)));
    active.is_some_and(|active| match active.spec.args.get(name) {
        Some(ArgSpec::Runtime { signature, .. }) => {
            signature.starts_with('*') || signature.starts_with("tensordesc")
        }
        _ => false,
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
            Expr::List(items) => Some(&**items),
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
