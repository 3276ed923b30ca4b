//! What memory holds, as far as host code shows it: integers that constructors of tensors write.

use std::sync::Arc;

/// Numbers of a tensor that are listed one by one.
pub(super) const MAX_LISTED: usize = 1024;

/// What memory holds, by the position of an element in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Contents {
    /// Nothing is known.
    #[default]
    Unknown,
    /// Nothing has been written to it since it was allocated.
    Uninitialized,
    /// The first element is `start`, and each is `step` more than the one before.
    Progression {
        /// The first.
        start: i128,
        /// The distance of neighbors.
        step: i128,
    },
    /// These, in order.
    Listed(Arc<[i128]>),
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
}

impl Contents {
    /// `value` throughout.
    pub(super) fn constant(value: i128) -> Contents {
        Contents::Progression { start: value, step: 0 }
    }

    /// The same, where it may be that something was written that leaves what is known as it is: by a
    /// copy, or to another part of the memory.
    pub(super) fn initialized(&self) -> Contents {
        match self {
            Contents::Uninitialized => Contents::Unknown,
            known => known.clone(),
        }
    }

    /// What some `count` of its elements hold: the first, if `are_first`.
    pub(super) fn of_part(self, count: i128, are_first: bool) -> Contents {
        match self {
            Contents::Listed(numbers) if are_first => {
                let count = usize::try_from(count).unwrap_or(0).min(numbers.len());
                Contents::Listed(numbers[..count].into())
            }
            Contents::Progression { step, .. } if step != 0 && !are_first => Contents::Unknown,
            Contents::Listed(_) => Contents::Unknown,
            known => known,
        }
    }

    /// What memory of so many elements holds that were made of these, each by `operation`.
    pub(super) fn combined(
        self,
        elements: i128,
        operation: impl Fn(i128) -> Option<i128>,
    ) -> Contents {
        let known = match self {
            Contents::Progression { start, step: 0 } => operation(start).map(Contents::constant),
            Contents::Progression { start, step } if elements <= MAX_LISTED as i128 => {
                let numbers = (0..elements).map(|at| operation(start + at * step));
                numbers.collect::<Option<Arc<[i128]>>>().map(Contents::listed)
            }
            Contents::Listed(numbers) => {
                let numbers = numbers.iter().map(|number| operation(*number));
                numbers.collect::<Option<Arc<[i128]>>>().map(Contents::listed)
            }
            _ => None,
        };
        known.unwrap_or_default()
    }

    /// These in order.
    fn listed(numbers: Arc<[i128]>) -> Contents {
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
    pub(super) fn join(&self, other: &Contents) -> Contents {
        if self == other { self.clone() } else { Contents::Unknown }
    }
}
