//! Standard output and standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use tile_lsp::Problem;

use crate::CommandError;

/// Prints one line of a program's output.
pub(crate) fn json(value: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string(value)
        .map_err(|error| CommandError::usage(format!("cannot write JSON: {error}")))?;
    text_line(&text)
}

/// Prints a line.
pub(crate) fn text_line(text: &str) -> Result<(), CommandError> {
    write_all(text.as_bytes())?;
    write_all(b"\n")
}

/// Prints bytes as they are.
pub(crate) fn write_all(bytes: &[u8]) -> Result<(), CommandError> {
    match io::stdout().write_all(bytes) {
        Ok(()) => Ok(()),
        // A reader that has seen enough (`| head`) is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(CommandError::usage(format!("cannot write to standard output: {error}"))),
    }
}

/// Tells the user what went wrong.
pub(crate) fn error(message: &str) {
    tell("error", "\x1b[1;31m", message);
}

/// Tells the user what is wrong with settings.
pub(crate) fn problem(problem: &Problem) {
    let here = std::env::current_dir().unwrap_or_default();
    warning(&problem.seen_from(&here));
}

/// Tells the user what may not be meant.
pub(crate) fn warning(message: &str) {
    tell("warning", "\x1b[1;33m", message);
}

/// Tells the user something in passing.
pub(crate) fn note(message: &str) {
    tell("note", "\x1b[1;36m", message);
}

fn tell(what: &str, color: &str, message: &str) {
    // Standard error that cannot be written leaves nobody to tell.
    let _ = if styled(&io::stderr()) {
        writeln!(io::stderr(), "{color}{what}\x1b[0m: {message}")
    } else {
        writeln!(io::stderr(), "{what}: {message}")
    };
}

/// Whether output to this stream may carry colors.
pub(crate) fn styled(stream: &impl IsTerminal) -> bool {
    let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    forced || (!refused && stream.is_terminal())
}

/// Sends the program's own log to standard error, as far as `TILE_LOG` asks for it.
pub(crate) fn log_to_stderr() {
    let asked = std::env::var_os("TILE_LOG").unwrap_or_default();
    let asked = asked.to_string_lossy();
    let filter =
        tracing_subscriber::EnvFilter::try_new(if asked.is_empty() { "off" } else { &*asked });
    let filter = filter.unwrap_or_else(|error| {
        warning(&format!(
            "TILE_LOG is {asked}, so nothing is logged: {error}; write it like debug"
        ));
        tracing_subscriber::EnvFilter::new("off")
    });
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
}
