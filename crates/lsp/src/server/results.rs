//! Results of runs for clients that do not show them by themselves.

use std::fmt::Write;

use serde_json::Value;
use tile_worker::ptxas;
use tower_lsp::Client;
use tower_lsp::ls_types::MessageType;

/// One line as a message, the details in the log.
pub(crate) async fn show(client: &Client, results: &[Value], bench: bool) {
    let mut log = String::new();
    for result in results {
        let line = if bench { bench_line(result) } else { run_line(result) };
        let good = bench || result["ok"] == true;
        let level = if good { MessageType::INFO } else { MessageType::ERROR };
        client.show_message(level, &line).await;
        let _ = writeln!(log, "{line}");
        details(result, &mut log);
    }
    client.log_message(MessageType::INFO, log).await;
}

/// What the specializations of a kernel take: how many, and the details in the log.
pub(crate) async fn show_measured(client: &Client, rows: &[Value]) {
    let mut log = String::new();
    for row in rows {
        let found = &row["resources"];
        let line = match row["error"].as_str() {
            Some(error) => error.lines().next().unwrap_or_default().to_owned(),
            None if found.is_null() => format!("not measured: {}", ptxas::MISSING),
            None => format!(
                "{} registers, {} B shared, {} B spilled, occupancy {:.2}",
                found["registers"],
                found["sharedBytes"],
                found["spillLoadBytes"].as_u64().unwrap_or(0)
                    + found["spillStoreBytes"].as_u64().unwrap_or(0),
                found["occupancy"].as_f64().unwrap_or(0.0)
            ),
        };
        let _ = writeln!(log, "{}: {line}", text(&row["specialization"]));
    }
    let message = format!("{} configurations were measured; the log lists them", rows.len());
    client.show_message(MessageType::INFO, message).await;
    client.log_message(MessageType::INFO, log).await;
}

fn run_line(result: &Value) -> String {
    let kernel = text(&result["kernel"]);
    let device = text(&result["device"]);
    let asserts = result["asserts"].as_array().map_or(0, Vec::len);
    let verdict = match (result["ok"] == true, asserts) {
        (true, 0) => "ran, nothing asserted".to_owned(),
        (true, 1) => "1 assertion holds".to_owned(),
        (true, count) => format!("{count} assertions hold"),
        (false, _) => problem(result),
    };
    let time = result["ms"].as_f64().map(|ms| format!(" · {ms:.4} ms")).unwrap_or_default();
    format!("{kernel} on {device}: {verdict}{time}")
}

/// The first thing that went wrong.
fn problem(result: &Value) -> String {
    if let Some(finding) = result["findings"].as_array().and_then(|all| all.first()) {
        return format!("line {}: {}", finding["line"], text(&finding["message"]));
    }
    let asserts = result["asserts"].as_array().into_iter().flatten();
    let failed = asserts.into_iter().find(|assert| assert["ok"] == false);
    failed.map_or("failed".to_owned(), |assert| {
        let error = assert["max_abs"].as_f64();
        let error = error.map(|error| format!(", off by up to {error}")).unwrap_or_default();
        format!("the assertion on line {} fails{error}", assert["line"])
    })
}

fn bench_line(result: &Value) -> String {
    let kernel = text(&result["kernel"]);
    let ms = result["ms"]["median"].as_f64().unwrap_or(f64::NAN);
    let rate = |name: &str, unit: &str| {
        let value = result[name].as_f64().filter(|value| *value > 0.0);
        value.map(|value| format!(" · {value:.1} {unit}")).unwrap_or_default()
    };
    let rates = [rate("gbps", "GB/s"), rate("tflops", "TFLOP/s")].concat();
    format!("{kernel} on {}: {ms:.4} ms{rates}", text(&result["device"]))
}

fn details(result: &Value, log: &mut String) {
    let outputs = result["outputs"].as_object().into_iter().flatten();
    for (name, output) in outputs {
        let _ = writeln!(
            log,
            "  {name}: {} {} min {} max {} mean {} nan {}",
            text(&output["dtype"]),
            output["shape"],
            output["min"],
            output["max"],
            output["mean"],
            output["nan"]
        );
    }
    for finding in result["findings"].as_array().into_iter().flatten() {
        let _ = writeln!(log, "  line {}: {}", finding["line"], text(&finding["message"]));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
