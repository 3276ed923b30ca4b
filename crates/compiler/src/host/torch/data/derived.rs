//! Gradients: what a function hands on to a tensor that it was given, of the gradients of what it made.
//!
//! A function that computes each number by itself is differentiated by central differences in double precision,
//! one that only moves numbers by moving their positions; so neither needs a rule of its own. Sums, rows and products
//! have one. What is left is differentiated by moving each number by itself, where there are few.

use ndarray::{Array1, Array2, ArrayD, ArrayViewD, Axis, IxDyn, Zip};

use super::{Data, Made, arithmetic, calls, layers, losses, of, pools};
use crate::hir::{BinaryOp, Name};
use crate::host::code::arguments::Args;
use crate::host::launch::past::Maker;
use crate::host::value::contents::Contents;
use crate::host::value::dtype::is_float;
use crate::host::value::{Storage, Tensor, Value, tensors_in};

mod products;
mod rows;

/// Arguments of a call.
pub(super) type Given = [(Option<Name>, Value)];

/// Functions of which each number that they give is one that they are given, or none of it.
const MOVING: &[&str] = &[
    "cat",
    "concat",
    "concatenate",
    "diag",
    "embedding",
    "flatten",
    "flip",
    "gather",
    "hstack",
    "index_select",
    "masked_fill",
    "masked_select",
    "msort",
    "pad",
    "pad_sequence",
    "ravel",
    "rearrange",
    "repeat",
    "repeat_interleave",
    "reshape",
    "roll",
    "stack",
    "take",
    "tile",
    "tril",
    "triu",
    "vstack",
    "where",
];

/// Functions that are the same everywhere near a number.
const STEPWISE: &[&str] = &[
    "ceil",
    "empty_like",
    "floor",
    "floor_divide",
    "full_like",
    "new_empty",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "ones_like",
    "rand_like",
    "randint_like",
    "randn_like",
    "round",
    "sgn",
    "sign",
    "trunc",
    "zeros_like",
];

/// Numbers are moved by this part of them, or of the least one.
const STEP: f64 = 1e-5;
const LEAST: f64 = 1e-3;

/// Elements that are gone through where each number of an argument is moved by itself.
const MAX_MOVED: usize = 1 << 22;

/// A function bends where its slopes before and behind a number differ by so much, and by this part.
const BEND: f64 = 1e-3;
const BEND_PART: f64 = 0.1;

/// A call, and which of the tensors in its arguments is asked for its gradient.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    maker: &'a Maker,
    /// What the function, the method or the operator is called.
    pub(super) name: &'a str,
    args: &'a Given,
    at: usize,
    pub(super) asked: &'a Tensor,
}

/// What `maker` hands on to the tensor at `at` among those in its arguments of the gradients of what it made of
/// these, each where there is one; `None` where that is not known.
pub(crate) fn handed_on(
    maker: &Maker,
    args: &Given,
    at: usize,
    given: &[Option<Data>],
) -> Option<Data> {
    if let Some(args) = calls::spelled_by_torch(args) {
        return handed_on(maker, &args, at, given);
    }
    let name = match maker {
        Maker::Binary(BinaryOp::MatMul) => "matmul",
        maker => maker.name().unwrap_or_default(),
    };
    let asked = *tensors_in(args).get(at)?;
    let call = Call { maker, name, args, at, asked };
    let numbers = match maker {
        Maker::Chosen(_) => call.by_positions(given)?,
        Maker::Unary(_) => call.by_differences(first(given)?)?,
        Maker::Binary(op) if *op != BinaryOp::MatMul => call.by_differences(first(given)?)?,
        Maker::Binary(_) | Maker::Method(_) | Maker::Torch(_) => call.by_name(given)?,
    };
    let is_known =
        numbers.shape() == extents(asked)? && numbers.iter().all(|number| !number.is_nan());
    is_known.then(|| Data::new("fp64", numbers))
}

/// The gradient of what a function makes that makes one tensor.
fn first(given: &[Option<Data>]) -> Option<&ArrayD<f64>> {
    given.first()?.as_ref().map(|data| &data.numbers)
}

