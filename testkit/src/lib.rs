//! Conformance suites, faults and oracles for the tests of ugeom.
#![forbid(unsafe_code)]

mod skip;

pub use skip::{program, shared, skip};
