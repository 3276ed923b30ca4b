//! What PyTorch's automatic differentiation runs: the `forward` of an `autograd.Function`, and its
//! `backward` with gradients.

use std::sync::Arc;

use crate::hir::{BinaryOp, Expr, Function, Name, Param, ParamKind};
use crate::host::code::arguments::Args;
use crate::host::objects::instances::FORWARD;
use crate::host::torch::fits;
use crate::host::torch::tape::By;
use crate::host::torch::views::{self, elements, is_contiguous, strides, unknown_strides};
use crate::host::value::contents::Contents;
use crate::host::value::{Storage, Tensor, Value};
use crate::host::{Frame, Host};
use crate::project::{self, ItemRef, function, item};
use crate::source::FileId;

/// Whether a method keeps or copies the tensors that it is given: one by which a `forward` tells its context of
/// them, or by which a module gets its state.
pub(crate) fn keeps_tensors(method: &str) -> bool {
    matches!(
        method,
        "load_state_dict"
            | "mark_dirty"
            | "mark_non_differentiable"
            | "save_for_backward"
            | "save_for_forward"
    )
}

/// Whether a method tells a module what it holds. Who makes the module may load another state.
pub(crate) fn registers(method: &str) -> bool {
    matches!(method, "add_module" | "register_buffer" | "register_module" | "register_parameter")
}

/// A function or a method, with the variables and the code around it where it stands in a function.
type Method = (ItemRef, Option<Arc<Frame>>);

/// A call of `forward` that `backward` may follow.
#[derive(Debug)]
pub(crate) struct Applied {
    backward: Method,
    /// The allocations that it was given.
    given: Vec<u32>,
    context: Value,
    output: Value,
}

impl Applied {
    /// A call with these arguments.
    pub(crate) fn new(
        backward: Method,
        args: &[(Option<Name>, Value)],
        context: Value,
        output: Value,
    ) -> Applied {
        let given = args.iter().flat_map(|(_, value)| value.allocations()).collect();
        Applied { backward, given, context, output }
    }
}

/// A result of an `autograd.Function`, all of whose elements a sum adds up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summand {
    output: u32,
    elements: i128,
    /// Whether they are divided by their number: each has a gradient of its own then.
    is_mean: bool,
}

impl Summand {
    fn of(tensor: &Tensor) -> Option<Summand> {
        let elements = elements(tensor.shape.as_ref()?)?;
        Some(Summand { output: tensor.storage.as_ref()?.output?, elements, is_mean: false })
    }

    /// Whether both are of the same result.
    fn is_of(&self, other: &Summand) -> bool {
        (self.output, self.elements) == (other.output, other.elements)
    }

    /// As [`Summand::of`], also of a tensor each of whose elements a number and an operator made of one.
    fn of_each(tensor: &Tensor) -> Option<Summand> {
        let elements = elements(tensor.shape.as_ref()?)?;
        let storage = tensor.storage.as_ref()?;
        Some(Summand { output: storage.output.or(storage.made_of)?, elements, is_mean: false })
    }
}

/// How a tensor is made of the result of an `autograd.Function`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    output: Summand,
    /// Whether the gradient of the result is computed, so that it is in memory of its own: it is laid out
    /// as the result is then. Otherwise it is what is handed on.
    is_new: bool,
}

/// The method of a `torch.autograd.Function` that saves what its `backward` needs, where `forward` does not.
const SETUP: &str = "setup_context";

/// What an operator or a function does to gradients on their way back.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Whether it computes new ones.
    is_new: bool,
    /// Whether it gives one number, or one for each row.
    reduces: bool,
}

/// Functions, methods and operators that multiply each gradient with something.
const MULTIPLY: &[&str] = &[
    "abs", "cos", "div", "erf", "exp", "gelu", "log", "mul", "pow", "relu", "sigmoid", "silu",
    "sin", "softplus", "sqrt", "square", "tanh",
];

/// Functions and methods that hand gradients on as they are, or in another type.
const HAND_ON: &[&str] = &["add", "bfloat16", "double", "float", "half", "sub", "to"];

/// Functions and methods that reduce a tensor, and compute the gradients of its elements.
const LOSSES: &[&str] =
    &["huber_loss", "l1_loss", "mse_loss", "norm", "smooth_l1_loss", "vector_norm"];

