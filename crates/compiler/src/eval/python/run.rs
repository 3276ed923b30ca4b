//! Statements of Python.

use super::super::value::Const;
use super::super::{Evaluator, Source};
use super::{Exception, Exit, Instance, Obj, Run, Scope, raise};
use crate::hir::{CompareOp, Expr, ExprId, Handler, Name, Pattern, Stmt, StmtId};

/// Where control goes after statements.
pub(super) enum Flow {
    /// To the next statement.
    Falls,
    /// Behind the innermost loop.
    Break,
    /// To the next round of the innermost loop.
    Continue,
    /// Out of the function.
    Return(Obj),
}

impl Evaluator<'_> {
    /// Runs statements in order.
    pub(super) fn python_block(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        stmts: &[StmtId],
    ) -> Run<Flow> {
        for &id in stmts {
            if !self.step() || source.body.is_broken(id) {
                return Err(Exit::Unknown);
            }
            let flow = self.nested(|this| this.python_stmt(source, scope, id));
            let flow = flow.unwrap_or(Err(Exit::Unknown)).map_err(|exit| match exit {
                Exit::Raised(exception) => {
                    let at = exception.at.or(Some(source.stmt_at(id)));
                    Exit::Raised(Exception { at, ..exception })
                }
                Exit::Unknown => Exit::Unknown,
            })?;
            if !matches!(flow, Flow::Falls) {
                return Ok(flow);
            }
        }
        Ok(Flow::Falls)
    }

    fn python_stmt(&mut self, source: Source<'_>, scope: &Scope, id: StmtId) -> Run<Flow> {
        match &source.body.stmts[id] {
            Stmt::Expr(expr) => {
                self.python_expr(source, scope, *expr)?;
            }
            Stmt::Assign { targets, value } => {
                let value = self.python_expr(source, scope, *value)?;
                for &target in targets {
                    self.python_assign(source, scope, target, value.clone())?;
                }
            }
            Stmt::AugAssign { target, op, value } => {
                let left = self.python_expr(source, scope, *target)?;
                let right = self.python_expr(source, scope, *value)?;
                if let (Obj::List(items), crate::hir::BinaryOp::Add) = (&left, op) {
                    let more = self.python_items(&right)?;
                    items.borrow_mut().extend(more);
                } else {
                    let result = self.python_binary(*op, &left, &right)?;
                    self.python_assign(source, scope, *target, result)?;
                }
            }
            Stmt::AnnAssign { target, value, .. } => {
                if let Some(value) = value {
                    let value = self.python_expr(source, scope, *value)?;
                    self.python_assign(source, scope, *target, value)?;
                }
            }
            Stmt::If { test, body, orelse } => {
                let test = self.python_expr(source, scope, *test)?;
                let branch = if self.python_truth(&test)? { body } else { orelse };
                return self.python_block(source, scope, branch);
            }
            Stmt::For { target, iter, body, orelse } => {
                let iterable = self.python_expr(source, scope, *iter)?;
                for item in self.python_items(&iterable)? {
                    self.python_assign(source, scope, *target, item)?;
                    match self.python_block(source, scope, body)? {
                        Flow::Falls | Flow::Continue => {}
                        Flow::Break => return Ok(Flow::Falls),
                        returned @ Flow::Return(_) => return Ok(returned),
                    }
                }
                return self.python_block(source, scope, orelse);
            }
            Stmt::While { test, body, orelse } => {
                loop {
                    let test = self.python_expr(source, scope, *test)?;
                    if !self.python_truth(&test)? {
                        break;
                    }
                    match self.python_block(source, scope, body)? {
                        Flow::Falls | Flow::Continue => {}
                        Flow::Break => return Ok(Flow::Falls),
                        returned @ Flow::Return(_) => return Ok(returned),
                    }
                }
                return self.python_block(source, scope, orelse);
            }
            Stmt::Return(value) => {
                let value = match value {
                    Some(value) => self.python_expr(source, scope, *value)?,
                    None => Obj::NONE,
                };
                return Ok(Flow::Return(value));
            }
            Stmt::Assert { test, message } => {
                let test = self.python_expr(source, scope, *test)?;
                if !self.python_truth(&test)? {
                    let message = match message {
                        Some(message) => self.python_expr(source, scope, *message)?,
                        None => Obj::str(""),
                    };
                    return raise("AssertionError", super::text::str(&message).unwrap_or_default());
                }
            }
            Stmt::Try { body, handlers, orelse, finally } => {
                let mut flow = self.python_block(source, scope, body);
                if let Err(Exit::Raised(exception)) = &flow {
                    if let Some(handler) = self.handler(source, scope, handlers, exception)? {
                        if handler.target.is_some() {
                            return Err(Exit::Unknown);
                        }
                        flow = self.python_block(source, scope, &handler.body);
                    }
                } else if let Ok(Flow::Falls) = &flow {
                    flow = self.python_block(source, scope, orelse);
                }
                if let Err(Exit::Unknown) = &flow {
                    return flow;
                }
                return match self.python_block(source, scope, finally)? {
                    Flow::Falls => flow,
                    other => Ok(other),
                };
            }
            Stmt::Match { subject, cases } => {
                let subject = self.python_expr(source, scope, *subject)?;
                for case in cases {
                    if !self.matches(source, scope, &case.pattern, &subject)? {
                        continue;
                    }
                    if let Some(guard) = case.guard {
                        let guard = self.python_expr(source, scope, guard)?;
                        if !self.python_truth(&guard)? {
                            continue;
                        }
                    }
                    return self.python_block(source, scope, &case.body);
                }
            }
            Stmt::Pass => {}
            Stmt::Unsupported("Break") => return Ok(Flow::Break),
            Stmt::Unsupported("Continue") => return Ok(Flow::Continue),
            Stmt::Unsupported("Raise") => {
                let exception = Exception { kind: None, message: String::new(), at: None };
                return Err(Exit::Raised(exception));
            }
            Stmt::Unsupported("FunctionDef") => self.python_definition(source, scope, id)?,
            Stmt::With { .. } | Stmt::Unsupported(_) | Stmt::Error => return Err(Exit::Unknown),
        }
        Ok(Flow::Falls)
    }

    /// The clause that takes an exception.
    fn handler<'h>(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        handlers: &'h [Handler],
        exception: &Exception,
    ) -> Run<Option<&'h Handler>> {
        for handler in handlers {
            let Some(kinds) = handler.kinds else { return Ok(Some(handler)) };
            let kinds = match self.python_expr(source, scope, kinds)? {
                Obj::Tuple(kinds, None) => kinds.to_vec(),
                kind => vec![kind],
            };
            for kind in kinds {
                let Obj::Builtin(kind) = kind else { return Err(Exit::Unknown) };
                if matches!(kind, "Exception" | "BaseException") || exception.kind == Some(kind) {
                    return Ok(Some(handler));
                }
                if exception.kind.is_none_or(|raised| super::builtins::may_derive(raised, kind)) {
                    return Err(Exit::Unknown);
                }
            }
        }
        Ok(None)
    }

    /// Whether a pattern takes a value; binds what it names.
    fn matches(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        pattern: &Pattern,
        subject: &Obj,
    ) -> Run<bool> {
        Ok(match pattern {
            Pattern::Value(id) => {
                let value = self.python_expr(source, scope, *id)?;
                // `None` and bools are matched by identity.
                let op = match &source.body.exprs[*id] {
                    Expr::Literal(crate::hir::Literal::None | crate::hir::Literal::Bool(_)) => {
                        CompareOp::Is
                    }
                    _ => CompareOp::Eq,
                };
                let equal = self.python_compare(op, subject, &value)?;
                self.python_truth(&equal)?
            }
            Pattern::Capture(target) => {
                if let Some(target) = target {
                    self.python_assign(source, scope, *target, subject.clone())?;
                }
                true
            }
            Pattern::Or(patterns) => {
                for pattern in patterns {
                    if self.matches(source, scope, pattern, subject)? {
                        return Ok(true);
                    }
                }
                false
            }
            Pattern::As(pattern, target) => {
                let taken = self.matches(source, scope, pattern, subject)?;
                if taken {
                    self.python_assign(source, scope, *target, subject.clone())?;
                }
                taken
            }
            Pattern::Sequence(patterns) => {
                let items = match subject {
                    Obj::Tuple(items, _) => items.to_vec(),
                    Obj::List(items) => items.borrow().clone(),
                    Obj::Const(_) => return Ok(false),
                    _ => return Err(Exit::Unknown),
                };
                if items.len() != patterns.len() {
                    return Ok(false);
                }
                for (pattern, item) in patterns.iter().zip(&items) {
                    if !self.matches(source, scope, pattern, item)? {
                        return Ok(false);
                    }
                }
                true
            }
            Pattern::Other(_) => return Err(Exit::Unknown),
        })
    }

    /// Binds a target.
    pub(super) fn python_assign(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        target: ExprId,
        value: Obj,
    ) -> Run<()> {
        match &source.body.exprs[target] {
            Expr::Name(name) => scope.set(name, value),
            Expr::Tuple(targets) | Expr::List(targets) => {
                let items = self.python_items(&value)?;
                let starred = |&id: &ExprId| matches!(source.body.exprs[id], Expr::Starred(_));
                let Some(star) = targets.iter().position(starred) else {
                    if items.len() != targets.len() {
                        let what =
                            if items.len() < targets.len() { "not enough" } else { "too many" };
                        let message =
                            format!("{what} values to unpack (expected {})", targets.len());
                        return raise("ValueError", message);
                    }
                    for (&target, item) in targets.iter().zip(items) {
                        self.python_assign(source, scope, target, item)?;
                    }
                    return Ok(());
                };
                let behind = targets.len() - star - 1;
                if items.len() < star + behind {
                    return raise("ValueError", "not enough values to unpack");
                }
                let (front, rest) = items.split_at(star);
                let (middle, back) = rest.split_at(rest.len() - behind);
                let Expr::Starred(inner) = source.body.exprs[targets[star]] else {
                    return Err(Exit::Unknown);
                };
                let ends = targets[..star].iter().zip(front);
                for (&target, item) in ends.chain(targets[star + 1..].iter().zip(back)) {
                    self.python_assign(source, scope, target, item.clone())?;
                }
                self.python_assign(source, scope, inner, Obj::list(middle.to_vec()))?;
            }
            Expr::Attribute { value: object, attr } => {
                match self.python_expr(source, scope, *object)? {
                    Obj::Instance(instance) => self.set_field(scope, &instance, attr, value)?,
                    _ => return Err(Exit::Unknown),
                }
            }
            Expr::Subscript { value: object, index } => {
                let object = self.python_expr(source, scope, *object)?;
                let index = self.python_expr(source, scope, *index)?;
                self.python_store(&object, &index, value)?;
            }
            _ => return Err(Exit::Unknown),
        }
        Ok(())
    }

    /// Sets a field of an aggregate, which holds what its class declares.
    fn set_field(
        &mut self,
        scope: &Scope,
        instance: &Instance,
        name: &Name,
        value: Obj,
    ) -> Run<()> {
        if self.is_plain_class(&instance.class) {
            let mut fields = instance.fields.borrow_mut();
            fields.retain(|(field, _)| field != name);
            fields.push((name.clone(), value));
            return Ok(());
        }
        let class = instance.class.class.clone();
        let declared = class.fields.iter().find(|(field, ..)| field == name);
        let Some((_, Some(annotation), _)) = declared else {
            let message = format!("{} has no attribute '{name}'", class.name);
            return raise("AttributeError", message);
        };
        let source = Source { body: &class.body, map: &class.map, file: instance.class.file };
        let expected = match self.python_expr(source, scope, *annotation)? {
            // Since Triton 3.9 annotations are resolved as Python's `typing` does.
            Obj::Const(Const::Str(text)) if self.is_3_9() => self.dotted(source, scope, &text)?,
            Obj::Const(Const::None) if self.is_3_9() => Obj::Builtin("NoneType"),
            expected => expected,
        };
        if !self.python_is_instance(&value, &expected)? {
            let class = value.class_text();
            let message = format!("the field `{name}` does not hold values of the class '{class}'");
            return raise("TypeError", message);
        }
        instance.fields.borrow_mut().push((name.clone(), value));
        Ok(())
    }

    /// What a dotted name in a string means.
    fn dotted(&mut self, source: Source<'_>, scope: &Scope, text: &str) -> Run<Obj> {
        let mut parts = text.split('.');
        let first = parts.next().map(Name::from).ok_or(Exit::Unknown)?;
        let first = self.python_name(scope, &first)?;
        parts.try_fold(first, |object, part| {
            self.python_attribute(source, &object, &Name::from(part))
        })
    }

    /// `object[index] = value`.
    pub(super) fn python_store(&mut self, object: &Obj, index: &Obj, value: Obj) -> Run<()> {
        match object {
            Obj::List(items) => {
                let count = items.borrow().len();
                let at = super::operators::position(index, count)?;
                items.borrow_mut()[at] = value;
                Ok(())
            }
            Obj::Dict(entries) => {
                super::operators::check_hashable(index)?;
                let known = entries.borrow().clone();
                for (at, (key, _)) in known.iter().enumerate() {
                    if self.python_equal(key, index)? {
                        entries.borrow_mut()[at].1 = value;
                        return Ok(());
                    }
                }
                entries.borrow_mut().push((index.clone(), value));
                Ok(())
            }
            Obj::Tuple(..) | Obj::Const(_) => {
                let class = object.class_text();
                raise("TypeError", format!("'{class}' object does not support item assignment"))
            }
            _ => Err(Exit::Unknown),
        }
    }
}