impl Call<'_> {
    /// The first tensor, and what follows it.
    pub(super) fn of_input(&self) -> Option<(&Tensor, Args<'_>)> {
        Args(self.args).of_input()
    }

    /// Whether an argument is the tensor that is asked for.
    pub(super) fn asks_for(&self, value: Option<&Value>) -> bool {
        matches!(value, Some(Value::Tensor(tensor)) if std::ptr::eq(tensor, self.asked))
    }

    fn made(&self) -> Option<ArrayD<f64>> {
        one(self.maker.make(self.args)?)
    }

    fn by_name(self, all: &[Option<Data>]) -> Option<ArrayD<f64>> {
        let (name, given) = (self.name, all);
        if MOVING.contains(&name) {
            // A row that counts for none, and scales by how often rows are used.
            let is_plain = |(_, value): &(Option<Name>, Value)| {
                matches!(value, Value::Tensor(_) | Value::None | Value::Bool(Some(false)))
            };
            let is_known = name != "embedding" || self.args.iter().all(is_plain);
            return is_known.then(|| self.by_positions(given))?;
        }
        if let ("sort" | "topk" | "max" | "min", [values, _]) = (name, given) {
            return rows::chosen(self, &values.as_ref()?.numbers);
        }
        let Some(given) = first(given).filter(|_| given.len() == 1) else {
            return self.one_by_one(given);
        };
        // Other tensors only tell to what type numbers are converted.
        let tells_type = arithmetic::keeps(name) && self.at > 0;
        if STEPWISE.contains(&name) || tells_type {
            return Some(ArrayD::zeros(extents(self.asked)?));
        }
        if arithmetic::keeps(name) {
            return Some(given.clone());
        }
        if arithmetic::is_of_each(name) || layers::is_of_each(name) {
            return self.by_differences(given);
        }
        if losses::is_of_each(name) {
            return self.by_losses(given);
        }
        if let "sum" | "mean" = name {
            return rows::of_sum(self, given);
        }
        // What it makes is what gradients are given of, or sizes are not known as they are.
        let made = self.made().filter(|made| made.shape() == given.shape())?;
        products::handed_on(self, given)
            .or_else(|| rows::handed_on(self, &made, given))
            .or_else(|| self.one_by_one(all))
    }

    /// The gradient of an argument of which each number is moved by itself. Of what windows are taken of along the
    /// last axes, the numbers at one place in all rows are moved at once: no row leads to another one.
    fn one_by_one(&self, given: &[Option<Data>]) -> Option<ArrayD<f64>> {
        let numbers = of(self.asked)?.numbers;
        let windows = pools::axes(self.name).and_then(|axes| numbers.ndim().checked_sub(axes));
        let rows: usize = numbers.shape()[..windows.unwrap_or(0)].iter().product();
        let flat = |numbers: ArrayD<f64>| {
            let places = numbers.len() / rows.max(1);
            numbers.as_standard_layout().into_owned().into_shape_with_order((rows, places)).ok()
        };
        let mut moved = flat(numbers.clone())?;
        let given_of = |given: &Option<Data>| given.as_ref().map_or(0, |data| data.numbers.len());
        let count = |tensor: &&Tensor| Some(extents(tensor)?.iter().product::<usize>());
        let involved = tensors_in(self.args).iter().map(count).sum::<Option<usize>>()?
            + given.iter().map(given_of).sum::<usize>();
        (moved.ncols().checked_mul(involved)? <= MAX_MOVED).then_some(())?;
        let weighted = |moved: &Array2<f64>| -> Option<Array1<f64>> {
            let moved = moved.clone().into_shape_with_order(numbers.raw_dim()).ok()?;
            let made = several(self.maker.make(&self.with_numbers(&moved)?)?);
            let mut all = Array1::zeros(rows);
            for (at, given) in given.iter().enumerate() {
                let Some(given) = given else { continue };
                let made = &made.get(at)?.numbers;
                (made.shape() == given.numbers.shape()).then_some(())?;
                all += &flat(made * &given.numbers)?.sum_axis(Axis(1));
            }
            Some(all)
        };
        let here = weighted(&moved)?;
        let mut slopes = Array2::zeros(moved.raw_dim());
        for place in 0..moved.ncols() {
            let column = moved.column(place).to_owned();
            let steps = column.mapv(|number| STEP * number.abs().max(LEAST));
            let mut at = |numbers: Array1<f64>| {
                moved.column_mut(place).assign(&numbers);
                weighted(&moved)
            };
            let (ahead, behind) = (at(&column + &steps)?, at(&column - &steps)?);
            moved.column_mut(place).assign(&column);
            for row in 0..rows {
                let after = (ahead[row] - here[row]) / steps[row];
                let before = (here[row] - behind[row]) / steps[row];
                (!bends(after, before)).then_some(())?;
                slopes[[row, place]] = (after + before) / 2.0;
            }
        }
        slopes.into_shape_with_order(numbers.raw_dim()).ok()
    }

    /// The arguments in double precision, with `numbers` for the tensor that is asked for.
    fn with_numbers(&self, numbers: &ArrayD<f64>) -> Option<Vec<(Option<Name>, Value)>> {
        let mut args = self.args.to_vec();
        let (mut at, mut are_known) = (0, true);
        let mut widen = |tensor: &mut Tensor| {
            let is_asked = at == self.at;
            at += 1;
            if is_asked {
                *tensor = tensor_of(numbers.clone());
            } else if tensor.dtype.as_deref().is_some_and(is_float) {
                match of(tensor) {
                    Some(data) => *tensor = tensor_of(data.numbers),
                    None => are_known = false,
                }
            }
        };
        args.iter_mut().for_each(|(_, value)| value.change_tensors(&mut widen));
        are_known.then_some(args)
    }

    /// The gradient of an argument of which each number leads to what is at its place, broadcast.
    fn by_differences(&self, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
        let numbers = of(self.asked)?.numbers;
        let step = numbers.mapv(|number| STEP * number.abs().max(LEAST));
        let make = |numbers: &ArrayD<f64>| one(self.maker.make(&self.with_numbers(numbers)?)?);
        let here = make(&numbers)?;
        let (ahead, behind) = (make(&(&numbers + &step))?, make(&(&numbers - &step))?);
        let shape = here.raw_dim();
        let step = step.broadcast(shape.clone())?;
        let given = given.broadcast(shape.clone())?;
        if ahead.raw_dim() != shape || behind.raw_dim() != shape {
            return None;
        }
        let mut slopes = slopes(self.name, [&ahead, &here, &behind], step);
        Zip::from(&mut slopes).and(&given).for_each(|slope, given| {
            // What nothing depends on has no gradient, whatever the function does there.
            *slope = if *given == 0.0 { 0.0 } else { *slope * given };
        });
        reduced_to(numbers.shape(), slopes)
    }

    /// The gradient of an argument of a loss of each number, which are added up as `reduction` says.
    fn by_losses(&self, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
        let is_how = |(name, _): &&(Option<Name>, Value)| name.as_deref() == Some("reduction");
        let how = self.args.iter().find(is_how).map(|(_, how)| how);
        let mut each: Vec<_> = self.args.iter().filter(|arg| !is_how(arg)).cloned().collect();
        each.push((Some("reduction".into()), Value::Str("none".into())));
        let of_each = Call { args: &each, asked: *tensors_in(&each).get(self.at)?, ..*self };
        let is_mean = match how {
            None => true,
            Some(Value::Str(how)) => &**how == "mean",
            Some(_) => return None,
        };
        let count = if is_mean { of_each.made()?.len() as f64 } else { 1.0 };
        of_each.by_differences(&given.mapv(|number| number / count))
    }

    /// The gradient of an argument whose numbers are moved: those of what is at each place that a number came to.
    fn by_positions(&self, given: &[Option<Data>]) -> Option<ArrayD<f64>> {
        let shape = extents(self.asked)?;
        let count: usize = shape.iter().product();
        let places = (1..=count).map(|at| at as f64).collect();
        let places = ArrayD::from_shape_vec(IxDyn(&shape), places).ok()?;
        let moved =
            |places: &ArrayD<f64>| Some(several(self.maker.make(&self.with_numbers(places)?)?));
        // What is the same whatever the sign of the positions is no number of this argument.
        let (moved, turned) = (moved(&places)?, moved(&places.mapv(|place| -place))?);
        let mut gradient = vec![0.0; count];
        for (at, given) in given.iter().enumerate() {
            let Some(given) = given else { continue };
            let (moved, turned) = (&moved.get(at)?.numbers, &turned.get(at)?.numbers);
            if moved.shape() != given.numbers.shape() || turned.shape() != moved.shape() {
                return None;
            }
            for ((place, turned), given) in moved.iter().zip(turned).zip(&given.numbers) {
                if *place > 0.0 && *place == -turned {
                    *gradient.get_mut(*place as usize - 1)? += given;
                }
            }
        }
        ArrayD::from_shape_vec(IxDyn(&shape), gradient).ok()
    }
}

