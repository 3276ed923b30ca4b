//! `match` in host code: which cases may take a value, and what their patterns bind.

use crate::hir::{Case, CompareOp, Pattern};
use crate::host::code::doubt::Decided;
use crate::host::code::flow::Flow;
use crate::host::code::operators::{self, truth};
use crate::host::value::Value;
use crate::host::value::number::as_number;
use crate::host::{Frame, Host};

impl Host<'_> {
    /// Runs the first of the cases whose pattern takes the subject.
    pub(crate) fn cases(
        &mut self,
        frame: &mut Frame,
        subject: (&Value, Decided),
        cases: &[Case],
    ) -> Flow {
        let (value, decided) = subject;
        let Some((case, rest)) = cases.split_first() else { return Flow::Next };
        let mut taken = self.takes(frame, &case.pattern, value);
        if let (Some(guard), Some(true) | None) = (case.guard, taken) {
            let guard = truth(&self.expr(frame, guard));
            taken = taken.and(guard).filter(|_| guard.is_some());
            taken = if guard == Some(false) { Some(false) } else { taken };
        }
        match taken {
            Some(true) => self.block(frame, &case.body),
            Some(false) => self.cases(frame, subject, rest),
            None => self.either(
                frame,
                decided,
                |host, frame| host.block(frame, &case.body),
                |host, frame| host.cases(frame, subject, rest),
            ),
        }
    }

    /// Whether a pattern takes a value, if that is known; binds its names.
    fn takes(&mut self, frame: &mut Frame, pattern: &Pattern, value: &Value) -> Option<bool> {
        match pattern {
            Pattern::Value(known) => {
                let known = self.expr(frame, *known);
                operators::compare(CompareOp::Eq, value, &known)
            }
            Pattern::Capture(target) => {
                target.iter().for_each(|target| self.assign(frame, *target, value));
                Some(true)
            }
            Pattern::Or(patterns) => {
                let mut taken = Some(false);
                for pattern in patterns {
                    match self.takes(frame, pattern, value) {
                        Some(true) if taken == Some(false) => return Some(true),
                        Some(false) => {}
                        _ => taken = None,
                    }
                }
                taken
            }
            Pattern::Sequence(patterns) => {
                let items = match value {
                    Value::Tuple(items) | Value::List(items) => items.clone(),
                    value => {
                        let other = matches!(value, Value::Str(_)) || as_number(value).is_some();
                        for target in pattern.targets() {
                            self.assign(frame, target, &Value::Unknown);
                        }
                        return other.then_some(false);
                    }
                };
                if items.len() != patterns.len() {
                    return Some(false);
                }
                let mut taken = Some(true);
                for (pattern, item) in patterns.iter().zip(&items) {
                    match self.takes(frame, pattern, item) {
                        Some(true) => {}
                        Some(false) => return Some(false),
                        None => taken = None,
                    }
                }
                taken
            }
            Pattern::As(pattern, target) => {
                let taken = self.takes(frame, pattern, value);
                self.assign(frame, *target, value);
                taken
            }
            Pattern::Other(targets) => {
                targets.iter().for_each(|target| self.assign(frame, *target, &Value::Unknown));
                None
            }
        }
    }
}
