//! Returning: which values a function may return, and what becomes of them.

use std::sync::Arc;

use super::value::{Const, Held, Role, Value};
use super::{Evaluator, Mode, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, ExprId};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// `return value`.
    pub(super) fn return_stmt(&mut self, source: Source<'_>, value: Option<ExprId>, at: FileRange) {
        let returned = value;
        let value = returned.map_or(Value::NONE, |id| self.kept_expr(source, id));
        if self.frame().loops > 0 && self.frame().mode == Mode::Jit {
            let diagnostic = Diagnostic::new(
                Code::UnsupportedPython,
                at,
                "kernels cannot use `return` inside a `for` or `while` loop",
            )
            .with_note("compute the result in the loop and return after it");
            self.emit_diagnostic(diagnostic);
        }
        let value = match returned {
            Some(id) if self.frame().mode == Mode::Jit => {
                let bare = self.is_bare(source, id, &value) || self.has_bare(source, id, &value);
                self.returnable(value, bare, at)
            }
            _ => value,
        };
        self.frame_mut().returns.push((value, at));
    }

    /// What a function returns for `value`; reports what it cannot return. `bare` is the value of
    /// [`Self::is_bare`].
    fn returnable(&mut self, value: Value, bare: bool, at: FileRange) -> Value {
        let refused = match &value {
            Value::Bound(_) | Value::Builtin(_) | Value::Module(_) | Value::Class(_) => true,
            Value::Const(Const::Enum(_)) => true,
            Value::Const(Const::Member(member)) => {
                !self.is_3_9() && !matches!(member.plain(), Some(Const::Int(_)))
            }
            Value::Const(Const::DType(_) | Const::BlockType(..)) => bare && self.is_3_9(),
            Value::Tuple(tuple) if tuple.held.is_python() => !self.is_3_9(),
            Value::Tuple(tuple) if tuple.held != Held::Elements => true,
            Value::Tuple(_) => bare && self.is_3_9(),
            Value::Function(_) => !self.is_3_9(),
            Value::Const(Const::None) => {
                let is_called = !self.is_uncalled || self.outermost_call().is_some();
                !bare && !self.is_3_9() && is_called
            }
            value => value.is_void(),
        };
        if refused {
            let text = super::report::a(&value);
            let note = match &value {
                Value::Const(Const::None) => "write `return` alone, or nothing",
                value if value.is_void() => "write `return` on a line of its own",
                Value::Const(_) | Value::Tuple(_) => {
                    "bind the type to a `tl.constexpr` variable first"
                }
                _ => "pass it to where it is used as an argument",
            };
            let message = match &value {
                Value::Tuple(tuple) if tuple.held != Held::Elements => {
                    "a tuple that one constexpr holds cannot be returned".to_owned()
                }
                Value::Tuple(_) => "functions return types only as constexprs".to_owned(),
                value if value.is_void() => "there is no value that could be returned".to_owned(),
                _ => format!("functions return numbers, tensors and tuples, not {text}"),
            };
            let diagnostic = Diagnostic::new(Code::NotATensor, at, message).with_note(note);
            self.emit_diagnostic(diagnostic);
            return Value::Unknown;
        }
        if self.is_3_9() { value } else { self.decay(value, at) }
    }

    /// Numbers that a function returns become tensors in Triton 3.6.
    fn decay(&mut self, value: Value, at: FileRange) -> Value {
        match &value {
            Value::Const(Const::DType(elem)) => {
                let message = format!(
                    "functions return numbers and tensors before Triton 3.9, but `{elem}` is a type"
                );
                self.error(Code::NotATensor, at, message);
                Value::Unknown
            }
            Value::Const(Const::Symbol(_) | Const::None) => value,
            Value::Const(_) => self.materialize(&value, at).map_or(Value::Unknown, Value::Tensor),
            Value::Tuple(tuple) => {
                let items = tuple
                    .items
                    .iter()
                    .map(|item| self.returnable(item.clone(), false, at))
                    .collect();
                Value::Tuple(Arc::new(tuple.with_items(items)))
            }
            _ => value,
        }
    }

    /// True for an expression that gives `None` or a type as Python has them, not as a constexpr.
    pub(super) fn is_bare(&mut self, source: Source<'_>, expr: ExprId, value: &Value) -> bool {
        if !matches!(value, Value::Const(Const::None | Const::DType(_) | Const::BlockType(..))) {
            return false;
        }
        match &source.body.exprs[expr] {
            Expr::Name(name) if self.frame().locals.contains_key(name) => {
                self.frame().bare.contains(name)
            }
            Expr::Name(name) => {
                let (file, scope) = (self.frame().file, self.frame().scope.clone());
                let global = self.global(file, &scope, name);
                global.is_some_and(|global| global.item.is_none() || !global.constexpr)
            }
            // Fields of tuples and aggregates are constexprs.
            Expr::Attribute { value: object, .. } => !matches!(
                self.quietly(|this| this.expr(source, *object)),
                Value::Tuple(_) | Value::Object(_)
            ),
            // What a function without `return` gives.
            Expr::Call { callee, .. } => {
                let constexpr = matches!(
                    self.quietly(|this| this.expr(source, *callee)),
                    Value::Function(function) if function.kind.role == Role::Constexpr
                );
                value.is_none() && !self.is_3_9() && !constexpr
            }
            _ => false,
        }
    }

    /// True for a tuple written out with such a type in it.
    fn has_bare(&mut self, source: Source<'_>, expr: ExprId, value: &Value) -> bool {
        let (Expr::Tuple(exprs), Value::Tuple(tuple)) = (&source.body.exprs[expr], value) else {
            return false;
        };
        exprs.iter().zip(&tuple.items).any(|(&expr, item)| self.is_bare(source, expr, item))
    }
}
