//! Calls in host code.

use std::sync::Arc;

use super::number::as_number;
use super::tensor::{self, Args};
use super::value::{Callable, Storage, Tensor, Value};
use super::{Frame, Host, collections, launch, made, operators, rebound, views};
use crate::builtins::TORCH;
use crate::hir::{Arg, BinaryOp, Body, CompareOp, Expr, ExprId, Name, ParamKind};
use crate::project::installation::{self, CURRENT_TARGET, Fact};
use crate::project::{self, ItemRef, Resolution};
use crate::source::{FileId, FileRange};
use crate::specialization::TupleNames;
use crate::specialization::config::Config;
use crate::specialization::contents::Contents;

/// A `range` longer than this is not unrolled.
const MAX_RANGE: i128 = 4096;

/// Functions of Python whose results hold what they are given.
const CONTAINERS: &[&str] = &["dict", "enumerate", "filter", "list", "map", "tuple", "zip"];

impl Host<'_> {
    pub(super) fn call(&mut self, frame: &mut Frame, callee: ExprId, args: &[Arg]) -> Value {
        let (code, called, given) = (frame.code.clone(), callee, args);
        if let Expr::Subscript { value, index } = code.body().exprs[callee] {
            return self.call_subscript(frame, (callee, value, index), args);
        }
        // A scenario's functions are its own, whatever the module calls by their names.
        if let Expr::Name(name) = &code.body().exprs[callee]
            && frame.scenario
            && !frame.variables.contains_key(name)
        {
            let (values, _) = self.arguments(frame, args);
            if let Some(value) = self.scenario_call(frame.file, name, &Args(&values)) {
                return value;
            }
        }
        let method = match &code.body().exprs[callee] {
            Expr::Attribute { value, attr } => Some((*value, attr.clone())),
            _ => None,
        };
        if let Some((kernel, attr)) = &method
            && matches!(&**attr, "run" | "warmup")
            && let kernel_value = self.kernel_value(frame, *kernel)
            && kernel_value.is_kernel()
        {
            return self.launch_by_method(frame, (*kernel, kernel_value), attr, args);
        }
        if let Some((object, attr)) = &method
            && is_super(code.body(), *object)
        {
            let (values, _) = self.arguments(frame, args);
            return self.call_super(frame, attr, &values);
        }
        let (receiver, callee) = match &method {
            Some((value, attr)) => match self.expr(frame, *value) {
                Value::Named(base) => {
                    let member = self.member(&base, attr);
                    (Some(Value::Named(base)), member)
                }
                receiver => (Some(receiver), Value::Unknown),
            },
            None => (None, self.expr(frame, callee)),
        };
        let given_values = self.arguments(frame, args);
        let place = frame.call_place(called, given);
        self.changed.clear();
        let chosen = frame.is_open(called) || given.iter().any(|arg| frame.is_open(arg.value));
        let around = std::mem::replace(&mut self.doubt.chosen, chosen);
        let result = self.call_with(frame, (callee, receiver, method), given_values, place);
        self.doubt.chosen = around;
        self.change_arguments(frame, given);
        result
    }

    /// Calls what a callee is, or the method of a receiver, with evaluated arguments.
    pub(super) fn call_with(
        &mut self,
        frame: &mut Frame,
        called: (Value, Option<Value>, Option<(ExprId, Name)>),
        given: launch::Given,
        place: Option<FileRange>,
    ) -> Value {
        let complete = given.1;
        match self.call_given(frame, called, given, place) {
            // Arguments that were left out may be sizes.
            Value::Tensor(tensor) if !complete => Value::tensor(tensor.dtype.as_deref()),
            result => result,
        }
    }

    fn call_given(
        &mut self,
        frame: &mut Frame,
        (callee, receiver, method): (Value, Option<Value>, Option<(ExprId, Name)>),
        (values, complete): launch::Given,
        place: Option<FileRange>,
    ) -> Value {
        let holds = match &callee {
            Value::Named(Resolution::Triton(_) | Resolution::External(_)) => false,
            Value::Global(name) => CONTAINERS.contains(&&**name),
            _ => !matches!(receiver, Some(Value::Tensor(_))),
        };
        let plainly = |(name, value): (Option<Name>, Value)| (name, value.plainly());
        let values = match holds {
            true => values,
            false => values.into_iter().map(plainly).collect(),
        };
        let args = Args(&values);
        let written = may_write(&callee, receiver.as_ref(), &args);
        self.note_written(frame, &written);
        match (callee, receiver, method) {
            (Value::Named(Resolution::Triton(path)), ..)
                if path.starts_with("testing.do_bench") =>
            {
                match args.positional().first() {
                    Some(function) => self.call_value(function, &[]),
                    None => Value::Unknown,
                }
            }
            (Value::Named(Resolution::Triton(path)), ..) if &*path == CURRENT_TARGET => {
                let target = Value::of_fact(&Fact::Target, self.sources.capability());
                target.unwrap_or(Value::Unknown)
            }
            (Value::Named(Resolution::Triton(path)), ..) => match triton_call(&path, &args) {
                Value::Config(config) => Value::Config(Box::new(Config { at: place, ..*config })),
                value => value,
            },
            (Value::Named(Resolution::External(path)), ..)
                if path.iter().map(|name| &**name).eq(["argparse", "ArgumentParser"]) =>
            {
                self.object()
            }
            (Value::Named(Resolution::External(path)), ..) => {
                let result = external_call(&path, &args, self.sources.capability());
                let result = self.exactly_called(&path, &args, result);
                let contents =
                    path.last().map_or(Contents::Unknown, |name| made::by_torch(name, &args));
                self.allocate(result, contents)
            }
            (Value::Named(Resolution::Class(at)), ..) if complete => {
                self.record(at, &args).unwrap_or_else(|| self.instance(at, &values))
            }
            (Value::Object(object), ..) if complete => self.call_instance(object, &values),
            (Value::Global(name), ..) => self.global_call(&name, &args),
            (Value::Callable(Callable::Launcher { kernel, grid }), ..) => {
                self.launch((*kernel, *grid), (values, complete), place)
            }
            (Value::Callable(Callable::Partial { callee, args: held }), ..) => {
                let given = launch::applied(&held, values);
                self.call_with(frame, (*callee, None, None), (given, complete), place)
            }
            (Value::Named(Resolution::Function(at)), ..)
                if complete && self.lacks_arguments(at, &values) =>
            {
                self.doubt.raised = true;
                Value::Unknown
            }
            (callee @ (Value::Callable(_) | Value::Named(Resolution::Function(_))), ..)
                if complete =>
            {
                self.call_value(&callee, &values)
            }
            (Value::OneOf(callees), ..) => {
                let mut raised = true;
                let call = |callee| {
                    let given = (values.clone(), complete);
                    let result = self.call_with(frame, (callee, None, None), given, place);
                    raised &= std::mem::take(&mut self.doubt.raised);
                    result
                };
                let results: Vec<Value> = callees.into_iter().map(call).collect();
                self.doubt.raised = raised;
                self.any_of(results)
            }
            (_, Some(Value::Object(object)), Some((_, attr))) => {
                self.object_method(object, &attr, &args)
            }
            (_, Some(receiver), Some((value, attr))) => {
                self.method_call(frame, &receiver, value, &attr, &args)
            }
            _ => Value::Unknown,
        }
    }

    /// Whether a call of a function of a module gives a parameter nothing that needs something.
    fn lacks_arguments(&self, at: ItemRef, args: &[(Option<Name>, Value)]) -> bool {
        let Some(function) = project::function(self.sources, at) else { return false };
        let scope = project::item_scope(self.sources, at);
        let keeps_arguments = |decorator: &Resolution| match decorator {
            Resolution::External(path) => path.first().is_some_and(|first| &**first == TORCH),
            _ => false,
        };
        let decorators = self.decorators(at.file, &scope, &function);
        let is_plain = scope.is_empty() && decorators.iter().all(keeps_arguments);
        let params: Vec<_> =
            function.params.iter().map(|param| (&param.name, param.kind)).collect();
        let given = bound(&params, args);
        let mut needed = function.params.iter().zip(given);
        is_plain && needed.any(|(param, given)| param.default.is_none() && given.is_none())
    }

    /// An instance of a named tuple; `None` for other classes.
    fn record(&mut self, class: ItemRef, args: &Args<'_>) -> Option<Value> {
        let found = project::class(self.sources, class)?;
        let fields = project::named_tuple_fields(&found)?;
        let names: Vec<Name> = fields.iter().map(|(name, ..)| name.clone()).collect();
        let scope = project::item_scope(self.sources, class);
        let code = (found.body.clone(), Arc::new(found.map.clone()));
        let items = fields.iter().enumerate().map(|(at, (name, _, default))| {
            match (args.get(at, name), default) {
                (Some(value), _) => value.clone(),
                (None, Some(default)) => {
                    self.module_expr(class.file, &scope, (&code.0, &code.1), *default)
                }
                (None, None) => Value::Unknown,
            }
        });
        let items = items.collect();
        let names = Arc::new(TupleNames { class: found.name.clone(), fields: names });
        Some(Value::Record { names, items })
    }

    /// Notes that host code may have written these allocations, now or in between launches.
    fn note_written(&mut self, frame: &mut Frame, allocations: &[u32]) {
        if allocations.is_empty() {
            return;
        }
        note_writes(frame, allocations);
        let args = self.launches.iter_mut().flat_map(|launch| &mut launch.args);
        args.for_each(|(_, value)| value.note_writes(&|id| allocations.contains(&id)));
    }

    /// Gives a tensor that a constructor made memory of its own, which holds `contents`.
    fn allocate(&mut self, value: Value, contents: Contents) -> Value {
        let Value::Tensor(tensor) = value else { return value };
        self.allocations += 1;
        let id = self.allocations;
        let storage = views::span(&tensor)
            .map(|elements| Box::new(Storage { id: Some(id), elements, contents }));
        Value::Tensor(Tensor { storage, ..tensor })
    }

    /// Notes that what a variable holds may have been written, also in between launches.
    pub(super) fn note_write(&mut self, frame: &mut Frame, object: ExprId) {
        let allocations = note_write_of(frame, object);
        self.note_written(frame, &allocations);
    }

    /// A call of one of a scenario's own functions.
    fn scenario_call(&mut self, file: FileId, name: &str, args: &Args<'_>) -> Option<Value> {
        if name == "load" {
            let head = match args.get(0, "file") {
                Some(Value::Str(path)) => self.sources.array(file, path),
                _ => None,
            };
            let tensor = tensor::loaded(head.as_ref(), args);
            return Some(self.allocate(tensor, Contents::Unknown));
        }
        if let Some(tensor) = tensor::scenario_constructor(name, args) {
            return Some(self.allocate(tensor, made::by_scenario(name, args)));
        }
        if matches!(name, "cdiv" | "next_power_of_2") {
            return Some(triton_call(name, args));
        }
        if let Some(value) = tensor::scenario_function(name, args) {
            return Some(value);
        }
        if let Some((Value::Tensor(tensor), rest)) = args.positional().split_first() {
            let rest: Vec<_> = rest.iter().map(|value| (None, Value::clone(value))).collect();
            let rest: Vec<_> = rest.into_iter().chain(args.keywords()).collect();
            if let Some(value) = tensor::scenario_reduction(tensor, name, &Args(&rest)) {
                return Some(value);
            }
        }
        None
    }

    /// A call of something that no item binds.
    pub(super) fn global_call(&mut self, name: &str, args: &Args<'_>) -> Value {
        match (name, args.positional().as_slice()) {
            ("filter", [function, items]) => self.filter(function, items),
            ("map", [function, items]) => match items.elements() {
                Some(items) => Value::List(
                    items
                        .into_iter()
                        .map(|item| self.call_value(function, &[(None, item)]))
                        .collect(),
                ),
                None => Value::Unknown,
            },
            ("sorted", [items]) if let Some(key) = args.keyword("key") => {
                self.sorted(items, key, args.keyword("reverse"))
            }
            _ => {
                let value = python_call(name, args);
                self.exactly_called(&[Name::from(name)], args, value)
            }
        }
    }

    /// Elements in the order of what a function makes of them, if that is known.
    fn sorted(&mut self, items: &Value, key: &Value, reverse: Option<&Value>) -> Value {
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

    /// Elements that are not known to be filtered out.
    fn filter(&mut self, function: &Value, items: &Value) -> Value {
        let Some(mut items) = items.elements() else { return Value::Unknown };
        items.retain(|item| {
            let kept = match function {
                Value::None => item.clone(),
                function => self.call_value(function, &[(None, item.clone())]),
            };
            operators::truth(&kept) != Some(false)
        });
        Value::List(items)
    }

    fn method_call(
        &mut self,
        frame: &mut Frame,
        receiver: &Value,
        object: ExprId,
        name: &str,
        args: &Args<'_>,
    ) -> Value {
        if let Some((changed, result)) = collections::changed(receiver, name, args) {
            frame.change(object, changed);
            return result;
        }
        match (receiver, name) {
            (Value::List(_) | Value::Dict(_), "copy") => receiver.clone(),
            (Value::Dict(entries), "get") => {
                let key = args.get(0, "").cloned().unwrap_or(Value::Unknown);
                let default = args.get(1, "").cloned().unwrap_or(Value::None);
                let keys: Vec<Value> = entries.iter().map(|(key, _)| key.clone()).collect();
                match operators::compare(CompareOp::In, &key, &Value::List(keys)) {
                    Some(true) => operators::subscript(receiver, &key),
                    Some(false) => default,
                    None => Value::Unknown,
                }
            }
            (Value::Dict(entries), "items") => {
                let pair =
                    |(key, value): &(Value, Value)| Value::Tuple(vec![key.clone(), value.clone()]);
                Value::List(entries.iter().map(pair).collect())
            }
            (Value::Dict(entries), "values") => {
                Value::List(entries.iter().map(|(_, value)| value.clone()).collect())
            }
            (Value::Dict(entries), "keys") => {
                Value::List(entries.iter().map(|(key, _)| key.clone()).collect())
            }
            (Value::Str(_) | Value::Int(_) | Value::Tuple(_) | Value::List(_), _) => {
                self.exact_method(receiver, name, args)
            }
            _ => {
                if name.ends_with('_') {
                    self.note_write(frame, object);
                }
                if rebound::replaces(name) {
                    self.note_replaced(frame, object);
                }
                if let Value::Tensor(tensor) = receiver
                    && frame.scenario
                    && let Some(value) = tensor::scenario_reduction(tensor, name, args)
                {
                    return value;
                }
                let result = tensor::method(receiver, name, args).unwrap_or(Value::Unknown);
                match (name.starts_with("new_"), result.kept_contents()) {
                    (true, _) => self.allocate(result, made::by_torch(name, args)),
                    (false, Some(contents)) => self.allocate(result, contents),
                    (false, None) => result,
                }
            }
        }
    }
}

