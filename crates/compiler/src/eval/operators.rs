//! Operators on values of any kind: compile-time values, tuples, aggregates. On tensors they are
//! [arithmetic](super::arithmetic).

use super::builtins::text::format_percent;
use super::display::const_text;
use super::operands::Places;
use super::report::a;
use super::value::{Const, Held, Tensor, Tuple, Value};
use super::{Evaluator, Mode, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, UnaryOp};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// `left op right` on any values.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: Places,
    ) -> Value {
        match (left, right) {
            (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
            // Callers may give a helper a number: `[1] * n`.
            (Value::Tuple(_), Value::Tensor(other)) | (Value::Tensor(other), Value::Tuple(_))
                if other.is_open() && !other.is_scalar() =>
            {
                Value::Unknown
            }
            (Value::Tensor(_), _) | (_, Value::Tensor(_)) => {
                self.computed |= self.frame().mode == Mode::Python;
                let open = may_be_const(left) && may_be_const(right);
                match self.tensor_binary(op, left, right, at, places) {
                    Ok(tensor) => Value::Tensor(Tensor { open, ..tensor }),
                    Err(_) => Value::Unknown,
                }
            }
            (Value::Const(Const::Str(text)), Value::Const(value)) if op == BinaryOp::Mod => {
                let known = Some(value).filter(|value| !value.is_symbol());
                let formatted = known.and_then(|value| format_percent(text, &const_text(value)));
                formatted.map_or_else(|| self.fresh_const(), Value::str)
            }
            (Value::Const(a), Value::Const(b)) => self.const_operands(op, a, b, at, places),
            (Value::Tuple(tuple), other) | (other, Value::Tuple(tuple)) => {
                self.tuple_binary(op, tuple, left, right, other, at)
            }
            _ => match self.object_binary(op, left, right, at) {
                Some(result) => result,
                None => {
                    self.bad_operands(op, left, right, at);
                    Value::Unknown
                }
            },
        }
    }

    /// An operator that an aggregate defines; before Triton 3.9 not with a compile-time operand.
    fn object_binary(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        at: FileRange,
    ) -> Option<Value> {
        if matches!(op, BinaryOp::Pow | BinaryOp::MatMul) {
            return None;
        }
        let name = op.method();
        let constant = |value: &Value| matches!(value, Value::Const(_));
        if !self.is_3_9() && (constant(left) || constant(right)) {
            return None;
        }
        let left_to_right = format!("__{name}__");
        if let Some(result) =
            self.call_operator(left, &left_to_right, std::slice::from_ref(right), at)
        {
            return Some(result);
        }
        self.call_operator(right, &format!("__r{name}__"), std::slice::from_ref(left), at)
    }

    fn const_operands(
        &mut self,
        op: BinaryOp,
        a: &Const,
        b: &Const,
        at: FileRange,
        places: Places,
    ) -> Value {
        if let Some(result) = self.const_binary(op, a, b) {
            return Value::Const(result);
        }
        let zero = matches!(b, Const::Int(0) | Const::Bool(false))
            || matches!(b, Const::Float(value) if *value == 0.0);
        if zero && matches!(op, BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod) {
            self.error(Code::BadOperand, places.1, "division by zero at compile time");
            return Value::Unknown;
        }
        if self.frame().mode == Mode::Jit {
            let message = format!("`{}` is not defined for {a} and {b}", op.symbol());
            self.error(Code::BadOperand, at, message);
        }
        Value::Unknown
    }

    fn tuple_binary(
        &mut self,
        op: BinaryOp,
        tuple: &Tuple,
        left: &Value,
        right: &Value,
        other: &Value,
        at: FileRange,
    ) -> Value {
        match (op, left, right) {
            (BinaryOp::Add, Value::Tuple(a), Value::Tuple(b))
                if a.held.is_python() != b.held.is_python() && self.frame().mode == Mode::Jit =>
            {
                let message = "a tuple that one constexpr holds cannot be joined to another";
                self.error(Code::BadOperand, at, message);
                Value::Unknown
            }
            (BinaryOp::Add, Value::Tuple(a), Value::Tuple(b)) => {
                let items = a.items.iter().chain(&b.items).cloned().collect();
                Value::held_tuple(items, a.held)
            }
            (BinaryOp::Mul, Value::Const(_), _) if self.frame().mode == Mode::Jit => {
                self.bad_operands(op, left, right, at);
                Value::Unknown
            }
            (BinaryOp::Mul, ..) => match other {
                Value::Const(Const::Int(count)) => {
                    let count = usize::try_from((*count).max(0)).unwrap_or(0).min(1 << 12);
                    let len = tuple.items.len() * count;
                    let items = tuple.items.iter().cycle().take(len).cloned().collect();
                    let held = if tuple.held.is_python() { tuple.held } else { Held::Elements };
                    Value::held_tuple(items, held)
                }
                _ => Value::Unknown,
            },
            _ => {
                self.bad_operands(op, left, right, at);
                Value::Unknown
            }
        }
    }

    /// Before Triton 3.9 a tuple with a constexpr `None` or text in it cannot be taken out of its
    /// constexprs, as what runs at compile time needs it.
    pub(super) fn refuse_untyped_elements(&mut self, value: &Value, at: FileRange) -> bool {
        let Value::Tuple(tuple) = value else { return false };
        let untyped = |item: &Value| matches!(item, Value::Const(Const::None | Const::Str(_)));
        if self.is_3_9()
            || self.frame().mode == Mode::Python
            || tuple.held != Held::Elements
            || !tuple.items.iter().any(untyped)
        {
            return false;
        }
        let message =
            "before Triton 3.9 a tuple that holds `None` or text is not looked at as a whole";
        let diagnostic = Diagnostic::new(Code::NotATensor, at, message)
            .with_note("name the element: `t[0]`, or a field of a named tuple");
        self.emit_diagnostic(diagnostic);
        true
    }

    fn bad_operands(&mut self, op: BinaryOp, left: &Value, right: &Value, at: FileRange) -> Stop {
        let overloads = |value: &Value| match value {
            Value::Object(object) => !object.class.class.bases.is_empty(),
            _ => false,
        };
        if overloads(left)
            || overloads(right)
            || matches!(left, Value::Class(_) | Value::Module(_) | Value::Bound(_))
            || matches!(right, Value::Class(_) | Value::Module(_))
            || self.frame().mode == Mode::Python
        {
            return Stop::Unknown;
        }
        let message = format!("`{}` is not defined for {} and {}", op.symbol(), a(left), a(right));
        self.error(Code::BadOperand, at, message)
    }

    /// `op value` on any value.
    pub(super) fn unary(&mut self, op: UnaryOp, value: &Value, at: FileRange) -> Value {
        match value {
            Value::Tensor(tensor) => {
                self.computed |= self.frame().mode == Mode::Python;
                let tensor = tensor.clone();
                self.tensor_unary(op, &tensor, at).map_or(Value::Unknown, Value::Tensor)
            }
            Value::Const(constant) => match self.const_unary(op, constant) {
                Some(result) => Value::Const(result),
                None => {
                    let text = format!(
                        "unary `{}` is not defined for `{}`",
                        op.symbol().trim_end(),
                        const_text(constant)
                    );
                    self.error(Code::BadOperand, at, text);
                    Value::Unknown
                }
            },
            Value::Tuple(tuple)
                if op == UnaryOp::Not && (self.is_3_9() || tuple.held != Held::Elements) =>
            {
                Value::bool(tuple.items.is_empty())
            }
            Value::Tuple(_) if self.frame().mode == Mode::Jit => {
                let message =
                    format!("`{}` is not defined for tuples in kernels", op.symbol().trim_end());
                self.error(Code::BadOperand, at, message);
                Value::Unknown
            }
            Value::Unknown => Value::Unknown,
            Value::Object(_)
                if op == UnaryOp::Minus && self.is_3_9() && self.defines(value, "__neg__") =>
            {
                self.call_operator(value, "__neg__", &[], at).unwrap_or(Value::Unknown)
            }
            Value::Object(_) | Value::Descriptor(_)
                if op == UnaryOp::Not && self.is_3_9() && self.frame().mode == Mode::Jit =>
            {
                let message = format!("`not` is not defined for {}", a(value));
                self.error(Code::BadOperand, at, message);
                Value::Unknown
            }
            _ if op == UnaryOp::Not => Value::bool(false),
            _ => Value::Unknown,
        }
    }
}

/// True for compile-time values, and for arguments that may be one at launch.
pub(super) fn may_be_const(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.is_open(),
        _ => true,
    }
}
