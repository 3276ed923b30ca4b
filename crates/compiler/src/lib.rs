//! Tile kernels from text to GPU IR.
//!
//! Data flows one way: [`source`] text, syntax tree, AST, HIR, inference and its [`diagnostic`]s
//! on every keystroke; with a specialization also tile [`ir`], passes, analyses, layouts. Nothing
//! here reads files, speaks the editor's protocol, links LLVM or touches a device.

pub mod analysis;
pub mod artifact;
pub mod builtins;
pub mod diagnostic;
pub mod eval;
pub mod gpu;
pub mod hir;
pub mod host;
pub mod ir;
pub mod layout;
pub mod passes;
pub mod project;
pub mod source;
pub mod specialization;
pub mod syntax;