/// True for `super()`.
fn is_super(body: &Body, object: ExprId) -> bool {
    match &body.exprs[object] {
        Expr::Call { callee, .. } => body.exprs[*callee].is_name("super"),
        _ => false,
    }
}

/// What the parameters of a function, each with the way in which arguments reach it, get of `args`;
/// `None` for those left out.
pub(super) fn bound(
    params: &[(&Name, ParamKind)],
    args: &[(Option<Name>, Value)],
) -> Vec<Option<Value>> {
    let positional: Vec<&Value> =
        args.iter().filter(|(name, _)| name.is_none()).map(|(_, value)| value).collect();
    let mut index = 0;
    let of_param = |(param, kind): &(&Name, ParamKind)| match kind {
        ParamKind::VarArgs => {
            let rest = positional.get(index..).unwrap_or_default();
            index = positional.len();
            Some(Value::Tuple(rest.iter().copied().cloned().collect()))
        }
        ParamKind::KwArgs => {
            let taken = |name: &Name| params.iter().any(|(param, _)| *param == name);
            let entry = |(name, value): &(Option<Name>, Value)| {
                let name = name.clone().filter(|name| !taken(name))?;
                Some((Value::Str(name), value.clone()))
            };
            Some(Value::Dict(args.iter().filter_map(entry).collect()))
        }
        _ => {
            let named = args.iter().find(|(name, _)| name.as_ref() == Some(*param));
            let next = positional.get(index).filter(|_| kind.is_positional());
            index += usize::from(kind.is_positional());
            named.map(|(_, value)| value).or(next.copied()).cloned()
        }
    };
    params.iter().map(of_param).collect()
}

