//! Random numbers, equal on every machine.
//!
//! Element `i` of a tensor with seed `s` depends on `s` and `i` alone. With `mix` the finalizer of
//! SplitMix64 (xor-shift 30, times 0xBF58476D1CE4E5B9, xor-shift 27, times 0x94D049BB133111EB,
//! xor-shift 31) and `golden` = 0x9E3779B97F4A7C15, all modulo 2^64:
//!
//! - `bits(i) = mix(mix(s + golden) + (i + 1) * golden)`;
//! - `rand`: the upper 24 bits of `bits(i)`, divided by 2^24;
//! - `randint(lo, hi)`: `lo + (bits(i) * (hi - lo) >> 64)`, the product in 128 bits;
//! - `randn`: Box and Muller's pair. For even `i`, `r = sqrt(-2 ln u)` and `t = 2 pi v` with
//!   `u = ((bits(i) >> 11) + 1) / 2^53` and `v = (bits(i + 1) >> 11) / 2^53`; element `i` is
//!   `r cos t` and element `i + 1` is `r sin t`. Functions are computed in double precision by
//!   one portable library; the result is rounded once to the tensor's type.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of random numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random {
    key: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { key: mix(seed.wrapping_add(GOLDEN)) }
    }

    fn bits(self, index: u64) -> u64 {
        mix(self.key.wrapping_add((index.wrapping_add(1)).wrapping_mul(GOLDEN)))
    }

    /// Uniform in `0..1`.
    pub fn uniform(self, index: u64) -> f64 {
        (self.bits(index) >> 40) as f64 / f64::from(1 << 24)
    }

    /// Uniform in `low..high`; `low` if that is empty.
    pub fn integer(self, index: u64, low: i64, high: i64) -> i64 {
        let range = high.saturating_sub(low).max(0) as u128;
        let offset = (u128::from(self.bits(index)) * range) >> 64;
        low.wrapping_add(offset as i64)
    }

    /// Normal with mean 0 and deviation 1.
    pub fn normal(self, index: u64) -> f64 {
        const UNIT: f64 = (1u64 << 53) as f64;
        let even = index & !1;
        let u = ((self.bits(even) >> 11) + 1) as f64 / UNIT;
        let v = (self.bits(even + 1) >> 11) as f64 / UNIT;
        let radius = (-2.0 * libm::log(u)).sqrt();
        let angle = std::f64::consts::TAU * v;
        radius * if index == even { libm::cos(angle) } else { libm::sin(angle) }
    }
}

/// The first `count` numbers of `rand` with a seed, before they are rounded to a type.
pub fn uniform(seed: u64, count: usize) -> Vec<f64> {
    (0..count as u64).map(|index| Random::new(seed).uniform(index)).collect()
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_those_of_the_documentation() {
        // SplitMix64 of seed 0 begins with this number; our key is that output.
        assert_eq!(Random::new(0).key, 0xE220_A839_7B1D_CDAF);
        let first: Vec<f64> = (0..4).map(|at| Random::new(0).uniform(at)).collect();
        assert!(first.iter().all(|value| (0.0..1.0).contains(value)), "{first:?}");
        assert_ne!(first[0], first[1]);
    }

    #[test]
    fn normal_numbers_have_their_moments() {
        let count = 100_000;
        let values: Vec<f64> = (0..count).map(|at| Random::new(3).normal(at)).collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / count as f64;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn integers_cover_their_range() {
        let values: Vec<i64> = (0..1000).map(|at| Random::new(1).integer(at, -2, 3)).collect();
        for expected in -2..3 {
            assert!(values.contains(&expected), "{expected}");
        }
        assert!(values.iter().all(|value| (-2..3).contains(value)));
        assert_eq!(Random::new(1).integer(0, 5, 5), 5);
    }
}
