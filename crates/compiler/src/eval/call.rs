//! Calls: arguments, and what is called.

use smallvec::SmallVec;

use super::value::{Const, Held, Role, Value};
use super::{Eval, Evaluator, Mode, Source, Stop};
use crate::builtins::{Builtin, Parameter, ParameterKind, Rule};
use crate::diagnostic::{Code, Diagnostic, TextEdit, suggest};
use crate::hir::{Arg, ArgKind, BinaryOp, Expr, ExprId, Name};
use crate::source::{FileRange, TextRange};

/// An evaluated argument.
#[derive(Debug, Clone)]
pub(super) struct Argument {
    /// The keyword, if it was passed by one.
    pub keyword: Option<Name>,
    /// The value.
    pub value: Value,
    /// Where the value stands.
    pub at: FileRange,
    /// In host code, whether a constexpr holds the value; `None` where that is not known.
    pub constexpr: Option<bool>,
}

impl Argument {
    /// An argument by position.
    pub(super) fn positional(value: Value, at: FileRange) -> Argument {
        Argument { keyword: None, value, at, constexpr: None }
    }
}

/// The arguments of a builtin, one entry per parameter.
#[derive(Debug)]
pub(super) struct Call {
    /// The builtin.
    pub builtin: &'static Builtin,
    /// The whole call.
    pub at: FileRange,
    parameters: &'static [Parameter],
    values: SmallVec<[Option<(Value, FileRange)>; 8]>,
    /// The arguments of `*args`.
    pub rest: Vec<(Value, FileRange)>,
}

impl Call {
    fn index(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }

    /// The value given for a parameter; `None` when its default applies.
    pub(super) fn given(&self, name: &str) -> Option<&Value> {
        let (value, _) = self.values.get(self.index(name)?)?.as_ref()?;
        Some(value)
    }

    /// The value of a parameter, `None` of the language where it was not given.
    pub(super) fn value(&self, name: &str) -> Value {
        self.given(name).cloned().unwrap_or(Value::NONE)
    }

    /// The value of the parameter at a position, `None` of the language where not given.
    pub(super) fn nth(&self, index: usize) -> Value {
        let value = self.values.get(index).and_then(Option::as_ref);
        value.map_or(Value::NONE, |(value, _)| value.clone())
    }

    /// Where an argument stands; the whole call where it was not given.
    pub(super) fn place(&self, name: &str) -> FileRange {
        let index = self.index(name);
        self.place_nth(index.unwrap_or(usize::MAX))
    }

    /// As [`Self::place`], by position.
    pub(super) fn place_nth(&self, index: usize) -> FileRange {
        let value = self.values.get(index).and_then(Option::as_ref);
        value.map_or(self.at, |(_, at)| *at)
    }

    /// True when an argument was given and is not `None`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given(name).is_some_and(|value| !value.is_none())
    }
}

