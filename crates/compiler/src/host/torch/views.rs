//! What is known of tensors that are made of tensors: shapes, strides and memory.

use std::sync::Arc;

use crate::hir::BinaryOp;
use crate::host::code::operators::position;
use crate::host::torch::layout;
use crate::host::value::contents::{Contents, Region};
use crate::host::value::dtype::{element_size, is_float, promoted, with_scalar};
use crate::host::value::number::arithmetic;
use crate::host::value::{Storage, Tensor, Value};

/// Whether a tensor of these sizes is longer than 1 along one axis at most: what is new lies in order then.
pub(crate) fn is_row(sizes: &[Value]) -> bool {
    sizes.iter().filter(|size| **size != Value::Int(Some(1))).count() <= 1
}

/// Elements from a tensor's first to its last, both counted; `None` when something is not known.
pub(crate) fn span(tensor: &Tensor) -> Option<i128> {
    let known = |value: &Value| match value {
        Value::Int(Some(value)) => Some(*value),
        _ => None,
    };
    let sizes = tensor.shape.as_ref()?.iter().map(known).collect::<Option<Vec<_>>>()?;
    if sizes.contains(&0) {
        return Some(0);
    }
    let strides = strides(tensor)?.iter().map(known).collect::<Option<Vec<_>>>()?;
    if sizes.len() != strides.len() || sizes.iter().chain(&strides).any(|value| *value < 0) {
        return None;
    }
    sizes
        .iter()
        .zip(strides)
        .try_fold(1i128, |span, (size, stride)| span.checked_add((size - 1).checked_mul(stride)?))
}

/// Which elements of its memory a tensor shows, where that is known.
pub(crate) fn region(value: &Value) -> Option<Region> {
    let Value::Tensor(tensor) = value else { return None };
    let known = |value: &Value| match value {
        Value::Int(value) => *value,
        _ => None,
    };
    let axes = tensor.shape.as_ref()?.iter().zip(strides(tensor)?);
    let axis = |(size, stride): (&Value, Value)| match known(size)? {
        1 => Some((1, 0)),
        size => Some((size, known(&stride)?)),
    };
    let axes = axes.map(axis).collect::<Option<Vec<_>>>()?;
    Region::new(tensor.storage.as_ref()?.before, axes)
}

/// How many elements a tensor of this shape has.
pub(crate) fn elements(shape: &[Value]) -> Option<i128> {
    shape.iter().try_fold(1i128, |count, size| match size {
        Value::Int(Some(size)) if *size >= 0 => count.checked_mul(*size),
        _ => None,
    })
}

impl Tensor {
    /// A tensor of the same elements in memory of its own, in the same order where they fill it.
    pub(crate) fn copied(&self) -> Tensor {
        let copy = Tensor { strides: kept_strides(self), storage: None, ..self.clone() };
        let storage = span(&copy);
        let storage = storage.map(|elements| Box::new(Storage { elements, ..Storage::default() }));
        Tensor { storage, ..copy }
    }

    /// The same, where it may be a part of a tensor: who writes a part leaves the rest to others.
    pub(super) fn of_part(mut self) -> Tensor {
        let span = span(&self);
        if let Some(storage) = &mut self.storage
            && span != Some(storage.elements)
        {
            storage.contents = storage.contents.initialized();
        }
        self
    }
}

/// A copy of a tensor whose elements are converted.
pub(crate) fn with_dtype(tensor: &Tensor, dtype: Option<Arc<str>>) -> Tensor {
    let both = [&tensor.dtype, &dtype]
        .map(|dtype| dtype.as_deref().is_some_and(crate::host::value::dtype::is_integer));
    let mut copy = Tensor { dtype, ..tensor.copied() };
    if let (Some(from), Some(to)) = (&tensor.storage, &mut copy.storage)
        && both == [true, true]
    {
        // Where elements have no others between them, the copy has them in the same order.
        let is_dense = span(tensor) == Some(to.elements);
        to.contents = from.contents.initialized().of_part(to.elements, is_dense);
    }
    copy
}

