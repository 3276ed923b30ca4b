//! Which memory tensors are in, and what may have been written to it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::builtins::TORCH;
use crate::hir::{Expr, ExprId, Name};
use crate::host::code::arguments::Args;
use crate::host::torch::modules::{known_class, sequence_class};
use crate::host::torch::{data, views};
use crate::host::value::contents::{Contents, Region};
use crate::host::value::{Storage, Tensor, Value};
use crate::host::{Frame, Host};
use crate::project::Resolution;

/// Parts of one allocation that are told apart; beyond, any of it may have been written.
const MAX_PARTS: usize = 64;

/// Parts of an allocation that host code may have written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    /// Where they are, counted from the first element of the memory.
    regions: Vec<Region>,
    /// Whether one of them certainly was.
    written: bool,
}

impl Parts {
    /// What the memory of a tensor holds, of which these are parts.
    fn apply(&self, tensor: &mut Tensor) {
        let Some(storage) = &mut tensor.storage else { return };
        let before = storage.before;
        let parts = self.regions.iter().map(|region| region.from(before));
        storage.contents = storage.contents.with_parts(parts, self.written);
        if self.written {
            storage.drawn = None;
        }
    }
}

/// What allocations hold since host code wrote to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filled {
    /// Of those of which it wrote all.
    known: FxHashMap<u32, Contents>,
    /// Of those of which it wrote a part so far: the numbers there, in order.
    begun: FxHashMap<u32, Arc<[Option<f64>]>>,
    /// Those of which nobody wrote anything.
    fresh: FxHashSet<u32>,
}

impl Filled {
    pub(crate) fn get(&self, id: u32) -> Option<&Contents> {
        self.known.get(&id)
    }

    /// The numbers that are known of an allocation of which not all are.
    pub(crate) fn begun(&self, id: u32) -> Option<&[Option<f64>]> {
        self.begun.get(&id).map(|numbers| &**numbers)
    }

    /// Whether nobody wrote to an allocation that was made in a run that computes all numbers.
    pub(crate) fn is_fresh(&self, id: u32) -> bool {
        self.fresh.contains(&id) && !self.known.contains_key(&id) && !self.begun.contains_key(&id)
    }

    pub(crate) fn insert(&mut self, id: u32, contents: Contents) {
        self.known.insert(id, contents);
    }

    /// Forgets what these hold.
    pub(crate) fn forget(&mut self, allocations: &[u32]) {
        self.known.retain(|id, _| !allocations.contains(id));
        self.begun.retain(|id, _| !allocations.contains(id));
        self.fresh.retain(|id| !allocations.contains(id));
    }
}

/// What memory holds after host code wrote numbers to a part of it.
pub(crate) struct Stored {
    /// Where all of it is known.
    pub(crate) known: Option<Contents>,
    /// Where some numbers are not known, those that are.
    pub(crate) begun: Option<Arc<[Option<f64>]>>,
}

impl From<Contents> for Stored {
    fn from(known: Contents) -> Stored {
        Stored { known: Some(known), begun: None }
    }
}

