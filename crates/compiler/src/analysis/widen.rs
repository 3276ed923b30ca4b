//! The edit that computes an offset which overflows in 64 bits.

use crate::diagnostic::{Diagnostic, TextEdit};
use crate::hir::{Expr, ItemKind, Module, Name, lower_expression};
use crate::ir::{Function, Opcode, Value};
use crate::project::Sources;
use crate::source::{FileRange, TextRange};

/// The operand of the operation that gives `value` whose conversion to 64 bits makes the operation
/// one of 64 bits; `None` when the conversion would change the type of a variable that a loop or a
/// branch gives on, or when the operation stands in a helper.
pub(super) fn operand(func: &Function, value: Value) -> Option<usize> {
    let data = func.def(value)?;
    let widens = matches!(data.opcode, Opcode::Add | Opcode::Sub | Opcode::Mul);
    if !widens || func.frames(data.loc).len() != 1 || is_given_on(func, value) {
        return None;
    }
    // Compile-time values have no `to`.
    [0, 1].into_iter().find(|operand| func.constant_bits(data.operand(*operand)).is_none())
}

/// True when integers computed from `value` leave a loop's trip or a branch.
fn is_given_on(func: &Function, value: Value) -> bool {
    let mut reached = rustc_hash::FxHashSet::from_iter([value]);
    for inst in func.walk() {
        let data = &func.insts[inst];
        if !data.uses().any(|operand| reached.contains(&operand)) {
            continue;
        }
        if data.opcode.is_terminator() {
            return true;
        }
        let integers = data.results.iter().copied().filter(|result| {
            func.ty(*result).number().is_some_and(|number| number.is_int() && number.bits() > 1)
        });
        reached.extend(integers);
    }
    false
}

/// `finding` with an edit that converts the operand of the operation at its first related place.
pub(super) fn fix(sources: &dyn Sources, finding: Diagnostic, operand: usize) -> Diagnostic {
    match edit(sources, &finding, operand) {
        Some(edit) => finding.with_fix("compute the offset in 64 bits", vec![edit]),
        None => finding,
    }
}

fn edit(sources: &dyn Sources, finding: &Diagnostic, operand: usize) -> Option<TextEdit> {
    let place = finding.related.first()?.at;
    let text = sources.text(place.file)?;
    let operation = text.get(place.range.as_usize())?;
    let (body, map, root) = lower_expression(operation)?;
    let Expr::Binary { lhs, rhs, .. } = body.exprs[root] else { return None };
    let operand = if operand == 0 { lhs } else { rhs };
    let range = map.exprs[operand];
    let spelled = operation.get(range.as_usize())?;
    let alone = matches!(
        body.exprs[operand],
        Expr::Name(_) | Expr::Call { .. } | Expr::Attribute { .. } | Expr::Subscript { .. }
    );
    let language = language_name(&*sources.module(place.file)?);
    let text = match alone {
        true => format!("{spelled}.to({language}.int64)"),
        false => format!("({spelled}).to({language}.int64)"),
    };
    let start = place.range.start + range.start;
    let range = TextRange { start, end: start + range.len() as u32 };
    Some(TextEdit { at: FileRange { file: place.file, range }, text })
}

/// What the file calls `triton.language`.
fn language_name(module: &Module) -> String {
    let is_language = |path: &[Name]| path.iter().map(|part| &**part).eq(["triton", "language"]);
    let named = module.items.iter().find(|item| match &item.kind {
        ItemKind::Import { path, .. } => is_language(path),
        ItemKind::ImportFrom { path, member, .. } => {
            path.len() == 1 && &*path[0] == "triton" && &**member == "language"
        }
        _ => false,
    });
    named.map_or_else(|| "tl".to_owned(), |item| item.name.to_string())
}
