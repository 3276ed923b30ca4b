//! Launches of a run that computes all numbers: they are executed where they happen, and memory holds then
//! what they leave.

use crate::hir::{BinaryOp, Function, Name, Param};
use crate::host::code::arguments::Args;
use crate::host::launch::ObservedLaunch;
use crate::host::torch::data::{Draws, MAX_COMPUTED, Made, contents, noted_with, of_type, whole};
use crate::host::torch::generators::has_generator;
use crate::host::torch::views;
use crate::host::torch::wanted::is_without;
use crate::host::value::contents::Contents;
use crate::host::value::dtype::is_float;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};
use crate::host::{Host, Variables};
use crate::project::Resolution;
use crate::project::launchers::is_test;
use crate::source::{FileId, FileRange};

/// The bytes to which PyTorch aligns the memory that it allocates, on CPUs and GPUs.
const ALIGNMENT: i128 = 64;

/// Functions, methods and operators that multiply each number with many, and how many numbers each counts for.
const MULTIPLYING: &[&str] = &[
    "addmm",
    "bmm",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "einsum",
    "linear",
    "matmul",
    "mm",
    "scaled_dot_product_attention",
];
const TIMES_OF_PRODUCTS: i128 = 16;

/// Executes launches.
pub(crate) trait Launcher {
    /// What a launch leaves in memory to which these calls lead, the outermost first; nothing where that does not
    /// follow from what is known.
    fn left(&self, launch: &ObservedLaunch, calls: &[FileRange]) -> Vec<LeftMemory>;

    /// Whether functions of PyTorch may compute others of so many numbers more.
    fn allows(&self, effort: u64) -> bool;
}

/// What a launch leaves in the memory that a kernel is given.
#[derive(Debug, Clone)]
pub(crate) struct LeftMemory {
    /// The allocation.
    pub(crate) id: u32,
    /// The element of it from which on it is known.
    pub(crate) from: usize,
    /// Whether its elements are integers or truth values.
    pub(crate) is_whole: bool,
    /// What it holds from there on.
    pub(crate) numbers: Vec<f64>,
}