impl Host<'_> {
    /// Gives a tensor that a constructor made memory of its own, which holds `contents`.
    pub(crate) fn allocate(&mut self, value: Value, contents: Contents) -> Value {
        let Value::Tensor(tensor) = value else { return value };
        self.allocations += 1;
        let id = self.allocations;
        let drawn = tensor.storage.as_ref().and_then(|storage| storage.drawn);
        let drawn = drawn.filter(|_| tensor.memory().is_none());
        let contents = self.computed(id, &tensor, contents);
        if self.launcher.is_some() && contents == Contents::Uninitialized {
            self.filled.fresh.insert(id);
        }
        self.types.extend(tensor.dtype.clone().map(|dtype| (id, dtype)));
        let storage = views::span(&tensor).map(|elements| {
            Box::new(Storage { id: Some(id), elements, contents, drawn, ..Storage::default() })
        });
        Value::Tensor(Tensor { storage, ..tensor })
    }

    /// Gives what a function made of a tensor memory of its own where something is known of what it
    /// holds, so that it is seen what writes to it.
    pub(crate) fn allocate_known(&mut self, value: Value) -> Value {
        self.allocate_parts(value, Value::kept_contents)
    }

    /// Gives each tensor of a value of which that tells `contents` memory of its own that holds these.
    pub(crate) fn allocate_parts(
        &mut self,
        value: Value,
        contents: fn(&Value) -> Option<Contents>,
    ) -> Value {
        let mut each = |items: Vec<Value>| {
            items.into_iter().map(|item| self.allocate_parts(item, contents)).collect()
        };
        match value {
            Value::Record { names, items } => Value::Record { names, items: each(items) },
            Value::Tuple(items) => Value::Tuple(each(items)),
            value => match contents(&value) {
                Some(contents) => self.allocate(value, contents),
                None => value,
            },
        }
    }

    /// Random numbers as the run draws them that is one of several.
    pub(crate) fn drawn_by_one_run(&mut self, value: Value) -> Value {
        let Value::Tensor(Tensor { storage: Some(storage), .. }) = &value else { return value };
        let is_random = storage.drawn.is_some()
            || matches!(
                storage.contents,
                Contents::Signed | Contents::Random { .. } | Contents::Distinct { .. }
            );
        self.draws |= is_random;
        let drawn = match &mut self.numbers {
            Some(numbers) if is_random => numbers.draw(value),
            _ => return value,
        };
        self.note_computed(&drawn);
        drawn
    }

    /// Which of equal numbers comes first where functions put them in an order that they do not promise.
    pub(crate) fn ties(&self) -> data::Ties {
        match self.numbers {
            Some(_) => data::Ties::InOrder,
            None => data::Ties::Open,
        }
    }

    /// Notes that all of an allocation was written, which holds `contents` then if the code came here.
    pub(crate) fn note_filled(&mut self, id: u32, contents: Contents) {
        self.note_written(&[id]);
        if self.doubt.is_straight() {
            self.filled.insert(id, contents);
        }
    }

    /// Notes what an allocation holds after numbers were written to `part` of it.
    pub(crate) fn note_stored(&mut self, id: u32, part: &Value, stored: Stored) {
        match stored.known {
            Some(contents) => self.note_filled(id, contents),
            None => self.note_part_written(id, part),
        }
        if let Some(begun) = stored.begun.filter(|_| self.doubt.is_straight()) {
            self.filled.begun.insert(id, begun);
        }
    }

    /// Notes that host code may have written these allocations, now or in between launches.
    pub(crate) fn note_written(&mut self, allocations: &[u32]) {
        if allocations.is_empty() {
            return;
        }
        self.written.extend(allocations);
        self.past.forget(allocations);
        self.filled.forget(allocations);
        let args = self.launches.iter_mut().flat_map(|launch| &mut launch.args);
        args.for_each(|(_, value)| value.note_writes(&|id| allocations.contains(&id)));
    }

    /// Notes that each element of an allocation was computed from what it held: what launches left as it was
    /// allocated has come to nothing by that.
    pub(crate) fn note_updated(&mut self, id: u32) {
        self.written.insert(id);
        self.past.forget(&[id]);
        self.filled.forget(&[id]);
        self.change_launched(id, &|tensor| {
            let is_new = |storage: &Storage| storage.contents.is_new();
            if !tensor.storage.as_deref().is_some_and(is_new) {
                tensor.note_write();
            }
        });
    }

    /// Notes that a part of a tensor is at hand that does not begin where the tensor does: what is
    /// written through it is not seen to be in the same memory.
    pub(crate) fn note_part(&mut self, whole: &Value, part: &Value) {
        let Value::Tensor(tensor) = whole else { return };
        let begins_there =
            matches!(part, Value::Tensor(part) if part.allocation() == tensor.allocation());
        let Some(id) = tensor.allocation().filter(|_| !begins_there) else { return };
        match views::region(part) {
            Some(region) => self.note_region(id, region, false),
            None => self.note_memory(id),
        }
    }

    /// Notes that something was written to `part` of an allocation, which may be all of it.
    pub(crate) fn note_part_written(&mut self, id: u32, part: &Value) {
        let region = views::region(part).filter(|_| !is_whole(part));
        match region {
            Some(region) => self.note_region(id, region, true),
            None => self.note_written(&[id]),
        }
    }

    /// Notes that a region of an allocation may have been written, or certainly was.
    fn note_region(&mut self, id: u32, region: Region, written: bool) {
        self.past.forget(&[id]);
        if written {
            self.filled.forget(&[id]);
        }
        let parts = self.parts.entry(id).or_default();
        if !parts.regions.contains(&region) {
            parts.regions.push(region);
        }
        parts.written |= written;
        match (parts.regions.len() > MAX_PARTS, parts.written) {
            (true, true) => self.note_written(&[id]),
            (true, false) => self.note_memory(id),
            (false, _) => {
                let parts = parts.clone();
                self.change_launched(id, &|tensor| parts.apply(tensor));
            }
        }
    }

    /// Notes that any part of an allocation may have been written, but not all of it.
    pub(crate) fn note_memory(&mut self, id: u32) {
        self.touched.insert(id);
        self.past.forget(&[id]);
        self.filled.forget(&[id]);
        self.change_launched(id, &|tensor| *tensor = std::mem::take(tensor).moved());
    }

    /// Changes what launches were given of an allocation.
    fn change_launched(&mut self, id: u32, change: &dyn Fn(&mut Tensor)) {
        let args = self.launches.iter_mut().flat_map(|launch| &mut launch.args);
        args.for_each(|(_, value)| value.change_memory(&|known| known == id, change));
    }

    /// Notes that what an expression gives may have been written, also in between launches: `object`,
    /// whose value is `receiver`.
    pub(crate) fn note_write(&mut self, frame: &mut Frame, object: ExprId, receiver: &Value) {
        if let Expr::Name(name) = &frame.code.body().exprs[object] {
            let name = name.clone();
            if let Some(Value::Tensor(tensor)) = frame.variables.get_mut(&name) {
                tensor.note_write();
            }
        }
        match receiver {
            Value::Tensor(tensor) => {
                if let Some(id) = tensor.memory() {
                    self.note_part_written(id, receiver);
                }
            }
            _ => self.note_written(&receiver.allocations()),
        }
    }

    /// What the memory of a value holds now: less than when it was assigned, where launches or host
    /// code may have written it since.
    pub(crate) fn note_memory_of(&self, value: &mut Value) {
        if !self.touched.is_empty() {
            value.change_memory(&|id| self.touched.contains(&id), &|tensor| {
                *tensor = std::mem::take(tensor).moved();
            });
        }
        if !self.parts.is_empty() {
            value.change_memory(&|id| self.parts.contains_key(&id), &|tensor| {
                let parts = tensor.allocation().and_then(|id| self.parts.get(&id));
                parts.into_iter().for_each(|parts| parts.apply(tensor));
            });
        }
        if !self.written.is_empty() {
            value.note_writes(&|id| self.written.contains(&id));
        }
        if !self.filled.known.is_empty() {
            value.change_tensors(&mut |tensor| {
                let filled = tensor.memory().and_then(|id| {
                    // A view of another type has other numbers.
                    let is_same =
                        self.types.get(&id).is_none_or(|of| tensor.dtype.as_ref() == Some(of));
                    self.filled.get(id).filter(|_| is_same)
                });
                if let (Some(storage), Some(filled)) = (&mut tensor.storage, filled) {
                    storage.contents = match storage.before {
                        0 => filled.clone(),
                        before => filled.behind(before),
                    };
                }
            });
        }
    }

    /// What a part of an allocation holds in which all numbers are known, where they are not in the rest of it.
    pub(crate) fn note_begun(&self, value: &mut Value) {
        if self.filled.begun.is_empty() {
            return;
        }
        value.change_tensors(&mut |tensor| {
            let known = self.stored_in(tensor);
            if let (Some(storage), Some(known)) = (&mut tensor.storage, known) {
                storage.contents = known;
            }
        });
    }

    fn stored_in(&self, tensor: &Tensor) -> Option<Contents> {
        let (storage, dtype) = (tensor.storage.as_deref()?, tensor.dtype.as_deref()?);
        let id = tensor.memory()?;
        let numbers = self.filled.begun(id)?;
        let is_same = self.types.get(&id).is_some_and(|of| **of == *dtype);
        let first = usize::try_from(storage.before).ok().filter(|_| is_same)?;
        let behind = first.checked_add(usize::try_from(views::span(tensor)?).ok()?)?;
        let part = numbers.get(first..behind)?.iter().copied().collect::<Option<Vec<f64>>>()?;
        Some(data::contents(dtype, part))
    }
}

