//! Statements.

use std::cell::Cell;
use std::sync::Arc;

use super::value::{Const, Held, Role, Tuple, Value};
use super::{Evaluator, Mode, OriginKind, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, Expr, ExprId, Name, Stmt, StmtId};
use crate::source::{FileRange, TextRange};

/// Where control goes after statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next statement.
    Falls,
    /// Out of the function; what it returned is in the frame.
    Returned,
}

/// What runs after a block: an early `return` puts it into the other branch of the `if`.
#[derive(Clone, Copy)]
pub(super) struct Rest<'r> {
    pub work: Work<'r>,
    pub next: Option<&'r Rest<'r>>,
    /// Whether it ran already: in another branch, where Triton has code that both lead to.
    pub ran: &'r Cell<bool>,
}

/// One piece of what runs after a block.
#[derive(Clone, Copy)]
pub(super) enum Work<'r> {
    /// Statements.
    Stmts(&'r [StmtId]),
    /// The remaining copies of an unrolled loop.
    Unrolled { target: ExprId, indices: &'r [i128], body: &'r [StmtId] },
}

impl Evaluator<'_> {
    /// Runs statements, then `rest`.
    pub(super) fn run(
        &mut self,
        source: Source<'_>,
        stmts: &[StmtId],
        rest: Option<&Rest<'_>>,
    ) -> Flow {
        if let Some(flow) = self.nested(|this| this.run_block(source, stmts, rest)) {
            return flow;
        }
        if let Some(&first) = stmts.first() {
            self.out_of_steps(source.stmt_at(first));
        }
        Flow::Returned
    }

    fn run_block(&mut self, source: Source<'_>, stmts: &[StmtId], rest: Option<&Rest<'_>>) -> Flow {
        for (at, &id) in stmts.iter().enumerate() {
            if !self.step() {
                return Flow::Returned;
            }
            let ran = Cell::new(false);
            let after = Rest { work: Work::Stmts(&stmts[at + 1..]), next: rest, ran: &ran };
            let outer = self.set_location(source.stmt_at(id));
            let outcome = if source.body.is_broken(id) {
                self.broken_stmt(source, id, &after)
            } else {
                self.stmt(source, id, &after)
            };
            self.restore_location(outer);
            match outcome {
                Outcome::Next => {}
                Outcome::Returned => return Flow::Returned,
                Outcome::RanRest(flow) => return flow,
            }
        }
        match rest {
            Some(rest) => self.run_rest(source, rest),
            None => Flow::Falls,
        }
    }

    /// Runs what comes after a block.
    pub(super) fn run_rest(&mut self, source: Source<'_>, rest: &Rest<'_>) -> Flow {
        let again = u32::from(rest.ran.replace(true));
        self.again += again;
        let flow = match rest.work {
            Work::Stmts(stmts) => self.run(source, stmts, rest.next),
            Work::Unrolled { target, indices, body } => {
                self.run_unrolled(source, target, indices, body, rest.next)
            }
        };
        self.again -= again;
        flow
    }

    /// Runs a statement with a syntax error: nothing is reported of it, and nothing is known of what
    /// it binds.
    fn broken_stmt(&mut self, source: Source<'_>, id: StmtId, rest: &Rest<'_>) -> Outcome {
        self.muted += 1;
        let outcome = self.stmt(source, id, rest);
        for target in source.body.stmts[id].targets() {
            self.assign(source, target, Value::Unknown);
        }
        self.muted -= 1;
        outcome
    }

    fn stmt(&mut self, source: Source<'_>, id: StmtId, rest: &Rest<'_>) -> Outcome {
        let at = source.stmt_at(id);
        match &source.body.stmts[id] {
            Stmt::Expr(expr) => {
                self.expression_statement(source, *expr);
                Outcome::Next
            }
            Stmt::Assign { targets, value } => {
                if targets.len() > 1 && self.frame().mode == Mode::Jit {
                    self.unsupported("several targets in one assignment", "assign one by one", at);
                }
                let result = self.expr(source, *value);
                for &target in targets {
                    self.assign(source, target, result.clone());
                }
                Outcome::Next
            }
            Stmt::AugAssign { target, op, value } => {
                self.augmented(source, *target, *op, *value, at);
                Outcome::Next
            }
            Stmt::AnnAssign { target, annotation, value } => {
                self.annotated(source, *target, *annotation, *value);
                Outcome::Next
            }
            Stmt::If { test, body, orelse } => self.if_stmt(source, *test, body, orelse, rest),
            Stmt::For { target, iter, body, orelse } => {
                if !orelse.is_empty() {
                    self.unsupported("`else` after a loop", "set a flag in the loop", at);
                }
                self.for_stmt(source, *target, *iter, body, rest)
            }
            Stmt::While { test, body, orelse } => {
                if !orelse.is_empty() {
                    self.unsupported("`else` after a loop", "set a flag in the loop", at);
                }
                self.while_stmt(source, *test, body);
                Outcome::Next
            }
            Stmt::With { items, body } => {
                for (item, target) in items {
                    let context = self.expr(source, *item);
                    let called = matches!(source.body.exprs[*item], Expr::Call { .. });
                    let computed = matches!(
                        context,
                        Value::Tensor(_) | Value::Tuple(_) | Value::Range(_) | Value::Descriptor(_)
                    );
                    if computed || !called && !context.is_unknown() {
                        let note = "`with` takes calls that make contexts";
                        self.unsupported("`with` of anything that is no context", note, at);
                    }
                    if let Some(target) = target {
                        self.bind_target(source, *target, Value::Unknown);
                    }
                }
                match self.run(source, body, None) {
                    Flow::Falls => Outcome::Next,
                    Flow::Returned => Outcome::Returned,
                }
            }
            Stmt::Return(value) => {
                self.return_stmt(source, *value, at);
                Outcome::Returned
            }
            Stmt::Assert { test, message } => {
                let condition = self.expr(source, *test);
                let fails = condition.as_const().and_then(Const::truth) == Some(false);
                if self.frame().mode == Mode::Python && fails {
                    return self.raise();
                }
                if let Some(message) = message {
                    self.expr(source, *message);
                }
                self.python_assert(&condition, at);
                Outcome::Next
            }
            Stmt::Pass | Stmt::Error => Outcome::Next,
            Stmt::Unsupported("Raise") if self.frame().mode == Mode::Python => self.raise(),
            // The usual end of a chain of `if` on compile-time values, which no kernel reaches.
            Stmt::Unsupported("Raise") if self.may_be_dead() && !self.exact => Outcome::Returned,
            // What such statements do is for Python alone to say.
            Stmt::Try { .. } | Stmt::Match { .. } | Stmt::Unsupported("Break" | "Continue")
                if self.runs_at_compile_time() =>
            {
                self.frame_mut().returns.push((Value::Unknown, at));
                Outcome::Returned
            }
            Stmt::Unsupported(node) => {
                self.unsupported(node, super::expr::alternative(node), at);
                Outcome::Next
            }
            Stmt::Try { .. } => {
                self.unsupported("Try", super::expr::alternative("Try"), at);
                Outcome::Next
            }
            Stmt::Match { .. } => {
                self.unsupported("Match", super::expr::alternative("Match"), at);
                Outcome::Next
            }
        }
    }

    /// A tuple that one constexpr holds is used as a whole, or by its elements.
    fn refuse_held_tuple(&mut self, what: &str, at: FileRange) {
        let message = format!("a tuple that one constexpr holds cannot be {what}");
        let diagnostic = Diagnostic::new(Code::NotATensor, at, message)
            .with_note("index it, or annotate the target with `tl.constexpr`");
        self.emit_diagnostic(diagnostic);
    }

    /// True in a `@triton.constexpr_function`.
    fn runs_at_compile_time(&self) -> bool {
        let function = self.frame().function.as_ref();
        function.is_some_and(|function| function.kind.role == Role::Constexpr)
    }

    /// Leaves a function that runs at compile time by an exception.
    fn raise(&mut self) -> Outcome {
        self.raised |= self.speculative == 0;
        Outcome::Returned
    }

    fn expression_statement(&mut self, source: Source<'_>, expr: ExprId) {
        let value = self.expr(source, expr);
        if let (Expr::Call { callee, .. }, Mode::Jit) =
            (&source.body.exprs[expr], self.frame().mode)
            && !value.is_unknown()
            && self.must_use_of(source, *callee)
        {
            let message = "the result of this call is not used";
            self.error(Code::UnusedResult, source.at(expr), message);
        }
    }

    fn must_use_of(&mut self, source: Source<'_>, callee: ExprId) -> bool {
        matches!(
            self.quietly(|this| this.expr(source, callee)),
            Value::Function(function) if function.kind.must_use
        )
    }

    /// Evaluates without reports, types or IR.
    pub(super) fn quietly<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> T) -> T {
        let emitter = self.emitter.take();
        let failed = self.failed;
        self.quiet += 1;
        let result = evaluate(self);
        self.quiet -= 1;
        self.failed = failed;
        self.emitter = emitter;
        result
    }

    /// Assigns to any target by the rules of an assignment statement.
    pub(super) fn assign(&mut self, source: Source<'_>, target: ExprId, value: Value) {
        let at = source.at(target);
        match &source.body.exprs[target] {
            Expr::Name(name) => {
                let name = name.clone();
                self.assign_name(&name, value, at.range);
                if self.frames.len() == 1
                    && self.quiet == 0
                    && let Some(local) = self.frame().locals.get(&name)
                {
                    let value = local.value.clone();
                    self.types.record(target, &value);
                }
            }
            Expr::List(_) if self.frame().mode == Mode::Jit => {
                self.unsupported("a list of targets", "write the targets without brackets", at);
            }
            Expr::Tuple(items) | Expr::List(items) => {
                self.unpack(source, items, value, at);
            }
            Expr::Starred(_) => {
                self.unsupported("starred targets", "index the tuple", at);
            }
            Expr::Attribute { .. }
                if self.frame().mode == Mode::Jit || self.constructs_aggregate() =>
            {
                self.assign_attribute(source, target, value, at);
            }
            Expr::Subscript { value: object, .. } if self.frame().mode == Mode::Jit => {
                let object = self.quietly(|this| this.expr(source, *object));
                if !object.is_unknown() {
                    let note =
                        "build a new tile with `tl.where`, or store to memory with `tl.store`";
                    self.unsupported("assignment to an element", note, at);
                }
            }
            Expr::Call { .. } if self.frame().mode == Mode::Jit => {
                self.unsupported("assignment to a call", "assign to a variable", at);
            }
            _ => {}
        }
    }

    /// Assigns without the rules of assignment statements: loop and `with` targets.
    pub(super) fn bind_target(&mut self, source: Source<'_>, target: ExprId, value: Value) {
        match &source.body.exprs[target] {
            Expr::Name(name) => {
                self.bind(name, value.clone(), source.map.exprs[target]);
                if self.frames.len() == 1 && self.quiet == 0 {
                    self.types.record(target, &value);
                }
            }
            Expr::Tuple(items) | Expr::List(items) => {
                let parts: Vec<Value> = match &value {
                    Value::Tuple(tuple) if tuple.items.len() == items.len() => tuple.items.clone(),
                    _ => vec![Value::Unknown; items.len()],
                };
                for (&item, part) in items.iter().zip(parts) {
                    self.bind_target(source, item, part);
                }
            }
            _ => {}
        }
    }

    fn unpack(&mut self, source: Source<'_>, targets: &[ExprId], value: Value, at: FileRange) {
        let items = match &value {
            Value::Tuple(tuple)
                if self.frame().mode == Mode::Jit && self.refuse_type_in_tuple(tuple, at) =>
            {
                Vec::new()
            }
            Value::Tuple(tuple) if self.frame().mode == Mode::Jit && tuple.held.is_python() => {
                self.refuse_held_tuple("taken apart", at);
                Vec::new()
            }
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Unknown | Value::Const(Const::Symbol(_)) => Vec::new(),
            Value::Tensor(tensor) if tensor.is_open() => Vec::new(),
            _ if self.frame().mode == Mode::Python => Vec::new(),
            other => {
                let text = super::report::a(other);
                let message = format!("only tuples can be unpacked, but this is {text}");
                self.error(Code::BadUnpack, at, message);
                Vec::new()
            }
        };
        let annotated = matches!(
            &value,
            Value::Tuple(tuple) if matches!(tuple.held, Held::Annotated { .. })
        );
        if matches!(&value, Value::Tuple(tuple) if tuple.items.len() == items.len())
            && items.len() < targets.len()
        {
            let message =
                format!("{} targets, but the tuple has {} elements", targets.len(), items.len());
            self.error(Code::BadUnpack, at, message);
        }
        let starred = |&id: &ExprId| matches!(source.body.exprs[id], Expr::Starred(_));
        if items.len() > targets.len()
            && self.is_3_9()
            && self.frame().mode == Mode::Jit
            && !targets.iter().any(starred)
        {
            let message =
                format!("{} targets, but the tuple has {} elements", targets.len(), items.len());
            let diagnostic = Diagnostic::new(Code::BadUnpack, at, message)
                .with_note("Triton 3.6 ignores the elements beyond the targets");
            self.emit_diagnostic(diagnostic);
        }
        for (index, &target) in targets.iter().enumerate() {
            let part = items.get(index).cloned().unwrap_or(Value::Unknown);
            if annotated {
                self.bind_target(source, target, part);
            } else {
                self.assign(source, target, part);
            }
            if let Expr::Name(name) = &source.body.exprs[target] {
                self.frame_mut().bare.remove(name);
            }
        }
    }

    /// `name = value`: literals become tensors in kernel code.
    pub(super) fn assign_name(&mut self, name: &Name, value: Value, at: TextRange) {
        let declared = self.frame_mut().declared.remove(name);
        self.frame_mut().constexprs.remove(name);
        let value = match self.frame().mode {
            Mode::Jit if !declared => self.sanitize(name, value, at),
            _ => value,
        };
        if let Value::Tensor(tensor) = &value {
            self.name_value(tensor.ir, name);
        }
        let bare = !declared
            && matches!(value, Value::Const(Const::None | Const::DType(_) | Const::BlockType(..)));
        self.bind(name, value, at);
        if bare {
            self.frame_mut().bare.insert(name.clone());
        }
    }

    /// What an assignment makes of a value: numbers become tensors, also inside tuples.
    fn sanitize(&mut self, name: &Name, value: Value, at: TextRange) -> Value {
        let file = self.frame().file;
        let place = FileRange { file, range: at };
        match value {
            Value::Const(
                Const::None | Const::DType(_) | Const::BlockType(..) | Const::BlockPtrType(..),
            ) => value,
            Value::Const(Const::Symbol(ref sym)) => {
                // A string, `None`, a type or a function stays; a number becomes a tensor.
                let elem = self.symbol_elem(sym);
                if elem.is_unknown() {
                    let none = super::value::Origin::NONE;
                    let origin = self.origin(place, OriginKind::Literal(name.clone()), none);
                    let shape = super::value::Shape::scalar();
                    return Value::Tensor(super::value::Tensor::anything(shape, origin));
                }
                self.literal_tensor(name, &value, place)
            }
            Value::Const(_) => self.literal_tensor(name, &value, place),
            Value::Tuple(tuple) => {
                if self.refuse_type_in_tuple(&tuple, place) {
                    return Value::Unknown;
                }
                match tuple.held {
                    Held::Elements => {}
                    Held::Annotated { .. } => return Value::Tuple(tuple).held(Held::Elements),
                    Held::Python | Held::PythonList => {
                        self.refuse_held_tuple("assigned", place);
                        return Value::Unknown;
                    }
                }
                let items =
                    tuple.items.iter().map(|item| self.sanitize(name, item.clone(), at)).collect();
                Value::Tuple(Arc::new(tuple.with_items(items)))
            }
            Value::Range(ref range) if range.python => {
                let message = "a `range` cannot be assigned; call it in the head of the loop";
                self.error(Code::NotATensor, place, message);
                Value::Unknown
            }
            Value::Function(ref function) => {
                let message = format!(
                    "`{}` cannot be assigned; annotate the target with `tl.constexpr`",
                    function.function.name
                );
                self.error(Code::NotATensor, place, message);
                value
            }
            Value::Bound(_) | Value::Builtin(_) | Value::Module(_) | Value::Class(_) => {
                let text = super::report::a(&value);
                let message =
                    format!("{text} cannot be assigned; annotate the target with `tl.constexpr`");
                self.error(Code::NotATensor, place, message);
                value
            }
            other => other,
        }
    }

    /// Assignments take the types in tuples out of their constexprs, and tuples hold no such types.
    fn refuse_type_in_tuple(&mut self, tuple: &Tuple, at: FileRange) -> bool {
        let has_type = tuple.items.iter().any(|item| matches!(item, Value::Const(Const::DType(_))));
        if has_type {
            let message = "a tuple with a type in it has to be bound as a `tl.constexpr`";
            self.error(Code::NotATensor, at, message);
        }
        has_type
    }

    fn literal_tensor(&mut self, name: &Name, value: &Value, at: FileRange) -> Value {
        match self.materialize(value, at) {
            Ok(mut tensor) => {
                let origin = super::value::Origin::NONE;
                tensor.origin = self.origin(at, OriginKind::Literal(name.clone()), origin);
                Value::Tensor(tensor)
            }
            Err(_) => Value::Unknown,
        }
    }

    fn augmented(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        op: BinaryOp,
        value: ExprId,
        at: FileRange,
    ) {
        let left = self.expr(source, target);
        let right = self.expr(source, value);
        let places = (source.at(target), source.at(value));
        let result = self.binary(op, &left, &right, at, places);
        self.assign(source, target, result);
    }

    fn annotated(
        &mut self,
        source: Source<'_>,
        target: ExprId,
        annotation: ExprId,
        value: Option<ExprId>,
    ) {
        let constexpr = self.is_constexpr_annotation(source, annotation);
        if self.frame().mode == Mode::Jit && !constexpr {
            self.check_annotation(source, annotation);
        }
        let Some(value) = value else {
            self.declared(source, target, constexpr);
            return;
        };
        if !constexpr || self.frame().mode == Mode::Python {
            let value = self.expr(source, value);
            self.assign(source, target, value);
            return;
        }
        let result = self.kept_expr(source, value);
        let Expr::Name(name) = &source.body.exprs[target] else { return };
        if let Some(earlier) = self.frame().locals.get(name)
            && (self.exact || !self.may_be_dead())
        {
            let earlier = FileRange { file: source.file, range: earlier.at };
            let message =
                format!("`{name}` is already defined; a `tl.constexpr` cannot be assigned again");
            let diagnostic = Diagnostic::new(Code::ConstexprReassigned, source.at(target), message)
                .with_related(earlier, "first defined here");
            self.emit_diagnostic(diagnostic);
        }
        self.frame_mut().constexprs.insert(name.clone());
        let result = match &result {
            Value::Tuple(tuple) if tuple.held == Held::Elements && !self.is_3_9() => {
                let shown = tuple.items.len();
                result.held(Held::Annotated { shown })
            }
            _ => result,
        };
        // Triton keeps a tensor as it is here; using it as a constexpr fails later.
        self.bind(name, result.clone(), source.map.exprs[target]);
        if self.frames.len() == 1 && self.quiet == 0 {
            self.types.record(target, &result);
        }
    }

    /// `x: annotation` without a value, which before Triton 3.9 binds `None`; since then the
    /// assignment that follows heeds the annotation.
    fn declared(&mut self, source: Source<'_>, target: ExprId, constexpr: bool) {
        let Expr::Name(name) = &source.body.exprs[target] else { return };
        if self.is_3_9() {
            if constexpr {
                self.frame_mut().declared.insert(name.clone());
            }
            return;
        }
        let value = if self.exact { Value::NONE } else { Value::Unknown };
        self.bind(name, value, source.map.exprs[target]);
    }

    /// True for `tl.constexpr`. Unlike that of a parameter, the annotation of a variable counts only
    /// where it is no string.
    fn is_constexpr_annotation(&mut self, source: Source<'_>, annotation: ExprId) -> bool {
        match &source.body.exprs[annotation] {
            Expr::Name(_) | Expr::Attribute { .. } => matches!(
                self.quietly(|this| this.expr(source, annotation)),
                Value::Builtin(builtin) if builtin.rule == crate::builtins::Rule::Constexpr
            ),
            _ => false,
        }
    }

    fn return_stmt(&mut self, source: Source<'_>, value: Option<ExprId>, at: FileRange) {
        let returned = value;
        let value = returned.map_or(Value::NONE, |id| self.kept_expr(source, id));
        if self.frame().loops > 0 && self.frame().mode == Mode::Jit {
            let diagnostic = Diagnostic::new(
                Code::UnsupportedPython,
                at,
                "kernels cannot use `return` inside a `for` or `while` loop",
            )
            .with_note("compute the result in the loop and return after it");
            self.emit_diagnostic(diagnostic);
        }
        let value = match returned {
            Some(id) if self.frame().mode == Mode::Jit => {
                let bare = self.is_bare(source, id, &value) || self.has_bare(source, id, &value);
                self.returnable(value, bare, at)
            }
            _ => value,
        };
        self.frame_mut().returns.push((value, at));
    }

    /// What a function returns for `value`; reports what it cannot return. `bare` is the value of
    /// [`Self::is_bare`].
    fn returnable(&mut self, value: Value, bare: bool, at: FileRange) -> Value {
        let refused = match &value {
            Value::Bound(_) | Value::Builtin(_) | Value::Module(_) | Value::Class(_) => true,
            Value::Const(Const::Enum(_)) => true,
            Value::Const(Const::Member(member)) => {
                !self.is_3_9() && !matches!(member.plain(), Some(Const::Int(_)))
            }
            Value::Const(Const::DType(_) | Const::BlockType(..)) => bare && self.is_3_9(),
            Value::Tuple(tuple) if tuple.held.is_python() => !self.is_3_9(),
            Value::Tuple(tuple) if tuple.held != Held::Elements => true,
            Value::Tuple(_) => bare && self.is_3_9(),
            Value::Function(_) => !self.is_3_9(),
            Value::Const(Const::None) => !bare && !self.is_3_9(),
            value => value.is_void(),
        };
        if refused {
            let text = super::report::a(&value);
            let note = match &value {
                Value::Const(Const::None) => "write `return` alone, or nothing",
                value if value.is_void() => "write `return` on a line of its own",
                Value::Const(_) | Value::Tuple(_) => {
                    "bind the type to a `tl.constexpr` variable first"
                }
                _ => "pass it to where it is used as an argument",
            };
            let message = match &value {
                Value::Tuple(tuple) if tuple.held != Held::Elements => {
                    "a tuple that one constexpr holds cannot be returned".to_owned()
                }
                Value::Tuple(_) => "functions return types only as constexprs".to_owned(),
                value if value.is_void() => "there is no value that could be returned".to_owned(),
                _ => format!("functions return numbers, tensors and tuples, not {text}"),
            };
            let diagnostic = Diagnostic::new(Code::NotATensor, at, message).with_note(note);
            self.emit_diagnostic(diagnostic);
            return Value::Unknown;
        }
        if self.is_3_9() { value } else { self.decay(value, at) }
    }

    /// True for an expression that gives `None` or a type as Python has them, not as a constexpr.
    pub(super) fn is_bare(&mut self, source: Source<'_>, expr: ExprId, value: &Value) -> bool {
        if !matches!(value, Value::Const(Const::None | Const::DType(_) | Const::BlockType(..))) {
            return false;
        }
        match &source.body.exprs[expr] {
            Expr::Name(name) if self.frame().locals.contains_key(name) => {
                self.frame().bare.contains(name)
            }
            Expr::Name(name) => {
                let (file, scope) = (self.frame().file, self.frame().scope.clone());
                let global = self.global(file, &scope, name);
                global.is_some_and(|global| global.item.is_none() || !global.constexpr)
            }
            // Fields of tuples and aggregates are constexprs.
            Expr::Attribute { value: object, .. } => !matches!(
                self.quietly(|this| this.expr(source, *object)),
                Value::Tuple(_) | Value::Object(_)
            ),
            // What a function without `return` gives.
            Expr::Call { callee, .. } => {
                let constexpr = matches!(
                    self.quietly(|this| this.expr(source, *callee)),
                    Value::Function(function) if function.kind.role == Role::Constexpr
                );
                value.is_none() && !self.is_3_9() && !constexpr
            }
            _ => false,
        }
    }

    /// True for a tuple written out with such a type in it.
    fn has_bare(&mut self, source: Source<'_>, expr: ExprId, value: &Value) -> bool {
        let (Expr::Tuple(exprs), Value::Tuple(tuple)) = (&source.body.exprs[expr], value) else {
            return false;
        };
        exprs.iter().zip(&tuple.items).any(|(&expr, item)| self.is_bare(source, expr, item))
    }

    /// Numbers that a function returns become tensors in Triton 3.6.
    fn decay(&mut self, value: Value, at: FileRange) -> Value {
        match &value {
            Value::Const(Const::DType(elem)) => {
                let message = format!(
                    "functions return numbers and tensors before Triton 3.9, but `{elem}` is a type"
                );
                self.error(Code::NotATensor, at, message);
                Value::Unknown
            }
            Value::Const(Const::Symbol(_) | Const::None) => value,
            Value::Const(_) => self.materialize(&value, at).map_or(Value::Unknown, Value::Tensor),
            Value::Tuple(tuple) => {
                let items = tuple
                    .items
                    .iter()
                    .map(|item| self.returnable(item.clone(), false, at))
                    .collect();
                Value::Tuple(Arc::new(tuple.with_items(items)))
            }
            _ => value,
        }
    }

    fn python_assert(&mut self, condition: &Value, at: FileRange) {
        if self.frame().mode == Mode::Python || condition.is_unknown() {
            return;
        }
        // Compiled only in debug mode; the condition is still checked to be a scalar or tile.
        let text = match condition {
            Value::Tuple(_) => "a tuple",
            Value::Const(Const::Str(_)) => "a string",
            Value::Const(Const::None) => "`None`",
            _ => return,
        };
        self.error(Code::BadOperand, at, format!("the condition of `assert` is {text}"));
    }
}