impl Step {
    fn of(name: &str) -> Option<Step> {
        let is_in = |names: &[&str]| names.contains(&name);
        let is_new = is_in(MULTIPLY) || is_in(LOSSES) || name == "mean";
        let reduces = is_in(LOSSES) || matches!(name, "mean" | "sum");
        (is_new || reduces || is_in(HAND_ON)).then_some(Step { is_new, reduces })
    }

    /// The function that an operator stands for.
    fn name(op: BinaryOp) -> &'static str {
        match op {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Pow => "pow",
            _ => "",
        }
    }
}

/// A gradient that a backward pass is given for what it begins at.
#[derive(Debug)]
struct Given {
    result: Tensor,
    gradient: Tensor,
}

impl Given {
    /// The gradient of a function's output, of which the result is made: the same, or, where elements
    /// are looked at in other sizes and keep their order, a view of it. Where a number comes in between,
    /// it is another tensor.
    fn reaching(&self, output: &Tensor) -> Option<Tensor> {
        let is_output =
            self.result.storage.as_ref().is_some_and(|storage| storage.output.is_some());
        let same_sizes =
            self.result.shape == output.shape && strides(&self.result) == strides(output);
        let in_order = [&self.result, &self.gradient, output]
            .into_iter()
            .all(|tensor| is_contiguous(tensor) == Some(true));
        let gradient = match (same_sizes, in_order) {
            (true, _) => self.gradient.clone(),
            (false, true) => {
                Tensor { shape: output.shape.clone(), strides: None, ..self.gradient.clone() }
            }
            _ => return None,
        };
        Some(if is_output { gradient } else { gradient.copied() })
    }
}

