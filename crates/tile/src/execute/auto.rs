//! `--arg auto`: arguments for a kernel of which nothing but the text is known.

use tile_compiler::specialization::discover;
use tile_runner::auto;
use tile_runner::scenario::{self, Arguments, ScenarioOptions, Value};
use tile_worker::protocol::{Failure, FailureKind, RunRequest};

use super::kernel_info;
use crate::analysis::Opened;
use crate::failure::{command_failure, launch_failure, usage};

/// The request's own arguments and, for the others and the grid, what is chosen.
pub(super) fn complete(
    request: &RunRequest,
    opened: &Opened,
    kernel: &str,
) -> Result<(Vec<(String, String)>, String), Failure> {
    let at = opened.named(kernel).map_err(command_failure)?;
    let unknown = || usage(format!("{kernel} cannot be launched"));
    let info = kernel_info(opened, at).ok_or_else(unknown)?;
    let found = discover(&opened.workspace, at, &opened.options.flags).into_iter().next();
    let (given, grid) = given(request, opened)?;
    let spec = auto::specialize_on(&found.ok_or_else(unknown)?, &info, &given);
    let spec = spec.map_err(launch_failure)?;
    let lowered = opened.options.rules.lower_kernel(&opened.workspace, at, &spec);
    let func = lowered.function.ok_or_else(|| {
        let message = lowered.diagnostics.into_iter().next().map(|first| first.message);
        Failure::new(FailureKind::Compile, message.unwrap_or_default())
    })?;
    let spec = lowered.repaired.unwrap_or(spec);
    let chosen = auto::choose(&spec, &func, &given, grid).map_err(launch_failure)?;
    let mut args = request.args.clone();
    args.extend(chosen.args);
    Ok((args, request.grid.clone().unwrap_or(chosen.grid)))
}

/// What the request gives, evaluated.
fn given(request: &RunRequest, opened: &Opened) -> Result<(Arguments, Option<[u32; 3]>), Failure> {
    let module = opened.module();
    let mut expressions = request.args.clone();
    expressions.extend(request.grid.clone().map(|grid| (GRID.to_owned(), grid)));
    let mut given =
        scenario::evaluate_arguments(&module, &expressions, &ScenarioOptions::default())
            .map_err(|error| usage(error.to_string()))?;
    let grid = given.values.pop_if(|(name, _)| name == GRID);
    Ok((given, grid.map(|(_, value)| extents(&value))))
}

/// No parameter's name.
const GRID: &str = "--grid";

fn extents(value: &Value) -> [u32; 3] {
    let extent = |value: &Value| match value {
        Value::Int(extent) => u32::try_from(*extent).unwrap_or(1),
        _ => 1,
    };
    let mut grid = [1; 3];
    match value {
        Value::Tuple(items) => {
            for (axis, item) in grid.iter_mut().zip(items) {
                *axis = extent(item);
            }
        }
        value => grid[0] = extent(value),
    }
    grid
}

/// What was chosen, in one line.
pub(super) fn describe(kernel: &str, request: &RunRequest) -> String {
    let pairs: Vec<String> =
        request.args.iter().map(|(name, expression)| format!("{name}={expression}")).collect();
    format!("{kernel}[{}]({})", request.grid.as_deref().unwrap_or("(1,)"), pairs.join(", "))
}
