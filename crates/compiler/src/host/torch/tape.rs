//! Gradients of a run that computes all numbers: what made tensors of those whose gradients are wanted is kept in
//! order, and a backward pass goes through it from its end.
//!
//! Gradients are kept by variable, which is memory unless something detached a tensor in it, and by place in it. So
//! views need no steps, and what is written in place takes the gradients at its places from what was there before.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::launch::past::Maker;
use crate::host::torch::autograd::{Applied, gradient_of, parts};
use crate::host::torch::data::{self, Data};
use crate::host::torch::views;
use crate::host::value::dtype::{is_complex, is_float};
use crate::host::value::{Storage, Tensor, Value, tensors_in};

/// What made tensors, and of what.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    steps: Vec<Step>,
    /// Variables whose gradients are wanted, or that are made of such.
    followed: FxHashSet<u32>,
    /// Tensors whose gradients are kept, by variable.
    kept: FxHashMap<u32, Tensor>,
    /// Whether something is followed that has no variable of its own.
    is_lost: bool,
}

/// Arguments of a call.
type Given = [(Option<Name>, Value)];

#[derive(Debug)]
struct Step {
    by: By,
    args: Vec<(Option<Name>, Value)>,
    made: Value,
}

/// What makes something.
#[derive(Debug, Clone)]
pub(crate) enum By {
    /// A function, a method or an operator of PyTorch.
    Maker(Maker),
    /// An assignment to the elements at these positions.
    Stored(Value),
    /// An `autograd.Function`.
    Function(Arc<Applied>),
    /// Nothing that tells how gradients pass it.
    Unknown,
}

/// Gradients of the elements of a variable.
#[derive(Debug, Clone)]
enum Held {
    Known(Vec<f64>),
    Unknown,
}

/// A backward pass.
#[derive(Default)]
struct Pass {
    held: FxHashMap<u32, Held>,
    /// Those that were asked for, as they were when what made them was come to.
    kept: FxHashMap<u32, Held>,
}

impl Tensor {
    /// What its gradients are kept by, if it is known.
    pub(crate) fn variable(&self) -> Option<u32> {
        self.storage.as_ref()?.variable.or_else(|| self.memory())
    }

    /// What its own gradient is kept by: what is a part of other memory has none of its own.
    pub(crate) fn own_variable(&self) -> Option<u32> {
        let storage = self.storage.as_ref().filter(|storage| storage.part_of.is_none())?;
        storage.variable.or(storage.id)
    }

    /// Whether it may have a gradient.
    fn may_be_followed(&self) -> bool {
        self.dtype.as_deref().is_none_or(|dtype| is_float(dtype) || is_complex(dtype))
    }
}

impl Tape {
    fn follows(&self, tensor: &Tensor) -> bool {
        tensor.may_be_followed()
            && tensor.variable().is_some_and(|variable| self.followed.contains(&variable))
    }

    /// Whether it knows the gradient of a tensor, or that it is not known.
    pub(crate) fn keeps(&self, tensor: &Tensor) -> bool {
        tensor.own_variable().is_some_and(|variable| self.kept.contains_key(&variable))
    }
}

impl Pass {
    /// Gradients of what a tensor shows, which what was there before has no more; the inner `None` where they are
    /// not known.
    fn take(&mut self, tensor: &Tensor) -> Option<Option<Data>> {
        let held = self.held.get_mut(&tensor.variable()?)?;
        let Held::Known(numbers) = held else { return Some(None) };
        let taken = data::places(tensor).and_then(|places| {
            let place = |at: usize| Some(std::mem::take(numbers.get_mut(at)?));
            let taken = places.into_iter().map(place).collect::<Option<Vec<f64>>>()?;
            Data::in_shape_of(tensor, taken)
        });
        if taken.is_none() {
            *held = Held::Unknown;
        }
        Some(taken)
    }

    /// Adds to gradients of what a tensor shows.
    fn add(&mut self, tensor: &Tensor, gradient: Option<&Data>) {
        let (Some(variable), Some(storage)) = (tensor.variable(), tensor.storage.as_deref()) else {
            return;
        };
        let gradient = gradient.filter(|gradient| gradient.is_of_sizes(tensor));
        let added = gradient.zip(data::places(tensor));
        let size = usize::try_from(storage.before + storage.elements).ok();
        let size = size.filter(|size| *size <= 2 * data::MAX_COMPUTED);
        let (Some((gradient, places)), Some(size)) = (added, size) else {
            self.held.insert(variable, Held::Unknown);
            return;
        };
        let held = self.held.entry(variable).or_insert_with(|| Held::Known(Vec::new()));
        if let Held::Known(numbers) = held {
            numbers.resize(numbers.len().max(size), 0.0);
            for (place, number) in places.into_iter().zip(gradient.in_order()) {
                numbers[place] += number;
            }
        }
    }

