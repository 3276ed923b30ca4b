//! Functions that are not the project's: of Python, its library and PyTorch, by name.

use crate::builtins::{TORCH, torch};
use crate::hir::{BinaryOp, CompareOp, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::entry::{marks, strategies};
use crate::host::library::math::math_call;
use crate::host::objects::classes::{class_name, is_of_python};
use crate::host::objects::records;
use crate::host::torch::misuse::{self, Misuse};
use crate::host::torch::{
    algebra, arrays, compared, data, devices, einops, fits, initial, layers, limits, reduced,
    sizes, states, tensor, views,
};
use crate::host::value::dtype::{is_complex, is_float, number_dtype, with_number};
use crate::host::value::number::as_number;
use crate::host::value::{Callable, Dict, Missing, Tensor, Value};
use crate::project::GIVES_KERNEL;
use crate::project::Resolution;
use crate::project::installation;
use crate::project::launchers::REGISTERS;
use crate::source::FileId;

pub(crate) mod applied;
pub(crate) mod collections;
pub(crate) mod environment;
pub(crate) mod exact;
pub(crate) mod iteration;
mod loaded;
pub(crate) mod math;
pub(crate) mod reflection;
pub(crate) mod sets;
pub(crate) mod triton;
pub(crate) mod untold;
pub(crate) mod versions;

/// The class of PyTorch's modules.
pub(crate) const MODULE: &str = "torch.nn.Module";

/// Members that tensors share with Python's texts and truth values.
const OF_TEXTS: &[&str] = &["conj", "imag", "index", "real", "split"];

/// Members that `torch.distributed.tensor.DTensor` has beside those of all tensors. Source: PyTorch's documentation.
const OF_DISTRIBUTED: &[&str] = &[
    "_local_tensor",
    "_spec",
    "device_mesh",
    "full_tensor",
    "placements",
    "redistribute",
    "to_local",
];

impl Host<'_> {
    /// A call of something that no item binds.
    pub(crate) fn global_call(&mut self, name: &str, args: &Args<'_>) -> Value {
        match (name, args.positional().as_slice()) {
            ("hasattr", [value, Value::Str(attr)]) => Value::Bool(self.has_attribute(value, attr)),
            ("type", [Value::Object(object)]) => match self.classes.get(object) {
                Some(class) => Value::Named(Resolution::Class(*class)),
                None => Value::Unknown,
            },
            ("object", []) => self.object(),
            // A tensor of its own is no other than the one that is what it is.
            ("id", [Value::Tensor(tensor)]) if let Some(id) = tensor.own_variable() => {
                Value::Address { id, offset: 0 }
            }
            ("isinstance", [value, class]) => Value::Bool(self.is_instance(value, class)),
            ("len", [Value::Object(object)]) if let Some(rows) = self.sparse_rows(*object) => rows,
            ("len", [object @ Value::Object(_)])
                if let Some(length) = self.special(object, "__len__", &[]) =>
            {
                length
            }
            ("int" | "float" | "bool" | "str", [object @ Value::Object(_)]) => {
                self.as_number(name, object)
            }
            ("len", [object @ Value::Object(_)]) if let Some(items) = self.items_of(object) => {
                Value::Int(Some(items.len() as i128))
            }
            ("dict", [object @ Value::Object(_)]) if let Some(items) = self.items_of(object) => {
                Value::Dict(items)
            }
            ("abs", [tensor @ Value::Tensor(_)]) => {
                tensor::method(tensor, "abs", &Args(&[])).unwrap_or(Value::Unknown)
            }
            ("setattr", [Value::Object(object), attr, value]) => {
                self.set_by_name(*object, attr, value);
                Value::None
            }
            ("setattr", [owner, attr, value]) if let Some(owner) = self.static_owner(owner) => {
                self.set_static_by_name(owner, attr, value);
                Value::None
            }
            ("delattr", _) => {
                self.unfollowed = true;
                Value::None
            }
            ("vars", [Value::Object(object)]) => {
                self.attributes_of(*object).unwrap_or(Value::Unknown)
            }
            ("pow", [base, exponent]) => operators::binary(BinaryOp::Pow, base, exponent),
            ("sum", [items, ..]) if let Some(items) = sets::members(items) => {
                let start = args.get(1, "start").cloned().unwrap_or(Value::Int(Some(0)));
                items.iter().fold(start, |sum, item| self.operated(BinaryOp::Add, &sum, item))
            }
            ("any", [items]) if let Some(items) = sets::members(items) => {
                Value::Bool(self.one_counts_as(true, &items))
            }
            ("all", [items]) if let Some(items) = sets::members(items) => {
                Value::Bool(self.one_counts_as(false, &items).map(|one| !one))
            }
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
            ("sorted", [Value::Set(items)]) => {
                let listed = (None, Value::List(items.clone()));
                let rest = args.0.iter().skip(1).cloned();
                let given: Vec<_> = std::iter::once(listed).chain(rest).collect();
                self.global_call(name, &Args(&given))
            }
            ("max" | "min", given) if let Some(key) = args.keyword("key") => {
                let items = match given {
                    [items] => (*items).clone(),
                    items => Value::List(items.iter().copied().cloned().collect()),
                };
                // The first of those that are alike, in either order.
                let from_most = Value::Bool(Some(name == "max"));
                match self.sorted(&items, key, Some(&from_most)) {
                    Value::List(items) => items.into_iter().next().unwrap_or(Value::Unknown),
                    _ => Value::Unknown,
                }
            }
            ("sorted", [items]) if let Some(key) = args.keyword("key") => {
                self.sorted(items, key, args.keyword("reverse"))
            }
            _ => {
                let value = python_call(name, args);
                self.exactly_called(&[Name::from(name)], args, value)
            }
        }
    }

    /// Whether one of several values counts as true, or as false.
    fn one_counts_as(&mut self, truth: bool, values: &[Value]) -> Option<bool> {
        let mut one = Some(false);
        for value in values {
            match self.holds(value) {
                Some(holds) if holds == truth => return Some(true),
                Some(_) => {}
                None => one = None,
            }
        }
        one
    }

    /// `getattr(value, attr, default)` in a file: what is not seen to be there may be all the same.
    pub(crate) fn getattr(&mut self, file: FileId, args: &Args<'_>) -> Value {
        let (value, attr, default) = match args.positional().as_slice() {
            [value, Value::Str(attr)] => (*value, attr, None),
            [value, Value::Str(attr), default] => (*value, attr, Some(*default)),
            _ => return Value::Unknown,
        };
        if let (Value::Named(base), None) | (Value::Named(base @ Resolution::File(_)), _) =
            (value, default)
        {
            return self.member(base, attr);
        }
        if let Value::Named(base @ Resolution::External(_)) = value {
            return match self.member(base, attr) {
                Value::Named(Resolution::External(_)) => Value::Unknown,
                known => known,
            };
        }
        match self.has_attribute(value, attr) {
            Some(true) => match self.attribute_of(file, value, attr) {
                Value::Raises(_) => Value::Unknown,
                member => member,
            },
            Some(false) => default.cloned().unwrap_or(Value::Unknown),
            None => Value::Unknown,
        }
    }

    /// Whether a value has an attribute, where that is known.
    fn has_attribute(&mut self, value: &Value, attr: &str) -> Option<bool> {
        match value {
            Value::Tensor(_) => match torch::tensor_members()?.contains(attr) {
                true => Some(true),
                // What only modules have, or tensors of several devices, others have not.
                false if OF_DISTRIBUTED.contains(&attr) => Some(false),
                false => torch::instance_members(MODULE)?.contains(attr).then_some(false),
            },
            Value::Object(object) => {
                let is_set = !matches!(self.object_attribute(*object, attr), Value::Unknown);
                match is_set || self.has_own_method(*object, attr) {
                    true => Some(true),
                    false if self.has_own_method(*object, "__getattr__") => None,
                    false => self.lacks(*object, attr).then_some(false),
                }
            }
            Value::Named(Resolution::TritonModule(module)) => versions::triton_has(module, attr),
            // It has what is known of it; of what is not known, later versions may have it.
            Value::Named(module @ Resolution::External(path)) => {
                if path.len() == 1 && *path[0] == *TORCH && torch::is_backend(attr) {
                    // Where there is a GPU of NVIDIA, nothing brings others.
                    return Some(false);
                }
                if torch::members(&path.join(".")).is_some_and(|known| known.contains(attr)) {
                    return Some(true);
                }
                let known = !matches!(
                    self.member(module, attr),
                    Value::Unknown | Value::Named(Resolution::External(_))
                );
                known.then_some(true)
            }
            Value::Record { names, .. } => {
                names.fields.iter().any(|field| **field == *attr).then_some(true)
            }
            Value::None | Value::Bool(_) | Value::Str(_) => {
                // Of what PyTorch's tensors have, Python's own values have a few methods of texts.
                let is_plain = torch::tensor_members()?.contains(attr) && !OF_TEXTS.contains(&attr);
                is_plain.then_some(false)
            }
            _ => None,
        }
    }
}

