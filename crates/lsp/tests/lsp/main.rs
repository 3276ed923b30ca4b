//! The server over its real loop: messages in, messages out.

mod client;
mod protocol;
mod sync;
