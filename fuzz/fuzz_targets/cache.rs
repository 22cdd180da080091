//! Fuzz target: see `options` in `src/cache.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::cache::options(data));
