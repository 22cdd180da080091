//! Fuzz target: see `zstd` in `src/compressed.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::compressed::zstd(data));
