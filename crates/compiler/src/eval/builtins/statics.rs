//! What runs while compiling: assertions, prints, ranges, types.

use std::sync::Arc;

use super::super::call::Call;
use super::super::display::{const_text, print_text};
use super::super::dtype::{DType, Elem, Kind, Pointer};
use super::super::value::{Const, Held, Tuple, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::Rule;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir;

impl Evaluator<'_> {
    pub(super) fn static_assert(&mut self, call: &Call) -> Eval<Value> {
        let at = call.place_nth(0);
        match call.nth(0) {
            Value::Const(Const::Bool(true)) => Ok(Value::NONE),
            Value::Const(Const::Bool(false)) => {
                // In a branch that may be dead the assertion may never be reached.
                if self.may_be_dead() {
                    return Ok(Value::NONE);
                }
                let text = match call.given("msg") {
                    Some(Value::Const(Const::Str(text))) if !text.is_empty() => {
                        format!("static assertion failed: {text}")
                    }
                    _ => "static assertion failed".to_owned(),
                };
                Err(self.error(Code::StaticAssert, call.at, text))
            }
            Value::Const(Const::Symbol(_)) | Value::Unknown => Ok(Value::NONE),
            Value::Const(other) => {
                let text = const_text(&other);
                let diagnostic = Diagnostic::new(
                    Code::StaticAssertType,
                    at,
                    format!("the condition of `tl.static_assert` must be a bool, not {text}"),
                )
                .with_note("compare, as in `x != 0`");
                Err(self.emit_diagnostic(diagnostic))
            }
            other => {
                let what = "the condition of `tl.static_assert`";
                Err(self.not_constexpr(Code::StaticAssertType, what, &other, at))
            }
        }
    }

    pub(super) fn static_print(&mut self, call: &Call) -> Eval<Value> {
        let separator = match call.given("sep") {
            Some(Value::Const(Const::Str(text))) => text.to_string(),
            _ => " ".to_owned(),
        };
        if call.rest.iter().any(|(value, _)| value.is_unknown()) && self.failed {
            return Ok(Value::NONE);
        }
        for (value, place) in &call.rest {
            if self.refuse_untyped_elements(value, *place) {
                return Err(Stop::Reported);
            }
        }
        let parts: Vec<String> = call.rest.iter().map(|(value, _)| print_text(value)).collect();
        let text = parts.join(&separator);
        if self.quiet == 0 && self.again == 0 {
            self.prints.push((call.at, text.clone()));
            if self.exact {
                self.emit_diagnostic(Diagnostic::new(Code::StaticPrint, call.at, text));
            }
        }
        Ok(Value::NONE)
    }

    pub(super) fn constexpr(&mut self, call: &Call) -> Eval<Value> {
        match call.nth(0) {
            Value::Tuple(tuple) if tuple.held == Held::Elements => {
                let held = Held::Annotated { shown: 0 };
                Ok(Value::Tuple(Arc::new(Tuple { held, ..Tuple::clone(&tuple) })))
            }
            value
            @ (Value::Const(_) | Value::Tuple(_) | Value::Function(_) | Value::Builtin(_)) => {
                Ok(value)
            }
            Value::Unknown => Ok(self.fresh_const()),
            Value::Tensor(tensor) if tensor.elem.is_unknown() => Ok(self.fresh_const()),
            // What wraps a tensor is the tensor again as soon as it is assigned or passed.
            other => Ok(other),
        }
    }

    pub(super) fn range_builtin(&mut self, call: &Call) -> Eval<Value> {
        let rule = call.builtin.rule;
        for option in ["num_stages", "loop_unroll_factor"] {
            let Some(given) = call.given(option).cloned() else { continue };
            let at = call.place(option);
            match &given {
                Value::Tensor(tensor) if !tensor.elem.is_unknown() => {
                    let what = format!("`{option}`");
                    return Err(self.not_constexpr(Code::NotConstexpr, &what, &given, at));
                }
                value if !is_count(value) => {
                    let given = super::super::report::a(value);
                    let message = format!("`{option}` is an integer, not {given}");
                    return Err(self.error(Code::BadOption, at, message));
                }
                _ => {}
            }
        }
        let kind = (rule == Rule::PythonRange, rule == Rule::StaticRange);
        let number = |name: &str| match call.given(name) {
            Some(Value::Const(Const::Int(value))) => u32::try_from(*value).unwrap_or(0),
            _ => 0,
        };
        let switch = |name: &str| matches!(call.given(name), Some(Value::Const(value)) if value.truth() == Some(true));
        let options = ir::Loop {
            // A loop that states none is not pipelined, whatever the kernel's depth.
            stages: match call.given("num_stages") {
                Some(Value::Const(Const::Int(_))) => number("num_stages").max(1),
                _ => 0,
            },
            unroll: number("loop_unroll_factor"),
            flatten: switch("flatten"),
            warp_specialize: switch("warp_specialize"),
        };
        for bound in ["arg1", "arg2", "step"] {
            if matches!(call.given(bound), Some(Value::Const(Const::None))) {
                let message = "`None` is no bound of a range";
                return Err(self.error(Code::LoopBound, call.place(bound), message));
            }
        }
        let args = ["arg1", "arg2", "step"].map(|name| call.given(name).cloned());
        Ok(self.range_value(args, kind, options))
    }

    pub(super) fn int_dtype(&mut self, call: &Call) -> Eval<Value> {
        let signed = self.flag(call, "signed", true)?;
        let Value::Const(Const::Int(bits)) = call.value("bitwidth") else {
            return Ok(Value::Const(Const::DType(Elem::Unknown)));
        };
        // One bit is `int1` either way.
        let kind = if signed { Kind::Signed } else { Kind::Unsigned };
        let fits = |dtype: &&DType| {
            i128::from(dtype.bits()) == bits && (dtype.kind() == kind || dtype.kind() == Kind::Bool)
        };
        match DType::ALL.iter().find(fits) {
            Some(dtype) => Ok(Value::Const(Const::DType(Elem::Num(*dtype)))),
            None => {
                let message = format!("there is no integer type of {bits} bits");
                Err(self.error(Code::BadDType, call.place("bitwidth"), message))
            }
        }
    }

    pub(super) fn pointer_type(&mut self, call: &Call) -> Eval<Value> {
        let constant = self.flag(call, "const", false)?;
        let elem = match self.dtype_arg(call, "element_ty")? {
            Elem::Num(dtype) => Elem::Ptr(Pointer { to: Some(dtype), depth: 1, constant }),
            Elem::Ptr(pointer) => {
                Elem::Ptr(Pointer { depth: pointer.depth.saturating_add(1), constant, ..pointer })
            }
            _ => Elem::Ptr(Pointer { to: None, depth: 1, constant }),
        };
        Ok(Value::Const(Const::DType(elem)))
    }

    pub(super) fn block_type(&mut self, call: &Call) -> Eval<Value> {
        let elem = self.dtype_arg(call, "element_ty")?;
        let shape = self.shape_arg(&call.value("shape"), call.place("shape"))?;
        if shape.is_scalar() {
            let message = "the type of a tile has at least one axis";
            return Err(self.error(Code::BadDType, call.place("shape"), message));
        }
        Ok(Value::Const(Const::BlockType(elem, shape)))
    }

    pub(super) fn dtype_class(&mut self, call: &Call) -> Eval<Value> {
        match call.nth(0) {
            Value::Const(Const::Str(name)) => match DType::from_signature(&name) {
                Some(dtype) => Ok(Value::Const(Const::DType(Elem::Num(dtype)))),
                None => {
                    let message = format!("there is no type called '{name}'");
                    Err(self.error(Code::BadDType, call.at, message))
                }
            },
            _ => Err(Stop::Unknown),
        }
    }
}

/// What may be an integer, or stands for none.
pub(super) fn is_count(value: &Value) -> bool {
    match value {
        Value::Unknown | Value::Tensor(_) => true,
        Value::Const(constant) => {
            matches!(constant, Const::None | Const::Bool(_) | Const::Int(_) | Const::Symbol(_))
        }
        _ => false,
    }
}
