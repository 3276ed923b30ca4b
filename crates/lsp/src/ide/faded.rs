//! What editors show faded or struck out: code that is left out, names that nothing reads, members
//! of the language that should not be used any more. Hints for the eye: the command line says
//! nothing of them.

use rustc_hash::FxHashSet;
use tile_compiler::diagnostic::{Code, Diagnostic};
use tile_compiler::eval::BodyTypes;
use tile_compiler::eval::value::Value;
use tile_compiler::hir::{Body, Expr, ExprId, Function, Literal, Stmt, StmtId};
use tile_compiler::source::{FileRange, TextRange};
use tile_compiler::specialization::{Origin, Specialization};

use crate::db::{self, Db, Kernel, SourceFile, labels};

/// Code of kernels that their active specializations leave out, where those are known and the
/// kernel compiles.
pub(crate) fn inactive(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for kernel in db::kernels(db, file) {
        let Some(left_out) = left_out(db, file, kernel) else { continue };
        found.extend(left_out.ranges.into_iter().map(|range| {
            let message = left_out.message.clone();
            Diagnostic::new(Code::Inactive, FileRange { file: file.id(db), range }, message)
        }));
    }
    found
}

/// A sentence about code at `offset` that the active specialization of its kernel leaves out.
pub(crate) fn left_out_at(db: &dyn Db, file: SourceFile, offset: usize) -> Option<String> {
    let mut kernels = db::kernels(db, file).iter();
    let kernel = kernels.find(|kernel| kernel.range.touches(offset))?;
    let left_out = left_out(db, file, kernel)?;
    let is_there = left_out.ranges.iter().any(|range| range.touches(offset));
    is_there.then(|| format!("Not compiled: {}.", left_out.message))
}

/// What the active specialization of a kernel leaves out.
struct LeftOut {
    /// Runs of statements, in source order.
    ranges: Vec<TextRange>,
    /// Which values leave them out.
    message: String,
}

/// `None` where the specialization is a guess or the kernel does not compile.
fn left_out(db: &dyn Db, file: SourceFile, kernel: &Kernel) -> Option<LeftOut> {
    let active = kernel.active(db);
    let is_known = |spec: &Specialization| spec.is_certain() && spec.origin != Origin::Guess;
    let known = kernel.specializations.get(active).filter(|labelled| is_known(&labelled.spec))?;
    let runs = left_out_runs(db, file, kernel.at.index, active).as_ref()?;
    let stmts = &kernel.function.map.stmts;
    let range = |run: &Run| TextRange { start: stmts[run.0].start, end: stmts[run.1].end };
    let ranges = runs.iter().map(range).collect();
    let values = labels::values(&known.spec);
    let message = format!("`{}` leaves this out with {values}", kernel.name);
    Some(LeftOut { ranges, message })
}

/// Statements of a block that follow one another: the first and the last of them.
type Run = (StmtId, StmtId);

/// The statements that a specialization of the kernel which is this item of a file leaves out, in source
/// order; `None` where it does not compile. They are kept where the types that show it are not.
#[salsa::tracked(returns(ref))]
fn left_out_runs(
    db: &dyn Db,
    file: SourceFile,
    item: u32,
    specialization: usize,
) -> Option<Vec<Run>> {
    db::lowered(db, file, item, specialization).ir.as_ref()?;
    let body = &db::parts::function(db, file, item)?.body;
    let search = Search { body, types: db::exact_types(db, file, item, specialization) };
    let mut runs = Vec::new();
    search.block(&body.root, &mut runs);
    Some(runs)
}

/// The search for statements of which nothing was evaluated.
struct Search<'a> {
    body: &'a Body,
    types: &'a BodyTypes,
}

impl Search<'_> {
    /// Adds each run of statements that are left out.
    fn block(&self, stmts: &[StmtId], out: &mut Vec<Run>) {
        let mut run: Option<Run> = None;
        for stmt in stmts {
            if self.is_left_out(*stmt) {
                run = Some((run.map_or(*stmt, |run| run.0), *stmt));
                continue;
            }
            out.extend(run.take());
            for block in blocks(&self.body.stmts[*stmt]) {
                self.block(block, out);
            }
        }
        out.extend(run);
    }

    /// True when the statement computes something and nothing of it was evaluated.
    fn is_left_out(&self, stmt: StmtId) -> bool {
        let mut exprs = Vec::new();
        expressions(self.body, stmt, &mut exprs);
        exprs.retain(|expr| !matches!(self.body.exprs[*expr], Expr::Literal(_)));
        !exprs.is_empty() && exprs.iter().all(|expr| self.types.value(*expr).is_none())
    }
}

