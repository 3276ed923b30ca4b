//! Arrays of NumPy, as far as host code makes tensors and sizes of them.

use std::sync::Arc;

use crate::hir::{BinaryOp, Name};
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::library::external_call;
use crate::host::torch::tensor::{self, sizes};
use crate::host::torch::{data, made, numbers, views};
use crate::host::value::contents::Contents;
use crate::host::value::dtype::{is_float, is_integer, named_dtype};
use crate::host::value::number::as_number;
use crate::host::value::{Tensor, Value};
use crate::project::Resolution;

/// The package, as it is called where it is imported from.
const NUMPY: &str = "numpy";

/// More numbers are not listed.
const MAX_REPEATED: usize = 1 << 16;

/// The type of the floats that NumPy makes where it is told none.
const FLOAT: &str = "fp64";

/// What `numpy.NAME(...)` or a generator of random numbers makes; `None` for what is no array.
pub(crate) fn made_by(path: &[&str], args: &Args<'_>) -> Option<Value> {
    let ["numpy", rest @ ..] = path else { return None };
    match rest {
        ["random", "default_rng" | "RandomState"] => {
            let generator = [NUMPY, "random", "Generator"].map(Name::from);
            Some(Value::Named(Resolution::External(generator.into())))
        }
        ["random", name] | ["random", "Generator", name] => drawn(name, args),
        ["prod"] => match args.get(0, "a")? {
            Value::Array(array) => {
                let product = |all: i128, number: i128| all.checked_mul(number);
                Some(Value::Int(numbers::of(array)?.into_iter().try_fold(1, product)))
            }
            _ => None,
        },
        [name @ ("repeat" | "tile")] => repeated(name, args),
        [name @ ("ravel" | "reshape" | "transpose")] => match args.0.split_first()? {
            ((None, Value::Array(array)), rest) => Some(method(array, name, &Args(rest))),
            _ => None,
        },
        [name] => counted(name, args)
            .or_else(|| constructed(name, args))
            .or_else(|| of_floats(name, args.0)),
        _ => None,
    }
}

/// Functions of NumPy that make of arrays of floats what PyTorch's make of tensors, by both names.
const ALIKE: &[(&str, &str)] = &[
    ("abs", "abs"),
    ("absolute", "abs"),
    ("amax", "amax"),
    ("amin", "amin"),
    ("broadcast_to", "broadcast_to"),
    ("ceil", "ceil"),
    ("clip", "clamp"),
    ("concatenate", "cat"),
    ("cos", "cos"),
    ("exp", "exp"),
    ("expand_dims", "unsqueeze"),
    ("floor", "floor"),
    ("log", "log"),
    ("matmul", "matmul"),
    ("max", "amax"),
    ("maximum", "maximum"),
    ("mean", "mean"),
    ("min", "amin"),
    ("minimum", "minimum"),
    ("moveaxis", "movedim"),
    ("negative", "neg"),
    ("sign", "sign"),
    ("sin", "sin"),
    ("sqrt", "sqrt"),
    ("square", "square"),
    ("squeeze", "squeeze"),
    ("stack", "stack"),
    ("sum", "sum"),
    ("swapaxes", "transpose"),
    ("tanh", "tanh"),
    ("where", "where"),
];

/// What a function makes of arrays of floats: its type and sizes.
fn of_floats(name: &str, args: &[(Option<Name>, Value)]) -> Option<Value> {
    let (_, name) = ALIKE.iter().find(|(numpy, _)| *numpy == name)?;
    let mut arrays = args.iter().flat_map(|(_, value)| arrays_in(value)).peekable();
    let is_of_floats = |array: &Tensor| array.dtype.as_deref().is_some_and(is_float);
    if arrays.peek().is_none() || !arrays.all(is_of_floats) {
        return None;
    }
    let given: Vec<_> = args
        .iter()
        .map(|(name, value)| {
            let name = name.as_deref().map(|name| match name {
                "axis" => "dim".into(),
                "keepdims" => "keepdim".into(),
                name => name.into(),
            });
            (name, with_tensors(value))
        })
        .collect();
    match external_call(&["torch".into(), Name::from(*name)], &Args(&given), 0) {
        Value::Tensor(Tensor { dtype, shape: Some(shape), .. }) if !shape.is_empty() => {
            Some(array(dtype, Some(shape), Contents::Unknown))
        }
        _ => None,
    }
}

/// The arrays that a value is or lists.
fn arrays_in(value: &Value) -> Vec<&Tensor> {
    match value {
        Value::Array(array) => vec![array],
        Value::List(items) | Value::Tuple(items) => items.iter().flat_map(arrays_in).collect(),
        _ => Vec::new(),
    }
}

