//! Fuzz target: see `vmdk` in `src/reached.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::reached::vmdk(data));
