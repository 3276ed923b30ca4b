//! Variables of the environment that programs set for the modules that they import.

use rustc_hash::FxHashSet;

use super::launchers::is_test;
use super::ways::ways;
use super::{ItemRef, Resolution, Sources, resolve_item};
use crate::hir::{Body, Expr, ExprId, Item, ItemKind, Literal, MainBlock, Name, Stmt};
use crate::source::FileId;

/// How many files are looked at that import a module, perhaps by way of others.
const MAX_IMPORTERS: usize = 64;

/// How many files are looked at that a program imports, perhaps by way of others.
const MAX_IMPORTED: usize = 256;

/// Methods of `os.environ`, and functions of `os`, that set the variable that they name.
const SETTERS: &[&str] = &["putenv", "setdefault"];

/// What is known of a variable of the environment where a module runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Nobody sets it.
    Never,
    /// All programs that the module is a part of set it to this text.
    Always(Name),
    /// Some code may set it.
    Perhaps,
}

/// What the outermost statements of what imports a module, perhaps by way of others, do with a variable of the
/// environment.
pub(crate) fn setting(sources: &dyn Sources, file: FileId, name: &str) -> Setting {
    let mut seen = FxHashSet::default();
    let mut next = sources.importers(file);
    let mut always: Option<Setting> = None;
    let mut is_set = false;
    while let Some(file) = next.pop() {
        if !seen.insert(file) {
            continue;
        }
        if seen.len() > MAX_IMPORTERS {
            return Setting::Perhaps;
        }
        let here = set_by(sources, file, name);
        is_set |= here != Setting::Never;
        let importers = sources.importers(file);
        // A program is what nothing imports.
        let is_program = importers.is_empty();
        next.extend(importers);
        match (&always, here) {
            (None, here) if is_program => always = Some(here),
            (Some(known), here) if is_program && *known == here => {}
            (_, Setting::Never) if !is_program => {}
            _ => always = Some(Setting::Perhaps),
        }
    }
    match always {
        Some(always @ Setting::Always(_)) => always,
        _ if is_set => Setting::Perhaps,
        _ => Setting::Never,
    }
}

/// The modules that ask for variables of the environment among what `file` imports, perhaps by way of others,
/// where it is a program or has tests: it may set the variables first.
pub(super) fn asking_modules(sources: &dyn Sources, file: FileId) -> Vec<FileId> {
    let module = sources.module(file).unwrap_or_default();
    let is_test =
        |item: &Item| matches!(&item.kind, ItemKind::Function(function) if is_test(function));
    if module.mains.is_empty() && !module.items.iter().any(is_test) {
        return Vec::new();
    }
    let mut seen = FxHashSet::from_iter([file]);
    let mut next = vec![file];
    let mut asking = Vec::new();
    while let Some(here) = next.pop().filter(|_| seen.len() <= MAX_IMPORTED) {
        let ways = ways(sources, here);
        if ways.asks_environment && here != file {
            asking.push(here);
        }
        next.extend(ways.read.iter().copied().filter(|other| seen.insert(*other)));
    }
    asking
}

/// Whether an expression is what variables of the environment are asked of.
pub(super) fn is_asked(expr: &Expr) -> bool {
    matches!(expr, Expr::Attribute { attr: name, .. } | Expr::Name(name)
        if matches!(&**name, "environ" | "getenv"))
}

/// What a module does with a variable before it imports anything of the project.
fn set_by(sources: &dyn Sources, file: FileId, name: &str) -> Setting {
    let module = sources.module(file).unwrap_or_default();
    let set_in_main = module.mains.iter().rev().map(|main| (main, set_in(main, name)));
    let mut setting = set_in_main.filter(|(_, setting)| *setting != Setting::Never);
    match setting.next() {
        // What has been imported may have asked for it before.
        Some((main, Setting::Always(_)))
            if main.is_program || imports_before(sources, file, main.range.start) =>
        {
            Setting::Perhaps
        }
        Some((_, setting)) => setting,
        None => Setting::Never,
    }
}

/// Whether a module imports anything of the project before a place.
fn imports_before(sources: &dyn Sources, file: FileId, place: u32) -> bool {
    let module = sources.module(file).unwrap_or_default();
    let is_import =
        |item: &Item| matches!(item.kind, ItemKind::Import { .. } | ItemKind::ImportFrom { .. });
    let is_of_project = |index: u32| {
        !matches!(
            resolve_item(sources, ItemRef { file, index }),
            Resolution::External(_) | Resolution::Triton(_) | Resolution::TritonModule(_)
        )
    };
    let earlier = |item: &Item| is_import(item) && item.range.start < place;
    (0..).zip(&module.items).any(|(index, item)| earlier(item) && is_of_project(index))
}

/// What outermost statements do with a variable.
fn set_in(main: &MainBlock, name: &str) -> Setting {
    let body = &*main.body;
    let text = |id: ExprId| match &body.exprs[id] {
        Expr::Literal(Literal::Str(text)) => Some(Name::from(&**text)),
        _ => None,
    };
    let is_name = |id: ExprId| text(id).is_some_and(|text| *text == *name);
    // What a statement sets it to; the inner `None` where that is not written.
    let set_to = |stmt: &Stmt| match stmt {
        Stmt::Assign { targets, value } => {
            let is_meant = |target: &ExprId| match &body.exprs[*target] {
                Expr::Subscript { value, index } => is_environment(body, *value) && is_name(*index),
                _ => false,
            };
            targets.iter().any(is_meant).then(|| text(*value))
        }
        Stmt::Expr(call) => match &body.exprs[*call] {
            Expr::Call { callee, args } => match (&body.exprs[*callee], &args[..]) {
                (Expr::Attribute { attr, .. }, [key, rest @ ..])
                    if SETTERS.contains(&&**attr) && is_name(key.value) =>
                {
                    Some(rest.first().and_then(|value| text(value.value)))
                }
                (Expr::Attribute { attr, value }, _) if &**attr == "update" => {
                    is_environment(body, *value).then_some(None)
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let outermost = body.root.iter().filter_map(|stmt| set_to(&body.stmts[*stmt]));
    let outermost: Vec<Option<Name>> = outermost.collect();
    let all = body.stmts.values().filter_map(set_to).count();
    match outermost.last() {
        Some(Some(text)) if all == outermost.len() => Setting::Always(text.clone()),
        _ if all == 0 => Setting::Never,
        _ => Setting::Perhaps,
    }
}

fn is_environment(body: &Body, id: ExprId) -> bool {
    match &body.exprs[id] {
        Expr::Attribute { attr: name, .. } | Expr::Name(name) => &**name == "environ",
        _ => false,
    }
}
