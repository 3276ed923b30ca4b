//! Statements of host code, and what is known where several of them may have run.

use super::changes::is_collection;
use super::operators::{self, join, truth};
use super::value::Value;
use super::{Frame, Host, Variables};
use crate::hir::{Expr, ExprId, Handler, Stmt, StmtId};
use crate::project::{Resolution, Scope, resolve_expr, takes_exceptions};

/// Functions outside of the project that do not return.
const NEVER_RETURN: &[&[&str]] = &[
    &["os", "_exit"],
    &["os", "abort"],
    &["pytest", "exit"],
    &["pytest", "fail"],
    &["pytest", "skip"],
    &["pytest", "xfail"],
    &["sys", "exit"],
];

/// How a block ends.
pub(super) enum Flow {
    /// What follows runs.
    Next,
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`, or an exception, which has no value.
    Return(Option<Value>),
}

/// The ways out of a function or loop that may have been taken where the code went on.
#[derive(Debug, Clone, Default)]
pub(super) struct Exits {
    /// What may have been returned.
    returned: Option<Value>,
    /// The variables where the innermost loop may have been left.
    broken: Option<Variables>,
    /// The variables where an iteration of it may have ended early.
    continued: Option<Variables>,
    /// The variables where the innermost `try` may have been left by an exception, inside of one.
    raised: Option<Variables>,
}

impl Host<'_> {
    /// The value of a function whose body ended in `flow`.
    pub(super) fn result(&mut self, frame: &mut Frame, flow: Flow) -> Value {
        let last = match flow {
            Flow::Return(value) => value,
            _ => Some(Value::None),
        };
        match (last, frame.exits.returned.take()) {
            (Some(last), Some(earlier)) => self.one_of(last, &earlier),
            (last, earlier) => last.or(earlier).unwrap_or(Value::Unknown),
        }
    }

    /// Runs statements until one of them ends the block.
    pub(super) fn block(&mut self, frame: &mut Frame, stmts: &[StmtId]) -> Flow {
        for stmt in stmts {
            let flow = self.stmt(frame, *stmt);
            if frame.exits.raised.is_some() {
                let variables = frame.variables.clone();
                self.add_exit(&mut frame.exits.raised, variables);
            }
            match flow {
                Flow::Next => {}
                flow => return flow,
            }
        }
        Flow::Next
    }

    fn stmt(&mut self, frame: &mut Frame, id: StmtId) -> Flow {
        let code = frame.code.clone();
        match &code.body().stmts[id] {
            Stmt::Expr(value) => {
                self.expr(frame, *value);
                if self.never_returns(frame, *value) {
                    return Flow::Return(None);
                }
            }
            Stmt::Assign { targets, value: source } => {
                let value = self.expr(frame, *source);
                for target in targets {
                    self.assign(frame, *target, &value);
                }
                if is_collection(&value) {
                    // Two targets have one value.
                    let others = targets.iter().skip(1).map(|_| targets[0]);
                    for (target, source) in targets.iter().zip([*source].into_iter().chain(others))
                    {
                        frame.share(*target, source);
                    }
                }
            }
            Stmt::AnnAssign { target, value: Some(value), .. } => {
                let value = self.expr(frame, *value);
                self.assign(frame, *target, &value);
            }
            Stmt::AugAssign { target, op, value } => {
                let old = self.expr(frame, *target);
                let value = self.expr(frame, *value);
                let result = operators::binary(*op, &old, &value);
                match is_collection(&old) {
                    true => frame.change(*target, result),
                    false => self.assign(frame, *target, &result),
                }
            }
            Stmt::If { test, body, orelse } => {
                let test = self.expr(frame, *test);
                return match truth(&test) {
                    Some(true) => self.block(frame, body),
                    Some(false) => self.block(frame, orelse),
                    None => self.either(frame, body, orelse),
                };
            }
            Stmt::For { target, iter, body, orelse } => {
                let items = self.expr(frame, *iter);
                if items.elements().is_some_and(|items| items.iter().any(is_collection)) {
                    frame.share(*target, *iter);
                }
                return self.in_loop(frame, orelse, |host, frame| {
                    host.iterations(frame, *target, &items, body)
                });
            }
            Stmt::While { test, body, orelse } => {
                self.expr(frame, *test);
                return self.in_loop(frame, orelse, |host, frame| host.perhaps(frame, body));
            }
            // What is under it is meant to fail.
            Stmt::With { items, .. }
                if items.iter().any(|(manager, _)| takes_exceptions(code.body(), *manager)) => {}
            Stmt::With { items, body } => {
                for (manager, target) in items {
                    let manager = self.expr(frame, *manager);
                    if let Some(target) = target {
                        self.assign(frame, *target, &manager);
                    }
                }
                return self.block(frame, body);
            }
            Stmt::Try { body, handlers, orelse, finally } => {
                return self.protected(frame, finally, |host, frame| {
                    host.attempt(frame, (body, orelse), handlers)
                });
            }
            Stmt::Assert { test, .. } => {
                let test = self.expr(frame, *test);
                if truth(&test) == Some(false) {
                    return Flow::Return(None);
                }
            }
            Stmt::Return(value) => {
                let value = value.map_or(Value::None, |value| self.expr(frame, value));
                return Flow::Return(Some(value));
            }
            Stmt::Unsupported("Break") => return Flow::Break,
            Stmt::Unsupported("Continue") => return Flow::Continue,
            Stmt::Unsupported("Raise") => return Flow::Return(None),
            Stmt::Unsupported("Delete") => frame.change_all(),
            // Which case it is, and what that binds, is not followed.
            Stmt::Unsupported("Match") => {
                frame.variables.values_mut().for_each(|value| *value = value.degraded());
            }
            _ => {}
        }
        Flow::Next
    }

    /// Whether an expression calls what ends the program or the test.
    fn never_returns(&self, frame: &Frame, expr: ExprId) -> bool {
        let body = frame.code.body();
        let Expr::Call { callee, .. } = body.exprs[expr] else { return false };
        if let Expr::Attribute { value, attr } = &body.exprs[callee]
            && matches!(&body.exprs[*value], Expr::Name(name) if &**name == "self")
        {
            return matches!(&**attr, "fail" | "skipTest");
        }
        let scope = Scope { file: frame.file, path: &frame.scope };
        match resolve_expr(self.sources, scope, body, callee) {
            Resolution::External(path) => {
                let path: Vec<&str> = path.iter().map(|part| &**part).collect();
                NEVER_RETURN.contains(&path.as_slice())
            }
            Resolution::Undefined => {
                matches!(&body.exprs[callee], Expr::Name(name) if matches!(&**name, "exit" | "quit"))
            }
            _ => false,
        }
    }

    /// What a value is that is one of two.
    pub(super) fn one_of(&mut self, first: Value, second: &Value) -> Value {
        self.joined |= first != *second;
        match self.options.one_run {
            true if !matches!(first, Value::Unknown) => first,
            true => second.clone(),
            false => join(&first, second),
        }
    }

    /// Runs both branches of a condition that is not known and joins what they leave.
    fn either(&mut self, frame: &mut Frame, body: &[StmtId], orelse: &[StmtId]) -> Flow {
        let before = frame.variables.clone();
        let first = self.block(frame, body);
        let after_first = std::mem::replace(&mut frame.variables, before);
        let second = self.block(frame, orelse);
        self.meet(frame, (first, after_first), second)
    }

    /// What follows where the code has ended in `first` with these variables, or in `second` with
    /// those of the frame.
    fn meet(
        &mut self,
        frame: &mut Frame,
        (first, after_first): (Flow, Variables),
        second: Flow,
    ) -> Flow {
        match (first, second) {
            (Flow::Next, Flow::Next) => {
                self.join_variables(&mut frame.variables, after_first);
                Flow::Next
            }
            (Flow::Next, second) => {
                let after_second = std::mem::replace(&mut frame.variables, after_first);
                self.leave(frame, second, after_second);
                Flow::Next
            }
            (Flow::Return(Some(first)), Flow::Return(Some(second))) => {
                Flow::Return(Some(self.one_of(first, &second)))
            }
            (first, second) => {
                self.leave(frame, first, after_first);
                second
            }
        }
    }

    /// Notes a way that may have been taken while the code goes on in another.
    fn leave(&mut self, frame: &mut Frame, flow: Flow, variables: Variables) {
        let exits = &mut frame.exits;
        match flow {
            Flow::Next | Flow::Return(None) => {}
            Flow::Break => self.add_exit(&mut exits.broken, variables),
            Flow::Continue => self.add_exit(&mut exits.continued, variables),
            Flow::Return(Some(value)) => {
                exits.returned = Some(match exits.returned.take() {
                    Some(earlier) => self.one_of(earlier, &value),
                    None => value,
                });
            }
        }
    }

    fn add_exit(&mut self, exit: &mut Option<Variables>, variables: Variables) {
        match exit {
            Some(known) => self.join_variables(known, variables),
            None => *exit = Some(variables),
        }
    }

    /// Runs the iterations of a loop, then its `else`; ways out of the loop end at it.
    fn in_loop(
        &mut self,
        frame: &mut Frame,
        orelse: &[StmtId],
        iterations: impl FnOnce(&mut Self, &mut Frame) -> Flow,
    ) -> Flow {
        let around = (frame.exits.broken.take(), frame.exits.continued.take());
        let flow = match iterations(self, frame) {
            Flow::Next | Flow::Continue => self.block(frame, orelse),
            Flow::Break => Flow::Next,
            flow => flow,
        };
        let broken = std::mem::replace(&mut frame.exits.broken, around.0);
        frame.exits.continued = around.1;
        match broken {
            Some(broken) => self.meet(frame, (Flow::Next, broken), flow),
            None => flow,
        }
    }

    /// Runs the body of a `try`, which may end after any of its statements and before the first, and
    /// then its `else` or one of the handlers.
    fn attempt(
        &mut self,
        frame: &mut Frame,
        (body, orelse): (&[StmtId], &[StmtId]),
        handlers: &[Handler],
    ) -> Flow {
        let around = frame.exits.raised.replace(frame.variables.clone());
        let mut flow = self.block(frame, body);
        let raised = std::mem::replace(&mut frame.exits.raised, around).unwrap_or_default();
        if frame.exits.raised.is_some() {
            self.add_exit(&mut frame.exits.raised, raised.clone());
        }
        if let Flow::Next = flow {
            flow = self.block(frame, orelse);
        }
        for handler in handlers {
            let after = std::mem::replace(&mut frame.variables, raised.clone());
            if let Some(target) = handler.target {
                self.assign(frame, target, &Value::Unknown);
            }
            let handled = self.block(frame, &handler.body);
            flow = self.meet(frame, (flow, after), handled);
        }
        flow
    }

    /// Runs code and what stands in `finally`, which runs however the code ends.
    fn protected(
        &mut self,
        frame: &mut Frame,
        finally: &[StmtId],
        code: impl FnOnce(&mut Self, &mut Frame) -> Flow,
    ) -> Flow {
        if finally.is_empty() {
            return code(self, frame);
        }
        let around = (frame.exits.broken.take(), frame.exits.continued.take());
        let flow = code(self, frame);
        let inside = (frame.exits.broken.take(), frame.exits.continued.take());
        (frame.exits.broken, frame.exits.continued) = around;
        for (way, variables) in [(Flow::Break, inside.0), (Flow::Continue, inside.1)] {
            let Some(variables) = variables else { continue };
            let after = std::mem::replace(&mut frame.variables, variables);
            let way = self.then(frame, way, finally);
            let left = std::mem::replace(&mut frame.variables, after);
            self.leave(frame, way, left);
        }
        self.then(frame, flow, finally)
    }

    /// How code ends that ends in `flow` and then runs `finally`.
    fn then(&mut self, frame: &mut Frame, flow: Flow, finally: &[StmtId]) -> Flow {
        match self.block(frame, finally) {
            Flow::Next => flow,
            other => other,
        }
    }

    /// Runs what runs once, or not, or several times.
    fn perhaps(&mut self, frame: &mut Frame, body: &[StmtId]) -> Flow {
        let before = frame.variables.clone();
        let flow = self.iteration(frame, body);
        let after = std::mem::replace(&mut frame.variables, before);
        match flow {
            // The code after the loop runs with what it leaves, as after an iteration.
            Flow::Break => {
                self.leave(frame, Flow::Break, after);
                Flow::Next
            }
            flow => self.meet(frame, (flow, after), Flow::Next),
        }
    }

    /// Runs a loop's body once; it goes on where an iteration may have ended early.
    fn iteration(&mut self, frame: &mut Frame, body: &[StmtId]) -> Flow {
        let flow = match self.block(frame, body) {
            Flow::Continue => Flow::Next,
            flow => flow,
        };
        match frame.exits.continued.take() {
            Some(continued) => self.meet(frame, (Flow::Next, continued), flow),
            None => flow,
        }
    }

    fn iterations(
        &mut self,
        frame: &mut Frame,
        target: ExprId,
        items: &Value,
        body: &[StmtId],
    ) -> Flow {
        let Some(items) = items.elements() else {
            self.assign(frame, target, &items.any_element());
            return self.perhaps(frame, body);
        };
        for item in items {
            self.assign(frame, target, &item);
            match self.iteration(frame, body) {
                Flow::Next => {}
                flow => return flow,
            }
            if self.fuel == 0 {
                break;
            }
        }
        Flow::Next
    }

    /// Keeps what both hold; in one run, what the first has counts.
    fn join_variables(&mut self, variables: &mut Variables, first: Variables) {
        match self.options.one_run {
            true => variables.extend(first),
            false => self.joined |= join_variables(variables, first),
        }
    }
}

/// Keeps what both hold; whether they differ.
fn join_variables(variables: &mut Variables, other: Variables) -> bool {
    let mut differ = false;
    variables.retain(|name, _| {
        let known = other.contains_key(name);
        differ |= !known;
        known
    });
    for (name, value) in other {
        match variables.get_mut(&name) {
            Some(known) if *known != value => {
                *known = join(known, &value);
                differ = true;
            }
            Some(_) => {}
            None => differ = true,
        }
    }
    differ
}