/// Every expression of a statement, of those inside it as well, annotations aside.
fn expressions(body: &Body, stmt: StmtId, out: &mut Vec<ExprId>) {
    let mut next: Vec<ExprId> = Vec::new();
    match &body.stmts[stmt] {
        Stmt::Expr(value) => next.push(*value),
        Stmt::Assign { targets, value } => next.extend(targets.iter().chain([value])),
        Stmt::AugAssign { target, value, .. } => next.extend([target, value]),
        Stmt::AnnAssign { target, value, .. } => {
            if let Some(value) = value {
                next.extend([target, value]);
            }
        }
        Stmt::If { test, .. } | Stmt::While { test, .. } => next.push(*test),
        Stmt::For { target, iter, .. } => next.extend([target, iter]),
        Stmt::With { items, .. } => next.extend(items.iter().map(|(manager, _)| manager)),
        Stmt::Return(value) => next.extend(value),
        Stmt::Assert { test, message } => next.extend([*test].iter().chain(message)),
        Stmt::Try { .. } | Stmt::Match { .. } | Stmt::Pass | Stmt::Unsupported(_) | Stmt::Error => {
        }
    }
    while let Some(expr) = next.pop() {
        body.exprs[expr].for_each_child(|child| next.push(child));
        out.push(expr);
    }
    for block in blocks(&body.stmts[stmt]) {
        block.iter().for_each(|inner| expressions(body, *inner, out));
    }
}

/// The blocks inside a statement.
fn blocks(stmt: &Stmt) -> Vec<&[StmtId]> {
    match stmt {
        Stmt::If { body, orelse, .. }
        | Stmt::For { body, orelse, .. }
        | Stmt::While { body, orelse, .. } => vec![body, orelse],
        Stmt::With { body, .. } => vec![body],
        _ => Vec::new(),
    }
}

/// Names that nothing reads and members that should not be used any more, in the jit functions of
/// a file.
pub(crate) fn general(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let module = db::module(db, file);
    let mut found = Vec::new();
    for (index, _) in db::parts::jit_items(db, file) {
        let Some(tile_compiler::hir::ItemKind::Function(function)) =
            module.items.get(*index as usize).map(|item| &item.kind)
        else {
            continue;
        };
        let place = |range| FileRange { file: file.id(db), range };
        found.extend(unused(function).into_iter().map(|(name, range)| {
            Diagnostic::new(Code::Unused, place(range), format!("`{name}` is never read"))
        }));
        found.extend(deprecated(db, file, *index).iter().map(|(expr, message)| {
            Diagnostic::new(Code::Deprecated, place(function.map.exprs[*expr]), message.clone())
        }));
    }
    found
}

/// Parameters and variables that nothing reads, with their places.
fn unused(function: &Function) -> Vec<(&str, TextRange)> {
    let body = &function.body;
    let mut bound: Vec<(&str, TextRange)> = Vec::new();
    let mut targets: FxHashSet<ExprId> = FxHashSet::default();
    for stmt in body.stmts.values() {
        match stmt {
            Stmt::Assign { targets: all, .. } => {
                targets.extend(all);
                for target in all {
                    if let Expr::Name(name) = &body.exprs[*target] {
                        bound.push((name, function.map.exprs[*target]));
                    }
                }
            }
            Stmt::AnnAssign { target, value: Some(_), .. } => {
                targets.insert(*target);
                if let Expr::Name(name) = &body.exprs[*target] {
                    bound.push((name, function.map.exprs[*target]));
                }
            }
            // What a loop or an update binds is often there for its own sake.
            Stmt::AugAssign { target, .. } | Stmt::For { target, .. } => {
                targets.insert(*target);
            }
            // What does not parse may read anything.
            Stmt::Try { .. } | Stmt::Match { .. } | Stmt::Error | Stmt::Unsupported(_) => {
                return Vec::new();
            }
            _ => {}
        }
    }
    let mut read: FxHashSet<&str> = FxHashSet::default();
    for (expr, data) in &body.exprs {
        match data {
            Expr::Name(name) if !targets.contains(&expr) => {
                read.insert(name);
            }
            // Decorators name parameters in strings, and an annotation may be one.
            Expr::Literal(Literal::Str(text)) => {
                read.insert(text);
            }
            Expr::Missing | Expr::Unsupported(_) => return Vec::new(),
            _ => {}
        }
    }
    let params = function.params.iter().map(|param| (&*param.name, param.range));
    let all = params.chain(bound);
    all.filter(|(name, _)| !name.starts_with('_') && !read.contains(name)).collect()
}

/// Uses of members of the language that should not be used any more in the jit function that is this
/// item of a file, and what to say of each. They are kept where the types that show them are not.
#[salsa::tracked(returns(ref))]
fn deprecated(db: &dyn Db, file: SourceFile, item: u32) -> Vec<(ExprId, String)> {
    let mut found = Vec::new();
    let function = db::parts::function(db, file, item);
    let (Some(function), Some(types)) = (function, db::types(db, file, item)) else { return found };
    for (expr, data) in &function.body.exprs {
        let builtin = match types.value(expr) {
            Some(Value::Builtin(builtin)) => builtin,
            Some(Value::Bound(bound)) => match &bound.0 {
                Value::Builtin(builtin) => builtin,
                _ => continue,
            },
            _ => continue,
        };
        let (Expr::Attribute { .. } | Expr::Name(_), Some(instead)) = (data, builtin.deprecated)
        else {
            continue;
        };
        let message = format!("`{}` is deprecated. {instead}", builtin.display_name());
        found.push((expr, message));
    }
    found
}