/// A tensor of double precision that holds these numbers.
pub(super) fn tensor_of(numbers: ArrayD<f64>) -> Tensor {
    let data = Data::new("fp64", numbers);
    let storage = Storage {
        elements: data.numbers.len() as i128,
        contents: data.row_major(),
        ..Storage::default()
    };
    Tensor {
        dtype: Some(data.dtype.clone()),
        shape: Some(data.shape()),
        storage: Some(Box::new(storage)),
        ..Tensor::default()
    }
}

/// The sizes of a tensor that has no more elements than are computed.
pub(super) fn extents(tensor: &Tensor) -> Option<Vec<usize>> {
    let sizes = tensor.shape.as_ref()?.iter();
    let sizes = sizes.map(|size| usize::try_from(super::known(size)?).ok());
    let sizes = sizes.collect::<Option<Vec<usize>>>()?;
    let count = sizes.iter().try_fold(1usize, |count, size| count.checked_mul(*size))?;
    (count <= super::MAX_COMPUTED).then_some(sizes)
}

fn one(made: Made) -> Option<ArrayD<f64>> {
    match made {
        Made::One(data) => Some(data.numbers),
        _ => None,
    }
}

/// What was broadcast, added up to the shape that it had.
fn reduced_to(shape: &[usize], mut numbers: ArrayD<f64>) -> Option<ArrayD<f64>> {
    while numbers.ndim() > shape.len() {
        numbers = numbers.sum_axis(Axis(0));
    }
    for (axis, size) in shape.iter().enumerate() {
        if *size == 1 && numbers.shape().get(axis).is_some_and(|known| *known != 1) {
            numbers = numbers.sum_axis(Axis(axis)).insert_axis(Axis(axis));
        }
    }
    (numbers.shape() == shape).then_some(numbers)
}