/// The allocations that a call may write of which nothing more is known: those given to PyTorch to
/// write to, and those given to functions that are not known.
fn may_write(callee: &Value, receiver: Option<&Value>, args: &Args<'_>) -> Vec<u32> {
    let all = || args.0.iter().flat_map(|(_, value)| value.allocations()).collect();
    match callee {
        Value::Named(Resolution::External(path)) => match path.as_slice() {
            [torch, name] if &**torch == TORCH && !name.ends_with('_') => {
                args.keyword("out").map(Value::allocations).unwrap_or_default()
            }
            [torch, module, ..] if &**torch == TORCH && &**module == "testing" => Vec::new(),
            _ => all(),
        },
        Value::Unknown if !matches!(receiver, Some(Value::Tensor(_))) => all(),
        Value::OneOf(callees) => {
            callees.iter().flat_map(|callee| may_write(callee, receiver, args)).collect()
        }
        _ => Vec::new(),
    }
}

/// Notes that what a variable holds may have been written; its allocations.
pub(super) fn note_write_of(frame: &mut Frame, object: ExprId) -> Vec<u32> {
    let Expr::Name(name) = &frame.code.body().exprs[object] else { return Vec::new() };
    let name = name.clone();
    let Some(value) = frame.variables.get_mut(&name) else { return Vec::new() };
    if let Value::Tensor(tensor) = value {
        tensor.note_write();
    }
    value.allocations()
}

