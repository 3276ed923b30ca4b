//! A text and edits of it; see `tile_fuzz::reparse`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tile_fuzz::reparse(data));
