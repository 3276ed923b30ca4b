//! Which launches left memory as it is, and what host code made of that: what it holds follows from running
//! them in order.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::hir::{BinaryOp, Name, UnaryOp};
use crate::host::code::arguments::Args;
use crate::host::launch::ObservedLaunch;
use crate::host::torch::data;
use crate::host::value::contents::Contents;
use crate::host::value::{Tensor, Value};
use crate::host::{Host, may_lead};
use crate::project::Resolution;

/// Steps of one run that are kept; what later ones leave is not known.
const MAX_STEPS: usize = 32;

/// By allocation the step that left it as it is, by its position among others.
pub(crate) type Left = Vec<(u32, usize)>;

/// Something that left memory as it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A launch, without what was before it.
    Launch(Arc<ObservedLaunch>),
    /// Host code made tensors.
    Made(Arc<Making>),
}

/// A step with what left the memory that it was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Earlier {
    /// The step.
    pub(crate) step: Step,
    /// By which of those before.
    pub(crate) left: Left,
}

/// The steps from which it follows what memory holds that a launch is given, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Before {
    /// The steps.
    pub(crate) steps: Vec<Earlier>,
    /// By which of them.
    pub(crate) left: Left,
}

impl Before {
    /// The launches among the steps, each with what left its memory.
    pub(crate) fn launches(&self) -> impl Iterator<Item = (&ObservedLaunch, &Left)> {
        self.steps.iter().filter_map(|earlier| match &earlier.step {
            Step::Launch(launch) => Some((&**launch, &earlier.left)),
            Step::Made(_) => None,
        })
    }
}

/// The steps met so far: launches, and what host code makes of what they leave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    steps: Vec<Earlier>,
    /// By allocation the step that wrote to it last, if nothing else may have since.
    left: FxHashMap<u32, usize>,
}

impl Past {
    /// Something else may have written to these allocations.
    pub(crate) fn forget(&mut self, allocations: &[u32]) {
        allocations.iter().for_each(|id| {
            self.left.remove(id);
        });
    }

    /// Notes a step that certainly happens, is given `args`, and writes to no others than these allocations.
    fn push(&mut self, step: Step, args: &[(Option<Name>, Value)], allocations: &[u32]) {
        if self.steps.len() == MAX_STEPS {
            return self.forget(allocations);
        }
        let left = self.left_of(args);
        self.steps.push(Earlier { step, left });
        let at = self.steps.len() - 1;
        self.left.extend(allocations.iter().map(|id| (*id, at)));
    }

    fn left_of(&self, args: &[(Option<Name>, Value)]) -> Left {
        let ids = args.iter().flat_map(|(_, value)| value.allocations());
        ids.filter_map(|id| Some((id, *self.left.get(&id)?))).collect()
    }

    /// What was before a launch with these arguments, if steps left memory that may decide what a kernel
    /// does.
    fn before(&self, args: &[(Option<Name>, Value)]) -> Before {
        let leads = |(_, value): &(Option<Name>, Value)| {
            let Value::Tensor(tensor) = value else { return false };
            let is_left = || tensor.allocation().is_some_and(|id| self.left.contains_key(&id));
            tensor.dtype.as_deref().is_some_and(may_lead) && is_left()
        };
        if !args.iter().any(leads) {
            return Before::default();
        }
        let left = self.left_of(args);
        let mut wanted: Vec<usize> = Vec::new();
        let mut pending: Vec<usize> = left.iter().map(|(_, at)| *at).collect();
        while let Some(at) = pending.pop() {
            if !wanted.contains(&at) {
                wanted.push(at);
                pending.extend(self.steps[at].left.iter().map(|(_, at)| *at));
            }
        }
        wanted.sort_unstable();
        let numbered = |left: &Left| -> Left {
            let place = |at: &usize| wanted.binary_search(at).ok();
            left.iter().filter_map(|(id, at)| Some((*id, place(at)?))).collect()
        };
        let steps = wanted.iter().map(|at| {
            let Earlier { step, left } = &self.steps[*at];
            Earlier { step: step.clone(), left: numbered(left) }
        });
        Before { left: numbered(&left), steps: steps.collect() }
    }
}

