//! Fuzz target: see `parse` in `src/job.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ugeom_fuzz::job::parse(data);
});
