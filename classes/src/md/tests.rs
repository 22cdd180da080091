//! Tests of `md`.