/// A value with tensors in the place of the arrays that it is or lists.
fn with_tensors(value: &Value) -> Value {
    match value {
        Value::Array(array) => Value::Tensor(as_tensor(array)),
        Value::List(items) => Value::List(items.iter().map(with_tensors).collect()),
        Value::Tuple(items) => Value::Tuple(items.iter().map(with_tensors).collect()),
        value => value.clone(),
    }
}

/// What a function makes of integers along one axis that are all known: NumPy makes it of lists as well.
fn counted(name: &str, args: &Args<'_>) -> Option<Value> {
    let [of] = args.positional()[..] else { return None };
    if !args.keywords().is_empty() {
        return None;
    }
    let integers = match (name, of) {
        ("concatenate" | "hstack", Value::List(parts) | Value::Tuple(parts)) => {
            parts.iter().map(integers).collect::<Option<Vec<_>>>()?.concat()
        }
        (_, of) => integers(of)?,
    };
    Some(match name {
        "concatenate" | "hstack" => of_integers(&integers),
        "sort" | "unique" => {
            let mut sorted = integers;
            sorted.sort_unstable();
            if name == "unique" {
                sorted.dedup();
            }
            of_integers(&sorted)
        }
        "cumsum" => {
            let sum = |sum: &mut i128, number: i128| {
                *sum = sum.checked_add(number)?;
                Some(*sum)
            };
            let sums: Vec<i128> = integers.iter().copied().scan(0, sum).collect();
            return (sums.len() == integers.len()).then(|| of_integers(&sums));
        }
        "diff" => {
            let pairs = integers.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
            of_integers(&pairs.collect::<Option<Vec<_>>>()?)
        }
        "amax" | "max" => Value::Int(Some(integers.into_iter().max()?)),
        "amin" | "min" => Value::Int(Some(integers.into_iter().min()?)),
        "sum" => Value::Int(integers.into_iter().try_fold(0, i128::checked_add)),
        _ => return None,
    })
}

/// Integers along one axis, each so often or all so often.
fn repeated(name: &str, args: &Args<'_>) -> Option<Value> {
    let [of, Value::Int(Some(times))] = args.positional()[..] else { return None };
    let (integers, times) = (integers(of)?, usize::try_from(*times).ok()?);
    if integers.len().checked_mul(times)? > MAX_REPEATED || !args.keywords().is_empty() {
        return None;
    }
    Some(of_integers(&match name {
        "tile" => integers.repeat(times),
        _ => integers.iter().flat_map(|number| std::iter::repeat_n(*number, times)).collect(),
    }))
}

/// Integers along one axis, all of which are known: of an array with NumPy's own type of them, or of a
/// list.
fn integers(of: &Value) -> Option<Vec<i128>> {
    let items = match of {
        Value::Array(array) if array.dtype.as_deref() == Some("i64") => listed(array)?,
        Value::List(items) | Value::Tuple(items) => items.clone(),
        _ => return None,
    };
    let integer = |item: &Value| match item {
        Value::Int(number) => *number,
        _ => None,
    };
    items.iter().map(integer).collect::<Option<Vec<_>>>().filter(|items| !items.is_empty())
}

fn of_integers(integers: &[i128]) -> Value {
    let list = integers.iter().map(|number| Value::Int(Some(*number))).collect();
    let given = [(None, Value::List(list))];
    constructed("array", &Args(&given)).unwrap_or(Value::Unknown)
}

/// Random numbers.
fn drawn(name: &str, args: &Args<'_>) -> Option<Value> {
    let positional = args.positional();
    let size = |at: usize| args.get(at, "size").map(|size| sizes(&[size]));
    let shape = match name {
        "rand" | "randn" => sizes(&positional).or(Some(Vec::new())),
        "random" | "random_sample" | "ranf" | "standard_normal" => size(0)?,
        "normal" | "uniform" => size(2)?,
        "randint" | "integers" => size(2)?,
        "choice" if matches!(positional.first(), Some(Value::Int(_))) => size(1)?,
        "permutation" => sizes(&positional[..positional.len().min(1)])
            .filter(|_| matches!(positional.first(), Some(Value::Int(_)))),
        _ => return None,
    };
    let default = if matches!(name, "choice" | "randint" | "integers" | "permutation") {
        "i64"
    } else {
        FLOAT
    };
    Some(array(dtype(args.keyword("dtype"), Some(default)), shape, Contents::Unknown))
}

