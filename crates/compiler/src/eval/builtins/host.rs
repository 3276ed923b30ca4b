//! Python's builtins and `math`, and Triton's host functions, at compile time.

use std::sync::Arc;

use super::super::call::Call;
use super::super::dtype::DType;
use super::super::module_member::is_listed;
use super::super::names::known_member;
use super::super::range::python_range;
use super::super::symbolic::{Sym, floor_div};
use super::super::value::{Const, Held, ModuleRef, Role, Tuple, Value};
use super::super::{Eval, Evaluator, Mode, Stop};
use crate::builtins::{Builtin, LANGUAGE, Rule};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, Name};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// `torch.finfo(dtype)` and `torch.iinfo(dtype)`, as named tuples.
    pub(super) fn type_limits(&mut self, call: &Call) -> Eval<Value> {
        let Value::Const(Const::TorchDType(dtype)) = call.nth(0) else {
            return Err(Stop::Unknown);
        };
        let limits = if call.builtin.name == "iinfo" {
            let (min, max) = dtype.int_range().ok_or(Stop::Unknown)?;
            vec![("min", Const::Int(min)), ("max", Const::Int(max))]
        } else {
            let (max, eps, tiny) = float_limits(dtype).ok_or(Stop::Unknown)?;
            [("min", -max), ("max", max), ("eps", eps), ("tiny", tiny)]
                .map(|(name, value)| (name, Const::Float(value)))
                .to_vec()
        };
        let bits = ("bits", Const::Int(i128::from(dtype.bits())));
        let fields = limits.into_iter().chain([bits]);
        let (names, items): (Vec<Name>, Vec<Value>) =
            fields.map(|(name, value)| (Name::from(name), Value::Const(value))).unzip();
        let named = Some(Arc::new((Name::from(call.builtin.name), names)));
        Ok(Value::Tuple(Arc::new(Tuple { items, named, held: Held::Elements })))
    }

    pub(super) fn python_len(&mut self, call: &Call) -> Eval<Value> {
        if self.refuse_untyped_elements(&call.nth(0), call.place_nth(0)) {
            return Err(Stop::Reported);
        }
        match call.nth(0) {
            Value::Tuple(tuple) => Ok(Value::int(tuple.items.len() as i128)),
            Value::Const(Const::Str(text)) => Ok(Value::int(text.chars().count() as i128)),
            Value::Tensor(tensor) if tensor.is_open() => Ok(self.fresh_const()),
            Value::Tensor(tensor) => {
                let what = if tensor.is_block() { "a tile" } else { "a scalar" };
                let message = format!("{what} has no length; its shape has");
                Err(self.error(Code::BadOperand, call.at, message))
            }
            Value::Const(Const::Int(_) | Const::Float(_) | Const::Bool(_) | Const::None)
                if self.frame().mode == Mode::Jit =>
            {
                let message = "a number has no length";
                Err(self.error(Code::BadOperand, call.at, message))
            }
            object @ (Value::Object(_) | Value::Descriptor(_))
                if self.frame().mode == Mode::Jit =>
            {
                let message = format!("{} has no length", super::super::report::a(&object));
                Err(self.error(Code::BadOperand, call.at, message))
            }
            _ => Ok(self.fresh_const()),
        }
    }

    /// `sum(...)` where it runs at compile time.
    pub(super) fn python_sum(&mut self, call: &Call) -> Eval<Value> {
        let items = match call.nth(0) {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Range(range) => python_range(&range).ok_or(Stop::Unknown)?,
            _ => return Err(Stop::Unknown),
        };
        let start = call.given("start").cloned().unwrap_or_else(|| Value::int(0));
        let at = call.at;
        let add = |sum: Value, item: &Value| self.binary(BinaryOp::Add, &sum, item, at, (at, at));
        Ok(items.iter().fold(start, add))
    }

    /// `int(x)` and `float(x)`.
    pub(super) fn python_number(&mut self, call: &Call) -> Eval<Value> {
        let to_int = call.builtin.rule == Rule::PythonInt;
        let at = call.place_nth(0);
        let constant = match call.nth(0) {
            Value::Const(constant) => constant,
            Value::Unknown => return Ok(self.fresh_const()),
            Value::Tensor(tensor) if tensor.elem.is_unknown() => return Err(Stop::Unknown),
            other => {
                let what = format!("the argument of `{}`", call.builtin.name);
                return Err(self.not_constexpr(Code::NotConstexpr, &what, &other, at));
            }
        };
        let result = match (&constant, to_int) {
            (Const::Symbol(sym), true) => Const::Symbol(sym.clone()),
            (Const::Symbol(_), false) => return Ok(self.fresh_const()),
            (Const::Int(value), true) => Const::Int(*value),
            (Const::Bool(value), true) => Const::Int(i128::from(*value)),
            (Const::Float(value), true) if value.is_finite() => Const::Int(value.trunc() as i128),
            (Const::Str(text), true) => match text.trim().parse::<i128>() {
                Ok(value) => Const::Int(value),
                Err(_) => return Err(self.bad_number(call, &constant)),
            },
            (Const::Int(value), false) => Const::Float(*value as f64),
            (Const::Bool(value), false) => Const::Float(f64::from(u8::from(*value))),
            (Const::Float(value), false) => Const::Float(*value),
            (Const::Str(text), false) => match python_float(text) {
                Some(value) => Const::Float(value),
                None => return Err(self.bad_number(call, &constant)),
            },
            _ => return Err(self.bad_number(call, &constant)),
        };
        Ok(Value::Const(result))
    }

    fn bad_number(&mut self, call: &Call, constant: &Const) -> Stop {
        let message = format!("`{}` cannot convert {constant}", call.builtin.name);
        self.error(Code::BadOperand, call.at, message)
    }

    pub(super) fn python_isinstance(&mut self, call: &Call) -> Eval<Value> {
        let value = call.nth(0);
        let classes: Vec<Value> = match call.nth(1) {
            Value::Tuple(tuple) => tuple.items.clone(),
            other => vec![other],
        };
        let mut unknown = false;
        // Only builtins are passed compile-time values as they are; others get what is inside.
        let function = self.frame().function.as_ref();
        let wrapped = function.is_some_and(|function| function.kind.role == Role::Builtin);
        for class in &classes {
            match class {
                Value::Builtin(builtin) if wrapped && builtin.rule == Rule::Constexpr => {
                    if matches!(value, Value::Const(_)) {
                        return Ok(Value::bool(true));
                    }
                    unknown |= value.is_unknown();
                }
                Value::Builtin(builtin) => match is_instance(&value, builtin) {
                    Some(true) => return Ok(Value::bool(true)),
                    Some(false) => {}
                    None => unknown = true,
                },
                Value::Class(class) => match &value {
                    Value::Object(object) => {
                        let same = Arc::ptr_eq(&object.class.class, &class.class);
                        if same {
                            return Ok(Value::bool(true));
                        }
                    }
                    // Kernels make tuples of the language of them.
                    Value::Tuple(tuple) if !tuple.held.is_python() => {}
                    Value::Tuple(tuple) if tuple.named.is_some() => unknown = true,
                    Value::Unknown => unknown = true,
                    _ => {}
                },
                _ => unknown = true,
            }
        }
        Ok(if unknown { self.fresh_const() } else { Value::bool(false) })
    }

    pub(super) fn python_getattr(&mut self, call: &Call) -> Eval<Value> {
        let object = call.nth(0);
        let Value::Const(Const::Str(name)) = call.nth(1) else {
            return Ok(self.fresh_const());
        };
        let name = Name::from(&*name);
        let at = call.at;
        if self.refuse_untyped_elements(&object, call.place_nth(0)) {
            return Err(Stop::Reported);
        }
        if let Value::Tuple(tuple) = &object
            && let Some(named) = &tuple.named
            && named.1.contains(&name)
            && tuple.held == Held::Elements
            && !self.is_3_9()
            && self.frame().mode == Mode::Jit
        {
            let called = call.builtin.name;
            let message =
                format!("before Triton 3.9 `{called}` does not see the fields of named tuples");
            let diagnostic = Diagnostic::new(Code::NoAttribute, at, message)
                .with_note(format!("write `.{name}`"));
            return Err(self.emit_diagnostic(diagnostic));
        }
        let getattr = call.builtin.rule == Rule::PythonGetAttr;
        // Python's functions get what a constexpr holds.
        let held = object.as_const().filter(|_| self.frame().mode == Mode::Jit);
        if let Some(found) = held.and_then(|held| number_has(held, &name)) {
            return match (found, getattr, call.has("default")) {
                (_, false, _) => Ok(Value::bool(found)),
                (false, true, true) => Ok(call.value("default")),
                (true, true, _) => Ok(self.fresh_const()),
                (false, true, false) => {
                    let message =
                        format!("{} has no attribute `{name}`", super::super::report::a(&object));
                    let diagnostic = Diagnostic::new(Code::NoAttribute, at, message);
                    Err(self.emit_diagnostic(diagnostic))
                }
            };
        }
        if getattr && !call.has("default") {
            return Ok(self.attribute(&object, &name, at));
        }
        match (self.has_attribute(&object, &name, at), getattr) {
            (Some(true), true) => Ok(self.attribute(&object, &name, at)),
            (Some(false), true) => Ok(call.value("default")),
            (None, true) => Err(Stop::Unknown),
            (Some(found), false) => Ok(Value::bool(found)),
            (None, false) => Ok(self.fresh_const()),
        }
    }

    /// Whether a value has an attribute, where that is known.
    fn has_attribute(&mut self, object: &Value, name: &Name, at: FileRange) -> Option<bool> {
        let before = self.failed;
        let found = match object {
            Value::Tensor(tensor) if tensor.elem.is_unknown() => None,
            Value::Tensor(_) | Value::Tuple(_) => {
                Some(!self.quietly(|this| this.attribute(object, name, at)).is_unknown())
            }
            Value::Module(ModuleRef::Known(path)) => match known_member(path, name) {
                Some(Value::Builtin(builtin)) => Some(self.is_exported(path, builtin)),
                Some(_) => Some(true),
                None => is_listed(path, name).then_some(false),
            },
            Value::Const(value) => const_has(value, name),
            Value::Object(object) if object.class.class.bases.is_empty() => {
                let class = &object.class.class;
                let own = object.fields.iter().any(|(field, _)| field == name)
                    || class.methods.iter().any(|method| method.name == *name)
                    || &**name == "type";
                (own || !name.starts_with('_')).then_some(own)
            }
            Value::Descriptor(_) if !name.starts_with('_') => {
                Some(!self.quietly(|this| this.attribute(object, name, at)).is_unknown())
            }
            _ => None,
        };
        self.failed = before;
        found
    }

    /// `math.prod(factors)`.
    fn product(&mut self, factors: &[Value]) -> Value {
        let product = factors.iter().try_fold(Const::Int(1), |product, factor| {
            let factor = factor.as_const().filter(|factor| !factor.is_symbol())?;
            self.const_binary(BinaryOp::Mul, &product, factor)
        });
        product.map_or_else(|| self.fresh_const(), Value::Const)
    }

    pub(super) fn python_math(&mut self, call: &Call) -> Eval<Value> {
        let first = call.nth(0);
        if let Value::Tensor(tensor) = &first {
            if tensor.elem.is_unknown() {
                return Err(Stop::Unknown);
            }
            let name = call.builtin.name;
            let what = format!("the argument of Python's `math.{name}`");
            let at = call.place_nth(0);
            return Err(self.not_constexpr(Code::NotConstexpr, &what, &first, at));
        }
        if let (Value::Tuple(factors), "prod") = (&first, call.builtin.name) {
            return Ok(self.product(&factors.items));
        }
        let (Some(x), y) = (number(&first), number(&call.nth(1))) else {
            return Ok(self.fresh_const());
        };
        let result = match (call.builtin.name, y) {
            ("ceil", _) if x.is_finite() => Const::Int(x.ceil() as i128),
            ("floor", _) if x.is_finite() => Const::Int(x.floor() as i128),
            ("trunc", _) if x.is_finite() => Const::Int(x.trunc() as i128),
            ("sqrt", _) if x >= 0.0 => Const::Float(x.sqrt()),
            ("log", None) if x > 0.0 => Const::Float(x.ln()),
            ("log", Some(base)) if x > 0.0 => Const::Float(x.ln() / base.ln()),
            ("log2", _) if x > 0.0 => Const::Float(x.log2()),
            ("log10", _) if x > 0.0 => Const::Float(x.log10()),
            ("log1p", _) if x > -1.0 => Const::Float(x.ln_1p()),
            ("exp", _) => Const::Float(x.exp()),
            ("exp2", _) => Const::Float(x.exp2()),
            ("pow", Some(y)) => Const::Float(x.powf(y)),
            ("sin", _) => Const::Float(x.sin()),
            ("cos", _) => Const::Float(x.cos()),
            ("tan", _) => Const::Float(x.tan()),
            ("tanh", _) => Const::Float(x.tanh()),
            ("fabs", _) => Const::Float(x.abs()),
            ("isnan", _) => Const::Bool(x.is_nan()),
            ("isinf", _) => Const::Bool(x.is_infinite()),
            ("gcd", Some(y)) => Const::Int(gcd(x as i128, y as i128)),
            _ => return Ok(self.fresh_const()),
        };
        Ok(Value::Const(result))
    }

    pub(super) fn host_function(&mut self, call: &Call) -> Eval<Value> {
        let values = [call.nth(0), call.nth(1)];
        for (index, value) in values.iter().enumerate() {
            if let Value::Tensor(tensor) = value {
                if tensor.elem.is_unknown() {
                    return Err(Stop::Unknown);
                }
                let name = call.builtin.name;
                let message = format!(
                    "`triton.{name}` works on compile-time numbers, but this is {}",
                    super::super::report::a(value)
                );
                let mut diagnostic =
                    Diagnostic::new(Code::NotConstexpr, call.place_nth(index), message);
                if name == "cdiv" {
                    diagnostic = diagnostic.with_note("in kernels use `tl.cdiv`");
                }
                let diagnostic = self.with_reasons(diagnostic, tensor.origin);
                return Err(self.emit_diagnostic(diagnostic));
            }
        }
        match (call.builtin.rule, values[0].as_const(), values[1].as_const()) {
            (Rule::HostCDiv, Some(Const::Int(x)), Some(Const::Int(y))) if *y != 0 => {
                Ok(Value::int(floor_div(x + y - 1, *y)))
            }
            (Rule::HostCDiv, Some(x), Some(y)) => match (x.to_sym(), y.to_sym()) {
                (Some(x), Some(y)) => {
                    let sum = x.add(&y).sub(&Sym::Int(1));
                    let result = sum.floor_div(&y).unwrap_or_else(|| self.fresh_symbol());
                    Ok(Value::Const(Const::from_sym(result)))
                }
                _ => Ok(self.fresh_const()),
            },
            (Rule::HostLog2, Some(Const::Int(n)), _) => {
                let n = u128::try_from(*n).unwrap_or(0).max(1);
                Ok(Value::int(i128::from(n.ilog2())))
            }
            (Rule::HostNextPowerOf2, Some(Const::Int(n)), _) => {
                let n = u128::try_from(*n).unwrap_or(0).clamp(1, 1 << 62);
                Ok(Value::int(n.next_power_of_two() as i128))
            }
            (Rule::HostNextPowerOf2, Some(Const::Symbol(sym)), _) => {
                let text = Sym::atom(format!("next_power_of_2({sym})"));
                if sym.is_opaque() {
                    Ok(self.fresh_const())
                } else {
                    Ok(Value::Const(Const::Symbol(text)))
                }
            }
            _ => Ok(self.fresh_const()),
        }
    }

    pub(super) fn target_query(&mut self, call: &Call) -> Eval<Value> {
        Ok(match call.builtin.name {
            "is_cuda" => Value::bool(true),
            "is_hip" | "is_hip_cdna3" | "is_hip_cdna4" => Value::bool(false),
            "cuda_capability_geq" => match (call.nth(0).as_const(), call.nth(1).as_const()) {
                (Some(Const::Int(major)), minor) if self.exact => {
                    let minor = match minor {
                        Some(Const::Int(minor)) => *minor,
                        _ => 0,
                    };
                    Value::bool(i128::from(self.capability) >= major * 10 + minor)
                }
                _ => self.fresh_const(),
            },
            _ => self.fresh_const(),
        })
    }
}

