//! Fuzz target: see `trace_page` in `src/kernel.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::kernel::trace_page(data));
