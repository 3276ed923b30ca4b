//! The shape of a file: outline, folds, selections.

use rustc_hash::FxHashMap;
use tile_compiler::hir::{Arg, Expr, Item, ItemKind, Literal};
use tile_compiler::project::{self, ItemRef, paths};
use tile_compiler::source::TextRange;

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::symbol::{Semantics, is_class};
use crate::ide::tree::{range, walk};

/// An entry of the outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: String,
    /// More about it.
    pub(crate) detail: Option<String>,
    /// What it is.
    pub(crate) kind: EntryKind,
    /// The whole.
    pub(crate) range: TextRange,
    /// Its name.
    pub(crate) name_range: TextRange,
}

/// What an entry of the outline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A kernel, or a function that kernels call.
    Function,
    /// A class.
    Class,
    /// A value.
    Constant,
    /// A scenario.
    Scenario,
}

/// Kernels and their scenarios; in `.tile` files everything. Other servers outline Python.
pub(crate) fn outline(db: &dyn Db, file: SourceFile) -> Vec<Entry> {
    let whole = paths::is_tile(&file.path(db).to_string_lossy());
    let module = db::module(db, file);
    let jit = db::parts::jit_items(db, file);
    let mut entries = Vec::new();
    for (index, item) in module.items.iter().enumerate() {
        let is_jit = jit.iter().any(|(at, _)| *at == index as u32);
        let kind = match &item.kind {
            ItemKind::Function(_) if whole || is_jit => EntryKind::Function,
            _ if whole && is_class(db, file, index) => EntryKind::Class,
            ItemKind::Assign { .. } if whole && item.scope.is_empty() => EntryKind::Constant,
            _ => continue,
        };
        entries.push(Entry {
            name: item.name.to_string(),
            detail: parameters(item),
            kind,
            range: item.range,
            name_range: item.name_range,
        });
    }
    let mut numbers: FxHashMap<ItemRef, usize> = FxHashMap::default();
    for (index, owner) in db::scenarios(db, file) {
        if owner.file != file.id(db) {
            continue;
        }
        let kernel = &module.items[owner.index as usize];
        let number = numbers.entry(owner).or_default();
        *number += 1;
        let range = module.scenarios[index].range;
        entries.push(Entry {
            name: format!("{}#{number}", kernel.name),
            detail: Some("scenario".to_owned()),
            kind: EntryKind::Scenario,
            range,
            name_range: range,
        });
    }
    entries.sort_by_key(|entry| entry.range);
    entries
}

/// The parameters of a function: what is known without asking what it is compiled for, which takes
/// longer than an outline may.
fn parameters(item: &Item) -> Option<String> {
    let ItemKind::Function(function) = &item.kind else { return None };
    let names: Vec<&str> = function.params.iter().map(|param| &*param.name).collect();
    Some(format!("({})", names.join(", ")))
}

/// Lines that fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fold {
    /// Where.
    pub(crate) range: TextRange,
    /// They are comments, as scenarios are.
    pub(crate) comment: bool,
}

/// Ranges of lines that fold: jit functions and what nests in them, scenarios; in `.tile` files
/// everything.
pub(crate) fn folds(db: &dyn Db, file: SourceFile) -> Vec<Fold> {
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let whole = paths::is_tile(&file.path(db).to_string_lossy());
    let module = db::module(db, file);
    let jit = project::jit_functions(&Analysis(db), file.id(db));
    let inside: Vec<TextRange> =
        jit.iter().filter_map(|at| Some(module.items.get(at.index as usize)?.range)).collect();
    let mut folds = Vec::new();
    walk(semantics.root(), &mut |node| {
        let at = range(node);
        let wanted = whole || inside.iter().any(|function| function.contains_range(at));
        let kinds = [
            "function_definition",
            "class_definition",
            "if_statement",
            "for_statement",
            "while_statement",
            "with_statement",
            "argument_list",
            "parameters",
        ];
        if wanted && kinds.contains(&node.kind()) {
            folds.push(Fold { range: at, comment: false });
        }
    });
    let scenarios = module.scenarios.iter();
    folds.extend(scenarios.map(|scenario| Fold { range: scenario.range, comment: true }));
    folds.sort();
    folds.dedup();
    folds
}

/// Ranges around `offset`, each inside the next.
pub(crate) fn selections(db: &dyn Db, file: SourceFile, offset: usize) -> Vec<TextRange> {
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let mut ranges = Vec::new();
    let mut next = semantics.root().descendant_for_byte_range(offset, offset);
    while let Some(node) = next {
        if ranges.last() != Some(&range(node)) {
            ranges.push(range(node));
        }
        next = node.parent();
    }
    ranges
}

/// The file names that scenarios load, with where they stand.
pub(crate) fn loaded_files(db: &dyn Db, file: SourceFile) -> Vec<(TextRange, String)> {
    let mut found = Vec::new();
    for scenario in &db::module(db, file).scenarios {
        for expr in scenario.body.exprs.values() {
            let Expr::Call { callee, args } = expr else { continue };
            let is_load =
                matches!(&scenario.body.exprs[*callee], Expr::Name(name) if &**name == "load");
            let [Arg { value, .. }, ..] = &**args else { continue };
            if let (true, Expr::Literal(Literal::Str(path))) =
                (is_load, &scenario.body.exprs[*value])
            {
                found.push((scenario.map.exprs[*value], path.to_string()));
            }
        }
    }
    found
}
