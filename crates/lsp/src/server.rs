//! The protocol.

mod ordered;
