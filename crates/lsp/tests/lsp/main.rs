//! The server over its real loop: messages in, messages out.

mod abuse;
mod client;
mod compile;
mod documents;
mod features;
mod guesses;
mod names;
mod places;
mod protocol;
mod settings;
mod sync;
mod tags;
mod workspace;