/// Notes that what any variable holds of these allocations may have been written.
pub(super) fn note_writes(frame: &mut Frame, allocations: &[u32]) {
    if allocations.is_empty() {
        return;
    }
    frame
        .variables
        .values_mut()
        .for_each(|value| value.note_writes(&|id| allocations.contains(&id)));
}

/// A function of the triton package.
fn triton_call(path: &str, args: &Args<'_>) -> Value {
    match path {
        "cdiv" | "language.cdiv" => match (args.get(0, "x"), args.get(1, "y")) {
            (Some(x), Some(y)) => {
                let one = Value::Int(Some(1));
                let less = operators::binary(BinaryOp::Sub, y, &one);
                let sum = operators::binary(BinaryOp::Add, x, &less);
                operators::binary(BinaryOp::FloorDiv, &sum, y)
            }
            _ => Value::Unknown,
        },
        "next_power_of_2" => match args.get(0, "n") {
            Some(Value::Int(Some(n))) => Value::Int(next_power_of_2(*n)),
            Some(Value::Int(None)) => Value::Int(None),
            Some(raised @ Value::Raises(_)) => raised.clone(),
            _ => Value::Unknown,
        },
        "language.constexpr" => match args.get(0, "value") {
            Some(value) => Value::Constexpr(Box::new(value.plain().clone())),
            None => Value::Unknown,
        },
        "reinterpret" => match args.get(1, "dtype") {
            Some(Value::DType(dtype)) => Value::tensor(Some(dtype)),
            _ => Value::tensor(None),
        },
        "Config" => config(args).map_or(Value::Unknown, |config| Value::Config(Box::new(config))),
        "tools.tensor_descriptor.TensorDescriptor" => {
            let (shape, strides) = (args.get(1, "shape"), args.get(2, "strides"));
            let unknown = Value::Unknown;
            tensor::descriptor(
                args.get(0, "base"),
                shape.or(Some(&unknown)),
                strides.or(Some(&unknown)),
                args.get(3, "block_shape"),
            )
        }
        "tools.tensor_descriptor.TensorDescriptor.from_tensor" => {
            tensor::descriptor(args.get(0, "tensor"), None, None, args.get(1, "block_shape"))
        }
        _ => Value::Unknown,
    }
}