impl Host<'_> {
    /// Calls the `forward` of a subclass of `torch.autograd.Function`, and its `backward` with what
    /// `forward` leaves for it.
    pub(crate) fn call_forward(
        &mut self,
        (class, around): Method,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let Some(forward) = self.method_or_inherited(class, FORWARD) else { return Value::Unknown };
        let setup = self.method_or_inherited(class, SETUP);
        let context = self.object();
        if let Value::Object(context) = context {
            let wanted = args.iter().map(|(_, given)| self.wants_gradient(given)).collect();
            self.set_attribute(context, &"needs_input_grad".into(), Value::Tuple(wanted));
        }
        self.without_gradients += 1;
        let output = self.forward((forward, setup, around.as_ref()), &context, args);
        self.without_gradients = self.without_gradients.saturating_sub(1);
        let output = self.numbered(output);
        let output = match self.writes_to_inputs(class) {
            true => output,
            false => self.apart_from_inputs(args, output),
        };
        let output = self.following("apply", args.iter().map(|(_, given)| given), output);
        match self.method_or_inherited(class, "backward") {
            Some(backward) => {
                self.note_applied(Applied::new((backward, around), args, context, output), args)
            }
            None => self.on_tape_of(By::Unknown, args, output),
        }
    }

    /// Notes a call with these arguments that a backward pass may come to, and runs that with gradients of
    /// which no more is known than what they are of; what the call gave.
    pub(crate) fn note_applied(
        &mut self,
        applied: Applied,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        // Where gradients are computed, a backward pass runs it.
        let is_supposed = !self.records() || !self.follows_any(args);
        if is_supposed && self.perhaps_wants_gradients(args) {
            let around = self.supposed.replace(applied.backward.0);
            self.perhaps_running(|host| {
                host.run_backward(&applied, gradients(&applied.output));
            });
            self.supposed = around;
        }
        let applied = Arc::new(applied);
        self.applied.push(Arc::clone(&applied));
        let output = applied.output.clone();
        self.on_tape_of(By::Function(applied), args, output)
    }

    /// Gives each tensor that `forward` returned a number, by which what is made of it is known.
    pub(crate) fn numbered(&mut self, output: Value) -> Value {
        match output {
            Value::Tensor(mut tensor) => {
                self.outputs += 1;
                if let Some(storage) = &mut tensor.storage {
                    storage.output = Some(self.outputs);
                }
                Value::Tensor(tensor)
            }
            Value::Tuple(items) => {
                Value::Tuple(items.into_iter().map(|item| self.numbered(item)).collect())
            }
            output => output,
        }
    }

    /// The method of a class, or of what it derives from.
    fn method_or_inherited(&self, class: ItemRef, name: &str) -> Option<ItemRef> {
        self.own_method(class, name).or_else(|| self.class_method(class, name))
    }

    /// Whether a class says that it changes what it is given in place.
    fn writes_to_inputs(&self, class: ItemRef) -> bool {
        let marks =
            |expr: &Expr| matches!(expr, Expr::Attribute { attr, .. } if &**attr == "mark_dirty");
        [FORWARD, SETUP].iter().any(|name| {
            let method = self.method_or_inherited(class, name);
            let function = method.and_then(|at| function(self.sources, at));
            function.is_some_and(|function| function.body.exprs.values().any(marks))
        })
    }

    /// Runs `forward`, and `setup_context` where the class has one.
    fn forward(
        &mut self,
        (forward, setup, around): (ItemRef, Option<ItemRef>, Option<&Arc<Frame>>),
        context: &Value,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let Some(setup) = setup else {
            let mut given = vec![(None, context.clone())];
            given.extend(args.iter().cloned());
            return self.call_of_class((forward, around), given);
        };
        let output = self.call_method((forward, around), args);
        let inputs = Value::Tuple(args.iter().map(|(_, value)| value.clone()).collect());
        let given = [context.clone(), inputs, output.clone()].map(|value| (None, value));
        self.call_method((setup, around), &given);
        output
    }

    /// What the arguments of a `backward` are when `forward` beside it has run with arguments that
    /// are not known; `None` for other functions.
    pub(crate) fn backward_arguments(
        &mut self,
        file: FileId,
        class: &[Name],
        function: &Function,
    ) -> Option<Vec<Value>> {
        let is_backward = &*function.name == "backward" && !class.is_empty();
        if !is_backward || self.method(file, class, SETUP).is_some() {
            return None;
        }
        let forward = self.method(file, class, FORWARD)?;
        // What takes any number of arguments saves what nobody knows.
        let takes_any = |param: &Param| param.kind == ParamKind::VarArgs;
        if project::function(self.sources, forward)?.params.iter().any(takes_any) {
            return None;
        }
        let context = self.object();
        let met = self.launches.len();
        let output = self.forward((forward, None, None), &context, &[]);
        self.launches.truncate(met);
        let is_marked = function
            .decorators
            .iter()
            .any(|decorator| function.body.exprs[*decorator].is_name("classmethod"));
        let class = is_marked.then_some(Value::Unknown);
        Some(class.into_iter().chain([context]).chain(gradients(&output)).collect())
    }

    /// Notes of what `name` made of tensors which results of `autograd.Function`s they are made of, in a way
    /// by which the gradient of these is computed element by element.
    pub(crate) fn note_path<'v>(
        &mut self,
        name: &str,
        sources: impl Iterator<Item = &'v Value>,
        result: Value,
    ) -> Value {
        let Some(step) = Step::of(name).filter(|_| self.outputs > 0) else { return result };
        let Value::Tensor(made) = &result else { return result };
        let mut paths: Vec<Path> = Vec::new();
        for source in sources {
            let Value::Tensor(tensor) = source else { continue };
            let keeps_sizes = tensor.shape.is_some() && tensor.shape == made.shape;
            if !step.reduces && !keeps_sizes {
                continue;
            }
            let own = Summand::of(tensor).filter(|_| is_contiguous(tensor) == Some(true));
            let of = own.map(|output| Path { output, is_new: false });
            let earlier = tensor.allocation().and_then(|memory| self.paths.get(&memory));
            for path in of.into_iter().chain(earlier.into_iter().flatten().copied()) {
                let is_new = path.is_new || step.is_new;
                // A recurrence comes to one result by ways without number.
                match paths.iter_mut().find(|known| known.output.is_of(&path.output)) {
                    Some(known) => known.is_new &= is_new,
                    None => paths.push(Path { is_new, ..path }),
                }
            }
        }
        if paths.is_empty() {
            return result;
        }
        let mut made = made.clone();
        let memory = made.memory();
        let Some(storage) = &mut made.storage else { return result };
        if memory.is_none() {
            self.allocations += 1;
            storage.id = Some(self.allocations);
        }
        if let Some(memory) = storage.id {
            self.paths.insert(memory, paths);
        }
        Value::Tensor(made)
    }

    /// The results of `autograd.Function`s that get gradients of their own from a backward pass of `result`;
    /// `None` where one may get what is handed on.
    fn reached_from(&self, result: &Tensor) -> Option<Vec<Summand>> {
        let paths = self.paths.get(&result.allocation()?)?;
        let own = |path: &Path| path.is_new.then_some(Summand { is_mean: true, ..path.output });
        paths.iter().map(own).collect()
    }

    /// Notes that `result` is the sum of all elements of `whole`, or their mean.
    pub(crate) fn note_sum(&mut self, whole: &Value, result: Value, is_mean: bool) -> Value {
        match whole {
            Value::Tensor(whole) => {
                let summand = Summand::of(whole).map(|summand| Summand { is_mean, ..summand });
                self.with_summands(result, Vec::from_iter(summand))
            }
            _ => result,
        }
    }

    /// Notes what `result` is the sum of, which is `left op right`: each summand has a gradient that
    /// is one number then. What is summed twice has the sum of two.
    pub(crate) fn note_sums(
        &mut self,
        op: BinaryOp,
        (left, right): (&Value, &Value),
        result: Value,
    ) -> Value {
        let result = self.note_path(Step::name(op), [left, right].into_iter(), result);
        let summands = |value: &Value| match value {
            Value::Tensor(tensor) => self.sums.get(&tensor.allocation()?),
            _ => None,
        };
        let is_number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_));
        let all: Vec<Summand> = match (op, summands(left), summands(right)) {
            (BinaryOp::Add | BinaryOp::Sub, Some(left), Some(right)) => {
                left.iter().chain(right).copied().collect()
            }
            (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div, Some(left), None)
                if is_number(right) =>
            {
                left.clone()
            }
            (BinaryOp::Add | BinaryOp::Mul, None, Some(right)) if is_number(left) => right.clone(),
            _ => return result,
        };
        let is_repeated = |at: usize| all[..at].iter().any(|other| other.is_of(&all[at]));
        match (0..all.len()).any(is_repeated) {
            true => result,
            false => self.with_summands(result, all),
        }
    }

    fn with_summands(&mut self, sum: Value, summands: Vec<Summand>) -> Value {
        let sum = self.allocate(sum, Contents::Unknown);
        if let Value::Tensor(tensor) = &sum
            && let Some(allocation) = tensor.allocation()
            && !summands.is_empty()
        {
            self.sums.insert(allocation, summands);
        }
        sum
    }

    /// Notes that a tensor may have been changed in place: what gets a sum's gradient then is the
    /// change, and not the function whose result the tensor was.
    pub(crate) fn note_change(&mut self, changed: &Value) {
        let number = |value: &Value| match value {
            Value::Tensor(tensor) => tensor.storage.as_ref()?.output,
            _ => None,
        };
        let Some(changed) = number(changed) else { return };
        let is_changed = |output: &Value| number(output) == Some(changed);
        self.applied.retain(|applied| !parts(&applied.output).iter().any(is_changed));
    }

    /// Runs what `torch.autograd.backward(tensors, gradients)` does.
    pub(crate) fn backward_from(&mut self, args: &Args<'_>) -> Value {
        let listed = |value: Option<&Value>| {
            value.map(|value| match value.elements() {
                Some(items) => items,
                None => vec![value.clone()],
            })
        };
        let results = listed(args.get(0, "tensors")).unwrap_or_default();
        let given = listed(args.get(1, "grad_tensors"));
        let is_whole = given.as_ref().is_none_or(|given| given.len() == results.len());
        if !is_whole || args.keyword("inputs").is_some() {
            return Value::Unknown;
        }
        let gradient = |at: usize| match given.as_ref()?.get(at)? {
            Value::None => None,
            gradient => Some(gradient),
        };
        let pairs: Vec<_> =
            results.iter().enumerate().map(|(at, result)| (result, gradient(at))).collect();
        self.backward(&pairs)
    }

    /// `torch.autograd.gradcheck(func, inputs)`: runs a function, and its backward with gradients that are
    /// laid out as its results would be by themselves.
    pub(crate) fn gradcheck(&mut self, args: &Args<'_>) -> Value {
        let (Some(function), Some(inputs)) = (args.get(0, "func"), args.get(1, "inputs")) else {
            return Value::Unknown;
        };
        let inputs = inputs.elements().unwrap_or_else(|| vec![inputs.clone()]);
        let given: Vec<_> = inputs.into_iter().map(|input| (None, input)).collect();
        let results = self.call_value(function, &given);
        let results = results.elements().unwrap_or_else(|| vec![results.clone()]);
        for result in &results {
            let Value::Tensor(tensor) = result else { continue };
            let gradient = Tensor { strides: None, storage: None, ..tensor.clone() }.copied();
            let gradient = self.allocate(Value::Tensor(gradient), Contents::Unknown);
            self.backward(&[(result, Some(&gradient))]);
        }
        Value::Bool(None)
    }

    /// What `torch.autograd.grad(outputs, inputs, grad_outputs)` gives: a tensor for each input.
    pub(crate) fn gradients_of(&mut self, args: &Args<'_>) -> Value {
        let from = ["outputs", "inputs", "grad_outputs"];
        let [outputs, inputs, gradients] = [0, 1, 2].map(|at| args.get(at, from[at]));
        let (Some(outputs), Some(inputs)) = (outputs, inputs) else { return Value::Unknown };
        let inputs = inputs.elements().unwrap_or_else(|| vec![inputs.clone()]);
        if let Some(found) = self.gradients_by_tape(outputs, &inputs, gradients) {
            return Value::Tuple(found);
        }
        let mut given = vec![(None, outputs.clone())];
        given.extend(gradients.map(|gradients| (None, gradients.clone())));
        // Only functions on the way to the inputs run backward.
        let asked: Vec<u32> = inputs.iter().flat_map(Value::allocations).collect();
        let is_asked =
            |applied: &Arc<Applied>| applied.given.iter().any(|given| asked.contains(given));
        let (on_the_way, others) =
            std::mem::take(&mut self.applied).into_iter().partition(is_asked);
        self.applied = on_the_way;
        let found = self.backward_from(&Args(&given));
        self.applied.extend(others);
        if let raised @ Value::Raises(_) = found {
            return raised;
        }
        Value::Tuple(inputs.iter().map(gradient_of).collect())
    }

    /// Runs what the backward pass from these results does, each with its gradient if one is given,
    /// where all that is known of what they are made of is one `forward`. Gradients of what a sum adds
    /// up are expanded numbers.
    pub(crate) fn backward(&mut self, results: &[(&Value, Option<&Value>)]) -> Value {
        let refused =
            results.iter().find_map(|(result, gradient)| fits::no_gradient_of(result, *gradient));
        if let Some(misfit) = refused {
            return misfit.into();
        }
        if self.launcher.is_some() && self.pull_back(results) {
            return Value::None;
        }
        let mut known: Vec<(Summand, Option<Given>)> = Vec::new();
        for (result, gradient) in results {
            let Value::Tensor(result) = result else { return Value::Unknown };
            match gradient {
                Some(Value::Tensor(gradient)) => {
                    let Some(own) = Summand::of_each(result) else {
                        let Some(reached) = self.reached_from(result) else {
                            return Value::Unknown;
                        };
                        known.extend(reached.into_iter().map(|summand| (summand, None)));
                        continue;
                    };
                    let (result, gradient) = (result.clone(), of_type_of(result, gradient));
                    known.push((own, Some(Given { result, gradient })));
                }
                Some(_) => return Value::Unknown,
                None => {
                    let summands = result.allocation().and_then(|sum| self.sums.get(&sum)).cloned();
                    let Some(summands) = summands.or_else(|| self.reached_from(result)) else {
                        return Value::Unknown;
                    };
                    known.extend(summands.into_iter().map(|summand| (summand, None)));
                }
            }
        }
        self.differentiate(&known);
        Value::None
    }

    /// Runs the `backward` of the last `forward` that returned all of these, with their gradients.
    fn differentiate(&mut self, known: &[(Summand, Option<Given>)]) {
        let returns_all = |applied: &Arc<Applied>| {
            let outputs: Vec<Summand> =
                parts(&applied.output).iter().filter_map(summand_of).collect();
            known.iter().all(|(own, _)| outputs.iter().any(|output| output.is_of(own)))
        };
        let Some(at) = self.applied.iter().rposition(returns_all) else { return };
        let applied = self.applied.remove(at);
        if !self.keeps_gradients(applied.backward.0) {
            return;
        }
        let gradient = |(output, open): (&Value, Value)| {
            let own = summand_of(output);
            let found = known.iter().find(|(known, _)| own.is_some_and(|own| known.is_of(&own)));
            match (output, found) {
                (Value::Tensor(tensor), Some((_, Some(given)))) => {
                    given.reaching(tensor).map_or(open, Value::Tensor)
                }
                // An expanded number that is divided is one for each element.
                (Value::Tensor(tensor), Some((Summand { is_mean: true, .. }, None))) => {
                    Value::Tensor(Tensor { strides: None, ..tensor.clone() }.copied())
                }
                (Value::Tensor(tensor), Some((_, None))) => Value::Tensor(expanded_number(tensor)),
                _ => open,
            }
        };
        self.reached.insert(applied.backward.0);
        let layouts = gradients(&applied.output);
        let known = parts(&applied.output).iter().zip(layouts).map(gradient).collect();
        self.run_backward(&applied, known);
    }

    pub(crate) fn run_backward(&mut self, applied: &Applied, gradients: Vec<Value>) -> Value {
        let mut given = vec![(None, applied.context.clone())];
        given.extend(gradients.into_iter().map(|gradient| (None, gradient)));
        let (backward, around) = &applied.backward;
        self.call_of_class((*backward, around.as_ref()), given)
    }

    /// Calls a method by its class: one that `@classmethod` marks gets the class before all else.
    fn call_of_class(
        &mut self,
        (method, around): (ItemRef, Option<&Arc<Frame>>),
        mut given: Vec<(Option<Name>, Value)>,
    ) -> Value {
        if self.is_marked(method, "classmethod") {
            given.insert(0, (None, Value::Unknown));
        }
        self.call_method((method, around), &given)
    }

    /// Calls a method, which sees the variables around its class.
    fn call_method(
        &mut self,
        (method, around): (ItemRef, Option<&Arc<Frame>>),
        given: &[(Option<Name>, Value)],
    ) -> Value {
        match around.filter(|_| self.keeps_gradients(method)) {
            Some(around) => self.call_closure(around, method, given),
            None => self.call_function(method, given),
        }
    }

    /// Whether a function gets gradients as they are: a decorator of the project may copy them.
    fn keeps_gradients(&self, at: ItemRef) -> bool {
        let (Some(item), Some(function)) = (item(self.sources, at), function(self.sources, at))
        else {
            return false;
        };
        !self.is_wrapped(at.file, &item.scope, &function)
    }
}