/// What a text is that spells one literal, as variables of the environment do.
fn literal(text: &str) -> Value {
    match text.trim() {
        "None" => Value::None,
        "True" => Value::Bool(Some(true)),
        "False" => Value::Bool(Some(false)),
        number => number.parse().map_or(Value::Unknown, |number| Value::Int(Some(number))),
    }
}

/// One of Python's own functions.
fn python_call(name: &str, args: &Args<'_>) -> Value {
    let positional = args.positional();
    match (name, positional.as_slice()) {
        ("range", bounds) => iteration::range(bounds).map_or(Value::Ints, Value::List),
        ("len", [Value::Tensor(Tensor { shape: Some(shape), .. })]) => {
            shape.first().cloned().unwrap_or(Value::Unknown)
        }
        ("len", [Value::Array(array)]) => {
            array.shape.as_ref().and_then(|shape| shape.first()).cloned().unwrap_or(Value::Unknown)
        }
        ("len", [value]) => match sets::members(value) {
            Some(items) => Value::Int(Some(items.len() as i128)),
            None => Value::Int(None),
        },
        ("int", [Value::Float(value)]) => Value::Int(value.map(|value| value as i128)),
        ("int", [Value::Bool(value)]) => Value::Int(value.map(i128::from)),
        ("int", [Value::Int(value)]) => Value::Int(*value),
        ("int" | "float", [Value::Tensor(tensor)]) if let Some(number) = data::item(tensor) => {
            python_call(name, &Args(&[(None, number)]))
        }
        ("int", [Value::Str(text)]) => Value::Int(text.trim().parse().ok()),
        ("int", _) => Value::Int(None),
        ("float", [Value::Int(value)]) => Value::Float(value.map(|value| value as f64)),
        ("float", [Value::Float(value)]) => Value::Float(*value),
        ("float", [Value::Str(text)]) => Value::Float(text.parse().ok()),
        ("float", _) => Value::Float(None),
        ("bool", [value]) => Value::Bool(operators::truth(value)),
        ("eval", [Value::Str(text)]) => literal(text),
        ("abs", [Value::Int(value)]) => Value::Int(value.and_then(i128::checked_abs)),
        ("abs", [Value::Float(value)]) => Value::Float(value.map(f64::abs)),
        ("min" | "max", _) if args.keywords().is_empty() => extremum(name, &positional),
        ("set", []) => Value::Set(Vec::new()),
        ("set", [value]) => sets::members(value).and_then(sets::of).unwrap_or(Value::Collection),
        ("slice", [stop]) => records::slice([None, Some(Value::clone(stop)), None]),
        ("slice", [start, stop, step @ ..]) if step.len() < 2 => {
            let bounds = [Some(*start), Some(*stop), step.first().copied()];
            records::slice(bounds.map(|bound| bound.cloned()))
        }
        ("list", [value]) => value.elements().map_or(Value::Unknown, Value::List),
        ("reversed", [value]) => {
            let items = value.elements();
            items.map_or(Value::Unknown, |items| Value::List(items.into_iter().rev().collect()))
        }
        // Nothing is added to it, so that it is what a tuple of its elements is, but for their order.
        ("frozenset", [several @ Value::Set(items)]) if items.len() > 1 => Value::clone(several),
        ("frozenset", [value]) => value.elements().map_or(Value::Unknown, |items| {
            let different = items.into_iter().fold(Vec::new(), |mut different, item| {
                if !different.contains(&item) {
                    different.push(item);
                }
                different
            });
            Value::Tuple(different)
        }),
        ("tuple", [value]) => value.elements().map_or(Value::Unknown, Value::Tuple),
        ("dict", [] | [_]) => dict(args).unwrap_or(Value::Unknown),
        ("enumerate", _) => iteration::enumerated(args).map_or(Value::Unknown, Value::List),
        ("iter", [value]) => value.elements().map_or(Value::Unknown, Value::List),
        ("next", [value]) => {
            let first = value.elements().and_then(|items| items.into_iter().next());
            first.unwrap_or(Value::Unknown)
        }
        ("next", [value, default]) => value.elements().map_or(Value::Unknown, |items| {
            items.into_iter().next().unwrap_or_else(|| Value::clone(default))
        }),
        ("callable", [Value::Callable(_) | Value::Named(Resolution::Function(_))]) => {
            Value::Bool(Some(true))
        }
        ("callable", [value]) if is_of_python(value, "int").is_some() => Value::Bool(Some(false)),
        // It raises where `strict=` finds them of different lengths.
        ("zip", lists) if !lists.is_empty() && args.keywords().is_empty() => {
            iteration::zipped(lists)
        }
        ("type", [value]) => {
            class_name(value).map_or(Value::Unknown, |class| Value::Global(class.into()))
        }
        ("isinstance", _) | ("hasattr", _) => Value::Bool(None),
        ("id" | "hash", [_]) => Value::Int(None),
        _ => Value::Unknown,
    }
}

