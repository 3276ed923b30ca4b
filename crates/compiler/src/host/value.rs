//! Values of host code.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::gpu::limits::{REGISTERS, SmLimits};
use crate::hir::{ExprId, Name, ParamKind};
use crate::host::Frame;
use crate::host::torch::drawn::Drawn;
use crate::host::torch::misuse::Misuse;
use crate::host::torch::views::reordered;
use crate::host::torch::{arrays, devices};
use crate::host::value::contents::Contents;
use crate::host::value::dtype::is_complex;
use crate::project::installation::Fact;
use crate::project::{ItemRef, Resolution};
use crate::specialization::Config;
use crate::specialization::{ConstArg, MemberArg, TupleNames};

pub(crate) mod changes;
pub(crate) mod contents;
pub(crate) mod dtype;
pub(crate) mod meeting;
pub(crate) mod memory;
pub(crate) mod number;

/// A value of host code, as far as it is known.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Nothing is known.
    Unknown,
    /// `None`.
    None,
    /// The `None` that an argument is by default; callers may well pass something else.
    Omitted,
    /// A bool, perhaps known.
    Bool(Option<bool>),
    /// An integer, perhaps known.
    Int(Option<i128>),
    /// A float, perhaps known.
    Float(Option<f64>),
    /// A string.
    Str(Arc<str>),
    /// A tuple.
    Tuple(Vec<Value>),
    /// A list.
    List(Vec<Value>),
    /// A named tuple.
    Record {
        /// What it and its fields are called.
        names: Arc<TupleNames>,
        /// Its elements.
        items: Vec<Value>,
    },
    /// `tl.constexpr(value)`: as `value` is, but passed to a kernel at compile time.
    Constexpr(Box<Value>),
    /// Integers of a number that is not known: a shape.
    Ints,
    /// None at all: PyTorch raises an exception.
    Raises(Misuse),
    /// A tuple, list or dict of which nothing more is known.
    Collection,
    /// A set, of which all elements are known, each once.
    Set(Vec<Value>),
    /// A dict in order.
    Dict(Dict),
    /// A tensor.
    Tensor(Tensor),
    /// An array of NumPy, as a tensor of the same elements.
    Array(Box<Tensor>),
    /// A host-side tensor descriptor.
    Descriptor(Box<Descriptor>),
    /// A dtype of Triton, or of scenarios, by signature spelling.
    DType(Arc<str>),
    /// A dtype of PyTorch by the signature spelling of the same one of Triton.
    TorchDType(Arc<str>),
    /// A device of which no more is known: it says nothing of types.
    Device,
    /// Where in memory something is: a number of which nothing is known but that it is another one elsewhere.
    Address {
        /// The allocation.
        id: u32,
        /// Bytes from its start on.
        offset: i128,
    },
    /// An autotune configuration.
    Config(Box<Config>),
    /// Something callable that has no name.
    Callable(Callable),
    /// A member of an enumeration.
    Member(MemberArg),
    /// An object by its number in [`Host::objects`](crate::host::Host).
    Object(usize),
    /// A module, function or class.
    Named(Resolution),
    /// A name that no item binds: one of Python's builtins, or of the scenario language.
    Global(Name),
    /// One of these, each once, at least two and at most [`MAX_ALTERNATIVES`]: values that nothing
    /// changes in place.
    OneOf(Vec<Value>),
}

/// A dict: its entries in order, each key once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dict {
    entries: Vec<(Value, Value)>,
    /// What a key that it lacks gives, other than an exception.
    pub(crate) missing: Option<Missing>,
}

/// What a dict gives for a key that it lacks.
#[derive(Debug, Clone)]
pub(crate) enum Missing {
    /// What this makes, called with nothing, which the dict has from then on: that of a `defaultdict`.
    Made(Box<Value>),
    /// None of it: that of a `Counter`.
    Zero,
}

impl Deref for Dict {
    type Target = Vec<(Value, Value)>;

    fn deref(&self) -> &Vec<(Value, Value)> {
        &self.entries
    }
}

impl DerefMut for Dict {
    fn deref_mut(&mut self) -> &mut Vec<(Value, Value)> {
        &mut self.entries
    }
}

impl From<Vec<(Value, Value)>> for Dict {
    fn from(entries: Vec<(Value, Value)>) -> Dict {
        Dict { entries, missing: None }
    }
}

