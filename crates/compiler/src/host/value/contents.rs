//! What memory holds, as far as host code shows it: integers that constructors of tensors write.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// Numbers of a tensor that are listed one by one.
pub(crate) const MAX_LISTED: usize = 1024;

/// Ranges that a part of memory is made of, if there are no more.
const MAX_RUNS: i128 = 16;

/// Random numbers are taken not to be all different where the chance of that is below exp(-7), one
/// in a thousand.
const CERTAIN: i128 = 7;

/// Whether so many numbers are drawn of so many that some are bound to be equal; few are mostly a
/// test's stand-in for numbers that differ.
pub(crate) fn repeats(drawn: i128, choices: i128) -> bool {
    // The chance of none is below exp(-pairs / choices).
    let pairs = drawn.saturating_mul(drawn) / 2;
    drawn > choices || pairs / choices.max(1) >= CERTAIN
}

/// Numbers one by one. Parts of a listing, as views have, share its memory.
#[derive(Debug, Clone)]
pub struct Listing<T> {
    all: Arc<[T]>,
    part: Range<usize>,
}

impl<T> Listing<T> {
    /// The first `count`, or all if there are fewer.
    pub(crate) fn up_to(&self, count: usize) -> Listing<T> {
        let end = self.part.start + count.min(self.len());
        Listing { all: self.all.clone(), part: self.part.start..end }
    }

    fn behind(&self, element: i128) -> Option<Listing<T>> {
        let element = usize::try_from(element).ok().filter(|element| *element <= self.len())?;
        let part = self.part.start + element..self.part.end;
        Some(Listing { all: self.all.clone(), part })
    }
}

impl<T> Deref for Listing<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all[self.part.clone()]
    }
}

impl<T> From<Vec<T>> for Listing<T> {
    fn from(numbers: Vec<T>) -> Self {
        Listing { part: 0..numbers.len(), all: numbers.into() }
    }
}

impl<T> FromIterator<T> for Listing<T> {
    fn from_iter<I: IntoIterator<Item = T>>(numbers: I) -> Self {
        numbers.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T: Eq> PartialEq for Listing<T> {
    fn eq(&self, other: &Self) -> bool {
        let is_same = Arc::ptr_eq(&self.all, &other.all) && self.part == other.part;
        is_same || **self == **other
    }
}

impl<T: Eq> Eq for Listing<T> {}

/// What memory holds, by the position of an element in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Contents {
    /// Nothing is known.
    #[default]
    Unknown,
    /// Nothing has been written to it since it was allocated.
    Uninitialized,
    /// The same, but to these parts of it, to which something may have been written.
    Partly(Arc<[Region]>),
    /// The first element is `start`, and each is `step` more than the one before.
    Progression {
        /// The first.
        start: i128,
        /// The distance of neighbors.
        step: i128,
    },
    /// These, in order.
    Listed(Listing<i128>),
    /// These floats, by their bits, in order.
    Floats(Listing<u64>),
    /// Each any of `lo..=hi`, whatever the others are.
    Random {
        /// The least.
        lo: i128,
        /// The greatest.
        hi: i128,
    },
    /// Floats, each of either sign whatever the others are.
    Signed,
    /// Each any of `lo..=hi`, and no two the same.
    Distinct {
        /// The least.
        lo: i128,
        /// The greatest.
        hi: i128,
    },
    /// As these say, but in some parts, to which something may have been written since.
    Except {
        /// What is elsewhere: numbers that are known one by one, or drawn one by one.
        of: Arc<Contents>,
        /// The parts.
        parts: Arc<[Region]>,
    },
}

/// A part of memory: its first element, and the sizes and strides of what it has more, the longest
/// stride first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    start: i128,
    axes: Vec<(i128, i128)>,
}

impl Region {
    /// Of elements from `start` on with these sizes and strides; `None` where elements of several
    /// positions along one axis may be between those of another.
    pub(crate) fn new(start: i128, axes: impl IntoIterator<Item = (i128, i128)>) -> Option<Region> {
        let mut axes: Vec<_> = axes.into_iter().filter(|(size, _)| *size != 1).collect();
        axes.sort_by_key(|(_, stride)| std::cmp::Reverse(*stride));
        let inside = |axes: &[(i128, i128)]| {
            axes.iter().try_fold(1i128, |span, (size, stride)| {
                span.checked_add(stride.checked_mul(size - 1)?)
            })
        };
        let is_plain = axes.iter().all(|(size, stride)| *size >= 0 && *stride > 0);
        let nest = |at: usize| inside(&axes[at + 1..]).is_some_and(|inner| inner <= axes[at].1);
        (is_plain && (0..axes.len()).all(nest)).then_some(Region { start, axes })
    }

