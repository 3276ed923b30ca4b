//! Functions of Python and PyTorch that apply a function to what they are given: `sorted` by a key,
//! `filter`, `reduce`, `checkpoint`, `MethodType`.

use crate::builtins::TORCH;
use crate::hir::{Arg, BinaryOp, CompareOp, ExprId, Name};
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::value::{Callable, Value};
use crate::host::{Frame, Host};
use crate::project::Resolution;

/// Parameters of `torch.utils.checkpoint.checkpoint` itself.
const OF_CHECKPOINT: &[&str] = &[
    "context_fn",
    "debug",
    "determinism_check",
    "early_stop",
    "preserve_rng_state",
    "use_reentrant",
];

/// What runs functions in other threads or processes.
const EXECUTOR: &[&str] = &["concurrent", "futures", "Executor"];

impl Host<'_> {
    /// Elements in the order of what a function makes of them, if that is known.
    pub(crate) fn sorted(&mut self, items: &Value, key: &Value, reverse: Option<&Value>) -> Value {
        let reverse = reverse.map_or(Some(false), operators::truth);
        let (Some(items), Some(reverse)) = (items.elements(), reverse) else {
            return Value::Unknown;
        };
        let mut sorted: Vec<(Value, Value)> = Vec::new();
        for item in items {
            let key = self.call_value(key, &[(None, item.clone())]);
            let mut at = sorted.len();
            while at > 0 {
                let (this, before) = (&key, &sorted[at - 1].0);
                let (less, than) = if reverse { (before, this) } else { (this, before) };
                match operators::compare(CompareOp::Lt, less, than) {
                    Some(true) => at -= 1,
                    Some(false) => break,
                    None => return Value::Unknown,
                }
            }
            sorted.insert(at, (key, item));
        }
        Value::List(sorted.into_iter().map(|(_, item)| item).collect())
    }

    /// What collections in collections hold, each part as a function makes it.
    fn mapped_tree(&mut self, function: &Value, tree: &Value) -> Value {
        match tree {
            Value::Tuple(items) => {
                Value::Tuple(items.iter().map(|item| self.mapped_tree(function, item)).collect())
            }
            Value::List(items) => {
                Value::List(items.iter().map(|item| self.mapped_tree(function, item)).collect())
            }
            Value::Dict(entries) => {
                let entry = |(key, value): &(Value, Value)| {
                    (key.clone(), self.mapped_tree(function, value))
                };
                Value::Dict(entries.iter().map(entry).collect())
            }
            leaf => self.call_value(function, &[(None, leaf.clone())]),
        }
    }

    /// What a function outside of the project gives that calls one of the project; `None` for others.
    pub(crate) fn applied_by(&mut self, path: &[Name], args: &Args<'_>) -> Option<Value> {
        let path: Vec<&str> = path.iter().map(|name| &**name).collect();
        match path.as_slice() {
            ["types", "MethodType"] => {
                let (callee, receiver) = (args.get(0, "func")?, args.get(1, "obj")?);
                Some(method_of(receiver, callee))
            }
            // Without arguments everything has its default.
            ["fire", "Fire"] | ["tyro", "cli"] => Some(self.call_value(args.get(0, "f")?, &[])),
            ["hypothesis", "assume"] => {
                self.doubt.raised |= operators::truth(args.get(0, "condition")?) == Some(false);
                Some(Value::Bool(Some(true)))
            }
            // The first of the processes.
            [TORCH, "multiprocessing", "spawn"] => {
                let first = [(None, Value::Int(Some(0)))].into_iter();
                let given = args.get(1, "args").map_or(Some(Vec::new()), Value::elements)?;
                let given = first.chain(given.into_iter().map(|value| (None, value)));
                Some(self.call_value(args.get(0, "fn")?, &given.collect::<Vec<_>>()))
            }
            ["concurrent", "futures", "ThreadPoolExecutor" | "ProcessPoolExecutor"] => {
                let executor = EXECUTOR.iter().copied().map(Name::from).collect();
                Some(Value::Named(Resolution::External(executor)))
            }
            // Whatever it does besides, it does what it is given.
            ["concurrent", "futures", "Executor", "submit"] => {
                let ((_, function), given) = args.0.split_first()?;
                self.call_value(function, given);
                Some(Value::Unknown)
            }
            ["concurrent", "futures", "Executor", "map"] => {
                let [function, items] = args.positional()[..] else { return None };
                let results = items.elements()?.into_iter();
                let results = results.map(|item| self.call_value(function, &[(None, item)]));
                Some(Value::List(results.collect()))
            }
            // A thread is kept as the call that it makes.
            ["threading", "Thread"]
            | [TORCH, "multiprocessing", "Process"]
            | ["multiprocessing", .., "Process"] => {
                let (callee, given) = (args.get(1, "target")?, args.get(3, "args"));
                let given = given.map_or(Some(Vec::new()), Value::elements)?;
                let named = match args.get(4, "kwargs") {
                    None => Vec::new(),
                    Some(Value::Dict(named)) => named.to_vec(),
                    Some(_) => return None,
                };
                let name = |key: Value| match key {
                    Value::Str(name) => Some(name),
                    _ => None,
                };
                let given = given.into_iter().map(|value| (None, value));
                let given = given.chain(named.into_iter().map(|(key, value)| (name(key), value)));
                Some(Value::Callable(Callable::Partial {
                    callee: Box::new(callee.clone()),
                    args: given.collect(),
                }))
            }
            ["operator", name] => {
                let op = BinaryOp::of_method(name.trim_end_matches('_'))?;
                let [left, right] = args.positional()[..] else { return None };
                Some(self.operated(op, left, right))
            }
            [TORCH, "utils", "_pytree" | "pytree", "tree_map"] => {
                let (function, tree) = (args.get(0, "func")?, args.get(1, "tree")?);
                (args.positional().len() <= 2).then(|| self.mapped_tree(function, tree))
            }
            ["functools", "reduce"] => self.reduced(args),
            ["itertools", "starmap"] => {
                let (function, items) = (args.get(0, "function")?, args.get(1, "iterable")?);
                let given: Option<Vec<_>> = items.elements()?.iter().map(Value::elements).collect();
                let results = given?.into_iter().map(|given| {
                    let given: Vec<_> = given.into_iter().map(|item| (None, item)).collect();
                    self.call_value(function, &given)
                });
                Some(Value::List(results.collect()))
            }
            [TORCH, "utils", "checkpoint", "checkpoint"] => {
                let ((_, function), given) = args.0.split_first()?;
                let is_own = |name: &Option<Name>| {
                    name.as_ref().is_none_or(|name| !OF_CHECKPOINT.contains(&&**name))
                };
                let given: Vec<_> =
                    given.iter().filter(|(name, _)| is_own(name)).cloned().collect();
                Some(self.call_value(function, &given))
            }
            _ => None,
        }
    }

    /// What `functools.reduce(function, items, initial)` gives.
    fn reduced(&mut self, args: &Args<'_>) -> Option<Value> {
        let (function, items) = (args.get(0, "function")?, args.get(1, "iterable")?.elements()?);
        let mut items = items.into_iter();
        let first = args.get(2, "initial").cloned().or_else(|| items.next())?;
        Some(
            items.fold(first, |result, item| {
                self.call_value(function, &[(None, result), (None, item)])
            }),
        )
    }

    /// What `next(iterator, default)` takes out of the iterator that a variable holds; `None` for other
    /// calls.
    pub(crate) fn next_item(
        &mut self,
        frame: &mut Frame,
        callee: ExprId,
        iterator: ExprId,
        rest: &[Arg],
    ) -> Option<Value> {
        let code = frame.code.clone();
        let exprs = &code.body().exprs;
        if exprs[callee].as_name().is_none_or(|name| &**name != "next")
            || exprs[iterator].as_name().is_none()
            || !matches!(self.expr(frame, callee), Value::Global(_))
        {
            return None;
        }
        let Value::List(items) = self.expr(frame, iterator) else { return None };
        let Some((first, others)) = items.split_first() else {
            return Some(match rest {
                [default] => self.expr(frame, default.value),
                _ => Value::Unknown,
            });
        };
        self.change_collection(frame, iterator, Value::List(others.to_vec()));
        Some(first.clone())
    }

    /// Elements that are not known to be filtered out.
    pub(crate) fn filter(&mut self, function: &Value, items: &Value) -> Value {
        let Some(mut items) = items.elements() else { return Value::Unknown };
        items.retain(|item| {
            let kept = match function {
                Value::None => item.clone(),
                function => self.call_value(function, &[(None, item.clone())]),
            };
            let kept = operators::truth(&kept);
            if kept.is_none() {
                self.doubt.note_more();
            }
            kept != Some(false)
        });
        Value::List(items)
    }
}

/// What calls a function with a receiver first.
pub(crate) fn method_of(receiver: &Value, callee: &Value) -> Value {
    let args = vec![(None, receiver.clone())];
    Value::Callable(Callable::Partial { callee: Box::new(callee.clone()), args })
}

/// True for what runs functions in other threads or processes.
pub(crate) fn is_executor(path: &[Name]) -> bool {
    path.iter().map(|name| &**name).eq(EXECUTOR.iter().copied())
}

/// True for a function of the project.
pub(crate) fn is_own(function: Option<&Value>) -> bool {
    matches!(function, Some(Value::Callable(_) | Value::Named(Resolution::Function(_))))
}
