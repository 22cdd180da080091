//! Fuzz target: see `serve_tls` in `src/serve.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::serve::serve_tls(data));