/// The dict of the entries of another one, or of pairs, and of keyword arguments.
fn dict(args: &Args<'_>) -> Option<Value> {
    let mut entries = match args.positional()[..] {
        [] => Vec::new(),
        [Value::Dict(entries)] => entries.to_vec(),
        [pairs] => {
            let mut entries = Vec::new();
            for pair in pairs.elements()? {
                let [key, value] = <[Value; 2]>::try_from(pair.elements()?).ok()?;
                collections::set(&mut entries, key, value)?;
            }
            entries
        }
        _ => return None,
    };
    for (name, value) in args.keywords() {
        collections::set(&mut entries, Value::Str(name?), value)?;
    }
    Some(Value::Dict(entries.into()))
}

/// A `defaultdict`.
fn defaults(args: &Args<'_>) -> Option<Value> {
    let (factory, rest) = match args.0.split_first() {
        Some(((None, factory), rest)) => (factory.clone(), rest),
        _ => (Value::None, args.0),
    };
    let Value::Dict(mut made) = dict(&Args(rest))? else { return None };
    made.missing = (factory != Value::None).then(|| Missing::Made(Box::new(factory)));
    Some(Value::Dict(made))
}

/// How often each element is there, where each is known.
fn counts(args: &Args<'_>) -> Option<Value> {
    let mut made = match (args.positional()[..].first(), args.0.len()) {
        (None, 0) => Dict::default(),
        (Some(Value::Dict(counts)), 1) => counts.clone(),
        (Some(items), 1) => {
            let mut made = Dict::default();
            for item in items.elements()? {
                let known = made.iter().find(|(known, _)| *known == item).map(|(_, count)| count);
                let count = operators::binary(
                    BinaryOp::Add,
                    known.unwrap_or(&Value::Int(Some(0))),
                    &Value::Int(Some(1)),
                );
                collections::set(&mut made, item, count)?;
            }
            made
        }
        _ => return None,
    };
    made.missing = Some(Missing::Zero);
    Some(Value::Dict(made))
}

