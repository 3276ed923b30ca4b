//! A text and edits of it; see `tile_tests::fuzz::reparse`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tile_tests::fuzz::reparse(data));