impl FromIterator<(Value, Value)> for Dict {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Dict {
        Vec::from_iter(entries).into()
    }
}

impl IntoIterator for Dict {
    type Item = (Value, Value);
    type IntoIter = std::vec::IntoIter<(Value, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

/// Beyond, a value is not known.
const MAX_ALTERNATIVES: usize = 8;

/// A tensor, as far as it is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Tensor {
    /// Element type by signature spelling.
    pub(crate) dtype: Option<Arc<str>>,
    /// Sizes.
    pub(crate) shape: Option<Vec<Value>>,
    /// Distances between neighbors along each dimension, in elements; those of a contiguous
    /// tensor when absent and `shape` is known.
    pub(crate) strides: Option<Vec<Value>>,
    /// The memory that it begins, where its size is known.
    pub(crate) storage: Option<Box<Storage>>,
    /// Whether it is certainly on the GPU.
    pub(crate) on_gpu: bool,
}

/// A host-side tensor descriptor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Descriptor {
    /// The memory with the sizes and strides that the descriptor has, which need not be those of
    /// the tensor that it was made from.
    pub(crate) tensor: Tensor,
    /// Block shape.
    pub(crate) block: Vec<Value>,
}

/// Memory that a tensor's first element is in, which is the first of it unless it is known to be another.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Storage {
    /// Which allocation it is; `None` when it may be one of several.
    pub(crate) id: Option<u32>,
    /// Of which allocation it is a part that does not begin where that does, where `id` is not known.
    pub(crate) part_of: Option<u32>,
    /// Which result of an `autograd.Function` it holds, by number.
    pub(crate) output: Option<u32>,
    /// Of which such result each element was made by an operator and a number.
    pub(crate) made_of: Option<u32>,
    /// How its floats are drawn at random.
    pub(crate) drawn: Option<Drawn>,
    /// Elements from the tensor's first to the end of the memory.
    pub(crate) elements: i128,
    /// Elements of the memory before the tensor's first.
    pub(crate) before: i128,
    /// What it holds from that element on.
    pub(crate) contents: Contents,
    /// Whether a conversion to another type has made it.
    pub(crate) is_converted: bool,
    /// Whether certainly no gradient of the tensor is wanted, whatever is wanted of the memory.
    pub(crate) is_detached: bool,
    /// What its gradients are kept by, where that is not the memory: something detached it.
    pub(crate) variable: Option<u32>,
    /// Whether functions made it of tensors whose gradients are wanted, so that its own is.
    pub(crate) is_of_wanted: bool,
}

impl Tensor {
    /// Notes that its memory may have been written.
    pub(crate) fn note_write(&mut self) {
        if let Some(storage) = &mut self.storage {
            (storage.contents, storage.drawn) = (Contents::Unknown, None);
        }
    }

    /// The same in memory that was copied, or may have been.
    pub(crate) fn moved(mut self) -> Tensor {
        if let Some(storage) = &mut self.storage {
            storage.contents = storage.contents.initialized();
        }
        self
    }

    /// Which allocation it begins, if that is known.
    pub(crate) fn allocation(&self) -> Option<u32> {
        self.storage.as_ref()?.id
    }

    /// Whether it is all of memory that nothing else is known to be in.
    pub(crate) fn is_alone(&self) -> bool {
        let is_own = |storage: &Storage| storage.before == 0 && storage.elements > 0;
        self.memory().is_none()
            && self.strides.is_none()
            && self.storage.as_deref().is_some_and(is_own)
    }

    /// Which allocation it is in, if that is known.
    pub(crate) fn memory(&self) -> Option<u32> {
        self.allocation().or(self.storage.as_ref()?.part_of)
    }
}

