//! Numbers that tensors of host code hold, where all of them are known, and what functions make of them.
//!
//! Sizes, types and memory are worked out without numbers elsewhere; here what was worked out so gets
//! its numbers, and the sizes that depend on numbers.

use std::sync::Arc;

use half::{bf16, f16};
use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn, ShapeBuilder, StrideShape};

use crate::host::code::operators::position;
use crate::host::torch::views;
use crate::host::value::contents::Contents;
use crate::host::value::dtype::{is_complex, is_float, is_integer, number_dtype};
use crate::host::value::number::{Number, as_number};
use crate::host::value::{Storage, Tensor, Value};
use crate::specialization::TupleNames;

mod along;
mod arithmetic;
mod assigned;
mod calls;
mod chosen;
mod convolutions;
mod derived;
mod difference;
mod draws;
mod einsum;
mod joined;
mod layers;
mod losses;
mod norms;
mod places;
mod pools;
mod products;
mod sampled;
mod solved;
mod truths;

pub(crate) use arithmetic::{binary, compared, unary};
pub(crate) use assigned::whole;
pub(crate) use calls::{by_torch, of_method};
pub(crate) use chosen::indexed;
pub(crate) use derived::handed_on;
pub use difference::Difference;
pub(crate) use difference::{Tolerance, difference, is_same, written};
pub(crate) use draws::{Draws, drawn, of_type};
pub(crate) use places::places;
pub(crate) use truths::{LEAST_ERROR, PART, TIMES, Truths};

/// Numbers of a tensor that are computed with, where they are not listed already.
const MAX_NUMBERS: usize = 1 << 14;

/// Numbers of a tensor that are listed, where a run computes all of them.
pub(crate) const MAX_COMPUTED: usize = 1 << 20;

/// Integers up to this are floats of 64 bits without error.
const MAX_EXACT: f64 = (1i64 << 53) as f64;

/// The numbers of a tensor, in its shape. Truth values are 0 and 1; integers are exact.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    /// Their type by signature spelling.
    dtype: Arc<str>,
    numbers: ArrayD<f64>,
}

/// Which of equal numbers comes first where a function does not promise it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Any of them.
    Open,
    /// The first one, as in one possible run.
    InOrder,
}

