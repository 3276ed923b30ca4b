//! Tensors that are put together of tensors, and constructors that write numbers.

use std::sync::Arc;

use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn, concatenate};

use super::{Data, known, of_value};
use crate::host::code::arguments::Args;
use crate::host::code::operators::{position, truth};
use crate::host::torch::tensor::OF_TYPE;
use crate::host::value::dtype::is_float;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};

/// What a method of a tensor writes to a new one; `None` for other methods.
pub(super) fn made_like(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Data> {
    match name {
        "new_full" => {
            let fill = of_value(args.get(1, "fill_value")?)?.number()?;
            filled(tensor.dtype.as_deref()?, shape_of(args.get(0, "size")?)?, fill)
        }
        "new_tensor" => listed(args.get(0, "data")?),
        _ => None,
    }
}

/// What `torch.NAME(...)` puts together or writes; `None` for other functions.
pub(super) fn made_by(name: &str, args: &Args<'_>) -> Option<Data> {
    match name {
        "cat" | "concat" | "concatenate" | "column_stack" | "dstack" | "hstack" | "row_stack"
        | "stack" | "vstack" => joined(name, args),
        "block_diag" => block_diagonal(args),
        "cartesian_prod" => combined(args),
        "kron" => {
            let (a, b) = (of_value(args.get(0, "input")?)?, of_value(args.get(1, "other")?)?);
            kronecker(&a, &b)
        }
        "tril_indices" | "triu_indices" => triangle_positions(name == "tril_indices", args),
        "pad_sequence" => padded_rows(args),
        "scalar_tensor" => of_value(args.get(0, "s")?),
        _ if OF_TYPE.iter().any(|(class, _)| *class == name) => {
            let data = args.get(0, "data")?;
            matches!(data, Value::Tuple(_) | Value::List(_)).then(|| listed(data))?
        }
        "tensor" | "as_tensor" | "Tensor" => {
            let data = args.get(0, "data")?;
            if matches!(data, Value::Tensor(_)) {
                return of_value(data);
            }
            listed(data)
        }
        "full" => {
            let shape = shape_of(args.get(0, "size")?)?;
            let fill = of_value(args.get(1, "fill_value")?)?;
            filled(&fill.dtype, shape, fill.number()?)
        }
        "full_like" => {
            let Value::Tensor(like) = args.get(0, "input")? else { return None };
            let fill = of_value(args.get(1, "fill_value")?)?.number()?;
            filled(like.dtype.as_deref()?, shape_of(&Value::Tuple(like.shape.clone()?))?, fill)
        }
        "eye" => {
            let rows = usize::try_from(known(args.get(0, "n")?)?).ok()?;
            let columns = args.get(1, "m").map_or(Some(rows as i128), known)?;
            let shape = [rows, usize::try_from(columns).ok()?];
            let is_few = shape[0].checked_mul(shape[1])? <= super::MAX_NUMBERS;
            let one = |at: IxDyn| f64::from(at[0] == at[1]);
            is_few.then(|| Data::new("fp32", ArrayD::from_shape_fn(IxDyn(&shape), one)))
        }
        "linspace" | "logspace" => {
            let base = args.get(3, "base").map_or(Some(10.0), as_float)?;
            let bound = |at, name| of_value(args.get(at, name)?)?.number();
            let (start, end) = (bound(0, "start")?, bound(1, "end")?);
            let steps = usize::try_from(known(args.get(2, "steps")?)?).ok()?;
            let is_few = (1..=super::MAX_NUMBERS).contains(&steps);
            let step = (end - start) / (steps.max(2) - 1) as f64;
            let number = |at: usize| match start + step * at as f64 {
                number if name == "linspace" => number,
                power => base.powf(power),
            };
            is_few.then(|| Data::row("fp32", (0..steps).map(number).collect()))
        }
        "arange" => ranged(args),
        "pad" => padded(args),
        "where" => {
            let [condition, on_true, on_false] =
                [(0, "condition"), (1, "input"), (2, "other")].map(|(at, name)| args.get(at, name));
            super::arithmetic::chosen(
                &of_value(condition?)?,
                &of_value(on_true?)?,
                &of_value(on_false?)?,
            )
        }
        _ => None,
    }
}

/// Tensors that stand as arguments of their own.
fn several(args: &Args<'_>) -> Option<Vec<Data>> {
    args.keywords().is_empty().then_some(())?;
    args.positional().into_iter().map(of_value).collect()
}

/// `torch.block_diag`: matrices along the diagonal of one.
fn block_diagonal(args: &Args<'_>) -> Option<Data> {
    let blocks = several(args)?;
    let as_matrix = |block: Data| match block.numbers.ndim() {
        0 => Some(block.numbers.insert_axis(Axis(0)).insert_axis(Axis(0))),
        1 => Some(block.numbers.insert_axis(Axis(0))),
        2 => Some(block.numbers),
        _ => None,
    };
    let dtype = blocks.first()?.dtype.clone();
    blocks.iter().all(|block| block.dtype == dtype).then_some(())?;
    let blocks = blocks.into_iter().map(as_matrix).collect::<Option<Vec<_>>>()?;
    let size = |axis: usize| blocks.iter().map(|block| block.shape()[axis]).sum::<usize>();
    let shape = [size(0), size(1)];
    (shape[0].checked_mul(shape[1])? <= super::MAX_COMPUTED).then_some(())?;
    let mut made = ArrayD::zeros(IxDyn(&shape));
    let mut start = [0, 0];
    for block in &blocks {
        for (at, number) in block.indexed_iter() {
            made[[start[0] + at[0], start[1] + at[1]]] = *number;
        }
        start = [start[0] + block.shape()[0], start[1] + block.shape()[1]];
    }
    Some(Data { dtype, numbers: made })
}

/// `torch.cartesian_prod`: each number of a row with each of others.
fn combined(args: &Args<'_>) -> Option<Data> {
    let rows = several(args)?;
    (rows.len() > 1 && rows.iter().all(|row| row.numbers.ndim() == 1)).then_some(())?;
    let count = rows.iter().try_fold(1usize, |all, row| all.checked_mul(row.numbers.len()))?;
    (count.checked_mul(rows.len())? <= super::MAX_COMPUTED).then_some(())?;
    let number = |at: IxDyn| {
        let inner: usize = rows[at[1] + 1..].iter().map(|row| row.numbers.len()).product();
        let row = &rows[at[1]].numbers;
        row[at[0] / inner.max(1) % row.len()]
    };
    let numbers = ArrayD::from_shape_fn(IxDyn(&[count, rows.len()]), number);
    Some(Data { dtype: rows[0].dtype.clone(), numbers })
}

/// `torch.kron`: the second in the place of each number of the first, times it.
fn kronecker(a: &Data, b: &Data) -> Option<Data> {
    (a.numbers.ndim() == b.numbers.ndim() && a.dtype == b.dtype).then_some(())?;
    let sizes = b.numbers.shape();
    let shape = a.numbers.shape().iter().zip(sizes).map(|(a, b)| a.checked_mul(*b));
    let shape = shape.collect::<Option<Vec<usize>>>()?;
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    (count <= super::MAX_COMPUTED).then_some(())?;
    let number = |at: IxDyn| {
        let outer: Vec<usize> = (0..sizes.len()).map(|axis| at[axis] / sizes[axis]).collect();
        let inner: Vec<usize> = (0..sizes.len()).map(|axis| at[axis] % sizes[axis]).collect();
        a.numbers[IxDyn(&outer)] * b.numbers[IxDyn(&inner)]
    };
    Some(a.with(ArrayD::from_shape_fn(IxDyn(&shape), number)))
}

/// `torch.tril_indices`, `torch.triu_indices`: rows and columns of what is below a diagonal, or above it.
fn triangle_positions(is_lower: bool, args: &Args<'_>) -> Option<Data> {
    let size = |at: usize, name: &str| usize::try_from(known(args.get(at, name)?)?).ok();
    let (rows, columns) = (size(0, "row")?, size(1, "col")?);
    let diagonal = args.get(2, "offset").map_or(Some(0), known)?;
    (rows.checked_mul(columns)? <= super::MAX_NUMBERS).then_some(())?;
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let found: Vec<(usize, usize)> = all
        .filter(|(row, column)| match *column as i128 - *row as i128 {
            above if is_lower => above <= diagonal,
            above => above >= diagonal,
        })
        .collect();
    let number = |at: IxDyn| match (found[at[1]], at[0]) {
        ((row, _), 0) => row as f64,
        ((_, column), _) => column as f64,
    };
    Some(Data::new("i64", ArrayD::from_shape_fn(IxDyn(&[2, found.len()]), number)))
}

/// `torch.nn.utils.rnn.pad_sequence`: sequences beside each other, the shorter ones filled up.
fn padded_rows(args: &Args<'_>) -> Option<Data> {
    let rows = args.get(0, "sequences")?.elements()?;
    let rows = rows.iter().map(of_value).collect::<Option<Vec<Data>>>()?;
    let batch_first = args.get(1, "batch_first").map_or(Some(false), truth)?;
    let fill = args.get(2, "padding_value").map_or(Some(0.0), as_float)?;
    let inner = rows.first()?.numbers.shape().get(1..)?.to_vec();
    let is_like = |row: &Data| row.numbers.shape().get(1..) == Some(&inner);
    (args.keyword("padding_side").is_none() && rows.iter().all(is_like)).then_some(())?;
    let most = rows.iter().map(|row| row.numbers.shape()[0]).max()?;
    let shape = [&[rows.len(), most], &inner[..]].concat();
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    (count <= super::MAX_COMPUTED).then_some(())?;
    let mut numbers = ArrayD::from_elem(IxDyn(&shape), fill);
    for (row, mut place) in rows.iter().zip(numbers.outer_iter_mut()) {
        let length = row.numbers.shape()[0];
        place.slice_axis_mut(Axis(0), (..length).into()).assign(&row.numbers);
    }
    if !batch_first {
        numbers.swap_axes(0, 1);
    }
    let numbers = numbers.as_standard_layout().into_owned();
    Some(Data { dtype: rows[0].dtype.clone(), numbers })
}

fn shape_of(value: &Value) -> Option<Vec<usize>> {
    let sizes = match value {
        Value::Int(Some(size)) => vec![Value::Int(Some(*size))],
        value => value.elements()?,
    };
    let sizes = sizes.iter().map(|size| usize::try_from(known(size)?).ok());
    sizes.collect()
}

fn filled(dtype: &str, shape: Vec<usize>, fill: f64) -> Option<Data> {
    // Of integers the same throughout it is known without their being listed.
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    let is_listed = is_float(dtype) && count <= super::MAX_NUMBERS;
    is_listed.then(|| Data::new(dtype, ArrayD::from_elem(IxDyn(&shape), fill)))
}

/// Numbers with one distance, where not all of them are integers.
fn ranged(args: &Args<'_>) -> Option<Data> {
    let bounds = args.bounds().into_iter().map(of_value).collect::<Option<Vec<Data>>>()?;
    if !bounds.iter().any(|bound| is_float(&bound.dtype)) {
        return None;
    }
    let numbers = bounds.iter().map(Data::number).collect::<Option<Vec<f64>>>()?;
    let (start, end, step) = match numbers.as_slice() {
        [end] => (0.0, *end, 1.0),
        [start, end] => (*start, *end, 1.0),
        [start, end, step] => (*start, *end, *step),
        _ => return None,
    };
    let count = ((end - start) / step).ceil();
    let is_few = (0.0..=super::MAX_NUMBERS as f64).contains(&count);
    is_few.then(|| {
        Data::row("fp32", (0..count as usize).map(|at| start + step * at as f64).collect())
    })
}

/// By the position before, within or behind an axis of a size, which of its numbers is there; `None` where it is one
/// that is given.
type Within = Option<fn(i128, i128) -> i128>;

/// What a mode of padding takes.
fn within(mode: &str) -> Option<Within> {
    Some(match mode {
        "constant" => None,
        "circular" => Some(|at, size| at.rem_euclid(size.max(1))),
        "reflect" => Some(|at, size| (size - 1) - ((size - 1) - at.abs()).abs()),
        "replicate" => Some(|at, size| at.clamp(0, (size - 1).max(0))),
        _ => return None,
    })
}

/// Numbers with the same one before and behind them along the last axes.
fn padded(args: &Args<'_>) -> Option<Data> {
    let data = of_value(args.get(0, "input")?)?;
    let within = match args.get(2, "mode") {
        None => None,
        Some(Value::Str(mode)) => within(mode)?,
        Some(_) => return None,
    };
    let pads = args.get(1, "pad")?.elements()?;
    let pads = pads.iter().map(|pad| usize::try_from(known(pad)?).ok());
    let pads = pads.collect::<Option<Vec<usize>>>()?;
    let fill = match args.get(3, "value") {
        None | Some(Value::None) => 0.0,
        Some(fill) => of_value(fill)?.number()?,
    };
    let mut shape = data.numbers.shape().to_vec();
    let mut starts = vec![0; shape.len()];
    for (pair, axis) in pads.chunks(2).zip((0..shape.len()).rev()) {
        let [before, after] = pair else { return None };
        starts[axis] = *before;
        shape[axis] = shape[axis].checked_add(*before)?.checked_add(*after)?;
    }
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    if pads.len() > 2 * shape.len() || count > super::MAX_COMPUTED {
        return None;
    }
    if let Some(within) = within {
        let sizes = data.numbers.shape();
        let mut all_known = true;
        let numbers = ArrayD::from_shape_fn(IxDyn(&shape), |mut at| {
            for axis in 0..starts.len() {
                let size = sizes[axis] as i128;
                let from = within(at[axis] as i128 - starts[axis] as i128, size);
                all_known &= (0..size).contains(&from);
                at[axis] = from.clamp(0, (size - 1).max(0)) as usize;
            }
            data.numbers.get(at).copied().unwrap_or_default()
        });
        return all_known.then(|| data.with(numbers));
    }
    let mut numbers = ArrayD::from_elem(IxDyn(&shape), fill);
    for (mut at, number) in data.numbers.indexed_iter() {
        (0..starts.len()).for_each(|axis| at[axis] += starts[axis]);
        numbers[at] = *number;
    }
    Some(data.with(numbers))
}

/// The numbers of nested lists, in which tensors of one number may stand.
fn listed(data: &Value) -> Option<Data> {
    let mut sizes = Vec::new();
    listed_shape(data, &mut sizes);
    let (mut numbers, mut dtype) = (Vec::new(), Arc::from("i1"));
    flatten(data, &mut numbers, &mut dtype)?;
    let numbers = ArrayD::from_shape_vec(IxDyn(&sizes), numbers).ok()?;
    Some(Data { dtype, numbers })
}

/// The sizes of nested lists, by the first of each.
fn listed_shape(data: &Value, shape: &mut Vec<usize>) {
    if let Some(items) = data.elements() {
        shape.push(items.len());
        items.first().into_iter().for_each(|first| listed_shape(first, shape));
    }
}

fn flatten(data: &Value, numbers: &mut Vec<f64>, widest: &mut Arc<str>) -> Option<()> {
    if let Some(items) = data.elements() {
        return items.iter().try_for_each(|item| flatten(item, numbers, widest));
    }
    let number = of_value(data)?;
    let rank = |dtype: &str| ["i1", "i64", "fp32"].iter().position(|known| *known == dtype);
    if rank(&number.dtype)? > rank(widest)? {
        *widest = number.dtype.clone();
    }
    numbers.push(number.number().filter(|_| numbers.len() < super::MAX_NUMBERS)?);
    Some(())
}

/// What is joined of a part: `vstack` puts rows together, `column_stack` columns, and `hstack` at least numbers
/// in a row.
fn before_joined(name: &str, part: Data) -> Data {
    let flat = match (name, part.numbers.ndim()) {
        ("column_stack" | "dstack" | "hstack" | "row_stack" | "vstack", 0) => part.flat(),
        _ => part,
    };
    let added: &[usize] = match (name, flat.numbers.ndim()) {
        ("row_stack" | "vstack", 1) => &[0],
        ("column_stack", 1) => &[1],
        ("dstack", 1) => &[0, 2],
        ("dstack", 2) => &[2],
        _ => &[],
    };
    let insert = |numbers: ArrayD<f64>, axis: &usize| numbers.insert_axis(Axis(*axis));
    Data { numbers: added.iter().fold(flat.numbers, insert), ..flat }
}

fn joined(name: &str, args: &Args<'_>) -> Option<Data> {
    let parts = args.get(0, "tensors")?.elements()?;
    let parts = parts.iter().map(of_value).collect::<Option<Vec<Data>>>()?;
    let parts: Vec<Data> = parts.into_iter().map(|part| before_joined(name, part)).collect();
    let first = parts.first()?;
    let axis = match name {
        "vstack" | "row_stack" => Some(0),
        "column_stack" => Some(1),
        "dstack" => Some(2),
        "hstack" => Some(i128::from(first.numbers.ndim() > 1)),
        _ => args.get(1, "dim").or_else(|| args.keyword("axis")).map_or(Some(0), known),
    };
    let axis = position(first.numbers.ndim() + usize::from(name == "stack"), axis?)?;
    let views: Vec<ArrayViewD<'_, f64>> = parts
        .iter()
        .map(|part| match name {
            "stack" => part.numbers.view().insert_axis(Axis(axis)),
            _ => part.numbers.view(),
        })
        .collect();
    let count: usize = views.iter().map(ArrayViewD::len).sum();
    let is_few = count <= super::MAX_COMPUTED;
    let numbers = is_few.then(|| concatenate(Axis(axis), &views).ok())??;
    let dtype = match parts.iter().find(|part| is_float(&part.dtype)) {
        Some(part) => part.dtype.clone(),
        None => first.dtype.clone(),
    };
    Some(Data { dtype, numbers: numbers.as_standard_layout().into_owned() })
}
