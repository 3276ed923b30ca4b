//! Expressions.

use std::sync::Arc;

use smallvec::SmallVec;

use super::constant::{compare_consts, literal};
use super::display::const_text;
use super::range::python_range;
use super::size::size_of;
use super::value::{Const, Held, Origin, Shape, Tensor, Tuple, Value};
use super::{Evaluator, Lost, Mode, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{CompareOp, Expr, ExprId, FStringPart, Name, UnaryOp};
use crate::project::{self, installation::Fact};
use crate::source::FileRange;

impl Evaluator<'_> {
    /// Evaluates an expression as an operand. Errors are reported and give [`Value::Unknown`].
    pub(super) fn expr(&mut self, source: Source<'_>, id: ExprId) -> Value {
        self.bare_expr(source, id).operand()
    }

    /// As [`Self::expr`], where members of enumerations stay members: what is bound, passed on or
    /// asked for attributes.
    pub(super) fn kept_expr(&mut self, source: Source<'_>, id: ExprId) -> Value {
        self.bare_expr(source, id).in_constexpr()
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
                self.attribute(&object, attr, at)
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

    /// The error that kernels may not use a construct of Python; silent in host code.
    pub(super) fn unsupported(&mut self, node: &str, instead: &str, at: FileRange) -> Value {
        if self.frame().mode == Mode::Python {
            return Value::Unknown;
        }
        let what = construct(node);
        let mut diagnostic =
            Diagnostic::new(Code::UnsupportedPython, at, format!("kernels cannot use {what}"));
        if !instead.is_empty() {
            diagnostic = diagnostic.with_note(format!("instead, {instead}"));
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
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

    fn unary(&mut self, op: UnaryOp, value: &Value, at: FileRange) -> Value {
        match value {
            Value::Tensor(tensor) => {
                self.computed |= self.frame().mode == Mode::Python;
                let tensor = tensor.clone();
                self.tensor_unary(op, &tensor, at).map_or(Value::Unknown, Value::Tensor)
            }
            Value::Const(constant) => match self.const_unary(op, constant) {
                Some(result) => Value::Const(result),
                None => {
                    let text = format!(
                        "unary `{}` is not defined for `{}`",
                        unary_text(op),
                        const_text(constant)
                    );
                    self.error(Code::BadOperand, at, text);
                    Value::Unknown
                }
            },
            Value::Tuple(tuple)
                if op == UnaryOp::Not && (self.is_3_9() || tuple.held != Held::Elements) =>
            {
                Value::bool(tuple.items.is_empty())
            }
            Value::Tuple(_) if self.frame().mode == Mode::Jit => {
                let message = format!("`{}` is not defined for tuples in kernels", unary_text(op));
                self.error(Code::BadOperand, at, message);
                Value::Unknown
            }
            Value::Unknown => Value::Unknown,
            Value::Object(_)
                if op == UnaryOp::Minus && self.is_3_9() && self.defines(value, "__neg__") =>
            {
                self.call_operator(value, "__neg__", &[], at).unwrap_or(Value::Unknown)
            }
            Value::Object(_) | Value::Descriptor(_)
                if op == UnaryOp::Not && self.is_3_9() && self.frame().mode == Mode::Jit =>
            {
                let message = format!("`not` is not defined for {}", super::report::a(value));
                self.error(Code::BadOperand, at, message);
                Value::Unknown
            }
            _ if op == UnaryOp::Not => Value::bool(false),
            _ => Value::Unknown,
        }
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

    fn compare_chain(
        &mut self,
        source: Source<'_>,
        first: ExprId,
        rest: &[(CompareOp, ExprId)],
        at: FileRange,
    ) -> Value {
        if rest.len() > 1 && !self.is_3_9() && self.frame().mode == Mode::Jit {
            let note = "compare twice: `(a < b) & (b < c)`";
            return self.unsupported("chained comparison", note, at);
        }
        let mut left = self.expr(source, first);
        let mut left_at = source.at(first);
        let mut result: Option<Value> = None;
        for &(op, id) in rest {
            let right = self.expr(source, id);
            let places = (left_at, source.at(id));
            let next = self.compare(op, &left, &right, at, places);
            result = Some(match result {
                None => next,
                Some(before) => self.both(&before, &next, at),
            });
            left = right;
            left_at = source.at(id);
        }
        result.unwrap_or(Value::Unknown)
    }

    /// The conjunction of two links of a chained comparison.
    fn both(&mut self, left: &Value, right: &Value, at: FileRange) -> Value {
        match (left, right) {
            (Value::Const(a), _) if a.truth() == Some(false) => left.clone(),
            (Value::Const(a), _) if a.truth() == Some(true) => right.clone(),
            (Value::Tensor(a), Value::Tensor(b)) => {
                let (a, b) = (a.clone(), b.clone());
                self.logical(true, &a, &b, at).map_or(Value::Unknown, Value::Tensor)
            }
            (Value::Tensor(_), Value::Const(b)) if b.truth() == Some(true) => left.clone(),
            (Value::Tensor(_), Value::Const(b)) if b.truth() == Some(false) => right.clone(),
            _ => Value::Unknown,
        }
    }

    /// One comparison.
    pub(super) fn compare(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
        places: (FileRange, FileRange),
    ) -> Value {
        if matches!(op, CompareOp::Is | CompareOp::IsNot) {
            for (value, place) in [(left, places.0), (right, places.1)] {
                if self.refuse_untyped_elements(value, place) {
                    return Value::Unknown;
                }
            }
            return self.identity(op == CompareOp::Is, left, right);
        }
        if matches!(op, CompareOp::In | CompareOp::NotIn) {
            if self.frame().mode == Mode::Python {
                return Value::Unknown;
            }
            let note = "compare with each element";
            return self.unsupported("`in`", note, at);
        }
        match (left, right) {
            (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
            (Value::Tensor(_), _) | (_, Value::Tensor(_)) => {
                self.computed |= self.frame().mode == Mode::Python;
                self.compare_tensors(op, left, right, at, places)
            }
            (Value::Const(a), Value::Const(b)) => match compare_consts(op, a, b) {
                Some(result) => Value::bool(result),
                None if a.is_symbol() || b.is_symbol() => self.fresh_const(),
                None if matches!(a, Const::DType(e) if e.is_unknown())
                    || matches!(b, Const::DType(e) if e.is_unknown()) =>
                {
                    self.fresh_const()
                }
                None => {
                    let message = format!("cannot compare {a} and {b}");
                    self.error(Code::BadOperand, at, message);
                    Value::Unknown
                }
            },
            (Value::Function(a), Value::Function(b)) => {
                let same = Arc::ptr_eq(&a.function, &b.function);
                self.equality(op, same)
            }
            (Value::Builtin(a), Value::Builtin(b)) => self.equality(op, std::ptr::eq(*a, *b)),
            (Value::Tuple(a), Value::Tuple(b)) if a.held.is_python() && b.held.is_python() => {
                self.compare_as_python(op, left, right)
            }
            (Value::Tuple(_), Value::Tuple(_))
                if self.is_3_9() && !matches!(op, CompareOp::Eq | CompareOp::Ne) =>
            {
                self.error(Code::BadOperand, at, "tuples are compared by `==` and `!=` only");
                Value::Unknown
            }
            (Value::Tuple(tuple), Value::Const(constant))
                if self.frame().mode == Mode::Jit
                    && tuple.held == Held::Elements
                    && op == CompareOp::Eq
                    && !constant.is_symbol() =>
            {
                let message = format!("a tuple is compared with tuples, not with {constant}");
                self.error(Code::BadOperand, at, message);
                Value::Unknown
            }
            (Value::Tuple(a), Value::Tuple(b)) => match equal_tuples(a, b) {
                Some(same) => self.equality(op, same),
                None => self.fresh_const(),
            },
            (Value::Descriptor(_) | Value::Object(_), Value::Const(Const::Symbol(_))) => {
                self.fresh_const()
            }
            (Value::Descriptor(_), _) => self.compare_identity(op, left, right, at),
            (Value::Object(_), _) => self.compare_objects(op, left, right, at),
            _ => self.fresh_const(),
        }
    }

    /// Aggregates are compared by their methods. Before Triton 3.9 others are equal to themselves.
    fn compare_objects(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
    ) -> Value {
        let method = match op {
            CompareOp::Eq => "__eq__",
            CompareOp::Ne => "__ne__",
            CompareOp::Lt => "__lt__",
            CompareOp::Le => "__le__",
            CompareOp::Gt => "__gt__",
            CompareOp::Ge => "__ge__",
            CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => "",
        };
        let constant = matches!(right, Value::Const(_));
        if (!constant || self.is_3_9())
            && let Some(result) = self.call_operator(left, method, std::slice::from_ref(right), at)
        {
            return result;
        }
        if self.is_3_9() || self.defines(left, "__eq__") {
            return self.refuse_comparison(left, right, at);
        }
        self.compare_identity(op, left, right, at)
    }

    /// `==` and `!=` of what defines neither.
    fn compare_identity(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
        at: FileRange,
    ) -> Value {
        let same = match (left, right) {
            (Value::Descriptor(a), Value::Descriptor(b)) => Arc::ptr_eq(a, b),
            (Value::Object(a), Value::Object(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let alike = matches!(
            (left, right),
            (Value::Object(_) | Value::Descriptor(_), Value::Object(_) | Value::Descriptor(_))
        );
        match op {
            CompareOp::Eq | CompareOp::Ne if same || !alike => self.equality(op, same),
            _ if self.is_3_9() => self.refuse_comparison(left, right, at),
            // What every class of Python has answers so, and the other operand is not asked.
            _ if alike => Value::Const(Const::Opaque("NotImplemented".into())),
            _ => self.fresh_const(),
        }
    }

    fn refuse_comparison(&mut self, left: &Value, right: &Value, at: FileRange) -> Value {
        let (left, right) = (super::report::a(left), super::report::a(right));
        self.error(Code::BadOperand, at, format!("{left} and {right} are not compared"));
        Value::Unknown
    }

    fn equality(&mut self, op: CompareOp, same: bool) -> Value {
        match op {
            CompareOp::Eq => Value::bool(same),
            CompareOp::Ne => Value::bool(!same),
            _ => self.fresh_const(),
        }
    }

    /// `is` and `is not`: always decided at compile time.
    fn identity(&mut self, positive: bool, left: &Value, right: &Value) -> Value {
        let same = match (left, right) {
            (Value::Unknown, _) | (_, Value::Unknown) => None,
            (Value::Const(a), Value::Const(b)) => match (a, b) {
                (Const::Symbol(_), _) | (_, Const::Symbol(_)) => None,
                (Const::None, Const::None) => Some(true),
                (Const::None, _) | (_, Const::None) => Some(false),
                _ => compare_consts(CompareOp::Eq, a, b),
            },
            (Value::Tensor(tensor), Value::Const(_)) | (Value::Const(_), Value::Tensor(tensor)) => {
                // An argument of unknown type may be `None` at launch.
                let maybe = tensor.is_open();
                if maybe { None } else { Some(false) }
            }
            (Value::Function(a), Value::Function(b)) => Some(Arc::ptr_eq(&a.function, &b.function)),
            (Value::Builtin(a), Value::Builtin(b)) => Some(std::ptr::eq(*a, *b)),
            (Value::Tensor(a), Value::Tensor(b)) => a.ir.zip(b.ir).map(|(a, b)| a == b),
            (Value::Const(Const::Symbol(_)), _) | (_, Value::Const(Const::Symbol(_))) => None,
            _ => Some(false),
        };
        match same {
            Some(same) => Value::bool(same == positive),
            None => self.fresh_const(),
        }
    }

    fn slice(
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
        let names = target_names(source, target);
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
            names.into_iter().for_each(|name| self.frame_mut().lose(name, lost));
        }
        Value::tuple(results)
    }

    /// Binds a local without the rules of assignment.
    pub(super) fn bind(&mut self, name: &Name, value: Value, at: crate::source::TextRange) {
        let frame = self.frame_mut();
        frame.lost.remove(name);
        frame.bare.remove(name);
        frame.locals.insert(name.clone(), super::Local { value, at });
    }
}

/// Whether two tuples are equal; `None` where that depends on numbers at run time.
fn equal_tuples(a: &Tuple, b: &Tuple) -> Option<bool> {
    if a.items.len() != b.items.len() {
        return Some(false);
    }
    let mut equal = Some(true);
    for pair in a.items.iter().zip(&b.items) {
        let same = match pair {
            (Value::Const(x), Value::Const(y)) => compare_consts(CompareOp::Eq, x, y),
            (Value::Tuple(x), Value::Tuple(y)) => equal_tuples(x, y),
            (Value::Tensor(x), Value::Tensor(y)) if x.ir.is_some() && x.ir == y.ir => Some(true),
            _ => None,
        };
        match same {
            Some(false) => return Some(false),
            Some(true) => {}
            None => equal = None,
        }
    }
    equal
}

fn unary_text(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Plus => "+",
        UnaryOp::Minus => "-",
        UnaryOp::Invert => "~",
        UnaryOp::Not => "not",
    }
}

/// How people call a node of Python's syntax tree.
pub(super) fn construct(node: &str) -> String {
    let known = match node {
        "Break" => "`break`",
        "Continue" => "`continue`",
        "Try" | "TryStar" => "`try`",
        "Raise" => "`raise`",
        "Lambda" => "`lambda`",
        "Dict" => "dictionaries",
        "Set" => "sets",
        "DictComp" => "dictionary comprehensions",
        "SetComp" => "set comprehensions",
        "GeneratorExp" => "generator expressions",
        "ListComp" => "nested comprehensions",
        "Delete" => "`del`",
        "Global" => "`global`",
        "Nonlocal" => "`nonlocal`",
        "Import" | "ImportFrom" => "`import`",
        "ClassDef" => "class definitions",
        "FunctionDef" | "AsyncFunctionDef" => "nested function definitions",
        "Yield" | "YieldFrom" => "`yield`",
        "NamedExpr" => "`:=` before Triton 3.9",
        "Match" => "`match`",
        "Starred" => "`*` outside of a call",
        "Await" => "`await`",
        other => other,
    };
    known.to_owned()
}

/// The names that a target binds.
fn target_names(source: Source<'_>, target: ExprId) -> Vec<Name> {
    match &source.body.exprs[target] {
        Expr::Name(name) => vec![name.clone()],
        Expr::Tuple(items) | Expr::List(items) => {
            items.iter().flat_map(|&item| target_names(source, item)).collect()
        }
        _ => Vec::new(),
    }
}

/// What to write instead of a construct.
pub(super) fn alternative(node: &str) -> &'static str {
    match node {
        "Break" | "Continue" => {
            "put the rest of the body under an `if`, or use a `while` condition"
        }
        "Try" | "TryStar" | "Raise" => "use `tl.static_assert` or `tl.device_assert`",
        "GeneratorExp" | "DictComp" | "SetComp" | "ListComp" => "use a loop over `tl.static_range`",
        "Import" | "ImportFrom" => "import at module level",
        "ClassDef" | "FunctionDef" | "AsyncFunctionDef" => "define it at module level",
        "Match" => "use `if`",
        "Delete" => "leave the variable unused",
        _ => "",
    }
}