/// Whether a compile-time value has an attribute: that of a type, or of the constexpr around it.
fn const_has(value: &Const, name: &str) -> Option<bool> {
    match value {
        Const::Symbol(_) | Const::Member(_) | Const::Enum(_) | Const::Opaque(_) => None,
        _ if name.starts_with('_') => None,
        Const::DType(elem) if elem.is_unknown() => None,
        Const::DType(_) | Const::BlockType(..) | Const::BlockPtrType(..) => {
            let own = super::super::type_attribute::has_attribute(value, name);
            (!own || !matches!(name, "value" | "type")).then_some(own)
        }
        _ => Some(matches!(name, "value" | "type" | "logical_and" | "logical_or")),
    }
}

/// Whether Python's numbers and `None` have an attribute; `None` of other values.
fn number_has(value: &Const, name: &str) -> Option<bool> {
    let known: &[&str] = match value {
        Const::None => &[],
        Const::Int(_) | Const::Bool(_) => {
            &["bit_count", "bit_length", "denominator", "numerator", "to_bytes"]
        }
        Const::Float(_) => &["hex", "is_integer"],
        _ => return None,
    };
    let number = !matches!(value, Const::None)
        && matches!(name, "as_integer_ratio" | "conjugate" | "imag" | "real");
    (!name.starts_with('_')).then(|| number || known.contains(&name))
}