/// A callable without a name.
#[derive(Debug, Clone)]
pub(crate) enum Callable {
    /// A lambda with the variables around it.
    Lambda {
        /// Variables and code around it.
        frame: Arc<Frame>,
        /// Parameters.
        params: Vec<Parameter>,
        /// The value.
        body: ExprId,
    },
    /// A function that stands in another one.
    Closure {
        /// Variables of the function around it.
        frame: Arc<Frame>,
        /// The function.
        at: ItemRef,
    },
    /// A function of the project without its decorators, which are given it.
    Undecorated(ItemRef),
    /// `Class.apply` of a `torch.autograd.Function`.
    Apply {
        /// The class.
        class: ItemRef,
        /// Variables and code of the function in which it stands, where it does.
        around: Option<Arc<Frame>>,
    },
    /// A `torch.autograd.Function` that stands in a function, as that one gives it.
    Local {
        /// The class.
        class: ItemRef,
        /// Variables and code of the function.
        around: Arc<Frame>,
    },
    /// `kernel[grid]`.
    Launcher {
        /// The kernel, or one of several.
        kernel: Box<Value>,
        /// What stands between the brackets.
        grid: Box<Value>,
    },
    /// `functools.partial(callee, ...)`.
    Partial {
        /// What is called.
        callee: Box<Value>,
        /// The arguments that it holds.
        args: Vec<(Option<Name>, Value)>,
    },
    /// What gives the function that it is called with, for which it does something around each call:
    /// `torch.no_grad()`.
    Around,
    /// What registers the function that it is called with under a name, and gives it as it is:
    /// `torch.library.custom_op(...)`.
    Registrar(Name),
    /// What tunes kernels that it is called with: `triton.autotune(...)`.
    Tuner(Arc<Tuner>),
    /// What that makes of a kernel: arguments may come from its configurations.
    Tuned(Arc<TunedKernel>),
}

/// A kernel that was given to tuners.
#[derive(Debug, PartialEq)]
pub(crate) struct TunedKernel {
    /// The kernel.
    pub(crate) at: ItemRef,
    /// What it was given to, in order.
    pub(crate) tuners: Vec<Arc<Tuner>>,
}

/// `triton.autotune(...)` or `triton.heuristics(...)`.
#[derive(Debug, PartialEq)]
pub(crate) struct Tuner {
    /// Which of them.
    pub(crate) kind: TunerKind,
    /// What it was given.
    pub(crate) args: Vec<(Option<Name>, Value)>,
}

/// What tunes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TunerKind {
    /// `triton.autotune`.
    Autotune,
    /// `triton.heuristics`.
    Heuristics,
}

/// A parameter of a lambda.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// Its name.
    pub(crate) name: Name,
    /// How arguments reach it.
    pub(crate) kind: ParamKind,
    /// What it is without an argument.
    pub(crate) default: Value,
}

impl PartialEq for Callable {
    /// Known to be the same: two lambdas are when they were made at once.
    fn eq(&self, other: &Callable) -> bool {
        match (self, other) {
            (
                Callable::Lambda { frame: a, body: of_a, .. },
                Callable::Lambda { frame: b, body: of_b, .. },
            ) => Arc::ptr_eq(a, b) && of_a == of_b,
            (
                Callable::Closure { frame: a, at: of_a },
                Callable::Closure { frame: b, at: of_b },
            ) => of_a == of_b && a.variables == b.variables,
            (Callable::Around, Callable::Around) => true,
            (Callable::Registrar(a), Callable::Registrar(b)) => a == b,
            (Callable::Tuner(a), Callable::Tuner(b)) => a == b,
            (Callable::Tuned(a), Callable::Tuned(b)) => a == b,
            (
                Callable::Apply { class: a, around: None },
                Callable::Apply { class: b, around: None },
            )
            | (Callable::Undecorated(a), Callable::Undecorated(b)) => a == b,
            (
                Callable::Launcher { kernel: a, grid: of_a },
                Callable::Launcher { kernel: b, grid: of_b },
            ) => a == b && of_a == of_b,
            _ => false,
        }
    }
}

/// The tensors that arguments give access to, in order.
pub(crate) fn tensors_in(args: &[(Option<Name>, Value)]) -> Vec<&Tensor> {
    args.iter().flat_map(|(_, value)| value.tensors()).collect()
}

