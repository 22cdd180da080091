//! Fuzz target: see `values` in `src/units.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| ugeom_fuzz::units::values(text));