/// Whether a function bends between these slopes.
fn bends(after: f64, before: f64) -> bool {
    (after - before).abs() > BEND + BEND_PART * (after.abs() + before.abs())
}

/// The slope at each number: not a number where it is not known.
fn slopes(
    name: &str,
    [ahead, here, behind]: [&ArrayD<f64>; 3],
    step: ArrayViewD<'_, f64>,
) -> ArrayD<f64> {
    Zip::from(ahead).and(here).and(behind).and(&step).map_collect(|ahead, here, behind, step| {
        if !step.is_finite() {
            return if here.is_finite() { 0.0 } else { f64::NAN };
        }
        let (after, before) = ((ahead - here) / step, (here - behind) / step);
        match name {
            _ if !bends(after, before) => (ahead - behind) / (2.0 * step),
            "abs" | "absolute" | "l1_loss" | "maximum" | "minimum" | "max" | "min" => {
                (after + before) / 2.0
            }
            // PyTorch gives the slope before zero.
            "leaky_relu" | "relu" | "relu6" => before,
            "clamp" | "clip" | "clamp_max" | "clamp_min" => {
                if after.abs() > before.abs() {
                    after
                } else {
                    before
                }
            }
            _ => f64::NAN,
        }
    })
}

fn several(made: Made) -> Vec<Data> {
    match made {
        Made::One(data) => vec![data],
        Made::Record(_, both) => both.into(),
        Made::Tuple(several) => several,
    }
}

impl Data {
    /// Numbers of a tensor's sizes, in order, as its type has them; `None` where they are too few or too many.
    pub(crate) fn in_shape_of(tensor: &Tensor, numbers: Vec<f64>) -> Option<Data> {
        let numbers = ArrayD::from_shape_vec(IxDyn(&extents(tensor)?), numbers).ok()?;
        super::converted(Data::new("fp64", numbers), tensor.dtype.as_ref()?)
    }

    /// Whether a tensor has as many of them, in the same sizes.
    pub(crate) fn is_of_sizes(&self, tensor: &Tensor) -> bool {
        extents(tensor).is_some_and(|sizes| self.numbers.shape() == sizes)
    }

    /// A number for each element of a tensor.
    pub(crate) fn filled(tensor: &Tensor, number: f64) -> Option<Data> {
        Some(Data::new("fp64", ArrayD::from_elem(extents(tensor)?, number)))
    }

    /// Sums of both; `None` where they have other sizes.
    pub(crate) fn plus(&self, other: &Data) -> Option<Data> {
        let has_sizes = self.numbers.shape() == other.numbers.shape();
        has_sizes.then(|| Data::new("fp64", &self.numbers + &other.numbers))
    }

    /// The numbers at positions, and all with zeros there; `None` where a position is there twice.
    pub(crate) fn split_at(&self, positions: &Data) -> Option<(Data, Data)> {
        let mut rest: Vec<f64> = self.in_order().collect();
        let mut is_taken = vec![false; rest.len()];
        let mut taken = Vec::new();
        for at in positions.in_order() {
            let at = at as usize;
            if std::mem::replace(is_taken.get_mut(at)?, true) {
                return None;
            }
            taken.push(std::mem::take(&mut rest[at]));
        }
        let taken = ArrayD::from_shape_vec(positions.numbers.raw_dim(), taken).ok()?;
        let rest = ArrayD::from_shape_vec(self.numbers.raw_dim(), rest).ok()?;
        Some((Data::new("fp64", taken), Data::new("fp64", rest)))
    }

    /// The numbers, in order.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = f64> + '_ {
        self.numbers.iter().copied()
    }

    /// What memory of a type holds that has these numbers in order; `None` where the type lacks one of them.
    pub(crate) fn held_as(&self, dtype: &str) -> Option<Contents> {
        super::converted(self.clone(), &dtype.into()).map(|data| data.row_major())
    }

    /// Those of a tensor to which the one at `tensor` was broadcast, added up.
    pub(crate) fn reduced_to(self, tensor: &Tensor) -> Option<Data> {
        Some(Data::new("fp64", reduced_to(&extents(tensor)?, self.numbers)?))
    }
}
