//! `tile tune`: times combinations of constexpr values and launch options, fastest first.
//!
//! A combination counts only when every assert of the scenario holds under it. A value replaces
//! the scenario's variable of that name if it has one, so that a grid written with the variable
//! follows, else the launch's argument. The autotune configurations of a kernel that has no scenario
//! are timed as host code launches the kernel.

use serde_json::{Value, json};
use tile_compiler::project::{self, ItemRef, Sources};
use tile_compiler::specialization::{
    Config, Discovery, Flags, WrittenLaunch, launched_tuning, scenario_edits, scenario_variables,
};
use tile_worker::protocol::{RunRequest, timing};

use crate::analysis::Opened;
use crate::cli::{Format, InputArgs, Target, TuneArgs};
use crate::execute::as_launched;
use crate::{CommandError, Exit, execute, output, run};

/// `NAME=VALUE` pairs that are tried together.
type Combination = Vec<(String, String)>;

/// Most combinations that one call times.
const MAX_COMBINATIONS: usize = 4096;

/// Times every combination and prints them, fastest first.
pub(crate) fn run(arguments: &TuneArgs) -> Result<Exit, CommandError> {
    let flags = arguments.common.flags();
    let opened = Opened::new(&arguments.target, &InputArgs::default(), &flags)?;
    let kernel = match &arguments.target.kernel {
        Some(kernel) => kernel.clone(),
        None => opened.only_kernel()?,
    };
    let at = opened.named(&kernel)?;
    let target = Target { kernel: Some(kernel.clone()), ..arguments.target.clone() };
    let combinations = if arguments.sets.is_empty() {
        configurations(&opened, &kernel, at)?
    } else {
        product(&arguments.sets)?
    };
    let launches = launches(arguments, &opened, &kernel, at)?;
    let number = arguments.target.scenario.unwrap_or(0);
    let variables = scenario_variables(&opened.module(), &kernel, number);
    let base = RunRequest {
        device: arguments.device,
        bench: true,
        ..run::request(&target, &InputArgs::default(), &arguments.launch)?
    };
    let mut timed = Vec::new();
    for (index, combination) in combinations.iter().enumerate() {
        let mut request = configured(&base, combination, &variables, arguments)?;
        if !launches.is_empty() {
            let launch = launches.iter().find(|(config, _)| *config == index);
            let Some((_, launch)) = launch else { continue };
            request = request.as_launched(&kernel, launch);
        }
        match time(&request) {
            Ok(Some(result)) => timed.push((result, combination)),
            Ok(None) => output::note(&format!("{}: an assert fails", label(combination))),
            Err(error) if error.exit == Exit::Compile => {
                output::note(&format!("{}: {}", label(combination), error.message));
            }
            Err(error) => return Err(error),
        }
    }
    let median = |result: &Value| result["ms"]["median"].as_f64().unwrap_or(f64::INFINITY);
    timed.sort_by(|(a, _), (b, _)| median(a).total_cmp(&median(b)));
    show(arguments.format, &timed)?;
    let Some((_, best)) = timed.first() else {
        return Err(CommandError::compile("no combination compiles and passes its asserts"));
    };
    if arguments.apply {
        apply(&opened, &kernel, arguments.target.scenario, best)?;
    }
    Ok(Exit::Success)
}

/// Every combination of the values of `NAME=V1,V2,...`.
fn product(sets: &[(String, String)]) -> Result<Vec<Combination>, CommandError> {
    let mut combinations: Vec<Combination> = vec![Vec::new()];
    for (name, values) in sets {
        let values = values.split(',').map(str::trim).filter(|value| !value.is_empty());
        let values: Vec<&str> = values.collect();
        if values.is_empty() {
            return Err(CommandError::usage(format!("--set {name} names no values to try")));
        }
        combinations = combinations
            .iter()
            .flat_map(|known| {
                values.iter().map(|value| {
                    let next = (name.clone(), (*value).to_owned());
                    known.iter().cloned().chain([next]).collect()
                })
            })
            .collect();
        if combinations.len() > MAX_COMBINATIONS {
            return Err(CommandError::usage(format!(
                "these are more than {MAX_COMBINATIONS} combinations; give fewer values"
            )));
        }
    }
    Ok(combinations)
}

