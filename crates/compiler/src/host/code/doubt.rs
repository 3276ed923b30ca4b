//! Whether code runs at all: conditions that have one outcome which is not known, and exceptions.
//!
//! A condition on what callers choose, as on an argument of which nothing is known or on the numbers in
//! a tensor, may turn out either way, and what stands under it is meant to run. One on anything else,
//! as on the platform or on what a library says of a size, has one outcome: what stands under it may be
//! code that never runs, and then nothing about it is a mistake. Where one of its outcomes ends the
//! program by an exception which nothing takes, the author says that it has the other.

use crate::hir::{Expr, ExprId, Name};
use crate::host::code::flow::Flow;
use crate::host::value::Value;
use crate::host::{Frame, Host};
use crate::project::{Resolution, Scope};

/// Methods and functions that ask a tensor for its numbers.
const READS: &[&str] =
    &["all", "allclose", "any", "count_nonzero", "equal", "item", "max", "min", "sum", "tolist"];

/// Functions of PyTorch that tell in what regions of callers the code runs.
const REGIONS: &[&str] = &[
    "is_autocast_enabled",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "is_grad_enabled",
    "is_inference_mode_enabled",
];

/// Attributes of a tensor, and of the context of an `autograd.Function`, that say whether gradients are wanted.
const WANTS_GRADIENT: &[&str] = &["grad", "needs_input_grad", "requires_grad"];

/// Functions of `time` that tell how late it is.
const CLOCKS: &[&str] = &["monotonic", "perf_counter", "perf_counter_ns", "time", "time_ns"];

/// What tells where a tensor or a program is.
const DEVICES: &[&str] = &["device", "is_available", "is_cpu", "is_cuda", "is_xpu"];

/// Who decides a condition that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decided {
    /// Callers: it may turn out either way.
    ByCallers,
    /// What the code does not show: it has one outcome.
    Settled,
    /// The device: what is on another one than the code is for may never get further.
    ByDevice,
}

impl Decided {
    /// Whether what stands under it may never run.
    pub(crate) fn is_doubtful(self) -> bool {
        self != Decided::ByCallers
    }
}

/// What is known of whether the running code runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Doubt {
    /// Conditions with a settled outcome that is not known, under which the code stands.
    pub(crate) conditions: u32,
    /// Whether the arguments of the function that is called are what callers choose, where they are
    /// not known.
    pub(crate) chosen: bool,
    /// Whether an exception is on its way.
    pub(crate) raised: bool,
    /// Whether the running function may have raised one under such a condition, to a handler.
    may_raise: bool,
    /// Handlers of exceptions around the code.
    handlers: u32,
    /// Whether what begins the run is known whole, so that it runs as it stands.
    pub(crate) is_whole: bool,
    /// Conditions of any kind that are not known, under which the code stands, and handlers of
    /// exceptions around it.
    open: u32,
    /// Whether the running function may have ended before.
    left: bool,
    /// Whether the run may have ended before by an exception.
    ended: bool,
    /// Whether the run follows more than what runs.
    more: bool,
}

impl Doubt {
    /// That of a function which is called with what callers choose.
    pub(crate) fn of_entry() -> Doubt {
        Doubt { chosen: true, ..Doubt::default() }
    }

    /// That of a program, and of a function that takes nothing.
    pub(crate) fn of_whole() -> Doubt {
        Doubt { is_whole: true, ..Doubt::default() }
    }

    /// Whether the code runs for certain.
    pub(crate) fn is_none(&self) -> bool {
        self.is_whole && self.is_sure()
    }

    /// Whether the code runs for certain where what began the run does.
    pub(crate) fn is_sure(&self) -> bool {
        self.is_straight() && !self.ended
    }

    /// Whether the code has run where the program comes to what follows.
    pub(crate) fn is_straight(&self) -> bool {
        self.open == 0 && !self.left && !self.more && !self.raised
    }

    /// Whether the code has run where anything follows: an exception that nothing takes ends all.
    pub(crate) fn has_run(&self) -> bool {
        self.is_straight() && !(self.ended && self.has_handlers())
    }

    /// Whether an exception would be handled.
    pub(crate) fn has_handlers(&self) -> bool {
        self.handlers > 0
    }

