//! Gradients of products.

use ndarray::{ArrayD, Axis, IxDyn};

use super::super::{Data, einsum, layers, of, products::product};
use super::{Call, Given, extents, reduced_to};
use crate::host::code::arguments::Args;
use crate::host::value::{Tensor, Value, tensors_in};

/// What a product hands on to the tensor that is asked for; `None` for other functions.
pub(super) fn handed_on(call: Call<'_>, given: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let Call { args, at, asked, .. } = call;
    let numbers = |tensor: &Tensor| Some(of(tensor)?.numbers);
    match (call.name, &tensors_in(args)[..]) {
        ("matmul" | "__matmul__" | "mm" | "bmm" | "mv" | "dot", [left, right]) => {
            of_factor([&numbers(left)?, &numbers(right)?], at, given)
        }
        ("outer", [left, right]) => {
            let both = [numbers(left)?.insert_axis(Axis(1)), numbers(right)?.insert_axis(Axis(0))];
            in_shape(extents(asked)?, of_factor([&both[0], &both[1]], at, given)?)
        }
        ("addmm", [_, left, right]) if args.len() == 3 => match at {
            0 => reduced_to(&extents(asked)?, given.clone()),
            at => of_factor([&numbers(left)?, &numbers(right)?], at - 1, given),
        },
        ("linear", [input, weight, rest @ ..]) if args.len() <= 3 => {
            let in_rows = |numbers: ArrayD<f64>| {
                let width = *numbers.shape().last()?;
                in_shape(vec![numbers.len() / width.max(1), width], numbers)
            };
            match at {
                0 => multiplied(given, &numbers(weight)?),
                1 => {
                    let across = in_rows(given.clone())?.reversed_axes();
                    multiplied(&across, &in_rows(numbers(input)?)?)
                }
                _ => rest.first().and_then(|bias| reduced_to(&extents(bias)?, given.clone())),
            }
        }
        ("einsum", _) => einsum::handed_on(args, at, given),
        ("scaled_dot_product_attention", [query, key, value, ..]) if at < 3 => {
            of_attention(args, [query, key, value], at, given)
        }
        _ => None,
    }
}

fn in_shape(shape: Vec<usize>, numbers: ArrayD<f64>) -> Option<ArrayD<f64>> {
    numbers.as_standard_layout().into_owned().into_shape_with_order(IxDyn(&shape)).ok()
}

fn multiplied(left: &ArrayD<f64>, right: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let data = |numbers: &ArrayD<f64>| Data::new("fp64", numbers.clone());
    Some(product(&data(left), &data(right))?.numbers)
}

/// The gradient of one of the two factors of `a @ b`.
fn of_factor(
    [left, right]: [&ArrayD<f64>; 2],
    at: usize,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    let (mut left_sides, mut right_sides, mut given) = (left.clone(), right.clone(), given.clone());
    if right.ndim() == 1 {
        right_sides.insert_axis_inplace(Axis(1));
        given.insert_axis_inplace(Axis(given.ndim()));
    }
    if left.ndim() == 1 {
        left_sides.insert_axis_inplace(Axis(0));
        given.insert_axis_inplace(Axis(given.ndim().checked_sub(1)?));
    }
    let (made, like, shape) = match at {
        0 => (multiplied(&given, &turned(&right_sides)?)?, left_sides, left.shape()),
        _ => (multiplied(&turned(&left_sides)?, &given)?, right_sides, right.shape()),
    };
    in_shape(shape.to_vec(), reduced_to(like.shape(), made)?)
}

/// With the last two axes exchanged.
fn turned(numbers: &ArrayD<f64>) -> Option<ArrayD<f64>> {
    let last = numbers.ndim().checked_sub(1).filter(|last| *last > 0)?;
    let mut turned = numbers.clone();
    turned.swap_axes(last - 1, last);
    Some(turned)
}

/// The gradient of the queries, keys or values of attention.
fn of_attention(
    args: &Given,
    [query, key, value]: [&Tensor; 3],
    at: usize,
    given: &ArrayD<f64>,
) -> Option<ArrayD<f64>> {
    let (_, rest) = Args(args).of_input().or_else(|| Args(args).of_tensor())?;
    let is_query_first = matches!(args.first(), Some((None, Value::Tensor(_))));
    let (scale, chances) = is_query_first.then(|| layers::attention_chances(query, &rest))??;
    let chances = chances.numbers;
    let (query, key, value) = (of(query)?.numbers, of(key)?.numbers, of(value)?.numbers);
    if at == 2 {
        return reduced_to(value.shape(), multiplied(&turned(&chances)?, given)?);
    }
    let of_chances = multiplied(given, &turned(&value)?)?;
    let last = Axis(chances.ndim() - 1);
    let along = (&of_chances * &chances).sum_axis(last).insert_axis(last);
    let of_scores = (of_chances - along) * chances * scale;
    match at {
        0 => reduced_to(query.shape(), multiplied(&of_scores, &key)?),
        _ => reduced_to(key.shape(), multiplied(&turned(&of_scores)?, &query)?),
    }
}
