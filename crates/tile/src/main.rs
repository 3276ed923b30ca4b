//! The `tile` command.
fn main() {}