impl PartialEq for Value {
    /// Known to be the same: what is not known equals only what is equally unknown.
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Unknown, Value::Unknown)
            | (Value::Device, Value::Device)
            | (Value::None, Value::None)
            | (Value::Omitted, Value::Omitted)
            | (Value::Collection, Value::Collection)
            | (Value::Ints, Value::Ints) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Str(a), Value::Str(b))
            | (Value::DType(a), Value::DType(b))
            | (Value::TorchDType(a), Value::TorchDType(b)) => a == b,
            (Value::Tuple(a), Value::Tuple(b)) | (Value::List(a), Value::List(b)) => a == b,
            (Value::Record { names: a, items: of_a }, Value::Record { names: b, items: of_b }) => {
                a == b && of_a == of_b
            }
            (Value::Constexpr(a), Value::Constexpr(b)) => a == b,
            (Value::Set(a), Value::Set(b)) => a == b,
            (Value::Dict(a), Value::Dict(b)) => a.entries == b.entries,
            (Value::Tensor(a), Value::Tensor(b)) => a == b,
            (Value::Config(a), Value::Config(b)) => a.is_same(b),
            (Value::Address { id: a, offset: of_a }, Value::Address { id: b, offset: of_b }) => {
                a == b && of_a == of_b
            }
            (Value::Member(a), Value::Member(b)) => a == b,
            (Value::Named(a), Value::Named(b)) => a == b,
            (Value::Global(a), Value::Global(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Descriptor(a), Value::Descriptor(b)) => a == b,
            (Value::OneOf(a), Value::OneOf(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => a == b,
            (Value::Callable(a), Value::Callable(b)) => a == b,
            _ => false,
        }
    }
}

/// A limit of a multiprocessor.
type OfLimits = fn(&SmLimits) -> u32;

/// The properties of a GPU that its compute capability limits, as PyTorch calls them.
const OF_LIMITS: &[(&str, OfLimits)] = &[
    ("max_threads_per_multi_processor", |limits| limits.warps * 32),
    ("regs_per_multiprocessor", |_| REGISTERS),
    // What a kernel gets without asking for more.
    ("shared_memory_per_block", |_| 48 << 10),
    ("shared_memory_per_block_optin", |limits| limits.shared_bytes_per_block),
    ("shared_memory_per_multiprocessor", |limits| limits.shared_bytes),
];

/// The attribute of a GPU's properties that says how many multiprocessors it has.
const MULTIPROCESSORS: &str = "multi_processor_count";

/// A number that GPUs of this compute capability have.
fn of_device(name: &str, capability: u32) -> Option<i128> {
    if name == MULTIPROCESSORS {
        return multiprocessors(capability);
    }
    let (_, of_limits) = OF_LIMITS.iter().find(|(known, _)| *known == name)?;
    Some(of_limits(SmLimits::of_capability(capability)?).into())
}

/// How many multiprocessors one GPU of this compute capability has. Others of the same kind have
/// fewer, but a launch that goes wrong on one of them is wrong.
fn multiprocessors(capability: u32) -> Option<i128> {
    match capability {
        80 => Some(108),
        90 => Some(132),
        100 => Some(148),
        _ => None,
    }
}

/// A record of what is told of a GPU; other numbers are integers that are not known.
fn told_of(fact: &Fact, class: &str, fields: &[&str], capability: u32) -> Value {
    let told = |field: &&str| match fact.attribute(field, capability) {
        Some(fact) => Value::of_fact(&fact, capability).unwrap_or(Value::Int(None)),
        None if *field == "name" => devices::name(capability),
        None => Value::Int(of_device(field, capability)),
    };
    let items = fields.iter().map(told).collect();
    let fields = fields.iter().map(|field| Name::from(*field)).collect();
    Value::Record { names: Arc::new(TupleNames { class: class.into(), fields }), items }
}

impl Value {
    /// What is known of the installation, or of a GPU of this compute capability.
    pub(crate) fn of_fact(fact: &Fact, capability: u32) -> Option<Value> {
        let int = |value: &i128| Value::Int(Some(*value));
        Some(match fact {
            Fact::None => Value::None,
            Fact::Bool(value) => Value::Bool(Some(*value)),
            Fact::Int(value) => int(value),
            Fact::Text(text) => Value::Str(text.as_str().into()),
            Fact::Numbers(numbers) => Value::Tuple(numbers.iter().map(int).collect()),
            Fact::Target => {
                told_of(fact, "GPUTarget", &["backend", "arch", "warp_size"], capability)
            }
            Fact::Device => {
                let limited = OF_LIMITS.iter().map(|(name, _)| *name);
                let known = ["major", "minor", "name", "warp_size", MULTIPROCESSORS].into_iter();
                let known: Vec<&str> = known.chain(limited).collect();
                told_of(fact, "DeviceProperties", &known, capability)
            }
            Fact::Python | Fact::Environment | Fact::Object => return None,
        })
    }

    /// What it may be: itself, where that is one thing.
    pub(crate) fn alternatives(&self) -> Vec<Value> {
        match self {
            Value::OneOf(values) => values.clone(),
            value => vec![value.clone()],
        }
    }

