//! Fuzz target: see `vmdk_tables` in `src/image_tables.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::image_tables::vmdk_tables(data));