impl Evaluator<'_> {
    /// A call expression.
    pub(super) fn call(
        &mut self,
        source: Source<'_>,
        id: ExprId,
        callee: ExprId,
        args: &[Arg],
    ) -> Value {
        let at = source.at(id);
        if let Some(function) = self.jit_of(source, callee, args) {
            return function;
        }
        let numpy = self.numpy_function(source, callee);
        let function = match &source.body.exprs[callee] {
            _ if numpy.is_some() => Value::Unknown,
            Expr::Attribute { value, attr } if let Some(operator) = operator_method(attr) => {
                let (value, attr) = (*value, attr.clone());
                let object = self.expr(source, value);
                if let (Value::Tensor(_), [Arg { kind: ArgKind::Positional, value: other }]) =
                    (&object, args)
                {
                    let operands = [(object, source.at(value)), (self.expr(source, *other), at)];
                    return self.method_of_operator(operator, operands, at);
                }
                self.attribute(&object, &attr, source.at(callee))
            }
            _ => self.expr(source, callee),
        };
        if let Some(star) = self.refused_star(&function, args) {
            let hint = "pass the elements one by one";
            return self.unsupported("Starred", hint, source.at(star));
        }
        // The message of an assertion is evaluated only when it fails, and may itself fail then.
        let asserts = matches!(&function, Value::Builtin(it) if it.rule == Rule::StaticAssert);
        let (said, message) = args.split_at(if asserts { 1.min(args.len()) } else { args.len() });
        let Some(mut arguments) = self.arguments(source, said) else { return Value::Unknown };
        if !message.is_empty() {
            let message = self.quietly(|this| this.arguments(source, message));
            arguments.extend(message.into_iter().flatten());
        }
        if let Some(name) = numpy {
            self.check_numpy_call(&name, source.at(callee), &arguments);
            return Value::Unknown;
        }
        if !self.is_3_9() && is_jit(&function) {
            self.refuse_bare_arguments(source, args, &arguments);
        }
        self.call_value(&function, arguments, at)
    }

    /// A `*` in a call that Triton itself runs while it compiles: there it is none of Python's.
    #[inline(never)]
    fn refused_star(&self, function: &Value, args: &[Arg]) -> Option<ExprId> {
        let Value::Builtin(builtin) = function else { return None };
        let runs = matches!(
            builtin.rule,
            Rule::StaticAssert | Rule::StaticPrint | Rule::PythonInt | Rule::PythonLen
        );
        let star = args.iter().find(|arg| arg.kind == ArgKind::Star)?;
        (runs && self.frame().mode == Mode::Jit).then_some(star.value)
    }

    /// `x.__add__(y)` is `x + y`, and `x.__radd__(y)` is `y + x`.
    fn method_of_operator(
        &mut self,
        (op, reflected): (BinaryOp, bool),
        [left, right]: [(Value, FileRange); 2],
        at: FileRange,
    ) -> Value {
        let (left, right) = if reflected { (right, left) } else { (left, right) };
        self.binary(op, &left.0, &right.0, at, (left.1, right.1))
    }

    /// Before Triton 3.9 jit functions take builtins, classes and modules only as constexprs.
    fn refuse_bare_arguments(&mut self, source: Source<'_>, args: &[Arg], values: &[Argument]) {
        if self.frame().mode != Mode::Jit || args.len() != values.len() {
            return;
        }
        for (arg, Argument { value, at, .. }) in args.iter().zip(values) {
            let bare = match value {
                Value::Builtin(builtin) => !builtin.is_jit(),
                Value::Class(_) | Value::Module(_) => true,
                _ => false,
            };
            let local = matches!(
                &source.body.exprs[arg.value],
                Expr::Name(name) if self.frame().locals.contains_key(name)
            );
            if bare && !local {
                let text = super::report::a(value);
                let message = format!("{text} cannot be passed before Triton 3.9");
                let diagnostic = Diagnostic::new(Code::NotATensor, *at, message)
                    .with_note("bind it to a `tl.constexpr` variable first");
                self.emit_diagnostic(diagnostic);
            }
        }
    }

    /// Evaluates arguments in order; `None` when one cannot be followed.
    fn arguments(&mut self, source: Source<'_>, args: &[Arg]) -> Option<Vec<Argument>> {
        let mut arguments = Vec::with_capacity(args.len());
        let mut followed = true;
        for arg in args {
            let value = self.kept_expr(source, arg.value);
            let at = source.at(arg.value);
            let constexpr = match self.frame().mode {
                Mode::Python => self.is_held(source, arg.value),
                Mode::Jit => None,
            };
            match &arg.kind {
                ArgKind::Positional => {
                    arguments.push(Argument { keyword: None, value, at, constexpr });
                }
                ArgKind::Keyword(name) => {
                    let keyword = Some(name.clone());
                    arguments.push(Argument { keyword, value, at, constexpr });
                }
                ArgKind::Star => match value {
                    Value::Tuple(tuple)
                        if self.frame().mode == Mode::Jit
                            && tuple.held != Held::Elements
                            && !self.is_3_9() =>
                    {
                        let message =
                            "before Triton 3.9 `*` takes no tuple that one constexpr holds";
                        self.error(Code::BadUnpack, at, message);
                        followed = false;
                    }
                    Value::Tuple(tuple) => {
                        let items = tuple.items.iter().cloned();
                        arguments.extend(items.map(|item| Argument::positional(item, at)));
                    }
                    other => {
                        self.check_starred(&other, at);
                        followed = false;
                    }
                },
                ArgKind::DoubleStar => {
                    if self.frame().mode == Mode::Jit {
                        self.unsupported("`**` in a call", "pass the arguments by name", at);
                    }
                    followed = false;
                }
            }
        }
        followed.then_some(arguments)
    }

    /// `*` in a call takes tuples.
    fn check_starred(&mut self, value: &Value, at: FileRange) {
        let certain = match value {
            Value::Tensor(tensor) => !tensor.is_open(),
            Value::Const(constant) => !constant.is_symbol(),
            _ => false,
        };
        if certain && self.frame().mode == Mode::Jit {
            let text = super::report::a(value);
            self.error(Code::BadUnpack, at, format!("`*` needs a tuple, but this is {text}"));
        }
    }

    /// Calls any value.
    pub(super) fn call_value(
        &mut self,
        function: &Value,
        mut arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        match function {
            Value::Builtin(builtin) => self.call_builtin(builtin, arguments, at),
            Value::Bound(bound)
                if let (Value::Const(Const::Str(_)), Value::Builtin(method)) = &**bound
                    && method.rule == Rule::PythonString =>
            {
                self.call_text_method(&bound.0, method.name, arguments, at)
            }
            Value::Bound(bound) => {
                let receiver = Argument::positional(bound.0.clone(), at);
                arguments.insert(0, receiver);
                // Python itself calls what an aggregate's class has of its own.
                if let (Value::Object(_), Value::Function(method)) = &**bound
                    && method.kind.role == Role::Host
                {
                    return self.call_constexpr(method, arguments, at);
                }
                self.call_value(&bound.1, arguments, at)
            }
            Value::Function(function) => match function.kind.role {
                Role::Jit => self.call_function(function, arguments, at),
                Role::Constexpr | Role::Wrapped => self.call_constexpr(function, arguments, at),
                Role::Builtin => self.call_python_builtin(function, arguments, at),
                // What a kernel may name of host code, as through a class, Python itself calls.
                Role::Host => self.call_constexpr(function, arguments, at),
                Role::Unknown => Value::Unknown,
            },
            Value::Either(functions) => {
                let results: Vec<Value> = functions
                    .iter()
                    .map(|function| {
                        let arguments = arguments.clone();
                        self.quietly(|this| this.call_value(function, arguments, at))
                    })
                    .collect();
                let mut results = results.into_iter();
                let first = results.next().unwrap_or(Value::Unknown);
                results.fold(first, |joined, next| self.join(&joined, &next))
            }
            Value::Class(class) => self.construct(class, arguments, at),
            Value::Const(Const::DType(elem)) if self.exact && self.frame().mode == Mode::Jit => {
                let message = format!("the type `{elem}` cannot be called");
                let diagnostic = Diagnostic::new(Code::NotCallable, at, message)
                    .with_note("write `tl.full((), value, dtype)`, or `value.to(dtype)`");
                self.emit_diagnostic(diagnostic);
                Value::Unknown
            }
            Value::Const(Const::DType(_)) => Value::Unknown,
            Value::Const(Const::Symbol(_)) | Value::Unknown => Value::Unknown,
            Value::Tensor(tensor) if tensor.elem.is_unknown() => Value::Unknown,
            _ if self.frame().mode == Mode::Python => Value::Unknown,
            other => {
                let text = super::report::a(other);
                self.error(Code::NotCallable, at, format!("{text} cannot be called"));
                Value::Unknown
            }
        }
    }

    /// Calls a member of the language.
    pub(super) fn call_builtin(
        &mut self,
        builtin: &'static Builtin,
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Value {
        match self.bind_builtin(builtin, arguments, at) {
            Ok(call) => match self.apply_builtin(&call) {
                Ok(value) => value,
                Err(Stop::Reported) => Value::Unknown,
                Err(Stop::Unknown) => Value::Unknown,
            },
            Err(_) => Value::Unknown,
        }
    }

    /// Assigns arguments to the parameters of a builtin.
    fn bind_builtin(
        &mut self,
        builtin: &'static Builtin,
        arguments: Vec<Argument>,
        at: FileRange,
    ) -> Eval<Call> {
        if !builtin.exists_in(self.version) {
            return Err(self.missing_in_version(builtin, at));
        }
        let parameters = builtin.parameters(self.version);
        let prints = builtin.rule == Rule::StaticPrint;
        let mut call = Call {
            builtin,
            at,
            parameters,
            values: SmallVec::from_elem(None, parameters.len()),
            rest: Vec::new(),
        };
        let mut next = 0;
        for argument in arguments {
            let value = if prints { argument.value } else { argument.value.operand() };
            match argument.keyword {
                None => self.bind_positional(&mut call, &mut next, value, argument.at)?,
                Some(name) => self.bind_keyword(&mut call, &name, value, argument.at)?,
            }
        }
        let missing = parameters.iter().enumerate().find(|(index, parameter)| {
            parameter.default.is_none()
                && parameter.kind != ParameterKind::VarArgs
                && call.values[*index].is_none()
        });
        if let Some((_, parameter)) = missing {
            let name = builtin.display_name();
            let mut diagnostic = Diagnostic::new(
                Code::MissingArgument,
                at,
                format!("`{name}` needs the argument `{}`", parameter.name),
            )
            .with_note(format!("{name}({})", builtin.signature_text(self.version)));
            if let (Rule::Arange, Some((_, only))) = (builtin.rule, &call.values[0]) {
                let start =
                    FileRange { range: TextRange::empty(only.range.start as usize), ..*only };
                let edit = TextEdit { at: start, text: "0, ".to_owned() };
                diagnostic = diagnostic.with_fix("Start at 0", vec![edit]);
            }
            return Err(self.emit_diagnostic(diagnostic));
        }
        Ok(call)
    }

    fn bind_positional(
        &mut self,
        call: &mut Call,
        next: &mut usize,
        value: Value,
        at: FileRange,
    ) -> Eval<()> {
        let parameters = call.parameters;
        match parameters.get(*next).map(|parameter| parameter.kind) {
            Some(ParameterKind::Normal) => {
                call.values[*next] = Some((value, at));
                *next += 1;
                Ok(())
            }
            Some(ParameterKind::VarArgs) => {
                call.rest.push((value, at));
                Ok(())
            }
            None if call.builtin.rule == Rule::PythonRange => Ok(()),
            Some(ParameterKind::KeywordOnly) | None => {
                let keyword_only = parameters.get(*next);
                let name = call.builtin.display_name();
                let message = match keyword_only {
                    Some(parameter) => {
                        format!("`{}` of `{name}` is passed by keyword", parameter.name)
                    }
                    None => format!("`{name}` takes at most {} arguments", parameters.len()),
                };
                let diagnostic = Diagnostic::new(Code::TooManyArguments, at, message)
                    .with_note(format!("{name}({})", call.builtin.signature_text(self.version)));
                Err(self.emit_diagnostic(diagnostic))
            }
        }
    }

    fn bind_keyword(
        &mut self,
        call: &mut Call,
        name: &Name,
        value: Value,
        at: FileRange,
    ) -> Eval<()> {
        // Older code passes these to every builtin; Triton strips them.
        if is_builder(name) {
            return Ok(());
        }
        if call.builtin.rule == Rule::PythonRange {
            self.ignored_by_range(call, name, &value, at);
            return Ok(());
        }
        if call.builtin.rule == Rule::StaticAssert {
            let message = "`tl.static_assert` takes its arguments by position";
            return Err(self.error(Code::UnknownKeyword, self.keyword_range(at, name), message));
        }
        match call.index(name) {
            Some(index) if call.parameters[index].kind != ParameterKind::VarArgs => {
                if call.values[index].is_some() {
                    let message = format!("`{name}` is given twice");
                    return Err(self.error(Code::TooManyArguments, at, message));
                }
                call.values[index] = Some((value, at));
                Ok(())
            }
            // Options of block pointers, which Triton 3.9 does not have, say nothing new where the
            // block pointer itself was refused.
            _ if matches!(&**name, "boundary_check" | "padding_option")
                && matches!(call.values.first(), Some(Some((Value::Unknown, _)))) =>
            {
                Err(Stop::Unknown)
            }
            _ => Err(self.unknown_keyword(call, name, at)),
        }
    }

    /// A step that Python's own `range` is given by keyword in a kernel: Triton reads only its positional
    /// arguments (`CodeGenerator.visit_For`). Options of loops, which it does not read either, change no result.
    fn ignored_by_range(&mut self, call: &Call, name: &Name, value: &Value, at: FileRange) {
        let is_usual = matches!(value, Value::Const(Const::Int(1)));
        if &**name != "step" || is_usual || self.frame().mode != Mode::Jit {
            return;
        }
        let keyword = self.keyword_range(at, name);
        let message = "`range` ignores `step` in a kernel";
        let mut found = Diagnostic::new(Code::IgnoredKeyword, keyword, message).with_note(
            "Triton reads only what `range` is given by position: the loop goes on by 1",
        );
        let starts_and_ends = call.values.iter().take(2).all(Option::is_some);
        if starts_and_ends && keyword != at {
            let range = TextRange { start: keyword.range.start, end: at.range.start };
            let edit = TextEdit { at: FileRange { range, ..at }, text: String::new() };
            found = found.with_fix("Give the step by position", vec![edit]);
        }
        self.emit_diagnostic(found);
    }

    fn unknown_keyword(&mut self, call: &Call, name: &Name, at: FileRange) -> Stop {
        let builtin = call.builtin;
        let shown = builtin.display_name();
        let keyword_at = self.keyword_range(at, name);
        if self.is_reported(Code::UnknownKeyword, keyword_at) {
            return Stop::Reported;
        }
        let mut diagnostic = Diagnostic::new(
            Code::UnknownKeyword,
            keyword_at,
            format!("`{shown}` has no parameter `{name}`"),
        )
        .with_note(format!("{shown}({})", builtin.signature_text(self.version)));
        let candidates = call.parameters.iter().map(|parameter| parameter.name);
        if let Some(best) = suggest(name, candidates) {
            diagnostic = diagnostic.with_suggestion(best);
        }
        self.emit_diagnostic(diagnostic)
    }

    /// The range of the keyword in front of `=` and a value.
    pub(super) fn keyword_range(&self, value: FileRange, name: &str) -> FileRange {
        let text = self.project.text(value.file).unwrap_or_default();
        let before = text.get(..value.range.start as usize).unwrap_or_default();
        let before = before.trim_end().strip_suffix('=').unwrap_or(before).trim_end();
        if !before.ends_with(name) {
            return value;
        }
        let range = TextRange::new(before.len() - name.len(), before.len());
        FileRange { file: value.file, range }
    }

    /// The error that a builtin does not exist in the Triton version compiled for.
    pub(super) fn missing_in_version(&mut self, builtin: &'static Builtin, at: FileRange) -> Stop {
        let name = builtin.display_name();
        let message = if builtin.since.max(builtin.exported) > self.version {
            format!("`{name}` exists only since Triton {}", builtin.since.max(builtin.exported))
        } else {
            format!("`{name}` was removed after Triton {}", builtin.until)
        };
        self.error(Code::UnknownBuiltin, at, message)
    }
}

