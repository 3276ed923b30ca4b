//! Calls in host code: what is called, and with what.

use std::sync::Arc;

use crate::builtins::TORCH;
use crate::hir::{Arg, ArgKind, Body, Expr, ExprId, Name};
use crate::host::code::arguments::{Args, mismatch, repeated};
use crate::host::code::{operators, rebound};
use crate::host::entry::scenario::scenario_reduction;
use crate::host::launch::{self, past};
use crate::host::library::applied::{is_own, method_of};
use crate::host::library::triton::{all_kwargs, triton_call};
use crate::host::library::{collections, external_call, sets};
use crate::host::torch::autograd::{keeps_tensors, registers};
use crate::host::torch::generators::{GENERATOR, has_generator};
use crate::host::torch::misuse::Misuse;
use crate::host::torch::modules::{known_class, sequence_class};
use crate::host::torch::operations::LIBRARY;
use crate::host::torch::{arrays, data, devices, drawn, made, states, tensor, views};
use crate::host::value::contents::Contents;
use crate::host::value::memory::{Stored, may_write};
use crate::host::value::{Callable, Tensor, Value};
use crate::host::{Changed, Frame, Host, Maker};
use crate::project::installation::{CURRENT_TARGET, Fact};
use crate::project::{self, ItemRef, Resolution};
use crate::source::FileRange;
use crate::specialization::{Config, TupleNames};

/// Functions of Python whose results hold what they are given.
const CONTAINERS: &[&str] = &["dict", "enumerate", "filter", "list", "map", "tuple", "zip"];

/// Functions of Python that go over what they are given.
const ITERATING: &[&str] = &["enumerate", "len", "list", "reversed", "tuple", "zip"];

/// Modules whose functions give numbers of Python: others may have some of their own.
const KNOWN_NUMBERS: &[&str] =
    &[TORCH, "functools", "itertools", "math", "operator", "os", "sys", "time"];

/// Methods of tensors that always give what is in the same memory.
const VIEWING: &[&str] = &["as_strided", "diagonal", "unfold", "view"];

/// Functions of PyTorch that give a tensor in the memory of an array of NumPy.
const SHARING: &[&str] = &["as_tensor", "asarray", "from_numpy"];

/// The method of tensors that tells where their memory is.
const ADDRESS: &str = "data_ptr";

