//! Functions of the user: parameters, inlining, evaluation at compile time.

use std::sync::Arc;

use super::call::{Argument, is_builder};
use super::constant::compare_consts;
use super::join::{Relation, relate};
use super::python::{Exception, Exit};
use super::value::{Const, FunctionRef, Held, Role, Tensor, Value};
use super::{Evaluator, Frame, Local, Locals, MAX_DEPTH, Mode, Source};
use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::hir::{CompareOp, Name, Param, ParamKind};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// Calls a jit function: its body is evaluated in place.
    pub(super) fn call_function(
        &mut self,
        function: &FunctionRef,
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        if self.is_exhausted() {
            return Value::Unknown;
        }
        if self.frames.len() >= MAX_DEPTH || self.is_unbounded(function, &arguments) {
            let name = &function.function.name;
            let message = format!("`{name}` calls itself without end");
            let diagnostic = Diagnostic::new(Code::Recursion, at, message)
                .with_note("each level of a recursion must be specialized to something smaller");
            self.emit_diagnostic(diagnostic);
            // Other branches of the recursion have nothing to add.
            self.steps = u32::MAX;
            return Value::Unknown;
        }
        if self.refuse_collecting(function, at) {
            return Value::Unknown;
        }
        if function.kind.noinline && self.check_noinline(function, &arguments, at) {
            return Value::Unknown;
        }
        let Some(locals) = self.bind_parameters(function, arguments, at, Mode::Jit) else {
            return Value::Unknown;
        };
        if !self.inlined.iter().any(|known| Arc::ptr_eq(&known.function, &function.function)) {
            self.inlined.push(function.clone());
        }
        self.inline(function, locals, at, Mode::Jit)
    }

    /// Jit functions collect arguments neither in `*args` before Triton 3.9 nor in `**kwargs`.
    fn refuse_collecting(&mut self, function: &FunctionRef, at: FileRange) -> bool {
        let param = function.function.params.iter().find(|param| match param.kind {
            ParamKind::VarArgs => !self.is_3_9(),
            ParamKind::KwArgs => true,
            _ => false,
        });
        let Some(param) = param else { return false };
        let (stars, note) = match param.kind {
            ParamKind::KwArgs => ("**", "name the parameters"),
            _ => ("*", "pass a tuple"),
        };
        let message = format!(
            "`{}` collects arguments in `{stars}{}`, which jit functions cannot{}",
            function.function.name,
            param.name,
            if param.kind == ParamKind::KwArgs { "" } else { " before Triton 3.9" }
        );
        let place = FileRange { file: function.file, range: param.range };
        let diagnostic = Diagnostic::new(Code::UnsupportedPython, at, message)
            .with_related(place, "collected here")
            .with_note(format!("instead, {note}"));
        self.emit_diagnostic(diagnostic);
        true
    }

    /// Calls a function at compile time; what cannot be followed gives an unknown constexpr.
    pub(super) fn call_constexpr(
        &mut self,
        function: &FunctionRef,
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        let runtime = arguments.iter().find(|argument| {
            matches!(&argument.value, Value::Tensor(tensor) if !tensor.elem.is_unknown())
        });
        let runtime = runtime.filter(|_| self.frame().mode == Mode::Jit).cloned();
        if self.frames.len() >= MAX_DEPTH {
            return self.fresh_const();
        }
        let in_kernel = self.frame().mode == Mode::Jit;
        // What a module computes for its kernels it computes when it is imported.
        if in_kernel || function.kind.role == Role::Host {
            match self.run_python(function, &arguments) {
                Ok(value) => return value,
                Err(Exit::Raised(exception)) if in_kernel => {
                    if let Some(argument) = runtime.filter(|_| exception.needs_kernel()) {
                        return self.refuse_runtime(function, &argument);
                    }
                    return self.report_exception(&function.function.name, &exception, at);
                }
                Err(_) => {}
            }
        }
        // A field of an aggregate may be a tensor.
        let passed = arguments.iter().any(|argument| matches!(argument.value, Value::Object(_)));
        let function = self.called_with(function, &arguments);
        let Some(locals) = self.bind_parameters(&function, arguments, at, Mode::Python) else {
            return Value::Unknown;
        };
        let outer = std::mem::take(&mut self.raised);
        let outer_computed = std::mem::take(&mut self.computed);
        let value = self.quietly(|this| this.inline(&function, locals, at, Mode::Python));
        let raised = std::mem::replace(&mut self.raised, outer);
        let computed = std::mem::replace(&mut self.computed, outer_computed);
        if raised {
            match self.frame().mode {
                Mode::Python => self.raised = true,
                Mode::Jit => {
                    let message = format!("`{}` raises an exception", function.function.name);
                    self.error(Code::StaticAssert, at, message);
                }
            }
            return Value::Unknown;
        }
        match (value, runtime) {
            // A tensor may be passed on and asked about, but not computed with.
            (Value::Tensor(tensor), Some(Argument { value: Value::Tensor(given), .. }))
                if tensor.ir.is_some() && tensor.ir == given.ir =>
            {
                Value::Tensor(tensor)
            }
            (Value::Unknown, Some(_)) if !computed => self.fresh_const(),
            (Value::Unknown | Value::Tensor(_), Some(argument)) => {
                self.refuse_runtime(&function, &argument)
            }
            (Value::Tensor(tensor), None) if passed => Value::Tensor(tensor),
            (value, _) => self.known_at_compile_time(value),
        }
    }

    /// Reports a tensor that a function at compile time computes with.
    fn refuse_runtime(&mut self, function: &FunctionRef, argument: &Argument) -> Value {
        let name = &function.function.name;
        let what = format!("an argument of `{name}`, which runs at compile time,");
        self.not_constexpr(Code::NotConstexpr, &what, &argument.value, argument.at);
        Value::Unknown
    }

    /// Calls a method of a compile-time text, which Python runs. Triton takes values by position out
    /// of their constexprs, since version 3.9 also those in tuples.
    #[inline(never)]
    pub(super) fn call_text_method(
        &mut self,
        text: &Value,
        method: &'static str,
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        match self.run_text_method(text, method, &arguments) {
            Ok(value) => value,
            Err(Exit::Raised(exception)) if self.frame().mode == Mode::Jit => {
                self.report_exception(method, &exception, at)
            }
            Err(_) => self.fresh_const(),
        }
    }

    /// Reports an exception of a function that runs at compile time.
    pub(super) fn report_exception(
        &mut self,
        name: &str,
        exception: &Exception,
        at: FileRange,
    ) -> Value {
        if self.may_be_dead() {
            return Value::Unknown;
        }
        let raised = match (exception.kind, exception.message.as_str()) {
            (None, _) => "an exception".to_owned(),
            (Some(kind), "") => format!("`{kind}`"),
            (Some(kind), message) => format!("`{kind}`: {message}"),
        };
        let message = format!("`{name}` raises {raised}");
        let mut diagnostic = Diagnostic::new(Code::StaticAssert, at, message);
        if let Some(place) = exception.at {
            diagnostic = diagnostic.with_related(place, "raised here");
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    /// What a function gives that ran at compile time.
    fn known_at_compile_time(&mut self, value: Value) -> Value {
        match value {
            Value::Unknown | Value::Tensor(_) => self.fresh_const(),
            value if self.frame().mode == Mode::Jit => value.held(Held::Python),
            value => value,
        }
    }

    /// Calls a builtin that is written in Python.
    pub(super) fn call_python_builtin(
        &mut self,
        function: &FunctionRef,
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        if self.frames.len() >= MAX_DEPTH {
            return Value::Unknown;
        }
        let Some(locals) = self.bind_parameters(function, arguments, at, Mode::Python) else {
            return Value::Unknown;
        };
        let function = function.clone();
        self.quietly(|this| this.inline(&function, locals, at, Mode::Python))
    }

    /// Evaluates a body with the given locals; gives what it returns.
    fn inline(
        &mut self,
        function: &FunctionRef,
        locals: Locals,
        at: FileRange,
        mode: Mode,
    ) -> Value {
        let inlined_at = self.emitter.as_ref().map(|emitter| emitter.loc);
        let mut frame =
            Frame::new(mode, function.file, Some(function.clone()), inner_scope(function), locals);
        frame.call = at;
        frame.inlined_at = inlined_at;
        self.frames.push(frame);
        if mode == Mode::Jit {
            self.check_head(function);
        }
        let body = function.function.clone();
        let source = Source::of(&body, function.file);
        let ended = self.run(source, &source.body.root, None) == super::stmt::Flow::Returned;
        // What Python raised, it may have raised for what is not known here.
        let raised = ended && mode == Mode::Python && self.frame().returns.is_empty();
        let value = self.returned(ended, at);
        self.frames.pop();
        let is_stub = mode == Mode::Python && body.is_stub();
        if raised || is_stub { Value::Unknown } else { value }
    }

    /// The one value that the innermost frame returned.
    fn returned(&mut self, ended: bool, at: FileRange) -> Value {
        let returns = std::mem::take(&mut self.frame_mut().returns);
        let mut values = returns.into_iter();
        let Some(first) = values.next() else {
            // What was not evaluated may return something.
            return if self.is_exhausted() { Value::Unknown } else { Value::NONE };
        };
        let mut result = first.0.clone();
        for mut next in values {
            if self.exact && self.speculative == 0 {
                let settled = self.settle(&result, &next.0, at);
                next.0 = self.settle(&next.0, &result, at);
                result = settled;
            }
            let different = relate(&result, &next.0) == Relation::Different;
            if different && self.exact && self.speculative == 0 {
                self.return_mismatch(&first, &next, at);
                return Value::Unknown;
            }
            result = match (&result, &next.0) {
                _ if different => Value::Unknown,
                // Equal numbers are one constant since Triton 3.9: `1.0` and `1` are `1.0`.
                (Value::Const(x), Value::Const(y))
                    if self.is_3_9() && compare_consts(CompareOp::Eq, x, y) == Some(true) =>
                {
                    result
                }
                _ => self.join(&result, &next.0),
            };
        }
        if ended || self.exact { result } else { self.falls_off(result) }
    }

    /// A returned value beside another one of the same function: where they differ, Triton 3.9
    /// makes tensors of numbers, as 3.6 always does.
    pub(super) fn settle(&mut self, value: &Value, other: &Value, at: FileRange) -> Value {
        if !self.is_3_9() {
            return value.clone();
        }
        match (value, other) {
            (Value::Const(x), Value::Const(y))
                if compare_consts(CompareOp::Eq, x, y) != Some(false) =>
            {
                value.clone()
            }
            (
                Value::Const(Const::Int(_) | Const::Bool(_) | Const::Float(_)),
                Value::Const(_) | Value::Tensor(_),
            ) => self.materialize(value, at).map_or(Value::Unknown, Value::Tensor),
            (Value::Tuple(x), Value::Tuple(y)) if x.items.len() == y.items.len() => {
                let pairs = x.items.iter().zip(&y.items);
                let items = pairs.map(|(x, y)| self.settle(x, y, at)).collect();
                Value::Tuple(Arc::new(x.with_items(items)))
            }
            _ => value.clone(),
        }
    }

    /// A function that may also end without `return`.
    fn falls_off(&mut self, result: Value) -> Value {
        if result.is_none() { result } else { Value::Unknown }
    }

    /// The same function is already being evaluated with arguments of the same types.
    fn is_unbounded(&self, function: &FunctionRef, arguments: &[Argument]) -> bool {
        let same = self.frames.iter().filter(|frame| {
            frame.function.as_ref().is_some_and(|f| Arc::ptr_eq(&f.function, &function.function))
        });
        let mut depth = 0;
        for frame in same {
            depth += 1;
            let params = &function.function.params;
            let repeats = !params.is_empty()
                && params.iter().zip(arguments).all(|(param, argument)| {
                    let known = frame.locals.get(&param.name);
                    known.is_some_and(|local| {
                        relate(&local.value, &argument.value) == Relation::Same
                    })
                });
            if repeats && depth > 1 {
                return true;
            }
        }
        depth > 24
    }

    fn check_noinline(
        &mut self,
        function: &FunctionRef,
        arguments: &[Argument],
        at: FileRange,
    ) -> bool {
        let tile = arguments
            .iter()
            .find(|argument| matches!(&argument.value, Value::Tensor(tensor) if tensor.is_block()));
        let Some(tile) = tile else { return false };
        let message = format!(
            "`{}` is marked `noinline`, so it takes scalars only, but this is {}",
            function.function.name,
            super::report::a(&tile.value)
        );
        let diagnostic =
            Diagnostic::new(Code::NoInline, tile.at, message).with_related(at, "in this call");
        self.emit_diagnostic(diagnostic);
        true
    }

    /// Assigns arguments to parameters; reports what does not fit.
    pub(super) fn bind_parameters(
        &mut self,
        function: &FunctionRef,
        arguments: Vec<Argument>,
        at: FileRange,
        mode: Mode,
    ) -> Option<Locals> {
        let params = &function.function.params;
        let mut slots: Vec<Option<Value>> = vec![None; params.len()];
        let mut extra: Vec<Value> = Vec::new();
        let mut position = 0;
        let positional = params.iter().filter(|param| param.kind.is_positional()).count();
        let var_args = params.iter().position(|param| param.kind == ParamKind::VarArgs);
        for argument in arguments {
            match &argument.keyword {
                None if position < positional => {
                    slots[position] = Some(argument.value);
                    position += 1;
                }
                None if var_args.is_some() => extra.push(argument.value),
                None => {
                    self.too_many(function, argument.at);
                    return None;
                }
                Some(name) => match params.iter().position(|param| param.name == *name) {
                    Some(index) if slots[index].is_none() => slots[index] = Some(argument.value),
                    Some(_) => {
                        let message = format!("`{name}` is given twice");
                        self.error(Code::TooManyArguments, argument.at, message);
                        return None;
                    }
                    None if params.iter().any(|param| param.kind == ParamKind::KwArgs) => {}
                    None => {
                        self.unknown_parameter(function, name, argument.at);
                        return None;
                    }
                },
            }
        }
        let mut locals = Locals::default();
        for (index, param) in params.iter().enumerate() {
            let value = match (slots[index].take(), param.kind) {
                (_, ParamKind::VarArgs) => Value::tuple(std::mem::take(&mut extra)),
                (_, ParamKind::KwArgs) => Value::Unknown,
                (Some(value), _) => value,
                // Triton passes what its builtins build with.
                (None, _) if is_builder(&param.name) => Value::NONE,
                (None, _) => match param.default {
                    Some(default) => {
                        let value = self.default_value(function, default);
                        if mode == Mode::Jit {
                            self.check_used_default(function, default, &value, at);
                        }
                        value
                    }
                    None => {
                        self.missing_argument(function, param, at, mode);
                        return None;
                    }
                },
            };
            locals.insert(param.name.clone(), Local { value, at: param.range });
        }
        Some(locals)
    }

    /// The default of a parameter, evaluated where the function is defined.
    pub(super) fn default_value(
        &mut self,
        function: &FunctionRef,
        default: crate::hir::ExprId,
    ) -> Value {
        let body = function.function.clone();
        let source = Source::of(&body, function.file);
        let mut frame = Frame::new(
            Mode::Python,
            function.file,
            // What a factory gave is known by the variables around the function.
            (!function.closure.is_empty()).then(|| function.clone()),
            function.scope.clone(),
            Locals::default(),
        );
        frame.in_default = true;
        self.frames.push(frame);
        let value = self.quietly(|this| this.kept_expr(source, default));
        self.frames.pop();
        value
    }

    fn too_many(&mut self, function: &FunctionRef, at: FileRange) {
        let count = function.function.params.len();
        let name = &function.function.name;
        let message = format!("`{name}` takes {count} arguments, but more are given");
        let diagnostic = Diagnostic::new(Code::TooManyArguments, at, message)
            .with_related(definition(function), format!("`{name}` is defined here"));
        self.emit_diagnostic(diagnostic);
    }

    fn unknown_parameter(&mut self, function: &FunctionRef, name: &Name, at: FileRange) {
        let called = &function.function.name;
        let keyword_at = self.keyword_range(at, name);
        let mut diagnostic = Diagnostic::new(
            Code::UnknownKeyword,
            keyword_at,
            format!("`{called}` has no parameter `{name}`"),
        )
        .with_related(definition(function), format!("`{called}` is defined here"));
        let candidates = function.function.params.iter().map(|param| &*param.name);
        if let Some(best) = suggest(name, candidates) {
            diagnostic = diagnostic.with_suggestion(best);
        }
        self.emit_diagnostic(diagnostic);
    }

    fn missing_argument(
        &mut self,
        function: &FunctionRef,
        param: &Param,
        at: FileRange,
        mode: Mode,
    ) {
        if mode == Mode::Python && self.frame().mode == Mode::Python {
            return;
        }
        let name = &function.function.name;
        let place = FileRange { file: function.file, range: param.range };
        let message = format!("`{name}` needs the argument `{}`", param.name);
        let diagnostic = Diagnostic::new(Code::MissingArgument, at, message)
            .with_related(place, "this parameter has no default");
        self.emit_diagnostic(diagnostic);
    }

    /// Calls a combining function of a reduction on scalars; gives the scalars it returns, and
    /// whether it returns them as a tuple.
    pub(super) fn call_combine(
        &mut self,
        function: &Value,
        arguments: Vec<Tensor>,
        at: FileRange,
    ) -> (Vec<Value>, bool) {
        let other = match function {
            Value::Builtin(builtin) if !builtin.is_jit() => Some(builtin.display_name()),
            Value::Function(function) if matches!(function.kind.role, Role::Constexpr) => {
                Some(function.function.name.to_string())
            }
            _ => None,
        };
        if let Some(name) = other {
            let message = format!("`{name}` is no jit function, so it cannot be applied here");
            let diagnostic = Diagnostic::new(Code::NotCallable, at, message)
                .with_note("wrap it in a function with `@triton.jit`");
            self.emit_diagnostic(diagnostic);
            return (vec![Value::Unknown], false);
        }
        let arguments = arguments
            .into_iter()
            .map(|tensor| Argument::positional(Value::Tensor(tensor), at))
            .collect();
        match self.call_value(function, arguments, at) {
            Value::Tuple(tuple) => {
                if let Some(constant) = tuple.items.iter().find_map(Value::as_const) {
                    let constant = constant.clone();
                    self.refuse_constant_result(&constant, at);
                }
                (tuple.items.clone(), true)
            }
            Value::Const(constant @ (Const::Int(_) | Const::Bool(_) | Const::Float(_))) => {
                self.refuse_constant_result(&constant, at);
                let value = Value::Const(constant);
                let value = self.materialize(&value, at).map_or(Value::Unknown, Value::Tensor);
                (vec![value], false)
            }
            Value::Const(Const::None) => {
                let message = "the combining function returns nothing";
                self.error(Code::CombineFunction, at, message);
                (vec![Value::Unknown], false)
            }
            other => (vec![other], false),
        }
    }

    /// Since Triton 3.9 functions return compile-time values as such, and these are not combined.
    fn refuse_constant_result(&mut self, constant: &Const, at: FileRange) {
        if !self.is_3_9() || constant.is_symbol() {
            return;
        }
        let message = format!("the combining function returns tensors, not {constant}");
        self.error(Code::CombineFunction, at, message);
    }
}

/// Names inside a function see its own nested definitions too.
fn inner_scope(function: &FunctionRef) -> Arc<[Name]> {
    function.scope.clone()
}

fn definition(function: &FunctionRef) -> FileRange {
    let range = function
        .function
        .params
        .first()
        .map(|param| param.range)
        .or_else(|| {
            function.function.body.root.first().map(|&stmt| function.function.map.stmts[stmt])
        })
        .unwrap_or_default();
    FileRange { file: function.file, range }
}