/// Strides of a tensor, those of a contiguous one when none are given.
pub(crate) fn strides(tensor: &Tensor) -> Option<Vec<Value>> {
    if let Some(strides) = &tensor.strides {
        return Some(strides.clone());
    }
    let mut next = Value::Int(Some(1));
    let mut strides = Vec::new();
    for size in tensor.shape.as_ref()?.iter().rev() {
        strides.push(next.clone());
        // A dimension of no elements counts as one of one.
        if *size != Value::Int(Some(0)) {
            next = arithmetic(BinaryOp::Mul, &next, size);
        }
    }
    strides.reverse();
    Some(strides)
}

/// Whether each element follows the one before it in memory; `None` when that is not known.
pub(crate) fn is_contiguous(tensor: &Tensor) -> Option<bool> {
    let known = |value: &Value| match value {
        Value::Int(value) => *value,
        _ => None,
    };
    let shape = tensor.shape.as_ref()?;
    if tensor.strides.is_none() {
        return Some(true);
    }
    let shape = shape.iter().map(known).collect::<Option<Vec<_>>>()?;
    let strides = strides(tensor)?.iter().map(known).collect::<Option<Vec<_>>>()?;
    let mut expected = 1;
    Some(shape.iter().zip(&strides).rev().all(|(size, stride)| {
        let follows = *stride == expected || *size == 1;
        expected *= size;
        follows
    }))
}

/// The strides of a tensor looked at with other sizes, `Some(None)` where its elements are in an order that
/// allows no such view; `None` where that is not known. Source: PyTorch's `computeStride`.
pub(crate) fn viewed_strides(
    tensor: &Tensor,
    shape: Option<&[Value]>,
) -> Option<Option<Vec<Value>>> {
    let known = |value: &Value| match value {
        Value::Int(value) => *value,
        _ => None,
    };
    let numbers = |values: &[Value]| values.iter().map(known).collect::<Option<Vec<i128>>>();
    let (old, steps, new) =
        (numbers(tensor.shape.as_ref()?)?, numbers(&strides(tensor)?)?, numbers(shape?)?);
    if old.contains(&0) || old.is_empty() {
        return None;
    }
    let mut found = vec![0; new.len()];
    let mut rest = new.len();
    // Sizes and steps of dimensions that lie in memory as one, from the last on.
    let (mut step, mut size, mut taken) = (steps[old.len() - 1], 1, 1);
    for axis in (0..old.len()).rev() {
        size *= old[axis];
        if axis > 0 && (old[axis - 1] == 1 || steps[axis - 1] == size * step) {
            continue;
        }
        while rest > 0 && (taken < size || new[rest - 1] == 1) {
            rest -= 1;
            found[rest] = taken * step;
            taken *= new[rest];
        }
        if taken != size {
            return Some(None);
        }
        if axis > 0 {
            (step, size, taken) = (steps[axis - 1], 1, 1);
        }
    }
    let strides = found.into_iter().map(|step| Value::Int(Some(step))).collect();
    Some((rest == 0).then_some(strides))
}

/// Whether elements along an axis are one in memory.
pub(crate) fn is_expanded(tensor: &Tensor) -> bool {
    let axes = tensor.shape.iter().flatten().zip(tensor.strides.iter().flatten());
    let is_one = |(size, stride): (&Value, &Value)| {
        *stride == Value::Int(Some(0)) && !matches!(size, Value::Int(Some(0 | 1)))
    };
    axes.into_iter().any(is_one)
}

/// What a copy holds that is in the order of positions, of what lies in memory in another order: what nobody wrote, or
/// floats whose places do not matter. `None` where nothing is copied, or more is to be known of it.
pub(crate) fn put_in_order(tensor: &Tensor) -> Option<Contents> {
    let contents = &tensor.storage.as_deref()?.contents;
    let is_any = matches!(contents, Contents::Uninitialized | Contents::Signed);
    (is_any && is_contiguous(tensor) == Some(false)).then(|| contents.clone())
}

/// The same memory counted in other elements, `more` of them for each `fewer`.
fn counted_anew(storage: &Storage, more: i128, fewer: i128) -> Box<Storage> {
    let contents = match storage.contents {
        Contents::Uninitialized => Contents::Uninitialized,
        _ => Contents::Unknown,
    };
    Box::new(Storage {
        elements: storage.elements * more / fewer,
        before: storage.before * more / fewer,
        contents,
        ..storage.clone()
    })
}