fn next_power_of_2(n: i128) -> Option<i128> {
    let n = u64::try_from(n.max(1)).ok()?;
    n.checked_next_power_of_two().map(i128::from)
}

/// `triton.Config(kwargs, num_warps=..., ...)`.
fn config(args: &Args<'_>) -> Option<Config> {
    let Some(Value::Dict(entries)) = args.get(0, "kwargs") else { return None };
    let mut kwargs = Vec::new();
    for (key, value) in entries {
        let Value::Str(name) = key else { return None };
        kwargs.push((name.clone(), value.to_const()?));
    }
    let option = |index: usize, name: &str| match args.get(index, name) {
        Some(Value::Int(Some(value))) => u32::try_from(*value).ok(),
        _ => None,
    };
    Some(Config {
        kwargs,
        num_warps: option(1, "num_warps"),
        num_stages: option(2, "num_stages"),
        num_ctas: option(3, "num_ctas"),
        max_registers: option(4, "maxnreg"),
        pre_hook: match args.get(5, "pre_hook") {
            Some(Value::Named(Resolution::Function(at))) => Some(*at),
            _ => None,
        },
        at: None,
    })
}

/// A function outside of the project.
fn external_call(path: &[Name], args: &Args<'_>, capability: u32) -> Value {
    let path: Vec<&str> = path.iter().map(|name| &**name).collect();
    match path.as_slice() {
        ["torch", name] => tensor::torch_constructor(name, args)
            .or_else(|| tensor::mapped(name, args.get(0, "input")?))
            .unwrap_or(Value::Unknown),
        ["torch", "nn", "functional", name] => {
            args.get(0, "input").and_then(|of| tensor::mapped(name, of)).unwrap_or(Value::Unknown)
        }
        ["torch", "nn", "Parameter"] | ["torch", "nn", "parameter", "Parameter" | "Buffer"] => {
            args.get(0, "data").cloned().unwrap_or(Value::Unknown)
        }
        // A variable of the environment is not set unless somebody sets it.
        ["os", "getenv"] | ["os", "environ", "get"] => {
            args.get(1, "default").cloned().unwrap_or(Value::None)
        }
        ["math", name] => math_call(name, args),
        ["functools", "partial"] => match args.0.split_first() {
            Some(((None, callee), rest)) => Value::Callable(Callable::Partial {
                callee: Box::new(callee.clone()),
                args: rest.to_vec(),
            }),
            _ => Value::Unknown,
        },
        ["itertools", "product"] => product(args).map_or(Value::Unknown, Value::List),
        path => {
            let fact = installation::called(path, capability);
            fact.and_then(|fact| Value::of_fact(&fact, capability)).unwrap_or(Value::Unknown)
        }
    }
}