fn extremum(name: &str, args: &[&Value]) -> Value {
    let values: Vec<Value> = match args {
        [one] => sets::members(one).unwrap_or_default(),
        many => many.iter().copied().cloned().collect(),
    };
    let Some((first, rest)) = values.split_first() else { return Value::Unknown };
    let mut best = first.clone();
    for value in rest {
        let order = if name == "min" { CompareOp::Lt } else { CompareOp::Gt };
        if let Some(raised) = misuse::no_order(order.symbol(), value, &best) {
            return raised;
        }
        let wanted = match operators::compare(order, value, &best) {
            Some(wanted) => wanted,
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

/// Functions of PyTorch that give contexts, which are decorators as well.
const REGIONS: &[&str] =
    &["autocast", "enable_grad", "inference_mode", "no_grad", "set_grad_enabled"];

/// What a function makes that registers others with PyTorch, without the function or with it.
fn registrar(args: &Args<'_>) -> Value {
    let is_function = |value: &&&Value| {
        matches!(value, Value::Named(Resolution::Function(_)) | Value::Callable(_))
    };
    match (args.positional().iter().find(is_function), args.get(0, "name")) {
        (Some(function), _) => Value::clone(function),
        (None, Some(Value::Str(name))) => Value::Callable(Callable::Registrar(name.clone())),
        (None, _) => Value::Callable(Callable::Around),
    }
}

/// A function outside of the project.
pub(crate) fn external_call(path: &[Name], args: &Args<'_>, capability: u32) -> Value {
    let path: Vec<&str> = path.iter().map(|name| &**name).collect();
    match path.as_slice() {
        // What they give does what they are given, in another way.
        ["torch", "compile"]
        | ["torch", "compiler", "allow_in_graph" | "disable"]
        | ["torch", "_dynamo", "allow_in_graph" | "disable"]
        | ["torch", "jit", "ignore" | "script"]
        | ["torch", "amp", "custom_bwd" | "custom_fwd"]
        | ["torch", "cuda", "amp", "custom_bwd" | "custom_fwd"]
        | ["functools", "cache" | "lru_cache"] => match args.positional()[..] {
            [
                function @ (Value::Named(Resolution::Function(_))
                | Value::Callable(_)
                | Value::Object(_)),
            ] => function.clone(),
            // Options alone: the function comes later.
            [] => Value::Callable(Callable::Around),
            _ => Value::Unknown,
        },
        ["torch", context] if REGIONS.contains(context) => Value::Callable(Callable::Around),
        ["torch", "cuda" | "cpu", "amp", "autocast"] | ["torch", "amp", "autocast"] => {
            Value::Callable(Callable::Around)
        }
        ["torch", "broadcast_tensors"] => broadcast(args).unwrap_or(Value::Unknown),
        ["torch", "broadcast_shapes"] => common_shape(args).unwrap_or(Value::Ints),
        ["torch", "device"] => args.get(0, "device").map_or(Value::Unknown, devices::named),
        ["torch", "where"] => match fits::not_chosen(args) {
            Some(misfit) => misfit.into(),
            None => match (args.get(0, "condition"), args.get(1, "input"), args.get(2, "other")) {
                (Some(Value::Tensor(condition)), None, None) => reduced::made_of(
                    "nonzero",
                    condition,
                    &Args(&[(None, Value::Bool(Some(true)))]),
                )
                .unwrap_or(Value::Unknown),
                (Some(Value::Tensor(condition)), Some(on_true), Some(on_false)) => {
                    chosen(condition, on_true, on_false).unwrap_or(Value::Unknown)
                }
                _ => Value::Unknown,
            },
        },
        ["torch", "finfo" | "iinfo"] => {
            limits::of_dtype(path[1], args.get(0, "type")).unwrap_or(Value::Unknown)
        }
        ["torch", told @ ..] if let Some(value) = states::told(told, args) => value,
        ["torch", "is_complex"] => match args.get(0, "input") {
            Some(Value::Tensor(tensor)) => Value::Bool(tensor.dtype.as_deref().map(is_complex)),
            _ => Value::Bool(None),
        },
        ["torch", "view_as_real"] => match args.get(0, "input") {
            Some(Value::Tensor(tensor)) => {
                views::real_parts(tensor).map_or(Value::Unknown, Value::Tensor)
            }
            _ => Value::Unknown,
        },
        ["torch", "view_as_complex"] => match args.get(0, "input") {
            Some(Value::Tensor(tensor)) => {
                views::complex_numbers(tensor).map_or(Value::Unknown, Value::Tensor)
            }
            _ => Value::Unknown,
        },
        ["torch", "cholesky_solve"] => {
            let made = args.of_tensor().and_then(|(right, _)| algebra::like_right_side(right));
            made.map_or(Value::Unknown, |made| devices::made("cholesky_solve", args, made))
        }
        ["torch", name]
            if let Some((tensor, rest)) = args.of_tensor()
                && let Some(misuse) = fits::refusal(name, tensor, &rest) =>
        {
            Value::Raises(misuse)
        }
        ["torch", "testing", "assert_close"] => {
            compared::not_asserted(args).map_or(Value::None, Value::Raises)
        }
        ["torch", name] if let Some(misuse) = no_random(name, args) => Value::Raises(misuse),
        ["torch", name] if let Some(misuse) = fits::no_sizes(name, args) => Value::Raises(misuse),
        ["math" | "torch", _] if let Some(misuse) = misuse::no_number(&path, args) => {
            Value::Raises(misuse)
        }
        ["torch", name] => tensor::torch_constructor(name, args)
            .or_else(|| sizes::by_torch(name, args))
            .or_else(|| {
                let (tensor, rest) = args.of_tensor()?;
                reduced::made_of(name, tensor, &rest)
            })
            .or_else(|| {
                let (of, rest) = args.0.split_first()?;
                match of {
                    (None, tensor @ Value::Tensor(_)) => tensor::method(tensor, name, &Args(rest)),
                    _ => None,
                }
            })
            .filter(|made| {
                !matches!(made, Value::Raises(Misuse::NoMember { .. } | Misuse::Called(_)))
            })
            .or_else(|| layers::by_torch(name, args))
            .map_or(Value::Unknown, |made| devices::made(name, args, made)),
        ["torch", "special", name] => match args.of_input() {
            Some((tensor, rest)) => reduced::made_of(name, tensor, &rest),
            None => None,
        }
        .map_or(Value::Unknown, |made| devices::made(name, args, made)),
        ["torch", "linalg" | "fft", name] => {
            let made =
                args.of_tensor().and_then(|(tensor, rest)| algebra::made_of(name, tensor, &rest));
            made.map_or(Value::Unknown, |made| devices::made(name, args, made))
        }
        ["torch", "nn", "init", name] => initial::made_of(name, args).unwrap_or(Value::Unknown),
        ["torch", "nn", "utils", "rnn", "pad_sequence"] => layers::padded_rows(args)
            .map_or(Value::Unknown, |made| devices::made("pad_sequence", args, made)),
        ["torch", "nn", "functional", name] => {
            let made = match *name {
                "pad" => tensor::padded(args),
                "linear" => linear(args),
                "embedding" => match (args.get(0, "input"), args.get(1, "weight")) {
                    (Some(Value::Tensor(rows)), Some(Value::Tensor(table))) => {
                        Some(Value::Tensor(views::picked(table, rows)))
                    }
                    _ => None,
                },
                name => layers::by_function(name, args).or_else(|| {
                    let (tensor, rest) = args.of_input()?;
                    reduced::made_of(name, tensor, &rest)
                }),
            };
            made.map_or(Value::Unknown, |made| devices::made(name, args, made))
        }
        ["torch", "_C", "_dynamo", "guards", "_empty_strided_cuda"]
        | ["torch", "_dynamo", "testing", "rand_strided"] => {
            strided(args).unwrap_or(Value::Unknown)
        }
        ["torch", "_C", "_dynamo", "guards", "_reinterpret_tensor"] => {
            match args.positional()[..] {
                [tensor, size, stride] | [tensor, size, stride, Value::Int(Some(0))] => {
                    let given = [size, stride].map(|value| (None, value.clone()));
                    tensor::method(tensor, "as_strided", &Args(&given)).unwrap_or(Value::Unknown)
                }
                _ => Value::Unknown,
            }
        }
        ["collections", "OrderedDict"]
        | ["frozendict", "frozendict"]
        | ["types", "MappingProxyType"] => python_call("dict", args),
        ["collections", "defaultdict"] => defaults(args).unwrap_or(Value::Unknown),
        ["collections", "Counter"] => counts(args).unwrap_or(Value::Unknown),
        // One that forgets is not followed.
        ["collections", "deque"] if args.get(1, "maxlen").is_none() => {
            match args.get(0, "iterable") {
                None => Value::List(Vec::new()),
                Some(items) => items.elements().map_or(Value::Unknown, Value::List),
            }
        }
        // They show how far the loop is.
        ["tqdm", "tqdm"]
        | ["tqdm", "auto" | "std" | "notebook" | "rich" | "asyncio", "tqdm"]
        | ["rich", "progress", "track"]
            if let Some(items) = args.positional().first() =>
        {
            Value::clone(items)
        }
        ["tqdm", "trange"] | ["tqdm", "auto" | "std" | "notebook", "trange"] => {
            iteration::range(&args.positional()).map_or(Value::Ints, Value::List)
        }
        path if REGISTERS.contains(&path) => registrar(args),
        path if GIVES_KERNEL.contains(&path) => {
            args.get(0, "triton_kernel").cloned().unwrap_or(Value::Unknown)
        }
        ["torch", "nn", "Parameter"] | ["torch", "nn", "parameter", "Parameter" | "Buffer"] => {
            args.get(0, "data").cloned().unwrap_or(Value::Unknown)
        }
        // A variable of the environment is not set unless somebody sets it.
        ["os", "getenv"] | ["os", "environ", "get"] => {
            args.get(1, "default").cloned().unwrap_or(Value::None)
        }
        path if let Some(version) = versions::parsed(path, args) => version,
        path if let Some(version) = versions::of_package(path, args) => version,
        ["json", "loads"] => match args.get(0, "s") {
            Some(Value::Str(text)) => {
                serde_json::from_str(text).map_or(Value::Unknown, Value::of_json)
            }
            _ => Value::Unknown,
        },
        ["hypothesis", "strategies", name] => {
            strategies::drawn_from(name, args).map_or(Value::Unknown, Value::List)
        }
        ["math", name] => math_call(name, args),
        ["einops", name] => einops::made_of(name, args).unwrap_or(Value::Unknown),
        path if let Some(made) = arrays::made_by(path, args) => made,
        ["numpy", "ceil" | "floor"] => match math_call(path[1], args) {
            Value::Int(number) => Value::Float(number.map(|number| number as f64)),
            other => other,
        },
        ["numpy", "exp" | "log" | "log10" | "log2" | "sqrt"] => math_call(path[1], args),
        ["numpy", "prod"] => folded(BinaryOp::Mul, args.get(0, "a"), Value::Int(Some(1))),
        ["functools", "partial"] => match args.0.split_first() {
            Some(((None, callee), rest)) => Value::Callable(Callable::Partial {
                callee: Box::new(callee.clone()),
                args: rest.to_vec(),
            }),
            _ => Value::Unknown,
        },
        // One that is marked otherwise may not run.
        ["pytest", "param"] if args.keyword("marks").is_none_or(marks::keeps) => {
            match args.positional().as_slice() {
                [one] => Value::clone(one),
                several => Value::Tuple(several.iter().copied().cloned().collect()),
            }
        }
        ["typing" | "typing_extensions", "cast"] => {
            args.get(1, "val").cloned().unwrap_or(Value::Unknown)
        }
        ["itertools", "accumulate"] if args.get(1, "func").is_none() => {
            iteration::accumulated(args).map_or(Value::Unknown, Value::List)
        }
        ["itertools", "chain"] => {
            let lists = args.positional().into_iter().map(Value::elements);
            lists
                .collect::<Option<Vec<_>>>()
                .map_or(Value::Unknown, |all| Value::List(all.concat()))
        }
        ["itertools", "zip_longest"] => {
            iteration::zipped_longest(args).map_or(Value::Unknown, Value::List)
        }
        ["itertools", "cycle"] => iteration::cycled(args).map_or(Value::Unknown, Value::List),
        ["itertools", "count"] => iteration::counted(args).map_or(Value::Unknown, Value::List),
        ["itertools", "islice"] => iteration::first_of(args).map_or(Value::Unknown, Value::List),
        ["bisect", name @ ("bisect" | "bisect_left" | "bisect_right")] => {
            Value::Int(iteration::place_in(args, *name == "bisect_left"))
        }
        ["itertools", "pairwise"] => match args.positional()[..] {
            [items] => iteration::pairs(items).map_or(Value::Unknown, Value::List),
            _ => Value::Unknown,
        },
        ["itertools", "product"] => iteration::product(args).map_or(Value::Unknown, Value::List),
        path => {
            let fact = installation::called(path, capability);
            fact.and_then(|fact| Value::of_fact(&fact, capability)).unwrap_or(Value::Unknown)
        }
    }
}

/// Why PyTorch draws no random numbers: those of `rand` and `randn` are floats.
fn no_random(name: &str, args: &Args<'_>) -> Option<Misuse> {
    if !matches!(name, "rand" | "randn" | "rand_like" | "randn_like") {
        return None;
    }
    // A tensor that is given to the others is a size.
    let own = match args.get(0, "input") {
        Some(Value::Tensor(tensor)) if name.ends_with("_like") => tensor.dtype.clone(),
        _ => None,
    };
    let dtype = args.dtype(own.as_deref())?;
    let is_drawn = is_float(&dtype) || is_complex(&dtype);
    (!is_drawn).then(|| Misuse::NoRandom { function: name.into(), dtype })
}

/// What `torch.where` takes of two tensors, or of one and a number.
pub(crate) fn chosen(condition: &Tensor, on_true: &Value, on_false: &Value) -> Option<Value> {
    let taken = match (on_true, on_false) {
        (Value::Tensor(on_true), Value::Tensor(on_false)) => {
            views::elementwise(on_true, Some(on_false))
        }
        (Value::Tensor(tensor), number) | (number, Value::Tensor(tensor)) => {
            as_number(number)?;
            let dtype = with_number(tensor.dtype.as_ref(), number);
            Tensor { dtype, ..views::elementwise(tensor, None) }
        }
        (a, b) => {
            let dtype = number_dtype(a).filter(|dtype| Some(*dtype) == number_dtype(b))?;
            let shape = condition.shape.clone();
            Tensor { dtype: Some(dtype.into()), shape, ..Tensor::default() }
        }
    };
    let shape = views::broadcast(condition.shape.as_deref(), taken.shape.as_deref());
    let on_gpu = condition.on_gpu || taken.on_gpu;
    let is_plain = condition.strides.is_none() && taken.strides.is_none();
    let strides = views::unknown_strides(shape.as_deref()).filter(|_| !is_plain);
    Some(Value::Tensor(
        Tensor { dtype: taken.dtype, shape, strides, on_gpu, storage: None }.copied(),
    ))
}

/// What `torch.nn.functional.linear` makes: the product with the transposed weight.
fn linear(args: &Args<'_>) -> Option<Value> {
    let (Value::Tensor(input), Value::Tensor(weight)) =
        (args.get(0, "input")?, args.get(1, "weight")?)
    else {
        return None;
    };
    let (columns, rest) = input.shape.as_ref()?.split_last()?;
    let [rows, inner] = weight.shape.as_deref()? else { return None };
    if let Some(misfit) = fits::no_product(input, &views::transpose(weight)) {
        return Some(misfit.into());
    }
    let shape = (columns == inner).then(|| [rest, std::slice::from_ref(rows)].concat());
    let dtype = input.dtype.clone().filter(|dtype| Some(dtype) == weight.dtype.as_ref());
    Some(Value::Tensor(Tensor { dtype, shape, on_gpu: input.on_gpu, ..Tensor::default() }.copied()))
}

/// What an operator makes of a number and those of a list, one after the other.
pub(crate) fn folded(op: BinaryOp, items: Option<&Value>, start: Value) -> Value {
    items.and_then(Value::elements).map_or(Value::Unknown, |items| {
        items.iter().fold(start, |all, item| operators::binary(op, &all, item))
    })
}

/// What `torch.broadcast_tensors(...)` gives: views of one shape.
fn broadcast(args: &Args<'_>) -> Option<Value> {
    let tensors = args.positional().into_iter().map(|value| match value {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    });
    let tensors = tensors.collect::<Option<Vec<_>>>()?;
    let (first, others) = tensors.split_first()?;
    let shape = others.iter().try_fold(first.shape.clone()?, |shape, tensor| {
        views::broadcast(Some(&shape), tensor.shape.as_deref())
    })?;
    let view = |tensor: &&Tensor| match tensor.shape.as_ref() == Some(&shape) {
        true => Some(Value::Tensor((*tensor).clone())),
        false => views::expanded(tensor, &shape).map(Value::Tensor),
    };
    tensors.iter().map(view).collect::<Option<Vec<_>>>().map(Value::Tuple)
}

/// What `torch.broadcast_shapes(...)` gives: the shape of them all, or an exception.
fn common_shape(args: &Args<'_>) -> Option<Value> {
    let with = |shape: Vec<Value>| Tensor { shape: Some(shape), ..Tensor::default() };
    let mut common = Vec::new();
    for shape in args.positional() {
        let shape = shape.elements()?;
        if let Some(misfit) = fits::no_elementwise(&with(common.clone()), &with(shape.clone())) {
            return Some(misfit.into());
        }
        common = views::broadcast(Some(&common), Some(&shape))?;
    }
    Some(Value::Tuple(common))
}

impl Value {
    /// What `json` makes of a text.
    fn of_json(json: serde_json::Value) -> Value {
        match json {
            serde_json::Value::Null => Value::None,
            serde_json::Value::Bool(flag) => Value::Bool(Some(flag)),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(number) => Value::Int(Some(number.into())),
                None if number.is_f64() => Value::Float(number.as_f64()),
                None => Value::Int(None),
            },
            serde_json::Value::String(text) => Value::Str(text.into()),
            serde_json::Value::Array(items) => {
                Value::List(items.into_iter().map(Value::of_json).collect())
            }
            serde_json::Value::Object(entries) => {
                let entry =
                    |(key, value): (String, _)| (Value::Str(key.into()), Value::of_json(value));
                Value::Dict(entries.into_iter().map(entry).collect())
            }
        }
    }
}

/// A tensor of given sizes, strides and type, in that order.
fn strided(args: &Args<'_>) -> Option<Value> {
    let shape = args.get(0, "size")?.elements()?;
    let strides = args.get(1, "stride")?.elements()?;
    let dtype = args.get(2, "dtype").and_then(tensor::given_dtype);
    let made = Tensor { dtype, shape: Some(shape), strides: Some(strides), ..Tensor::default() };
    Some(Value::Tensor(made))
}