fn constructed(name: &str, args: &Args<'_>) -> Option<Value> {
    let positional = args.positional();
    let own = |at: usize, default: Option<&str>| dtype(args.get(at, "dtype"), default);
    let shape = || args.get(0, "shape").and_then(|size| sizes(&[size]));
    Some(match name {
        "zeros" => array(own(1, Some(FLOAT)), shape(), Contents::constant(0)),
        "ones" => array(own(1, Some(FLOAT)), shape(), Contents::constant(1)),
        "empty" => array(own(1, Some(FLOAT)), shape(), Contents::Unknown),
        "full" => array(own(2, None), shape(), Contents::Unknown),
        "arange" => {
            let bounds: Vec<&Value> = positional.into_iter().take(3).collect();
            let count = tensor::counted(&bounds)?;
            let is_whole = bounds.iter().all(|bound| matches!(bound, Value::Int(_)));
            let dtype = dtype(args.keyword("dtype"), Some(if is_whole { "i64" } else { FLOAT }));
            let contents = if is_whole {
                made::by_torch(name, &Args(&of(&bounds)))
            } else {
                Contents::Unknown
            };
            array(dtype, Some(vec![count]), contents)
        }
        "linspace" => {
            let count = args.get(2, "num").cloned().unwrap_or(Value::Int(Some(50)));
            array(dtype(args.keyword("dtype"), Some(FLOAT)), Some(vec![count]), Contents::Unknown)
        }
        "array" | "asarray" => {
            let data = args.get(0, "object").or_else(|| args.keyword("a"))?;
            if let Value::Array(known) = data {
                return converted(known, args.get(1, "dtype"));
            }
            let made = tensor::torch_constructor("tensor", &Args(&[(None, data.clone())]))?;
            let Value::Tensor(Tensor { dtype: Some(found), shape: Some(shape), .. }) = made else {
                return None;
            };
            let found = if is_float(&found) { FLOAT.into() } else { found };
            let contents = made::by_torch("tensor", &Args(&[(None, data.clone())]));
            array(own(1, Some(&*found)), Some(shape), contents)
        }
        "zeros_like" | "ones_like" | "empty_like" | "copy" | "ascontiguousarray" => {
            let Value::Array(of) = args.get(0, "a")? else { return None };
            array(
                dtype(args.keyword("dtype"), of.dtype.as_deref()),
                of.shape.clone(),
                Contents::Unknown,
            )
        }
        _ => return None,
    })
}

fn of(values: &[&Value]) -> Vec<(Option<Name>, Value)> {
    values.iter().map(|value| (None, Value::clone(value))).collect()
}

/// The type that an argument names, or `default`; `None` where it is given and not known.
fn dtype(given: Option<&Value>, default: Option<&str>) -> Option<Arc<str>> {
    match given {
        None | Some(Value::None) => default.map(Arc::from),
        Some(Value::Named(Resolution::External(path))) => match path.as_slice() {
            [numpy, name] if **numpy == *NUMPY => {
                named_dtype(name.trim_end_matches('_')).map(Arc::from)
            }
            _ => None,
        },
        Some(given) => tensor::given_dtype(given),
    }
}

fn array(dtype: Option<Arc<str>>, shape: Option<Vec<Value>>, contents: Contents) -> Value {
    let mut made = Tensor { dtype, shape, ..Tensor::default() }.copied();
    if let Some(storage) = &mut made.storage {
        storage.contents = contents;
    }
    Value::Array(Box::new(made))
}

/// `tensor.numpy()`.
pub(crate) fn of_tensor(tensor: &Tensor) -> Value {
    let contents = data::of(tensor).map(|data| data.row_major());
    array(tensor.dtype.clone(), tensor.shape.clone(), contents.unwrap_or_default())
}

/// `array[index]` by a number for each of the first axes: a number, or what is left of the axes.
pub(crate) fn element(array: &Tensor, index: &[Value]) -> Option<Value> {
    let data = data::of(&as_tensor(array))?.at(index)?;
    Some(match data.value() {
        Some(number) => number,
        None => self::array(array.dtype.clone(), Some(data.shape()), data.row_major()),
    })
}

/// `array[index]` by slices and arrays: its type and sizes, while what it holds is not followed.
pub(crate) fn part(array: &Tensor, index: &Value) -> Option<Value> {
    let in_torch = |value: &Value| match value {
        Value::Array(array) => Value::Tensor(as_tensor(array)),
        value => value.clone(),
    };
    let index = match index {
        Value::Tuple(items) => Value::Tuple(items.iter().map(in_torch).collect()),
        index => in_torch(index),
    };
    match operators::subscript(&Value::Tensor(as_tensor(array)), &index) {
        Value::Tensor(Tensor { dtype, shape: Some(shape), .. }) if !shape.is_empty() => {
            Some(self::array(dtype, Some(shape), Contents::Unknown))
        }
        _ => None,
    }
}