/// What a function makes of numbers.
pub(crate) enum Made {
    /// One tensor.
    One(Data),
    /// A named tuple of two.
    Record([&'static str; 2], [Data; 2]),
    /// A tuple.
    Tuple(Vec<Data>),
}

impl From<Data> for Made {
    fn from(data: Data) -> Made {
        Made::One(data)
    }
}

impl Data {
    fn new(dtype: &str, numbers: ArrayD<f64>) -> Data {
        Data { dtype: dtype.into(), numbers }
    }

    /// Those of one dimension.
    fn row(dtype: &str, numbers: Vec<f64>) -> Data {
        let shape = IxDyn(&[numbers.len()]);
        let numbers = ArrayD::from_shape_vec(shape, numbers).unwrap_or_default();
        Data::new(dtype, numbers)
    }

    /// The same type with other numbers.
    fn with(&self, numbers: ArrayD<f64>) -> Data {
        Data { dtype: self.dtype.clone(), numbers }
    }

    /// The same numbers in a row.
    fn flat(&self) -> Data {
        Data::row(&self.dtype, self.numbers.iter().copied().collect())
    }

    /// What is at numbers along the first axes.
    pub(crate) fn at(&self, index: &[Value]) -> Option<Data> {
        let mut part = self.numbers.view();
        for at in index {
            let axis = part.ndim().checked_sub(1).map(|_| Axis(0))?;
            let at = position(part.len_of(axis), known(at)?)?;
            part = part.index_axis_move(axis, at);
        }
        Some(self.with(part.to_owned()))
    }

    /// One number, without dimensions, as a value of Python.
    pub(crate) fn value(&self) -> Option<Value> {
        self.number().map(|number| as_value(&self.dtype, number))
    }

    /// Their extents.
    pub(crate) fn shape(&self) -> Vec<Value> {
        self.numbers.shape().iter().map(|extent| Value::Int(Some(*extent as i128))).collect()
    }

    /// What memory holds in which they lie in order.
    pub(crate) fn row_major(&self) -> Contents {
        contents(&self.dtype, self.numbers.iter().copied().collect())
    }

    /// One number, without dimensions.
    fn number(&self) -> Option<f64> {
        (self.numbers.ndim() == 0).then(|| self.numbers.first().copied())?
    }

    /// Whole numbers in order.
    fn positions(&self) -> Option<Vec<i128>> {
        let whole = is_integer(&self.dtype).then_some(&self.numbers)?;
        Some(whole.iter().map(|number| *number as i128).collect())
    }
}

/// The numbers of a tensor, where all are known and they are not too many.
pub(crate) fn of(tensor: &Tensor) -> Option<Data> {
    let dtype = tensor.dtype.clone().filter(|dtype| !is_complex(dtype))?;
    let contents = &tensor.storage.as_ref()?.contents;
    if !matches!(contents, Contents::Progression { .. } | Contents::Listed(_) | Contents::Floats(_))
    {
        return None;
    }
    let known = |values: &[Value]| values.iter().map(known).collect::<Option<Vec<i128>>>();
    let shape = known(tensor.shape.as_deref()?)?;
    let sizes = shape.iter().map(|size| usize::try_from(*size).ok());
    let sizes = sizes.collect::<Option<Vec<usize>>>()?;
    let count = sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    let strides = known(&views::strides(tensor)?)?;
    let most = match contents {
        Contents::Progression { .. } => MAX_NUMBERS,
        _ => MAX_COMPUTED,
    };
    if count > most || strides.len() != sizes.len() {
        return None;
    }
    if let Some(numbers) = laid_out(tensor, contents, &sizes, &strides) {
        return Some(Data { dtype, numbers });
    }
    let mut all_known = true;
    let numbers = ArrayD::from_shape_fn(IxDyn(&sizes), |index| {
        let steps = (0..strides.len()).map(|axis| index[axis] as i128 * strides[axis]);
        let number = contents.number(steps.sum());
        all_known &= number.is_some();
        number.unwrap_or_default()
    });
    all_known.then_some(Data { dtype, numbers })
}

/// Numbers that are listed, in the order that strides give them.
fn laid_out(
    tensor: &Tensor,
    contents: &Contents,
    sizes: &[usize],
    strides: &[i128],
) -> Option<ArrayD<f64>> {
    let span = usize::try_from(views::span(tensor)?).ok()?;
    if views::is_contiguous(tensor) == Some(true) {
        return ArrayD::from_shape_vec(IxDyn(sizes), contents.listed_first(span)?).ok();
    }
    let strides = strides.iter().map(|stride| usize::try_from(*stride).ok());
    let strides = strides.collect::<Option<Vec<usize>>>()?;
    let layout = IxDyn(sizes).strides(IxDyn(&strides));
    match contents {
        Contents::Listed(numbers) => in_order(numbers.get(..span)?, layout, |number| number as f64),
        Contents::Floats(numbers) => in_order(numbers.get(..span)?, layout, f64::from_bits),
        _ => None,
    }
}

/// The numbers of a layout in order.
fn in_order<T: Copy>(
    numbers: &[T],
    layout: StrideShape<IxDyn>,
    as_float: impl Fn(T) -> f64,
) -> Option<ArrayD<f64>> {
    let view = ArrayViewD::from_shape(layout, numbers).ok()?;
    Some(view.as_standard_layout().mapv(as_float))
}

/// The numbers of a tensor, or a number as a tensor without dimensions.
pub(crate) fn of_value(value: &Value) -> Option<Data> {
    let value = value.plain();
    if let Value::Tensor(tensor) = value {
        return of(tensor);
    }
    let dtype = number_dtype(value)?;
    let number = match as_number(value)? {
        Number::Int(number) => number? as f64,
        Number::Float(number) => number?,
    };
    Some(Data::new(dtype, ArrayD::from_elem(IxDyn(&[]), number)))
}

fn known(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => *number,
        _ => None,
    }
}

/// A number as a value of Python of a tensor's type.
fn as_value(dtype: &str, number: f64) -> Value {
    match dtype {
        "i1" => Value::Bool(Some(number != 0.0)),
        dtype if is_float(dtype) => Value::Float(Some(number)),
        _ => Value::Int(Some(number as i128)),
    }
}

/// The number of a tensor of one element, as Python has it.
pub(crate) fn item(tensor: &Tensor) -> Option<Value> {
    let data = of(tensor).filter(|data| data.numbers.len() == 1)?;
    data.numbers.first().map(|number| as_value(&data.dtype, *number))
}

/// What a tensor holds, in nested lists.
pub(crate) fn nested(tensor: &Tensor) -> Option<Value> {
    fn lists(dtype: &str, numbers: ArrayViewD<'_, f64>) -> Value {
        match numbers.ndim() {
            0 => numbers.first().map_or(Value::Unknown, |number| as_value(dtype, *number)),
            _ => Value::List(numbers.outer_iter().map(|inner| lists(dtype, inner)).collect()),
        }
    }
    of(tensor).map(|data| lists(&data.dtype, data.numbers.view()))
}

/// As [`noted`], where the numbers are worked out only if they are not in memory that others are in as well.
pub(crate) fn noted_with<T: Into<Made>>(made: Value, numbers: impl FnOnce() -> Option<T>) -> Value {
    match &made {
        Value::Tensor(tensor) if tensor.memory().is_some() => made,
        _ => noted(made, numbers()),
    }
}

/// `made`, which a function makes, with the numbers that it has where those are known.
pub(crate) fn noted(made: Value, numbers: Option<impl Into<Made>>) -> Value {
    match (numbers.map(Into::into), made) {
        (None, made) | (_, made @ Value::Raises(_)) => made,
        (Some(Made::One(data)), made) => noted_in(made, data),
        (Some(Made::Record(_, both)), Value::Record { names, items }) if items.len() == 2 => {
            let items = items.into_iter().zip(both).map(|(item, data)| noted_in(item, data));
            Value::Record { names, items: items.collect() }
        }
        (Some(Made::Record(fields, both)), _) => {
            let fields = fields.map(Into::into).to_vec();
            let names = Arc::new(TupleNames { class: "return_types".into(), fields });
            let items = both.into_iter().map(|data| noted_in(Value::Unknown, data)).collect();
            Value::Record { names, items }
        }
        (Some(Made::Tuple(several)), made) => {
            let known = match made {
                Value::Tuple(items) if items.len() == several.len() => items,
                _ => vec![Value::Unknown; several.len()],
            };
            let items = known.into_iter().zip(several).map(|(item, data)| noted_in(item, data));
            Value::Tuple(items.collect())
        }
    }
}

/// A tensor with its numbers, unless it is in memory that others are in as well.
fn noted_in(made: Value, data: Data) -> Value {
    let (mut tensor, is_new) = match made {
        Value::Tensor(tensor) if tensor.memory().is_some() => return Value::Tensor(tensor),
        Value::Tensor(tensor) => (tensor, false),
        Value::Unknown | Value::Collection => (Tensor::default(), true),
        made => return made,
    };
    let dtype = match (is_new, &tensor.dtype) {
        (_, Some(dtype)) => dtype.clone(),
        (true, None) => data.dtype.clone(),
        // It is converted to a type that is not known.
        (false, None) => return Value::Tensor(tensor),
    };
    let Some(data) = converted(data, &dtype) else { return Value::Tensor(tensor) };
    let sizes: Vec<Value> =
        data.numbers.shape().iter().map(|size| Value::Int(Some(*size as i128))).collect();
    let agrees = |known: &Vec<Value>| {
        let fits = |(known, size): (&Value, &Value)| *known == Value::Int(None) || known == size;
        known.len() == sizes.len() && known.iter().zip(&sizes).all(fits)
    };
    if !tensor.shape.as_ref().is_none_or(agrees) {
        return Value::Tensor(tensor);
    }
    if tensor.shape.is_none() || views::is_row(&sizes) {
        tensor.strides = None;
    }
    (tensor.dtype, tensor.shape) = (Some(dtype), Some(sizes));
    let contents = in_memory(&tensor, &data);
    tensor.storage = views::span(&tensor).map(|elements| {
        let contents = contents.unwrap_or_default();
        Box::new(Storage { elements, contents, ..Storage::default() })
    });
    Value::Tensor(tensor)
}

/// Numbers in the order in which a tensor has them in memory, if they fill that.
fn in_memory(tensor: &Tensor, data: &Data) -> Option<Contents> {
    let strides = views::strides(tensor)?.iter().map(known).collect::<Option<Vec<i128>>>()?;
    let span = usize::try_from(views::span(tensor)?).ok()?;
    if span != data.numbers.len() {
        return None;
    }
    if views::is_contiguous(tensor) == Some(true) {
        return Some(data.row_major());
    }
    let mut placed = vec![None; span];
    for (index, number) in data.numbers.indexed_iter() {
        let at: i128 =
            strides.iter().enumerate().map(|(axis, step)| index[axis] as i128 * step).sum();
        *placed.get_mut(usize::try_from(at).ok()?)? = Some(*number);
    }
    Some(contents(&data.dtype, placed.into_iter().collect::<Option<Vec<f64>>>()?))
}

/// What memory of this type holds.
pub(crate) fn contents(dtype: &str, numbers: Vec<f64>) -> Contents {
    match is_float(dtype) {
        true => Contents::Floats(numbers.into_iter().map(f64::to_bits).collect()),
        false => Contents::listed(numbers.into_iter().map(|number| number as i128).collect()),
    }
}

/// Numbers as another type has them; `None` where it does not have one of them.
fn converted(data: Data, dtype: &Arc<str>) -> Option<Data> {
    let to = Numbers::of(dtype)?;
    if data.dtype == *dtype && !is_float(dtype) {
        let exact = data.numbers.iter().all(|number| to.rounded(*number) == Some(*number));
        return exact.then_some(data);
    }
    let mut is_known = true;
    let wraps = is_integer(&data.dtype);
    let numbers = data.numbers.mapv_into(|number| {
        let number = if wraps { to.wrapped(number) } else { number };
        let rounded = to.rounded(number);
        is_known &= rounded.is_some();
        rounded.unwrap_or_default()
    });
    is_known.then(|| Data { dtype: dtype.clone(), numbers })
}

/// The numbers that a type has.
#[derive(Clone, Copy)]
enum Numbers {
    /// Those that a number is rounded to.
    Floats(fn(f64) -> f64),
    /// Whole ones from `lowest` up to one below `beyond`, which have `bits`.
    Whole { bits: u32, lowest: f64, beyond: f64 },
    /// 0 and 1.
    Truths,
}

impl Numbers {
    /// Those of a type in Triton's spelling.
    fn of(dtype: &str) -> Option<Numbers> {
        Some(match dtype {
            "fp64" => Numbers::Floats(|number| number),
            "fp32" => Numbers::Floats(|number| f64::from(number as f32)),
            "fp16" => Numbers::Floats(|number| f16::from_f64(number).to_f64()),
            "bf16" => Numbers::Floats(|number| bf16::from_f64(number).to_f64()),
            "fp8e5" => Numbers::Floats(|number| eight_bits(number, 2, -14, 57344.0, f64::INFINITY)),
            "fp8e4nv" => Numbers::Floats(|number| eight_bits(number, 3, -6, 448.0, f64::NAN)),
            "i1" => Numbers::Truths,
            dtype if is_integer(dtype) => {
                let bits: u32 = dtype[1..].parse().ok()?;
                let (lowest, beyond) = match dtype.starts_with('u') {
                    true => (0.0, f64::from(bits).exp2()),
                    false => (-f64::from(bits - 1).exp2(), f64::from(bits - 1).exp2()),
                };
                Numbers::Whole { bits, lowest, beyond }
            }
            _ => return None,
        })
    }

