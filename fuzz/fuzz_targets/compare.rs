//! Fuzz target: see `compare` in `src/report.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::report::compare(data));
