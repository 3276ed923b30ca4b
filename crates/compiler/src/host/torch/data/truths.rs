//! Truths of comparisons, element by element, as far as rounding in another order cannot change them.

use ndarray::ArrayD;

use super::arithmetic::zipped;
use super::{Data, Tolerance, compared};
use crate::hir::CompareOp;
use crate::host::value::Value;
use crate::host::value::dtype::is_integer;

/// A truth that rounding may change: half of the way between those of false and true. So `and` is the lesser of
/// two truths, and `or` the greater (Kleene's logic of three values).
const OPEN: f64 = 0.5;

/// An error exceeds a bound by far where it is so many times the bound, and this much.
pub(crate) const TIMES: f64 = 4.0;
pub(crate) const LEAST_ERROR: f64 = 0.05;

/// The same of errors of which there are few.
const TIMES_OF_FEW: f64 = 16.0;
const LEAST_OF_FEW: f64 = 0.5;

/// The share of all below which errors are few.
const SHARE: f64 = 0.01;

/// An error is below a bound by far where it is below it by this part of it.
pub(crate) const PART: f64 = 0.25;

/// Numbers are unequal by far where they are apart by this part of the greater one, and this much.
const UNEQUAL: f64 = 0.05;
const LEAST_UNEQUAL: f64 = 1e-4;

/// Truths of a tensor's elements: 0, 1, or [`OPEN`].
#[derive(Debug, Clone)]
pub(crate) struct Truths(ArrayD<f64>);

impl Truths {
    /// Truths that no rounding decided.
    pub(crate) fn exact(value: &Value) -> Option<Truths> {
        let data = super::of_value(value)?;
        (&*data.dtype == "i1").then_some(Truths(data.numbers))
    }

    /// Those of `left op right`.
    pub(crate) fn of_comparison(op: CompareOp, left: &Value, right: &Value) -> Option<Truths> {
        let [a, b] = [super::of_value(left)?, super::of_value(right)?];
        if is_integer(&a.dtype) && is_integer(&b.dtype) {
            return Some(Truths(compared(op, left, right)?.numbers));
        }
        match op {
            CompareOp::Gt | CompareOp::Ge => exceeding(&a, &b),
            CompareOp::Lt | CompareOp::Le => {
                let exceeding = exceeding(&a, &b)?;
                // What is no number is not below anything either.
                let holds = |error: f64, exceeds: f64| {
                    Some(if error.is_nan() { 0.0 } else { 1.0 - exceeds })
                };
                zipped(&a.numbers, &exceeding.0, holds).map(Truths)
            }
            CompareOp::Ne => unequal(&a, &b),
            CompareOp::Eq => Some(unequal(&a, &b)?.inverted()),
            _ => None,
        }
    }

    /// Those of `isclose(actual, expected)`.
    pub(crate) fn of_closeness(
        actual: &Value,
        expected: &Value,
        tolerance: Tolerance,
    ) -> Option<Truths> {
        let [a, b] = [super::of_value(actual)?, super::of_value(expected)?];
        // What is no number is close to none.
        let apart = |a: f64, b: f64| match (a - b).abs() {
            _ if a == b => 0.0,
            apart if apart.is_nan() => f64::INFINITY,
            apart => apart,
        };
        let error = zipped(&a.numbers, &b.numbers, |a, b| Some(apart(a, b)))?;
        let bound = b.numbers.mapv(|b| tolerance.absolute + tolerance.relative * b.abs());
        let [error, bound] = [Data::new("fp64", error), Data::new("fp64", bound)];
        Some(exceeding(&error, &bound)?.inverted())
    }

    pub(crate) fn inverted(&self) -> Truths {
        Truths(self.0.mapv(|truth| 1.0 - truth))
    }

    pub(crate) fn and(&self, other: &Truths) -> Option<Truths> {
        zipped(&self.0, &other.0, |a, b| Some(a.min(b))).map(Truths)
    }

    pub(crate) fn or(&self, other: &Truths) -> Option<Truths> {
        zipped(&self.0, &other.0, |a, b| Some(a.max(b))).map(Truths)
    }

    pub(crate) fn xor(&self, other: &Truths) -> Option<Truths> {
        let either = |a: f64, b: f64| if a == OPEN || b == OPEN { OPEN } else { (a - b).abs() };
        zipped(&self.0, &other.0, |a, b| Some(either(a, b))).map(Truths)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> f64 {
        self.0.len() as f64
    }

    /// How many hold at least, and at most.
    pub(crate) fn held(&self) -> [f64; 2] {
        let at_least = |least: f64| self.0.iter().filter(|truth| **truth >= least).count() as f64;
        [at_least(1.0), at_least(OPEN)]
    }
}

/// Where `error` is above `bound`.
fn exceeding(error: &Data, bound: &Data) -> Option<Truths> {
    let by_far = |error: f64, bound: f64, times: f64, least: f64| {
        error > times * bound.abs() && error > least
    };
    let found = zipped(&error.numbers, &bound.numbers, |error, bound| {
        Some(match () {
            () if error.is_nan() || bound > 0.0 && error < bound * (1.0 - PART) => 0.0,
            () if by_far(error, bound, TIMES_OF_FEW, LEAST_OF_FEW) => 1.0,
            () if by_far(error, bound, TIMES, LEAST_ERROR) => 1.0 - OPEN / 2.0,
            () => OPEN,
        })
    })?;
    // Errors that are far, but not very far, count where there are more than a few.
    let are_few =
        (found.iter().filter(|truth| **truth > OPEN).count() as f64) < SHARE * found.len() as f64;
    let far = if are_few { OPEN } else { 1.0 };
    Some(Truths(found.mapv(|truth| if truth > OPEN && truth < 1.0 { far } else { truth })))
}

/// Where numbers are unequal: those that are equal may be so by chance.
fn unequal(a: &Data, b: &Data) -> Option<Truths> {
    let unequal = zipped(&a.numbers, &b.numbers, |a, b| {
        let apart = (a - b).abs();
        let is_far = apart > UNEQUAL * a.abs().max(b.abs()) && apart > LEAST_UNEQUAL;
        Some(if is_far { 1.0 } else { OPEN })
    })?;
    Some(Truths(unequal))
}
