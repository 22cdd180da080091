//! Fuzz target: see `src/search.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::search::search(data));
