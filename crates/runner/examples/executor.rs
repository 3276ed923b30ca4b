//! Times the launches of a file's scenarios on the CPU executor:
//! `cargo run --release -p tile-runner --example executor -- FILE [REPEAT]`.
//!
//! Each scenario runs `REPEAT` times. Prints one JSON object: for each launch of each scenario its
//! kernel and the milliseconds of each run, and the text of every assertion that does not hold.

use std::error::Error;
use std::path::Path;

use serde_json::json;
use tile_compiler::project::Sources;
use tile_compiler::source::LineIndex;
use tile_runner::cpu::CpuDevice;
use tile_runner::launch::{Session, SessionOptions};
use tile_runner::report::RunResult;
use tile_runner::scenario::{self, ScenarioOptions};

#[path = "../tests/kernels/front_end.rs"]
mod front_end;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: executor FILE [REPEAT]")?;
    let repeat: usize = args.next().map_or(Ok(1), |text| text.parse())?;
    let text = std::fs::read_to_string(&file)?;
    let folder = Path::new(&file).parent().unwrap_or(Path::new("")).to_owned();
    let mut compiler = front_end::front_end(Path::new(&file), &text);
    let module = compiler.sources.module(compiler.file).ok_or("the file has no module")?;
    let lines = LineIndex::new(&text);
    let options = ScenarioOptions { folder, ..ScenarioOptions::default() };
    let mut scenarios = Vec::new();
    for scenario in &module.scenarios {
        let mut launches: Vec<(String, Vec<f64>)> = Vec::new();
        let mut failed = Vec::new();
        for run in 0..repeat {
            let mut device = CpuDevice::new();
            let mut session = Session::new(&mut compiler, &mut device, SessionOptions::default());
            let outcome = scenario::run(&module, scenario, &mut session, &options)
                .map_err(|error| format!("line {}: {error}", lines.line(error.at.start) + 1))?;
            let result = RunResult::new("cpu", session.records(), &outcome, &lines);
            for (at, record) in session.records().iter().enumerate() {
                if run == 0 {
                    launches.push((record.kernel.clone(), Vec::new()));
                }
                launches[at].1.push(record.report.elapsed.as_secs_f64() * 1e3);
            }
            failed = result.asserts.into_iter().filter(|assert| !assert.ok).collect();
        }
        let launches: Vec<_> =
            launches.iter().map(|(kernel, ms)| json!({ "kernel": kernel, "ms": ms })).collect();
        let line = lines.line(scenario.range.start) + 1;
        scenarios.push(json!({ "line": line, "launches": launches, "failed": failed }));
    }
    println!("{}", json!({ "scenarios": scenarios }));
    Ok(())
}