/// Whether a tensor shows all of the memory that it is in.
fn is_whole(value: &Value) -> bool {
    let Value::Tensor(tensor) = value else { return false };
    let all =
        |storage: &Storage| storage.before == 0 && views::span(tensor) == Some(storage.elements);
    tensor.storage.as_deref().is_some_and(all)
}

/// Functions of `torch.nn.functional` that write to what they are given whatever else they are told.
const WRITING: &[&str] = &["batch_norm", "instance_norm"];

/// Those that write to what they are given where they are told a greatest norm, with the place of that.
const RENORMALIZING: &[(&str, usize)] = &[("embedding", 3), ("embedding_bag", 3)];

/// Whether a function of `torch.nn.functional` may write to what it is given: many do where a flag says so.
fn may_write_input(name: &str, args: &Args<'_>) -> bool {
    let may_be_flag = |value: &Value| {
        matches!(value, Value::Bool(Some(true) | None) | Value::Unknown | Value::OneOf(_))
    };
    let named = |(given, value): &(Option<Name>, Value)| {
        given.as_deref().is_none_or(|given| given == "inplace") && may_be_flag(value)
    };
    if let Some((_, at)) = RENORMALIZING.iter().find(|(known, _)| *known == name) {
        return !matches!(args.get(*at, "max_norm"), None | Some(Value::None));
    }
    name.ends_with('_') || WRITING.contains(&name) || args.0.iter().any(named)
}

