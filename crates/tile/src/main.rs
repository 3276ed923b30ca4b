//! The `tile` command.
//!
//! Each subcommand is a module whose `run` takes the parsed arguments and yields an exit code.
//! Front-end work happens in this process; LLVM, the assembler and devices are reached through
//! `tile worker` children alone.

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

mod analysis;
mod check;
mod cli;
mod compare;
mod compile;
mod doctor;
mod emit;
mod execute;
mod explain;
mod failure;
mod info;
mod lsp;
mod options;
mod output;
mod render;
mod run;
mod sarif;
mod tune;
mod worker;
mod workspace;

fn main() -> ExitCode {
    let cli = Cli::parse();
    output::log_to_stderr();
    let command = move || dispatch(cli.command);
    let thread = std::thread::Builder::new().stack_size(tile_compiler::eval::STACK_BYTES);
    // A panic was reported where it happened, and ends the program as one of this thread would.
    let ended = match thread.spawn(command).map(std::thread::JoinHandle::join) {
        Ok(Ok(ended)) => ended,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => Err(CommandError::device(format!("no thread can be started: {error}"))),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::error(&error.message);
            error.exit.into()
        }
    }
}

fn dispatch(command: Command) -> Result<Exit, CommandError> {
    match command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Lsp(_) => lsp::run(),
        Command::Emit(arguments) => emit::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Bench(arguments) => run::bench(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Worker => Ok(worker::run()),
    }
}

/// How a command ends, as its exit code tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All well.
    Success = 0,
    /// Errors in check, a failed assert, a sanitizer finding.
    Findings = 1,
    /// Usage, input or output.
    Usage = 2,
    /// The kernel does not compile.
    Compile = 3,
    /// A device or worker failed, time-outs included.
    Device = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What went wrong and what to do.
    pub(crate) message: String,
}

impl CommandError {
    /// Wrong usage, input or output.
    pub(crate) fn usage(message: impl Into<String>) -> CommandError {
        CommandError { exit: Exit::Usage, message: message.into() }
    }

    /// A kernel that does not compile.
    pub(crate) fn compile(message: impl Into<String>) -> CommandError {
        CommandError { exit: Exit::Compile, message: message.into() }
    }

    /// A device, worker or tool that failed.
    pub(crate) fn device(message: impl Into<String>) -> CommandError {
        CommandError { exit: Exit::Device, message: message.into() }
    }
}
