//! Comparisons: of any two values, chained ones, and those of tensors.

use std::sync::Arc;

use super::constant::compare_consts;
use super::dtype::{DType, Elem};
use super::operands::Places;
use super::operators::may_be_const;
use super::value::{Const, Held, Origin, Shape, Tensor, Tuple, Value};
use super::{Eval, Evaluator, Mode, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, CompareOp, Expr, ExprId};
use crate::ir::{self, FloatPredicate, IntPredicate, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// `a < b < c`.
    pub(super) fn compare_chain(
        &mut self,
        source: Source<'_>,
        first: ExprId,
        rest: &[(CompareOp, ExprId)],
        at: FileRange,
    ) -> Value {
        if rest.len() > 1 && !self.is_3_9() && self.frame().mode == Mode::Jit {
            let note = "compare twice: `(a < b) & (b < c)`";
            return self.unsupported("chained comparison", note, at);
        }
        let mut left = self.expr(source, first);
        let mut left_at = source.at(first);
        let mut result: Option<Value> = None;
        for &(op, id) in rest {
            let right = self.expr(source, id);
            let places = (left_at, source.at(id));
            let next = self.compare(op, &left, &right, at, places);
            result = Some(match result {
                None => next,
                Some(before) => self.both(&before, &next, at),
            });
            left = right;
            left_at = source.at(id);
        }
        if self.frame().mode == Mode::Jit && self.speculative == 0 {
            self.check_precedence(source, first, rest);
        }
        result.unwrap_or(Value::Unknown)
    }

    /// Warns of `a < b & c < d` and of `mask & a < b`, where `&` comes first: of an operand between two
    /// comparisons, and of one that is made of a mask and a number.
    fn check_precedence(
        &mut self,
        source: Source<'_>,
        first: ExprId,
        rest: &[(CompareOp, ExprId)],
    ) {
        let operands = std::iter::once(first).chain(rest.iter().map(|(_, id)| *id));
        for (index, operand) in operands.enumerate() {
            let Expr::Binary { op, lhs, rhs } = &source.body.exprs[operand] else { continue };
            let is_between = 0 < index && index < rest.len();
            let is_meant = !matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor)
                || !(is_between || self.is_mask_and_number(*lhs, *rhs));
            let at = source.at(operand);
            if is_meant || self.is_in_parentheses(at) {
                continue;
            }
            let (op, compared) = (op.symbol(), rest[index.saturating_sub(1)].0.symbol());
            let message = format!("`{op}` is applied before `{compared}`");
            let note = format!(
                "put each comparison in parentheses: `(a {compared} b) {op} (c {compared} d)`"
            );
            self.emit_diagnostic(Diagnostic::new(Code::Precedence, at, message).with_note(note));
        }
    }

    /// Whether one of two operands is a mask, and the other one a number of more than one bit.
    fn is_mask_and_number(&self, left: ExprId, right: ExprId) -> bool {
        let number = |id| match self.types.value(id) {
            Some(Value::Tensor(tensor)) => tensor.elem.num(),
            _ => None,
        };
        let (Some(left), Some(right)) = (number(left), number(right)) else { return false };
        (left == DType::Int1) != (right == DType::Int1)
    }

    /// Whether what stands at a place is the whole of what a pair of parentheses holds.
    fn is_in_parentheses(&self, at: FileRange) -> bool {
        let text = self.project.text(at.file).unwrap_or_default();
        let range = at.range.as_usize();
        let before = text.get(..range.start).unwrap_or_default().trim_end();
        let after = text.get(range.end..).unwrap_or_default().trim_start();
        before.ends_with('(') && after.starts_with(')')
    }

    /// The conjunction of two links of a chained comparison.
    fn both(&mut self, left: &Value, right: &Value, at: FileRange) -> Value {
        match (left, right) {
            (Value::Const(a), _) if a.truth() == Some(false) => left.clone(),
            (Value::Const(a), _) if a.truth() == Some(true) => right.clone(),
            (Value::Tensor(a), Value::Tensor(b)) => {
                let (a, b) = (a.clone(), b.clone());
                self.logical(true, &a, &b, at).map_or(Value::Unknown, Value::Tensor)
            }
            (Value::Tensor(_), Value::Const(b)) if b.truth() == Some(true) => left.clone(),
            (Value::Tensor(_), Value::Const(b)) if b.truth() == Some(false) => right.clone(),
            _ => Value::Unknown,
        }
    }

    /// One comparison.
    pub(super) fn compare(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Value {
        if matches!(op, CompareOp::Is | CompareOp::IsNot) {
            for (value, place) in [(left, places.0), (right, places.1)] {
                if self.refuse_untyped_elements(value, place) {
                    return Value::Unknown;
                }
            }
            return self.identity(op == CompareOp::Is, left, right);
        }
        if matches!(op, CompareOp::In | CompareOp::NotIn) {
            if self.frame().mode == Mode::Python {
                return Value::Unknown;
            }
            let note = "compare with each element";
            return self.unsupported("`in`", note, at);
        }
        match (left, right) {
            (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
            (Value::Tensor(_), _) | (_, Value::Tensor(_)) => {
                self.computed |= self.frame().mode == Mode::Python;
                self.compare_tensors(op, left, right, at, places)
            }
            (Value::Const(a), Value::Const(b)) => match compare_consts(op, a, b) {
                Some(result) => Value::bool(result),
                None if a.is_symbol() || b.is_symbol() => self.fresh_const(),
                None if matches!(a, Const::DType(e) if e.is_unknown())
                    || matches!(b, Const::DType(e) if e.is_unknown()) =>
                {
                    self.fresh_const()
                }
                None => {
                    let message = format!("cannot compare {a} and {b}");
                    self.error(Code::BadOperand, at, message);
                    Value::Unknown
                }
            },
            (Value::Function(a), Value::Function(b)) => {
                let same = Arc::ptr_eq(&a.function, &b.function);
                self.equality(op, same)
            }
            (Value::Builtin(a), Value::Builtin(b)) => self.equality(op, std::ptr::eq(*a, *b)),
            (Value::Tuple(a), Value::Tuple(b)) if a.held.is_python() && b.held.is_python() => {
                self.compare_as_python(op, left, right)
            }
            (Value::Tuple(_), Value::Tuple(_))
                if self.is_3_9() && !matches!(op, CompareOp::Eq | CompareOp::Ne) =>
            {
                self.error(Code::BadOperand, at, "tuples are compared by `==` and `!=` only");
                Value::Unknown
            }
            (Value::Tuple(tuple), Value::Const(constant))
                if self.frame().mode == Mode::Jit
                    && tuple.held == Held::Elements
                    && op == CompareOp::Eq
                    && !constant.is_symbol() =>
            {
                let message = format!("a tuple is compared with tuples, not with {constant}");
                self.error(Code::BadOperand, at, message);
                Value::Unknown
            }
            (Value::Tuple(a), Value::Tuple(b)) => match equal_tuples(a, b) {
                Some(same) => self.equality(op, same),
                None => self.fresh_const(),
            },
            (Value::Descriptor(_) | Value::Object(_), Value::Const(Const::Symbol(_))) => {
                self.fresh_const()
            }
            (Value::Descriptor(_), _) => self.compare_identity(op, left, right, at),
            (Value::Object(_), _) => self.compare_objects(op, left, right, at),
            _ => self.fresh_const(),
        }
    }

    /// Aggregates are compared by their methods. Before Triton 3.9 others are equal to themselves.
    fn compare_objects(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
    ) -> Value {
        let method = match op {
            CompareOp::Eq => "__eq__",
            CompareOp::Ne => "__ne__",
            CompareOp::Lt => "__lt__",
            CompareOp::Le => "__le__",
            CompareOp::Gt => "__gt__",
            CompareOp::Ge => "__ge__",
            CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => "",
        };
        let constant = matches!(right, Value::Const(_));
        if (!constant || self.is_3_9())
            && let Some(result) = self.call_operator(left, method, std::slice::from_ref(right), at)
        {
            return result;
        }
        if self.is_3_9() || self.defines(left, "__eq__") {
            return self.refuse_comparison(left, right, at);
        }
        self.compare_identity(op, left, right, at)
    }

    /// `==` and `!=` of what defines neither.
    fn compare_identity(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
    ) -> Value {
        let same = match (left, right) {
            (Value::Descriptor(a), Value::Descriptor(b)) => Arc::ptr_eq(a, b),
            (Value::Object(a), Value::Object(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let alike = matches!(
            (left, right),
            (Value::Object(_) | Value::Descriptor(_), Value::Object(_) | Value::Descriptor(_))
        );
        match op {
            CompareOp::Eq | CompareOp::Ne if same || !alike => self.equality(op, same),
            _ if self.is_3_9() => self.refuse_comparison(left, right, at),
            // What every class of Python has answers so, and the other operand is not asked.
            _ if alike => Value::Const(Const::Opaque("NotImplemented".into())),
            _ => self.fresh_const(),
        }
    }

    fn refuse_comparison(&mut self, left: &Value, right: &Value, at: FileRange) -> Value {
        let (left, right) = (super::report::a(left), super::report::a(right));
        self.error(Code::BadOperand, at, format!("{left} and {right} are not compared"));
        Value::Unknown
    }

    fn equality(&mut self, op: CompareOp, same: bool) -> Value {
        match op {
            CompareOp::Eq => Value::bool(same),
            CompareOp::Ne => Value::bool(!same),
            _ => self.fresh_const(),
        }
    }

    /// `is` and `is not`: always decided at compile time.
    fn identity(&mut self, positive: bool, left: &Value, right: &Value) -> Value {
        let same = match (left, right) {
            (Value::Unknown, _) | (_, Value::Unknown) => None,
            (Value::Const(a), Value::Const(b)) => match (a, b) {
                (Const::Symbol(_), _) | (_, Const::Symbol(_)) => None,
                (Const::None, Const::None) => Some(true),
                (Const::None, _) | (_, Const::None) => Some(false),
                _ => compare_consts(CompareOp::Eq, a, b),
            },
            (Value::Tensor(tensor), Value::Const(_)) | (Value::Const(_), Value::Tensor(tensor)) => {
                // An argument of unknown type may be `None` at launch.
                let maybe = tensor.is_open();
                if maybe { None } else { Some(false) }
            }
            (Value::Function(a), Value::Function(b)) => Some(Arc::ptr_eq(&a.function, &b.function)),
            (Value::Builtin(a), Value::Builtin(b)) => Some(std::ptr::eq(*a, *b)),
            (Value::Tensor(a), Value::Tensor(b)) => a.ir.zip(b.ir).map(|(a, b)| a == b),
            (Value::Const(Const::Symbol(_)), _) | (_, Value::Const(Const::Symbol(_))) => None,
            _ => Some(false),
        };
        match same {
            Some(same) => Value::bool(same == positive),
            None => self.fresh_const(),
        }
    }

    /// A comparison of which at least one side is a tensor.
    pub(super) fn compare_tensors(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: Places,
    ) -> Value {
        // What may be a number known at launch is compared then, or at run time.
        if may_be_const(left) && may_be_const(right) {
            return Value::Tensor(Tensor::anything(Shape::unknown(), Origin::NONE));
        }
        self.try_compare(op, left, right, at, places).map_or(Value::Unknown, Value::Tensor)
    }

    fn try_compare(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: Places,
    ) -> Eval<Tensor> {
        let mut lhs = self.side(left, places.0)?;
        let mut rhs = self.side(right, places.1)?;
        if !self.is_3_9() {
            // Literals do not yield in comparisons of Triton 3.6.
            lhs = self.strengthen(lhs);
            rhs = self.strengthen(rhs);
        }
        if lhs.tensor.elem.is_ptr() || rhs.tensor.elem.is_ptr() {
            let diagnostic =
                Diagnostic::new(Code::PointerArithmetic, at, "pointers cannot be compared")
                    .with_note(
                        "convert with `.to(tl.int64)`, or test an optional argument with `is None`",
                    );
            return Err(self.emit_diagnostic(diagnostic));
        }
        let (x, y) = self.promote_sides(lhs, rhs, false, at, places)?;
        let (x, y) = self.broadcast(&x, &y, at, places)?;
        match x.elem {
            Elem::Num(dtype) => Ok(self.compare_numbers(op, &x, &y, dtype)),
            _ => Ok(Tensor { elem: Elem::BOOL, ir: None, ..x }),
        }
    }

    /// A comparison of numbers of one type and shape.
    pub(super) fn compare_numbers(
        &mut self,
        op: CompareOp,
        x: &Tensor,
        y: &Tensor,
        dtype: DType,
    ) -> Tensor {
        let shape = x.shape.clone();
        if dtype.is_float() {
            let predicate = match op {
                CompareOp::Eq => FloatPredicate::Oeq,
                CompareOp::Ne => FloatPredicate::Une,
                CompareOp::Lt => FloatPredicate::Olt,
                CompareOp::Le => FloatPredicate::Ole,
                CompareOp::Gt => FloatPredicate::Ogt,
                _ => FloatPredicate::Oge,
            };
            let attrs = ir::FloatCompare { predicate };
            return self.op(Opcode::FCmp, &[x, y], attrs, Elem::BOOL, shape);
        }
        let predicate = match (op, dtype.is_signed()) {
            (CompareOp::Eq, _) => IntPredicate::Eq,
            (CompareOp::Ne, _) => IntPredicate::Ne,
            (CompareOp::Lt, true) => IntPredicate::Slt,
            (CompareOp::Le, true) => IntPredicate::Sle,
            (CompareOp::Gt, true) => IntPredicate::Sgt,
            (_, true) => IntPredicate::Sge,
            (CompareOp::Lt, false) => IntPredicate::Ult,
            (CompareOp::Le, false) => IntPredicate::Ule,
            (CompareOp::Gt, false) => IntPredicate::Ugt,
            (_, false) => IntPredicate::Uge,
        };
        let attrs = ir::IntCompare { predicate };
        self.op(Opcode::Cmp, &[x, y], attrs, Elem::BOOL, shape)
    }
}

/// Whether two tuples are equal; `None` where that depends on numbers at run time.
fn equal_tuples(a: &Tuple, b: &Tuple) -> Option<bool> {
    if a.items.len() != b.items.len() {
        return Some(false);
    }
    let mut equal = Some(true);
    for pair in a.items.iter().zip(&b.items) {
        let same = match pair {
            (Value::Const(x), Value::Const(y)) => compare_consts(CompareOp::Eq, x, y),
            (Value::Tuple(x), Value::Tuple(y)) => equal_tuples(x, y),
            (Value::Tensor(x), Value::Tensor(y)) if x.ir.is_some() && x.ir == y.ir => Some(true),
            _ => None,
        };
        match same {
            Some(false) => return Some(false),
            Some(true) => {}
            None => equal = None,
        }
    }
    equal
}