/// The kernel's autotune configurations.
fn configurations(
    opened: &Opened,
    kernel: &str,
    at: ItemRef,
) -> Result<Vec<Combination>, CommandError> {
    let (workspace, flags) = (&opened.workspace, Flags::default());
    let launches = Discovery::new(workspace, &flags).launches(at);
    let found = project::kernel(workspace, at);
    let configs = found.map(|kernel| launched_tuning(workspace, &kernel, &launches).configs);
    let configs = configs.unwrap_or_default();
    if configs.is_empty() {
        return Err(CommandError::usage(format!(
            "{kernel} has no autotune configurations; give values to try, such as \
             --set BLOCK_SIZE=512,1024 --set num_warps=4,8"
        )));
    }
    Ok(configs.iter().map(Config::values).collect())
}

/// What host code launches the kernel with under each of its configurations, by their positions;
/// nothing where a scenario or flags say what to time.
fn launches(
    arguments: &TuneArgs,
    opened: &Opened,
    kernel: &str,
    at: ItemRef,
) -> Result<Vec<(usize, WrittenLaunch)>, CommandError> {
    let module = opened.module();
    let has_own = module.scenarios.iter().any(|known| execute::launches(&module, known, kernel));
    let describes = !arguments.launch.args.is_empty() || arguments.launch.grid.is_some();
    if has_own || describes || !arguments.sets.is_empty() {
        return Ok(Vec::new());
    }
    match as_launched::tuned(opened, at, kernel) {
        Ok(launches) => {
            let place = launches.first().map(|(_, launch)| as_launched::place(opened, launch.site));
            output::note(&format!("as launched{}", place.unwrap_or_default()));
            Ok(launches)
        }
        Err(Some(unknown)) => Err(CommandError::usage(unknown)),
        // A run says what is missing.
        Err(None) => Ok(Vec::new()),
    }
}

/// The request with the values of a combination in it.
fn configured(
    base: &RunRequest,
    combination: &Combination,
    variables: &[String],
    arguments: &TuneArgs,
) -> Result<RunRequest, CommandError> {
    let mut request = base.clone();
    request.spec = arguments.common.flags();
    for (name, value) in combination {
        let count = || {
            let wrong = || CommandError::usage(format!("{name}={value}: {name} is a number"));
            value.parse::<u32>().map_err(|_| wrong())
        };
        match name.as_str() {
            "num_warps" => request.spec.num_warps = Some(count()?),
            "num_stages" => request.spec.num_stages = Some(count()?),
            _ if variables.contains(name) => request.args.push((name.clone(), value.clone())),
            _ => request.spec.values.push((name.clone(), value.clone())),
        }
    }
    Ok(request)
}

/// What a run takes; `None` when an assert fails.
fn time(request: &RunRequest) -> Result<Option<Value>, CommandError> {
    let mut outcome = None;
    run::send(request, &mut |result| {
        outcome = (result["ok"] == true).then(|| timing(&result));
        Ok(())
    })?;
    Ok(outcome)
}

fn show(format: Format, timed: &[(Value, &Combination)]) -> Result<(), CommandError> {
    let rows = timed.iter().map(|(result, combination)| {
        let mut row = result.clone();
        row["specialization"] = label(combination).into();
        row
    });
    match format {
        Format::Human if timed.is_empty() => Ok(()),
        Format::Human => output::text_line(&run::table(&rows.collect::<Vec<_>>()).to_string()),
        Format::Json => {
            for ((_, combination), row) in timed.iter().zip(rows) {
                let values: serde_json::Map<String, Value> =
                    combination.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                let mut row = row;
                row["values"] = values.into();
                output::json(&row)?;
            }
            Ok(())
        }
    }
}

fn label(combination: &Combination) -> String {
    let pairs = combination.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Writes the values into the scenario: where a variable is assigned, where the launch passes a
/// literal, or as a further argument of the launch.
fn apply(
    opened: &Opened,
    kernel: &str,
    number: Option<usize>,
    best: &Combination,
) -> Result<(), CommandError> {
    let (Some(file), Some(module)) =
        (opened.workspace.file(opened.file), opened.workspace.module(opened.file))
    else {
        return Ok(());
    };
    let edits = scenario_edits(&module, kernel, number.unwrap_or(0), best);
    let Some(mut edits) = edits else {
        return Err(CommandError::usage(format!("{kernel} has no scenario to write to")));
    };
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = file.text.to_string();
    for (range, value) in edits {
        text.replace_range(range.as_usize(), &value);
    }
    std::fs::write(&file.path, text)
        .map_err(|error| CommandError::usage(format!("cannot write {}: {error}", file.name)))?;
    output::note(&format!("wrote {} into {}", label(best), file.name));
    Ok(())
}
