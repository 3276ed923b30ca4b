//! Figures of many times.

use std::fmt;
use std::time::Duration;

/// Times in milliseconds, sorted.
pub struct Summary(Vec<f64>);

impl Summary {
    /// Sums up `times`.
    pub fn of(times: &[Duration]) -> Summary {
        let mut times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        Summary(times)
    }

    fn quantile(&self, q: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((q * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, p95, max] = [0.5, 0.95, 1.0].map(|q| self.quantile(q));
        let count = self.0.len();
        write!(f, "{median:8.2} ms p50 {p95:8.2} ms p95 {max:8.2} ms max  of {count}")
    }
}