fn math_call(name: &str, args: &Args<'_>) -> Value {
    let number = match args.get(0, "x") {
        Some(Value::Int(value)) => value.map(|value| value as f64),
        Some(Value::Float(value)) => *value,
        _ => return Value::Unknown,
    };
    let integer = |value: Option<f64>| Value::Int(value.map(|value| value as i128));
    match name {
        "ceil" => integer(number.map(f64::ceil)),
        "floor" => integer(number.map(f64::floor)),
        "log2" => Value::Float(number.map(f64::log2)),
        "log" => match (args.get(1, "base"), number) {
            (None, number) => Value::Float(number.map(f64::ln)),
            // Python divides the natural logarithms.
            (Some(base), number) => {
                let base = as_number(base).and_then(|base| base.float());
                Value::Float(number.zip(base).map(|(number, base)| number.ln() / base.ln()))
            }
        },
        "sqrt" => Value::Float(number.map(f64::sqrt)),
        "exp" => Value::Float(number.map(f64::exp)),
        _ => Value::Unknown,
    }
}

fn product(args: &Args<'_>) -> Option<Vec<Value>> {
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for factor in args.positional() {
        let items = factor.elements()?;
        if rows.len().checked_mul(items.len())? > MAX_RANGE as usize {
            return None;
        }
        rows = rows
            .iter()
            .flat_map(|row| {
                items.iter().map(move |item| row.iter().cloned().chain([item.clone()]).collect())
            })
            .collect();
    }
    Some(rows.into_iter().map(Value::Tuple).collect())
}

