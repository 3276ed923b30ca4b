//! Findings in functions that another definition of their name replaces before anything uses them: they
//! are no mistakes that ever happen.

use crate::diagnostic::{Diagnostic, Severity};
use crate::hir::{Expr, ExprId, Function, Item, ItemKind, Module, Name, Occasion};
use crate::source::{FileId, LineIndex, TextRange};

/// Makes errors and warnings in such functions of `file` hints that say so.
pub(super) fn soften(
    diagnostics: &mut [Diagnostic],
    (file, module): (FileId, &Module),
    lines: &LineIndex,
) {
    let replaced = replaced(module);
    for diagnostic in diagnostics.iter_mut().filter(|found| found.primary.file == file) {
        let around =
            |(range, _): &&(TextRange, &Item)| range.contains_range(diagnostic.primary.range);
        let Some((_, by)) = replaced.iter().find(around) else { continue };
        if matches!(diagnostic.severity, Severity::Error | Severity::Warning) {
            let line = lines.line(by.name_range.start) + 1;
            diagnostic.severity = Severity::Hint;
            diagnostic.notes.push(format!(
                "line {line} defines `{}` again, and nothing uses this definition before",
                by.name
            ));
        }
    }
}

/// The functions that are replaced, each with what replaces it.
fn replaced(module: &Module) -> Vec<(TextRange, &Item)> {
    let items = module.items.iter().enumerate();
    items
        .filter_map(|(index, item)| Some((item.range, replacement(module, index, item)?)))
        .collect()
}

/// The definition of a module that replaces the one at `index`, if nothing in between may use that. Statements
/// inside of functions and classes are no items, so what stands there is left alone.
fn replacement<'m>(module: &'m Module, index: usize, item: &Item) -> Option<&'m Item> {
    let is_certain = |item: &Item| item.occasion == Occasion::Always && item.guard.is_none();
    let runs_nothing = |function: &Function| {
        function.decorators.iter().all(|decorator| is_of_triton(function, *decorator))
    };
    let ItemKind::Function(function) = &item.kind else { return None };
    if !item.scope.is_empty() || !is_certain(item) || !runs_nothing(function) {
        return None;
    }
    for next in module.items[index + 1..].iter().filter(|next| next.scope.is_empty()) {
        let other = match &next.kind {
            ItemKind::Function(other) => other,
            ItemKind::Import { .. } | ItemKind::ImportFrom { .. } => continue,
            // Other statements may use whatever is bound.
            _ => return None,
        };
        let runs_between =
            |main: TextRange| main.start >= item.range.end && main.end <= next.range.start;
        // A decorator may run code that uses it.
        if module.mains.iter().any(|main| runs_between(main.range))
            || uses_at_once(other, &item.name)
            || !runs_nothing(other)
        {
            return None;
        }
        if next.name == item.name {
            return is_certain(next).then_some(next);
        }
    }
    None
}

/// Whether a decorator makes kernels and does nothing else: others may keep what they are given.
fn is_of_triton(function: &Function, decorator: ExprId) -> bool {
    let mut part = decorator;
    loop {
        part = match &function.body.exprs[part] {
            Expr::Name(name) => return matches!(&**name, "triton" | "jit"),
            Expr::Attribute { value, .. } => *value,
            Expr::Call { callee, .. } => *callee,
            _ => return false,
        };
    }
}

/// Whether the definition itself uses the name: in decorators, annotations or defaults.
fn uses_at_once(function: &Function, name: &Name) -> bool {
    let defaults = function.params.iter().flat_map(|param| [param.default, param.annotation]);
    let heads =
        function.decorators.iter().copied().chain(defaults.flatten()).chain(function.returns);
    heads.into_iter().any(|head| function.body.mentions(head, name))
}