    /// What is known of the gradient of a tensor that was asked for.
    fn of(&self, tensor: &Tensor) -> Option<Option<Data>> {
        let variable = tensor.variable()?;
        match self.kept.get(&variable).or_else(|| self.held.get(&variable))? {
            Held::Unknown => Some(None),
            Held::Known(numbers) => {
                let places = data::places(tensor);
                let number = |at: usize| numbers.get(at).copied();
                let all = places.and_then(|places| places.into_iter().map(number).collect());
                Some(all.and_then(|all| Data::in_shape_of(tensor, all)))
            }
        }
    }
}

impl Host<'_> {
    /// Keeps the gradients of a tensor from here on, which are wanted.
    pub(crate) fn watch(&mut self, value: &Value) {
        let Value::Tensor(tensor) = value else { return };
        if self.launcher.is_none() {
            return;
        }
        match tensor.own_variable() {
            Some(variable) => {
                if self.tape.followed.insert(variable) {
                    self.tape.kept.insert(variable, tensor.clone());
                }
            }
            None => self.tape.is_lost = true,
        }
    }

    /// Keeps the gradients of a tensor that something made, too.
    pub(crate) fn retain(&mut self, value: &Value) {
        if let Value::Tensor(tensor) = value
            && let Some(variable) = tensor.variable().filter(|_| self.tape.follows(tensor))
        {
            self.tape.kept.insert(variable, tensor.clone());
        }
    }

    /// Whether anything is followed.
    pub(crate) fn records(&self) -> bool {
        self.launcher.is_some() && !self.tape.followed.is_empty()
    }

    /// Whether a tensor in arguments is followed.
    pub(crate) fn follows_any(&self, args: &Given) -> bool {
        tensors_in(args).into_iter().any(|tensor| self.tape.follows(tensor))
    }

    /// Whether a run that computes all numbers knows that a tensor depends on none whose gradient is wanted:
    /// where a tensor's numbers are known, so is all that they come from.
    pub(crate) fn is_apart(&self, tensor: &Tensor) -> bool {
        self.launcher.is_some()
            && !self.tape.is_lost
            && !self.tape.follows(tensor)
            && data::of(tensor).is_some()
    }

    /// Notes that `maker` made something of `args`.
    pub(crate) fn recorded(&mut self, maker: &Maker, args: &Given, made: Value) -> Value {
        if !self.records() || !self.follows_any(args) {
            return made;
        }
        match maker.name() {
            Some("detach" | "detach_") => made,
            Some(name) if self.without_gradients > 0 && name.ends_with('_') => made,
            _ if self.without_gradients > 0 => self.apart(made),
            _ => self.on_tape(By::Maker(maker.clone()), args.to_vec(), made),
        }
    }

    /// Views that are made where no gradients are wanted: what is made of them passes none on.
    fn apart(&mut self, mut made: Value) -> Value {
        made.change_tensors(&mut |tensor| {
            if self.tape.follows(tensor) {
                self.detach(tensor);
            }
        });
        made
    }

    /// What a function gave of what it was given, as variables of their own: gradients of them reach the function.
    pub(crate) fn apart_from_inputs(&mut self, args: &Given, mut output: Value) -> Value {
        if self.records() && self.follows_any(args) {
            let given: Vec<u32> =
                tensors_in(args).into_iter().filter_map(Tensor::variable).collect();
            output.change_tensors(&mut |tensor| {
                if tensor.variable().is_some_and(|variable| given.contains(&variable)) {
                    self.detach(tensor);
                }
            });
        }
        output
    }

    /// Gives a tensor a variable of its own in the memory that it is in.
    pub(crate) fn detach(&mut self, tensor: &mut Tensor) {
        if let Some(storage) = tensor.storage.as_mut().filter(|_| self.launcher.is_some()) {
            self.allocations += 1;
            storage.variable = Some(self.allocations);
        }
    }

    /// Keeps a step that makes new tensors; what is a view of what is followed needs none.
    pub(crate) fn on_tape(
        &mut self,
        by: By,
        args: Vec<(Option<Name>, Value)>,
        mut made: Value,
    ) -> Value {
        let from: Vec<u32> = tensors_in(&args).into_iter().filter_map(Tensor::variable).collect();
        let mut new = Vec::new();
        made.change_tensors(&mut |tensor| {
            if !tensor.may_be_followed() {
                return;
            }
            self.give_variable(tensor);
            // Who gives what it is given, as a function does that changes it in place, is asked all the same.
            let is_view = |variable: &u32| matches!(by, By::Maker(_)) && from.contains(variable);
            new.extend(tensor.variable().filter(|variable| !is_view(variable)));
        });
        if !new.is_empty() {
            self.push_step(by, args, made.clone(), new);
        }
        made
    }

    /// The same of what a call with these arguments gave, where any of them is followed.
    pub(crate) fn on_tape_of(&mut self, by: By, args: &Given, made: Value) -> Value {
        let is_followed = self.records() && self.without_gradients == 0 && self.follows_any(args);
        if is_followed { self.on_tape(by, args.to_vec(), made) } else { made }
    }

    /// Keeps a step that writes to a tensor in place.
    pub(crate) fn on_tape_in_place(
        &mut self,
        by: By,
        args: Vec<(Option<Name>, Value)>,
        written: &Value,
    ) {
        let Value::Tensor(tensor) = written else { return };
        let is_followed = self.records() && (self.follows_any(&args) || self.tape.follows(tensor));
        if is_followed && self.without_gradients == 0 {
            let variable = tensor.variable();
            self.push_step(by, args, written.clone(), Vec::from_iter(variable));
        }
    }

    /// Keeps a step of a method that changes a tensor in place.
    pub(crate) fn record_change(&mut self, method: &str, receiver: &Value, args: &Args<'_>) {
        let Value::Tensor(tensor) = receiver else { return };
        if !self.records() {
            return;
        }
        let plain = method.trim_end_matches('_');
        let mut by_elements = |value: Option<&Value>| {
            let by = self.positions_in(tensor).map_or(By::Unknown, By::Stored);
            (by, value.map(|value| (None, value.clone())).into_iter().collect())
        };
        let (by, given) = match plain {
            "copy" => by_elements(args.get(0, "src")),
            "zero" | "fill" => by_elements(args.get(0, "value")),
            _ => {
                let given = [(None, receiver.clone())].into_iter().chain(args.0.iter().cloned());
                (By::Maker(Maker::Method(plain.into())), given.collect())
            }
        };
        self.on_tape_in_place(by, given, receiver);
    }

    /// A parameter, which is a variable of its own in the memory of what it was made of.
    pub(crate) fn watched_parameter(&mut self, mut made: Value, is_wanted: bool) -> Value {
        made.change_tensors(&mut |tensor| self.detach(tensor));
        if is_wanted {
            self.watch(&made);
        }
        made
    }

    fn push_step(
        &mut self,
        by: By,
        args: Vec<(Option<Name>, Value)>,
        made: Value,
        variables: Vec<u32>,
    ) {
        let by = if self.doubt.is_straight() { by } else { By::Unknown };
        self.tape.followed.extend(variables);
        self.tape.steps.push(Step { by, args, made });
    }

    fn give_variable(&mut self, tensor: &mut Tensor) {
        if tensor.variable().is_some() {
            return;
        }
        self.allocations += 1;
        let id = Some(self.allocations);
        match &mut tensor.storage {
            Some(storage) => storage.id = id,
            None => {
                tensor.storage = views::span(tensor)
                    .map(|elements| Box::new(Storage { id, elements, ..Storage::default() }));
            }
        }
    }

    /// A backward pass from these results, each with its gradient if one is given; whether it was followed.
    pub(crate) fn pull_back(&mut self, results: &[(&Value, Option<&Value>)]) -> bool {
        let kept: Vec<Tensor> = self.tape.kept.values().cloned().collect();
        let Some(pass) = self.passed(results, &kept) else {
            self.forget_gradients();
            return false;
        };
        for tensor in &kept {
            if let Some(gradient) = pass.of(tensor) {
                self.add_gradient(tensor, gradient);
            }
        }
        true
    }

    /// The gradients of these tensors from a backward pass, each a tensor; `None` where the pass was not followed.
    pub(crate) fn gradients_by_tape(
        &mut self,
        results: &Value,
        of: &[Value],
        gradients: Option<&Value>,
    ) -> Option<Vec<Value>> {
        let several = |value: &Value| value.elements().unwrap_or_else(|| vec![value.clone()]);
        let results = several(results);
        let given = gradients.map(several).unwrap_or_default();
        let results: Vec<_> =
            results.iter().enumerate().map(|(at, result)| (result, given.get(at))).collect();
        if !of.iter().all(|value| matches!(value, Value::Tensor(_))) {
            return None;
        }
        let of: Vec<Tensor> = of.iter().flat_map(Value::tensors).cloned().collect();
        let pass = self.passed(&results, &of)?;
        let found = of.iter().map(|tensor| match pass.of(tensor).flatten() {
            Some(gradient) => self.new_gradient(tensor, gradient),
            None => gradient_of(&Value::Tensor(tensor.clone())),
        });
        Some(found.collect())
    }

    /// Nothing is known of any gradient from here on.
    pub(crate) fn lose_gradients(&mut self) {
        self.tape.is_lost = true;
        self.forget_gradients();
    }

    /// Nothing is known any more of the gradients that are kept.
    pub(crate) fn forget_gradients(&mut self) {
        self.gradients.values_mut().for_each(|gradient| *gradient = Value::Unknown);
        let variables = self.tape.kept.keys();
        self.gradients.extend(variables.map(|variable| (*variable, Value::Unknown)));
    }

    /// The gradients of these are none, as `zero_grad` leaves them.
    pub(crate) fn drop_gradients(&mut self, of: &[Value]) {
        let variables = of.iter().flat_map(Value::tensors).filter_map(Tensor::own_variable);
        self.gradients.extend(variables.map(|variable| (variable, Value::None)));
    }

    fn passed(&mut self, results: &[(&Value, Option<&Value>)], asked: &[Tensor]) -> Option<Pass> {
        if self.tape.is_lost || !self.records() || !self.doubt.is_straight() {
            return None;
        }
        let mut pass = Pass::default();
        for (result, gradient) in results {
            let Value::Tensor(result) = result else { return None };
            let gradient = match gradient {
                None | Some(Value::None) => Data::filled(result, 1.0),
                Some(Value::Tensor(gradient)) => data::of(gradient),
                Some(_) => return None,
            };
            if !self.tape.follows(result) {
                return None;
            }
            pass.add(result, gradient.as_ref());
        }
        let asked: Vec<u32> = asked.iter().filter_map(Tensor::variable).collect();
        let steps = std::mem::take(&mut self.tape.steps);
        self.without_gradients += 1;
        let is_followed = steps.iter().rev().all(|step| self.step_back(step, &asked, &mut pass));
        self.without_gradients -= 1;
        self.tape.steps = steps;
        is_followed.then_some(pass)
    }

    /// Takes gradients back through a step; false where it is not known which tensors they reach.
    fn step_back(&mut self, step: &Step, asked: &[u32], pass: &mut Pass) -> bool {
        let parts = parts(&step.made);
        for part in parts {
            if let Value::Tensor(tensor) = part
                && let Some(variable) = tensor.variable().filter(|known| asked.contains(known))
                && let Some(held) = pass.held.get(&variable)
            {
                let held = held.clone();
                pass.kept.entry(variable).or_insert(held);
            }
        }
        let given: Vec<Option<Option<Data>>> = parts
            .iter()
            .map(|part| match part {
                Value::Tensor(tensor) if tensor.may_be_followed() => pass.take(tensor),
                _ => None,
            })
            .collect();
        if given.iter().all(Option::is_none) {
            return true;
        }
        self.note_effort("", parts.iter());
        if self.launcher.is_none() {
            return false;
        }
        match &step.by {
            By::Function(applied) => self.function_back(applied, step, given, pass),
            By::Stored(positions) => stored_back(step, positions, given, pass),
            By::Maker(maker) => self.made_back(maker, step, given, pass),
            By::Unknown => {
                // What is made may be in memory that something else was in before.
                let tensors = tensors_in(&step.args).into_iter().chain(step.made.tensors());
                tensors.filter(|it| self.tape.follows(it)).for_each(|it| pass.add(it, None));
                !may_hide_tensors(&step.args)
            }
        }
    }

    fn made_back(
        &mut self,
        maker: &Maker,
        step: &Step,
        given: Vec<Option<Option<Data>>>,
        pass: &mut Pass,
    ) -> bool {
        let is_known = given.iter().all(|given| !matches!(given, Some(None)));
        let given: Vec<Option<Data>> = given.into_iter().map(Option::flatten).collect();
        for (at, tensor) in tensors_in(&step.args).into_iter().enumerate() {
            if !self.tape.follows(tensor) {
                continue;
            }
            self.note_effort(maker.name().unwrap_or_default(), step.args.iter().map(|(_, it)| it));
            if self.launcher.is_none() {
                return false;
            }
            let gradient =
                is_known.then(|| data::handed_on(maker, &step.args, at, &given)).flatten();
            pass.add(tensor, gradient.as_ref());
        }
        !may_hide_tensors(&step.args)
    }

    /// Runs the `backward` of an `autograd.Function`.
    fn function_back(
        &mut self,
        applied: &Applied,
        step: &Step,
        given: Vec<Option<Option<Data>>>,
        pass: &mut Pass,
    ) -> bool {
        let of_parts = parts(&step.made).iter().zip(given);
        let gradients = of_parts.map(|(part, given)| {
            let Value::Tensor(tensor) = part else { return Value::None };
            // What no gradient comes to has zeros.
            let known = match given {
                Some(gradient) => gradient,
                None => Data::filled(tensor, 0.0).filter(|_| tensor.may_be_followed()),
            };
            known.map_or_else(|| gradient_of(part), |known| self.new_gradient(tensor, known))
        });
        let gradients = gradients.collect();
        let returned = self.run_backward(applied, gradients);
        let returned = match returned {
            Value::Tuple(items) | Value::List(items) => items,
            one => vec![one],
        };
        let mut is_followed = true;
        for (at, (_, arg)) in step.args.iter().enumerate() {
            match (arg, returned.get(at)) {
                (Value::Tensor(tensor), found) if self.tape.follows(tensor) => match found {
                    Some(Value::None) => {}
                    Some(Value::Tensor(gradient)) => pass.add(tensor, data::of(gradient).as_ref()),
                    _ => pass.add(tensor, None),
                },
                (_, Some(Value::None) | None) => {}
                (arg, Some(_)) => is_followed &= !may_hide_tensors(&[(None, arg.clone())]),
            }
        }
        is_followed
    }

    /// A gradient of a tensor, in memory of its own.
    fn new_gradient(&mut self, of: &Tensor, gradient: Data) -> Value {
        let like = Tensor { storage: None, ..of.copied() };
        let made = data::noted(Value::Tensor(like), Some(gradient));
        self.allocate_known(made)
    }

    /// Adds to the gradient that is kept for a tensor.
    fn add_gradient(&mut self, tensor: &Tensor, gradient: Option<Data>) {
        let Some(variable) = tensor.variable() else { return };
        let before = self.gradients.get(&variable).cloned();
        let now = match (before, gradient) {
            (None | Some(Value::None), Some(gradient)) => self.new_gradient(tensor, gradient),
            (Some(before), Some(gradient)) => self.added(before, gradient),
            (_, None) => Value::Unknown,
        };
        self.gradients.insert(variable, now);
    }

    /// A gradient to which another one was added, in its place.
    fn added(&mut self, before: Value, gradient: Data) -> Value {
        let before = self.current(before);
        let Value::Tensor(tensor) = &before else { return Value::Unknown };
        let sum = data::of(tensor).and_then(|held| held.plus(&gradient));
        let contents = sum.zip(tensor.dtype.as_deref());
        let contents = contents.and_then(|(sum, dtype)| sum.held_as(dtype));
        match tensor.allocation().zip(contents) {
            Some((id, contents)) if views::is_contiguous(tensor) == Some(true) => {
                self.note_filled(id, contents);
                before
            }
            _ => Value::Unknown,
        }
    }
}

