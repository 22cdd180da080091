//! Conformance suites, faults and oracles for the tests of ugeom.
#![forbid(unsafe_code)]

pub mod engine;
pub mod generated;
pub mod provider;
mod skip;

pub use skip::{program, python, shared, skip};
