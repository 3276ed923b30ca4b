//! Calls of classes: named tuples and aggregates by their fields, others by their constructors.

use std::sync::Arc;

use super::aggregate::has_class_method;
use super::call::Argument;
use super::value::{ClassRef, FunctionRef, Held, Object, Role, Tuple, Value};
use super::{Evaluator, Frame, Mode, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{ExprId, Function, Name};
use crate::project;
use crate::source::FileRange;

impl Evaluator<'_> {
    /// Makes an instance of a class: a named tuple or an aggregate.
    pub(super) fn construct(
        &mut self,
        class: &ClassRef,
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        if let Some(fields) = project::named_tuple_fields(&class.class) {
            return self.named_tuple(class, &fields, arguments, at);
        }
        let init = class.class.methods.iter().find(|method| &*method.name == "__init__");
        if class.class.decorators.is_empty() {
            return Value::Unknown;
        }
        // Triton hashes what the functions name that a kernel calls, but not class methods.
        let hashed = self.frame().mode == Mode::Jit && self.frames.len() > 1;
        if hashed && has_class_method(&class.class) {
            let what = "a class method of an aggregate that a called function names";
            return self.unsupported(what, "make it a static method", at);
        }
        let Some(init) = init else {
            return self.fields_in_order(class, arguments, at);
        };
        self.run_init(class, &init.clone(), arguments, at)
    }

    fn named_tuple(
        &mut self,
        class: &ClassRef,
        fields: &[project::Field],
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        let names: Vec<Name> = fields.iter().map(|(name, ..)| name.clone()).collect();
        let Some(items) = self.by_field(class, fields, arguments, at) else {
            return Value::Unknown;
        };
        let named = Some(Arc::new((class.class.name.clone(), names)));
        Value::Tuple(Arc::new(Tuple { items, named, held: Held::Elements }))
    }

    /// Makes an aggregate that has no constructor: since Triton 3.9 from its fields in order.
    fn fields_in_order(
        &mut self,
        class: &ClassRef,
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        let fields = class.class.fields.iter().filter(|(_, annotation, _)| annotation.is_some());
        let fields: Vec<project::Field> = fields.cloned().collect();
        let name = &class.class.name;
        // A base class may have a constructor, or more fields.
        if !class.class.bases.is_empty() || !self.is_aggregate(class) {
            return Value::Unknown;
        }
        if let (false, [(field, ..), ..]) = (self.is_3_9(), &fields[..]) {
            let message = format!("`{name}` has no constructor, so nothing assigns `{field}`");
            let diagnostic = Diagnostic::new(Code::NoAttribute, at, message)
                .with_note("Triton 3.9 makes aggregates without one from their fields in order");
            self.emit_diagnostic(diagnostic);
            return Value::Unknown;
        }
        let Some(items) = self.by_field(class, &fields, arguments, at) else {
            return Value::Unknown;
        };
        let mut object = Object { class: class.clone(), fields: Vec::new() };
        for ((field, ..), value) in fields.into_iter().zip(items) {
            // What is no value of the language gets a constexpr around it.
            let raw = !matches!(value, Value::Const(_) | Value::Tuple(_));
            if !self.check_field(&object, &field, &value, raw, at) {
                return Value::Unknown;
            }
            object.fields.push((field, value));
        }
        Value::Object(Arc::new(object))
    }

    /// Whether a decorator makes values of the language of a class's instances.
    fn is_aggregate(&self, class: &ClassRef) -> bool {
        let scope = project::Scope { file: class.file, path: &[] };
        let body = &class.class.body;
        class.class.decorators.iter().any(|&decorator| {
            let made_by = project::callee(body, decorator);
            let meaning = project::resolve_expr(self.project, scope, body, made_by);
            meaning == project::Resolution::Triton("aggregate".into())
        })
    }

    /// Arguments, or else defaults, for each of some fields; reports what does not fit.
    fn by_field(
        &mut self,
        class: &ClassRef,
        fields: &[project::Field],
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Option<Vec<Value>> {
        let names: Vec<&Name> = fields.iter().map(|(name, ..)| name).collect();
        let mut slots: Vec<Option<Value>> = vec![None; names.len()];
        for (position, argument) in arguments.into_iter().enumerate() {
            let index = match &argument.keyword {
                Some(keyword) => names.iter().position(|name| *name == keyword),
                None => Some(position),
            };
            match index.and_then(|index| slots.get_mut(index)) {
                Some(Some(_)) => {
                    let keyword = argument.keyword.as_deref().unwrap_or_default();
                    let message = format!("`{keyword}` is given twice");
                    self.error(Code::TooManyArguments, argument.at, message);
                    return None;
                }
                Some(slot) => *slot = Some(argument.value),
                None => {
                    let code = match argument.keyword {
                        Some(_) => Code::UnknownKeyword,
                        None => Code::TooManyArguments,
                    };
                    let fields: Vec<&str> = names.iter().map(|name| &***name).collect();
                    let fields = fields.join("`, `");
                    let message = format!("`{}` has the fields `{fields}`", class.class.name);
                    self.error(code, argument.at, message);
                    return None;
                }
            }
        }
        let mut items = Vec::with_capacity(names.len());
        for (slot, (name, _, default)) in slots.into_iter().zip(fields) {
            match (slot, default) {
                (Some(value), _) => items.push(value),
                (None, Some(default)) => items.push(self.field_default(class, *default)),
                (None, None) => {
                    let message = format!("`{}` needs the field `{name}`", class.class.name);
                    self.error(Code::MissingArgument, at, message);
                    return None;
                }
            }
        }
        Some(items)
    }

    /// The default of a field, evaluated where the class is defined.
    fn field_default(&mut self, class: &ClassRef, default: ExprId) -> Value {
        let source = Source { body: &class.class.body, map: &class.class.map, file: class.file };
        let frame =
            Frame::new(Mode::Python, class.file, None, Arc::from([]), super::Locals::default());
        self.frames.push(frame);
        let value = self.quietly(|this| this.expr(source, default));
        self.frames.pop();
        value
    }

    /// Runs the constructor of an aggregate.
    pub(super) fn run_init(
        &mut self,
        class: &ClassRef,
        init: &Arc<Function>,
        mut arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        let failed = std::mem::take(&mut self.failed);
        let exception = match self.frame().mode {
            Mode::Jit => {
                let called = FunctionRef {
                    file: class.file,
                    function: init.clone(),
                    kind: self.method_kind(class.file, init),
                    scope: Arc::from([]),
                    closure: Arc::from([]),
                };
                self.constructor_exception(class, &called, &arguments)
            }
            Mode::Python => None,
        };
        let object = Object { class: class.clone(), fields: Vec::new() };
        let this = Value::Object(Arc::new(object));
        arguments.insert(0, Argument::positional(this, at));
        let function = FunctionRef {
            file: class.file,
            function: init.clone(),
            kind: super::value::FunctionKind { role: Role::Jit, noinline: false, must_use: false },
            scope: Arc::from([]),
            closure: Arc::from([]),
        };
        // Python runs it, unless it is a jit function.
        let mode = match self.method_kind(class.file, init).role {
            Role::Jit => Mode::Jit,
            _ => Mode::Python,
        };
        let Some(locals) = self.bind_parameters(&function, arguments, at, mode) else {
            self.failed |= failed;
            return Value::Unknown;
        };
        let receiver = init.params.first().map(|param| param.name.clone());
        let mut frame = Frame::new(mode, class.file, Some(function), Arc::from([]), locals);
        frame.call = at;
        frame.inlined_at = self.emitter.as_ref().map(|emitter| emitter.loc);
        self.frames.push(frame);
        let source = Source::of(init, class.file);
        self.run(source, &source.body.root, None);
        let frame = self.frames.pop();
        let made =
            receiver.and_then(|name| frame.and_then(|frame| frame.locals.get(&name).cloned()));
        let made = made.map_or(Value::Unknown, |local| local.value);
        if let Value::Object(object) = &made
            && let Some((missing, ..)) = class
                .class
                .fields
                .iter()
                .filter(|(_, annotation, _)| annotation.is_some())
                .find(|(name, ..)| !object.fields.iter().any(|(field, _)| field == name))
            && !self.failed
        {
            let message =
                format!("the constructor of `{}` does not assign `{missing}`", class.class.name);
            self.error(Code::NoAttribute, at, message);
            return Value::Unknown;
        }
        let refused = self.failed;
        self.failed |= failed;
        match exception {
            Some(exception) if !refused => self.report_exception(&class.class.name, &exception, at),
            _ => made,
        }
    }
}
