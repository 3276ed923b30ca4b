//! Aggregates and other classes: methods, operators that they define, and the fields of their objects.

use std::sync::Arc;

use super::attribute::bound;
use super::call::Argument;
use super::display::aggregate_type;
use super::value::{ClassRef, Const, FunctionKind, FunctionRef, Object, Role, Value};
use super::{Evaluator, Source};
use crate::builtins;
use crate::diagnostic::Code;
use crate::hir::{Class, Expr, ExprId, Function, Name, Stmt};
use crate::project::{self, Resolution, Scope};
use crate::source::{FileId, FileRange};

impl Evaluator<'_> {
    /// `receiver.attr` of an object of a class.
    pub(super) fn object_attribute(
        &mut self,
        object: &Object,
        attr: &Name,
        receiver: &Value,
        at: FileRange,
    ) -> Value {
        if let Some((_, value)) = object.fields.iter().find(|(name, _)| name == attr) {
            return value.clone();
        }
        let class = &object.class.class;
        if &**attr == "type" && class.bases.is_empty() {
            return match aggregate_type(object, self.is_3_9()) {
                Some(text) => Value::Const(Const::Opaque(text.into())),
                None => self.fresh_const(),
            };
        }
        let Some(method) = class.methods.iter().find(|m| m.name == *attr) else {
            // A base class may have it.
            if class.bases.is_empty() {
                return self.no_attribute(receiver, attr, at);
            }
            return Value::Unknown;
        };
        // An aggregate has the functions of its class, not the properties.
        if is_decorated(method, "property") && class.bases.is_empty() {
            return self.no_attribute(receiver, attr, at);
        }
        if is_decorated(method, "classmethod") {
            return Value::Unknown;
        }
        let function = self.method_of(&object.class, method);
        // So are static methods: the class of an aggregate keeps what they wrap.
        Value::Bound(Arc::new((receiver.clone(), function)))
    }

    /// An attribute of a class itself.
    pub(super) fn attribute_of_class(
        &mut self,
        class: &ClassRef,
        attr: &Name,
        at: FileRange,
    ) -> Value {
        let object = Value::Class(class.clone());
        match class.class.methods.iter().find(|method| method.name == *attr) {
            None if &**attr == "_make" && project::named_tuple_fields(&class.class).is_some() => {
                bound(&object, builtins::make())
            }
            Some(method) if is_decorated(method, "classmethod") => Value::Unknown,
            // Nor has the class of an aggregate properties.
            Some(method)
                if is_decorated(method, "property")
                    && class.class.bases.is_empty()
                    && !class.class.decorators.is_empty() =>
            {
                self.no_attribute(&object, attr, at)
            }
            Some(method) => self.method_of(class, method),
            None => self.class_attribute(class, attr),
        }
    }

    /// Whether an aggregate defines an operator itself.
    pub(super) fn defines(&self, object: &Value, name: &str) -> bool {
        matches!(object, Value::Object(object)
            if object.class.class.methods.iter().any(|method| &*method.name == name))
    }

    /// Calls the method by which an aggregate defines an operator, such as `__add__`; `None` where
    /// it has none.
    pub(super) fn call_operator(
        &mut self,
        receiver: &Value,
        name: &str,
        operands: &[Value],
        at: FileRange,
    ) -> Option<Value> {
        let Value::Object(object) = receiver else { return None };
        let methods = &object.class.class.methods;
        let method = methods.iter().find(|method| &*method.name == name)?.clone();
        let function = self.method_of(&object.class, &method);
        let all = std::iter::once(receiver).chain(operands);
        let arguments = all.map(|value| Argument::positional(value.clone(), at)).collect();
        Some(self.call_value(&function, arguments, at))
    }

    /// A method of a class as a function of all its parameters.
    pub(super) fn method_of(&self, class: &ClassRef, method: &Arc<Function>) -> Value {
        Value::Function(FunctionRef {
            file: class.file,
            function: method.clone(),
            kind: self.method_kind(class.file, method),
            scope: Arc::from([]),
            closure: Arc::from([]),
        })
    }

    /// What the decorators of a method make of it: methods of aggregates are jit functions.
    pub(super) fn method_kind(&self, file: FileId, method: &Function) -> FunctionKind {
        let scope = Scope { file, path: &[] };
        let jit = method.decorators.iter().any(|&decorator| {
            let callee = match &method.body.exprs[decorator] {
                Expr::Call { callee, .. } => *callee,
                _ => decorator,
            };
            let meaning = project::resolve_expr(self.project, scope, &method.body, callee);
            meaning == Resolution::Triton("jit".into())
        });
        let known = |names: &[&str]| {
            method.decorators.iter().any(|&decorator| {
                matches!(
                    project::resolve_expr(self.project, scope, &method.body, decorator),
                    Resolution::Triton(path) if names.contains(&&*path)
                )
            })
        };
        let plain = method.decorators.iter().all(|&decorator| {
            matches!(&method.body.exprs[decorator], Expr::Name(name) if &**name == "staticmethod")
        });
        let role = if jit {
            Role::Jit
        } else if known(&["constexpr_function", "language.constexpr_function"]) {
            Role::Constexpr
        } else if known(&["language.builtin"]) {
            Role::Builtin
        } else if plain {
            Role::Host
        } else {
            Role::Unknown
        };
        FunctionKind { role, noinline: false, must_use: false }
    }

    pub(super) fn assign_attribute(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        value: Value,
        at: FileRange,
    ) {
        let Expr::Attribute { value: object, attr } = &source.body.exprs[target] else { return };
        let Expr::Name(name) = &source.body.exprs[*object] else { return };
        let Some(local) = self.frame().locals.get(name).cloned() else {
            self.unsupported("assignment to an attribute", "use a variable", at);
            return;
        };
        if let Value::Object(object) = &local.value
            && self.constructs_aggregate()
        {
            let raw = self.is_raw(source, target);
            if !self.check_field(object, attr, &value, raw, at) {
                return;
            }
            let mut object = (**object).clone();
            match object.fields.iter_mut().find(|(field, _)| field == attr) {
                Some(field) => field.1 = value,
                None => object.fields.push((attr.clone(), value)),
            }
            self.bind(name, Value::Object(Arc::new(object)), local.at);
        } else if !local.value.is_unknown() {
            self.unsupported("assignment to an attribute", "use a variable", at);
        }
    }

    /// True in a constructor.
    pub(super) fn constructs_aggregate(&self) -> bool {
        let called = self.frame().function.as_ref();
        called.is_some_and(|called| &*called.function.name == "__init__")
    }

    /// Only declared fields are assigned, and with what they are declared to hold. `raw` is a value
    /// of Python that no constexpr holds.
    pub(super) fn check_field(
        &mut self,
        object: &Object,
        attr: &Name,
        value: &Value,
        raw: bool,
        at: FileRange,
    ) -> bool {
        let class = &object.class.class;
        let Some((_, annotation, _)) = class.fields.iter().find(|(field, ..)| field == attr) else {
            let message = format!("`{}` declares no field `{attr}`", class.name);
            self.error(Code::NoAttribute, at, message);
            return false;
        };
        let declared = annotation.and_then(|id| match &class.body.exprs[id] {
            Expr::Attribute { attr, .. } => Some(&**attr),
            _ => None,
        });
        let given = match value {
            Value::Const(constant) if !constant.is_symbol() => "a compile-time value",
            Value::Tensor(tensor) if !tensor.is_open() => "a tensor",
            Value::Tuple(_) => "a tuple",
            Value::Object(_) => "an aggregate",
            Value::Descriptor(_) => "a descriptor",
            _ => return true,
        };
        let (holds, code) = match declared {
            Some("tensor") => ("a tensor", Code::NotATensor),
            Some("constexpr") => ("a `tl.constexpr`", Code::NotConstexpr),
            Some("tensor_descriptor" | "tensor_descriptor_base") => {
                ("a descriptor", Code::Descriptor)
            }
            Some("base_value") => ("a value of the language", Code::NotATensor),
            _ => return true,
        };
        let plain = raw && matches!(value, Value::Const(_) | Value::Tuple(_));
        let fits = match declared {
            Some("constexpr") => !raw,
            Some("base_value") => !(raw && matches!(value, Value::Const(_))),
            _ => given == holds,
        };
        if !fits {
            let given = if plain { "a value of Python" } else { given };
            let message =
                format!("the field `{attr}` of `{}` is {holds}, but this is {given}", class.name);
            self.error(code, at, message);
        }
        fits
    }

    /// True for what Python itself makes of an assigned expression, or what a function that runs at
    /// compile time is given: its arguments come without their constexprs.
    fn is_raw(&self, source: Source<'_>, target: ExprId) -> bool {
        let assigned = source.body.stmts.values().find_map(|stmt| match stmt {
            Stmt::Assign { targets, value } if targets.contains(&target) => Some(*value),
            _ => None,
        });
        let Some(function) = &self.frame().function else { return false };
        let unwrapped = self.method_kind(function.file, &function.function).role == Role::Constexpr;
        match assigned.map(|id| &source.body.exprs[id]) {
            Some(Expr::Literal(_) | Expr::Tuple(_) | Expr::List(_)) => true,
            Some(Expr::Name(name)) => {
                let parameter = function.function.params.iter().find(|param| param.name == *name);
                let reassigned = source.body.stmts.values().any(|stmt| {
                    matches!(stmt, Stmt::Assign { targets, .. } if targets.iter().any(|&target|
                        matches!(&source.body.exprs[target], Expr::Name(other) if other == name)))
                });
                parameter.is_some() && unwrapped && !reassigned
            }
            _ => false,
        }
    }
}

/// True for an aggregate that may define what its brackets mean.
pub(super) fn may_have_elements(class: &Class) -> bool {
    !class.bases.is_empty() || class.methods.iter().any(|method| &*method.name == "__getitem__")
}

/// True for a class with a method that is decorated with `@classmethod`.
pub(super) fn has_class_method(class: &Class) -> bool {
    class.methods.iter().any(|method| is_decorated(method, "classmethod"))
}

pub(super) fn is_decorated(method: &Function, by: &str) -> bool {
    method.decorators.iter().any(
        |&decorator| matches!(&method.body.exprs[decorator], Expr::Name(name) if **name == *by),
    )
}
