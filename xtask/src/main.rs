//! Project automation.

mod grammar;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Project automation: `cargo xtask COMMAND`.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generate the parser's tables from tree-sitter-tile/grammar.js
    Grammar {
        /// Fail when the committed files are stale instead of writing them
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Grammar { check } => grammar::generate(check),
    }
}