/// The same memory looked at as elements of another type, of which each row holds more or fewer.
pub(crate) fn reinterpreted(tensor: &Tensor, dtype: &Arc<str>) -> Option<Tensor> {
    let (from, to) = (element_size(tensor.dtype.as_deref()?)?, element_size(dtype)?);
    let mut shape = tensor.shape.clone().filter(|_| is_contiguous(tensor) == Some(true))?;
    let Value::Int(Some(row)) = shape.last_mut()? else { return None };
    let bytes = row.checked_mul(from)?;
    *row = (bytes % to == 0).then_some(bytes / to)?;
    let storage = tensor.storage.as_ref().map(|storage| counted_anew(storage, from, to));
    Some(Tensor {
        dtype: Some(dtype.clone()),
        shape: Some(shape),
        strides: None,
        storage,
        ..*tensor
    })
}

/// The real and the imaginary part of each number of a complex tensor, in its memory.
pub(crate) fn real_parts(tensor: &Tensor) -> Option<Tensor> {
    let part = match tensor.dtype.as_deref()? {
        "complex64" => "fp32",
        "complex128" => "fp64",
        _ => return None,
    };
    let two = Value::Int(Some(2));
    let apart = |stride: &Value| arithmetic(BinaryOp::Mul, stride, &two);
    let strides = tensor
        .strides
        .as_ref()
        .map(|strides| strides.iter().map(apart).chain([Value::Int(Some(1))]).collect::<Vec<_>>());
    let storage = tensor.storage.as_ref().map(|storage| counted_anew(storage, 2, 1));
    let shape = tensor.shape.iter().flatten().cloned().chain([two.clone()]).collect();
    let shape = tensor.shape.is_some().then_some(shape);
    Some(Tensor { dtype: Some(part.into()), shape, strides, storage, ..*tensor })
}

/// The complex numbers whose real and imaginary parts stand side by side in the memory of a tensor.
pub(crate) fn complex_numbers(tensor: &Tensor) -> Option<Tensor> {
    let dtype = match tensor.dtype.as_deref()? {
        "fp32" => "complex64",
        "fp64" => "complex128",
        _ => return None,
    };
    let (last, shape) = tensor.shape.as_ref()?.split_last()?;
    let is_dense = is_contiguous(tensor) == Some(true) && *last == Value::Int(Some(2));
    let storage = tensor.storage.as_ref().map(|storage| counted_anew(storage, 1, 2));
    let of_parts = Tensor { dtype: Some(dtype.into()), strides: None, storage, ..tensor.clone() };
    is_dense.then(|| Tensor { shape: Some(shape.to_vec()), ..of_parts })
}

/// A tensor with its axes in reverse order.
pub(crate) fn transpose(tensor: &Tensor) -> Tensor {
    let reversed = |values: Vec<Value>| values.into_iter().rev().collect();
    Tensor {
        dtype: tensor.dtype.clone(),
        shape: tensor.shape.clone().map(reversed),
        strides: strides(tensor).map(reversed),
        storage: tensor.storage.clone(),
        on_gpu: tensor.on_gpu,
    }
}

/// A tensor with its last two axes swapped.
pub(crate) fn swap_last(tensor: &Tensor) -> Tensor {
    let swapped = |mut values: Vec<Value>| {
        let length = values.len();
        if length >= 2 {
            values.swap(length - 2, length - 1);
        }
        values
    };
    Tensor {
        dtype: tensor.dtype.clone(),
        shape: tensor.shape.clone().map(swapped),
        strides: strides(tensor).map(swapped),
        storage: tensor.storage.clone(),
        on_gpu: tensor.on_gpu,
    }
}

/// A tensor whose axes are those of another at these positions, in this order.
pub(crate) fn permuted(tensor: &Tensor, axes: &[usize]) -> Option<Tensor> {
    let (shape, strides) = (tensor.shape.as_ref()?, strides(tensor)?);
    let is_order = (0..shape.len()).all(|axis| axes.contains(&axis)) && axes.len() == shape.len();
    let picked = |values: &[Value]| axes.iter().map(|axis| values[*axis].clone()).collect();
    is_order.then(|| Tensor {
        dtype: tensor.dtype.clone(),
        shape: Some(picked(shape)),
        strides: Some(picked(&strides)),
        storage: tensor.storage.clone(),
        on_gpu: tensor.on_gpu,
    })
}

