//! `tile run` and `tile bench`: a worker does the work, this side shows it.

use std::path::PathBuf;

use comfy_table::{Table, presets};
use serde_json::Value;
use tile_worker::protocol::{Body, RunRequest, timing};
use tile_worker::{Cancel, ptxas};

use crate::cli::{BenchArgs, Format, InputArgs, LaunchArgs, RunArgs, Target};
use crate::compile::{pool, worker_error};
use crate::info::label;
use crate::workspace;
use crate::{CommandError, Exit, analysis, output};

/// Runs scenarios.
pub(crate) fn run(arguments: &RunArgs) -> Result<Exit, CommandError> {
    let save = arguments.save.iter().map(|(name, file)| (name.clone(), PathBuf::from(file)));
    let request = RunRequest {
        device: arguments.device,
        sanitize: arguments.sanitize,
        bench: arguments.bench,
        save: save.collect(),
        spec: arguments.spec.flags(),
        ..request(&arguments.target, &arguments.input, &arguments.launch)?
    };
    let mut all_ok = true;
    send(&request, &mut |result| {
        all_ok &= result["ok"] == true;
        match arguments.format {
            Format::Json => output::json(&result),
            Format::Human => output::text_line(&human(&result)),
        }
    })?;
    Ok(if all_ok { Exit::Success } else { Exit::Findings })
}

/// Times scenarios.
pub(crate) fn bench(arguments: &BenchArgs) -> Result<Exit, CommandError> {
    let request = RunRequest {
        device: arguments.device,
        bench: true,
        spec: arguments.spec.flags(),
        ..request(&arguments.target, &arguments.input, &arguments.launch)?
    };
    let mut rows = Vec::new();
    send(&request, &mut |result| {
        let timed = timing(&result);
        match arguments.format {
            Format::Json => output::json(&timed),
            Format::Human => {
                rows.push(timed);
                Ok(())
            }
        }
    })?;
    if !rows.is_empty() {
        output::text_line(&table(&rows).to_string())?;
    }
    Ok(Exit::Success)
}

/// The request for a target, without what differs between commands.
pub(crate) fn request(
    target: &Target,
    input: &InputArgs,
    launch: &LaunchArgs,
) -> Result<RunRequest, CommandError> {
    let mut path = target.path.clone();
    let mut text = None;
    if path.as_os_str() == "-" {
        path = input.stdin_name.clone().unwrap_or_else(|| "<stdin>".into());
        text = Some(workspace::read_stdin(&path).map_err(analysis::read_error)?);
    } else {
        // Fails here, where the message is not wrapped by a worker's.
        workspace::read(&path).map_err(analysis::read_error)?;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(".".as_ref());
    let site_packages = workspace::site_packages(folder);
    let chosen = tile_lsp::project_rules(folder).ptxas;
    Ok(RunRequest {
        path,
        text,
        kernel: target.kernel.clone(),
        scenario: target.scenario,
        args: launch.args.clone(),
        grid: launch.grid.clone(),
        ptxas: ptxas::find(chosen.as_deref(), site_packages.as_deref()),
        site_packages,
        ..RunRequest::default()
    })
}

/// Sends the request and passes results on as they come.
pub(crate) fn send(
    request: &RunRequest,
    on_result: &mut dyn FnMut(Value) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut failed = None;
    pool()?
        .run(request, &Cancel::default(), &mut |body| match body {
            Body::Result(result) => {
                if let Err(error) = on_result(result) {
                    failed = Some(error);
                }
            }
            Body::Progress(line) => output::note(&line),
            _ => {}
        })
        .map_err(worker_error)?;
    failed.map_or(Ok(()), Err)
}

/// A run's result for people.
fn human(result: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let verdict = if result["ok"] == true { "ok" } else { "FAILED" };
    let mut lines = vec![format!(
        "{} on {}: {verdict}{}",
        text(&result["kernel"]),
        text(&result["device"]),
        speed(result)
    )];
    for assert in result["asserts"].as_array().into_iter().flatten() {
        let verdict = if assert["ok"] == true { "holds" } else { "FAILED" };
        let mut line = format!("  line {}: assert {verdict}", assert["line"]);
        if assert["max_abs"].is_number() {
            line += &format!(
                " (largest difference {:.2e}, relative {:.2e})",
                assert["max_abs"].as_f64().unwrap_or(f64::NAN),
                assert["max_rel"].as_f64().unwrap_or(f64::NAN)
            );
        }
        lines.push(line);
        lines.extend(assert["message"].as_str().map(|message| format!("    {message}")));
    }
    for finding in result["findings"].as_array().into_iter().flatten() {
        lines.push(format!("  line {}: {}", finding["line"], text(&finding["message"])));
    }
    for print in result["prints"].as_array().into_iter().flatten() {
        lines.push(format!("  | {}", text(print)));
    }
    for (name, tensor) in result["outputs"].as_object().into_iter().flatten() {
        let number = |key: &str| tensor[key].as_f64().map_or("-".to_owned(), |n| format!("{n:.6}"));
        lines.push(format!(
            "  {name}: {}{} min {} max {} mean {} nan {}",
            text(&tensor["dtype"]),
            tensor["shape"],
            number("min"),
            number("max"),
            number("mean"),
            tensor["nan"]
        ));
    }
    lines.join("\n")
}

/// `, 0.005 ms, 3400 GB/s`, as far as it was measured.
fn speed(result: &Value) -> String {
    let median = result["ms"]["median"].as_f64().or_else(|| result["ms"].as_f64());
    let mut text = median.map_or_else(String::new, |ms| format!(", {ms:.3} ms"));
    for (key, unit) in [("gbps", "GB/s"), ("tflops", "TFLOP/s")] {
        if let Some(rate) = result[key].as_f64().filter(|rate| *rate >= 0.05) {
            text += &format!(", {rate:.1} {unit}");
        }
    }
    text
}

/// Timings for people.
pub(crate) fn table(rows: &[Value]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "kernel",
        "for",
        "device",
        "median ms",
        "p20",
        "p80",
        "GB/s",
        "TFLOP/s",
        "registers",
        "shared",
    ]);
    for row in rows {
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Object(specialization) => label(specialization),
            Value::Null => "-".to_owned(),
            value => value.to_string(),
        };
        let number = |value: &Value, digits: usize| {
            value.as_f64().map_or("-".to_owned(), |n| format!("{n:.digits$}"))
        };
        let ms = &row["ms"];
        table.add_row([
            plain(&row["kernel"]),
            plain(&row["specialization"]),
            plain(&row["device"]),
            number(&ms["median"], 4),
            number(&ms["p20"], 4),
            number(&ms["p80"], 4),
            number(&row["gbps"], 1),
            number(&row["tflops"], 2),
            plain(&row["registers"]),
            plain(&row["shared_bytes"]),
        ]);
    }
    table
}
