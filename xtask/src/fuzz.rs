//! Runs the targets of `fuzz/` under libFuzzer.
//!
//! Coverage of code is a pass of the compiler, so the toolchain of the project will do. Memory is
//! not watched: everything but the parser that tree-sitter generates is safe code.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use xshell::{Shell, cmd};

use crate::root;

/// What makes the compiler tell libFuzzer which code an input reaches.
const COVERAGE: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Longest that one input may take, in seconds.
const PATIENCE: u32 = 30;

/// Builds the targets whose name contains `only`, or all, and runs each for `minutes`.
///
/// What a target learns stays in `fuzz/corpus`, what fails in `fuzz/artifacts`.
pub(crate) fn run(sh: &Shell, only: Option<&str>, minutes: u64) -> Result<()> {
    crate::setup::for_build(sh)?;
    let fuzz = root().join("fuzz");
    let targets = targets(sh, &fuzz, only)?;
    build(sh, &fuzz)?;
    for target in targets {
        println!("\n=== {target}");
        let program = fuzz.join("target").join(host(sh)?).join("release").join(&target);
        let (corpus, seeds) = (fuzz.join("corpus").join(&target), fuzz.join("seeds").join(&target));
        let artifacts = fuzz.join("artifacts").join(&target);
        sh.create_dir(&corpus)?;
        sh.create_dir(&artifacts)?;
        let options = [
            format!("-max_total_time={}", minutes * 60),
            format!("-timeout={PATIENCE}"),
            format!("-artifact_prefix={}/", artifacts.display()),
            "-print_final_stats=1".to_owned(),
        ];
        cmd!(sh, "{program} {options...} {corpus} {seeds}")
            .run()
            .with_context(|| format!("{target} fails; the input is in {}", artifacts.display()))?;
    }
    Ok(())
}

/// Names of targets, sorted.
fn targets(sh: &Shell, fuzz: &Path, only: Option<&str>) -> Result<Vec<String>> {
    let files = sh.read_dir(fuzz.join("fuzz_targets"))?;
    let names = files.iter().filter_map(|file| file.file_stem()?.to_str().map(str::to_owned));
    let names: Vec<String> =
        names.filter(|name| only.is_none_or(|only| name.contains(only))).collect();
    ensure!(!names.is_empty(), "fuzz/fuzz_targets has no such target");
    Ok(names)
}

fn build(sh: &Shell, fuzz: &Path) -> Result<()> {
    let host = host(sh)?;
    let _dir = sh.push_dir(fuzz);
    let _flags = sh.push_env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"));
    let _target = sh.push_env("CARGO_TARGET_DIR", fuzz.join("target"));
    // With a target named, build scripts and macros are not instrumented.
    cmd!(sh, "cargo build --release --bins --target {host}").run()?;
    Ok(())
}

/// The machine's name for compilers.
fn host(sh: &Shell) -> Result<String> {
    let version = cmd!(sh, "rustc -vV").quiet().read()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}