fn summand_of(value: &Value) -> Option<Summand> {
    match value {
        Value::Tensor(tensor) => Summand::of(tensor),
        _ => None,
    }
}

/// What `forward` returned, one by one.
pub(crate) fn parts(output: &Value) -> &[Value] {
    match output {
        Value::Tuple(items) | Value::Record { items, .. } => items,
        output => std::slice::from_ref(output),
    }
}

/// A gradient as the function gets it whose result it is given for: PyTorch converts it to the result's type.
fn of_type_of(result: &Tensor, gradient: &Tensor) -> Tensor {
    match (&result.dtype, &gradient.dtype) {
        (Some(own), Some(given)) if own != given => views::with_dtype(gradient, Some(own.clone())),
        _ => gradient.clone(),
    }
}

/// The gradient of a sum of a tensor's elements: one number, of which each is a view.
fn expanded_number(tensor: &Tensor) -> Tensor {
    let none = |shape: &Vec<Value>| vec![Value::Int(Some(0)); shape.len()];
    let storage = Storage { elements: 1, ..Storage::default() };
    Tensor {
        dtype: tensor.dtype.clone(),
        shape: tensor.shape.clone(),
        strides: tensor.shape.as_ref().map(none),
        storage: Some(Box::new(storage)),
        on_gpu: tensor.on_gpu,
    }
}

/// The gradients that `backward` gets, one for each part of what `forward` returns.
fn gradients(output: &Value) -> Vec<Value> {
    parts(output).iter().map(gradient_of).collect()
}

/// A gradient has the dtype and the sizes of what it is of, and may be laid out in any way.
pub(crate) fn gradient_of(value: &Value) -> Value {
    match value {
        Value::Tensor(Tensor { dtype, shape, on_gpu, .. }) => Value::Tensor(Tensor {
            dtype: dtype.clone(),
            shape: shape.clone(),
            strides: unknown_strides(shape.as_deref()),
            storage: None,
            on_gpu: *on_gpu,
        }),
        _ => Value::Unknown,
    }
}
