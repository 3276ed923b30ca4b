//! The benchmark protocol, as Triton's `do_bench`: each run is timed by itself after the caches
//! were flushed, at least 100 ms of warm-up come first, and at least 200 ms of runs are measured.
//!
//! Bandwidth is the bytes that a launch must move at least over the median time: each element
//! read once and each element written once. They are the sizes of the tensor arguments that the
//! kernel reads and writes (a tensor that it does both with counts twice), whether or not it
//! touches all of them. Operations are those of its matrix products, whole tiles, masked parts
//! included; there are none to report when how often they run depends on what is in memory.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::launch::{Device, KernelId, LaunchOptions};
use crate::scenario::LaunchFailure;
use tile_executor::Arg;

/// Warm-up before measuring.
const WARM_UP: Duration = Duration::from_millis(100);
/// Time of all measured runs together, at least.
const MEASURED: Duration = Duration::from_millis(200);
/// Runs at least and at most, whatever their time.
const RUNS: std::ops::RangeInclusive<usize> = 3..=2_000;
/// Wall time after which measuring ends even if the runs do not add up to [`MEASURED`]: between
/// short runs, flushing takes most of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Times of a launch in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measurement {
    /// Half of the runs took at most this.
    pub median: f64,
    /// A fifth of the runs took at most this.
    pub p20: f64,
    /// Four fifths of the runs took at most this.
    pub p80: f64,
    /// How many runs were measured.
    pub runs: usize,
}

/// Measures a launch.
///
/// # Errors
/// When the device fails.
pub fn measure(
    device: &mut dyn Device,
    kernel: KernelId,
    args: &[Arg],
    grid: [u32; 3],
) -> Result<Measurement, LaunchFailure> {
    let options = LaunchOptions::default();
    let started = Instant::now();
    while started.elapsed() < WARM_UP {
        device.launch(kernel, args, grid, &options)?;
    }
    let started = Instant::now();
    let mut times: Vec<Duration> = Vec::new();
    loop {
        device.flush_caches()?;
        times.push(device.launch(kernel, args, grid, &options)?.elapsed);
        let enough = times.iter().sum::<Duration>() >= MEASURED || started.elapsed() > PATIENCE;
        if (enough && times.len() >= *RUNS.start()) || times.len() >= *RUNS.end() {
            return Ok(Measurement::of(&times));
        }
    }
}

impl Measurement {
    /// Quantiles of the times of at least one run, interpolated between neighbors.
    pub fn of(times: &[Duration]) -> Measurement {
        let mut ms: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        ms.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let at = q * (ms.len().saturating_sub(1)) as f64;
            let low = ms.get(at.floor() as usize).copied().unwrap_or_default();
            let high = ms.get(at.ceil() as usize).copied().unwrap_or(low);
            low + (high - low) * at.fract()
        };
        Measurement {
            median: quantile(0.5),
            p20: quantile(0.2),
            p80: quantile(0.8),
            runs: times.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_runs() {
        let times: Vec<Duration> = [5, 1, 3, 2, 4].map(Duration::from_millis).to_vec();
        let measured = Measurement::of(&times);
        assert_eq!((measured.median, measured.runs), (3.0, 5));
        assert!((measured.p20 - 1.8).abs() < 1e-9 && (measured.p80 - 4.2).abs() < 1e-9);
    }
}