    /// A number as the type has it, if it has it.
    fn rounded(self, number: f64) -> Option<f64> {
        match self {
            Numbers::Floats(rounded) => Some(rounded(number)),
            Numbers::Truths => Some(f64::from(number != 0.0)),
            Numbers::Whole { lowest, beyond, .. } => {
                let whole = number.trunc();
                (whole.abs() <= MAX_EXACT && (lowest..beyond).contains(&whole)).then_some(whole)
            }
        }
    }

    /// What is left of a whole number where the type has fewer bits.
    fn wrapped(self, number: f64) -> f64 {
        match self {
            Numbers::Whole { bits: ..64, lowest, beyond } => {
                (number - lowest).rem_euclid(beyond - lowest) + lowest
            }
            _ => number,
        }
    }
}

/// A number rounded to a float of 8 bits with so many of them behind the point, whose least exponent of a normal
/// number and greatest number these are; `beyond` is what it is beyond that.
fn eight_bits(number: f64, bits: i32, least: i32, greatest: f64, beyond: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let exponent = (number.abs().log2().floor() as i32).max(least);
    let unit = f64::from(exponent - bits).exp2();
    let rounded = (number / unit).round_ties_even() * unit;
    if rounded.abs() > greatest { beyond.copysign(number) } else { rounded }
}