impl Host<'_> {
    /// Executes a launch, or forgets what is in memory to which one of several may write.
    pub(super) fn execute(&mut self, launches: &[ObservedLaunch], allocations: &[u32]) {
        let left = match launches {
            [launch] => self.memory_after(launch),
            _ => Vec::new(),
        };
        self.filled.forget(allocations);
        self.written.extend(allocations);
        left.into_iter().for_each(|(id, contents)| self.note_filled(id, contents));
    }

    /// What allocations hold after a launch, where a run computes that.
    fn memory_after(&mut self, launch: &ObservedLaunch) -> Vec<(u32, Contents)> {
        let is_certain = launch.complete && !launch.doubtful && self.doubt.is_straight();
        let Some(launcher) = self.launcher.filter(|_| is_certain) else { return Vec::new() };
        let mut launch = launch.clone();
        let mut retyped = Vec::new();
        let mut locate = |tensor: &mut Tensor| retyped.extend(self.locate(tensor));
        launch.args.iter_mut().for_each(|(_, value)| value.change_tensors(&mut locate));
        let left = launcher.left(&launch, &self.calls);
        self.executed |= !left.is_empty();
        // What is written as another type is not what the memory holds as its own.
        let of_type = left.into_iter().filter(|left| !retyped.contains(&left.id));
        of_type.filter_map(|left| Some((left.id, self.whole(left)?))).collect()
    }

    /// Gives a part of memory the number of the memory: what a launch writes to it is seen there. What nobody wrote
    /// to is new in each part. Gives that number where the memory has elements of another type.
    fn locate(&self, tensor: &mut Tensor) -> Option<u32> {
        let id = tensor.memory()?;
        let is_same = self.types.get(&id).is_none_or(|of| tensor.dtype.as_ref() == Some(of));
        let storage = tensor.storage.as_mut()?;
        storage.id = Some(id);
        if is_same && self.filled.is_fresh(id) {
            storage.contents = Contents::Uninitialized;
        }
        (!is_same).then_some(id)
    }

    /// What all of an allocation holds of which a launch may have changed the end.
    fn whole(&self, left: LeftMemory) -> Option<Contents> {
        let dtype = if left.is_whole { "i64" } else { "fp64" };
        if left.from == 0 {
            return Some(contents(dtype, left.numbers));
        }
        let mut numbers = match self.filled.is_fresh(left.id) {
            true => vec![0.0; left.from],
            false => self.filled.get(left.id)?.all(left.from)?,
        };
        numbers.extend(left.numbers);
        Some(contents(dtype, numbers))
    }

    /// What a function makes in memory of its own, laid out in order where nothing tells how it is, as one run may
    /// do it that computes all numbers.
    fn in_order(&mut self, mut made: Value) -> Value {
        if self.launcher.is_some()
            && let Value::Tensor(tensor) = &mut made
            && tensor.memory().is_none()
            && tensor.strides.iter().flatten().any(|stride| !matches!(stride, Value::Int(Some(_))))
        {
            tensor.strides = None;
            self.takes_order |= !tensor.shape.as_deref().is_some_and(views::is_row);
        }
        made
    }

    /// What a function makes, with the numbers that it has where a run computes those: see [`noted_with`].
    pub(crate) fn with_numbers<T: Into<Made>>(
        &mut self,
        made: Value,
        numbers: impl FnOnce() -> Option<T>,
    ) -> Value {
        if self.launcher.is_none() {
            return noted_with(made, numbers);
        }
        let made = self.in_order(made);
        let known = made.elements().unwrap_or_else(|| vec![made.clone()]);
        let noted = noted_with(made, numbers);
        let is_open = |known: Option<&Value>| {
            !matches!(known, Some(Value::Tensor(Tensor { shape: Some(_), .. })))
        };
        let has_order = |value: &Value| match value {
            Value::Tensor(tensor) => {
                tensor.shape.as_deref().is_some_and(|sizes| !views::is_row(sizes))
            }
            _ => false,
        };
        let parts = noted.elements().unwrap_or_else(|| vec![noted.clone()]);
        let mut parts = parts.iter().enumerate();
        self.takes_order |= parts.any(|(at, part)| is_open(known.get(at)) && has_order(part));
        noted
    }

    /// `address % number` in a run whose memory is all its own, which begins where PyTorch aligns it.
    pub(crate) fn beyond_aligned(&self, op: BinaryOp, of: &Value, by: &Value) -> Option<Value> {
        match (op, of, by) {
            (BinaryOp::Mod, Value::Address { offset, .. }, Value::Int(Some(by)))
                if self.launcher.is_some() && *by > 0 && ALIGNMENT % *by == 0 =>
            {
                Some(Value::Int(Some(offset.rem_euclid(*by))))
            }
            _ => None,
        }
    }

    /// Notes that a function, a method or an operator computes numbers of these: a run that computes too many of
    /// them computes no more, and says nothing.
    pub(crate) fn note_effort<'v>(&mut self, name: &str, of: impl Iterator<Item = &'v Value>) {
        let Some(launcher) = self.launcher else { return };
        let elements = of.map(|value| match value {
            Value::Tensor(Tensor { storage: Some(storage), .. }) => storage.elements,
            _ => 0,
        });
        let times = if MULTIPLYING.contains(&name) { TIMES_OF_PRODUCTS } else { 1 };
        let effort = elements.sum::<i128>().saturating_mul(times);
        if !launcher.allows(u64::try_from(effort).unwrap_or(u64::MAX)) {
            self.launcher = None;
        }
    }

    /// What a new allocation holds in which a constructor or a function made a tensor: all numbers of it one by
    /// one, where a run computes them and they are not too many.
    pub(crate) fn computed(&mut self, id: u32, tensor: &Tensor, known: Contents) -> Contents {
        let Some(count) = views::span(tensor).and_then(|count| usize::try_from(count).ok()) else {
            return known;
        };
        if count > MAX_COMPUTED || !self.launcher.is_some_and(|it| it.allows(count as u64)) {
            return known;
        }
        let known = match (&known, tensor.dtype.as_deref()) {
            (Contents::Progression { .. }, Some(dtype)) if count > 0 => {
                match known.numbers(count) {
                    Some(numbers) if is_float(dtype) => Contents::Floats(
                        numbers.into_iter().map(|number| (number as f64).to_bits()).collect(),
                    ),
                    Some(numbers) => Contents::Listed(numbers.into()),
                    None => known,
                }
            }
            _ => known,
        };
        if let Contents::Floats(_) | Contents::Listed(_) = &known {
            self.filled.insert(id, known.clone());
        }
        known
    }

    /// What all of a tensor holds after a method that draws numbers into it, where a run draws its numbers.
    pub(crate) fn drawn_in_place(
        &mut self,
        name: &str,
        tensor: &Tensor,
        args: &Args<'_>,
    ) -> Option<Contents> {
        self.launcher.filter(|_| !has_generator(args))?;
        let number = |at: usize, name: &str, default: f64| match args.get(at, name) {
            None => Some(default),
            Some(told) => as_float(told),
        };
        match name {
            "uniform_" => {
                let (lo, hi) = (number(0, "from", 0.0)?, number(1, "to", 1.0)?);
                self.filled_by(tensor, |draws| lo + (hi - lo) * draws.fraction())
            }
            "normal_" => {
                let (mean, std) = (number(0, "mean", 0.0)?, number(1, "std", 1.0)?);
                self.filled_by(tensor, |draws| mean + std * draws.normal())
            }
            "exponential_" => {
                let rate = number(0, "lambd", 1.0)?;
                self.filled_by(tensor, |draws| -(1.0 - draws.fraction()).ln() / rate)
            }
            _ => None,
        }
    }

    /// Whether a test is run as it stands: decorators give it all that it takes, and do nothing else.
    pub(crate) fn is_given_all(
        &self,
        file: FileId,
        scope: &[Name],
        function: &Function,
        given: &Variables,
    ) -> bool {
        let keeps = |decorator: &Resolution| match decorator {
            Resolution::External(path) => {
                let path: Vec<&str> = path.iter().map(|part| &**part).collect();
                match path[..] {
                    ["pytest", "mark", name] => name != "xfail",
                    ["parameterized", "parameterized", "expand"]
                    | ["unittest", "skipIf" | "skipUnless"] => true,
                    _ => is_without(decorator),
                }
            }
            _ => false,
        };
        let is_instance = |param: &Param| match given.get(&param.name) {
            Some(Value::Object(object)) => self.classes.contains_key(object),
            _ => false,
        };
        is_test(function)
            && (self.launcher.is_some() || !self.has_fixtures(file, scope, function))
            && (scope.is_empty() || function.params.first().is_some_and(is_instance))
            && function.params.iter().all(|param| given.contains_key(&param.name))
            && self.decorators(file, scope, function).iter().all(keeps)
    }

    /// Notes what a call does to the generator of random numbers: the same seed draws the same numbers again, and
    /// nothing is known of those behind a seed or a state that is not known.
    pub(crate) fn note_generator(&mut self, path: &[Name], args: &Args<'_>) {
        let Some(name) = path.last().filter(|_| self.launcher.is_some()) else { return };
        if name.contains("seed") {
            self.numbers = match args.positional().first().copied().or_else(|| args.keyword("seed"))
            {
                Some(Value::Int(Some(seed))) => Some(Draws::seeded(*seed)),
                _ => None,
            };
        } else if name.contains("rng") {
            self.numbers = None;
        }
    }

    /// Evaluates something without drawing numbers of the run that computes all numbers: what it draws is not
    /// known.
    pub(crate) fn without_draws<T>(&mut self, code: impl FnOnce(&mut Self) -> T) -> T {
        let computes = self.launcher.is_some();
        let paused = |host: &mut Self, paused: bool| match &mut host.numbers {
            Some(numbers) if computes => numbers.pause(paused),
            _ => false,
        };
        let before = paused(self, true);
        let result = code(self);
        paused(self, before);
        result
    }

    /// Runs a function of `torch.nn.init`, where a run draws its numbers.
    pub(crate) fn initialize(&mut self, path: &[Name], args: &Args<'_>) {
        let path: Vec<&str> = path.iter().map(|part| &**part).collect();
        let (["torch", "nn", "init", name], Some(Value::Tensor(tensor))) =
            (&path[..], args.get(0, "tensor"))
        else {
            return;
        };
        let rest = Args(args.0.get(1..).unwrap_or_default());
        let contents = match *name {
            "uniform_" | "normal_" => self.drawn_in_place(name, tensor, &rest),
            "zeros_" | "ones_" if self.launcher.is_some() => {
                let number = f64::from(u8::from(*name == "ones_"));
                self.filled_by(tensor, |_| number)
            }
            "constant_" if self.launcher.is_some() => {
                let number = args.get(1, "val").and_then(as_float);
                number.and_then(|number| self.filled_by(tensor, |_| number))
            }
            "kaiming_normal_" | "kaiming_uniform_" | "trunc_normal_" | "xavier_normal_"
            | "xavier_uniform_"
                if self.launcher.is_some() =>
            {
                // Their bounds fall with the sizes; what lies within them may be drawn.
                let bound = 0.5 * fan(tensor).sqrt().recip();
                self.filled_by(tensor, |draws| bound * (2.0 * draws.fraction() - 1.0))
            }
            _ => None,
        };
        if let Some((id, contents)) = tensor.allocation().zip(contents) {
            self.note_filled(id, contents);
        }
    }

    /// What a parameter or a buffer of a module of a known class holds when it is made, where a run draws its
    /// numbers: what lies within the bounds of its random ones.
    pub(crate) fn begun(
        &mut self,
        (class, name): (&str, &str),
        tensor: &Tensor,
    ) -> Option<Contents> {
        self.launcher?;
        let is_norm = class.contains("Norm");
        let bound = fan(tensor).sqrt().recip();
        self.filled_by(tensor, |draws| match name {
            "weight" | "running_var" if is_norm => 1.0,
            "bias" | "running_mean" if is_norm => 0.0,
            _ if class == "PReLU" => 0.25,
            "bias" => 0.01 * (2.0 * draws.fraction() - 1.0),
            _ if class == "Embedding" => draws.normal(),
            _ => bound * (2.0 * draws.fraction() - 1.0),
        })
    }

    fn filled_by(
        &mut self,
        tensor: &Tensor,
        next: impl FnMut(&mut Draws) -> f64,
    ) -> Option<Contents> {
        let count = whole(tensor)?;
        let numbers = self.numbers.as_mut().filter(|numbers| !numbers.is_paused())?;
        let numbers = numbers.floats(usize::try_from(count).ok()?, next);
        Some(of_type(tensor.dtype.as_deref()?, numbers))
    }

    /// Notes what an allocation holds of which a tensor is all.
    pub(crate) fn note_computed(&mut self, tensor: &Value) {
        if self.launcher.is_some()
            && let Value::Tensor(Tensor { storage: Some(storage), .. }) = tensor
            && let (Some(id), 0) = (storage.id, storage.before)
            && let Contents::Floats(_) | Contents::Listed(_) = &storage.contents
        {
            self.filled.insert(id, storage.contents.clone());
        }
    }
}

/// How many numbers of an input lead to one of an output of a layer with these weights.
fn fan(tensor: &Tensor) -> f64 {
    let sizes = tensor.shape.iter().flatten().filter_map(|size| match size {
        Value::Int(Some(size)) => Some(*size as f64),
        _ => None,
    });
    sizes.skip(1).product::<f64>().max(1.0)
}