    /// One of two different values that nothing changes in place; not known for others.
    pub(crate) fn one_of(a: &Value, b: &Value) -> Value {
        let mut values: Vec<Value> = Vec::new();
        for value in a.alternatives().into_iter().chain(b.alternatives()) {
            let constant = matches!(
                value,
                Value::None
                    | Value::Bool(Some(_))
                    | Value::Int(Some(_))
                    | Value::Float(Some(_))
                    | Value::Str(_)
                    | Value::DType(_)
                    | Value::TorchDType(_)
                    | Value::Member(_)
                    | Value::Named(_)
                    | Value::Callable(
                        Callable::Launcher { .. }
                            | Callable::Lambda { .. }
                            | Callable::Closure { .. }
                            | Callable::Tuned(_)
                    )
            );
            if !constant {
                return Value::Unknown;
            }
            if !values.contains(&value) {
                values.push(value);
            }
        }
        match values.len() {
            2..=MAX_ALTERNATIVES => Value::OneOf(values),
            _ => Value::Unknown,
        }
    }

    /// True for a kernel, and for one of several.
    pub(crate) fn is_kernel(&self) -> bool {
        match self {
            Value::Named(Resolution::Jit(_)) | Value::Callable(Callable::Tuned(_)) => true,
            Value::OneOf(values) => values.iter().any(Value::is_kernel),
            _ => false,
        }
    }

    /// The kernel itself, and what it was given to.
    pub(crate) fn untuned(self) -> (Value, Vec<Arc<Tuner>>) {
        match self {
            Value::Callable(Callable::Tuned(tuned)) => {
                (Value::Named(Resolution::Jit(tuned.at)), tuned.tuners.clone())
            }
            value => (value, Vec::new()),
        }
    }

    /// The allocations that it gives access to.
    pub(crate) fn allocations(&self) -> Vec<u32> {
        self.tensors().into_iter().filter_map(Tensor::memory).collect()
    }

