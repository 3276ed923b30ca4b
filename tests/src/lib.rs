//! Test engine.
