//! Project automation: `cargo xtask demo`, `cargo xtask test` and the steps that they are made of.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use xshell::Shell;

mod bench;
mod corpora;
mod demo;
mod fuzz;
mod grammar;
mod package;
mod setup;
mod suite;
mod test;

/// Automation of the Tile project.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Set up, build, and show what Tile does on the example kernels.
    Demo,
    /// Set up and run every check; the last line is `N passed, N failed`.
    Test {
        /// Run only the checks whose name contains this.
        only: Option<String>,
    },
    /// Install what is missing on a bare Debian or Ubuntu machine.
    Setup {
        /// Only what building and the demo need.
        #[arg(long)]
        build_only: bool,
    },
    /// Time the example kernels at the sizes of the published figures; needs a CUDA device.
    Bench,
    /// Generate the parser's tables from tree-sitter-tile/grammar.js; needs node.
    Grammar {
        /// Fail when the committed files are stale instead of writing them.
        #[arg(long)]
        check: bool,
    },
    /// Run the fuzzers' targets; what they learn stays in `fuzz/corpus`.
    Fuzz {
        /// Only the targets whose name contains this.
        only: Option<String>,
        /// How long each target runs.
        #[arg(long, default_value_t = 5)]
        minutes: u64,
    },
    /// Build the release binary and the VS Code extension into `target/package`.
    Package,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    let sh = shell()?;
    match task {
        Task::Demo => demo::run(&sh)?,
        Task::Test { only } => return test::run(&sh, only.as_deref()),
        Task::Setup { build_only: true } => setup::for_build(&sh)?,
        Task::Setup { build_only: false } => setup::for_tests(&sh)?,
        Task::Bench => bench::run(&sh)?,
        Task::Grammar { check } => grammar::generate(check)?,
        Task::Fuzz { only, minutes } => fuzz::run(&sh, only.as_deref(), minutes)?,
        Task::Package => package::run(&sh)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A shell in the repository's root folder.
fn shell() -> Result<Shell> {
    let sh = Shell::new()?;
    sh.change_dir(root());
    Ok(sh)
}

/// The repository's root folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Cargo's output folder.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The profile of what is built here, and the folder of the target directory that holds it.
const PROFILE: &str = "verify";

/// Builds `tile` and returns the path of its binary.
fn build_tile(sh: &Shell) -> Result<PathBuf> {
    let build = xshell::cmd!(sh, "cargo build --quiet --profile {PROFILE} --package tile");
    build.run().context("tile does not build")?;
    Ok(program("tile"))
}

/// The binary called `name`, which must have been built.
fn program(name: &str) -> PathBuf {
    target().join(PROFILE).join(name)
}

/// The example kernels, sorted.
fn examples(sh: &Shell) -> Result<Vec<PathBuf>> {
    let mut files = sh.read_dir(root().join("examples"))?;
    files.retain(|file| file.extension().is_some_and(|ext| ext == "py" || ext == "tile"));
    Ok(files)
}

/// Whether an example can be run; others hold functions for kernels of other files.
fn has_scenario(sh: &Shell, example: &Path) -> Result<bool> {
    Ok(sh.read_file(example)?.contains("# tile:"))
}
