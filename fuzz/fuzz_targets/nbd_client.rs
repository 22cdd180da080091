//! Fuzz target: see `nbd_client` in `src/client.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ugeom_fuzz::client::nbd_client(data));
