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
    let lowered = db::lowered(db, file, kernel.at.index, active);
    lowered.ir.as_ref()?;
    let mut ranges = Vec::new();
    let search = Search { function: &kernel.function, types: &lowered.types };
    search.block(&kernel.function.body.root, &mut ranges);
    let values = labels::values(&known.spec);
    let message = format!("`{}` leaves this out with {values}", kernel.name);
    Some(LeftOut { ranges, message })
}

/// The search for statements of which nothing was evaluated.
struct Search<'a> {
    function: &'a Function,
    types: &'a BodyTypes,
}

impl Search<'_> {
    /// Adds the range of each run of statements that are left out.
    fn block(&self, stmts: &[StmtId], out: &mut Vec<TextRange>) {
        let mut run: Option<TextRange> = None;
        for stmt in stmts {
            let range = self.function.map.stmts[*stmt];
            if self.is_left_out(*stmt) {
                let start = run.map_or(range.start, |run| run.start);
                run = Some(TextRange { start, end: range.end });
                continue;
            }
            out.extend(run.take());
            for block in blocks(&self.function.body.stmts[*stmt]) {
                self.block(block, out);
            }
        }
        out.extend(run);
    }

    /// True when the statement computes something and nothing of it was evaluated.
    fn is_left_out(&self, stmt: StmtId) -> bool {
        let mut exprs = Vec::new();
        expressions(&self.function.body, stmt, &mut exprs);
        let body = &self.function.body.exprs;
        exprs.retain(|expr| !matches!(body[*expr], Expr::Literal(_)));
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
        let types = db::types(db, file, *index);
        found.extend(
            types
                .into_iter()
                .flat_map(|types| deprecated(function, types))
                .map(|(message, range)| Diagnostic::new(Code::Deprecated, place(range), message)),
        );
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

/// Uses of members of the language that should not be used any more: what to say, and where.
fn deprecated(function: &Function, types: &BodyTypes) -> Vec<(String, TextRange)> {
    let mut found = Vec::new();
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
        found.push((message, function.map.exprs[expr]));
    }
    found
}
