//! Assignments: what targets hold afterwards, which in kernels is not always what was assigned.

use std::sync::Arc;

use super::value::{Const, Held, Tuple, Value};
use super::{Evaluator, Mode, OriginKind, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, Expr, ExprId, Name, Stmt, StmtId};
use crate::source::{FileRange, TextRange};

impl Evaluator<'_> {
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

    /// The tensor that a number becomes under a name.
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

    /// Assignments take the types in tuples out of their constexprs, and tuples hold no such types.
    fn refuse_type_in_tuple(&mut self, tuple: &Tuple, at: FileRange) -> bool {
        let is_type = |item: &Value| matches!(item, Value::Const(Const::DType(_)));
        let is_constexpr = matches!(tuple.held, Held::Annotated { .. });
        let has_type = !is_constexpr && tuple.items.iter().any(is_type);
        if has_type {
            let message = "a tuple with a type in it has to be bound as a `tl.constexpr`";
            self.error(Code::NotATensor, at, message);
        }
        has_type
    }

    /// A tuple that one constexpr holds is used as a whole, or by its elements.
    fn refuse_held_tuple(&mut self, what: &str, at: FileRange) {
        let message = format!("a tuple that one constexpr holds cannot be {what}");
        let diagnostic = Diagnostic::new(Code::NotATensor, at, message)
            .with_note("index it, or annotate the target with `tl.constexpr`");
        self.emit_diagnostic(diagnostic);
    }

    /// Gives each of several targets its part of a tuple.
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

    /// `target op= value`.
    pub(super) fn augmented(
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

    /// `target: annotation = value`, or without the value.
    pub(super) fn annotated(
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

    /// Gives the variable of an unrolled loop its next value.
    pub(super) fn bind_counter(&mut self, source: Source<'_>, target: ExprId, value: i128) {
        self.bind_target(source, target, Value::int(value));
        if let Expr::Name(name) = &source.body.exprs[target] {
            self.frame_mut().counters.insert(name.clone());
        }
    }

    /// Binds a local without the rules of assignment.
    pub(super) fn bind(&mut self, name: &Name, value: Value, at: TextRange) {
        let frame = self.frame_mut();
        frame.lost.remove(name);
        frame.bare.remove(name);
        frame.counters.remove(name);
        frame.locals.insert(name.clone(), super::Local { value, at });
    }
}

/// Every name that the statements assign, in order of first assignment.
pub(super) fn assigned_names(source: Source<'_>, stmts: &[StmtId]) -> Vec<Name> {
    let mut names = Vec::new();
    collect_assigned(source, stmts, &mut names);
    names
}

fn collect_assigned(source: Source<'_>, stmts: &[StmtId], names: &mut Vec<Name>) {
    for &id in stmts {
        let stmt = &source.body.stmts[id];
        // Kernels have neither.
        if matches!(stmt, Stmt::Try { .. } | Stmt::Match { .. }) {
            continue;
        }
        stmt.targets().into_iter().for_each(|target| collect_target(source, target, names));
        stmt.blocks().into_iter().for_each(|block| collect_assigned(source, block, names));
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
