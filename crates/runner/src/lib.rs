//! Runs tile kernels: scenarios, devices, benchmarks.

pub mod auto;
pub mod bench;
pub mod cpu;
pub mod cuda;
pub mod launch;
pub mod report;
pub mod scenario;
