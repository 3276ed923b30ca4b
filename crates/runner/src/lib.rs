//! Runs tile kernels: scenarios, the CPU executor, CUDA devices, benchmarks.

pub mod auto;
pub mod bench;
pub mod cpu;
pub mod cuda;
pub mod launch;
pub mod number;
pub mod report;
pub mod scenario;
