//! Conditions on how many elements of tensors differ, which hold whatever rounding does: where code counts for
//! itself what is further apart than it allows.

use crate::hir::{Arg, BinaryOp, CompareOp, Expr, ExprId, Name, UnaryOp};
use crate::host::code::agreement::{self, MAX_STEPS};
use crate::host::code::arguments::Args;
use crate::host::torch::data::Truths;
use crate::host::value::number::as_float;
use crate::host::{Frame, Host};
use crate::project::{Resolution, Scope, resolve_expr};

/// Methods that give the same truths as numbers, or elsewhere.
const SAME: &[&str] = &["bool", "cpu", "detach", "double", "float", "int", "long", "numpy", "to"];

/// What tells of each number what no rounding changes.
const EXACT: &[&str] = &["isfinite", "isinf", "isnan", "isneginf", "isposinf", "signbit"];

/// What a count may be: at least, and at most.
type Range = [f64; 2];

impl Host<'_> {
    /// Whether `left op right` holds, where one of them counts truths; the inner `None` where rounding may
    /// decide that.
    pub(super) fn counts_compare(
        &mut self,
        frame: &mut Frame,
        op: CompareOp,
        sides: [ExprId; 2],
    ) -> Option<Option<bool>> {
        let counts = sides.map(|side| self.count(frame, side, 0));
        let [left, right] = match counts {
            [Some(left), Some(right)] => [left, right],
            [Some(left), None] => [left, self.number(frame, sides[1])?],
            [None, Some(right)] => [self.number(frame, sides[0])?, right],
            [None, None] => return None,
        };
        let decided = |certain: bool, never: bool| (certain || never).then_some(certain);
        let is_one = |range: Range| range[0] == range[1];
        let apart = left[1] < right[0] || right[1] < left[0];
        let equal = is_one(left) && is_one(right) && left == right;
        Some(match op {
            CompareOp::Lt => decided(left[1] < right[0], left[0] >= right[1]),
            CompareOp::Le => decided(left[1] <= right[0], left[0] > right[1]),
            CompareOp::Gt => decided(left[0] > right[1], left[1] <= right[0]),
            CompareOp::Ge => decided(left[0] >= right[1], left[1] < right[0]),
            CompareOp::Eq => decided(equal, apart),
            CompareOp::Ne => decided(apart, equal),
            _ => None,
        })
    }

    /// Whether all, or any, of a tensor's truths hold, as a call asks; the inner `None` where rounding may decide
    /// that.
    pub(super) fn holds_throughout(
        &mut self,
        frame: &mut Frame,
        (callee, args): (ExprId, &[Arg]),
    ) -> Option<Option<bool>> {
        let (name, operands) = self.called_with(frame, callee, args)?;
        let asks = matches!(&*name, "all" | "any") && operands.len() == 1;
        let truths = asks.then(|| self.truths(frame, operands[0], 0))??;
        let [least, most] = truths.held();
        let all = truths.count();
        Some(match &*name {
            "all" if least == all => Some(true),
            "all" if most < all => Some(false),
            "any" if least > 0.0 => Some(true),
            "any" if most == 0.0 => Some(false),
            _ => None,
        })
    }

    fn number(&mut self, frame: &mut Frame, side: ExprId) -> Option<Range> {
        let number = as_float(&self.expr(frame, side))?;
        Some([number, number])
    }

    /// What an expression may be that counts truths, or follows from a count.
    fn count(&mut self, frame: &mut Frame, expr: ExprId, steps: u32) -> Option<Range> {
        let code = frame.code.clone();
        let body = code.body();
        match &body.exprs[expr] {
            Expr::Name(name) if steps < MAX_STEPS => {
                self.count(frame, agreement::assigned(body, name)?, steps + 1)
            }
            Expr::Call { callee, args } => {
                if let (Expr::Name(name), [one]) = (&body.exprs[*callee], &args[..]) {
                    let is_number = matches!(&**name, "int" | "float");
                    return is_number.then(|| self.count(frame, one.value, steps))?;
                }
                let (name, operands) = self.called_with(frame, *callee, args)?;
                match (&*name, &operands[..]) {
                    ("sum" | "count_nonzero", [one]) => {
                        Some(self.truths(frame, *one, steps)?.held())
                    }
                    ("mean", [one]) => {
                        let truths = self.truths(frame, *one, steps)?;
                        Some(truths.held().map(|held| held / truths.count()))
                    }
                    ("item", [one]) => self.count(frame, *one, steps),
                    (same, [one, ..]) if SAME.contains(&same) => self.count(frame, *one, steps),
                    _ => None,
                }
            }
            Expr::Binary { op, lhs, rhs } => {
                let of: fn(f64, f64) -> f64 = match op {
                    BinaryOp::Add => |a, b| a + b,
                    BinaryOp::Sub => |a, b| a - b,
                    BinaryOp::Mul => |a, b| a * b,
                    BinaryOp::Div => |a, b| a / b,
                    _ => return None,
                };
                let (left, right) = (*lhs, *rhs);
                let (a, b) = match self.count(frame, left, steps) {
                    Some(count) => (count, self.number(frame, right)?),
                    None => (self.number(frame, left)?, self.count(frame, right, steps)?),
                };
                let [one, other] = [0, 1].map(|at| of(a[at], b[at]));
                (one.is_finite() && other.is_finite()).then(|| [one.min(other), one.max(other)])
            }
            _ => None,
        }
    }

    /// The truths that an expression has.
    fn truths(&mut self, frame: &mut Frame, expr: ExprId, steps: u32) -> Option<Truths> {
        let code = frame.code.clone();
        let body = code.body();
        match &body.exprs[expr] {
            Expr::Name(name) if steps < MAX_STEPS => {
                self.truths(frame, agreement::assigned(body, name)?, steps + 1)
            }
            Expr::Compare { first, rest } => match rest[..] {
                [(op, right)] => {
                    let [left, right] = [*first, right].map(|side| self.expr(frame, side));
                    Truths::of_comparison(op, &left, &right)
                }
                _ => None,
            },
            Expr::Unary { op: UnaryOp::Invert, operand } => {
                Some(self.truths(frame, *operand, steps)?.inverted())
            }
            Expr::Binary { op, lhs, rhs } => {
                let name = match op {
                    BinaryOp::And => "logical_and",
                    BinaryOp::Or => "logical_or",
                    BinaryOp::Xor => "logical_xor",
                    _ => return None,
                };
                self.logical(frame, name, &[*lhs, *rhs], steps)
            }
            Expr::Call { callee, args } => {
                let (name, operands) = self.called_with(frame, *callee, args)?;
                match (&*name, &operands[..]) {
                    (logical, operands) if logical.starts_with("logical_") => {
                        self.logical(frame, logical, operands, steps)
                    }
                    ("isclose", _) => {
                        let (args, _) = self.arguments(frame, args);
                        let receiver = (operands.len() > args.len())
                            .then(|| (None, self.expr(frame, operands[0])));
                        let args: Vec<_> = receiver.into_iter().chain(args).collect();
                        let args = Args(&args);
                        let [actual, expected] = agreement::sides(&args)?;
                        let tolerance = agreement::tolerance("allclose", &args);
                        Truths::of_closeness(actual, expected, tolerance)
                    }
                    (same, [one, ..]) if SAME.contains(&same) => self.truths(frame, *one, steps),
                    (exact, _) if EXACT.contains(&exact) => Truths::exact(&self.expr(frame, expr)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn logical(
        &mut self,
        frame: &mut Frame,
        name: &str,
        operands: &[ExprId],
        steps: u32,
    ) -> Option<Truths> {
        let operands = operands.iter().map(|operand| self.truths(frame, *operand, steps));
        match (name, &operands.collect::<Option<Vec<Truths>>>()?[..]) {
            ("logical_not", [one]) => Some(one.inverted()),
            ("logical_and", [one, other]) => one.and(other),
            ("logical_or", [one, other]) => one.or(other),
            ("logical_xor", [one, other]) => one.xor(other),
            _ => None,
        }
    }

    /// The name of a method, or of a function of a package, and what it is called with, a method's receiver first.
    fn called_with(
        &self,
        frame: &Frame,
        callee: ExprId,
        args: &[Arg],
    ) -> Option<(Name, Vec<ExprId>)> {
        let body = frame.code.body();
        let Expr::Attribute { value, attr } = &body.exprs[callee] else { return None };
        let scope = Scope { file: frame.file, path: &frame.scope };
        let is_function =
            matches!(resolve_expr(self.sources, scope, body, *value), Resolution::External(_));
        let receiver = (!is_function).then_some(*value);
        let args = args.iter().map(|arg| arg.value);
        Some((attr.clone(), receiver.into_iter().chain(args).collect()))
    }
}
