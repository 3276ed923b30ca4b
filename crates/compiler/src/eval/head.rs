//! The head of a jit function: Triton evaluates annotations and defaults whenever it compiles one.

use super::value::{Const, FunctionRef, Role, Value};
use super::{Evaluator, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{Expr, ExprId, Function, Name, Param, ParamKind};
use crate::project::{self, Resolution, Scope};
use crate::source::FileRange;

/// Members of Python's `typing` that can be called and are no types.
const SPECIAL_FORMS: [&str; 24] = [
    "Callable",
    "ClassVar",
    "Collection",
    "Container",
    "Deque",
    "Dict",
    "Final",
    "FrozenSet",
    "Generator",
    "Hashable",
    "Iterable",
    "Iterator",
    "List",
    "Literal",
    "Mapping",
    "NoReturn",
    "Optional",
    "OrderedDict",
    "Self",
    "Sequence",
    "Set",
    "Tuple",
    "Type",
    "Union",
];

impl Evaluator<'_> {
    /// Reports what Triton refuses in the head of the function of the innermost frame.
    pub(super) fn check_head(&mut self, function: &FunctionRef) {
        let body = function.function.clone();
        let source = Source::of(&body, function.file);
        for param in &body.params {
            self.check_binding(source, param);
            if let Some(annotation) = param.annotation {
                self.check_annotation(source, annotation);
                self.check_launched_annotation(source, annotation);
            }
            if let (Some(default), ParamKind::Normal) = (param.default, param.kind) {
                self.check_enclosed(function, default);
                let constexpr = param.annotation.is_some_and(|annotation| {
                    let spelled = matches!(&body.body.exprs[annotation], Expr::Literal(_));
                    !spelled && self.is_constexpr_param(function, param)
                });
                if !constexpr {
                    self.check_assigned_default(function, default);
                }
            }
        }
        if let Some(returns) = body.returns {
            self.check_launched_annotation(source, returns);
        }
    }

    /// Of the variables of functions around it a jit function knows those that its statements name;
    /// its defaults are evaluated again whenever it is compiled, and know no others.
    fn check_enclosed(&mut self, function: &FunctionRef, default: ExprId) {
        let body = &function.function.body;
        let mut open = vec![default];
        while let Some(id) = open.pop() {
            body.exprs[id].for_each_child(|child| open.push(child));
            let Some(name) = body.exprs[id].as_name() else { continue };
            let scope = Scope { file: function.file, path: &function.scope };
            let outside = Scope { path: &[], ..scope };
            if self.is_of_module(scope, name)
                || is_named_by_statements(&function.function, name)
                || project::resolve(self.project, outside, name) != Resolution::Undefined
            {
                continue;
            }
            let at = Source::of(&function.function, function.file).at(id);
            let message = format!(
                "`{name}` is not defined in a default: of the function around it a jit function knows what its statements name"
            );
            let diagnostic = Diagnostic::new(Code::UndefinedName, at, message)
                .with_note(format!("name `{name}` in the function, or pass it as an argument"));
            self.emit_diagnostic(diagnostic);
        }
    }

    /// A launch looks at all that a function names, also in annotations that nothing evaluates, and
    /// refuses what can be called and is neither a type nor the language's.
    fn check_launched_annotation(&mut self, source: Source<'_>, annotation: ExprId) {
        let expr = &source.body.exprs[annotation];
        if !matches!(expr, Expr::Name(_) | Expr::Attribute { .. }) {
            expr.for_each_child(|child| self.check_launched_annotation(source, child));
            return;
        }
        let frame = self.frame();
        let scope = Scope { file: source.file, path: &frame.scope };
        let Resolution::External(path) =
            project::resolve_expr(self.project, scope, source.body, annotation)
        else {
            return;
        };
        let at = source.at(annotation);
        let is_form = matches!(&path[..], [module, name]
            if &**module == "typing" && SPECIAL_FORMS.contains(&&**name));
        if !is_form || self.is_reported(Code::GlobalNotConstexpr, at) {
            return;
        }
        let message = format!("jit functions cannot name `{}`", path.join("."));
        let diagnostic = Diagnostic::new(Code::GlobalNotConstexpr, at, message)
            .with_note("put the annotation in quotes");
        self.emit_diagnostic(diagnostic);
    }

    /// True where the annotation of a parameter makes its argument a compile-time value.
    pub(super) fn is_constexpr_param(&self, function: &FunctionRef, param: &Param) -> bool {
        let scope = Scope { file: function.file, path: &function.scope };
        let constant = |id| project::is_constexpr(self.project, scope, &function.function, id);
        param.annotation.is_some_and(constant)
    }

    /// Some parameters get no value: those before `/`, and before Triton 3.9 those after `*`.
    fn check_binding(&mut self, source: Source<'_>, param: &Param) {
        let (place, note) = match param.kind {
            ParamKind::PositionalOnly => ("before `/`", "leave out the `/`"),
            ParamKind::KeywordOnly if !self.is_3_9() => ("after `*`", "leave out the `*`"),
            _ => return,
        };
        let used = source
            .body
            .exprs
            .values()
            .any(|expr| matches!(expr, Expr::Name(name) if *name == param.name));
        if !used {
            return;
        }
        let message = format!("jit functions cannot have parameters {place}: `{}`", param.name);
        let at = FileRange { file: source.file, range: param.range };
        let diagnostic = Diagnostic::new(Code::UnsupportedPython, at, message).with_note(note);
        self.emit_diagnostic(diagnostic);
    }

    /// What annotations name has to be there, and be something that kernels may name.
    pub(super) fn check_annotation(&mut self, source: Source<'_>, annotation: ExprId) {
        match &source.body.exprs[annotation] {
            Expr::Name(name) => {
                self.name(&name.clone(), source.at(annotation));
            }
            Expr::Attribute { value, attr } => {
                if let object @ Value::Module(_) = self.quietly(|this| this.expr(source, *value)) {
                    self.attribute(&object, attr, source.at(annotation));
                }
            }
            Expr::Subscript { value, index } => {
                self.check_annotation(source, *value);
                self.check_annotation(source, *index);
            }
            Expr::Binary { lhs, rhs, .. } => {
                self.check_annotation(source, *lhs);
                self.check_annotation(source, *rhs);
            }
            Expr::Tuple(items) | Expr::List(items) => {
                items.iter().for_each(|&item| self.check_annotation(source, item));
            }
            _ => {}
        }
    }

    /// The default of a parameter that is not `tl.constexpr` becomes a tensor, like any value that
    /// is assigned, even where an argument takes its place.
    fn check_assigned_default(&mut self, function: &FunctionRef, default: ExprId) {
        let value = self.default_value(function, default);
        if !is_assignable(&value) {
            let at = self.default_place(function, default);
            self.refuse_default(&value, "be assigned to a variable", at, at);
        }
    }

    /// A default that takes the place of an argument. Before Triton 3.9 it has to have a type.
    pub(super) fn check_used_default(
        &mut self,
        function: &FunctionRef,
        default: ExprId,
        value: &Value,
        call: FileRange,
    ) {
        if matches!(function.function.body.exprs[default], Expr::Dict(_) | Expr::Set(_)) {
            let message = "a dictionary or set cannot take the place of an argument";
            let place = self.default_place(function, default);
            let diagnostic =
                Diagnostic::new(Code::NotATensor, call, message).with_related(place, "the default");
            self.emit_diagnostic(diagnostic);
            return;
        }
        if let Value::Tuple(tuple) = value
            && (tuple.held.is_python() || tuple.named.is_some())
        {
            let params = &function.function.params;
            let param = params.iter().find(|param| param.default == Some(default));
            if param.is_some_and(|param| !self.is_constexpr_param(function, param)) {
                let place = self.default_place(function, default);
                self.refuse_default(value, "take the place of an argument", call, place);
            }
            return;
        }
        let untyped = match value {
            Value::Function(function) => function.kind.role == Role::Host,
            _ if self.is_3_9() => false,
            Value::Builtin(builtin) => !builtin.is_jit(),
            Value::Module(_) | Value::Class(_) | Value::Const(Const::Str(_)) => true,
            Value::Const(Const::Member(member)) => !matches!(member.plain(), Some(Const::Int(_))),
            Value::Tuple(tuple) => tuple.items.iter().any(
                |item| matches!(item, Value::Const(constant) if !matches!(constant, Const::None)),
            ),
            _ => false,
        };
        if untyped && !self.is_wrapped(function, default) {
            let what = "take the place of an argument";
            self.refuse_default(value, what, call, self.default_place(function, default));
        }
    }

    /// True for a default that is a `tl.constexpr` already.
    fn is_wrapped(&mut self, function: &FunctionRef, default: ExprId) -> bool {
        let body = function.function.clone();
        match &body.body.exprs[default] {
            Expr::Name(name) => {
                let scope = function.scope.clone();
                let global = self.global(function.file, &scope, &Name::clone(name));
                global.is_some_and(|global| global.item.is_some() && global.constexpr)
                    && !matches!(self.default_value(function, default), Value::Function(_))
            }
            Expr::Attribute { .. } => false,
            Expr::Call { .. } => true,
            _ => false,
        }
    }

    fn default_place(&self, function: &FunctionRef, default: ExprId) -> FileRange {
        Source::of(&function.function, function.file).at(default)
    }

    fn refuse_default(&mut self, value: &Value, what: &str, at: FileRange, default: FileRange) {
        let text = super::report::a(value);
        let versions = !self.is_3_9() && !matches!(value, Value::Tuple(_));
        let before = if versions { " before Triton 3.9" } else { "" };
        let message = format!("{text} is no default: it cannot {what}{before}");
        let diagnostic = Diagnostic::new(Code::NotATensor, at, message)
            .with_related(default, "the default")
            .with_note("pass it as an argument to a `tl.constexpr` parameter");
        self.emit_diagnostic(diagnostic);
    }
}

/// True where a function names a variable outside of its head.
fn is_named_by_statements(function: &Function, name: &Name) -> bool {
    let body = &function.body;
    let heads = function.params.iter().flat_map(|param| [param.annotation, param.default]);
    let mut open: Vec<ExprId> = heads
        .flatten()
        .chain(function.returns)
        .chain(function.decorators.iter().copied())
        .collect();
    let mut in_head = 0;
    while let Some(id) = open.pop() {
        body.exprs[id].for_each_child(|child| open.push(child));
        in_head += usize::from(body.exprs[id].is_name(name));
    }
    body.exprs.values().filter(|expr| expr.is_name(name)).count() > in_head
}

/// Whether an assignment takes the value.
fn is_assignable(value: &Value) -> bool {
    match value {
        Value::Function(_)
        | Value::Bound(_)
        | Value::Builtin(_)
        | Value::Module(_)
        | Value::Class(_)
        | Value::Const(Const::Str(_) | Const::Enum(_) | Const::Opaque(_)) => false,
        Value::Const(Const::Member(member)) => matches!(member.plain(), Some(Const::Int(_))),
        Value::Tuple(tuple) => tuple.items.iter().all(is_assignable),
        _ => true,
    }
}
