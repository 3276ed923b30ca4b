//! Which arguments a kernel may write to, as far as its text tells.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::expressions::called_name;
use crate::hir::{Body, Expr, ExprId, Name, Stmt};
use crate::project::{ItemRef, Sources, function};

/// Functions that only read what they are given an address of.
const READERS: &[&str] = &["load", "load_tensor_descriptor"];

/// Functions that make values of numbers and addresses.
const MAKERS: &[&str] = &[
    "advance",
    "broadcast_to",
    "cast",
    "cdiv",
    "expand_dims",
    "make_block_ptr",
    "make_tensor_descriptor",
    "max_contiguous",
    "maximum",
    "minimum",
    "multiple_of",
    "to",
    "where",
];

/// Whether each parameter of a jit function may be written to: an address that comes from it gets
/// somewhere else than to what reads.
pub fn may_write(sources: &dyn Sources, at: ItemRef) -> Arc<[bool]> {
    if let Some(known) = sources.written(at) {
        return known;
    }
    let find = || {
        let Some(function) = function(sources, at) else { return Arc::default() };
        let written = written_names(&function.body);
        function.params.iter().map(|param| written.contains(&param.name)).collect()
    };
    match sources.facts() {
        Some(facts) => facts.written.get(at, find),
        None => find(),
    }
}

/// The names whose values get, by way of others or not, to functions that may write to them.
fn written_names(body: &Body) -> FxHashSet<&Name> {
    let Flows { mut given, taken: mut written } = Flows::of(body);
    loop {
        let before = given.len();
        given.retain(|(carried, targets)| {
            let gets_there = targets.iter().any(|target| written.contains(target));
            if gets_there {
                written.extend(carried);
            }
            !gets_there
        });
        if given.len() == before {
            return written;
        }
    }
}

/// Where the names of a function get to.
struct Flows<'b> {
    /// Names whose values get into others, and these.
    given: Vec<(FxHashSet<&'b Name>, Vec<&'b Name>)>,
    /// Names whose values functions get that may write to them.
    taken: FxHashSet<&'b Name>,
}

impl<'b> Flows<'b> {
    fn of(body: &'b Body) -> Flows<'b> {
        let (mut given, mut taken) = (Vec::new(), FxHashSet::default());
        for stmt in body.stmts.values() {
            let mut carried = FxHashSet::default();
            values_of(stmt).into_iter().for_each(|value| carry(body, value, &mut carried));
            if !carried.is_empty() {
                let targets = stmt.targets().into_iter().flat_map(|target| body.names_in(target));
                given.push((carried, targets.collect()));
            }
        }
        for (id, expr) in body.exprs.iter() {
            let bound = body.bound_by(id);
            if !bound.is_empty() {
                let mut carried = FxHashSet::default();
                expr.for_each_child(|child| carry(body, child, &mut carried));
                given.push((carried, bound));
            }
            let Expr::Call { callee, args } = expr else { continue };
            let is_harmless = called_name(body, *callee)
                .is_some_and(|name| READERS.contains(&name) || MAKERS.contains(&name));
            if !is_harmless {
                carry(body, *callee, &mut taken);
                args.iter().for_each(|arg| carry(body, arg.value, &mut taken));
            }
        }
        Flows { given, taken }
    }
}

/// The expressions whose values a statement gives to its targets.
fn values_of(stmt: &Stmt) -> Vec<ExprId> {
    match stmt {
        Stmt::Assign { value, .. } | Stmt::AugAssign { value, .. } => vec![*value],
        Stmt::AnnAssign { value, .. } => value.iter().copied().collect(),
        Stmt::For { iter, .. } => vec![*iter],
        Stmt::With { items, .. } => items.iter().map(|(value, _)| *value).collect(),
        _ => Vec::new(),
    }
}

/// Adds the names whose addresses may be part of the value of an expression: what is loaded is none.
fn carry<'b>(body: &'b Body, id: ExprId, names: &mut FxHashSet<&'b Name>) {
    match &body.exprs[id] {
        Expr::Name(name) => {
            names.insert(name);
        }
        Expr::Call { callee, .. }
            if called_name(body, *callee).is_some_and(|name| READERS.contains(&name)) => {}
        expr => expr.for_each_child(|child| carry(body, child, names)),
    }
}