/// A tensor with these axes swapped.
pub(crate) fn swapped(tensor: &Tensor, a: i128, b: i128) -> Option<Tensor> {
    let rank = tensor.shape.as_ref()?.len();
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(position(rank, a)?, position(rank, b)?);
    permuted(tensor, &axes)
}

/// A tensor whose axes of one element are repeated up to these sizes; -1 leaves a size as it is, and
/// there may be more axes in front.
pub(crate) fn expanded(tensor: &Tensor, sizes: &[Value]) -> Option<Tensor> {
    let (known, known_strides) = (tensor.shape.as_ref()?, strides(tensor)?);
    let more = sizes.len().checked_sub(known.len())?;
    let (mut shape, mut strides) = (sizes.to_vec(), vec![Value::Int(Some(0)); sizes.len()]);
    for (at, (size, stride)) in known.iter().zip(known_strides).enumerate() {
        let wanted = &mut shape[more + at];
        match (&*wanted, size) {
            (Value::Int(Some(-1)), _) => *wanted = size.clone(),
            (wanted, size) if wanted == size => {}
            (Value::Int(Some(_)), Value::Int(Some(1))) => continue,
            _ => return None,
        }
        strides[more + at] = stride;
    }
    let (dtype, storage) = (tensor.dtype.clone(), tensor.storage.clone());
    Some(Tensor { dtype, shape: Some(shape), strides: Some(strides), storage, ..*tensor })
}

/// A view of these sizes of a tensor all of whose elements are one; `None` of others.
pub(crate) fn of_one_element(tensor: &Tensor, shape: Option<&[Value]>) -> Option<Tensor> {
    const NOWHERE: Value = Value::Int(Some(0));
    let strides = tensor.strides.as_ref()?;
    let is_one = !strides.is_empty() && strides.iter().all(|stride| *stride == NOWHERE);
    is_one.then(|| Tensor {
        dtype: tensor.dtype.clone(),
        shape: shape.map(<[Value]>::to_vec),
        strides: shape.map(|shape| vec![NOWHERE; shape.len()]),
        storage: tensor.storage.clone(),
        on_gpu: tensor.on_gpu,
    })
}

/// A tensor with one more axis, of one element.
pub(crate) fn with_axis(tensor: &Tensor, axis: usize) -> Tensor {
    let sizes = tensor.shape.clone().filter(|shape| axis <= shape.len());
    let strides = tensor.strides.clone().and_then(|mut strides| {
        strides.insert(axis, reach(sizes.as_ref()?.get(axis).zip(strides.get(axis))));
        Some(strides)
    });
    let shape = sizes.map(|mut shape| {
        shape.insert(axis, Value::Int(Some(1)));
        shape
    });
    Tensor { shape, strides, ..tensor.clone() }
}

/// The stride of a new axis in front of one of this size and stride: as far as that reaches.
pub(super) fn reach(behind: Option<(&Value, &Value)>) -> Value {
    behind.map_or(Value::Int(Some(1)), |(size, step)| arithmetic(BinaryOp::Mul, size, step))
}

/// A tensor without an axis of one element.
pub(crate) fn squeezed(tensor: &Tensor, axis: i128) -> Option<Tensor> {
    let (mut shape, mut strides) = (tensor.shape.clone()?, strides(tensor)?);
    let axis = position(shape.len(), axis)?;
    match shape[axis] {
        Value::Int(Some(1)) => {
            shape.remove(axis);
            strides.remove(axis);
        }
        Value::Int(Some(_)) => {}
        _ => return None,
    }
    let (dtype, storage) = (tensor.dtype.clone(), tensor.storage.clone());
    let strides = tensor.strides.as_ref().map(|_| strides);
    Some(Tensor { dtype, shape: Some(shape), strides, storage, ..*tensor })
}

/// `tensor[index]`.
pub(crate) fn item(tensor: &Tensor, index: Option<i128>) -> Tensor {
    let rest = |values: Option<Vec<Value>>| {
        values.and_then(|values| values.split_first().map(|(_, rest)| rest.to_vec()))
    };
    let part = Tensor {
        dtype: tensor.dtype.clone(),
        shape: rest(tensor.shape.clone()),
        strides: rest(strides(tensor)),
        storage: index.zip(strides(tensor)).and_then(|(index, strides)| {
            let at = from_start(index, tensor.shape.as_ref()?.first()?)?;
            behind(tensor, times(at, strides.first()?))
        }),
        on_gpu: tensor.on_gpu,
    };
    part.of_part()
}

