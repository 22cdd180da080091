//! Fuzz target: see `control` in `src/control.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::control::lines(data));
