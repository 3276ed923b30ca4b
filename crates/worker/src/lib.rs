//! Worker processes, seen from outside.
//!
//! LLVM can abort, the assembler can hang, and a faulting kernel poisons its CUDA context. So all
//! three run in `tile worker` children. This crate holds what both sides share ([`protocol`]) and
//! what the command line and the language server need to use them: a [`pool`] that starts,
//! restarts and times workers, a [`cache`] of artifacts on disk, and the search for the
//! assembler ([`ptxas`]). It links neither LLVM nor a device driver.

pub mod cache;
mod cancel;
pub mod pool;
mod process;
pub mod protocol;
pub mod ptxas;
mod scratch;

pub use cache::Cache;
pub use cancel::Cancel;
pub use pool::Pool;
pub use process::{WorkerCommand, WorkerError};
pub use protocol::{CompileOptions, CompileRequest, Failure, FailureKind, RunRequest};
pub use scratch::Scratch;