/// `tensor[rows]`, a copy of the rows that a tensor of integers lists.
pub(crate) fn picked(tensor: &Tensor, rows: &Tensor) -> Tensor {
    let shape = tensor.shape.as_ref().zip(rows.shape.as_ref()).and_then(|(shape, listed)| {
        let (_, rest) = shape.split_first()?;
        Some(listed.iter().chain(rest).cloned().collect())
    });
    let (dtype, on_gpu) = (tensor.dtype.clone(), tensor.on_gpu);
    Tensor { dtype, shape, on_gpu, ..Tensor::default() }.copied()
}

/// Tensors of these lengths along an axis, one behind the other.
pub(crate) fn cut_up(tensor: &Tensor, axis: usize, lengths: &[i128]) -> Option<Vec<Value>> {
    let (shape, strides) = (tensor.shape.as_ref()?, strides(tensor)?);
    let mut start = 0;
    let part = |length: &i128| {
        let mut shape = shape.clone();
        shape[axis] = Value::Int(Some(*length));
        let storage = behind(tensor, times(start, &strides[axis]));
        start += length;
        let strides = Some(strides.clone());
        let part =
            Tensor { dtype: tensor.dtype.clone(), shape: Some(shape), strides, storage, ..*tensor };
        Value::Tensor(part.of_part())
    };
    Some(lengths.iter().map(part).collect())
}

/// Rows, or parts, that are looked at one by one.
pub(crate) const MAX_ROWS: i128 = 64;

/// The tensors along the first axis, where their number is known and not too large.
pub(crate) fn rows(tensor: &Tensor) -> Option<Vec<Value>> {
    let Some(Value::Int(Some(count))) = tensor.shape.as_ref()?.first() else { return None };
    let row = |at| Value::Tensor(item(tensor, Some(at)));
    (*count <= MAX_ROWS).then(|| (0..*count).map(row).collect())
}

/// The position from the start of an axis of this size that a number means: a negative one counts from
/// its end.
pub(super) fn from_start(at: i128, size: &Value) -> Option<i128> {
    match size {
        _ if at >= 0 => Some(at),
        Value::Int(Some(size)) => Some(at + size),
        _ => None,
    }
}

/// What a number of steps of this length comes to.
pub(super) fn times(count: i128, step: &Value) -> Option<i128> {
    match step {
        _ if count == 0 => Some(0),
        Value::Int(Some(step)) if count > 0 => count.checked_mul(*step),
        _ => None,
    }
}

/// The memory of a tensor for a part of it that begins so many elements behind its first. Which memory
/// that is, is not known then: what is written through the part is not seen in the tensor.
pub(super) fn behind(tensor: &Tensor, offset: Option<i128>) -> Option<Box<Storage>> {
    let storage = tensor.storage.clone()?;
    match offset? {
        0 => Some(storage),
        offset => {
            let elements = storage.elements.checked_sub(offset).filter(|rest| *rest >= 0)?;
            let before = storage.before + offset;
            let part_of = storage.id.or(storage.part_of);
            let contents = match part_of {
                Some(_) => storage.contents.behind(offset),
                None => Contents::Unknown,
            };
            let variable = storage.variable;
            let part =
                Storage { part_of, variable, elements, before, contents, ..Storage::default() };
            Some(Box::new(part))
        }
    }
}

/// The product of two matrices or vectors, or of several of them that broadcast; of shapes that are not
/// known nothing but the dtype is.
pub(crate) fn product(a: &Tensor, b: &Tensor) -> Tensor {
    let shape = a.shape.as_deref().zip(b.shape.as_deref()).and_then(|(a, b)| product_shape(a, b));
    let dtype = a.dtype.clone().filter(|dtype| Some(dtype) == b.dtype.as_ref());
    let ranks = [a, b].map(|tensor| tensor.shape.as_ref().map(Vec::len));
    let product = Tensor { dtype, shape, on_gpu: a.on_gpu, ..Tensor::default() };
    match ranks {
        // Several are multiplied at once as one with longer rows, or columns.
        [Some(a), Some(b)] if a < b && b > 2 => reordered(&product),
        _ => product.copied(),
    }
}