/// Takes gradients back through an assignment to some elements.
fn stored_back(
    step: &Step,
    positions: &Value,
    given: Vec<Option<Option<Data>>>,
    pass: &mut Pass,
) -> bool {
    let Value::Tensor(written) = &step.made else { return false };
    let split = given.into_iter().next().flatten().flatten().and_then(|given| {
        let Value::Tensor(positions) = positions else { return None };
        given.split_at(&data::of(positions)?)
    });
    let (chosen, rest) = split.unzip();
    pass.add(written, rest.as_ref());
    for tensor in tensors_in(&step.args) {
        let gradient = chosen.clone().and_then(|chosen| chosen.reduced_to(tensor));
        pass.add(tensor, gradient.as_ref());
    }
    !may_hide_tensors(&step.args)
}

/// Whether arguments may hold tensors of which nothing is known: gradients may reach these.
fn may_hide_tensors(args: &Given) -> bool {
    fn may_hide(value: &Value) -> bool {
        match value {
            Value::Unknown | Value::Collection | Value::OneOf(_) | Value::Dict(_) => true,
            Value::Tensor(tensor) => tensor.may_be_followed() && tensor.variable().is_none(),
            Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
                items.iter().any(may_hide)
            }
            _ => false,
        }
    }
    args.iter().any(|(_, value)| may_hide(value))
}