/// The keywords by which builtins get what builds the kernel; kernels do not pass them.
pub(super) fn is_builder(keyword: &str) -> bool {
    matches!(keyword, "_builder" | "_semantic" | "_generator")
}

/// True for a jit function, and for a method that is one.
fn is_jit(function: &Value) -> bool {
    match function {
        Value::Function(function) => function.kind.role == Role::Jit,
        Value::Bound(bound) => is_jit(&bound.1),
        _ => false,
    }
}

/// The operator that a method such as `__add__` or `__radd__` stands for; true for the latter.
fn operator_method(name: &str) -> Option<(BinaryOp, bool)> {
    let operator = |name| {
        Some(match name {
            "add" => BinaryOp::Add,
            "sub" => BinaryOp::Sub,
            "mul" => BinaryOp::Mul,
            "truediv" => BinaryOp::Div,
            "floordiv" => BinaryOp::FloorDiv,
            "mod" => BinaryOp::Mod,
            "and" => BinaryOp::And,
            "or" => BinaryOp::Or,
            "xor" => BinaryOp::Xor,
            "lshift" => BinaryOp::Shl,
            "rshift" => BinaryOp::Shr,
            _ => return None,
        })
    };
    let name = name.strip_prefix("__")?.strip_suffix("__")?;
    let plain = operator(name).map(|op| (op, false));
    plain.or_else(|| operator(name.strip_prefix('r')?).map(|op| (op, true)))
}
