//! What is known where several ways through host code meet.

use crate::hir::{Name, StmtId};
use crate::host::code::doubt::Decided;
use crate::host::code::flow::Flow;
use crate::host::code::operators::join;
use crate::host::value::Value;
use crate::host::{Frame, Host, Variables};

impl Host<'_> {
    /// What a value is that is one of two.
    pub(crate) fn one_of(&mut self, first: Value, second: &Value) -> Value {
        self.joined |= first != *second;
        match self.options.one_run {
            true if !matches!(first, Value::Unknown) => first,
            true => second.clone(),
            false => join(&first, second),
        }
    }

    /// What a value is that is one of several.
    pub(crate) fn any_of(&mut self, values: Vec<Value>) -> Value {
        let mut values = values.into_iter();
        let Some(first) = values.next() else { return Value::Unknown };
        values.fold(first, |known, value| self.one_of(known, &value))
    }

    /// Runs both branches of a condition that is not known and joins what they leave.
    pub(crate) fn either(
        &mut self,
        frame: &mut Frame,
        decided: Decided,
        body: impl FnOnce(&mut Self, &mut Frame) -> Flow,
        orelse: impl FnOnce(&mut Self, &mut Frame) -> Flow,
    ) -> Flow {
        let before = frame.variables.clone();
        let doubtful = decided.is_doubtful();
        let first = self.doubting(doubtful, |host| body(host, frame));
        let after_first = std::mem::replace(&mut frame.variables, before);
        let second = self.doubting(doubtful, |host| orelse(host, frame));
        self.doubt.note_way(&first);
        self.doubt.note_way(&second);
        if doubtful {
            match (&first, &second) {
                (Flow::Next, Flow::Next) => {}
                (Flow::Next, Flow::Return(None)) | (Flow::Return(None), Flow::Next) => {
                    self.doubt.pass_guard(decided);
                }
                (Flow::Next, _) | (_, Flow::Next) => self.doubt.begin(false),
                _ => {}
            }
        }
        self.meet(frame, (first, after_first), second)
    }

    /// What follows where the code has ended in `first` with these variables, or in `second` with
    /// those of the frame.
    pub(crate) fn meet(
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
    pub(crate) fn leave(&mut self, frame: &mut Frame, flow: Flow, variables: Variables) {
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

    pub(crate) fn add_exit(&mut self, exit: &mut Option<Variables>, variables: Variables) {
        match exit {
            Some(known) => self.join_variables(known, variables),
            None => *exit = Some(variables),
        }
    }

    /// Forgets what iterations of a loop of unknown length change: a first one is run to see, and
    /// what it launches does not count.
    pub(crate) fn widen(&mut self, frame: &mut Frame, body: &[StmtId]) {
        let code = frame.code.clone();
        let bound = code.body().bound_in(body);
        let carried = |name: &&Name| {
            let known = frame.variables.get(*name);
            known.is_some_and(|value| !matches!(value, Value::Unknown))
        };
        let carried: Vec<&Name> = bound.into_iter().filter(carried).collect();
        if self.options.one_run || carried.is_empty() {
            return;
        }
        let mut trial = frame.clone();
        let (launches, doubt) = (self.launches.clone(), self.doubt);
        self.iteration(&mut trial, body);
        (self.launches, self.doubt) = (launches, doubt);
        for name in carried {
            let Some(before) = frame.variables.get_mut(name) else { continue };
            let after = trial.variables.get(name).unwrap_or(&Value::Unknown);
            if before != after {
                *before = widened(before, after);
                self.joined = true;
            }
        }
    }

    /// Keeps what both hold; in one run, what the first has counts.
    pub(crate) fn join_variables(&mut self, variables: &mut Variables, first: Variables) {
        if self.options.one_run {
            variables.extend(first);
            return;
        }
        let (differ, lost) = join_variables(variables, first);
        self.joined |= differ;
        // What is written through a value that is not known is not seen to be in their memory.
        for id in lost {
            self.note_memory(id);
        }
    }
}

/// What is known in each iteration of a variable that the first one changes from `before` to `after`.
fn widened(before: &Value, after: &Value) -> Value {
    match (before, after) {
        (Value::Int(_), Value::Int(_))
        | (Value::Float(_), Value::Float(_))
        | (Value::Bool(_), Value::Bool(_)) => before.degraded(),
        (Value::Tensor(a), Value::Tensor(b)) if a.dtype == b.dtype => before.degraded(),
        _ => Value::Unknown,
    }
}

/// Keeps what both hold; whether they differ, and the allocations of values that are not known any more.
fn join_variables(variables: &mut Variables, other: Variables) -> (bool, Vec<u32>) {
    let mut differ = false;
    let mut lost = Vec::new();
    variables.retain(|name, _| {
        let known = other.contains_key(name);
        differ |= !known;
        known
    });
    for (name, value) in other {
        match variables.get_mut(&name) {
            Some(known) if *known != value => {
                let joined = join(known, &value);
                if matches!(joined, Value::Unknown) {
                    lost.extend(known.allocations());
                    lost.extend(value.allocations());
                }
                *known = joined;
                differ = true;
            }
            Some(_) => {}
            None => differ = true,
        }
    }
    (differ, lost)
}
