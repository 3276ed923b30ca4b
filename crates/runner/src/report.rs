//! What `tile run` and `tile bench` print with `--format json`, one object per line.

use indexmap::IndexMap;
use serde::Serialize;
use tile_compiler::source::LineIndex;

use crate::bench::Measurement;
use crate::launch::LaunchRecord;
use crate::scenario::{AssertOutcome, Outcome};
use tile_executor::Finding;

/// What running a scenario found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// The kernel that was launched; the first, if several were.
    pub kernel: String,
    /// The device's name.
    pub device: String,
    /// True when every assertion holds and nothing was found.
    pub ok: bool,
    /// Assertions in order.
    pub asserts: Vec<AssertResult>,
    /// What is wrong with the kernels at run time.
    pub findings: Vec<Finding>,
    /// The tensors that launches wrote, by the name first bound to them.
    pub outputs: IndexMap<String, OutputResult>,
    /// Time of all launches in milliseconds: what the benchmark measured, else of one run each.
    pub ms: f64,
    /// Gigabytes per second that the launches moved at least.
    pub gbps: Option<f64>,
    /// Tera-operations per second of matrix products; `None` without any.
    pub tflops: Option<f64>,
    /// What the kernels printed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prints: Vec<String>,
}

/// What one `assert` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssertResult {
    /// Line, from 1.
    pub line: u32,
    /// True when it holds.
    pub ok: bool,
    /// Largest absolute difference, of `allclose`; `None` as well when it is NaN or infinite.
    pub max_abs: Option<f64>,
    /// Largest relative difference, of `allclose`.
    pub max_rel: Option<f64>,
    /// What differs, when it does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What people want to know of a tensor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputResult {
    /// Extents.
    pub shape: Vec<usize>,
    /// Element type in Triton's short spelling.
    pub dtype: String,
    /// Smallest number; `None` when there is none or it is infinite.
    pub min: Option<f64>,
    /// Largest number.
    pub max: Option<f64>,
    /// Mean of the numbers.
    pub mean: Option<f64>,
    /// How many elements are NaN.
    pub nan: usize,
}

/// What a benchmark of one kernel and configuration measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchResult {
    /// The kernel.
    pub kernel: String,
    /// Arguments by parameter, as labels show them.
    pub specialization: IndexMap<String, String>,
    /// The device's name.
    pub device: String,
    /// Times.
    pub ms: Measurement,
    /// Gigabytes per second that the launch moved at least.
    pub gbps: Option<f64>,
    /// Tera-operations per second of matrix products.
    pub tflops: Option<f64>,
    /// Registers per thread, on a GPU.
    pub registers: Option<u32>,
    /// Shared memory per CTA, on a GPU.
    pub shared_bytes: Option<u32>,
}

impl RunResult {
    /// The result of a scenario whose launches are `records`.
    pub fn new(
        device: &str,
        records: &[LaunchRecord],
        outcome: &Outcome,
        lines: &LineIndex,
    ) -> RunResult {
        let asserts: Vec<AssertResult> =
            outcome.asserts.iter().map(|found| AssertResult::new(found, lines)).collect();
        let mut findings: Vec<Finding> = Vec::new();
        for finding in records.iter().flat_map(|record| &record.report.findings) {
            // A launch in a loop finds the same again.
            let same =
                |known: &&mut Finding| known.kind == finding.kind && known.place == finding.place;
            match findings.iter_mut().find(same) {
                Some(known) => known.count += finding.count,
                None => findings.push(finding.clone()),
            }
        }
        let ms = records.iter().map(launch_ms).sum::<f64>();
        let bytes: u64 = records.iter().map(|record| record.bytes).sum();
        let flops: Option<u64> =
            records.iter().filter_map(|record| record.report.flops).reduce(|a, b| a + b);
        RunResult {
            kernel: records.first().map(|record| record.kernel.clone()).unwrap_or_default(),
            device: device.to_owned(),
            ok: asserts.iter().all(|assert| assert.ok) && findings.is_empty(),
            asserts,
            findings,
            outputs: outputs(records, outcome),
            ms,
            gbps: rate(bytes as f64 / 1e9, ms),
            tflops: flops.and_then(|flops| rate(flops as f64 / 1e12, ms)),
            prints: records.iter().flat_map(|record| record.report.prints.clone()).collect(),
        }
    }
}

/// Milliseconds of a launch.
fn launch_ms(record: &LaunchRecord) -> f64 {
    match record.measurement {
        Some(measured) => measured.median,
        None => record.report.elapsed.as_secs_f64() * 1e3,
    }
}

/// An amount over milliseconds, per second; `None` when there is no amount or no time.
fn rate(amount: f64, ms: f64) -> Option<f64> {
    (amount > 0.0 && ms > 0.0).then(|| amount / (ms / 1e3))
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

impl AssertResult {
    fn new(found: &AssertOutcome, lines: &LineIndex) -> AssertResult {
        let comparison = found.comparison;
        let message = comparison.filter(|_| !found.ok).and_then(|found| {
            let (at, left, right) = found.first?;
            let (outside, count) = (found.outside, found.count);
            Some(format!(
                "{outside} of {count} elements differ; the first is element {at}: {left} where {right} is expected"
            ))
        });
        AssertResult {
            line: lines.line(found.at.start) + 1,
            ok: found.ok,
            max_abs: comparison.and_then(|found| finite(found.max_abs)),
            max_rel: comparison.and_then(|found| finite(found.max_rel)),
            message,
        }
    }
}

fn outputs(records: &[LaunchRecord], outcome: &Outcome) -> IndexMap<String, OutputResult> {
    let mut outputs = IndexMap::new();
    for &id in records.iter().flat_map(|record| &record.written) {
        let storage = outcome.store.get(id);
        let mut tensors = outcome.tensors().filter(|(_, tensor)| tensor.storage == id);
        let named = tensors.clone().find(|(name, _)| *name == storage.name);
        let Some((_, tensor)) = named.or_else(|| tensors.next()) else { continue };
        let summary = outcome.store.read(tensor).summary();
        outputs.entry(storage.name.clone()).or_insert_with(|| OutputResult {
            shape: tensor.layout.shape.clone(),
            dtype: tensor.dtype.name().to_owned(),
            min: summary.min.and_then(finite),
            max: summary.max.and_then(finite),
            mean: summary.mean.and_then(finite),
            nan: summary.nan,
        });
    }
    outputs
}

impl BenchResult {
    /// The result of a measured launch; `None` if it was not measured. `resources` are the
    /// kernel's, where the device has such; `flops` those of its matrix products if the device
    /// did not count them.
    pub fn new(
        device: &str,
        record: &LaunchRecord,
        resources: Option<crate::launch::KernelResources>,
        flops: Option<u64>,
    ) -> Option<BenchResult> {
        let ms = record.measurement?;
        let spec = &record.specialization;
        let mut specialization: IndexMap<String, String> =
            spec.args.iter().map(|(name, arg)| (name.to_string(), arg.to_string())).collect();
        specialization.insert("num_warps".to_owned(), spec.options.num_warps.to_string());
        specialization.insert("num_stages".to_owned(), spec.options.num_stages.to_string());
        let flops = record.report.flops.or(flops);
        Some(BenchResult {
            kernel: record.kernel.clone(),
            specialization,
            device: device.to_owned(),
            ms,
            gbps: rate(record.bytes as f64 / 1e9, ms.median),
            tflops: flops.and_then(|flops| rate(flops as f64 / 1e12, ms.median)),
            registers: resources.map(|resources| resources.registers),
            shared_bytes: resources.map(|resources| resources.shared_bytes),
        })
    }
}
