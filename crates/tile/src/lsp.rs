//! `tile lsp`: the language server.

use crate::{CommandError, Exit};

/// Serves one client on standard input and output.
pub(crate) fn run() -> Result<Exit, CommandError> {
    match tile_lsp::serve(tile_lsp::Options::default()) {
        Ok(true) => Ok(Exit::Success),
        Ok(false) => Ok(Exit::Findings),
        Err(error) => Err(CommandError::device(format!("cannot start threads: {error}"))),
    }
}
