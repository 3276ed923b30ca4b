//! How far apart numbers are that ought to be the same, whatever rounding and the order of sums do to them.

use ndarray::{Dimension, IxDyn};

use super::Data;
use super::arithmetic::broadcast;
use crate::host::value::dtype::is_float;

/// What two numbers may be apart: `absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    /// Whatever they are.
    pub(crate) absolute: f64,
    /// For each of what is expected.
    pub(crate) relative: f64,
}

impl Tolerance {
    /// None.
    pub(crate) const NONE: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };
}

/// Numbers that are another than those that are expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// How many are.
    pub count: usize,
    /// Of so many.
    pub all: usize,
    /// The indices of one that is furthest away.
    pub at: Vec<usize>,
    /// It.
    pub actual: String,
    /// What is expected there.
    pub expected: String,
}

/// How many times the tolerance numbers are apart where no rounding explains it.
const TIMES: f64 = 4.0;

/// Numbers differ by so much of what is usual among those that are expected where they differ at all.
const USUAL: f64 = 0.05;

/// And by this much, where those are all near 0.
const LEAST: f64 = 1e-4;

/// One number differs by so much of that where it is the only one that does: another may well be rounded the
/// other way, also to few bits.
const ALONE: f64 = 0.5;

/// The share of numbers that differ where none of them does by far.
const SHARE: f64 = 0.01;

/// Whether two are the same for certain: in shape, and in each number, or `nearly` so.
pub(crate) fn is_same(a: &Data, b: &Data, nearly: bool) -> bool {
    // What PyTorch allows by default is ten times this.
    const NEAR: f64 = 1e-6;
    let is_near = |(a, b): (&f64, &f64)| a == b || nearly && (a - b).abs() <= NEAR * b.abs();
    a.numbers.shape() == b.numbers.shape() && a.numbers.iter().zip(&b.numbers).all(is_near)
}

/// What `actual` differs in from `expected` by far; `None` where it does not, or not by more than rounding in
/// another order may explain. What is infinite or no number among what is expected tells nothing.
pub(crate) fn difference(
    actual: &Data,
    expected: &Data,
    tolerance: Tolerance,
) -> Option<Difference> {
    let shape = IxDyn(&broadcast(actual.numbers.shape(), expected.numbers.shape())?);
    let (actuals, expecteds) =
        (actual.numbers.broadcast(shape.clone())?, expected.numbers.broadcast(shape)?);
    let is_whole = !is_float(&actual.dtype) && !is_float(&expected.dtype);
    let finite = expecteds.iter().filter(|number| number.is_finite());
    let (count, squares) =
        finite.fold((0usize, 0.0), |(count, sum), number| (count + 1, sum + number * number));
    let usual = if is_whole { 1.0 } else { (squares / count.max(1) as f64).sqrt() };
    let expected_type = expected.dtype.clone();
    let mut found: Option<(f64, Difference)> = None;
    let (mut differing, mut far) = (0, false);
    for ((index, actual), expected) in actuals.indexed_iter().zip(&expecteds) {
        if actual == expected || !expected.is_finite() {
            continue;
        }
        let apart = if actual.is_nan() { f64::INFINITY } else { (actual - expected).abs() };
        let allowed = TIMES * (tolerance.absolute + tolerance.relative * expected.abs());
        let least = match is_whole {
            // Of few bits they may be rounded.
            true => f64::from(u8::from(matches!(&*expected_type, "i8" | "u8"))),
            false => (USUAL * usual).max(LEAST),
        };
        if apart <= allowed + least {
            continue;
        }
        differing += 1;
        far |= apart > allowed + (ALONE * usual).max(LEAST) && !is_whole;
        if found.as_ref().is_none_or(|(most, _)| apart > *most) {
            let (at, all) = (index.slice().to_vec(), actuals.len());
            let [actual, expected] = [*actual, *expected].map(written);
            found = Some((apart, Difference { count: 0, all, at, actual, expected }));
        }
    }
    let is_shared = differing as f64 >= SHARE * actuals.len() as f64;
    let (_, found) = found.filter(|_| far || is_shared)?;
    Some(Difference { count: differing, ..found })
}

/// A number with so many digits as tell it from others.
pub(crate) fn written(number: f64) -> String {
    match number {
        number if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number}"),
        number if (1e-3..1e6).contains(&number.abs()) => format!("{number:.4}"),
        number => format!("{number:.3e}"),
    }
}
