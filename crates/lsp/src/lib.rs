//! The language server: editor features over an incremental database, the protocol at the rim.
//!
//! - `document`, `cell`, `encoding`: open texts, cells of notebooks, edits, positions.
//! - `files`, `db`: where texts come from, and the queries over them.
//! - `compile`, `packed`: what kernels compile to, in workers, and how that is kept.
//! - `ide`: features as plain functions over a snapshot, byte offsets in, plain data out.
//! - `server`: the protocol. Nothing below it names a type of the protocol except positions.

mod cell;
mod compile;
mod db;
mod document;
mod encoding;
mod environment;
mod files;
mod ide;
mod packed;
mod server;
mod threads;

pub use environment::site_packages;
pub use files::{Disk, FileSystem, MAX_FILE_BYTES, array_header, source_text, too_large};
pub use server::{
    Options, Problem, ProjectRules, SETTINGS, Setting, project_rules, serve, serve_on,
};
