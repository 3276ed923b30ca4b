//! What takes part in arithmetic: operands, counters, floats, elements of tuples.

use super::expressions::{called_name, leaves};
use super::paths::Paths;
use super::{BodyUses, MAX_TRACE, Origin};
use crate::hir::{BinaryOp, Body, CompareOp, Expr, ExprId, Literal, Stmt, UnaryOp};

impl<'a> BodyUses<'a> {
    /// Marks operands of arithmetic, and those that are operands whatever the conditions are.
    pub(super) fn scan_operands(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            if let Expr::Binary { lhs, rhs, .. } = expr {
                [lhs, rhs].into_iter().for_each(|operand| self.operand(*operand));
            }
        }
        for stmt in body.stmts.values() {
            if let Stmt::AugAssign { target, value, .. } = stmt {
                [target, value].into_iter().for_each(|operand| self.operand(*operand));
            }
        }
        for at in Paths(body).operands(&body.root) {
            let named = self.named(at);
            named.into_iter().for_each(|at| self.uses[at].required = true);
        }
    }

    pub(super) fn operand(&mut self, operand: ExprId) {
        if let Some(at) = self.named(operand) {
            self.uses[at].operand = true;
        }
    }

    /// The parameter of this name, even when it is also assigned: a pointer that is moved is both
    /// a parameter and a variable.
    pub(super) fn named(&self, id: ExprId) -> Option<usize> {
        match &self.body.exprs[id] {
            Expr::Name(name) => self.params.get(&**name).copied(),
            _ => None,
        }
    }

    /// Marks what is indexed by numbers or taken apart: tiles are indexed by `None` and `:` only.
    pub(super) fn scan_items(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            let Expr::Subscript { value, index } = expr else { continue };
            let is_number = match &body.exprs[*index] {
                Expr::Literal(Literal::Int(_)) | Expr::Unary { .. } => true,
                Expr::Name(name) => !self.params.contains_key(&**name),
                _ => false,
            };
            if let (true, Some(at)) = (is_number, self.direct(*value)) {
                self.uses[at].items = true;
            }
        }
        for stmt in body.stmts.values() {
            let Stmt::Assign { targets, value } = stmt else { continue };
            let parts = targets.iter().find_map(|target| match &body.exprs[*target] {
                Expr::Tuple(parts) => Some(parts.len()),
                _ => None,
            });
            if let (Some(parts), Some(at)) = (parts, self.direct(*value)) {
                self.uses[at].items = true;
                self.uses[at].parts = parts;
            }
        }
    }

    /// Marks whose elements' type is asked for, which pointers have.
    pub(super) fn scan_types(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            if let Expr::Attribute { value, attr } = expr
                && &**attr == "element_ty"
                && let Expr::Attribute { value: of, attr } = &body.exprs[*value]
                && matches!(&**attr, "dtype" | "type")
                && let Some(at) = self.direct(*of)
            {
                self.uses[at].pointer = true;
            }
        }
    }

    /// Marks what moves a pointer in `pointer += offsets`.
    pub(super) fn scan_steps(&mut self) {
        let body = self.body;
        for stmt in body.stmts.values() {
            let Stmt::AugAssign { target, value, .. } = stmt else { continue };
            match self.param_at(*target) {
                Some(base) if self.uses[base].pointer => self.offsets(*value, Some(base)),
                _ => {}
            }
        }
    }

    /// Marks data that a loop adds to a variable which starts as an integer literal: the variable
    /// keeps its type.
    pub(super) fn scan_counters(&mut self) {
        let body = self.body;
        for stmt in body.stmts.values() {
            let (Stmt::For { body: inner, .. } | Stmt::While { body: inner, .. }) = stmt else {
                continue;
            };
            for stmt in inner {
                let Stmt::AugAssign { target, value, .. } = &body.stmts[*stmt] else { continue };
                if !self.starts_as_integer(*target) {
                    continue;
                }
                for leaf in leaves(body, *value) {
                    if let Some(Origin::Loaded(at)) = self.origin(leaf) {
                        self.uses[at].counts = true;
                    }
                }
            }
        }
    }

    pub(super) fn starts_as_integer(&self, id: ExprId) -> bool {
        let Expr::Name(name) = &self.body.exprs[id] else { return false };
        let values = self.locals.get(&**name).map_or(&[][..], Vec::as_slice);
        let is_integer =
            |id: &ExprId| matches!(self.body.exprs[*id], Expr::Literal(Literal::Int(_)));
        !values.is_empty() && values.iter().all(is_integer)
    }

    /// Marks what takes part in arithmetic that no address can.
    pub(super) fn scan_numbers(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            match expr {
                Expr::Binary { op, lhs, rhs } if *op != BinaryOp::Add => {
                    if let (BinaryOp::Shl | BinaryOp::Shr, Some(at)) = (op, self.direct(*rhs)) {
                        self.uses[at].shift = true;
                    }
                    for operand in [*lhs, *rhs] {
                        if *op == BinaryOp::Sub && operand == *lhs {
                            continue;
                        }
                        self.number(operand, op_is_integral(*op));
                    }
                }
                Expr::Compare { first, rest } => {
                    let mut left = *first;
                    for (op, right) in rest {
                        if is_order(*op) {
                            self.number(left, false);
                            self.number(*right, false);
                        }
                        left = *right;
                    }
                }
                Expr::Unary { op: UnaryOp::Minus, operand } => self.number(*operand, false),
                _ => {}
            }
        }
    }

    pub(super) fn number(&mut self, operand: ExprId, integral: bool) {
        if let Some(at) = self.direct(operand) {
            self.uses[at].number = true;
            self.uses[at].integral |= integral;
        }
        if integral && let Some(Origin::Loaded(at)) = self.origin(operand) {
            self.uses[at].integer_elements = true;
        }
    }

    /// Marks parameters that meet floats in arithmetic. Needs the other scans' results.
    pub(super) fn scan_floats(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            match expr {
                Expr::Binary { op, lhs, rhs } if !op_is_integral(*op) => {
                    for (param, other) in [(*lhs, *rhs), (*rhs, *lhs)] {
                        self.meets(param, other, false);
                    }
                }
                Expr::Compare { first, rest } => {
                    for (op, right) in rest {
                        let ordered = is_order(*op);
                        self.meets(*first, *right, ordered);
                        self.meets(*right, *first, ordered);
                    }
                }
                _ => {}
            }
        }
    }

    /// Marks a parameter by what stands at the other side of an operator. What is ordered against
    /// something that is no float bounds indices.
    pub(super) fn meets(&mut self, param: ExprId, other: ExprId, ordered: bool) {
        let Some(at) = self.direct(param) else { return };
        if self.is_float(other, 0) {
            self.uses[at].float = true;
        } else if ordered {
            self.uses[at].integral = true;
        }
    }

    /// True when an expression is floating-point whatever the types of the arguments are, or is
    /// data that nothing shows to be integers.
    pub(super) fn is_float(&mut self, id: ExprId, depth: u32) -> bool {
        if depth > MAX_TRACE {
            return false;
        }
        let body = self.body;
        let any =
            |scan: &mut Self, ids: &[ExprId]| ids.iter().any(|id| scan.is_float(*id, depth + 1));
        match &body.exprs[id] {
            Expr::Literal(Literal::Float(_)) => true,
            Expr::Binary { op: BinaryOp::Div, .. } => true,
            Expr::Binary { lhs, rhs, .. } => any(self, &[*lhs, *rhs]),
            Expr::IfElse { on_true, on_false, .. } => any(self, &[*on_true, *on_false]),
            Expr::Subscript { value, .. } => any(self, &[*value]),
            Expr::Name(name) => {
                let values = self.locals.get(&**name).cloned().unwrap_or_default();
                any(self, &values)
            }
            Expr::Call { callee, args } => {
                let name = called_name(body, *callee).unwrap_or_default();
                if FLOAT_FUNCTIONS.contains(&name) {
                    return true;
                }
                if let Some(Origin::Loaded(at)) = self.origin(id) {
                    return !self.uses[at].integer_elements && !self.uses[at].counts;
                }
                let values: Vec<ExprId> = args.iter().map(|arg| arg.value).collect();
                if matches!(name, "to" | "cast" | "zeros" | "full") {
                    return values.iter().any(|value| is_float_dtype(body, *value));
                }
                ELEMENTWISE_FUNCTIONS.contains(&name) && any(self, &values)
            }
            _ => false,
        }
    }
}

/// Functions whose result is floating-point.
const FLOAT_FUNCTIONS: &[&str] = &[
    "cos", "dot", "erf", "exp", "exp2", "log", "log2", "rand", "randn", "rsqrt", "sigmoid", "sin",
    "softmax", "sqrt", "tanh",
];

/// Functions whose result has the type of their arguments.
const ELEMENTWISE_FUNCTIONS: &[&str] =
    &["abs", "cumsum", "fma", "max", "maximum", "min", "minimum", "sum", "where"];

fn is_float_dtype(body: &Body, id: ExprId) -> bool {
    match &body.exprs[id] {
        Expr::Attribute { attr, .. } => attr.contains("float"),
        _ => false,
    }
}

fn is_order(op: CompareOp) -> bool {
    matches!(op, CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge)
}

/// Operators whose operands are integers.
fn op_is_integral(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::FloorDiv
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
    )
}
