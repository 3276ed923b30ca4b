//! Expressions of Python: names, attributes, calls.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::call::{Argument, is_builder};
use super::super::constant::literal;
use super::super::names::known_member;
use super::super::type_attribute;
use super::super::value::{Const, ModuleRef, Role, Value};
use super::super::{Evaluator, Source};
use super::{Exit, Lambda, Obj, Run, Scope, builtins, operators, raise, text};
use crate::builtins as language;
use crate::builtins::{Rule, classes};
use crate::hir::collections;
use crate::hir::{
    Arg, ArgKind, CompareOp, Expr, ExprId, FStringPart, ItemKind, LambdaParam, Name, UnaryOp,
};
use crate::project;

impl Evaluator<'_> {
    /// The value of an expression.
    pub(super) fn python_expr(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        id: ExprId,
    ) -> Run<Obj> {
        if !self.step() {
            return Err(Exit::Unknown);
        }
        let value = self.nested(|this| this.python_operand(source, scope, id));
        let value = value.unwrap_or(Err(Exit::Unknown))?;
        self.pay(value.size().ok_or(Exit::Unknown)?);
        Ok(value)
    }

    fn python_operand(&mut self, source: Source<'_>, scope: &Scope, id: ExprId) -> Run<Obj> {
        match &source.body.exprs[id] {
            Expr::Name(name) => self
                .python_name(scope, name)
                .or_else(|exit| self.imported_function(source, scope, id).ok_or(exit)),
            Expr::Literal(value) => Obj::of(&literal(value)).ok_or(Exit::Unknown),
            Expr::Tuple(items) => Ok(Obj::tuple(self.python_display(source, scope, items)?)),
            Expr::List(items) => Ok(Obj::list(self.python_display(source, scope, items)?)),
            Expr::Set(items) => {
                let items = self.python_display(source, scope, items)?;
                self.python_set(items)
            }
            Expr::Dict(entries) => {
                let made = Obj::Dict(Rc::new(RefCell::new(Vec::new())));
                for (key, value) in entries {
                    let key = key.ok_or(Exit::Unknown)?;
                    let key = self.python_expr(source, scope, key)?;
                    let value = self.python_expr(source, scope, *value)?;
                    self.python_store(&made, &key, value)?;
                }
                Ok(made)
            }
            Expr::ListComp { .. } => Ok(Obj::list(self.python_elements(source, scope, id)?)),
            Expr::Generator(elements) => {
                let items = self.python_elements(source, scope, *elements)?;
                Ok(Obj::Iterator(Rc::new(RefCell::new(items)), "generator"))
            }
            Expr::DictComp(elements) => self.python_dictionary(source, scope, *elements),
            Expr::SetComp(elements) => {
                let items = self.python_elements(source, scope, *elements)?;
                self.python_set(items)
            }
            Expr::Binary { op, lhs, rhs } => {
                let left = self.python_expr(source, scope, *lhs)?;
                let right = self.python_expr(source, scope, *rhs)?;
                self.python_binary(*op, &left, &right)
            }
            Expr::Unary { op: UnaryOp::Not, operand } => {
                let value = self.python_expr(source, scope, *operand)?;
                Ok(Obj::bool(!self.python_truth(&value)?))
            }
            Expr::Unary { op, operand } => {
                let value = self.python_expr(source, scope, *operand)?;
                self.python_unary(*op, &value)
            }
            Expr::Bool { and, values } => {
                let mut last = Obj::NONE;
                for &value in values {
                    last = self.python_expr(source, scope, value)?;
                    if self.python_truth(&last)? != *and {
                        break;
                    }
                }
                Ok(last)
            }
            Expr::Compare { first, rest } => self.python_comparison(source, scope, *first, rest),
            Expr::Call { callee, args } => self.python_call(source, scope, *callee, args),
            Expr::Attribute { value, attr } => match self.imported_function(source, scope, id) {
                Some(function) => Ok(function),
                None => {
                    let object = self.python_expr(source, scope, *value)?;
                    self.python_attribute(source, &object, attr)
                }
            },
            Expr::Subscript { value, index } => {
                let object = self.python_expr(source, scope, *value)?;
                if let Expr::Slice { lower, upper, step } = &source.body.exprs[*index] {
                    let mut bounds = [None, None, None];
                    for (bound, given) in bounds.iter_mut().zip([lower, upper, step]) {
                        if let Some(given) = given {
                            *bound = Some(self.python_expr(source, scope, *given)?);
                        }
                    }
                    return operators::slice(&object, &bounds);
                }
                let index = self.python_expr(source, scope, *index)?;
                self.python_item(&object, &index)
            }
            Expr::IfElse { condition, on_true, on_false } => {
                let condition = self.python_expr(source, scope, *condition)?;
                let branch = if self.python_truth(&condition)? { on_true } else { on_false };
                self.python_expr(source, scope, *branch)
            }
            Expr::FString(parts) => self.python_fstring(source, scope, parts),
            Expr::Lambda { params, body } => self.python_lambda(source, scope, params, *body),
            Expr::Walrus { target, value } => {
                let value = self.python_expr(source, scope, *value)?;
                scope.set(target, value.clone());
                Ok(value)
            }
            Expr::Missing
            | Expr::Slice { .. }
            | Expr::Starred(_)
            | Expr::Yield { .. }
            | Expr::Unsupported(_) => Err(Exit::Unknown),
        }
    }

    /// `{key: value for ...}`.
    #[inline(never)]
    fn python_dictionary(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        elements: ExprId,
    ) -> Run<Obj> {
        let made = Obj::Dict(Rc::default());
        for pair in self.python_elements(source, scope, elements)? {
            let Obj::Tuple(pair, None) = &pair else { return Err(Exit::Unknown) };
            let [key, value] = pair.as_slice() else { return Err(Exit::Unknown) };
            self.python_store(&made, key, value.clone())?;
        }
        Ok(made)
    }

    #[inline(never)]
    fn python_fstring(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        parts: &[FStringPart],
    ) -> Run<Obj> {
        let mut out = String::new();
        for part in parts {
            match part {
                FStringPart::Text(part) => out.push_str(part),
                FStringPart::Hole(value) => {
                    let value = self.python_expr(source, scope, *value)?;
                    out.push_str(&text::str(&value).ok_or(Exit::Unknown)?);
                }
                FStringPart::Formatted { value, conversion, format } => {
                    let value = self.python_expr(source, scope, *value)?;
                    let shown = text::converted(&value, *conversion, format);
                    out.push_str(&shown.ok_or(Exit::Unknown)?);
                }
            }
        }
        Ok(Obj::str(&out))
    }

    #[inline(never)]
    fn python_lambda(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        params: &[LambdaParam],
        body: ExprId,
    ) -> Run<Obj> {
        let mut made = Vec::with_capacity(params.len());
        for param in params {
            let default = match param.default {
                Some(default) => Some(self.python_expr(source, scope, default)?),
                None => None,
            };
            made.push((param.name.clone(), param.kind, default));
        }
        Ok(Obj::Lambda(Rc::new(Lambda { params: made, body, scope: scope.clone() })))
    }

    /// A function of one of Python's modules, by what it was imported as.
    #[inline(never)]
    fn imported_function(&self, source: Source<'_>, scope: &Scope, id: ExprId) -> Option<Obj> {
        let name = collections::root(source.body, id)?;
        if scope.get(name).is_some() {
            return None;
        }
        let place = project::Scope { file: scope.file(), path: &scope.function.scope };
        match project::resolve_expr(self.project, place, source.body, id) {
            project::Resolution::External(path) => builtins::imported(&path).map(Obj::Builtin),
            _ => None,
        }
    }

    /// The elements of a display.
    fn python_display(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        items: &[ExprId],
    ) -> Run<Vec<Obj>> {
        let mut values = Vec::with_capacity(items.len());
        for &item in items {
            if let Expr::Starred(inner) = source.body.exprs[item] {
                let inner = self.python_expr(source, scope, inner)?;
                values.extend(self.python_items(&inner)?);
            } else {
                values.push(self.python_expr(source, scope, item)?);
            }
        }
        Ok(values)
    }

    /// The elements of a comprehension, whose variables it keeps to itself.
    fn python_elements(&mut self, source: Source<'_>, scope: &Scope, id: ExprId) -> Run<Vec<Obj>> {
        let Expr::ListComp { element, target, iterable, conditions } = &source.body.exprs[id]
        else {
            return Err(Exit::Unknown);
        };
        let iterable = self.python_expr(source, scope, *iterable)?;
        let inner = Scope {
            function: scope.function.clone(),
            locals: Rc::new(RefCell::new(scope.locals.borrow().clone())),
        };
        let mut elements = Vec::new();
        'items: for item in self.python_items(&iterable)? {
            self.python_assign(source, &inner, *target, item)?;
            for &condition in conditions {
                let condition = self.python_expr(source, &inner, condition)?;
                if !self.python_truth(&condition)? {
                    continue 'items;
                }
            }
            match source.body.exprs[*element] {
                Expr::Starred(nested) => {
                    elements.extend(self.python_elements(source, &inner, nested)?);
                }
                _ => elements.push(self.python_expr(source, &inner, *element)?),
            }
        }
        Ok(elements)
    }

    fn python_comparison(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        first: ExprId,
        rest: &[(CompareOp, ExprId)],
    ) -> Run<Obj> {
        let mut left = self.python_expr(source, scope, first)?;
        let mut result = Obj::bool(true);
        for (at, (op, right)) in rest.iter().enumerate() {
            let right = self.python_expr(source, scope, *right)?;
            result = self.python_compare(*op, &left, &right)?;
            if at + 1 < rest.len() && !self.python_truth(&result)? {
                break;
            }
            left = right;
        }
        Ok(result)
    }

    // Frames of what runs within itself stay small: what is large in them is called apart.
    #[inline(never)]
    pub(super) fn python_name(&mut self, scope: &Scope, name: &Name) -> Run<Obj> {
        if let Some(value) = scope.get(name) {
            return if value.is_lost() {
                Err(Exit::Unknown)
            } else {
                Ok(self.enclosing(scope, value))
            };
        }
        // A variable without a value.
        if scope.function.function.body.may_bind(name) {
            return Err(Exit::Unknown);
        }
        if let Some(captured) = self.captured(name) {
            let value = Obj::of(&captured.value).ok_or(Exit::Unknown)?;
            let held = scope.function.closure.iter().find(|it| it.name == *name);
            return match held.and_then(|it| it.constexpr) {
                Some(true) => Ok(value.wrapped()),
                Some(false) => Ok(value),
                None => Err(Exit::Unknown),
            };
        }
        let path = scope.function.scope.clone();
        if let Some(global) = self.global(scope.file(), &path, name) {
            if let Some(at) = global.item
                && let Some(item) = project::item(self.project, at)
                && item.scope.is_empty()
                && matches!(
                    item.kind,
                    ItemKind::Assign { .. } | ItemKind::Element { .. } | ItemKind::Unknown
                )
            {
                if let Some(value) = self.module_variable(at.file, &item.name) {
                    return Ok(value);
                }
                // Which of several bindings counts is a guess.
                if self.has_alternatives(at) {
                    return Err(Exit::Unknown);
                }
            }
            let value = Obj::of(&global.value).ok_or(Exit::Unknown)?;
            let held = global.constexpr && global.item.is_some();
            return Ok(match (held, global.value) {
                (true, Value::Const(_) | Value::Tuple(_)) => value.wrapped(),
                // A tuple of a module is Python's.
                (false, Value::Tuple(_)) => return Err(Exit::Unknown),
                _ => value,
            });
        }
        builtins::named(name).map(Obj::Builtin).ok_or(Exit::Unknown)
    }

    /// `object.attr`.
    pub(super) fn python_attribute(
        &mut self,
        source: Source<'_>,
        object: &Obj,
        attr: &Name,
    ) -> Run<Obj> {
        let none = |class: &str| {
            raise("AttributeError", format!("'{class}' object has no attribute '{attr}'"))
        };
        match object {
            Obj::Instance(instance) => self.instance_member(instance, attr),
            Obj::Constexpr(value) if &**attr == "value" => Ok((**value).clone()),
            Obj::Constexpr(_) => Err(Exit::Unknown),
            Obj::Tuple(items, Some(named)) | Obj::Sequence(items, Some(named))
                if let Some(at) = named.1.iter().position(|it| it == attr) =>
            {
                items.get(at).cloned().ok_or(Exit::Unknown)
            }
            Obj::Sequence(items, _) if &**attr == "values" => Ok(Obj::list(items.to_vec())),
            Obj::Sequence(..) if matches!(&**attr, "type" | "count" | "index") => {
                Err(Exit::Unknown)
            }
            Obj::Builtin(name) if &**attr == "__name__" => Ok(Obj::str(name)),
            // The table has all of its functions.
            Obj::Value(Value::Module(ModuleRef::Known(path)))
                if language::canonical_module(path) == language::LIBDEVICE
                    && !attr.starts_with('_')
                    && known_member(path, attr).is_none() =>
            {
                raise("AttributeError", format!("module '{path}' has no attribute '{attr}'"))
            }
            Obj::Value(Value::Class(class)) if &**attr == "__name__" => {
                Ok(Obj::str(&class.class.name))
            }
            Obj::Const(Const::DType(_) | Const::BlockType(..)) => {
                let Obj::Const(ty) = object else { return Err(Exit::Unknown) };
                if !type_attribute::has_attribute(ty, attr) && !attr.starts_with('_') {
                    return none(object.class_text());
                }
                let value = self.attribute(&Value::Const(ty.clone()), attr, source_start(source));
                Obj::of(&value).ok_or(Exit::Unknown)
            }
            Obj::Value(Value::Tensor(tensor)) => {
                let known = language::method(attr).is_some()
                    || language::attributes::OF_TENSORS.iter().any(|it| it.name == &**attr)
                    || attr.starts_with('_')
                    || &**attr == "handle";
                if !known {
                    return none("tensor");
                }
                if &**attr == "T" {
                    return Err(Exit::Unknown);
                }
                let value = Value::Tensor(tensor.clone());
                let value = self.attribute(&value, attr, source_start(source));
                let value = Obj::of(&value).ok_or(Exit::Unknown)?;
                Ok(if &**attr == "numel" { value.wrapped() } else { value })
            }
            Obj::Value(Value::Function(_)) if builtins::is_method_name(attr) => {
                none(object.class_text())
            }
            Obj::Value(Value::Class(class)) if self.is_plain_class(class) => {
                self.class_member(class, attr)?.ok_or(Exit::Unknown)
            }
            Obj::Value(value) => {
                let value = self.attribute(value, attr, source_start(source));
                Obj::of(&value).ok_or(Exit::Unknown)
            }
            _ => match object.class() {
                Some(class) if classes::exists(class, attr) => {
                    Ok(Obj::Method(Rc::new(object.clone()), attr.clone()))
                }
                Some(class) if classes::is_listed(class) && !attr.starts_with('_') => none(class),
                _ => Err(Exit::Unknown),
            },
        }
    }

    fn python_call(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        callee: ExprId,
        args: &[Arg],
    ) -> Run<Obj> {
        let function = self.python_expr(source, scope, callee)?;
        let mut given = Vec::with_capacity(args.len());
        for arg in args {
            let value = self.python_expr(source, scope, arg.value)?;
            match &arg.kind {
                ArgKind::Positional => given.push((None, value)),
                ArgKind::Keyword(name) => given.push((Some(name.clone()), value)),
                ArgKind::Star => {
                    given.extend(self.python_items(&value)?.into_iter().map(|item| (None, item)));
                }
                ArgKind::DoubleStar => {
                    let Obj::Dict(entries) = &value else { return Err(Exit::Unknown) };
                    for (key, value) in entries.borrow().iter() {
                        let Obj::Const(Const::Str(key)) = key else { return Err(Exit::Unknown) };
                        given.push((Some(Name::from(&**key)), value.clone()));
                    }
                }
            }
        }
        self.python_apply(source, &function, given)
    }

    /// Calls a value.
    pub(super) fn python_apply(
        &mut self,
        source: Source<'_>,
        function: &Obj,
        given: Vec<(Option<Name>, Obj)>,
    ) -> Run<Obj> {
        match function {
            Obj::Builtin(name) => self.python_builtin(source, name, given),
            Obj::Method(receiver, name) => self.python_method(receiver, name, given),
            Obj::Lambda(lambda) => {
                let inner = Scope {
                    function: lambda.scope.function.clone(),
                    locals: Rc::new(RefCell::new(lambda.scope.locals.borrow().clone())),
                };
                // Parameters hide variables of the same name.
                for (name, ..) in &lambda.params {
                    inner.locals.borrow_mut().shift_remove(name);
                }
                let missing = super::bind_arguments(&inner, "<lambda>", &lambda.params, given)?;
                for (name, default) in missing {
                    let Some(default) = default else {
                        return raise("TypeError", format!("<lambda>() misses '{name}'"));
                    };
                    inner.set(&name, default);
                }
                let code = inner.function.function.clone();
                let source = Source::of(&code, inner.file());
                self.python_expr(source, &inner, lambda.body)
            }
            Obj::Value(Value::Function(function)) => match function.kind.role {
                Role::Constexpr => {
                    let plain = |(name, value): (Option<Name>, Obj)| (name, value.unwrapped());
                    self.apply_python(function, given.into_iter().map(plain).collect())
                }
                Role::Host | Role::Wrapped => self.apply_python(function, given),
                Role::Jit => raise(
                    "RuntimeError",
                    "Cannot call @triton.jit'd outside of the scope of a kernel",
                ),
                // What keeps results gives the same ones.
                Role::Unknown if self.is_cached(function) => self.apply_python(function, given),
                Role::Builtin | Role::Unknown => Err(Exit::Unknown),
            },
            Obj::Value(Value::Class(class)) if self.is_plain_class(class) => {
                self.instantiate(class, given)
            }
            Obj::Value(Value::Class(class)) => {
                project::named_tuple_fields(&class.class).ok_or(Exit::Unknown)?;
                self.python_outside(source, &Value::Class(class.clone()), given)
            }
            Obj::Value(Value::Builtin(builtin)) => {
                if builtin.rule == Rule::Constexpr
                    && let [(None, value)] = given.as_slice()
                {
                    return Ok(match value {
                        Obj::Constexpr(_) => value.clone(),
                        value => Obj::Constexpr(Rc::new(value.clone())),
                    });
                }
                if given.iter().any(|(keyword, _)| keyword.as_deref().is_some_and(is_builder)) {
                    return Err(Exit::Unknown);
                }
                if builtin.needs_kernel() {
                    return raise("ValueError", operators::NO_KERNEL);
                }
                self.python_outside(source, &Value::Builtin(builtin), given)
            }
            // Methods of tensors build code; those of types answer at once.
            Obj::Value(Value::Bound(bound)) if matches!(bound.0, Value::Tensor(_)) => {
                match given.iter().any(|(keyword, _)| keyword.as_deref().is_some_and(is_builder)) {
                    true => Err(Exit::Unknown),
                    false => raise("ValueError", operators::NO_KERNEL),
                }
            }
            Obj::Value(callee @ Value::Bound(_)) => self.python_outside(source, callee, given),
            Obj::Const(_) | Obj::Tuple(..) | Obj::List(_) | Obj::Dict(_) | Obj::Sequence(..) => {
                raise("TypeError", format!("'{}' object is not callable", function.class_text()))
            }
            _ => Err(Exit::Unknown),
        }
    }

    /// Calls what the evaluator knows of Triton and Python's modules, with values that it has too.
    fn python_outside(
        &mut self,
        source: Source<'_>,
        callee: &Value,
        given: Vec<(Option<Name>, Obj)>,
    ) -> Run<Obj> {
        let at = source_start(source);
        let mut arguments = Vec::with_capacity(given.len());
        for (keyword, value) in given {
            let value = match value {
                Obj::Const(value) => Value::Const(value),
                value => self.python_result(&value).ok_or(Exit::Unknown)?,
            };
            let math =
                matches!(callee, Value::Builtin(builtin) if builtin.rule == Rule::PythonMath);
            if math
                && !matches!(value, Value::Tuple(_))
                && !matches!(value, Value::Const(Const::Int(_) | Const::Bool(_) | Const::Float(_)))
            {
                let class = Obj::of(&value).ok_or(Exit::Unknown)?;
                return match class {
                    Obj::Const(Const::None | Const::Str(_) | Const::DType(_)) | Obj::Value(_) => {
                        let class = class.class_text();
                        raise("TypeError", format!("must be real number, not {class}"))
                    }
                    _ => Err(Exit::Unknown),
                };
            }
            arguments.push(Argument { keyword, value, at, constexpr: Some(false) });
        }
        let value = self.call_value(callee, arguments, at);
        match (callee, value) {
            (Value::Class(_), Value::Tuple(tuple)) => {
                let items = tuple.items.iter().map(Obj::of).collect::<Option<Vec<Obj>>>();
                Ok(Obj::Tuple(Rc::new(items.ok_or(Exit::Unknown)?), tuple.named.clone()))
            }
            (_, value) => Obj::of(&value).ok_or(Exit::Unknown),
        }
    }
}

/// A place in the code that runs; nothing is reported there.
fn source_start(source: Source<'_>) -> crate::source::FileRange {
    crate::source::FileRange { file: source.file, range: crate::source::TextRange::empty(0) }
}
