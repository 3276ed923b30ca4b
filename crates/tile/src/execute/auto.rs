//! `--arg auto`: arguments for a kernel of which nothing but the text is known.
//!
//! Integers get one value, and buffers the size that the kernel's own address arithmetic then asks
//! for: the CPU executor runs it once with empty buffers and notes how far it reaches.

use std::collections::BTreeSet;
use std::time::Duration;

use tile_compiler::specialization::{ArgSpec, Specialization, discover};
use tile_runner::cpu::{Arg, Buffers, Kernel, Options};
use tile_runner::scenario::{self, ScenarioOptions, Value};
use tile_worker::protocol::{Failure, FailureKind, RunRequest};

use super::usage;
use crate::analysis::Opened;

/// What an integer argument is when nothing says otherwise: enough for some tiles, and divisible.
const INTEGER: i128 = 1024;

/// How long the executor may look.
const DEADLINE: Duration = Duration::from_secs(20);

/// `NAME=EXPR` for every parameter that the request does not give, in parameter order.
pub(super) fn arguments(
    request: &RunRequest,
    opened: &Opened,
    kernel: &str,
) -> Result<Vec<(String, String)>, Failure> {
    let spec = specialization(opened, kernel)?;
    let given: Vec<(String, String)> =
        request.args.iter().filter(|(_, text)| !text.is_empty()).cloned().collect();
    let grid = request.grid.clone().unwrap_or_else(|| "(1,)".to_owned());
    let module = opened.module();
    let mut expressions = given.clone();
    expressions.push(("grid".to_owned(), grid));
    let values = scenario::evaluate_arguments(&module, &expressions, &ScenarioOptions::default())
        .map_err(|error| usage(format!("--arg {}: {}", error.name, error.error.message)))?
        .values;
    let sizes = sizes(opened, kernel, &spec, &values)?;
    let known: BTreeSet<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
    let mut chosen = given.clone();
    for (seed, (name, arg)) in spec.args.iter().enumerate() {
        if known.contains(&**name) {
            continue;
        }
        let expression = match arg {
            ArgSpec::Runtime { signature, .. } => match signature.strip_prefix('*') {
                Some(dtype) => {
                    let dtype = dtype.trim_start_matches('k');
                    let size = sizes.iter().find(|(known, _)| known == &**name);
                    buffer(dtype, size.map_or(1, |(_, size)| *size), seed)
                }
                None if signature.starts_with("fp") || signature.starts_with("bf") => {
                    "0.5".to_owned()
                }
                None => INTEGER.to_string(),
            },
            ArgSpec::Constexpr(value) => value.to_string(),
            ArgSpec::Tuple(_) => {
                return Err(usage(format!("--arg auto cannot make the tuple `{name}`; give it")));
            }
        };
        chosen.push((name.to_string(), expression));
    }
    Ok(chosen)
}

fn specialization(opened: &Opened, kernel: &str) -> Result<Specialization, Failure> {
    let found = opened.jit_function(kernel).map(|(_, at)| at);
    let specs = found.map(|at| discover(&opened.workspace, at, &opened.options.flags));
    let first = specs.and_then(|specs| specs.into_iter().next());
    first.ok_or_else(|| usage(format!("there is no kernel `{kernel}`")))
}

/// How many elements of each buffer the kernel reaches.
fn sizes(
    opened: &Opened,
    kernel: &str,
    spec: &Specialization,
    given: &[(String, Value)],
) -> Result<Vec<(String, u64)>, Failure> {
    let function = opened.lower_as(kernel, spec).map_err(|diagnostics| {
        let message = diagnostics.into_iter().next().map(|first| first.message);
        Failure::new(FailureKind::Compile, message.unwrap_or_default())
    })?;
    let given = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, v)| v);
    let executable = Kernel::compile(&function)
        .map_err(|error| Failure::new(FailureKind::Compile, error.to_string()))?;
    let mut buffers = Buffers::new();
    let (mut arguments, mut names) = (Vec::new(), Vec::new());
    for param in &function.params {
        arguments.push(match param.signature.strip_prefix('*') {
            Some(dtype) => {
                let dtype = dtype.trim_start_matches('k');
                let mut dtypes = scenario::DType::ALL.iter();
                let dtype = dtypes.find(|known| known.name() == dtype);
                let Some(dtype) = dtype else {
                    return Err(usage(format!("--arg auto: no buffer of `{}`", param.signature)));
                };
                names.push((param.name.to_string(), dtype.bytes() as u64));
                let id = buffers.add(&*param.name, dtype.scalar(), &[]);
                Arg::Pointer(buffers.address(id))
            }
            None => match given(&param.name) {
                Some(Value::Int(value)) => Arg::Int(*value),
                Some(Value::Bool(value)) => Arg::Int(i128::from(*value)),
                Some(Value::Float(value)) => Arg::Float(*value),
                _ if param.signature.contains('f') => Arg::Float(0.5),
                _ => Arg::Int(INTEGER),
            },
        });
    }
    let options = Options { probe: true, deadline: Some(DEADLINE), ..Options::default() };
    let report = executable
        .launch(&mut buffers, &arguments, grid_of(given("grid")), &options)
        .map_err(|error| Failure::new(FailureKind::Device, error.to_string()))?;
    let reached = names.into_iter().zip(report.extents);
    Ok(reached
        .map(|((name, size), extent)| {
            let bytes = extent.map_or(0, |(_, last)| u64::try_from(last + 1).unwrap_or(0));
            (name, bytes.div_ceil(size).max(1))
        })
        .collect())
}

/// A buffer of random numbers, or of zeros where numbers may be indices.
fn buffer(dtype: &str, size: u64, seed: usize) -> String {
    if dtype.starts_with("fp") || dtype.starts_with("bf") {
        format!("randn({size}, dtype={dtype}, seed={seed})")
    } else {
        format!("zeros({size}, dtype={dtype})")
    }
}

fn grid_of(value: Option<&Value>) -> [u32; 3] {
    let extent = |value: &Value| match value {
        Value::Int(extent) => u32::try_from(*extent).unwrap_or(1),
        _ => 1,
    };
    let mut grid = [1; 3];
    match value {
        Some(Value::Tuple(items)) => {
            for (axis, item) in grid.iter_mut().zip(items) {
                *axis = extent(item);
            }
        }
        Some(value) => grid[0] = extent(value),
        None => {}
    }
    grid
}

/// What was chosen, in one line.
pub(super) fn describe(kernel: &str, arguments: &[(String, String)], grid: Option<&str>) -> String {
    let pairs: Vec<String> =
        arguments.iter().map(|(name, expression)| format!("{name}={expression}")).collect();
    format!("{kernel}[{}]({})", grid.unwrap_or("(1,)"), pairs.join(", "))
}
