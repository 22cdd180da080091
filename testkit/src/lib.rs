//! Conformance suites, faults and oracles for the tests of ugeom.
#![forbid(unsafe_code)]

pub mod engine;
pub mod generated;
mod loop_device;
pub mod provider;
mod skip;

pub use loop_device::LoopDevice;
pub use skip::{program, python, shared, skip};
