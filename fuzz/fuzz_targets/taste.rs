//! Fuzz target: see `taste` in `src/taste.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ugeom_fuzz::taste::taste(data);
});