fn product_shape(a: &[Value], b: &[Value]) -> Option<Vec<Value>> {
    Some(match (a, b) {
        ([_], [_]) => Vec::new(),
        ([rows @ .., _], [_]) => rows.to_vec(),
        ([_], [batch @ .., _, columns]) => [batch, std::slice::from_ref(columns)].concat(),
        ([batch @ .., rows, _], [others @ .., _, columns]) => {
            let batch = broadcast(Some(batch), Some(others))?;
            [&batch[..], &[rows.clone(), columns.clone()]].concat()
        }
        _ => return None,
    })
}

/// The result of an elementwise operator on one or two tensors. PyTorch lays it out as its operands
/// are where they fill their memory in one order.
pub(crate) fn elementwise(a: &Tensor, b: Option<&Tensor>) -> Tensor {
    let Some(b) = b else {
        return a.copied();
    };
    let shape = broadcast(a.shape.as_deref(), b.shape.as_deref());
    let strides = match a.strides.is_none() && b.strides.is_none() {
        true => None,
        false if a.shape == b.shape && strides(a) == strides(b) => kept_strides(a),
        false => {
            let known = shape.as_deref().and_then(|shape| layout::elementwise(shape, &[a, b]));
            known.unwrap_or_else(|| unknown_strides(shape.as_deref()))
        }
    };
    let dtype = match (has_no_axes(a), has_no_axes(b)) {
        (Some(a_is_number), Some(b_is_number)) if a_is_number == b_is_number => {
            promoted(a.dtype.as_ref(), b.dtype.as_ref())
        }
        (Some(false), Some(true)) => with_scalar(a.dtype.as_ref(), b.dtype.as_ref()),
        (Some(true), Some(false)) => with_scalar(b.dtype.as_ref(), a.dtype.as_ref()),
        // A tensor without axes counts as a number does; only kinds matter.
        _ => promoted(a.dtype.as_ref(), b.dtype.as_ref()).filter(|_| {
            let is_float = |tensor: &Tensor| tensor.dtype.as_deref().map(is_float);
            a.dtype == b.dtype || is_float(a) != is_float(b)
        }),
    };
    let on_gpu = a.on_gpu || b.on_gpu;
    let is_open = strides.is_some() && kept_strides(a).is_none_or(|kept| Some(kept) != strides);
    let made = Tensor { dtype, shape, strides, on_gpu, ..Tensor::default() };
    if is_open { dense(made) } else { made.copied() }
}

fn has_no_axes(tensor: &Tensor) -> Option<bool> {
    tensor.shape.as_ref().map(Vec::is_empty)
}

/// Strides of a copy that keeps the order of the elements; `None` for a contiguous tensor. They are
/// known where the elements fill their memory, or the axes are in order: those that are expanded stay where
/// they are (`TensorIteratorBase::reorder_dimensions` of PyTorch).
fn kept_strides(tensor: &Tensor) -> Option<Vec<Value>> {
    let strides = tensor.strides.as_ref()?;
    let shape = tensor.shape.as_deref();
    let count = shape.and_then(elements);
    if count.is_some() && count == span(tensor) {
        return Some(strides.clone());
    }
    let known = |stride: &Value| match stride {
        Value::Int(Some(stride)) if *stride > 0 => Some(*stride),
        _ => None,
    };
    let long = shape?
        .iter()
        .zip(strides)
        .filter(|(size, stride)| **size != Value::Int(Some(1)) && **stride != Value::Int(Some(0)));
    let steps: Vec<Option<i128>> = long.map(|(_, stride)| known(stride)).collect();
    let in_order = steps.iter().all(Option::is_some) && steps.is_sorted_by(|a, b| a > b);
    unknown_strides(shape).filter(|_| !in_order && steps.len() > 1)
}

/// A copy whose elements are in an order that is not known; they fill its memory.
pub(crate) fn reordered(tensor: &Tensor) -> Tensor {
    dense(Tensor {
        strides: unknown_strides(tensor.shape.as_deref()),
        storage: None,
        ..tensor.clone()
    })
}

