//! The language server alone, without the compiler's back end: for work on editor features.
//!
//! `cargo run -p tile-lsp --example serve`. Compiles and runs are done by the program that the
//! environment variable `TILE` names, or by `tile` on PATH.

use std::path::PathBuf;
use std::process::ExitCode;

use tile_lsp::Options;
use tile_worker::WorkerCommand;

fn main() -> std::io::Result<ExitCode> {
    let program = std::env::var_os("TILE").map_or_else(|| "tile".into(), PathBuf::from);
    let worker = Some(WorkerCommand { program, args: vec!["worker".to_owned()] });
    let stopped = tile_lsp::serve(Options { worker, ..Options::default() })?;
    Ok(if stopped { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
