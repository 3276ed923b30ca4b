//! Every check of the project, from formatting to editors.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use xshell::{Shell, cmd};

use crate::suite::{Counts, Suite, tee};
use crate::{PROFILE, build_tile, corpora, examples, grammar, has_scenario, program, root, setup};

/// Packages that must not reach what stands beside them: the editor's half links no LLVM and no
/// driver, the compiler speaks no protocol.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("tile-compiler", &["lsp-types", "tower-lsp-server", "cudarc", "llvm-sys", "tokio"]),
    ("tile-codegen", &["lsp-types", "tower-lsp-server", "cudarc"]),
    ("tile-executor", &["lsp-types", "tower-lsp-server", "cudarc", "llvm-sys", "tokio"]),
    ("tile-runner", &["lsp-types", "tower-lsp-server", "llvm-sys"]),
    ("tile-worker", &["lsp-types", "tower-lsp-server", "cudarc", "llvm-sys"]),
    ("tile-lsp", &["cudarc", "llvm-sys"]),
];

/// Runs the checks whose name contains `only`, or all.
pub(crate) fn run(sh: &Shell, only: Option<&str>) -> Result<ExitCode> {
    setup::for_build(sh)?;
    // What the editors' tests take comes through the network, and cargo has work meanwhile.
    let editors = std::thread::spawn(|| setup::for_tests(&crate::shell()?));
    let mut suite = Suite::new(only);
    suite.check("format", || Ok(cmd!(sh, "cargo fmt --all --check").quiet().run()?));
    suite.check("clippy", || clippy(sh));
    suite.counted("layers", || layers(sh));
    let tile = build(sh, &suite)?;
    editors.join().map_err(|_| anyhow!("setup panicked"))??;
    // Everything is there: this finds Node.js for the checks below.
    setup::for_tests(sh)?;
    suite.check("grammar", || grammar::generate(true));
    // Tests of the code generator and of the command line measure with the assembler.
    suite.check("assembler", || Ok(cmd!(sh, "{tile} doctor --fix").quiet().run()?));
    suite.counted("rust tests", || rust_tests(sh));
    suite.counted("extension", || extension(sh));
    suite.counted("examples", || run_examples(sh, &tile));
    suite.counted("corpora", || corpora::check(sh, &tile));
    suite.counted("neovim", || {
        let others = corpora::folders(sh)?.into_iter();
        let others = others.flat_map(|folder| [OsString::from("--others"), folder.into()]);
        node_suite(sh, "tests/neovim/run.mjs", &tile, &others.collect::<Vec<_>>())
    });
    suite.counted("vscode", || node_suite(sh, "tests/vscode/e2e.mjs", &tile, &[]));
    Ok(suite.finish())
}

/// Builds what the wanted checks run, and returns the path of `tile`. Cargo builds tests with features
/// of their own; so where tests are wanted, the programs are those that it builds beside them, and
/// nothing is built twice.
fn build(sh: &Shell, suite: &Suite<'_>) -> Result<PathBuf> {
    if !suite.wants("rust tests") && !suite.wants("corpora") {
        return build_tile(sh);
    }
    let command = cmd!(sh, "cargo test --quiet --profile {PROFILE} --workspace --no-run");
    command.quiet().run().context("the tests do not build")?;
    Ok(program("tile"))
}

fn clippy(sh: &Shell) -> Result<()> {
    Ok(cmd!(
        sh,
        "cargo clippy --quiet --profile {PROFILE} --workspace --all-targets -- -D warnings"
    )
    .quiet()
    .run()?)
}

/// One test for each edge that must not exist.
fn layers(sh: &Shell) -> Result<Counts> {
    let mut counts = Counts::default();
    for (package, forbidden) in FORBIDDEN {
        let tree =
            cmd!(sh, "cargo tree --quiet --package {package} --edges normal,build --prefix none")
                .quiet()
                .read()?;
        for name in *forbidden {
            let found = tree.lines().any(|line| line.split(' ').next() == Some(name));
            if found {
                println!("{package} must not depend on {name}");
            }
            counts.failed += usize::from(found);
            counts.passed += usize::from(!found);
        }
    }
    Ok(counts)
}

