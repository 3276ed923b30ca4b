//! The language server alone, without the compiler's back end: for work on editor features.
//!
//! `cargo run -p tile-lsp --example serve`. Compiles and runs need the program `tile` on PATH.

use std::process::ExitCode;

fn main() -> std::io::Result<ExitCode> {
    let stopped = tile_lsp::serve(tile_lsp::Options::default())?;
    Ok(if stopped { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