/// Whether a value is an instance of a class of the language; `None` when it is not known.
fn is_instance(value: &Value, class: &Builtin) -> Option<bool> {
    if let Value::Unknown = value {
        return None;
    }
    if let Value::Tensor(tensor) = value
        && tensor.is_open()
    {
        return None;
    }
    if let Value::Const(Const::Symbol(_)) = value
        && class.name != "constexpr"
    {
        return None;
    }
    Some(match (class.module, class.name) {
        (LANGUAGE, "tensor") => matches!(value, Value::Tensor(_) | Value::BlockPtr(_)),
        (LANGUAGE, "tensor_descriptor" | "tensor_descriptor_base") => {
            matches!(value, Value::Descriptor(_))
        }
        (LANGUAGE, "tuple") => matches!(value, Value::Tuple(_)),
        (LANGUAGE, "constexpr") => false,
        (LANGUAGE, "dtype") => {
            matches!(value, Value::Const(Const::DType(elem)) if !elem.is_ptr())
        }
        (LANGUAGE, "pointer_type") => {
            matches!(value, Value::Const(Const::DType(elem)) if elem.is_ptr())
        }
        (LANGUAGE, "block_type") => matches!(value, Value::Const(Const::BlockType(..))),
        (_, "int") => matches!(value, Value::Const(Const::Int(_) | Const::Bool(_))),
        (_, "float") => matches!(value, Value::Const(Const::Float(_))),
        _ => return None,
    })
}