/// What a statement did.
pub(super) enum Outcome {
    /// Control goes to the next statement.
    Next,
    /// The function returned.
    Returned,
    /// It ran the rest of the function inside its branches.
    RanRest(Flow),
}

/// True when a `return` stands anywhere in the statements.
pub(super) fn contains_return(source: Source<'_>, stmts: &[StmtId]) -> bool {
    stmts.iter().any(|&id| match &source.body.stmts[id] {
        Stmt::Return(_) => true,
        Stmt::If { body, orelse, .. }
        | Stmt::For { body, orelse, .. }
        | Stmt::While { body, orelse, .. } => {
            contains_return(source, body) || contains_return(source, orelse)
        }
        Stmt::With { body, .. } => contains_return(source, body),
        _ => false,
    })
}

/// Every name that the statements assign, in order of first assignment.
pub(super) fn assigned_names(source: Source<'_>, stmts: &[StmtId]) -> Vec<Name> {
    let mut names = Vec::new();
    for &id in stmts {
        collect_assigned(source, id, &mut names);
    }
    names
}

fn collect_assigned(source: Source<'_>, id: StmtId, names: &mut Vec<Name>) {
    match &source.body.stmts[id] {
        Stmt::Assign { targets, .. } => {
            targets.iter().for_each(|&target| collect_target(source, target, names));
        }
        Stmt::AugAssign { target, .. } | Stmt::AnnAssign { target, .. } => {
            collect_target(source, *target, names);
        }
        Stmt::If { body, orelse, .. } | Stmt::While { body, orelse, .. } => {
            body.iter().chain(orelse).for_each(|&id| collect_assigned(source, id, names));
        }
        Stmt::For { target, body, orelse, .. } => {
            collect_target(source, *target, names);
            body.iter().chain(orelse).for_each(|&id| collect_assigned(source, id, names));
        }
        Stmt::With { items, body } => {
            items.iter().filter_map(|(_, t)| *t).for_each(|t| collect_target(source, t, names));
            body.iter().for_each(|&id| collect_assigned(source, id, names));
        }
        _ => {}
    }
}

fn collect_target(source: Source<'_>, target: ExprId, names: &mut Vec<Name>) {
    match &source.body.exprs[target] {
        Expr::Name(name) if !names.contains(name) => names.push(name.clone()),
        Expr::Tuple(items) | Expr::List(items) => {
            items.iter().for_each(|&item| collect_target(source, item, names));
        }
        Expr::Attribute { value, .. } => collect_target(source, *value, names),
        _ => {}
    }
}
