//! Times a language server over standard input and output: any server, so that several compare.
//!
//! ```text
//! lsp_bench latency [--edits N] FILE... -- SERVER ARGUMENTS...
//! lsp_bench typing  [--keys N | --minutes N] [--rate KEYS] FILE... -- SERVER ARGUMENTS...
//! lsp_bench load    [--edits N] FOLDER FILE... -- SERVER ARGUMENTS...
//! lsp_bench navigate [--edits N] FOLDER FILE... -- SERVER ARGUMENTS...
//!
//! lsp_bench latency kernels.py -- tile lsp
//! lsp_bench latency kernels.py others/*.py -- ty server
//! lsp_bench typing --minutes 60 --rate 5 kernels.py softmax.py -- tile lsp
//! lsp_bench load library/ library/kernels.py -- tile lsp
//! lsp_bench navigate library/ library/kernels.py -- tile lsp
//! ```
//!
//! - `latency`: the first file is worked on; the others are open beside it. An edit puts a line
//!   with an undefined name into a kernel, or takes it out again; the time runs until diagnostics
//!   say so.
//! - `typing`: lines of kernels are typed and deleted again, a character an edit, and the memory is
//!   printed as it goes. With `--rate` at most that many characters are typed in a second; without
//!   it each follows when the server has answered for the one before.
//! - `load`: the file is typed in and hovered while the server checks every file of the folder and
//!   its workers compile.
//! - `navigate`: references, renames, callers and symbols of the workspace are asked for at the first
//!   kernel of each file and at its parameters, each of a server that has just opened the file, and
//!   again; and what can be done at lines of the file.
//!
//! Times are printed as median, 95th percentile and maximum. The processor time of an edit holds what
//! the server does after it has answered as well; unlike the times it hardly depends on what else the
//! machine does.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

mod client;
mod latency;
mod load;
mod navigate;
mod summary;
mod typing;

const USAGE: &str = "usage: lsp_bench latency|typing|load|navigate [--edits N] [--keys N] [--minutes N] \
                     [--rate KEYS] [FOLDER] FILE... -- SERVER ARGUMENTS...";

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lsp_bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let mode = words.next().ok_or(USAGE)?;
    let arguments = Arguments::read(words)?;
    match &*mode {
        "latency" => latency::run(&arguments),
        "typing" => typing::run(&arguments),
        "load" => load::run(&arguments),
        "navigate" => navigate::run(&arguments),
        _ => Err(USAGE.into()),
    }
}

struct Arguments {
    /// How many edits, and how many requests of each kind.
    edits: usize,
    /// How many characters are typed.
    keys: usize,
    /// How long is typed; counts instead of `keys` when given.
    time: Option<Duration>,
    /// At most this many characters a second.
    rate: Option<f64>,
    /// What is worked on.
    paths: Vec<PathBuf>,
    /// The command that starts the server.
    server: Vec<String>,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Arguments, Failure> {
        let mut arguments = Arguments {
            edits: 100,
            keys: 12_000,
            time: None,
            rate: None,
            paths: Vec::new(),
            server: Vec::new(),
        };
        loop {
            let word = words.next().ok_or(USAGE)?;
            let mut value = || words.next().ok_or(USAGE);
            match &*word {
                "--" => break,
                "--edits" => arguments.edits = value()?.parse()?,
                "--keys" => arguments.keys = value()?.parse()?,
                "--minutes" => {
                    arguments.time = Some(Duration::from_secs_f64(value()?.parse::<f64>()? * 60.0));
                }
                "--rate" => arguments.rate = Some(value()?.parse()?),
                _ => arguments.paths.push(std::path::absolute(word)?),
            }
        }
        arguments.server = words.collect();
        if arguments.server.is_empty() || arguments.paths.is_empty() {
            return Err(USAGE.into());
        }
        Ok(arguments)
    }
}

/// The line after the first one that asks for the program's id, and its indentation.
fn place(text: &str) -> Result<(usize, String), Failure> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| {
        let ends_here = line.matches('(').count() == line.matches(')').count();
        line.contains("program_id(") && line.trim_start().contains('=') && ends_here
    });
    let (at, line) = lines.next().ok_or("the file has no line with program_id")?;
    Ok((at + 1, line[..line.len() - line.trim_start().len()].to_owned()))
}