fn number(value: &Value) -> Option<f64> {
    match value.as_const()? {
        Const::Int(value) => Some(*value as f64),
        Const::Bool(value) => Some(f64::from(u8::from(*value))),
        Const::Float(value) => Some(*value),
        _ => None,
    }
}

fn python_float(text: &str) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "+inf" | "infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        "nan" | "+nan" | "-nan" => Some(f64::NAN),
        other => other.parse().ok(),
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// The largest number, the distance from 1 to the next number, and the least normal number.
fn float_limits(dtype: DType) -> Option<(f64, f64, f64)> {
    Some(match dtype {
        DType::Float16 => (65504.0, 2f64.powi(-10), 2f64.powi(-14)),
        DType::BFloat16 => (f64::from(f32::from_bits(0x7f7f_0000)), 2f64.powi(-7), 2f64.powi(-126)),
        DType::Float32 => (f64::from(f32::MAX), f64::from(f32::EPSILON), 2f64.powi(-126)),
        DType::Float64 => (f64::MAX, f64::EPSILON, f64::MIN_POSITIVE),
        DType::Float8E4NV => (448.0, 2f64.powi(-3), 2f64.powi(-6)),
        DType::Float8E4B8 => (240.0, 2f64.powi(-3), 2f64.powi(-7)),
        DType::Float8E5 => (57344.0, 2f64.powi(-2), 2f64.powi(-14)),
        DType::Float8E5B16 => (57344.0, 2f64.powi(-2), 2f64.powi(-15)),
        _ => return None,
    })
}
