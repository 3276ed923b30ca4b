//! The language server: editor features over an incremental database, the protocol at the rim.
//!
//! - `document`, `encoding`: open texts, edits, positions.
//! - `server`: the protocol. Nothing below it names a type of the protocol except positions.

mod document;
mod encoding;
mod server;
