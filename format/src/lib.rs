//! On-disk and on-wire layouts as pure functions between bytes and structs.
