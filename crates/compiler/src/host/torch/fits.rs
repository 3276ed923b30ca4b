//! Whether sizes of tensors fit what is asked of PyTorch: where all of them are known and do not, it
//! raises an exception.

use crate::host::code::arguments::{Args, REST};
use crate::host::code::operators::position;
use crate::host::torch::misuse::{self, Misfit, Misuse};
use crate::host::torch::subscripts::Part;
use crate::host::torch::tensor::sizes;
use crate::host::torch::views;
use crate::host::torch::{compared, elementwise};
use crate::host::value::{Tensor, Value};

/// Functions of a tensor and a dimension of it, which is the argument at this place.
const ALONG_A_DIMENSION: &[(&str, usize)] = &[
    ("amax", 0),
    ("amin", 0),
    ("argmax", 0),
    ("argmin", 0),
    ("argsort", 0),
    ("cumprod", 0),
    ("cumsum", 0),
    ("log_softmax", 0),
    ("logsumexp", 0),
    ("max", 0),
    ("mean", 0),
    ("min", 0),
    ("narrow", 0),
    ("select", 0),
    ("softmax", 0),
    ("sort", 0),
    ("squeeze", 0),
    ("std", 0),
    ("sum", 0),
    ("swapaxes", 0),
    ("swapaxes", 1),
    ("topk", 1),
    ("transpose", 0),
    ("transpose", 1),
    ("unbind", 0),
    ("var", 0),
];

/// Methods that change a tensor by another one, which broadcasts to it.
const IN_PLACE: &[&str] = &["add_", "copy_", "div_", "mul_", "sub_"];