/// The tensor of what an array holds: the same memory, or a copy.
pub(crate) fn as_tensor(array: &Tensor) -> Tensor {
    let contents = array.storage.as_ref().map(|storage| storage.contents.clone());
    let mut made = Tensor { storage: None, ..array.clone() }.copied();
    if let (Some(storage), Some(contents)) = (&mut made.storage, contents) {
        storage.contents = contents;
    }
    made
}

/// The numbers of an array along its only axis, where they are known.
pub(crate) fn listed(array: &Tensor) -> Option<Vec<Value>> {
    array.shape.as_ref().filter(|shape| shape.len() == 1)?;
    let numbers = numbers::of(array)?;
    Some(numbers.into_iter().map(|number| Value::Int(Some(number))).collect())
}

fn converted(of: &Tensor, to: Option<&Value>) -> Option<Value> {
    let dtype = dtype(to, of.dtype.as_deref());
    let whole = [&of.dtype, &dtype].iter().all(|dtype| dtype.as_deref().is_some_and(is_integer));
    let contents = of.storage.as_ref().filter(|_| whole).map(|known| known.contents.clone());
    Some(array(dtype, of.shape.clone(), contents.unwrap_or_default()))
}

/// `array.attr`.
pub(crate) fn attribute(array: &Tensor, attr: &str) -> Value {
    let of_tensor = || tensor::attribute(&Value::Tensor(array.clone()), attr);
    match attr {
        "shape" | "ndim" => of_tensor(),
        "size" => Value::Int(array.shape.as_deref().and_then(views::elements)),
        "T" => match of_tensor() {
            Value::Tensor(turned) => Value::Array(Box::new(turned)),
            _ => Value::Unknown,
        },
        _ => Value::Unknown,
    }
}

/// `array.name(...)`.
pub(crate) fn method(array: &Tensor, name: &str, args: &Args<'_>) -> Value {
    let known = match name {
        "astype" => converted(array, args.get(0, "dtype")),
        "copy" => converted(array, None),
        "reshape" | "flatten" | "transpose" | "ravel" => {
            let permutes = name == "transpose" && args.0.len() != 2;
            let (name, axes) = match (name, permutes) {
                ("ravel", _) => ("flatten", args.0),
                ("transpose", true) => ("permute", args.0),
                (name, _) => (name, args.0),
            };
            match tensor::method(&Value::Tensor(array.clone()), name, &Args(axes)) {
                Some(Value::Tensor(made)) if made.shape.is_some() => {
                    Some(Value::Array(Box::new(made)))
                }
                _ => None,
            }
        }
        "tolist" => listed(array).map(Value::List),
        "cumsum" | "max" | "min" | "sum" if args.0.is_empty() => {
            counted(name, &Args(&[(None, Value::Array(Box::new(array.clone())))]))
        }
        _ => None,
    };
    let on_array = || {
        let receiver = (None, Value::Array(Box::new(array.clone())));
        let given: Vec<_> = std::iter::once(receiver).chain(args.0.iter().cloned()).collect();
        of_floats(name, &given)
    };
    known.or_else(on_array).unwrap_or(Value::Unknown)
}

/// `left op right` where one is an array and the other is one, or a number.
pub(crate) fn binary(op: BinaryOp, left: &Value, right: &Value) -> Option<Value> {
    let (array, other) = match (left, right) {
        (Value::Array(array), other) | (other, Value::Array(array)) => (array, other),
        _ => return None,
    };
    let dtype = array.dtype.clone().filter(|dtype| {
        let is_plain = is_float(dtype) || op != BinaryOp::Div && is_integer(dtype);
        is_plain
            && match other {
                Value::Int(_) => true,
                Value::Float(_) => is_float(dtype),
                Value::Array(other) => other.dtype.as_ref() == Some(dtype),
                _ => false,
            }
    });
    let shape = match other {
        Value::Array(other) => views::broadcast(array.shape.as_deref(), other.shape.as_deref()),
        other => as_number(other).and_then(|_| array.shape.clone()),
    };
    let as_tensor = |value: &Value| match value {
        Value::Array(array) => Value::Tensor(as_tensor(array)),
        value => value.clone(),
    };
    let contents = operators::contents(op, &as_tensor(left), &as_tensor(right));
    Some(self::array(dtype, shape, contents))
}
