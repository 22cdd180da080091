//! One folder a GEOM class, their registry, and the stack language.
#![forbid(unsafe_code)]

pub mod spec;
