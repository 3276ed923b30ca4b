//! Sorting: what the network of Triton's library leaves, bit for bit.
//!
//! Its pairs compare with `>`. Rows whose elements that decides about come out in order, however
//! they are sorted. NaN, and zeros of both signs, are larger than nothing and smaller than nothing:
//! what a row then becomes depends on which elements meet, so the network is followed.

use tile_compiler::ir::{Scalar, Sort};

use super::frame::{Slot, elements};
use super::lanes::with_word;
use super::shape::{Act, writes};
use crate::number::{Int, decode};

/// An element of a row.
#[derive(Clone, Copy)]
struct Element {
    /// An integer that compares as the element does; none for NaN.
    key: Option<i64>,
    bits: u64,
}

impl Element {
    fn of(scalar: Scalar, bits: u64) -> Element {
        let key = match scalar {
            Scalar::I64 => Some(bits as i64),
            _ if !scalar.is_float() => Some(decode(scalar, bits) as i64),
            _ => {
                let value = decode(scalar, bits);
                // Adding makes one zero of both.
                let ordered = (value + 0.0).to_bits() as i64;
                let key = if ordered < 0 { ordered ^ i64::MAX } else { ordered };
                (!value.is_nan()).then_some(key)
            }
        };
        Element { key, bits }
    }

    fn is_larger(self, than: Element) -> bool {
        matches!((self.key, than.key), (Some(a), Some(b)) if a > b)
    }

    /// The one of two that comes first in order: a number before NaN, and of two zeros the one that
    /// the sign puts first.
    fn first(self, other: Element, descending: bool) -> Element {
        let is_self = match (self.key, other.key) {
            (None, _) => false,
            (_, None) => true,
            (a, b) if a == b => (self.bits < other.bits) == descending,
            (a, b) => (a > b) == descending,
        };
        if is_self { self } else { other }
    }
}

/// Sorts rows of `extent` elements. Integers compare as signed.
pub(super) fn sort(
    [from, out]: [Slot; 2],
    scalar: Scalar,
    (count, extent): (usize, usize),
    attrs: Sort,
) -> Act {
    let keep = attrs.keep as usize;
    with_word!(scalar, T => writes(out, move |frame, words| {
        let out = elements::<T>(words, count / extent * keep);
        let source = frame.get::<T>(from, count);
        for (out, row) in out.chunks_exact_mut(keep).zip(source.chunks_exact(extent)) {
            let row = row.iter().map(|&bits| Element::of(scalar, bits.unsigned())).collect();
            let sorted = in_order(row, &attrs);
            out.iter_mut().zip(sorted).for_each(|(out, element)| *out = element.bits as T);
        }
    }))
}

fn in_order(row: Vec<Element>, sort: &Sort) -> Vec<Element> {
    if sort.runs == 1 {
        let mut sorted = row.clone();
        sorted.sort_unstable_by_key(|element| element.key);
        let differ = |pair: &[Element]| pair[0].key != pair[1].key || pair[0].bits == pair[1].bits;
        if sorted[0].key.is_some() && sorted.windows(2).all(differ) {
            if sort.descending {
                sorted.reverse();
            }
            return sorted;
        }
    }
    network(row, sort)
}

/// Merges runs that are in order to longer ones, and from `keep` elements on halves them instead.
fn network(mut row: Vec<Element>, sort: &Sort) -> Vec<Element> {
    let keep = sort.keep as usize;
    let mut length = sort.runs as usize;
    while length < keep {
        length *= 2;
        merge(&mut row, length, sort.descending);
    }
    while row.len() > keep {
        let halves = row.chunks_exact(2 * keep).flat_map(|runs| {
            let (one, other) = runs.split_at(keep);
            one.iter().zip(other).map(|(one, other)| one.first(*other, sort.descending))
        });
        row = halves.collect();
        merge(&mut row, keep, sort.descending);
    }
    row
}

/// Brings runs of `length` elements in order, upward and downward in turn; the last that is left, as
/// the sort is asked for.
fn merge(row: &mut [Element], length: usize, descending: bool) {
    let is_last = row.len() == length;
    let mut apart = length / 2;
    while apart > 0 {
        for at in (0..row.len()).filter(|at| at & apart == 0) {
            let downward = if is_last { descending } else { at & length != 0 };
            let (left, right) = (row[at], row[at | apart]);
            row[at] = if left.is_larger(right) == downward { left } else { right };
            row[at | apart] = if right.is_larger(left) == downward { left } else { right };
        }
        apart /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(row: &[f32], runs: u32, keep: u32, descending: bool) -> Vec<String> {
        let element = |value: &f32| Element::of(Scalar::F32, value.to_bits().into());
        let sort = Sort { runs, descending, keep };
        let row = in_order(row.iter().map(element).collect(), &sort);
        row.iter().map(|element| format!("{:?}", f32::from_bits(element.bits as u32))).collect()
    }

    #[test]
    fn of_a_pair_that_does_not_compare_the_first_comes_twice() {
        assert_eq!(sorted(&[f32::NAN, 1.0], 1, 2, false), ["NaN", "NaN"]);
        assert_eq!(sorted(&[1.0, f32::NAN], 1, 2, false), ["1.0", "1.0"]);
        assert_eq!(sorted(&[1.0, f32::NAN], 1, 2, true), ["NaN", "NaN"]);
        assert_eq!(sorted(&[0.0, -0.0], 1, 2, false), ["0.0", "0.0"]);
        assert_eq!(sorted(&[0.0, -0.0], 1, 2, true), ["-0.0", "-0.0"]);
    }

    #[test]
    fn halving_prefers_numbers() {
        assert_eq!(sorted(&[f32::NAN, 1.0], 1, 1, true), ["1.0"]);
        assert_eq!(sorted(&[f32::NAN, f32::NAN], 1, 1, false), ["NaN"]);
        assert_eq!(sorted(&[-0.0, 0.0], 1, 1, true), ["0.0"]);
        assert_eq!(sorted(&[0.0, -0.0], 1, 1, false), ["-0.0"]);
    }

    #[test]
    fn the_last_stage_alone_sorts_what_rises_and_falls() {
        assert_eq!(sorted(&[1.0, 3.0, 2.0, 0.0], 2, 4, false), ["0.0", "1.0", "2.0", "3.0"]);
        assert_eq!(sorted(&[2.0, 1.0, 0.0, 3.0], 2, 4, false), ["0.0", "1.0", "2.0", "3.0"]);
        assert_eq!(sorted(&[0.0, 3.0, 1.0, 2.0], 2, 4, false), ["0.0", "2.0", "1.0", "3.0"]);
    }
}
