//! Random numbers as one run may draw them.

use rustc_hash::FxHashMap;

use super::{MAX_COMPUTED, MAX_NUMBERS, Numbers};
use crate::host::value::Value;
use crate::host::value::contents::{Contents, Listing, repeats};

/// A generator, which draws the same in each run.
#[derive(Debug)]
pub(crate) struct Draws {
    drawn: u64,
    /// How many numbers of one tensor it draws.
    most: usize,
    /// Whether it draws none.
    paused: bool,
}

impl Default for Draws {
    fn default() -> Draws {
        Draws { drawn: 0, most: MAX_NUMBERS, paused: false }
    }
}

impl Draws {
    /// One that draws all the numbers with which a run computes.
    pub(crate) fn of_computing() -> Draws {
        Draws { most: MAX_COMPUTED, ..Draws::default() }
    }

    /// The same after this seed.
    pub(crate) fn seeded(seed: i128) -> Draws {
        // The seeds of people are small numbers: any state is as good, as long as it follows from the seed.
        let drawn = (seed as u64).wrapping_mul(0xd134_2543_de82_ef95);
        Draws { drawn, ..Draws::of_computing() }
    }

    /// Whether it draws none.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Draws no numbers, or draws them again; which of them it was before.
    pub(crate) fn pause(&mut self, paused: bool) -> bool {
        std::mem::replace(&mut self.paused, paused)
    }

    /// The next 64 random bits: the generator SplitMix64.
    fn bits(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.drawn ^ (self.drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 on, below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Any of `lo..=hi`.
    pub(crate) fn integer(&mut self, lo: i128, hi: i128) -> i128 {
        lo + i128::from(self.bits()).rem_euclid(hi - lo + 1)
    }

    /// A normally distributed number: the method of Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// `value` with the numbers that one run draws, where it is a tensor of random ones.
    pub(crate) fn draw(&mut self, value: Value) -> Value {
        if self.paused {
            return value;
        }
        let Value::Tensor(mut tensor) = value else { return value };
        if let Some(storage) = &mut tensor.storage
            && let Ok(count) = usize::try_from(storage.elements)
        {
            let numbers = match (&storage.contents, storage.drawn) {
                (Contents::Unknown, Some(drawn)) if count <= self.most => {
                    let (lo, hi) = drawn.bounds();
                    Some(self.floats(count, |draws| lo + (hi - lo) * draws.fraction()))
                }
                (contents, _) => self.of_contents(contents, count),
            };
            if let Some(numbers) = numbers {
                let numbers = match &tensor.dtype {
                    Some(dtype) => of_type(dtype, numbers),
                    None => numbers,
                };
                (storage.contents, storage.drawn) = (numbers, None);
            }
        }
        Value::Tensor(tensor)
    }

    /// Random numbers of memory of so many elements, if they are not too many.
    fn of_contents(&mut self, contents: &Contents, count: usize) -> Option<Contents> {
        match contents {
            _ if count > self.most => None,
            Contents::Signed => Some(self.floats(count, Draws::normal)),
            Contents::Random { lo, hi } if repeats(count as i128, hi - lo + 1) => {
                Some(Contents::Listed((0..count).map(|_| self.integer(*lo, *hi)).collect()))
            }
            Contents::Random { lo, hi } | Contents::Distinct { lo, hi }
                if count as i128 <= hi - lo + 1 =>
            {
                Some(Contents::Listed(self.different(*lo, *hi, count)))
            }
            _ => None,
        }
    }

    pub(crate) fn floats(
        &mut self,
        count: usize,
        mut next: impl FnMut(&mut Draws) -> f64,
    ) -> Contents {
        Contents::Floats((0..count).map(|_| f64::from(next(self) as f32).to_bits()).collect())
    }

    /// So many different ones of `lo..=hi`, at most all: the shuffle of Fisher and Yates, of which no
    /// more is written down than what was moved.
    fn different(&mut self, lo: i128, hi: i128, count: usize) -> Listing<i128> {
        let mut moved: FxHashMap<i128, i128> = FxHashMap::default();
        let drawn = (lo..=hi).take(count).map(|at| {
            let other = self.integer(at, hi);
            let here = moved.get(&at).copied().unwrap_or(at);
            moved.insert(other, here).unwrap_or(other)
        });
        drawn.collect()
    }
}

/// What memory of so many elements holds, where random numbers are as one run draws them; `None` where
/// nothing is known of it, or too much.
pub(crate) fn drawn(contents: &Contents, count: usize) -> Option<Contents> {
    match contents {
        Contents::Signed | Contents::Random { .. } | Contents::Distinct { .. } => {
            Draws::default().of_contents(contents, count)
        }
        Contents::Progression { .. } | Contents::Listed(_) | Contents::Floats(_) => {
            Some(contents.clone())
        }
        Contents::Unknown
        | Contents::Uninitialized
        | Contents::Partly(_)
        | Contents::Except { .. } => None,
    }
}

/// Floats as a type has them.
pub(crate) fn of_type(dtype: &str, numbers: Contents) -> Contents {
    let (Contents::Floats(floats), Some(to)) = (&numbers, Numbers::of(dtype)) else {
        return numbers;
    };
    let floats = floats.iter().map(|bits| to.rounded(f64::from_bits(*bits)).map(f64::to_bits));
    floats.collect::<Option<_>>().map_or(numbers.clone(), Contents::Floats)
}
