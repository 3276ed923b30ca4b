//! The server over its real loop: messages in, messages out.

mod abuse;
mod client;
mod compile;
mod features;
mod protocol;
mod sync;
mod workspace;
