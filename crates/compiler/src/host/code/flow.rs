//! Statements of host code, and how blocks of them end.

use crate::builtins::TORCH;
use crate::hir::{Body, Expr, ExprId, Handler, Literal, Stmt, StmtId};
use crate::host::code::claims::Claim;
use crate::host::code::doubt::Doubt;
use crate::host::code::installed::is_installed;
use crate::host::code::operators;
use crate::host::launch::past::Maker;
use crate::host::torch::data;
use crate::host::torch::tape::By;
use crate::host::value::Value;
use crate::host::value::changes::is_collection;
use crate::host::{Frame, Host, Variables};
use crate::project::{Resolution, Scope, callee, resolve_expr, takes_exceptions};

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

/// Iterations of a `while` that are followed one by one.
const MAX_TRIPS: u32 = 4096;

/// A loop that nothing ends but what is inside of it runs so often at most, for as long as it is known
/// that nothing does.
const MAX_ENDLESS_TRIPS: u32 = 64;

/// What runs that needs more memory or registers than there are raises one of these.
const OUT_OF_RESOURCES: &[&str] = &["OutOfMemoryError", "OutOfResources"];

/// Whether handlers only wait for a device that is too small. What they do instead is not followed.
fn wait_for_resources(body: &Body, handlers: &[Handler]) -> bool {
    let of_resources = |kind: ExprId| match &body.exprs[kind] {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => {
            OUT_OF_RESOURCES.contains(&&**name)
        }
        _ => false,
    };
    let waits = |handler: &Handler| {
        handler.kinds.is_some_and(|kinds| match &body.exprs[kinds] {
            Expr::Tuple(kinds) => kinds.iter().copied().all(of_resources),
            _ => of_resources(kinds),
        })
    };
    !handlers.is_empty() && handlers.iter().all(waits)
}

/// Whether a context manager may put something else in the place of functions: `mock.patch(...)`.
fn patches(body: &Body, manager: ExprId) -> bool {
    let Expr::Call { callee, .. } = &body.exprs[manager] else { return false };
    let is_patch = |name: &str| name.contains("patch") || name.contains("context");
    match &body.exprs[*callee] {
        Expr::Name(name) => is_patch(name),
        Expr::Attribute { value, attr } => {
            is_patch(attr) || matches!(&body.exprs[*value], Expr::Name(name) if is_patch(name))
        }
        _ => false,
    }
}

/// How a block ends.
pub(crate) enum Flow {
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
pub(crate) struct Exits {
    /// What may have been returned.
    pub(crate) returned: Option<Value>,
    /// The variables where the innermost loop may have been left.
    pub(crate) broken: Option<Variables>,
    /// The variables where an iteration of it may have ended early.
    pub(crate) continued: Option<Variables>,
    /// What a generator has given so far.
    pub(crate) yielded: Option<Yielded>,
    /// The variables where the innermost `try` may have been left by an exception, inside of one.
    pub(crate) raised: Option<Variables>,
}

/// What a generator gives.
#[derive(Debug, Clone)]
pub(crate) struct Yielded {
    items: Vec<Value>,
    /// The doubt in which it began.
    began: Doubt,
    /// Whether it may give more, or not all of these.
    is_open: bool,
}

impl Yielded {
    /// Nothing, where a generator begins.
    pub(crate) fn begin(doubt: &Doubt) -> Yielded {
        Yielded { items: Vec::new(), began: *doubt, is_open: false }
    }

    /// Notes that these are given now, one after the other; `None` where it is not known what is.
    pub(crate) fn give(&mut self, values: Option<Vec<Value>>, doubt: &Doubt) {
        self.is_open |= values.is_none() || !doubt.is_as_sure_as(&self.began);
        self.items.extend(values.into_iter().flatten());
    }

