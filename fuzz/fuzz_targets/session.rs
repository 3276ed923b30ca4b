//! A client's side of a session; see `tile_fuzz::session`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tile_fuzz::session(data));
