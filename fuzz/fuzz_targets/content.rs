//! Fuzz target: see `src/content.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::content::content(data));
