//! Tile IR: SSA over tiles and scalars with structured control flow.
//!
//! One [`Function`] is one kernel under one specialization, every helper inlined. It is held as
//! three separate things: what is computed ([`InstData`] in an arena), in which order
//! ([`RegionData`]), and side tables (locations, layouts). [`ops`] is the one table of operations;
//! builder, printer, parser, verifier and documentation are derived from it.
//!
//! The same structure carries both levels. At [`Level::Tile`] tile types have no layout. At
//! [`Level::Gpu`] every tile type names one of the function's layouts and operations of the GPU
//! group (conversions, shared buffers, asynchronous copies, barriers, matrix units) may occur.

mod assembly;
mod attrs;
mod builder;
mod function;
mod layout_text;
pub mod ops;
mod parse;
mod print;
mod types;
mod verify;

pub use assembly::AsmMismatch;
pub use attrs::*;
pub use builder::Builder;
pub use function::*;
pub use layout_text::layout_to_text as layout_text;
pub use ops::{Arity, Effects, OpInfo, Opcode, ResultRule};
pub use parse::{ParseError, parse};
pub use types::*;
pub(crate) use verify::MAX_TILE_ELEMENTS;
pub use verify::{Verified, VerifyError, verify};