/// What makes tensors of others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Maker {
    /// A method of the first argument.
    Method(Name),
    /// A function of PyTorch.
    Torch(Vec<Name>),
    /// An operator.
    Binary(BinaryOp),
    /// An operator of one operand.
    Unary(UnaryOp),
    /// What chooses elements by these indices along axes.
    Chosen(Vec<Option<Value>>),
}

/// Methods and functions whose results are in memory of their own, whatever they are given.
const MAKING: &[&str] = &[
    "add",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "argsort",
    "bincount",
    "cat",
    "clamp",
    "clone",
    "concat",
    "cumsum",
    "diff",
    "div",
    "eq",
    "floor_divide",
    "flip",
    "gather",
    "ge",
    "gt",
    "index_select",
    "le",
    "lt",
    "max",
    "min",
    "mul",
    "ne",
    "remainder",
    "roll",
    "searchsorted",
    "sort",
    "stack",
    "sub",
    "sum",
    "topk",
    "where",
];

/// Methods whose results are in such memory where they are of another type.
pub(crate) const CASTING: &[&str] =
    &["bool", "double", "float", "half", "int", "long", "short", "to", "type"];

impl Maker {
    fn makes_new(&self) -> bool {
        match self {
            Maker::Method(name) => MAKING.contains(&&**name) || CASTING.contains(&&**name),
            Maker::Torch(path) => path.last().is_some_and(|name| MAKING.contains(&&**name)),
            Maker::Binary(_) => true,
            Maker::Unary(_) | Maker::Chosen(_) => false,
        }
    }

    /// What a method or a function is called.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Maker::Method(name) => Some(name),
            Maker::Torch(path) => path.last().map(|name| &**name),
            Maker::Binary(_) | Maker::Unary(_) | Maker::Chosen(_) => None,
        }
    }

    /// What it makes of these, where all their numbers are known.
    pub(crate) fn make(&self, args: &[(Option<Name>, Value)]) -> Option<data::Made> {
        match (self, args) {
            (Maker::Method(name), [(None, Value::Tensor(tensor)), rest @ ..]) => {
                data::of_method(name, tensor, &Args(rest), data::Ties::InOrder)
            }
            (Maker::Torch(path), args) => data::by_torch(path, &Args(args), data::Ties::InOrder),
            (Maker::Binary(op), [(_, left), (_, right)]) => {
                data::binary(*op, left, right).map(Into::into)
            }
            (Maker::Unary(op), [(_, operand)]) => data::unary(*op, operand).map(Into::into),
            (Maker::Chosen(index), [(_, Value::Tensor(tensor))]) => {
                data::indexed(tensor, index).map(Into::into)
            }
            _ => None,
        }
    }
}

/// Tensors that host code made of others.
#[derive(Debug, Clone, PartialEq)]
pub struct Making {
    maker: Maker,
    args: Vec<(Option<Name>, Value)>,
    result: Value,
}

// A NaN among the arguments makes it another one than itself, which is then worked out again.
impl Eq for Making {}

impl Making {
    /// What is in each memory that was made, where `memory` tells what the numbers in that of an allocation
    /// are, from its first element on; `None` where that does not follow.
    pub fn made(&self, memory: &dyn Fn(u32) -> Option<Vec<f64>>) -> Option<Vec<MadeMemory>> {
        let mut args = self.args.clone();
        for (_, value) in &mut args {
            value.change_memory(&|_| true, &|tensor| know(tensor, memory));
        }
        let mut result = self.result.clone();
        result.change_memory(&|_| true, &|tensor| tensor.storage = None);
        let known = data::noted(result, Some(self.maker.make(&args)?));
        let made = self.result.tensors().into_iter().zip(known.tensors());
        made.map(|(made, known)| MadeMemory::of(made.allocation()?, known)).collect()
    }
}

/// Memory that host code made.
#[derive(Debug, Clone)]
pub struct MadeMemory {
    /// Which allocation it is.
    pub id: u32,
    /// The type of its elements by signature spelling.
    pub dtype: Arc<str>,
    /// What it holds.
    pub numbers: Vec<f64>,
}

