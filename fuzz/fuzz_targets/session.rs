//! A client's side of a session; see `tile_tests::fuzz::session`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tile_tests::fuzz::session(data));