/// Why PyTorch refuses `name` of a tensor with the arguments after it, as a function or as a method;
/// `None` where it does not, or that is not known.
pub(crate) fn refusal(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Misuse> {
    if let Some(misuse) = no_size(name, args) {
        return Some(misuse);
    }
    if let Some(misuse) = compared::not_compared(name, tensor, args) {
        return Some(misuse);
    }
    let of = known(tensor.shape.as_deref()?)?;
    let misfit = match name {
        "view" | "reshape" => not_viewed(of, &asked(args)?),
        "as_strided" => return not_strided(tensor, args).map(Misuse::Sizes),
        "expand" => not_expanded(of, asked(args)?),
        "expand_as" => not_expanded(of, shape(args.get(0, "other")?)?),
        "permute" => {
            let axes = args.keyword("dims").and_then(Value::elements);
            let axes = axes.or_else(|| sizes(&args.positional()))?.len();
            (axes != of.len()).then_some(Misfit::Permuted { of, axes })
        }
        "matmul" | "mm" | "bmm" => {
            let other = args.get(0, "other").or_else(|| args.get(0, "mat2"))?;
            not_multiplied(of, shape(other)?)
        }
        "masked_fill" => not_broadcast(of, shape(args.get(0, "mask")?)?),
        "masked_fill_" => not_expanded(shape(args.get(0, "mask")?)?, of),
        "where" => not_all_broadcast([of, shape(args.get(0, "condition")?)?], args.get(1, "other")),
        _ if let Some(param) = elementwise::second(name) => {
            not_broadcast(of, shape(args.get(0, param)?)?)
        }
        _ if IN_PLACE.contains(&name) => {
            let other = args.get(0, if name == "copy_" { "src" } else { "other" })?;
            not_taken(of, shape(other)?)
        }
        _ if let Some(function) = EXTREMES.iter().find(|function| **function == name)
            && args.0.is_empty() =>
        {
            of.contains(&0).then_some(Misfit::Empty { function, of })
        }
        _ => return no_dimension(name, of.len(), args),
    };
    misfit.map(Misuse::Sizes)
}

/// Methods that take sizes, or dimensions, one by one or as one collection.
const TAKING_SIZES: &[&str] = &["expand", "permute", "repeat", "reshape", "view"];

/// A shape that is given among sizes.
fn no_size(name: &str, args: &Args<'_>) -> Option<Misuse> {
    let given = args.positional();
    if given.len() < 2 || !TAKING_SIZES.contains(&name) {
        return None;
    }
    misuse::no_number_among(name, given)
}

/// Functions that give one of a tensor's elements, or where it is, and so need one.
const EXTREMES: &[&str] = &["aminmax", "argmax", "argmin", "max", "min"];

/// The dimension of a tensor of so many that a function is asked for and that there is not.
fn no_dimension(name: &str, rank: usize, args: &Args<'_>) -> Option<Misuse> {
    // A tensor without dimensions counts as one of one.
    let is_along = |(function, _): &&(&str, usize)| *function == name && rank > 0;
    let asked = |(_, at): &(&str, usize)| match args.get(*at, if *at == 0 { "dim" } else { "dim1" })
    {
        Some(Value::Int(Some(at))) if position(rank, *at).is_none() => Some(*at),
        _ => None,
    };
    let at = ALONG_A_DIMENSION.iter().filter(is_along).find_map(asked)?;
    Some(Misuse::NoDimension { at, rank })
}

/// Why two tensors have no elementwise result.
pub(crate) fn no_elementwise(a: &Tensor, b: &Tensor) -> Option<Misfit> {
    not_broadcast(known(a.shape.as_deref()?)?, known(b.shape.as_deref()?)?)
}

/// Why two tensors have no matrix product.
pub(crate) fn no_product(a: &Tensor, b: &Tensor) -> Option<Misfit> {
    not_multiplied(known(a.shape.as_deref()?)?, known(b.shape.as_deref()?)?)
}

/// Why `torch.cat` or `torch.stack` refuses what it is given.
pub(crate) fn not_joined(name: &str, args: &Args<'_>) -> Option<Misfit> {
    let tensors = args.get(0, "tensors")?.elements()?;
    let shapes = tensors.iter().map(shape).collect::<Option<Vec<_>>>()?;
    let first = shapes.first()?;
    let axis = match args.get(1, "dim").or_else(|| args.keyword("axis")) {
        None => 0,
        Some(Value::Int(Some(axis))) => *axis,
        Some(_) => return None,
    };
    let rest = |shape: &[i128]| {
        let mut rest = shape.to_vec();
        if name != "stack" {
            rest.remove(position(shape.len(), axis)?);
        }
        Some(rest)
    };
    // One without elements may stand for none at all.
    if shapes.iter().any(|shape| shape.contains(&0)) {
        return None;
    }
    let kept = rest(first)?;
    let other = shapes.iter().find(|shape| rest(shape).is_some_and(|rest| rest != kept))?;
    Some(Misfit::Joined([first.clone(), other.clone()]))
}

/// Why `result.backward(gradient)` is refused.
pub(crate) fn no_gradient_of(result: &Value, gradient: Option<&Value>) -> Option<Misfit> {
    let of = shape(result)?;
    match gradient {
        None => (of.iter().product::<i128>() != 1).then_some(Misfit::NoGradient(of)),
        Some(gradient) => {
            let is = shape(gradient)?;
            (is != of).then_some(Misfit::Gradient { of, is })
        }
    }
}

/// Why `torch.where` refuses what it is given: numbers fit everything.
pub(crate) fn not_chosen(args: &Args<'_>) -> Option<Misfit> {
    let condition = shape(args.get(0, "condition")?)?;
    let [taken, other] = [(1, "input"), (2, "other")].map(|(at, name)| args.get(at, name));
    let taken = taken.and_then(shape).unwrap_or_default();
    not_all_broadcast([taken, condition], other)
}

/// Why an element of a tensor along its first dimension is not there.
pub(crate) fn no_element(tensor: &Tensor, at: i128) -> Option<Misuse> {
    let of = known(tensor.shape.as_deref()?)?;
    let Some(size) = of.first().copied() else {
        return Some(Misuse::NoDimension { at: 0, rank: 0 });
    };
    (!(-size..size).contains(&at)).then_some(Misuse::Sizes(Misfit::Index { at, size }))
}

/// Why `tensor[part, part]` is refused.
pub(crate) fn no_part(tensor: &Tensor, parts: &[Part]) -> Option<Misuse> {
    let of = known(tensor.shape.as_deref()?)?;
    let axes = parts.iter().filter(|part| part.is_axis()).count();
    if parts.iter().any(|part| matches!(part, Part::Other)) {
        return None;
    }
    if axes > of.len() {
        return Some(Misuse::NoDimension { at: of.len() as i128, rank: of.len() });
    }
    let before_rest = parts.iter().take_while(|part| !matches!(part, Part::Rest));
    before_rest.filter(|part| part.is_axis()).zip(&of).find_map(|(part, size)| match part {
        Part::At(Some(at)) if !(-size..*size).contains(at) => {
            Some(Misuse::Sizes(Misfit::Index { at: *at, size: *size }))
        }
        _ => None,
    })
}

/// Why a part of a tensor does not take the elements of another one.
pub(crate) fn not_assigned(part: &Value, value: &Value) -> Option<Misfit> {
    not_taken(shape(part)?, shape(value)?)
}

/// The sizes of a tensor, where all are known.
fn shape(value: &Value) -> Option<Vec<i128>> {
    match value {
        Value::Tensor(tensor) => known(tensor.shape.as_deref()?),
        _ => None,
    }
}

fn asked(args: &Args<'_>) -> Option<Vec<i128>> {
    known(&sizes(&args.positional())?)
}

fn known(sizes: &[Value]) -> Option<Vec<i128>> {
    let size = |size: &Value| match size {
        Value::Int(size) => *size,
        _ => None,
    };
    sizes.iter().map(size).collect()
}

/// Sizes of two shapes that stand for the same dimension, the last first.
fn pairs<'s>(a: &'s [i128], b: &'s [i128]) -> impl Iterator<Item = (i128, i128)> + 's {
    a.iter().copied().rev().zip(b.iter().copied().rev())
}

fn not_broadcast(a: Vec<i128>, b: Vec<i128>) -> Option<Misfit> {
    let differ = pairs(&a, &b).any(|(a, b)| a != b && a != 1 && b != 1);
    differ.then_some(Misfit::Broadcast([a, b]))
}

/// Why two tensors do not broadcast, or one of them and a third.
fn not_all_broadcast([a, b]: [Vec<i128>; 2], third: Option<&Value>) -> Option<Misfit> {
    let third = third.and_then(shape).unwrap_or_default();
    let pairs = [(&a, &b), (&a, &third), (&b, &third)];
    pairs.into_iter().find_map(|(a, b)| not_broadcast(a.clone(), b.clone()))
}

/// Of a tensor that is changed, and one that it takes its elements from.
fn not_taken(to: Vec<i128>, of: Vec<i128>) -> Option<Misfit> {
    let is_long = of.len() > to.len() && of[..of.len() - to.len()].iter().any(|size| *size != 1);
    let differ = is_long || pairs(&to, &of).any(|(to, of)| to != of && of != 1);
    differ.then_some(Misfit::Expanded { of, to })
}

fn not_expanded(of: Vec<i128>, to: Vec<i128>) -> Option<Misfit> {
    let differ =
        of.len() > to.len() || pairs(&to, &of).any(|(to, of)| to != of && to != -1 && of != 1);
    differ.then_some(Misfit::Expanded { of, to })
}

/// Why PyTorch makes no tensor: the sizes of some come after numbers, and are no number.
pub(crate) fn no_sizes(name: &str, args: &Args<'_>) -> Option<Misuse> {
    let numbers: Vec<i128> = args
        .positional()
        .into_iter()
        .map(|value| match value {
            Value::Int(value) => *value,
            _ => None,
        })
        .collect::<Option<_>>()?;
    let is_named = |name: &str| args.keyword(name).is_some();
    if is_named(REST) {
        return None;
    }
    let size = match (name, &numbers[..]) {
        ("randint", [_, _, size]) if !is_named("size") => *size,
        ("randint", [_, size]) if !is_named("size") && !is_named("high") => *size,
        _ => return None,
    };
    Some(Misuse::NoSizes { function: name.into(), size })
}

/// A view by sizes and strides which reaches beyond the memory of a tensor.
fn not_strided(tensor: &Tensor, args: &Args<'_>) -> Option<Misfit> {
    let shape = args.get(0, "size")?.elements();
    let strides = args.get(1, "stride")?.elements();
    let begins_there = args.get(2, "storage_offset").is_none();
    let elements = tensor.storage.as_ref().filter(|_| begins_there)?.elements;
    let span = views::span(&Tensor { shape, strides, ..Tensor::default() })?;
    (span > elements).then_some(Misfit::Strided { elements, span })
}

fn not_viewed(of: Vec<i128>, to: &[i128]) -> Option<Misfit> {
    let product = |sizes: &[i128]| sizes.iter().try_fold(1i128, |all, size| all.checked_mul(*size));
    let stated: Vec<i128> = to.iter().copied().filter(|size| *size != -1).collect();
    let (all, stated_elements) = (product(&of)?, product(&stated)?);
    let fits = match to.len() - stated.len() {
        0 => all == stated_elements,
        1 => stated_elements != 0 && all % stated_elements == 0,
        _ => false,
    };
    (!fits).then(|| Misfit::View { of, to: to.to_vec() })
}

fn not_multiplied(a: Vec<i128>, b: Vec<i128>) -> Option<Misfit> {
    let (batch, columns) = match a.as_slice() {
        [batch @ .., _, columns] => (batch, *columns),
        [columns] => (&[][..], *columns),
        [] => return None,
    };
    let (others, rows) = match b.as_slice() {
        [batch @ .., rows, _] => (batch, *rows),
        [rows] => (&[][..], *rows),
        [] => return None,
    };
    let differ = pairs(batch, others).any(|(a, b)| a != b && a != 1 && b != 1);
    let is_refused = differ || columns != rows;
    is_refused.then_some(Misfit::Product([a, b]))
}