impl MadeMemory {
    /// That of a tensor whose numbers are known.
    fn of(id: u32, tensor: &Tensor) -> Option<MadeMemory> {
        let storage = tensor.storage.as_deref()?;
        let numbers = storage.contents.all(usize::try_from(storage.elements).ok()?)?;
        Some(MadeMemory { id, dtype: tensor.dtype.clone()?, numbers })
    }
}

/// Gives a tensor what its memory holds.
fn know(tensor: &mut Tensor, memory: &dyn Fn(u32) -> Option<Vec<f64>>) {
    let numbers = tensor.allocation().and_then(memory);
    if let (Some(numbers), Some(dtype), Some(storage)) =
        (numbers, tensor.dtype.clone(), &mut tensor.storage)
    {
        storage.contents = data::contents(&dtype, numbers).behind(storage.before);
    }
}

/// Whether a value is tensors in memory of which nothing is known, and in which none of `args` is.
fn is_new(value: &Value, args: &[(Option<Name>, Value)]) -> bool {
    let given: Vec<u32> = args.iter().flat_map(|(_, value)| value.allocations()).collect();
    let is_new = |tensor: &&Tensor| {
        let is_known = tensor.storage.as_deref().is_some_and(|storage| {
            storage.contents != Contents::Unknown || storage.drawn.is_some()
        });
        tensor.dtype.is_some() && !is_known && tensor.memory().is_none_or(|id| !given.contains(&id))
    };
    let found = value.tensors();
    !found.is_empty() && found.iter().all(is_new)
}

impl Host<'_> {
    /// What was before a launch with these arguments.
    pub(crate) fn before(&self, args: &[(Option<Name>, Value)]) -> Arc<Before> {
        Arc::new(self.past.before(args))
    }

    /// Notes that a launch may have written to these allocations: `one` where it is not one of several.
    pub(crate) fn note_launch(&mut self, one: Option<&ObservedLaunch>, allocations: &[u32]) {
        let is_of_kernel =
            |launch: &ObservedLaunch| matches!(launch.kernel, Value::Named(Resolution::Jit(_)));
        let is_certain =
            |launch: &&ObservedLaunch| launch.complete && !launch.doubtful && is_of_kernel(launch);
        match one.filter(is_certain).filter(|_| self.doubt.is_straight()) {
            Some(launch) => {
                let alone = ObservedLaunch { before: Arc::default(), ..launch.clone() };
                self.past.push(Step::Launch(Arc::new(alone)), &launch.args, allocations);
            }
            None => self.past.forget(allocations),
        }
    }

    /// Notes that host code made `result` by `maker` of what `args` gives, where launches left what these hold
    /// and that is why nothing is known of it.
    pub(crate) fn note_made(
        &mut self,
        maker: Maker,
        args: impl FnOnce() -> Vec<(Option<Name>, Value)>,
        result: Value,
    ) -> Value {
        let is_left = !self.past.left.is_empty() && maker.makes_new() && self.doubt.is_straight();
        if !is_left && !self.records() {
            return result;
        }
        let args = args();
        let result = self.recorded(&maker, &args, result);
        if !is_left {
            return result;
        }
        if self.past.left_of(&args).is_empty() || !is_new(&result, &args) {
            return result;
        }
        let anywhere = |value: &Value| value.allocations().is_empty().then_some(Contents::Unknown);
        let result = self.allocate_parts(result, anywhere);
        let allocations = result.allocations();
        let making = Arc::new(Making { maker, args, result: result.clone() });
        self.past.push(Step::Made(Arc::clone(&making)), &making.args, &allocations);
        result
    }
}

/// `made` by a method of `receiver`, with a note of whether that is a copy of other elements.
pub(crate) fn note_conversion(receiver: &Value, method: &str, mut made: Value) -> Value {
    if let (Value::Tensor(of), Value::Tensor(copy)) = (receiver, &mut made)
        && CASTING.contains(&method)
        && of.dtype.as_ref().zip(copy.dtype.as_ref()).is_some_and(|(from, to)| from != to)
        && let Some(storage) = &mut copy.storage
    {
        storage.is_converted = true;
    }
    made
}