    /// Ranges of elements that it lies in, each from its first element to behind its last: not more than
    /// a few, so that there may be others in between.
    pub(crate) fn runs(&self) -> Vec<(i128, i128)> {
        let extent = |axes: &[(i128, i128)]| -> i128 {
            axes.iter().map(|(size, stride)| (size - 1) * stride).sum::<i128>() + 1
        };
        if self.axes.iter().any(|(size, _)| *size <= 0) {
            return Vec::new();
        }
        match self.axes.split_first() {
            Some(((size, stride), inner)) if *size <= MAX_RUNS && extent(inner) < *stride => {
                let start = |at: i128| self.start + at * stride;
                (0..*size).map(|at| (start(at), start(at) + extent(inner))).collect()
            }
            _ => vec![(self.start, self.start + extent(&self.axes))],
        }
    }

    /// The same, counted from an element of the memory.
    pub(crate) fn from(&self, element: i128) -> Region {
        Region { start: self.start - element, axes: self.axes.clone() }
    }

    /// Whether an element is in it.
    fn holds(&self, element: i128) -> bool {
        let mut rest = element - self.start;
        let is_along = |(size, stride): &(i128, i128)| {
            let at = rest.div_euclid(*stride);
            rest -= at * stride;
            (0..*size).contains(&at)
        };
        self.axes.iter().all(is_along) && rest == 0
    }
}