    /// Whether nothing keeps the code from running that did not where `other` was.
    pub(crate) fn is_as_sure_as(&self, other: &Doubt) -> bool {
        self.open <= other.open
            && self.left <= other.left
            && self.ended <= other.ended
            && self.more <= other.more
            && !self.raised
    }

    /// Notes that a condition which is not known leads to code that ends so.
    pub(crate) fn note_way(&mut self, flow: &Flow) {
        match flow {
            Flow::Next => {}
            Flow::Return(None) => self.ended = true,
            _ => self.left = true,
        }
    }

    /// Notes that more is followed than what runs.
    pub(crate) fn note_more(&mut self) {
        self.more = true;
    }

    /// Begins a function; what it was around it.
    pub(crate) fn enter(&mut self) -> Doubt {
        let around = *self;
        self.may_raise = false;
        self.chosen = false;
        self.open += u32::from(self.left);
        self.left = false;
        around
    }

    /// Ends a function whose last statement `raises`, and which may have ended before it by a
    /// `return`. Exceptions go on in what called it.
    pub(crate) fn leave(&mut self, around: Doubt, raises: bool, may_return: bool) {
        let raised = raises && !may_return;
        let doubtful = self.conditions > around.conditions;
        let may_raise = self.may_raise || (raises && may_return && doubtful && self.handlers > 0);
        *self = Doubt {
            conditions: around.conditions + u32::from(may_raise),
            may_raise: around.may_raise || may_raise,
            raised,
            ended: self.ended || (raises && may_return),
            more: self.more,
            ..around
        };
    }

    /// Ends what `break` and `continue` leave: other ways lead here as well. There were `before`
    /// conditions where it began.
    pub(crate) fn rejoin(&mut self, before: u32) {
        if !self.may_raise {
            self.conditions = before;
        }
    }

    /// Exceptions go no further: a handler takes them. It was this before the code that may raise.
    pub(crate) fn handled(&mut self, before: Doubt) {
        self.may_raise = before.may_raise;
        self.ended = before.ended;
        self.more = before.more;
    }

    /// What follows runs if a condition with a settled outcome was met; else there was an exception
    /// or another way out.
    pub(crate) fn begin(&mut self, by_exception: bool) {
        self.conditions += 1;
        self.may_raise |= by_exception;
        self.ended |= by_exception;
    }

    /// What follows runs if a condition with a settled outcome did not raise an exception: where
    /// nothing takes that, the author says so.
    pub(crate) fn pass_guard(&mut self, decided: Decided) {
        if self.handlers > 0 || decided == Decided::ByDevice {
            self.begin(true);
        }
    }
}

impl Frame {
    /// Takes arguments that are not known for what callers choose.
    pub(crate) fn open_undetermined(&mut self) {
        let undetermined = self.variables.iter().filter(|(_, value)| !is_determined(value));
        self.open = undetermined.map(|(name, _)| name.clone()).collect();
    }

    /// Whether an expression depends on what callers choose.
    pub(crate) fn is_open(&self, id: ExprId) -> bool {
        if self.open.is_empty() {
            return false;
        }
        match &self.code.body().exprs[id] {
            Expr::Name(name) => self.open.contains(name),
            expr => {
                let mut open = false;
                expr.for_each_child(|child| open |= self.is_open(child));
                open
            }
        }
    }

    /// Whether a condition that is not known may turn out either way.
    pub(crate) fn may_be_either(&self, test: ExprId) -> bool {
        self.is_open(test) || self.asks_a_tensor(test)
    }

    /// Whether a condition compares how late it is: a loop that goes on until so much time has passed runs
    /// at least once.
    pub(crate) fn awaits_time(&self, test: ExprId) -> bool {
        let exprs = &self.code.body().exprs;
        matches!(exprs[test], Expr::Compare { .. }) && self.asks_a_clock(test)
    }

    fn asks_a_clock(&self, id: ExprId) -> bool {
        let exprs = &self.code.body().exprs;
        let mut asks = match &exprs[id] {
            Expr::Call { callee, .. } => match &exprs[*callee] {
                Expr::Attribute { value, attr } => {
                    exprs[*value].is_name("time") && CLOCKS.contains(&&**attr)
                }
                Expr::Name(name) => CLOCKS.contains(&&**name),
                _ => false,
            },
            _ => false,
        };
        exprs[id].for_each_child(|child| asks |= self.asks_a_clock(child));
        asks
    }