    /// The tensors that it gives access to, in order.
    pub(crate) fn tensors(&self) -> Vec<&Tensor> {
        match self {
            Value::Tensor(tensor) => vec![tensor],
            Value::Descriptor(descriptor) => vec![&descriptor.tensor],
            Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
                items.iter().flat_map(Value::tensors).collect()
            }
            Value::Dict(entries) => entries.iter().flat_map(|(_, value)| value.tensors()).collect(),
            Value::Callable(Callable::Partial { args, .. }) => tensors_in(args),
            _ => Vec::new(),
        }
    }

    /// What memory without a number holds, where that is known: a copy's.
    pub(crate) fn kept_contents(&self) -> Option<Contents> {
        let Value::Tensor(Tensor { storage: Some(storage), .. }) = self else { return None };
        let is_own = storage.id.is_none() && storage.part_of.is_none();
        let known = is_own && (storage.contents != Contents::Unknown || storage.drawn.is_some());
        known.then(|| storage.contents.clone())
    }

    /// Notes that the allocations for which `written` holds may have been written.
    pub(crate) fn note_writes(&mut self, written: &dyn Fn(u32) -> bool) {
        self.change_tensors(&mut |tensor| {
            if tensor.memory().is_some_and(written) {
                tensor.note_write();
            }
        });
    }

    /// Changes the tensors in allocations for which `is_there` holds.
    pub(crate) fn change_memory(
        &mut self,
        is_there: &dyn Fn(u32) -> bool,
        change: &dyn Fn(&mut Tensor),
    ) {
        self.change_tensors(&mut |tensor| {
            if tensor.allocation().is_some_and(is_there) {
                change(tensor);
            }
        });
    }

    /// The same of any allocations.
    pub(crate) fn anywhere(mut self) -> Value {
        self.change_tensors(&mut |tensor| {
            if let Some(storage) = &mut tensor.storage {
                (storage.id, storage.part_of) = (None, None);
            }
        });
        self
    }

    /// The same, whose elements may be laid out in another order.
    pub(crate) fn in_any_order(mut self) -> Value {
        self.change_tensors(&mut |tensor| *tensor = reordered(tensor));
        self
    }

    /// Changes the tensors that it gives access to, in the order of [`Value::tensors`].
    pub(crate) fn change_tensors(&mut self, change: &mut dyn FnMut(&mut Tensor)) {
        match self {
            Value::Tensor(tensor) => change(tensor),
            Value::Descriptor(descriptor) => change(&mut descriptor.tensor),
            Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
                items.iter_mut().for_each(|item| item.change_tensors(change));
            }
            Value::Dict(entries) => {
                entries.iter_mut().for_each(|(_, value)| value.change_tensors(change));
            }
            Value::Callable(Callable::Partial { args, .. }) => {
                args.iter_mut().for_each(|(_, value)| value.change_tensors(change));
            }
            _ => {}
        }
    }

    /// A tensor of which at most the dtype is known.
    pub(crate) fn tensor(dtype: Option<&str>) -> Value {
        Value::Tensor(Tensor { dtype: dtype.map(Arc::from), ..Tensor::default() })
    }

    /// What a tuple, list or dict holds.
    pub(crate) fn parts(&self) -> Vec<Value> {
        match self {
            Value::Dict(entries) => entries.iter().map(|(_, part)| part.clone()).collect(),
            other => other.elements().unwrap_or_default(),
        }
    }

    /// The elements of a tuple, list, or the keys of a dict.
    pub(crate) fn elements(&self) -> Option<Vec<Value>> {
        match self {
            Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
                Some(items.clone())
            }
            Value::Constexpr(value) => value.elements(),
            Value::Array(array) => arrays::listed(array),
            Value::Dict(entries) => Some(entries.iter().map(|(key, _)| key.clone()).collect()),
            Value::Set(items) if items.len() < 2 => Some(items.clone()),
            _ => None,
        }
    }

    /// The letters of a text, each of which is a text again; `None` of anything else.
    pub(crate) fn letters(&self) -> Option<Vec<Value>> {
        let Value::Str(text) = self else { return None };
        Some(text.chars().map(|letter| Value::Str(Name::from(letter.to_string()))).collect())
    }

    /// The value without the `tl.constexpr` around it.
    pub(crate) fn plain(&self) -> &Value {
        match self {
            Value::Constexpr(value) => value.plain(),
            value => value,
        }
    }

    /// The value without any `tl.constexpr` in it, as functions outside of the project take it.
    pub(crate) fn plainly(self) -> Value {
        let plainly = |items: Vec<Value>| items.into_iter().map(Value::plainly).collect();
        match self {
            Value::Constexpr(value) => value.plainly(),
            Value::Tuple(items) => Value::Tuple(plainly(items)),
            Value::List(items) => Value::List(plainly(items)),
            value => value,
        }
    }

    /// What is known of each element when their number is not.
    pub(crate) fn any_element(&self) -> Value {
        match self {
            Value::Ints => Value::Int(None),
            Value::OneOf(values) if values.contains(&Value::Ints) => Value::Int(None),
            _ => Value::Unknown,
        }
    }

    /// The value of a compile-time argument.
    pub(crate) fn from_const(value: &ConstArg) -> Value {
        match value {
            ConstArg::None => Value::None,
            ConstArg::Bool(value) => Value::Bool(Some(*value)),
            ConstArg::Int(value) => Value::Int(Some(*value)),
            ConstArg::Float(bits) => Value::Float(Some(f64::from_bits(*bits))),
            ConstArg::Str(text) => Value::Str(text.clone()),
            ConstArg::DType(name) => Value::DType(name.clone()),
            ConstArg::TorchDType(name) => Value::TorchDType(name.clone()),
            ConstArg::Function(_) => Value::Unknown,
            ConstArg::Member(member) => Value::Member(member.clone()),
            ConstArg::Tuple(items) => Value::Tuple(items.iter().map(Value::from_const).collect()),
        }
    }

    /// The value as a compile-time argument, when it is wholly known.
    pub(crate) fn to_const(&self) -> Option<ConstArg> {
        Some(match self {
            Value::None => ConstArg::None,
            Value::Bool(value) => ConstArg::Bool((*value)?),
            Value::Int(value) => ConstArg::Int((*value)?),
            Value::Float(value) => ConstArg::Float((*value)?.to_bits()),
            Value::Str(text) => ConstArg::Str(text.clone()),
            Value::DType(dtype) => ConstArg::DType(dtype.clone()),
            Value::TorchDType(dtype) if !is_complex(dtype) => ConstArg::TorchDType(dtype.clone()),
            Value::Member(member) => ConstArg::Member(member.clone()),
            Value::Constexpr(value) => value.to_const()?,
            Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
                ConstArg::Tuple(items.iter().map(Value::to_const).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }
}
