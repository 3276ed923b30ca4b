//! Iterators that variables hold: what goes over one leaves nothing of it to what comes after.

use crate::hir::collections::changed_in;
use crate::hir::{Body, Expr, ExprId, Name, SourceMap, Stmt};
use crate::host::code::frame::Frame;
use crate::host::value::{Callable, Value};
use crate::host::{Host, MainBlock};
use crate::project::{Resolution, function};
use crate::source::TextRange;

/// Functions of Python that give an iterator.
const ITERATORS: &[&str] = &["enumerate", "filter", "iter", "map", "reversed", "zip"];

/// Methods of dicts that give what shows what these hold now.
const VIEWS: &[&str] = &["items", "keys", "values"];

impl Host<'_> {
    /// What a variable holds that is bound to `source`, of which the value is `value`: nothing is known of an iterator
    /// that may be gone over again, since all of its elements are listed here whatever was taken out of it.
    pub(crate) fn bound_once(
        &mut self,
        frame: &mut Frame,
        target: ExprId,
        source: ExprId,
        value: Value,
    ) -> Value {
        let code = frame.code.clone();
        let Expr::Name(name) = &code.body().exprs[target] else { return value };
        if self.shows_changes(frame, source) || computes_later(code.body(), source) {
            return Value::Unknown;
        }
        let is_listed = matches!(value, Value::List(_));
        match is_listed && self.is_iterator(frame, source) && self.is_read_again(frame, name) {
            true => Value::Unknown,
            false => value,
        }
    }

    /// Whether an expression gives what shows what a dict holds whenever it is looked at, and the code changes the dict.
    fn shows_changes(&self, frame: &Frame, source: ExprId) -> bool {
        let body = frame.code.body();
        let exprs = &body.exprs;
        let Expr::Call { callee, args } = &exprs[source] else { return false };
        let Expr::Attribute { value, attr } = &exprs[*callee] else { return false };
        let dict = exprs[*value].as_name();
        args.is_empty()
            && VIEWS.contains(&&**attr)
            && dict.is_some_and(|dict| changed_in(body).contains(&dict))
    }

    /// Whether an expression makes an iterator.
    fn is_iterator(&mut self, frame: &mut Frame, source: ExprId) -> bool {
        let code = frame.code.clone();
        let callee = match &code.body().exprs[source] {
            Expr::Generator(_) => return true,
            Expr::Call { callee, .. } => *callee,
            _ => return false,
        };
        match self.expr(frame, callee) {
            Value::Global(name) => ITERATORS.contains(&&*name),
            Value::Named(Resolution::External(path)) => {
                path.first().is_some_and(|module| &**module == "itertools")
            }
            Value::Named(Resolution::Function(at))
            | Value::Callable(Callable::Closure { at, .. }) => function(self.sources, at)
                .is_some_and(|function| function.decorators.is_empty() && function.body.yields()),
            _ => false,
        }
    }

    /// Whether the running code may go over what a variable holds more than once.
    fn is_read_again(&self, frame: &Frame, name: &Name) -> bool {
        let count = |body: &Body, map: Option<&SourceMap>| times_read(body, map, name);
        let in_module = frame.scope.is_empty() && !frame.scenario;
        let module = self.sources.module(frame.file).filter(|_| in_module);
        let times: u32 = match &module {
            Some(module) => {
                let in_main = |main: &MainBlock| count(&main.body, Some(&main.map));
                module.mains.iter().map(in_main).sum()
            }
            None => count(frame.code.body(), frame.code.map()),
        };
        times > 1
    }
}

/// Whether an expression is a generator that calls something once it is gone over.
fn computes_later(body: &Body, source: ExprId) -> bool {
    let Expr::Generator(elements) = &body.exprs[source] else { return false };
    let mut open = vec![*elements];
    while let Some(expr) = open.pop() {
        if matches!(body.exprs[expr], Expr::Call { .. }) {
            return true;
        }
        body.exprs[expr].for_each_child(|child| open.push(child));
    }
    false
}

/// How often code may go over what a variable holds, where `next` before that goes over nothing; a loop may do it any
/// number of times.
fn times_read(body: &Body, map: Option<&SourceMap>, name: &Name) -> u32 {
    let range = |expr: ExprId| map.map(|map| map.exprs[expr]);
    let bound: Vec<ExprId> = body.stmts.values().flat_map(Stmt::targets).collect();
    let is_it = |expr: &ExprId| body.exprs[*expr].is_name(name);
    let repeats = |block: TextRange| {
        let is_within = |expr: &ExprId| range(*expr).is_some_and(|at| block.contains_range(at));
        !bound.iter().filter(|target| is_it(target)).any(is_within)
    };
    let loops: Vec<(TextRange, Option<ExprId>)> = body
        .stmts
        .iter()
        .filter_map(|(id, stmt)| match stmt {
            Stmt::For { iter, .. } => Some((map?.stmts[id], Some(*iter))),
            Stmt::While { .. } => Some((map?.stmts[id], None)),
            _ => None,
        })
        .filter(|(range, _)| repeats(*range))
        .collect();
    let is_in_loop = |expr: ExprId| {
        let is_within = |block: &TextRange| range(expr).is_some_and(|at| block.contains_range(at));
        loops.iter().any(|(block, iter)| *iter != Some(expr) && is_within(block))
    };
    let (taken, gone_over): (Vec<ExprId>, Vec<ExprId>) = body
        .exprs
        .keys()
        .filter(|expr| is_it(expr) && !bound.contains(expr))
        .partition(|expr| is_taken(body, *expr));
    let first = gone_over.iter().filter_map(|expr| range(*expr)).map(|range| range.start).min();
    let is_after = |expr: &&ExprId| first < range(**expr).map(|range| range.start);
    let gone_over = gone_over.iter().map(|expr| 1 + u32::from(is_in_loop(*expr))).sum::<u32>();
    match first {
        Some(_) => gone_over + taken.iter().filter(is_after).count() as u32,
        None => 0,
    }
}

/// Whether `next` takes one element of what an expression is.
fn is_taken(body: &Body, expr: ExprId) -> bool {
    body.exprs.values().any(|call| match call {
        Expr::Call { callee, args } => {
            body.exprs[*callee].is_name("next") && args.first().is_some_and(|arg| arg.value == expr)
        }
        _ => false,
    })
}
