//! Calls of functions of the project: what their parameters get, and what they return.

use std::sync::Arc;

use crate::hir::collections::changed_in;
use crate::hir::{Arg, ArgKind, Expr, Function, Name, Param, ParamKind};
use crate::host::code::arguments::{Args, REST, bound};
use crate::host::code::flow::{Flow, Yielded};
use crate::host::code::frame::{Code, Frame, Variables};
use crate::host::code::wrapped::chooses;
use crate::host::value::changes::is_collection;
use crate::host::value::memory::may_write;
use crate::host::value::{Callable, Value};
use crate::host::{Host, MAX_DEPTH, launch};
use crate::project::{
    ItemRef, Resolution, Scope, function, is_external, item, item_scope, may_be_of_torch,
};
use crate::source::FileId;

/// Decorators of `functools` that call a function once for the same arguments.
const KEEPERS: &[&str] = &["cache", "lru_cache"];

/// Results that are kept of such functions.
const MAX_KEPT: usize = 256;

/// What a function gave that keeps what it gave.
pub(crate) struct KeptResult {
    function: ItemRef,
    args: Vec<(Option<Name>, Value)>,
    result: Value,
}

impl Host<'_> {
    /// Calls a lambda or function value.
    pub(crate) fn call_value(&mut self, callee: &Value, args: &[(Option<Name>, Value)]) -> Value {
        match callee {
            Value::Callable(Callable::Lambda { frame, params, body }) => {
                if self.depth >= MAX_DEPTH {
                    return Value::Unknown;
                }
                let mut frame = Frame::clone(frame);
                let heads: Vec<_> = params.iter().map(|param| (&param.name, param.kind)).collect();
                let given = bound(&heads, args).into_iter();
                for (param, given) in params.iter().zip(given) {
                    let value = given.unwrap_or_else(|| param.default.clone());
                    frame.variables.insert(param.name.clone(), value);
                }
                self.expr(&mut frame, *body)
            }
            Value::Callable(Callable::Closure { frame, at }) => self.call_closure(frame, *at, args),
            Value::Callable(Callable::Apply { class, around }) => {
                self.call_forward((*class, around.clone()), args)
            }
            Value::Callable(Callable::Undecorated(at)) => {
                self.undecorated += 1;
                match function(self.sources, *at) {
                    Some(function) => self.call_within(*at, &function, args),
                    None => Value::Unknown,
                }
            }
            Value::Callable(Callable::Launcher { kernel, grid }) => {
                let launched = (Value::clone(kernel), Value::clone(grid));
                self.launch(launched, (args.to_vec(), true), None)
            }
            Value::Callable(Callable::Partial { callee, args: held }) => {
                self.call_value(callee, &launch::applied(held, args.to_vec()))
            }
            Value::Callable(Callable::Around | Callable::Registrar(_)) => match args {
                [(None, function)] => function.clone(),
                _ => Value::Unknown,
            },
            Value::Callable(Callable::Tuner(tuner)) => self.tune(tuner, args),
            Value::Named(Resolution::Function(at)) => self.call_function(*at, args),
            Value::Global(name) => self.global_call(name, &Args(args)),
            Value::Object(object) => self.call_instance(*object, args),
            Value::Named(Resolution::Class(at)) => self.made_by(*at, args),
            Value::Named(Resolution::External(path)) => {
                self.note_written(&self.reached(may_write(callee, None, &Args(args))));
                self.call_outside(path.clone(), args, true)
            }
            _ => Value::Unknown,
        }
    }

    /// Calls a function of the project with known arguments.
    pub(crate) fn call_function(&mut self, at: ItemRef, args: &[(Option<Name>, Value)]) -> Value {
        let (Some(item), Some(function)) = (item(self.sources, at), function(self.sources, at))
        else {
            return Value::Unknown;
        };
        if args.is_empty()
            && !function.decorators.is_empty()
            && let Some(given) = self.command_arguments(at, &function)
        {
            return self.call_undecorated(at, &function, &given);
        }
        if self.keeps_function(at, &item.scope, &function) {
            let keeps_results = self.keeps_results(at, &item.scope, &function);
            if keeps_results && let Some(known) = self.kept_result(at, args) {
                return known;
            }
            let drops = u32::from(self.records() && self.is_operation(at, &function));
            self.without_gradients += drops;
            let output = self.call_undecorated(at, &function, args);
            self.without_gradients = self.without_gradients.saturating_sub(drops);
            let output = self.differentiable(at, &function, args, output);
            return match keeps_results {
                true => self.keep_result(at, args, output),
                false => output,
            };
        }
        let decorators = self.decorators(at.file, &item.scope, &function);
        if decorators.iter().any(chooses) {
            return Value::Unknown;
        }
        let tells = |(_, value): &(_, Value)| match value {
            Value::Tensor(tensor) => tensor.shape.is_some(),
            _ => false,
        };
        // What a class makes of a function may keep something between calls.
        let is_class = |found: &Resolution| matches!(found, Resolution::Class(_));
        let are_known =
            !args.is_empty() && args.iter().all(is_plain) && !decorators.iter().any(is_class);
        if (are_known || args.iter().any(tells))
            && let Some(result) = self.call_wrapped(at, &function, args)
        {
            return result;
        }
        self.call_handed_on(at, &function, args)
    }

    /// Whether a function is called once for the same arguments.
    fn keeps_results(&mut self, at: ItemRef, scope: &[Name], function: &Arc<Function>) -> bool {
        let keeps = |found: &Resolution| {
            KEEPERS.iter().any(|keeper| is_external(found, &["functools", *keeper]))
        };
        !function.decorators.is_empty()
            && self.decorators(at.file, scope, function).iter().any(keeps)
    }

    /// What a function gave for these arguments, as it is now.
    fn kept_result(&mut self, at: ItemRef, args: &[(Option<Name>, Value)]) -> Option<Value> {
        let is_it = |kept: &&KeptResult| kept.function == at && kept.args == args;
        let known = self.kept_results.iter().find(is_it)?.result.clone();
        Some(self.current(known))
    }

    /// Keeps what a function gives. What callers do to a collection is not followed into what is kept: they add to lists,
    /// and to what is empty, and look into other dicts.
    fn keep_result(&mut self, at: ItemRef, args: &[(Option<Name>, Value)], result: Value) -> Value {
        let is_read = matches!(&result, Value::Dict(entries) if !entries.is_empty());
        let result = match is_collection(&result) && !is_read {
            true => Value::Collection,
            false => result,
        };
        if self.doubt.is_straight() && self.kept_results.len() < MAX_KEPT {
            let kept = KeptResult { function: at, args: args.to_vec(), result: result.clone() };
            self.kept_results.push(kept);
        }
        result
    }

    /// Calls a function that stands in another one, whose variables it sees.
    pub(crate) fn call_closure(
        &mut self,
        around: &Arc<Frame>,
        at: ItemRef,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let Some(function) = function(self.sources, at) else { return Value::Unknown };
        let scope = item_scope(self.sources, at);
        let variables = self.parameters(at.file, &scope, &function, args);
        let mut frame = self.frame_of(at.file, &scope, &function, variables);
        frame.around = Some(Arc::clone(around));
        for (name, value) in &around.variables {
            if !frame.variables.contains_key(name) {
                let value = self.since((around.file, &around.scope), name, value);
                frame.variables.insert(name.clone(), value);
                frame.note_open(name, around.open.contains(name));
            }
        }
        self.body_of(frame, &function)
    }

    /// What the parameters of a function are in a call.
    pub(crate) fn parameters(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        args: &[(Option<Name>, Value)],
    ) -> Variables {
        let heads: Vec<_> = function.params.iter().map(|param| (&param.name, param.kind)).collect();
        let given = function.params.iter().zip(bound(&heads, args));
        given
            .map(|(param, given)| {
                // Here nobody chooses: what the call leaves out is what the function says.
                let value =
                    given.unwrap_or_else(|| match self.left_out(file, scope, function, param) {
                        Value::Omitted => Value::None,
                        value => value,
                    });
                (param.name.clone(), value)
            })
            .collect()
    }

    /// What a function shows of an argument that it is called with. Defaults count: calling
    /// without the argument is a use that the author offers.
    pub(crate) fn unknown_argument(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        param: &Param,
    ) -> Value {
        if param.kind == ParamKind::VarArgs || param.kind == ParamKind::KwArgs {
            return Value::Unknown;
        }
        let default = self.left_out(file, scope, function, param);
        match (default, self.annotated(file, scope, function, param)) {
            (Value::Unknown | Value::Omitted, annotated) if annotated != Value::Unknown => {
                annotated
            }
            (default, _) => default,
        }
    }

    /// What a plain annotation says of an argument.
    fn annotated(
        &mut self,
        file: FileId,
        path: &[Name],
        function: &Function,
        param: &Param,
    ) -> Value {
        let Some(annotation) = param.annotation else { return Value::Unknown };
        let exprs = &function.body.exprs;
        let (name, root) = match &exprs[annotation] {
            Expr::Name(name) => (name, name),
            Expr::Attribute { value, attr } => match &exprs[*value] {
                Expr::Name(root) => (attr, root),
                _ => return Value::Unknown,
            },
            _ => return Value::Unknown,
        };
        match &**name {
            "int" => Value::Int(None),
            "float" => Value::Float(None),
            "bool" => Value::Bool(None),
            "Tensor" if may_be_of_torch(&self.meaning(Scope { file, path }, root)) => {
                Value::tensor(None)
            }
            _ => Value::Unknown,
        }
    }

    /// What a parameter is in a call that leaves it out.
    fn left_out(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        param: &Param,
    ) -> Value {
        let default = param.default.map(|default| {
            let range = function.map.exprs[default];
            self.as_of(file, range, |host| host.head_expr(file, scope, function, default))
        });
        match default {
            Some(Value::None) => Value::Omitted,
            // All calls that leave it out have the same one.
            Some(default)
                if is_collection(&default) && changed_in(&function.body).contains(&&param.name) =>
            {
                Value::Collection
            }
            Some(Value::Bool(_)) if self.options.open_flags => Value::Bool(None),
            default => default.unwrap_or(Value::Unknown),
        }
    }

    /// Arguments in order; `**` of a known dict is spread, and [`REST`] stands for what is not known of
    /// one. The flag is false when something was left out.
    pub(crate) fn arguments(
        &mut self,
        frame: &mut Frame,
        args: &[Arg],
    ) -> (Vec<(Option<Name>, Value)>, bool) {
        let mut values = Vec::new();
        let mut complete = true;
        for arg in args {
            let value = self.expr(frame, arg.value);
            match &arg.kind {
                ArgKind::Positional => values.push((None, value)),
                ArgKind::Keyword(name) => values.push((Some(name.clone()), value)),
                ArgKind::Star => match value.elements() {
                    Some(items) => values.extend(items.into_iter().map(|item| (None, item))),
                    None => complete = false,
                },
                ArgKind::DoubleStar => {
                    let value = self.items_of(&value).map_or(value, Value::Dict);
                    let unknown = vec![(Value::Str(REST.into()), Value::Unknown)];
                    let entries =
                        if let Value::Dict(entries) = value { entries } else { unknown.into() };
                    values.extend(entries.into_iter().map(|(key, value)| match key {
                        Value::Str(name) => (Some(name), value),
                        _ => (Some(REST.into()), Value::Unknown),
                    }));
                }
            }
        }
        (values, complete)
    }

    /// The frame of a function that starts with these variables.
    pub(crate) fn frame_of(
        &self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        variables: Variables,
    ) -> Frame {
        let mut inner: Vec<Name> = scope.to_vec();
        inner.push(function.name.clone());
        let mut frame = Frame::new(file, &inner, Code::Function(function.clone()), variables);
        if self.doubt.chosen {
            frame.open_undetermined();
        }
        frame
    }

    /// Runs a function's body; its value.
    pub(crate) fn body_of(&mut self, frame: Frame, function: &Arc<Function>) -> Value {
        let outer = frame.scope.len().saturating_sub(1);
        let hands_on = self.hands_exceptions_on(frame.file, &frame.scope[..outer], function);
        self.body_with(frame, function, hands_on)
    }

    /// As [`Host::body_of`], where it is known whether exceptions reach what calls the function.
    pub(crate) fn body_with(
        &mut self,
        mut frame: Frame,
        function: &Arc<Function>,
        hands_on: bool,
    ) -> Value {
        if self.depth >= MAX_DEPTH || self.doubt.raised {
            self.cut_short |= !self.doubt.raised;
            return Value::Unknown;
        }
        self.depth += 1;
        let collections = frame.variables.iter().filter(|(_, value)| is_collection(value));
        let collections = collections.map(|(name, value)| (name.clone(), value.clone())).collect();
        let is_apart = frame.around.is_none() && frame.variables.values().all(is_immutable);
        let took_order = self.takes_order;
        let around = self.doubt.enter();
        let is_generator = function.body.yields();
        let outer = frame.scope.len().saturating_sub(1);
        let runs = !is_generator && hands_on;
        // What stands around a generator may change between what it gives.
        let lists = is_generator
            && frame.around.is_none()
            && self.gives_each(frame.file, &frame.scope[..outer], function);
        let casts = self.runs_cast(frame.file, &frame.scope[..outer], function);
        let drops = self.runs_without_gradients(frame.file, &frame.scope[..outer], function);
        self.autocast += u32::from(casts);
        self.without_gradients += u32::from(drops);
        let flow = match runs {
            true => self.block(&mut frame, &function.body.root),
            false => self.perhaps_running(|host| {
                frame.exits.yielded = lists.then(|| Yielded::begin(&host.doubt));
                host.block(&mut frame, &function.body.root)
            }),
        };
        self.autocast -= u32::from(casts);
        self.without_gradients = self.without_gradients.saturating_sub(u32::from(drops));
        self.doubt.leave(around, matches!(flow, Flow::Return(None)), frame.exits.may_return());
        self.depth -= 1;
        let ends = runs && !matches!(flow, Flow::Return(None));
        self.changed = frame.changed_of(function, collections, ends).collect();
        let result = match is_generator {
            true => {
                self.doubt.raised = false;
                let yielded = frame.exits.yielded.take().and_then(|yielded| yielded.all(&flow));
                yielded.map_or(Value::Unknown, Value::List)
            }
            false => self.result(&mut frame, flow),
        };
        // How its tensors lie concerns nobody else.
        if is_apart && is_immutable(&result) {
            self.takes_order = took_order;
        }
        result
    }
}

/// Whether an argument is a known number, text or function.
fn is_plain((_, value): &(Option<Name>, Value)) -> bool {
    match value {
        Value::Int(value) => value.is_some(),
        Value::Float(value) => value.is_some(),
        Value::Bool(value) => value.is_some(),
        value => matches!(value, Value::Str(_) | Value::None | Value::Callable(_)),
    }
}

/// Whether no tensor comes with a value, now or later.
fn is_immutable(value: &Value) -> bool {
    match value {
        Value::Tuple(items) => items.iter().all(is_immutable),
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => true,
        Value::DType(_) | Value::TorchDType(_) | Value::Named(_) => true,
        _ => false,
    }
}
