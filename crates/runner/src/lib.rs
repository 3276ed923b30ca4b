//! Runs tile kernels: scenarios, the CPU executor, CUDA devices, benchmarks.

pub mod cpu;
pub mod number;
