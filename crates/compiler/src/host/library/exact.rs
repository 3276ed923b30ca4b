//! What Python itself knows of host code: the results of its functions, methods and operators on
//! values that are wholly known, and what importing a file leaves in its variables.

use crate::eval::{Arguments, Plain, Python};
use crate::hir::{BinaryOp, MainBlock, Module, Name, statements};
use crate::host::code::arguments::Args;
use crate::host::torch::recast;
use crate::host::value::Value;
use crate::host::{Frame, Host};
use crate::project::ItemRef;
use crate::source::FileId;
use crate::specialization::ConstArg;

/// What a question costs, in expressions evaluated.
const COST: u32 = 10;

impl<'a> Host<'a> {
    fn python(&mut self) -> &mut Python<'a> {
        self.fuel = self.fuel.saturating_sub(COST);
        let sources = self.sources;
        self.python.get_or_insert_with(|| Box::new(Python::new(sources)))
    }

    /// What importing a file leaves in a variable of which an assignment says `assigned`.
    pub(crate) fn as_imported(&mut self, file: FileId, name: &Name, assigned: Value) -> Value {
        let Some(module) = self.sources.module(file) else { return assigned };
        let is_object = matches!(assigned, Value::Object(_));
        if is_object && module.mains.iter().any(|main| recast::recasts(&main.body, name)) {
            return self.left_by(&module, file, name, &assigned);
        }
        let recomputed = statements::is_recomputed(&module, name);
        if !recomputed && assigned.is_known() {
            return assigned;
        }
        match self.python().variable(file, name) {
            Some(value) => Value::of_plain(value),
            None if recomputed => self.left_by(&module, file, name, &assigned),
            None => assigned,
        }
    }

    /// As [`Host::as_imported`], as this interpreter runs the module: what it holds besides
    /// constants, such as configurations, and modules that get another type.
    fn left_by(&mut self, module: &Module, file: FileId, name: &Name, assigned: &Value) -> Value {
        let key = (file, name.clone());
        if let Some(known) = self.left.get(&key) {
            return known.clone();
        }
        self.left.insert(key.clone(), assigned.degraded());
        let (doubt, launches) = (std::mem::take(&mut self.doubt), self.launches.len());
        let concerned = statements::concerned(module, name);
        let runs = |main: &&MainBlock| {
            let is_it = |known: &&MainBlock| std::ptr::eq(*known, *main);
            concerned.iter().any(is_it) || recast::recasts(&main.body, name)
        };
        let mut left =
            self.without_draws(|host| host.run_mains(file, module.mains.iter().filter(runs)));
        self.doubt = doubt;
        self.launches.truncate(launches);
        let left = left.remove(name).unwrap_or_else(|| assigned.degraded());
        self.left.insert(key, left.clone());
        left
    }

    /// A variable of a module that no statement names as its target alone.
    pub(crate) fn bound_by_running(&mut self, frame: &Frame, name: &Name) -> Option<Value> {
        let module = self.sources.module(frame.file)?;
        let binds =
            module.mains.iter().any(|main| !main.is_program && statements::binds(&main.body, name));
        if !binds || self.is_rebound(frame.file, &[], name) {
            return None;
        }
        self.python().variable(frame.file, name).map(Value::of_plain)
    }

    /// A variable of a class.
    pub(crate) fn exact_member(&mut self, class: ItemRef, name: &str) -> Value {
        let member = self.python().member(class, &Name::from(name));
        member.map_or(Value::Unknown, Value::of_plain)
    }

    /// The result of a function of Python of which `known` is known.
    pub(crate) fn exactly_called(&mut self, path: &[Name], args: &Args<'_>, known: Value) -> Value {
        if known.is_known() {
            return known;
        }
        let result = plain_arguments(args).and_then(|args| self.python().call(path, args));
        result.map_or(known, Value::of_plain)
    }

    /// The result of a method that changes nothing.
    pub(crate) fn exact_method(&mut self, receiver: &Value, name: &str, args: &Args<'_>) -> Value {
        let (Some(receiver), Some(args)) = (receiver.to_plain(), plain_arguments(args)) else {
            return Value::Unknown;
        };
        let result = self.python().method(receiver, name, args);
        result.map_or(Value::Unknown, Value::of_plain)
    }

    /// `left op right`.
    pub(crate) fn exact_binary(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Value {
        let (Some(left), Some(right)) = (left.to_plain(), right.to_plain()) else {
            return Value::Unknown;
        };
        self.python().binary(op, left, right).map_or(Value::Unknown, Value::of_plain)
    }

    /// `value[first:end:step]`.
    pub(crate) fn exact_slice(&mut self, value: &Value, bounds: [Option<Value>; 3]) -> Value {
        let Some(value) = value.to_plain() else { return Value::Unknown };
        let mut known = [None, None, None];
        for (known, bound) in known.iter_mut().zip(bounds) {
            if let Some(bound) = bound {
                let Some(bound) = bound.to_plain() else { return Value::Unknown };
                *known = Some(bound);
            }
        }
        self.python().slice(value, known).map_or(Value::Unknown, Value::of_plain)
    }

    /// `f"{value!conversion:format}"`.
    pub(crate) fn exact_format(
        &mut self,
        value: &Value,
        conversion: Option<char>,
        format: &str,
    ) -> Option<String> {
        let value = value.to_plain()?;
        self.python().formatted(value, conversion, format)
    }
}

