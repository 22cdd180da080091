//! Fuzz target: see `sectors` in `src/eli.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::eli::sectors(data));
