//! Fuzz target: see `wire_nbd` in `src/format.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::format::wire_nbd(data));
