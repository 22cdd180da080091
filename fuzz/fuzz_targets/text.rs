//! Fuzz target: see `text` in `src/names.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::names::text(data));
