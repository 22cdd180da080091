//! Fuzz target: see `gzip` in `src/compressed.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::compressed::gzip(data));
