//! What is a condition, is compared, or bounds a loop.

use super::calls::is_flag;
use super::expressions::{called_name, leaves};
use super::{BodyUses, Compared, Origin};
use crate::hir::{CompareOp, Expr, ExprId, Literal, Stmt, UnaryOp};

impl<'a> BodyUses<'a> {
    pub(super) fn scan_conditions(&mut self) {
        let body = self.body;
        self.choices();
        for stmt in body.stmts.values() {
            match stmt {
                Stmt::If { test, .. } | Stmt::While { test, .. } => self.condition(*test),
                Stmt::For { iter, .. } => self.bounds(*iter),
                _ => {}
            }
        }
        for expr in body.exprs.values() {
            match expr {
                Expr::IfElse { condition, .. } => self.condition(*condition),
                Expr::Bool { values, .. } => values.iter().for_each(|value| self.condition(*value)),
                Expr::Unary { op: UnaryOp::Not, operand } => self.condition(*operand),
                Expr::Compare { first, rest } => {
                    for (op, right) in rest {
                        let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
                        self.comparison(*first, *right, equality);
                        self.comparison(*right, *first, equality);
                    }
                }
                _ => {}
            }
        }
    }

    /// Marks what outermost `if`s compare with numbers, where the code comes to all of them.
    fn choices(&mut self) {
        let body = self.body;
        if body.stmts.values().any(|stmt| matches!(stmt, Stmt::Return(_))) {
            return;
        }
        for stmt in &body.root {
            let Stmt::If { test, .. } = &body.stmts[*stmt] else { continue };
            let Expr::Compare { first, rest } = &body.exprs[*test] else { continue };
            let [(op, second)] = rest[..] else { continue };
            let is_of_numbers =
                !matches!(op, CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn);
            if is_of_numbers
                && matches!(body.exprs[second], Expr::Literal(Literal::Int(_) | Literal::Float(_)))
                && let Some(at) = self.direct(*first)
            {
                self.uses[at].chooses = true;
            }
        }
    }

    pub(super) fn condition(&mut self, id: ExprId) {
        if let Some(at) = self.direct(id) {
            self.uses[at].condition = true;
        }
    }

    pub(super) fn is_local(&self, name: &str) -> bool {
        self.locals.contains_key(name) || self.params.contains_key(name)
    }

    pub(super) fn comparison(&mut self, param: ExprId, other: ExprId, equality: bool) {
        let Some(at) = self.direct(param) else { return };
        let compared = Compared { at: self.at, value: other };
        match &self.body.exprs[other] {
            Expr::Literal(Literal::None) => self.uses[at].none_test = true,
            Expr::Literal(Literal::Str(_)) => {
                self.uses[at].text = true;
                self.uses[at].compared.get_or_insert(compared);
            }
            Expr::Literal(Literal::Int(_)) if equality => {
                self.uses[at].compared.get_or_insert(compared);
            }
            Expr::Name(name) if equality && !self.is_local(name) => {
                self.uses[at].compared.get_or_insert(compared);
            }
            Expr::Attribute { attr, .. } if crate::host::named_dtype(attr).is_some() => {
                self.uses[at].dtype = true;
            }
            _ => {}
        }
    }

    /// Marks the bounds of a loop.
    pub(super) fn bounds(&mut self, iter: ExprId) {
        let Expr::Call { callee, args } = &self.body.exprs[iter] else { return };
        let unrolled = called_name(self.body, *callee) == Some("static_range");
        // Flags of loops are none.
        for arg in args.iter().filter(|arg| !is_flag("range", arg)) {
            for leaf in leaves(self.body, arg.value) {
                if let Some(at) = self.direct(leaf) {
                    self.uses[at].number = true;
                    self.uses[at].integral = true;
                    self.uses[at].unrolled |= unrolled;
                }
                if let Some(Origin::Loaded(at)) = self.origin(leaf) {
                    self.uses[at].integer_elements = true;
                }
            }
        }
    }
}
