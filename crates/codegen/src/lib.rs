//! GPU IR to LLVM, PTX, machine code, resources and line map.
//!
//! The one crate that links LLVM. It runs in worker processes only: LLVM can abort and the
//! assembler can hang.

pub mod line_map;
pub mod occupancy;
pub mod ptxas;
