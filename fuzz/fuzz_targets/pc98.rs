//! Fuzz target: see `pc98` in `src/format.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::format::pc98(data));
