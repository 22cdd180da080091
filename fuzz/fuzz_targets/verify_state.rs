//! Fuzz target: see `verify_state` in `src/format.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::format::verify_state(data));