/// A copy in which the elements of all channels of a place lie side by side.
pub(crate) fn with_channels_last(tensor: &Tensor) -> Tensor {
    let strides = tensor.shape.as_deref().and_then(channels_last);
    let copy = reordered(tensor);
    Tensor { strides: strides.or(copy.strides), ..copy }
}

/// Strides of a tensor of these sizes with the second dimension innermost. What has a dimension of one
/// element may count as laid out so already, with other strides.
fn channels_last(shape: &[Value]) -> Option<Vec<Value>> {
    let sizes = shape.iter().map(|size| match size {
        Value::Int(Some(size)) if *size > 1 => Some(*size),
        _ => None,
    });
    let sizes: Vec<i128> = sizes.collect::<Option<_>>()?;
    let [_, channels, places @ ..] = sizes.as_slice() else { return None };
    let mut strides = vec![0, 1];
    let mut inner: i128 = places.iter().product::<i128>() * channels;
    strides[0] = inner;
    for size in places {
        inner /= size;
        strides.push(inner);
    }
    Some(strides.into_iter().map(|stride| Value::Int(Some(stride))).collect())
}

/// A tensor in memory of its own that its elements fill in whatever order.
pub(crate) fn dense(tensor: Tensor) -> Tensor {
    let elements = tensor.shape.as_deref().and_then(elements);
    let storage = elements.map(|elements| Box::new(Storage { elements, ..Storage::default() }));
    Tensor { storage, ..tensor }
}

/// Strides of a tensor of this shape of which nothing is known.
pub(crate) fn unknown_strides(shape: Option<&[Value]>) -> Option<Vec<Value>> {
    shape.map(|shape| vec![Value::Int(None); shape.len()])
}

/// The shape that two shapes broadcast to, where that is known.
pub(crate) fn broadcast(a: Option<&[Value]>, b: Option<&[Value]>) -> Option<Vec<Value>> {
    let (a, b) = (a?, b?);
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut shape = long.to_vec();
    let skipped = long.len() - short.len();
    for (size, other) in shape[skipped..].iter_mut().zip(short) {
        match (&*size, other) {
            (Value::Int(Some(1)), other) => *size = other.clone(),
            (_, Value::Int(Some(1))) => {}
            (size, other) if *size == *other => {}
            _ => return None,
        }
    }
    Some(shape)
}

/// What is known of a tensor that is one of two.
pub(crate) fn join(a: &Tensor, b: &Tensor) -> Tensor {
    Tensor {
        dtype: a.dtype.clone().filter(|dtype| Some(dtype) == b.dtype.as_ref()),
        shape: a.shape.clone().filter(|shape| Some(shape) == b.shape.as_ref()),
        strides: a.strides.clone().filter(|strides| Some(strides) == b.strides.as_ref()),
        storage: join_storage(a.storage.as_deref(), b.storage.as_deref()).map(Box::new),
        on_gpu: a.on_gpu && b.on_gpu,
    }
}

fn join_storage(a: Option<&Storage>, b: Option<&Storage>) -> Option<Storage> {
    let (a, b) = (a?, b?);
    // With other gradients it is not the same to a backward pass.
    let is_same = a.variable == b.variable;
    let id = a.id.filter(|id| is_same && Some(*id) == b.id);
    let part_of = a.part_of.filter(|id| is_same && Some(*id) == b.part_of);
    let contents = a.contents.join(&b.contents);
    ((a.elements, a.before) == (b.elements, b.before)).then_some(Storage {
        variable: a.variable.filter(|_| is_same),
        id,
        part_of,
        output: a.output.filter(|output| Some(*output) == b.output),
        made_of: a.made_of.filter(|output| Some(*output) == b.made_of),
        is_converted: a.is_converted && b.is_converted,
        is_detached: a.is_detached && b.is_detached,
        is_of_wanted: a.is_of_wanted && b.is_of_wanted,
        drawn: a.drawn.filter(|drawn| id.is_some() && Some(*drawn) == b.drawn),
        elements: a.elements,
        before: a.before,
        // Of memory that is not known it is not seen what writes to it.
        contents: match (id, contents) {
            (None, Contents::Uninitialized) => Contents::Uninitialized,
            (None, _) => Contents::Unknown,
            (Some(_), contents) => contents,
        },
    })
}
