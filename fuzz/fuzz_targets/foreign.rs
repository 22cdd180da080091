//! Fuzz target: see `foreign` in `src/report.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::report::foreign(data));