    /// All that is given by a generator whose body ended so.
    pub(crate) fn all(self, flow: &Flow) -> Option<Vec<Value>> {
        let ended = matches!(flow, Flow::Next | Flow::Return(Some(_)));
        (ended && !self.is_open).then_some(self.items)
    }
}

impl Exits {
    /// Whether the function may have returned already.
    pub(crate) fn may_return(&self) -> bool {
        self.returned.is_some()
    }
}

impl Host<'_> {
    /// The value of a function whose body ended in `flow`.
    pub(crate) fn result(&mut self, frame: &mut Frame, flow: Flow) -> Value {
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
    pub(crate) fn block(&mut self, frame: &mut Frame, stmts: &[StmtId]) -> Flow {
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

    /// Runs a statement; an exception in it ends the code around it.
    fn stmt(&mut self, frame: &mut Frame, id: StmtId) -> Flow {
        let flow = self.unless_raised(frame, id);
        match std::mem::take(&mut self.doubt.raised) {
            true => Flow::Return(None),
            false => flow,
        }
    }

    fn unless_raised(&mut self, frame: &mut Frame, id: StmtId) -> Flow {
        let code = frame.code.clone();
        match &code.body().stmts[id] {
            Stmt::Expr(value) => {
                if let Some(claim) = self.claim_of_test(frame, *value) {
                    return self.asserted(frame, claim);
                }
                self.expr(frame, *value);
                match self.returns(frame, *value) {
                    Some(true) => {}
                    Some(false) => return Flow::Return(None),
                    None => self.doubt.begin(true),
                }
            }
            Stmt::Assign { targets, value: source } => {
                let value = self.expr(frame, *source);
                if self.doubt.raised {
                    return Flow::Next;
                }
                if self.returns(frame, *source).is_none() {
                    self.doubt.begin(true);
                }
                let value = match targets[..] {
                    [target] => self.bound_once(frame, target, *source, value),
                    _ => value,
                };
                for target in targets {
                    self.assign_from(frame, *target, &value, *source);
                }
                if is_collection(&value) {
                    if let [target] = targets[..] {
                        frame.note_place(target, *source);
                    }
                    // Two targets have one value.
                    let others = targets.iter().skip(1).map(|_| targets[0]);
                    for (target, source) in targets.iter().zip([*source].into_iter().chain(others))
                    {
                        frame.share(*target, source);
                    }
                }
            }
            Stmt::AnnAssign { target, value: Some(value), .. } => {
                let source = *value;
                let value = self.expr(frame, source);
                if !self.doubt.raised {
                    self.assign_from(frame, *target, &value, source);
                }
            }
            Stmt::AugAssign { target, op, value } => {
                let old = self.expr(frame, *target);
                self.note_array_written(&old);
                let value = self.operand(frame, *value);
                let result = match self.special_update(*op, &old, &value) {
                    Some(made) => made,
                    None => operators::binary(*op, &old, &value),
                };
                self.note_raised(frame, *target, &result, &[&old, &value]);
                let result = data::noted(result, data::binary(*op, &old, &value));
                // What a list or a dict holds is changed itself.
                let is_part = match frame.code.body().exprs[*target] {
                    Expr::Subscript { value, .. } => {
                        !matches!(old, Value::Tensor(_))
                            || matches!(self.expr(frame, value), Value::Tensor(_))
                    }
                    _ => false,
                };
                let given = || vec![(None, old.clone()), (None, value.clone())];
                let is_in_place = matches!(old, Value::Tensor(_)) && !is_part;
                let result = match is_in_place {
                    true => result,
                    false => self.recorded(&Maker::Binary(*op), &given(), result),
                };
                match (&old, &result) {
                    (Value::Tensor(tensor), Value::Tensor(_)) if !is_part => {
                        self.on_tape_in_place(By::Maker(Maker::Binary(*op)), given(), &old);
                        let updated = self.updated(tensor, &result);
                        self.assign(frame, *target, &updated);
                    }
                    (Value::Collection, _) => {
                        self.change_collection(frame, *target, Value::Collection);
                    }
                    _ if is_collection(&old) => self.change_collection(frame, *target, result),
                    _ => self.assign(frame, *target, &result),
                }
            }
            Stmt::If { test, body, orelse } => {
                let value = self.expr(frame, *test);
                return match self.holds(&value) {
                    _ if self.doubt.raised => Flow::Next,
                    Some(holds) => {
                        self.note_reported(frame, *test, [body, orelse]);
                        let taken = if holds { body } else { orelse };
                        let flow = self.block(frame, taken);
                        if matches!(flow, Flow::Return(None)) {
                            self.note_condition(frame, (*test, holds), taken);
                        }
                        flow
                    }
                    None => {
                        self.unsettled += 1;
                        let decided = self.decided(frame, *test);
                        self.either(
                            frame,
                            decided,
                            |host, frame| host.block(frame, body),
                            |host, frame| host.block(frame, orelse),
                        )
                    }
                };
            }
            Stmt::Match { subject, cases } => {
                let value = self.expr(frame, *subject);
                if !self.doubt.raised {
                    let decided = self.decided(frame, *subject);
                    return self.cases(frame, (&value, decided), cases);
                }
            }
            Stmt::For { target, iter, body, orelse } => {
                let items = self.expr(frame, *iter);
                let items = self.gone_over(items);
                if self.doubt.raised {
                    return Flow::Next;
                }
                if !frame.open.is_empty() {
                    let open = frame.is_open(*iter);
                    self.note_open_targets(frame, *target, open);
                }
                if items.elements().is_some_and(|items| items.iter().any(is_collection)) {
                    frame.share(*target, *iter);
                }
                return self.in_loop(frame, orelse, |host, frame| {
                    host.iterations(frame, *target, &items, body)
                });
            }
            Stmt::While { test, body, orelse } => {
                return self.in_loop(frame, orelse, |host, frame| host.trips(frame, *test, body));
            }
            // What is under it is meant to fail, after some of it has run.
            Stmt::With { items, body }
                if items.iter().any(|(manager, _)| takes_exceptions(code.body(), *manager)) =>
            {
                let launches = self.launches.len();
                self.handling(|host| host.perhaps(frame, body));
                self.launches.truncate(launches);
                self.doubt.raised = false;
            }
            Stmt::With { items, body } => {
                let around = self.without_gradients;
                let mut managers = Vec::new();
                for (manager, target) in items {
                    self.unfollowed |= self.ends_unfollowed(frame, *manager);
                    let value = self.expr(frame, *manager);
                    managers.push(value.clone());
                    let value = self.entered(&value);
                    if let Some(target) = target {
                        self.assign_from(frame, *target, &value, *manager);
                    }
                }
                if !self.doubt.raised {
                    let hands_on = |(manager, _): &(ExprId, _)| self.is_of_torch(frame, *manager);
                    // What enters it is run; a run that computes all numbers meets no exception to take.
                    let patches = |(manager, _): &(ExprId, _)| patches(code.body(), *manager);
                    let hand_on = items.iter().all(hands_on)
                        || self.launcher.is_some() && !items.iter().any(patches);
                    let casts = items.iter().any(|(manager, _)| self.casts(frame, *manager));
                    items.iter().for_each(|(manager, _)| self.enter_mode(frame, *manager));
                    self.autocast += u32::from(casts);
                    let flow = match hand_on {
                        true => self.block(frame, body),
                        false => self.perhaps_running(|host| host.block(frame, body)),
                    };
                    self.autocast -= u32::from(casts);
                    self.without_gradients = around;
                    managers.iter().rev().for_each(|manager| self.exited(manager));
                    return flow;
                }
            }
            Stmt::Try { body, handlers, orelse, finally } => {
                return self.protected(frame, finally, |host, frame| {
                    host.attempt(frame, (body, orelse), handlers)
                });
            }
            Stmt::Assert { test, .. } => {
                return self.asserted(frame, Claim::Holds(*test));
            }
            Stmt::Return(value) => {
                let value = value.map_or(Value::None, |value| self.expr(frame, value));
                return Flow::Return(Some(value));
            }
            Stmt::Unsupported("Break") => return Flow::Break,
            Stmt::Unsupported("Continue") => return Flow::Continue,
            Stmt::Unsupported("Raise") => return Flow::Return(None),
            Stmt::Unsupported("Delete") => {
                self.lost += 1;
                self.unfollowed |= self.deletes_parts(frame, id);
                frame.change_all();
            }
            Stmt::Unsupported("Import" | "ImportFrom") => {
                self.lost += u32::from(!self.finds_import(frame, id));
                self.bind_here(frame, id);
            }
            Stmt::Unsupported("FunctionDef" | "ClassDef") => self.bind_here(frame, id),
            _ => {}
        }
        Flow::Next
    }

    /// Whether a `del` takes away more than variables: an attribute, or an element.
    fn deletes_parts(&self, frame: &Frame, stmt: StmtId) -> bool {
        let range = frame.code.map().map(|map| map.stmts[stmt]);
        let text = self.sources.text(frame.file);
        let text = range
            .zip(text.as_deref())
            .and_then(|(range, text)| text.get(range.start as usize..range.end as usize));
        text.is_none_or(|text| text.contains(['.', '[']))
    }

    /// Runs an assertion: where it is not known, the author says that it holds.
    fn asserted(&mut self, frame: &mut Frame, claim: Claim) -> Flow {
        let holds = self.claim_holds(frame, claim);
        self.unsettled += u32::from(holds != Some(true));
        match holds == Some(false) && self.note_assertion(frame, claim) {
            true => Flow::Return(None),
            false => Flow::Next,
        }
    }

    /// Binds what `source` has given.
    fn assign_from(&mut self, frame: &mut Frame, target: ExprId, value: &Value, source: ExprId) {
        let open = frame.gives_chosen(value, source);
        if open || !frame.open.is_empty() {
            self.note_open_targets(frame, target, open);
        }
        self.assign(frame, target, value);
    }

    fn note_open_targets(&mut self, frame: &mut Frame, target: ExprId, open: bool) {
        let code = frame.code.clone();
        for name in code.body().names_in(target) {
            frame.note_open(name, open);
        }
    }

    /// Whether what an expression calls returns, where that depends on what is called alone: what
    /// ends the program or the test does not, and what asks for a package may not.
    fn returns(&self, frame: &Frame, expr: ExprId) -> Option<bool> {
        let body = frame.code.body();
        let Expr::Call { callee, args } = &body.exprs[expr] else { return Some(true) };
        if let Expr::Attribute { value, attr } = &body.exprs[*callee]
            && matches!(&body.exprs[*value], Expr::Name(name) if &**name == "self")
        {
            return Some(!matches!(&**attr, "fail" | "skipTest"));
        }
        let scope = Scope { file: frame.file, path: &frame.scope };
        match resolve_expr(self.sources, scope, body, *callee) {
            Resolution::External(path) => {
                let path: Vec<&str> = path.iter().map(|part| &**part).collect();
                if path == ["pytest", "importorskip"] {
                    let package = args.first().map(|arg| &body.exprs[arg.value]);
                    let installed = matches!(package, Some(Expr::Literal(Literal::Str(name)))
                        if is_installed(name));
                    return installed.then_some(true);
                }
                Some(!NEVER_RETURN.contains(&path.as_slice()))
            }
            Resolution::Undefined => Some(!matches!(
                &body.exprs[*callee],
                Expr::Name(name) if matches!(&**name, "exit" | "quit")
            )),
            _ => Some(true),
        }
    }

    /// Whether PyTorch makes a context manager: those take no exceptions.
    fn is_of_torch(&self, frame: &Frame, manager: ExprId) -> bool {
        let body = frame.code.body();
        let scope = Scope { file: frame.file, path: &frame.scope };
        match resolve_expr(self.sources, scope, body, callee(body, manager)) {
            Resolution::External(path) => path.first().is_some_and(|first| &**first == TORCH),
            _ => false,
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
        let conditions = self.doubt.conditions;
        let flow = match iterations(self, frame) {
            Flow::Next | Flow::Continue => self.block(frame, orelse),
            Flow::Break => Flow::Next,
            flow => flow,
        };
        let broken = std::mem::replace(&mut frame.exits.broken, around.0);
        frame.exits.continued = around.1;
        if broken.is_some() {
            self.doubt.rejoin(conditions);
        }
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
        let code = frame.code.clone();
        let finds_imports = |map| {
            let parts = (code.body(), map);
            self.finds_imports(frame.file, parts, body, handlers)
        };
        if code.map().is_some_and(finds_imports) || wait_for_resources(code.body(), handlers) {
            return match self.block(frame, body) {
                Flow::Next => self.block(frame, orelse),
                flow => flow,
            };
        }
        let around = frame.exits.raised.replace(frame.variables.clone());
        let around_doubt = self.doubt;
        let (unsettled, lost) = (self.unsettled, self.lost);
        let mut flow = match handlers {
            [] => self.block(frame, body),
            _ => self.handling(|host| host.block(frame, body)),
        };
        let raised = std::mem::replace(&mut frame.exits.raised, around).unwrap_or_default();
        if frame.exits.raised.is_some() {
            self.add_exit(&mut frame.exits.raised, raised.clone());
        }
        // Assertions that hold raise nothing, nor do expressions whose values are known.
        let raises_nothing = !matches!(flow, Flow::Return(None))
            && self.unsettled == unsettled
            && (self.lost == lost || body.iter().all(|stmt| is_of_asserts(code.body(), stmt)));
        if let Flow::Next = flow {
            flow = self.block(frame, orelse);
        }
        // What is handled does not go on; whether there is anything to handle is not known.
        let doubtful = !matches!(flow, Flow::Return(None));
        if !handlers.is_empty() {
            self.doubt.handled(around_doubt);
        }
        for handler in handlers.iter().filter(|_| !raises_nothing) {
            let after = std::mem::replace(&mut frame.variables, raised.clone());
            if let Some(target) = handler.target {
                self.assign(frame, target, &Value::Unknown);
            }
            let handled = self.doubting(doubtful, |host| host.block(frame, &handler.body));
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
        match (self.block(frame, finally), flow) {
            // What is returned may be what this changes.
            (Flow::Next, Flow::Return(Some(value))) if is_collection(&value) => {
                Flow::Return(Some(Value::Collection))
            }
            (Flow::Next, flow) => flow,
            (other, _) => other,
        }
    }

    /// Runs the body of a `while` as long as its condition is known to hold, and then perhaps.
    fn trips(&mut self, frame: &mut Frame, test: ExprId, body: &[StmtId]) -> Flow {
        let is_endless = matches!(frame.code.body().exprs[test], Expr::Literal(_));
        let trips = if is_endless { MAX_ENDLESS_TRIPS } else { MAX_TRIPS };
        for _ in 0..trips {
            let value = self.expr(frame, test);
            match self.holds(&value) {
                _ if self.doubt.raised => return Flow::Return(None),
                Some(false) => return Flow::Next,
                Some(true) => match self.iteration(frame, body) {
                    Flow::Next => {}
                    flow => return flow,
                },
                None => break,
            }
            if is_endless && (frame.exits.broken.is_some() || frame.exits.may_return()) {
                break;
            }
        }
        let settled = frame.may_be_either(test) || frame.awaits_time(test);
        let doubtful = !settled && !is_endless;
        self.doubting(doubtful, |host| host.perhaps(frame, body))
    }

    /// Runs what runs once, or not, or several times. What holds in each iteration alone is known
    /// in it.
    fn perhaps(&mut self, frame: &mut Frame, body: &[StmtId]) -> Flow {
        let (before, flow) = self.perhaps_running(|host| {
            host.widen(frame, body);
            let before = frame.variables.clone();
            (before, host.iteration(frame, body))
        });
        self.doubt.note_way(&flow);
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
    pub(crate) fn iteration(&mut self, frame: &mut Frame, body: &[StmtId]) -> Flow {
        let conditions = self.doubt.conditions;
        let flow = match self.block(frame, body) {
            Flow::Continue => Flow::Next,
            flow => flow,
        };
        // Where an iteration ended early, the next one begins anew.
        if frame.exits.continued.is_some() && frame.exits.broken.is_none() {
            self.doubt.rejoin(conditions);
        }
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
            self.lost += 1;
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
}

/// Whether a statement does no more than to assert, perhaps under conditions.
fn is_of_asserts(body: &Body, stmt: &StmtId) -> bool {
    match &body.stmts[*stmt] {
        Stmt::Pass | Stmt::Assert { .. } => true,
        Stmt::If { body: then, orelse, .. } => {
            then.iter().chain(orelse).all(|stmt| is_of_asserts(body, stmt))
        }
        _ => false,
    }
}
