//! Kernels from source through the front end to the CPU executor, checked by their scenarios:
//! every assertion holds, and sanitizing finds nothing.

use std::fmt::Write;
use std::path::Path;

use tile_compiler::builtins::TritonVersion;
use tile_compiler::eval::infer_file;
use tile_compiler::project::Sources;
use tile_compiler::source::LineIndex;
use tile_compiler::specialization::ArgSpec;
use tile_runner::cpu::CpuDevice;
use tile_runner::launch::{KernelCompiler, LaunchRecord, Session, SessionOptions, count_flops};
use tile_runner::report::RunResult;
use tile_runner::scenario::{self, Outcome, ScenarioOptions, Value};

#[path = "kernels/front_end.rs"]
mod front_end;

use front_end::{FrontEnd, front_end};

/// The operations of a launch's matrix products, counted without running it.
fn count(front_end: &mut FrontEnd, record: &LaunchRecord, outcome: &Outcome) -> Option<u64> {
    let func = front_end.tile_ir(&record.kernel, &record.specialization).ok()?;
    let launch = outcome.launches.iter().find(|launch| *launch.kernel == record.kernel)?;
    let runtime = launch.args.iter().zip(record.specialization.args.values());
    let bits = runtime.filter(|(_, spec)| matches!(spec, ArgSpec::Runtime { .. }));
    let bits: Vec<u64> = bits
        .map(|(arg, _)| match arg.value {
            Value::Int(value) => value as u64,
            _ => 0,
        })
        .collect();
    count_flops(&func, &bits, record.grid)
}

/// Runs every scenario of a file; what is wrong, one line each.
fn check(path: &Path, text: &str) -> String {
    let mut compiler = front_end(path, text);
    let module = compiler.sources.module(compiler.file).expect("the file was added");
    let lines = LineIndex::new(text);
    let mut wrong = String::new();
    for scenario in &module.scenarios {
        let line = lines.line(scenario.range.start) + 1;
        let mut device = CpuDevice::new();
        let options = SessionOptions { sanitize: true, ..SessionOptions::default() };
        let mut session = Session::new(&mut compiler, &mut device, options);
        match scenario::run(&module, scenario, &mut session, &ScenarioOptions::default()) {
            Ok(outcome) => {
                let result = RunResult::new("cpu", session.records(), &outcome, &lines);
                let asserts = result.asserts.iter().filter(|assert| !assert.ok);
                assert!(!result.asserts.is_empty(), "line {line} asserts nothing");
                for assert in asserts {
                    let _ = writeln!(wrong, "line {}: {:?}", assert.line, assert);
                }
                for record in session.records() {
                    let executed = record.report.flops;
                    let counted = count(&mut front_end(path, text), record, &outcome);
                    if executed != counted {
                        let _ = writeln!(
                            wrong,
                            "line {line}: {executed:?} operations, counted {counted:?}"
                        );
                    }
                }
                for found in &result.findings {
                    let _ = writeln!(wrong, "line {}: {}", found.place.line, found.message);
                }
            }
            Err(error) => {
                let line = lines.line(error.at.start) + 1;
                let _ = writeln!(wrong, "line {line}: {error}");
            }
        }
    }
    assert!(!module.scenarios.is_empty(), "no scenarios:\n{text}");
    wrong
}

fn check_file(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(name);
    let text = std::fs::read_to_string(&path).expect("the file is there");
    let wrong = check(&path, &text);
    assert!(wrong.is_empty(), "{name}:\n{wrong}");
}

#[test]
fn pointwise() {
    check_file("pointwise.tile");
}

#[test]
fn rows() {
    check_file("rows.tile");
}

#[test]
fn matrices() {
    check_file("matrices.tile");
}

/// Kernels that import helpers through modules which stand in for what may not be installed.
#[test]
fn generated() {
    check_file("generated/kernels.py");
}

/// Inference finds nothing wrong in generated kernels and their helpers.
#[test]
fn generated_kernels_are_inferred() {
    for name in ["generated/kernels.py", "generated/helpers.py"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(name);
        let text = std::fs::read_to_string(&path).expect("the file is there");
        let compiler = front_end(&path, &text);
        let found = infer_file(&compiler.sources, compiler.file, TritonVersion::default());
        for kernel in &found.kernels {
            let messages: Vec<_> = kernel.diagnostics.iter().map(|found| &found.message).collect();
            assert!(messages.is_empty(), "{name}, {}: {messages:?}", kernel.name);
        }
    }
}

/// What the language computes: the blocks of its chapters that say `run`.
#[test]
fn values() {
    let chapters = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/language");
    let mut blocks = 0;
    for chapter in std::fs::read_dir(chapters).expect("the chapters are there") {
        let path = chapter.expect("a chapter").path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let chapter = std::fs::read_to_string(&path).expect("the chapter is readable");
        for block in chapter.split("```python run").skip(1) {
            let code = block.split_once('\n').and_then(|(_, rest)| rest.split_once("```"));
            let (code, _) = code.expect("a block ends");
            let wrong = check(
                Path::new("values.py"),
                &format!("import triton\nimport triton.language as tl\n{code}"),
            );
            let at = path.display();
            assert!(wrong.is_empty(), "{at}, lines from two before the block:\n{wrong}\n{code}");
            blocks += 1;
        }
    }
    assert!(blocks > 7, "too few blocks: {blocks}");
}