fn plain_arguments(args: &Args<'_>) -> Option<Arguments> {
    args.0.iter().map(|(name, value)| Some((name.clone(), value.to_plain()?))).collect()
}

impl Value {
    /// Whether nothing in it is open.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Value::Unknown
            | Value::Device
            | Value::Collection
            | Value::Omitted
            | Value::Ints
            | Value::Bool(None)
            | Value::Int(None)
            | Value::Float(None) => false,
            Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
                items.iter().all(Value::is_known)
            }
            Value::Dict(entries) => {
                entries.iter().all(|(key, value)| key.is_known() && value.is_known())
            }
            Value::Constexpr(value) => value.is_known(),
            _ => true,
        }
    }

    fn to_plain(&self) -> Option<Plain> {
        let all = |items: &[Value]| items.iter().map(Value::to_plain).collect::<Option<Vec<_>>>();
        Some(match self {
            Value::Tuple(items) => Plain::Tuple(all(items)?),
            Value::List(items) => Plain::List(all(items)?),
            Value::Record { names, items } => Plain::Record(names.clone(), all(items)?),
            Value::Dict(entries) => {
                let entry =
                    |(key, value): &(Value, Value)| Some((key.to_plain()?, value.to_plain()?));
                Plain::Dict(entries.iter().map(entry).collect::<Option<_>>()?)
            }
            Value::Constexpr(value) => Plain::Constexpr(Box::new(value.to_plain()?)),
            Value::Global(name) => Plain::Builtin(name.clone()),
            Value::Member(_) => return None,
            value => Plain::Const(value.to_const()?),
        })
    }

    fn of_plain(value: Plain) -> Value {
        let all = |items: Vec<Plain>| items.into_iter().map(Value::of_plain).collect();
        match value {
            Plain::Const(ConstArg::Tuple(_)) | Plain::Builtin(_) => Value::Unknown,
            Plain::Const(value) => Value::from_const(&value),
            Plain::Constexpr(value) => Value::Constexpr(Box::new(Value::of_plain(*value))),
            Plain::Tuple(items) => Value::Tuple(all(items)),
            Plain::Record(names, items) => Value::Record { names, items: all(items) },
            Plain::List(items) => Value::List(all(items)),
            Plain::Dict(entries) => {
                let entry = |(key, value)| (Value::of_plain(key), Value::of_plain(value));
                Value::Dict(entries.into_iter().map(entry).collect())
            }
        }
    }
}
