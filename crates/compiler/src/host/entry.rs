//! Where host code begins: scenarios, tests, benchmarks and commands, and what these are given.

pub(crate) mod assumed;
pub(crate) mod commands;
pub(crate) mod given;
pub(crate) mod marks;
pub(crate) mod parsed;
pub(crate) mod scenario;
pub(crate) mod strategies;