/// Modules of which no function writes to the tensors that it is given.
const READING: &[&str] = &[
    "collections",
    "copy",
    "dataclasses",
    "einops",
    "inspect",
    "itertools",
    "json",
    "logging",
    "math",
    "matplotlib",
    "pandas",
    "pickle",
    "pprint",
    "pytest",
    "rich",
    "statistics",
    "tabulate",
    "time",
    "tqdm",
    "types",
    "typing",
    "typing_extensions",
    "warnings",
];

/// Modules of PyTorch of which functions only write to what they are told to by `out`.
const READING_OF_TORCH: &[&str] = &[
    "amp", "autograd", "fft", "linalg", "nested", "profiler", "random", "sparse", "special",
    "testing",
];

/// Modules of NumPy of which that holds.
const READING_OF_NUMPY: &[&str] = &["fft", "linalg", "testing"];

/// Functions of NumPy that write to what they are given.
const WRITING_OF_NUMPY: &[&str] =
    &["copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"];

/// Whether a function outside of the project only writes to what it is told to by `out`.
fn only_reads(path: &[Name]) -> bool {
    let path: Vec<&str> = path.iter().map(|name| &**name).collect();
    match path[..] {
        [first, ..] if READING.contains(&first) => true,
        [TORCH, name] => !name.ends_with('_'),
        // What these apply is followed where it is called.
        [TORCH, "utils", "_pytree" | "checkpoint" | "dlpack" | "pytree", name]
        | [TORCH, "nn", "utils", "rnn", name] => !name.ends_with('_'),
        [TORCH, module, .., name] => READING_OF_TORCH.contains(&module) && !name.ends_with('_'),
        ["numpy", name] => !WRITING_OF_NUMPY.contains(&name),
        ["numpy", module, ..] => READING_OF_NUMPY.contains(&module),
        _ => false,
    }
}

/// The arguments to which a call may write of which nothing more is known: those given to PyTorch to
/// write to, and those given to functions that are not known.
pub(crate) fn may_write<'a>(
    callee: &Value,
    receiver: Option<&Value>,
    args: &Args<'a>,
) -> Vec<&'a Value> {
    let all = || args.0.iter().map(|(_, value)| value).collect();
    match callee {
        Value::Named(Resolution::External(path)) => match path.as_slice() {
            path if only_reads(path) => Vec::from_iter(args.keyword("out")),
            path if known_class(path).or_else(|| sequence_class(path)).is_some() => Vec::new(),
            [torch, nn, functional, name]
                if [&**torch, &**nn, &**functional] == [TORCH, "nn", "functional"]
                    && !may_write_input(name, args) =>
            {
                Vec::new()
            }
            _ => all(),
        },
        // What collections keep they do not write to.
        Value::Unknown
            if !matches!(
                receiver,
                Some(Value::Tensor(_) | Value::List(_) | Value::Dict(_) | Value::Set(_))
            ) =>
        {
            all()
        }
        Value::OneOf(callees) => {
            callees.iter().flat_map(|callee| may_write(callee, receiver, args)).collect()
        }
        _ => Vec::new(),
    }
}
