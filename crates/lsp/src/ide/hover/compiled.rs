//! What compiling and running a kernel tells of a place in it: layouts, instructions, last values.

use tile_compiler::artifact::{Frame, Listing};
use tile_compiler::hir::{ArgKind, Expr, ExprId, Function, Name, Stmt};
use tile_compiler::source::{FileId, FileRange};

use super::kernel::tensor;
use super::{Known, smallest_expr};
use crate::compile::{Compiled, KernelKey, Stage, Status};
use crate::db::{self, Db, Kernel, SourceFile};
use crate::ide::symbol::Semantics;
use crate::ide::tree::identifier_at;

/// At most this many lines of PTX are shown.
const MAX_PTX_LINES: usize = 16;

/// How the tile at `offset` lies in registers, if its kernel is compiled as it stands.
pub(super) fn layout(
    db: &dyn Db,
    semantics: &Semantics<'_>,
    offset: usize,
    known: Known<'_>,
) -> Option<String> {
    let (at, function) = semantics.functions_around(offset).into_iter().next()?;
    let expr = smallest_expr(function, offset)?;
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
pub(super) fn last_value(
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
pub(super) fn ptx_of_line(
    db: &dyn Db,
    file: SourceFile,
    offset: usize,
    known: Known<'_>,
) -> Option<String> {
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
    let is_line = |file, at| anchors.find_line(db, file, at) == Some(line);
    if !compiled.lines.iter().any(|(file, at)| is_line(*file, *at)) {
        return None;
    }
    let is_of_line = |frame: &Frame| is_line(frame.file, frame.line);
    let listing = compiled.ptx();
    let listing = Listing::ptx(&listing.text, &listing.line_map);
    let runs = listing.line_map.runs.iter();
    let of_line = runs.filter(|run| run.frames.iter().any(is_of_line));
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
