//! Fuzz target: see `src/image.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::image::image(data));
