//! Fuzz target: see `qcow2` in `src/image_tables.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::image_tables::qcow2(data));