impl Host<'_> {
    /// `callee(args)`.
    pub(crate) fn call(
        &mut self,
        frame: &mut Frame,
        id: ExprId,
        callee: ExprId,
        args: &[Arg],
    ) -> Value {
        let (code, called, given) = (frame.code.clone(), callee, args);
        if let Expr::Subscript { value, index } = code.body().exprs[callee] {
            return self.call_subscript(frame, id, (callee, value, index), args);
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
        if let [given, rest @ ..] = args
            && let Some(item) = self.next_item(frame, callee, given.value, rest)
        {
            return item;
        }
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
                    let member = self.seen_from(frame, member);
                    (Some(Value::Named(base)), member)
                }
                Value::Callable(Callable::Local { class, around }) => {
                    let member = self.member_of_local(class, around, attr);
                    (Some(Value::Named(Resolution::Class(class))), member)
                }
                receiver => (Some(receiver), Value::Unknown),
            },
            None => (None, self.expr(frame, callee)),
        };
        if let Some(part) = self.call_into_part(frame, id, (called, &callee), args) {
            return part;
        }
        let given_values = self.arguments(frame, args);
        // What arguments call may have changed a collection.
        let receiver = match (receiver, &method) {
            (Some(Value::List(_) | Value::Dict(_) | Value::Collection), Some((object, _)))
                if !args.is_empty() && matches!(code.body().exprs[*object], Expr::Name(_)) =>
            {
                Some(self.expr(frame, *object))
            }
            (receiver, _) => receiver,
        };
        let place = frame.call_place(called, given);
        // An object's method gets it first.
        let first = usize::from(matches!(receiver, Some(Value::Object(_))));
        self.changed.clear();
        let chosen = frame.is_open(called) || given.iter().any(|arg| frame.is_open(arg.value));
        let around = std::mem::replace(&mut self.doubt.chosen, chosen);
        self.calls.extend(place);
        let parts = receiver.iter().chain(given_values.0.iter().map(|(_, value)| value));
        let raises = parts.into_iter().any(|part| matches!(part, Value::Raises(_)));
        let result = self.call_with(frame, (callee, receiver, method), given_values, place);
        self.calls.truncate(self.calls.len() - usize::from(place.is_some()));
        if !raises {
            self.note_raised(frame, id, &result, &[]);
        }
        self.doubt.chosen = around;
        self.change_arguments(frame, given, first);
        result
    }

    /// Calls what a callee is, or the method of a receiver, with evaluated arguments.
    pub(crate) fn call_with(
        &mut self,
        frame: &mut Frame,
        called: (Value, Option<Value>, Option<(ExprId, Name)>),
        given: launch::Given,
        place: Option<FileRange>,
    ) -> Value {
        if let Some(name) = repeated(&given.0) {
            return Value::Raises(Misuse::Repeated(name.clone()));
        }
        if let Some(generator) = self.generator_of(&called, &given.0) {
            let rest = (Args(&given.0).without(GENERATOR), given.1);
            return self.drawn_by(generator, |host| host.call_with(frame, called, rest, place));
        }
        let complete = given.1;
        match self.call_given(frame, called, given, place) {
            // Arguments that were left out may be sizes.
            Value::Tensor(tensor) if !complete => Value::tensor(tensor.dtype.as_deref()),
            Value::Raises(_) if !complete => Value::Unknown,
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
        let values: Vec<(Option<Name>, Value)> = match takes_numbers(&callee) {
            true => {
                values.into_iter().map(|(name, value)| (name, self.as_operand(value))).collect()
            }
            false => values,
        };
        let values = match counts(&callee, &receiver, &method) {
            Some(first) => counted(values, first),
            None => values,
        };
        let callee = match callee {
            Value::Named(Resolution::External(path)) if complete => {
                match self.operation(frame.file, &path) {
                    Some(at) => Value::Named(Resolution::Function(at)),
                    None => Value::Named(Resolution::External(path)),
                }
            }
            callee => callee,
        };
        let args = Args(&values);
        self.may_go_back |= may_go_back(&callee, receiver.as_ref());
        if let Some((_, name)) = &method {
            self.note_mode(name);
            self.note_gradients(name, receiver.as_ref(), &args);
            if &**name == "backward" {
                (self.differentiated, self.may_go_back) = (true, true);
                self.cleared_gradients.clear();
            }
        }
        let own = match (&receiver, &method) {
            (Some(Value::Object(object)), Some((_, name))) => self.has_own_method(*object, name),
            _ => false,
        };
        let only_kept = match (&callee, &method) {
            (Value::Named(Resolution::External(path)), _) if is_parameter(path) => {
                self.launcher.is_some()
            }
            (_, Some((_, name))) => {
                keeps_tensors(name) || self.launcher.is_some() && registers(name)
            }
            (_, None) => false,
        };
        let held = match (&receiver, &method) {
            (Some(Value::Object(object)), Some((_, name))) if !own => {
                Some(self.object_attribute(*object, name)).filter(|held| *held != Value::Unknown)
            }
            _ => None,
        };
        // What a method of the project writes is seen where it does.
        let written = match (own || only_kept, &held) {
            (true, _) => Vec::new(),
            (false, Some(held)) => self.reached(may_write(held, None, &args)),
            (false, None) => self.reached(may_write(&callee, receiver.as_ref(), &args)),
        };
        self.note_written(&written);
        // What is not known may change the lists and dicts that it is given.
        if matches!((&callee, &receiver), (Value::Unknown, None | Some(Value::Unknown))) {
            let given = values.iter().map(|(_, value)| value.clone());
            let collections =
                given.filter(|value| matches!(value, Value::List(_) | Value::Dict(_)));
            let changed = |before| Changed { param: None, before, now: Value::Collection };
            self.changed.extend(collections.map(changed));
        }
        if !written.is_empty() {
            values.iter().for_each(|(_, value)| self.note_change(value));
        }
        match (callee, receiver, method) {
            (Value::Named(Resolution::Triton(path)), ..)
                if path.starts_with("testing.do_bench") =>
            {
                if let Some(function) = args.positional().first() {
                    self.call_value(function, &[]);
                }
                // Times, of which there may be several.
                Value::Unknown
            }
            (Value::Named(Resolution::Triton(path)), ..) if &*path == "testing.Benchmark" => {
                self.benchmark(&args)
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
                if path.iter().map(|name| &**name).eq(["importlib", "import_module"]) =>
            {
                self.imported_by_name(frame.file, &args)
            }
            (Value::Named(Resolution::External(path)), ..) => {
                if let Some(made) = self.call_from(frame, &path, &args, complete) {
                    return made;
                }
                let is_in_place = path.last().is_some_and(|name| name.ends_with('_'));
                let made = self.call_outside(path, &values, complete);
                if is_in_place { self.current(made) } else { made }
            }
            (Value::Named(Resolution::Class(at)), ..) if complete => self.made_by(at, &values),
            (Value::Object(object), ..) if complete => self.call_instance(object, &values),
            (Value::Global(name), ..) if &*name == "getattr" => self.getattr(frame.file, &args),
            (Value::Global(name), ..) if &*name == "globals" => {
                Value::Named(Resolution::File(frame.file))
            }
            (Value::Global(name), ..) if &*name == "locals" => frame.as_dict(),
            (Value::Global(name), ..) => {
                let given = |(name, value): &(_, Value)| {
                    (Option::clone(name), self.iterated(value.clone()))
                };
                let values: Vec<_> = match ITERATING.contains(&&*name) {
                    true => values.iter().map(given).collect(),
                    false => values.clone(),
                };
                self.global_call(&name, &Args(&values))
            }
            (Value::Callable(Callable::Launcher { kernel, grid }), ..) => {
                self.launch((*kernel, *grid), (values, complete), place)
            }
            (Value::Callable(Callable::Partial { callee, args: held }), ..) => {
                let given = launch::applied(&held, values);
                self.call_with(frame, (*callee, None, None), (given, complete), place)
            }
            (_, Some(function), Some((_, attr)))
                if &*attr == "__get__" && is_own(Some(&function)) =>
            {
                args.get(0, "instance").map_or(Value::Unknown, |of| method_of(of, &function))
            }
            (Value::Named(Resolution::Function(at)), ..)
                if complete && let Some(refused) = self.refused_by(at, &values, 0) =>
            {
                refused
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
                    let result = self.perhaps_running(|host| {
                        host.call_with(frame, (callee, None, None), given, place)
                    });
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
            (_, Some(Value::Tensor(tensor)), Some((_, attr)))
                if let Some(refused) = self.method_of_types(&attr, &tensor, &args) =>
            {
                Value::Raises(refused)
            }
            (_, Some(receiver), Some((value, attr))) => {
                let made = self.method_call(frame, &receiver, value, &attr, &args);
                let made = if attr.ends_with('_') { self.current(made) } else { made };
                past::note_conversion(&receiver, &attr, made)
            }
            _ => Value::Unknown,
        }
    }

    /// What a function outside of the project gives where that depends on where the code stands; `None` for others.
    fn call_from(
        &mut self,
        frame: &Frame,
        path: &[Name],
        args: &Args<'_>,
        complete: bool,
    ) -> Option<Value> {
        if complete {
            let made = self.of_paths(frame.file, path, args);
            let made = made.or_else(|| self.asked_variable(frame.file, path, args));
            if made.is_some() {
                return made;
            }
        }
        if states::sets_default_type(path) {
            self.set_default_type(frame, path, args);
            return Some(Value::None);
        }
        let mode = self.gradient_mode(frame, path).map(|mode| Value::Bool(Some(mode)));
        mode.or_else(|| self.function_of_types(path, args).map(Value::Raises))
    }

    /// Calls a function or class outside of the project, of which all arguments are known if they are `complete`.
    pub(crate) fn call_outside(
        &mut self,
        path: Vec<Name>,
        values: &[(Option<Name>, Value)],
        complete: bool,
    ) -> Value {
        let args = Args(values);
        let names: Vec<&str> = path.iter().map(|name| &**name).collect();
        match names[..] {
            ["argparse", "ArgumentParser"] => return self.object(),
            // A thread has its own.
            ["types", "SimpleNamespace"] | ["threading", "local"] if complete => {
                return self.namespace(&args);
            }
            [TORCH, "library", "Library"] if let Some(name) = args.get(0, "ns") => {
                return self.namespace(&Args(&[(Some(LIBRARY.into()), name.clone())]));
            }
            ["inspect", "signature"] => return self.signature(&args),
            [TORCH, "autograd", "backward"] => return self.backward_from(&args),
            // Of what is not reached there may be none.
            [TORCH, "autograd", "grad"] if args.keyword("allow_unused").is_some() => {
                return Value::Unknown;
            }
            [TORCH, "autograd", "grad"] => return self.gradients_of(&args),
            [TORCH, "autograd", "gradcheck"] => return self.gradcheck(&args),
            [TORCH, "cuda", "get_device_name"] => return devices::name(self.sources.capability()),
            [TORCH, "get_default_dtype"] if let Some(dtype) = &self.default_type => {
                return dtype.clone();
            }
            [TORCH, "is_autocast_enabled"] => return Value::Bool(self.chooses_types()),
            [TORCH, "Generator"] if self.launcher.is_some() => return self.generator(),
            // What is compiled computes the same.
            [TORCH, "compiler", "is_compiling" | "is_dynamo_compiling" | "is_exporting"]
            | [TORCH, "_dynamo", "is_compiling"]
                if self.launcher.is_some() || self.entry.is_some() =>
            {
                return Value::Bool(Some(false));
            }
            [TORCH, "normal"] if let Some(drawn) = self.normal(&args) => return drawn,
            [TORCH, name] if let Some(made) = self.sparse_of(name, &args) => return made,
            _ => {}
        }
        if let Some(class) = known_class(&path) {
            return self.torch_module(class, &args);
        }
        if complete {
            if let Some(class) = sequence_class(&path) {
                return self.sequence(class, &args);
            }
            let made = self.copied_by(&path, &args).or_else(|| self.of_environment(&path, &args));
            if let Some(made) = made.or_else(|| self.applied_by(&path, &args)) {
                return made;
            }
        }
        self.call_external(path, values)
    }

    /// Calls a function outside of the project, with what is known of what it makes and does.
    pub(crate) fn call_external(
        &mut self,
        path: Vec<Name>,
        values: &[(Option<Name>, Value)],
    ) -> Value {
        let typed = self.typed_by_default(&path, values);
        let values = typed.as_deref().unwrap_or(values);
        let args = Args(values);
        self.note_gradient_mode(&path);
        self.arrays_shared |= shares_array(&path, &args);
        self.uses_numpy |= path.first().is_some_and(|first| !KNOWN_NUMBERS.contains(&&**first));
        if let Some(Value::Tensor(out)) = args.keyword("out")
            && let Some(written) = self.numbers_written_to(out, &path, values)
        {
            return written;
        }
        let result = match args.keyword("out") {
            Some(Value::Tensor(out)) if path.first().is_some_and(|first| **first == *TORCH) => {
                self.written_to(out, &path, values)
            }
            _ => match self.agreement(&path, &args).or_else(|| self.untold(&path, &args)) {
                Some(untold) => untold,
                None => external_call(&path, &args, self.sources.capability()),
            },
        };
        self.note_generator(&path, &args);
        self.initialize(&path, &args);
        let name = path.last().map_or("", |name| &**name);
        self.note_effort(name, values.iter().map(|(_, value)| value));
        let result = self.exactly_called(&path, &args, result);
        let ties = self.ties();
        let result = self.with_numbers(result, || data::by_torch(&path, &args, ties));
        let result = match path.last() {
            Some(name) => self.cast_automatically(name, result),
            None => result,
        };
        if is_parameter(&path) {
            // Who makes one fills it by other means: a state that is loaded, an initialization.
            let mut result = result;
            if self.launcher.is_none() {
                result.note_writes(&|_| true);
            }
            let made = self.parameter_of(result);
            let is_wanted = match args.keyword("requires_grad") {
                None => path.last().is_some_and(|name| &**name == "Parameter"),
                Some(wanted) => operators::truth(wanted) == Some(true),
            };
            self.wanted.extend(made.allocations().into_iter().filter(|_| is_wanted));
            return self.watched_parameter(made, is_wanted);
        }
        let is_known = result.kept_contents().is_some();
        let is_untold = !is_known && !self.records();
        if let Some(is_mean) = sum_of_all(&path, &args).filter(|_| is_untold) {
            let sum = self.note_sum(&values[0].1, result, is_mean);
            let name = if is_mean { "mean" } else { "sum" };
            return self.note_path(name, values.iter().map(|(_, value)| value), sum);
        }
        let contents = path.last().map_or(Contents::Unknown, |name| made::by_torch(name, &args));
        let contents = match contents {
            Contents::Unknown => result.kept_contents().unwrap_or_default(),
            known => known,
        };
        // A view is in the memory of what it shows.
        let is_kept = |tensor: &Tensor| {
            let elements = tensor.storage.as_ref().map(|storage| storage.elements);
            tensor.memory().is_some() || elements.is_some() && views::span(tensor) != elements
        };
        let made = match &result {
            Value::Tensor(tensor) if is_kept(tensor) => result,
            _ => {
                let made = self.allocate(result, contents);
                let made = drawn::by_torch(&path, self.allocate_known(made));
                self.note_wanted(&args, &made);
                match self.launcher.is_some() && has_generator(&args) {
                    true => made,
                    false => self.drawn_by_one_run(made),
                }
            }
        };
        match &path[..] {
            [package, .., name] if [TORCH, "einops"].contains(&&**package) => {
                let sources = || values.iter().map(|(_, value)| value);
                let made = self.following(name, sources(), made);
                let made = self.note_path(name, sources(), made);
                self.note_made(Maker::Torch(path), || values.to_vec(), made)
            }
            _ => made,
        }
    }

    /// `torch.function(..., out=tensor[index])` of a part that has the sizes of the result:
    /// `tensor[index] = torch.function(...)`. What it gives is the part.
    fn call_into_part(
        &mut self,
        frame: &mut Frame,
        id: ExprId,
        (callee, meaning): (ExprId, &Value),
        args: &[Arg],
    ) -> Option<Value> {
        let Value::Named(Resolution::External(path)) = meaning else { return None };
        let is_out = |arg: &Arg| matches!(&arg.kind, ArgKind::Keyword(name) if **name == *"out");
        let out = args.iter().find(|arg| is_out(arg)).filter(|_| *path[0] == *TORCH)?.value;
        let code = frame.code.clone();
        let Expr::Subscript { value: object, index } = code.body().exprs[out] else { return None };
        let sizes = |value: &Value| match value {
            Value::Tensor(tensor) => {
                tensor.shape.clone().filter(|shape| views::elements(shape).is_some())
            }
            _ => None,
        };
        let wanted = sizes(&self.expr(frame, out))?;
        let rest: Vec<Arg> = args.iter().filter(|arg| !is_out(arg)).cloned().collect();
        let made = self.call(frame, id, callee, &rest);
        (sizes(&made)? == wanted).then(|| {
            self.assign_item(frame, object, index, &made);
            self.expr(frame, out)
        })
    }

    /// What a function of PyTorch gives that writes to `out`, in a run that computes all numbers: as `out.copy_` of
    /// what it makes. `None` where that has not the sizes of `out`, or is not known.
    fn numbers_written_to(
        &mut self,
        out: &Tensor,
        path: &[Name],
        args: &[(Option<Name>, Value)],
    ) -> Option<Value> {
        self.launcher.filter(|_| *path[0] == *TORCH)?;
        let made = self.call_external(path.to_vec(), &Args(args).without("out"));
        let Value::Tensor(Tensor { shape: Some(shape), .. }) = &made else { return None };
        (out.shape.as_ref() == Some(shape)).then_some(())?;
        let stored = self.changed_in_place("copy_", out, &Args(&[(None, made)]))?;
        let whole = Value::Tensor(out.clone());
        self.note_change(&whole);
        self.note_stored(out.memory()?, &whole, stored);
        Some(self.current(whole))
    }

    /// What a function of PyTorch gives that writes to `out`: that, with the sizes of the result. A tensor
    /// that had others has other memory then.
    fn written_to(&mut self, out: &Tensor, path: &[Name], args: &[(Option<Name>, Value)]) -> Value {
        let rest = Args(args).without("out");
        let (shape, strides) = match external_call(path, &Args(&rest), self.sources.capability()) {
            Value::Tensor(made) => (made.shape, made.strides),
            raised @ Value::Raises(_) => return raised,
            _ => (None, None),
        };
        if shape.is_some() && shape == out.shape {
            return Value::Tensor(out.clone());
        }
        self.replaced.extend(out.allocation().map(|id| (id, None)));
        let dtype = out.dtype.clone();
        let made = Tensor { dtype, shape, on_gpu: out.on_gpu, ..Tensor::default() };
        Value::Tensor(if strides.is_some() { views::reordered(&made) } else { made.copied() })
    }

    /// What a call of a function gives that takes no such arguments: an exception. `None` where that is not
    /// certain: a decorator may hand on others, and another definition of the name may be meant. The first
    /// `own` arguments do not stand in the call, as the object of a method.
    pub(crate) fn refused_by(
        &mut self,
        at: ItemRef,
        args: &[(Option<Name>, Value)],
        own: usize,
    ) -> Option<Value> {
        let function = project::function(self.sources, at)?;
        let called = project::item(self.sources, at)?;
        let module = self.sources.module(at.file)?;
        let mut same = module
            .items_named(&called.name)
            .filter(|index| module.items[*index as usize].scope == called.scope);
        let is_plain = same.nth(1).is_none() && project::takes_what_it_is_given(self.sources, at);
        let fault = mismatch(&function, args, own).filter(|_| is_plain)?;
        let class = called.scope.last().filter(|_| *called.name == *"__init__");
        let function = class.unwrap_or(&called.name).clone();
        Some(Value::Raises(Misuse::Arguments { function, fault }))
    }

    /// What a call of a class makes.
    pub(crate) fn made_by(&mut self, class: ItemRef, args: &[(Option<Name>, Value)]) -> Value {
        if let Some(member) = self.member_of_value(class, args) {
            return member;
        }
        self.record(class, &Args(args)).unwrap_or_else(|| self.instance(class, args))
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

    /// Calls the method `name` of a value that is no object of the project.
    fn method_call(
        &mut self,
        frame: &mut Frame,
        receiver: &Value,
        object: ExprId,
        name: &str,
        args: &Args<'_>,
    ) -> Value {
        if let Some((changed, result)) = collections::changed(receiver, name, args) {
            self.change_collection(frame, object, changed);
            return result;
        }
        if name == "update"
            && let Some(owner) = self.owner_of_dict(frame, object)
        {
            self.update_attributes(owner, args);
            return Value::None;
        }
        match (receiver, name) {
            (Value::Global(class), "__setattr__") if &**class == "object" => {
                if let [Value::Object(object), attr, value] = args.positional()[..] {
                    self.set_by_name(*object, attr, value);
                }
                Value::None
            }
            (Value::Config(config), "all_kwargs") => all_kwargs(config),
            // Sizes are a tuple of their own class.
            (Value::Tuple(sizes), "numel") => Value::Int(views::elements(sizes)),
            (Value::Array(array), _) => arrays::method(array, name, args),
            (Value::Tensor(tensor), "numpy") => {
                self.arrays_shared = true;
                arrays::of_tensor(tensor)
            }
            (Value::List(_) | Value::Dict(_), "copy") => receiver.clone(),
            (Value::Set(items), _) => sets::method(items, name, args).unwrap_or(Value::Unknown),
            (Value::Unknown, "setattr") if self.entry.is_some() => {
                self.patch(frame.file, args);
                Value::Unknown
            }
            (Value::Callable(Callable::Partial { .. }), "start" | "run") => {
                self.call_value(receiver, &[]);
                Value::None
            }
            (Value::Record { names, items }, _) => {
                self.record_method(frame.file, (names, items), name, args)
            }
            (Value::Dict(_), _) if let Some(told) = collections::told(receiver, name, args) => told,
            (Value::Str(_) | Value::Int(_) | Value::Tuple(_) | Value::List(_), _) => {
                self.exact_method(receiver, name, args)
            }
            _ => {
                if name.ends_with('_') && !KEEPING_NUMBERS.contains(&name) {
                    let changed = match receiver {
                        Value::Tensor(tensor) => {
                            let drawn = self.drawn_in_place(name, tensor, args);
                            let changed = drawn
                                .map(Stored::from)
                                .or_else(|| self.changed_in_place(name, tensor, args));
                            tensor.memory().zip(changed)
                        }
                        _ => None,
                    };
                    self.record_change(name, receiver, args);
                    self.note_write(frame, object, receiver);
                    self.note_change(receiver);
                    if let Some((id, stored)) = changed {
                        self.note_stored(id, receiver, stored);
                    }
                }
                // Whoever gets the address may write there; what compares it asks how it is aligned.
                if name == ADDRESS && self.comparing == 0 {
                    self.note_written(&receiver.allocations());
                }
                if rebound::replaces(name) {
                    self.note_replaced(frame, object);
                }
                if let Value::Tensor(tensor) = receiver
                    && frame.scenario
                    && let Some(value) = scenario_reduction(tensor, name, args)
                {
                    return value;
                }
                if name == "backward" {
                    let gradient = args.get(0, "gradient");
                    if gradient.is_some() || args.0.is_empty() {
                        return self.backward(&[(receiver, gradient)]);
                    }
                }
                if let Value::Tensor(tensor) = receiver
                    && let Some(sparse) = self.sparsely(tensor, name)
                {
                    return sparse;
                }
                // Of sizes; a list would be what the tensor holds.
                let is_size = |(name, value): &(Option<Name>, Value)| {
                    name.is_none() && matches!(value, Value::Int(_))
                };
                let name = match name == "new" && args.0.iter().all(is_size) {
                    true => "new_empty",
                    false => name,
                };
                let given = [receiver].into_iter().chain(args.0.iter().map(|(_, value)| value));
                self.note_effort(name, given);
                if let Some(agree) = self.agreement_of(receiver, name, args) {
                    return agree;
                }
                let result = tensor::method(receiver, name, args).unwrap_or(Value::Unknown);
                let result = self.unless_set(frame.file, result);
                // What is written through a view that is not followed is written to its memory.
                if VIEWING.contains(&name) && result.allocations() != receiver.allocations() {
                    self.note_written(&receiver.allocations());
                }
                let result = self.cast_automatically(name, result);
                let (numbers, result) = match receiver {
                    Value::Tensor(tensor) => {
                        let ties = self.ties();
                        let result =
                            self.with_numbers(result, || data::of_method(name, tensor, args, ties));
                        let drawn = drawn::mapped(name, tensor, args);
                        let result =
                            if drawn.is_some() { drawn::noted(result, drawn) } else { result };
                        let copied =
                            || views::put_in_order(tensor).filter(|_| name == "contiguous");
                        let numbers = copied()
                            .or_else(|| drawn::integers(name, tensor, args))
                            .unwrap_or_default();
                        (numbers, result)
                    }
                    _ => (Contents::Unknown, result),
                };
                let adds_up = matches!(name, "sum" | "mean") && args.0.is_empty();
                let sources =
                    || [receiver].into_iter().chain(args.0.iter().map(|(_, given)| given));
                let is_untold = numbers == Contents::Unknown && result.kept_contents().is_none();
                if adds_up && is_untold && !self.records() {
                    let sum = self.note_sum(receiver, result, name == "mean");
                    return self.note_path(name, sources(), sum);
                }
                let is_new = name.starts_with("new_") || name == "clone";
                let made = match (numbers, result.kept_contents()) {
                    (Contents::Unknown, None) if !is_new => self.allocate_known(result),
                    (Contents::Unknown, None) => self.allocate(result, made::by_torch(name, args)),
                    (Contents::Unknown, Some(kept)) => self.allocate(result, kept),
                    (known, _) => self.allocate(result, known),
                };
                let made = self.following(name, sources(), made);
                let made = self.note_path(name, sources(), made);
                let given = || {
                    let receiver = (None, receiver.clone());
                    [receiver].into_iter().chain(args.0.iter().cloned()).collect()
                };
                self.note_made(Maker::Method(name.into()), given, made)
            }
        }
    }
}

/// Methods that change a tensor and no number in it.
const KEEPING_NUMBERS: &[&str] = &["detach_", "requires_grad_", "share_memory_"];

/// True for the classes of a module's parameters and buffers.
fn is_parameter(path: &[Name]) -> bool {
    let path: Vec<&str> = path.iter().map(|part| &**part).collect();
    matches!(path[..], [TORCH, "nn", .., "Buffer" | "Parameter"])
}

/// Whether it is a mean, for `torch.sum(x)` and `torch.mean(x)`.
fn sum_of_all(path: &[Name], args: &Args<'_>) -> Option<bool> {
    let path: Vec<&str> = path.iter().map(|part| &**part).collect();
    match path[..] {
        [TORCH, name @ ("mean" | "sum")] if args.0.len() == 1 => Some(name == "mean"),
        _ => None,
    }
}

/// True for `super()`.
fn is_super(body: &Body, object: ExprId) -> bool {
    match &body.exprs[object] {
        Expr::Call { callee, .. } => body.exprs[*callee].is_name("super"),
        _ => false,
    }
}

/// Whether a function takes members of enumerations that are numbers for those.
fn takes_numbers(callee: &Value) -> bool {
    match callee {
        Value::Named(Resolution::Triton(_)) => true,
        Value::Named(Resolution::External(path)) => {
            path.first().is_some_and(|package| [TORCH, "math"].contains(&&**package))
        }
        Value::Global(name) => ["float", "int", "range"].contains(&&**name),
        _ => false,
    }
}

/// Functions of PyTorch that take no tensors but counts and bounds.
const COUNTING: &[&str] = &["arange", "eye", "linspace", "randint", "randperm"];

/// Functions and methods of tensors that take counts besides.
const COUNTING_OF: &[&str] = &["narrow", "repeat", "topk"];

/// The first argument that is a count, of functions of PyTorch to which tensors of one number are such.
fn counts(
    callee: &Value,
    receiver: &Option<Value>,
    method: &Option<(ExprId, Name)>,
) -> Option<usize> {
    match (callee, receiver, method) {
        (Value::Named(Resolution::External(path)), ..) => match &path[..] {
            [package, name] if **package == *TORCH && COUNTING.contains(&&**name) => Some(0),
            [package, name] if **package == *TORCH && COUNTING_OF.contains(&&**name) => Some(1),
            _ => None,
        },
        (_, Some(Value::Tensor(_)), Some((_, name))) => COUNTING_OF.contains(&&**name).then_some(0),
        _ => None,
    }
}

/// Arguments with numbers in the place of tensors of one number, from the `first` on.
fn counted(args: Vec<(Option<Name>, Value)>, first: usize) -> Vec<(Option<Name>, Value)> {
    let number = |(at, (name, value)): (usize, (Option<Name>, Value))| match &value {
        Value::Tensor(tensor) if at >= first && tensor.shape.as_deref() == Some(&[]) => {
            let number = data::item(tensor);
            (name, number.unwrap_or(value))
        }
        _ => (name, value),
    };
    args.into_iter().enumerate().map(number).collect()
}

/// Whether a function of PyTorch gives a tensor in the memory of an array that it is given.
fn shares_array(path: &[Name], args: &Args<'_>) -> bool {
    let is_sharing =
        matches!(path, [torch, name] if **torch == *TORCH && SHARING.contains(&&**name));
    is_sharing && matches!(args.positional().first(), Some(Value::Array(_)))
}

/// Packages that run no backward pass unless they are asked to by a name in [`GOING_BACK`].
const PLAIN: &[&str] = &[
    TORCH,
    "collections",
    "einops",
    "functools",
    "gc",
    "itertools",
    "json",
    "logging",
    "math",
    "numpy",
    "os",
    "pytest",
    "random",
    "sys",
    "time",
    "typing",
    "unittest",
    "warnings",
];

/// Parts of the paths by which backward passes are asked for.
const GOING_BACK: &[&str] = &["autograd", "func", "gradcheck", "opcheck", "optim", "utils", "vjp"];

/// Whether a call may run a backward pass of which nothing is seen: nobody knows what is called, or it is of a package
/// that may do anything.
fn may_go_back(callee: &Value, receiver: Option<&Value>) -> bool {
    match (callee, receiver) {
        (Value::Named(Resolution::External(path)), _) => {
            !path.first().is_some_and(|package| PLAIN.contains(&&**package))
                || path.iter().any(|part| GOING_BACK.contains(&&**part))
        }
        (Value::Unknown, None | Some(Value::Unknown)) => true,
        _ => false,
    }
}
