//! What is evaluated whichever way the conditions of a body go.

use rustc_hash::FxHashMap;

use super::expressions::{argument, called_name};
use crate::hir::{Body, Expr, ExprId, Stmt, StmtId};

/// Functions of the language that compute with a seed.
const DRAWING: &[&str] = &["rand", "rand4x", "randint", "randint4x", "randn", "randn4x"];

/// What is evaluated whichever way the conditions of a body go.
pub(super) struct Paths<'a>(pub(super) &'a Body);

impl<'a> Paths<'a> {
    /// One operand of arithmetic for each name that is an operand on every path.
    pub(super) fn operands(&self, stmts: &[StmtId]) -> Vec<ExprId> {
        self.names(stmts).into_values().collect()
    }

    fn names(&self, stmts: &[StmtId]) -> FxHashMap<&'a str, ExprId> {
        let mut names = FxHashMap::default();
        stmts.iter().for_each(|stmt| self.statement(*stmt, &mut names));
        names
    }

    fn statement(&self, stmt: StmtId, names: &mut FxHashMap<&'a str, ExprId>) {
        match &self.0.stmts[stmt] {
            Stmt::Expr(value) | Stmt::Assign { value, .. } => self.expression(*value, names),
            Stmt::AugAssign { target, value, .. } => {
                self.operand(*target, names);
                self.operand(*value, names);
                self.expression(*value, names);
            }
            Stmt::AnnAssign { value, .. } | Stmt::Return(value) => {
                value.iter().for_each(|value| self.expression(*value, names));
            }
            Stmt::If { test, body, orelse } => {
                self.expression(*test, names);
                let other = self.names(orelse);
                names.extend(
                    self.names(body).into_iter().filter(|(name, _)| other.contains_key(name)),
                );
            }
            Stmt::For { iter: head, body, .. } | Stmt::While { test: head, body, .. } => {
                self.expression(*head, names);
                names.extend(self.names(body));
            }
            Stmt::With { body, .. } => names.extend(self.names(body)),
            Stmt::Assert { test, .. } => self.expression(*test, names),
            Stmt::Try { .. }
            | Stmt::Match { .. }
            | Stmt::Pass
            | Stmt::Unsupported(_)
            | Stmt::Error => {}
        }
    }

    fn expression(&self, id: ExprId, names: &mut FxHashMap<&'a str, ExprId>) {
        match &self.0.exprs[id] {
            Expr::IfElse { condition, on_true, on_false } => {
                self.expression(*condition, names);
                let (mut then, mut other) = (FxHashMap::default(), FxHashMap::default());
                self.expression(*on_true, &mut then);
                self.expression(*on_false, &mut other);
                names.extend(then.into_iter().filter(|(name, _)| other.contains_key(name)));
            }
            expr => {
                if let Expr::Binary { lhs, rhs, .. } = expr {
                    self.operand(*lhs, names);
                    self.operand(*rhs, names);
                }
                if let Expr::Call { callee, args } = expr
                    && called_name(self.0, *callee).is_some_and(|name| DRAWING.contains(&name))
                    && let Some(seed) = argument(args, 0, "seed")
                {
                    self.operand(seed, names);
                }
                expr.for_each_child(|child| self.expression(child, names));
            }
        }
    }

    fn operand(&self, id: ExprId, names: &mut FxHashMap<&'a str, ExprId>) {
        if let Expr::Name(name) = &self.0.exprs[id] {
            names.entry(name).or_insert(id);
        }
    }
}
