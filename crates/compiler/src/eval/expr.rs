//! Expressions.

use std::sync::Arc;

use smallvec::SmallVec;

use super::constant::{compare_consts, literal};
use super::display::const_text;
use super::range::python_range;
use super::size::size_of;
use super::unsupported::alternative;
use super::value::{Const, Held, Origin, Shape, Tensor, Value};
use super::{Evaluator, Lost, Mode, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{CompareOp, Expr, ExprId, FStringPart};
use crate::project;
use crate::project::installation::Fact;
use crate::source::FileRange;

impl Evaluator<'_> {
    /// Evaluates an expression as an operand. Errors are reported and give [`Value::Unknown`].
    pub(super) fn expr(&mut self, source: Source<'_>, id: ExprId) -> Value {
        self.used_expr(source, id).operand()
    }

    /// As [`Self::expr`], where members of enumerations stay members: what is bound, passed on or
    /// asked for attributes.
    pub(super) fn kept_expr(&mut self, source: Source<'_>, id: ExprId) -> Value {
        self.used_expr(source, id).in_constexpr()
    }

    /// An expression whose value is used, and not only its type.
    fn used_expr(&mut self, source: Source<'_>, id: ExprId) -> Value {
        let value = self.bare_expr(source, id);
        self.check_after_loop(source, id, &value);
        value
    }

    fn bare_expr(&mut self, source: Source<'_>, id: ExprId) -> Value {
        if !self.step() {
            return self.out_of_steps(source.at(id));
        }
        let at = source.at(id);
        let outer = self.set_location(at);
        let value = match self.nested(|this| this.expr_inner(source, id, at)) {
            Some(value) => value,
            None => self.out_of_steps(at),
        };
        self.restore_location(outer);
        let value = if self.affords(&value) { value } else { Value::Unknown };
        let open = value.is_unknown() || matches!(value, Value::Const(Const::Symbol(_)));
        let value = match open && self.exact && self.runs_at_import() {
            true => self.known_at_import(source, id).unwrap_or(value),
            false => value,
        };
        if value.is_unknown() && self.emitting() && self.frame().mode == Mode::Jit {
            self.not_understood(at);
        }
        if self.frames.len() == 1 && self.quiet == 0 {
            self.types.record(id, &value);
        }
        value
    }

    /// True for expressions of a module.
    fn runs_at_import(&self) -> bool {
        let frame = self.frame();
        frame.mode == Mode::Python && frame.function.is_none() && frame.locals.is_empty()
    }

    /// What an expression of a module gives that asks what is installed, or for the GPU.
    fn known_at_import(&self, source: Source<'_>, id: ExprId) -> Option<Value> {
        if !matches!(
            source.body.exprs[id],
            Expr::Attribute { .. }
                | Expr::Bool { .. }
                | Expr::Call { .. }
                | Expr::Compare { .. }
                | Expr::Subscript { .. }
        ) {
            return None;
        }
        let fact = project::fact(self.project, self.version, source.file, source.body, id)?;
        Some(match fact {
            Fact::None => Value::NONE,
            Fact::Bool(value) => Value::bool(value),
            Fact::Int(value) => Value::int(value),
            Fact::Text(text) => Value::str(text),
            Fact::Numbers(numbers) => Value::tuple(numbers.into_iter().map(Value::int).collect()),
            Fact::Python | Fact::Environment | Fact::Target | Fact::Device | Fact::Object => {
                return None;
            }
        })
    }

    /// Counts what a long tuple or text costs where it is used; false where no kernel has such.
    fn affords(&mut self, value: &Value) -> bool {
        let size = size_of(value, |value| match value {
            Value::Const(Const::Str(text)) => (text.len(), Vec::new()),
            Value::Tuple(tuple) => (0, tuple.items.iter().collect()),
            _ => (0, Vec::new()),
        });
        self.pay(size.unwrap_or_default());
        size.is_some()
    }

    fn expr_inner(&mut self, source: Source<'_>, id: ExprId, at: FileRange) -> Value {
        match &source.body.exprs[id] {
            Expr::Missing => Value::Unknown,
            Expr::Name(name) => self.name(name, at),
            Expr::Literal(value) => literal(value),
            Expr::Tuple(items) | Expr::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for &item in items {
                    match &source.body.exprs[item] {
                        Expr::Starred(_) => {
                            return self.unsupported("Starred", "write the elements out", at);
                        }
                        _ => {
                            let value = self.kept_expr(source, item);
                            self.check_element(source, item, &value);
                            values.push(value);
                        }
                    }
                }
                Value::tuple(values)
            }
            Expr::ListComp { element, target, iterable, conditions } => {
                self.comprehension(source, at, *element, *target, *iterable, conditions)
            }
            Expr::Binary { op, lhs, rhs } => {
                let left = self.expr(source, *lhs);
                let right = self.expr(source, *rhs);
                let places = (source.at(*lhs), source.at(*rhs));
                self.binary(*op, &left, &right, at, places)
            }
            Expr::Unary { op, operand } => {
                let value = self.expr(source, *operand);
                self.unary(*op, &value, at)
            }
            Expr::Bool { and, values } => self.bool_chain(source, *and, values, at),
            Expr::Compare { first, rest } => self.compare_chain(source, *first, rest, at),
            Expr::Call { callee, args } => self.call(source, id, *callee, args),
            Expr::Attribute { value, attr } => {
                let object = self.bare_expr(source, *value);
                if self.is_hidden_by_constexpr(source, *value, attr) {
                    return self.hidden_by_constexpr(&object, attr, at);
                }
                let found = self.attribute(&object, attr, at);
                // Other attributes of a tensor say something of its type.
                if matches!(found, Value::Tensor(_) | Value::Bound(_)) {
                    self.check_after_loop(source, *value, &object);
                }
                found
            }
            Expr::Subscript { value, index }
                if self.frame().mode == Mode::Python
                    && matches!(source.body.exprs[*value], Expr::Dict(_)) =>
            {
                self.dictionary_entry(source, *value, *index)
            }
            Expr::Subscript { value, index } => {
                let object = self.expr(source, *value);
                let index_value = self.expr(source, *index);
                self.subscript(&object, &index_value, at, source.at(*index))
            }
            Expr::Slice { lower, upper, step } => self.slice(source, *lower, *upper, *step),
            Expr::IfElse { condition, on_true, on_false } => {
                self.ternary(source, at, *condition, *on_true, *on_false)
            }
            Expr::FString(parts) => self.fstring(source, parts),
            Expr::Walrus { target, value } => {
                let result = self.expr(source, *value);
                if self.frame().mode == Mode::Jit && !self.is_3_9() {
                    return self.unsupported("NamedExpr", "assign on a line of its own", at);
                }
                self.assign_name(target, result.clone(), at.range);
                result
            }
            Expr::Lambda { .. } => match self.frame().mode {
                Mode::Jit => self.unsupported("Lambda", "define a `@triton.jit` function", at),
                Mode::Python => Value::Unknown,
            },
            Expr::Dict(_) => self.unsupported("Dict", "use separate variables or a tuple", at),
            Expr::Set(_) => self.unsupported("Set", "use a tuple", at),
            Expr::Starred(_) => self.unsupported("Starred", "write the elements out", at),
            Expr::Generator(elements) if self.frame().mode == Mode::Python => {
                self.expr(source, *elements)
            }
            Expr::Generator(_) => {
                let node = "GeneratorExp";
                self.unsupported(node, alternative(node), at)
            }
            Expr::DictComp(_) => self.unsupported("DictComp", alternative("DictComp"), at),
            Expr::SetComp(_) => self.unsupported("SetComp", alternative("SetComp"), at),
            Expr::Yield { .. } => self.unsupported("Yield", alternative("Yield"), at),
            Expr::Unsupported(node) => self.unsupported(node, alternative(node), at),
        }
    }

    /// Tuples hold what has a type: neither builtins nor the `None` of an assignment.
    fn check_element(&mut self, source: Source<'_>, item: ExprId, value: &Value) {
        if self.frame().mode == Mode::Python {
            return;
        }
        let refused = match value {
            Value::Builtin(_) | Value::Bound(_) | Value::Module(_) | Value::Class(_) => true,
            Value::Const(Const::None) => self.is_bare(source, item, value),
            Value::Tuple(tuple) => tuple.held == Held::PythonList && !self.is_3_9(),
            _ => false,
        };
        if !refused {
            return;
        }
        let text = super::report::a(value);
        let message = format!("{text} cannot be an element of a tuple");
        let mut diagnostic = Diagnostic::new(Code::NotATensor, source.at(item), message);
        if value.is_none() {
            diagnostic = diagnostic
                .with_note("write `None` in place, or annotate the variable with `tl.constexpr`");
        }
        self.emit_diagnostic(diagnostic);
    }

    pub(super) fn out_of_steps(&mut self, at: FileRange) -> Value {
        if !self.failed && self.exact {
            let message = "compilation was given up: too much code after unrolling and inlining";
            let diagnostic = Diagnostic::new(Code::TooMuchCode, at, message)
                .with_note("use `range` instead of `tl.static_range`, or smaller bounds");
            self.emit_diagnostic(diagnostic);
        }
        Value::Unknown
    }

    /// `a and b`, `a or b`: short-circuits on compile-time values, combines tensors.
    fn bool_chain(
        &mut self,
        source: Source<'_>,
        and: bool,
        values: &[ExprId],
        at: FileRange,
    ) -> Value {
        let mut tensors: Vec<Value> = Vec::new();
        let mut last = Value::Unknown;
        let mut uncertain = false;
        for &id in values {
            let value = self.expr(source, id);
            match &value {
                Value::Tensor(tensor) if tensor.elem.is_unknown() => {
                    uncertain = true;
                }
                Value::Tensor(_) => tensors.push(value.clone()),
                Value::Unknown => return Value::Unknown,
                Value::Const(constant) => match constant.truth() {
                    Some(truth) if truth != and && !uncertain => return value,
                    Some(_) => {}
                    None => uncertain = true,
                },
                Value::Tuple(tuple) if tuple.items.is_empty() == and && !uncertain => {
                    return value;
                }
                _ => {}
            }
            last = value;
        }
        if uncertain {
            return if tensors.is_empty() && !matches!(last, Value::Tensor(_)) {
                self.fresh_const()
            } else {
                Value::Tensor(Tensor::anything(Shape::unknown(), Origin::NONE))
            };
        }
        let Some(mut result) = tensors.pop() else { return last };
        while let Some(left) = tensors.pop() {
            let (Value::Tensor(a), Value::Tensor(b)) = (&left, &result) else { break };
            let (a, b) = (a.clone(), b.clone());
            result = self.logical(and, &a, &b, at).map_or(Value::Unknown, Value::Tensor);
        }
        result
    }

    pub(super) fn slice(
        &mut self,
        source: Source<'_>,
        lower: Option<ExprId>,
        upper: Option<ExprId>,
        step: Option<ExprId>,
    ) -> Value {
        let mut bounds: SmallVec<[Option<Const>; 3]> = SmallVec::new();
        for bound in [lower, upper, step] {
            let Some(id) = bound else {
                bounds.push(None);
                continue;
            };
            match self.expr(source, id) {
                Value::Const(Const::None) => bounds.push(None),
                Value::Const(value) => bounds.push(Some(value)),
                // Whatever it is at run time, it is not left out.
                Value::Tensor(tensor) if !tensor.open => {
                    bounds.push(Some(Const::Opaque("bound".into())))
                }
                _ => return Value::Unknown,
            }
        }
        match <[Option<Const>; 3]>::try_from(bounds.into_vec()) {
            Ok(bounds) => Value::Const(Const::Slice(Arc::new(bounds))),
            Err(_) => Value::Unknown,
        }
    }

    fn fstring(&mut self, source: Source<'_>, parts: &[FStringPart]) -> Value {
        let mut text = String::new();
        let mut known = true;
        for part in parts {
            match part {
                FStringPart::Text(part) => text.push_str(part),
                // Triton, too, looks at no width.
                FStringPart::Hole(id) | FStringPart::Formatted { value: id, .. } => match self
                    .kept_expr(source, *id)
                {
                    Value::Const(Const::Symbol(_)) | Value::Unknown => known = false,
                    // A type is no constexpr unless it is bound as one.
                    Value::Const(Const::DType(_))
                        if matches!(source.body.exprs[*id], Expr::Attribute { .. })
                            && self.frame().mode == Mode::Jit =>
                    {
                        let message = "a type in an f-string has to be a `tl.constexpr` variable";
                        self.error(Code::NotConstexpr, source.at(*id), message);
                        return Value::Unknown;
                    }
                    Value::Const(value) => text.push_str(&const_text(&value)),
                    Value::Tuple(tuple)
                        if self.frame().mode == Mode::Jit && tuple.held == Held::Elements =>
                    {
                        let message = "a tuple in an f-string has to be a `tl.constexpr` variable";
                        self.error(Code::NotConstexpr, source.at(*id), message);
                        return Value::Unknown;
                    }
                    Value::Tuple(_) => known = false,
                    value => {
                        let at = source.at(*id);
                        self.runtime_hole(&value, at);
                        return Value::Unknown;
                    }
                },
            }
        }
        if known { Value::str(text) } else { self.fresh_const() }
    }

    /// A part of an f-string that has no text while compiling.
    fn runtime_hole(&mut self, value: &Value, at: FileRange) {
        let Some(diagnostic) =
            self.why_not_constexpr(Code::NotConstexpr, "a part of an f-string", value, at)
        else {
            return;
        };
        let note = "to print it at run time, give it after the text: `tl.device_print(\"x\", x)`";
        self.emit_diagnostic(diagnostic.with_note(note));
    }

    /// `{key: value, ...}[index]` where it runs at compile time.
    fn dictionary_entry(&mut self, source: Source<'_>, entries: ExprId, index: ExprId) -> Value {
        let Value::Const(index) = self.expr(source, index) else { return Value::Unknown };
        let Expr::Dict(entries) = &source.body.exprs[entries] else { return Value::Unknown };
        for (key, value) in entries {
            let Some(key) = key else { return Value::Unknown };
            let Value::Const(key) = self.expr(source, *key) else { return Value::Unknown };
            match compare_consts(CompareOp::Eq, &key, &index) {
                Some(true) => return self.expr(source, *value),
                Some(false) => {}
                None => return Value::Unknown,
            }
        }
        Value::Unknown
    }

    fn comprehension(
        &mut self,
        source: Source<'_>,
        at: FileRange,
        element: ExprId,
        target: ExprId,
        iterable: ExprId,
        conditions: &[ExprId],
    ) -> Value {
        let items = match self.expr(source, iterable) {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Range(range)
                if self.frame().mode == Mode::Python && python_range(&range).is_some() =>
            {
                python_range(&range).unwrap_or_default()
            }
            Value::Unknown => return Value::Unknown,
            Value::Const(value) if value.is_symbol() => return Value::Unknown,
            Value::Range(_) if self.frame().mode == Mode::Python => return Value::Unknown,
            Value::Tensor(tensor) if tensor.elem.is_unknown() => return Value::Unknown,
            _ => {
                let message = "comprehensions in kernels iterate only over tuples";
                self.error(Code::UnsupportedPython, source.at(iterable), message);
                return Value::Unknown;
            }
        };
        let names = source.body.names_in(target);
        if self.frame().mode == Mode::Jit && !self.is_3_9() && names.len() != 1 {
            return self.unsupported("a comprehension over several targets", "use a loop", at);
        }
        let mut results = Vec::new();
        for item in &items {
            self.bind_target(source, target, item.clone());
            // Triton 3.6 ignores the conditions.
            let mut keep = true;
            if self.is_3_9() || self.frame().mode == Mode::Python {
                for &condition in conditions {
                    match self.expr(source, condition) {
                        Value::Const(value) => match value.truth() {
                            Some(truth) => keep &= truth,
                            None => return Value::Unknown,
                        },
                        _ => return Value::Unknown,
                    }
                }
            }
            if keep {
                let value = self.expr(source, element);
                results.push(value);
            }
        }
        let lost = Lost { at: source.map.exprs[target], place: "a comprehension" };
        if self.is_3_9() {
            names.into_iter().for_each(|name| self.frame_mut().lose(name.clone(), lost));
        }
        Value::tuple(results)
    }
}
