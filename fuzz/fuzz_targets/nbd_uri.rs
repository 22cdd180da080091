//! Fuzz target: see `nbd_uri` in `src/format.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::format::nbd_uri(data));