    /// Who decides a condition that is not known.
    pub(crate) fn decided(&self, test: ExprId) -> Decided {
        match self.may_be_either(test) {
            true => Decided::ByCallers,
            false if self.asks_for_device(test) => Decided::ByDevice,
            false => Decided::Settled,
        }
    }

    fn asks_for_device(&self, id: ExprId) -> bool {
        let exprs = &self.code.body().exprs;
        let mut asks =
            matches!(&exprs[id], Expr::Attribute { attr, .. } if DEVICES.contains(&&**attr));
        exprs[id].for_each_child(|child| asks |= self.asks_for_device(child));
        asks
    }

    /// Whether an expression asks a tensor for what callers choose: its numbers, or whether its gradient
    /// is wanted.
    fn asks_a_tensor(&self, id: ExprId) -> bool {
        let exprs = &self.code.body().exprs;
        let asks = match &exprs[id] {
            Expr::Call { callee, .. } => match &exprs[*callee] {
                Expr::Attribute { attr, .. } => {
                    READS.contains(&&**attr) || REGIONS.contains(&&**attr)
                }
                _ => false,
            },
            Expr::Attribute { attr, .. } => WANTS_GRADIENT.contains(&&**attr),
            _ => false,
        };
        let mut found = asks;
        exprs[id].for_each_child(|child| found |= self.asks_a_tensor(child));
        found
    }

    /// Whether what an expression gave, of which not all is known, is what callers choose.
    pub(crate) fn gives_chosen(&self, value: &Value, source: ExprId) -> bool {
        self.is_open(source) || !is_determined(value) && self.asks_a_tensor(source)
    }

    /// Notes whether a variable holds what callers choose now.
    pub(crate) fn note_open(&mut self, name: &Name, open: bool) {
        match open {
            true => self.open.insert(name.clone()),
            false => self.open.remove(name),
        };
    }
}

impl Host<'_> {
    /// Who decides a condition that is not known. One on whether a package is installed that is no part of
    /// the project has either outcome somewhere.
    pub(crate) fn decided(&mut self, frame: &Frame, test: ExprId) -> Decided {
        match frame.decided(test) {
            Decided::Settled if self.asks_for_package(frame, test) => Decided::ByCallers,
            decided => decided,
        }
    }

    fn asks_for_package(&mut self, frame: &Frame, id: ExprId) -> bool {
        let exprs = &frame.code.body().exprs;
        let mut asks = match &exprs[id] {
            Expr::Name(name) if !frame.variables.contains_key(name) => {
                let scope = Scope { file: frame.file, path: &frame.scope };
                match self.meaning(scope, name) {
                    Resolution::Constant(at) => !self.other_outcomes(at).is_empty(),
                    _ => false,
                }
            }
            _ => false,
        };
        exprs[id].for_each_child(|child| asks = asks || self.asks_for_package(frame, child));
        asks
    }

    /// Runs what stands under a condition that is not known.
    pub(crate) fn doubting<T>(&mut self, doubtful: bool, code: impl FnOnce(&mut Self) -> T) -> T {
        self.doubt.conditions += u32::from(doubtful);
        let result = self.perhaps_running(code);
        self.doubt.conditions = self.doubt.conditions.saturating_sub(u32::from(doubtful));
        result
    }

    /// Runs code whose exceptions handlers take.
    pub(crate) fn handling<T>(&mut self, code: impl FnOnce(&mut Self) -> T) -> T {
        self.doubt.handlers += 1;
        let result = self.perhaps_running(code);
        self.doubt.handlers = self.doubt.handlers.saturating_sub(1);
        result
    }

    /// Runs what may not run, or may raise an exception that is taken.
    pub(crate) fn perhaps_running<T>(&mut self, code: impl FnOnce(&mut Self) -> T) -> T {
        self.doubt.open += 1;
        let result = code(self);
        self.doubt.open = self.doubt.open.saturating_sub(1);
        result
    }
}

/// Whether a value leaves nothing to choose.
fn is_determined(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.shape.is_some(),
        Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
            items.iter().all(is_determined)
        }
        Value::Callable(_) | Value::Named(_) | Value::Config(_) => true,
        value => value.to_const().is_some(),
    }
}
