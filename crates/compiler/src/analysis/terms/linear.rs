//! Sums of multiples of atoms, and intervals.

use smallvec::SmallVec;

use super::Atom;

/// The integers `lo..=hi`; empty when `lo > hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The least.
    pub lo: i128,
    /// The greatest.
    pub hi: i128,
}

impl Interval {
    /// The integers `lo..=hi`.
    pub fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo, hi }
    }

    /// One integer.
    pub fn point(value: i128) -> Interval {
        Interval { lo: value, hi: value }
    }

    /// The signed integers of `bits` bits.
    pub fn signed(bits: u32) -> Interval {
        let half = 1i128 << (bits.clamp(1, 64) - 1);
        Interval { lo: -half, hi: half - 1 }
    }

    /// The integer, if it is one.
    pub fn constant(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// True when every integer of `self` is in `other`.
    pub fn within(self, other: Interval) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }

    pub(super) fn hull(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub(super) fn scaled(self, factor: i128) -> Interval {
        let (a, b) = (self.lo.saturating_mul(factor), self.hi.saturating_mul(factor));
        Interval { lo: a.min(b), hi: a.max(b) }
    }

    pub(super) fn plus(self, other: Interval) -> Interval {
        Interval { lo: self.lo.saturating_add(other.lo), hi: self.hi.saturating_add(other.hi) }
    }
}

/// A sum of multiples of atoms and a constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Linear {
    /// Atoms in order with factors that are not zero.
    pub terms: SmallVec<[(Atom, i128); 3]>,
    /// What is added.
    pub constant: i128,
}

impl Linear {
    /// A constant.
    pub fn constant(value: i128) -> Linear {
        Linear { terms: SmallVec::new(), constant: value }
    }

    /// An atom itself.
    pub fn atom(atom: Atom) -> Linear {
        Linear { terms: SmallVec::from_slice(&[(atom, 1)]), constant: 0 }
    }

    /// The constant, if it is one.
    pub(crate) fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The factor of `atom`.
    pub fn factor(&self, atom: Atom) -> i128 {
        self.terms.iter().find(|(known, _)| *known == atom).map_or(0, |(_, factor)| *factor)
    }

    /// `self * factor`; `None` beyond 128 bits.
    pub fn scaled(&self, factor: i128) -> Option<Linear> {
        if factor == 0 {
            return Some(Linear::default());
        }
        let terms =
            self.terms.iter().map(|(atom, known)| Some((*atom, known.checked_mul(factor)?)));
        Some(Linear {
            terms: terms.collect::<Option<_>>()?,
            constant: self.constant.checked_mul(factor)?,
        })
    }

    /// Adds `other * factor`; false beyond 128 bits, after which the sum is none.
    pub(super) fn add_scaled(&mut self, other: &Linear, factor: i128) -> bool {
        let all = other.terms.iter().all(|(atom, own)| {
            own.checked_mul(factor).is_some_and(|scaled| self.add_multiple(*atom, scaled))
        });
        let constant = other.constant.checked_mul(factor);
        let constant = constant.and_then(|constant| self.constant.checked_add(constant));
        self.constant = constant.unwrap_or_default();
        all && constant.is_some()
    }

    /// Adds `atom * factor`; false beyond 128 bits.
    pub(super) fn add_multiple(&mut self, atom: Atom, factor: i128) -> bool {
        match self.terms.binary_search_by_key(&atom, |(known, _)| *known) {
            Ok(at) => {
                let Some(sum) = self.terms[at].1.checked_add(factor) else { return false };
                match sum {
                    0 => drop(self.terms.remove(at)),
                    sum => self.terms[at].1 = sum,
                }
            }
            Err(at) if factor != 0 => self.terms.insert(at, (atom, factor)),
            Err(_) => {}
        }
        true
    }

    /// `self + other`; `None` beyond 128 bits.
    pub fn plus(&self, other: &Linear) -> Option<Linear> {
        let mut terms = SmallVec::new();
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some((left, _)), Some((right, _))) if left == right => {
                    let (left, right) = (a.next()?, b.next()?);
                    let factor = left.1.checked_add(right.1)?;
                    if factor != 0 {
                        terms.push((left.0, factor));
                    }
                }
                (Some((left, _)), Some((right, _))) if left < right => {
                    terms.extend(a.next().copied())
                }
                (Some(_), None) => terms.extend(a.next().copied()),
                (_, Some(_)) => terms.extend(b.next().copied()),
                (None, None) => break,
            }
        }
        Some(Linear { terms, constant: self.constant.checked_add(other.constant)? })
    }

    /// `self - other`; `None` beyond 128 bits.
    pub(crate) fn minus(&self, other: &Linear) -> Option<Linear> {
        self.plus(&other.scaled(-1)?)
    }

    /// `self + value`.
    pub fn offset(&self, value: i128) -> Linear {
        Linear { terms: self.terms.clone(), constant: self.constant.saturating_add(value) }
    }
}
