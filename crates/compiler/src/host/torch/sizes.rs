//! Tensors that functions make of others, whose sizes follow from theirs and from numbers.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::hir::BinaryOp;
use crate::host::code::arguments::Args;
use crate::host::code::operators::position;
use crate::host::library::chosen;
use crate::host::torch::reduced::along_axis;
use crate::host::torch::tensor::method;
use crate::host::torch::views::{self, strides};
use crate::host::value::number::arithmetic;
use crate::host::value::{Tensor, Value};

/// What a function makes of a tensor and the arguments after it, which is also a method of tensors;
/// `None` for other functions, and where sizes are not known.
pub(crate) fn made_of(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Value> {
    let of = dims(tensor)?;
    let same_type = |shape: Vec<i128>| Some(contiguous(tensor.dtype.clone(), &shape));
    let axis = |at: usize, name: &str, default: i128| {
        position(of.len(), number(args, at, name, Some(default))?)
    };
    match name {
        "repeat_interleave" => {
            let times = number(args, 0, "repeats", None)?;
            match args.get(1, "dim") {
                None | Some(Value::None) => same_type(vec![of.iter().product::<i128>() * times]),
                Some(_) => same_type(with(&of, axis(1, "dim", 0)?, |size| size * times)),
            }
        }
        "tile" => same_type(tiled(&of, &listed(args, "dims")?)),
        "diff" if args.get(2, "prepend").is_none() && args.get(3, "append").is_none() => {
            let times = number(args, 0, "n", Some(1))?;
            let shape = with(&of, axis(1, "dim", -1)?, |size| (size - times).max(0));
            Some(laid_out_as(&[tensor], tensor.dtype.clone(), &shape))
        }
        "kron" => {
            let other = tensor_at(args, 0, "other")?;
            let shape = tiled(&of, &dims(other)?);
            Some(laid_out_as(&[tensor, other], same_of(&[tensor, other]), &shape))
        }
        "cdist" => match (of.as_slice(), dims(tensor_at(args, 0, "x2")?)?.as_slice()) {
            ([batch @ .., rows, _], [others @ .., columns, _]) if batch == others => {
                same_type([batch, &[*rows, *columns]].concat())
            }
            _ => None,
        },
        "multinomial" => {
            let (_, rest) = of.split_last()?;
            let shape = [rest, &[number(args, 0, "num_samples", None)?]].concat();
            Some(contiguous(Some("i64".into()), &shape))
        }
        "histc" => same_type(vec![number(args, 0, "bins", Some(100))?]),
        "scatter" | "scatter_add" | "scatter_reduce" | "index_add" | "index_copy"
        | "index_fill" | "masked_scatter" => {
            Some(laid_out_as(&[tensor], tensor.dtype.clone(), &of))
        }
        "var_mean" | "std_mean" => {
            let part = |name| along_axis(name, tensor, args);
            Some(Value::Tuple(vec![part(name.split_once('_')?.0)?, part("mean")?]))
        }
        "take" => {
            let index = tensor_at(args, 0, "index")?;
            Some(laid_out_as(&[index], tensor.dtype.clone(), &dims(index)?))
        }
        "take_along_dim" if args.get(1, "dim").is_some() => {
            let (index, axis) = (dims(tensor_at(args, 0, "indices")?)?, axis(1, "dim", 0)?);
            let fits = index.len() == of.len() && with(&of, axis, |_| index[axis]) == index;
            fits.then(|| ordered_anyhow(tensor.dtype.clone(), &index))
        }
        "diag" => {
            let offset = number(args, 0, "diagonal", Some(0))?;
            match of.as_slice() {
                [size] => same_type(vec![size + offset.abs(); 2]),
                [rows, columns] => {
                    let (above, below) = (columns - offset.max(0), rows + offset.min(0));
                    let length = above.min(below);
                    let dtype = tensor.dtype.clone();
                    (length > 0).then(|| ordered_anyhow(dtype, &[length]))
                }
                _ => None,
            }
        }
        "tensordot" => {
            let (other, axes) =
                (dims(tensor_at(args, 0, "b")?)?, number(args, 1, "dims", Some(2))?);
            let axes =
                usize::try_from(axes).ok().filter(|axes| *axes <= of.len().min(other.len()))?;
            let (rows, columns) = (&of[..of.len() - axes], &other[axes..]);
            let dtype = same_of(&[tensor, tensor_at(args, 0, "b")?]);
            Some(contiguous(dtype, &[rows, columns].concat()))
        }
        "where" => {
            let condition = tensor_at(args, 0, "condition")?;
            chosen(condition, &Value::Tensor(tensor.clone()), args.get(1, "other")?)
        }
        _ => view_of(name, tensor, &of, args),
    }
}

/// What a function shows of the same memory.
fn view_of(name: &str, tensor: &Tensor, of: &[i128], args: &Args<'_>) -> Option<Value> {
    let axis = |at: usize, name: &str, default: i128| {
        position(of.len(), number(args, at, name, Some(default))?)
    };
    match name {
        "broadcast_to" => {
            let shape = listed(args, "size")?;
            Some(Value::Tensor(views::expanded(tensor, &sizes(&shape))?))
        }
        "movedim" | "moveaxis" => {
            let axes = |at, name| match args.get(at, name)? {
                Value::Int(Some(axis)) => Some(vec![position(of.len(), *axis)?]),
                axes => numbers(axes)?.into_iter().map(|axis| position(of.len(), axis)).collect(),
            };
            let order = moved(of.len(), &axes(0, "source")?, &axes(1, "destination")?)?;
            Some(Value::Tensor(views::permuted(tensor, &order)?))
        }
        "atleast_1d" | "atleast_2d" | "atleast_3d" => {
            let rank = usize::from(name.as_bytes()[8] - b'0');
            let before = rank.saturating_sub(of.len().max(1)).min(2);
            let reshaped = match (rank, of) {
                _ if of.len() >= rank => return Some(Value::Tensor(tensor.clone())),
                (3, [rows, columns]) => vec![*rows, *columns, 1],
                (3, [size]) => vec![1, *size, 1],
                (rank, []) => vec![1; rank],
                _ => [&vec![1; before][..], of].concat(),
            };
            let asked = Value::Tuple(sizes(&reshaped));
            method(&Value::Tensor(tensor.clone()), "reshape", &Args(&[(None, asked)]))
        }
        "hsplit" | "vsplit" | "dsplit" => {
            let axis = match name {
                "vsplit" => 0,
                "dsplit" => 2,
                _ => usize::from(of.len() > 1),
            };
            let given = args.get(0, "indices_or_sections").or_else(|| args.keyword("sections"))?;
            let lengths = split_lengths(*of.get(axis)?, given)?;
            Some(Value::Tuple(views::cut_up(tensor, axis, &lengths)?))
        }
        "tensor_split" => {
            let axis = axis(1, "dim", 0)?;
            let given = args.get(0, "indices_or_sections").or_else(|| args.keyword("sections"));
            let lengths = split_lengths(of[axis], given?)?;
            Some(Value::Tuple(views::cut_up(tensor, axis, &lengths)?))
        }
        "unfold" => {
            let axis = axis(0, "dimension", 0)?;
            let (size, step) = (number(args, 1, "size", None)?, number(args, 2, "step", None)?);
            let windows = (step > 0 && size <= of[axis]).then(|| (of[axis] - size) / step + 1)?;
            let mut steps = strides(tensor)?;
            steps.push(steps[axis].clone());
            steps[axis] = times(&steps[axis], step);
            let shape = [&with(of, axis, |_| windows)[..], &[size]].concat();
            Some(view(tensor, &shape, steps))
        }
        "diagonal" if number(args, 0, "offset", Some(0))? == 0 => {
            let (first, second) = (axis(1, "dim1", 0)?, axis(2, "dim2", 1)?);
            let (mut shape, mut steps) = (of.to_vec(), strides(tensor)?);
            let length = of[first].min(of[second]);
            let step = arithmetic(BinaryOp::Add, &steps[first], &steps[second]);
            for axis in [first.max(second), first.min(second)] {
                shape.remove(axis);
                steps.remove(axis);
            }
            shape.push(length);
            steps.push(step);
            Some(view(tensor, &shape, steps))
        }
        "as_strided" if args.get(2, "storage_offset").is_none() => {
            let (shape, steps) = (args.get(0, "size")?, args.get(1, "stride")?);
            Some(view(tensor, &numbers(shape)?, steps.elements()?))
        }
        _ => None,
    }
}

/// What `torch.NAME(...)` makes of several tensors, or of numbers; `None` for other functions.
pub(crate) fn by_torch(name: &str, args: &Args<'_>) -> Option<Value> {
    match name {
        "einsum" => einsum(args),
        "hstack" | "vstack" | "row_stack" | "column_stack" | "dstack" => {
            stacked(name, &tensors(args.get(0, "tensors")?)?)
        }
        "meshgrid" => meshgrid(args),
        "cartesian_prod" => {
            let tensors = several(args)?;
            let counts = tensors.iter().map(|tensor| match dims(tensor)?.as_slice() {
                [count] => Some(*count),
                _ => None,
            });
            let count = counts.collect::<Option<Vec<_>>>()?.iter().product();
            let columns = tensors.len() as i128;
            (columns > 1).then(|| ordered_anyhow(same_of(&tensors), &[count, columns]))
        }
        "block_diag" => {
            let blocks = several(args)?;
            let shapes = blocks.iter().map(|block| match dims(block)?.as_slice() {
                [] => Some((1, 1)),
                [columns] => Some((1, *columns)),
                [rows, columns] => Some((*rows, *columns)),
                _ => None,
            });
            let shapes = shapes.collect::<Option<Vec<_>>>()?;
            let (rows, columns): (Vec<i128>, Vec<i128>) = shapes.into_iter().unzip();
            Some(contiguous(same_of(&blocks), &[rows.iter().sum(), columns.iter().sum()]))
        }
        "normal" => match (args.get(0, "mean")?, args.keyword("size").or(args.get(2, "size"))) {
            (Value::Tensor(mean), None) => Some(contiguous(mean.dtype.clone(), &dims(mean)?)),
            (Value::Float(_) | Value::Int(_), Some(size)) => {
                Some(contiguous(args.dtype(Some("fp32")), &numbers(size)?))
            }
            _ => None,
        },
        "tril_indices" | "triu_indices" => {
            let (rows, columns) = (number(args, 0, "row", None)?, number(args, 1, "col", None)?);
            let offset = number(args, 2, "offset", Some(0))?;
            let below = |row: i128| (row + 1 + offset).clamp(0, columns);
            let count = match name {
                "tril_indices" => (0..rows.min(MAX_COUNTED)).map(below).sum::<i128>(),
                _ => (0..rows.min(MAX_COUNTED)).map(|row| columns - below(row - 1)).sum(),
            };
            let dtype = args.dtype(Some("i64"));
            (rows <= MAX_COUNTED).then(|| contiguous(dtype, &[2, count]))
        }
        "complex" | "polar" => {
            let [first, second] = match name {
                "complex" => ["real", "imag"],
                _ => ["abs", "angle"],
            };
            let real = tensor_at(args, 0, first)?;
            let dtype = match real.dtype.as_deref()? {
                "fp32" => "complex64",
                "fp64" => "complex128",
                _ => return None,
            };
            Some(laid_out_as(
                &[real, tensor_at(args, 1, second)?],
                Some(dtype.into()),
                &dims(real)?,
            ))
        }
        _ => None,
    }
}

/// Rows that are counted one by one.
const MAX_COUNTED: i128 = 4096;

/// A product of tensors by the letters of their dimensions: those of the result are its sizes.
fn einsum(args: &Args<'_>) -> Option<Value> {
    let Some(Value::Str(equation)) = args.get(0, "equation") else { return None };
    let operands = match args.positional().as_slice() {
        [_, listed @ (Value::List(_) | Value::Tuple(_))] => tensors(listed)?,
        [_, operands @ ..] => {
            operands.iter().map(|value| as_tensor(value)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let equation: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
    let (inputs, result) = match equation.split_once("->") {
        Some((inputs, result)) => (inputs, result.to_owned()),
        None => (&*equation, implied(&equation)),
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    let mut sizes: FxHashMap<char, i128> = FxHashMap::default();
    if inputs.len() != operands.len() {
        return None;
    }
    for (letters, operand) in inputs.iter().zip(&operands) {
        let of = dims(operand)?;
        if letters.chars().count() != of.len() || letters.contains('.') {
            return None;
        }
        for (letter, size) in letters.chars().zip(of) {
            let known = sizes.entry(letter).or_insert(size);
            // What is one element long stretches.
            *known = if *known == 1 { size } else { *known };
        }
    }
    let shape = result.chars().map(|letter| sizes.get(&letter).copied());
    let shape = shape.collect::<Option<Vec<_>>>()?;
    let dtype = same_of(&operands);
    let strides = match inputs[..] {
        [left, right] => strides_of_product((left, right), &result, &sizes),
        _ => None,
    };
    Some(match strides {
        Some(strides) => {
            let (shape, strides) = (Some(self::sizes(&shape)), Some(strides));
            Value::Tensor(views::dense(Tensor { dtype, shape, strides, ..Tensor::default() }))
        }
        None => ordered_anyhow(dtype, &shape),
    })
}

/// The strides of what `torch.einsum` makes of two tensors by a matrix product: in memory there come first the
/// dimensions that both have, then those of the left one alone, then those of the right one. `None` where it
/// makes it in another way.
/// Source: `sumproduct_pair` in PyTorch's `aten/src/ATen/native/Linear.cpp`, and the strides of some 2000 products
/// that PyTorch 2.10 made.
fn strides_of_product(
    (left, right): (&str, &str),
    result: &str,
    sizes: &FxHashMap<char, i128>,
) -> Option<Vec<Value>> {
    let is_long = |letter: &char| sizes.get(letter).is_some_and(|size| *size > 1);
    let is_summed =
        |letter: char| right.contains(letter) && !result.contains(letter) && is_long(&letter);
    if !left.chars().any(is_summed) {
        return None;
    }
    // It may take the right one first where the result begins with what only that has, and nothing is summed
    // of one of them alone.
    let is_of_one = |letter: &char| left.contains(*letter) != right.contains(*letter);
    let begins_right = result.chars().find(is_of_one).is_some_and(|first| right.contains(first));
    let mut all = left.chars().chain(right.chars());
    let sums_alone = all.any(|letter| is_of_one(&letter) && !result.contains(letter));
    if begins_right && !sums_alone {
        return None;
    }
    let place = |letter: &char| match (left.contains(*letter), right.contains(*letter)) {
        (true, true) => 0,
        (true, false) => 1,
        _ => 2,
    };
    let mut in_memory: Vec<char> = result.chars().collect();
    in_memory.sort_by_key(place);
    let mut strides: FxHashMap<char, i128> = FxHashMap::default();
    let mut stride = 1;
    for letter in in_memory.iter().rev() {
        strides.insert(*letter, stride);
        stride *= sizes.get(letter)?;
    }
    result.chars().map(|letter| Some(Value::Int(Some(*strides.get(&letter)?)))).collect()
}

/// The dimensions of a result that an equation does not write: those that are there once.
fn implied(inputs: &str) -> String {
    let mut letters: Vec<char> = inputs.chars().filter(char::is_ascii_alphabetic).collect();
    letters.sort_unstable();
    let once = |letter: &char| letters.iter().filter(|other| *other == letter).count() == 1;
    letters.iter().copied().filter(once).collect()
}

/// Tensors side by side, or one above the other, as matrices at least.
fn stacked(name: &str, tensors: &[&Tensor]) -> Option<Value> {
    let shapes = tensors.iter().map(|tensor| dims(tensor)).collect::<Option<Vec<_>>>()?;
    let raised = |shape: &Vec<i128>| match (name, shape.as_slice()) {
        ("hstack", []) => vec![1],
        ("hstack", _) => shape.clone(),
        ("column_stack", []) => vec![1, 1],
        ("column_stack", [rows]) => vec![*rows, 1],
        ("vstack" | "row_stack", []) => vec![1, 1],
        ("vstack" | "row_stack", [columns]) => vec![1, *columns],
        ("dstack", []) => vec![1, 1, 1],
        ("dstack", [columns]) => vec![1, *columns, 1],
        ("dstack", [rows, columns]) => vec![*rows, *columns, 1],
        _ => shape.clone(),
    };
    let shapes: Vec<Vec<i128>> = shapes.iter().map(raised).collect();
    let axis = match name {
        "vstack" | "row_stack" => 0,
        "dstack" => 2,
        "column_stack" => 1,
        _ => usize::from(shapes.first()?.len() > 1),
    };
    let first = shapes.first()?;
    let all: i128 = shapes.iter().map(|shape| shape.get(axis).copied()).sum::<Option<i128>>()?;
    let fits = |shape: &Vec<i128>| with(shape, axis, |_| first[axis]) == *first;
    shapes.iter().all(fits).then(|| contiguous(same_of(tensors), &with(first, axis, |_| all)))
}

/// Grids of coordinates: each tensor varies along its own axis.
fn meshgrid(args: &Args<'_>) -> Option<Value> {
    let tensors = several(args)?;
    let sizes = tensors.iter().map(|tensor| match dims(tensor)?.as_slice() {
        [] => Some(1),
        [size] => Some(*size),
        _ => None,
    });
    let sizes = sizes.collect::<Option<Vec<_>>>()?;
    let swapped = match args.keyword("indexing") {
        None => false,
        Some(Value::Str(order)) => &**order == "xy" && sizes.len() > 1,
        Some(_) => return None,
    };
    let grid = |(at, tensor): (usize, &&Tensor)| {
        let mut steps = vec![Value::Int(Some(0)); sizes.len()];
        steps[at] = strides(tensor)?.first().cloned().unwrap_or(Value::Int(Some(0)));
        let mut shape = sizes.clone();
        if swapped {
            shape.swap(0, 1);
            steps.swap(0, 1);
        }
        Some(view(tensor, &shape, steps))
    };
    tensors.iter().enumerate().map(grid).collect::<Option<Vec<_>>>().map(Value::Tuple)
}

/// How long the parts are that an axis is split into: so many, or at these places.
fn split_lengths(size: i128, given: &Value) -> Option<Vec<i128>> {
    if let Value::Int(Some(count)) = given {
        let few = (1..=views::MAX_ROWS).contains(count).then_some(*count)?;
        let length = |at: i128| size / few + i128::from(at < size % few);
        return Some((0..few).map(length).collect());
    }
    let places = numbers(given)?;
    let inside = |place: &i128| if *place < 0 { (place + size).max(0) } else { (*place).min(size) };
    let ends: Vec<i128> = places.iter().map(inside).chain([size]).collect();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    Some(starts.zip(&ends).map(|(start, end)| (end - start).max(0)).collect())
}

/// The axes of a tensor in their order after some have been moved.
fn moved(rank: usize, from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let mut order = vec![None; rank];
    for (from, to) in from.iter().zip(to) {
        order[*to] = Some(*from);
    }
    let mut rest = (0..rank).filter(|axis| !from.contains(axis));
    (from.len() == to.len())
        .then(|| order.into_iter().map(|axis| axis.or_else(|| rest.next())).collect())?
}

/// Sizes with those of the other factor, from the last dimension on.
fn tiled(of: &[i128], times: &[i128]) -> Vec<i128> {
    let rank = of.len().max(times.len());
    let at = |sizes: &[i128], axis: usize| {
        (axis + sizes.len()).checked_sub(rank).map_or(1, |at| sizes[at])
    };
    (0..rank).map(|axis| at(of, axis) * at(times, axis)).collect()
}

fn with(sizes: &[i128], axis: usize, change: impl Fn(i128) -> i128) -> Vec<i128> {
    let mut sizes = sizes.to_vec();
    sizes[axis] = change(sizes[axis]);
    sizes
}

fn times(step: &Value, count: i128) -> Value {
    arithmetic(BinaryOp::Mul, step, &Value::Int(Some(count)))
}

/// A new tensor of these sizes.
pub(crate) fn contiguous(dtype: Option<Arc<str>>, shape: &[i128]) -> Value {
    Value::Tensor(Tensor { dtype, shape: Some(sizes(shape)), ..Tensor::default() }.copied())
}

/// The same, where elements have the order of those of other tensors.
pub(crate) fn laid_out_as(of: &[&Tensor], dtype: Option<Arc<str>>, shape: &[i128]) -> Value {
    let is_plain = of.iter().all(|tensor| tensor.strides.is_none());
    let made = if is_plain { contiguous } else { ordered_anyhow };
    made(dtype, shape)
}

/// A new tensor of these sizes, whose elements may be in another order.
pub(crate) fn ordered_anyhow(dtype: Option<Arc<str>>, shape: &[i128]) -> Value {
    let shape = sizes(shape);
    let strides = views::unknown_strides(Some(&shape));
    Value::Tensor(views::dense(Tensor { dtype, shape: Some(shape), strides, ..Tensor::default() }))
}

fn view(tensor: &Tensor, shape: &[i128], strides: Vec<Value>) -> Value {
    let (shape, strides) = (Some(sizes(shape)), Some(strides));
    Value::Tensor(Tensor { shape, strides, ..tensor.clone() })
}

fn sizes(shape: &[i128]) -> Vec<Value> {
    shape.iter().map(|size| Value::Int(Some(*size))).collect()
}

/// The sizes of a tensor, where all are known.
pub(crate) fn dims(tensor: &Tensor) -> Option<Vec<i128>> {
    all_known(tensor.shape.as_ref()?)
}

/// Numbers, where all are known.
pub(crate) fn all_known(values: &[Value]) -> Option<Vec<i128>> {
    values.iter().map(known).collect()
}

/// The type of tensors that are of one.
pub(crate) fn same_of(tensors: &[&Tensor]) -> Option<Arc<str>> {
    let dtype = tensors.first()?.dtype.clone()?;
    tensors.iter().all(|tensor| tensor.dtype.as_ref() == Some(&dtype)).then_some(dtype)
}

fn known(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => *number,
        _ => None,
    }
}

/// The numbers of a tuple or list.
pub(crate) fn numbers(value: &Value) -> Option<Vec<i128>> {
    value.elements()?.iter().map(known).collect()
}

/// A number among the arguments, or what it is where it is left out.
pub(crate) fn number(
    args: &Args<'_>,
    at: usize,
    name: &str,
    default: Option<i128>,
) -> Option<i128> {
    args.get(at, name).map_or(default, known)
}

/// Numbers that are given one by one, or as one tuple.
fn listed(args: &Args<'_>, name: &str) -> Option<Vec<i128>> {
    match args.positional().as_slice() {
        [] => numbers(args.keyword(name)?),
        [one] if one.elements().is_some() => numbers(one),
        several => several.iter().map(|value| known(value)).collect(),
    }
}

fn as_tensor(value: &Value) -> Option<&Tensor> {
    match value {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}

/// A tensor among the arguments.
pub(crate) fn tensor_at<'a>(args: &Args<'a>, at: usize, name: &str) -> Option<&'a Tensor> {
    args.get(at, name).and_then(as_tensor)
}

/// The tensors of a tuple or list.
fn tensors(listed: &Value) -> Option<Vec<&Tensor>> {
    match listed {
        Value::List(items) | Value::Tuple(items) => items.iter().map(as_tensor).collect(),
        _ => None,
    }
}

/// Tensors that are given one by one, or as one tuple.
fn several<'a>(args: &Args<'a>) -> Option<Vec<&'a Tensor>> {
    match args.positional().as_slice() {
        [one] if as_tensor(one).is_none() => tensors(one),
        several => several.iter().map(|value| as_tensor(value)).collect(),
    }
}