fn rust_tests(sh: &Shell) -> Result<Counts> {
    let nextest = cmd!(sh, "cargo nextest --version").quiet().ignore_stdout().ignore_stderr().run();
    if nextest.is_ok() {
        let text = tee(cmd!(
            sh,
            "cargo nextest run --cargo-profile {PROFILE} --workspace --no-fail-fast --status-level fail --final-status-level fail --color never"
        ))?;
        return nextest_counts(&text).context("cargo nextest gave no summary; do the tests build?");
    }
    let text = tee(cmd!(sh, "cargo test --profile {PROFILE} --workspace --no-fail-fast"))?;
    cargo_test_counts(&text).context("cargo test gave no summary; do the tests build?")
}

/// Reads `Summary [ 1.2s] 123 tests run: 120 passed (1 slow), 3 failed, 2 skipped`.
fn nextest_counts(text: &str) -> Option<Counts> {
    let summary = text.lines().rev().find(|line| line.contains("tests run:"))?;
    let (_, outcomes) = summary.split_once("tests run:")?;
    let count = |what: &str| {
        let part = outcomes.split(',').find(|part| part.contains(what))?;
        part.split_whitespace().next()?.parse().ok()
    };
    let passed = count("passed").unwrap_or(0);
    let failed = ["failed", "timed out", "exec failed"].iter().filter_map(|what| count(what)).sum();
    Some(Counts { passed, failed })
}

/// Adds up `test result: ok. 6 passed; 0 failed; ...` lines.
fn cargo_test_counts(text: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    for line in text.lines().filter(|line| line.starts_with("test result:")) {
        let count = |what: &str| {
            let (before, _) = line.split_once(what)?;
            before.split_whitespace().last()?.parse::<usize>().ok()
        };
        counts.passed += count(" passed")?;
        counts.failed += count(" failed")?;
    }
    (counts.passed + counts.failed > 0).then_some(counts)
}

/// Type check and package of the VS Code extension.
fn extension(sh: &Shell) -> Result<Counts> {
    let _dir = sh.push_dir(root().join("editors/vscode"));
    cmd!(sh, "npm run --silent check").quiet().run().context("the extension has type errors")?;
    cmd!(sh, "npm run --silent package").quiet().ignore_stdout().run()?;
    Ok(Counts { passed: 2, failed: 0 })
}

/// Every example has no errors and every scenario's asserts hold on the CPU.
fn run_examples(sh: &Shell, tile: &Path) -> Result<Counts> {
    let mut counts = Counts::default();
    for file in examples(sh)? {
        let mut commands = vec![cmd!(sh, "{tile} check --deny warning {file}")];
        if has_scenario(sh, &file)? {
            commands.push(cmd!(sh, "{tile} run --device cpu --sanitize {file}"));
        }
        for command in commands {
            let ok = command.ignore_stdout().run().is_ok();
            counts.failed += usize::from(!ok);
            counts.passed += usize::from(ok);
        }
    }
    ensure!(counts.passed + counts.failed > 0, "there are no examples");
    Ok(counts)
}

/// A test program of the editors, which ends with `N passed, N failed`.
fn node_suite(sh: &Shell, script: &str, tile: &Path, others: &[OsString]) -> Result<Counts> {
    let text = tee(cmd!(sh, "node {script} --tile {tile} {others...}"))?;
    let line = text.lines().rev().find(|line| line.contains(" passed, ")).unwrap_or_default();
    let numbers: Vec<usize> =
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [passed, failed, ..] => Ok(Counts { passed, failed }),
        _ => bail!("{script} could not start"),
    }
}
