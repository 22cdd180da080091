//! Tests of `nop`.
