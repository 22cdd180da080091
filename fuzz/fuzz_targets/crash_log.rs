//! Fuzz target: see `crash_log` in `src/format.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::format::crash_log(data));
