//! Fuzz target: see `recording` in `src/kernel.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::kernel::recording(data));