/// One of Python's own functions.
fn python_call(name: &str, args: &Args<'_>) -> Value {
    let positional = args.positional();
    match (name, positional.as_slice()) {
        ("range", bounds) => range(bounds).map_or(Value::Ints, Value::List),
        ("len", [Value::Tensor(Tensor { shape: Some(shape), .. })]) => {
            shape.first().cloned().unwrap_or(Value::Unknown)
        }
        ("len", [value]) => match value.elements() {
            Some(items) => Value::Int(Some(items.len() as i128)),
            None => Value::Int(None),
        },
        ("int", [Value::Float(value)]) => Value::Int(value.map(|value| value as i128)),
        ("int", [Value::Bool(value)]) => Value::Int(value.map(i128::from)),
        ("int", [Value::Int(value)]) => Value::Int(*value),
        ("int", _) => Value::Int(None),
        ("float", [Value::Int(value)]) => Value::Float(value.map(|value| value as f64)),
        ("float", [Value::Float(value)]) => Value::Float(*value),
        ("float", [Value::Str(text)]) => Value::Float(text.parse().ok()),
        ("float", _) => Value::Float(None),
        ("bool", [value]) => Value::Bool(operators::truth(value)),
        ("abs", [Value::Int(value)]) => Value::Int(value.and_then(i128::checked_abs)),
        ("abs", [Value::Float(value)]) => Value::Float(value.map(f64::abs)),
        ("min" | "max", _) if args.keywords().is_empty() => extremum(name, &positional),
        ("list", [value]) => value.elements().map_or(Value::Unknown, Value::List),
        ("tuple", [value]) => value.elements().map_or(Value::Unknown, Value::Tuple),
        ("dict", []) => {
            let keyword = |(name, value): &(Option<Name>, Value)| {
                name.clone().map(|name| (Value::Str(name), value.clone()))
            };
            Value::Dict(args.0.iter().filter_map(keyword).collect())
        }
        ("sum", [value]) => match value.elements() {
            Some(items) => items.iter().fold(Value::Int(Some(0)), |sum, item| {
                operators::binary(BinaryOp::Add, &sum, item)
            }),
            None => Value::Unknown,
        },
        ("enumerate", [value]) => match value.elements() {
            Some(items) => {
                let pair = |(at, item)| Value::Tuple(vec![Value::Int(Some(at as i128)), item]);
                Value::List(items.into_iter().enumerate().map(pair).collect())
            }
            None => Value::Unknown,
        },
        ("zip", lists) if !lists.is_empty() && args.keywords().is_empty() => zipped(lists),
        ("isinstance", [value, Value::Named(Resolution::External(path))])
            if path.iter().map(|part| &**part).eq([TORCH, "Tensor"]) =>
        {
            Value::Bool(match value {
                Value::Tensor(_) => Some(true),
                Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {
                    Some(false)
                }
                _ => None,
            })
        }
        ("isinstance", _) | ("hasattr", _) => Value::Bool(None),
        _ => Value::Unknown,
    }
}

/// Tuples of the elements that stand at the same place, up to the end of the shortest.
fn zipped(lists: &[&Value]) -> Value {
    let lists: Option<Vec<Vec<Value>>> = lists.iter().map(|list| list.elements()).collect();
    let Some(lists) = lists else { return Value::Unknown };
    let length = lists.iter().map(Vec::len).min().unwrap_or_default();
    let tuple = |at: usize| Value::Tuple(lists.iter().map(|list| list[at].clone()).collect());
    Value::List((0..length).map(tuple).collect())
}

fn range(bounds: &[&Value]) -> Option<Vec<Value>> {
    let bound = |value: &Value| match value {
        Value::Int(value) => *value,
        _ => None,
    };
    let (start, end, step) = match bounds {
        [end] => (0, bound(end)?, 1),
        [start, end] => (bound(start)?, bound(end)?, 1),
        [start, end, step] => (bound(start)?, bound(end)?, bound(step)?),
        _ => return None,
    };
    let length = end.checked_sub(start)?.checked_div(step)?;
    if length > MAX_RANGE {
        return None;
    }
    let mut items = Vec::new();
    let mut at = start;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        items.push(Value::Int(Some(at)));
        at = at.checked_add(step)?;
    }
    Some(items)
}

fn extremum(name: &str, args: &[&Value]) -> Value {
    let values: Vec<Value> = match args {
        [one] => one.elements().unwrap_or_default(),
        many => many.iter().copied().cloned().collect(),
    };
    let Some((first, rest)) = values.split_first() else { return Value::Unknown };
    let mut best = first.clone();
    for value in rest {
        let wanted = match operators::compare(CompareOp::Lt, value, &best) {
            Some(less) => less == (name == "min"),
            None => {
                best = operators::join(&best, value);
                continue;
            }
        };
        if wanted {
            best = value.clone();
        }
    }
    match best {
        // Not all were known, so neither is which one it is.
        Value::Int(_) if values.contains(&Value::Int(None)) => Value::Int(None),
        best => best,
    }
}
