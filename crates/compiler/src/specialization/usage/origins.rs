//! Where values come from: which parameter, or data behind which parameter.

use super::expressions::{argument, called_name, choices};
use super::{BodyUses, MAX_TRACE, Origin};
use crate::hir::{Arg, BinaryOp, Expr, ExprId};

impl<'a> BodyUses<'a> {
    /// Where the value of an expression comes from, if from a parameter.
    pub(super) fn origin(&mut self, id: ExprId) -> Option<Origin> {
        let body = self.body;
        match &body.exprs[id] {
            Expr::Name(name) => self.name_origin(name),
            Expr::Binary { op: BinaryOp::Add, lhs, rhs } => match self.origin(*lhs) {
                left if self.is_number(left) => {
                    let right = self.origin(*rhs);
                    self.address(left, right)
                }
                address => address,
            },
            Expr::Binary { op: BinaryOp::Sub, lhs, .. } => self.origin(*lhs),
            Expr::Subscript { value, .. } => self.origin(*value),
            Expr::IfElse { on_true, on_false, .. } => {
                self.origin(*on_true).or_else(|| self.origin(*on_false))
            }
            Expr::Call { callee, args } if called_name(body, *callee) == Some("where") => {
                let chosen = choices(args);
                chosen.into_iter().find_map(|value| self.origin(value))
            }
            Expr::Call { callee, args } => self.call_origin(*callee, args),
            _ => None,
        }
    }

    /// Of two summands the one that is the address.
    pub(super) fn address(&self, left: Option<Origin>, right: Option<Origin>) -> Option<Origin> {
        match (self.is_number(left), self.is_number(right)) {
            (false, _) => left,
            (true, false) => right,
            (true, true) => left.filter(|left| matches!(left, Origin::Loaded(_))).or(right),
        }
    }

    fn is_number(&self, origin: Option<Origin>) -> bool {
        match origin {
            Some(Origin::Param(at)) => self.uses[at].number && !self.uses[at].pointer,
            Some(Origin::Loaded(_)) => true,
            None => true,
        }
    }

    pub(super) fn name_origin(&mut self, name: &'a str) -> Option<Origin> {
        if !self.tracing.contains(&name) {
            self.tracing.push(name);
            let values = self.locals.get(name).map_or(0, Vec::len);
            let found = (0..values).find_map(|index| self.origin(self.locals[name][index]));
            self.tracing.pop();
            if found.is_some() {
                return found;
            }
        }
        self.params.get(name).map(|at| Origin::Param(*at))
    }

    pub(super) fn call_origin(&mut self, callee: ExprId, args: &[Arg]) -> Option<Origin> {
        let name = called_name(self.body, callee)?;
        let receiver = match self.body.exprs[callee] {
            Expr::Attribute { value, .. } => Some(value),
            _ => None,
        };
        match name {
            "load" | "atomic_add" | "atomic_cas" | "atomic_xchg" => {
                match self.origin(argument(args, 0, "pointer")?)? {
                    Origin::Param(at) => Some(Origin::Loaded(at)),
                    Origin::Loaded(_) => None,
                }
            }
            "multiple_of" | "max_contiguous" | "max_constancy" | "broadcast_to" | "expand_dims"
            | "cast" | "advance" | "reshape" | "trans" | "sum" | "max" | "min" | "cumsum"
            | "sort" | "flip" => {
                self.origin(argument(args, 0, "input").or_else(|| argument(args, 0, "base"))?)
            }
            "make_block_ptr" => self.origin(argument(args, 0, "base")?),
            "make_tensor_descriptor" => None,
            "to" | "item" => self.origin(receiver?),
            _ => None,
        }
    }

    pub(super) fn param_at(&mut self, id: ExprId) -> Option<usize> {
        match self.origin(id)? {
            Origin::Param(at) => Some(at),
            Origin::Loaded(_) => None,
        }
    }

    /// The parameter that an expression names: itself, or by a variable that only stands for it.
    pub(super) fn direct(&self, id: ExprId) -> Option<usize> {
        let mut id = id;
        for _ in 0..MAX_TRACE {
            let Expr::Name(name) = &self.body.exprs[id] else { return None };
            match self.locals.get(&**name).map(Vec::as_slice) {
                None => return self.params.get(&**name).copied(),
                Some(&[value]) if !self.params.contains_key(&**name) => id = value,
                Some(_) => return None,
            }
        }
        None
    }
}