impl Contents {
    /// Whether nothing, or only some parts, have been written since it was allocated.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self, Contents::Uninitialized | Contents::Partly(_))
    }

    /// Whether an element is in a part of new memory that may have been written.
    pub(crate) fn is_written_at(&self, element: i128) -> bool {
        let Contents::Partly(regions) = self else { return false };
        regions.iter().any(|region| region.holds(element))
    }

    /// The same after parts may have been written, or are at hand to be `written`; positions of the
    /// parts are from where these contents begin.
    pub(crate) fn with_parts(
        &self,
        parts: impl Iterator<Item = Region>,
        written: bool,
    ) -> Contents {
        match self {
            Contents::Uninitialized => Contents::Partly(parts.collect()),
            Contents::Partly(known) => {
                let more = parts.filter(|part| !known.contains(part));
                Contents::Partly(known.iter().cloned().chain(more).collect())
            }
            Contents::Except { of, parts: known } => {
                let more = parts.filter(|part| !known.contains(part));
                let parts = known.iter().cloned().chain(more).collect();
                Contents::Except { of: of.clone(), parts }
            }
            known if !written => known.clone(),
            Contents::Progression { .. } | Contents::Listed(_) | Contents::Random { .. } => {
                Contents::Except { of: Arc::new(self.clone()), parts: parts.collect() }
            }
            _ => Contents::Unknown,
        }
    }

    /// `value` throughout.
    pub(crate) fn constant(value: i128) -> Contents {
        Contents::Progression { start: value, step: 0 }
    }

    /// The same, where it may be that something was written that leaves what is known as it is: by a
    /// copy, or to another part of the memory.
    pub(crate) fn initialized(&self) -> Contents {
        match self {
            Contents::Uninitialized | Contents::Partly(_) => Contents::Unknown,
            known => known.clone(),
        }
    }

    /// What some `count` of its elements hold: the first, if `are_first`.
    pub(crate) fn of_part(self, count: i128, are_first: bool) -> Contents {
        match self {
            Contents::Listed(numbers) if are_first => {
                Contents::Listed(numbers.up_to(usize::try_from(count).unwrap_or(0)))
            }
            Contents::Floats(numbers) if are_first => {
                Contents::Floats(numbers.up_to(usize::try_from(count).unwrap_or(0)))
            }
            Contents::Progression { step, .. } if step != 0 && !are_first => Contents::Unknown,
            Contents::Listed(_) | Contents::Floats(_) => Contents::Unknown,
            Contents::Except { .. } if !are_first => Contents::Unknown,
            Contents::Except { of, parts } => {
                match Contents::clone(&of).of_part(count, are_first) {
                    Contents::Unknown => Contents::Unknown,
                    of => Contents::Except { of: Arc::new(of), parts },
                }
            }
            known => known,
        }
    }

    /// What memory of so many elements holds that were made of these, each by `operation`.
    pub(crate) fn combined(
        self,
        elements: i128,
        operation: impl Fn(i128) -> Option<i128>,
    ) -> Contents {
        let known = match self {
            Contents::Progression { start, step: 0 } => operation(start).map(Contents::constant),
            Contents::Progression { start, step } if elements <= MAX_LISTED as i128 => {
                let numbers = (0..elements).map(|at| operation(start + at * step));
                numbers.collect::<Option<Listing<i128>>>().map(Contents::listed)
            }
            Contents::Listed(numbers) => {
                let numbers = numbers.iter().map(|number| operation(*number));
                numbers.collect::<Option<Listing<i128>>>().map(Contents::listed)
            }
            _ => None,
        };
        known.unwrap_or_default()
    }

    /// What it holds from an element on.
    pub(crate) fn behind(&self, element: i128) -> Contents {
        let known = match self {
            Contents::Progression { start, step } => {
                let moved = step.checked_mul(element).and_then(|moved| start.checked_add(moved));
                moved.map(|start| Contents::Progression { start, step: *step })
            }
            Contents::Listed(numbers) => numbers.behind(element).map(Contents::Listed),
            Contents::Except { of, parts } => match of.behind(element) {
                Contents::Unknown => None,
                of => {
                    let parts = parts.iter().map(|part| part.from(element)).collect();
                    Some(Contents::Except { of: Arc::new(of), parts })
                }
            },
            Contents::Floats(numbers) => numbers.behind(element).map(Contents::Floats),
            known => Some(known.initialized()),
        };
        known.unwrap_or_default()
    }

    /// The first `count` numbers, where each is known.
    pub(crate) fn numbers(&self, count: usize) -> Option<Vec<i128>> {
        match self {
            Contents::Progression { start, step } => (0..count as i128)
                .map(|at| step.checked_mul(at).and_then(|moved| start.checked_add(moved)))
                .collect(),
            Contents::Listed(numbers) => numbers.get(..count).map(<[i128]>::to_vec),
            _ => None,
        }
    }

    /// The number at a position, where it is known.
    pub(crate) fn number(&self, at: i128) -> Option<f64> {
        match self {
            Contents::Progression { start, step } => step
                .checked_mul(at)
                .and_then(|moved| start.checked_add(moved))
                .map(|all| all as f64),
            Contents::Listed(numbers) => {
                numbers.get(usize::try_from(at).ok()?).map(|number| *number as f64)
            }
            Contents::Floats(numbers) => {
                numbers.get(usize::try_from(at).ok()?).map(|bits| f64::from_bits(*bits))
            }
            _ => None,
        }
    }

    /// The first `count` numbers, integers and floats alike, where they are listed.
    pub(crate) fn listed_first(&self, count: usize) -> Option<Vec<f64>> {
        match self {
            Contents::Listed(numbers) => {
                Some(numbers.get(..count)?.iter().map(|number| *number as f64).collect())
            }
            Contents::Floats(numbers) => {
                Some(numbers.get(..count)?.iter().map(|bits| f64::from_bits(*bits)).collect())
            }
            _ => None,
        }
    }

    /// The first `count` numbers, integers and floats alike, where all are known and exact.
    pub(crate) fn all(&self, count: usize) -> Option<Vec<f64>> {
        const EXACT: f64 = (1i64 << 53) as f64;
        let exact = |number: &f64| matches!(self, Contents::Floats(_)) || number.abs() <= EXACT;
        (0..count as i128).map(|at| self.number(at).filter(exact)).collect()
    }

    /// These in order.
    pub(crate) fn listed(numbers: Listing<i128>) -> Contents {
        let step = match *numbers {
            [first, second, ..] => second.checked_sub(first),
            _ => None,
        };
        let rises =
            |step| numbers.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(step));
        match (step.filter(|step| rises(*step)), numbers.first()) {
            (Some(step), Some(&start)) => Contents::Progression { start, step },
            _ => Contents::Listed(numbers),
        }
    }

    /// What holds of both.
    pub(crate) fn join(&self, other: &Contents) -> Contents {
        if self == other { self.clone() } else { Contents::Unknown }
    }
}
