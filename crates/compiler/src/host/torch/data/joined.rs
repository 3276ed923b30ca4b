//! Tensors that are put together of tensors, and constructors that write numbers.

use std::sync::Arc;

use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn, concatenate};

use super::{Data, known, of_value};
use crate::host::code::arguments::Args;
use crate::host::code::operators::position;
use crate::host::torch::tensor::OF_TYPE;
use crate::host::value::Value;
use crate::host::value::dtype::is_float;

/// What `torch.NAME(...)` puts together or writes; `None` for other functions.
pub(super) fn made_by(name: &str, args: &Args<'_>) -> Option<Data> {
    match name {
        "cat" | "concat" | "concatenate" | "hstack" | "row_stack" | "stack" | "vstack" => {
            joined(name, args)
        }
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
        "linspace" => {
            let bound = |at, name| of_value(args.get(at, name)?)?.number();
            let (start, end) = (bound(0, "start")?, bound(1, "end")?);
            let steps = usize::try_from(known(args.get(2, "steps")?)?).ok()?;
            let is_few = (1..=super::MAX_NUMBERS).contains(&steps);
            let step = (end - start) / (steps.max(2) - 1) as f64;
            is_few
                .then(|| Data::row("fp32", (0..steps).map(|at| start + step * at as f64).collect()))
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
    let bounds = args.positional().into_iter().map(of_value).collect::<Option<Vec<Data>>>()?;
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

/// What is joined of a part: `vstack` puts rows together, and `hstack` at least numbers in a row.
fn before_joined(name: &str, part: Data) -> Data {
    let flat = match (name, part.numbers.ndim()) {
        ("hstack" | "row_stack" | "vstack", 0) => part.flat(),
        _ => part,
    };
    match (name, flat.numbers.ndim()) {
        ("row_stack" | "vstack", 1) => Data { numbers: flat.numbers.insert_axis(Axis(0)), ..flat },
        _ => flat,
    }
}

fn joined(name: &str, args: &Args<'_>) -> Option<Data> {
    let parts = args.get(0, "tensors")?.elements()?;
    let parts = parts.iter().map(of_value).collect::<Option<Vec<Data>>>()?;
    let parts: Vec<Data> = parts.into_iter().map(|part| before_joined(name, part)).collect();
    let first = parts.first()?;
    let axis = match name {
        "vstack" | "row_stack" => Some(0),
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
