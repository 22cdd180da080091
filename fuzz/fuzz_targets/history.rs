//! Fuzz target: see `history` in `src/report.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::report::history(data));
