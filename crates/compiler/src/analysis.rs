//! Analyses: pure functions from IR to side tables.

pub mod axis;
